//! Pareto fronts against the definition, and pairs of two sweeps.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use powersweep_dataset::best::{Goal, front};
use powersweep_dataset::compare::pairs;
use powersweep_dataset::{Frame, Rows};
use proptest::prelude::*;

fn frame(columns: &[Vec<Option<f64>>]) -> Frame {
    let fields: Vec<Field> =
        (0..columns.len()).map(|at| Field::new(format!("m{at}"), DataType::Float64, true)).collect();
    let arrays = columns.iter().map(|column| Arc::new(Float64Array::from(column.clone())) as _).collect();
    Frame::new(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns"), 0)
}

fn goal(column: &str, is_maximised: bool) -> Goal {
    Goal { column: column.to_owned(), is_maximised }
}

#[test]
fn one_goal_has_its_best_rows() {
    let frame = frame(&[vec![Some(2.0), Some(1.0), None, Some(1.0), Some(3.0)]]);
    assert_eq!(front(&frame, &[goal("m0", false)]).expect("a column"), [1, 3]);
    assert_eq!(front(&frame, &[goal("m0", true)]).expect("a column"), [4]);
    assert!(front(&frame, &[goal("m1", true)]).is_err());
}

#[test]
fn both_zeros_are_equally_good() {
    let frame = frame(&[vec![Some(-0.0), Some(0.0)], vec![Some(2.0), Some(1.0)]]);
    assert_eq!(front(&frame, &[goal("m0", false), goal("m1", false)]).expect("columns"), [1]);
}

proptest! {
    #[test]
    fn a_front_has_the_rows_that_no_row_beats(rows in prop::collection::vec(prop::collection::vec(0..6_i32, 3), 1..40), flips: [bool; 3]) {
        let columns: Vec<Vec<Option<f64>>> =
            (0..3).map(|at| rows.iter().map(|row| (row[at] < 5).then_some(f64::from(row[at]))).collect()).collect();
        let goals: Vec<Goal> = flips.iter().enumerate().map(|(at, flip)| goal(&format!("m{at}"), *flip)).collect();
        let mut found = front(&frame(&columns), &goals).expect("columns");
        found.sort_unstable();
        let signed = |row: usize| -> Option<Vec<f64>> {
            (0..3).map(|at| columns[at][row].map(|value| if flips[at] { -value } else { value })).collect()
        };
        let beats = |one: &[f64], other: &[f64]| one != other && one.iter().zip(other).all(|(one, other)| one <= other);
        let expected: Vec<usize> = (0..rows.len())
            .filter(|row| {
                signed(*row).is_some_and(|own| !(0..rows.len()).any(|other| signed(other).is_some_and(|other| beats(&other, &own))))
            })
            .collect();
        prop_assert_eq!(found, expected);
    }
}

/// Rows of a policy: workload, threshold, seed.
fn rows(of: &[(&str, Option<f64>, i64)]) -> Rows {
    let schema = Arc::new(Schema::new(vec![
        Field::new("index", DataType::Int64, true),
        Field::new("workload", DataType::Utf8, true),
        Field::new("threshold", DataType::Float64, true),
        Field::new("seed", DataType::Int64, true),
    ]));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new((0..of.len() as i64).map(Some).collect::<Int64Array>()),
            Arc::new(of.iter().map(|row| Some(row.0)).collect::<StringArray>()),
            Arc::new(of.iter().map(|row| row.1).collect::<Float64Array>()),
            Arc::new(of.iter().map(|row| Some(row.2)).collect::<Int64Array>()),
        ],
    );
    let mut rows = Rows::new(&schema, &["workload", "threshold", "seed"], &[], "index").expect("columns");
    rows.add(&batch.expect("columns"), &(0..of.len()).collect::<Vec<_>>()).expect("columns");
    rows
}

#[test]
fn rows_are_paired_by_what_varies_on_both_sides() {
    let a = rows(&[("CTC", None, 1), ("CTC", None, 2), ("SDSC", None, 1), ("SDSC", None, 2)]);
    // In another order, one missing, one more.
    let b = rows(&[("SDSC", Some(2.0), 2), ("CTC", Some(2.0), 3), ("SDSC", Some(2.0), 1), ("CTC", Some(2.0), 1)]);
    let found = pairs(&a, &b).expect("pairs");
    assert_eq!(found.rows, [(0, 3), (2, 2), (3, 0)]);
    assert_eq!((found.by, found.single), (vec!["workload".to_owned(), "seed".to_owned()], (1, 1)));
}

#[test]
fn several_rows_for_one_are_refused_with_their_columns() {
    let a = rows(&[("CTC", None, 1), ("CTC", None, 2)]);
    let b = rows(&[("CTC", Some(2.0), 1), ("CTC", Some(3.0), 1), ("CTC", Some(2.0), 2), ("CTC", Some(3.0), 2)]);
    let error = pairs(&a, &b).expect_err("ambiguous").message;
    assert_eq!(error, "B has several rows for one of the other side: add a condition on threshold");
    assert!(pairs(&b, &a).expect_err("ambiguous").message.starts_with("A has several rows"));
    assert_eq!(pairs(&a, &rows(&[])).expect_err("nothing").message, "B has no rows");
    let other = rows(&[("CTC", None, 7), ("CTC", None, 8)]);
    assert!(pairs(&a, &other).expect_err("no pair").message.contains("no row of A has a partner in B"));
}
