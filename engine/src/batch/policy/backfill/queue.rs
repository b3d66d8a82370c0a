//! The waiting queue of `none` and `easy`: jobs at positions, in queue order.
//!
//! The sweep of EASY considers many jobs and starts few. It reads narrow copies of processor counts and estimates, four
//! at a time, and the exact values only of jobs that may start by the narrow ones. Ties of every order are broken by
//! arrival, which is the job's index.

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::order::Order;

/// A job that waits, or has started ([`STARTED`]).
#[derive(Debug, Clone, Copy)]
struct Waiting {
    job: JobId,
    procs: u32,
    estimate_s: f64,
}

/// Jobs that are compared at a time: a word has this number of 16-bit numbers.
const LANES: usize = 4;

/// Narrow copies of the procs and estimates of [`LANES`] consecutive jobs, the first in the lowest bits. The highest
/// bit of every number is free, so that one subtraction of words compares all of them.
#[derive(Debug, Clone, Copy)]
struct Block {
    procs: u64,
    seconds: u64,
}

/// The highest bit of each lane. It is free in every number, so that adding it sets it.
const TOPS: u64 = 0x8000_8000_8000_8000;

/// A word with a number in every lane.
#[inline]
fn broadcast(number: u16) -> u64 {
    u64::from(number) * 0x0001_0001_0001_0001
}

/// Sets the number in one lane.
#[inline]
fn set(word: &mut u64, at: usize, number: u16) {
    let shift = at % LANES * 16;
    *word = (*word & !(0xffff << shift)) + (u64::from(number) << shift);
}

#[inline]
fn get(word: u64, at: usize) -> u16 {
    (word >> (at % LANES * 16)) as u16
}

/// Narrow procs of no job: more than can be free.
const NO_JOB: u16 = 0x7fff;

/// Procs in place of a started job's: more than can be free.
const STARTED: u32 = u32::MAX;

/// Waiting jobs in the order of the policy.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    /// Narrow copies of `waiting`; behind its end, [`NO_JOB`].
    blocks: Vec<Block>,
    /// Bits that processor counts lose in their narrow copies.
    procs_shift: u32,
    /// Sort keys, least first; empty under FCFS.
    keys: Vec<f64>,
    /// Position of the first waiting job; those before it have started.
    head: usize,
    /// Number of positions behind the head whose job has started.
    started: usize,
    /// Buffer for sorting.
    scratch: Vec<(f64, Waiting)>,
}

impl Queue {
    /// An empty queue for jobs of at most `procs_max` procs.
    pub(crate) fn new(procs_max: u32) -> Queue {
        let bits = u32::BITS - procs_max.leading_zeros();
        Queue {
            waiting: Vec::new(),
            blocks: Vec::new(),
            // 14 bits remain, so that every narrow count is less than NO_JOB.
            procs_shift: bits.saturating_sub(14),
            keys: Vec::new(),
            head: 0,
            started: 0,
            scratch: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() - self.head - self.started
    }

    /// The jobs in queue order.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.waiting[self.head..].iter().filter(|waiting| waiting.procs != STARTED).map(|waiting| waiting.job)
    }

    /// Position of the first job; there is one only if [`Queue::len`] is not 0.
    #[inline]
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    #[inline]
    pub(crate) fn job(&self, at: usize) -> JobId {
        self.waiting[at].job
    }

    #[inline]
    pub(crate) fn procs(&self, at: usize) -> u32 {
        self.waiting[at].procs
    }

    #[inline]
    pub(crate) fn estimate_s(&self, at: usize) -> f64 {
        self.waiting[at].estimate_s
    }

    /// Inserts an arriving job and returns its position.
    #[inline(always)]
    pub(crate) fn insert<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) -> usize {
        let waiting = Waiting { job, procs: cluster.procs(job), estimate_s: cluster.estimate_s(job) };
        let end = self.waiting.len();
        if end == self.blocks.len() * LANES {
            self.blocks.push(Block { procs: broadcast(NO_JOB), seconds: 0 });
        }
        if order.is_fcfs() {
            self.waiting.push(waiting);
            self.narrow(end, waiting);
            return end;
        }
        let key = order.key(cluster, job);
        let at = self.head + self.keys[self.head..].partition_point(|&other| other <= key);
        self.keys.insert(at, key);
        self.waiting.insert(at, waiting);
        self.narrow_from(at);
        at
    }

    /// Sorts the queue if the keys of the order change with time.
    #[inline]
    pub(crate) fn sort<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        if order.changes() {
            self.sort_by_keys(order, cluster);
        }
    }

    fn sort_by_keys<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        self.drop_started();
        self.scratch.clear();
        self.scratch.extend(self.waiting.iter().map(|&waiting| (order.key(cluster, waiting.job), waiting)));
        self.scratch.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.job.cmp(&b.1.job)));
        for (at, &(key, waiting)) in self.scratch.iter().enumerate() {
            (self.keys[at], self.waiting[at]) = (key, waiting);
        }
        self.narrow_from(0);
    }

    /// Removes the first job.
    #[inline]
    pub(crate) fn pop_head(&mut self) {
        self.head += 1;
        while self.started > 0 && self.waiting[self.head].procs == STARTED {
            self.head += 1;
            self.started -= 1;
        }
        if self.head == self.waiting.len() {
            self.truncate(0);
            self.head = 0;
        }
    }

    /// The position behind the last.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the job at a position may overtake within `reach`.
    #[inline]
    pub(crate) fn reaches(&self, at: usize, reach: &Reach) -> bool {
        let Waiting { procs, estimate_s, .. } = self.waiting[at];
        (procs <= reach.free) & ((reach.now_s + estimate_s <= reach.until_s) | (procs <= reach.extra))
    }

    /// The bounds of [`Queue::next_candidate`].
    #[inline]
    pub(crate) fn bounds(&self, reach: Reach) -> Bounds {
        let mut bounds = Bounds {
            reach,
            least: 0,
            free: 0,
            extra: 0,
            // A second more than is left: longer jobs are also too long in exact arithmetic.
            left_s: broadcast(narrow_s(reach.until_s - reach.now_s + 1.0)) + TOPS,
        };
        self.tighten(&mut bounds, reach.free, reach.extra);
        bounds
    }

    /// Changes the procs that are free and the extra procs.
    #[inline]
    pub(crate) fn tighten(&self, bounds: &mut Bounds, free: u32, extra: u32) {
        (bounds.reach.free, bounds.reach.extra) = (free, extra);
        let narrow = |procs: u32| broadcast((procs >> self.procs_shift) as u16);
        // No job fits if the floor is not less than the free procs. Extra procs above the free procs have no effect. So
        // no narrow number overflows.
        bounds.least = narrow(bounds.reach.floor.min(free) + 1);
        bounds.free = narrow(free) + TOPS;
        bounds.extra = narrow(extra.min(free)) + TOPS;
    }

    /// The first position from `from` on, behind the head, whose job may overtake within some bounds.
    #[inline(always)]
    pub(crate) fn next_candidate(&self, from: usize, bounds: &Bounds) -> Option<usize> {
        if bounds.reach.floor >= bounds.reach.free {
            return None;
        }
        // Excludes the positions of the first block that are before `from`.
        let mut wanted = TOPS << (from % LANES * 16);
        let mut at = from - from % LANES;
        for &Block { procs, seconds } in self.blocks.get(from / LANES..)? {
            // Without branches, because a single condition predicts badly whether a job may start.
            let fits = ((procs + TOPS) - bounds.least) & (bounds.free - procs);
            let mut some = fits & ((bounds.left_s - seconds) | (bounds.extra - procs)) & wanted;
            wanted = TOPS;
            while some != 0 {
                let at = at + some.trailing_zeros() as usize / 16;
                if self.reaches(at, &bounds.reach) {
                    return Some(at);
                }
                some &= some - 1;
            }
            at += LANES;
        }
        None
    }

    /// Removes a started job behind the head. Positions stay the same.
    #[inline]
    pub(crate) fn take(&mut self, at: usize) {
        self.waiting[at].procs = STARTED;
        set(&mut self.blocks[at / LANES].procs, at, NO_JOB);
        self.started += 1;
    }

    /// Removes the positions of started jobs if there are many. Positions change.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.started + self.head > 16 + self.len() {
            self.drop_started();
        }
    }

    #[inline]
    fn narrow(&mut self, at: usize, waiting: Waiting) {
        let block = &mut self.blocks[at / LANES];
        let procs = if waiting.procs == STARTED { NO_JOB } else { (waiting.procs >> self.procs_shift) as u16 };
        set(&mut block.procs, at, procs);
        set(&mut block.seconds, at, narrow_s(waiting.estimate_s));
    }

    /// Writes the narrow copies from a position on.
    fn narrow_from(&mut self, at: usize) {
        for at in at..self.waiting.len() {
            let waiting = self.waiting[at];
            self.narrow(at, waiting);
        }
    }

    /// Drops the positions from `len` on.
    #[inline]
    fn truncate(&mut self, len: usize) {
        self.waiting.truncate(len);
        self.keys.truncate(len);
        self.blocks.truncate(len.div_ceil(LANES));
        if let Some(last) = self.blocks.last_mut()
            && !len.is_multiple_of(LANES)
        {
            last.procs |= broadcast(NO_JOB) << (len % LANES * 16);
        }
    }

    #[inline(never)]
    fn drop_started(&mut self) {
        let mut to = 0;
        for from in self.head..self.waiting.len() {
            let waiting = self.waiting[from];
            if waiting.procs == STARTED {
                continue;
            }
            self.waiting[to] = waiting;
            let Block { procs, seconds } = self.blocks[from / LANES];
            let block = &mut self.blocks[to / LANES];
            set(&mut block.procs, to, get(procs, from));
            set(&mut block.seconds, to, get(seconds, from));
            if !self.keys.is_empty() {
                self.keys[to] = self.keys[from];
            }
            to += 1;
        }
        self.truncate(to);
        (self.head, self.started) = (0, 0);
    }
}

/// A duration in 16 bits, monotonic: a longer duration has no smaller number. Durations below 0 count as 0, those above
/// a century as a century.
#[inline]
fn narrow_s(duration_s: f64) -> u16 {
    /// Seconds above which all durations have the same number.
    const LONG_S: f64 = 4e9;
    let bounded = if duration_s < LONG_S { duration_s } else { LONG_S };
    let positive = if bounded > 0.0 { bounded } else { 0.0 };
    // A float from 1 on: 5 bits of its exponent and the first 10 bits of its fraction.
    let bits = (positive as f32 + 1.0).to_bits();
    ((bits - 1.0_f32.to_bits()) >> 13) as u16
}

/// Conditions for overtaking at the top gear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Jobs of at most this number of procs may be skipped.
    pub(crate) floor: u32,
    /// Free procs.
    pub(crate) free: u32,
    /// Procs that a job may hold beyond `until_s`.
    pub(crate) extra: u32,
    pub(crate) now_s: f64,
    /// Latest estimated end of a job that needs more than `extra` procs (s).
    pub(crate) until_s: f64,
}

/// A [`Reach`] in narrow numbers, with a copy in every lane. The highest bit of each minuend is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    reach: Reach,
    least: u64,
    free: u64,
    extra: u64,
    left_s: u64,
}

#[cfg(test)]
mod tests {
    use super::narrow_s;

    #[test]
    fn narrow_durations_keep_their_order() {
        let durations = [-3.0, 0.0, 0.5, 1.0, 59.0, 60.0, 3600.0, 3605.0, 86_400.0, 1e7, 3.9e9, 5e9, f64::INFINITY];
        for pair in durations.windows(2) {
            assert!(narrow_s(pair[0]) <= narrow_s(pair[1]), "{pair:?}");
        }
        assert!(narrow_s(60.0) < narrow_s(61.0));
        assert!(narrow_s(36_000.0) < narrow_s(36_100.0));
        assert!(narrow_s(0.0) == 0 && narrow_s(f64::INFINITY) < 0x8000);
    }
}
