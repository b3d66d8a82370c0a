//! A row of a job log, before the rules that all formats share.

use crate::joblogs::Rule;
use crate::joblogs::clock::Time;

/// States of Slurm that a column of ten characters cuts.
const LONG_STATES: [&str; 8] = [
    "OUT_OF_MEMORY",
    "CONFIGURING",
    "LAUNCH_FAILED",
    "POWER_UP_NODE",
    "RECONFIG_FAIL",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
];

/// Least characters that a cut state must have left.
const CUT_MIN: usize = 7;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outcome {
    /// It has not ended.
    NotEnded,
    /// It ended in a state that is not known.
    Unknown,
    /// It ended before it started.
    NeverStarted,
    /// It completed.
    #[default]
    Completed,
    /// It failed, was killed at its limit or by its node, or was stopped for another job.
    Failed,
    /// It was cancelled while it ran.
    Cancelled,
}

impl Outcome {
    /// The status of the Standard Workload Format.
    pub(crate) fn status(self) -> i32 {
        match self {
            Outcome::Completed => 1,
            Outcome::Failed => 0,
            Outcome::Cancelled | Outcome::NeverStarted => 5,
            Outcome::NotEnded | Outcome::Unknown => -1,
        }
    }

    /// The outcome of a state, in upper or lower case: the words of Slurm, Kubernetes and published tables. Only the first word
    /// counts, as in `CANCELLED by 1000`.
    pub(crate) fn of(state: &str) -> Outcome {
        let word = state.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        // A column of ten characters cuts states, as in `OUT_OF_ME+`.
        let cut = word.strip_suffix('+').filter(|cut| cut.len() >= CUT_MIN);
        let whole = cut.and_then(|cut| LONG_STATES.into_iter().find(|state| state.starts_with(cut)));
        match whole.or(cut).unwrap_or(&word) {
            "COMPLETED" | "DONE" | "FINISHED" | "PASS" | "SUCCEEDED" | "SUCCESS" => Outcome::Completed,
            "CANCELED" | "CANCELLED" => Outcome::Cancelled,
            "BOOT_FAIL" | "DEADLINE" | "ERROR" | "FAILED" | "KILLED" | "LAUNCH_FAILED" | "NODE_FAIL"
            | "OUT_OF_MEMORY" | "PREEMPTED" | "RECONFIG_FAIL" | "REQUEUED" | "RESIZING" | "TIMEOUT" => Outcome::Failed,
            // The job ran on another cluster of a federation.
            "REVOKED" => Outcome::NeverStarted,
            "COMPLETING" | "CONFIGURING" | "PENDING" | "POWER_UP_NODE" | "QUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD"
            | "RESV_DEL_HOLD" | "RUNNING" | "SIGNALING" | "SPECIAL_EXIT" | "STAGE_OUT" | "STOPPED" | "SUSPENDED"
            | "UPDATE_DB" | "WAITING" => Outcome::NotEnded,
            _ => Outcome::Unknown,
        }
    }
}

/// A time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TimeLimit {
    /// A limit (µs).
    Us(i64),
    /// There is no limit.
    None,
    /// There may be one, but the row does not say it.
    Unknown,
    /// The file has no column of limits.
    #[default]
    Absent,
}

/// The size of a job. A value is absent where the row does not state it; 0 is a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub cpus: Option<u32>,
    pub nodes: Option<u32>,
    pub gpus: Option<u32>,
}

/// Greatest count of processors, nodes or GPUs.
pub(crate) const COUNT_MAX: u32 = 1 << 30;

/// A whole number: digits only, without a sign, and few enough for any arithmetic here.
pub(crate) fn whole(text: &str) -> Option<i64> {
    let is_whole = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole { text.parse().ok() } else { None }
}

/// A count of processors, nodes or GPUs.
pub(crate) fn count(text: &str) -> Option<u32> {
    whole(text).and_then(|count| u32::try_from(count).ok()).filter(|count| *count <= COUNT_MAX)
}

/// The number of a job with this id, if it is a whole one. Ids of Slurm have 32 bits.
pub(crate) fn job_number(id: &str) -> Option<i64> {
    id.parse().ok().filter(|number| (0..=i64::from(u32::MAX)).contains(number))
}

/// Greatest memory of a job (KiB): 1 EiB.
pub(crate) const MEMORY_MAX_KIB: f64 = (1_u64 << 50) as f64;

/// The memory of a job (KiB), rounded up; `None` for a number that is no plausible memory. The inner `None` is 0, which stands
/// for no statement.
#[expect(clippy::option_option, reason = "no memory is another case than no statement")]
pub(crate) fn memory_kib(kib: f64) -> Option<Option<u64>> {
    (0.0..=MEMORY_MAX_KIB).contains(&kib).then(|| Some(kib.ceil() as u64).filter(|kib| *kib > 0))
}

/// Samples of a power over the run time of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerSamples {
    /// Time from a sample to the next (s).
    pub step_s: f64,
    /// The samples (W); at least one. Each holds for a step, the last one to the end.
    pub watts: Vec<f64>,
}

/// What a row states about the power of its job.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Measured {
    /// Whether the file has a column of powers or energies.
    pub has_column: bool,
    /// Mean power of the whole job (W).
    pub power_w: Option<f64>,
    /// Samples of one of these powers.
    pub samples: Option<PowerSamples>,
    /// Mean power of a node of the job (W).
    pub node_power_w: Option<f64>,
    /// Energy (J).
    pub energy_j: Option<f64>,
    /// Frequency of the processors (GHz).
    pub ghz: Option<f64>,
}

/// The rows of a file that describe jobs.
#[derive(Debug)]
pub(crate) struct Entries {
    pub list: Vec<Entry>,
    /// Whether times are those of a calendar; else they count from the second 0 of the log.
    pub is_calendar: bool,
}

/// A row that describes a job. The default is one that states nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Entry {
    /// Line of the file, from 1.
    pub line: u64,
    /// Its id, as the system writes it.
    pub id: String,
    /// Its id as a number, if there is a whole one.
    pub number: Option<i64>,
    pub outcome: Outcome,
    pub submit: Option<Time>,
    pub eligible: Option<Time>,
    pub start: Option<Time>,
    pub end: Option<Time>,
    /// Time from submit to start (µs), if the row states it.
    pub wait_us: Option<i64>,
    /// Time in which it ran (µs), if the row states it beside start and end.
    pub elapsed_us: Option<i64>,
    pub limit: TimeLimit,
    pub allocated: Size,
    pub requested: Size,
    pub user: String,
    pub group: String,
    /// Queue or partition.
    pub queue: String,
    /// Memory of the whole job, allocated or else requested (KiB).
    pub memory_kib: Option<u64>,
    /// Measured power and energy.
    pub measured: Measured,
    /// The nodes of a job whose energy was measured, by numbers of their own; empty where the file does not name them.
    pub places: Vec<u32>,
    /// The rules that changed it. They count if it is kept.
    pub changes: Vec<Rule>,
}
