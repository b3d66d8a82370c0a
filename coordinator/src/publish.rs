//! Publishes durable rows as Parquet parts, exactly once.
//!
//! The order is: the state machine makes the intent {part id, rows} durable; [`make_visible`] encodes the part in memory
//! and creates it under a name with its id; one commit of the state machine closes the intent, deletes the rows and
//! counts them. A crash between two steps leaves an open intent, which recovery repeats: the same rows under the same
//! name, so that the part is created or found. Readers see a part once and whole, and never see a row twice.
//!
//! Uploads are published in the same order: the commit that accepts a hand-in has a record of each upload, uploads stay
//! in the staging folder until they are enough for a part, and are deleted after the commit that closes its intent.

use std::time::Duration;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use object_store::path::Path;
use powersweep_results::Table;
use powersweep_results::folded::FoldedBatch;
use powersweep_results::part::{self, Footer, Group, Origin};
use powersweep_results::unpublished::{self, UnpublishedRows};
use powersweep_results::{ResultsError, layout, merge};
use uuid::Uuid;

use crate::records::{Intent, RowsRecord};
use crate::store::{Store, StoreError};

/// Why a part could not be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum PublishError {
    /// The store failed; its own variant says whether to reload and repeat.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Stored rows cannot be decoded or have other columns. Final: they are of another build or damaged.
    #[error("rows {seq} of {experiment}/{table} cannot be written to part {part_id}")]
    Rows {
        experiment: String,
        table: Table,
        /// Number of the record, or "(all)" for those of the part.
        seq: String,
        part_id: Uuid,
        source: ResultsError,
    },
    /// A visible part cannot be read. Final: it is damaged, or no part.
    #[error("{path} of {experiment}/{table} cannot be read")]
    Part { experiment: String, table: Table, path: String, source: ResultsError },
    /// Some rows of an intent are missing. Final.
    #[error("part {part_id} of {experiment}/{table} cannot be made: {reason}")]
    Intent { experiment: String, table: Table, part_id: Uuid, reason: String },
}

impl PublishError {
    /// Whether loading the state and finishing open intents can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, PublishError::Store(error) if error.is_retryable())
    }
}

/// Maximum number of parts encoded at once: each takes as much memory as its rows.
const AT_ONCE_MAX: usize = 4;
/// Cores of the machine for each of these parts: most cores run tasks, or serve requests.
const CORES_EACH: usize = 4;
/// Threads that encode one part of several row groups.
const THREADS_EACH: usize = 2;

/// Number of parts that this machine should encode at once.
pub(crate) fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / CORES_EACH).clamp(1, AT_ONCE_MAX)
}

/// Final name of a part, below DATA.
pub fn part_path(experiment: &str, table: Table, part_id: Uuid) -> Path {
    layout::table_dir(experiment, table.name()).join(layout::part_name(part_id))
}

/// A visible part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visible {
    /// Its size.
    pub bytes: u64,
    /// Uploads of its intent that cannot be merged, whose rows it lacks.
    pub uploads_left_out: u64,
    /// Rows of these uploads whose number is known.
    pub rows_left_out: u64,
}

impl Visible {
    /// A part of this size with the rows of all uploads.
    pub fn whole(bytes: u64) -> Visible {
        Visible { bytes, uploads_left_out: 0, rows_left_out: 0 }
    }
}

/// Makes the part of a durable intent visible, without closing the intent. Safe to repeat, also with another `origin`, which
/// the part's footer states.
pub async fn make_visible(store: &dyn Store, intent: &Intent, origin: Origin) -> Result<Visible, PublishError> {
    let Intent { experiment, part_id, first_seq, last_seq, .. } = intent;
    let (table, part_id) = (intent.table(), **part_id);
    let rows = store.rows(experiment, table, *first_seq, *last_seq).await?;
    let mut uploads = Vec::new();
    for upload in rows.iter().filter_map(|record| record.upload) {
        uploads.push(store.objects()?.staged(experiment, table, *upload.part_id).await?);
    }
    let owned = intent.clone();
    let (part, (uploads_left_out, rows_left_out)) =
        crate::store::blocking(move || encode(&owned, &rows, &uploads, origin)).await?;
    let bytes = part.len() as u64;
    store.objects()?.create(&part_path(experiment, table, part_id), part, part_id).await?;
    Ok(Visible { bytes, uploads_left_out, rows_left_out })
}

/// Numbers of uploads, and of rows in them, that a part lacks.
type LeftOut = (u64, u64);

/// The bytes of a part made of uploads, and what it lacks. Uploads that cannot be merged are left out, so that one does not
/// stop the others: of the columns of numbers, an upload's check reads nothing.
fn merged(intent: &Intent, inputs: &[Bytes], footer: Footer) -> Result<(Bytes, LeftOut), Damage> {
    let (experiment, part_id) = (footer.experiment.clone(), footer.part_id);
    merged_all(intent, inputs, footer.clone()).map(|part| (part, (0, 0))).or_else(|(_, error)| {
        let is_sound = |input: &&Bytes| merged_all(intent, std::slice::from_ref(*input), footer.clone()).is_ok();
        let sound: Vec<Bytes> = inputs.iter().filter(is_sound).cloned().collect();
        let left_out = inputs.len() - sound.len();
        if sound.is_empty() || left_out == 0 {
            return Err(of_the_part(error));
        }
        let table = intent.table();
        tracing::error!("part {part_id} of {experiment}/{table} has no rows of {left_out} damaged uploads: {error}");
        let kept = sound.iter().filter_map(|input| Some(part::read_footer(input).ok()?.rows)).sum();
        let rows = intent.rows.saturating_sub(kept);
        merged_all(intent, &sound, footer).map(|part| (part, (left_out as u64, rows)))
    })
}

fn merged_all(intent: &Intent, inputs: &[Bytes], mut footer: Footer) -> Result<Bytes, Damage> {
    footer.rows = 0;
    for input in inputs {
        footer.rows += part::read_footer(input).map_err(of_the_part)?.rows;
    }
    let Footer { experiment, part_id, rows, .. } = &footer;
    if *rows != intent.rows {
        // The existing rows are published: a worker's wrong count must not stop the table.
        let table = intent.table();
        tracing::warn!("part {part_id} of {experiment}/{table} has {rows} rows, {} according to workers", intent.rows);
    }
    merge::merge(inputs, &footer).map_err(of_the_part)
}

/// CPU time of this thread so far (ms).
fn thread_cpu_ms() -> f64 {
    let time = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime));
    time.unwrap_or_default().as_secs_f64() * 1e3
}

/// The bytes of an intent's part, and what it lacks.
fn encode(
    intent: &Intent,
    rows: &[RowsRecord],
    uploads: &[Bytes],
    origin: Origin,
) -> Result<(Bytes, LeftOut), PublishError> {
    let (experiment, table, part_id) = (&intent.experiment, intent.table(), *intent.part_id);
    let wrong = |reason: String| PublishError::Intent { experiment: experiment.clone(), table, part_id, reason };
    let count: u64 = rows.iter().map(RowsRecord::live_rows).sum();
    if count != intent.rows {
        return Err(wrong(format!("{count} rows are stored, {} were to be published", intent.rows)));
    }
    let before = thread_cpu_ms();
    let groups = shared_out(rows, part::row_groups(count));
    let footer = Footer { origin, ..Footer::new(experiment, part_id, count) };
    let mut left_out = (0, 0);
    let encoded = match ((!table.is_optional()).then(|| table.schema()), &groups[..]) {
        (None, _) => merged(intent, uploads, footer).map(|(bytes, lacks)| {
            left_out = lacks;
            (bytes, 0.0)
        }),
        // A small part is encoded on this thread, and no batch is decoded twice.
        (Some(schema), [] | [_]) => encode_whole(rows, &schema, &footer).map(|bytes| (bytes, 0.0)),
        (Some(schema), groups) => encode_groups(groups, &schema, &footer),
    };
    let (bytes, threads_cpu_ms) = encoded.map_err(|(seq, source)| PublishError::Rows {
        experiment: experiment.clone(),
        table,
        seq: seq.map_or_else(|| "(all)".to_owned(), |seq| seq.to_string()),
        part_id,
        source,
    })?;
    // Logged because no other work of a coordinator grows with the columns of a row.
    let encoding_cpu_ms = thread_cpu_ms() - before + threads_cpu_ms;
    tracing::debug!(%part_id, rows = count, bytes = bytes.len(), encoding_cpu_ms, "part encoded");
    Ok((bytes, left_out))
}

/// Why rows cannot be encoded, with the number of the faulty record if it is known.
type Damage = (Option<u64>, ResultsError);

fn of_the_part(error: ResultsError) -> Damage {
    (None, error)
}

/// Passes the live rows of records to an encoder.
fn encode_with<T>(
    records: &[RowsRecord],
    schema: &SchemaRef,
    encode: impl FnOnce(&mut dyn Iterator<Item = Result<FoldedBatch, ResultsError>>) -> Result<T, ResultsError>,
) -> Result<T, Damage> {
    let mut damaged = None;
    let rows: Vec<UnpublishedRows> = records.iter().flat_map(RowsRecord::unpublished).collect();
    let mut batches = unpublished::batches(&rows, schema).map(|batch| {
        batch.map_err(|(seq, error)| {
            damaged = Some(seq);
            error
        })
    });
    let encoded = encode(&mut batches);
    drop(batches);
    encoded.map_err(|error| (damaged, error))
}

fn encode_whole(records: &[RowsRecord], schema: &SchemaRef, footer: &Footer) -> Result<Bytes, Damage> {
    encode_with(records, schema, |batches| part::encode_from(schema, batches, footer))
}

/// Encodes row groups on several threads, because users wait for the last rows of a sweep. Also returns the CPU time of
/// these threads (ms), if it is known.
fn encode_groups(groups: &[&[RowsRecord]], schema: &SchemaRef, footer: &Footer) -> Result<(Bytes, f64), Damage> {
    let first = encode_with(groups.first().copied().unwrap_or_default(), schema, |batches| batches.next().transpose())?;
    let (mut part, encoder) = part::in_groups(schema, footer, first.as_ref()).map_err(of_the_part)?;
    let encode_some = |groups: &[&[RowsRecord]]| -> (Vec<Result<Vec<Group>, Damage>>, f64) {
        let encode = |records: &&[RowsRecord]| {
            let mut groups = Vec::new();
            let encoded = encode_with(records, schema, |batches| {
                encoder.encode(batches, usize::MAX, |group| {
                    groups.push(group);
                    Ok(())
                })
            });
            encoded.map(|()| groups)
        };
        // The thread was started for this work: all of its CPU time counts.
        (groups.iter().map(encode).collect(), thread_cpu_ms())
    };
    let shares = groups.chunks(groups.len().div_ceil(THREADS_EACH));
    let encoded: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = shares.map(|share| scope.spawn(|| encode_some(share))).collect();
        running.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let cpu_ms = encoded.iter().map(|(_, took_ms)| *took_ms).sum();
    for groups in encoded.into_iter().flat_map(|(groups, _)| groups) {
        groups?.into_iter().try_for_each(|group| part.append(group)).map_err(of_the_part)?;
    }
    Ok((part.finish().map_err(of_the_part)?.into(), cpu_ms))
}

/// Splits records into at most `runs_max` runs with about the same number of live rows.
fn shared_out(records: &[RowsRecord], runs_max: usize) -> Vec<&[RowsRecord]> {
    let each = records.iter().map(RowsRecord::live_rows).sum::<u64>().div_ceil(runs_max as u64).max(1);
    let mut runs = Vec::with_capacity(runs_max);
    let (mut begin, mut rows) = (0, 0);
    for (at, record) in records.iter().enumerate() {
        rows += record.live_rows();
        if rows >= each {
            runs.push(&records[begin..=at]);
            (begin, rows) = (at + 1, 0);
        }
    }
    if rows > 0 {
        runs.push(&records[begin..]);
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::records::{EncodedRows, Stored};

    fn record(seq: u64, rows: u32, left_out: u32) -> RowsRecord {
        RowsRecord {
            experiment: "e".to_owned(),
            table: Table::Tasks.into(),
            seq,
            generation: 1,
            received_us: 1,
            hand_ins: vec![EncodedRows {
                rows,
                mask: (left_out > 0).then(|| Stored::of_bits((0..left_out).collect())),
                encoded: Bytes::new(),
                decoded_bytes: 0,
            }],
            upload: None,
        }
    }

    #[test]
    fn an_upload_that_cannot_be_merged_does_not_stop_the_others() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let upload = |from: i64| {
            let numbers = Int64Array::from_iter_values(from..from + 1_000);
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers)]).expect("fits");
            part::encode(&schema, &[batch], &Footer::new("e", Uuid::nil(), 1_000)).expect("a part")
        };
        let mut damaged = upload(1_000).to_vec();
        damaged[4..200].fill(0);
        let (experiment, table) = ("e".to_owned(), Table::Jobs.into());
        let part_id = Uuid::from_u128(7);
        let intent = Intent {
            experiment,
            table,
            part_id: part_id.into(),
            first_seq: 0,
            last_seq: 2,
            rows: 3_000,
            refused: String::new(),
        };
        let footer = Footer::new("e", part_id, 3_000);
        let merge = |uploads: &[Bytes]| merged(&intent, uploads, footer.clone()).map_err(|(_, error)| error);
        let (part, left_out) = merge(&[upload(0), damaged.clone().into(), upload(2_000)]).expect("a part of two");
        assert_eq!(left_out, (1, 1_000));
        assert_eq!(part::read_footer(&part).expect("a part").rows, 2_000);
        assert!(merge(&[damaged.into()]).is_err(), "no rows are left");
    }

    #[test]
    fn records_are_shared_out_evenly_and_in_order() {
        let shares = |rows: &[(u32, u32)], runs_max: usize| -> Vec<Vec<u64>> {
            let records: Vec<_> = (0..).zip(rows).map(|(seq, &(rows, dead))| record(seq, rows, dead)).collect();
            let seqs = |run: &&[RowsRecord]| run.iter().map(|record| record.seq).collect();
            shared_out(&records, runs_max).iter().map(seqs).collect()
        };
        let (five, whole) = ([(5, 0); 4], vec![vec![0, 1, 2, 3]]);
        assert_eq!(shares(&five, 1), whole);
        assert_eq!(shares(&five, 2), [[0, 1], [2, 3]]);
        assert_eq!(shares(&five, 3), [[0, 1], [2, 3]]);
        assert_eq!(shares(&five, 9), [[0], [1], [2], [3]]);
        assert_eq!(shares(&[(100, 0), (1, 0), (1, 0)], 3), [vec![0], vec![1, 2]]);
        assert!(shares(&[(3, 3)], 1).is_empty() && shares(&[], 1).is_empty());
        // Records without live rows make no run of their own.
        assert_eq!(shares(&[(5, 5), (5, 0), (5, 4), (9, 5), (7, 7)], 2), [vec![0, 1], vec![2, 3]]);
    }
}
