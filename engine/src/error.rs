//! Errors of a simulation.

/// Why a simulation ended without a result. The farm decides from the variant whether to try again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The spec or the workload cannot be simulated. Final: every attempt would fail.
    #[error("{0}")]
    Invalid(String),
    /// A job needs more procs than the machine has and `wide_jobs = "error"`. Final.
    #[error(
        "job {job_id} (record {record}) needs {procs} procs, the machine has {machine_procs}: \
         choose wide_jobs = \"clamp\" or \"drop\", or a larger machine"
    )]
    TooWide {
        /// The job's number in the log.
        job_id: i64,
        /// Its record (1-based) among the log's data lines.
        record: u64,
        /// Procs that it asks for.
        procs: u32,
        /// Procs of the machine.
        machine_procs: u32,
    },
    /// A job needs more of a pool than the machine has, or a partition that it does not have, and `wide_jobs` does not
    /// settle it. Final.
    #[error("job {job_id} (record {record}) needs {needs}, and the machine has {has}: {help}")]
    NeedTooLarge {
        /// The job's number in the log.
        job_id: i64,
        /// Its record (1-based) among the log's data lines.
        record: u64,
        /// The need, in words.
        needs: String,
        /// What the machine has, in words.
        has: String,
        /// What to do.
        help: &'static str,
    },
    /// No job is left after the rules. Final.
    #[error("the workload has no job left after its rules ({0})")]
    Empty(String),
    /// Under a power cap no job runs, and no cap of the list lets a job start or resume. Final.
    #[error(
        "job {job_id} starves at {now_s} s: nothing runs, and no cap of the schedule leaves the watts that it needs at \
         {gear}: raise a cap, or {help}"
    )]
    Starved {
        /// The job's number in the log.
        job_id: i64,
        /// Simulated time.
        now_s: f64,
        /// The gear of its least power under the rule, in words.
        gear: &'static str,
        /// Advice besides a higher cap.
        help: &'static str,
    },
    /// A signal that the policy reads has no value. Final.
    #[error(
        "`{key}` has no value at {now_s} s of the workload's clock: choose another `anchor`, or set beyond = \"hold\" or \
         \"wrap\" for that signal"
    )]
    NotCovered {
        /// The parameter that names the signal.
        key: &'static str,
        /// Simulated time.
        now_s: f64,
    },
    /// The policy took an impossible decision. Final, and a bug in the policy.
    #[error("policy error at {now_s} s: {what}")]
    Policy {
        /// Simulated time.
        now_s: f64,
        /// The refused decision.
        what: String,
    },
    /// The caller's deadline passed. Retryable elsewhere.
    #[error("the deadline passed")]
    Deadline,
    /// More events than allowed. Retryable with a larger budget only.
    #[error("more than {0} events")]
    EventLimit(u64),
    /// More memory than allowed. Retryable with a larger budget only.
    #[error("more than {0} bytes of simulation state")]
    MemoryLimit(usize),
}

/// The error of the functions of kernels and policies. Boxed, so that a result without an error fits into registers.
pub type Stop = Box<SimError>;

/// The result of a decision or of a pass.
pub(crate) type Result<T, E = Stop> = std::result::Result<T, E>;

impl From<Stop> for SimError {
    fn from(stop: Stop) -> SimError {
        *stop
    }
}
