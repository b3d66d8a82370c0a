//! Splits a part by rows: after an edit of the manifest, some of its rows have left.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Int64Type, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use uuid::Uuid;

use crate::ResultsError;
use crate::folded::FoldedBatch;
use crate::identity::RowKey;
use crate::part::{self, Footer};

/// Calls `each` with the key of every row of a Parquet file of any table, in order. Only the two columns of the key are
/// decoded.
pub fn for_each_key(bytes: &Bytes, mut each: impl FnMut(RowKey)) -> Result<(), ResultsError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["task_id", "task_index"]);
    for batch in builder.with_projection(mask).build()? {
        let batch = batch?;
        let ids = batch.column_by_name("task_id").and_then(|column| column.as_string_opt::<i32>());
        let ids = ids.ok_or(ResultsError::Column("task_id"))?;
        let indices = batch.column_by_name("task_index").and_then(|column| column.as_primitive_opt::<Int64Type>());
        for (at, id) in ids.iter().enumerate() {
            let task_id = id.and_then(|id| Uuid::parse_str(id).ok()).ok_or(ResultsError::Column("task_id"))?;
            let index = indices.filter(|column| column.is_valid(at)).map(|column| column.value(at));
            each(RowKey { task_id, index: index.and_then(|index| u64::try_from(index).ok()) });
        }
    }
    Ok(())
}

/// A part of the rows of `bytes` that `takes` accepts by position. `footer.rows` must be their number.
///
/// Every error is final: the same bytes fail again.
pub fn fragment(bytes: &Bytes, takes: impl Fn(u64) -> bool, footer: &Footer) -> Result<Bytes, ResultsError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let mut position = 0;
    let batches = reader.build()?.map(|batch| {
        let batch = batch?;
        let rows = batch.num_rows() as u64;
        let taken: BooleanArray = (position..position + rows).map(|row| Some(takes(row))).collect();
        position += rows;
        let plain = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?;
        Ok(FoldedBatch::of(&filter_record_batch(&plain, &taken)?))
    });
    let some = batches.filter(|batch| batch.as_ref().map_or(true, |batch: &FoldedBatch| batch.rows() > 0));
    part::encode_from(&schema, some, footer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};

    fn table(rows: i64) -> Bytes {
        let id = |row: i64| Uuid::from_u128(row as u128).to_string();
        let ids: ArrayRef = Arc::new((0..rows).map(|row| Some(id(row))).collect::<StringArray>());
        let indices: ArrayRef = Arc::new((0..rows).map(|row| (row % 2 == 0).then_some(row)).collect::<Int64Array>());
        let values: ArrayRef = Arc::new((0..rows).map(|row| Some(7 * row)).collect::<Int64Array>());
        let columns = [("task_id", ids), ("value", values), ("task_index", indices)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
        let batch = batch.expect("columns of equal length");
        let footer = Footer::new("e", Uuid::from_u128(1), rows as u64);
        part::encode(&batch.schema(), &[batch], &footer).expect("encodes")
    }

    fn keys(bytes: &Bytes) -> Vec<RowKey> {
        let mut keys = Vec::new();
        for_each_key(bytes, |key| keys.push(key)).expect("a part");
        keys
    }

    #[test]
    fn fragments_have_each_row_once_and_in_order() {
        let whole = table(10_000);
        let footer = |rows| Footer::new("e", Uuid::from_u128(2), rows);
        let kept = fragment(&whole, |row| row % 5 == 0, &footer(2_000)).expect("a part");
        let moved = fragment(&whole, |row| row % 5 != 0, &footer(8_000)).expect("a part");
        assert_eq!(part::read_footer(&kept).expect("a part"), footer(2_000));
        let all = keys(&whole);
        let (of_kept, of_moved): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(row, _)| row % 5 == 0);
        let plain = |rows: Vec<(usize, &RowKey)>| rows.into_iter().map(|(_, key)| *key).collect::<Vec<_>>();
        assert_eq!(keys(&kept), plain(of_kept));
        assert_eq!(keys(&moved), plain(of_moved));
        assert_eq!(all[2], RowKey { task_id: Uuid::from_u128(2), index: Some(2) });
        assert_eq!(all[3].index, None);
    }

    #[test]
    fn a_wrong_number_of_rows_is_an_error() {
        let footer = Footer::new("e", Uuid::from_u128(2), 3);
        assert!(fragment(&table(10), |row| row < 2, &footer).is_err());
    }

    #[test]
    fn a_file_without_task_ids_is_an_error() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("task_index", values)]).expect("one column");
        let footer = Footer::new("e", Uuid::from_u128(2), 1);
        let bytes = part::encode(&batch.schema(), &[batch], &footer).expect("encodes");
        assert!(matches!(for_each_key(&bytes, |_| ()), Err(ResultsError::Column("task_id"))));
    }
}
