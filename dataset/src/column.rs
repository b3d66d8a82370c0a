//! A column of a frame: its name, what its axis is called, and its values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef};

use crate::Cell;
use crate::frame::{TITLE, UNIT};

/// A column with its values, one for each row of its frame.
#[derive(Debug, Clone)]
pub struct Column {
    field: FieldRef,
    values: ArrayRef,
}

impl Column {
    /// A field with its values, which have the field's type.
    pub fn of(field: &FieldRef, values: &ArrayRef) -> Column {
        Column { field: Arc::clone(field), values: Arc::clone(values) }
    }

    /// A column of numbers, some of which may be missing. The unit is empty for numbers without one.
    pub fn numbers<N: Into<Option<f64>>>(
        name: &str,
        title: &str,
        unit: &str,
        values: impl IntoIterator<Item = N>,
    ) -> Column {
        let values = values.into_iter().map(Into::into).collect::<Float64Array>();
        Column { field: field(name, DataType::Float64), values: Arc::new(values) }.titled(title, unit)
    }

    /// A column of texts.
    pub fn texts<S: AsRef<str>>(name: &str, title: &str, values: impl IntoIterator<Item = S>) -> Column {
        Column::optional_texts(name, title, values.into_iter().map(Some))
    }

    /// A column of texts, some of which may be missing.
    pub fn optional_texts<S: AsRef<str>>(
        name: &str,
        title: &str,
        values: impl IntoIterator<Item = Option<S>>,
    ) -> Column {
        let values = values.into_iter().collect::<StringArray>();
        Column { field: field(name, DataType::Utf8), values: Arc::new(values) }.titled(title, "")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// The title of an axis or a legend, without the unit.
    pub fn title(&self) -> &str {
        self.field.metadata().get(TITLE).map_or(self.name(), String::as_str)
    }

    /// Symbol of the unit; empty without one.
    pub fn unit(&self) -> &str {
        self.field.metadata().get(UNIT).map_or("", String::as_str)
    }

    /// The field of a schema.
    pub(crate) fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The values.
    pub(crate) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether the values are numbers.
    pub fn is_numeric(&self) -> bool {
        is_numeric(self.field.data_type())
    }

    /// Whether the values are lists.
    pub fn is_list(&self) -> bool {
        matches!(self.field.data_type(), DataType::List(_))
    }

    /// The value of a row.
    pub fn cell(&self, row: usize) -> Cell {
        Cell::of(&self.values, row)
    }

    /// The number of a row, if it is finite.
    pub fn number(&self, row: usize) -> Option<f64> {
        if !self.is_numeric() {
            return None;
        }
        self.cell(row).number().filter(|value| value.is_finite())
    }

    /// Whether the value of a row is the number that is shown as "unlimited".
    pub fn is_unlimited(&self, row: usize) -> bool {
        self.is_numeric() && self.cell(row).number() == Some(f64::INFINITY)
    }

    /// The finite numbers.
    pub fn finite(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).filter_map(|row| self.number(row))
    }

    /// The value of a row as a text: "none" without a value, "unlimited" for an infinite number.
    pub fn text(&self, row: usize) -> String {
        match self.cell(row) {
            Cell::Text(text) => text,
            cell => cell.exact(),
        }
    }

    /// The different values as texts: numbers, also those that are written as texts, ascend. Other texts have the order of
    /// the rows, which is the order of the manifest where the rows have the order of their tasks.
    pub fn levels(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let texts = (0..self.len()).map(|row| self.text(row));
        let mut levels: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
        sort_numbers(&mut levels, |level| level);
        levels
    }

    /// The rows of each level, in the order of the levels.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<usize>)> {
        let mut groups: Vec<(String, Vec<usize>)> =
            self.levels().into_iter().map(|level| (level, Vec::new())).collect();
        let places: BTreeMap<String, usize> =
            groups.iter().enumerate().map(|(at, (level, _))| (level.clone(), at)).collect();
        for row in 0..self.len() {
            groups[places[&self.text(row)]].1.push(row);
        }
        groups
    }

    /// This column under another name.
    pub fn named(&self, name: &str) -> Column {
        Column { field: Arc::new(self.field.as_ref().clone().with_name(name)), values: Arc::clone(&self.values) }
    }

    /// This column with another title and unit.
    pub fn titled(&self, title: &str, unit: &str) -> Column {
        let mut metadata = self.field.metadata().clone();
        for (key, value, is_implied) in [(TITLE, title, title == self.name()), (UNIT, unit, unit.is_empty())] {
            metadata.remove(key);
            metadata.extend((!is_implied).then(|| (key.to_owned(), value.to_owned())));
        }
        let field = self.field.as_ref().clone().with_metadata(metadata);
        Column { field: Arc::new(field), values: Arc::clone(&self.values) }
    }

    /// A column with this name, title and unit, and these numbers.
    pub fn with_numbers<N: Into<Option<f64>>>(&self, values: impl IntoIterator<Item = N>) -> Column {
        Column::numbers(self.name(), self.title(), self.unit(), values)
    }

    /// A column with this name, title and unit, and these texts.
    pub fn with_texts<S: AsRef<str>>(&self, values: impl IntoIterator<Item = S>) -> Column {
        Column::texts(self.name(), self.title(), values).titled(self.title(), self.unit())
    }

    /// A column with this name, title, unit and type, without a value in any of some rows.
    pub fn without_values(&self, rows: usize) -> Column {
        Column { field: Arc::clone(&self.field), values: new_null_array(self.field.data_type(), rows) }
    }

    /// Numbers as they are, and other values as texts for people.
    pub fn for_people(&self) -> Column {
        if self.is_numeric() {
            return self.clone();
        }
        let shown = |row| Some(self.cell(row)).filter(|cell| !cell.is_null()).map(|cell| cell.shown());
        let column = Column::optional_texts(self.name(), self.title(), (0..self.len()).map(shown));
        column.titled(self.title(), self.unit())
    }
}

/// Whether a type has numbers that an axis can show.
pub fn is_numeric(of: &DataType) -> bool {
    matches!(of, DataType::Int64 | DataType::Float64)
}

fn field(name: &str, of: DataType) -> FieldRef {
    Arc::new(Field::new(name, of, true))
}

/// The number of a level: infinite for "unlimited", and NaN for "none". A text that is no number has none.
pub fn number_of(level: &str) -> Option<f64> {
    match level {
        "unlimited" => Some(f64::INFINITY),
        "none" => Some(f64::NAN),
        level => level.parse::<f64>().ok(),
    }
}

/// Sorts levels if all of them are numbers: "unlimited" comes after all numbers, "none" last.
pub fn sort_numbers<T>(levels: &mut [T], text: impl Fn(&T) -> &str) {
    let rank = |level: &T| number_of(text(level));
    if levels.iter().all(|level| rank(level).is_some()) {
        let rank = |level: &T| rank(level).unwrap_or(f64::NAN);
        levels.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_levels_in_their_order_and_texts_in_the_order_of_the_rows() {
        let caps = Column::numbers("cap_w", "cap", "W", [90.0, f64::INFINITY, 70.5, 90.0]);
        assert_eq!(caps.levels(), ["70.5", "90", "unlimited"]);
        assert_eq!(Column::texts("policy", "policy", ["sjf", "easy", "sjf"]).levels(), ["sjf", "easy"]);
        assert_eq!((caps.title(), caps.unit()), ("cap", "W"));
    }

    #[test]
    fn values_for_people_are_numbers_and_texts() {
        let whole = Column::optional_texts("list", "list", [Some("a\u{7}"), None]).for_people();
        assert_eq!((whole.text(0).contains('\u{7}'), whole.text(1)), (false, "none".to_owned()));
    }
}
