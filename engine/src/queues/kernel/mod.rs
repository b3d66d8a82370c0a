//! The event loop of the queues: arrivals, servers, timers, and the trait of its policies.
pub(super) mod arrivals;
mod due;
pub(super) mod policy;
pub(super) mod servers;
pub(super) mod simulation;
