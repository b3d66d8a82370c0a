//! Rows of a figure: columns of one table, and columns of `tasks` beside them.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use powersweep_coordinator::records::Table as Stored;
use powersweep_figures::{Table, Values};

use super::titles;
use crate::exit::{Failure, failure};
use crate::reading::{Reading, relaxed, schema_of};
use crate::stored::Tables;
use crate::varying::{self, Tasks};
use crate::{rows, screen};

/// The column by which tables join `tasks`.
const TASK: &str = "task_id";

/// A condition on the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Only {
    pub(super) column: String,
    pub(super) value: String,
}

impl Only {
    /// Reads `COLUMN=VALUE`.
    pub(super) fn parse(text: &str) -> Result<Only, Failure> {
        let Some((column, value)) = text.split_once('=') else {
            return Err(failure!(Usage, "`{text}` is no condition: write COLUMN=VALUE, such as policy=easy"));
        };
        Ok(Only { column: column.to_owned(), value: value.to_owned() })
    }

    fn check(&self, of: &DataType) -> Result<(), Failure> {
        let is_number = matches!(of, DataType::Int64 | DataType::Float64);
        match is_number && !self.value.is_empty() && number(&self.value).is_none() {
            true => Err(failure!(Usage, "`{}={}`: a value of {0} is a number", self.column, self.value)),
            false => Ok(()),
        }
    }

    fn holds(&self, values: &Values, row: usize) -> bool {
        match values {
            Values::Numbers(values) if self.value.is_empty() => values[row].is_none(),
            Values::Numbers(values) => values[row].is_some() && values[row] == number(&self.value),
            Values::Texts(texts) => texts[row].as_deref().unwrap_or_default() == self.value,
        }
    }
}

fn number(text: &str) -> Option<f64> {
    if text == "unlimited" { Some(f64::INFINITY) } else { text.parse().ok() }
}

/// The table that has a column, of those that a figure may be of.
pub(super) fn table_of(column: &str) -> Stored {
    let has = |table: &Stored| schema_of(*table).column_with_name(column).is_some();
    [Stored::Tasks, Stored::Jobs, Stored::Series].into_iter().find(has).unwrap_or(Stored::Tasks)
}

/// Where the columns of a figure are.
struct Plan {
    table: Stored,
    /// Columns of the table itself.
    own: SchemaRef,
    /// Columns of `tasks` beside them.
    joined: SchemaRef,
}

impl Plan {
    /// Looks the columns up. An unknown one is an error with the most similar names.
    fn new(table: Stored, names: &[String], only: &[Only]) -> Result<Plan, Failure> {
        let (all, tasks) = (relaxed(&schema_of(table)), relaxed(&schema_of(Stored::Tasks)));
        let (mut own, mut joined) = (Vec::new(), Vec::new());
        for name in names.iter().chain(only.iter().map(|only| &only.column)) {
            match (all.column_with_name(name), tasks.column_with_name(name)) {
                (Some(_), _) => own.push(name.as_str()),
                (None, Some(_)) => joined.push(name.as_str()),
                (None, None) => return Err(unknown(table, name, &all, &tasks)),
            }
        }
        for only in only {
            let of = all.field_with_name(&only.column).or_else(|_| tasks.field_with_name(&only.column));
            of.map_or(Ok(()), |field| only.check(field.data_type()))?;
        }
        if !joined.is_empty() {
            own.push(TASK);
            joined.push(TASK);
        }
        let chosen = |all: &SchemaRef, names: &[&str]| {
            let places: Vec<usize> =
                (0..all.fields().len()).filter(|at| names.contains(&all.field(*at).name().as_str())).collect();
            SchemaRef::new(all.project(&places).expect("the places are those of the schema"))
        };
        Ok(Plan { table, own: chosen(&all, &own), joined: chosen(&tasks, &joined) })
    }
}

fn unknown(table: Stored, name: &str, all: &SchemaRef, tasks: &SchemaRef) -> Failure {
    let mut known: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    known.extend(tasks.fields().iter().map(|field| field.name().as_str()));
    known.sort_unstable();
    known.dedup();
    let near = screen::nearest(name, &known);
    let hint = match near.is_empty() {
        false => format!("did you mean {}?", near.join(" or ")),
        true => format!("`powersweep columns {table}` lists them"),
    };
    match table {
        Stored::Tasks => failure!(Usage, "tasks has no column `{name}`; {hint}"),
        _ => failure!(Usage, "neither {table} nor tasks has a column `{name}`; {hint}"),
    }
}

/// Columns that grow row by row.
struct Growing(Vec<(String, Values)>);

impl Growing {
    fn new(schema: &SchemaRef) -> Growing {
        let empty = |of: &DataType| match of {
            DataType::Int64 | DataType::Float64 => Values::Numbers(Vec::new()),
            _ => Values::Texts(Vec::new()),
        };
        Growing(schema.fields().iter().map(|field| (field.name().clone(), empty(field.data_type()))).collect())
    }

    /// Adds a row, whose columns are in the order of the schema.
    fn push(&mut self, batch: &RecordBatch, row: usize) {
        for ((_, values), column) in self.0.iter_mut().zip(batch.columns()) {
            match values {
                Values::Numbers(values) => values.push(number_of(column, row)),
                Values::Texts(texts) => texts.push(column.is_valid(row).then(|| rows::shown(column, row))),
            }
        }
    }

    fn pop(&mut self) {
        for (_, values) in &mut self.0 {
            match values {
                Values::Numbers(values) => drop(values.pop()),
                Values::Texts(texts) => drop(texts.pop()),
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Values> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, values)| values)
    }
}

fn number_of(column: &dyn Array, row: usize) -> Option<f64> {
    column.is_valid(row).then(|| match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as f64,
        _ => column.as_primitive::<Float64Type>().value(row),
    })
}

/// Where a figure reads its rows.
pub(super) struct Source<'a> {
    pub(super) tables: &'a Tables,
    pub(super) experiment: &'a str,
}

impl Source<'_> {
    /// These columns of a table and of `tasks`, in the rows that satisfy all conditions.
    pub(super) async fn read(&self, table: Stored, names: &[String], only: &[Only]) -> Result<Table, Failure> {
        let plan = Plan::new(table, names, only)?;
        let beside = self.tasks(&plan).await?;
        let reading = Reading::open(self.tables, self.experiment, plan.table).await?;
        reading.check_table()?;
        let mut found = Growing::new(&plan.own);
        // The row of `tasks` of each row.
        let mut tasks: Vec<Option<usize>> = Vec::new();
        let at = plan.own.index_of(TASK).ok();
        reading
            .each(&plan.own, |batch| {
                for row in 0..batch.num_rows() {
                    let id = at.map(|at| rows::shown(batch.column(at), row));
                    let task = id.and_then(|id| beside.places.get(&id).copied());
                    found.push(&batch, row);
                    let last = tasks.len();
                    let holds = |only: &Only| match (found.get(&only.column), beside.columns.get(&only.column), task) {
                        (Some(own), ..) => only.holds(own, last),
                        (None, Some(joined), Some(task)) => only.holds(joined, task),
                        _ => false,
                    };
                    if only.iter().all(holds) {
                        tasks.push(task);
                    } else {
                        found.pop();
                    }
                }
                Ok(true)
            })
            .await?;
        let mut columns = Vec::new();
        for name in names {
            let values = match (found.get(name), beside.columns.get(name)) {
                (Some(own), _) => own.clone(),
                (None, Some(joined)) => taken(joined, &tasks),
                (None, None) => continue,
            };
            if columns.iter().all(|column: &powersweep_figures::Column| column.name != *name) {
                columns.push(titles::column(name, values));
            }
        }
        Ok(Table::new(columns))
    }

    /// The columns of `tasks` that stand beside rows of another table.
    async fn tasks(&self, plan: &Plan) -> Result<Beside, Failure> {
        let mut columns = Growing::new(&plan.joined);
        let mut places = BTreeMap::new();
        if let Ok(at) = plan.joined.index_of(TASK) {
            let reading = Reading::open(self.tables, self.experiment, Stored::Tasks).await?;
            reading
                .each(&plan.joined, |batch| {
                    for row in 0..batch.num_rows() {
                        places.insert(rows::shown(batch.column(at), row), places.len());
                        columns.push(&batch, row);
                    }
                    Ok(true)
                })
                .await?;
        }
        Ok(Beside { columns, places })
    }

    /// The labels, components and parameters that have several values in the experiment, and the seed.
    pub(super) async fn varying(&self) -> Result<Vec<String>, Failure> {
        let reading = Reading::open(self.tables, self.experiment, Stored::Tasks).await?;
        let candidates = varying::candidates();
        let tasks = Tasks::open(&reading, &varying::columns(candidates.iter().map(String::as_str))).await?;
        let found = varying::search(&tasks.groups(), &candidates).await?;
        Ok(found.into_iter().filter(|column| column.distinguishes()).map(|column| column.name).collect())
    }
}

/// Columns of `tasks`, and the place of each task in them.
struct Beside {
    columns: Growing,
    places: BTreeMap<String, usize>,
}

fn taken(values: &Values, places: &[Option<usize>]) -> Values {
    match values {
        Values::Numbers(values) => Values::Numbers(places.iter().map(|at| at.and_then(|at| values[at])).collect()),
        Values::Texts(texts) => Values::Texts(places.iter().map(|at| at.and_then(|at| texts[at].clone())).collect()),
    }
}
