//! The rows of a figure: which of them can be drawn, and as what.

use powersweep_dataset::titles::labelled;
use powersweep_dataset::{Column, Frame};
use serde_json::{Map, Value, json};

use crate::error::{FigureError, Result};

/// Questions of figures to a frame.
pub(crate) trait Drawable: Sized {
    /// The column of this name, which has numbers.
    fn numeric(&self, name: &str) -> Result<Column>;

    /// The rows that have a finite number in each of these columns.
    fn drawable(&self, names: &[&str]) -> Result<Self>;

    /// This frame with these columns as texts.
    fn with_texts(self, names: &[&str]) -> Self;

    /// The rows as JSON objects.
    fn json(&self) -> Value;
}

impl Drawable for Frame {
    fn numeric(&self, name: &str) -> Result<Column> {
        let column = self.column(name)?;
        if column.is_numeric() { Ok(column) } else { Err(FigureError::NotNumbers(name.to_owned())) }
    }

    fn drawable(&self, names: &[&str]) -> Result<Frame> {
        let columns: Vec<Column> = names.iter().map(|name| self.numeric(name)).collect::<Result<_>>()?;
        let found = self.kept(|row| columns.iter().all(|column| column.number(row).is_some()));
        if found.rows() == 0 {
            return Err(FigureError::Empty(format!("no row has a number in {}", names.join(" and "))));
        }
        Ok(found)
    }

    fn with_texts(self, names: &[&str]) -> Frame {
        let texts = |column: Column| match names.contains(&column.name()) {
            true => column.with_texts((0..column.len()).map(|row| column.text(row))),
            false => column,
        };
        Frame::of(self.columns().map(texts))
    }

    fn json(&self) -> Value {
        let columns: Vec<Column> = self.columns().collect();
        let value = |column: &Column, row: usize| match column.is_numeric() {
            true => column.number(row).map_or(Value::Null, |number| json!(number)),
            false => text(column, row).map_or(Value::Null, Value::String),
        };
        let row = |row| -> Value {
            let cells = columns.iter().map(|column| (column.name().to_owned(), value(column, row)));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        (0..self.rows()).map(row).collect()
    }
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
        let drawable = table.drawable(&["x"]).expect("one row");
        assert_eq!(drawable.json(), json!([{ "x": 1.0, "p": "a" }]));
        assert!(matches!(table.drawable(&["p"]), Err(FigureError::NotNumbers(_))));
        assert!(matches!(table.drawable(&["z"]), Err(FigureError::NoColumn(_))));
    }

    #[test]
    fn labels_have_units() {
        assert_eq!(label(&Column::numbers("cap_w", "cap", "W", [90.0])), "cap (W)");
    }
}
