//! Facts on the tasks of an experiment, from its rows.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int64Type, Schema, TimestampMicrosecondType};
use powersweep_dataset::reading::relaxed;
use powersweep_dataset::{Datasets, Error, failure};
use powersweep_experiments::{Decoder, Sweep};
use powersweep_results::Table;

/// The tasks of an experiment, by their rows.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Number of tasks of the manifest that have a row.
    pub done: u64,
    /// Time of all tasks on their slots (ms), and that of the longest.
    pub slot_ms: f64,
    pub longest_ms: f64,
    /// When the last task began (µs since 1970).
    pub last_us: i64,
    /// The last failure of each task without a row, by its index.
    pub failed: BTreeMap<u64, Failed>,
}

/// A failure of a task.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub attempt: i64,
    pub kind: String,
    pub message: String,
}

impl Survey {
    /// Reads the rows of a sweep.
    pub(super) async fn of(datasets: &Datasets, sweep: &Sweep) -> Result<Survey, Error> {
        let mut survey = Survey { failed: failed(datasets, sweep).await?, ..Survey::default() };
        let reading = datasets.read_published(sweep.manifest().name(), Table::Tasks).await?;
        let mut decoder = Decoder::new(sweep.clone());
        let schema = columns(Table::Tasks, &["task_index", "task_id", "wall_ms", "started_at"]);
        let each = |batch: arrow::array::RecordBatch| {
            let (indices, ids) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
            let walls = batch.column(2).as_primitive::<Float64Type>();
            let starts = batch.column(3).as_primitive::<TimestampMicrosecondType>();
            for row in 0..batch.num_rows() {
                let Some(index) = indices.is_valid(row).then(|| indices.value(row)) else { continue };
                let task = u64::try_from(index).ok().and_then(|index| decoder.task(index));
                let Some(task) = task.filter(|task| task.task_id.to_string() == ids.value(row)) else { continue };
                survey.done += 1;
                survey.failed.remove(&task.index);
                survey.slot_ms += walls.value(row);
                survey.longest_ms = survey.longest_ms.max(walls.value(row));
                survey.last_us = survey.last_us.max(starts.value(row));
            }
            Ok(true)
        };
        reading.each(&schema, each).await?;
        Ok(survey)
    }

    /// The failed tasks as CSV.
    pub(super) fn failed_csv(&self) -> Result<Vec<u8>, Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let failed = |error: csv::Error| failure!(Failure, "cannot write the failed tasks: {error}");
        out.write_record(["task_index", "attempt", "failure_kind", "message"]).map_err(failed)?;
        for (index, task) in &self.failed {
            let row = [&index.to_string(), &task.attempt.to_string(), &task.kind, &task.message];
            out.write_record(row).map_err(failed)?;
        }
        out.into_inner().map_err(|error| failure!(Failure, "cannot write the failed tasks: {error}"))
    }
}

/// The last failure of each task of the sweep, by its index.
async fn failed(datasets: &Datasets, sweep: &Sweep) -> Result<BTreeMap<u64, Failed>, Error> {
    let mut failed: BTreeMap<u64, Failed> = BTreeMap::new();
    let reading = datasets.read_published(sweep.manifest().name(), Table::Failures).await?;
    let mut decoder = Decoder::new(sweep.clone());
    let schema = columns(Table::Failures, &["task_index", "task_id", "attempt", "failure_kind", "message"]);
    let each = |batch: arrow::array::RecordBatch| {
        let (indices, ids) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
        let attempts = batch.column(2).as_primitive::<Int64Type>();
        let text = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row).to_owned();
        for row in 0..batch.num_rows() {
            let Some(index) = indices.is_valid(row).then(|| indices.value(row)) else { continue };
            let task = u64::try_from(index).ok().and_then(|index| decoder.task(index));
            let Some(task) = task.filter(|task| task.task_id.to_string() == ids.value(row)) else { continue };
            let attempt = attempts.value(row);
            if failed.get(&task.index).is_none_or(|known| known.attempt <= attempt) {
                failed.insert(task.index, Failed { attempt, kind: text(3, row), message: text(4, row) });
            }
        }
        Ok(true)
    };
    reading.each(&schema, each).await?;
    Ok(failed)
}

/// Columns of a table, in this order.
fn columns(table: Table, names: &[&str]) -> arrow::datatypes::SchemaRef {
    let all = relaxed(&table.schema());
    let fields = names.iter().filter_map(|name| all.field_with_name(name).ok().cloned());
    std::sync::Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
