//! The points of combinations with their front, and the effect of each axis.

use powersweep_dataset::best::unbeaten;
use powersweep_dataset::column::sort_numbers;

use super::Choice;
use super::combinations::{Combination, Combinations, Mean, Values};

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
    /// The value of the axis that distinguishes points.
    pub group: String,
}

/// A value of an axis, and the metric over the combinations that have it.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// The value; empty for none.
    pub text: String,
    /// The mean over the combinations with the value, each the mean over its seeds.
    pub mean: Mean,
    /// Combinations with the value for which a combination with the first value exists that is equal in all other axes.
    /// The first value has none.
    pub pairs: u64,
    /// The mean of this value divided by the mean of the first value, over the pairs. `None` without pairs, or if the mean of the
    /// first value is not above 0.
    pub ratio: Option<f64>,
    /// The least index of its tasks.
    index: u64,
    position: u32,
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
    /// The mean over all combinations.
    pub mean: Mean,
    /// Number of combinations of the sample, and of how many it has one; `None` if the survey has all combinations.
    pub sample: Option<(usize, u64)>,
}

impl Shown {
    /// `axes`: number of axes. `by`: the number of the axis that distinguishes points.
    pub(super) fn of(all: &Combinations, axes: usize, by: Option<usize>, choice: &Choice) -> Shown {
        let sorted = all.sorted();
        let mut mean = Mean::default();
        sorted.iter().filter_map(|(_, combination)| combination.of.value()).for_each(|value| mean.add(value));
        let texts = by.map(|by| (by, all.texts(by)));
        let point = |(values, combination): &(&Values, &Combination)| {
            let group = texts.as_ref().map_or("", |(by, texts)| texts[values[*by] as usize]);
            let (x, y) = (combination.x.value()?, combination.y.value()?);
            let point = Point { index: combination.index, tasks: combination.x.count, x, y, group: group.to_owned() };
            Some((combination.hash, point))
        };
        let mut points: Vec<(u64, Point)> = sorted.iter().filter_map(point).collect();
        let front = front(&points, choice);
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
            effects: (0..axes).map(|axis| effect(all, &sorted, axis)).collect(),
            mean,
            sample: (all.level > 0).then(|| (sorted.len(), 1 << all.level.min(63))),
        }
    }
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

/// The values of an axis, each compared with the first one at equal values of all other axes. An axis that does not apply
/// has no value there, and equals only another axis without a value.
fn effect(all: &Combinations, sorted: &[(&Values, &Combination)], axis: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = (0..)
        .zip(all.texts(axis))
        .map(|(position, text)| Level { text: text.to_owned(), index: u64::MAX, position, ..Level::default() })
        .collect();
    for (values, combination) in sorted {
        let level = &mut levels[values[axis] as usize];
        level.index = level.index.min(combination.index);
        level.mean.add(combination.of.value().unwrap_or(f64::NAN));
    }
    let mut pairs = vec![[Mean::default(); 2]; levels.len()];
    // Other values belong to combinations outside the sample.
    levels.retain(|level| level.index < u64::MAX);
    levels.sort_by_key(|level| (level.text.is_empty(), level.index));
    let named = levels.iter().filter(|level| !level.text.is_empty()).count();
    sort_numbers(&mut levels[..named], |level| &level.text);
    let Some(first) = levels.first().map(|level| level.position) else { return levels };
    let mut partner = Values::new();
    for (values, combination) in sorted.iter().filter(|(values, _)| values[axis] != first) {
        partner.clone_from(values);
        partner[axis] = first;
        let other = all.get(&partner).and_then(|other| other.of.value());
        if let (Some(value), Some(other)) = (combination.of.value(), other) {
            let [of_value, of_first] = &mut pairs[values[axis] as usize];
            of_value.add(value);
            of_first.add(other);
        }
    }
    for level in &mut levels {
        let [of_value, of_first] = pairs[level.position as usize];
        level.pairs = of_value.count;
        let divisor = of_first.value().filter(|value| *value > 0.0);
        level.ratio = of_value.value().zip(divisor).map(|(value, divisor)| value / divisor);
    }
    levels
}
