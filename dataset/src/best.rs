//! The rows of a frame that no other row beats.

use arrow::array::Array;

use crate::{Cell, Error, Frame};

/// A column whose values are to be small, or great.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Name of the column, or of a measure for its mean.
    pub column: String,
    /// Great values are better.
    pub is_maximised: bool,
}

/// The rows for which no other row is better in one goal and at least as good in all others (the Pareto front), the best in
/// the first goal first. With one goal: the best row, and rows that are equally good. A row without a value is never better.
pub fn front(frame: &Frame, goals: &[Goal]) -> Result<Vec<usize>, Error> {
    let column = |goal: &Goal| {
        let column = frame.batch().column(frame.column(&goal.column)?);
        // Adding 0 makes both zeros equal.
        let sign = if goal.is_maximised { -1.0 } else { 1.0 };
        let value =
            |row| Cell::of(column, row).number().map(|value| sign * value + 0.0).filter(|value| !value.is_nan());
        Ok((0..column.len()).map(value).collect::<Vec<Option<f64>>>())
    };
    let columns = goals.iter().map(column).collect::<Result<Vec<_>, Error>>()?;
    let values = |row: usize| columns.iter().map(|column| column[row]).collect::<Option<Vec<f64>>>();
    let mut rows: Vec<(Vec<f64>, usize)> =
        (0..frame.batch().num_rows()).filter_map(|row| Some((values(row)?, row))).collect();
    rows.sort_by(|one, other| {
        let pairs = one.0.iter().zip(&other.0).map(|(one, other)| one.total_cmp(other));
        pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(one.1.cmp(&other.1))
    });
    // In this order, only earlier rows can beat a row.
    let mut front: Vec<(Vec<f64>, usize)> = Vec::new();
    for (values, row) in rows {
        let beats =
            |better: &Vec<f64>| *better != values && better.iter().zip(&values).all(|(better, own)| better <= own);
        if !front.iter().any(|(better, _)| beats(better)) {
            front.push((values, row));
        }
    }
    Ok(front.into_iter().map(|(_, row)| row).collect())
}
