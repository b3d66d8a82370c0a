//! Rows in runs of consecutive rows of one row group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MutableArrayData, make_array, new_null_array};
use arrow::datatypes::DataType;
use powersweep_results::folded::text_bytes;

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

/// The runs in pieces, each with at most this number of bytes of texts and lists, or with one row: offsets in an array have 31
/// bits, and a row of `tasks` is repeated for each of its rows in another table.
pub(super) fn pieces(runs: &[Run], arrays: &[ArrayRef], bytes_max: u64) -> Vec<Vec<Run>> {
    let (mut pieces, mut piece, mut bytes) = (Vec::new(), Vec::new(), 0);
    for &run in runs {
        let mut left = run;
        while left.rows > 0 {
            let of = |rows| left.from.map_or(0, |from| text_bytes(&arrays[from], left.begin, rows));
            let mut rows = left.rows;
            while rows > 0 && bytes + of(rows) > bytes_max {
                rows /= 2;
            }
            if rows == 0 && !piece.is_empty() {
                pieces.push(std::mem::take(&mut piece));
                bytes = 0;
                continue;
            }
            let rows = rows.max(1);
            bytes += of(rows);
            piece.push(Run { rows, ..left });
            left = Run { begin: left.begin + rows, rows: left.rows - rows, ..left };
        }
    }
    pieces.push(piece);
    pieces
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
    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn pieces_have_the_same_rows_and_few_bytes() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["aaaa", "bb", "cc", "dddddd"]));
        let run = |from, begin, rows| Run { from, begin, rows };
        let all = [run(Some(0), 0, 4), run(None, 0, 9), run(Some(0), 1, 2)];
        let expected = [
            vec![run(Some(0), 0, 1)],
            vec![run(Some(0), 1, 1), run(Some(0), 2, 1)],
            vec![run(Some(0), 3, 1)],
            vec![run(None, 0, 9), run(Some(0), 1, 2)],
        ];
        assert_eq!(pieces(&all, &[Arc::clone(&texts)], 5), expected);
        assert_eq!(pieces(&all, &[texts], 1_000), [all.to_vec()]);
        assert_eq!(pieces(&[], &[], 1), [Vec::new()]);
    }

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
