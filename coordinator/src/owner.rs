//! Ownership of DATA. The database lets the newer of two writers win, so a second coordinator started by mistake would
//! stop a live farm: therefore ownership is taken before the database is opened, and a live owner is respected.
//!
//! The owner record decides: the owner renews it every five seconds, and a record that has not changed for twenty seconds
//! is stale (eighty on shared file systems, where a process may see an old record). Clocks of two machines are never
//! compared: a process that finds a record watches whether it changes.
//!
//! On a directory there is a file lock, too: the kernel releases it when its holder dies. Its holder owns the data, but a
//! free lock proves the death of an owner only among the processes of one kernel: many shared file systems keep
//! locks on each machine alone. So nobody waits for a record of this machine's boot on a local file system, nor for a
//! process that has provably ended. If all of this fails, the database's fencing still protects the data.

mod record;

pub use record::{OwnerRecord, host};

use crate::store::{CACHE_TIME, Kind, Location};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use powersweep_proto::clocks::now_us;
use std::fs::{File, TryLockError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use uuid::Uuid;

/// How often the owner renews its record.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// A record that has not changed for this time has no live owner: three renewals may fail.
pub const STALE_AFTER: Duration = Duration::from_secs(20);

/// Time after which a record on a shared file system has no live owner: the record that is seen may be an old one.
pub const SHARED_STALE_AFTER: Duration = STALE_AFTER.saturating_add(CACHE_TIME);

/// Time after which an owner of a shared directory reads whether the record is still its own: of several processes that
/// replaced a stale record at the same time, the last one has it.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// Longest time for releasing DATA. A record that stays is that of a crash.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// How often a found record is read while deciding whether it is stale.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Attempts to take the lock: a command that reads the ownership holds the lock for an instant.
const LOCK_TRIES: u32 = 5;
/// Time between these attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Largest owner record that is read.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// Why DATA could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum OwnerError {
    /// DATA has a live owner. The caller can submit to it, wait, or take over.
    #[error(
        "another coordinator owns {data} ({}); submit to it, stop it, or use --take-over",
        owner.as_deref().map_or_else(|| "its address is unknown".to_owned(), OwnerRecord::describe)
    )]
    Held {
        data: String,
        /// The owner, if its record can be read.
        owner: Option<Box<OwnerRecord>>,
    },
    /// The lock or the record could not be read or written. Retryable.
    #[error("cannot take ownership of {data}: {op}")]
    Storage { data: String, op: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
}

/// How ownership was lost. Final: the process stops leasing at once and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The record names another owner.
    TakenOver(Box<OwnerRecord>),
    /// The database has been opened by a newer writer.
    Fenced,
}

/// Ownership of DATA. Dropping it without [`Ownership::release`] leaves the record, as a crash does.
#[derive(Debug)]
pub struct Ownership {
    uuid: Uuid,
    lost: watch::Sender<Option<Lost>>,
    endpoint: watch::Sender<String>,
    stop: mpsc::Sender<()>,
    renewing: tokio::task::JoinHandle<()>,
}

/// The owner record and its version, as last read or written.
struct Seen {
    /// `None` if there is no record, or one that this version cannot read.
    record: Option<OwnerRecord>,
    version: UpdateVersion,
}

impl Seen {
    fn is_absent(&self) -> bool {
        self.record.is_none() && self.version.e_tag.is_none()
    }
}

/// Access to the owner record and the lock of DATA.
struct RecordAccess {
    data: String,
    store: Arc<dyn ObjectStore>,
    record: Path,
    kind: Kind,
}

fn record_path(location: &Location) -> Path {
    location.private_dir().join("owner.json")
}

impl Ownership {
    /// Takes DATA, which a probe has found usable. `endpoint` is this process's address, "" if not yet known.
    /// `take_over` overrides a live owner.
    ///
    /// # Errors
    /// [`OwnerError::Held`] for a live owner: at once if its lock is seen, else once its record changes, which takes at
    /// most [`STALE_AFTER`] ([`SHARED_STALE_AFTER`] on a shared file system).
    pub async fn take(location: &Location, endpoint: &str, take_over: bool) -> Result<Ownership, OwnerError> {
        let data = location.to_string();
        let root = location.object_store().map_err(|e| storage(&data, "open the storage", e))?;
        Ownership::take_on(location, root, endpoint, take_over).await
    }

    /// [`Ownership::take`] over a given object store rooted at DATA.
    pub async fn take_on(
        location: &Location,
        store: Arc<dyn ObjectStore>,
        endpoint: &str,
        take_over: bool,
    ) -> Result<Ownership, OwnerError> {
        let (data, record) = (location.to_string(), record_path(location));
        let access = RecordAccess { data, store, record, kind: location.kind() };
        let lock = match location.private_folder() {
            Some(folder) => access.lock(&folder).await?,
            None => LockState::None,
        };
        let found = access.read().await?;
        let mut watched = false;
        match &lock {
            LockState::Busy(_) if !take_over => return Err(access.held(found.record)),
            LockState::Busy(file) => access.queue_for(file)?,
            _ if take_over => {}
            LockState::Mine(_) if access.lock_proves_death(&found) => {}
            LockState::Mine(_) | LockState::None => watched = access.wait_until_stale(&found).await?,
        }
        let record = OwnerRecord::of_this_process(endpoint);
        let uuid = record.uuid;
        let replaced = found.record.as_ref().map(|record| record.uuid);
        let version = match access.write(&record, &found).await {
            Ok(version) => version,
            Err(ObjectError::Precondition { .. } | ObjectError::AlreadyExists { .. }) => {
                // Another process wrote first, or the answer to this write was lost and the write was repeated.
                let found = access.read().await?;
                match found.record {
                    Some(record) if record.uuid == uuid => found.version,
                    other => return Err(access.held(other)),
                }
            }
            Err(error) => return Err(storage(&access.data, "write the owner record", error)),
        };
        if watched && access.kind != Kind::Objects {
            access.settle(uuid).await?;
        }
        let (lost, _) = watch::channel(None);
        let (endpoint, endpoints) = watch::channel(endpoint.to_owned());
        let (stop, stopped) = mpsc::channel(1);
        let renewer = Renewer { access, record, replaced, version, lock, lost: lost.clone(), endpoints, stopped };
        Ok(Ownership { uuid, lost, endpoint, stop, renewing: tokio::spawn(renewer.run()) })
    }

    /// Id of this opening.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Writes this owner's address into the record at once.
    pub fn set_endpoint(&self, endpoint: &str) {
        self.endpoint.send_replace(endpoint.to_owned());
    }

    /// Turns `Some` when ownership is lost.
    pub fn lost(&self) -> watch::Receiver<Option<Lost>> {
        self.lost.subscribe()
    }

    /// Reports fencing by the database as a loss: called by [`crate::store::open`].
    pub(crate) fn watch_fence(&self, mut fenced: watch::Receiver<bool>) {
        let lost = self.lost.clone();
        tokio::spawn(async move {
            if fenced.wait_for(|fenced| *fenced).await.is_ok() {
                lost.send_if_modified(|now| now.is_none() && now.replace(Lost::Fenced).is_none());
            }
        });
    }

    /// Releases DATA: deletes the record, if it is still this owner's, then releases the lock.
    pub async fn release(self) {
        // Fails if the renewer has ended, which it does after a loss of the ownership.
        let _ = self.stop.send(()).await;
        match tokio::time::timeout(RELEASE_TIME, self.renewing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "owner record not deleted"),
            Err(_) => tracing::warn!("owner record not deleted: storage does not answer"),
        }
    }
}

/// The lock of a directory.
#[derive(Debug)]
enum LockState {
    /// Held until dropped.
    Mine(#[expect(dead_code, reason = "holds the lock while it lives")] File),
    /// Held by another process.
    Busy(File),
    /// DATA has no locks, or none that work.
    None,
}

impl RecordAccess {
    async fn lock(&self, private: &std::path::Path) -> Result<LockState, OwnerError> {
        let fail = |error| storage(&self.data, "lock .powersweep/owner.lock", error);
        let file = open_lock(private).map_err(fail)?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => return Ok(LockState::Mine(file)),
                Err(TryLockError::WouldBlock) if attempt >= LOCK_TRIES => return Ok(LockState::Busy(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::Error(error))
                    if error.kind() == std::io::ErrorKind::Unsupported || self.kind == Kind::Shared =>
                {
                    tracing::warn!(
                        %error, data = self.data, "the file system has no working locks: the owner record alone decides"
                    );
                    return Ok(LockState::None);
                }
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
        }
        unreachable!("the loop ends by returning")
    }

    /// After a take-over: waits for the lock, so that this owner, and no third process, gets it when the older one ends.
    fn queue_for(&self, lock: &File) -> Result<(), OwnerError> {
        let fail = |error: std::io::Error| storage(&self.data, "wait for .powersweep/owner.lock", error);
        // A lock belongs to all handles of one opening: the renewer's handle keeps the lock that this handle waits for.
        let lock = lock.try_clone().map_err(fail)?;
        // A thread of its own: the older owner may stay for long, and no runtime may wait for it.
        let waiting = std::thread::Builder::new().name("owner-lock".to_owned()).spawn(move || {
            if let Err(error) = lock.lock() {
                tracing::warn!(%error, "cannot take the lock of the owner that was overridden");
            }
        });
        waiting.map(|_| ()).map_err(fail)
    }

    fn held(&self, owner: Option<OwnerRecord>) -> OwnerError {
        OwnerError::Held { data: self.data.clone(), owner: owner.map(Box::new) }
    }

    async fn read(&self) -> Result<Seen, OwnerError> {
        read_record(&self.store, &self.record)
            .await
            .map_err(|error| storage(&self.data, "read the owner record", error))
    }

    /// Whether the lock that this process got proves that the recorded owner has ended: the same kernel kept its lock.
    fn lock_proves_death(&self, found: &Seen) -> bool {
        self.kind == Kind::Local && found.record.as_ref().is_some_and(OwnerRecord::is_of_this_boot)
    }

    fn stale_after(&self) -> Duration {
        if self.kind == Kind::Shared { SHARED_STALE_AFTER } else { STALE_AFTER }
    }

    /// Returns when the record has not changed for the stale time, or does not exist. True if it was watched.
    async fn wait_until_stale(&self, found: &Seen) -> Result<bool, OwnerError> {
        let started = Instant::now();
        if found.is_absent() {
            return Ok(false);
        }
        let owner = found.record.as_ref();
        if owner.is_some_and(OwnerRecord::has_provably_ended) {
            tracing::info!(data = self.data, "the owner's process has ended without releasing the data");
            return Ok(false);
        }
        let stale_after = self.stale_after();
        // A warning, so that the user sees the reason for the wait.
        tracing::warn!(
            "waiting up to {} s to see whether the owner of {} lives ({}); --take-over does not wait",
            stale_after.as_secs(),
            self.data,
            owner.map_or_else(|| "its record cannot be read".to_owned(), OwnerRecord::describe)
        );
        while started.elapsed() < stale_after {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let now = self.read().await?;
            if now.is_absent() {
                return Ok(true);
            }
            if now.version.e_tag != found.version.e_tag || now.record != found.record {
                return Err(self.held(now.record));
            }
        }
        Ok(true)
    }

    /// A directory has no conditional update, so another process may have replaced the stale record, too: the last one
    /// has it.
    async fn settle(&self, uuid: Uuid) -> Result<(), OwnerError> {
        tokio::time::sleep(SETTLE_TIME).await;
        match self.read().await?.record {
            Some(record) if record.uuid == uuid => Ok(()),
            other => Err(self.held(other)),
        }
    }

    /// Replaces the record, if it is still the one that was seen. On a directory that condition holds for an absent record
    /// only.
    async fn write(&self, record: &OwnerRecord, seen: &Seen) -> Result<UpdateVersion, ObjectError> {
        let bytes = Bytes::from(serde_json::to_vec(record).expect("a record of texts and numbers becomes JSON"));
        let mode = match (seen.is_absent(), self.kind) {
            (true, _) => PutMode::Create,
            (false, Kind::Objects) => PutMode::Update(seen.version.clone()),
            (false, Kind::Local | Kind::Shared) => PutMode::Overwrite,
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let result = self.store.put_opts(&self.record, PutPayload::from_bytes(bytes), options).await?;
        Ok(result.into())
    }
}

async fn read_record(store: &dyn ObjectStore, path: &Path) -> Result<Seen, ObjectError> {
    let result = match store.get(path).await {
        Ok(result) => result,
        Err(ObjectError::NotFound { .. }) => {
            return Ok(Seen { record: None, version: UpdateVersion { e_tag: None, version: None } });
        }
        Err(error) => return Err(error),
    };
    let version = UpdateVersion { e_tag: result.meta.e_tag.clone(), version: result.meta.version.clone() };
    if result.meta.size > MAX_RECORD_BYTES {
        return Ok(Seen { record: None, version });
    }
    // A record that cannot be decoded (a torn write, a later version) still has a version to watch and replace.
    let record = serde_json::from_slice(&result.bytes().await?).ok();
    Ok(Seen { record, version })
}

fn open_lock(folder: &std::path::Path) -> std::io::Result<File> {
    std::fs::create_dir_all(folder)?;
    File::options().read(true).write(true).create(true).truncate(false).open(folder.join("owner.lock"))
}

fn storage(data: &str, op: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OwnerError {
    OwnerError::Storage { data: data.to_owned(), op, source: source.into() }
}

/// Renews the record until it is stopped or the ownership is lost.
struct Renewer {
    access: RecordAccess,
    record: OwnerRecord,
    /// The owner whose record this one replaced.
    replaced: Option<Uuid>,
    version: UpdateVersion,
    #[expect(dead_code, reason = "holds the lock while it lives")]
    lock: LockState,
    lost: watch::Sender<Option<Lost>>,
    endpoints: watch::Receiver<String>,
    stopped: mpsc::Receiver<()>,
}

impl Renewer {
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(RENEW_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            tokio::select! {
                stop = self.stopped.recv() => {
                    if stop.is_some() {
                        self.delete_record().await;
                    }
                    return;
                }
                _ = ticks.tick() => {}
                changed = self.endpoints.changed() => if changed.is_err() { return },
            }
            self.record.endpoint = self.endpoints.borrow_and_update().clone();
            if let Err(error) = self.renew().await {
                // After the stale time another process may take the ownership; the database's fencing then decides.
                tracing::warn!(%error, data = self.access.data, "owner record not renewed");
            }
            if self.lost.borrow().is_some() {
                return;
            }
        }
    }

    async fn renew(&mut self) -> Result<(), ObjectError> {
        self.record.renewed_us = now_us();
        let seen = if self.access.kind == Kind::Objects {
            Seen { record: Some(self.record.clone()), version: self.version.clone() }
        } else {
            let seen = read_record(&self.access.store, &self.access.record).await?;
            if self.is_lost_to(seen.record.as_ref()) {
                return Ok(());
            }
            seen
        };
        match self.access.write(&self.record, &seen).await {
            Ok(version) => self.version = version,
            Err(
                ObjectError::Precondition { .. } | ObjectError::NotFound { .. } | ObjectError::AlreadyExists { .. },
            ) => {
                // Another owner wrote the record, or an earlier renewal whose answer was lost.
                let seen = read_record(&self.access.store, &self.access.record).await?;
                if !self.is_lost_to(seen.record.as_ref()) {
                    self.version = self.access.write(&self.record, &seen).await?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether the record names another owner. Not the one that was replaced: on a directory, a renewal that began before
    /// can arrive late, if that process stood still. The next renewal replaces it.
    fn is_lost_to(&self, found: Option<&OwnerRecord>) -> bool {
        let is_other = |found: &&OwnerRecord| found.uuid != self.record.uuid && Some(found.uuid) != self.replaced;
        let Some(other) = found.filter(is_other) else { return false };
        let other = Lost::TakenOver(Box::new(other.clone()));
        self.lost.send_if_modified(|now| now.is_none() && now.replace(other).is_none());
        true
    }

    async fn delete_record(self) {
        let RecordAccess { store, record, .. } = &self.access;
        match read_record(store, record).await {
            Ok(Seen { record: Some(found), .. }) if found.uuid == self.record.uuid => {
                if let Err(error) = store.delete(record).await {
                    tracing::warn!(%error, "owner record not deleted");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "owner record not read"),
        }
    }
}

/// The owner of DATA, as a command sees it without disturbing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its record, if it can be read.
    pub record: Option<OwnerRecord>,
    /// Whether it lives, as far as a lock or the system's processes prove it. `None`: ask its endpoint.
    pub alive: Option<bool>,
}

/// Reads who owns DATA. `None`: there was no owner since the last clean shutdown.
pub async fn look(location: &Location) -> Result<Option<Owner>, OwnerError> {
    let data = location.to_string();
    let mut locked = None;
    if let Some(folder) = location.private_folder() {
        let lock = folder.join("owner.lock");
        let file = match File::open(lock) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(storage(&data, "open .powersweep/owner.lock", error)),
        };
        locked = match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        };
    }
    let store = location.object_store().map_err(|e| storage(&data, "open the storage", e))?;
    let seen = read_record(&store, &record_path(location))
        .await
        .map_err(|error| storage(&data, "read the owner record", error))?;
    let is_local = location.kind() == Kind::Local;
    let has_ended = |record: &OwnerRecord| {
        (locked == Some(false) && is_local && record.is_of_this_boot()) || record.has_provably_ended()
    };
    let alive = match (&seen.record, locked) {
        (_, Some(true)) => Some(true),
        (None, _) => return Ok(None),
        (Some(record), _) => has_ended(record).then_some(false),
    };
    Ok(Some(Owner { record: seen.record, alive }))
}
