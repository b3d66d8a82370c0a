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

pub use agent::{run, versions};
pub use options::{LOGS_MEMORY_BYTES, TaskLimits, Tls, WorkerError, WorkerOptions, WorkerReport};
