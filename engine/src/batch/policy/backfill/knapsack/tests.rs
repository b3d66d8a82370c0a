//! The search finds the same set as a plain search over every sum of procs.
use proptest::prelude::*;

use super::{Best, Search, Width, alike};

/// A set: its weight, and the positions of its jobs.
type Set = (f64, Vec<usize>);

/// The set of the greatest sum of procs up to `most` that has one: the lightest set of the sum, with one job after the
/// other.
fn by_every_sum(procs: &[u32], weights: &[f64], limit: f64, most: usize) -> Vec<usize> {
    let total: usize = procs.iter().map(|&n| n as usize).sum();
    if total <= most && weights.iter().sum::<f64>() <= limit {
        return (0..procs.len()).collect();
    }
    let mut best: Vec<Option<Set>> = vec![None; most.min(total) + 1];
    best[0] = Some((0.0, Vec::new()));
    for (at, (&n, &weight)) in procs.iter().zip(weights).enumerate() {
        for sum in (n as usize..best.len()).rev() {
            let Some((from, set)) = best[sum - n as usize].clone() else { continue };
            let with = from + weight;
            if with <= limit && best[sum].as_ref().is_none_or(|(lightest, _)| with < *lightest) {
                best[sum] = Some((with, [set, vec![at]].concat()));
            }
        }
    }
    best.into_iter().flatten().last().map_or(Vec::new(), |(_, set)| set)
}

/// The expected result: weights are procs if all jobs add the same power a proc.
fn expected(procs: &[u32], added_w: &[f64], left_w: f64, width: Width) -> Best {
    let most = if width.wider_wins { usize::MAX } else { width.free as usize };
    let set = if left_w < 0.0 {
        by_every_sum(procs, added_w, -1.0, most)
    } else if alike(procs, added_w) {
        let each_w = added_w[0] / f64::from(procs[0]);
        let limit = if each_w > 0.0 { (left_w / each_w).floor() } else { f64::INFINITY };
        by_every_sum(procs, &procs.iter().map(|&n| f64::from(n)).collect::<Vec<_>>(), limit, most)
    } else {
        by_every_sum(procs, added_w, left_w, most)
    };
    let wide: u32 = set.iter().map(|&at| procs[at]).sum();
    if wide > width.free { None } else { Some(set) }
}

/// Procs and watts a proc of the jobs; the watts are equal or differ by class.
fn jobs() -> impl Strategy<Value = Vec<(u32, f64)>> {
    // Tenths are not binary fractions: sums depend on the order of their terms.
    let watts = || prop_oneof![1 => Just(0.0), 8 => (1u32..40).prop_map(|tenths| f64::from(tenths) / 10.0)];
    let procs = prop_oneof![3 => 1u32..=9, 1 => 1u32..=90, 1 => (1u32..=20).prop_map(|n| 4 * n)];
    let list = prop::collection::vec((procs, 0usize..3), 1..14);
    (list, watts(), watts(), watts(), any::<bool>()).prop_map(|(list, a, b, c, equal)| {
        let classes = if equal { [a; 3] } else { [a, b, c] };
        list.into_iter().map(|(n, class)| (n, classes[class])).collect()
    })
}

#[test]
fn jobs_are_alike_if_a_proc_of_each_adds_the_same_power() {
    assert!(alike(&[2, 3], &[4.0, 6.0]));
    assert!(!alike(&[2, 3], &[4.0, 9.0]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_finds_the_set_of_the_plain_search(
        lists in prop::collection::vec(jobs(), 2),
        free in 1u32..180,
        tenths in -10i32..1500,
    ) {
        let left_w = f64::from(tenths) / 10.0;
        // Two searches with the same buffers: the first must not affect the second.
        let mut knapsack = Search::default();
        for list in lists {
            for wider_wins in [true, false] {
                let width = Width { free, wider_wins };
                knapsack.procs = list.iter().map(|&(n, _)| n).collect();
                knapsack.added_w = list.iter().map(|&(n, each_w)| f64::from(n) * each_w).collect();
                let expected = expected(&knapsack.procs, &knapsack.added_w, left_w, width);
                let found = knapsack.best_of(left_w, width, || Ok(())).expect("there are no limits");
                prop_assert_eq!(found, expected, "{:?} {:?} {}", list, width, left_w);
            }
        }
    }
}

#[test]
fn the_search_takes_steps_by_jobs_and_not_by_procs() {
    // 40,000 jobs ask for 10^9 procs together; there is power for 10^8 procs, and 10^6 are free: the first 40 jobs fill
    // the machine.
    let mut knapsack = Search { procs: vec![25_000; 40_000], added_w: vec![25_000.0; 40_000], ..Search::default() };
    let mut steps = 0;
    let mut run = |left_w, wider_wins| {
        let step = || {
            steps += 1;
            Ok(())
        };
        knapsack.best_of(left_w, Width { free: 1_000_000, wider_wins }, step).expect("there are no limits")
    };
    assert_eq!(run(1e8, true), None);
    assert_eq!(run(1e8, false), Some((0..40).collect()));
    assert_eq!(run(1e6, true), Some((0..40).collect()));
    assert_eq!(steps, 41 + 40 + 40, "number of jobs considered");
}
