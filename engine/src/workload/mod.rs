//! Jobs: from a log or a generator, through explicit rules, to what is simulated.
pub mod lublin;
pub mod poisson;
pub mod rules;
pub mod swf;

/// One job as the simulation sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Job number of the log (field 1), or 1-based position for a generated workload.
    pub id: i64,
    /// Submit instant (s), after scaling.
    pub submit_s: f64,
    /// Run time at the top gear (s), after the overrun rule.
    pub run_s: f64,
    /// Estimate that the scheduler sees, at the top gear (s).
    pub estimate_s: f64,
    /// Procs that it asks for, before `wide_jobs` is applied.
    pub procs: u32,
    /// Record (1-based among data lines) it came from.
    pub record: u64,
    /// Whether it would have outlived its estimate and is killed at it.
    pub killed: bool,
}

/// Jobs ready to simulate, in order of (submit, tie rule), with what the rules did.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Machine size that the source states; `None` if it does not.
    pub native_procs: Option<u32>,
    /// What the rules did to the records.
    pub counts: RuleCounts,
}

crate::record! {
/// How many records each rule touched. Every field is a column of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// Data records read.
    pub records_count: u64,
    /// Outside the slice.
    pub sliced_out_count: u64,
    /// Dropped: no run time (-1), or below the least run time.
    pub dropped_run_count: u64,
    /// Dropped: no submit time.
    pub dropped_submit_count: u64,
    /// Procs taken from the second field because the first was missing.
    pub procs_fallback_count: u64,
    /// Procs set to 1 because no field had a count.
    pub procs_missing_count: u64,
    /// Estimates filled because the log had none.
    pub filled_estimate_count: u64,
    /// Jobs that outlive their estimate (killed or run on, by the rule).
    pub overrun_count: u64,
}
}

use crate::registry::{Default as ParamDefault, Param, Type};

/// Jobs that a generator makes.
pub const SYNTHETIC_JOBS: Param = Param {
    name: "synthetic_jobs_count",
    ty: Type::Int { min: 1, max: 1 << 40 },
    unit: "jobs",
    default: ParamDefault::Int(1000),
    identity: true,
    doc: "Number of jobs that the generator makes.",
};

/// Machine size that a generator makes jobs for.
pub const SYNTHETIC_PROCS: Param = Param {
    name: "synthetic_procs",
    ty: Type::Int { min: 1, max: 1 << 30 },
    unit: "procs",
    default: ParamDefault::Int(256),
    identity: true,
    doc: "Size of the machine that the jobs are made for; the platform's size unless `procs` says otherwise.",
};
