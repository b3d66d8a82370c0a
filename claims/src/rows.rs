//! The rows with which claims are compared, by manifest and table.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use powersweep_dataset::replicates::Method;
use powersweep_dataset::{Cell, Column, Frame};
use powersweep_engine::Value;
use powersweep_engine::seeds::Dependence;
use powersweep_results::Table;

use crate::selection::{Conditions, ELEMENT};

/// Columns to read, by manifest and table. Those that a table does not have are columns of `tasks`, joined on `task_id`.
pub type Needed = BTreeMap<(String, Table), BTreeSet<String>>;

/// The rows of all manifests that the claims need.
#[derive(Debug, Default)]
pub struct Rows {
    tables: BTreeMap<(String, Table), Vec<Frame>>,
    seeds: BTreeMap<String, Dependence>,
    lacking: BTreeMap<(String, Table), String>,
}

impl Rows {
    /// No rows.
    pub fn new() -> Rows {
        Rows::default()
    }

    /// Adds rows of a manifest's table. Columns that are not in [`Needed`] may be missing.
    pub fn add(&mut self, manifest: &str, table: Table, batches: Vec<RecordBatch>) {
        self.tables
            .entry((manifest.to_owned(), table))
            .or_default()
            .extend(batches.into_iter().map(|batch| Frame::new(batch, 0)));
    }

    /// Says why a manifest's table has no rows.
    pub fn set_lacking(&mut self, manifest: &str, table: Table, reason: String) {
        self.lacking.insert((manifest.to_owned(), table), reason);
    }

    /// Sets the dependence of a manifest's seeds; without it they are independent.
    pub fn set_seeds(&mut self, manifest: &str, seeds: Dependence) {
        self.seeds.insert(manifest.to_owned(), seeds);
    }

    /// How a 95% interval follows from the seeds of a manifest.
    pub(crate) fn method(&self, manifest: &str) -> Method {
        Method::of(self.seeds.get(manifest).copied().unwrap_or_default(), 95)
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
        let place = (manifest.to_owned(), table);
        if let Some(reason) = self.lacking.get(&place) {
            return Err(reason.clone());
        }
        for frame in self.tables.get(&place).into_iter().flatten() {
            let named =
                |name: &str| frame.column(name).map_err(|_| format!("the rows of {manifest} have no column `{name}`"));
            let values = column.map(named).transpose()?;
            let is_list = values.as_ref().is_some_and(Column::is_list);
            if !is_list && conditions.keys().chain(by).any(|name| name == ELEMENT) {
                return Err(format!("`{}` is not a list: it has no elements", column.unwrap_or("rows")));
            }
            let of_rows = conditions.iter().filter(|(name, _)| *name != ELEMENT);
            let tests = of_rows.map(|(name, wanted)| Ok((named(name)?, wanted))).collect::<Result<Vec<_>, String>>()?;
            // The place of an element has no column.
            let key = |name: &String| if name == ELEMENT { Ok(None) } else { named(name).map(Some) };
            let keys = by.iter().map(key).collect::<Result<Vec<_>, String>>()?;
            for row in 0..frame.rows() {
                let holds = |cell: Cell, wanted: &[Value]| wanted.iter().any(|wanted| is(&cell, wanted));
                if !tests.iter().all(|(column, wanted)| holds(column.cell(row), wanted)) {
                    continue;
                }
                let cell = values.as_ref().map_or(Cell::Real(1.0), |column| column.cell(row));
                for (place, value) in elements(&cell) {
                    let place = Value::Real(place);
                    if conditions.get(ELEMENT).is_some_and(|wanted| !wanted.contains(&place)) {
                        continue;
                    }
                    without_value += usize::from(value.is_none());
                    let key = |key: &Option<Column>| match key {
                        Some(column) => text(&column.cell(row)),
                        None => place.to_string(),
                    };
                    groups.entry(keys.iter().map(key).collect()).or_default().extend(value);
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

fn is(cell: &Cell, wanted: &Value) -> bool {
    match wanted {
        Value::Bool(wanted) => *cell == Cell::Bool(*wanted),
        Value::Text(wanted) => matches!(cell, Cell::Text(text) if text == wanted),
        Value::Real(wanted) => number(cell) == Some(*wanted),
        _ => false,
    }
}

/// The values of a cell with their places, from 1: the elements of a list, or one value.
fn elements(cell: &Cell) -> Vec<(f64, Option<f64>)> {
    match cell {
        // A missing element is NaN.
        Cell::List(items) => {
            (1..).map(f64::from).zip(items.iter().map(|item| Some(*item).filter(|item| !item.is_nan()))).collect()
        }
        _ => vec![(1.0, number(cell))],
    }
}

fn number(cell: &Cell) -> Option<f64> {
    cell.number().filter(|_| !matches!(cell, Cell::Bool(_)))
}

/// A cell as a text, for the key of a group: empty without a value.
fn text(cell: &Cell) -> String {
    if cell.is_null() { String::new() } else { cell.exact() }
}
