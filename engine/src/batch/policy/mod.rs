//! Scheduling policies.
//!
//! [`batch::Batch`] composes an order, a backfilling rule and a gear rule; the file of a component has its description
//! and its code.
pub mod backfill;
pub mod batch;
pub mod cap;
pub mod capacity;
mod capped;
pub mod composed;
pub mod deferral;
pub mod gear;
pub mod order;

pub(crate) mod watch;
