//! Counters of a session.

use super::Session;
use super::lease::Lease;

impl Session {
    /// Slots that run a task.
    pub fn busy_slots(&self) -> u32 {
        self.slots.iter().filter(|s| s.running.is_some()).count() as u32
    }

    /// Slots whose thread does not return from its task.
    pub fn lost_slots(&self) -> usize {
        self.slots.iter().filter(|s| s.lost).count()
    }

    /// Leased tasks that have not started.
    pub fn queued_tasks(&self) -> u64 {
        self.with_queue.iter().filter_map(|id| self.leases.get(id)).map(Lease::queued_count).sum()
    }

    /// Hand-ins and failures without an answer.
    pub fn unacknowledged(&self) -> usize {
        self.outbox.len()
    }
}
