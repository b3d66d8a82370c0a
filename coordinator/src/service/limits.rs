//! What all callers together may take: memory, threads and time of this process.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore};
use tokio::time::Instant;
use tonic::{Status, Streaming};

/// Uploads that are received and checked at the same time; others wait, which stops their senders.
const UPLOADS_AT_ONCE: usize = 16;
/// Bytes that each of them may take. Only one at a time takes more.
const UPLOAD_BYTES: usize = 8 << 20;
/// Bytes of rows that wait for the driver. Streams are not read while there are more.
const QUEUED_BYTES: usize = 64 << 20;
/// Logs that are received at the same time. They go to storage piece by piece.
const LOGS_AT_ONCE: usize = 4;
/// Manifests that are checked at the same time: their exclusions may take a hundred megabytes.
const SUBMITS_AT_ONCE: usize = 2;
/// Status requests that are answered at the same time: a reply may have ten thousand failures.
const STATUS_AT_ONCE: usize = 16;
/// Tables that are sent at the same time: each keeps its unpublished rows in memory, perhaps 100 MiB.
const TABLES_AT_ONCE: usize = 2;
/// Pieces of parts that are read at the same time.
const PIECES_AT_ONCE: usize = 16;

/// How long a sender may keep the coordinator waiting for the next message of an upload.
const MESSAGE_WAIT: Duration = Duration::from_secs(30);
/// How long a reader of a table may keep the coordinator waiting until it takes the next message.
pub(super) const READER_WAIT: Duration = MESSAGE_WAIT;
/// How long an upload or a reader may wait for its turn, and how long an upload's turn may take.
const TURN_WAIT: Duration = Duration::from_secs(300);
const TURN: Duration = Duration::from_secs(120);

/// The memory, threads and time that callers have taken and may take.
pub(super) struct Limits {
    uploads: Arc<Semaphore>,
    large: Arc<Semaphore>,
    pub(super) logs: Semaphore,
    /// Held for reading while a log arrives, and for writing while unused ones are deleted.
    pub(super) logs_change: RwLock<()>,
    pub(super) submits: Semaphore,
    pub(super) statuses: Semaphore,
    tables: Arc<Semaphore>,
    pub(super) pieces: Semaphore,
    /// Large batches of hand-ins that are decoded.
    pub(super) decoding: Semaphore,
    queued: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            uploads: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)),
            large: Arc::new(Semaphore::new(1)),
            logs: Semaphore::new(LOGS_AT_ONCE),
            logs_change: RwLock::new(()),
            submits: Semaphore::new(SUBMITS_AT_ONCE),
            statuses: Semaphore::new(STATUS_AT_ONCE),
            tables: Arc::new(Semaphore::new(TABLES_AT_ONCE)),
            pieces: Semaphore::new(PIECES_AT_ONCE),
            decoding: Semaphore::new(1),
            queued: Arc::new(Semaphore::new(QUEUED_BYTES)),
        }
    }
}

impl Limits {
    /// Room for the rows of a hand-in in the driver's queue.
    pub(super) async fn queued(&self, rows: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(rows.min(QUEUED_BYTES)).unwrap_or(u32::MAX);
        Arc::clone(&self.queued).acquire_many_owned(bytes).await.ok()
    }

    /// Waits for a turn to send a table.
    pub(super) async fn table(&self) -> Result<OwnedSemaphorePermit, Status> {
        turn(&self.tables, Instant::now() + TURN_WAIT, "tables are read").await
    }
}

/// Bytes in memory, with the permits to hold them.
pub(super) struct Received {
    pub(super) data: BytesMut,
    limits: Arc<Limits>,
    _turn: OwnedSemaphorePermit,
    until: Instant,
    large: Option<OwnedSemaphorePermit>,
}

impl Received {
    /// Waits for a turn.
    pub(super) async fn begin(limits: &Arc<Limits>) -> Result<Received, Status> {
        let _turn = turn(&limits.uploads, Instant::now() + TURN_WAIT, UPLOADS).await?;
        let until = Instant::now() + TURN;
        Ok(Received { data: BytesMut::new(), limits: Arc::clone(limits), _turn, until, large: None })
    }

    /// The next message of the upload's stream; `None` at its end.
    pub(super) async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, Status> {
        let late = |_| Status::deadline_exceeded(format!("the upload took longer than {} s", TURN.as_secs()));
        tokio::time::timeout_at(self.until, next(stream)).await.map_err(late)?
    }

    /// Waits for room for an object that does not come in messages.
    pub(super) async fn reserve(&mut self, bytes: u64, bytes_max: u64) -> Result<(), Status> {
        if bytes > bytes_max {
            return Err(Status::invalid_argument(format!("the object has more than {bytes_max} bytes")));
        }
        if bytes > UPLOAD_BYTES as u64 && self.large.is_none() {
            self.large = Some(turn(&self.limits.large, self.until, UPLOADS).await?);
        }
        Ok(())
    }

    /// Appends bytes, up to a limit.
    pub(super) async fn push(&mut self, more: &[u8], bytes_max: u64) -> Result<(), Status> {
        self.reserve((self.data.len() + more.len()) as u64, bytes_max).await?;
        self.data.extend_from_slice(more);
        Ok(())
    }
}

const UPLOADS: &str = "uploads are sent";

async fn turn(of: &Arc<Semaphore>, until: Instant, what: &str) -> Result<OwnedSemaphorePermit, Status> {
    match tokio::time::timeout_at(until, Arc::clone(of).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Status::unavailable(format!("too many {what} at the same time: try again later"))),
    }
}

/// The next message of a stream; `None` at its end. A sender that is silent for too long is given up.
pub(super) async fn next<T>(stream: &mut Streaming<T>) -> Result<Option<T>, Status> {
    let late = |_| Status::deadline_exceeded(format!("no message for {} s", MESSAGE_WAIT.as_secs()));
    tokio::time::timeout(MESSAGE_WAIT, stream.message()).await.map_err(late)?
}
