//! The survey of an experiment: the means of each combination over its seeds in two metrics with their Pareto front, and the
//! effect of each axis on a metric.
//!
//! Rows are added once, part by part, and are not kept: a survey has a bounded size, whatever the number of rows is.

mod combinations;
mod shares;
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::seeds::Dependence;

use self::combinations::Combinations;
pub use self::combinations::{COMBINATIONS_MAX, Mean};
pub use self::shares::{Share, Shares};
pub use self::shown::{Extreme, Level, Point, Shown};
use crate::{Frame, Rows};

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
    /// The metric on which the effects of the axes are shown.
    pub of: String,
}

/// How much the parameters of a design move a metric.
#[derive(Debug, Clone)]
pub struct Indices {
    /// A row for each parameter or pair of parameters; `None` if there are no indices yet.
    pub rows: Option<Frame>,
    /// The points of the indices, and what they lack.
    pub said: String,
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
    /// The dependence of the seeds.
    pub seeds: Dependence,
    /// Whether some tasks of the manifest have no row. Shares of the variance are not shown then: they would be those of another grid.
    pub is_partial: bool,
    /// The axes whose values are spread by a design. They are compared by indices, not value by value.
    pub spread: BTreeSet<String>,
    /// What is shown.
    pub shown: Shown,
    /// The sensitivity indices of the metric `choice.of`; `None` without a Morris or Saltelli design.
    pub indices: Option<Indices>,
    /// The rows of parts, which do not change.
    settled: Combinations,
    /// All rows, until they are shown.
    all: Combinations,
    parts: BTreeSet<String>,
}

impl Survey {
    /// A survey without rows.
    pub fn new(choice: Choice, metrics: Vec<String>, axes: Vec<String>, units: BTreeMap<String, String>) -> Survey {
        Survey { choice, metrics, axes, units, ..Survey::default() }
    }

    /// Whether rows can be added to a survey of the same question whose parts still exist.
    pub fn continues(&self, before: &Survey, parts: &BTreeSet<String>) -> bool {
        (&self.choice, &self.axes, self.seeds) == (&before.choice, &before.axes, before.seeds)
            && before.parts.is_subset(parts)
    }

    /// Takes over the rows of an earlier survey.
    pub fn continue_from(&mut self, before: Survey) {
        (self.settled, self.parts) = (before.settled, before.parts);
    }

    /// Whether the rows of a part were added.
    pub fn has(&self, part: &str) -> bool {
        self.parts.contains(part)
    }

    /// Adds rows of a part, with the axes of the survey, the seed and the measures of its choice.
    pub fn add(&mut self, rows: &Rows) {
        self.settled.add(rows, &self.choice);
    }

    /// All rows of a part were added.
    pub fn end_part(&mut self, part: &str) {
        self.parts.insert(part.to_owned());
    }

    /// All parts were added; rows that are not published follow.
    pub fn settle(&mut self) {
        self.all = self.settled.clone();
    }

    /// Adds rows that may be in a part the next time.
    pub fn add_unpublished(&mut self, rows: &Rows) {
        self.all.add(rows, &self.choice);
    }

    /// All rows were added: they are shown.
    pub fn show(&mut self) {
        let all = std::mem::take(&mut self.all);
        self.shown = Shown::of(&all, self.axes.len(), self.by(), &self.choice, self.seeds);
        if self.is_partial {
            self.shown.shares.clear();
        }
        let effects = self.axes.iter().zip(&mut self.shown.effects);
        for level in effects.filter(|(axis, _)| self.spread.contains(*axis)).flat_map(|(_, levels)| levels) {
            (level.pairs, level.ratio, level.from_mean) = (0, None, None);
        }
    }

    /// The number of the axis that distinguishes points.
    pub fn by(&self) -> Option<usize> {
        self.axes.iter().position(|axis| *axis == self.choice.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Interval};

    /// A row of a test: values of axes, and of the metrics x, y and z.
    type Row<'a, const AXES: usize> = ([&'a str; AXES], [f64; 3]);

    const METRICS: [&str; 3] = ["x", "y", "z"];

    /// A survey of rows with these axes, of which the first one distinguishes points.
    fn survey_of<const AXES: usize>(axes: [&str; AXES], rows: &[Row<'_, AXES>]) -> Survey {
        let by = axes[0].to_owned();
        let choice = Choice { x: "x".into(), y: "y".into(), by, of: "z".into(), ..Choice::default() };
        let names = axes.map(str::to_owned).to_vec();
        let mut survey = Survey::new(choice, vec!["x".into(), "y".into()], names, BTreeMap::new());
        survey.add(&batch(axes, rows));
        survey.end_part("p");
        survey.settle();
        survey.show();
        survey
    }

    /// A survey of combinations (x, y, policy, z) with one seed each. The first combinations of all policies are equal in
    /// the other axis, and so are the second ones.
    fn survey(rows: &[(f64, f64, &str, f64)]) -> Survey {
        let mut seen = BTreeMap::new();
        let mut case = |policy| {
            let case = seen.entry(policy).or_insert(0);
            *case += 1;
            format!("case {case}")
        };
        let cases: Vec<String> = rows.iter().map(|row| case(row.2)).collect();
        let row = |at: usize| ([rows[at].2, cases[at].as_str()], [rows[at].0, rows[at].1, rows[at].3]);
        survey_of(["policy", "case"], &(0..rows.len()).map(row).collect::<Vec<_>>())
    }

    fn batch<const AXES: usize>(axes: [&str; AXES], rows: &[Row<'_, AXES>]) -> Rows {
        let texts = (0..AXES).map(|axis| {
            let value = |row: &Row<'_, AXES>| Some(row.0[axis].to_owned()).filter(|value| !value.is_empty());
            Column::optional_texts(axes[axis], "", rows.iter().map(value))
        });
        let numbers = (0..3).map(|at| Column::numbers(METRICS[at], "", "", rows.iter().map(move |row| row.1[at])));
        Rows::of(&Frame::of(texts.chain(numbers).collect::<Vec<_>>()), &axes, &METRICS).expect("columns")
    }

    /// Value, mean, number of combinations, number of pairs, percent.
    type Shown<'a> = (&'a str, Option<f64>, u64, u64, Option<String>);

    /// Text, mean, number of combinations, number of pairs, and difference in percent of the values of an axis.
    fn effect(survey: &Survey, axis: usize) -> Vec<Shown<'_>> {
        let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
        let levels = survey.shown.effects[axis].iter();
        levels
            .map(|of| {
                (of.text.as_str(), of.mean.value(), of.mean.count, of.pairs, of.ratio.map(|ratio| percent(ratio.value)))
            })
            .collect()
    }

    fn percent(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn an_effect_compares_combinations_that_are_equal_in_all_other_axes() {
        // sjf takes 2% more wherever it exists; policy B, which is worse, has no sjf.
        let rows = [
            (["A", "fcfs", "1"], [0.0, 0.0, 100.0]),
            (["A", "sjf", "1"], [0.0, 0.0, 102.0]),
            (["A", "fcfs", "2"], [0.0, 0.0, 200.0]),
            (["A", "sjf", "2"], [0.0, 0.0, 204.0]),
            (["B", "fcfs", ""], [0.0, 0.0, 600.0]),
            (["B", "fcfs", ""], [0.0, 0.0, 604.0]),
        ];
        let found = survey_of(["policy", "order", "threshold"], &rows);
        // The means over all combinations differ by -49.1%.
        let (fcfs, sjf) = (("fcfs", Some(902.0 / 3.0), 3, 0, None), ("sjf", Some(153.0), 2, 2, percent("+2.0")));
        assert_eq!(effect(&found, 1), [fcfs, sjf]);
        let (one, two) = (("1", Some(101.0), 2, 0, None), ("2", Some(202.0), 2, 2, percent("+100.0")));
        assert_eq!(effect(&found, 2), [one, two, ("", Some(602.0), 1, 0, None)]);
        assert_eq!(effect(&found, 0)[1], ("B", Some(602.0), 1, 0, None), "A has a threshold in every combination");
        assert_eq!((found.shown.mean.value(), found.shown.rows), (Some(1_208.0 / 5.0), 6));
    }

    #[test]
    fn policies_are_compared_where_their_parameters_are_equal() {
        let rows =
            [(["A", "fcfs"], [0.0, 0.0, 100.0]), (["A", "sjf"], [0.0, 0.0, 300.0]), (["B", "fcfs"], [0.0, 0.0, 110.0])];
        let found = survey_of(["policy", "order"], &rows);
        assert_eq!(effect(&found, 0)[1], ("B", Some(110.0), 1, 1, percent("+10.0")));
    }

    /// Three seeds, whose jobs differ far more than the two values do. One value lacks a seed.
    #[test]
    fn an_effect_has_an_interval_over_seeds_from_the_mean_and_from_the_first_value() {
        let rows = [("a", 1, 100.0), ("b", 1, 110.0), ("a", 2, 1_000.0), ("b", 2, 1_120.0), ("a", 3, 10.0)];
        let texts = Column::texts("policy", "", rows.iter().map(|row| row.0));
        let seeds = Column::texts("seed", "", rows.iter().map(|row| row.1.to_string()));
        let numbers = |name: &str| Column::numbers(name, "", "", rows.iter().map(|row| row.2));
        let frame = Frame::of([texts, seeds, numbers("x"), numbers("y"), numbers("z")]);
        let choice = Choice { x: "x".into(), y: "y".into(), of: "z".into(), ..Choice::default() };
        let mut survey = Survey::new(choice, Vec::new(), vec!["policy".to_owned()], BTreeMap::new());
        survey.add(&Rows::of(&frame, &["policy", "seed"], &METRICS).expect("columns"));
        survey.settle();
        survey.show();
        let [a, b] = &survey.shown.effects[0][..] else { panic!("two values") };
        assert_eq!((a.mean.value(), b.mean.value(), b.pairs), (Some(370.0), Some(615.0), 1));
        // The pairs are those of `compare`: seed 3 has none.
        let pairs = [(1, 100.0, 110.0), (2, 1_000.0, 1_120.0)];
        let expected = crate::compare::compare(pairs.into_iter(), crate::replicates::Method::T(95)).expect("pairs");
        assert_eq!((b.ratio, a.ratio), (Some(expected.ratio), None));
        let value = |of: Option<Interval>| of.map(|of| of.value);
        assert_eq!((value(a.from_mean), value(b.from_mean)), (Some(1_100.0 / 1_165.0), Some(1_230.0 / 1_165.0)));
        assert!(b.from_mean.and_then(|of| of.ends).is_some_and(|(low, high)| low < 1.1 && high > 1.05));
    }

    #[test]
    fn the_ends_are_the_first_combinations_with_the_least_and_the_greatest_mean() {
        let rows = [
            (["a", "1"], [0.0, 0.0, 5.0]),
            (["a", "2"], [0.0, 0.0, 2.0]),
            (["b", ""], [0.0, 0.0, 2.0]),
            (["b", "1"], [0.0, 0.0, 5.0]),
            (["c", "1"], [0.0, 0.0, f64::NAN]),
        ];
        let [least, most] = survey_of(["policy", "case"], &rows).shown.ends.expect("there are values");
        let values = |of: &Extreme| (of.index, of.value, of.values.join(" "));
        assert_eq!((values(&least), values(&most)), ((1, 2.0, "a 2".to_owned()), (0, 5.0, "a 1".to_owned())));
        assert_eq!(survey_of(["policy"], &[(["c"], [0.0, 0.0, f64::NAN])]).shown.ends, None);
    }

    #[test]
    fn a_pair_needs_both_values_and_a_divisor_above_0() {
        let rows = [
            (["a", "1"], [0.0, 0.0, 10.0]),
            (["b", "1"], [0.0, 0.0, 15.0]),
            (["a", "2"], [0.0, 0.0, f64::NAN]),
            (["b", "2"], [0.0, 0.0, 1_000.0]),
            (["a", "3"], [0.0, 0.0, 10.0]),
            (["c", "2"], [0.0, 0.0, 1.0]),
        ];
        let found = survey_of(["policy", "case"], &rows);
        let pairs: Vec<_> = effect(&found, 0).into_iter().map(|of| (of.0, of.2, of.3, of.4)).collect();
        assert_eq!(pairs, [("a", 2, 0, None), ("b", 2, 1, percent("+50.0")), ("c", 1, 0, None)]);
        let zero = survey_of(["policy"], &[(["a"], [0.0, 0.0, 0.0]), (["b"], [0.0, 0.0, 3.0])]);
        assert_eq!(effect(&zero, 0)[1], ("b", Some(3.0), 1, 1, None));
    }

    #[test]
    fn the_front_is_that_of_the_means_over_seeds() {
        // A lucky task of `unsteady` beats every other task. `steady` beats the mean of `unsteady`.
        let rows = [
            (["steady"], [5.0, 5.0, 0.0]),
            (["steady"], [7.0, 7.0, 0.0]),
            (["unsteady"], [1.0, 1.0, 0.0]),
            (["unsteady"], [15.0, 15.0, 0.0]),
            (["fast"], [2.0, 9.0, 0.0]),
            (["fast"], [4.0, f64::NAN, 0.0]),
        ];
        let found = survey_of(["policy"], &rows).shown;
        let front: Vec<_> = found.front.iter().map(|of| (of.group.as_str(), of.x, of.y, of.tasks)).collect();
        assert_eq!(front, [("fast", 2.0, 9.0, 1), ("steady", 6.0, 6.0, 2)]);
        assert_eq!((found.combinations, found.rows_of_points, found.rows), (3, 5, 6));
        assert_eq!(found.span, Some([(2.0, 8.0), (6.0, 9.0)]));
    }

    #[test]
    fn unpublished_rows_count_once() {
        let mut survey = survey(&[(1.0, 2.0, "a", 1.0)]);
        let more = batch(["policy", "case"], &[(["b", "case 1"], [5.0, 1.0, 1.0]), (["a", "case 1"], [3.0, 2.0, 1.0])]);
        for _ in 0..2 {
            let mut next = Survey::new(survey.choice.clone(), Vec::new(), survey.axes.clone(), BTreeMap::new());
            assert!(next.continues(&survey, &BTreeSet::from(["p".to_owned(), "q".to_owned()])));
            assert!(!next.continues(&survey, &BTreeSet::from(["q".to_owned()])), "its rows moved to another part");
            next.continue_from(survey);
            next.settle();
            next.add_unpublished(&more);
            next.show();
            survey = next;
            assert_eq!((survey.shown.rows, survey.shown.front.len(), survey.shown.front[0].x), (3, 2, 2.0));
        }
    }

    #[test]
    fn values_have_the_order_of_their_least_tasks() {
        let of = |rows: &[(f64, f64, &str, f64)]| {
            let found = survey(rows);
            found.shown.effects[0].iter().map(|level| level.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(1.0, 1.0, "sjf", 1.0), (1.0, 1.0, "easy", 1.0), (1.0, 1.0, "sjf", 1.0)]), ["sjf", "easy"]);
        assert_eq!(of(&[(1.0, 1.0, "", 1.0), (1.0, 1.0, "10", 1.0), (1.0, 1.0, "9", 1.0)]), ["9", "10", ""]);
    }

    /// Indices of the front's points.
    fn front(points: &[(f64, f64)], up: (bool, bool)) -> Vec<u64> {
        let rows: Vec<(f64, f64, &str, f64)> = points.iter().map(|(x, y)| (*x, *y, "", 0.0)).collect();
        let mut found = survey(&rows);
        (found.choice.x_up, found.choice.y_up) = up;
        found.settle();
        found.show();
        found.shown.front.iter().map(|point| point.index).collect()
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
