//! Options of a worker, its report and its errors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::access::AccessError;
use powersweep_proto::client::Address;
use powersweep_proto::v1;

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// How to reach the coordinator.
    pub coordinator: Address,
    /// Tasks to run at once; at least 1.
    pub slots: usize,
    /// Name for the results' `worker` column.
    pub name: String,
    /// Where a batch system placed it, for status and for the program that asked for the place; empty outside of one.
    pub allocation: String,
    /// Directory of fetched logs, by digest; `None` keeps them in memory only.
    pub cache_dir: Option<PathBuf>,
    /// Directories that logs are looked for in before the coordinator is asked.
    pub search_path: Vec<PathBuf>,
    /// The coordinator is in this process, and the logs' paths are the user's own. Another coordinator's manifest opens no
    /// file by its path.
    pub trusts_paths: bool,
    /// Bytes that the cache folder may take; `None` for no limit.
    pub cache_bytes_max: Option<u64>,
    /// Bytes of parsed logs and built workloads kept in memory. A task fails if its workload alone may take more.
    pub memory_bytes: usize,
    /// Logs that this process has parsed already, in place of an empty cache of `memory_bytes`.
    pub parsed: Option<Arc<ParsedLogs>>,
    /// This worker's own limits of one task; the experiment's apply as well.
    pub limits: TaskLimits,
    /// Time that running tasks may take after the worker is told to stop.
    pub drain_limit: Duration,
    /// Time until the worker must have stopped (a batch system's limit), from its start.
    pub time_limit: Option<Duration>,
    /// Time without a task, and without rows that await their acknowledgement, after which the worker ends; `None` for no limit.
    pub idle_limit: Option<Duration>,
    /// Time without an answer of a coordinator after which the worker ends with an error; `None` for no limit.
    pub connect_limit: Option<Duration>,
    /// Called before each simulation: tests make tasks misbehave with it.
    pub before_task: Option<TaskHook>,
}

/// Called on the slot's thread with experiment and index once a task's workload is built. The call counts towards the
/// task's deadline, and its panics are failures of the task.
#[derive(Clone)]
pub struct TaskHook(pub Arc<BeforeTask>);

/// Takes an experiment and an index.
type BeforeTask = dyn Fn(&str, u64) + Send + Sync;

impl std::fmt::Debug for TaskHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TaskHook")
    }
}

/// Bytes of parsed logs and built workloads that a worker keeps in memory, by default.
const LOGS_MEMORY_BYTES: usize = 1 << 30;

/// Limits of one task.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskLimits {
    /// Processor time of its simulation. Getting and reading its log does not count.
    pub deadline: Option<Duration>,
    /// Simulated events.
    pub max_events: Option<u64>,
    /// Bytes of its workload and of its simulation's state, as far as the kernel counts it (see
    /// [`powersweep_engine::Limits::max_bytes`]).
    pub max_bytes: Option<usize>,
}

impl WorkerOptions {
    /// A worker of one coordinator with the default settings.
    pub fn new(coordinator: Address, slots: usize, name: impl Into<String>) -> WorkerOptions {
        WorkerOptions {
            coordinator,
            slots,
            name: name.into(),
            allocation: String::new(),
            cache_dir: None,
            trusts_paths: false,
            cache_bytes_max: None,
            search_path: Vec::new(),
            memory_bytes: LOGS_MEMORY_BYTES,
            parsed: None,
            limits: TaskLimits::default(),
            drain_limit: Duration::from_secs(10),
            time_limit: None,
            idle_limit: None,
            connect_limit: None,
            before_task: None,
        }
    }
}

/// Counts and times of a worker.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Tasks whose row or failure the coordinator has acknowledged.
    pub tasks_acknowledged: u64,
    /// Finished tasks that the coordinator rejected, because this worker had lost their leases.
    pub tasks_rejected: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Hand-ins and failures without an acknowledgement when the worker ended; their tasks will run again.
    pub unacknowledged: usize,
    /// Time of all slots: of simulations; of fetching, parsing and building workloads; of building and encoding rows, and of
    /// waiting because the outbox was full; and without a task.
    pub spent: v1::TimeSpent,
    /// Tasks that were given up at twice their deadline. Their threads still run, so the process should be
    /// restarted.
    pub stuck_tasks: usize,
    /// The reason of its end.
    pub reason: String,
}

/// The failure of a worker. Its tasks without acknowledged rows run again elsewhere.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// An option makes no sense. Final.
    #[error("{0}")]
    Options(String),
    /// There is no usable access to a coordinator. Final.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// No coordinator answered for as long as `connect_limit`. Retryable.
    #[error("no coordinator at {endpoints} for {seconds:.0} s: {cause}")]
    Unreachable {
        /// The addresses tried.
        endpoints: String,
        /// Time without an answer.
        seconds: f64,
        /// The last failure.
        cause: String,
    },
    /// The coordinator refused this worker: other versions, a wrong token. Final: the reason says what to change.
    #[error("the coordinator at {endpoint} refused this worker: {reason}")]
    Refused {
        /// Its address.
        endpoint: String,
        /// The coordinator's reason.
        reason: String,
    },
    /// The coordinator sent something that this build cannot read. Final.
    #[error("the coordinator at {endpoint} sent something that this build cannot use: {message}")]
    Protocol {
        /// Its address.
        endpoint: String,
        /// The part of the message, and the error.
        message: String,
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

/// A coordinator that does not exist.
#[cfg(test)]
pub(crate) fn nowhere() -> Address {
    Address::unencrypted("http://127.0.0.1:1", powersweep_proto::access::Role::Worker, "token")
}
