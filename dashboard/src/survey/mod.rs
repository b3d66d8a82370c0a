//! What the rows of an experiment show together: points of two metrics with their Pareto front, and the mean of a metric
//! for each value of each axis.
//!
//! Rows are added once, part by part, and are not kept: a survey has a bounded size, whatever the number of rows is.

mod front;
mod points;

use std::collections::{BTreeMap, BTreeSet};

pub use self::front::Front;
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
    /// Whether more is better of these metrics.
    pub x_up: bool,
    /// See `x_up`.
    pub y_up: bool,
    /// The axis that distinguishes points.
    pub by: String,
    /// The metric whose means are shown.
    pub of: String,
}

/// A value of an axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Value {
    /// For people, and in a condition such as `policy=easy`.
    pub text: String,
    /// Its number, if it is one.
    pub number: Option<f64>,
}

/// A column of few values: each row has the number of one of them.
#[derive(Debug, Default)]
pub struct Coded {
    /// The values.
    pub values: Vec<Value>,
    /// The number of each row's value; empty if all rows have the first value.
    pub codes: Vec<u32>,
}

impl Coded {
    fn code(&self, row: usize) -> usize {
        self.codes.get(row).map_or(0, |code| *code as usize)
    }
}

/// Some rows, column by column. A missing number is NaN.
#[derive(Debug, Default)]
pub struct Batch {
    /// Task indices.
    pub index: Vec<u64>,
    /// The columns of the [`Choice`].
    pub x: Vec<f64>,
    /// See `x`.
    pub y: Vec<f64>,
    /// See `x`.
    pub of: Vec<f64>,
    /// The axes of [`Survey::axes`].
    pub axes: Vec<Coded>,
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

/// The means of a metric for the values of one axis.
#[derive(Debug, Clone, Default)]
pub struct Effect {
    /// By the text of the value.
    values: BTreeMap<String, (Option<f64>, Mean)>,
    /// Whether further values were left out.
    pub is_cut: bool,
}

impl Effect {
    fn add(&mut self, value: &Value, of: f64) {
        if let Some((_, mean)) = self.values.get_mut(&value.text) {
            return mean.add(of);
        }
        if self.values.len() == VALUES_MAX {
            self.is_cut = true;
            return;
        }
        let mut mean = Mean::default();
        mean.add(of);
        self.values.insert(value.text.clone(), (value.number, mean));
    }

    /// Values with their means: numbers in their order, then texts.
    pub fn sorted(&self) -> Vec<(&str, Mean)> {
        let mut found: Vec<_> =
            self.values.iter().map(|(text, (number, mean))| (text.as_str(), number, *mean)).collect();
        let place = |number: &Option<f64>| number.unwrap_or(f64::INFINITY);
        found.sort_by(|one, other| place(one.1).total_cmp(&place(other.1)));
        found.into_iter().map(|(text, _, mean)| (text, mean)).collect()
    }
}

/// What was summed up of some rows.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Number of rows.
    pub rows: u64,
    /// The points.
    pub points: Points,
    /// Those of which no other one is better in both metrics.
    pub front: Front,
    /// For each axis.
    pub effects: Vec<Effect>,
    /// The mean of all rows.
    pub mean: Mean,
}

impl Sums {
    /// Adds rows. `by`: the number of the axis that distinguishes points.
    fn add(&mut self, batch: &Batch, by: Option<usize>, choice: &Choice) {
        self.effects.resize_with(batch.axes.len(), Effect::default);
        self.rows += batch.index.len() as u64;
        for (row, index) in batch.index.iter().copied().enumerate() {
            let of = batch.of[row];
            self.mean.add(of);
            for (effect, axis) in self.effects.iter_mut().zip(&batch.axes) {
                effect.add(&axis.values[axis.code(row)], of);
            }
            let (x, y) = (batch.x[row], batch.y[row]);
            if !x.is_finite() || !y.is_finite() {
                continue;
            }
            let group = by.map_or("", |by| &batch.axes[by].values[batch.axes[by].code(row)].text);
            self.points.add(index, x, y, group);
            self.front.add(index, (x, y), (choice.x_up, choice.y_up), group);
        }
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

    /// Adds rows of a part.
    pub fn add(&mut self, batch: &Batch) {
        let by = self.by();
        self.settled.add(batch, by, &self.choice);
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
    pub fn add_unpublished(&mut self, batch: &Batch) {
        let by = self.by();
        self.sums.add(batch, by, &self.choice);
    }

    /// The number of the axis that distinguishes points.
    pub fn by(&self) -> Option<usize> {
        self.axes.iter().position(|axis| *axis == self.choice.by)
    }
}

#[cfg(test)]
pub(crate) mod tests {
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

    fn batch(rows: &[(f64, f64, &str, f64)]) -> Batch {
        let values = rows.iter().map(|row| Value { text: row.2.to_owned(), number: row.2.parse().ok() }).collect();
        Batch {
            index: (0..rows.len() as u64).collect(),
            x: rows.iter().map(|row| row.0).collect(),
            y: rows.iter().map(|row| row.1).collect(),
            of: rows.iter().map(|row| row.3).collect(),
            axes: vec![Coded { values, codes: (0..rows.len() as u32).collect() }],
        }
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
}
