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
//!
//! Draws of the blocks of one log are no independent samples of its machine: they are a bootstrap, in which the standard
//! deviation of whole draws, not that of their mean, is the standard error of the log's mean (Efron & Tibshirani 1993, 6.2). With
//! n draws of B from K blocks, the mean over the draws has the variance s^2 (1/n + B/(K - 1)) about that of the machine. Its
//! degrees of freedom v follow from those of the draws and of the blocks, 1/v = 1/(n - 1) + 1/(K - 1) (Satterthwaite 1946).

use powersweep_engine::rng::{Philox, Purpose};
use powersweep_engine::seeds::Dependence;
pub use powersweep_engine::seeds::Draw;

use crate::stats::{percentile, quotient, student_t, student_t_between, sum};
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
    /// Student's t of draws from one log, with this coverage (percent).
    Resampled(u32, Draw),
    /// The studentised bootstrap of whole replicates (Efron & Tibshirani 1993, 12.5), with a coverage of 95%: for weeks of a
    /// log, whose sums are skewed.
    Bootstrap,
}

impl Method {
    /// The method for seeds with this dependence.
    pub fn of(seeds: Dependence, percent: u32) -> Method {
        match seeds {
            Dependence::Resampled(draw) => Method::Resampled(percent, draw),
            Dependence::Alike | Dependence::Independent => Method::T(percent),
        }
    }

    /// How many standard errors of a mean half an interval has, with this number of replicates; `None` for a bootstrap.
    pub(crate) fn errors(self, replicates: usize) -> Option<f64> {
        match self {
            Method::T(percent) => Some(student_t(percent, replicates - 1)),
            Method::Resampled(percent, draw) => {
                let (draws, blocks) = (replicates as f64, f64::from(draw.blocks));
                let dof = 1.0 / (1.0 / (draws - 1.0) + 1.0 / (blocks - 1.0));
                Some(student_t_between(percent, dof) * (1.0 + draws * draw.variance_ratio()).sqrt())
            }
            Method::Bootstrap => None,
        }
    }
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
        let ends = match self.method.errors(parts.len()) {
            _ if error == 0.0 => Some((value, value)),
            Some(errors) => Some((value - errors * error, value + errors * error)),
            None => studentised(&parts, value).map(|(low, high)| (value - high * error, value - low * error)),
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
        let errors = replicates.method.errors(replicates.count())?;
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
        let factor = errors * (n / (n - 1.0)).sqrt() / rows;
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
mod tests;
