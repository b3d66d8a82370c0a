//! Files of Parquet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::basic::Type;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::pages;
use bytes::Bytes;

use crate::error::Problem;

/// Maximum size of a page, decompressed (bytes): the decoder has one of each column in memory.
const PAGE_BYTES_MAX: u64 = 256 << 20;
/// Memory of a value of a list with its levels (bytes).
const LISTED_BYTES: u64 = 16;
/// Greatest number of bytes of a value of fixed size. A decimal has at most 32.
const FIXED_BYTES_MAX: i32 = 64;

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
    pub limits: Limits,
    /// The number of rows that the file states.
    pub rows: usize,
}

impl Limits {
    /// Maximum size of all cells that are read, as texts (bytes): a dictionary of the file has a text of many cells once.
    pub(crate) fn cell_bytes(&self) -> u64 {
        4 * self.bytes
    }

    pub(crate) fn too_many_cell_bytes(&self) -> Problem {
        Problem::TooLarge { limit: format!("{} MiB of data in its cells", self.cell_bytes() >> 20) }
    }
}

impl File {
    pub(crate) fn open(bytes: &[u8], limits: Limits) -> Result<File, Problem> {
        let bytes = Bytes::copy_from_slice(bytes);
        let found = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new()).map_err(damaged)?;
        let options = ArrowReaderOptions::new().with_schema(viewed(found.schema()));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options).map_err(damaged)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata);
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

    /// Refuses a file whose pages state more bytes than the limit, or from which a batch could take more memory. Texts of a
    /// batch share the memory of their pages; values of lists, and those of a stated size, do not.
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
                let wrong_place = || damaged("its pages are not where it says, or not as large");
                let of = schema.column(leaf);
                let value_bytes = match of.physical_type() {
                    // A short decimal, or a float of half the size.
                    Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(of.type_length()).unwrap_or_default().max(1),
                    _ => pages::VALUE_BYTES_MIN,
                };
                let stated = pages.and_then(|pages| pages::stated(pages, value_bytes)).ok_or_else(wrong_place)?;
                if stated.largest > PAGE_BYTES_MAX {
                    return Err(Problem::TooLarge { limit: format!("{} MiB in a page", PAGE_BYTES_MAX >> 20) });
                }
                if of.physical_type() == Type::FIXED_LEN_BYTE_ARRAY && of.type_length() > FIXED_BYTES_MAX {
                    return Err(Problem::TooLarge {
                        limit: format!("{FIXED_BYTES_MAX} bytes in a value of fixed size"),
                    });
                }
                let listed = if of.max_rep_level() > 0 { stated.values.saturating_mul(LISTED_BYTES) } else { 0 };
                sum = sum.saturating_add(stated.sum.max(listed));
            }
        }
        let limit = format!("{} MiB of data", self.limits.bytes >> 20);
        if sum > self.limits.bytes { Err(Problem::TooLarge { limit }) } else { Ok(()) }
    }
}

/// The schema with views in place of texts and bytes: an array of texts has each of its values, also those that a dictionary of
/// the file has once.
fn viewed(schema: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(viewed_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn viewed_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(viewed_type(field.data_type())))
}

fn viewed_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => viewed_type(values),
        DataType::List(item) => DataType::List(viewed_field(item)),
        DataType::LargeList(item) => DataType::LargeList(viewed_field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(viewed_field(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(viewed_field).collect()),
        other => other.clone(),
    }
}

/// The type of a column as its file has it, for messages.
pub(crate) fn stored_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
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
