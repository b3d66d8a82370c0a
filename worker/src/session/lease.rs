//! One lease of a worker: its tasks that are queued, running, or finished and not acknowledged.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use powersweep_proto::v1::{self, LeaseId};

/// One generation of one experiment. An index refers to its sweep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimentKey {
    /// Name of the experiment.
    pub name: Arc<str>,
    /// Generation of its manifest.
    pub generation: u64,
}

/// One task of one lease, as a slot takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRef {
    /// The lease that it belongs to.
    pub lease: LeaseId,
    /// The generation whose sweep has the index.
    pub experiment: ExperimentKey,
    /// Index in the experiment's sweep.
    pub index: u64,
    /// Attempt number, counted by the coordinator from 1.
    pub attempt: u32,
}

/// Tasks of one lease that are not acknowledged yet. Every index is in at most one of the three states.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) experiment: ExperimentKey,
    pub(super) attempt: u32,
    /// Not started, in the order given.
    queued: VecDeque<Range<u64>>,
    running: BTreeSet<u64>,
    /// Finished or failed; the row or failure is with the slot or in the outbox.
    finished: BTreeSet<u64>,
}

impl Lease {
    pub(super) fn new(experiment: ExperimentKey, attempt: u32, ranges: &[v1::IndexRange]) -> Lease {
        let queued = ranges.iter().filter(|r| r.start < r.end).map(|r| r.start..r.end).collect();
        Lease { experiment, attempt, queued, running: BTreeSet::new(), finished: BTreeSet::new() }
    }

    /// Starts the next task.
    pub(super) fn take(&mut self) -> Option<u64> {
        let first = self.queued.front_mut()?;
        let index = first.start;
        first.start += 1;
        if first.is_empty() {
            self.queued.pop_front();
        }
        self.running.insert(index);
        Some(index)
    }

    /// A running task ended with a row or a failure.
    pub(super) fn finish(&mut self, index: u64) {
        if self.running.remove(&index) {
            self.finished.insert(index);
        }
    }

    /// A running task ended without a row or failure.
    pub(super) fn forget_running(&mut self, index: u64) {
        self.running.remove(&index);
    }

    /// The coordinator has answered for a task.
    pub(super) fn acknowledge(&mut self, index: u64) {
        self.finished.remove(&index);
    }

    /// Drops indices below `next` from the head of the queue: they are excluded from the sweep.
    pub(super) fn skip_below(&mut self, next: u64) {
        if let Some(first) = self.queued.front_mut() {
            first.start = first.start.max(next);
            if first.start >= first.end {
                self.queued.pop_front();
            }
        }
    }

    /// Empties the queue and returns its ranges.
    pub(super) fn drop_queue(&mut self) -> Vec<v1::IndexRange> {
        self.queued.drain(..).map(|r| v1::IndexRange { start: r.start, end: r.end }).collect()
    }

    /// Takes a range out of the queue; returns the running tasks in it.
    pub(super) fn revoke(&mut self, cut: &Range<u64>) -> Vec<u64> {
        let mut kept = VecDeque::with_capacity(self.queued.len() + 1);
        for range in self.queued.drain(..) {
            let before = range.start..range.end.min(cut.start);
            let after = range.start.max(cut.end)..range.end;
            kept.extend([before, after].into_iter().filter(|r| !r.is_empty()));
        }
        self.queued = kept;
        self.running.range(cut.clone()).copied().collect()
    }

    pub(super) fn queued_count(&self) -> u64 {
        self.queued.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether all its tasks are settled.
    pub(super) fn is_over(&self) -> bool {
        self.queued.is_empty() && self.running.is_empty() && self.finished.is_empty()
    }

    /// Everything not acknowledged, as sorted ranges.
    pub(super) fn open(&self) -> Vec<v1::IndexRange> {
        let mut all: Vec<Range<u64>> = self.queued.iter().cloned().collect();
        all.extend(self.running.iter().chain(&self.finished).map(|&i| i..i + 1));
        all.sort_by_key(|r| r.start);
        let mut merged: Vec<v1::IndexRange> = Vec::new();
        for range in all {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(v1::IndexRange { start: range.start, end: range.end }),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(ranges: &[(u64, u64)]) -> Lease {
        let key = ExperimentKey { name: "e".into(), generation: 1 };
        let ranges: Vec<_> = ranges.iter().map(|&(start, end)| v1::IndexRange { start, end }).collect();
        Lease::new(key, 1, &ranges)
    }

    fn open(lease: &Lease) -> Vec<(u64, u64)> {
        lease.open().iter().map(|r| (r.start, r.end)).collect()
    }

    #[test]
    fn tasks_come_in_the_order_given() {
        let mut lease = lease(&[(7, 9), (2, 3), (4, 4)]);
        let taken: Vec<u64> = std::iter::from_fn(|| lease.take()).collect();
        assert_eq!(taken, [7, 8, 2]);
        assert_eq!(open(&lease), [(2, 3), (7, 9)]);
        for index in taken {
            lease.finish(index);
            lease.acknowledge(index);
        }
        assert!(lease.is_over());
    }

    #[test]
    fn revoking_cuts_the_queue_and_returns_the_running_tasks() {
        let mut lease = lease(&[(0, 10)]);
        assert_eq!(lease.take(), Some(0));
        assert_eq!(lease.revoke(&(0..4)), [0]);
        assert_eq!(lease.revoke(&(6..7)), Vec::<u64>::new());
        assert_eq!(lease.queued_count(), 5);
        lease.forget_running(0);
        assert_eq!(open(&lease), [(4, 6), (7, 10)]);
    }

    #[test]
    fn excluded_ranges_are_skipped() {
        let mut lease = lease(&[(0, 10), (20, 30)]);
        lease.take();
        lease.skip_below(8);
        assert_eq!(lease.take(), Some(8));
        lease.skip_below(25);
        assert_eq!(lease.take(), Some(20), "a skip ends with its range");
    }
}
