//! Everything that the coordinator keeps across restarts, as one enum.
//!
//! Purpose: one place that says what is durable. The state machine turns events into a [`Batch`](crate::store::Batch)
//! of these records; the store makes the batch durable, all or nothing; [`Loaded`] is what it reads back.
//!
//! Invariants: a record's [`Key`] follows from its fields; keys sort by kind, then experiment, then number, so that a
//! prefix scan reads one kind of one experiment in order; every stored value begins with its format version (the bytes
//! are in `store::encoding`). This module knows neither time nor storage.

mod loaded;
mod staged;
mod table;

use bytes::Bytes;
use powersweep_experiments::Digest;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use uuid::Uuid;

pub use loaded::Loaded;
pub use staged::{CoveredRecord, UploadRecord};
pub use table::Table;

/// Task indices in one done chunk: the chunk of task `i` is `i >> 16`, its bit `i & 0xFFFF`. One chunk is one roaring
/// container, at most 8 KiB.
pub const CHUNK_TASKS: u64 = 1 << 16;

/// Longest experiment or table name in bytes: names are folder names, and file systems end at 255.
pub const MAX_NAME_BYTES: usize = 200;

/// What an experiment is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentState {
    /// For logs or workers.
    Waiting,
    /// Tasks are handed out.
    Running,
    /// A user stopped it; nothing is handed out.
    Paused,
    /// Every task has its row.
    Finished,
    /// Nothing is left to run and some tasks failed for good.
    Failed,
    /// A user gave it up.
    Cancelled,
}

/// An experiment as last submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentRecord {
    /// Its name, also its folder.
    pub name: String,
    /// Counts its manifests from 1; indices mean something only within a generation.
    pub generation: u64,
    /// The exact text that was submitted.
    pub manifest: String,
    /// Log name to digest, as pinned.
    pub digests: BTreeMap<String, Digest>,
    /// Versions pinned at first submit, "slot/name" (and "kernel") to version.
    pub pins: BTreeMap<String, u32>,
    /// Fingerprint of the `tasks` schema pinned at first submit.
    pub tasks_schema: u64,
    /// Optional tables asked for.
    pub tables: Vec<Table>,
    /// When it was first submitted, microseconds since 1970 UTC.
    pub created_us: i64,
    /// What it is doing.
    pub state: ExperimentState,
    /// Higher is served first; 0 unless a user said otherwise.
    pub priority: i32,
}

/// An experiment that is being deleted or set aside. Until this record goes, recovery goes on with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingRecord {
    /// Experiment.
    pub experiment: String,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of an experiment that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its state goes; its parts stay where they are.
    Forget,
    /// Its state goes, and its parts with it.
    Erase,
    /// State and parts get this name, and the old one is free.
    Rename(String),
}

/// A manifest that an edit replaced: rows, done bits and leases of its generation keep their meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierRecord {
    /// Experiment.
    pub experiment: String,
    /// Its generation.
    pub generation: u64,
    /// The exact text that was submitted.
    pub manifest: String,
    /// Log name to digest, as pinned.
    pub digests: BTreeMap<String, Digest>,
}

/// Which of 65,536 consecutive tasks have a durable row. Of an earlier generation: those that left the manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct DoneChunk {
    /// Experiment.
    pub experiment: String,
    /// Generation whose indices these are.
    pub generation: u64,
    /// Index of the chunk, `task index >> 16`.
    pub chunk: u32,
    /// Bits `task index & 0xFFFF`, all below [`CHUNK_TASKS`].
    pub bitmap: RoaringBitmap,
}

/// Rows that are not yet in a Parquet part, of hand-ins of one generation that became durable together.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsRecord {
    /// Experiment.
    pub experiment: String,
    /// Table that the rows belong to: [`Table::Tasks`] or [`Table::Failures`].
    pub table: Table,
    /// Counts up within the experiment's table.
    pub seq: u64,
    /// Generation under which they were handed in.
    pub generation: u64,
    /// When they became durable, microseconds since 1970 UTC (for rolling by age).
    pub received_us: i64,
    /// At least one.
    pub hand_ins: Vec<EncodedRows>,
}

/// Rows of one hand-in, as the worker encoded them.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRows {
    /// Rows in `encoded`, left-out ones included.
    pub rows: u32,
    /// Positions in `encoded` to leave out (tasks that were already done).
    pub mask: Option<RoaringBitmap>,
    /// The encoded batch.
    pub encoded: Bytes,
}

impl RowsRecord {
    /// What recovery needs to know of these rows.
    pub fn header(&self) -> RowsHeader {
        RowsHeader {
            experiment: self.experiment.clone(),
            table: self.table,
            seq: self.seq,
            generation: self.generation,
            received_us: self.received_us,
            rows: self.hand_ins.iter().map(|hand_in| hand_in.rows).sum(),
            live_rows: self.live_rows(),
            bytes: self.bytes(),
        }
    }

    /// Rows that count: those that are not left out.
    pub fn live_rows(&self) -> u32 {
        self.hand_ins.iter().map(EncodedRows::live_rows).sum()
    }

    /// Encoded size in bytes.
    pub fn bytes(&self) -> u64 {
        self.hand_ins.iter().map(|hand_in| hand_in.encoded.len() as u64).sum()
    }
}

impl EncodedRows {
    /// Rows that count: those that are not left out.
    pub fn live_rows(&self) -> u32 {
        let left_out = self.mask.as_ref().map_or(0, |mask| u32::try_from(mask.len()).unwrap_or(u32::MAX));
        self.rows.saturating_sub(left_out)
    }
}

/// A [`RowsRecord`] without its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsHeader {
    /// Experiment.
    pub experiment: String,
    /// Table.
    pub table: Table,
    /// Number within the experiment's table.
    pub seq: u64,
    /// Generation under which they were handed in.
    pub generation: u64,
    /// When they became durable, microseconds since 1970 UTC.
    pub received_us: i64,
    /// Rows encoded.
    pub rows: u32,
    /// Rows without those left out.
    pub live_rows: u32,
    /// Encoded size in bytes.
    pub bytes: u64,
}

/// Where the rows of an open publish intent come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Unrolled rows `first_seq..=last_seq` of the experiment's table; deleted when the intent is closed.
    Rows {
        /// First number.
        first_seq: u64,
        /// Last number, included.
        last_seq: u64,
    },
    /// An object that a worker uploaded below the staging prefix under the part's id. Written by earlier versions.
    Staged,
    /// Accepted uploads, in order; their records and objects are deleted when the intent is closed.
    Merged {
        /// Ids of the uploads.
        uploads: Vec<Uuid>,
    },
}

/// A Parquet part that is being published. Open until a commit deletes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Experiment.
    pub experiment: String,
    /// Table.
    pub table: Table,
    /// The part's id (UUIDv7), in its name and its footer.
    pub part_id: Uuid,
    /// What goes into it.
    pub source: Source,
    /// Rows that the part will hold.
    pub rows: u64,
}

/// What has been published of an experiment's table so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Experiment.
    pub experiment: String,
    /// Table.
    pub table: Table,
    /// Parts published.
    pub parts: u64,
    /// Rows in them.
    pub rows: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Why an attempt failed. The numbers are those of `FailureKind` in the wire format, plus crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Final: the spec or workload cannot be simulated.
    Invalid,
    /// The simulation panicked.
    Panic,
    /// Longer than the task's deadline.
    Deadline,
    /// More events than allowed.
    EventLimit,
    /// More memory than allowed.
    MemoryLimit,
    /// Final: the kernel refused a decision of the policy.
    Policy,
    /// The log could not be fetched or read.
    Workload,
    /// The worker was lost without a word while it ran the task.
    Crash,
}

/// Failure state of one task that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRecord {
    /// Experiment.
    pub experiment: String,
    /// Generation of the index.
    pub generation: u64,
    /// Task.
    pub index: u64,
    /// Attempts that failed.
    pub attempts: u32,
    /// Of these, abrupt losses of the worker.
    pub crashes: u32,
    /// Last failure's kind.
    pub kind: FailureKind,
    /// No further attempt unless a user asks for it.
    pub quarantined: bool,
    /// Last failure's message.
    pub message: String,
    /// Worker of the last attempt.
    pub worker: String,
    /// Time of the last failure, microseconds since 1970 UTC.
    pub at_us: i64,
    /// Of `attempts`, those before a user asked for more.
    pub forgiven: u32,
}

/// Id of a lease: ids of an earlier owner never collide with those of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId {
    /// The owner's epoch.
    pub epoch: u64,
    /// Counts up within the epoch.
    pub counter: u64,
}

/// Tasks granted to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its id.
    pub id: LeaseId,
    /// Experiment.
    pub experiment: String,
    /// Generation of the indices.
    pub generation: u64,
    /// Half-open index ranges, in order.
    pub ranges: Vec<std::ops::Range<u64>>,
    /// The worker process.
    pub worker_id: Uuid,
    /// The worker's name.
    pub worker: String,
    /// Counts the issues of these tasks from 1.
    pub attempt: u32,
}

/// A log in the content-addressed store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Sha256 of its decompressed bytes.
    pub digest: Digest,
    /// Decompressed size.
    pub bytes: u64,
    /// The name under which it was first submitted.
    pub name: String,
}

/// One durable fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The owner's epoch: raised by one each time the state is opened for work.
    Epoch(u64),
    /// An experiment.
    Experiment(ExperimentRecord),
    /// A replaced manifest.
    Earlier(EarlierRecord),
    /// Done bits.
    DoneChunk(DoneChunk),
    /// Unrolled rows.
    Rows(RowsRecord),
    /// An open publish intent.
    Intent(Intent),
    /// What has been published.
    Totals(Totals),
    /// A task's failure state.
    Failure(FailureRecord),
    /// A lease.
    Lease(LeaseRecord),
    /// A stored log.
    Log(LogRecord),
    /// An accepted upload.
    Upload(UploadRecord),
    /// Tasks that an optional table covers.
    Covered(CoveredRecord),
    /// An experiment that is being deleted or set aside.
    Leaving(LeavingRecord),
    /// Greatest generation of any experiment that left: names can come back, generations never do.
    GenerationFloor(u64),
}

/// Names a record: at most one record of a key exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// [`Record::Epoch`].
    Epoch,
    /// [`Record::Experiment`].
    Experiment {
        /// Name.
        name: String,
    },
    /// [`Record::Earlier`].
    Earlier {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
    },
    /// [`Record::DoneChunk`].
    DoneChunk {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
        /// Chunk.
        chunk: u32,
    },
    /// [`Record::Rows`].
    Rows {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// Number.
        seq: u64,
    },
    /// [`Record::Intent`].
    Intent {
        /// Part.
        part_id: Uuid,
    },
    /// [`Record::Totals`].
    Totals {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
    },
    /// [`Record::Failure`].
    Failure {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
        /// Task.
        index: u64,
    },
    /// [`Record::Lease`].
    Lease {
        /// Id.
        id: LeaseId,
    },
    /// [`Record::Log`].
    Log {
        /// Digest.
        digest: Digest,
    },
    /// [`Record::Upload`].
    Upload {
        /// Id of the upload.
        part_id: Uuid,
    },
    /// [`Record::Covered`].
    Covered {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
    },
    /// [`Record::Leaving`].
    Leaving {
        /// Experiment.
        experiment: String,
    },
    /// [`Record::GenerationFloor`].
    GenerationFloor,
}

impl Record {
    /// The record's key.
    pub fn key(&self) -> Key {
        match self {
            Record::Epoch(_) => Key::Epoch,
            Record::Experiment(r) => Key::Experiment { name: r.name.clone() },
            Record::Earlier(r) => Key::Earlier { experiment: r.experiment.clone(), generation: r.generation },
            Record::DoneChunk(r) => {
                Key::DoneChunk { experiment: r.experiment.clone(), generation: r.generation, chunk: r.chunk }
            }
            Record::Rows(r) => Key::Rows { experiment: r.experiment.clone(), table: r.table, seq: r.seq },
            Record::Intent(r) => Key::Intent { part_id: r.part_id },
            Record::Totals(r) => Key::Totals { experiment: r.experiment.clone(), table: r.table },
            Record::Failure(r) => {
                Key::Failure { experiment: r.experiment.clone(), generation: r.generation, index: r.index }
            }
            Record::Lease(r) => Key::Lease { id: r.id },
            Record::Log(r) => Key::Log { digest: r.digest },
            Record::Upload(r) => Key::Upload { part_id: r.part_id },
            Record::Covered(r) => Key::Covered { experiment: r.experiment.clone(), table: r.table },
            Record::Leaving(r) => Key::Leaving { experiment: r.experiment.clone() },
            Record::GenerationFloor(_) => Key::GenerationFloor,
        }
    }
}
