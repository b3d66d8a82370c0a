//! JSON with a list of objects, each with a time and values: answers of carbonintensity.org.uk (`{"data": [...]}`), of Electricity
//! Maps (`{"history": [...]}`), of WattTime (`{"data": [...], "meta": {...}}`) and of the Carbon Aware SDK (`[...]`).
//!
//! A value inside of an object in an object has the names of both: `intensity.actual`. `meta.units` beside a list, as WattTime writes
//! it, is a column of the list.

use serde_json::{Map, Value};

use super::sheet::UNITS;
use crate::error::Problem;
use crate::signals::ROWS_MAX;
use crate::table::Sheet;

/// Keys of lists in an object, the first that is there.
const LISTS: [&str; 5] = ["data", "history", "forecastData", "forecast", "emissions"];

/// Whether a text has a list of objects. An answer of Open-Meteo has lists of numbers; a list of such answers is of several places.
pub(super) fn is_list(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(4096)];
    let has = |key: &str| begin.windows(key.len() + 2).any(|part| part == format!("\"{key}\"").as_bytes());
    !has("hourly")
        && !has("utc_offset_seconds")
        && (begin.trim_ascii_start().starts_with(b"[") || LISTS.into_iter().any(has))
}

/// The objects of the list as rows.
pub(super) fn sheet(bytes: &[u8]) -> Result<Sheet<'static>, Problem> {
    let refused = |reason: String| Problem::Content(format!("the file is no list of values in JSON: {reason}"));
    let value: Value = serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
    let units = value.pointer("/meta/units").and_then(Value::as_str).map(str::to_owned);
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match LISTS.into_iter().find_map(|key| object.remove(key)) {
            Some(Value::Array(list)) => list,
            _ => return Err(refused(format!("it has none of the lists {}", LISTS.join(", ")))),
        },
        _ => return Err(refused("it is neither an object nor a list".to_owned())),
    };
    // An answer of the Carbon Aware SDK for forecasts is a list of objects with a list each.
    let list = match <[Value; 1]>::try_from(list) {
        Ok([Value::Object(mut only)]) => match LISTS.into_iter().find_map(|key| only.remove(key)) {
            Some(Value::Array(list)) => list,
            _ => return Err(refused("it has a single value".to_owned())),
        },
        Ok([_]) => return Err(refused("it has no objects".to_owned())),
        Err(list) => list,
    };
    if list.len() > ROWS_MAX {
        return Err(Problem::TooLarge { limit: format!("{ROWS_MAX} rows") });
    }
    let mut rows = Vec::with_capacity(list.len());
    for value in list {
        let Value::Object(object) = value else { return Err(refused("a value of the list is no object".to_owned())) };
        // Where a value of the list states its own units, these replace the units of the list.
        let mut row: Vec<_> = units.iter().map(|units| (UNITS.to_owned(), units.clone())).collect();
        flatten("", object, &mut row);
        rows.push(row);
    }
    Sheet::of_cells(rows)
}

/// The values of an object with their names.
fn flatten(prefix: &str, object: Map<String, Value>, cells: &mut Vec<(String, String)>) {
    for (key, value) in object {
        let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(inner) => flatten(&name, inner, cells),
            Value::Null | Value::Array(_) => cells.push((name, String::new())),
            Value::String(text) => cells.push((name, text)),
            other => cells.push((name, other.to_string())),
        }
    }
}
