//! Rows of a record batch as JSON values, for printing.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use serde_json::{Value as Json, json};

/// One value; null stays null, an infinite real becomes "unlimited" because JSON has no such number.
pub fn cell(column: &dyn Array, row: usize) -> Json {
    if column.is_null(row) {
        return Json::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => real(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Timestamp(..) => json!(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            Json::Array((0..items.len()).map(|i| cell(&items, i)).collect())
        }
        other => json!(format!("({other})")),
    }
}

fn real(value: f64) -> Json {
    if value == f64::INFINITY { json!("unlimited") } else { json!(value) }
}

/// A whole row, in column order.
pub fn pairs(batch: &RecordBatch, row: usize) -> Vec<(String, Json)> {
    let schema = batch.schema();
    schema.fields().iter().zip(batch.columns()).map(|(f, c)| (f.name().clone(), cell(c, row))).collect()
}

/// A value as a person reads it; empty for null.
pub fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Number(n) if n.is_f64() => crate::screen::number(n.as_f64().unwrap_or(f64::NAN)),
        Json::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
