//! Scheduling policies.
//!
//! [`batch::Batch`] composes an order, a backfilling rule and a gear rule; each part's file holds its registry entry and
//! its code.
pub mod backfill;
pub mod batch;
mod conservative;
mod easy;
pub mod gear_rule;
pub mod order;
mod profile;
mod queue;
mod releases;
