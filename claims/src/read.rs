//! Reading values of TOML: all problems are collected, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;

use powersweep_engine::Value;
use powersweep_engine::facts::Kind;
use powersweep_experiments::Problem;
use powersweep_experiments::reading::{integer, kind, suggestion};
use powersweep_results::{Table, columns::Column};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of a column that every list column has besides the columns of its table: the place of an element, from 1.
pub(crate) const ELEMENT: &str = "element";

/// Conditions: a column and the values one of which its cell must have. Every number is a real, also one of an integer
/// column.
pub(crate) type Conditions = BTreeMap<String, Vec<Value>>;

/// A value with its place.
pub(crate) type Item<'t> = Spanned<DeValue<'t>>;

/// Collects problems.
pub(crate) struct Reader {
    pub(crate) problems: Vec<Problem>,
}

impl Reader {
    pub(crate) fn problem(&mut self, item: &Item<'_>, message: impl Into<String>, expected: impl Into<String>) {
        self.problem_at(item.span(), message, expected);
    }

    pub(crate) fn problem_at(&mut self, at: Range<usize>, message: impl Into<String>, expected: impl Into<String>) {
        self.problems.push(Problem::new(at, message, expected));
    }

    /// Refuses keys that are not `known`.
    pub(crate) fn keys(&mut self, what: &str, table: &DeTable<'_>, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let message = format!("{what} has no key `{}`", key.get_ref());
            let help = suggestion(key.get_ref(), known.iter().copied());
            self.problems.push(Problem::new(key.span(), message, "unknown key").help(help));
        }
    }

    fn wrong(&mut self, key: &str, item: &Item<'_>, expected: &str) {
        self.problem(item, format!("`{key}` cannot be {}", kind(item.get_ref())), format!("expected {expected}"));
    }

    /// The value of a key, if there is one that `read` accepts.
    fn read<'a, 't, T>(
        &mut self,
        table: &'a DeTable<'t>,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'t>) -> Option<T>,
    ) -> Option<T> {
        let item = table.get(key)?;
        let found = read(item.get_ref());
        if found.is_none() {
            self.wrong(key, item, expected);
        }
        found
    }

    pub(crate) fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<String> {
        let text = |value: &DeValue<'_>| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        self.read(table, key, "a text", text)
    }

    pub(crate) fn bool(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        self.read(table, key, "true or false", DeValue::as_bool)
    }

    pub(crate) fn number(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        self.read(table, key, "a number", number)
    }

    /// One number, or a list of them.
    pub(crate) fn numbers(&mut self, table: &DeTable<'_>, key: &str) -> Option<Vec<f64>> {
        self.read(table, key, "a number, or a list with one number a repetition", |value| match value {
            DeValue::Array(items) if !items.is_empty() => items.iter().map(|item| number(item.get_ref())).collect(),
            value => number(value).map(|number| vec![number]),
        })
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, table: &DeTable<'_>, key: &str) -> Option<Vec<String>> {
        self.read(table, key, "a list of texts", |value| {
            let items = value.as_array().filter(|items| !items.is_empty())?;
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        })
    }

    /// The table below a key.
    pub(crate) fn table<'a, 't>(&mut self, table: &'a DeTable<'t>, key: &str) -> Option<&'a DeTable<'t>> {
        self.read(table, key, "a table", DeValue::as_table)
    }

    /// The column of this name for the rows of a table.
    pub(crate) fn column(&mut self, table: Table, item: &Spanned<impl AsRef<str>>) -> Option<Column> {
        let name = item.get_ref().as_ref();
        if name == ELEMENT {
            return Some(element());
        }
        let found = column_of(table, name);
        if found.is_none() {
            let columns = table.columns();
            let help = suggestion(name, columns.iter().map(|c| c.name.as_str()));
            let message = format!("the table {table} has no column `{name}`");
            self.problems.push(Problem::new(item.span(), message, "unknown column").help(help));
        }
        found
    }

    /// Reads conditions: each key is a column of the table, and each value has the kind of the column.
    pub(crate) fn conditions(&mut self, rows: Table, table: &DeTable<'_>, skip: &[&str]) -> Conditions {
        let mut conditions = Conditions::new();
        for (key, item) in table.iter().filter(|(key, _)| !skip.contains(&key.get_ref().as_ref())) {
            let Some(column) = self.column(rows, key) else { continue };
            conditions.insert(column.name.clone(), self.values(&column, item));
        }
        conditions
    }

    /// One value of a column, or a list of them.
    pub(crate) fn values(&mut self, column: &Column, item: &Item<'_>) -> Vec<Value> {
        match item.get_ref() {
            DeValue::Array(items) if !items.is_empty() => {
                items.iter().filter_map(|item| self.value(column, item)).collect()
            }
            _ => self.value(column, item).into_iter().collect(),
        }
    }

    fn value(&mut self, column: &Column, item: &Item<'_>) -> Option<Value> {
        let (found, expected) = match column.ty {
            Kind::Bool => (item.get_ref().as_bool().map(Value::Bool), "true or false"),
            Kind::Int => (number(item.get_ref()).map(Value::Real), "a number"),
            Kind::Real if item.get_ref().as_str() == Some("unlimited") => {
                (Some(Value::Real(f64::INFINITY)), "a number")
            }
            Kind::Real => (number(item.get_ref()).map(Value::Real), "a number"),
            Kind::Text => (item.get_ref().as_str().map(|text| Value::Text(text.to_owned())), "a text"),
            _ => (None, "a column of single values"),
        };
        if found.is_none() {
            self.wrong(&column.name, item, expected);
        }
        found
    }
}

fn element() -> Column {
    Column {
        name: ELEMENT.to_owned(),
        ty: Kind::Int,
        unit: "",
        nullable: false,
        doc: String::new(),
        source: String::new(),
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(v) => integer(v).map(|v| v as f64),
        DeValue::Float(v) => v.as_str().replace('_', "").parse().ok().filter(|v: &f64| v.is_finite()),
        _ => None,
    }
}

/// The column of this name: the table's own, else that of `tasks`, which its rows are joined with.
pub(crate) fn column_of(table: Table, name: &str) -> Option<Column> {
    let named = |columns: Vec<Column>| columns.into_iter().find(|column| column.name == name);
    named(table.columns()).or_else(|| named(powersweep_results::tasks::columns()))
}
