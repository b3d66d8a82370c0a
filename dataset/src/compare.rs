//! Two sets of rows, compared pair by pair.
//!
//! Rows of A and B that have the same workload, machine, seed and so on simulate the same jobs (common random numbers). Their
//! difference varies less than each of them, so that intervals are computed from pairs alone.

use std::collections::HashMap;

use powersweep_engine::rng::{Philox, Purpose};

use crate::error::{Error, usage};
use crate::stats::{percentile, quotient, student_t, sum};
use crate::{Axis, Rows};

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;
/// Seed of the resamples: the same rows have the same interval.
const SEED: u64 = 1;

/// The rows of A and B that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// Row of A, row of B.
    pub rows: Vec<(usize, usize)>,
    /// The columns by which they are paired.
    pub by: Vec<String>,
    /// Rows of A and of B without a partner.
    pub single: (usize, usize),
}

/// Pairs the rows of A and B by the columns in which both vary. Both have the same axes.
pub fn pairs(a: &Rows, b: &Rows) -> Result<Pairs, Error> {
    for (name, rows) in [("A", a), ("B", b)] {
        if rows.is_empty() {
            return Err(usage(format!("{name} has no rows")));
        }
    }
    let varies = |axis: &Axis| axis.values().len() > 1;
    let shared = a.axes().iter().zip(b.axes()).filter(|(a, b)| varies(a) && varies(b));
    let (of_a, of_b): (Vec<&Axis>, Vec<&Axis>) = shared.unzip();
    let key = |axes: &[&Axis], row: usize| axes.iter().map(|axis| axis.code(row)).collect::<Vec<u32>>();
    let mut known = HashMap::new();
    for row in 0..a.len() {
        if known.insert(key(&of_a, row), row).is_some() {
            return Err(ambiguous("A", a, &of_a));
        }
    }
    let translated: Vec<_> = of_b.iter().zip(&of_a).map(|(b, a)| b.positions_in(a)).collect();
    let partner = |row: usize| {
        let codes = key(&of_b, row).into_iter().zip(&translated).map(|(code, to)| to[code as usize]);
        codes.collect::<Option<Vec<u32>>>().and_then(|key| known.get(&key).copied())
    };
    let mut rows: Vec<(usize, usize)> = (0..b.len()).filter_map(|row| Some((partner(row)?, row))).collect();
    rows.sort_unstable();
    if rows.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(ambiguous("B", b, &of_b));
    }
    if rows.is_empty() {
        return Err(usage("no row of A has a partner in B: they have no workload, machine or seed in common"));
    }
    let single = (a.len() - rows.len(), b.len() - rows.len());
    Ok(Pairs { rows, by: of_a.iter().map(|axis| axis.name().to_owned()).collect(), single })
}

/// Rows that are told apart only by columns in which the other side does not vary.
fn ambiguous(side: &str, rows: &Rows, by: &[&Axis]) -> Error {
    let is_other = |axis: &&Axis| axis.values().len() > 1 && by.iter().all(|by| by.name() != axis.name());
    let names: Vec<&str> = rows.axes().iter().filter(is_other).map(Axis::name).collect();
    usage(match names.is_empty() {
        true => format!("{side} has several rows for one of the other side: add a condition"),
        false => {
            format!("{side} has several rows for one of the other side: add a condition on {}", names.join(" or "))
        }
    })
}

/// An estimate with its 95% interval, which one pair does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The ends.
    pub ends: Option<(f64, f64)>,
}

/// What pairs of one measure show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Number of pairs that have both values.
    pub pairs: usize,
    /// Mean of A.
    pub a: f64,
    /// Mean of B.
    pub b: f64,
    /// Mean of B minus A.
    pub difference: Interval,
    /// Mean of B divided by the mean of A.
    pub ratio: Interval,
    /// Share of the pairs in which A is less.
    pub a_less: f64,
    /// Share of the pairs in which B is less.
    pub b_less: f64,
}

/// Sums over some pairs.
#[derive(Debug, Clone, Copy, Default)]
struct Unit {
    count: f64,
    a: f64,
    b: f64,
}

/// Compares pairs. Without `blocks`, each pair is a replication, and Student's t gives the intervals. `blocks` numbers the
/// block of each pair. Pairs of one block depend on each other, so a bootstrap of whole blocks gives the intervals.
/// `None` if no pair has both values.
pub fn compare(pairs: &[(f64, f64)], blocks: Option<&[i64]>) -> Option<Comparison> {
    let has_both = |at: &usize| !pairs[*at].0.is_nan() && !pairs[*at].1.is_nan();
    let kept: Vec<usize> = (0..pairs.len()).filter(has_both).collect();
    if kept.is_empty() {
        return None;
    }
    let unit = |at: usize| Unit { count: 1.0, a: pairs[at].0, b: pairs[at].1 };
    let units: Vec<Unit> = match blocks {
        None => kept.iter().map(|at| unit(*at)).collect(),
        Some(blocks) => summed(&kept, blocks, unit),
    };
    let total = total(units.iter());
    let count = kept.len() as f64;
    let share =
        |less: fn(f64, f64) -> bool| kept.iter().filter(|at| less(pairs[**at].0, pairs[**at].1)).count() as f64 / count;
    let interval = |of: Estimate| match blocks {
        None => of.by_t(&units),
        Some(_) => of.by_bootstrap(&units),
    };
    Some(Comparison {
        pairs: kept.len(),
        a: total.a / count,
        b: total.b / count,
        difference: interval(Estimate::Difference),
        ratio: interval(Estimate::Ratio),
        a_less: share(|a, b| a < b),
        b_less: share(|a, b| b < a),
    })
}

/// The sums of each block, in the order of the blocks.
fn summed(kept: &[usize], blocks: &[i64], unit: impl Fn(usize) -> Unit) -> Vec<Unit> {
    let mut by_block: std::collections::BTreeMap<i64, Vec<Unit>> = std::collections::BTreeMap::new();
    for at in kept {
        by_block.entry(blocks[*at]).or_default().push(unit(*at));
    }
    by_block.values().map(|units| total(units.iter())).collect()
}

fn total<'a>(units: impl Iterator<Item = &'a Unit> + Clone) -> Unit {
    let add = |of: fn(&Unit) -> f64| sum(units.clone().map(of));
    Unit { count: add(|unit| unit.count), a: add(|unit| unit.a), b: add(|unit| unit.b) }
}

/// What is estimated: a quotient of two sums over units.
#[derive(Debug, Clone, Copy)]
enum Estimate {
    Difference,
    Ratio,
}

impl Estimate {
    /// Numerator and denominator.
    fn parts(self, unit: &Unit) -> (f64, f64) {
        match self {
            Estimate::Difference => (unit.b - unit.a, unit.count),
            Estimate::Ratio => (unit.b, unit.a),
        }
    }

    /// The estimate, with its standard error.
    fn of(self, units: &[Unit]) -> (f64, f64) {
        quotient(units.iter().map(|unit| self.parts(unit)))
    }

    fn by_t(self, units: &[Unit]) -> Interval {
        let (value, error) = self.of(units);
        if units.len() < 2 || !value.is_finite() {
            return Interval { value, ends: None };
        }
        let half = student_t(95, units.len() - 1) * error;
        Interval { value, ends: half.is_finite().then_some((value - half, value + half)) }
    }

    /// The studentised bootstrap (Efron & Tibshirani 1993, 12.5): each resample of units has its own standard error.
    fn by_bootstrap(self, units: &[Unit]) -> Interval {
        let (value, error) = self.of(units);
        if units.len() < 2 || !value.is_finite() {
            return Interval { value, ends: None };
        }
        if error == 0.0 {
            return Interval { value, ends: Some((value, value)) };
        }
        let mut random = Philox::stream(SEED, Purpose::Resample);
        let mut studentised: Vec<f64> = Vec::with_capacity(RESAMPLES);
        let mut resample = vec![Unit::default(); units.len()];
        for _ in 0..RESAMPLES {
            resample.fill_with(|| units[random.below(units.len() as u64) as usize]);
            let (of, own) = self.of(&resample);
            // A resample of one block again and again has no error.
            if own > 0.0 && of.is_finite() {
                studentised.push((of - value) / own);
            }
        }
        studentised.sort_unstable_by(f64::total_cmp);
        let ends = percentile(&studentised, 97.5).zip(percentile(&studentised, 2.5));
        Interval { value, ends: ends.map(|(high, low)| (value - high * error, value - low * error)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_the_interval_of_their_differences() {
        let pairs = [(1.0, 2.0), (2.0, 3.5), (3.0, 5.0)];
        let found = compare(&pairs, None).expect("there are pairs");
        // Differences 1, 1.5 and 2: mean 1.5, standard deviation 0.5.
        let half = 4.302_652_73 * 0.5 / 3f64.sqrt();
        let (low, high) = found.difference.ends.expect("three pairs");
        assert_eq!((found.pairs, found.a, found.b, found.difference.value), (3, 2.0, 3.5, 1.5));
        assert!((low - (1.5 - half)).abs() < 1e-8 && (high - (1.5 + half)).abs() < 1e-8);
        assert_eq!((found.a_less, found.b_less, found.ratio.value), (1.0, 0.0, 1.75));
    }

    #[test]
    fn one_pair_has_no_interval_and_missing_values_are_no_pairs() {
        let found = compare(&[(1.0, 2.0), (f64::NAN, 1.0)], None).expect("a pair");
        assert_eq!((found.pairs, found.difference.ends, found.ratio.ends), (1, None, None));
        assert_eq!(compare(&[(1.0, f64::NAN)], None), None);
        assert_eq!(compare(&[(0.0, 1.0), (0.0, 2.0)], None).expect("pairs").ratio.ends, None);
    }

    /// Whether the intervals of `cases` experiments contain the truth.
    fn coverage(
        cases: u64,
        blocks: bool,
        make: impl Fn(&mut Philox) -> Vec<(f64, f64)>,
        truth: (f64, f64),
    ) -> [f64; 2] {
        let mut inside = [0; 2];
        for case in 0..cases {
            let pairs = make(&mut Philox::stream(case, Purpose::Arrival));
            let numbers: Vec<i64> = (0..pairs.len() as i64).map(|at| at / 20).collect();
            let found = compare(&pairs, blocks.then_some(&numbers)).expect("pairs");
            for (at, (interval, truth)) in [(found.difference, truth.0), (found.ratio, truth.1)].into_iter().enumerate()
            {
                let (low, high) = interval.ends.expect("there are several");
                inside[at] += u64::from(low <= truth && truth <= high);
            }
        }
        inside.map(|inside| inside as f64 / cases as f64)
    }

    /// 95% intervals of ten replications contain the truth in 93 to 97% of a thousand experiments.
    #[test]
    fn intervals_of_replications_cover_the_truth() {
        let make = |random: &mut Philox| {
            let pair = |_| {
                let load = 100.0 + 20.0 * random.normal();
                (load + random.normal(), 0.9 * load + 2.0 * random.normal())
            };
            (0..10).map(pair).collect()
        };
        for covered in coverage(1_000, false, make, (-10.0, 0.9)) {
            assert!((0.93..=0.97).contains(&covered), "{covered}");
        }
    }

    /// Intervals of 30 weeks of 20 jobs, which depend on the load of their week, contain the truth as often.
    #[test]
    fn intervals_of_blocks_cover_the_truth() {
        let make = |random: &mut Philox| {
            let mut pairs = Vec::new();
            for _ in 0..30 {
                let load = random.gamma(4.0, 25.0);
                pairs.extend((0..20).map(|_| {
                    let wait = load * random.exponential(1.0);
                    (wait, 0.8 * wait + 0.1 * load)
                }));
            }
            pairs
        };
        for covered in coverage(1_000, true, make, (-10.0, 0.9)) {
            assert!((0.93..=0.97).contains(&covered), "{covered}");
        }
    }
}
