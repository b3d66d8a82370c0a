//! The first rows of `tasks` on the screen: columns that vary, and the usual metrics.
//!
//! Only what is shown is read: the footers of the parts, the index of the row groups that may have the first rows, and
//! the shown columns of these rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use comfy_table::CellAlignment;
use futures::TryStreamExt;
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_coordinator::records::Table;
use powersweep_coordinator::store::Location;
use powersweep_results::layout;
use serde_json::Value as Json;

use crate::exit::{Exit, Failure, OrExit};
use crate::reading::{Reading, Seen, narrowed, relaxed, schema_of};
use crate::varying::{self, Group, Tasks, whole};
use crate::{rows, screen};

/// Metrics of queueing models, with their headings.
const QUEUE_METRICS: &[(&str, &str)] = &[
    ("measured_jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("turnaround_s_mean", "mean response (s)"),
    ("energy_per_job_j", "energy per job (J)"),
    ("energy_total_j", ENERGY),
];

/// The heading of energies.
const ENERGY: &str = "energy (J)";

/// Metrics of batch simulations, with their headings.
const METRICS: &[(&str, &str)] = &[
    ("jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("bsld_mean", "mean BSLD"),
    ("utilization_installed", "utilization"),
    ("reduced_count", "reduced jobs"),
    ("energy_total_j", ENERGY),
];

/// The column whose order rows are shown in.
const INDEX: &str = "task_index";
/// The columns that tell energies in joules from relative ones.
const POWER: [&str; 2] = ["power", "power_top_w"];
/// The column that tells queueing models from batch simulations.
const KIND: &str = "kind";

/// A row, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    index: i64,
    group: usize,
    row: usize,
}

/// The first published rows of an experiment by task index; `None` if it has no rows.
pub async fn show(location: &Location, experiment: &str, rows_shown: usize) -> Result<Option<String>, Failure> {
    if rows_shown == 0 {
        return Ok(None);
    }
    table(&Reading::published(location, experiment, Table::Tasks).await?, rows_shown).await
}

/// The first rows by task index; `None` without rows.
pub async fn table(reading: &Reading, rows_shown: usize) -> Result<Option<String>, Failure> {
    let candidates = varying::candidates();
    let others = METRICS.iter().chain(QUEUE_METRICS).map(|(name, _)| *name).chain([INDEX]).chain(POWER);
    let needed: BTreeSet<&str> = candidates.iter().map(String::as_str).chain(others).collect();
    let tasks = Tasks::open(reading, &varying::columns(needed)).await?;
    let groups = tasks.groups();
    let count: usize = groups.iter().map(|group| group.rows()).sum();
    if count == 0 {
        return Ok(None);
    }
    let places = first_rows(&groups, rows_shown).await?;
    let found = varying::search(&groups, &candidates).await?;
    let axes = found.iter().filter(|candidate| candidate.distinguishes()).map(|candidate| candidate.name.as_str());
    let axes: Vec<&str> = axes.collect();
    let kinds = cells(&groups, &places, &[KIND]).await?;
    let of_queues = |kind: &Vec<Json>| kind[0].as_str().is_some_and(|kind| kind != "batch");
    let metrics = if !kinds.is_empty() && kinds.iter().all(of_queues) { QUEUE_METRICS } else { METRICS };
    let shown: Vec<&str> = axes.iter().copied().chain(metrics.iter().map(|(name, _)| *name)).collect();
    let energy = energy_heading(&cells(&groups, &places, &POWER).await?);
    let cells = cells(&groups, &places, &shown).await?;
    let metrics = metrics.iter().map(|(_, heading)| if *heading == ENERGY { energy } else { *heading });
    let headings = axes.iter().copied().chain(metrics);
    let text = render(headings, axes.len(), &cells);
    let more = count - places.len();
    Ok(Some(if more > 0 { format!("{text}\n… and {more} more rows") } else { text }))
}

/// The heading of energies, from the shown rows' [`POWER`]: they are joules unless the power of a busy proc is left at its
/// default.
fn energy_heading(found: &[Vec<Json>]) -> &'static str {
    let is_relative = |row: &&Vec<Json>| row[0] == "etinski" && row[1].as_f64() == Some(1.0);
    match found.iter().filter(is_relative).count() {
        0 => ENERGY,
        count if count == found.len() => "energy (relative)",
        _ => "energy (J or relative)",
    }
}

/// Whether an experiment has no part of `tasks`.
pub async fn is_empty(location: &Location, experiment: &str) -> Result<bool, Failure> {
    let store = location.object_store().or_exit(Exit::Storage)?;
    let first = store.list(Some(&layout::tasks_dir(experiment))).try_next().await;
    Ok(first.or_exit(Exit::Storage)?.is_none())
}

/// Some columns of all published rows of a table.
pub async fn columns(
    location: &Location,
    experiment: &str,
    table: &str,
    wanted: &BTreeSet<String>,
) -> Result<Vec<RecordBatch>, Failure> {
    let Some(table) = Table::from_name(table) else { return Ok(Vec::new()) };
    let reading = Reading::published(location, experiment, table).await?;
    let mut batches = Vec::new();
    let schema = narrowed(&relaxed(&schema_of(table)), wanted);
    reading
        .each(&schema, |batch| {
            batches.push(batch);
            Ok(true)
        })
        .await?;
    Ok(batches)
}

/// The places of the rows with the smallest task indices. Row groups are read in the order of their smallest index, until
/// no other row group can have a smaller one.
async fn first_rows(groups: &[Group<'_>], most: usize) -> Result<Vec<Place>, Failure> {
    let least = |group: &Group<'_>| match group.seen(INDEX) {
        Seen::Equal(least) | Seen::Between { least, .. } => least.as_i64().unwrap_or(i64::MIN),
        Seen::Unknown => i64::MIN,
    };
    let mut order: Vec<(i64, usize)> = groups.iter().enumerate().map(|(at, group)| (least(group), at)).collect();
    order.sort_unstable();
    let schema = varying::columns([INDEX]);
    let mut places: Vec<Place> = Vec::new();
    for (least, at) in order {
        if places.len() == most && places.last().is_none_or(|last| last.index < least) {
            break;
        }
        let mut row = 0;
        let group = groups[at];
        let collect = |batch: &RecordBatch| {
            let indices = batch.column(0).as_primitive::<Int64Type>().iter();
            places.extend(indices.zip(row..).map(|(index, row)| Place {
                index: index.unwrap_or(i64::MAX),
                group: at,
                row,
            }));
            row += batch.num_rows();
            true
        };
        group.each(&schema, whole, collect).await?;
        places.sort_unstable();
        places.truncate(most);
    }
    Ok(places)
}

/// These columns of these rows.
async fn cells(groups: &[Group<'_>], places: &[Place], names: &[&str]) -> Result<Vec<Vec<Json>>, Failure> {
    let mut by_group: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        by_group.entry(place.group).or_default().insert(place.row, at);
    }
    let schema = varying::columns(names.iter().copied());
    let mut cells = vec![Vec::new(); places.len()];
    for (at, wanted) in by_group {
        let group = groups[at];
        let ranges = wanted.keys().map(|row| *row..row + 1);
        let some = RowSelection::from_consecutive_ranges(ranges, group.rows());
        // All rows of unpublished ones are in the one batch; of a part, only those that are wanted.
        let is_whole = matches!(group, Group::Unpublished(_));
        let mut targets = wanted.iter();
        let take = |batch: &RecordBatch| {
            let mut row = 0;
            while row < batch.num_rows() {
                let Some((place, target)) = targets.next() else { break };
                let from = if is_whole { *place } else { row };
                cells[*target] = batch.columns().iter().map(|column| rows::cell(column, from)).collect();
                row += 1;
            }
            true
        };
        group.each(&schema, |group| RowGroupSelection::new(group, Some(some)), take).await?;
    }
    Ok(cells)
}

/// `axes`: number of columns that are no metrics.
fn render<'a>(headings: impl Iterator<Item = &'a str>, axes: usize, rows: &[Vec<Json>]) -> String {
    let mut table = screen::table();
    table.set_header(headings);
    for row in rows {
        table.add_row(row.iter().map(rows::text));
    }
    table.column_iter_mut().skip(axes).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}
