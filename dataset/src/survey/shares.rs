//! The share of each axis in the variance of the metric whose effects are shown.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::seeds::Dependence;

use super::combinations::{Combination, Combinations, Values};
use crate::sensitivity::grid::Grid;
use crate::sensitivity::{Index, Values as BySeed};

/// Work that a page may take: cells, times seeds, times axes.
const WORK_MAX: usize = 4_000_000;

/// The share of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The number of the axis.
    pub axis: usize,
    /// Its share alone (S1).
    pub alone: Index,
    /// Its share with others (ST).
    pub with_others: Index,
}

/// The shares of combinations in which the same axes have values.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// The axes with one value here, and that value; none if all combinations have the same axes.
    pub only: Vec<(usize, String)>,
    /// Number of combinations.
    pub cells: usize,
    /// Number of seeds.
    pub seeds: usize,
    /// The axes with several values, that with the greatest share first.
    pub of: Vec<Share>,
}

/// The shares of all parts; none of a part whose combinations lack a seed, or whose axes cannot be told apart.
pub(super) fn shares(all: &Combinations, sorted: &[(&Values, &Combination)], of_seeds: Dependence) -> Vec<Shares> {
    let Some(axes) = sorted.first().map(|(values, _)| values.len()) else { return Vec::new() };
    if all.level > 0 || all.seed_level > 0 {
        return Vec::new();
    }
    let texts: Vec<Vec<&str>> = (0..axes).map(|axis| all.texts(axis)).collect();
    let mut parts: BTreeMap<Vec<bool>, Vec<(&Values, &Combination)>> = BTreeMap::new();
    for (values, combination) in sorted {
        let pattern = values.iter().zip(&texts).map(|(value, texts)| texts[*value as usize].is_empty()).collect();
        parts.entry(pattern).or_default().push((*values, *combination));
    }
    let is_one = parts.len() == 1;
    parts.into_values().filter_map(|part| of_part(&part, &texts, is_one, of_seeds)).collect()
}

fn of_part(
    part: &[(&Values, &Combination)],
    texts: &[Vec<&str>],
    is_one: bool,
    of_seeds: Dependence,
) -> Option<Shares> {
    let levels: Vec<Vec<u32>> = (0..texts.len())
        .map(|axis| part.iter().map(|(values, _)| values[axis]).collect::<BTreeSet<u32>>().into_iter().collect())
        .collect();
    let varying: Vec<usize> = (0..texts.len()).filter(|axis| levels[*axis].len() > 1).collect();
    let seeds: BTreeSet<i64> = part.iter().flat_map(|(_, of)| of.by_seed.iter().map(|(seed, _)| *seed)).collect();
    let is_whole = part.iter().all(|(_, of)| of.by_seed.len() == seeds.len());
    if varying.is_empty() || !is_whole || part.len() * seeds.len() * varying.len() > WORK_MAX {
        return None;
    }
    let cell =
        |values: &Values| varying.iter().map(|axis| levels[*axis].binary_search(&values[*axis]).unwrap_or(0)).collect();
    let grid = Grid {
        levels: varying.iter().map(|axis| levels[*axis].len()).collect(),
        cells: part.iter().map(|(values, _)| cell(values)).collect(),
    };
    let mut by_seed: BTreeMap<i64, Vec<f64>> = seeds.iter().map(|seed| (*seed, vec![f64::NAN; part.len()])).collect();
    for (at, (_, combination)) in part.iter().enumerate() {
        for (seed, value) in &combination.by_seed {
            by_seed.get_mut(seed)?[at] = *value;
        }
    }
    let values =
        BySeed { by_seed: by_seed.into_values().collect(), seeds: of_seeds, range: (f64::NEG_INFINITY, f64::INFINITY) };
    let found = grid.shares(&values).ok()?;
    let share = |(axis, [alone, with_others]): (&usize, [Index; 2])| Share { axis: *axis, alone, with_others };
    let mut of: Vec<Share> = varying.iter().zip(found.of_axes).map(share).collect();
    if of.iter().any(|share| !share.with_others.is_finite() || !share.alone.is_finite()) {
        return None;
    }
    of.sort_by(|one, other| other.with_others.span.low.total_cmp(&one.with_others.span.low));
    let constant = (0..texts.len()).filter(|axis| !is_one && levels[*axis].len() == 1);
    let only = constant.map(|axis| (axis, texts[axis][levels[axis][0] as usize].to_owned())).collect();
    Some(Shares { only, cells: part.len(), seeds: seeds.len(), of })
}
