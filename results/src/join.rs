//! Joins rows of `jobs`, `series` or `failures` with columns of their tasks.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::ResultsError;

const TASK_ID: &str = "task_id";
/// Columns that every table has, so that a join does not add them.
const KEYS: [&str; 2] = [TASK_ID, "task_index"];

/// Rows of `tasks`, found by their id.
pub struct TasksById {
    tasks: RecordBatch,
    rows: HashMap<String, u32>,
}

impl TasksById {
    /// `tasks` must have the column `task_id`. A join adds the other columns.
    pub fn new(tasks: RecordBatch) -> Result<TasksById, ResultsError> {
        let rows = task_ids(&tasks)?.iter().flatten().map(str::to_owned).zip(0..).collect();
        Ok(TasksById { tasks, rows })
    }

    /// The columns of the tasks.
    pub fn schema(&self) -> &Schema {
        self.tasks.schema_ref()
    }

    /// These rows with the columns of their tasks after their own; null for a task that is not known.
    pub fn join(&self, rows: &RecordBatch) -> Result<RecordBatch, ResultsError> {
        let ids = task_ids(rows)?;
        let found: UInt32Array = ids.iter().map(|id| self.rows.get(id?).copied()).collect();
        let mut columns = rows.columns().to_vec();
        let fields = self.tasks.schema_ref().fields().iter().zip(self.tasks.columns());
        for (_, column) in fields.filter(|(field, _)| is_added(field)) {
            columns.push(take(column, &found, None)?);
        }
        Ok(RecordBatch::try_new(schema(rows.schema_ref(), self.tasks.schema_ref()), columns)?)
    }
}

/// The schema of a join: columns keep their units. A column of `tasks` whose name the rows have, too, is called `param_NAME`.
pub fn schema(rows: &Schema, tasks: &Schema) -> SchemaRef {
    let added = tasks.fields().iter().filter(|field| is_added(field)).map(|field| {
        let name = match rows.column_with_name(field.name()) {
            Some(_) => format!("param_{}", field.name()),
            None => field.name().clone(),
        };
        Arc::new(field.as_ref().clone().with_name(name).with_nullable(true))
    });
    Arc::new(Schema::new(rows.fields().iter().cloned().chain(added).collect::<Vec<_>>()))
}

fn is_added(field: &Field) -> bool {
    !KEYS.contains(&field.name().as_str())
}

/// The rows of these tasks.
pub fn of_tasks(rows: &RecordBatch, ids: &BTreeSet<String>) -> Result<RecordBatch, ResultsError> {
    let keep: BooleanArray = task_ids(rows)?.iter().map(|id| Some(id.is_some_and(|id| ids.contains(id)))).collect();
    Ok(filter_record_batch(rows, &keep)?)
}

/// The column `task_id`.
pub fn task_ids(rows: &RecordBatch) -> Result<&StringArray, ResultsError> {
    let column = rows.column_by_name(TASK_ID).and_then(|column| column.as_string_opt());
    Ok(column.ok_or_else(|| ArrowError::SchemaError(format!("there is no column `{TASK_ID}` of texts")))?)
}
