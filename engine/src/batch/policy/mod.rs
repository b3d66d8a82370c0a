//! Scheduling policies.
//!
//! [`batch::Batch`] composes an order, a backfilling rule and a gear rule; each component's file holds its description and
//! its code.
pub mod backfill;
pub mod batch;
pub mod cap;
pub mod capacity;
pub mod composed;
pub mod gear;
pub mod order;
pub(crate) mod watch;
