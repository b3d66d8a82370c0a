//! The store that keeps records in SlateDB, beside the results.
//!
//! Commits are written to SlateDB's memory at once and made durable by one flush for all waiting callers (group commit):
//! a flush starts as soon as a caller waits and the previous flush has ended, but at most 20 times a second where the
//! storage is not of this machine. There are no flushes without waiting callers.
//!
//! SlateDB retries a failing storage for ever, so a commit can take as long as the outage; the caller watches the time.
//! The newer of two writers wins: the older one's commits fail with `Fenced`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use powersweep_experiments::plain::chain;
use powersweep_results::Table;
use powersweep_results::layout::STATE_FOLDER;
use slatedb::config::{DbReaderOptions, FlushOptions, FlushType, ScanOptions};
use slatedb::{CloseReason, CompactorBuilder, Db, DbReadOps, DbReader, DbReaderMode, ErrorKind, WriteBatch};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::objects::{Objects, unavailable};
use super::stall_detector::{LOOK_INTERVAL, StallDetector};
use super::{Batch, Kind, Location, Store, StoreError, encoding, merges, model, tuning};
use crate::records::{Loaded, RowsRecord};

/// Shortest time between the starts of two flushes on storage that is not of this machine: bounds the cost of an object
/// store, and the files of a shared folder, at 20 a second.
const REMOTE_FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Flushes after which SlateDB's memory is written to a sorted file whatever its size: each flush writes a log file, and
/// each log file is replayed when the state is opened.
const FLUSHES_BEFORE_SST: u32 = 256;

/// Bytes that a scan fetches at once.
const SCAN_READ_AHEAD_BYTES: usize = 1 << 20;

/// Callers in the queue for a flush; others wait for a place in the queue.
const MAX_WAITING_COMMITS: usize = 4096;

/// Attempts to open a read-only view: the owner may delete files meanwhile.
const READER_TRIES: u32 = 3;

/// Retries of one storage operation of a read-only view, which must not wait for ever.
const READER_STORAGE_RETRIES: u32 = 3;

/// Folder of the database below DATA.
fn state_dir(location: &Location) -> Path {
    location.private_dir().join("state")
}

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A [`Store`] in SlateDB. Only the owner of DATA may open one. See the module.
pub struct SlateStore {
    db: Db,
    objects: Objects,
    data: String,
    location: Location,
    flushes: mpsc::Sender<Waiter>,
    closed: AtomicBool,
    _merging: Background,
}

/// A thread for merging files of the state. On the threads that serve requests, a merge delays every request by some
/// 300 ms.
struct Background(Option<tokio::runtime::Runtime>);

impl Background {
    fn start() -> std::io::Result<Background> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Ok(Background(Some(runtime.worker_threads(1).thread_name("merging").enable_all().build()?)))
    }

    fn handle(&self) -> tokio::runtime::Handle {
        self.0.as_ref().expect("only `drop` takes it").handle().clone()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which must not happen inside another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for SlateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlateStore").field("data", &self.data).finish_non_exhaustive()
    }
}

impl SlateStore {
    /// Opens the state for writing, which fences every earlier writer. [`super::open`] probes and takes the ownership
    /// first.
    pub async fn open(location: &Location) -> Result<SlateStore, StoreError> {
        let root = location.object_store().map_err(|error| unavailable("open", location, error))?;
        SlateStore::open_on(location, root).await
    }

    /// [`SlateStore::open`] over a given object store rooted at DATA (tests inject faults there).
    pub async fn open_on(location: &Location, root: Arc<dyn ObjectStore>) -> Result<SlateStore, StoreError> {
        let data = location.to_string();
        let kind = location.kind();
        let merging = Background::start().map_err(|error| unavailable("open", location, error))?;
        let state = state_dir(location);
        let compactor = CompactorBuilder::new(state.clone(), Arc::clone(&root))
            .with_options(tuning::compactor_options(kind))
            .with_scheduler_supplier(merges::supplier())
            .with_runtime(merging.handle());
        let db = Db::builder(state.clone(), Arc::clone(&root))
            .with_settings(tuning::settings(kind))
            .with_compactor_builder(compactor)
            .build()
            .await
            .map_err(|error| from_slate(&data, "open", error))?;
        let (flushes, waiting) = mpsc::channel(MAX_WAITING_COMMITS);
        let interval = if kind == Kind::Local { Duration::ZERO } else { REMOTE_FLUSH_INTERVAL };
        let stalls = (kind != Kind::Objects).then(|| StallDetector::new(&db, state, Arc::clone(&root)));
        tokio::spawn(flush_loop(db.clone(), data.clone(), waiting, interval, stalls));
        let objects = Objects::new(root, location.path().map(Into::into));
        let objects = objects.with_private_dir(location.private_dir()).with_signer(location.signer());
        let location = location.clone();
        Ok(SlateStore { db, objects, data, location, flushes, closed: AtomicBool::new(false), _merging: merging })
    }

    /// Turns true when a newer writer has opened the state, also without a commit.
    pub fn fenced(&self) -> watch::Receiver<bool> {
        let (send, receive) = watch::channel(false);
        let mut status = self.db.subscribe();
        tokio::spawn(async move {
            loop {
                let reason = status.borrow_and_update().close_reason;
                if let Some(reason) = reason {
                    let _ = send.send(reason == CloseReason::Fenced);
                    return;
                }
                tokio::select! {
                    changed = status.changed() => if changed.is_err() { return },
                    () = send.closed() => return,
                }
            }
        });
        receive
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed { data: self.data.clone() });
        }
        Ok(())
    }

    fn error(&self, op: &'static str) -> impl Fn(slatedb::Error) -> StoreError {
        move |error| from_slate(&self.data, op, error)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        let closed = || StoreError::Closed { data: self.data.clone() };
        self.flushes.send(reply).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

fn scan_options() -> ScanOptions {
    ScanOptions { read_ahead_bytes: SCAN_READ_AHEAD_BYTES, ..ScanOptions::default() }
}

/// Flushes one after the other, each for all callers that wait when it starts.
async fn flush_loop(
    db: Db,
    data: String,
    mut waiting: mpsc::Receiver<Waiter>,
    interval: Duration,
    mut stalls: Option<StallDetector>,
) {
    let mut last_start: Option<Instant> = None;
    let mut since_sst = 0;
    let sst_running = Arc::new(AtomicBool::new(false));
    loop {
        let first = match &mut stalls {
            None => waiting.recv().await,
            Some(stalls) => tokio::select! {
                first = waiting.recv() => first,
                () = tokio::time::sleep(LOOK_INTERVAL) => {
                    stalls.look();
                    continue;
                }
            },
        };
        let Some(first) = first else { return };
        if let Some(last) = last_start {
            tokio::time::sleep_until(last + interval).await;
        }
        last_start = Some(Instant::now());
        let mut waiters = vec![first];
        while let Ok(waiter) = waiting.try_recv() {
            waiters.push(waiter);
        }
        let mut result = db.flush().await.map_err(|error| (error.kind(), error.to_string()));
        if let (Ok(()), Some(stalls)) = (&result, &mut stalls) {
            result = stalls.confirm_ownership().await;
        }
        for waiter in waiters {
            let answer = match &result {
                Ok(()) => Ok(()),
                Err((kind, message)) => Err(from_slate_kind(&data, "make durable", *kind, message.clone())),
            };
            // The caller may have dropped its receiver.
            let _ = waiter.send(answer);
        }
        since_sst += 1;
        if since_sst >= FLUSHES_BEFORE_SST && !sst_running.swap(true, Ordering::AcqRel) {
            since_sst = 0;
            let (db, running) = (db.clone(), Arc::clone(&sst_running));
            tokio::spawn(async move {
                if let Err(error) = db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await {
                    // The flushes of commits report failures of the storage.
                    tracing::debug!(%error, "sorted file not written");
                }
                running.store(false, Ordering::Release);
            });
        }
    }
}

/// Part of SlateDB's message when the next number of one of its own records exists already. The error's kind is that of
/// damaged data, so only the message tells the difference.
const RECORD_EXISTS: &str = "version already exists";

/// Parts of the messages of a store and of a reader about a place beyond the end of an object. Files of the state do not change,
/// so one is cut.
const CUT: [&str; 2] = ["range was invalid", "RangeOutOfBounds"];

/// The way out of a state that cannot be read.
const REBUILD: &str =
    "`powersweep adopt MANIFEST --set-aside` rebuilds the state of an experiment from its published rows";

fn from_slate(data: &str, op: &'static str, error: slatedb::Error) -> StoreError {
    let message = chain(&error);
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Internal if CUT.iter().any(|cut| message.contains(cut)) => {
            let cut = format!("a file below {STATE_FOLDER}/state was cut; {REBUILD}");
            StoreError::Corrupt { path: state_in(data), reason: cut }
        }
        ErrorKind::Unavailable | ErrorKind::Transaction => unavailable(op, &state_in(data), error),
        // Another owner wrote it, or an own write succeeded and was reported as failed: loading the state decides.
        ErrorKind::Data if error.to_string().contains(RECORD_EXISTS) => unavailable(op, &state_in(data), error),
        kind => from_slate_kind(data, op, kind, error.to_string()),
    }
}

fn state_in(data: &str) -> String {
    format!("the state in {data}")
}

fn from_slate_kind(data: &str, op: &'static str, kind: ErrorKind, message: String) -> StoreError {
    let data = data.to_owned();
    match kind {
        ErrorKind::Closed(CloseReason::Fenced) => StoreError::Fenced { data },
        ErrorKind::Closed(CloseReason::Clean) => StoreError::Closed { data },
        ErrorKind::Closed(_) => StoreError::Broken { data, reason: message },
        ErrorKind::Internal => {
            StoreError::Broken { data, reason: format!("{message}; if that happens again, {REBUILD}") }
        }
        ErrorKind::Data => StoreError::Corrupt { path: state_in(&data), reason: format!("{message}; {REBUILD}") },
        ErrorKind::Invalid => StoreError::Invalid { reason: message },
        _ => unavailable(op, &state_in(&data), message),
    }
}

/// Reads the records in these ranges, which have no rows.
async fn read_state(
    db: &(impl DbReadOps + Sync),
    ranges: impl IntoIterator<Item = encoding::KeyRange, IntoIter: Send>,
    failed: impl Fn(slatedb::Error) -> StoreError + Sync,
) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    for range in ranges {
        let mut scan = db.scan_with_options(range, &scan_options()).await.map_err(&failed)?;
        while let Some(pair) = scan.next().await.map_err(&failed)? {
            loaded.add(encoding::read(&pair.key, &pair.value)?);
        }
    }
    Ok(loaded)
}

/// Reads the rows of an [`encoding::rows_range`].
async fn read_rows(
    db: &(impl DbReadOps + Sync),
    range: RangeInclusive<Vec<u8>>,
    failed: impl Fn(slatedb::Error) -> StoreError + Sync,
) -> Result<Vec<RowsRecord>, StoreError> {
    let mut rows = Vec::new();
    if !range.is_empty() {
        let mut scan = db.scan_with_options(range, &scan_options()).await.map_err(&failed)?;
        while let Some(pair) = scan.next().await.map_err(&failed)? {
            rows.push(encoding::read_rows(&pair.key, &pair.value)?);
        }
    }
    Ok(rows)
}

#[async_trait]
impl Store for SlateStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.check_open()?;
        // Records of an earlier commit that failed may be in memory: they must be durable before they are read.
        self.flush().await?;
        let snapshot = self.db.snapshot().map_err(self.error("read"))?;
        read_state(&*snapshot, encoding::load_ranges(), self.error("read")).await
    }

    async fn load_of(&self, experiment: &str) -> Result<Loaded, StoreError> {
        self.check_open()?;
        let ranges = encoding::ranges_of(experiment)?;
        // See `load`.
        self.flush().await?;
        let snapshot = self.db.snapshot().map_err(self.error("read"))?;
        read_state(&*snapshot, ranges, self.error("read")).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.check_open()?;
        if batch.is_empty() {
            return Ok(());
        }
        let mut writes = WriteBatch::new();
        for (key, value) in model::encode(&batch)? {
            match value {
                Some(value) => writes.put_bytes(key.into(), value),
                None => writes.delete(key),
            }
        }
        self.db.write(writes).await.map_err(self.error("write to"))?;
        self.flush().await
    }

    async fn rows(
        &self,
        experiment: &str,
        table: Table,
        first_seq: u64,
        last_seq: u64,
    ) -> Result<Vec<RowsRecord>, StoreError> {
        self.check_open()?;
        let range = encoding::rows_range(experiment, table, first_seq, last_seq)?;
        // A file that is deleted while a slow scan still needs it looks like damage; another scan reads newer files.
        let failed = |error: slatedb::Error| match error.kind() {
            ErrorKind::Data => unavailable("read", &state_in(&self.data), error),
            _ => from_slate(&self.data, "read", error),
        };
        read_rows(&self.db, range, failed).await
    }

    fn objects(&self) -> Result<&Objects, StoreError> {
        self.check_open()?;
        Ok(&self.objects)
    }

    async fn still_own(&self) -> Result<(), StoreError> {
        // No record has this key: only the newest owner's write becomes durable.
        self.db.delete(b"own").await.map_err(self.error("write to"))?;
        self.flush().await
    }

    async fn trouble(&self) -> Option<String> {
        let error = crate::probe::probe(&self.location).await.err()?;
        Some(powersweep_experiments::plain::chain(&error))
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.check_open()?;
        self.flush().await?;
        self.closed.store(true, Ordering::Release);
        self.db.close().await.map_err(self.error("close"))
    }
}

/// A view of the state for commands that do not own it. Writes nothing.
pub struct ReadOnly {
    db: Option<DbReader>,
    data: String,
}

impl std::fmt::Debug for ReadOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOnly").field("data", &self.data).finish_non_exhaustive()
    }
}

impl ReadOnly {
    /// Opens the durable state for reading; an empty one if DATA has none.
    pub async fn open(location: &Location) -> Result<ReadOnly, StoreError> {
        let data = location.to_string();
        if location.private_folder().is_some_and(|folder| !folder.join("state").is_dir()) {
            return Ok(ReadOnly { db: None, data });
        }
        let failed = |error| unavailable("read", location, error);
        let root = location.object_store().map_err(failed)?;
        // A state that is being created has folders, and no file yet.
        if root.list(Some(&state_dir(location))).try_next().await.map_err(failed)?.is_none() {
            return Ok(ReadOnly { db: None, data });
        }
        let options = DbReaderOptions { object_store_max_retries: Some(READER_STORAGE_RETRIES), ..Default::default() };
        let mut tries = 0;
        loop {
            tries += 1;
            let reader = DbReader::builder(state_dir(location), Arc::clone(&root))
                .with_options(options.clone())
                .with_reader_mode(DbReaderMode::FollowLatest);
            match reader.build().await {
                Ok(db) => return Ok(ReadOnly { db: Some(db), data }),
                // The owner may have deleted files after the view had read the manifest.
                Err(error) if tries < READER_TRIES => tracing::debug!(%error, "opening the state again"),
                Err(error) => return Err(from_slate(&data, "read", error)),
            }
        }
    }

    /// See [`Store::load`].
    pub async fn load(&self) -> Result<Loaded, StoreError> {
        let Some(db) = &self.db else { return Ok(Loaded::default()) };
        read_state(db, encoding::load_ranges(), |error| from_slate(&self.data, "read", error)).await
    }

    /// See [`Store::load_of`].
    pub async fn load_of(&self, experiment: &str) -> Result<Loaded, StoreError> {
        let Some(db) = &self.db else { return Ok(Loaded::default()) };
        read_state(db, encoding::ranges_of(experiment)?, |error| from_slate(&self.data, "read", error)).await
    }

    /// See [`Store::rows`].
    pub async fn rows(
        &self,
        experiment: &str,
        table: Table,
        first_seq: u64,
        last_seq: u64,
    ) -> Result<Vec<RowsRecord>, StoreError> {
        let Some(db) = &self.db else { return Ok(Vec::new()) };
        let range = encoding::rows_range(experiment, table, first_seq, last_seq)?;
        read_rows(db, range, |error| from_slate(&self.data, "read", error)).await
    }

    /// Ends the view's background work.
    pub async fn close(self) -> Result<(), StoreError> {
        let Some(db) = &self.db else { return Ok(()) };
        db.close().await.map_err(|error| from_slate(&self.data, "close", error))
    }
}
