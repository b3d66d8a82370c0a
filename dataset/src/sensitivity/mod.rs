//! Sensitivity: how much each parameter of a design, or each axis of a grid, moves a metric.
//!
//! | points | indices | module |
//! |---|---|---|
//! | trajectories | mu*, mu, sigma of elementary effects | [`morris`] |
//! | matrices A, AB, BA, B | shares of variance S1, ST, S2, estimated | [`saltelli`] |
//! | all or some cells of a grid | shares of variance S1, ST, S2, exact for these cells | [`grid`] |
//!
//! A point's value is the mean over the seeds. A value that is missing for a seed is any number of a range: the index is then
//! bounded, not estimated. No value is imputed.

pub mod grid;
pub mod morris;
pub mod saltelli;
pub mod span;
pub mod table;

use powersweep_engine::rng::{Philox, Purpose};
use powersweep_engine::seeds::Dependence;

use self::span::Span;
use crate::replicates::Method;
use crate::stats::{sd, sum};

/// Resamples of a bootstrap.
const RESAMPLES: usize = 1_000;
/// Seed of the resamples: equal rows have equal intervals.
const RESAMPLING_SEED: u64 = 1;
/// The quantile 0.975 of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// An index with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Index {
    /// The index: known, or bounded where values are missing.
    pub span: Span,
    /// The ends of its interval, which the index can reach; of a bounded index the lower end of the lower bound and the upper end
    /// of the upper one, or the bounds themselves without an interval.
    pub ends: Option<(f64, f64)>,
}

impl Index {
    /// An index with an interval of these half widths below its lower and above its upper bound, cut to the values that it may have.
    fn new(span: Span, halves: Option<(f64, f64)>, (least, greatest): (f64, f64)) -> Index {
        let end = |end: f64| end.clamp(least, greatest);
        let halves = halves.or((!span.is_known()).then_some((0.0, 0.0)));
        Index { span, ends: halves.map(|(below, above)| (end(span.low - below), end(span.high + above))) }
    }

    /// Whether it is a number, or has bounds that are numbers.
    pub fn is_finite(&self) -> bool {
        self.span.low.is_finite() && self.span.high.is_finite()
    }
}

/// Indices of points in blocks that are independent draws: trajectories, or base points.
pub trait Estimates {
    /// The parts of the estimators that each block has.
    type Terms;

    /// Number of blocks.
    fn blocks(&self) -> usize;

    /// The terms of all blocks.
    fn terms(&self, points: &[Span]) -> Self::Terms;

    /// All indices from these blocks, some of which may occur several times. Bounds contain the index of every choice of the
    /// unknown values.
    fn estimate(&self, terms: &Self::Terms, blocks: &[usize]) -> Vec<Span>;

    /// The least and the greatest value that the index at this position may truly have.
    fn possible(&self, at: usize) -> (f64, f64);
}

/// Values of a metric: for each seed one for each point, NaN for a missing one.
#[derive(Debug)]
pub struct Values {
    /// By seed, then by point.
    pub by_seed: Vec<Vec<f64>>,
    /// The dependence of the seeds.
    pub seeds: Dependence,
    /// The least and the greatest number that a missing value may be.
    pub range: (f64, f64),
}

impl Values {
    /// Number of points.
    pub fn points(&self) -> usize {
        self.by_seed.first().map_or(0, Vec::len)
    }

    /// Whether a seed lacks the value of a point.
    pub fn is_missing(&self, point: usize) -> bool {
        self.by_seed.iter().any(|values| values[point].is_nan())
    }

    /// The mean of each point over these seeds, some of which may occur several times.
    fn means(&self, seeds: &[usize]) -> Vec<Span> {
        let count = seeds.len() as f64;
        let point = |at: usize| {
            let sum = seeds.iter().fold(Span::of(0.0), |sum, seed| sum + self.value(*seed, at));
            Span { low: sum.low / count, high: sum.high / count }
        };
        (0..self.points()).map(point).collect()
    }

    /// A value, or the range of a missing one.
    fn value(&self, seed: usize, point: usize) -> Span {
        let value = self.by_seed[seed][point];
        let (low, high) = if value.is_nan() { self.range } else { (value, value) };
        Span { low, high }
    }

    /// For each seed the mean of each point over all other seeds.
    fn means_without_each(&self) -> impl Iterator<Item = Vec<Span>> {
        let (seeds, points) = (self.by_seed.len(), self.points());
        let add = |sums: &[Span], seed: usize| -> Vec<Span> {
            sums.iter().enumerate().map(|(point, sum)| *sum + self.value(seed, point)).collect()
        };
        // Sums over the seeds from each one on. The sum of all without one would lose digits as a difference.
        let mut behind = vec![vec![Span::of(0.0); points]];
        for seed in (1..seeds).rev() {
            behind.push(add(&behind[behind.len() - 1], seed));
        }
        let mut before = vec![Span::of(0.0); points];
        let share = 1.0 / (seeds as f64 - 1.0);
        (0..seeds).zip(behind.into_iter().rev()).map(move |(seed, behind)| {
            let means = before.iter().zip(behind).map(|(before, behind)| (*before + behind).times(share)).collect();
            before = add(&before, seed);
            means
        })
    }
}

/// The indices of a design. The points and the seeds are independent: the square of half an interval is the sum of two squares.
/// That of the points is 1.96 standard deviations of 1,000 indices of resampled blocks. That of the seeds, if there are several,
/// is Student's of the jackknife.
pub fn indices(of: &impl Estimates, values: &Values) -> Vec<Index> {
    resampled(of, values, RESAMPLES)
}

fn resampled(of: &impl Estimates, values: &Values, resamples: usize) -> Vec<Index> {
    let seeds: Vec<usize> = (0..values.by_seed.len()).collect();
    let blocks: Vec<usize> = (0..of.blocks()).collect();
    let terms = of.terms(&values.means(&seeds));
    let found = of.estimate(&terms, &blocks);
    if blocks.len() < 2 {
        return found.into_iter().enumerate().map(|(at, span)| Index::new(span, None, of.possible(at))).collect();
    }
    let mut random = Philox::stream(RESAMPLING_SEED, Purpose::Resample);
    let mut again: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); found.len()];
    for _ in 0..resamples {
        let drawn: Vec<usize> = blocks.iter().map(|_| random.below(blocks.len() as u64) as usize).collect();
        for (of, span) in again.iter_mut().zip(of.estimate(&terms, &drawn)) {
            of.0.push(span.low);
            of.1.push(span.high);
        }
    }
    let over_seeds = jackknife(values, &found, |means| of.estimate(&of.terms(means), &blocks));
    let with_ends = |(at, span): (usize, Span)| {
        let half = |values: &[f64]| deviation(values).map(|sd| NORMAL * sd);
        let of_points = half(&again[at].0).zip(half(&again[at].1));
        let of_seeds = if seeds.len() > 1 { over_seeds[at].1 } else { Some((0.0, 0.0)) };
        let halves = of_points.zip(of_seeds).map(|(points, seeds)| (points.0.hypot(seeds.0), points.1.hypot(seeds.1)));
        Index::new(span, halves, of.possible(at))
    };
    found.into_iter().enumerate().map(with_ends).collect()
}

/// The indices of the means over the seeds, which `of` has. With several seeds, an index is freed of its bias of the order of
/// 1 / seeds, which is that of the variance between seeds, and has Student's interval of the jackknife. `possible`: the least and
/// the greatest value of an index.
fn jackknifed(values: &Values, possible: (f64, f64), of: impl Fn(&[Span]) -> Vec<Span>) -> Vec<Index> {
    let whole = of(&values.means(&(0..values.by_seed.len()).collect::<Vec<_>>()));
    let found = jackknife(values, &whole, of);
    found.into_iter().map(|(span, halves)| Index::new(span, halves, possible)).collect()
}

/// The jackknife over seeds (Efron & Tibshirani 1993, chapter 11): each of the indices `whole` without its bias, and half the
/// width of Student's interval of both its bounds. One seed changes no index, and has no interval.
fn jackknife(values: &Values, whole: &[Span], of: impl Fn(&[Span]) -> Vec<Span>) -> Vec<(Span, Option<(f64, f64)>)> {
    let seeds = values.by_seed.len();
    if seeds < 2 {
        return whole.iter().map(|span| (*span, None)).collect();
    }
    let parts: Vec<Vec<Span>> = values.means_without_each().map(|means| of(&means)).collect();
    let count = seeds as f64;
    let index = |(at, whole): (usize, &Span)| {
        let corrected = |end: fn(Span) -> f64| {
            let of: Vec<f64> = parts.iter().map(|part| count * end(*whole) - (count - 1.0) * end(part[at])).collect();
            let errors = Method::of(values.seeds, 95).errors(seeds);
            let half = deviation(&of).zip(errors).map(|(sd, errors)| errors * sd / count.sqrt());
            (sum(of.iter().copied()) / count, half)
        };
        let (low, below) = corrected(|span| span.low);
        let (high, above) = corrected(|span| span.high);
        (Span { low, high }, below.zip(above))
    };
    whole.iter().enumerate().map(index).collect()
}

/// The standard deviation of finite values.
fn deviation(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sd(&sorted).filter(|sd| sd.is_finite())
}

#[cfg(test)]
mod tests;
