//! What a session says about itself.

use super::lease::Lease;
use super::{Link, Session};

impl Session {
    /// Slots that run a task.
    pub fn busy_slots(&self) -> u32 {
        self.slots.iter().filter(|s| s.running.is_some()).count() as u32
    }

    /// Slots whose thread does not come back from its task.
    pub fn lost_slots(&self) -> usize {
        self.slots.iter().filter(|s| s.lost).count()
    }

    /// Leased tasks that have not started.
    pub fn queued_tasks(&self) -> u64 {
        self.with_queue.iter().filter_map(|id| self.leases.get(id)).map(Lease::queued_count).sum()
    }

    /// Whether a connection is accepted.
    pub fn is_connected(&self) -> bool {
        self.link == Link::Up
    }

    /// Tasks whose row or failure was acknowledged.
    pub fn tasks_acknowledged(&self) -> u64 {
        self.tasks_acknowledged
    }

    /// Finished tasks that the coordinator did not take.
    pub fn tasks_rejected(&self) -> u64 {
        self.tasks_rejected
    }

    /// Attempts that failed.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Hand-ins and failures that nobody acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.outbox.len()
    }
}
