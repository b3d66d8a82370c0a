//! Objects beside the state: published parts, uploads and logs. Shared by every store.
//!
//! On a directory, a write by the `object_store` library has a temporary file beside the target while it runs, which
//! readers that list the folder would see. So parts are written in the staging folder first and then hard-linked to
//! their name: a listing shows only complete files. On an object store, one conditional put is enough.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::ready;
use std::ops::Range;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::{Path, PathPart};
use object_store::{
    Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, WriteMultipart,
};
use powersweep_experiments::{Digest, DigestWriter};
use powersweep_results::Table;
use powersweep_results::layout::{is_part, left_name, state_dir};
use powersweep_results::part::read_footer;
use uuid::Uuid;

use super::encoding::check_name;
use super::signer::Signer;
use super::{BoxError, StoreError};

/// Largest object that is read or published in one piece. A part aims at 64 MiB; a row group of very wide rows stays far
/// below this.
pub const MAX_PART_BYTES: u64 = 512 << 20;

/// Age at which a start deletes uploads that no accepted hand-in names: a worker that reconnects after a long absence may
/// still name its upload.
pub const STAGED_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Folder of the state, uploads and logs, below DATA.
pub const PRIVATE_DIR: &str = powersweep_results::layout::STATE_FOLDER;

/// Path below a folder.
fn below(folder: &Path, parts: &[&str]) -> Path {
    folder.parts().chain(parts.iter().copied().map(PathPart::from)).collect()
}

/// The objects of one DATA.
#[derive(Debug, Clone)]
pub struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    /// DATA where it is a directory of this machine.
    pub(super) directory: Option<PathBuf>,
    /// The private folder, below DATA.
    private: Path,
    /// Signs addresses for workers, where DATA is an object store.
    pub(super) signer: Option<Arc<dyn Signer>>,
}

impl Objects {
    /// Objects of an object store whose root is DATA; `directory` is given where that is a local folder.
    pub fn new(store: Arc<dyn ObjectStore>, directory: Option<PathBuf>) -> Objects {
        Objects { store, directory, private: state_dir(), signer: None }
    }

    /// These objects with another private folder.
    pub(super) fn with_private_dir(self, private: Path) -> Objects {
        Objects { private, ..self }
    }

    /// These objects with a signer of addresses.
    #[must_use]
    pub fn with_signer(self, signer: Option<Arc<dyn Signer>>) -> Objects {
        Objects { signer, ..self }
    }

    /// The private folder, below DATA.
    pub(crate) fn private_dir(&self) -> &Path {
        &self.private
    }

    /// The private folder, where DATA is a directory of this machine.
    pub(super) fn private_folder(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|data| data.join(self.private.to_string()))
    }

    /// Path below the private folder.
    pub(super) fn private(&self, parts: &[&str]) -> Path {
        below(&self.private, parts)
    }

    /// The object store, rooted at DATA.
    pub fn object_store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Creates the Parquet object `path` (below DATA) with all its bytes, or fails without a visible object. If the
    /// object exists, that is success only if its footer has `part_id`.
    pub async fn create(&self, path: &Path, bytes: Bytes, part_id: Uuid) -> Result<(), StoreError> {
        check_part(path, bytes.len() as u64)?;
        if self.directory.is_none() {
            return match self.put_new(path, bytes).await {
                Ok(()) => Ok(()),
                Err(ObjectError::AlreadyExists { .. }) => self.check_same_part(path, part_id).await,
                Err(error) => Err(unavailable("create", path, error)),
            };
        }
        let staged = self.private(&["staging", "create", &format!("{}.parquet", part_id.hyphenated())]);
        let payload = PutPayload::from_bytes(bytes);
        self.store.put(&staged, payload).await.map_err(|error| unavailable("write", &staged, error))?;
        let linked = self.link(&staged, path, part_id).await;
        // The linked name keeps the data; a staging file that stays is deleted at the next start.
        if let Err(error) = self.store.delete(&staged).await {
            tracing::debug!(%staged, %error, "staging file not deleted");
        }
        linked
    }

    /// Whether the `tasks` table of an experiment has a part, or had rows that left; whatever the state knows.
    pub async fn has_parts(&self, experiment: &str) -> Result<bool, StoreError> {
        check_name(experiment)?;
        for name in [experiment, &left_name(experiment)] {
            let folder = powersweep_results::layout::tasks_dir(name);
            let parts = self.store.list(Some(&folder)).try_filter(|object| ready(is_part(&folder, &object.location)));
            if pin!(parts).try_next().await.map_err(|error| unavailable("list", &folder, error))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores an upload of an optional table in the staging folder. Invisible to readers.
    pub async fn stage(&self, experiment: &str, table: Table, part_id: Uuid, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.staged_path(experiment, table, part_id)?;
        check_part(&path, bytes.len() as u64)?;
        match self.put_new(&path, bytes.clone()).await {
            Ok(()) => Ok(()),
            Err(ObjectError::AlreadyExists { .. }) => {
                // An upload is repeated when its answer was lost.
                let existing = self.get(&path).await?.ok_or(StoreError::Missing { path: path.to_string() })?;
                if existing == bytes {
                    return Ok(());
                }
                let found = format!("another upload of {} bytes", existing.len());
                Err(StoreError::PartTaken { path: path.to_string(), part_id, found })
            }
            Err(error) => Err(unavailable("upload", &path, error)),
        }
    }

    /// Reads an upload. [`StoreError::Missing`] if there is none.
    pub async fn staged(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<Bytes, StoreError> {
        self.read(&self.staged_path(experiment, table, part_id)?).await
    }

    /// Deletes an upload, if it exists.
    pub async fn discard_staged(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<(), StoreError> {
        self.remove(&self.staged_path(experiment, table, part_id)?).await
    }

    /// Stores a fragment of a split in the staging folder. Invisible to readers.
    pub async fn stage_fragment(&self, split: Uuid, part_id: Uuid, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.fragment_path(split, part_id);
        let payload = PutPayload::from_bytes(bytes);
        self.store.put(&path, payload).await.map(|_| ()).map_err(|error| unavailable("write", &path, error))
    }

    /// Makes a staged fragment visible as the part `path`. Safe to repeat until the fragments are discarded.
    pub async fn show_fragment(&self, split: Uuid, path: &Path, part_id: Uuid) -> Result<(), StoreError> {
        let staged = self.fragment_path(split, part_id);
        if self.directory.is_some() {
            return self.link(&staged, path, part_id).await;
        }
        let bytes = self.read(&staged).await?;
        self.create(path, bytes, part_id).await
    }

    /// Deletes the fragments of a split from the staging folder.
    pub async fn discard_fragments(&self, split: Uuid) -> Result<(), StoreError> {
        let folder = self.private(&["staging", "split", &split.hyphenated().to_string()]);
        for path in self.parts(&folder).await? {
            self.remove(&path).await?;
        }
        if let Some(folder) = self.private_folder() {
            // Not empty if another process writes into it.
            let _ = std::fs::remove_dir(folder.join("staging/split").join(split.hyphenated().to_string()));
        }
        Ok(())
    }

    /// Reads an object. [`StoreError::Missing`] if there is none.
    pub async fn read(&self, path: &Path) -> Result<Bytes, StoreError> {
        self.get(path).await?.ok_or(StoreError::Missing { path: path.to_string() })
    }

    /// Ranges of an object's bytes. [`StoreError::Missing`] if there is no such object.
    pub async fn ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        self.store.get_ranges(path, ranges).await.map_err(|error| match error {
            ObjectError::NotFound { .. } => StoreError::Missing { path: path.to_string() },
            error => unavailable("read", path, error),
        })
    }

    /// Stores a log by content. Returns false if it was stored already. The bytes must have this digest.
    pub async fn put_log(&self, digest: Digest, bytes: Bytes) -> Result<bool, StoreError> {
        let hashed = bytes.clone();
        let found = blocking(move || Digest::of(&hashed)).await;
        if found != digest {
            return Err(StoreError::WrongDigest { expected: digest, found });
        }
        let path = self.log_path(digest);
        match self.put_new(&path, bytes).await {
            Ok(()) => Ok(true),
            Err(ObjectError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(unavailable("store log", &path, error)),
        }
    }

    /// A writer of a log that is not in memory as a whole.
    pub async fn log_writer(&self, digest: Digest) -> Result<LogWriter, StoreError> {
        let path = self.log_path(digest);
        let upload = self.store.put_multipart(&path).await.map_err(|error| unavailable("store log", &path, error))?;
        let writer = WriteMultipart::new_with_chunk_size(upload, LOG_PIECE_BYTES);
        Ok(LogWriter { digest, path, writer, hashed: DigestWriter::default(), bytes: 0 })
    }

    /// The stored logs.
    pub async fn logs(&self) -> Result<Vec<Digest>, StoreError> {
        let folder = self.private(&["logs"]);
        let found = self.store.list(Some(&folder)).try_collect::<Vec<_>>().await;
        let found = found.map_err(|error| unavailable("list", &folder, error))?;
        Ok(found.iter().filter_map(|log| log.location.filename()?.parse().ok()).collect())
    }

    /// Deletes a stored log.
    pub async fn remove_log(&self, digest: Digest) -> Result<(), StoreError> {
        self.remove(&self.log_path(digest)).await
    }

    /// Size of a stored log, if it exists.
    pub async fn log_bytes(&self, digest: Digest) -> Result<Option<u64>, StoreError> {
        self.size(&self.log_path(digest)).await
    }

    /// Bytes `start..end` of a stored log (`end` is cut at its size).
    pub async fn log_range(&self, digest: Digest, start: u64, end: u64) -> Result<Bytes, StoreError> {
        let path = self.log_path(digest);
        let size = self.size(&path).await?.ok_or(StoreError::Missing { path: path.to_string() })?;
        let end = end.min(size);
        if start >= end {
            return Ok(Bytes::new());
        }
        self.store.get_range(&path, start..end).await.map_err(|error| unavailable("read", &path, error))
    }

    /// Deletes files of earlier runs in the staging folder: incomplete parts at once; uploads and fragments that are not
    /// in `open_parts` when older than [`STAGED_MAX_AGE`]. Returns the number of deleted files.
    pub async fn clean_staging(&self, open_parts: &BTreeSet<Uuid>, now: SystemTime) -> Result<u64, StoreError> {
        if let Some(folder) = self.private_folder() {
            // The object store's listing hides the temporary files of interrupted writes.
            let staging = folder.join("staging");
            let open = open_parts.clone();
            return blocking(move || clean_directory(&staging, &open, now, 0))
                .await
                .map_err(|error| unavailable("clean", &self.private(&["staging"]), error));
        }
        let staging = self.private(&["staging"]);
        let found: Vec<_> =
            self.store.list(Some(&staging)).try_collect().await.map_err(|e| unavailable("list", &staging, e))?;
        let mut deleted = 0;
        for object in found {
            let age = now.duration_since(object.last_modified.into()).unwrap_or_default();
            let is_open = names_part(object.location.filename().unwrap_or_default(), open_parts);
            // An open part is made of the copy of an object of the inbox.
            if age > STAGED_MAX_AGE && (!is_open || object.location.prefix_matches(&self.inbox())) {
                self.remove(&object.location).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    pub(super) fn staged_path(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<Path, StoreError> {
        check_name(experiment)?;
        Ok(staged_object(&self.private, experiment, table, part_id))
    }

    /// Folder of the objects that workers send to the object store themselves.
    pub(super) fn inbox(&self) -> Path {
        self.private(&["staging", "inbox"])
    }

    fn fragment_path(&self, split: Uuid, part_id: Uuid) -> Path {
        let name = format!("{}.parquet", part_id.hyphenated());
        self.private(&["staging", "split", &split.hyphenated().to_string(), &name])
    }

    fn log_path(&self, digest: Digest) -> Path {
        self.private(&["logs", &digest.to_string()])
    }

    async fn put_new(&self, path: &Path, bytes: Bytes) -> Result<(), ObjectError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(path, PutPayload::from_bytes(bytes), options).await.map(|_| ())
    }

    async fn link(&self, staged: &Path, path: &Path, part_id: Uuid) -> Result<(), StoreError> {
        match self.store.copy_if_not_exists(staged, path).await {
            Ok(()) => Ok(()),
            Err(ObjectError::AlreadyExists { .. }) => {
                self.check_same_part(path, part_id).await?;
                // The earlier attempt that made the link may have ended before it synced the folder.
                self.sync_folder(path).await
            }
            Err(error) => Err(unavailable("publish", path, error)),
        }
    }

    pub(crate) async fn sync_folder(&self, path: &Path) -> Result<(), StoreError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let mut folder = directory.clone();
        folder.extend(path.parts().map(|part| part.as_ref().to_owned()));
        folder.pop();
        match blocking(move || std::fs::File::open(&folder)?.sync_all()).await {
            // The folder was deleted with its files.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(|error| unavailable("sync the folder of", path, error)),
        }
    }

    async fn check_same_part(&self, path: &Path, part_id: Uuid) -> Result<(), StoreError> {
        let size = self.size(path).await?.ok_or(StoreError::Missing { path: path.to_string() })?;
        check_part(path, size)?;
        let bytes = self.get(path).await?.ok_or(StoreError::Missing { path: path.to_string() })?;
        let found = match read_footer(&bytes) {
            Ok(footer) if footer.part_id == part_id => return Ok(()),
            Ok(footer) => format!("it is part {} of {}", footer.part_id, footer.experiment),
            Err(error) => format!("it is no part: {error}"),
        };
        Err(StoreError::PartTaken { path: path.to_string(), part_id, found })
    }

    async fn get(&self, path: &Path) -> Result<Option<Bytes>, StoreError> {
        let result = match self.store.get(path).await {
            Ok(result) => result.bytes().await,
            Err(error) => Err(error),
        };
        match result {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable("read", path, error)),
        }
    }

    pub(crate) async fn size(&self, path: &Path) -> Result<Option<u64>, StoreError> {
        match self.store.head(path).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable("look up", path, error)),
        }
    }

    pub(crate) async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match self.store.delete(path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable("delete", path, error)),
        }
    }
}

/// Bytes of a log that are sent to storage in one request, and the number of such requests at a time.
const LOG_PIECE_BYTES: usize = 8 << 20;
const LOG_PIECES_AT_ONCE: usize = 2;

/// Writes a log piece by piece. The log is complete or absent: it appears when [`LogWriter::finish`] has compared the
/// digest.
pub struct LogWriter {
    digest: Digest,
    path: Path,
    writer: WriteMultipart,
    hashed: DigestWriter,
    bytes: u64,
}

impl LogWriter {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes. Waits while storage is slower than the sender.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), StoreError> {
        let waited = self.writer.wait_for_capacity(LOG_PIECES_AT_ONCE).await;
        waited.map_err(|error| unavailable("store log", &self.path, error))?;
        self.bytes += piece.len() as u64;
        self.hashed.update(&piece);
        self.writer.put(piece);
        Ok(())
    }

    /// Makes the log visible, and returns its size. The bytes must have the digest.
    pub async fn finish(mut self) -> Result<u64, StoreError> {
        let found = std::mem::take(&mut self.hashed).finish();
        if found != self.digest {
            let expected = self.digest;
            self.abort().await;
            return Err(StoreError::WrongDigest { expected, found });
        }
        let (path, bytes) = (self.path, self.bytes);
        self.writer.finish().await.map(|_| bytes).map_err(|error| unavailable("store log", &path, error))
    }

    /// Gives the log up.
    pub async fn abort(self) {
        if let Err(error) = self.writer.abort().await {
            tracing::debug!(path = %self.path, %error, "an incomplete log is not deleted");
        }
    }
}

/// Deletes old files below `folder`, which is the staging folder (`depth` 0) or one in it.
fn clean_directory(
    folder: &std::path::Path,
    open: &BTreeSet<Uuid>,
    now: SystemTime,
    depth: u32,
) -> std::io::Result<u64> {
    /// Depth of the uploads, which are at staging/upload/EXPERIMENT/TABLE/FILE.
    const MAX_DEPTH: u32 = 4;
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let own = folder.file_name().is_some_and(|name| name == "create") && depth == 1;
    let mut deleted = 0;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            deleted += clean_directory(&entry.path(), open, now, depth + 1)?;
        } else if kind.is_file() {
            let name = entry.file_name();
            let age = now.duration_since(entry.metadata()?.modified()?).unwrap_or_default();
            if own || (age > STAGED_MAX_AGE && !names_part(&name.to_string_lossy(), open)) {
                std::fs::remove_file(entry.path())?;
                deleted += 1;
            }
        }
    }
    Ok(deleted)
}

fn names_part(file_name: &str, parts: &BTreeSet<Uuid>) -> bool {
    file_name.strip_suffix(".parquet").and_then(|id| Uuid::parse_str(id).ok()).is_some_and(|id| parts.contains(&id))
}

/// Path of an upload below DATA, in this private folder. The experiment must have the name of a record: names of records are checked.
pub(crate) fn staged_object(private: &Path, experiment: &str, table: Table, part_id: Uuid) -> Path {
    below(private, &["staging", "upload", experiment, table.name(), &format!("{}.parquet", part_id.hyphenated())])
}

pub(super) fn check_part(path: &Path, bytes: u64) -> Result<(), StoreError> {
    if bytes > MAX_PART_BYTES {
        let reason = format!("{path} has {bytes} bytes, more than {MAX_PART_BYTES}");
        return Err(StoreError::Invalid { reason });
    }
    Ok(())
}

pub(crate) fn unavailable(op: &'static str, path: &impl Display, error: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { op, path: path.to_string(), source: error.into() }
}

/// Runs blocking work outside the threads of the async runtime, if there is a runtime.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::runtime::Handle::try_current() {
        Ok(handle) => match handle.spawn_blocking(work).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and drops this task, too.
                Err(_) => std::future::pending().await,
            },
        },
        Err(_) => work(),
    }
}
