//! Scheduling policies.
pub mod backfill;
pub mod batch;
pub mod gear_rule;
pub mod order;
