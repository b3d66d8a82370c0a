//! Power models: power and run times of a processor by gear and state.
pub mod etinski;
pub mod stated;
pub mod table;

/// Power and run times by gear, slowest first, for one list of gears.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Power of a busy processor by class of jobs and gear (W); one class: the same for all jobs.
    busy_w: Vec<Vec<f64>>,
    /// Run time over that at the top gear, by class of jobs and gear; empty if the platform scales run times.
    time_factors: Vec<Vec<f64>>,
    /// Power of an idle processor (W).
    pub idle_w: f64,
}

impl Model {
    /// Number of classes of jobs in the tables.
    pub fn job_classes(&self) -> usize {
        self.busy_w.len().max(self.time_factors.len())
    }

    /// Power of a busy processor (W).
    pub fn busy_w(&self, class: usize, gear: usize) -> f64 {
        self.busy_w[class.min(self.busy_w.len() - 1)][gear]
    }

    /// Run time over that at the top gear; `None` if the platform scales run times.
    pub fn time_factor(&self, class: usize, gear: usize) -> Option<f64> {
        self.time_factors.get(class).or(self.time_factors.last()).map(|factors| factors[gear])
    }
}

/// A table of one value for each gear, or such a table for each class of jobs, one after the other.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    /// The parameter.
    pub(crate) name: &'static str,
    pub(crate) values: &'a [f64],
    /// Whether values must not descend from gear to gear; otherwise they must not ascend.
    pub(crate) ascends: bool,
}

/// Maximum number of classes of jobs: the kernel counts gears times classes in 16 bits.
const CLASSES_MAX: usize = 64;

/// Problems of tables with a number of gears, in sentences that name the parameters. `betas`: number of classes in the
/// platform's `class_betas`.
pub(crate) fn table_problems(tables: &[Table<'_>], gears: usize, betas: Option<usize>) -> Vec<String> {
    let mut problems = Vec::new();
    for &Table { name, values, ascends } in tables {
        if !values.len().is_multiple_of(gears) {
            problems.push(format!(
                "`{name}` has {} values for {gears} gears in `gears_ghz`: each class of jobs needs one a gear (a processor \
                 without gears has one, `gears_ghz` = [1])",
                values.len()
            ));
            continue;
        }
        for class in values.chunks(gears) {
            if let Some(pair) =
                class.windows(2).find(|pair| if ascends { pair[0] > pair[1] } else { pair[0] < pair[1] })
            {
                let wrong = if ascends { "must not descend" } else { "must not ascend" };
                problems.push(format!("`{name}` {wrong} from gear to gear: {} is followed by {}", pair[0], pair[1]));
            }
        }
    }
    let mut counts: Vec<_> = tables.iter().map(|table| (table.name, table.values.len() / gears)).collect();
    counts.extend(betas.map(|betas| ("class_betas", betas)));
    let classes = counts.iter().map(|(_, count)| *count).max().unwrap_or(1);
    for (name, count) in counts {
        if problems.is_empty() && count > 1 && count != classes {
            problems.push(format!(
                "`{name}` has tables for {count} classes of jobs, another for {classes}: give one for each, or one"
            ));
        }
        if count > CLASSES_MAX {
            problems
                .push(format!("`{name}` has tables for {count} classes of jobs: at most {CLASSES_MAX} are possible"));
        }
    }
    problems
}
