//! Files of Parquet.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use bytes::Bytes;

use crate::error::Problem;

/// Begins a Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// Maximum number of rows of a file.
const ROWS_MAX: usize = 20_000_000;

/// Maximum size of all pages, decompressed (bytes).
const BYTES_MAX: usize = 4_000_000_000;

pub(super) fn damaged(reason: impl std::fmt::Display) -> Problem {
    Problem::Content(format!("the file is damaged, or not Parquet: {reason}"))
}

/// Calls the decoder. It checks most of what a file says, and panics in some places where the rest is wrong.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err(damaged("its pages contradict each other")))
}

/// A reader of a file, and the number of rows that the file states.
pub(super) fn open(bytes: &[u8]) -> Result<(ParquetRecordBatchReaderBuilder<Bytes>, usize), Problem> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).map_err(damaged)?;
    let groups = builder.metadata().row_groups();
    let rows = groups.iter().try_fold(0_usize, |sum, group| sum.checked_add(usize::try_from(group.num_rows()).ok()?));
    Ok((builder, rows.ok_or_else(too_large)?))
}

/// Refuses a file whose columns are too large. `is_read`: whether a column, by its place in the schema, is read.
pub(super) fn check_size(
    builder: &ParquetRecordBatchReaderBuilder<Bytes>,
    rows: usize,
    is_read: impl Fn(usize) -> bool,
) -> Result<(), Problem> {
    let schema = builder.parquet_schema();
    let columns = builder.metadata().row_groups().iter().flat_map(|group| group.columns().iter().enumerate());
    let read = columns.filter(|(leaf, _)| *leaf < schema.num_columns() && is_read(schema.get_column_root_idx(*leaf)));
    let mut sizes = read.map(|(_, column)| column.uncompressed_size());
    let size = sizes.try_fold(0_usize, |sum, size| sum.checked_add(usize::try_from(size).ok()?));
    if rows > ROWS_MAX || size.is_none_or(|size| size > BYTES_MAX) { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> Problem {
    Problem::Content(format!("the file has more than {ROWS_MAX} rows, or more than 4 GB of data"))
}
