//! Cells of Parquet as the texts that a table of CSV has.

use std::fmt::Write as _;

use arrow::array::{Array, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::clock::civil;
use super::parquet::{damaged, duration_us, micros, stored_type};
use crate::error::{Problem, shortened};

/// Longest text of a cell (bytes): a list of power samples of months has a few megabytes.
const CELL_BYTES_MAX: usize = 16 << 20;
/// Maximum size of the texts of a column in one batch (bytes).
const TEXTS_BYTES_MAX: usize = 64 << 20;

/// The cells of the column `name`.
pub(crate) fn texts(array: &dyn Array, name: &str) -> Result<Vec<String>, Problem> {
    let mut all = 0;
    let text = |at| {
        let mut text = String::new();
        write(array, at, name, &mut text)?;
        all += text.len();
        if all > TEXTS_BYTES_MAX { Err(too_long(name, TEXTS_BYTES_MAX)) } else { Ok(text) }
    };
    (0..array.len()).map(text).collect()
}

fn too_long(name: &str, bytes: usize) -> Problem {
    Problem::TooLarge { limit: format!("{} MiB of text in the column {}", bytes >> 20, shortened(name)) }
}

/// Writes the cell of a row, of the column `name`. A cell without a value has no text.
pub(super) fn write(array: &dyn Array, at: usize, name: &str, text: &mut String) -> Result<(), Problem> {
    if array.is_null(at) {
        return Ok(());
    }
    if text.len() > CELL_BYTES_MAX {
        return Err(too_long(name, CELL_BYTES_MAX));
    }
    match array.data_type() {
        DataType::Utf8 => text.push_str(array.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => text.push_str(array.as_string::<i64>().value(at)),
        DataType::Utf8View => match array.as_string_view().value(at) {
            long if long.len() > CELL_BYTES_MAX => return Err(too_long(name, CELL_BYTES_MAX)),
            value => text.push_str(value),
        },
        // A column without a single value.
        DataType::Null => {}
        DataType::Boolean => text.push_str(if array.as_boolean().value(at) { "true" } else { "false" }),
        DataType::Int8 => number::<Int8Type>(array, at, text),
        DataType::Int16 => number::<Int16Type>(array, at, text),
        DataType::Int32 => number::<Int32Type>(array, at, text),
        DataType::Int64 => number::<Int64Type>(array, at, text),
        DataType::UInt8 => number::<UInt8Type>(array, at, text),
        DataType::UInt16 => number::<UInt16Type>(array, at, text),
        DataType::UInt32 => number::<UInt32Type>(array, at, text),
        DataType::UInt64 => number::<UInt64Type>(array, at, text),
        DataType::Float16 => number::<Float16Type>(array, at, text),
        DataType::Float32 => number::<Float32Type>(array, at, text),
        DataType::Float64 => number::<Float64Type>(array, at, text),
        DataType::Timestamp(_, zone) => {
            let time = micros(array, at).and_then(civil);
            let time = time.ok_or_else(|| damaged(format!("{} has an impossible time", shortened(name))))?;
            // A type with a zone counts from 1970 UTC, whichever the zone is; one without is a local time.
            let _ = write!(text, "{time}{}", if zone.is_some() { "Z" } else { "" });
        }
        DataType::Decimal32(..) => decimal::<Decimal32Type>(array, at, text),
        DataType::Decimal64(..) => decimal::<Decimal64Type>(array, at, text),
        DataType::Decimal128(..) => decimal::<Decimal128Type>(array, at, text),
        DataType::Decimal256(..) => decimal::<Decimal256Type>(array, at, text),
        DataType::Date32 | DataType::Date64 => {
            let time = micros(array, at).and_then(civil);
            let time = time.ok_or_else(|| damaged(format!("{} has an impossible date", shortened(name))))?;
            let _ = write!(text, "{}", time.date());
        }
        DataType::Duration(_) => {
            let us = duration_us(array, at).unwrap_or_default();
            let (sign, us) = (if us < 0 { "-" } else { "" }, us.unsigned_abs());
            let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
            let _ = write!(text, "{sign}{}:{:02}:{:02}.{fraction:06}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        }
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(at).as_ref(), name, text)?,
        DataType::List(_) => list(array.as_list::<i32>().value(at).as_ref(), name, text)?,
        DataType::LargeList(_) => list(array.as_list::<i64>().value(at).as_ref(), name, text)?,
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let mut key = String::new();
            write(dictionary.keys(), at, name, &mut key)?;
            let key = key.parse().ok().filter(|key| *key < dictionary.values().len());
            write(dictionary.values(), key.ok_or_else(|| damaged("a key of a dictionary is too large"))?, name, text)?;
        }
        other => {
            let (name, other) = (shortened(name), stored_type(other));
            let reason = format!(
                "the column {name} has values of the type {other}, not numbers, texts, times, durations or lists of them"
            );
            return Err(Problem::Content(reason));
        }
    }
    Ok(())
}

fn number<T: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &dyn Array, at: usize, text: &mut String) {
    let _ = write!(text, "{}", array.as_primitive::<T>().value(at));
}

fn decimal<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array, at: usize, text: &mut String) {
    text.push_str(&array.as_primitive::<T>().value_as_string(at));
}

/// A list such as `[300, , 310]`, whose second value is missing.
fn list(values: &dyn Array, name: &str, text: &mut String) -> Result<(), Problem> {
    text.push('[');
    for at in 0..values.len() {
        if at > 0 {
            text.push_str(", ");
        }
        write(values, at, name, text)?;
    }
    text.push(']');
    Ok(())
}
