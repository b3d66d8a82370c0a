//! Rigid jobs on counted procs.
pub mod job_record;
pub mod kernel;
pub(crate) mod nodes;
pub mod platform;
pub mod policy;
pub mod power;
pub(crate) mod weekly;
