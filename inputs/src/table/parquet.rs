//! Files of Parquet.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Schema, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::pages;
use bytes::Bytes;

use crate::error::Problem;

/// Limits of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum size of the pages that are read, decompressed (bytes).
    pub bytes: u64,
}

/// A file whose metadata are read.
pub(crate) struct File {
    bytes: Bytes,
    builder: ParquetRecordBatchReaderBuilder<Bytes>,
    limits: Limits,
    /// The number of rows that the file states.
    pub rows: usize,
}

impl File {
    pub(crate) fn open(bytes: &[u8], limits: Limits) -> Result<File, Problem> {
        let bytes = Bytes::copy_from_slice(bytes);
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(damaged)?;
        let groups = builder.metadata().row_groups();
        let rows =
            groups.iter().try_fold(0_usize, |sum, group| sum.checked_add(usize::try_from(group.num_rows()).ok()?));
        let rows = rows.filter(|rows| *rows <= limits.rows);
        let rows = rows.ok_or_else(|| Problem::TooLarge { limit: format!("{} rows", limits.rows) })?;
        Ok(File { bytes, builder, limits, rows })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.builder.schema()
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The batches of some columns in the order of the file. `is_read`: whether a column, by its place in the schema, is read.
    pub(crate) fn read(self, is_read: impl Fn(usize) -> bool) -> Result<ParquetRecordBatchReader, Problem> {
        self.check_size(&is_read)?;
        let roots = (0..self.schema().fields().len()).filter(|at| is_read(*at));
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), roots);
        self.builder.with_projection(mask).build().map_err(damaged)
    }

    /// Refuses a file whose pages state more bytes than the limit.
    fn check_size(&self, is_read: impl Fn(usize) -> bool) -> Result<(), Problem> {
        let schema = self.builder.parquet_schema();
        let mut sum = 0_u64;
        for group in self.builder.metadata().row_groups() {
            let leaves = 0..group.num_columns().min(schema.num_columns());
            for leaf in leaves.filter(|leaf| is_read(schema.get_column_root_idx(*leaf))) {
                let column = group.column(leaf);
                let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
                let (begin, length) = (usize::try_from(begin).ok(), usize::try_from(column.compressed_size()).ok());
                let pages = begin.zip(length).and_then(|(begin, length)| self.bytes.get(begin..)?.get(..length));
                let stated = pages.and_then(pages::stated).map(|all| all.sum);
                sum = sum
                    .saturating_add(stated.ok_or_else(|| damaged("its pages are not where it says, or not as large"))?);
            }
        }
        let limit = format!("{} MiB of data", self.limits.bytes >> 20);
        if sum > self.limits.bytes { Err(Problem::TooLarge { limit }) } else { Ok(()) }
    }
}

pub(crate) fn damaged(reason: impl std::fmt::Display) -> Problem {
    Problem::Content(format!("the file is damaged, or not Parquet: {reason}"))
}

/// Calls the decoder. It checks most of what a file says, and panics in some places where the rest is wrong.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err(damaged("its pages contradict each other")))
}

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// The time in a row of a column of timestamps or dates (µs since 1970), the greatest number where there are too many; `None`
/// without a value.
pub(crate) fn micros(column: &dyn Array, at: usize) -> Option<i64> {
    column.is_valid(at).then_some(())?;
    Some(match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive::<TimestampSecondType>().value(at).saturating_mul(1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<TimestampMillisecondType>().value(at).saturating_mul(1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => column.as_primitive::<TimestampMicrosecondType>().value(at),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().value(at).div_euclid(1_000)
        }
        DataType::Date32 => i64::from(column.as_primitive::<Date32Type>().value(at)).saturating_mul(DAY_US),
        DataType::Date64 => column.as_primitive::<Date64Type>().value(at).saturating_mul(1_000),
        _ => return None,
    })
}

/// The duration in a row of a column of durations (µs); `None` without a value.
pub(crate) fn duration_us(column: &dyn Array, at: usize) -> Option<i64> {
    let DataType::Duration(unit) = column.data_type() else { return None };
    column.is_valid(at).then(|| match unit {
        TimeUnit::Second => column.as_primitive::<DurationSecondType>().value(at).saturating_mul(1_000_000),
        TimeUnit::Millisecond => column.as_primitive::<DurationMillisecondType>().value(at).saturating_mul(1_000),
        TimeUnit::Microsecond => column.as_primitive::<DurationMicrosecondType>().value(at),
        TimeUnit::Nanosecond => column.as_primitive::<DurationNanosecondType>().value(at).div_euclid(1_000),
    })
}
