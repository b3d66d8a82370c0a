//! The rows with which claims are compared: Arrow batches, by manifest and table.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use powersweep_engine::Value;
use powersweep_results::Table;

use crate::selection::{Conditions, ELEMENT};

/// Columns to read, by manifest and table. Those that a table does not have are columns of `tasks`, joined on `task_id`.
pub type Needed = BTreeMap<(String, Table), BTreeSet<String>>;

/// The rows of all manifests that the claims need.
#[derive(Debug, Default)]
pub struct Rows {
    tables: BTreeMap<(String, Table), Vec<RecordBatch>>,
}

impl Rows {
    /// No rows.
    pub fn new() -> Rows {
        Rows::default()
    }

    /// Adds rows of a manifest's table. Columns that are not in [`Needed`] may be missing.
    pub fn add(&mut self, manifest: &str, table: Table, batches: Vec<RecordBatch>) {
        self.tables.entry((manifest.to_owned(), table)).or_default().extend(batches);
    }

    /// The values of a column in the rows that meet the conditions, by group. Without a column every row has the value
    /// 1. A list has one row an element.
    pub(crate) fn values(
        &self,
        manifest: &str,
        table: Table,
        conditions: &Conditions,
        by: &[String],
        column: Option<&str>,
    ) -> Result<BTreeMap<Vec<String>, Vec<f64>>, String> {
        let mut groups: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
        let mut without_value = 0;
        for batch in self.tables.get(&(manifest.to_owned(), table)).into_iter().flatten() {
            let array = |name: &str| {
                batch.column_by_name(name).ok_or_else(|| format!("the rows of {manifest} have no column `{name}`"))
            };
            let values = column.map(array).transpose()?;
            let is_list = values.is_some_and(|array| matches!(array.data_type(), DataType::List(_)));
            if !is_list && conditions.keys().chain(by).any(|name| name == ELEMENT) {
                return Err(format!("`{}` is not a list: it has no elements", column.unwrap_or("rows")));
            }
            let of_rows = conditions.iter().filter(|(name, _)| *name != ELEMENT);
            let tests = of_rows.map(|(name, wanted)| Ok((array(name)?, wanted))).collect::<Result<Vec<_>, String>>()?;
            // The place of an element has no array.
            let key = |name: &String| if name == ELEMENT { Ok(None) } else { array(name).map(Some) };
            let keys = by.iter().map(key).collect::<Result<Vec<_>, String>>()?;
            for row in 0..batch.num_rows() {
                if !tests.iter().all(|(array, wanted)| wanted.iter().any(|wanted| is(array, row, wanted))) {
                    continue;
                }
                for (place, value) in cells(values, row) {
                    let place = Value::Real(place);
                    if conditions.get(ELEMENT).is_some_and(|wanted| !wanted.contains(&place)) {
                        continue;
                    }
                    without_value += usize::from(value.is_none());
                    let cell =
                        |key: &Option<&ArrayRef>| key.map_or_else(|| place.to_string(), |array| text(array, row));
                    groups.entry(keys.iter().map(cell).collect()).or_default().extend(value);
                }
            }
        }
        if without_value > 0 {
            let column = column.unwrap_or_default();
            return Err(format!("`{column}` is null in {without_value} of the rows with {}", shown(conditions)));
        }
        Ok(groups)
    }
}

/// Conditions as a text.
pub(crate) fn shown(conditions: &Conditions) -> String {
    let one = |(column, wanted): (&String, &Vec<Value>)| {
        let wanted: Vec<String> = wanted.iter().map(Value::to_string).collect();
        format!("{column} = {}", wanted.join(" or "))
    };
    let all: Vec<String> = conditions.iter().map(one).collect();
    if all.is_empty() { "any conditions".to_owned() } else { all.join(", ") }
}

fn is(array: &dyn Array, row: usize, wanted: &Value) -> bool {
    !array.is_null(row)
        && match (array.data_type(), wanted) {
            (DataType::Boolean, Value::Bool(wanted)) => array.as_boolean().value(row) == *wanted,
            (DataType::Utf8, Value::Text(wanted)) => array.as_string::<i32>().value(row) == wanted,
            (_, Value::Real(wanted)) => number(array, row) == Some(*wanted),
            _ => false,
        }
}

/// The values of a cell with their places, from 1: the elements of a list, or one value.
fn cells(array: Option<&ArrayRef>, row: usize) -> Vec<(f64, Option<f64>)> {
    let Some(array) = array else { return vec![(1.0, Some(1.0))] };
    match array.data_type() {
        DataType::List(_) if !array.is_null(row) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|i| ((i + 1) as f64, number(&items, i))).collect()
        }
        _ => vec![(1.0, number(array, row))],
    }
}

fn number(array: &dyn Array, row: usize) -> Option<f64> {
    match array.data_type() {
        _ if array.is_null(row) => None,
        DataType::Int64 => Some(array.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(row)),
        _ => None,
    }
}

/// A cell as a text, for the key of a group.
fn text(array: &dyn Array, row: usize) -> String {
    match array.data_type() {
        _ if array.is_null(row) => String::new(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => Value::Real(array.as_primitive::<Float64Type>().value(row)).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => String::new(),
    }
}
