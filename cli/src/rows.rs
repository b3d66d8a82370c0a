//! Cells of a record batch as JSON values, from which CSV, JSON lines and tables on the screen are made.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, SecondsFormat};
use powersweep_proto::plain;
use serde_json::{Value as Json, json};

/// One value. Infinity is "unlimited", because JSON has no infinity; an instant is RFC 3339 in UTC.
pub fn cell(column: &dyn Array, row: usize) -> Json {
    if column.is_null(row) {
        return Json::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => real(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Timestamp(..) => json!(instant(column.as_primitive::<TimestampMicrosecondType>().value(row))),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            Json::Array((0..items.len()).map(|i| cell(&items, i)).collect())
        }
        other => json!(format!("({other})")),
    }
}

/// A real number; "unlimited" for infinity.
pub fn real(value: f64) -> Json {
    if value == f64::INFINITY { json!("unlimited") } else { json!(value) }
}

/// Microseconds since 1970 as RFC 3339; `None` beyond the year 262,000, where chrono ends.
pub fn instant(us: i64) -> Option<String> {
    Some(DateTime::from_timestamp_micros(us)?.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// A whole row, in column order.
pub fn cells(batch: &RecordBatch, row: usize) -> impl Iterator<Item = (&str, Json)> {
    let fields = batch.schema_ref().fields().iter();
    fields.zip(batch.columns()).map(move |(field, column)| (field.name().as_str(), cell(column, row)))
}

/// The same, with owned names.
pub fn pairs(batch: &RecordBatch, row: usize) -> Vec<(String, Json)> {
    cells(batch, row).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A value of a column for people: an instant to the second, in UTC.
pub fn shown(column: &dyn Array, row: usize) -> String {
    match column.data_type() {
        DataType::Timestamp(..) if column.is_valid(row) => {
            let instant = DateTime::from_timestamp_micros(column.as_primitive::<TimestampMicrosecondType>().value(row));
            instant.map_or_else(String::new, |instant| instant.format("%Y-%m-%d %H:%M:%S UTC").to_string())
        }
        _ => text(&cell(column, row)),
    }
}

/// A value for people, safe on a terminal; empty for null.
pub fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => plain(text).into_owned(),
        Json::Number(n) if n.is_f64() => crate::screen::number(n.as_f64().unwrap_or(f64::NAN)),
        Json::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
