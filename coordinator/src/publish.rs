//! Turns durable rows into Parquet parts, exactly once.
//!
//! The order is: the intent {part id, rows} is durable; the part is encoded in memory and created under a name that holds
//! its id; one commit closes the intent and deletes the rows. A crash between any two of these leaves an open intent,
//! and [`Publisher::finish`] repeats it: the same rows under the same name, which either creates the part or finds its
//! own. Readers see a part once, whole, and never see a row twice.
//!
//! Objects that workers uploaded take the same way: the commit that accepts a hand-in also holds the intent
//! ([`staged_intent`]), and `finish` gives the object its name.
//!
//! After an error the fate of the last commit is unknown: drop the [`Publisher`] with the rest of the state, load, and
//! finish what is open.

use crate::records::{Intent, Key, Loaded, Record, RowsHeader, RowsRecord, Source, Table, Totals};
use crate::store::{Batch, Store, StoreError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use object_store::path::Path;
use powersweep_results::part::{self, Footer};
use powersweep_results::{ResultsError, failures, ipc, layout, tasks};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Rows that make a part worth writing: four row groups.
pub const PART_ROWS: u64 = 262_144;

/// Encoded bytes of unrolled rows that make a part worth writing; also bounds what one part takes to read back.
pub const PART_BYTES: u64 = 64 << 20;

/// Age at which unrolled rows are rolled however few: readers see rows at most this late.
pub const ROLL_AGE: Duration = Duration::from_secs(600);

/// Why a part could not be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The store failed; its own variant says whether to reload and repeat.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Stored rows cannot be decoded or do not fit the table. Final: they come from another build or are damaged.
    #[error("rows {seq} of {experiment}/{table} cannot be written to part {part_id}")]
    Rows {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// Number of the rows, or those of the part.
        seq: String,
        /// The part.
        part_id: Uuid,
        /// The cause.
        #[source]
        source: ResultsError,
    },
    /// The rows that an intent names are not all there, or are of a table that is never rolled. Final.
    #[error("part {part_id} of {experiment}/{table} cannot be made: {reason}")]
    Intent {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// The part.
        part_id: Uuid,
        /// What is wrong.
        reason: String,
    },
}

impl PublishError {
    /// True where loading the state and finishing open intents can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, PublishError::Store(error) if error.is_retryable())
    }
}

/// A part that readers can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// What was published; its intent is closed.
    pub intent: Intent,
    /// Size of the part in bytes.
    pub bytes: u64,
}

/// Final name of a part, below DATA.
pub fn part_path(experiment: &str, table: Table, part_id: Uuid) -> Path {
    layout::table_dir(experiment, table.name()).join(layout::part_name(part_id))
}

/// The intent for an object that a worker has staged; it belongs into the batch that accepts the hand-in.
pub fn staged_intent(experiment: &str, table: Table, part_id: Uuid, rows: u64) -> Intent {
    Intent { experiment: experiment.to_owned(), table, part_id, source: Source::Staged, rows }
}

/// Cuts the unrolled rows of one experiment's table (in order of their numbers) into ranges that each make one part.
/// The last range is included only if it is full or `everything` is asked for.
pub fn plan_parts<'a>(headers: impl IntoIterator<Item = &'a RowsHeader>, everything: bool) -> Vec<RangeInclusive<u64>> {
    let mut parts = Vec::new();
    let mut open: Option<(RangeInclusive<u64>, u64, u64)> = None;
    for header in headers {
        let (range, rows, bytes) = match open.take() {
            // The limits are where a part ends; only a single hand-in may be larger.
            Some((range, rows, bytes)) if bytes + header.bytes > PART_BYTES || rows + live(header) > PART_ROWS => {
                parts.push(range);
                (header.seq..=header.seq, live(header), header.bytes)
            }
            Some((range, rows, bytes)) => (*range.start()..=header.seq, rows + live(header), bytes + header.bytes),
            None => (header.seq..=header.seq, live(header), header.bytes),
        };
        if rows >= PART_ROWS || bytes >= PART_BYTES {
            parts.push(range);
        } else {
            open = Some((range, rows, bytes));
        }
    }
    if everything {
        parts.extend(open.map(|(range, _, _)| range));
    }
    parts
}

fn live(header: &RowsHeader) -> u64 {
    u64::from(header.live_rows)
}

/// Publishes parts over one store.
pub struct Publisher {
    store: Arc<dyn Store>,
    /// Held while an intent is closed: the counts are read, raised and committed as one step.
    totals: Mutex<BTreeMap<(String, Table), Totals>>,
}

impl Publisher {
    /// A publisher over a store whose state was just loaded.
    pub fn new(store: Arc<dyn Store>, loaded: &Loaded) -> Publisher {
        let totals = loaded.totals.iter().map(|totals| ((totals.experiment.clone(), totals.table), totals.clone()));
        Publisher { store, totals: Mutex::new(totals.collect()) }
    }

    /// Publishes every part whose intent was open when the state was loaded.
    pub async fn recover(&self, open: &[Intent]) -> Result<Vec<Published>, PublishError> {
        let mut published = Vec::with_capacity(open.len());
        for intent in open {
            published.push(self.finish(intent).await?);
        }
        Ok(published)
    }

    /// Publishes unrolled rows `first_seq..=last_seq` of a table as one part with a fresh id (a UUIDv7). `None` if none of
    /// these rows counts; they are deleted all the same. The range must be one of [`plan_parts`], which bounds it, and
    /// no other roll may touch it meanwhile.
    pub async fn roll(
        &self,
        experiment: &str,
        table: Table,
        range: RangeInclusive<u64>,
        part_id: Uuid,
    ) -> Result<Option<Published>, PublishError> {
        let (first_seq, last_seq) = (*range.start(), *range.end());
        let rows = self.store.rows(experiment, table, first_seq, last_seq).await?;
        let count = rows.iter().map(|rows| live(&rows.header())).sum();
        if count == 0 {
            let mut batch = Batch::new();
            delete_rows(&mut batch, &rows);
            self.store.commit(batch).await?;
            return Ok(None);
        }
        let source = Source::Rows { first_seq, last_seq };
        let intent = Intent { experiment: experiment.to_owned(), table, part_id, source, rows: count };
        let mut batch = Batch::new();
        batch.put(Record::Intent(intent.clone()));
        self.store.commit(batch).await?;
        self.finish_rows(intent, rows).await.map(Some)
    }

    /// Publishes the part of an open intent and closes it. Safe to repeat until it succeeds.
    pub async fn finish(&self, intent: &Intent) -> Result<Published, PublishError> {
        match intent.source {
            Source::Rows { first_seq, last_seq } => {
                let rows = self.store.rows(&intent.experiment, intent.table, first_seq, last_seq).await?;
                self.finish_rows(intent.clone(), rows).await
            }
            Source::Staged => {
                let Intent { experiment, table, part_id, .. } = intent;
                let path = part_path(experiment, *table, *part_id);
                let bytes = self.store.publish_staged(experiment, *table, *part_id, &path).await?;
                self.close(intent, Vec::new(), bytes).await
            }
        }
    }

    async fn finish_rows(&self, intent: Intent, rows: Vec<RowsRecord>) -> Result<Published, PublishError> {
        let (part, keys) = {
            let intent = intent.clone();
            crate::store::blocking(move || {
                let part = encode(&intent, &rows)?;
                let keys = rows.iter().map(|rows| rows.seq).collect::<Vec<_>>();
                Ok::<_, PublishError>((part, keys))
            })
            .await?
        };
        let bytes = part.len() as u64;
        let path = part_path(&intent.experiment, intent.table, intent.part_id);
        self.store.create(&path, part, intent.part_id).await?;
        self.close(&intent, keys, bytes).await
    }

    async fn close(&self, intent: &Intent, seqs: Vec<u64>, bytes: u64) -> Result<Published, PublishError> {
        let key = (intent.experiment.clone(), intent.table);
        let mut all = self.totals.lock().await;
        let empty =
            || Totals { experiment: intent.experiment.clone(), table: intent.table, parts: 0, rows: 0, bytes: 0 };
        let mut totals = all.get(&key).cloned().unwrap_or_else(empty);
        totals.parts += 1;
        totals.rows += intent.rows;
        totals.bytes += bytes;
        let mut batch = Batch::new();
        batch.delete(Key::Intent { part_id: intent.part_id });
        for seq in seqs {
            batch.delete(Key::Rows { experiment: intent.experiment.clone(), table: intent.table, seq });
        }
        batch.put(Record::Totals(totals.clone()));
        self.store.commit(batch).await?;
        all.insert(key, totals);
        Ok(Published { intent: intent.clone(), bytes })
    }
}

/// Makes the part of a durable intent visible, without closing the intent, and returns its size in bytes. Safe to
/// repeat.
pub async fn make_visible(store: &dyn Store, intent: &Intent) -> Result<u64, PublishError> {
    let Intent { experiment, table, part_id, source, .. } = intent;
    let path = part_path(experiment, *table, *part_id);
    match *source {
        Source::Rows { first_seq, last_seq } => {
            let rows = store.rows(experiment, *table, first_seq, last_seq).await?;
            let owned = intent.clone();
            let part = crate::store::blocking(move || encode(&owned, &rows)).await?;
            let bytes = part.len() as u64;
            store.create(&path, part, *part_id).await?;
            Ok(bytes)
        }
        Source::Staged => Ok(store.publish_staged(experiment, *table, *part_id, &path).await?),
    }
}

fn delete_rows(batch: &mut Batch, rows: &[RowsRecord]) {
    for rows in rows {
        batch.delete(Key::Rows { experiment: rows.experiment.clone(), table: rows.table, seq: rows.seq });
    }
}

/// Schema of the tables whose rows the coordinator keeps.
pub fn rolled_schema(table: Table) -> Option<SchemaRef> {
    match table {
        Table::Tasks => Some(tasks::schema()),
        Table::Failures => Some(failures::schema()),
        Table::Jobs | Table::Series => None,
    }
}

/// The rows of a record that count, decoded.
pub fn live_batch(rows: &RowsRecord, schema: &SchemaRef) -> Result<RecordBatch, ResultsError> {
    let batch = ipc::decode(&rows.ipc, schema)?;
    let Some(mask) = &rows.mask else { return Ok(batch) };
    let mut keep = vec![true; batch.num_rows()];
    for position in mask {
        match keep.get_mut(position as usize) {
            Some(keep) => *keep = false,
            None => return Err(ResultsError::Mask { mask: position as usize + 1, rows: batch.num_rows() }),
        }
    }
    part::filter(&batch, &keep)
}

/// The bytes of an intent's part.
fn encode(intent: &Intent, rows: &[RowsRecord]) -> Result<Bytes, PublishError> {
    let Intent { experiment, table, part_id, .. } = intent;
    let wrong = |reason: String| PublishError::Intent {
        experiment: experiment.clone(),
        table: *table,
        part_id: *part_id,
        reason,
    };
    let schema =
        rolled_schema(*table).ok_or_else(|| wrong("its rows come from workers as whole objects".to_owned()))?;
    let count: u64 = rows.iter().map(|rows| live(&rows.header())).sum();
    if count != intent.rows {
        return Err(wrong(format!("{count} rows are stored, {} were to be published", intent.rows)));
    }
    let mut seq = None;
    let batches = rows.iter().map(|rows| {
        seq = Some(rows.seq);
        live_batch(rows, &schema)
    });
    let footer = Footer { experiment: experiment.clone(), part_id: *part_id, rows: intent.rows };
    part::encode_from(&schema, batches, &footer).map_err(|source| PublishError::Rows {
        experiment: experiment.clone(),
        table: *table,
        seq: seq.map_or_else(|| "(none)".to_owned(), |seq| seq.to_string()),
        part_id: *part_id,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(seq: u64, live_rows: u32, bytes: u64) -> RowsHeader {
        RowsHeader {
            experiment: "e".into(),
            table: Table::Tasks,
            seq,
            generation: 1,
            received_us: 0,
            rows: live_rows,
            live_rows,
            bytes,
        }
    }

    #[test]
    fn parts_end_at_the_limits_and_the_rest_waits_or_not() {
        let headers: Vec<_> = (0..300).map(|seq| header(seq, 1000, 1000)).collect();
        assert_eq!(plan_parts(&headers, false), [0..=261], "262 hand-ins of 1,000 rows fit, 263 do not");
        assert_eq!(plan_parts(&headers, true), [0..=261, 262..=299]);
        let by_bytes = [header(5, 1, PART_BYTES - 1), header(7, 1, 2), header(9, 1, PART_BYTES), header(11, 1, 1)];
        assert_eq!(plan_parts(&by_bytes, false), [5..=5, 7..=7, 9..=9]);
        assert_eq!(plan_parts(&by_bytes, true), [5..=5, 7..=7, 9..=9, 11..=11]);
        assert!(plan_parts(&[header(1, 10, 10)], false).is_empty());
        assert!(plan_parts(&[], true).is_empty());
    }
}
