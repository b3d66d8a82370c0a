//! Statistics of the steady state: a run that ends when its means are precise enough.
use super::batch_means::{BATCHES, Batch, Estimate, join_pairs};
use super::measure::{Measurement, Readings};
use super::summary::QueueSummary;
use super::tally::{ClassTally, Histogram, Tally};
use crate::details::Details;
use crate::error::SimError;
use crate::limits::Limits;
use crate::queues::kernel::arrivals::Arrivals;
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::simulation::{Simulation, Until};
use crate::series::Series;
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// A parameter with the target of a mean's relative half-width.
const fn precision(name: &'static str, doc: &'static str) -> Param {
    Param {
        name,
        ty: Type::Real { min: 0.0, max: 1.0, min_allowed: false, unlimited: false },
        unit: "",
        default: Default::Unset,
        doc,
    }
}

/// Description of the statistics.
pub const COMPONENT: Component = Component {
    role: Role::Statistics,
    name: "steady-state",
    version: 1,
    source: "Do et al. 2013, section 3",
    doc: "Means of the steady state of queues. The run ends when the given relative half-widths are reached, by 32 batches \
          whose size doubles; this is checked at doublings only, and batches must be correlated by less than 0.2.",
    params: &[
        Param {
            name: "confidence",
            ty: Type::Real { min: 0.5, max: 0.999_999, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.99),
            doc: "Level of the confidence intervals.",
        },
        precision("response_precision", "Half-width / mean of the response time at which the run may end."),
        precision("wait_precision", "Half-width / mean of the wait at which the run may end."),
        precision("energy_precision", "Half-width / mean of the energy per job at which the run may end."),
        Param {
            name: "least_jobs_count",
            ty: Type::Int { min: 32, max: 1 << 50 },
            unit: "jobs",
            default: Default::Int(1_000_000),
            doc: "Least number of measured jobs, rounded up to a multiple of 32. Without a given precision, the run ends \
                  there.",
        },
        Param {
            name: "most_jobs_count",
            ty: Type::Int { min: 32, max: 1 << 50 },
            unit: "jobs",
            default: Default::Int(1 << 30),
            doc: "Greatest number of measured jobs: a run that would exceed it by another doubling ends without the \
                  precision.",
        },
        Param {
            name: "steady_warmup_jobs_count",
            ty: Type::Int { min: 0, max: 1 << 50 },
            unit: "jobs",
            default: Default::Int(10_000),
            doc: "Number of first completions that are simulated but left out of all statistics.",
        },
        Param {
            name: "cdf_step_s",
            ty: Type::Real { min: 1e-9, max: 1e9, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.1),
            doc: "Distance of the points of the series response_time_cdf.",
        },
        Param {
            name: "cdf_max_s",
            ty: Type::Real { min: 1e-9, max: 1e9, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(20.0),
            doc: "Last point of the series response_time_cdf.",
        },
    ],
    problems: |spec| problems(spec.choice(Role::Statistics)),
    ..Component::QUEUES
};

/// Greatest number of points of the distribution.
const CDF_POINTS_MAX: f64 = 1e6;
/// Half-widths are accepted if the correlation of neighbouring batches is below this.
const LAG1_MAX: f64 = 0.2;

/// The problems of the statistics, see [`Component::problems`].
fn problems(statistics: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    let (least, most) = (statistics.int("least_jobs_count"), statistics.int("most_jobs_count"));
    if least > most {
        problems.push(format!("`least_jobs_count` {least} is more than `most_jobs_count` {most}"));
    }
    let points = statistics.real("cdf_max_s") / statistics.real("cdf_step_s");
    if !(1.0..=CDF_POINTS_MAX).contains(&points) {
        problems
            .push(format!("`cdf_max_s` / `cdf_step_s` is {points} points: from 1 to {CDF_POINTS_MAX} are possible"));
    }
    problems
}

/// The stopping rule: confidence, and targets of relative half-widths.
struct Rule {
    confidence: f64,
    response: Option<f64>,
    wait: Option<f64>,
    energy: Option<f64>,
    /// Whether the energy per job includes idle servers.
    idle_counts: bool,
}

/// Means and half-widths of the present batches.
struct Precision {
    response: Estimate,
    wait: Estimate,
    service: Estimate,
    energy: Estimate,
    lag1: f64,
    reached: bool,
}

impl Rule {
    /// Whether any target is given.
    fn has_target(&self) -> bool {
        self.response.or(self.wait).or(self.energy).is_some()
    }

    fn judge(&self, batches: &[Batch]) -> Precision {
        let of = |sum: &dyn Fn(&Batch) -> f64| Estimate::of(batches, self.confidence, sum);
        let (response, wait) = (of(&|b| b.response_s), of(&|b| b.wait_s));
        let service = of(&|b| b.response_s - b.wait_s);
        let energy = of(&|b| b.busy_j + if self.idle_counts { b.idle_j } else { 0.0 });
        let targets: Vec<(Estimate, f64)> = [(response, self.response), (wait, self.wait), (energy, self.energy)]
            .into_iter()
            .filter_map(|(estimate, target)| Some((estimate, target?)))
            .collect();
        let reached =
            targets.iter().all(|(estimate, target)| estimate.relative() <= *target && estimate.lag1 < LAG1_MAX);
        let lag1 = if targets.is_empty() {
            response.lag1.max(wait.lag1)
        } else {
            targets.iter().fold(f64::NEG_INFINITY, |most, (estimate, _)| most.max(estimate.lag1))
        };
        Precision { response, wait, service, energy, lag1, reached }
    }
}

/// Runs until the precision or the greatest number of jobs is reached.
///
/// # Errors
/// The errors of the run.
pub(in crate::queues) fn run<A: Arrivals, P: QueuePolicy>(
    statistics: &Choice,
    measurement: &Measurement,
    mut simulation: Simulation<A, P>,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let warmup = statistics.int("steady_warmup_jobs_count").unsigned_abs();
    simulation.run(Until::completed(warmup), limits, &mut ())?;
    let start = Readings::of(&mut simulation);
    let rule = Rule {
        confidence: statistics.real("confidence"),
        response: statistics.opt_real("response_precision"),
        wait: statistics.opt_real("wait_precision"),
        energy: statistics.opt_real("energy_precision"),
        idle_counts: measurement.idle_counts,
    };
    let most = statistics.int("most_jobs_count").unsigned_abs();
    let mut batch_jobs = statistics.int("least_jobs_count").unsigned_abs().div_ceil(BATCHES as u64);
    let histogram =
        details.series.is_some().then(|| Histogram::new(statistics.real("cdf_step_s"), statistics.real("cdf_max_s")));
    let mut tally = Tally::new(simulation.servers().table().classes, histogram);
    let mut batches = Vec::with_capacity(BATCHES);
    let precision = loop {
        while batches.len() < BATCHES {
            batches.push(batch(&mut simulation, &mut tally, batch_jobs, limits)?);
        }
        let precision = rule.judge(&batches);
        if precision.reached || 2 * batch_jobs * BATCHES as u64 > most {
            break precision;
        }
        join_pairs(&mut batches);
        batch_jobs *= 2;
    };
    let summary = measurement.summarize(&start, &mut simulation, &tally);
    if let (Some(points), Some(histogram)) = (&mut details.series, &tally.histogram) {
        histogram.write(RESPONSE_TIME_CDF.name, points);
    }
    Ok(QueueSummary {
        warmup_jobs_count: warmup,
        wait_s_half_width: Some(precision.wait.half_width),
        service_s_half_width: Some(precision.service.half_width),
        turnaround_s_half_width: Some(precision.response.half_width),
        energy_per_job_half_width_j: Some(precision.energy.half_width),
        precision_reached: rule.has_target().then_some(precision.reached),
        batches_count: Some(BATCHES as u64),
        batch_jobs_count: Some(batch_jobs),
        batches_lag1: Some(precision.lag1),
        ..summary
    })
}

/// The series of these statistics.
pub const RESPONSE_TIME_CDF: Series = Series {
    name: "response_time_cdf",
    unit: "",
    doc: "Share of the measured jobs whose response time is below `x` (s), at every `cdf_step_s` up to `cdf_max_s`; statistics \
          `steady-state` (Do et al. 2013, Figures 7, 8 and 15).",
};

/// Runs the next batch of completions.
fn batch<A: Arrivals, P: QueuePolicy>(
    simulation: &mut Simulation<A, P>,
    tally: &mut Tally,
    jobs: u64,
    limits: &Limits<'_>,
) -> Result<Batch, SimError> {
    // Each batch has its own sums, because differences of sums over the whole run would lose digits.
    let zero = vec![ClassTally::default(); tally.classes.len()];
    let before = std::mem::replace(&mut tally.classes, zero);
    let start = Readings::of(simulation);
    simulation.run(Until::completed(simulation.completed_count() + jobs), limits, tally)?;
    let (busy_j, idle_j) = start.energies_since(simulation);
    let own = tally.total();
    for (class, before) in tally.classes.iter_mut().zip(&before) {
        *class = class.join(before);
    }
    Ok(Batch { jobs: own.completed, wait_s: own.wait_s, response_s: own.response_s, busy_j, idle_j })
}
