//! Pending tasks, without a list: a cursor over the indices, and groups of returned tasks.
//!
//! Every task below the cursor is done, failed for good, leased, or in a group. Every other task is pending, except for
//! those that are done, failed or leased since the state was loaded or since a late hand-in, which the cursor skips.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use powersweep_experiments::Sweep;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::index_set::{IndexSet, chunk_of, join};
use crate::records::CHUNK_TASKS;

/// Maximum number of ranges in one lease: bounds the message of a fragmented sweep.
pub(super) const LEASE_RANGES_MAX: usize = 4096;

/// Tasks that were returned together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// The tasks.
    pub indices: IndexSet,
    /// Number of their next lease, counted from 1.
    pub attempt: u32,
    /// Maximum number of tasks in one lease of this group.
    pub most: u64,
    /// Not to be leased before this instant.
    pub not_before: Duration,
    /// Not to be leased to this worker, if there is another one.
    pub avoid: Option<Uuid>,
    /// One of them may have killed its worker: leased only to a worker that holds no other task, which the next crash
    /// would make suspect, too.
    pub suspect: bool,
}

/// Tasks taken for a lease.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taken {
    /// In order, half-open.
    pub ranges: Vec<Range<u64>>,
    /// Number of this lease of the tasks, counted from 1.
    pub attempt: u32,
    /// Of a suspect group.
    pub suspect: bool,
}

/// The worker that takes tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker {
    /// The worker.
    pub worker: Uuid,
    /// There is no other worker, so that it need not avoid any tasks.
    pub alone: bool,
    /// It holds no task.
    pub holds_nothing: bool,
}

/// Tasks that are not pending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closed<'a> {
    /// Tasks with a row.
    pub done: &'a IndexSet,
    /// Tasks that failed for good.
    pub failed: &'a IndexSet,
    /// Tasks under a lease.
    pub leased: &'a IndexSet,
}

impl Closed<'_> {
    /// Whether a task is in none of the sets.
    pub(super) fn is_pending(&self, index: u64) -> bool {
        !self.done.contains(index) && !self.failed.contains(index) && !self.leased.contains(index)
    }

    /// Number of tasks of a chunk in the sets, which have no task in common.
    fn in_chunk(&self, chunk: u32) -> u64 {
        [self.done, self.failed, self.leased].iter().filter_map(|set| set.chunk(chunk)).map(RoaringBitmap::len).sum()
    }
}

/// The pending tasks of one experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pending {
    cursor: u64,
    groups: BTreeMap<u64, Group>,
    next_group: u64,
}

impl Pending {
    /// Adds returned tasks. Those above the cursor (leased before a restart) need no group: the cursor comes to them.
    pub(super) fn give_back(&mut self, mut group: Group) {
        group.indices.cut(self.cursor);
        if !group.indices.is_empty() {
            self.groups.insert(self.next_group, group);
            self.next_group += 1;
        }
    }

    /// Takes a task that needs no lease any more out of its group.
    pub(super) fn remove(&mut self, index: u64) {
        let Some((&id, group)) = self.groups.iter_mut().find(|(_, group)| group.indices.contains(index)) else {
            return;
        };
        group.indices.remove(index);
        if group.indices.is_empty() {
            self.groups.remove(&id);
        }
    }

    /// Whether a task is in a group.
    pub(super) fn holds(&self, index: u64) -> bool {
        self.groups.values().any(|group| group.indices.contains(index))
    }

    /// The least index that was not taken or skipped yet.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Whether tasks can be taken now by some worker; `end` is the sweep's number of indices. Tasks above the cursor
    /// count even if they are closed: the next take skips them.
    pub(super) fn is_ready(&self, end: u64, now: Duration) -> bool {
        self.cursor < end || self.groups.values().any(|group| group.not_before <= now)
    }

    /// Whether a suspect group has been ready since an instant.
    pub(super) fn suspects_wait(&self, since: Duration) -> bool {
        self.groups.values().any(|group| group.suspect && group.not_before <= since)
    }

    /// The groups, for checks.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// Takes up to `most` tasks for a worker: first from groups, then at the cursor.
    pub(super) fn take(
        &mut self,
        most: u64,
        taker: Taker,
        now: Duration,
        sweep: &Sweep,
        closed: Closed<'_>,
    ) -> Option<Taken> {
        let fits = |group: &Group| {
            (taker.holds_nothing || !group.suspect) && (taker.alone || group.avoid != Some(taker.worker))
        };
        let ready = self.groups.iter().find(|(_, group)| group.not_before <= now && fits(group));
        if let Some((&id, _)) = ready {
            let group = self.groups.get_mut(&id).expect("just found");
            let ranges = group.indices.take_first(most.min(group.most), LEASE_RANGES_MAX);
            let (attempt, suspect) = (group.attempt, group.suspect);
            if group.indices.is_empty() {
                self.groups.remove(&id);
            }
            return Some(Taken { ranges, attempt, suspect });
        }
        let ranges = self.take_fresh(most, sweep, closed);
        (!ranges.is_empty()).then_some(Taken { ranges, attempt: 1, suspect: false })
    }

    fn take_fresh(&mut self, most: u64, sweep: &Sweep, closed: Closed<'_>) -> Vec<Range<u64>> {
        let whole = sweep.task_count() == sweep.index_count();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut missing = most;
        while missing > 0 && ranges.len() < LEASE_RANGES_MAX {
            let Some(start) = sweep.next_included(self.cursor) else {
                self.cursor = sweep.index_count();
                break;
            };
            self.cursor = start;
            let chunk = chunk_of(start);
            let chunk_start = u64::from(chunk) * CHUNK_TASKS;
            let chunk_end = (chunk_start + CHUNK_TASKS).min(sweep.index_count());
            if !whole && closed.in_chunk(chunk) == sweep.tasks_in(chunk_start..chunk_end) {
                // After a restart most chunks are done. Exclusions may leave no two tasks side by side, so that a search
                // would step over each task.
                self.cursor = chunk_end;
                continue;
            }
            match open_run(start, chunk_end, closed) {
                None => self.cursor = chunk_end,
                Some(run) => {
                    let run = run.start..run.end.min(run.start.saturating_add(missing));
                    let run = if whole { run } else { included_run(sweep, run) };
                    self.cursor = run.end;
                    if !run.is_empty() {
                        missing -= run.end - run.start;
                        join(&mut ranges, run);
                    }
                }
            }
        }
        ranges
    }
}

/// The first run of indices in `start..end` (one chunk) that are not closed.
fn open_run(start: u64, end: u64, closed: Closed<'_>) -> Option<Range<u64>> {
    let chunk = chunk_of(start);
    let sets: Vec<&RoaringBitmap> =
        [closed.done, closed.failed, closed.leased].into_iter().filter_map(|set| set.chunk(chunk)).collect();
    if sets.is_empty() {
        return Some(start..end);
    }
    let base = u64::from(chunk) * CHUNK_TASKS;
    let mut at = start;
    'search: while at < end {
        for set in &sets {
            let bit = (at - base) as u32;
            if set.contains(bit) {
                let mut bits = set.iter();
                bits.advance_to(bit);
                let run = bits.next_range().expect("the set contains this bit");
                at = base + u64::from(*run.end()) + 1;
                continue 'search;
            }
        }
        let next_closed = |set: &&RoaringBitmap| {
            let mut bits = set.iter();
            bits.advance_to((at - base) as u32);
            bits.next().map(|bit| base + u64::from(bit))
        };
        let stop = sets.iter().filter_map(next_closed).min().unwrap_or(end).min(end);
        return Some(at..stop);
    }
    None
}

/// The first included indices of a run, up to an excluded one; empty, at the run's end, if all are excluded.
fn included_run(sweep: &Sweep, run: Range<u64>) -> Range<u64> {
    let start = sweep.next_included(run.start).unwrap_or(run.end).min(run.end);
    let mut end = start;
    while end < run.end && !sweep.is_excluded(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_wait_from_the_instant_at_which_they_are_ready() {
        let mut pending = Pending { cursor: 10, ..Pending::default() };
        let group = |suspect, ready_s| Group {
            indices: std::iter::once(3).collect(),
            attempt: 2,
            most: 1,
            not_before: Duration::from_secs(ready_s),
            avoid: None,
            suspect,
        };
        pending.give_back(group(false, 5));
        assert!(!pending.suspects_wait(Duration::from_secs(9)), "no suspect group");
        pending.give_back(group(true, 7));
        assert!(!pending.suspects_wait(Duration::from_secs(6)));
        assert!(pending.suspects_wait(Duration::from_secs(7)));
    }
}
