//! The rows of a figure, column by column.

use serde_json::{Map, Value, json};

use crate::error::{FigureError, Result};

/// An infinite number as a name.
const UNLIMITED: &str = "unlimited";
/// A missing value as a name.
const NONE: &str = "none";

/// Named columns of equal length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
}

/// A column with what its axis is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name in the table, in CSV files and in the spec.
    pub name: String,
    /// Title of an axis or a legend, without the unit.
    pub title: String,
    /// Symbol of the unit; empty without one.
    pub unit: String,
    /// One value for each row.
    pub values: Values,
}

/// The values of a column. `None` is not drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers; those that are not finite are not drawn.
    Numbers(Vec<Option<f64>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows at these places.
    fn taken(&self, rows: &[usize]) -> Values {
        match self {
            Values::Numbers(values) => Values::Numbers(rows.iter().map(|row| values[*row]).collect()),
            Values::Texts(values) => Values::Texts(rows.iter().map(|row| values[*row].clone()).collect()),
        }
    }

    fn json(&self, row: usize) -> Value {
        match self {
            Values::Numbers(values) => values[row].filter(|value| value.is_finite()).map_or(Value::Null, |v| json!(v)),
            Values::Texts(values) => values[row].as_ref().map_or(Value::Null, |text| json!(text)),
        }
    }
}

impl Column {
    /// A column of numbers.
    pub fn numbers(name: &str, title: &str, unit: &str, values: impl IntoIterator<Item = f64>) -> Column {
        let values = Values::Numbers(values.into_iter().map(Some).collect());
        Column { name: name.to_owned(), title: title.to_owned(), unit: unit.to_owned(), values }
    }

    /// A column of texts.
    pub fn texts<S: Into<String>>(name: &str, title: &str, values: impl IntoIterator<Item = S>) -> Column {
        let values = Values::Texts(values.into_iter().map(|text| Some(text.into())).collect());
        Column { name: name.to_owned(), title: title.to_owned(), unit: String::new(), values }
    }

    /// The title with the unit: `energy (J)`.
    pub fn label(&self) -> String {
        labelled(&self.title, &self.unit)
    }

    /// The number of a row, if it can be drawn.
    pub fn number(&self, row: usize) -> Option<f64> {
        match &self.values {
            Values::Numbers(values) => values[row].filter(|value| value.is_finite()),
            Values::Texts(_) => None,
        }
    }

    /// The numbers that can be drawn.
    pub fn finite(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.values.len()).filter_map(|row| self.number(row))
    }

    /// The value of a row as text; a missing one is `none`.
    pub fn text(&self, row: usize) -> String {
        match &self.values {
            Values::Numbers(values) => values[row].map_or_else(|| NONE.to_owned(), shortest),
            Values::Texts(values) => values[row].clone().unwrap_or_else(|| NONE.to_owned()),
        }
    }

    /// The different values as texts: numbers, also those that are written as texts, in their order; other texts in the
    /// order in which they occur first.
    pub fn levels(&self) -> Vec<String> {
        let mut seen = std::collections::BTreeSet::new();
        let texts = (0..self.values.len()).map(|row| self.text(row));
        let mut levels: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
        if let Some(mut numbered) =
            levels.iter().map(|level| Some((rank(level)?, level.clone()))).collect::<Option<Vec<_>>>()
        {
            numbered.sort_by(|one, other| one.0.total_cmp(&other.0));
            levels = numbered.into_iter().map(|(_, level)| level).collect();
        }
        levels
    }

    /// This column with its values as texts.
    pub(crate) fn as_texts(&self) -> Column {
        let texts = (0..self.values.len()).map(|row| Some(self.text(row))).collect();
        Column { values: Values::Texts(texts), ..self.clone() }
    }

    /// This column with other numbers.
    pub(crate) fn with_numbers(&self, values: Vec<Option<f64>>) -> Column {
        Column { values: Values::Numbers(values), ..self.clone() }
    }
}

/// The number that a level stands for: `unlimited` comes after all numbers, `none` last.
fn rank(level: &str) -> Option<f64> {
    match level {
        UNLIMITED => Some(f64::INFINITY),
        NONE => Some(f64::NAN),
        level => level.parse().ok(),
    }
}

/// A title with its unit.
pub(crate) fn labelled(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") }
}

/// A number in its shortest form.
fn shortest(value: f64) -> String {
    match value {
        value if value.is_infinite() => UNLIMITED.to_owned(),
        value => format!("{value}"),
    }
}

impl Table {
    /// A table of these columns, which have one length and different names.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        let columns: Vec<Column> = columns.into_iter().collect();
        let rows = columns.first().map_or(0, |column| column.values.len());
        assert!(columns.iter().all(|column| column.values.len() == rows), "columns of one table have one length");
        Table { columns }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let found = self.columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| FigureError::NoColumn(name.to_owned()))
    }

    /// The column of this name, which has numbers.
    pub fn numeric(&self, name: &str) -> Result<&Column> {
        let column = self.column(name)?;
        match column.values {
            Values::Numbers(_) => Ok(column),
            Values::Texts(_) => Err(FigureError::NotNumbers(name.to_owned())),
        }
    }

    /// The rows at these places, in this order.
    pub fn taken(&self, rows: &[usize]) -> Table {
        let taken = |column: &Column| Column { values: column.values.taken(rows), ..column.clone() };
        Table { columns: self.columns.iter().map(taken).collect() }
    }

    /// Adds a column, or puts it in the place of the column of its name.
    pub fn push(&mut self, column: Column) {
        assert!(self.columns.is_empty() || column.values.len() == self.rows(), "columns of one table have one length");
        match self.columns.iter_mut().find(|known| known.name == column.name) {
            Some(known) => *known = column,
            None => self.columns.push(column),
        }
    }

    /// Adds the rows of a table with the same columns. A column that the other table lacks, or has of another type, has no
    /// values in these rows.
    pub(crate) fn append(&mut self, other: &Table) {
        for column in &mut self.columns {
            let found = other.column(&column.name).ok().map(|column| &column.values);
            match (&mut column.values, found) {
                (Values::Numbers(into), Some(Values::Numbers(from))) => into.extend(from),
                (Values::Texts(into), Some(Values::Texts(from))) => into.extend(from.iter().cloned()),
                (Values::Numbers(into), _) => into.resize(into.len() + other.rows(), None),
                (Values::Texts(into), _) => into.resize(into.len() + other.rows(), None),
            }
        }
    }

    /// Keeps only these columns, in this order.
    pub(crate) fn keep(&mut self, names: &[&str]) {
        let mut kept: Vec<Column> = Vec::new();
        for name in names {
            let is_new = kept.iter().all(|column| column.name != *name);
            kept.extend(self.columns.iter().filter(|column| column.name == *name && is_new).cloned());
        }
        self.columns = kept;
    }

    /// This table with these columns as texts.
    pub(crate) fn with_texts(mut self, names: &[&str]) -> Table {
        for column in self.columns.iter_mut().filter(|column| names.contains(&column.name.as_str())) {
            // Numbers as names keep the order of the numbers.
            *column = column.as_texts();
        }
        self
    }

    /// The rows that have a finite number in each of these columns.
    pub fn drawable(&self, names: &[&str]) -> Result<Table> {
        let columns: Vec<&Column> = names.iter().map(|name| self.numeric(name)).collect::<Result<_>>()?;
        let is_whole = |row: &usize| columns.iter().all(|column| column.number(*row).is_some());
        let rows: Vec<usize> = (0..self.rows()).filter(is_whole).collect();
        if rows.is_empty() {
            return Err(FigureError::Empty(format!("no row has a number in {}", names.join(" and "))));
        }
        Ok(self.taken(&rows))
    }

    /// The rows of each value of a column, in the order of its levels; all rows under "" without a column.
    pub(crate) fn groups(&self, name: Option<&str>) -> Result<Vec<(String, Vec<usize>)>> {
        let Some(name) = name else { return Ok(vec![(String::new(), (0..self.rows()).collect())]) };
        let column = self.column(name)?;
        let mut groups: Vec<(String, Vec<usize>)> =
            column.levels().into_iter().map(|level| (level, Vec::new())).collect();
        let places: std::collections::BTreeMap<String, usize> =
            groups.iter().enumerate().map(|(at, (level, _))| (level.clone(), at)).collect();
        for row in 0..self.rows() {
            groups[places[&column.text(row)]].1.push(row);
        }
        Ok(groups)
    }

    /// The rows as JSON objects.
    pub(crate) fn json(&self) -> Value {
        let row = |row| -> Value {
            let cells = self.columns.iter().map(|column| (column.name.clone(), column.values.json(row)));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        (0..self.rows()).map(row).collect()
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
        assert_eq!(caps.label(), "cap (W)");
    }

    #[test]
    fn rows_without_a_number_are_not_drawable() {
        let table = Table::new([
            Column {
                values: Values::Numbers(vec![Some(1.0), None, Some(f64::NAN)]),
                ..Column::numbers("x", "x", "", [])
            },
            Column::texts("p", "p", ["a", "b", "c"]),
        ]);
        let drawable = table.drawable(&["x"]).expect("one row");
        assert_eq!(drawable.json(), json!([{ "x": 1.0, "p": "a" }]));
        assert!(matches!(table.drawable(&["p"]), Err(FigureError::NotNumbers(_))));
        assert!(matches!(table.drawable(&["z"]), Err(FigureError::NoColumn(_))));
    }
}
