//! The waiting queue of FCFS and EASY: positions in the order of the policy, stored by column.
//!
//! The sweep of EASY reads processor counts alone for most jobs, so they are contiguous. Ties of every order are broken
//! by arrival, which is the job's index.

use std::ops::Range;

use super::order::{Order, Sorted};
use crate::kernel::{Cluster, JobId, Recorder};

/// Waiting jobs in the order of the policy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    jobs: Vec<JobId>,
    procs: Vec<u32>,
    estimates_s: Vec<f64>,
    /// Whole seconds of the estimates: narrow, so that many are compared at a time.
    whole_s: Vec<i32>,
    /// Sort keys, least first; empty under FCFS.
    keys: Vec<f64>,
    /// Position of the first waiting job; those before it have started.
    head: usize,
    /// Positions behind the head whose job has started: their procs are [`GONE`].
    gone: usize,
    /// Used while sorting.
    scratch: Vec<(f64, JobId, u32, f64)>,
}

impl Queue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.jobs.len() - self.head - self.gone
    }

    /// Position of the first job; there is one only if [`Queue::len`] is not 0.
    #[inline]
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    #[inline]
    pub(crate) fn job(&self, at: usize) -> JobId {
        self.jobs[at]
    }

    #[inline]
    pub(crate) fn procs(&self, at: usize) -> u32 {
        self.procs[at]
    }

    #[inline]
    pub(crate) fn estimate_s(&self, at: usize) -> f64 {
        self.estimates_s[at]
    }

    /// Puts an arriving job at its place and returns its position.
    #[inline]
    pub(crate) fn insert<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) -> usize {
        let (procs, estimate_s) = (cluster.procs(job), cluster.estimate_s(job));
        if order == Order::Fcfs {
            self.jobs.push(job);
            self.procs.push(procs);
            self.estimates_s.push(estimate_s);
            self.whole_s.push(estimate_s as i32);
            return self.jobs.len() - 1;
        }
        let key = order.key(cluster, job);
        let at = self.head + self.keys[self.head..].partition_point(|&other| other <= key);
        self.jobs.insert(at, job);
        self.procs.insert(at, procs);
        self.estimates_s.insert(at, estimate_s);
        self.whole_s.insert(at, estimate_s as i32);
        self.keys.insert(at, key);
        at
    }

    /// Sorts anew, for orders whose keys change with time.
    pub(crate) fn sort<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        if order.sorted() != Sorted::EveryPass {
            return;
        }
        self.drop_started();
        self.scratch.clear();
        for at in 0..self.jobs.len() {
            let job = self.jobs[at];
            self.scratch.push((order.key(cluster, job), job, self.procs[at], self.estimates_s[at]));
        }
        self.scratch.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (at, &(key, job, procs, estimate_s)) in self.scratch.iter().enumerate() {
            (self.keys[at], self.jobs[at], self.procs[at]) = (key, job, procs);
            (self.estimates_s[at], self.whole_s[at]) = (estimate_s, estimate_s as i32);
        }
    }

    /// Removes the first job.
    #[inline]
    pub(crate) fn pop_head(&mut self) {
        self.head += 1;
        while self.gone > 0 && self.procs[self.head] == GONE {
            self.head += 1;
            self.gone -= 1;
        }
        if self.head == self.jobs.len() {
            self.truncate(0);
            self.head = 0;
        }
    }

    /// The position behind the last.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.jobs.len()
    }

    /// The first of some positions whose job may overtake by `reach`.
    #[inline]
    pub(crate) fn next_candidate(&self, positions: Range<usize>, reach: Reach) -> Option<usize> {
        let Reach { floor, free, extra, now_s, until_s } = reach;
        if floor >= free {
            return None;
        }
        // Whole seconds that are left, generously: what is longer is too long in exact arithmetic, too.
        let left_s = until_s - now_s;
        let limit_s = if left_s < 1e9 { left_s as i32 + 1 } else { i32::MAX };
        let (floor, free, few) = (floor as i32, free as i32, extra.min(i32::MAX as u32) as i32);
        // Without branches: each condition alone says little about whether a job may start.
        let may =
            |p: u32, whole_s: i32| (p as i32 > floor) & (p as i32 <= free) & ((whole_s <= limit_s) | (p as i32 <= few));
        let exactly = |at: usize| {
            may(self.procs[at], self.whole_s[at])
                && (now_s + self.estimates_s[at] <= until_s || self.procs[at] <= extra)
        };
        let mut from = positions.start;
        let until = positions.end;
        let (procs, procs_rest) = self.procs.get(positions.clone())?.as_chunks::<LANES>();
        let (whole_s, whole_rest) = self.whole_s.get(positions)?.as_chunks::<LANES>();
        for (chunk, chunk_s) in procs.iter().zip(whole_s) {
            if chunk.iter().zip(chunk_s).fold(false, |any, (&p, &s)| any | may(p, s))
                && let Some(at) = (from..from + LANES).find(|&at| exactly(at))
            {
                return Some(at);
            }
            from += LANES;
        }
        let some = procs_rest.iter().zip(whole_rest).fold(false, |any, (&p, &s)| any | may(p, s));
        if some { (from..until).find(|&at| exactly(at)) } else { None }
    }

    /// Removes a job behind the head that has started. Positions stay as they are.
    #[inline]
    pub(crate) fn take(&mut self, at: usize) {
        self.procs[at] = GONE;
        self.gone += 1;
    }

    /// Makes room if many positions are of jobs that have started. Positions change.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.gone + self.head > 16 + self.len() {
            self.drop_started();
        }
    }

    fn truncate(&mut self, len: usize) {
        self.jobs.truncate(len);
        self.procs.truncate(len);
        self.estimates_s.truncate(len);
        self.whole_s.truncate(len);
        self.keys.truncate(len);
    }

    fn drop_started(&mut self) {
        let mut to = 0;
        for from in self.head..self.jobs.len() {
            if self.procs[from] == GONE {
                continue;
            }
            self.jobs[to] = self.jobs[from];
            self.procs[to] = self.procs[from];
            self.estimates_s[to] = self.estimates_s[from];
            self.whole_s[to] = self.whole_s[from];
            if !self.keys.is_empty() {
                self.keys[to] = self.keys[from];
            }
            to += 1;
        }
        self.truncate(to);
        (self.head, self.gone) = (0, 0);
    }
}

/// In place of the procs of a job that has started: fits nowhere.
const GONE: u32 = u32::MAX;

/// What a job must be like to overtake at the top gear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// It needs more procs than this.
    pub(crate) floor: u32,
    /// Procs that are free.
    pub(crate) free: u32,
    /// Of these, procs that it may keep beyond `until_s`.
    pub(crate) extra: u32,
    pub(crate) now_s: f64,
    /// Otherwise its estimated end must not be later (s).
    pub(crate) until_s: f64,
}

/// Processor counts compared at a time; they are below 2^31, so that signed comparisons, which SSE2 has, do.
const LANES: usize = 8;
