//! Rigid jobs on counted procs.
mod job_needs;
mod job_power;
pub mod job_record;
pub mod kernel;
pub(crate) mod nodes;
pub mod physics;
pub mod platform;
pub mod policy;
pub mod power;
pub mod prediction;
mod rules;
mod run;
pub(crate) mod weekly;

pub(crate) use run::simulate;
