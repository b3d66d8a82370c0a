//! What the rows of an experiment show together: points of two metrics with their Pareto front, and the mean of a metric
//! for each value of each axis.
//!
//! Rows are added once, part by part, and are not kept: a survey has a bounded size, whatever the number of rows is.

mod points;

use std::collections::{BTreeMap, BTreeSet};

use powersweep_dataset::best::unbeaten;
use powersweep_dataset::column::sort_numbers;
use powersweep_dataset::{Axis, Cell, Rows};

pub use self::points::{Point, Points};

/// Values of an axis whose means are kept.
const VALUES_MAX: usize = 200;

/// What is surveyed. An empty name stands for the usual column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The metric along the horizontal axis.
    pub x: String,
    /// The metric along the vertical axis.
    pub y: String,
    /// Whether more is better of the metric along the horizontal axis.
    pub x_up: bool,
    /// Whether more is better of the metric along the vertical axis.
    pub y_up: bool,
    /// The axis that distinguishes points.
    pub by: String,
    /// The metric whose means are shown.
    pub of: String,
}

/// Sum and number of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mean {
    /// Number of values.
    pub count: u64,
    sum: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.count += 1;
            self.sum += value;
        }
    }

    /// The mean; `None` without values.
    pub fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// The mean of a metric for one value of an axis.
#[derive(Debug, Clone, Default)]
struct Level {
    /// The least index of its tasks.
    first: u64,
    mean: Mean,
}

/// The means of a metric for the values of one axis.
#[derive(Debug, Clone, Default)]
pub struct Effect {
    /// By the text of the value.
    levels: BTreeMap<String, Level>,
    /// Whether further values were left out.
    pub is_cut: bool,
}

impl Effect {
    /// Adds rows with these values of the axis, these task indices and these values of the metric.
    fn add(&mut self, axis: &Axis, index: &[u64], of: &[f64]) {
        let mut sums: Vec<Option<Level>> = vec![None; axis.values().len()];
        for (row, (index, of)) in index.iter().zip(of).enumerate() {
            let level = sums[axis.code(row) as usize].get_or_insert(Level { first: *index, mean: Mean::default() });
            level.first = level.first.min(*index);
            level.mean.add(*of);
        }
        for (value, sum) in axis.values().iter().zip(sums) {
            let Some(sum) = sum else { continue };
            let text = text(value);
            if let Some(level) = self.levels.get_mut(&text) {
                level.first = level.first.min(sum.first);
                level.mean.count += sum.mean.count;
                level.mean.sum += sum.mean.sum;
            } else if self.levels.len() < VALUES_MAX {
                self.levels.insert(text, sum);
            } else {
                self.is_cut = true;
            }
        }
    }

    /// Values with their means: numbers ascend, other values have the order of the manifest.
    pub fn sorted(&self) -> Vec<(&str, Mean)> {
        let mut found: Vec<(&String, &Level)> = self.levels.iter().collect();
        found.sort_by_key(|(_, level)| level.first);
        sort_numbers(&mut found, |(text, _)| text);
        found.into_iter().map(|(text, level)| (text.as_str(), level.mean)).collect()
    }
}

/// A value as a condition names it; empty for none.
fn text(value: &Cell) -> String {
    if value.is_null() { String::new() } else { value.exact() }
}

/// What was summed up of some rows.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Number of rows.
    pub rows: u64,
    /// The points.
    pub points: Points,
    /// Those that no other one beats in both metrics, the best one in the first metric first. Of equal points, it has the
    /// one with the least index.
    pub front: Vec<Point>,
    /// For each axis.
    pub effects: Vec<Effect>,
    /// The mean of all rows.
    pub mean: Mean,
}

impl Sums {
    /// Adds rows with the axes of a survey and the measures of its choice. `by`: the number of the axis that distinguishes
    /// points.
    fn add(&mut self, rows: &Rows, by: Option<usize>, choice: &Choice) {
        self.effects.resize_with(rows.axes().len(), Effect::default);
        self.rows += rows.len() as u64;
        let measure = |name: &str| rows.measures().iter().find(|(field, _)| field.name() == name);
        let (Some((_, x)), Some((_, y)), Some((_, of))) = (measure(&choice.x), measure(&choice.y), measure(&choice.of))
        else {
            return;
        };
        let index: Vec<u64> = (0..rows.len()).map(|row| rows.index(row) as u64).collect();
        of.iter().for_each(|of| self.mean.add(*of));
        for (effect, axis) in self.effects.iter_mut().zip(rows.axes()) {
            effect.add(axis, &index, of);
        }
        let groups: Option<(&Axis, Vec<String>)> =
            by.map(|by| (&rows.axes()[by], rows.axes()[by].values().iter().map(text).collect()));
        for (row, (x, y)) in x.iter().copied().zip(y.iter().copied()).enumerate() {
            if x.is_finite() && y.is_finite() {
                let group = groups.as_ref().map_or("", |(axis, texts)| &texts[axis.code(row) as usize]);
                let point = Point { index: index[row], x, y, group: group.to_owned() };
                self.points.add(&point);
                self.front.push(point);
            }
        }
        self.front.sort_by_key(|point| point.index);
        let cost = |value: f64, up: bool| if up { -value } else { value };
        let costs = |point: &Point| [cost(point.x, choice.x_up), cost(point.y, choice.y_up)];
        let all: Vec<[f64; 2]> = self.front.iter().map(costs).collect();
        self.front = unbeaten(&all).into_iter().map(|at| self.front[at].clone()).collect();
        self.front.dedup_by(|other, one| (other.x, other.y) == (one.x, one.y));
    }
}

/// Sums over the rows that were added so far.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// With the name of every column.
    pub choice: Choice,
    /// Metrics that can be chosen: those that differ between tasks.
    pub metrics: Vec<String>,
    /// The axes with several values.
    pub axes: Vec<String>,
    /// Units by metric, where they have one.
    pub units: BTreeMap<String, String>,
    /// What is shown.
    pub sums: Sums,
    /// The rows of parts, which do not change.
    settled: Sums,
    parts: BTreeSet<String>,
}

impl Survey {
    /// A survey without rows.
    pub fn new(choice: Choice, metrics: Vec<String>, axes: Vec<String>, units: BTreeMap<String, String>) -> Survey {
        Survey { choice, metrics, axes, units, ..Survey::default() }
    }

    /// Whether rows can be added to a survey of the same question whose parts still exist.
    pub fn continues(&self, before: &Survey, parts: &BTreeSet<String>) -> bool {
        self.choice == before.choice && self.axes == before.axes && before.parts.is_subset(parts)
    }

    /// Takes over the rows of an earlier survey.
    pub fn continue_from(&mut self, before: Survey) {
        (self.settled, self.parts) = (before.settled, before.parts);
    }

    /// Whether the rows of a part were added.
    pub fn has(&self, part: &str) -> bool {
        self.parts.contains(part)
    }

    /// Adds rows of a part, with the axes of the survey and the measures of its choice.
    pub fn add(&mut self, rows: &Rows) {
        let by = self.by();
        self.settled.add(rows, by, &self.choice);
    }

    /// All rows of a part were added.
    pub fn end_part(&mut self, part: &str) {
        self.parts.insert(part.to_owned());
    }

    /// All parts were added; rows that are not published follow.
    pub fn settle(&mut self) {
        self.sums = self.settled.clone();
    }

    /// Adds rows that may be in a part the next time.
    pub fn add_unpublished(&mut self, rows: &Rows) {
        let by = self.by();
        self.sums.add(rows, by, &self.choice);
    }

    /// The number of the axis that distinguishes points.
    pub fn by(&self) -> Option<usize> {
        self.axes.iter().position(|axis| *axis == self.choice.by)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use powersweep_dataset::{Column, Frame};

    use super::*;

    /// A survey of `rows` with the values (x, y, policy, the metric of the means).
    pub(crate) fn survey(rows: &[(f64, f64, &str, f64)]) -> Survey {
        let choice = Choice { x: "x".into(), y: "y".into(), by: "policy".into(), of: "z".into(), ..Choice::default() };
        let mut survey = Survey::new(choice, vec!["x".into(), "y".into()], vec!["policy".into()], BTreeMap::new());
        survey.add(&batch(rows));
        survey.end_part("p");
        survey.settle();
        survey
    }

    fn batch(rows: &[(f64, f64, &str, f64)]) -> Rows {
        let frame = Frame::of([
            Column::texts("policy", "", rows.iter().map(|row| row.2)),
            Column::numbers("x", "", "", rows.iter().map(|row| row.0)),
            Column::numbers("y", "", "", rows.iter().map(|row| row.1)),
            Column::numbers("z", "", "", rows.iter().map(|row| row.3)),
        ]);
        Rows::of(&frame, &["policy"], &["x", "y", "z"]).expect("columns")
    }

    #[test]
    fn means_leave_out_rows_without_a_value() {
        let survey =
            survey(&[(1.0, 2.0, "10", 1.0), (1.0, 2.0, "9", 4.0), (1.0, 2.0, "10", 3.0), (1.0, 2.0, "9", f64::NAN)]);
        let found = survey.sums.effects[0].sorted();
        let found: Vec<_> = found.iter().map(|(text, mean)| (*text, mean.count, mean.value())).collect();
        assert_eq!(found, [("9", 1, Some(4.0)), ("10", 2, Some(2.0))]);
        assert_eq!((survey.sums.rows, survey.sums.mean.count), (4, 3));
    }

    #[test]
    fn unpublished_rows_count_once() {
        let mut survey = survey(&[(1.0, 2.0, "a", 1.0)]);
        let more = batch(&[(5.0, 1.0, "b", 1.0)]);
        for _ in 0..2 {
            let mut next = Survey::new(survey.choice.clone(), Vec::new(), survey.axes.clone(), BTreeMap::new());
            assert!(next.continues(&survey, &BTreeSet::from(["p".to_owned(), "q".to_owned()])));
            assert!(!next.continues(&survey, &BTreeSet::from(["q".to_owned()])), "its rows moved to another part");
            next.continue_from(survey);
            next.settle();
            next.add_unpublished(&more);
            survey = next;
            assert_eq!((survey.sums.rows, survey.sums.front.len()), (2, 2));
        }
    }

    #[test]
    fn values_have_the_order_of_their_least_tasks() {
        let of = |rows: &[(f64, f64, &str, f64)]| {
            let found = survey(rows);
            found.sums.effects[0].sorted().into_iter().map(|(text, _)| text.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(1.0, 1.0, "sjf", 1.0), (1.0, 1.0, "easy", 1.0), (1.0, 1.0, "sjf", 1.0)]), ["sjf", "easy"]);
        assert_eq!(of(&[(1.0, 1.0, "10", 1.0), (1.0, 1.0, "9", 1.0)]), ["9", "10"]);
    }

    /// Indices of the front's points.
    fn front(points: &[(f64, f64)], up: (bool, bool)) -> Vec<u64> {
        let rows: Vec<(f64, f64, &str, f64)> = points.iter().map(|(x, y)| (*x, *y, "", 0.0)).collect();
        let choice =
            Choice { x: "x".into(), y: "y".into(), of: "z".into(), x_up: up.0, y_up: up.1, ..Choice::default() };
        let mut sums = Sums::default();
        sums.add(&batch(&rows), None, &choice);
        sums.front.iter().map(|point| point.index).collect()
    }

    #[test]
    fn no_point_of_the_front_is_dominated() {
        let points = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 3.0), (1.0, 4.0), (-1.0, 9.0)];
        assert_eq!(front(&points, (false, false)), [7, 1, 2, 0]);
        assert_eq!(front(&points, (true, false)), [0]);
        assert_eq!(front(&points, (false, true)), [7]);
        assert_eq!(front(&[(0.0, 1.0), (-0.0, 1.0), (0.0, 0.0)], (false, false)), [2]);
    }

    #[test]
    fn the_front_equals_a_comparison_of_all_pairs() {
        let number = |n: u64| ((n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 23) as f64 - 11.0;
        let points: Vec<(f64, f64)> = (0..300).map(|n| (number(n), number(n + 1_000))).collect();
        let better = |one: (f64, f64), other: (f64, f64)| one.0 <= other.0 && one.1 >= other.1 && one != other;
        let mut expected: Vec<u64> = (0..points.len())
            .filter(|at| {
                !points.iter().any(|other| better(*other, points[*at])) && !points[..*at].contains(&points[*at])
            })
            .map(|at| at as u64)
            .collect();
        let mut found = front(&points, (false, true));
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
