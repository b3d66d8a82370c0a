//! Two sets of rows, compared pair by pair.
//!
//! Rows of A and B that have the same workload, machine, seed and so on simulate the same jobs (common random numbers). Their
//! difference varies less than each of them, so that intervals are computed from pairs alone.

use std::collections::HashMap;

use crate::error::{Error, usage};
use crate::replicates::{Interval, Method, Replicates};
use crate::{Axis, Rows};

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

/// What pairs of one measure show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Number of pairs that have both values.
    pub pairs: usize,
    /// Number of replicates that these pairs are from: seeds or weeks.
    pub replicates: usize,
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

impl Comparison {
    /// The size of the greatest of the means, of their difference and of the ends of its interval.
    pub fn greatest(&self) -> f64 {
        let ends = self.difference.ends.map(|(low, high)| [low, high]);
        let all = [self.a, self.b, self.difference.value].into_iter().chain(ends.into_iter().flatten());
        all.map(f64::abs).filter(|size| size.is_finite()).fold(0.0, f64::max)
    }

    /// The comparison of the values divided by a positive number.
    #[must_use]
    pub fn divided(&self, by: f64) -> Comparison {
        let Interval { value, ends } = self.difference;
        let difference = Interval { value: value / by, ends: ends.map(|(low, high)| (low / by, high / by)) };
        Comparison { a: self.a / by, b: self.b / by, difference, ..*self }
    }
}

/// Compares pairs of (replicate, value of A, value of B), in which NaN stands for no value. `None` if no pair has both.
pub fn compare(pairs: impl Iterator<Item = (i64, f64, f64)>, method: Method) -> Option<Comparison> {
    let kept: Vec<(i64, f64, f64)> = pairs.filter(|(_, a, b)| !a.is_nan() && !b.is_nan()).collect();
    if kept.is_empty() {
        return None;
    }
    let replicates = Replicates::of_pairs(kept.iter().copied(), method);
    let share =
        |less: fn(f64, f64) -> bool| kept.iter().filter(|(_, a, b)| less(*a, *b)).count() as f64 / kept.len() as f64;
    Some(Comparison {
        pairs: kept.len(),
        replicates: replicates.count(),
        a: replicates.mean_a(),
        b: replicates.mean().value,
        difference: replicates.difference(),
        ratio: replicates.ratio(),
        a_less: share(|a, b| a < b),
        b_less: share(|a, b| b < a),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_has_no_interval_and_missing_values_are_no_pairs() {
        let compared = |pairs: &[(f64, f64)]| {
            compare(pairs.iter().enumerate().map(|(at, (a, b))| (at as i64, *a, *b)), Method::T(95))
        };
        let found = compared(&[(1.0, 2.0), (f64::NAN, 1.0)]).expect("a pair");
        assert_eq!((found.pairs, found.replicates, found.difference.ends, found.ratio.ends), (1, 1, None, None));
        assert_eq!(compared(&[(1.0, f64::NAN)]), None);
        let found = compared(&[(1.0, 2.0), (2.0, 3.5), (3.0, 5.0)]).expect("pairs");
        assert_eq!((found.a, found.b, found.a_less, found.b_less, found.ratio.value), (2.0, 3.5, 1.0, 0.0, 1.75));
    }
}
