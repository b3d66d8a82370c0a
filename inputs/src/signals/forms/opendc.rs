//! Parquet as OpenDC reads it: a column of timestamps and a column of numbers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use powersweep_experiments::signals::{Form, Quantity, Reading};

use super::pages;
use crate::error::{Place, Problem, shortened};
use crate::signals::clock::{self, Clock};
use crate::signals::table::{Row, Table, ValueColumn};
use crate::signals::{BYTES_MAX, ROWS_MAX};
use crate::table::clock::{OUT_OF_RANGE, civil, is_in_range};

/// Columns of OpenDC.
const TIME: &str = "timestamp";
const VALUE: &str = "carbon_intensity";

pub(super) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    // The decoder checks most of what a file says, and panics in some places where the rest is wrong.
    let read = catch_unwind(AssertUnwindSafe(|| read_columns(bytes, reading)));
    read.unwrap_or_else(|_| Err(damaged("its pages contradict each other")))
}

fn damaged(reason: impl std::fmt::Display) -> Problem {
    Problem::Content(format!("the file is damaged, or not Parquet as OpenDC writes it: {reason}"))
}

fn read_columns(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).map_err(damaged)?;
    let schema = builder.schema().clone();
    let time_column = reading.time_column.as_deref().unwrap_or(TIME);
    let time = find(&schema, "time_column", time_column)?;
    let value_column = match (reading.column.as_deref(), reading.quantity) {
        (Some(name), _) => name,
        (None, Quantity::Carbon) => VALUE,
        (None, _) => return Err(problem(&schema, "column", "the column of values is not known".to_owned())),
    };
    let value = find(&schema, "column", value_column)?;
    if time == value {
        return Err(problem(&schema, "column", format!("{:?} is the column of times", shortened(value_column))));
    }
    let usual = (reading.quantity == Quantity::Carbon).then_some("g/kWh");
    let column = ValueColumn::new(value_column, reading, usual)?;
    let type_of = |at: usize| schema.field(at).data_type();
    if !matches!(type_of(time), DataType::Timestamp(..)) {
        return Err(problem(&schema, "time_column", format!("{time_column:?} is not a column of timestamps")));
    }
    if !matches!(type_of(value), DataType::Float64 | DataType::Float32 | DataType::Int32 | DataType::Int64) {
        return Err(problem(&schema, "column", format!("{value_column:?} is not a column of numbers")));
    }
    let groups = builder.metadata().row_groups();
    let rows = groups.iter().try_fold(0_usize, |sum, group| sum.checked_add(usize::try_from(group.num_rows()).ok()?));
    let rows = rows.filter(|rows| *rows <= ROWS_MAX).ok_or(Problem::TooManyRows { limit: ROWS_MAX, filled: false })?;
    check_sizes(bytes, builder.metadata(), [time, value])?;
    let has_zone = matches!(type_of(time), DataType::Timestamp(_, Some(_)));
    let mask = ProjectionMask::roots(builder.parquet_schema(), [time, value]);
    let batches = builder.with_projection(mask).build().map_err(damaged)?;
    // The projection keeps the order of the file.
    let (time_at, value_at) = if time < value { (0, 1) } else { (1, 0) };
    let mut read = Vec::with_capacity(rows);
    for batch in batches {
        let batch = batch.map_err(damaged)?;
        let (times, values) = (micros(batch.column(time_at)), numbers(batch.column(value_at)));
        let (Some(times), Some(values)) = (times, values) else {
            return Err(damaged("its types contradict each other"));
        };
        for (time_us, value) in times.into_iter().zip(values) {
            let line = u32::try_from(read.len() + 1).unwrap_or(u32::MAX);
            let cell = |column: &str, text: String, reason: String| {
                Problem::cell(Place::Row(line.into()), column, &text, reason)
            };
            let time_us = time_us
                .ok_or_else(|| cell(time_column, String::new(), "is empty: every row needs a time".to_owned()))?;
            if !is_in_range(time_us) {
                let text = civil(time_us).map_or_else(|| format!("{time_us} us"), |time| time.to_string());
                return Err(cell(time_column, text, OUT_OF_RANGE.to_owned()));
            }
            let converted =
                |value: f64| column.convert(value).map_err(|reason| cell(value_column, value.to_string(), reason));
            let value = value.map_or(Ok(f64::NAN), converted)?;
            read.push(Row { time_us, value, line, estimated: false });
        }
    }
    if read.len() != rows {
        return Err(damaged("it has another number of rows than it says"));
    }
    if read.is_empty() {
        return Err(Problem::Content("the file has no rows".to_owned()));
    }
    let why = if has_zone { "UTC, by the type of the column" } else { "UTC, as OpenDC reads them" };
    let clock: Clock = clock::local(Some(why), reading.timezone.as_deref(), || (Place::Row(1), String::new()))?;
    Ok(Table {
        form: Form::OpenDc,
        rows: read,
        place: Place::Row,
        clock,
        time_column: time_column.to_owned(),
        column,
        estimates: None,
        zone: None,
    })
}

/// Checks that the pages of columns do not state more bytes than the limit. The columns are not nested.
fn check_sizes(bytes: &[u8], metadata: &ParquetMetaData, roots: [usize; 2]) -> Result<(), Problem> {
    let descriptor = metadata.file_metadata().schema_descr();
    let mut sum = 0_u64;
    for group in metadata.row_groups() {
        let leaves = (0..group.num_columns()).filter(|leaf| roots.contains(&descriptor.get_column_root_idx(*leaf)));
        for column in leaves.map(|leaf| group.column(leaf)) {
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (begin, length) = (usize::try_from(begin), usize::try_from(column.compressed_size()));
            let pages = begin.ok().zip(length.ok()).and_then(|(begin, length)| bytes.get(begin..)?.get(..length));
            let stated = pages.and_then(pages::stated_bytes);
            let stated = stated.ok_or_else(|| damaged("its pages are not where it says, or not as large"))?;
            sum = sum.saturating_add(stated);
        }
    }
    if sum > BYTES_MAX as u64 { Err(Problem::TooLarge { limit_bytes: BYTES_MAX as u64 }) } else { Ok(()) }
}

fn problem(schema: &Schema, setting: &'static str, reason: String) -> Problem {
    Problem::Column {
        reason,
        setting: Some(setting),
        columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
    }
}

fn find(schema: &Schema, setting: &'static str, name: &str) -> Result<usize, Problem> {
    let found: Vec<usize> = (0..schema.fields().len()).filter(|at| schema.field(*at).name() == name).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(problem(schema, setting, format!("there is no column {:?}", shortened(name)))),
        _ => Err(problem(schema, setting, format!("several columns have the name {:?}", shortened(name)))),
    }
}

/// Times in microseconds since 1970, the greatest number where there are too many; `None` if the column has no timestamps.
fn micros(column: &ArrayRef) -> Option<Vec<Option<i64>>> {
    let DataType::Timestamp(unit, _) = column.data_type() else { return None };
    Some(match unit {
        TimeUnit::Second => column
            .as_primitive::<TimestampSecondType>()
            .iter()
            .map(|time| Some(time?.saturating_mul(1_000_000)))
            .collect(),
        TimeUnit::Millisecond => column
            .as_primitive::<TimestampMillisecondType>()
            .iter()
            .map(|time| Some(time?.saturating_mul(1_000)))
            .collect(),
        TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().iter().collect(),
        TimeUnit::Nanosecond => {
            column.as_primitive::<TimestampNanosecondType>().iter().map(|time| Some(time?.div_euclid(1_000))).collect()
        }
    })
}

/// Numbers; `None` if the column has none.
fn numbers(column: &ArrayRef) -> Option<Vec<Option<f64>>> {
    Some(match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().collect(),
        DataType::Float32 => column.as_primitive::<Float32Type>().iter().map(|value| value.map(f64::from)).collect(),
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().map(|value| value.map(f64::from)).collect(),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(|value| value.map(|v| v as f64)).collect(),
        _ => return None,
    })
}
