//! The waiting queue of EASY for procs: columns of the jobs at their positions, in queue order.
//!
//! The sweep considers many jobs and starts few. It compares columns of procs and estimates in 16 bits, [`LANES`] jobs at a
//! time, and reads the exact numbers only of jobs that may start by these. Ties of every order are broken by
//! arrival, which is the job's index.
//!
//! An order that changes with time does not sort the queue: positions are in any order, and a pass brings the first job to
//! the head and sorts the few jobs that may start. If keys never rise, the key of a job at a later instant is a bound of its key
//! until then: a pass takes the keys of those jobs alone whose bounds are at most the key of the first job.
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

/// A time or a key in a column: the leading bits of the number. A greater number has no smaller ones.
#[inline]
fn leading(value: f64) -> i16 {
    let bits = ((value as f32).to_bits() >> 16) as i16;
    // Numbers below 0 are ordered the other way round.
    bits ^ ((bits >> 15) & i16::MAX)
}

/// A bound of a started job and of no job: above every key.
const NONE: i16 = i16::MAX;

/// Whether the first of two jobs goes before the second, by their keys and then by their numbers.
#[inline]
fn is_before(a: (f64, JobId), b: (f64, JobId)) -> bool {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt()
}

/// Waiting jobs in the order of the policy, unless it changes with time.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    jobs: Vec<JobId>,
    /// Procs of the jobs ([`narrow`]), and [`PADDING`].
    procs: Vec<i16>,
    /// Estimates of the jobs ([`leading`]), and [`PADDING`].
    estimates: Vec<i16>,
    /// Sort keys, least first; empty under FCFS. Of an order that changes with time, in any order: if keys may rise, the keys as
    /// of the begin of the pass; if they never rise, not in use.
    keys: Vec<f64>,
    /// If the order changes with time: bounds ([`leading`]), below which no key is until `until_s`, and [`PADDING`].
    bounds: Vec<i16>,
    until_s: f64,
    /// Time for which bounds are taken (s).
    span_s: f64,
    /// Number of keys that were taken since the bounds, except one for each pass.
    taken: usize,
    /// The position of a job that is likely the first one once the head has started, or one before the head.
    second: usize,
    /// Position of the first waiting job; those before it have started.
    head: usize,
    /// Number of positions behind the head whose job has started.
    started: usize,
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
            bounds: vec![NONE; PADDING],
            until_s: f64::NEG_INFINITY,
            span_s: 3_600.0,
            taken: 0,
            second: 0,
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
            let at = self.jobs.len();
            self.push(job, cluster);
            if order.changes() {
                self.keys.push(f64::INFINITY);
                self.bounds[at] = self.bound(order, cluster, job);
            }
            return at;
        }
        let key = order.key(cluster, job);
        let at = self.head + self.keys[self.head..].partition_point(|&other| other <= key);
        self.keys.insert(at, key);
        self.jobs.insert(at, job);
        self.procs.insert(at, narrow(cluster.procs(job)));
        self.estimates.insert(at, leading(cluster.estimate_s(job)));
        self.bounds.push(NONE);
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
        self.bounds.push(NONE);
    }

    /// Begins a pass of an order that changes with time: brings the job with the least key to the head.
    pub(crate) fn order_anew<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        if !order.never_rises() {
            for at in (self.head..self.jobs.len()).filter(|at| self.procs[*at] != STARTED) {
                self.keys[at] = order.key(cluster, self.jobs[at]);
            }
        }
        self.bring_first(order, cluster);
    }

    /// The key of a job in the present pass of an order that changes with time.
    pub(crate) fn key<R: Recorder>(&self, at: usize, order: Order, cluster: &Cluster<'_, R>) -> f64 {
        if order.never_rises() { order.key(cluster, self.jobs[at]) } else { self.keys[at] }
    }

    /// Brings the job with the least key of an order that changes with time to the head, which holds a waiting job or is the
    /// end.
    pub(crate) fn bring_first<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        if self.len() == 0 {
            return;
        }
        if cluster.now_s() > self.until_s || self.taken > 4 * self.len() + 16 {
            self.take_bounds(order, cluster);
        }
        let key = |at: usize| (self.key(at, order, cluster), self.jobs[at]);
        let (head, bounds) = (self.head, &self.bounds);
        let waits = self.second > head && self.procs[self.second] != STARTED;
        let second = if waits { self.second } else { head };
        let (mut first, mut other) = ((key(head), head), (key(second), second));
        if is_before(other.0, first.0) {
            (first, other) = (other, first);
        }
        let (mut taken, mut from) = (0, head + 1);
        while let Some(at) = next_of(bounds, bounds, from, |bound, _| bound <= leading(first.0.0), |at| at != second) {
            taken += 1;
            let found = (key(at), at);
            if is_before(found.0, first.0) {
                (first, other) = (found, first);
            } else if is_before(found.0, other.0) {
                other = found;
            }
            from = at + 1;
        }
        let first = first.1;
        self.second = if other.1 == head { first } else { other.1 };
        self.taken += taken;
        self.jobs.swap(first, head);
        self.procs.swap(first, head);
        self.estimates.swap(first, head);
        self.bounds.swap(first, head);
        self.keys.swap(first, head);
    }

    /// Whether the first job certainly needs more procs than are free: none that fits goes before the job at the head, which
    /// does not fit.
    pub(crate) fn first_waits<R: Recorder>(&self, order: Order, free: u32, cluster: &Cluster<'_, R>) -> bool {
        let (free, head) = (narrow(free), self.head);
        if self.len() == 0 || self.procs[head] <= free || cluster.now_s() > self.until_s {
            return self.len() == 0;
        }
        let key = |at: usize| (order.key(cluster, self.jobs[at]), self.jobs[at]);
        let head_key = key(head);
        let limit = leading(head_key.0);
        let may = |procs: i16, bound: i16| (procs <= free) & (bound <= limit);
        let goes_before = |at| is_before(key(at), head_key);
        next_of(&self.procs, &self.bounds, head + 1, may, goes_before).is_none()
    }

    /// Takes the bounds of all jobs again, for a time in which about as many keys are taken as bounds.
    #[inline(never)]
    fn take_bounds<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        self.drop_started();
        let factor = if self.taken > self.len() { 0.5 } else { 2.0 };
        self.span_s = (self.span_s * factor).clamp(1.0, 1e9);
        self.until_s = cluster.now_s() + self.span_s;
        self.taken = 0;
        for at in 0..self.len() {
            self.bounds[at] = self.bound(order, cluster, self.jobs[at]);
        }
    }

    /// A bound of a job's key until `until_s`.
    fn bound<R: Recorder>(&self, order: Order, cluster: &Cluster<'_, R>, job: JobId) -> i16 {
        let is_known = order.never_rises() && cluster.now_s() <= self.until_s;
        if is_known { leading(order.key_at(cluster, job, self.until_s)) } else { i16::MIN }
    }

    /// Whether a waiting job needs at most these procs.
    pub(crate) fn any_fits(&self, free: u32) -> bool {
        let free = narrow(free);
        free > 0 && next_of(&self.procs, &self.procs, self.head, |procs, _| procs <= free, |_| true).is_some()
    }

    /// Position of the first job and number of started jobs behind it: what [`Queue::put_back`] needs.
    pub(crate) fn front(&self) -> (usize, usize) {
        (self.head, self.started)
    }

    /// Puts back the jobs that a trial has removed since then, before [`Queue::tidy`].
    pub(crate) fn put_back(&mut self, front: (usize, usize)) {
        (self.head, self.started) = front;
    }

    /// Removes the first job.
    #[inline]
    pub(crate) fn pop_head(&mut self) {
        self.head += 1;
        while self.started > 0 && self.procs[self.head] == STARTED {
            self.head += 1;
            self.started -= 1;
        }
    }

    /// Removes a started job behind the head; in a trial only from the number of jobs. Positions stay the same.
    #[inline]
    pub(crate) fn take(&mut self, at: usize, trial: bool) {
        if !trial {
            (self.procs[at], self.bounds[at]) = (STARTED, NONE);
        }
        self.started += 1;
    }

    /// Removes the positions of started jobs if they are many, or no job waits. Positions change.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.len() == 0 {
            if self.head > 0 {
                self.truncate(0);
            }
        } else if self.started + self.head > 16 + self.len() {
            self.drop_started();
        }
    }

    #[inline(never)]
    fn drop_started(&mut self) {
        let mut to = 0;
        for from in self.head..self.jobs.len() {
            if self.procs[from] == STARTED {
                continue;
            }
            self.jobs[to] = self.jobs[from];
            self.procs[to] = self.procs[from];
            self.estimates[to] = self.estimates[from];
            if !self.keys.is_empty() {
                self.keys[to] = self.keys[from];
            }
            self.bounds[to] = self.bounds[from];
            to += 1;
        }
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
        self.bounds.truncate(len + PADDING);
        self.bounds[len..].fill(NONE);
        (self.head, self.started, self.second) = (0, 0, 0);
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
        next_of(&self.procs, &self.estimates, from, may, |at| self.reaches(at, reach, cluster))
    }
}

/// The first position from `from` on at which a condition holds for two columns, and another one for the position.
#[inline(always)]
fn next_of(
    a: &[i16],
    b: &[i16],
    from: usize,
    may: impl Fn(i16, i16) -> bool,
    holds: impl Fn(usize) -> bool,
) -> Option<usize> {
    let (a, b) = (a[from..].as_chunks::<LANES>().0, b[from..].as_chunks::<LANES>().0);
    for (block, (a, b)) in a.iter().zip(b).enumerate() {
        if a.iter().zip(b).fold(false, |any, (&a, &b)| any | may(a, b)) {
            // A closure here would not be inlined.
            for lane in 0..LANES {
                let at = from + block * LANES + lane;
                if may(a[lane], b[lane]) && holds(at) {
                    return Some(at);
                }
            }
        }
    }
    None
}
