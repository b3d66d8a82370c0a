//! One task per slot: run, deadline, hand in.
//!
//! [`run`] connects to a coordinator, runs the leased tasks on a fixed set of threads and hands the rows in. The
//! protocol's state is in [`session`] (pure); [`run`] drives it over gRPC; the slots' threads are in `slots`.
//!
//! A worker keeps nothing on disk but an optional cache of logs: whatever it had not handed in when it died is run
//! again elsewhere.

mod agent;
mod logs;
pub mod options;
pub mod session;
mod slots;

/// Target of the log lines that say which tasks start (`started`, with index, attempt and epoch of the lease) and which
/// ones the coordinator has answered for (`acknowledged`, with indices and the coordinator's epoch). At level `trace`:
/// one line a task is too much for every day.
pub const JOURNAL: &str = "powersweep_worker::journal";

pub use agent::{run, versions};
pub use options::{TaskHook, TaskLimits, Tls, WorkerError, WorkerOptions, WorkerReport};
