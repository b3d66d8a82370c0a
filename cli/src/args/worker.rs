//! The command line of `powersweep worker`.

use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;
use powersweep_inputs::library::ParsedLogs;

use crate::args::{CoordinatorArgs, DataArgs, LogArgs};
use crate::quantities::{memory, positive_time, time};

#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub slots: SlotsArgs,
    /// Name of the worker, in `status` and in the column `worker`; by default `worker`, digits that tell
    /// machines apart, and the process id, for the column is published with the rows.
    #[arg(long)]
    pub name: Option<String>,
    /// How long running tasks may continue after SIGTERM or Ctrl-C; unfinished tasks are then handed back.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub drain_limit: Duration,
    /// End after this time, such as 3:55:00 in a batch job of four hours. The worker takes no task that cannot finish
    /// before. In a job of Slurm, by default two minutes before the job's end, less up to a tenth of the time so that
    /// workers that started together do not end together.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub time_limit: Option<Duration>,
    /// End after this time without tasks and without rows to hand in; no limit by default.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub idle_limit: Option<Duration>,
    /// End with exit code 7 after this time without a coordinator; no limit by default.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub connect_limit: Option<Duration>,
    /// End with exit code 130 in place of 0 after SIGTERM or Ctrl-C. A Kubernetes Job replaces a stopped worker only if it
    /// did not succeed.
    #[arg(long)]
    pub fail_on_signal: bool,
    #[command(flatten)]
    pub limits: TaskLimitArgs,
    /// The part of the time limit that passed before this worker restarted itself.
    #[arg(long, hide = true, env = "POWERSWEEP_TIME_USED", value_parser = time)]
    pub time_used: Option<Duration>,
}

/// Limits of one task. The lower of the worker's limit and the manifest's limit applies.
#[derive(Debug, Clone, Args)]
pub struct TaskLimitArgs {
    /// Maximum time to simulate one task; fetching its log does not count. A worker restarts if its task runs for twice
    /// this time.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub task_deadline: Option<Duration>,
    /// Maximum number of simulated events of one task.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub task_max_events: Option<u64>,
    /// Maximum memory of one task's workload and simulation, such as 2GiB.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub task_max_memory: Option<usize>,
}

/// Maximum number of slots.
pub const SLOTS_MAX: u16 = 1024;

fn slots() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(..=i64::from(SLOTS_MAX))
}

/// Threads and memory of a process that simulates.
#[derive(Debug, Clone, Args)]
pub struct SlotsArgs {
    /// Number of tasks simulated at once; 0 for one per processor.
    #[arg(long, short = 'j', env = "POWERSWEEP_SLOTS", default_value_t = 0, value_parser = slots())]
    pub slots: u16,
    /// Memory for parsed logs and workloads, which tasks share. A task fails if its workload alone may need more.
    #[arg(long, value_name = "SIZE", env = "POWERSWEEP_WORKLOAD_MEMORY", default_value = "1GiB", value_parser = memory)]
    pub workload_memory: usize,
}

impl SlotsArgs {
    /// The number of slots.
    pub fn count(&self) -> usize {
        if self.slots > 0 { self.slots.into() } else { std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// Keeps parsed logs and workloads in the memory for them.
    pub fn logs(&self) -> ParsedLogs {
        ParsedLogs::new(self.workload_memory).with_max_workload_bytes(self.workload_memory as u64)
    }
}
