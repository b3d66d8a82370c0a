//! Intervals over replicates.
//!
//! A replicate is a seed, or a week of a log: its rows are one draw of jobs, whatever parameters they have. Rows of one
//! replicate depend on each other, so their sums are one observation, and the number of replicates decides the width of an
//! interval. Values of a parameter are no replicates.
//!
//! One estimator serves means, differences and ratios: a sum over replicates divided by the sum of their numbers of rows,
//! with its linearised standard error (Cochran 1977, 2.11 and 6.4). The interval of a ratio has each r for which the
//! interval of `mean(B) - r mean(A)` contains 0 (Fieller 1954). Hence a ratio's interval contains 1 exactly where the
//! interval of the difference contains 0.

use powersweep_engine::rng::{Philox, Purpose};

use crate::stats::{percentile, quotient, student_t, sum};
use crate::{Axis, Cell};

/// The column of the seed.
pub const SEED: &str = "seed";
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;
/// Seed of the resamples: equal rows have equal intervals.
const RESAMPLING_SEED: u64 = 1;
/// Halvings of the step in which an end of a ratio's interval lies.
const HALVINGS: usize = 30;
/// Doublings of the step towards an end of a ratio's interval: beyond, the end is infinite.
const DOUBLINGS: usize = 60;

/// An estimate with its 95% interval, which one replicate does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The ends.
    pub ends: Option<(f64, f64)>,
}

/// How an interval follows from replicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Student's t, with this coverage (percent: 90, 95 or 99): replicates are independent and of about equal size.
    T(u32),
    /// The studentised bootstrap of whole replicates (Efron & Tibshirani 1993, 12.5), with a coverage of 95%: for weeks of a
    /// log, whose sums are skewed.
    Bootstrap,
}

/// Sums over the rows of one replicate.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: f64,
    a: f64,
    b: f64,
}

/// The seed of a row: the replicate that it is from.
pub fn seed(seeds: &Axis, row: usize) -> i64 {
    match seeds.cell(row) {
        Cell::Int(seed) => *seed,
        _ => i64::from(seeds.code(row)),
    }
}

/// Rows of A and their partners of B, or rows alone as B, summed by replicate.
#[derive(Debug, Clone)]
pub struct Replicates {
    sums: Vec<Sums>,
    method: Method,
    /// Whether no value is negative, so that no ratio is.
    is_positive: bool,
}

impl Replicates {
    /// Rows as (replicate, value of A, value of B). Rows without both values must be left out before.
    pub fn of_pairs(rows: impl Iterator<Item = (i64, f64, f64)>, method: Method) -> Replicates {
        let mut rows: Vec<(i64, f64, f64)> = rows.collect();
        let is_positive = rows.iter().all(|(_, a, b)| *a >= 0.0 && *b >= 0.0);
        rows.sort_unstable_by_key(|row| row.0);
        // Sums do not depend on the order of the rows.
        let mut values: Vec<f64> = Vec::new();
        let mut sorted = |of: &mut dyn Iterator<Item = f64>| {
            values.clear();
            values.extend(of);
            values.sort_unstable_by(f64::total_cmp);
            sum(values.iter().copied())
        };
        let sums = rows.chunk_by(|one, other| one.0 == other.0).map(|rows| Sums {
            count: rows.len() as f64,
            a: sorted(&mut rows.iter().map(|row| row.1)),
            b: sorted(&mut rows.iter().map(|row| row.2)),
        });
        Replicates { sums: sums.collect(), method, is_positive }
    }

    /// Rows as (replicate, value).
    pub fn of(rows: impl Iterator<Item = (i64, f64)>, method: Method) -> Replicates {
        Replicates::of_pairs(rows.map(|(replicate, value)| (replicate, 0.0, value)), method)
    }

    /// Replicates as (sum of the values of their rows, number of their rows).
    pub fn of_sums(parts: impl Iterator<Item = (f64, f64)>, method: Method) -> Replicates {
        let sums = parts.map(|(b, count)| Sums { count, a: 0.0, b });
        Replicates { sums: sums.collect(), method, is_positive: false }
    }

    /// Number of replicates.
    pub fn count(&self) -> usize {
        self.sums.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> f64 {
        sum(self.sums.iter().map(|sums| sums.count))
    }

    /// Mean of A.
    pub fn mean_a(&self) -> f64 {
        self.linear(|sums| sums.a).value
    }

    /// Mean of B, with its interval.
    pub fn mean(&self) -> Interval {
        self.linear(|sums| sums.b)
    }

    /// Mean of B minus A.
    pub fn difference(&self) -> Interval {
        self.linear(|sums| sums.b - sums.a)
    }

    /// Mean of B divided by the mean of A. Where the mean of A may be 0, the ratios that may be true lie below one ratio and above
    /// another. The interval is the part that has the value, and all ratios if 1 is in the other part.
    pub fn ratio(&self) -> Interval {
        let parts = self.sums.iter().map(|sums| (sums.b, sums.a));
        let (value, error) = quotient(parts);
        if self.count() < 2 || !value.is_finite() {
            return Interval { value, ends: None };
        }
        let lowest = if self.is_positive { 0.0 } else { f64::NEG_INFINITY };
        if error == 0.0 {
            // B is a multiple of A in every replicate. Where the mean of A may be 0, the mean of B may be any multiple of it.
            let may_be_any = value != 1.0 && self.may_be(1.0);
            return Interval { value, ends: Some(if may_be_any { (lowest, f64::INFINITY) } else { (value, value) }) };
        }
        let by_moments = Moments::of(self);
        let (mut low, mut high) = match &by_moments {
            Some(moments) => moments.ends(value),
            None => {
                let is_inside = |ratio: f64| self.may_be(ratio);
                (end(value, -error, is_inside), end(value, error, is_inside))
            }
        };
        // Where the mean of A may be 0, ratios may lie on both sides of a gap. The ratio 1 is inside where the difference may be 0.
        if (low > 1.0 || high < 1.0) && by_moments.map_or_else(|| self.may_be(1.0), |moments| moments.may_be(1.0)) {
            (low, high) = (lowest, f64::INFINITY);
        }
        // A ratio of values that are never negative is never negative.
        Interval { value, ends: Some((low.max(lowest), high)) }
    }

    /// Whether the interval of `mean(B) - ratio mean(A)` contains 0: the ratio is in the interval of ratios.
    fn may_be(&self, ratio: f64) -> bool {
        let found = self.linear(|sums| sums.b - ratio * sums.a);
        found.ends.is_none_or(|(low, high)| low <= 0.0 && 0.0 <= high)
    }

    /// A sum over replicates divided by the number of rows.
    fn linear(&self, over: impl Fn(&Sums) -> f64) -> Interval {
        let parts: Vec<(f64, f64)> = self.sums.iter().map(|sums| (over(sums), sums.count)).collect();
        let (value, error) = quotient(parts.iter().copied());
        if parts.len() < 2 || !value.is_finite() || !error.is_finite() {
            return Interval { value, ends: None };
        }
        let ends = match self.method {
            _ if error == 0.0 => Some((value, value)),
            Method::T(percent) => {
                let half = student_t(percent, parts.len() - 1) * error;
                Some((value - half, value + half))
            }
            Method::Bootstrap => {
                studentised(&parts, value).map(|(low, high)| (value - high * error, value - low * error))
            }
        };
        Interval { value, ends }
    }
}

/// Means and residuals of A and B, by which Student's interval of `mean(B) - r mean(A)` is known for every r without another
/// look at the replicates: its residuals are linear in r.
struct Moments {
    mean_a: f64,
    mean_b: f64,
    /// Sums of products of the residuals of A and A, A and B, B and B.
    products: [f64; 3],
    /// Of the root of a sum of squares of residuals, half of the interval.
    factor: f64,
}

impl Moments {
    /// `None` where the interval is not Student's.
    fn of(replicates: &Replicates) -> Option<Moments> {
        let Method::T(percent) = replicates.method else { return None };
        let (sums, n) = (&replicates.sums, replicates.count() as f64);
        let rows = replicates.rows();
        let mean_a = sum(sums.iter().map(|sums| sums.a)) / rows;
        let mean_b = sum(sums.iter().map(|sums| sums.b)) / rows;
        let of_a = |sums: &Sums| sums.a - mean_a * sums.count;
        let of_b = |sums: &Sums| sums.b - mean_b * sums.count;
        let products = [
            sum(sums.iter().map(|sums| of_a(sums) * of_a(sums))),
            sum(sums.iter().map(|sums| of_a(sums) * of_b(sums))),
            sum(sums.iter().map(|sums| of_b(sums) * of_b(sums))),
        ];
        let factor = student_t(percent, replicates.count() - 1) * (n / (n - 1.0)).sqrt() / rows;
        let known = products.iter().all(|product| product.is_finite()) && factor.is_finite();
        known.then_some(Moments { mean_a, mean_b, products, factor })
    }

    /// The ends of the ratios that may be true, as far as they are connected with this one: the roots of
    /// (mean(B) - r mean(A))^2 = factor^2 times the sum of squares of the residuals of B - r A.
    fn ends(&self, value: f64) -> (f64, f64) {
        let [aa, ab, bb] = self.products.map(|product| self.factor * self.factor * product);
        let (square, half, rest) =
            (self.mean_a * self.mean_a - aa, self.mean_a * self.mean_b - ab, self.mean_b * self.mean_b - bb);
        let discriminant = half * half - square * rest;
        if discriminant <= 0.0 {
            // The value satisfies the inequality: so do all ratios, or no other one.
            return if square > 0.0 { (value, value) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        }
        let sum = half + half.signum() * discriminant.sqrt();
        let (one, other) = (sum / square, rest / sum);
        let (least, greatest) = (one.min(other), one.max(other));
        match (square > 0.0, value <= least) {
            (true, _) => (least, greatest),
            (false, true) => (f64::NEG_INFINITY, least),
            (false, false) => (greatest, f64::INFINITY),
        }
    }

    /// As [`Replicates::may_be`].
    fn may_be(&self, ratio: f64) -> bool {
        let [aa, ab, bb] = self.products;
        let half = self.factor * (bb - 2.0 * ratio * ab + ratio * ratio * aa).max(0.0).sqrt();
        (self.mean_b - ratio * self.mean_a).abs() <= half
    }
}

/// The place where values, from an inside one on in steps of this direction, leave an interval; infinite if they do not.
fn end(value: f64, step: f64, is_inside: impl Fn(f64) -> bool) -> f64 {
    let (mut inside, mut step) = (value, step);
    let mut doublings = 0;
    while is_inside(inside + step) {
        inside += step;
        step *= 2.0;
        doublings += 1;
        if doublings > DOUBLINGS {
            return step * f64::INFINITY;
        }
    }
    for _ in 0..HALVINGS {
        step /= 2.0;
        if is_inside(inside + step) {
            inside += step;
        }
    }
    inside
}

/// The percentiles 2.5 and 97.5 of the studentised errors of resamples.
fn studentised(parts: &[(f64, f64)], value: f64) -> Option<(f64, f64)> {
    let mut random = Philox::stream(RESAMPLING_SEED, Purpose::Resample);
    let mut errors: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut resample = vec![(0.0, 0.0); parts.len()];
    for _ in 0..RESAMPLES {
        resample.fill_with(|| parts[random.below(parts.len() as u64) as usize]);
        let (of, own) = quotient(resample.iter().copied());
        // A resample of one replicate again and again has no error.
        if own > 0.0 && of.is_finite() {
            errors.push((of - value) / own);
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    percentile(&errors, 2.5).zip(percentile(&errors, 97.5))
}

#[cfg(test)]
mod tests {
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
            let of = |at: u64, row: u64| {
                (at as i64, number(at * 7 + row), 0.9 * number(at * 7 + row) + number(at + row) / 9.0)
            };
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
}
