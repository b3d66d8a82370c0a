//! The durable state of a coordinator, as one enum of protobuf messages.
//!
//! The state machine turns events into a [`Batch`](crate::store::Batch) of these records; the store makes the batch
//! durable, all or nothing, and reads the state back as [`Loaded`].
//!
//! Invariants: a record's [`Key`] follows from its fields; keys sort by kind, then experiment, then number, so that a
//! prefix scan reads one kind of one experiment in order. A tag is never used for another field. This module has no
//! knowledge of time or storage.

mod key;
mod loaded;
mod split;
mod stored;

use std::collections::BTreeMap;

use bytes::Bytes;
use powersweep_experiments::Digest;
use powersweep_proto::v1::{ExperimentState, FailureKind, IndexRange, LeaseId};
use powersweep_results::Table;
use powersweep_results::unpublished::UnpublishedRows;
use roaring::RoaringBitmap;
use uuid::Uuid;

pub use key::Key;
pub use loaded::Loaded;
pub use split::{Fragment, SplitPart, SplitRecord};
pub use stored::Stored;

/// Task indices in one done chunk: the chunk of task `i` is `i >> 16`, its bit `i & 0xFFFF`. One chunk is one roaring
/// container, at most 8 KiB.
pub const CHUNK_TASKS: u64 = 1 << 16;

/// Longest experiment name in bytes: names are folder names, for which file systems allow 255.
pub const MAX_NAME_BYTES: usize = 200;

/// Largest usual ratio of a batch's size decoded and encoded: that of a sweep's rows is about 20.
const DECODED_RATIO: u64 = 64;

/// An experiment as last submitted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExperimentRecord {
    /// Its name, also its folder.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Number of its manifest, raised by each edit; an index belongs to one generation.
    #[prost(uint64, tag = "2")]
    pub generation: u64,
    /// The exact text that was submitted.
    #[prost(string, tag = "3")]
    pub manifest: String,
    /// Log name to digest, as pinned.
    #[prost(btree_map = "string, message", tag = "4")]
    pub digests: BTreeMap<String, Stored<Digest>>,
    /// Pinned versions, by the component's "role/name", and of the "kernel".
    #[prost(btree_map = "string, uint32", tag = "5")]
    pub pins: BTreeMap<String, u32>,
    /// Fingerprint of the `tasks` schema pinned at first submit.
    #[prost(uint64, tag = "6")]
    pub tasks_schema: u64,
    /// Optional tables that the manifest asks for.
    #[prost(enumeration = "Table", repeated, tag = "7")]
    pub tables: Vec<i32>,
    /// When it was first submitted, microseconds since 1970 UTC.
    #[prost(sint64, tag = "8")]
    pub created_us: i64,
    /// State.
    #[prost(enumeration = "ExperimentState", tag = "9")]
    pub state: i32,
    /// Higher is served first; 0 unless a user said otherwise.
    #[prost(sint32, tag = "10")]
    pub priority: i32,
    /// An edit changed the set of tasks with rows, and the parts have not been split since: see [`SplitRecord`].
    #[prost(bool, tag = "11")]
    pub split_due: bool,
    /// The parts of rows that left are being deleted. The state does not count these rows any more.
    #[prost(bool, tag = "12")]
    pub pruning: bool,
    /// The user who submitted it first; "" if the client named none.
    #[prost(string, tag = "13")]
    pub owner: String,
    /// What happened to the rows of its job logs and signals, for the footers of its parts: a JSON array, or empty.
    #[prost(string, tag = "14")]
    pub ledgers: String,
}

/// The write-ahead record of an experiment's removal. Recovery continues the removal until this record is deleted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LeavingRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Kind of removal.
    #[prost(message, required, tag = "2")]
    pub removal: Stored<Removal>,
}

/// Kind of an experiment's removal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Removal {
    /// The state is deleted, the parts stay.
    #[default]
    Forget,
    /// State and parts are deleted.
    Erase,
    /// State and parts get this name, so that the old one is free.
    Rename(String),
}

/// A manifest that an edit replaced. Rows, done bits and leases of its generation have its indices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EarlierRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Its generation.
    #[prost(uint64, tag = "2")]
    pub generation: u64,
    /// The exact text that was submitted.
    #[prost(string, tag = "3")]
    pub manifest: String,
    /// Log name to digest, as pinned.
    #[prost(btree_map = "string, message", tag = "4")]
    pub digests: BTreeMap<String, Stored<Digest>>,
}

/// Done bits of 65,536 consecutive tasks: those with a durable row. In an earlier generation: those with a durable row
/// whose tasks are in no later manifest.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DoneChunk {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Generation whose indices these are.
    #[prost(uint64, tag = "2")]
    pub generation: u64,
    /// Index of the chunk, `task index >> 16`.
    #[prost(uint32, tag = "3")]
    pub chunk: u32,
    /// Bits `task index & 0xFFFF`, all below [`CHUNK_TASKS`].
    #[prost(message, required, tag = "4")]
    pub bitmap: Stored<RoaringBitmap>,
}

impl DoneChunk {
    /// The record of these bits.
    pub(crate) fn new(experiment: &str, generation: u64, chunk: u32, bits: &RoaringBitmap) -> DoneChunk {
        DoneChunk { experiment: experiment.to_owned(), generation, chunk, bitmap: Stored::of_bits(bits.clone()) }
    }
}

/// Unpublished rows: those of hand-ins of one generation that became durable together, or those of one upload.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RowsRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Table that the rows belong to.
    #[prost(enumeration = "Table", tag = "2")]
    pub table: i32,
    /// Number of the record in its table of the experiment, ascending.
    #[prost(uint64, tag = "3")]
    pub seq: u64,
    /// Generation under which they were handed in.
    #[prost(uint64, tag = "4")]
    pub generation: u64,
    /// When they were received, microseconds since 1970 UTC: old rows are published even if they are few.
    #[prost(sint64, tag = "5")]
    pub received_us: i64,
    /// The rows, of [`Table::Tasks`] and [`Table::Failures`].
    #[prost(message, repeated, tag = "6")]
    pub hand_ins: Vec<EncodedRows>,
    /// The upload that has the rows, of an optional table.
    #[prost(message, optional, tag = "7")]
    pub upload: Option<Upload>,
}

/// Rows of one hand-in, as the worker encoded them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EncodedRows {
    /// Rows in `encoded`, masked ones included.
    #[prost(uint32, tag = "1")]
    pub rows: u32,
    /// Positions in `encoded` of rows to leave out: those of tasks that were done before.
    #[prost(message, optional, tag = "2")]
    pub mask: Option<Stored<RoaringBitmap>>,
    /// The encoded batch.
    #[prost(bytes = "bytes", tag = "3")]
    pub encoded: Bytes,
    /// Upper bound of the memory of its rows, decoded (bytes); 0 in records of earlier versions.
    #[prost(uint64, tag = "4")]
    pub decoded_bytes: u64,
}

/// A Parquet object of an optional table that a worker put into the staging folder. It stays there until its rows are in
/// a part.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Upload {
    /// Its id (UUIDv7), in its name and its footer.
    #[prost(message, required, tag = "1")]
    pub part_id: Stored<Uuid>,
    /// Number of its rows, according to the worker.
    #[prost(uint64, tag = "2")]
    pub rows: u64,
    /// Its size in bytes.
    #[prost(uint64, tag = "3")]
    pub bytes: u64,
}

impl RowsRecord {
    /// The record without its rows.
    pub fn header(&self) -> RowsHeader {
        let uploaded = self.upload.map_or(0, |upload| upload.bytes);
        RowsHeader {
            experiment: self.experiment.clone(),
            table: self.table,
            seq: self.seq,
            received_us: self.received_us,
            rows: self.live_rows(),
            bytes: uploaded + self.hand_ins.iter().map(EncodedRows::bytes).sum::<u64>(),
            upload: self.upload.map(|upload| upload.part_id),
        }
    }

    /// The rows of its hand-ins, without the bytes being copied.
    pub fn unpublished(&self) -> impl Iterator<Item = UnpublishedRows> + '_ {
        self.hand_ins.iter().map(|hand_in| UnpublishedRows {
            record: self.seq,
            rows: hand_in.live_rows(),
            left_out: hand_in.mask.iter().flat_map(|mask| mask.iter()).collect(),
            encoded: hand_in.encoded.clone(),
        })
    }

    /// Number of rows without the masked ones.
    pub fn live_rows(&self) -> u64 {
        let uploaded = self.upload.map_or(0, |upload| upload.rows);
        uploaded + self.hand_ins.iter().map(EncodedRows::live_rows).sum::<u64>()
    }
}

impl EncodedRows {
    /// Bytes that the rows count for in a part: those of the encoded batch, or more if it decodes to far more than batches of
    /// a sweep do. So the time and the memory that a part takes are bounded, whatever its rows are.
    pub fn bytes(&self) -> u64 {
        (self.encoded.len() as u64).max(self.decoded_bytes / DECODED_RATIO)
    }

    /// Number of rows without the masked ones.
    pub fn live_rows(&self) -> u64 {
        u64::from(self.rows).saturating_sub(self.mask.as_ref().map_or(0, |mask| mask.len()))
    }
}

/// A [`RowsRecord`] without its rows, for recovery.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RowsHeader {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Table.
    #[prost(enumeration = "Table", tag = "2")]
    pub table: i32,
    /// Number within the experiment's table.
    #[prost(uint64, tag = "3")]
    pub seq: u64,
    /// When they were received, microseconds since 1970 UTC.
    #[prost(sint64, tag = "4")]
    pub received_us: i64,
    /// Number of rows without the masked ones.
    #[prost(uint64, tag = "5")]
    pub rows: u64,
    /// Size in bytes that counts for a part.
    #[prost(uint64, tag = "6")]
    pub bytes: u64,
    /// Id of the upload that has the rows.
    #[prost(message, optional, tag = "7")]
    pub upload: Option<Stored<Uuid>>,
}

/// The write-ahead record of a part. Open until a commit deletes it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Intent {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Table.
    #[prost(enumeration = "Table", tag = "2")]
    pub table: i32,
    /// The part's id (UUIDv7), in its name and its footer.
    #[prost(message, required, tag = "3")]
    pub part_id: Stored<Uuid>,
    /// Number of the first record of its rows. The records are deleted when the intent is closed.
    #[prost(uint64, tag = "4")]
    pub first_seq: u64,
    /// Number of the last record of its rows.
    #[prost(uint64, tag = "5")]
    pub last_seq: u64,
    /// Number of its rows.
    #[prost(uint64, tag = "6")]
    pub rows: u64,
    /// Why its rows cannot become a part, as the last attempt found; empty if they can.
    #[prost(string, tag = "7")]
    pub refused: String,
}

/// Published parts of an experiment's table.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Totals {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Table.
    #[prost(enumeration = "Table", tag = "2")]
    pub table: i32,
    /// Number of parts.
    #[prost(uint64, tag = "3")]
    pub parts: u64,
    /// Number of rows in them.
    #[prost(uint64, tag = "4")]
    pub rows: u64,
    /// Size of all parts in bytes.
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    /// Number of rows in the parts of rows that left.
    #[prost(uint64, tag = "6")]
    pub left_rows: u64,
    /// Number of uploads that could not be merged into a part: its tasks have no rows in this table.
    #[prost(uint64, tag = "7")]
    pub uploads_left_out: u64,
    /// Number of rows in these uploads.
    #[prost(uint64, tag = "8")]
    pub rows_left_out: u64,
}

/// Failure state of one task that is not done.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FailureRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Generation of the index.
    #[prost(uint64, tag = "2")]
    pub generation: u64,
    /// Task.
    #[prost(uint64, tag = "3")]
    pub index: u64,
    /// Attempts that failed.
    #[prost(uint32, tag = "4")]
    pub attempts: u32,
    /// Number of these attempts that ended by an abrupt loss of the worker.
    #[prost(uint32, tag = "5")]
    pub crashes: u32,
    /// Kind of the last failure.
    #[prost(enumeration = "FailureKind", tag = "6")]
    pub kind: i32,
    /// The task failed for good: it is tried again only if a user asks for it.
    #[prost(bool, tag = "7")]
    pub quarantined: bool,
    /// Message of the last failure.
    #[prost(string, tag = "8")]
    pub message: String,
    /// Worker of the last attempt.
    #[prost(string, tag = "9")]
    pub worker: String,
    /// Time of the last failure, microseconds since 1970 UTC.
    #[prost(sint64, tag = "10")]
    pub at_us: i64,
    /// Number of these attempts before the last retry by a user.
    #[prost(uint32, tag = "11")]
    pub forgiven: u32,
}

impl FailureRecord {
    /// The record's key.
    pub fn key(&self) -> Key {
        Key::Failure { experiment: self.experiment.clone(), generation: self.generation, index: self.index }
    }
}

/// Tasks granted to a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LeaseRecord {
    /// Id.
    #[prost(message, required, tag = "1")]
    pub id: LeaseId,
    /// Experiment.
    #[prost(string, tag = "2")]
    pub experiment: String,
    /// Generation of the indices.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// Half-open index ranges, in order.
    #[prost(message, repeated, tag = "4")]
    pub ranges: Vec<IndexRange>,
    /// The worker process.
    #[prost(message, required, tag = "5")]
    pub worker_id: Stored<Uuid>,
    /// The worker's name.
    #[prost(string, tag = "6")]
    pub worker: String,
    /// Number of this lease of the tasks, counted from 1.
    #[prost(uint32, tag = "7")]
    pub attempt: u32,
    /// The tasks are pending, done or failed, and rows of the worker may still come.
    #[prost(bool, tag = "8")]
    pub ended: bool,
}

/// A log in the content-addressed store.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LogRecord {
    /// SHA-256 of its decompressed bytes.
    #[prost(message, required, tag = "1")]
    pub digest: Stored<Digest>,
    /// Decompressed size.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// Not used: this version stores an empty name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// Number of tasks that an optional table covers: those that ran while the manifest asked for it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CoveredRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Table, one of [`Table::OPTIONAL`].
    #[prost(enumeration = "Table", tag = "2")]
    pub table: i32,
    /// Number of tasks, including those that are no longer in the manifest.
    #[prost(uint64, tag = "3")]
    pub tasks: u64,
}

/// One durable fact.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Record {
    /// The owner's epoch: raised each time that a farm is recovered from the state.
    #[prost(uint64, tag = "1")]
    Epoch(u64),
    /// An experiment.
    #[prost(message, tag = "2")]
    Experiment(ExperimentRecord),
    /// A replaced manifest.
    #[prost(message, tag = "3")]
    Earlier(EarlierRecord),
    /// Done bits.
    #[prost(message, tag = "4")]
    DoneChunk(DoneChunk),
    /// Unpublished rows.
    #[prost(message, tag = "5")]
    Rows(RowsRecord),
    /// The header of [`Record::Rows`], stored beside it so that recovery does not read the rows.
    #[prost(message, tag = "6")]
    Header(RowsHeader),
    /// An open intent.
    #[prost(message, tag = "7")]
    Intent(Intent),
    /// Published parts.
    #[prost(message, tag = "8")]
    Totals(Totals),
    /// A task's failure state.
    #[prost(message, tag = "9")]
    Failure(FailureRecord),
    /// A lease.
    #[prost(message, tag = "10")]
    Lease(LeaseRecord),
    /// A stored log.
    #[prost(message, tag = "11")]
    Log(LogRecord),
    /// Tasks that an optional table covers.
    #[prost(message, tag = "12")]
    Covered(CoveredRecord),
    /// The removal of an experiment.
    #[prost(message, tag = "13")]
    Leaving(LeavingRecord),
    /// Greatest generation of any deleted or renamed experiment: names can be used again, generations never repeat.
    #[prost(uint64, tag = "14")]
    GenerationFloor(u64),
    /// A split of parts.
    #[prost(message, tag = "15")]
    Split(SplitRecord),
}
