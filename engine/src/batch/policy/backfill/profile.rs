//! Free resources over future time: those that running jobs and reservations leave.
use std::fmt::Debug;
use std::ops::{AddAssign, Neg};

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

    /// The earliest start of a job that has the place `own` and needs the amount of `own` in any place: up to the present
    /// start. Only the hole around the present place and holes with a step that has risen above its floor are considered,
    /// because no other hole has become longer.
    pub(crate) fn earlier(&self, now_s: f64, duration_s: f64, own: &Held<A>) -> Option<f64> {
        let need = own.amount;
        let mut from = self.head;
        while let Some(risen) = self.next_risen(from, need, need).filter(|risen| self.begins_s[*risen] < own.from_s) {
            let start_s = self.begin_of_hole(risen, need).max(now_s);
            match self.first_short(risen + 1, own.from_s.min(start_s + duration_s), need) {
                Some(short) => from = short + 1,
                None if self.is_free_behind(own, start_s + duration_s) => return Some(start_s),
                None => break,
            }
        }
        if own.from_s + duration_s <= own.until_s {
            return Some(own.from_s);
        }
        // Behind the place, the job may have room for a longer duration.
        let before = self.begins_s.partition_point(|begin_s| *begin_s < own.from_s) - 1;
        let hole_s = if self.free[before].covers(need) { self.begin_of_hole(before, need) } else { own.from_s };
        let start_s = hole_s.max(now_s);
        self.is_free_behind(own, start_s + duration_s).then_some(start_s)
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

    /// Whether the amount of a place is free from its end up to `end_s`.
    fn is_free_behind(&self, own: &Held<A>, end_s: f64) -> bool {
        end_s <= own.until_s || {
            let at = self.begins_s.partition_point(|begin_s| *begin_s <= own.until_s) - 1;
            self.first_short(at, end_s, own.amount).is_none()
        }
    }

    /// Whether a step that begins before an instant may have become free enough for a job that needs an amount from `least` to
    /// `most`.
    pub(crate) fn has_risen(&self, (least, most): (A, A), before_s: f64) -> bool {
        self.next_risen(self.head, least, most).is_some_and(|risen| self.begins_s[risen] < before_s)
    }

    /// [`Profile::has_risen`] in the place of the job, together with what the job holds there: at another gear it may need more.
    pub(crate) fn has_risen_within(&self, own: &Held<A>, (least, most): (A, A)) -> bool {
        let position = |at_s: f64| self.begins_s[..self.risen].partition_point(|begin_s| *begin_s < at_s);
        let first = position(own.from_s).saturating_sub(1).max(self.head);
        let last = position(own.until_s).max(first);
        let (free, floors) = (&self.free[first..last], &self.floors[first..last]);
        let together = |mut amount: A| {
            amount += own.amount;
            amount
        };
        free.iter()
            .zip(floors)
            .any(|(free, floor)| free != floor && together(*free).covers(least) && !together(*floor).covers(most))
    }

    /// The first step from a position on that has risen, had less than `most` and has at least `least`.
    fn next_risen(&self, from: usize, least: A, most: A) -> Option<usize> {
        let from = from.min(self.risen);
        let (free, floors) = (&self.free[from..self.risen], &self.floors[from..self.risen]);
        let risen = |(free, floor): (&A, &A)| free.covers(least) & !floor.covers(most) & (free != floor);
        let (blocks, floors_of_blocks) = (free.as_chunks::<LANES>().0, floors.as_chunks::<LANES>().0);
        // Without branches, so that the compiler compares several steps at once.
        let any = |(free, floors): (&[A; LANES], &[A; LANES])| {
            (0..LANES).fold(false, |any, at| any | risen((&free[at], &floors[at])))
        };
        let block = blocks.iter().zip(floors_of_blocks).position(any).unwrap_or(blocks.len()) * LANES;
        free[block..].iter().zip(&floors[block..]).position(risen).map(|at| from + block + at)
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
        self.add(held.from_s, held.until_s, -held.amount);
    }

    /// A job no longer holds an amount.
    pub(crate) fn give_back(&mut self, held: &Held<A>) {
        let end = self.add(held.from_s, held.until_s, held.amount);
        self.risen = self.risen.max(end);
    }

    /// Adds to the free amount in `[from_s, until_s)`. The position behind the changed steps.
    fn add(&mut self, from_s: f64, until_s: f64, delta: A) -> usize {
        let from_s = from_s.max(self.begins_s[self.head]);
        if until_s <= from_s {
            return self.head;
        }
        let first = self.cut(from_s);
        let last = self.cut(until_s);
        for (free, floor) in self.free[first..last].iter_mut().zip(&mut self.floors[first..last]) {
            *free += delta;
            *floor = floor.least(*free);
        }
        // The amounts on both sides of an end may have become equal.
        self.join(last);
        self.join(first);
        last.min(self.free.len())
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

    #[test]
    fn the_earliest_hole_is_found() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.add(0.0, 100.0, -6); // 4 free until 100
        profile.add(50.0, 80.0, -4); // none free from 50 to 80
        assert_eq!(profile.earliest(0.0, NEVER, 4, 50.0), Some(0.0));
        assert_eq!(profile.earliest(0.0, NEVER, 4, 51.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 5, 1.0), Some(100.0));
        assert_eq!(profile.earliest(60.0, NEVER, 1, 0.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, NEVER, 11, 1.0), None);
    }

    #[test]
    fn adding_and_subtracting_the_same_amount_leaves_no_steps() {
        let mut profile = Profile::new(0.0, 10, Vec::new());
        profile.add(5.0, 9.0, -3);
        profile.add(7.0, 12.0, -3);
        assert_eq!(profile.free.len() - profile.head, 5);
        profile.add(7.0, 12.0, 3);
        profile.add(5.0, 9.0, 3);
        assert_eq!(profile.free.len() - profile.head, 1);
        profile.add(5.0, 9.0, -3);
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
        profile.take(&Held { from_s: 0.0, until_s: 100.0, amount: 8 });
        let own = Held { from_s: 100.0, until_s: 150.0, amount: 5 };
        profile.take(&own);
        profile.settle(&[]);
        assert!(!profile.has_risen((5, 5), 100.0));
        profile.give_back(&Held { from_s: 60.0, until_s: 100.0, amount: 8 });
        // The hole of 40 s reaches the place of the job, which it leaves.
        assert!(
            profile.has_risen((5, 5), 100.0) && !profile.has_risen((2, 2), NEVER) && !profile.has_risen((5, 5), 60.0)
        );
        assert_eq!(profile.earlier(0.0, 50.0, &own), Some(60.0));
        // For a longer time, too: nothing is taken behind the place.
        assert_eq!(profile.earlier(0.0, 500.0, &own), Some(60.0));
        profile.take(&Held { from_s: 150.0, until_s: 160.0, amount: 6 });
        assert_eq!(profile.earlier(0.0, 90.0, &own), Some(60.0));
        assert_eq!(profile.earlier(0.0, 91.0, &own), None);
        // Another job takes the hole: the job keeps its place.
        profile.take(&Held { from_s: 70.0, until_s: 100.0, amount: 6 });
        assert_eq!(profile.earlier(0.0, 50.0, &own), Some(100.0));
        // Jobs that were tested before another one left a place are tested again.
        let left = Held { from_s: 20.0, until_s: 60.0, amount: 1 };
        profile.settle(&[left]);
        assert!(profile.has_risen((2, 2), NEVER) && !profile.has_risen((3, 3), NEVER));
    }
}
