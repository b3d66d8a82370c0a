//! The worker: runs leased tasks, one for each slot, and hands in their rows.
//!
//! [`run`] connects to a coordinator, runs the leased tasks on a fixed set of threads and hands the rows in. The
//! protocol's state is in [`session`] (pure); [`run`] drives it over gRPC; the slots' threads are in `slots`. [`task`]
//! prepares and simulates one task, in a slot or in a program without a coordinator.
//!
//! On disk a worker keeps only an optional cache of logs. If it dies, its tasks without acknowledged rows run again
//! elsewhere.

mod agent;
mod logs;
pub mod options;
pub mod session;
mod slots;
pub mod task;

/// Target of log lines for each task that starts (`started`: lease, generation, index) and each answered hand-in or failure
/// (`acknowledged` or `rejected`: the coordinator's epoch, lease, indices). The level is `trace`, because every task has
/// a line.
pub const JOURNAL: &str = "powersweep_worker::journal";

pub use agent::{run, versions};
pub use options::{TaskHook, TaskLimits, WorkerError, WorkerOptions, WorkerReport};
