//! Free resources over future time: those that running jobs and reservations leave.
use std::fmt::Debug;
use std::ops::{AddAssign, Neg, Range};

use crate::batch::platform::pools::{Amounts, POOLS_MAX};

/// Number of steps that are compared at once.
const LANES: usize = 8;

/// An amount of counted resources: procs, or procs and watts.
pub(crate) trait Amount: Copy + Debug + PartialEq + AddAssign + Neg<Output = Self> {
    /// Less than every need.
    const LEAST: Self;

    /// Whether the amount is enough for a need.
    fn covers(self, need: Self) -> bool;

    /// The lesser of two amounts, of each resource.
    fn least(self, other: Self) -> Self;
}

/// Procs.
impl Amount for i32 {
    const LEAST: i32 = i32::MIN;

    #[inline]
    fn covers(self, need: i32) -> bool {
        self >= need
    }

    #[inline]
    fn least(self, other: i32) -> i32 {
        self.min(other)
    }
}

/// Amounts of pools.
impl Amount for Amounts {
    const LEAST: Amounts = Amounts([i64::MIN; POOLS_MAX]);

    #[inline]
    fn covers(self, need: Amounts) -> bool {
        // A pool of which nothing is needed may be held by more than it has: a job has outlived its reservation.
        self.0.iter().zip(&need.0).all(|(free, need)| *need == 0 || free >= need)
    }

    fn least(self, other: Amounts) -> Amounts {
        Amounts(std::array::from_fn(|pool| self.0[pool].min(other.0[pool])))
    }
}

impl AddAssign for Amounts {
    #[inline]
    fn add_assign(&mut self, other: Amounts) {
        self.0.iter_mut().zip(other.0).for_each(|(amount, more)| *amount += more);
    }
}

impl Neg for Amounts {
    type Output = Amounts;

    #[inline]
    fn neg(self) -> Amounts {
        Amounts(self.0.map(|amount| -amount))
    }
}

/// An amount that a job holds in `[from_s, until_s)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<A> {
    pub(crate) from_s: f64,
    pub(crate) until_s: f64,
    pub(crate) amount: A,
}

/// Need and duration of a job at one of its gears, and the hole that [`Profile::earliest_of`] is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size<A> {
    pub(crate) need: A,
    pub(crate) duration_s: f64,
    /// Begin of the hole (s).
    pub(crate) hole_s: f64,
}

/// A step function from the present to infinity.
///
/// Each step also has a floor: the least free amount since [`Profile::settle`]. If a job had no place before an instant then,
/// it has one now only if the free amount of a step before that instant has risen from less than the job needs to enough.
#[derive(Debug, Clone)]
pub(crate) struct Profile<A> {
    /// Begins of the steps (s), ascending. The last step holds for ever.
    begins_s: Vec<f64>,
    free: Vec<A>,
    floors: Vec<A>,
    /// The present step: those before it have passed.
    head: usize,
    /// No step from this one on has risen above its floor.
    risen: usize,
}

impl<A: Amount> Profile<A> {
    /// A profile without reservations. `rises`: instants (s), and the amounts that become free at them.
    pub(crate) fn new(now_s: f64, mut free: A, mut rises: Vec<(f64, A)>) -> Profile<A> {
        rises.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut begins_s, mut frees) = (vec![now_s], vec![free]);
        for (at_s, more) in rises {
            free += more;
            if at_s > begins_s[begins_s.len() - 1] {
                begins_s.push(at_s);
                frees.push(free);
            } else {
                *frees.last_mut().expect("there is a first step") = free;
            }
        }
        let steps = frees.len();
        Profile { begins_s, free: frees, floors: vec![A::LEAST; steps], head: 0, risen: steps }
    }

    /// Passes over the steps that have ended; the present step begins now.
    pub(crate) fn trim(&mut self, now_s: f64) {
        while self.begins_s.get(self.head + 1).is_some_and(|begin_s| *begin_s <= now_s) {
            self.head += 1;
        }
        self.begins_s[self.head] = self.begins_s[self.head].max(now_s);
        if self.head > self.begins_s.len() / 2 {
            self.begins_s.drain(..self.head);
            self.free.drain(..self.head);
            self.floors.drain(..self.head);
            self.risen = self.risen.saturating_sub(self.head);
            self.head = 0;
        }
        self.risen = self.risen.max(self.head);
    }

    /// The earliest start in `[from_s, latest_s]`, from now on, from which `need` is free for `duration_s`. With a duration of 0,
    /// `need` must be free at the start.
    pub(crate) fn earliest(&self, from_s: f64, latest_s: f64, need: A, duration_s: f64) -> Option<f64> {
        let mut start_s = from_s;
        let mut first = self.head + self.begins_s[self.head + 1..].partition_point(|begin_s| *begin_s <= from_s);
        while start_s <= latest_s {
            let end_s = start_s + duration_s;
            let end = (first + self.begins_s[first..].partition_point(|begin_s| *begin_s < end_s)).max(first + 1);
            // The last step with too little: shorter holes before it are skipped.
            let Some(last) = self.free[first..end].iter().rposition(|free| !free.covers(need)) else {
                return Some(start_s);
            };
            first += last + 1;
            start_s = *self.begins_s.get(first)?;
        }
        None
    }

    /// The earliest start of a job that has the place `own` and needs the same in any place: up to the present start. Only holes
    /// with a step that has risen above its floor are considered, because no other hole has become longer.
    pub(crate) fn earlier(&self, now_s: f64, duration_s: f64, own: &Held<A>) -> f64 {
        let need = own.amount;
        let mut from = self.head;
        while let Some(risen) = self.next_risen(from, own.from_s, need) {
            let start_s = self.begin_of_hole(risen, need).max(now_s);
            match self.first_short(risen + 1, own.from_s.min(start_s + duration_s), need) {
                Some(short) => from = short + 1,
                None => return start_s,
            }
        }
        own.from_s
    }

    /// The earliest start in `[from_s, latest_s]` of a job that may have one of several sizes, with the size: of equal starts, the
    /// last. Needs do not descend, durations do not ascend.
    pub(crate) fn earliest_of(&self, from_s: f64, latest_s: f64, sizes: &mut [Size<A>]) -> Option<(usize, f64)> {
        let first = self.head + self.begins_s[self.head + 1..].partition_point(|begin_s| *begin_s <= from_s);
        let ends_s = self.begins_s[first + 1..].iter().copied().chain([f64::INFINITY]);
        // The first `open` sizes have a hole, long enough for one of them at `full_s`; those from `count` on have no earlier start.
        let (mut open, mut count, mut full_s, mut best) = (0, sizes.len(), f64::INFINITY, None);
        let (mut least, mut more) = (A::LEAST, sizes.first().map(|size| size.need));
        let mut begin_s = from_s;
        for (free, end_s) in self.free[first..].iter().zip(ends_s) {
            if !free.covers(least) || more.is_some_and(|more| free.covers(more)) {
                let before = open;
                // A hole that begins later is of no use.
                count = if begin_s > latest_s || best.is_some() { count.min(open) } else { count };
                open = sizes[..count].iter().take_while(|size| free.covers(size.need)).count();
                sizes[before.min(open)..open].iter_mut().for_each(|size| size.hole_s = begin_s);
                let fulls_s = sizes[..open].iter().map(|size| size.hole_s + size.duration_s);
                full_s = fulls_s.fold(f64::INFINITY, |least_s, s| if s < least_s { s } else { least_s });
                least = open.checked_sub(1).map_or(A::LEAST, |last| sizes[last].need);
                more = sizes[..count].get(open).map(|size| size.need);
            }
            if end_s >= full_s
                && let Some(full) = sizes[..open].iter().position(|size| size.hole_s + size.duration_s <= end_s)
            {
                let start_s = sizes[full].hole_s;
                let equal = sizes[full..open].iter().take_while(|size| size.hole_s == start_s).count();
                best = Some((full + equal - 1, start_s));
                // Those before have holes that began earlier.
                count = sizes[..full].iter().take_while(|size| size.hole_s < start_s).count();
                (open, least, more) = (count, count.checked_sub(1).map_or(A::LEAST, |last| sizes[last].need), None);
                let fulls_s = sizes[..open].iter().map(|size| size.hole_s + size.duration_s);
                full_s = fulls_s.fold(f64::INFINITY, f64::min);
            }
            if open == 0 && (end_s > latest_s || best.is_some()) {
                break;
            }
            begin_s = end_s;
        }
        best
    }

    /// Begin of the hole that has a step with enough (s).
    fn begin_of_hole(&self, at: usize, need: A) -> f64 {
        let first = self.free[self.head..at]
            .iter()
            .rposition(|free| !free.covers(need))
            .map_or(self.head, |last| self.head + last + 1);
        self.begins_s[first]
    }

    /// The first step from a position on that begins before `end_s` and has too little.
    fn first_short(&self, from: usize, end_s: f64, need: A) -> Option<usize> {
        let steps = self.begins_s[from..].iter().zip(&self.free[from..]);
        let before = steps.take_while(|(begin_s, _)| **begin_s < end_s);
        before.map(|(_, free)| free).position(|free| !free.covers(need)).map(|at| from + at)
    }

    /// Whether a step that begins before an instant has become free enough for a need.
    pub(crate) fn has_risen(&self, need: A, before_s: f64) -> bool {
        self.next_risen(self.head, before_s, need).is_some()
    }

    /// The first step from a position on that begins before `before_s` and has risen to a need.
    fn next_risen(&self, from: usize, before_s: f64, need: A) -> Option<usize> {
        let from = from.min(self.risen);
        let begins_s = &self.begins_s[from..self.risen];
        let (free, floors) = (&self.free[from..self.risen], &self.floors[from..self.risen]);
        let risen = |(free, floor): (&A, &A)| free.covers(need) & !floor.covers(need);
        let (blocks, floors_of_blocks) = (free.as_chunks::<LANES>().0, floors.as_chunks::<LANES>().0);
        // Without branches, so that the compiler compares several steps at once.
        let any = |(free, floors): (&[A; LANES], &[A; LANES])| {
            (0..LANES).fold(false, |any, at| any | risen((&free[at], &floors[at])))
        };
        let blocks = blocks.iter().zip(floors_of_blocks).zip(begins_s.iter().step_by(LANES));
        let mut block = 0;
        for (steps, begin_s) in blocks {
            if *begin_s >= before_s {
                return None;
            }
            if any(steps) {
                break;
            }
            block += LANES;
        }
        let at = block + free[block..].iter().zip(&floors[block..]).position(risen)?;
        (begins_s[at] < before_s).then_some(from + at)
    }

    /// All jobs have been tested with the present free amounts, except for what jobs have `left` during the tests.
    pub(crate) fn settle(&mut self, left: &[Held<A>]) {
        self.floors.copy_from_slice(&self.free);
        self.risen = self.head;
        for &Held { from_s, until_s, amount } in left {
            let first = self.begins_s.partition_point(|begin_s| *begin_s <= from_s).max(1) - 1;
            let end = self.begins_s.partition_point(|begin_s| *begin_s < until_s).max(first);
            self.floors[first..end].iter_mut().for_each(|floor| *floor += -amount);
            self.risen = self.risen.max(end);
        }
    }

    /// A job holds an amount.
    pub(crate) fn take(&mut self, held: &Held<A>) {
        let steps = self.lift(&Held { amount: -held.amount, ..*held });
        for (free, floor) in self.free[steps.clone()].iter().zip(&mut self.floors[steps.clone()]) {
            *floor = floor.least(*free);
        }
        self.join(steps.end);
        self.join(steps.start);
    }

    /// A job no longer holds an amount.
    pub(crate) fn give_back(&mut self, held: &Held<A>) {
        let steps = self.lift(held);
        self.leave(steps);
    }

    /// The amount of a job's place counts as free, until [`Profile::lower`] or [`Profile::leave`]. Returns the steps of the place.
    pub(crate) fn lift(&mut self, held: &Held<A>) -> Range<usize> {
        let from_s = held.from_s.max(self.begins_s[self.head]);
        if held.until_s <= from_s {
            return self.head..self.head;
        }
        let first = self.cut(from_s);
        let steps = first..self.cut(held.until_s);
        self.free[steps.clone()].iter_mut().for_each(|free| *free += held.amount);
        steps
    }

    /// A job whose amount was lifted keeps its place.
    pub(crate) fn lower(&mut self, steps: Range<usize>, amount: A) {
        self.free[steps].iter_mut().for_each(|free| *free += -amount);
    }

    /// A job whose amount was lifted leaves its place.
    pub(crate) fn leave(&mut self, steps: Range<usize>) {
        // The amounts on both sides of an end may have become equal.
        self.join(steps.end);
        self.join(steps.start);
        self.risen = self.risen.max(steps.end.min(self.free.len()));
    }

    /// Position of the step that begins at an instant, which is inserted if there is none.
    fn cut(&mut self, at_s: f64) -> usize {
        let at = self.head + self.begins_s[self.head..].partition_point(|begin_s| *begin_s < at_s);
        if self.begins_s.get(at).is_none_or(|begin_s| *begin_s != at_s) {
            self.begins_s.insert(at, at_s);
            self.free.insert(at, self.free[at - 1]);
            self.floors.insert(at, self.floors[at - 1]);
            self.risen += usize::from(at <= self.risen);
        }
        at
    }

    /// Joins a step with the one before if both have the same free amount.
    fn join(&mut self, at: usize) {
        if at > self.head && at < self.free.len() && self.free[at - 1] == self.free[at] {
            self.floors[at - 1] = self.floors[at - 1].least(self.floors[at]);
            self.begins_s.remove(at);
            self.free.remove(at);
            self.floors.remove(at);
            self.risen -= usize::from(at < self.risen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f64 = f64::INFINITY;

    fn held(from_s: f64, until_s: f64, amount: i32) -> Held<i32> {
        Held { from_s, until_s, amount }
    }

    #[test]
    fn the_earliest_hole_is_found() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.take(&held(0.0, 100.0, 6)); // 4 free until 100
        profile.take(&held(50.0, 80.0, 4)); // none free from 50 to 80
        assert_eq!(profile.earliest(0.0, NEVER, 4, 50.0), Some(0.0));
        assert_eq!(profile.earliest(0.0, NEVER, 4, 51.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 5, 1.0), Some(100.0));
        assert_eq!(profile.earliest(60.0, NEVER, 1, 0.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 11, 1.0), None);
    }

    #[test]
    fn the_earliest_of_several_sizes_is_that_of_separate_searches() {
        let mut draws = crate::rng::Philox::stream(7, crate::rng::Purpose::Deferral);
        let mut below = |end: i32| (draws.uniform() * f64::from(end)) as i32;
        for _ in 0..2000 {
            let mut profile = Profile::new(0.0, 20, Vec::new());
            for _ in 0..below(12) {
                let from_s = f64::from(below(40));
                profile.take(&held(from_s, from_s + f64::from(1 + below(20)), 1 + below(4)));
            }
            let (mut need, mut duration_s) = (1 + below(8), 4.0 + f64::from(below(30)));
            let mut sizes = Vec::new();
            for _ in 0..1 + below(6) {
                sizes.push(Size { need, duration_s, hole_s: NEVER });
                (need, duration_s) = (need + below(5), f64::max(0.0, duration_s - f64::from(below(6))));
            }
            let (from_s, latest_s) = (f64::from(below(10)), if below(2) == 0 { NEVER } else { f64::from(below(50)) });
            let mut expected: Option<(usize, f64)> = None;
            for (at, size) in sizes.iter().enumerate().rev() {
                let start_s = profile.earliest(from_s, latest_s, size.need, size.duration_s);
                if let Some(start_s) = start_s.filter(|start_s| expected.is_none_or(|(_, best_s)| *start_s < best_s)) {
                    expected = Some((at, start_s));
                }
            }
            assert_eq!(profile.earliest_of(from_s, latest_s, &mut sizes), expected, "{profile:?} {sizes:?}");
        }
    }

    #[test]
    fn adding_and_subtracting_the_same_amount_leaves_no_steps() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.take(&held(5.0, 9.0, 3));
        profile.take(&held(7.0, 12.0, 3));
        assert_eq!(profile.free.len() - profile.head, 5);
        profile.give_back(&held(7.0, 12.0, 3));
        profile.give_back(&held(5.0, 9.0, 3));
        assert_eq!(profile.free.len() - profile.head, 1);
        profile.take(&held(5.0, 9.0, 3));
        profile.trim(6.0);
        assert_eq!(profile.earliest(6.0, NEVER, 8, 1.0), Some(9.0));
        assert_eq!(profile.free.len() - profile.head, 2);
    }

    #[test]
    fn releases_of_one_instant_are_one_step_and_past_ones_are_free_now() {
        let profile = Profile::new(5.0, 1, vec![(9.0, 2), (3.0, 4), (9.0, 1), (5.0, 8)]);
        assert_eq!((profile.begins_s, profile.free), (vec![5.0, 9.0], vec![13, 16]));
    }

    #[test]
    fn a_job_moves_only_to_a_hole_that_has_risen() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.take(&held(0.0, 100.0, 8));
        let own = held(100.0, 150.0, 5);
        profile.take(&own);
        profile.settle(&[]);
        assert!(!profile.has_risen(5, 100.0));
        profile.give_back(&held(60.0, 100.0, 8));
        // The hole of 40 s reaches the place of the job, which it leaves.
        assert!(profile.has_risen(5, 100.0) && !profile.has_risen(2, NEVER) && !profile.has_risen(5, 60.0));
        assert_eq!(profile.earlier(0.0, 50.0, &own), 60.0);
        // Another job takes the hole: the job keeps its place.
        profile.take(&held(70.0, 100.0, 6));
        assert_eq!(profile.earlier(0.0, 50.0, &own), 100.0);
        // Jobs that were tested before another one left a place are tested again.
        let left = held(20.0, 60.0, 1);
        profile.settle(&[left]);
        assert!(profile.has_risen(2, NEVER) && !profile.has_risen(3, NEVER));
    }
}
