//! What is measured of queues, and for how long.
mod batch_means;
pub mod horizon;
pub(super) mod measure;
pub mod steady_state;
pub(super) mod student;
pub(super) mod summary;
mod tally;
