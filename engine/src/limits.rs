//! What may stop a simulation before its end.

/// What may stop a simulation before its end. The kernel asks every 1,024 events.
pub struct Limits<'a> {
    /// Greatest number of events; `u64::MAX` for none.
    pub max_events: u64,
    /// Greatest number of bytes that the simulation's own growing state may hold; `usize::MAX` for none. Counted are
    /// running jobs, events, power, sleeping procs, what is recorded, and waiting jobs of queue models; not the workload,
    /// nor what a policy keeps for itself (some tens of bytes a waiting job).
    pub max_bytes: usize,
    /// Asked every 1,024 events; `true` ends the run with [`SimError::Deadline`](crate::SimError::Deadline). The caller owns the clock.
    pub deadline_passed: &'a dyn Fn() -> bool,
}

impl Limits<'static> {
    /// No limits at all.
    pub const NONE: Limits<'static> =
        Limits { max_events: u64::MAX, max_bytes: usize::MAX, deadline_passed: &|| false };
}
