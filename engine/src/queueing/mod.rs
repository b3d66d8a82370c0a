//! Heterogeneous-queue models: one-proc tasks of several classes on named machines.

crate::record! {
/// What one queueing simulation measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueSummary {
    /// Jobs simulated.
    pub jobs_count: u64,
}
}
