//! The record of what one queueing simulation measured. A field's doc is the column's documentation.

crate::record! {
/// What one queueing simulation measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueSummary {
    /// Jobs simulated.
    pub jobs_count: u64,
}
}
