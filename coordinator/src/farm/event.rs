//! Events that a farm takes in, effects and replies that it gives out.

use std::collections::BTreeMap;
use std::time::Duration;

use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::v1::worker_message::Body;
use powersweep_proto::v1::{self, control_request::Action};
use powersweep_results::Table;
use uuid::Uuid;

use crate::publish::Visible;
use crate::records::{Intent, Removal, SplitPart, SplitRecord};
use crate::split::Sweeps;

/// Wait before work on the dataset is tried again after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The instant of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Time since the driver started; never goes back. All time-outs use it.
    pub mono: Duration,
    /// Microseconds since 1970 UTC; recorded, shown, and compared with the age of rows and experiments.
    pub wall_us: i64,
}

/// One connection of a worker; a driver never uses a number twice.
pub type ConnId = u64;

/// One request of a client that waits for its reply.
pub type ClientId = u64;

/// An input of the state machine.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum Event {
    /// A message of a worker. The first of a connection must be a hello.
    Message {
        conn: ConnId,
        address: String,
        body: Body,
        /// Of a hand-in; else empty.
        content: Content,
    },
    /// A connection ended.
    Disconnected {
        conn: ConnId,
        /// It broke; false if either side closed it in good order.
        abrupt: bool,
    },
    /// A request of a client, who gets one [`Effect::Reply`].
    Request { client: ClientId, request: Request },
    /// The batch of this token is durable.
    Committed {
        /// From [`Farm::take_commit`](super::Farm::take_commit).
        token: u64,
    },
    /// A part is visible, or could not be published.
    Published {
        /// The intent's part.
        part_id: Uuid,
        /// The part, or why it could not be published.
        result: Result<Visible, PublishFailure>,
    },
    /// The parts of an experiment that is being removed are deleted or moved, or could not be.
    RemovalDone {
        experiment: String,
        /// Why they could not be deleted or moved.
        result: Result<(), PublishFailure>,
    },
    /// The fragments of a split are staged, or could not be.
    SplitPrepared {
        experiment: String,
        /// The attempt.
        id: Uuid,
        /// The parts to replace, or why they could not be found or split.
        result: Result<Vec<SplitPart>, PublishFailure>,
    },
    /// The parts of a split are replaced, or could not be.
    SplitDone { experiment: String, id: Uuid, result: Result<(), PublishFailure> },
    /// The parts of rows that left are deleted, or could not be.
    Pruned { experiment: String, id: Uuid, result: Result<(), PublishFailure> },
    /// Storage stopped answering, or answers again.
    Storage {
        /// Why dispatch pauses; `None` where storage answers.
        stalled: Option<String>,
    },
    /// The coordinator is shutting down: no task is handed out, workers are told to drain.
    Stop,
    /// The coordinator ends: rows are published now.
    Close,
    /// Time passed.
    Tick,
}

/// A hand-in's content, which the driver checks: the farm does not know what a row contains, or what is in storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The number of rows, which are those of the tasks that the hand-in names; or why the batch is refused.
    pub rows: Result<u32, String>,
    /// Upper bound of the memory of the rows, decoded (bytes).
    pub bytes: u64,
    /// Why its uploads are refused, if they are.
    pub uploads: Result<(), BadUpload>,
}

/// Why an upload is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadUpload {
    /// It is not in the staging folder, or this process has not checked it. Its tasks run again.
    Unknown(String),
    /// It is not what the hand-in says. Counts as a failed attempt of its tasks.
    Wrong(String),
}

impl Content {
    /// That of a hand-in with this number of rows and sound uploads, or of another message.
    pub fn of_rows(rows: u32) -> Content {
        Content { rows: Ok(rows), bytes: 0, uploads: Ok(()) }
    }

    /// That of a hand-in whose rows are refused.
    pub(crate) fn refused(reason: String) -> Content {
        Content { rows: Err(reason), bytes: 0, uploads: Ok(()) }
    }
}

/// A request of a client.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum Request {
    /// Submit an experiment whose manifest is parsed and checked.
    Submit(Submission),
    /// Publish all rows of the experiment of this name.
    Flush(String),
    /// Act on an experiment.
    Control {
        experiment: String,
        action: Action,
        /// The user who asks, unless this user may act on the experiments of others, too.
        by: Option<String>,
    },
    /// Drop the records of logs that no experiment has used for long.
    DropLogs {
        /// The logs in the store.
        stored: Vec<Digest>,
    },
    /// Record that a log is in the store. The reply comes once the record is durable.
    LogStored {
        /// SHA-256 of its decompressed bytes.
        digest: Digest,
        /// Decompressed size.
        bytes: u64,
    },
}

/// A checked manifest with the digests of its logs.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The sweep.
    pub sweep: Sweep,
    /// Log name to digest, for every log of the manifest.
    pub digests: BTreeMap<String, Digest>,
    /// Only say what would happen.
    pub dry_run: bool,
    /// Set an experiment with other pins aside and start a new one.
    pub restart: bool,
    /// Replace an experiment of another user, or one that shares no task with the manifest.
    pub replace: bool,
    /// Name of the user; "" if unknown.
    pub user: String,
    /// Higher is served first; `None`: 0 for a new experiment, unchanged for another.
    pub priority: Option<i32>,
    /// What happened to the rows of job logs and signals: a JSON array, or empty.
    pub ledgers: String,
    /// Another submit adds tasks soon: the last rows need no part of their own.
    pub more_follows: bool,
    /// The generation that the manifest edits, 0 for no experiment: another submit in between is a reason to refuse. `None`: any.
    pub edits: Option<u64>,
}

impl Submission {
    /// A submission without options.
    pub fn new(sweep: Sweep, digests: BTreeMap<String, Digest>) -> Submission {
        let (dry_run, restart, replace, more_follows) = (false, false, false, false);
        let (user, ledgers) = (String::new(), String::new());
        let (priority, edits) = (None, None);
        Submission { sweep, digests, dry_run, restart, replace, user, priority, ledgers, more_follows, edits }
    }
}

/// Why a part could not be published, or parts could not be deleted or moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishFailure {
    /// The store's message.
    pub reason: String,
    /// Whether trying again can help.
    pub retryable: bool,
}

impl PublishFailure {
    /// When to try again: later if that cannot help before somebody acts.
    pub(super) fn retry_at(&self, now: Now) -> Duration {
        now.mono + if self.retryable { RETRY_AFTER } else { RETRY_AFTER * 15 }
    }
}

/// An instruction to the driver.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum Effect {
    /// Send a message to a worker; no effect if its connection has ended.
    Send { conn: ConnId, message: v1::farm_message::Body },
    /// End a connection after the messages sent before.
    Close { conn: ConnId },
    /// Answer a client.
    Reply { client: ClientId, reply: Reply },
    /// Publish the part of a durable intent, then report [`Event::Published`].
    Publish { intent: Intent },
    /// Delete or move the parts of an experiment that is being removed, then report [`Event::RemovalDone`]. May be repeated.
    Remove {
        experiment: String,
        /// Whether its parts are deleted or moved.
        removal: Removal,
    },
    /// Find the parts with rows of the wrong folder and stage their fragments, then report [`Event::SplitPrepared`].
    PrepareSplit { experiment: String, id: Uuid, sweeps: Box<Sweeps> },
    /// Replace the parts of a durable record by their fragments, then report [`Event::SplitDone`]. May be repeated.
    Split { record: SplitRecord },
    /// Delete the fragments of a split from the staging folder.
    DiscardFragments { split: Uuid },
    /// Delete the parts of rows that left, then report [`Event::Pruned`]. May be repeated.
    Prune { experiment: String, id: Uuid },
    /// Delete an upload from the staging folder.
    Discard { experiment: String, table: Table, part_id: Uuid },
}

/// An answer to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// To a submit.
    Submitted(Box<v1::SubmitReply>),
    /// To a flush.
    Flushed(v1::FlushReply),
    /// To a stored log.
    LogStored,
    /// The logs that may be deleted now.
    LogsDropped(Vec<Digest>),
    /// To an [`Action`].
    Controlled(v1::ControlReply),
    /// The request is wrong in every state.
    Invalid(String),
    /// There is no such experiment.
    NotFound(String),
    /// The state forbids it; the message says what to do.
    Refused(String),
    /// The experiment belongs to another user; the message says what to do.
    Forbidden(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_needs_somebody_is_tried_again_later() {
        let now = Now { mono: Duration::from_secs(100), wall_us: 0 };
        let at = |retryable: bool| PublishFailure { reason: "full".to_owned(), retryable }.retry_at(now);
        assert_eq!((at(true), at(false)), (Duration::from_secs(102), Duration::from_secs(130)));
    }
}
