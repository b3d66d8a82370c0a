//! Events that the tables have: finished tasks, failed attempts, parts.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use object_store::path::Path;
use powersweep_dataset::activity::times;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::reading::columns;
use powersweep_dataset::{Datasets, Error};
use powersweep_results::Table;
use powersweep_results::layout;
use serde_json::{Map, Value as Json, json};

use super::sink::{Event, Sink};

/// The columns of every attempt, then those of a finished task and of a failed attempt.
const ATTEMPT: [&str; 8] = ["task_index", "task_id", "workload", "platform", "policy", "seed", "worker", "attempt"];
const DONE: [&str; 2] = ["started_at", "wall_ms"];
const FAILED: [&str; 3] = ["failed_at", "failure_kind", "message"];

/// What was given so far.
#[derive(Default)]
pub(super) struct Rows {
    /// Hashes of the events of rows. A row is unpublished first, then in a part, and after an edit of the manifest in a
    /// part of fragments.
    given: HashSet<u64>,
    /// Parts whose rows were given. A part never changes.
    parts: BTreeSet<Path>,
}

impl Rows {
    /// Gives the rows that are new, and the parts.
    pub(super) async fn look(&mut self, datasets: &Datasets, sink: &mut Sink<'_>) -> Result<(), Error> {
        for table in [Table::Failures, Table::Tasks] {
            let mut reading = datasets.read(&sink.experiment, table).await?;
            reading.skip(&self.parts);
            let own: &[&str] = if table == Table::Failures { &FAILED } else { &DONE };
            let columns = columns(table, ATTEMPT.iter().chain(own).copied());
            reading
                .each(&columns, |batch| {
                    let new = self.new_events(&batch, table, sink);
                    sink.give(&new)?;
                    Ok(!sink.is_closed)
                })
                .await?;
            for part in reading.published_parts() {
                let event = of_part(&part.path, part.bytes, table, sink);
                sink.give(event.as_slice())?;
                self.parts.insert(part.path.clone());
            }
        }
        Ok(())
    }

    /// The events of the rows of a batch that were not given before.
    fn new_events(&mut self, batch: &RecordBatch, table: Table, sink: &Sink<'_>) -> Vec<Event> {
        let new = (0..batch.num_rows()).filter_map(|row| {
            let event = of_row(batch, row, table, sink)?;
            let mut hasher = DefaultHasher::new();
            event.hash(&mut hasher);
            self.given.insert(hasher.finish()).then_some(event)
        });
        new.collect()
    }
}

fn of_row(batch: &RecordBatch, row: usize, table: Table, sink: &Sink<'_>) -> Option<Event> {
    let (kind, time_us) = match table {
        Table::Failures => {
            let at = batch.column_by_name("failed_at").filter(|column| column.is_valid(row));
            ("attempt_failed", at.map_or(0, |at| at.as_primitive::<TimestampMicrosecondType>().value(row)))
        }
        _ => ("task_completed", times(batch, row).1),
    };
    let facts = row_json(batch, row).filter(|(name, value)| *name != "failed_at" && !value.is_null());
    sink.event(time_us, kind, facts.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The event of a part, at the moment in its id, when it began to be made.
fn of_part(path: &Path, bytes: u64, table: Table, sink: &Sink<'_>) -> Option<Event> {
    let name = path.filename()?;
    let (seconds, nanos) = layout::part_id(name)?.get_timestamp()?.to_unix();
    let time_us = i64::try_from(seconds * 1_000_000 + u64::from(nanos / 1000)).ok()?;
    let facts = [("table", json!(table.name())), ("part", json!(name)), ("bytes", json!(bytes))];
    let facts: Map<String, Json> = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    sink.event(time_us, "part_published", facts)
}
