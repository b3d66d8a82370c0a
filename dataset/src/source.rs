//! Rows of one table that satisfy conditions, with columns of their tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use powersweep_experiments::reading::hint;
use powersweep_results::Table;
use powersweep_results::join::{self, TasksById};
use powersweep_results::tasks;

use crate::Datasets;
use crate::condition::{Op, satisfying};
use crate::reading::{Reading, relaxed};
use crate::rows::Axis;
use crate::scan::{self, INDEX};
use crate::search::Constraint;
use crate::{Cell, Condition, Error, Kind, OrKind, Rows, failure};

/// The column by which rows find their task.
const TASK_ID: &str = "task_id";
/// Maximum number of names or values that a message offers.
const OFFERED: usize = 8;

/// Rows of one table that satisfy conditions, with the columns of their tasks that are asked for.
pub struct Source<'a> {
    reading: &'a Reading,
    /// The table's own columns that are read.
    own: SchemaRef,
    tasks: Option<TasksById>,
    conditions: Vec<Condition>,
}

impl<'a> Source<'a> {
    /// The rows with these columns, which are of the table or of its tasks. `datasets` has both.
    pub async fn open(
        datasets: &Datasets,
        reading: &'a Reading,
        names: &[&str],
        conditions: Vec<Condition>,
    ) -> Result<Source<'a>, Error> {
        let table = reading.table();
        let all = relaxed(&table.schema());
        let wanted: BTreeSet<&str> =
            names.iter().copied().chain(conditions.iter().map(|condition| condition.column.as_str())).collect();
        for name in &wanted {
            type_of(table, name)?;
        }
        let (own, foreign): (BTreeSet<&str>, BTreeSet<&str>) =
            wanted.into_iter().partition(|name| all.column_with_name(name).is_some());
        let is_read = |name: &str| own.contains(name) || (name == TASK_ID && !foreign.is_empty());
        let fields = all.fields().iter().filter(|field| is_read(field.name()));
        let own = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        if let Some(name) = foreign.first().filter(|_| table == Table::Failures) {
            return Err(without_parameters(name));
        }
        let tasks = match foreign.is_empty() {
            true => None,
            false => Some(columns_of_tasks(datasets, reading.experiment(), foreign).await?),
        };
        Ok(Source { reading, own, tasks, conditions })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        match &self.tasks {
            None => Arc::clone(&self.own),
            Some(tasks) => join::schema(&self.own, tasks.schema()),
        }
    }

    /// All rows.
    pub async fn batches(&self) -> Result<Vec<RecordBatch>, Error> {
        let mut batches = Vec::new();
        self.each(|batch, rows| {
            let rows: UInt32Array = rows.iter().map(|row| Some(*row as u32)).collect();
            batches.push(take_record_batch(batch, &rows).or_kind(Kind::Storage)?);
            Ok(true)
        })
        .await?;
        Ok(batches)
    }

    /// Calls `each` with every batch and those of its rows that satisfy the conditions, until it returns false.
    pub async fn each(&self, mut each: impl FnMut(&RecordBatch, &[usize]) -> Result<bool, Error>) -> Result<(), Error> {
        let joined = |batch: RecordBatch| match &self.tasks {
            None => Ok(batch),
            Some(tasks) => tasks.join(&batch).or_kind(Kind::Storage),
        };
        let visit = |batch| {
            let batch = joined(batch)?;
            let rows = satisfying(&batch, &self.conditions)?;
            if rows.is_empty() { Ok(true) } else { each(&batch, &rows) }
        };
        self.reading.each(&self.own, visit).await
    }
}

/// Rows of a table with these axes and measures, ordered by the index of their task.
pub async fn rows(
    datasets: &Datasets,
    reading: &Reading,
    [axes, measures]: [&[&str]; 2],
    only: Vec<Condition>,
) -> Result<Rows, Error> {
    let names: Vec<&str> = axes.iter().chain(measures).copied().chain([INDEX]).collect();
    let source = Source::open(datasets, reading, &names, only).await?;
    let mut rows = Rows::new(&source.schema(), axes, measures, INDEX)?;
    source
        .each(|batch, found| {
            rows.add(batch, found)?;
            Ok(true)
        })
        .await?;
    Ok(rows)
}

/// The table that has these columns: `accounts` if one of them is there alone, else `tasks`.
pub fn table_of<'a>(mut names: impl Iterator<Item = &'a str>) -> Table {
    let has = |table: Table, name: &str| table.schema().column_with_name(name).is_some();
    let is_account = |name: &str| has(Table::Accounts, name) && !has(Table::Tasks, name);
    if names.any(is_account) { Table::Accounts } else { Table::Tasks }
}

/// The type of a column of a table or of its tasks.
pub fn type_of(table: Table, name: &str) -> Result<DataType, Error> {
    let (own, of_tasks) = (table.schema(), tasks::schema());
    let found = [&own, &of_tasks].into_iter().find_map(|schema| schema.field_with_name(name).ok());
    found.map(|field| field.data_type().clone()).ok_or_else(|| {
        let own_names = own.fields().iter().map(|field| field.name().as_str());
        let more = of_tasks.fields().iter().map(|field| field.name().as_str());
        let names = own_names.chain(more.filter(|name| own.column_with_name(name).is_none()));
        no_column(table, name, &names.collect::<Vec<_>>())
    })
}

/// The error of a parameter or metric of tasks that is asked of `failures`.
pub fn without_parameters(name: &str) -> Error {
    failure!(
        Usage,
        "failures have no `{name}`: no table has the parameters of a task without a row; failures have workload, platform, policy, \
         seed, failure_kind and message, and `powersweep status` has the command that repeats a failed task"
    )
}

/// The error of a name that no column has, with the names that may be meant.
pub fn no_column(table: Table, name: &str, known: &[&str]) -> Error {
    let parts: Vec<&str> = name.split_whitespace().collect();
    let with_word: Vec<&str> =
        known.iter().copied().filter(|known| known.split('_').any(|word| word == name)).collect();
    let similar = hint(name, known.iter().copied());
    let hint = match () {
        () if table != Table::Accounts && table_of([name].into_iter()) == Table::Accounts => {
            "it is a column of `accounts`".to_owned()
        }
        () if parts.len() > 1 && parts.iter().all(|part| known.contains(part)) => {
            format!("names are separated by commas: {}", parts.join(","))
        }
        () if with_word.len() > 1 => {
            // The names of the table itself, or those that its rows get from their tasks.
            let of_table = |name: &&str| table.schema().column_with_name(name).is_some();
            let own: Vec<&str> = with_word.iter().copied().filter(of_table).collect();
            let (has, names) = if own.is_empty() { (Table::Tasks, with_word) } else { (table, own) };
            let more = match names.len().saturating_sub(OFFERED) {
                0 => String::new(),
                more => format!(" and {more} more, which `powersweep columns {has}` lists"),
            };
            let of = if has == table { "it".to_owned() } else { has.to_string() };
            format!("{of} has {}{more}", names[..names.len().min(OFFERED)].join(", "))
        }
        () => similar
            .or_else(|| with_word.first().map(|name| format!("did you mean `{name}`?")))
            .unwrap_or_else(|| format!("`powersweep columns {table}` lists them")),
    };
    failure!(Usage, "{table} has no column `{name}`; {hint}")
}

/// Says which of some conditions no row satisfies, and what the rows have there.
///
/// # Errors
/// A condition asks for a value that no row has.
pub async fn why_none(datasets: &Datasets, reading: &Reading, texts: &[String]) -> Result<String, Error> {
    for (only, text) in conditions(reading.table(), texts)?.into_iter().zip(texts) {
        let column = only.column.as_str();
        let rows = rows(datasets, reading, [&[column][..], &[]], Vec::new()).await?;
        let Some(values) = rows.axis(column).map(Axis::values).filter(|values| !values.is_empty()) else { continue };
        if values.iter().any(|value| only.holds(value)) {
            continue;
        }
        let mut shown: Vec<&Cell> = values.iter().filter(|value| !value.is_null()).collect();
        shown.sort_by(|one, other| one.order(other));
        let names: Vec<String> = shown.iter().map(|value| value.exact()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = hint(&only.value.exact(), names.iter().copied());
        let found = match names.as_slice() {
            [] => format!("no row has a value of {column}"),
            names if names.len() <= OFFERED => format!("{column} is {}", names.join(", ")),
            [least, .., greatest] if shown[0].number().is_some() => {
                format!("{column} lies between {least} and {greatest}")
            }
            names => format!("{column} is {}, … ({} values)", names[..OFFERED].join(", "), names.len()),
        };
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        let message = format!("no row satisfies `{text}`: {found}{hint}");
        return if only.op == Op::Equal { Err(failure!(Usage, "{message}")) } else { Ok(message) };
    }
    Ok(format!("no row satisfies all of these conditions: {}", texts.join(", ")))
}

/// The conditions on the rows of a table.
pub fn conditions(table: Table, texts: &[String]) -> Result<Vec<Condition>, Error> {
    texts.iter().map(|text| Condition::parse(text, |name| type_of(table, name))).collect()
}

/// Reads constraints on the columns of a table or of its tasks.
pub fn constraints(table: Table, texts: &[String]) -> Result<Vec<Constraint>, Error> {
    texts.iter().map(|text| Constraint::parse(text, |name| type_of(table, name))).collect()
}

async fn columns_of_tasks(datasets: &Datasets, experiment: &str, names: BTreeSet<&str>) -> Result<TasksById, Error> {
    let schema = scan::columns(names.into_iter().chain([TASK_ID]));
    let mut batches = Vec::new();
    let take = |batch| {
        batches.push(batch);
        Ok(true)
    };
    datasets.read(experiment, Table::Tasks).await?.each(&schema, take).await?;
    TasksById::new(concat_batches(&schema, &batches).or_kind(Kind::Storage)?).or_kind(Kind::Storage)
}
