//! The workload model of Lublin & Feitelson 2003 for rigid jobs.
//!
//! "The workload on parallel supercomputers: modeling the characteristics of rigid jobs", J. Parallel Distrib. Comput.
//! 63(11), 1105-1122, with the constants of the authors' published program. The model:
//! - **Size.** A job is serial, or parallel with log2 of its size two-stage uniform: uniform on [ULow, UMed] with
//!   probability UProb, else on [UMed, UHi], UHi being log2 of the machine. A share of the parallel jobs has its log2
//!   rounded, which gives powers of two.
//! - **Run time.** Its natural logarithm is hyper-gamma: gamma(a1, b1) with probability p, else gamma(a2, b2), where
//!   p = pa * size + pb falls with the size. A logarithm above 12 (45 h) is drawn again.
//! - **Arrivals.** A renewal process on a warped clock ([`arrivals`]): the logarithm of the gap is gamma, the clock runs
//!   fast at the busy hours of the day.
//!
//! Times are whole seconds, as in the program's output; time 0 is midnight. Arrivals, sizes, run times and estimates have
//! separate streams: more jobs extend a workload without changing its first jobs. The model has no users' estimates; the
//! parameter `estimate_factor_max` adds them.
use std::sync::LazyLock;

use self::arrivals::{Arrivals, Weights};
use super::estimates::Estimates;
use super::{GeneratedJob, Generator};
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Component, Param, Role};

mod arrivals;
mod gamma;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use gamma::cdf as gamma_cdf;

/// Description of the generator.
pub const COMPONENT: Component = Component {
    role: Role::Source,
    name: "lublin",
    version: 1,
    source: "Lublin & Feitelson 2003, J. Parallel Distrib. Comput. 63(11)",
    doc: "Synthetic rigid jobs with a daily cycle: sizes, correlated run times and arrivals with the published constants.",
    params: &[
        super::SYNTHETIC_JOBS,
        super::SYNTHETIC_PROCS,
        super::ESTIMATE_FACTOR_MAX,
        Param::one_of(
            "lublin_types",
            &["combined", "batch-interactive"],
            "`combined` draws all jobs from one set of constants (\"whole sample\"); `batch-interactive` merges two \
                  independent streams of batch and of interactive jobs, each with its own.",
        ),
    ],
    ..Component::BATCH
};

/// The generator.
pub static GENERATOR: Generator = Generator {
    component: COMPONENT,
    jobs_count: super::SYNTHETIC_JOBS.name,
    machine_procs: super::SYNTHETIC_PROCS.name,
    generate,
};

/// Greatest number of jobs for which memory is reserved in advance.
const RESERVED_JOBS_MAX: usize = 1 << 20;
/// Greatest natural logarithm of a run time (s): exp(12) = 162,755 s; a greater draw is repeated.
const LOG_RUN_MAX: f64 = 12.0;

/// The constants of one type of jobs.
#[derive(Debug)]
struct JobType {
    /// Share of jobs with one processor.
    serial_prob: f64,
    /// Share of all jobs that are parallel with log2 of the size rounded, which makes it a power of two.
    pow2_prob: f64,
    /// log2 of the least parallel size, with a small offset that sets the probability of size 2.
    ulow: f64,
    /// UHi - UMed: width of the upper of the two uniforms, in log2; 1.5 to 3.5.
    umed_below_uhi: f64,
    /// log2 of the machine - UHi: distance of the widest job from the machine, in log2.
    uhi_below_machine: f64,
    /// Probability of the lower uniform; 0.7 to 0.95.
    uprob: f64,
    /// Shape and scale of the first gamma of ln(run time): short jobs.
    gamma_short: (f64, f64),
    /// Shape and scale of the second gamma of ln(run time): long jobs.
    gamma_long: (f64, f64),
    /// Probability of the first gamma: slope by size, and intercept.
    short_prob: (f64, f64),
    /// Shape and scale of the gamma of ln(gap between arrivals) in the busy hours.
    gap: (f64, f64),
    /// Factor on the gap's shape that carries it from the busy hours to all hours ("arrive-rush-all-ratio").
    gap_all_hours: f64,
    /// The daily cycle, from the shape and scale of a gamma whose distribution over half hours it is. Computed once: 96
    /// values of an incomplete gamma function take longer than the simulation of some jobs.
    cycle: LazyLock<Weights>,
}

/// All jobs as one type. The paper gives UHi for a machine of 128 nodes; here it follows the size of the machine.
static COMBINED: JobType = JobType {
    serial_prob: 0.244,
    pow2_prob: 0.576,
    ulow: 0.8,
    umed_below_uhi: 2.5,
    uhi_below_machine: 0.0,
    uprob: 0.86,
    gamma_short: (4.2, 0.94),
    gamma_long: (312.0, 0.03),
    short_prob: (-0.0054, 0.78),
    gap: (10.2303, 0.4871),
    gap_all_hours: 1.0225,
    cycle: LazyLock::new(|| arrivals::weights((8.1737, 3.9631))),
};

/// Batch jobs: published for 128 nodes as UMed 5, UHi 7.
static BATCH: JobType = JobType {
    serial_prob: 0.2927,
    pow2_prob: 0.6686,
    ulow: 1.2,
    umed_below_uhi: 2.0,
    uhi_below_machine: 0.0,
    uprob: 0.875,
    gamma_short: (6.57, 0.823),
    gamma_long: (639.1, 0.0156),
    short_prob: (-0.003, 0.6986),
    gap: (6.0415, 0.8531),
    gap_all_hours: 1.0519,
    cycle: LazyLock::new(|| arrivals::weights((6.1271, 5.2740))),
};

/// Interactive jobs: published for 128 nodes as UMed 3, UHi 5.5 (45 nodes).
static INTERACTIVE: JobType = JobType {
    serial_prob: 0.1541,
    pow2_prob: 0.625,
    ulow: 1.0,
    umed_below_uhi: 2.5,
    uhi_below_machine: 1.5,
    uprob: 0.705,
    gamma_short: (3.8351, 0.6605),
    gamma_long: (7.073, 0.6856),
    short_prob: (-0.0118, 0.9156),
    gap: (6.5510, 0.6621),
    gap_all_hours: 0.9797,
    cycle: LazyLock::new(|| arrivals::weights((8.9186, 3.6680))),
};

/// Makes `synthetic_jobs_count` jobs for a machine of `synthetic_procs`, in order of submit. The same choice and seed give
/// the same bits everywhere, and a larger count the same first jobs.
pub fn generate(choice: &Choice, seed: u64) -> Vec<GeneratedJob> {
    let procs = u32::try_from(choice.int("synthetic_procs")).expect("the parameter's range lies within u32");
    let count = usize::try_from(choice.int("synthetic_jobs_count")).expect("the parameter is positive");
    let mut estimates = Estimates::of(choice, seed);
    let types: &[&JobType] = match choice.text("lublin_types") {
        "batch-interactive" => &[&INTERACTIVE, &BATCH],
        _ => &[&COMBINED],
    };
    let mut sources: Vec<Source> = (0..).zip(types).map(|(i, t)| Source::new(t, procs, seed, i)).collect();
    let mut jobs = Vec::with_capacity(count.min(RESERVED_JOBS_MAX));
    while jobs.len() < count {
        // The type whose next job is submitted first; at equal instants the first type.
        let next = sources.iter_mut().min_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        let mut job = next.expect("there is at least one type").next_job();
        job.estimate_s = estimates.draw(job.run_s);
        jobs.push(job);
    }
    jobs
}

/// The endless stream of jobs of one type.
struct Source {
    constants: &'static JobType,
    sizes: Sizes,
    arrivals: Arrivals,
    size_stream: Philox,
    run_stream: Philox,
    /// Submit of the next job.
    submit_s: f64,
}

impl Source {
    fn new(constants: &'static JobType, procs: u32, seed: u64, index: u32) -> Source {
        let stream = |purpose| Philox::substream(seed, purpose, index);
        let (shape, scale) = constants.gap;
        let gap = (shape * constants.gap_all_hours, scale);
        let mut arrivals = Arrivals::new(gap, &constants.cycle, stream(Purpose::Arrival));
        let submit_s = arrivals.next_s();
        Source {
            sizes: Sizes::new(constants, procs),
            constants,
            arrivals,
            size_stream: stream(Purpose::Size),
            run_stream: stream(Purpose::RunTime),
            submit_s,
        }
    }

    fn next_job(&mut self) -> GeneratedJob {
        let procs = self.sizes.draw(self.constants, &mut self.size_stream);
        let run_s = run_time(self.constants, procs, &mut self.run_stream);
        let submit_s = std::mem::replace(&mut self.submit_s, self.arrivals.next_s());
        GeneratedJob { submit_s, run_s, estimate_s: None, procs, priority: 1, class: 0 }
    }
}

/// Run time (s): whole seconds, 1 or more.
fn run_time(constants: &JobType, procs: u32, stream: &mut Philox) -> f64 {
    let (slope, intercept) = constants.short_prob;
    let short_prob = slope * f64::from(procs) + intercept;
    loop {
        let (shape, scale) = if stream.chance(short_prob) { constants.gamma_short } else { constants.gamma_long };
        let log = stream.gamma(shape, scale);
        if log <= LOG_RUN_MAX {
            return libm::floor(libm::exp(log));
        }
    }
}

/// Bounds of the two-stage uniform sizes on a given machine.
#[derive(Debug, Clone)]
struct Sizes {
    ulow: f64,
    umed: f64,
    uhi: f64,
    /// Greatest size of a job.
    max: u32,
}

impl Sizes {
    /// The model was fitted to 128 nodes; on other machines UHi moves with log2 of the machine and UMed with UHi. If UMed
    /// is then below ULow (under 10 procs), UMed = UHi - 1.5, as the authors advise for 8; if that is below ULow, too, UMed
    /// is the middle of ULow and UHi.
    fn new(constants: &JobType, procs: u32) -> Sizes {
        let machine = libm::log2(f64::from(procs));
        let uhi = (machine - constants.uhi_below_machine).max(machine.min(1.0));
        let ulow = constants.ulow.min(uhi);
        let umed = [uhi - constants.umed_below_uhi, uhi - 1.5, (ulow + uhi) / 2.0];
        let umed = umed.into_iter().find(|&m| m > ulow).unwrap_or(ulow);
        Sizes { ulow, umed, uhi, max: procs }
    }

    fn draw(&self, constants: &JobType, stream: &mut Philox) -> u32 {
        let kind = stream.uniform();
        if kind <= constants.serial_prob {
            return 1;
        }
        let is_lower = stream.chance(constants.uprob);
        let (low, high) = if is_lower { (self.ulow, self.umed) } else { (self.umed, self.uhi) };
        let log = stream.uniform_in(low, high);
        // Rounding may lead above a machine whose size is no power of two: then the greatest size that fits is taken.
        if kind <= constants.serial_prob + constants.pow2_prob {
            (1_u32 << libm::floor(log + 0.5) as u32).min(1 << self.max.ilog2())
        } else {
            (libm::floor(libm::exp2(log) + 0.5) as u32).min(self.max)
        }
    }
}
