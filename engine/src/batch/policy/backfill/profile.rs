//! Free resources over future time: those that running jobs and reservations leave.
use std::fmt::Debug;
use std::ops::{AddAssign, Neg, Range};

use crate::batch::platform::pools::{Amounts, Needs, POOLS_MAX};

/// Number of steps that are compared at once.
const LANES: usize = 8;

/// An amount of counted resources: procs, or procs and watts.
pub(crate) trait Amount: Copy + Debug + PartialEq + AddAssign + Neg<Output = Self> {
    /// Less than every need.
    const LEAST: Self;

    /// The form of a need that is compared with the amounts of many steps.
    type Need: Copy;

    /// Whether the amount is enough for a need.
    fn covers(self, need: Self) -> bool;

    /// The amount as a need.
    fn need(self) -> Self::Need;

    /// [`Amount::covers`] for a need that is compared with many amounts.
    fn is_enough(&self, need: &Self::Need) -> bool;
}

/// Procs.
impl Amount for i32 {
    type Need = i32;

    const LEAST: i32 = i32::MIN;

    #[inline]
    fn covers(self, need: i32) -> bool {
        self >= need
    }

    #[inline]
    fn need(self) -> i32 {
        self
    }

    #[inline]
    fn is_enough(&self, need: &i32) -> bool {
        self >= need
    }
}

/// Amounts of pools.
impl Amount for Amounts {
    type Need = Needs;

    const LEAST: Amounts = Amounts([i64::MIN; POOLS_MAX]);

    #[inline]
    fn covers(self, need: Amounts) -> bool {
        // A pool of which nothing is needed may be held by more than it has: a job has outlived its reservation.
        self.0.iter().zip(&need.0).all(|(free, need)| *need == 0 || free >= need)
    }

    fn need(self) -> Needs {
        let mut needs = Needs::NONE;
        let needed = self.0.into_iter().enumerate().filter(|(_, amount)| *amount != 0);
        needed.enumerate().for_each(|(at, (pool, amount))| needs.add(at, pool, amount as u64));
        needs
    }

    #[inline]
    fn is_enough(&self, need: &Needs) -> bool {
        // Nothing is also there of a pool that is held by more than it has.
        need.mask() == 0 || self.cover(*need)
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
#[derive(Debug, Clone)]
pub(crate) struct Profile<A> {
    /// Begins of the steps (s), ascending, then infinity: the end of the last step.
    begins_s: Vec<f64>,
    free: Vec<A>,
    /// The present step: those before it have passed.
    head: usize,
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
        begins_s.push(f64::INFINITY);
        Profile { begins_s, free: frees, head: 0 }
    }

    /// Passes over the steps that have ended; the present step begins now.
    pub(crate) fn trim(&mut self, now_s: f64) {
        while self.begins_s[self.head + 1] <= now_s {
            self.head += 1;
        }
        self.begins_s[self.head] = self.begins_s[self.head].max(now_s);
        if self.head > self.free.len() / 2 {
            self.begins_s.drain(..self.head);
            self.free.drain(..self.head);
            self.head = 0;
        }
    }

    /// The amount that is free now.
    pub(crate) fn free_now(&self) -> A {
        self.free[self.head]
    }

    /// The earliest start in `[from_s, latest_s]`, from now on, from which `need` is free for `duration_s`, or up to `until_s` if
    /// that is earlier. With a duration of 0, `need` must be free at the start.
    pub(crate) fn earliest(&self, from_s: f64, latest_s: f64, need: A, duration_s: f64, until_s: f64) -> Option<f64> {
        let (mut step, need) = (self.step_at(from_s), need.need());
        if from_s + duration_s >= until_s {
            // Every hole that is long enough reaches `until_s`.
            let end = step + self.begins_s[step..].partition_point(|begin_s| *begin_s < until_s);
            let last = self.free[step..end].iter().rposition(|free| !free.is_enough(&need));
            let start_s = last.map_or(from_s, |last| self.begins_s[step + last + 1]);
            return (start_s <= latest_s && start_s < until_s).then_some(start_s);
        }
        let mut first = step;
        let begin_of = |first: usize| if self.begins_s[first] > from_s { self.begins_s[first] } else { from_s };
        loop {
            // Steps that are all alike are passed at once.
            while let Some(steps) = self.free[step..].first_chunk::<LANES>() {
                let any = steps.iter().fold(false, |any, free| any | free.is_enough(&need));
                let all = steps.iter().fold(true, |all, free| all & free.is_enough(&need));
                if any != all {
                    break;
                }
                step += LANES;
                first = if all { first } else { step };
                let (start_s, end_s) = (begin_of(first), self.begins_s[step]);
                if start_s > latest_s {
                    return None;
                }
                if all && (end_s >= start_s + duration_s || end_s >= until_s) {
                    return Some(start_s);
                }
            }
            let end = self.free.len().min(step + LANES);
            if step == end {
                return None;
            }
            for free in &self.free[step..end] {
                step += 1;
                // An index without a branch: whether a step has enough is hard to predict.
                first = if free.is_enough(&need) { first } else { step };
                let (start_s, end_s) = (begin_of(first), self.begins_s[step]);
                if (end_s >= start_s + duration_s) | (end_s >= until_s) | (start_s > latest_s) {
                    if start_s > latest_s {
                        return None;
                    }
                    if first < step {
                        return Some(start_s);
                    }
                }
            }
        }
    }

    /// The earliest start in `[from_s, latest_s]` of a job that may have one of several sizes, with the size: of equal starts, the
    /// last. Needs do not descend, durations do not ascend.
    pub(crate) fn earliest_of(&self, from_s: f64, latest_s: f64, sizes: &mut [Size<A>]) -> Option<(usize, f64)> {
        let first = self.step_at(from_s);
        // The first `open` sizes have a hole, long enough for one of them at `full_s`; those from `count` on have no earlier start.
        let (mut open, mut count, mut full_s, mut best) = (0, sizes.len(), f64::INFINITY, None);
        let (mut least, mut more) = (A::LEAST, sizes.first().map(|size| size.need));
        let mut begin_s = from_s;
        for (free, &end_s) in self.free[first..].iter().zip(&self.begins_s[first + 1..]) {
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

    /// The step of an instant from now on.
    fn step_at(&self, at_s: f64) -> usize {
        let next = self.head + 1;
        // A search from now on needs no search for its first step.
        if at_s < self.begins_s[next] {
            return self.head;
        }
        self.head + self.begins_s[next..].partition_point(|begin_s| *begin_s <= at_s)
    }

    /// A job holds an amount.
    pub(crate) fn take(&mut self, held: &Held<A>) {
        self.give_back(&Held { amount: -held.amount, ..*held });
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
    }

    /// Position of the step that begins at an instant, which is inserted if there is none.
    fn cut(&mut self, at_s: f64) -> usize {
        let at = self.head + self.begins_s[self.head..].partition_point(|begin_s| *begin_s < at_s);
        if self.begins_s[at] != at_s {
            self.begins_s.insert(at, at_s);
            self.free.insert(at, self.free[at - 1]);
        }
        at
    }

    /// Joins a step with the one before if both have the same free amount.
    fn join(&mut self, at: usize) {
        if at > self.head && at < self.free.len() && self.free[at - 1] == self.free[at] {
            self.begins_s.remove(at);
            self.free.remove(at);
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
        assert_eq!(profile.earliest(0.0, NEVER, 4, 50.0, NEVER), Some(0.0));
        assert_eq!(profile.earliest(0.0, NEVER, 4, 51.0, NEVER), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 5, 1.0, NEVER), Some(100.0));
        assert_eq!(profile.earliest(60.0, NEVER, 1, 0.0, NEVER), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 11, 1.0, NEVER), None);
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
                let start_s = profile.earliest(from_s, latest_s, size.need, size.duration_s, NEVER);
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
        assert_eq!(profile.earliest(6.0, NEVER, 8, 1.0, NEVER), Some(9.0));
        assert_eq!(profile.free.len() - profile.head, 2);
    }

    #[test]
    fn releases_of_one_instant_are_one_step_and_past_ones_are_free_now() {
        let profile = Profile::new(5.0, 1, vec![(9.0, 2), (3.0, 4), (9.0, 1), (5.0, 8)]);
        assert_eq!((profile.begins_s, profile.free), (vec![5.0, 9.0, NEVER], vec![13, 16]));
    }

    #[test]
    fn the_place_of_a_job_is_free_for_its_earlier_start() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.take(&held(0.0, 100.0, 8));
        let own = held(100.0, 150.0, 5);
        profile.take(&own);
        let earlier = |profile: &Profile<i32>, need, duration_s| profile.earliest(0.0, 100.0, need, duration_s, 100.0);
        assert_eq!(earlier(&profile, 5, 50.0), Some(100.0));
        profile.give_back(&held(60.0, 100.0, 8));
        // The hole of 40 s reaches the place of the job, which it leaves.
        assert_eq!(earlier(&profile, 5, 50.0), Some(60.0));
        // Another job takes the end of the hole: only a shorter or a smaller job has an earlier place.
        profile.take(&held(70.0, 100.0, 6));
        let starts_s =
            [(5, 50.0), (5, 10.0), (4, 50.0), (2, 50.0)].map(|(need, duration_s)| earlier(&profile, need, duration_s));
        assert_eq!(starts_s, [Some(100.0), Some(60.0), Some(60.0), Some(0.0)]);
    }
}
