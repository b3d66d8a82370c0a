//! One value of a table.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListBuilder, PrimitiveBuilder, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, SecondsFormat};
use powersweep_experiments::plain::plain;
use serde_json::{Value as Json, json};

use crate::words::number;

/// A value of a column of any type that the tables have.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number; infinity stands for "unlimited".
    Real(f64),
    /// A text.
    Text(String),
    /// An instant (µs since 1970 UTC).
    Instant(i64),
    /// A list of numbers.
    List(Vec<f64>),
}

impl Cell {
    /// The value of a row. A value of a type that no table has is [`Cell::Null`].
    pub fn of(column: &dyn Array, row: usize) -> Cell {
        if column.is_null(row) {
            return Cell::Null;
        }
        match column.data_type() {
            DataType::Boolean => Cell::Bool(column.as_boolean().value(row)),
            DataType::Int64 => Cell::Int(column.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => Cell::Real(column.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
            DataType::Timestamp(..) => Cell::Instant(column.as_primitive::<TimestampMicrosecondType>().value(row)),
            DataType::List(_) => {
                let items = column.as_list::<i32>().value(row);
                let item = |at| Cell::of(&items, at).number().unwrap_or(f64::NAN);
                Cell::List((0..items.len()).map(item).collect())
            }
            _ => Cell::Null,
        }
    }

    /// The number, if this is one; a truth value is 0 or 1.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Bool(value) => Some(f64::from(u8::from(*value))),
            Cell::Int(value) => Some(*value as f64),
            Cell::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        *self == Cell::Null
    }

    /// The order of values of one column. Null is the last; both zeros are equal.
    pub fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Bool(one), Cell::Bool(other)) => one.cmp(other),
            (Cell::Int(one), Cell::Int(other)) | (Cell::Instant(one), Cell::Instant(other)) => one.cmp(other),
            (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
            (Cell::List(one), Cell::List(other)) => {
                let pairs = one.iter().zip(other).map(|(one, other)| reals(*one, *other));
                pairs.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
            }
            _ => match (self.number(), other.number()) {
                (Some(one), Some(other)) => reals(one, other),
                _ => self.is_null().cmp(&other.is_null()),
            },
        }
    }

    /// The value as a text that a condition can name; "none" for no value.
    pub fn exact(&self) -> String {
        match self {
            Cell::Null => "none".to_owned(),
            Cell::Bool(value) => value.to_string(),
            Cell::Int(value) | Cell::Instant(value) => value.to_string(),
            Cell::Real(f64::INFINITY) => "unlimited".to_owned(),
            Cell::Real(value) => value.to_string(),
            Cell::Text(text) => text.clone(),
            Cell::List(items) => format!("[{}]", items.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }

    /// The value for people, safe on a terminal: a number with four significant digits, an instant to the second in UTC;
    /// empty for no value.
    pub fn shown(&self) -> String {
        match self {
            Cell::Null => String::new(),
            Cell::Bool(value) => value.to_string(),
            Cell::Int(value) => value.to_string(),
            Cell::Real(value) => number(*value),
            Cell::Text(text) => plain(text).into_owned(),
            Cell::Instant(us) => DateTime::from_timestamp_micros(*us)
                .map_or_else(String::new, |instant| instant.format("%Y-%m-%d %H:%M:%S UTC").to_string()),
            Cell::List(items) => format!("[{}]", items.iter().map(|item| number(*item)).collect::<Vec<_>>().join(", ")),
        }
    }

    /// Appends bytes that are equal for equal values of one column, and for these alone.
    pub(crate) fn write_key(column: &dyn Array, row: usize, key: &mut Vec<u8>) {
        key.clear();
        if column.is_null(row) {
            return;
        }
        key.push(1);
        match column.data_type() {
            DataType::Utf8 => key.extend(column.as_string::<i32>().value(row).as_bytes()),
            DataType::Float64 => key.extend(bits(column.as_primitive::<Float64Type>().value(row))),
            DataType::Int64 => key.extend(column.as_primitive::<Int64Type>().value(row).to_le_bytes()),
            _ => match Cell::of(column, row) {
                Cell::Bool(value) => key.push(u8::from(value)),
                Cell::Instant(us) => key.extend(us.to_le_bytes()),
                Cell::List(items) => key.extend(items.into_iter().flat_map(bits)),
                _ => {}
            },
        }
    }
}

/// A value as JSON. Infinity is "unlimited", because JSON has no infinity; an instant is RFC 3339 in UTC.
pub fn json_of(column: &dyn Array, row: usize) -> Json {
    match Cell::of(column, row) {
        Cell::Null => Json::Null,
        Cell::Bool(value) => json!(value),
        Cell::Int(value) => json!(value),
        Cell::Real(value) => real(value),
        Cell::Text(text) => json!(text),
        Cell::Instant(us) => json!(instant(us)),
        Cell::List(_) => {
            let items = column.as_list::<i32>().value(row);
            Json::Array((0..items.len()).map(|item| json_of(&items, item)).collect())
        }
    }
}

/// A real number as JSON; "unlimited" and "-unlimited" for infinities.
pub fn real(value: f64) -> Json {
    match value {
        f64::INFINITY => json!("unlimited"),
        f64::NEG_INFINITY => json!("-unlimited"),
        _ => json!(value),
    }
}

/// Microseconds since 1970 as RFC 3339; `None` beyond the year 262,000, where the calendar ends.
pub fn instant(us: i64) -> Option<String> {
    Some(DateTime::from_timestamp_micros(us)?.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// The values of a row by the names of their columns, in the order of the columns.
pub fn row_json(batch: &RecordBatch, row: usize) -> impl Iterator<Item = (&str, Json)> {
    let fields = batch.schema_ref().fields().iter();
    fields.zip(batch.columns()).map(move |(field, column)| (field.name().as_str(), json_of(column, row)))
}

/// The bits of a number; equal for both zeros.
fn bits(value: f64) -> [u8; 8] {
    (value + 0.0).to_bits().to_le_bytes()
}

fn reals(one: f64, other: f64) -> Ordering {
    (one + 0.0).total_cmp(&(other + 0.0))
}

/// The values as an array of a type; a value of another type is null.
pub(crate) fn array<'a>(of: &DataType, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
    let int = |cell: &Cell| match cell {
        Cell::Int(value) | Cell::Instant(value) => Some(*value),
        _ => None,
    };
    match of {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
            Cell::Bool(value) => Some(*value),
            _ => None,
        }))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(cells.map(int))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(cells.map(Cell::number))),
        DataType::Timestamp(..) => {
            Arc::new(TimestampMicrosecondArray::from_iter(cells.map(int)).with_timezone_opt(Some("UTC")))
        }
        DataType::List(item) if *item.data_type() == DataType::Int64 => {
            lists::<Int64Type>(item, cells, |value| value as i64)
        }
        DataType::List(item) => lists::<Float64Type>(item, cells, |value| value),
        _ => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
            Cell::Text(text) => Some(text.as_str()),
            _ => None,
        }))),
    }
}

fn lists<'a, T: ArrowPrimitiveType>(
    item: &arrow::datatypes::FieldRef,
    cells: impl Iterator<Item = &'a Cell>,
    of: impl Fn(f64) -> T::Native,
) -> ArrayRef {
    let mut lists = ListBuilder::new(PrimitiveBuilder::<T>::new()).with_field(Arc::clone(item));
    for cell in cells {
        match cell {
            Cell::List(items) => lists.append_value(items.iter().map(|value| Some(of(*value)))),
            _ => lists.append_null(),
        }
    }
    Arc::new(lists.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_survive_arrays() {
        for (of, cells) in [
            (DataType::Boolean, vec![Cell::Bool(true), Cell::Null]),
            (DataType::Int64, vec![Cell::Int(-3), Cell::Null]),
            (DataType::Float64, vec![Cell::Real(f64::INFINITY), Cell::Null, Cell::Real(0.5)]),
            (DataType::Utf8, vec![Cell::Text("easy".to_owned()), Cell::Null]),
            (DataType::new_list(DataType::Int64, true), vec![Cell::List(vec![1.0, 2.0]), Cell::Null]),
        ] {
            let array = array(&of, cells.iter());
            assert_eq!(array.data_type(), &of);
            let back: Vec<Cell> = (0..array.len()).map(|row| Cell::of(&array, row)).collect();
            assert_eq!(back, cells);
        }
    }

    #[test]
    fn numbers_are_ordered_and_null_is_last() {
        let mut cells = [Cell::Null, Cell::Real(2.0), Cell::Int(-1), Cell::Real(f64::INFINITY), Cell::Real(-0.0)];
        cells.sort_by(Cell::order);
        assert_eq!(cells[0], Cell::Int(-1));
        assert_eq!(cells[4], Cell::Null);
        assert_eq!(Cell::Real(-0.0).order(&Cell::Real(0.0)), Ordering::Equal);
        assert_eq!(Cell::List(vec![1.0]).order(&Cell::List(vec![1.0, 2.0])), Ordering::Less);
    }

    #[test]
    fn instants_are_rfc_3339_in_utc() {
        for (us, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_700_000_000_000_001, "2023-11-14T22:13:20.000001Z"),
        ] {
            assert_eq!(instant(us).as_deref(), Some(text));
        }
    }
}
