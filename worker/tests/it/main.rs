//! The worker over a real connection, with the test as coordinator.

mod agent;
mod direct;
mod fake;
