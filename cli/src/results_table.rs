//! The first rows of `tasks` on the screen: columns that vary, and the usual metrics.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use comfy_table::CellAlignment;
use futures::TryStreamExt;
use object_store::ObjectStore;
use powersweep_coordinator::store::Location;
use powersweep_results::{layout, tasks};
use serde_json::Value as Json;

use crate::exit::{Exit, Failure, OrExit};
use crate::{reading, rows, screen};

/// Metrics of queueing models, with their headings.
const QUEUE_METRICS: &[(&str, &str)] = &[
    ("measured_jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("turnaround_s_mean", "mean response (s)"),
    ("energy_per_job_j", "energy per job (J)"),
    ("energy_total_j", "energy (J)"),
];

/// Metrics of batch simulations, with their headings.
const METRICS: &[(&str, &str)] = &[
    ("jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("bsld_mean", "mean BSLD"),
    ("utilization_installed", "utilization"),
    ("reduced_count", "reduced jobs"),
    ("energy_total_j", "energy (J)"),
];

/// Columns that no manifest chooses.
const NOT_AXES: &[&str] = &["task_index", "kernel_version", "log_digest", "log_sha256"];

/// Columns with the names of a manifest's blocks.
const LABELS: &[&str] = &["workload", "platform", "policy"];

/// Maximum number of rows that are read for the screen.
pub const ROWS_MAX: u64 = 100_000;

/// The first published rows of an experiment by task index. `None` if it has no rows, or more than [`ROWS_MAX`].
pub async fn show(location: &Location, experiment: &str, rows_shown: usize) -> Result<Option<String>, Failure> {
    if rows_shown == 0 {
        return Ok(None);
    }
    let batches = columns(location, experiment, "tasks", &wanted(), ROWS_MAX).await?;
    let found: Vec<Vec<(String, Json)>> =
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| rows::pairs(batch, row))).collect();
    Ok(table(found, rows_shown))
}

/// A table of rows with the columns of [`wanted`], by task index; `None` without rows.
pub fn table(mut found: Vec<Vec<(String, Json)>>, rows_shown: usize) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|row| value(row, "task_index").and_then(Json::as_i64));
    Some(render(&found, rows_shown))
}

/// Whether an experiment has no part of `tasks`.
pub async fn is_empty(location: &Location, experiment: &str) -> Result<bool, Failure> {
    let store = location.object_store().or_exit(Exit::Storage)?;
    let first = store.list(Some(&layout::tasks_dir(experiment))).try_next().await;
    Ok(first.or_exit(Exit::Storage)?.is_none())
}

fn value<'a>(row: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    row.iter().find(|(column, _)| column == name).map(|(_, value)| value)
}

/// [`QUEUE_METRICS`] if all rows are of queueing models.
fn metrics(found: &[Vec<(String, Json)>]) -> &'static [(&'static str, &'static str)] {
    let of_queues = |row: &Vec<(String, Json)>| value(row, "kind").is_some_and(|kind| kind != "batch");
    if found.iter().all(of_queues) { QUEUE_METRICS } else { METRICS }
}

fn render(found: &[Vec<(String, Json)>], rows_shown: usize) -> String {
    let (axes, metrics) = (axes(found), metrics(found));
    let mut table = screen::table();
    table.set_header(axes.iter().copied().chain(metrics.iter().map(|(_, heading)| *heading)));
    for row in found.iter().take(rows_shown) {
        let shown = axes.iter().copied().chain(metrics.iter().map(|(name, _)| *name));
        table.add_row(shown.map(|name| value(row, name).map(rows::text).unwrap_or_default()));
    }
    table.column_iter_mut().skip(axes.len()).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let more = found.len().saturating_sub(rows_shown);
    if more > 0 { format!("{table}\n… and {more} more rows") } else { table.to_string() }
}

/// The columns that distinguish the rows: labels that vary, and parameters that vary among rows of equal labels.
fn axes(found: &[Vec<(String, Json)>]) -> Vec<&str> {
    let text = |row: &[(String, Json)], name: &str| value(row, name).map(rows::text).unwrap_or_default();
    let values = |name: &str| -> BTreeSet<String> {
        found.iter().map(|row| text(row, name)).filter(|value| !value.is_empty()).collect()
    };
    let labels: Vec<&str> = LABELS.iter().copied().filter(|name| values(name).len() > 1).collect();
    let labelled = |row: &[(String, Json)]| -> Vec<String> { labels.iter().map(|name| text(row, name)).collect() };
    let beyond_labels = |name: &str| {
        let pairs: BTreeSet<(Vec<String>, String)> = found.iter().map(|row| (labelled(row), text(row, name))).collect();
        let blocks: BTreeSet<Vec<String>> = found.iter().map(|row| labelled(row)).collect();
        pairs.len() > blocks.len()
    };
    let names = found[0].iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| !NOT_AXES.contains(name))
        .filter(|name| !METRICS.iter().chain(QUEUE_METRICS).any(|(metric, _)| metric == name))
        .filter(|name| labels.contains(name) || (values(name).len() > 1 && beyond_labels(name)))
        .collect()
}

/// The columns of `tasks` that the table on the screen needs: possible axes, labels, metrics.
pub fn wanted() -> BTreeSet<String> {
    let axes = tasks::axes().into_iter().map(|column| column.name);
    let others = LABELS.iter().chain(&["task_index", "seed"]).copied();
    let metrics = METRICS.iter().chain(QUEUE_METRICS).map(|(name, _)| *name);
    axes.chain(others.chain(metrics).map(str::to_owned)).collect()
}

/// Some columns of all published rows of a table; no rows if there are more than `rows_max`.
pub async fn columns(
    location: &Location,
    experiment: &str,
    table: &str,
    wanted: &BTreeSet<String>,
    rows_max: u64,
) -> Result<Vec<RecordBatch>, Failure> {
    let store = location.object_store().or_exit(Exit::Storage)?;
    let folder = layout::table_dir(experiment, table);
    let parts: Vec<_> = store.list(Some(&folder)).try_collect().await.or_exit(Exit::Storage)?;
    let mut batches = Vec::new();
    let mut rows = 0;
    for part in parts {
        let path = &part.location;
        let part = reading::parquet(path, reading::object(&*store, path).await?)?;
        rows += part.metadata().file_metadata().num_rows().unsigned_abs();
        if rows > rows_max {
            return Ok(Vec::new());
        }
        let columns = reading::columns(path, part, wanted.iter().map(String::as_str))?;
        batches.extend(columns.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(batches)
}
