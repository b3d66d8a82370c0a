//! Events that the tables have: finished tasks, failed attempts, parts.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef, TimestampMicrosecondType};
use object_store::path::Path;
use powersweep_dataset::Datasets;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::reading::relaxed;
use powersweep_results::Table;
use powersweep_results::layout;
use serde_json::{Map, Value as Json, json};

use super::lines::Lines;
use crate::commands::timeline::times;
use crate::exit::Failure;

/// The columns of a finished task.
const DONE: [&str; 10] =
    ["task_index", "task_id", "workload", "platform", "policy", "seed", "worker", "attempt", "started_at", "wall_ms"];

/// The columns of a failed attempt.
const FAILED: [&str; 11] = [
    "task_index",
    "task_id",
    "workload",
    "platform",
    "policy",
    "seed",
    "worker",
    "attempt",
    "failed_at",
    "failure_kind",
    "message",
];

/// What was printed so far.
#[derive(Default)]
pub(super) struct Rows {
    /// Hashes of the lines of rows. A row is unpublished first, then in a part, and after an edit of the manifest in a
    /// part of fragments.
    printed: HashSet<u64>,
    /// Parts whose rows are printed. A part never changes.
    parts: BTreeSet<Path>,
}

impl Rows {
    /// Prints the rows that are new, and the parts.
    pub(super) async fn look(&mut self, datasets: &Datasets, lines: &mut Lines) -> Result<(), Failure> {
        for table in [Table::Failures, Table::Tasks] {
            let mut reading = datasets.read(lines.experiment(), table).await?;
            reading.skip(&self.parts);
            let columns = columns(table);
            reading
                .each(&columns, |batch| {
                    let text = self.texts(&batch, table, lines);
                    lines.write(&text)?;
                    Ok(!lines.is_closed())
                })
                .await?;
            for part in reading.published_parts() {
                lines.write(&part_text(&part.path, part.bytes, table, lines).unwrap_or_default())?;
                self.parts.insert(part.path.clone());
            }
        }
        Ok(())
    }

    /// The lines of the rows of a batch that were not printed before.
    fn texts(&mut self, batch: &RecordBatch, table: Table, lines: &Lines) -> String {
        let new = (0..batch.num_rows()).filter_map(|row| {
            let text = row_text(batch, row, table, lines)?;
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            self.printed.insert(hasher.finish()).then_some(text)
        });
        new.collect()
    }
}

fn columns(table: Table) -> SchemaRef {
    let all = relaxed(&Table::schema(table));
    let names: &[&str] = if table == Table::Failures { &FAILED } else { &DONE };
    let fields = names.iter().filter_map(|name| Some(Arc::clone(all.fields().find(name)?.1)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn row_text(batch: &RecordBatch, row: usize, table: Table, lines: &Lines) -> Option<String> {
    let (kind, time_us) = match table {
        Table::Failures => ("attempt_failed", failed_us(batch, row)),
        _ => ("task_completed", times(batch, row).1),
    };
    let facts = row_json(batch, row).filter(|(name, value)| *name != "failed_at" && !value.is_null());
    lines.line(time_us, kind, facts.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn failed_us(batch: &RecordBatch, row: usize) -> i64 {
    let column = batch.column_by_name("failed_at").filter(|column| column.is_valid(row));
    column.map_or(0, |at| at.as_primitive::<TimestampMicrosecondType>().value(row))
}

/// The line of a part, at the moment in its id, when it began to be made.
fn part_text(path: &Path, bytes: u64, table: Table, lines: &Lines) -> Option<String> {
    let name = path.filename()?;
    let (seconds, nanos) = layout::part_id(name)?.get_timestamp()?.to_unix();
    let time_us = i64::try_from(seconds * 1_000_000 + u64::from(nanos / 1000)).ok()?;
    let facts = [("table", json!(table.name())), ("part", json!(name)), ("bytes", json!(bytes))];
    let facts: Map<String, Json> = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    lines.line(time_us, "part_published", facts)
}
