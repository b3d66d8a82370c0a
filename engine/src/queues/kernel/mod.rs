//! The event loop of the queues: arrivals, servers, timers, and what it asks of a policy.
pub(super) mod arrivals;
mod due;
pub(super) mod policy;
pub(super) mod servers;
pub(super) mod simulation;
