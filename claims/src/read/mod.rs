//! Checks of what a file declares: the names of manifests, runs, tables and columns, and the values of columns.

mod claims;
mod presets;

use std::collections::BTreeMap;

use powersweep_engine::Value;
use powersweep_engine::facts::Kind;
use powersweep_results::Table;
use powersweep_results::columns::Column;

use crate::claim::Runs;
use crate::deserialize::Node;
use crate::selection::{Aggregate, Conditions, ELEMENT, Selection};

/// The names that a file may use.
struct Context<'a> {
    manifests: &'a [String],
    runs: &'a BTreeMap<String, Runs>,
}

impl Context<'_> {
    /// Checks a selection, and fills in what its `runs` stand for. `outer`: the table of the selection around it.
    fn selection(&self, selection: &mut Selection, at: Node<'_, '_>, outer: Table) {
        let rows = selection.rows(outer);
        if let Some(name) = selection.table.as_deref().filter(|name| Table::from_name(name).is_none()) {
            let known = Table::ALL.iter().map(|table| table.name());
            at.at("table").unknown(name, format!("there is no table `{name}`"), "unknown table", known);
        }
        selection.manifest.iter().for_each(|name| self.manifest(name, at.at("manifest")));
        if let Some(name) = &selection.runs {
            let runs = self.runs.get(name);
            if runs.is_none() {
                let known = self.runs.keys().map(String::as_str);
                at.at("runs").unknown(name, format!("there is no [runs.{name}]"), "unknown runs", known);
            }
            selection.of_runs = runs.map(|runs| runs.conditions.clone());
            selection.manifest = selection.manifest.take().or_else(|| runs?.manifest.clone());
        }
        if let Some(name) = &selection.column {
            let at = at.at("column");
            let ty = column(rows, name, at).map(|column| column.ty);
            if name == ELEMENT || ty.is_some_and(|ty| !matches!(ty, Kind::Int | Kind::Real) && !is_list(ty)) {
                at.problem(format!("`{name}` is not a number"), "expected a column of numbers");
            }
        }
        if let Some(at) = at.get("where") {
            check_conditions(&mut selection.conditions, at, rows);
        }
        check_columns(&selection.same, at.at("same"), rows);
        check_columns(selection.by.as_deref().unwrap_or_default(), at.at("by"), rows);
        if matches!(selection.aggregate, Some(Aggregate::Only | Aggregate::GreatestChange)) {
            no_aggregate(at);
        }
        selection.divided_by.iter_mut().for_each(|inner| self.selection(inner, at.at("divided_by"), rows));
        selection.minus.iter_mut().for_each(|inner| self.selection(inner, at.at("minus"), rows));
        for (step, at) in selection.then.iter().flatten().zip(at.at("then").items()) {
            check_columns(&step.over, at.at("over"), rows);
            match step.aggregate {
                _ if at.get("aggregate").is_none() => {
                    at.start().problem("the step has no `aggregate`", "expected such as { aggregate = \"max\" }");
                }
                Aggregate::Only => no_aggregate(at),
                Aggregate::GreatestChange if step.over.len() != 1 => {
                    at.start().problem("a change needs one column", "expected such as over = [\"x\"]");
                }
                _ => {}
            }
        }
    }

    /// Checks the name of a manifest, one of those that the file lists.
    fn manifest(&self, name: &str, at: Node<'_, '_>) {
        if !self.manifests.iter().any(|known| known == name) {
            let message = format!("`manifests` does not list `{name}`");
            at.unknown(name, message, "unknown manifest", self.manifests.iter().map(String::as_str));
        }
    }
}

fn no_aggregate(at: Node<'_, '_>) {
    let expected = "expected mean, sum, min, max, count, standard-error, or a percentile such as p50";
    let at = at.at("aggregate");
    at.problem(format!("there is no aggregate `{}`", at.text().unwrap_or_default()), expected);
}

/// The column of this name for the rows of a table.
fn column(rows: Table, name: &str, at: Node<'_, '_>) -> Option<Column> {
    let found = column_of(rows, name);
    if found.is_none() {
        let columns = rows.columns();
        let message = format!("the table {rows} has no column `{name}`");
        at.unknown(name, message, "unknown column", columns.iter().map(|column| column.name.as_str()));
    }
    found
}

fn check_columns(names: &[String], at: Node<'_, '_>, rows: Table) {
    for (name, at) in names.iter().zip(at.items()) {
        column(rows, name, at);
    }
}

/// Checks conditions: each key is a column of the table, and each value has the kind of the column.
fn check_conditions(conditions: &mut Conditions, at: Node<'_, '_>, rows: Table) {
    for (key, value) in at.entries() {
        let found = conditions.get_mut(key.key).map(|values| (values, column(rows, key.key, key)));
        if let Some((values, Some(column))) = found {
            check_values(values, value, &column);
        }
    }
}

/// Checks the values of a column. `"unlimited"` becomes infinity.
fn check_values(values: &mut [Value], at: Node<'_, '_>, column: &Column) {
    for (value, at) in values.iter_mut().zip(at.items()) {
        match (column.ty, &value) {
            (Kind::Real, Value::Text(text)) if text == "unlimited" => *value = Value::Real(f64::INFINITY),
            (Kind::Bool, Value::Bool(_)) | (Kind::Int | Kind::Real, Value::Real(_)) | (Kind::Text, Value::Text(_)) => {}
            (Kind::Bool, _) => at.wrong("true or false"),
            (Kind::Int | Kind::Real, _) => at.wrong("a number"),
            (Kind::Text, _) => at.wrong("a text"),
            _ => at.wrong("a column of single values"),
        }
    }
}

/// Checks the version of a file and that it lists manifests. `of`: the contents of the file.
fn check_head(version: f64, of: &str, at: Node<'_, '_>) {
    if version != 1.0 {
        let expected = format!("expected version = 1, the version of the format of {of}");
        at.at("version").problem("`version` is not 1", expected);
    }
    at.require("manifests", "the names of the manifests whose rows are read");
}

/// The column of this name: the table's own, else that of `tasks`, which its rows are joined with.
fn column_of(table: Table, name: &str) -> Option<Column> {
    if name == ELEMENT {
        let (unit, doc, source) = ("", String::new(), String::new());
        return Some(Column { name: name.to_owned(), ty: Kind::Int, unit, nullable: false, doc, source });
    }
    let named = |columns: Vec<Column>| columns.into_iter().find(|column| column.name == name);
    named(table.columns()).or_else(|| named(Table::Tasks.columns()))
}

/// Whether a column has a list in each row.
fn is_list(ty: Kind) -> bool {
    matches!(ty, Kind::Ints | Kind::Reals)
}
