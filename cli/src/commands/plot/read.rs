//! Rows of a figure: columns of one table, and columns of `tasks` beside them.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema};
use powersweep_dataset::Cell;
use powersweep_dataset::Condition;
use powersweep_dataset::Datasets;
use powersweep_dataset::grouped::FooterFacts;
use powersweep_dataset::source;
use powersweep_figures::{Table, Values};
use powersweep_results::Table as Stored;

use super::titles;
use crate::exit::Failure;

/// The table that has a column, of those that a figure may be of.
pub(super) fn table_of(column: &str) -> Stored {
    let has = |table: &Stored| table.schema().column_with_name(column).is_some();
    [Stored::Tasks, Stored::Jobs, Stored::Series].into_iter().find(has).unwrap_or(Stored::Tasks)
}

/// Where a figure reads its rows.
pub(super) struct Source<'a> {
    pub(super) datasets: &'a Datasets,
    pub(super) experiment: &'a str,
    /// Conditions of the command line.
    pub(super) only: &'a [String],
}

impl Source<'_> {
    /// These columns of a table and of its tasks, in the rows that satisfy all conditions.
    pub(super) async fn read(&self, table: Stored, names: &[String], more: &[Condition]) -> Result<Table, Failure> {
        let mut conditions = source::conditions(table, self.only)?;
        conditions.extend_from_slice(more);
        let reading = self.datasets.read(self.experiment, table).await?;
        let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = source::Source::open(self.datasets, &reading, &wanted, conditions).await?;
        reading.check_table()?;
        let mut columns = empty(&found.schema(), names);
        found
            .each(|batch, rows| {
                for (name, values) in &mut columns {
                    let Some(column) = batch.column_by_name(name) else { continue };
                    rows.iter().for_each(|row| push(values, column, *row));
                }
                Ok(true)
            })
            .await?;
        Ok(Table::new(columns.into_iter().map(|(name, values)| titles::column(&name, values))))
    }

    /// The labels, components and parameters that have several values in the experiment, and the seed.
    pub(super) async fn varying(&self) -> Result<Vec<String>, Failure> {
        let found = FooterFacts::read(self.datasets, self.experiment).await?.candidates;
        Ok(found.into_iter().filter(|column| column.distinguishes()).map(|column| column.name).collect())
    }
}

/// Columns of these names, each once, without rows.
fn empty(schema: &Schema, names: &[String]) -> Vec<(String, Values)> {
    let mut columns: Vec<(String, Values)> = Vec::new();
    for name in names {
        let Ok(field) = schema.field_with_name(name) else { continue };
        let values = match field.data_type() {
            DataType::Int64 | DataType::Float64 => Values::Numbers(Vec::new()),
            _ => Values::Texts(Vec::new()),
        };
        if columns.iter().all(|(known, _)| known != name) {
            columns.push((name.clone(), values));
        }
    }
    columns
}

fn push(values: &mut Values, column: &dyn Array, row: usize) {
    match values {
        Values::Numbers(values) => values.push(number(column, row)),
        Values::Texts(texts) => texts.push(column.is_valid(row).then(|| Cell::of(column, row).shown())),
    }
}

fn number(column: &dyn Array, row: usize) -> Option<f64> {
    column.is_valid(row).then(|| match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as f64,
        _ => column.as_primitive::<Float64Type>().value(row),
    })
}
