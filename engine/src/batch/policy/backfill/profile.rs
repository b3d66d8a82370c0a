//! Free resources over future time: those that running jobs and reservations leave.
use std::fmt::Debug;
use std::ops::{AddAssign, Neg};

use crate::batch::platform::pools::Amounts;

/// An amount of counted resources: procs, or procs and watts.
pub(crate) trait Amount: Copy + Debug + PartialEq + AddAssign + Neg<Output = Self> {
    /// Whether the amount is enough for a need.
    fn covers(self, need: Self) -> bool;
}

/// Procs.
impl Amount for i64 {
    #[inline]
    fn covers(self, need: i64) -> bool {
        self >= need
    }
}

/// Amounts of pools.
impl Amount for Amounts {
    #[inline]
    fn covers(self, need: Amounts) -> bool {
        // A pool of which nothing is needed may be held by more than it has: a job has outlived its reservation.
        self.0.iter().zip(&need.0).all(|(free, need)| *need == 0 || free >= need)
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

/// The free amount from an instant on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point<A> {
    at_s: f64,
    free: A,
}

/// A step function from the present to infinity.
#[derive(Debug, Clone)]
pub(crate) struct Profile<A> {
    /// Ascending by time; the first is at or before the present, the last holds for ever.
    points: Vec<Point<A>>,
}

impl<A: Amount> Profile<A> {
    pub(crate) fn new(now_s: f64, free: A) -> Profile<A> {
        Profile { points: vec![Point { at_s: now_s, free }] }
    }

    /// Removes the points that have passed.
    pub(crate) fn trim(&mut self, now_s: f64) {
        let past = self.points.partition_point(|p| p.at_s <= now_s);
        if past > 1 {
            self.points.drain(..past - 1);
        }
    }

    /// The earliest start in `[now_s, latest_s]` from which `need` is free for `duration_s`. With a duration of 0,
    /// `need` must be free at the start.
    pub(crate) fn earliest(&self, now_s: f64, latest_s: f64, need: A, duration_s: f64) -> Option<f64> {
        let mut start_s = now_s;
        // Whether `need` is free from `start_s` to the point of the iteration.
        let mut open = false;
        for (i, point) in self.points.iter().enumerate() {
            if !point.free.covers(need) {
                open = false;
                continue;
            }
            if !open {
                start_s = point.at_s.max(now_s);
                if start_s > latest_s {
                    return None;
                }
                open = true;
            }
            match self.points.get(i + 1) {
                Some(next) if next.at_s <= now_s || next.at_s < start_s + duration_s => {}
                _ => return Some(start_s),
            }
        }
        None
    }

    /// `more` becomes free from an instant on.
    pub(crate) fn raise(&mut self, from_s: f64, more: A) {
        let from = self.cut(from_s.max(self.points[0].at_s));
        for point in &mut self.points[from..] {
            point.free += more;
        }
    }

    /// Adds to the free amount in `[from_s, until_s)`.
    pub(crate) fn add(&mut self, from_s: f64, until_s: f64, delta: A) {
        let from_s = from_s.max(self.points[0].at_s);
        if until_s <= from_s {
            return;
        }
        let first = self.cut(from_s);
        let last = self.cut(until_s);
        for point in &mut self.points[first..last] {
            point.free += delta;
        }
        // The amounts on both sides of an end may have become equal.
        self.join(last);
        self.join(first);
    }

    /// Position of the point at an instant, which is inserted if there is none.
    fn cut(&mut self, at_s: f64) -> usize {
        let at = self.points.partition_point(|p| p.at_s < at_s);
        if self.points.get(at).is_none_or(|p| p.at_s != at_s) {
            let free = self.points[at - 1].free;
            self.points.insert(at, Point { at_s, free });
        }
        at
    }

    /// Removes a point that is no step.
    fn join(&mut self, at: usize) {
        if at > 0 && at < self.points.len() && self.points[at - 1].free == self.points[at].free {
            self.points.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_hole_is_found() {
        let mut profile = Profile::new(0.0, 10);
        profile.add(0.0, 100.0, -6); // 4 free until 100
        profile.add(50.0, 80.0, -4); // none free from 50 to 80
        assert_eq!(profile.earliest(0.0, f64::INFINITY, 4, 50.0), Some(0.0));
        assert_eq!(profile.earliest(0.0, f64::INFINITY, 4, 51.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, f64::INFINITY, 5, 1.0), Some(100.0));
        assert_eq!(profile.earliest(0.0, 99.0, 5, 1.0), None);
        assert_eq!(profile.earliest(60.0, f64::INFINITY, 1, 0.0), Some(80.0));
        assert_eq!(profile.earliest(0.0, f64::INFINITY, 11, 1.0), None);
    }

    #[test]
    fn adding_and_subtracting_the_same_amount_leaves_no_steps() {
        let mut profile = Profile::new(0.0, 10);
        profile.add(5.0, 9.0, -3);
        profile.add(7.0, 12.0, -3);
        assert_eq!(profile.points.len(), 5);
        profile.add(7.0, 12.0, 3);
        profile.add(5.0, 9.0, 3);
        assert_eq!(profile.points.len(), 1);
        profile.add(5.0, 9.0, -3);
        profile.trim(6.0);
        assert_eq!(profile.earliest(6.0, f64::INFINITY, 8, 1.0), Some(9.0));
        assert_eq!(profile.points.len(), 2);
    }
}
