//! The rows of a figure: which of them can be drawn, and as what; and why there is no figure.

use std::fmt::Display;

use powersweep_dataset::titles::labelled;
use powersweep_dataset::{Column, Error, Frame, failure};
use serde_json::{Map, Value, json};

use crate::Result;

/// The error of a figure without anything to draw.
pub(crate) fn empty(reason: impl Display) -> Error {
    failure!(Usage, "there is nothing to draw: {reason}")
}

/// The error of a spec that Vega or Vega-Lite refused.
pub(crate) fn undrawn(reason: impl Display) -> Error {
    failure!(Failure, "the figure cannot be drawn: {reason}")
}

/// The error of a drawing that cannot be converted into a format.
pub(crate) fn unwritten(format: &str, reason: impl Display) -> Error {
    failure!(Failure, "the figure cannot be written as {format}: {reason}")
}

/// The error of a column of texts that is used as numbers.
pub fn not_numbers(name: &str) -> Error {
    failure!(
        Usage,
        "`{name}` has texts, and this axis needs numbers: name a column such as wait_s_mean, or swap the axes"
    )
}

/// The column of this name, which has numbers.
pub(crate) fn numeric(table: &Frame, name: &str) -> Result<Column> {
    let column = table.column(name)?;
    if column.is_numeric() { Ok(column) } else { Err(not_numbers(name)) }
}

/// The rows that have a finite number in each of these columns.
pub(crate) fn drawable(table: &Frame, names: &[&str]) -> Result<Frame> {
    let columns: Vec<Column> = names.iter().map(|name| numeric(table, name)).collect::<Result<_>>()?;
    let found = table.kept(|row| columns.iter().all(|column| column.number(row).is_some()));
    if found.rows() == 0 {
        return Err(empty(format!("no row has a number in {}", names.join(" and "))));
    }
    Ok(found)
}

/// The frame with these columns as texts.
pub(crate) fn with_texts(table: &Frame, names: &[&str]) -> Frame {
    let texts = |column: Column| match names.contains(&column.name()) {
        true => column.with_texts((0..column.len()).map(|row| column.text(row))),
        false => column,
    };
    Frame::of(table.columns().map(texts))
}

/// The rows as JSON objects.
pub(crate) fn json_of(table: &Frame) -> Value {
    let columns: Vec<Column> = table.columns().collect();
    let value = |column: &Column, row: usize| match column.is_numeric() {
        true => column.number(row).map_or(Value::Null, |number| json!(number)),
        false => text(column, row).map_or(Value::Null, Value::String),
    };
    let row = |row| -> Value {
        let cells = columns.iter().map(|column| (column.name().to_owned(), value(column, row)));
        Value::Object(cells.collect::<Map<_, _>>())
    };
    (0..table.rows()).map(row).collect()
}

/// The text of a row; `None` without a value.
pub(crate) fn text(column: &Column, row: usize) -> Option<String> {
    (!column.cell(row).is_null()).then(|| column.text(row))
}

/// The title of a column with its unit.
pub(crate) fn label(column: &Column) -> String {
    labelled(column.title(), column.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_number_are_not_drawable() {
        let table = Frame::of([
            Column::numbers("x", "x", "", [Some(1.0), None, Some(f64::NAN)]),
            Column::texts("p", "p", ["a", "b", "c"]),
        ]);
        let found = drawable(&table, &["x"]).expect("one row");
        assert_eq!(json_of(&found), json!([{ "x": 1.0, "p": "a" }]));
        assert_eq!(drawable(&table, &["p"]), Err(not_numbers("p")));
        let error = drawable(&table, &["z"]).expect_err("there is no such column");
        assert_eq!(Err(error), table.column("z").map(drop));
    }

    #[test]
    fn labels_have_units() {
        assert_eq!(label(&Column::numbers("cap_w", "cap", "W", [90.0])), "cap (W)");
    }
}
