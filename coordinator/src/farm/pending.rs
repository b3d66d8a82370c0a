//! What is still to be handed out, without a list of it: a cursor over the index space and the groups that came back.
//!
//! Every task below the cursor is done, failed for good, leased, or in a group; every other task is untouched, except
//! for those that are done, failed or leased already (they were when the state was loaded, or came in late), which the
//! cursor passes over.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use powersweep_experiments::Sweep;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::index_set::{IndexSet, chunk_of, join};
use crate::records::CHUNK_TASKS;

/// Most ranges in one lease, so that a fragmented sweep makes no huge message.
pub(super) const LEASE_RANGES_MAX: usize = 4096;

/// Tasks that came back together, with what is known of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// The tasks.
    pub indices: IndexSet,
    /// Times they were leased, the next time included.
    pub attempt: u32,
    /// Most tasks in one lease of this group.
    pub most: u64,
    /// Not to be leased before this instant.
    pub not_before: Duration,
    /// Better leased to another worker, if there is one.
    pub avoid: Option<Uuid>,
    /// One of them may have killed its worker: leased only to a worker that holds nothing else, so that the next death
    /// makes no others suspect.
    pub suspect: bool,
}

/// A run of tasks taken for a lease.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taken {
    /// In order, half-open.
    pub ranges: Vec<Range<u64>>,
    /// Times they were leased, this one included.
    pub attempt: u32,
    /// Of a suspect group.
    pub suspect: bool,
}

/// Who takes tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker {
    /// The worker.
    pub worker: Uuid,
    /// No other worker could take what this one should avoid.
    pub alone: bool,
    /// It has no task.
    pub holds_nothing: bool,
}

/// What is not to be handed out.
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
    /// Whether a task is still to be handed out.
    pub(super) fn is_pending(&self, index: u64) -> bool {
        !self.done.contains(index) && !self.failed.contains(index) && !self.leased.contains(index)
    }
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pending {
    cursor: u64,
    groups: BTreeMap<u64, Group>,
    next_group: u64,
}

impl Pending {
    /// Adds tasks that came back. Those above the cursor (leased before a restart) are found by it again.
    pub(super) fn give_back(&mut self, mut group: Group) {
        group.indices.cut(self.cursor);
        if !group.indices.is_empty() {
            self.groups.insert(self.next_group, group);
            self.next_group += 1;
        }
    }

    /// Forgets a task that needs no lease any more.
    pub(super) fn forget(&mut self, index: u64) {
        let Some((&id, group)) = self.groups.iter_mut().find(|(_, group)| group.indices.contains(index)) else {
            return;
        };
        group.indices.remove(index);
        if group.indices.is_empty() {
            self.groups.remove(&id);
        }
    }

    /// Whether a task waits in a group.
    pub(super) fn holds(&self, index: u64) -> bool {
        self.groups.values().any(|group| group.indices.contains(index))
    }

    /// Everything below is not untouched.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Whether a lease can be taken now by some worker; `end` is the sweep's number of indices. What is closed above the
    /// cursor counts: the next take passes over it.
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

    /// Takes up to `most` tasks for a worker: first from what came back, then at the cursor.
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
        let mut left = most;
        while left > 0 && ranges.len() < LEASE_RANGES_MAX {
            let Some(start) = sweep.next_included(self.cursor) else {
                self.cursor = sweep.index_count();
                break;
            };
            self.cursor = start;
            let chunk = chunk_of(start);
            let chunk_end = ((u64::from(chunk) + 1) * CHUNK_TASKS).min(sweep.index_count());
            match open_run(start, chunk_end, closed) {
                None => self.cursor = chunk_end,
                Some(run) => {
                    let run = run.start..run.end.min(run.start.saturating_add(left));
                    let run = if whole { run } else { included_run(sweep, run) };
                    self.cursor = run.end;
                    if !run.is_empty() {
                        left -= run.end - run.start;
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

/// The first part of a run without excluded indices; empty, behind its end, if all are excluded.
fn included_run(sweep: &Sweep, run: Range<u64>) -> Range<u64> {
    let start = sweep.next_included(run.start).unwrap_or(run.end).min(run.end);
    let mut end = start;
    while end < run.end && !sweep.is_excluded(end) {
        end += 1;
    }
    start..end
}
