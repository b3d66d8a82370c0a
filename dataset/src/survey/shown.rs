//! The points of combinations with their front, and the effect of each axis.

use std::collections::HashMap;

use powersweep_engine::seeds::Dependence;

use super::Choice;
use super::combinations::{Combination, Combinations, Mean, Values};
use super::shares::{Shares, shares};
use crate::best::unbeaten;
use crate::column::{number_of, sort_numbers};
use crate::replicates::{Interval, Method, Replicates};

/// Maximum number of points that a plot draws.
const POINTS_MAX: usize = 2_000;

/// The means of one combination over its seeds, in two metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The least index of the combination's tasks.
    pub index: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// The value along the horizontal axis.
    pub x: f64,
    /// The value along the vertical axis.
    pub y: f64,
    /// Half the widths of the intervals of both, over the seeds; only of points of the front.
    pub halves: [Option<f64>; 2],
    /// The value of the axis that distinguishes points.
    pub group: String,
    /// The mean of the metric whose effects are shown; `None` without values.
    pub of: Option<f64>,
    /// For each axis the position of the combination's value in [`Shown::effects`].
    pub levels: Vec<u32>,
}

/// A value of an axis, and the metric over the combinations that have it.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// The value; empty for none.
    pub text: String,
    /// The mean over the combinations with the value, each the mean over its seeds.
    pub mean: Mean,
    /// Combinations with the value for which a combination with the first value exists that is equal in all other axes, and
    /// has a common seed. The first value has none.
    pub pairs: u64,
    /// The mean of this value divided by the mean of the first value, over the pairs with equal seeds. `None` without pairs,
    /// or if the mean of the first value is not above 0.
    pub ratio: Option<Interval>,
    /// The mean of this value divided by the mean of all values of the axis, over the rows with equal other axes and equal
    /// seeds. `None` if no such rows have another value of the axis, or if their mean is not above 0.
    pub from_mean: Option<Interval>,
    /// The least index of its tasks.
    index: u64,
    position: u32,
}

/// A combination with the least or the greatest mean of the metric whose effects are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Extreme {
    /// The least index of the combination's tasks.
    pub index: u64,
    /// The mean over its seeds.
    pub value: f64,
    /// Half the width of its interval.
    pub half: Option<f64>,
    /// The value of each axis; empty for none.
    pub values: Vec<String>,
}

/// The points, the front and the effects of the combinations.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Number of rows.
    pub rows: u64,
    /// Number of rows with values of both metrics of the plot.
    pub rows_of_points: u64,
    /// Number of combinations with values of both metrics of the plot.
    pub combinations: usize,
    /// Some of their points.
    pub points: Vec<Point>,
    /// The smallest and the greatest value of each metric, of all points.
    pub span: Option<[(f64, f64); 2]>,
    /// Those of all points that no other one beats in both metrics, the best one in the first metric first. Of equal points,
    /// it has the one with the least index.
    pub front: Vec<Point>,
    /// For each axis its values: numbers ascend, other values have the order of the manifest, and none is the last.
    pub effects: Vec<Vec<Level>>,
    /// The share of each axis in the variance of the metric whose effects are shown.
    pub shares: Vec<Shares>,
    /// The mean over all combinations.
    pub mean: Mean,
    /// Half the width of the interval of this mean; `None` unless all combinations have equally many seeds.
    pub mean_half: Option<f64>,
    /// The combinations with the least and with the greatest mean. Of equal ones, the first.
    pub ends: Option<[Extreme; 2]>,
    /// Number of combinations of the sample, and of how many it has one; `None` if the survey has all combinations.
    pub sample: Option<(usize, u64)>,
    /// Of how many seeds one is in the pairs and intervals; `None` if all seeds are.
    pub seed_sample: Option<u64>,
}

impl Level {
    /// Whether all values of an axis are numbers, beside none.
    pub fn are_numbers(levels: &[Level]) -> bool {
        let is_number = |level: &Level| number_of(&level.text).is_some_and(|number| !number.is_nan());
        let mut named = levels.iter().filter(|level| !level.text.is_empty()).peekable();
        named.peek().is_some() && named.all(is_number)
    }
}

impl Shown {
    /// `axes`: number of axes. `by`: the number of the axis that distinguishes points. `seeds`: their dependence.
    pub(super) fn of(all: &Combinations, axes: usize, by: Option<usize>, choice: &Choice, seeds: Dependence) -> Shown {
        let sorted = all.sorted();
        let mut mean = Mean::default();
        sorted.iter().filter_map(|(_, combination)| combination.of.value()).for_each(|value| mean.add(value));
        let texts = by.map(|by| (by, all.texts(by)));
        let effects: Vec<Vec<Level>> = (0..axes).map(|axis| effect(all, &sorted, axis, seeds)).collect();
        // For each axis, the place of each value in the order of its levels.
        let places: Vec<HashMap<u32, u32>> =
            effects.iter().map(|levels| levels.iter().map(|level| level.position).zip(0..).collect()).collect();
        let point = |(values, combination): &(&Values, &Combination)| {
            let group = texts.as_ref().map_or("", |(by, texts)| texts[values[*by] as usize]);
            let (x, y) = (combination.x.value()?, combination.y.value()?);
            let levels = places.iter().zip(*values).map(|(places, value)| places[value]).collect();
            let (index, tasks, group) = (combination.index, combination.x.count, group.to_owned());
            Some((
                combination.hash,
                Point { index, tasks, x, y, halves: [None; 2], group, of: combination.of.value(), levels },
            ))
        };
        let mut points: Vec<(u64, Point)> = sorted.iter().filter_map(point).collect();
        let mut front = front(&points, choice);
        for point in &mut front {
            let at = sorted.binary_search_by_key(&point.index, |(_, combination)| combination.index);
            let rows = at.map_or(&[][..], |at| &sorted[at].1.of_point);
            point.halves = [0, 1].map(|axis| half(rows.iter().map(|(seed, values)| (*seed, values[axis])), seeds));
        }
        let span = span(&points);
        let combinations = points.len();
        points.sort_unstable_by_key(|(hash, _)| *hash);
        points.truncate(POINTS_MAX);
        Shown {
            rows: all.rows,
            rows_of_points: all.rows_of_points,
            combinations,
            points: points.into_iter().map(|(_, point)| point).collect(),
            span,
            front,
            effects,
            shares: shares(all, &sorted, seeds),
            mean,
            mean_half: mean_half(&sorted, seeds),
            ends: ends(all, &sorted, seeds),
            sample: (all.level > 0).then(|| (sorted.len(), 1 << all.level.min(63))),
            seed_sample: (all.seed_level > 0).then(|| 1 << all.seed_level.min(63)),
        }
    }
}

/// Half the width of the interval of a mean over seeds; `None` of one seed.
fn half(rows: impl Iterator<Item = (i64, f64)>, seeds: Dependence) -> Option<f64> {
    let ends = Replicates::of(rows, Method::of(seeds, 95)).mean().ends?;
    Some((ends.1 - ends.0) / 2.0)
}

fn mean_half(sorted: &[(&Values, &Combination)], seeds: Dependence) -> Option<f64> {
    let mut all = sorted.iter().map(|(_, combination)| &combination.by_seed).filter(|rows| !rows.is_empty());
    let first = all.clone().next()?.len();
    all.clone().all(|rows| rows.len() == first).then(|| half(all.by_ref().flatten().copied(), seeds)).flatten()
}

fn ends(all: &Combinations, sorted: &[(&Values, &Combination)], seeds: Dependence) -> Option<[Extreme; 2]> {
    let found: Vec<_> = sorted.iter().filter_map(|of| Some((of.1.of.value()?, *of))).collect();
    let texts: Vec<Vec<&str>> = (0..sorted.first()?.0.len()).map(|axis| all.texts(axis)).collect();
    let extreme = |(value, (values, combination)): &(f64, (&Values, &Combination))| {
        let values = values.iter().zip(&texts).map(|(value, texts)| texts[*value as usize].to_owned());
        let half = half(combination.by_seed.iter().copied(), seeds);
        Extreme { index: combination.index, value: *value, half, values: values.collect() }
    };
    let least = found.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    // Of equal values, `max_by` gives the last one.
    let most = found.iter().rev().max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some([extreme(least), extreme(most)])
}

fn span(points: &[(u64, Point)]) -> Option<[(f64, f64); 2]> {
    let of = |(_, point): &(u64, Point)| [(point.x, point.x), (point.y, point.y)];
    let wider = |one: (f64, f64), other: (f64, f64)| (one.0.min(other.0), one.1.max(other.1));
    points.iter().map(of).reduce(|one, other| [wider(one[0], other[0]), wider(one[1], other[1])])
}

/// The front of points that are in the order of their indices.
fn front(points: &[(u64, Point)], choice: &Choice) -> Vec<Point> {
    let cost = |value: f64, up: bool| if up { -value } else { value };
    let costs = |(_, point): &(u64, Point)| [cost(point.x, choice.x_up), cost(point.y, choice.y_up)];
    let costs: Vec<[f64; 2]> = points.iter().map(costs).collect();
    let mut front: Vec<Point> = unbeaten(&costs).into_iter().map(|at| points[at].1.clone()).collect();
    front.dedup_by(|other, one| (other.x, other.y) == (one.x, one.y));
    front
}

/// The values of an axis, each compared with the first one and with the mean of all at equal values of all other axes. An
/// axis that does not apply has no value there, and equals only another axis without a value.
fn effect(all: &Combinations, sorted: &[(&Values, &Combination)], axis: usize, seeds: Dependence) -> Vec<Level> {
    let mut levels: Vec<Level> = (0..)
        .zip(all.texts(axis))
        .map(|(position, text)| Level { text: text.to_owned(), index: u64::MAX, position, ..Level::default() })
        .collect();
    for (values, combination) in sorted {
        let level = &mut levels[values[axis] as usize];
        level.index = level.index.min(combination.index);
        level.mean.add(combination.of.value().unwrap_or(f64::NAN));
    }
    let mut compared = vec![Compared::default(); levels.len()];
    // Other values belong to combinations outside the sample.
    levels.retain(|level| level.index < u64::MAX);
    levels.sort_by_key(|level| (level.text.is_empty(), level.index));
    let named = levels.iter().filter(|level| !level.text.is_empty()).count();
    sort_numbers(&mut levels[..named], |level| &level.text);
    let Some(first) = levels.first().map(|level| level.position) else { return levels };
    let mut peers: HashMap<Values, Vec<(u32, &Combination)>> = HashMap::new();
    for (values, combination) in sorted {
        let mut others = (*values).clone();
        let position = std::mem::take(&mut others[axis]);
        peers.entry(others).or_default().push((position, combination));
    }
    peers.values().filter(|peers| peers.len() > 1).for_each(|peers| compare(peers, first, &mut compared));
    for level in &mut levels {
        let Compared { pairs, with_first, with_mean } = std::mem::take(&mut compared[level.position as usize]);
        level.pairs = pairs;
        level.ratio = ratio(&with_first, seeds);
        level.from_mean = ratio(&with_mean, seeds);
    }
    levels
}

/// The rows of a value that have partners, as (seed, value of the partner, value).
#[derive(Debug, Clone, Default)]
struct Compared {
    /// Number of combinations with a partner of the first value.
    pairs: u64,
    /// Beside the row of the first value.
    with_first: Vec<(i64, f64, f64)>,
    /// Beside the mean of the rows of all values.
    with_mean: Vec<(i64, f64, f64)>,
}

/// Compares combinations that differ in the value of one axis alone, seed by seed.
fn compare(peers: &[(u32, &Combination)], first: u32, compared: &mut [Compared]) {
    let of_peer = |(position, combination): &(u32, &Combination)| {
        let position = *position;
        combination.by_seed.iter().map(move |(seed, value)| (*seed, *value, position)).collect::<Vec<_>>()
    };
    let mut rows: Vec<(i64, f64, u32)> = peers.iter().flat_map(of_peer).collect();
    // The mean does not depend on the order of the values.
    rows.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2)));
    let mut paired = vec![false; compared.len()];
    for rows in rows.chunk_by(|one, other| one.0 == other.0).filter(|rows| rows.len() > 1) {
        let mut mean = Mean::default();
        rows.iter().for_each(|(_, value, _)| mean.add(*value));
        let of_first = rows.iter().find(|(.., position)| *position == first).map(|(_, value, _)| *value);
        for (seed, value, position) in rows {
            let compared = &mut compared[*position as usize];
            compared.with_mean.extend(mean.value().map(|mean| (*seed, mean, *value)));
            if let Some(of_first) = of_first.filter(|_| *position != first) {
                compared.with_first.push((*seed, of_first, *value));
                paired[*position as usize] = true;
            }
        }
    }
    compared.iter_mut().zip(paired).for_each(|(compared, paired)| compared.pairs += u64::from(paired));
}

/// The ratio over rows with their partners, by the estimator of all comparisons.
fn ratio(rows: &[(i64, f64, f64)], seeds: Dependence) -> Option<Interval> {
    let replicates = Replicates::of_pairs(rows.iter().copied(), Method::of(seeds, 95));
    Some(replicates).filter(|of| of.count() > 0 && of.mean_a() > 0.0).map(|of| of.ratio())
}
