//! Scheduling policies.
//!
//! [`batch::Batch`] composes an order, a backfilling rule and a gear rule; each part's file holds its registry entry and
//! its code.
pub mod backfill;
pub mod batch;
pub mod cap;
pub mod capacity;
pub mod composed;
mod conservative;
mod easy;
pub mod gear_rule;
mod knapsack;
pub mod order;
mod plain;
mod profile;
mod queue;
mod releases;
mod resources;
pub(crate) mod watch;
