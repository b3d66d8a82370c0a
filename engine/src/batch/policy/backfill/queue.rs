//! The waiting queue of EASY for procs: columns of the jobs at their positions, in queue order.
//!
//! The sweep considers many jobs and starts few. It compares columns of procs and estimates in 16 bits, [`LANES`] jobs at a
//! time, and reads the exact numbers only of jobs that may start by these. Ties of every order are broken by
//! arrival, which is the job's index.
//!
//! An order that changes with time does not sort the queue: positions are in any order, and a pass brings the first job to
//! the head and sorts the few jobs that may start. If keys never rise, the first job is for a time among a few near jobs, the
//! others being known to have greater keys until then: a pass takes the keys of the near jobs alone.
use std::cmp::Ordering;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::order::Order;

/// Jobs that are compared at a time, without branches, so that the compiler compares them by one instruction.
const LANES: usize = 8;

/// Places behind the last job, so that a block of jobs can begin at any of them.
const PADDING: usize = LANES - 1;

/// Procs of a started job and of no job: more than can be free.
const STARTED: i16 = i16::MAX;

/// A number of procs in a column: many are as many as can be free.
#[inline]
fn narrow(procs: u32) -> i16 {
    procs.min(STARTED as u32 - 1) as i16
}

/// A time in a column: the leading bits of the number. A longer time has no smaller number.
#[inline]
fn leading(time_s: f64) -> i16 {
    ((time_s as f32).to_bits() >> 16) as i16
}

/// Waiting jobs in the order of the policy, unless it changes with time.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    jobs: Vec<JobId>,
    /// Procs of the jobs ([`narrow`]), and [`PADDING`].
    procs: Vec<i16>,
    /// Estimates of the jobs ([`leading`]), and [`PADDING`].
    estimates: Vec<i16>,
    /// Sort keys, least first; empty under FCFS. Of an order that changes with time: those of the last pass that needed them.
    keys: Vec<f64>,
    /// The near jobs of an order that changes with time are at the positions from the head to this one.
    near_end: usize,
    /// Number of near jobs when they were chosen.
    chosen: usize,
    /// Until `until_s`, other jobs have keys above this one.
    near_key: f64,
    until_s: f64,
    /// Time for which near jobs are chosen (s).
    span_s: f64,
    /// Position of the first waiting job; those before it have started.
    head: usize,
    /// Number of positions behind the head whose job has started.
    started: usize,
}

/// Number of jobs with the least keys that are chosen as near jobs. A pass takes the keys of the near jobs. A choice takes the keys
/// of all jobs, and lasts for about this number of starts.
fn near_count(len: usize) -> usize {
    4 + len.isqrt() / 2
}

/// Conditions for overtaking at the top gear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'g> {
    /// Free procs.
    pub(crate) free: u32,
    /// Procs that a job may hold beyond `until_s`.
    pub(crate) extra: u32,
    pub(crate) now_s: f64,
    /// Latest estimated end of a job that needs more than `extra` procs (s).
    pub(crate) until_s: f64,
    /// Under a cap: power that a starting job may add (W).
    pub(crate) left_w: f64,
    /// Under a cap, from the top gear down: what a proc adds at least (W), and the least time factor.
    pub(crate) gears: &'g [(f64, f64)],
}

impl Reach<'_> {
    /// The least time factor of a job with these procs.
    #[inline]
    fn time_factor(&self, procs: u32) -> f64 {
        if self.gears.is_empty() {
            return 1.0;
        }
        let fastest = self.gears.iter().find(|(added_w, _)| f64::from(procs) * added_w <= self.left_w);
        fastest.map_or(f64::INFINITY, |(_, factor)| *factor)
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            jobs: Vec::new(),
            procs: vec![STARTED; PADDING],
            estimates: vec![0; PADDING],
            keys: Vec::new(),
            near_end: 0,
            chosen: 0,
            near_key: f64::INFINITY,
            until_s: f64::INFINITY,
            span_s: 3_600.0,
            head: 0,
            started: 0,
        }
    }
}

impl Queue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.jobs.len() - self.head - self.started
    }

    /// The jobs in queue order.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> {
        let waiting = self.jobs[self.head..].iter().zip(&self.procs[self.head..]);
        waiting.filter(|(_, procs)| **procs != STARTED).map(|(job, _)| *job)
    }

    /// Position of the first job; there is one only if [`Queue::len`] is not 0.
    #[inline]
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    /// The position behind the last.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.jobs.len()
    }

    #[inline]
    pub(crate) fn job(&self, at: usize) -> JobId {
        self.jobs[at]
    }

    /// Inserts an arriving job and returns its position.
    #[inline(always)]
    pub(crate) fn insert<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) -> usize {
        if order.is_fcfs() || order.changes() {
            let mut at = self.jobs.len();
            self.push(job, cluster);
            if order.changes() {
                self.keys.push(f64::INFINITY);
                self.swap(at, self.near_end.max(self.head));
                at = self.near_end.max(self.head);
                self.near_end = at + 1;
            }
            return at;
        }
        let key = order.key(cluster, job);
        let at = self.head + self.keys[self.head..].partition_point(|&other| other <= key);
        self.keys.insert(at, key);
        self.jobs.insert(at, job);
        self.procs.insert(at, narrow(cluster.procs(job)));
        self.estimates.insert(at, leading(cluster.estimate_s(job)));
        at
    }

    /// Adds a job behind the last.
    #[inline(always)]
    fn push<R: Recorder>(&mut self, job: JobId, cluster: &Cluster<'_, R>) {
        let end = self.jobs.len();
        self.jobs.push(job);
        self.procs[end] = narrow(cluster.procs(job));
        self.procs.push(STARTED);
        self.estimates[end] = leading(cluster.estimate_s(job));
        self.estimates.push(0);
    }

    /// Takes the present keys of an order that changes with time, and brings the first job to the head.
    pub(crate) fn order_anew<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        let many = self.near_end > self.head + 2 * self.chosen.max(3 * near_count(self.len()));
        if cluster.now_s() > self.until_s || (many && order.never_rises()) {
            self.choose_near(order, cluster);
        } else {
            for at in self.head..self.near_end {
                if self.procs[at] != STARTED {
                    self.keys[at] = order.key(cluster, self.jobs[at]);
                }
            }
        }
        self.bring_first(order, cluster);
    }

    /// Brings the job with the least key to the head, which holds a waiting job or is the end.
    pub(crate) fn bring_first<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        let mut first = self.first_near();
        if self.len() > 0 && first.is_none_or(|at| self.keys[at] > self.near_key) {
            self.choose_near(order, cluster);
            first = self.first_near();
        }
        first.into_iter().for_each(|at| self.swap(at, self.head));
    }

    /// The position of the near job with the least key.
    fn first_near(&self) -> Option<usize> {
        let near = (self.head..self.near_end).filter(|at| self.procs[*at] != STARTED);
        near.reduce(|first, at| if self.compare(at, first).is_lt() { at } else { first })
    }

    /// Whether the first job certainly needs more procs than are free: none that fits goes before the job at the head, which
    /// does not fit.
    pub(crate) fn first_waits<R: Recorder>(&self, order: Order, free: u32, cluster: &Cluster<'_, R>) -> bool {
        let (free, head) = (narrow(free), self.head);
        let is_known = |at| self.procs[at] != STARTED && self.keys[at] <= self.near_key;
        if self.len() == 0 || self.procs[head] <= free || cluster.now_s() > self.until_s {
            return self.len() == 0;
        }
        let key = |at: usize| (order.key(cluster, self.jobs[at]), self.jobs[at]);
        let (head_key, head_job) = key(head);
        (self.near_key == f64::INFINITY || (head..self.near_end).any(is_known))
            && (head + 1..self.near_end).filter(|at| self.procs[*at] <= free).all(|at| {
                let (other_key, other_job) = key(at);
                head_key.total_cmp(&other_key).then(head_job.cmp(&other_job)).is_lt()
            })
    }

    /// Takes the present keys of all jobs, and chooses the near jobs: those with the least keys, and those that may go before
    /// them within `span_s`.
    #[inline(never)]
    fn choose_near<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        self.drop_started();
        self.keys.clear();
        self.keys.extend(self.jobs.iter().map(|job| order.key(cluster, *job)));
        let (len, count) = (self.len(), near_count(self.len()));
        (self.near_end, self.near_key, self.until_s) = (len, f64::INFINITY, f64::INFINITY);
        if len > 3 * count {
            let mut keys = self.keys.clone();
            self.near_key = *keys.select_nth_unstable_by(count, f64::total_cmp).1;
            self.until_s = cluster.now_s() + self.span_s;
            self.near_end = 0;
            for at in 0..len {
                if order.key_at(cluster, self.jobs[at], self.until_s) <= self.near_key {
                    self.swap(at, self.near_end);
                    self.near_end += 1;
                }
            }
            let factor = if self.near_end > 2 * count { 0.5 } else { 2.0 };
            self.span_s = (self.span_s * factor).clamp(1.0, 1e9);
        }
        self.chosen = self.near_end;
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.jobs.swap(a, b);
        self.procs.swap(a, b);
        self.estimates.swap(a, b);
        self.keys.swap(a, b);
    }

    /// Sort key of the job at a position in the present pass, under an order that changes with time.
    pub(crate) fn key<R: Recorder>(&self, at: usize, order: Order, cluster: &Cluster<'_, R>) -> f64 {
        if at < self.near_end { self.keys[at] } else { order.key(cluster, self.jobs[at]) }
    }

    #[inline]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.keys[a].total_cmp(&self.keys[b]).then(self.jobs[a].cmp(&self.jobs[b]))
    }

    /// Whether a waiting job needs at most these procs.
    pub(crate) fn any_fits(&self, free: u32) -> bool {
        let free = narrow(free);
        free > 0 && self.procs[self.head..].iter().any(|procs| *procs <= free)
    }

    /// Removes the first job.
    #[inline]
    pub(crate) fn pop_head(&mut self) {
        self.head += 1;
        while self.started > 0 && self.procs[self.head] == STARTED {
            self.head += 1;
            self.started -= 1;
        }
        if self.head == self.jobs.len() {
            self.truncate(0);
        }
    }

    /// Removes a started job behind the head. Positions stay the same.
    #[inline]
    pub(crate) fn take(&mut self, at: usize) {
        self.procs[at] = STARTED;
        self.started += 1;
    }

    /// Removes the positions of started jobs if there are many. Positions change.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.started + self.head > 16 + self.len() {
            self.drop_started();
        }
    }

    #[inline(never)]
    fn drop_started(&mut self) {
        let (mut to, mut near_end) = (0, 0);
        for from in self.head..self.jobs.len() {
            if self.procs[from] == STARTED {
                continue;
            }
            near_end += usize::from(from < self.near_end);
            self.jobs[to] = self.jobs[from];
            self.procs[to] = self.procs[from];
            self.estimates[to] = self.estimates[from];
            if !self.keys.is_empty() {
                self.keys[to] = self.keys[from];
            }
            to += 1;
        }
        self.near_end = near_end;
        self.truncate(to);
    }

    /// Drops the positions from `len` on; the jobs before it wait.
    #[inline]
    fn truncate(&mut self, len: usize) {
        self.jobs.truncate(len);
        self.procs.truncate(len + PADDING);
        self.procs[len..].fill(STARTED);
        self.estimates.truncate(len + PADDING);
        self.keys.truncate(len);
        (self.head, self.started, self.near_end) = (0, 0, self.near_end.min(len));
    }

    /// Whether the waiting job at a position may overtake within `reach`.
    #[inline(always)]
    pub(crate) fn reaches<R: Recorder>(&self, at: usize, reach: &Reach<'_>, cluster: &Cluster<'_, R>) -> bool {
        let procs = cluster.procs(self.jobs[at]);
        procs <= reach.free
            && (procs <= reach.extra
                || reach.now_s + cluster.estimate_s(self.jobs[at]) * reach.time_factor(procs) <= reach.until_s)
    }

    /// The first position from `from` on, behind the head, whose job may overtake within `reach`.
    #[inline(always)]
    pub(crate) fn next_candidate<R: Recorder>(
        &self,
        from: usize,
        reach: &Reach<'_>,
        cluster: &Cluster<'_, R>,
    ) -> Option<usize> {
        if reach.free == 0 {
            return None;
        }
        // Extra procs above the free procs have no effect.
        let (free, extra) = (narrow(reach.free), narrow(reach.extra.min(reach.free)));
        // A second more than is left: longer jobs are also too long in exact arithmetic.
        let left = leading(reach.until_s - reach.now_s + 1.0);
        // Without branches, because a single condition predicts badly whether a job may start.
        let may = |procs: i16, estimate: i16| (procs <= free) & ((procs <= extra) | (estimate <= left));
        let procs = self.procs[from..].as_chunks::<LANES>().0;
        let estimates = self.estimates[from..].as_chunks::<LANES>().0;
        for (block, (procs, estimates)) in procs.iter().zip(estimates).enumerate() {
            if procs.iter().zip(estimates).fold(false, |any, (&procs, &estimate)| any | may(procs, estimate)) {
                // A closure here would not be inlined.
                for lane in 0..LANES {
                    let at = from + block * LANES + lane;
                    if may(procs[lane], estimates[lane]) && self.reaches(at, reach, cluster) {
                        return Some(at);
                    }
                }
            }
        }
        None
    }
}
