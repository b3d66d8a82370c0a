//! Durable state and published objects, behind one trait.
//!
//! [`Store`] is the coordinator's only access to storage. [`SlateStore`] keeps records in SlateDB below the dataset
//! itself, in a directory or an object store; [`ModelStore`] keeps them in memory and injects faults. One conformance
//! suite (in the crate's integration tests) tests the promises of both.
//!
//! Promises: `commit` is all or nothing, and durable when it returns `Ok`. After an error its outcome is unknown, so the
//! caller drops its state and loads it again. Batches become durable in the order of the calls. `create` never replaces
//! an object, and an object is visible only as a whole.

#[cfg(feature = "cloud")]
mod cloud;
mod credentials;
mod datasets;
mod encoding;
mod inbox;
mod kind;
mod location;
mod merges;
mod model;
mod objects;
mod open;
mod signer;
mod slate;
mod stall_detector;
mod tuning;

pub(crate) use credentials::hint as credentials_hint;
pub use credentials::{Credentials, Variables, credentials, unencrypted};
pub(crate) use encoding::check_name;
pub use encoding::{DecodeError, FORMAT_VERSION, Pair, decode, encode, encode_key};
pub use kind::{CACHE_TIME, Kind, MAX_CLOCK_DIFFERENCE};
pub(crate) use location::shard_name;
pub use location::{Location, LocationError};
pub use model::{Fault, ModelStore};
pub use objects::{LogWriter, MAX_PART_BYTES, Objects, PRIVATE_DIR, STAGED_MAX_AGE};
pub(crate) use objects::{blocking, staged_object};
pub use open::{OPEN_TIME, OpenError, open};
pub use signer::{SignError, SignedPut, Signer};
pub use slate::{ReadOnly, SlateStore};

use crate::records::{Key, Loaded, Record, RowsRecord};
use async_trait::async_trait;
use powersweep_experiments::Digest;
use powersweep_results::Table;
use uuid::Uuid;

/// Maximum number of records in one batch. A hand-in has a few; closing a part deletes one for each hand-in (262,144 at
/// worst); retrying or deleting an experiment writes one for each failed task, perhaps millions.
pub const MAX_BATCH_RECORDS: usize = 1 << 24;

/// Puts and deletes that become durable together. Later entries win over earlier ones of the same key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    ops: Vec<Op>,
}

/// One entry of a [`Batch`].
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Store a record, replacing one of the same key.
    Put(Record),
    /// Remove a record, if there is one.
    Delete(Key),
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a record.
    pub fn put(&mut self, record: Record) -> &mut Batch {
        self.ops.push(Op::Put(record));
        self
    }

    /// Removes a record.
    pub fn delete(&mut self, key: Key) -> &mut Batch {
        self.ops.push(Op::Delete(key));
        self
    }

    /// Adds records.
    pub fn put_all(&mut self, records: impl IntoIterator<Item = Record>) -> &mut Batch {
        self.ops.extend(records.into_iter().map(Op::Put));
        self
    }

    /// The record at a position.
    pub(crate) fn record_mut(&mut self, at: usize) -> Option<&mut Record> {
        match self.ops.get_mut(at)? {
            Op::Put(record) => Some(record),
            Op::Delete(_) => None,
        }
    }

    /// The entries in order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether it has no entries; its commit has no effect.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// Errors of a [`Store`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum StoreError {
    /// A newer owner has opened the state. Final for this process: it must stop leasing and end.
    #[error("another coordinator has taken over the state in {data}: this one must stop")]
    Fenced { data: String },
    /// The store was closed. Final.
    #[error("the state in {data} is closed")]
    Closed { data: String },
    /// The database failed internally. Final for this opening: a restart loses no durable record.
    #[error("the state in {data} has failed: {reason}")]
    Broken { data: String, reason: String },
    /// Storage failed or refused. Retryable after loading the state again: a failed commit may or may not be durable.
    #[error("storage failed: {op} {path}")]
    Unavailable { op: &'static str, path: String, source: BoxError },
    /// Stored bytes are damaged. Final: a person must repair the data.
    #[error("stored data is damaged: {path}: {reason}")]
    Corrupt { path: String, reason: String },
    /// An object of this name exists and is not the part that was to be created. Final for this part; a new part id
    /// gets a new name.
    #[error("{path} exists already and is not part {part_id} ({found})")]
    PartTaken { path: String, part_id: Uuid, found: String },
    /// A folder whose parts were to be deleted or moved is a link. Final until somebody acts.
    #[error(
        "{path} is a link, and parts are neither deleted nor moved through one: put the folder itself in its place, or \
         delete or move its parts yourself, and then the link"
    )]
    Link { path: String },
    /// An object that should exist does not. Final.
    #[error("{path} is missing")]
    Missing { path: String },
    /// A log's bytes do not have the given digest. Final for these bytes.
    #[error("log {expected} has other content: its sha256 is {found}")]
    WrongDigest { expected: Digest, found: Digest },
    /// The request is invalid (a name that is too long, an empty name). Final: a bug.
    #[error("invalid request to the store: {reason}")]
    Invalid { reason: String },
}

/// A cause from another library.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

impl StoreError {
    /// Whether loading the state and trying again can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. })
    }

    /// Whether this process is no longer the owner.
    pub fn is_lost_ownership(&self) -> bool {
        matches!(self, StoreError::Fenced { .. })
    }
}

/// The durable state of one coordinator and the objects that it publishes.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Reads the state without unpublished rows, of which it has the headers.
    async fn load(&self) -> Result<Loaded, StoreError>;

    /// Reads what decides which rows are in the parts of an experiment: its record, its split, the totals of its tables,
    /// and the open intents of all experiments. May read more of the state.
    async fn load_of(&self, _experiment: &str) -> Result<Loaded, StoreError> {
        self.load().await
    }

    /// Makes a batch durable, all or nothing. Concurrent callers share a flush.
    async fn commit(&self, batch: Batch) -> Result<(), StoreError>;

    /// Reads unpublished rows `first_seq..=last_seq` of an experiment's table, in order; numbers without rows are
    /// skipped.
    async fn rows(
        &self,
        experiment: &str,
        table: Table,
        first_seq: u64,
        last_seq: u64,
    ) -> Result<Vec<RowsRecord>, StoreError>;

    /// Finds out what is wrong with the storage, for messages: a commit can wait without any error. `None` if no fault
    /// is found.
    async fn trouble(&self) -> Option<String> {
        None
    }

    /// Makes pending batches durable and closes; later calls fail with [`StoreError::Closed`].
    async fn close(&self) -> Result<(), StoreError>;

    /// The objects beside the state, while this store may use them: an error after its end.
    fn objects(&self) -> Result<&Objects, StoreError>;

    /// Makes sure, in the storage itself, that no newer owner had taken over when this was called.
    async fn still_own(&self) -> Result<(), StoreError>;

    /// Deletes the parts and staged uploads of an experiment. Repeatable.
    async fn erase_dataset(&self, experiment: &str) -> Result<(), StoreError> {
        let listed = self.objects()?.dataset(experiment).await?;
        self.still_own().await?;
        self.objects()?.erase(experiment, &listed).await
    }

    /// Deletes the parts of an experiment's rows that left. Repeatable.
    async fn erase_left(&self, experiment: &str) -> Result<(), StoreError> {
        let listed = self.objects()?.left_parts(experiment).await?;
        self.still_own().await?;
        self.objects()?.erase(&powersweep_results::layout::left_name(experiment), &listed).await
    }

    /// Moves the parts of an experiment to the folder of another name, one by one. Repeatable after a failure or crash.
    async fn rename_dataset(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let moves = self.objects()?.moves(from, to).await?;
        self.still_own().await?;
        self.objects()?.rename(&moves).await
    }
}
