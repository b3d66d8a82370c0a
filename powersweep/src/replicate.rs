//! Seeds that are added until means are known.
//!
//! The procedure has two stages (Stein 1945). The first runs `at_least` seeds of each combination. With s for the standard
//! deviation of their values, t for Student's quantile with `at_least` - 1 degrees of freedom, and d for the wanted half width
//! (of a relative one, that part of the mean of these values), the combination needs n = max(`at_least`, floor((t s / d)^2) + 1)
//! seeds, and at most `at_most`. The second stage runs the others. The interval of the mean of all n values is t s / sqrt(n) on each
//! side, with t and s of the first stage: n depends on the values of the first stage through s alone, so that the
//! interval of normal values has exactly its coverage. A rule that looks at the interval again and again until it is short
//! stops where the variance happens to be small, and its intervals cover less.

use std::collections::{BTreeMap, HashMap, HashSet};

use powersweep_dataset::frame::unit_of;
use powersweep_dataset::rows::is_number;
use powersweep_dataset::source::{table_of, type_of};
use powersweep_dataset::stats::{sd, sum};
use powersweep_dataset::titles::{labelled, unit_of_column};
use powersweep_dataset::words::{count, number};
use powersweep_dataset::{Cell, Error, failure, student_t};
use powersweep_engine::batch::physics;
use powersweep_engine::{Value, seeds};
use powersweep_experiments::{Derivation, Manifest, Precision, Sweep, Until, place_in};
use powersweep_results::Table;

use crate::derived::DerivedOptions;
use crate::find::grid::{Grid, Group, Rule, conditions};
use crate::find::{StepRun, begin, each_row_of_grid, interrupted};
use crate::inputs::{self, Files};
use crate::place::Place;

/// Stages of seeds under way. The next stage follows from the rows alone, so that the same call continues after an interruption.
pub struct Replication {
    place: Place,
    options: DerivedOptions,
    original: Manifest,
    until: Until,
    files: Files,
    grid: Grid,
    table: Table,
    /// Whether the watts of the machine are known: otherwise energies are relative.
    has_watts: bool,
    /// By task the values of the metrics.
    rows: HashMap<String, Vec<f64>>,
    /// Ids of the tasks that were asked for.
    asked: HashSet<String>,
}

/// The tasks of a stage.
#[derive(Debug)]
pub struct Stage {
    /// 1 or 2.
    pub number: usize,
    /// Number of its tasks without a row.
    pub tasks: usize,
    /// Number of combinations that get seeds.
    pub combinations: usize,
    wanted: HashSet<String>,
}

/// The mean of a metric of one combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The combination: what tells it from the others.
    pub combination: String,
    /// The metric.
    pub metric: String,
    /// Its unit; empty without one.
    pub unit: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Number of seeds that the precision needs.
    pub needed: u64,
    /// The mean over all seeds.
    pub mean: f64,
    /// Half the width of its interval.
    pub half_width: f64,
    /// If the limit is a part of the mean, the half width as a part of the mean that the limit refers to: that of the first stage.
    pub relative: Option<f64>,
}

impl Place {
    /// Begins to run a manifest whose seeds are added until means are known ([`Manifest::until`]): [`Replication::next`] says which
    /// tasks are needed, [`Replication::run`] runs them, [`Replication::known`] has the means. Blocks while the files of the
    /// manifest are read.
    ///
    /// # Errors
    /// The seeds are fixed, a metric or a column is unknown, or a file cannot be read.
    pub fn replicate(&self, original: &Manifest, options: DerivedOptions) -> Result<Replication, Error> {
        let until = original.until().cloned().ok_or_else(|| {
            failure!(
                Usage,
                "the manifest has fixed seeds: give `seeds` a condition, such as until = \"ci95(bsld_mean) < 2%\""
            )
        })?;
        let files = Files::read(original, &options.library, Some(&options.logs), &self.notes)?;
        let sweep = inputs::sweep(original, &files.digests)?;
        let (table, grid) = checked(&until, &sweep)?;
        let first = (0..sweep.index_count()).find_map(|index| sweep.task(index));
        let has_watts = first.is_none_or(|task| !physics::is_relative(&task.sim));
        Ok(Replication {
            place: self.clone(),
            options,
            original: original.clone(),
            until,
            files,
            grid,
            table,
            has_watts,
            rows: HashMap::new(),
            asked: HashSet::new(),
        })
    }
}

/// Refuses metrics of `accounts` where no task has rows of it.
///
/// # Errors
/// The manifest has no signals.
pub(crate) fn check_table(table: Table, manifest: &Manifest) -> Result<(), Error> {
    if table == Table::Accounts && manifest.signals().is_empty() {
        return Err(failure!(
            Usage,
            "the manifest has no [signals.NAME], so that its tasks have no rows of `accounts`"
        ));
    }
    Ok(())
}

fn several(table: Table) -> Error {
    failure!(Usage, "a task has several rows of `{table}`: choose a metric of `tasks`, or a manifest with one signal")
}

/// The table of the metrics, and the combinations of the sweep.
///
/// # Errors
/// A metric or a column is unknown, or a metric is no number or an axis, or needs signals that the manifest lacks.
pub(crate) fn checked(until: &Until, sweep: &Sweep) -> Result<(Table, Grid), Error> {
    let table = table_of(until.precisions.iter().map(|precision| precision.metric.as_str()));
    check_table(table, sweep.manifest())?;
    let signals = sweep.manifest().signals();
    // The points of a design give a task one of the signals of their block.
    if table == Table::Accounts && signals.len() > 1 && signals.iter().all(|signal| signal.points.is_empty()) {
        return Err(several(table));
    }
    let axes = sweep.axes();
    for Precision { metric, text, .. } in &until.precisions {
        let line =
            place_in(sweep.manifest().text(), text).map_or_else(String::new, |(line, _)| format!(" (line {line})"));
        let place = |what: &str| failure!(Usage, "the condition {text} of `seeds`{line}: {what}");
        match type_of(table, metric) {
            Err(error) => return Err(place(&error.message)),
            Ok(of) if !is_number(&of) => {
                return Err(place(&format!("`{metric}` has no numbers, so that it has no mean")));
            }
            Ok(_) if axes.iter().any(|axis| axis.name == *metric) => {
                return Err(place(&format!("`{metric}` is an axis, no metric")));
            }
            Ok(_) => {}
        }
    }
    let grid = Grid::of(sweep, Vec::new(), &[])?;
    for name in &until.by {
        if !grid.groups.iter().any(|group| group.name.get(name).is_some()) {
            let group = grid.groups.first().map_or_else(String::new, |group| group.name.to_string());
            return Err(failure!(
                Usage,
                "`by` of `seeds` has the column `{name}`, which tells no combinations apart; one is {group}"
            ));
        }
    }
    Ok((table, grid))
}

impl Replication {
    /// Name of the experiment.
    pub fn name(&self) -> &str {
        self.original.name()
    }

    /// The next stage; `None` once all combinations have the seeds that they need.
    ///
    /// # Errors
    /// The run was stopped, the rows cannot be read, or a task that has ended has no value.
    pub async fn next(&mut self) -> Result<Option<Stage>, Error> {
        if self.options.run.stop.is_cancelled() {
            return Err(interrupted());
        }
        // A restart begins without the rows that are there.
        self.rows = if self.options.run.restart { HashMap::new() } else { self.read_rows().await? };
        let first: Vec<u64> = vec![self.until.at_least; self.grid.groups.len()];
        let (number, needed) = match self.lacking(&first).is_empty() {
            true => (2, self.needed()?),
            false => (1, first),
        };
        let lacking = self.lacking(&needed);
        if lacking.iter().any(|(_, id)| self.asked.contains(id)) {
            return Err(failure!(
                Usage,
                "tasks that have ended have no row: `powersweep retry {}` repeats them",
                self.name()
            ));
        }
        let combinations = lacking.iter().map(|(group, _)| *group).collect::<HashSet<usize>>().len();
        let mut wanted: HashSet<String> = self.rows.keys().cloned().collect();
        let tasks = lacking.len();
        wanted.extend(lacking.into_iter().map(|(_, id)| id));
        Ok((tasks > 0).then_some(Stage { number, tasks, combinations, wanted }))
    }

    /// Begins to run the tasks of a stage: at the coordinator that was named or serves the data, else in this process.
    ///
    /// # Errors
    /// The manifest of the stage is refused.
    pub async fn run(&mut self, stage: Stage) -> Result<StepRun, Error> {
        self.asked.extend(stage.wanted.iter().cloned());
        // Indices of tasks stay: seeds beyond those of the stage are excluded.
        let seeds = Some((self.until.from, self.until.at_most));
        let exclude = self.grid.groups.iter().filter_map(|group| self.excluded(group, &stage.wanted)).collect();
        let derivation = Derivation { name: self.original.name(), seeds, exclude, ..Derivation::default() };
        let manifest = self.options.derive(&self.original, &derivation, "its seeds so far")?;
        let options = self.options.run.clone();
        self.options.run.restart = false;
        begin(&self.place, &manifest, &self.files, &self.options.library, &options).await
    }

    /// The seeds of a group that are not wanted: conditions of an exclusion.
    fn excluded(&self, group: &Group, wanted: &HashSet<String>) -> Option<Rule> {
        let unwanted = group.tasks[0].iter().filter(|task| !wanted.contains(&task.id));
        let seeds: Vec<Value> = unwanted.map(|task| self.grid.seed(task.seed)).collect();
        (!seeds.is_empty()).then(|| [conditions(&group.name), vec![("seed".to_owned(), seeds)]].concat())
    }

    fn unit(&self, metric: &str) -> &'static str {
        unit_of(metric, unit_of_column(metric).unwrap_or_default(), !self.has_watts)
    }

    /// The means of all combinations that have their first seeds.
    ///
    /// # Errors
    /// A row has no value of a metric.
    pub fn known(&self) -> Result<Vec<Known>, Error> {
        let needed = self.needed_by_precision()?;
        let mut all = Vec::new();
        for (group, needed) in self.grid.groups.iter().zip(needed) {
            for (at, (precision, needed)) in self.until.precisions.iter().zip(needed).enumerate() {
                let values = self.values(group, at, u64::MAX)?;
                let first = &values[..values.len().min(self.until.at_least as usize)];
                let (first_mean, spread) = spread(first, precision.percent);
                let half_width = spread / (values.len() as f64).sqrt();
                all.push(Known {
                    combination: group.name.to_string(),
                    metric: precision.metric.clone(),
                    unit: self.unit(&precision.metric).to_owned(),
                    seeds: values.len(),
                    needed,
                    mean: sum(values.iter().copied()) / values.len() as f64,
                    half_width,
                    relative: precision.is_relative.then(|| half_width / first_mean.abs()),
                });
            }
        }
        Ok(all)
    }

    /// Sentences about the means.
    pub fn said(&self, known: &[Known]) -> String {
        let conditions: Vec<&str> = self.until.precisions.iter().map(|precision| precision.text.as_str()).collect();
        let seeds = known.iter().map(|known| known.seeds);
        let (least, most) = (seeds.clone().min().unwrap_or_default(), seeds.max().unwrap_or_default());
        let seeds = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let combinations = count(self.grid.groups.len() as u64, "combination");
        let mut text =
            format!("{}: {seeds} seeds for each of {combinations}, by Stein's two stages.", conditions.join(" and "));
        let short = known.iter().filter(|known| known.needed > self.until.at_most).count();
        if short > 0 {
            text += &format!(
                " {} not known so well: at_most = {} is less than needed.",
                if short == 1 { "One mean is".to_owned() } else { format!("{short} means are") },
                self.until.at_most
            );
        }
        if self.grid.groups.iter().any(|group| matches!(group.seeds, seeds::Dependence::Resampled(_))) {
            text += " Seeds that draw blocks of one log: these are the means over all such draws, and another log may \
                     have others.";
        }
        text
    }

    /// Of each group the number of seeds that it needs.
    fn needed(&self) -> Result<Vec<u64>, Error> {
        let of_groups =
            self.needed_by_precision()?.into_iter().map(|needed| needed.into_iter().max().unwrap_or_default());
        let own: Vec<u64> = of_groups.map(|needed| needed.min(self.until.at_most)).collect();
        if self.until.by.is_empty() {
            return Ok(own);
        }
        let key =
            |group: &Group| self.until.by.iter().map(|name| format!("{:?}", group.name.get(name))).collect::<Vec<_>>();
        let mut shared: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for (group, needed) in self.grid.groups.iter().zip(&own) {
            let most = shared.entry(key(group)).or_default();
            *most = (*most).max(*needed);
        }
        Ok(self.grid.groups.iter().map(|group| shared[&key(group)]).collect())
    }

    /// Of each group the number of seeds that each precision needs.
    fn needed_by_precision(&self) -> Result<Vec<Vec<u64>>, Error> {
        let of_group = |group: &Group| {
            let needed = |(at, precision): (usize, &Precision)| {
                let values = self.values(group, at, self.until.at_least)?;
                Ok(seeds_needed(&values, precision, self.until.at_least))
            };
            self.until.precisions.iter().enumerate().map(needed).collect()
        };
        self.grid.groups.iter().map(of_group).collect()
    }

    /// The values of a metric with the first seeds of a group that have rows.
    fn values(&self, group: &Group, at: usize, seeds: u64) -> Result<Vec<f64>, Error> {
        let rows = group.tasks[0].iter().take(seeds as usize).map_while(|task| self.rows.get(&task.id));
        let values: Vec<f64> = rows.map(|row| row[at]).collect();
        match values.iter().any(|value| value.is_nan()) || values.is_empty() {
            false => Ok(values),
            true => Err(failure!(
                Usage,
                "{} lacks a value of {} with one of its seeds: no number of seeds makes its mean known",
                group.name,
                self.until.precisions[at].metric
            )),
        }
    }

    /// The tasks of the first seeds of each group that have no rows, with the position of their group.
    fn lacking(&self, seeds: &[u64]) -> Vec<(usize, String)> {
        let groups = self.grid.groups.iter().zip(seeds).enumerate();
        let of_group = |(at, (group, seeds)): (usize, (&Group, &u64))| {
            let tasks = group.tasks[0].iter().take(*seeds as usize).filter(|task| !self.rows.contains_key(&task.id));
            tasks.map(|task| (at, task.id.clone())).collect::<Vec<_>>()
        };
        groups.flat_map(of_group).collect()
    }

    /// The rows of the grid that are there.
    async fn read_rows(&self) -> Result<HashMap<String, Vec<f64>>, Error> {
        let mut rows: HashMap<String, Vec<f64>> = HashMap::new();
        let metrics: Vec<&str> = self.until.precisions.iter().map(|precision| precision.metric.as_str()).collect();
        let take = |id: String, cells: Vec<Cell>| {
            let values = cells.iter().map(|cell| cell.number().unwrap_or(f64::NAN)).collect();
            match rows.insert(id, values) {
                None => Ok(()),
                Some(_) => Err(several(self.table)),
            }
        };
        each_row_of_grid(&self.place, self.name(), &self.grid, self.table, &metrics, Vec::new(), take).await?;
        Ok(rows)
    }
}

/// The mean of values, and t s for them: divided by the root of a number of seeds, half the width of the interval of their mean.
fn spread(values: &[f64], percent: u32) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mean = sum(sorted.iter().copied()) / sorted.len() as f64;
    let t = if sorted.len() > 1 { student_t(percent, sorted.len() - 1) } else { f64::INFINITY };
    (mean, t * sd(&sorted).unwrap_or(f64::INFINITY))
}

/// The number of seeds of a combination with these values in the first stage.
fn seeds_needed(first: &[f64], precision: &Precision, at_least: u64) -> u64 {
    let (mean, spread) = spread(first, precision.percent);
    let width = if precision.is_relative { precision.half_width * mean.abs() } else { precision.half_width };
    if spread == 0.0 {
        return at_least;
    }
    // A mean of 0 has no relative precision: the number is the greatest one.
    let needed = (spread / width).powi(2).floor() + 1.0;
    at_least.max(needed as u64)
}

/// A line for each combination and metric.
pub fn lines(known: &[Known]) -> Vec<[String; 4]> {
    let line = |known: &Known| {
        let half_width = match known.relative {
            Some(_) if known.half_width == 0.0 => "0%".to_owned(),
            Some(part) => format!("{:.2}%", 100.0 * part),
            None => number(known.half_width),
        };
        let mean = format!("{} ± {half_width}", number(known.mean));
        [known.combination.clone(), labelled(&known.metric, &known.unit), known.seeds.to_string(), mean]
    };
    known.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use powersweep_engine::rng::{Philox, Purpose};

    use super::*;

    fn precision(half_width: f64, is_relative: bool) -> Precision {
        Precision { metric: "m".to_owned(), percent: 95, half_width, is_relative, text: String::new() }
    }

    /// s = 2 and t(0.95; 4) = 2.776: (2.776 * 2 / 1)^2 = 30.8.
    #[test]
    fn the_number_of_seeds_is_steins() {
        let first = [8.0, 10.0, 12.0, 9.0, 11.0];
        let s = (10.0f64 / 4.0).sqrt();
        let needed = (2.776_445_105 * s / 1.0).powi(2).floor() as u64 + 1;
        assert_eq!((needed, seeds_needed(&first, &precision(1.0, false), 5)), (20, 20));
        assert_eq!(seeds_needed(&first, &precision(0.1, true), 5), 20, "a tenth of the mean 10");
        assert_eq!(seeds_needed(&first, &precision(50.0, false), 5), 5);
        assert_eq!(seeds_needed(&[3.0; 5], &precision(1e-9, true), 5), 5);
        assert_eq!(seeds_needed(&[-1.0, 1.0], &precision(0.1, true), 2), u64::MAX);
    }

    #[test]
    fn a_percentage_is_of_the_mean_that_the_limit_refers_to() {
        let known = |half_width, relative| Known {
            combination: String::new(),
            metric: "wait_s_mean".to_owned(),
            unit: "s".to_owned(),
            seeds: 60,
            needed: 64,
            mean: 104.0,
            half_width,
            relative,
        };
        let shown = |known: Known| lines(&[known])[0][3].clone();
        assert_eq!(shown(known(8.0, Some(0.0825))), "104 ± 8.25%");
        assert_eq!(shown(known(0.0, Some(f64::NAN))), "104 ± 0%");
        assert_eq!(shown(known(8.0, None)), "104 ± 8");
    }

    /// 4,000 experiments with each kind of values: the interval contains the true mean in 94% to 96%.
    #[test]
    fn stopping_keeps_the_coverage() {
        let covered = |at_least: usize, precision: &Precision, draw: &dyn Fn(&mut Philox) -> f64| {
            let mut inside = 0;
            for case in 0..4_000 {
                let mut random = Philox::stream(case, Purpose::Arrival);
                let first: Vec<f64> = (0..at_least).map(|_| draw(&mut random)).collect();
                let needed = seeds_needed(&first, precision, at_least as u64);
                let more = (first.len() as u64..needed).map(|_| draw(&mut random));
                let mean = (first.iter().sum::<f64>() + more.sum::<f64>()) / needed as f64;
                let half = spread(&first, 95).1 / (needed as f64).sqrt();
                inside += u32::from((mean - 1.0).abs() <= half);
            }
            f64::from(inside) / 4_000.0
        };
        let normal = |cv: f64| move |random: &mut Philox| 1.0 + cv * random.normal();
        for (at_least, width, cv) in [(5, 0.05, 0.1), (10, 0.05, 0.2), (10, 0.1, 0.1), (20, 0.05, 0.3)] {
            let share = covered(at_least, &precision(width, true), &normal(cv));
            assert!((0.94..=0.96).contains(&share), "{at_least} {width} {cv}: {share}");
        }
        let share = covered(10, &precision(0.05, false), &normal(0.2));
        assert!((0.94..=0.96).contains(&share), "absolute: {share}");
        // Skewed values, such as bounded slowdowns: a gamma distribution with a coefficient of variation of 0.3.
        let gamma = |random: &mut Philox| random.gamma(1.0 / 0.09, 0.09);
        let share = covered(20, &precision(0.05, true), &gamma);
        assert!((0.93..=0.96).contains(&share), "skewed: {share}");
    }
}
