//! The rows of a frame that no other row beats.

use std::cmp::Ordering;

use crate::{Column, Error, Frame};

/// A column whose values are to be small, or great.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Goal {
    /// Name of the column, or of a measure for its mean.
    pub column: String,
    /// Great values are better.
    pub is_maximised: bool,
}

/// The rows that no other row beats, the best in the first goal first. With one goal: the best row, and rows that are
/// equally good. A row without a value is never better.
pub fn front(frame: &Frame, goals: &[Goal]) -> Result<Vec<usize>, Error> {
    let (rows, points): (Vec<usize>, Vec<Vec<f64>>) = costs(frame, goals)?.into_iter().unzip();
    Ok(unbeaten(&points).into_iter().map(|at| rows[at]).collect())
}

/// The rows that have a value of each goal, with their costs: values that are to be small.
pub fn costs(frame: &Frame, goals: &[Goal]) -> Result<Vec<(usize, Vec<f64>)>, Error> {
    let columns = goals.iter().map(|goal| frame.column(&goal.column)).collect::<Result<Vec<_>, Error>>()?;
    let cost = |(column, goal): (&Column, &Goal), row: usize| {
        let value = column.cell(row).number().filter(|value| !value.is_nan())?;
        Some(if goal.is_maximised { -value } else { value })
    };
    let of_row = |row| columns.iter().zip(goals).map(|pair| cost(pair, row)).collect::<Option<Vec<f64>>>();
    Ok((0..frame.rows()).filter_map(|row| Some((row, of_row(row)?))).collect())
}

/// The Pareto front of points of costs: those for which no other point is less in one cost and at most equal in all others.
/// Points are in the order of their costs, equal ones in the order in which they are given.
pub fn unbeaten<P: AsRef<[f64]>>(points: &[P]) -> Vec<usize> {
    // Adding 0 makes both zeros equal.
    let costs = |at: usize| points[at].as_ref().iter().map(|cost| cost + 0.0);
    let order = |one: usize, other: usize| {
        let pairs = costs(one).zip(costs(other)).map(|(one, other)| one.total_cmp(&other));
        pairs.fold(Ordering::Equal, Ordering::then)
    };
    let beats = |better: usize, worse: usize| {
        order(better, worse).is_ne() && costs(better).zip(costs(worse)).all(|(better, worse)| better <= worse)
    };
    let mut sorted: Vec<usize> = (0..points.len()).collect();
    sorted.sort_by(|one, other| order(*one, *other));
    // In this order, only earlier points can beat a point. Of two costs, the last one of the front beats it if any does.
    let mut front: Vec<usize> = Vec::new();
    for at in sorted {
        if !front.iter().rev().any(|better| beats(*better, at)) {
            front.push(at);
        }
    }
    front
}
