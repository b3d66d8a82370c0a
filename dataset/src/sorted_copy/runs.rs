//! Rows in runs of consecutive rows of one row group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MutableArrayData, make_array, new_null_array};
use arrow::datatypes::DataType;

use crate::{Error, Kind, OrKind};

/// Consecutive rows of one row group, counted among the picked ones; without `from`, rows that have no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) from: Option<usize>,
    pub(super) begin: usize,
    pub(super) rows: usize,
}

/// The runs of rows at these places (row group, position).
pub(super) fn runs(places: impl Iterator<Item = Option<(usize, usize)>>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for place in places {
        let (from, begin) = place.map_or((None, 0), |(from, position)| (Some(from), position));
        match runs.last_mut() {
            Some(last) if last.from == from && (from.is_none() || last.begin + last.rows == begin) => last.rows += 1,
            _ => runs.push(Run { from, begin, rows: 1 }),
        }
    }
    runs
}

/// The values of runs, one after the other.
pub(super) fn assembled(ty: &DataType, arrays: &[ArrayRef], runs: &[Run]) -> Result<ArrayRef, Error> {
    let rows = runs.iter().map(|run| run.rows).sum();
    if arrays.iter().all(|array| array.null_count() == array.len()) {
        return Ok(new_null_array(ty, rows));
    }
    if let ([array], [Run { from: Some(_), begin: 0, .. }]) = (arrays, runs)
        && array.len() == rows
    {
        return Ok(Arc::clone(array));
    }
    let data: Vec<_> = arrays.iter().map(|array| array.to_data()).collect();
    let nulls = runs.iter().any(|run| run.from.is_none());
    let mut all = MutableArrayData::new(data.iter().collect(), nulls, rows);
    for run in runs {
        match run.from {
            Some(from) => all.try_extend(from, run.begin, run.begin + run.rows).or_kind(Kind::Failure)?,
            None => all.try_extend_nulls(run.rows).or_kind(Kind::Failure)?,
        }
    }
    Ok(make_array(all.freeze()))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn runs_are_put_together_in_their_order() {
        let first: ArrayRef = Arc::new(Int64Array::from(vec![Some(10), Some(11), None]));
        let second: ArrayRef = Arc::new(Int64Array::from(vec![20, 21]));
        let places = [(1, 1), (0, 0), (0, 1), (0, 2), (1, 0)].map(Some);
        let found = runs(places.into_iter().chain([None, None]));
        assert_eq!(found.len(), 4);
        let arrays = [first, second];
        let values = assembled(&DataType::Int64, &arrays, &found).map_err(|failure| failure.message).expect("they fit");
        let expected = [Some(21), Some(10), Some(11), None, Some(20), None, None];
        assert_eq!(*values, Int64Array::from(expected.to_vec()));
        let whole = runs([(0, 0), (0, 1), (0, 2)].into_iter().map(Some));
        let same =
            assembled(&DataType::Int64, &arrays[..1], &whole).map_err(|failure| failure.message).expect("they fit");
        assert_eq!(*same, *arrays[0]);
    }
}
