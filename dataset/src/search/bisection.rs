//! Bisection: the first feasible candidate of a line, where all candidates after a feasible one are feasible, too.

use super::Next;

/// Candidates that are tried first, spread over the line: they show whether feasibility is monotone.
const SPREAD: usize = 5;

/// The next candidates of a line, which is ordered from the best value of the goal to the worst. `feasible`: of each
/// candidate, whether it is feasible, if that is known.
///
/// After the spread candidates, it halves the distance between the first feasible candidate and the last infeasible one
/// before it.
pub fn bisection(feasible: &[Option<bool>]) -> Next<usize> {
    let Some(last) = feasible.len().checked_sub(1) else { return Next::Nothing };
    let mut spread: Vec<usize> = (0..SPREAD).map(|at| at * last / (SPREAD - 1)).collect();
    spread.dedup();
    spread.retain(|at| feasible[*at].is_none());
    if !spread.is_empty() {
        return Next::Try(spread);
    }
    let Some(first) = feasible.iter().position(|known| *known == Some(true)) else { return Next::Nothing };
    match feasible[..first].iter().rposition(|known| *known == Some(false)) {
        Some(before) if first - before > 1 => Next::Try(vec![before + (first - before) / 2]),
        _ => Next::Found(first),
    }
}

/// Candidates that contradict monotone feasibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The first feasible candidate.
    pub feasible: usize,
    /// Infeasible candidates after it.
    pub infeasible: Vec<usize>,
}

/// Whether the known candidates of a line contradict monotone feasibility.
pub fn exception(feasible: &[Option<bool>]) -> Option<Exception> {
    let first = feasible.iter().position(|known| *known == Some(true))?;
    let infeasible: Vec<usize> = (first..feasible.len()).filter(|at| feasible[*at] == Some(false)).collect();
    (!infeasible.is_empty()).then_some(Exception { feasible: first, infeasible })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches a line; returns the found candidate, the number of tried ones, and what contradicts monotony.
    fn search(truth: &[bool]) -> (Option<usize>, usize, Option<Exception>) {
        let mut known = vec![None; truth.len()];
        loop {
            let found = match bisection(&known) {
                Next::Try(more) => {
                    assert!(!more.is_empty() && more.iter().all(|at| known[*at].is_none()), "{more:?}");
                    more.into_iter().for_each(|at| known[at] = Some(truth[at]));
                    continue;
                }
                Next::Found(at) => Some(at),
                Next::Nothing => None,
            };
            return (found, known.iter().flatten().count(), exception(&known));
        }
    }

    #[test]
    fn a_monotone_line_needs_few_candidates() {
        for first in 0..=151 {
            let truth: Vec<bool> = (0..151).map(|at| at >= first).collect();
            let (found, tried, exception) = search(&truth);
            assert_eq!((found, exception), ((first < 151).then_some(first), None));
            assert!(tried <= 11, "{first}: {tried}");
        }
    }

    #[test]
    fn short_lines_are_tried_whole() {
        assert_eq!(search(&[]), (None, 0, None));
        assert_eq!(search(&[true]), (Some(0), 1, None));
        assert_eq!(search(&[false, true]), (Some(1), 2, None));
        assert_eq!(search(&[false, false, true, true, true]), (Some(2), 5, None));
    }

    #[test]
    fn an_infeasible_candidate_after_a_feasible_one_is_an_exception() {
        let truth: Vec<bool> = (0..101).map(|at| (20..40).contains(&at) || at > 90).collect();
        let (found, _, seen) = search(&truth);
        assert_eq!(found, Some(20));
        assert_eq!(seen, Some(Exception { feasible: 20, infeasible: vec![50, 75] }));
        // The wrong direction: the best value is feasible, the worst is not.
        let (found, _, seen) = search(&[true, true, true, false, false, false, false]);
        assert_eq!((found, seen.is_some()), (Some(0), true));
    }

    proptest! {
        #[test]
        fn what_is_found_is_feasible_after_an_infeasible_neighbour(truth in prop::collection::vec(any::<bool>(), 1..200)) {
            let (found, tried, _) = search(&truth);
            prop_assert!(tried <= 13);
            if let Some(at) = found {
                prop_assert!(truth[at] && (at == 0 || !truth[at - 1]));
            }
        }
    }
}
