use super::*;

fn pairs(values: &[(f64, f64)]) -> Replicates {
    Replicates::of_pairs(values.iter().enumerate().map(|(at, (a, b))| (at as i64, *a, *b)), Method::T(95))
}

#[test]
fn differences_have_the_interval_of_students_t() {
    // Differences 1, 1.5 and 2: mean 1.5, standard deviation 0.5.
    let found = pairs(&[(1.0, 2.0), (2.0, 3.5), (3.0, 5.0)]);
    let half = 4.302_652_73 * 0.5 / 3f64.sqrt();
    let (low, high) = found.difference().ends.expect("three pairs");
    assert_eq!((found.rows(), found.mean_a(), found.mean().value, found.difference().value), (3.0, 2.0, 3.5, 1.5));
    assert!((low - (1.5 - half)).abs() < 1e-8 && (high - (1.5 + half)).abs() < 1e-8);
}

/// Fieller's ends are the roots of (mean(B) - r mean(A))^2 = t^2 var(B - r A) / n.
#[test]
fn the_ends_of_a_ratio_are_the_roots_of_fiellers_equation() {
    let values = [(10.0, 9.0), (12.0, 11.5), (9.0, 7.0), (11.0, 10.0)];
    let found = pairs(&values).ratio();
    let (low, high) = found.ends.expect("an interval");
    assert!(low < found.value && found.value < high && (found.value - 37.5 / 42.0).abs() < 1e-15);
    for root in [low, high] {
        let residuals: Vec<f64> = values.iter().map(|(a, b)| b - root * a).collect();
        let mean = residuals.iter().sum::<f64>() / 4.0;
        let variance = residuals.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / 3.0;
        let bound = 3.182_446_305 * (variance / 4.0).sqrt();
        assert!((mean.abs() - bound).abs() < 1e-7, "{root}: {mean} {bound}");
    }
}

#[test]
fn a_ratio_of_waits_is_not_negative_and_may_have_no_upper_end() {
    let (low, high) = pairs(&[(50.0, 0.0), (60.0, 2.0), (55.0, 30.0)]).ratio().ends.expect("A is not near 0");
    assert!(low == 0.0 && high > 0.2, "{low} {high}");
    assert_eq!(pairs(&[(0.0, 1.0), (0.0, 2.0)]).ratio().ends, None);
    // The mean of A may be 0, that of B not: 100 - 30 r = 4.3027 * 43.55 r / sqrt(3) at r = 0.72.
    let (low, high) = pairs(&[(1.0, 100.0), (9.0, 101.0), (80.0, 99.0)]).ratio().ends.expect("an interval");
    assert!((0.7..0.75).contains(&low) && high == f64::INFINITY, "{low} {high}");
    assert_eq!(pairs(&[(1.0, 2.0)]).ratio().ends, None);
}

/// Seeds of a small and of a great mean: r <= 0.973 or r >= 1.012 may be true.
#[test]
fn of_two_parts_a_ratio_has_the_one_with_its_value() {
    let values = [(10.0, 11.0), (60.0, 61.1), (20.0, 21.05)];
    let swapped = values.map(|(a, b)| (b, a));
    let (one, other) = (pairs(&values).ratio(), pairs(&swapped).ratio());
    let ((low, high), (least, most)) = (one.ends.expect("ends"), other.ends.expect("ends"));
    assert!(low > 1.0 && high == f64::INFINITY, "{one:?}");
    assert!(least == 0.0 && most < 1.0, "{other:?}");
    assert!(!pairs(&values).may_be(low - 1e-9) && pairs(&values).may_be(low + 1e-9));
    assert!(pairs(&values).may_be(0.0));
}

/// Seeds may have no waits under one policy, or under both.
#[test]
fn a_ratio_to_a_mean_that_may_be_0_has_the_verdict_of_the_difference() {
    let ends = |values| pairs(values).ratio().ends;
    assert_eq!(ends(&[(10.0, 20.0), (11.0, 22.0)]), Some((2.0, 2.0)));
    assert_eq!(ends(&[(10.0, 8.0), (0.0, 0.0)]), Some((0.0, f64::INFINITY)));
    assert_eq!(ends(&[(10.0, 10.0), (0.0, 0.0)]), Some((1.0, 1.0)));
    // 1.01 is no ratio, since B - 1.01 A is about 1 in each replicate; 1 and 1.04 are.
    for values in [&[(10.0, 8.0), (0.0, 0.0)][..], &[(0.0, 1.0), (0.0, 1.01), (100.0, 102.0)]] {
        let found = pairs(values);
        assert!(!found.may_be(1.01) || values.len() == 2, "{values:?}");
        let (low, high) = found.difference().ends.expect("an interval");
        assert!(low < 0.0 && 0.0 < high, "{values:?} {low} {high}");
        assert_eq!(found.ratio().ends, Some((0.0, f64::INFINITY)), "{values:?}");
    }
}

#[test]
fn moments_tell_what_the_replicates_tell() {
    let number = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
    for count in [2, 3, 10, 500] {
        let of =
            |at: u64, row: u64| (at as i64, number(at * 7 + row), 0.9 * number(at * 7 + row) + number(at + row) / 9.0);
        let rows = (0..count).flat_map(|at| (0..=at % 3).map(move |row| of(at, row)));
        let found = Replicates::of_pairs(rows, Method::T(95));
        let moments = Moments::of(&found).expect("Student's");
        let differs = |ratio: &f64| moments.may_be(*ratio) != found.may_be(*ratio);
        assert_eq!((0..400).map(|step| f64::from(step) * 0.01).find(differs), None, "{count} replicates");
    }
}

/// Ten seeds of four thresholds each: ten replicates, not forty.
#[test]
fn rows_of_one_seed_are_one_replicate() {
    let row = |seed: i64, threshold: f64| (seed, 100.0 * threshold, 90.0 * threshold + seed as f64);
    let rows = || (0..10).flat_map(|seed| [1.0, 2.0, 3.0, 4.0].map(|threshold| row(seed, threshold)));
    let clustered = Replicates::of_pairs(rows(), Method::T(95));
    let own = rows().enumerate().map(|(at, (_, a, b))| (at as i64, a, b));
    let width = |of: Interval| of.ends.map(|(low, high)| high - low).expect("an interval");
    assert_eq!(clustered.count(), 10);
    // The differences of a seed have the mean seed - 25: standard deviation 3.0277 over ten seeds, t(0.95; 9) = 2.262157.
    assert!((width(clustered.difference()) - 2.0 * 2.262_157_16 * 3.027_650_35 / 10f64.sqrt()).abs() < 1e-7);
    assert!(width(Replicates::of_pairs(own, Method::T(95)).difference()) > 1.5 * width(clustered.difference()));
}

/// Shares of a thousand experiments whose 95% intervals of difference and ratio contain the truth. The two intervals give
/// one verdict in every one.
fn coverage(method: Method, make: impl Fn(&mut Philox) -> Vec<(i64, f64, f64)>, truth: (f64, f64)) -> [f64; 2] {
    let mut inside = [0; 2];
    for case in 0..1_000 {
        let found = Replicates::of_pairs(make(&mut Philox::stream(case, Purpose::Arrival)).into_iter(), method);
        let holds =
            |interval: Interval, truth: f64| interval.ends.is_some_and(|(low, high)| low <= truth && truth <= high);
        inside[0] += u64::from(holds(found.difference(), truth.0));
        inside[1] += u64::from(found.may_be(truth.1));
        // The ends of a ratio take many bootstraps.
        if method != Method::Bootstrap || case < 5 {
            let ratio = found.ratio();
            assert_eq!(holds(found.difference(), 0.0), holds(ratio, 1.0), "experiment {case} has two verdicts");
            assert_eq!(found.may_be(truth.1), holds(ratio, truth.1), "experiment {case} has two intervals");
        }
    }
    inside.map(|inside| inside as f64 / 1_000.0)
}

fn assert_covers(shares: [f64; 2]) {
    assert!(shares.iter().all(|share| (0.93..=0.97).contains(share)), "{shares:?}");
}

#[test]
fn intervals_of_seeds_cover_the_truth() {
    let make = |random: &mut Philox| {
        let pair = |seed| {
            let load = 100.0 + 20.0 * random.normal();
            (seed, load + random.normal(), 0.9 * load + 2.0 * random.normal())
        };
        (0..10).map(pair).collect()
    };
    assert_covers(coverage(Method::T(95), make, (-10.0, 0.9)));
}

/// Four thresholds of each of ten seeds: rows of a seed share its load.
#[test]
fn intervals_of_mixed_parameters_cover_the_truth() {
    let make = |random: &mut Philox| {
        let mut rows = Vec::new();
        for seed in 0..10 {
            let (load, effect) = (100.0 + 20.0 * random.normal(), 5.0 * random.normal());
            for threshold in [0.5, 1.0, 1.5, 2.0] {
                let own = random.normal();
                rows.push((seed, load * threshold, (0.9 * load + effect) * threshold + own));
            }
        }
        rows
    };
    assert_covers(coverage(Method::T(95), make, (-12.5, 0.9)));
}

/// Replicates of different size: some seeds lack rows.
#[test]
fn intervals_of_unequal_replicates_cover_the_truth() {
    let make = |random: &mut Philox| {
        let mut rows = Vec::new();
        for seed in 0..20 {
            let load = 100.0 + 15.0 * random.normal();
            for _ in 0..3 + random.below(3) {
                rows.push((seed, load + random.normal(), 1.1 * load + 2.0 * random.normal()));
            }
        }
        rows
    };
    assert_covers(coverage(Method::T(95), make, (10.0, 1.1)));
}

/// Draws of the weeks of a log: the mean over the draws may be known well, that of the machine as well as one log tells.
#[test]
fn intervals_of_draws_from_one_log_cover_the_truth() {
    let make = |of_log: u32, weeks_of_draw: u32, draws: i64| {
        move |random: &mut Philox| {
            let mut week = || {
                let load = random.gamma(4.0, 25.0);
                (load, 0.9 * load + 5.0 * random.normal())
            };
            let weeks: Vec<(f64, f64)> = (0..of_log).map(|_| week()).collect();
            let draw = |seed| {
                let drawn = (0..weeks_of_draw).map(|_| weeks[random.below(u64::from(of_log)) as usize]);
                let drawn: Vec<(f64, f64)> = drawn.collect();
                let mean = |of: fn(&(f64, f64)) -> f64| drawn.iter().map(of).sum::<f64>() / f64::from(weeks_of_draw);
                (seed, mean(|week| week.0), mean(|week| week.1))
            };
            (0..draws).map(draw).collect()
        }
    };
    let of = |blocks, drawn, draws| {
        coverage(Method::Resampled(95, Draw { drawn, blocks }), make(blocks, drawn, draws), (-10.0, 0.9))
    };
    for (blocks, drawn, draws) in [(30, 30, 10), (30, 30, 100), (30, 10, 20), (30, 1, 30), (12, 12, 3), (12, 12, 80)] {
        assert_covers(of(blocks, drawn, draws));
    }
    // Means of few weeks are skewed, as the weeks are; those of A may be 0, so that ratios have an open interval.
    for (blocks, draws) in [(3, 10), (3, 80), (4, 20), (6, 40)] {
        let (make, method) = (make(blocks, blocks, draws), Method::Resampled(95, Draw { drawn: blocks, blocks }));
        let holds = |case: &u64| {
            let rows = make(&mut Philox::stream(*case, Purpose::Arrival));
            let ends = Replicates::of_pairs(rows.into_iter(), method).difference().ends;
            ends.is_some_and(|(low, high)| low <= -10.0 && -10.0 <= high)
        };
        let inside = (0..1_000).filter(holds).count();
        assert!((920..=980).contains(&inside), "{blocks} {draws} {inside}");
    }
    let narrow = coverage(Method::T(95), make(30, 30, 100), (-10.0, 0.9));
    assert!(narrow.iter().all(|share| *share < 0.4), "{narrow:?}");
}

/// 30 weeks of 20 jobs, which depend on the load of their week.
#[test]
fn intervals_of_weeks_cover_the_truth() {
    let make = |random: &mut Philox| {
        let mut rows = Vec::new();
        for week in 0..30 {
            let load = random.gamma(4.0, 25.0);
            for _ in 0..20 {
                let wait = load * random.exponential(1.0);
                rows.push((week, wait, 0.8 * wait + 0.1 * load));
            }
        }
        rows
    };
    assert_covers(coverage(Method::Bootstrap, make, (-10.0, 0.9)));
}
