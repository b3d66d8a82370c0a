//! Successive halving (Karnin, Koren & Somekh 2013), with quarters: all candidates with few seeds, then the best quarter with
//! four times as many, and so on up to all seeds.
//!
//! Candidates are compared on the same seeds, which simulate the same jobs. One candidate, the anchor, runs with all seeds at
//! once: the caller estimates the means of others by their differences to it ([`super::Estimate::beside`]), because the jobs
//! of the first seeds may be far from the mean. A dropped candidate returns as long as its estimate is better than what was
//! found.

use std::cmp::Ordering;

use super::{Next, Verdict};

/// The first round runs one of this number of seeds, at least one.
const FIRST_SHARE: usize = 16;
/// A round keeps one of this number of candidates, and runs it with this many times as many seeds.
const KEPT_SHARE: usize = 4;

/// What some seeds tell of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The verdict of all conditions.
    pub verdict: Verdict,
    /// How far the conditions are missed; 0 if all hold.
    pub excess: f64,
    /// The mean of the goal, small ones better; infinite without a value.
    pub goal: f64,
}

impl Score {
    /// The better one is less.
    fn order(&self, other: &Score) -> Ordering {
        let holds = other.verdict.holds.cmp(&self.verdict.holds);
        let value = match self.verdict.holds {
            true => self.goal.total_cmp(&other.goal),
            false => self.excess.total_cmp(&other.excess).then(self.goal.total_cmp(&other.goal)),
        };
        holds.then(value)
    }
}

/// The candidate that runs with all seeds first.
pub fn anchor(count: usize) -> usize {
    count / 2
}

/// The next candidates, each with the number of seeds that it needs. `score`: of a candidate with its first seeds up to this
/// number; `None` if one of these tasks has no row yet.
///
/// The found candidate is the best of those that ran with all seeds, and none of the others is estimated to be better. If none
/// satisfies the conditions, candidates are tried as long as they may.
pub fn halving(count: usize, seeds: usize, score: impl Fn(usize, usize) -> Option<Score>) -> Next<(usize, usize)> {
    let mut used = (seeds / FIRST_SHARE).max(1);
    // Candidates with the number of their seeds, the best first: those that are still in the race, then the dropped ones.
    let mut ranked: Vec<(usize, usize)> = (0..count).map(|at| (at, used)).collect();
    let mut alive = count;
    loop {
        let mut missing = missing(&ranked[..alive], &score);
        if alive == count && count > 0 && score(anchor(count), seeds).is_none() {
            missing.retain(|(at, _)| *at != anchor(count));
            missing.push((anchor(count), seeds));
        }
        if !missing.is_empty() {
            return Next::Try(missing);
        }
        ranked[..alive].sort_by(|one, other| order(*one, *other, &score));
        if used >= seeds {
            break;
        }
        alive = alive.div_ceil(KEPT_SHARE);
        used = (KEPT_SHARE * used).min(seeds);
        ranked[..alive].iter_mut().for_each(|candidate| candidate.1 = used);
    }
    if let Some(at) = ranked.iter_mut().find(|candidate| candidate.0 == anchor(count)) {
        at.1 = seeds;
    }
    let mut batch = 1;
    loop {
        let of = |candidate: (usize, usize)| score(candidate.0, candidate.1);
        let complete = ranked.iter().filter(|candidate| candidate.1 == seeds);
        let feasible = complete.filter(|candidate| of(**candidate).is_some_and(|score| score.verdict.holds));
        let best = feasible.min_by(|one, other| order(**one, **other, &score)).copied();
        let is_open = |candidate: (usize, usize)| match (best.and_then(of), of(candidate)) {
            (Some(best), Some(score)) => score.order(&best).is_lt(),
            (None, Some(score)) => score.verdict.holds || !score.verdict.is_certain,
            (_, None) => false,
        };
        let mut open: Vec<&mut (usize, usize)> =
            ranked.iter_mut().filter(|candidate| candidate.1 < seeds && is_open(**candidate)).collect();
        if open.is_empty() {
            return best.map_or(Next::Nothing, |best| Next::Found(best.0));
        }
        open.sort_by(|one, other| order(**one, **other, &score));
        open.truncate(batch);
        open.iter_mut().for_each(|candidate| candidate.1 = (KEPT_SHARE * candidate.1).min(seeds));
        let missing = missing(&open.iter().map(|candidate| **candidate).collect::<Vec<_>>(), &score);
        if !missing.is_empty() {
            return Next::Try(missing);
        }
        batch *= 2;
    }
}

/// The number of seeds that stands for all of `rungs` workloads in [`halving`]: each rung has four times the resources of the
/// one before it, which a quarter of its candidates reach.
pub fn seeds_of_rungs(rungs: usize) -> usize {
    KEPT_SHARE.pow(u32::try_from(rungs).unwrap_or(u32::MAX).saturating_sub(1))
}

/// The rung that a number of seeds of [`seeds_of_rungs`] stands for.
pub fn rung(seeds: usize) -> usize {
    seeds.max(1).ilog(KEPT_SHARE) as usize
}

/// The candidates whose rows are not complete.
fn missing(candidates: &[(usize, usize)], score: impl Fn(usize, usize) -> Option<Score>) -> Vec<(usize, usize)> {
    candidates.iter().copied().filter(|(at, used)| score(*at, *used).is_none()).collect()
}

/// The better one is less; of equal ones the one with the smaller number.
fn order(one: (usize, usize), other: (usize, usize), score: impl Fn(usize, usize) -> Option<Score>) -> Ordering {
    let by_score = match (score(one.0, one.1), score(other.0, other.1)) {
        (Some(one), Some(other)) => one.order(&other),
        _ => Ordering::Equal,
    };
    by_score.then(one.0.cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A problem: for each candidate its goal, and its excess with a number of seeds.
    struct Problem<F: Fn(usize, usize) -> (f64, f64, bool)> {
        candidates: usize,
        seeds: usize,
        /// Goal, excess (above 0: infeasible), whether that is certain.
        of: F,
    }

    impl<F: Fn(usize, usize) -> (f64, f64, bool)> Problem<F> {
        /// Searches; returns the found candidate and the number of tasks.
        fn search(&self) -> (Option<usize>, usize) {
            let rows = RefCell::new(vec![0; self.candidates]);
            loop {
                let next = halving(self.candidates, self.seeds, |at, used| {
                    let (goal, excess, is_certain) = (self.of)(at, used);
                    let verdict = Verdict { holds: excess <= 0.0, is_certain };
                    (rows.borrow()[at] >= used).then_some(Score { verdict, excess: excess.max(0.0), goal })
                });
                let found = match next {
                    Next::Try(more) => {
                        for (at, used) in more {
                            let has = &mut rows.borrow_mut()[at];
                            assert!(*has < used && used <= self.seeds, "{at}: {used} after {has}");
                            *has = used;
                        }
                        continue;
                    }
                    Next::Found(at) => Some(at),
                    Next::Nothing => None,
                };
                let tasks = rows.borrow().iter().sum();
                return (found, tasks);
            }
        }
    }

    #[test]
    fn the_best_candidate_needs_a_fifth_of_the_tasks() {
        for best in 0..32 {
            let of = |at: usize, _| ((at as f64 - best as f64).abs(), 0.0, true);
            let (found, tasks) = Problem { candidates: 32, seeds: 16, of }.search();
            assert_eq!(found, Some(best));
            // Each round costs three quarters of the first one; then the anchor.
            assert!(5 * tasks <= 32 * 16 && tasks >= 32 + 8 * 3 + 2 * 12, "{best}: {tasks}");
        }
    }

    #[test]
    fn one_seed_tries_every_candidate() {
        let of = |at: usize, _| (-(at as f64), 0.0, true);
        assert_eq!(Problem { candidates: 9, seeds: 1, of }.search(), (Some(8), 9));
        assert_eq!(Problem { candidates: 0, seeds: 1, of }.search(), (None, 0));
    }

    #[test]
    fn a_dropped_candidate_returns_if_the_last_ones_fail() {
        // The first candidates are better and hold with few seeds, but not with all; candidate 20 always holds.
        let of = |at: usize, used: usize| (at as f64, if used < 16 { 0.0 } else { 20.0 - at as f64 }, false);
        let (found, tasks) = Problem { candidates: 32, seeds: 16, of }.search();
        assert_eq!(found, Some(20));
        assert!(tasks < 32 * 16, "{tasks}");
    }

    #[test]
    fn a_dropped_candidate_returns_if_its_estimate_is_better() {
        // With few seeds, candidate 7 looks worse than the first quarter, but better than these are with all seeds.
        let of = |at: usize, used: usize| match (at, used) {
            (7, 1) => (10.5, 0.0, true),
            (7, _) => (1.0, 0.0, true),
            (0..=6 | 8, 1..=4) => (at as f64, 0.0, true),
            _ => (100.0 + at as f64, 0.0, true),
        };
        assert_eq!(Problem { candidates: 32, seeds: 16, of }.search().0, Some(7));
    }

    #[test]
    fn nothing_is_feasible() {
        let certain = |_, used: usize| (1.0, 1.0, used > 1);
        let (found, tasks) = Problem { candidates: 32, seeds: 16, of: certain }.search();
        assert_eq!(found, None);
        assert!(tasks < 200, "certain failures do not return: {tasks}");
        let never_certain = |_, _| (1.0, 1.0, false);
        let (found, tasks) = Problem { candidates: 8, seeds: 16, of: never_certain }.search();
        assert_eq!((found, tasks), (None, 8 * 16));
    }
}
