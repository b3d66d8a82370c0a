//! Parquet as OpenDC reads it: a column of timestamps and a column of numbers.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use powersweep_experiments::signals::{Form, Quantity, Reading};

use super::sheet::{column, problem};
use crate::error::{Place, Problem, shortened};
use crate::signals::clock;
use crate::signals::table::{Row, Table, ValueColumn};
use crate::signals::{BYTES_MAX, ROWS_MAX};
use crate::table::clock::{OUT_OF_RANGE, civil, is_in_range};
use crate::table::parquet::{File, Limits, damaged, guarded, micros};

/// Columns of OpenDC.
const TIME: &str = "timestamp";
const VALUE: &str = "carbon_intensity";

const LIMITS: Limits = Limits { rows: ROWS_MAX, bytes: BYTES_MAX as u64 };

pub(super) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    guarded(|| read_columns(bytes, reading))
}

fn read_columns(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    let file = File::open(bytes, LIMITS)?;
    let names = file.names();
    let time_column = reading.time_column.as_deref().unwrap_or(TIME);
    let time = column(&names, "time_column", time_column)?;
    let value_column = match (reading.column.as_deref(), reading.quantity) {
        (Some(name), _) => name,
        (None, Quantity::Carbon) => VALUE,
        (None, _) => return Err(problem(&names, "column", "the column of values is not known".to_owned())),
    };
    let value = column(&names, "column", value_column)?;
    if time == value {
        return Err(problem(&names, "column", format!("{:?} is the column of times", shortened(value_column))));
    }
    let usual = (reading.quantity == Quantity::Carbon).then_some("g/kWh");
    let values = ValueColumn::new(value_column, reading, usual)?;
    let type_of = |at: usize| file.schema().field(at).data_type();
    if !matches!(type_of(time), DataType::Timestamp(..)) {
        return Err(problem(&names, "time_column", format!("{time_column:?} is not a column of timestamps")));
    }
    if !matches!(type_of(value), DataType::Float64 | DataType::Float32 | DataType::Int32 | DataType::Int64) {
        return Err(problem(&names, "column", format!("{value_column:?} is not a column of numbers")));
    }
    let has_zone = matches!(type_of(time), DataType::Timestamp(_, Some(_)));
    let stated = file.rows;
    // Batches keep the order of the file.
    let (time_at, value_at) = if time < value { (0, 1) } else { (1, 0) };
    let mut rows = Vec::with_capacity(stated);
    for batch in file.read(|at| at == time || at == value)? {
        let batch = batch.map_err(damaged)?;
        for at in 0..batch.num_rows() {
            let line = u32::try_from(rows.len() + 1).unwrap_or(u32::MAX);
            let cell =
                |column: &str, text: &str, reason: &str| Problem::cell(Place::Row(line.into()), column, text, reason);
            let time_us = micros(batch.column(time_at), at)
                .ok_or_else(|| cell(time_column, "", "is empty: every row needs a time"))?;
            if !is_in_range(time_us) {
                let text = civil(time_us).map_or_else(|| format!("{time_us} us"), |time| time.to_string());
                return Err(cell(time_column, &text, OUT_OF_RANGE));
            }
            let value = number(batch.column(value_at), at).map_or(Ok(f64::NAN), |value| {
                values.convert(value).map_err(|reason| cell(value_column, &value.to_string(), &reason))
            })?;
            rows.push(Row { time_us, value, line, estimated: false });
        }
    }
    if rows.len() != stated {
        return Err(damaged("it has another number of rows than it says"));
    }
    if rows.is_empty() {
        return Err(Problem::Content("the file has no rows".to_owned()));
    }
    let why = if has_zone { "UTC, by the type of the column" } else { "UTC, as OpenDC reads them" };
    Ok(Table {
        form: Form::OpenDc,
        rows,
        place: Place::Row,
        clock: clock::local(Some(why), reading.timezone.as_deref(), (Place::Row(1), ""))?,
        time_column: time_column.to_owned(),
        column: values,
        estimates: None,
        zone: None,
    })
}

/// The number in a row of a column; `None` without one.
fn number(column: &dyn Array, at: usize) -> Option<f64> {
    column.is_valid(at).then(|| match column.data_type() {
        DataType::Float32 => f64::from(column.as_primitive::<Float32Type>().value(at)),
        DataType::Int32 => f64::from(column.as_primitive::<Int32Type>().value(at)),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at) as f64,
        _ => column.as_primitive::<Float64Type>().value(at),
    })
}
