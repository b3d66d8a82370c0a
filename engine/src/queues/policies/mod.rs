//! Policies of queues.
pub mod buffered;
pub mod classes;
