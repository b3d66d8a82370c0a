//! The simulation: pure, synchronous, deterministic.
//!
//! A [`SimSpec`] names the components and their parameters; [`workload::Workload`] holds the jobs; [`simulate`] runs one
//! discrete-event simulation and returns its metrics as [`Measured`], and optional tables in [`Details`].
//!
//! The crate uses no file system, network, clock, thread, Arrow or tokio. Time is simulated (`f64` seconds), randomness
//! comes from a seed. The same spec gives bit-identical results on every machine.

pub mod account;
pub mod batch;
pub mod battery;
pub mod components;
mod details;
pub mod energy;
pub mod error;
pub mod facts;
pub mod formula;
mod limits;
pub mod lp;
pub mod queues;
pub mod rng;
pub mod seeds;
pub mod series;
pub mod signal;
mod simulate;
pub mod spec;
pub mod summary;
mod timers;
pub mod wasm;
pub mod workload;

pub use account::Account;
pub use batch::job_record::JobRecord;
pub use details::{Details, Measured};
pub use error::SimError;
pub use limits::Limits;
pub use queues::QueueSummary;
pub use series::SeriesPoint;
pub use simulate::simulate;
pub use spec::{Choice, Component, Role, SimSpec, Value};
pub use summary::Summary;

/// Version of the kernel: raised whenever its results change for an unchanged spec. Part of every task's identity.
pub const KERNEL_VERSION: u32 = 2;
