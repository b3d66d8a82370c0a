//! The simulation: pure, synchronous, deterministic.
//!
//! A [`SimSpec`] names the parts and their parameters; [`workload::Workload`] holds the jobs; [`simulate`] runs one
//! discrete-event simulation and returns what it [`Measured`], with further [`Details`] on request.
//!
//! This crate knows no file system, network, clock, thread, Arrow or tokio. Time is simulated (`f64` seconds),
//! randomness comes from a seed. The same spec gives bit-identical results on every machine.

mod details;
pub mod error;
pub mod facts;
pub mod job_record;
pub mod kernel;
pub mod lp;
mod nodes;
pub mod platform;
pub mod policy;
pub mod power;
pub mod queueing;
pub mod registry;
pub mod rng;
pub mod series;
mod simulate;
pub mod spec;
pub mod summary;
mod weekly;
pub mod workload;

pub use details::{Details, Measured, SeriesPoint};
pub use error::SimError;
pub use job_record::JobRecord;
pub use queueing::QueueSummary;
pub use registry::{Entry, Part, Slot, Value};
pub use simulate::simulate;
pub use spec::SimSpec;
pub use summary::Summary;

/// Version of the kernel: raised whenever its results change for an unchanged spec. Part of every task's identity.
pub const KERNEL_VERSION: u32 = 1;

/// What may stop a simulation before its end. The kernel asks every 1,024 events.
pub struct Limits<'a> {
    /// Greatest number of events; `u64::MAX` for none.
    pub max_events: u64,
    /// Greatest number of bytes that the simulation's own growing state may hold; `usize::MAX` for none. Counted are
    /// running jobs, events, power, sleeping procs, what is recorded, and waiting jobs of queue models; not the workload,
    /// nor what a policy keeps for itself (some tens of bytes a waiting job).
    pub max_bytes: usize,
    /// Asked every 1,024 events; `true` ends the run with [`SimError::Deadline`]. The caller owns the clock.
    pub deadline_passed: &'a dyn Fn() -> bool,
}

impl Limits<'static> {
    /// No limits at all.
    pub const NONE: Limits<'static> =
        Limits { max_events: u64::MAX, max_bytes: usize::MAX, deadline_passed: &|| false };
}
