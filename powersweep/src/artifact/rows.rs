//! Facts on the tasks of an experiment, from its rows.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use powersweep_dataset::reading::columns;
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
        let mut survey = Survey::default();
        let failed = &mut survey.failed;
        each(datasets, sweep, Table::Failures, &["attempt", "failure_kind", "message"], |batch, row, index| {
            let text = |column: usize| batch.column(column).as_string::<i32>().value(row).to_owned();
            let attempt = batch.column(2).as_primitive::<Int64Type>().value(row);
            if failed.get(&index).is_none_or(|known| known.attempt <= attempt) {
                failed.insert(index, Failed { attempt, kind: text(3), message: text(4) });
            }
        })
        .await?;
        each(datasets, sweep, Table::Tasks, &["wall_ms", "started_at"], |batch, row, index| {
            let wall_ms = batch.column(2).as_primitive::<Float64Type>().value(row);
            survey.done += 1;
            survey.failed.remove(&index);
            survey.slot_ms += wall_ms;
            survey.longest_ms = survey.longest_ms.max(wall_ms);
            let started_us = batch.column(3).as_primitive::<TimestampMicrosecondType>().value(row);
            survey.last_us = survey.last_us.max(started_us);
        })
        .await?;
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

/// Calls `each` with each row of a task of the sweep, and the task's index. `names`: the columns behind the keys of the task.
async fn each(
    datasets: &Datasets,
    sweep: &Sweep,
    table: Table,
    names: &[&str],
    mut each: impl FnMut(&RecordBatch, usize, u64),
) -> Result<(), Error> {
    let reading = datasets.read_published(sweep.manifest().name(), table).await?;
    let mut decoder = Decoder::new(sweep.clone());
    let schema = columns(table, ["task_index", "task_id"].iter().chain(names).copied());
    let of_batch = |batch: RecordBatch| {
        let (indices, ids) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
        for row in (0..batch.num_rows()).filter(|row| indices.is_valid(*row)) {
            let task = u64::try_from(indices.value(row)).ok().and_then(|index| decoder.task(index));
            if let Some(task) = task.filter(|task| task.task_id.to_string() == ids.value(row)) {
                each(&batch, row, task.index);
            }
        }
        Ok(true)
    };
    reading.each(&schema, of_batch).await
}
