//! Surveys of rows that a test names.

use std::collections::BTreeMap;

use powersweep_dataset::survey::{Choice, Survey};
use powersweep_dataset::{Column, Frame, Rows};

/// A row of a test: values of axes, seed, and the metrics x, y and z.
pub(crate) type Row<'a, const AXES: usize> = ([&'a str; AXES], i64, [f64; 3]);

const METRICS: [&str; 3] = ["x", "y", "z"];

/// A survey of rows with these axes, of which the first one distinguishes points.
pub(crate) fn survey_of<const AXES: usize>(axes: [&str; AXES], rows: &[Row<'_, AXES>]) -> Survey {
    let by = axes[0].to_owned();
    let choice = Choice { x: "x".into(), y: "y".into(), by, of: "z".into(), ..Choice::default() };
    let names = axes.map(str::to_owned).to_vec();
    let mut survey = Survey::new(choice, vec!["x".into(), "y".into()], names, BTreeMap::new());
    let texts = (0..AXES).map(|axis| {
        let value = |row: &Row<'_, AXES>| Some(row.0[axis].to_owned()).filter(|value| !value.is_empty());
        Column::optional_texts(axes[axis], "", rows.iter().map(value))
    });
    let seeds = Column::texts("seed", "", rows.iter().map(|row| row.1.to_string()));
    let numbers = (0..3).map(|at| Column::numbers(METRICS[at], "", "", rows.iter().map(move |row| row.2[at])));
    let frame = Frame::of(texts.chain([seeds]).chain(numbers).collect::<Vec<_>>());
    let all: Vec<&str> = axes.into_iter().chain(["seed"]).collect();
    survey.add(&Rows::of(&frame, &all, &METRICS).expect("columns"));
    survey.settle();
    survey.show();
    survey
}

/// A survey of combinations (x, y, policy, z) with one seed each. The first combinations of all policies are equal in the
/// other axis, and so are the second ones.
pub(crate) fn survey(rows: &[(f64, f64, &str, f64)]) -> Survey {
    let mut seen = BTreeMap::new();
    let mut case = |policy| {
        let case = seen.entry(policy).or_insert(0);
        *case += 1;
        format!("case {case}")
    };
    let cases: Vec<String> = rows.iter().map(|row| case(row.2)).collect();
    let row = |at: usize| ([rows[at].2, cases[at].as_str()], 1, [rows[at].0, rows[at].1, rows[at].3]);
    survey_of(["policy", "case"], &(0..rows.len()).map(row).collect::<Vec<_>>())
}
