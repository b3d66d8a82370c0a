//! Turns durable rows into Parquet parts, exactly once.
//!
//! The order is: the state machine makes the intent {part id, rows} durable; [`make_visible`] encodes the part in memory
//! and creates it under a name that holds its id; one commit of the state machine closes the intent, deletes the rows
//! and counts them. A crash between any two of these leaves an open intent, and recovery repeats it: the same rows under
//! the same name, which either creates the part or finds its own. Readers see a part once, whole, and never see a row
//! twice.
//!
//! Objects that workers uploaded take the same way: the commit that accepts a hand-in also holds a record of each, the
//! objects stay where they are until there are enough of them for a part, and are deleted after the commit that closes
//! its intent.

use crate::records::{Intent, RowsRecord, Source, Table};
use crate::store::{Store, StoreError};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use object_store::path::Path;
use powersweep_results::ipc::Gather;
use powersweep_results::part::{self, Footer};
use powersweep_results::{ResultsError, failures, layout, merge, tasks};
use uuid::Uuid;

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

/// Parts encoded at once, at most: each takes a core, and as much memory as its rows.
const AT_ONCE_MAX: usize = 4;
/// Cores for each of them: the others run tasks, or serve.
const CORES_EACH: usize = 4;

/// How many parts this machine should encode at once.
pub(crate) fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / CORES_EACH).clamp(1, AT_ONCE_MAX)
}

/// Final name of a part, below DATA.
pub fn part_path(experiment: &str, table: Table, part_id: Uuid) -> Path {
    layout::table_dir(experiment, table.name()).join(layout::part_name(part_id))
}

/// Makes the part of a durable intent visible, without closing the intent, and returns its size in bytes. Safe to
/// repeat.
pub async fn make_visible(store: &dyn Store, intent: &Intent) -> Result<u64, PublishError> {
    let Intent { experiment, table, part_id, source, .. } = intent;
    let path = part_path(experiment, *table, *part_id);
    match source {
        &Source::Rows { first_seq, last_seq } => {
            let rows = store.rows(experiment, *table, first_seq, last_seq).await?;
            let owned = intent.clone();
            let part = crate::store::blocking(move || encode_timed(&owned, &rows)).await?;
            let bytes = part.len() as u64;
            store.create(&path, part, *part_id).await?;
            Ok(bytes)
        }
        Source::Staged => Ok(store.publish_staged(experiment, *table, *part_id, &path).await?),
        Source::Merged { uploads } => {
            let mut inputs = Vec::with_capacity(uploads.len());
            for upload in uploads {
                inputs.push(store.staged(experiment, *table, *upload).await?);
            }
            let owned = intent.clone();
            let part = crate::store::blocking(move || merged(&owned, &inputs)).await?;
            let bytes = part.len() as u64;
            store.create(&path, part, *part_id).await?;
            Ok(bytes)
        }
    }
}

/// The bytes of a part made of uploads.
fn merged(intent: &Intent, inputs: &[Bytes]) -> Result<Bytes, PublishError> {
    let Intent { experiment, table, part_id, .. } = intent;
    let wrong = |source: ResultsError| PublishError::Rows {
        experiment: experiment.clone(),
        table: *table,
        seq: "of workers' uploads".to_owned(),
        part_id: *part_id,
        source,
    };
    let mut rows = 0;
    for input in inputs {
        rows += part::read_footer(input).map_err(wrong)?.rows;
    }
    if rows != intent.rows {
        // What is there is published: a worker's count must not hold everything up.
        tracing::warn!("part {part_id} of {experiment}/{table} has {rows} rows, its workers said {}", intent.rows);
    }
    let footer = Footer { experiment: experiment.clone(), part_id: *part_id, rows };
    merge::merge(inputs, &footer).map_err(wrong)
}

/// Schema of the tables whose rows the coordinator keeps.
pub fn rolled_schema(table: Table) -> Option<SchemaRef> {
    match table {
        Table::Tasks => Some(tasks::schema()),
        Table::Failures => Some(failures::schema()),
        Table::Jobs | Table::Series => None,
    }
}

/// The rows that count, in batches of about a thousand. An error comes with the number of the record that it is about;
/// what follows it leaves that record out.
pub fn live_batches<'a>(
    records: impl IntoIterator<Item = &'a RowsRecord>,
    schema: &SchemaRef,
) -> impl Iterator<Item = Result<RecordBatch, (u64, ResultsError)>> {
    let mut records = records.into_iter();
    let mut gather = Gather::new(schema);
    let mut last = 0;
    std::iter::from_fn(move || {
        while !gather.is_full() {
            let Some(record) = records.next() else { break };
            last = record.seq;
            if let Err(error) = gather.push(&record.ipc, record.mask.iter().flatten()) {
                return Some(Err((record.seq, error)));
            }
        }
        (gather.rows() > 0).then(|| gather.finish().map_err(|error| (last, error)))
    })
}

/// [`encode`], with a word on what it took: the one work of a coordinator that grows with the columns of a row.
fn encode_timed(intent: &Intent, rows: &[RowsRecord]) -> Result<Bytes, PublishError> {
    let before = thread_cpu_ms();
    let part = encode(intent, rows)?;
    if let (Some(before), Some(after)) = (before, thread_cpu_ms()) {
        let (rows, bytes, encoding_cpu_ms) = (intent.rows, part.len(), after - before);
        tracing::debug!(part_id = %intent.part_id, rows, bytes, encoding_cpu_ms, "part encoded");
    }
    Ok(part)
}

/// CPU time of this thread so far (ms), where the system tells (Linux).
fn thread_cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = stat.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e6)
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
    let count: u64 = rows.iter().map(|rows| u64::from(rows.header().live_rows)).sum();
    if count != intent.rows {
        return Err(wrong(format!("{count} rows are stored, {} were to be published", intent.rows)));
    }
    let mut damaged = None;
    let batches = live_batches(rows, &schema).map(|batch| {
        batch.map_err(|(seq, error)| {
            damaged = Some(seq);
            error
        })
    });
    let footer = Footer { experiment: experiment.clone(), part_id: *part_id, rows: intent.rows };
    part::encode_from(&schema, batches, &footer).map_err(|source| PublishError::Rows {
        experiment: experiment.clone(),
        table: *table,
        seq: damaged.map_or_else(|| "(all)".to_owned(), |seq| seq.to_string()),
        part_id: *part_id,
        source,
    })
}
