//! What a worker is told, what it reports at its end, and why it cannot work.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use powersweep_engine::SimError;
use powersweep_engine::workload::Workload;
use powersweep_workloads::ParsedLogs;

pub use powersweep_proto::client::Tls;

/// How a worker is set up.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Addresses of the coordinator (`http://host:port` or `https://host:port`), tried in turn.
    pub endpoints: Vec<String>,
    /// Tasks to run at once; at least 1.
    pub slots: usize,
    /// Name for the results' `worker` column.
    pub name: String,
    /// Directory of fetched logs, by digest; `None` keeps them in memory only.
    pub cache_dir: Option<PathBuf>,
    /// Directories that logs are looked for in before the coordinator is asked.
    pub search_path: Vec<PathBuf>,
    /// Bytes that the cache folder may take; `None` for no limit.
    pub cache_bytes_max: Option<u64>,
    /// Bytes of parsed logs and built workloads kept in memory. A task whose workload alone may take more fails.
    pub memory_bytes: usize,
    /// Logs that this process has parsed already, in place of an empty memory of `memory_bytes`.
    pub parsed: Option<Arc<ParsedLogs>>,
    /// Sent with every call when the coordinator wants one.
    pub token: Option<String>,
    /// Lets the token go unencrypted to an address that is not this machine's.
    pub insecure: bool,
    /// TLS towards an `https` endpoint.
    pub tls: Option<Tls>,
    /// This worker's own limits of one task; the experiment's apply as well.
    pub limits: TaskLimits,
    /// How long running tasks may go on after the worker was told to stop.
    pub drain_limit: Duration,
    /// Time until the worker must have stopped (a batch system's limit), from its start.
    pub time_limit: Option<Duration>,
    /// The worker ends after so long without any task; `None` waits for ever.
    pub idle_limit: Option<Duration>,
    /// The worker ends with an error if no coordinator has answered for so long; `None` tries for ever.
    pub connect_limit: Option<Duration>,
    /// Called before each simulation: tests make tasks misbehave with it.
    pub before_task: Option<TaskHook>,
}

/// Called on the slot's thread with experiment and index when a task's workload is there, under the task's deadline and
/// within what catches its panics.
#[derive(Clone)]
pub struct TaskHook(pub Arc<BeforeTask>);

/// Takes an experiment and an index.
type BeforeTask = dyn Fn(&str, u64) + Send + Sync;

impl std::fmt::Debug for TaskHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TaskHook")
    }
}

/// Bytes of parsed logs and built workloads that a worker keeps in memory, unless it is told otherwise.
const LOGS_MEMORY_BYTES: usize = 1 << 30;

/// Limits of one task.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskLimits {
    /// Wall time of its simulation. Getting and reading its log does not count.
    pub deadline: Option<Duration>,
    /// Simulated events.
    pub max_events: Option<u64>,
    /// Bytes of its workload and of its simulation's state, as far as the kernel counts it (see
    /// [`powersweep_engine::Limits::max_bytes`]).
    pub max_bytes: Option<usize>,
}

impl TaskLimits {
    /// Bytes that the state of a simulation may take beside its workload.
    ///
    /// # Errors
    /// What to say where the workload alone takes more than a task may.
    pub fn bytes_left(&self, workload: &Workload) -> Result<usize, String> {
        let Some(max_bytes) = self.max_bytes else { return Ok(usize::MAX) };
        let takes = workload.memory_bytes();
        max_bytes.checked_sub(takes).ok_or_else(|| {
            let jobs = workload.jobs.len();
            format!("its workload of {jobs} jobs takes {takes} bytes of memory, a task may take {max_bytes}")
        })
    }

    /// Why a simulation within these limits gave no result.
    pub fn words(&self, error: &SimError) -> String {
        match (error, self.deadline, self.max_bytes) {
            (SimError::Deadline, Some(deadline), _) => format!("not finished within {} s", deadline.as_secs_f64()),
            (SimError::MemoryLimit(_), _, Some(max_bytes)) => {
                format!("its workload and the simulation's state take more than {max_bytes} bytes of memory")
            }
            _ => error.to_string(),
        }
    }
}

impl WorkerOptions {
    /// A worker of one coordinator with the usual settings.
    pub fn new(endpoint: impl Into<String>, slots: usize, name: impl Into<String>) -> WorkerOptions {
        WorkerOptions {
            endpoints: vec![endpoint.into()],
            slots,
            name: name.into(),
            cache_dir: None,
            cache_bytes_max: None,
            search_path: Vec::new(),
            memory_bytes: LOGS_MEMORY_BYTES,
            parsed: None,
            token: None,
            insecure: false,
            tls: None,
            limits: TaskLimits::default(),
            drain_limit: Duration::from_secs(10),
            time_limit: None,
            idle_limit: None,
            connect_limit: None,
            before_task: None,
        }
    }
}

/// What a worker did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Tasks whose row or failure the coordinator has acknowledged.
    pub tasks_acknowledged: u64,
    /// Finished tasks that the coordinator did not take, because they were not this worker's any more.
    pub tasks_rejected: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Hand-ins and failures that nobody acknowledged before the worker ended; their tasks will run again.
    pub unacknowledged: usize,
    /// Simulating (s, over all slots).
    pub engine_s: f64,
    /// Fetching, parsing and building workloads (s, over all slots).
    pub parse_s: f64,
    /// Building and encoding rows, and waiting because too many were unacknowledged (s, over all slots).
    pub store_s: f64,
    /// Nothing to do (s, over all slots).
    pub idle_s: f64,
    /// Tasks that ignored their deadline for as long again. Their threads still run: a process that wants to go on
    /// starts itself anew.
    pub stuck_tasks: usize,
    /// Why it ended.
    pub reason: String,
}

/// Why a worker ended without having been asked to. Whatever it had not handed in runs again elsewhere.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// An option makes no sense. Final.
    #[error("{0}")]
    Options(String),
    /// No coordinator answered for as long as `connect_limit`. Retryable.
    #[error("no coordinator at {endpoints} for {seconds:.0} s: {cause}")]
    Unreachable {
        /// The addresses tried.
        endpoints: String,
        /// How long.
        seconds: f64,
        /// The last failure.
        cause: String,
    },
    /// The coordinator does not want this worker: other versions, a wrong token. Final: the reason says what to change.
    #[error("the coordinator at {endpoint} refused this worker: {reason}")]
    Refused {
        /// Its address.
        endpoint: String,
        /// Its words.
        reason: String,
    },
    /// The coordinator sent something that this build cannot read. Final.
    #[error("the coordinator at {endpoint} sent what this build cannot use: {what}")]
    Protocol {
        /// Its address.
        endpoint: String,
        /// What it was.
        what: String,
    },
    /// A thread could not be started. Retryable.
    #[error("cannot start a thread for slot {slot}: {source}")]
    Thread {
        /// The slot.
        slot: usize,
        /// The system's reason.
        source: std::io::Error,
    },
}
