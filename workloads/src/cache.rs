//! Bytes on disk under their SHA-256.
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::LoadError;
use crate::sha::{Sha256, hex, sha256};

/// Beginning of the names of files that are being written.
const INCOMING: &str = ".incoming-";

/// Files that are being written for longer than this were left by a process that died.
const INCOMING_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A folder of bytes named by their SHA-256, shared by any number of processes.
///
/// An entry is complete or absent: it is written to a temporary file, synced and renamed. An entry whose bytes do not
/// give its name (a damaged disk, a meddling hand) is removed and reported as absent, so that it is fetched again.
/// Nothing is evicted: remove the folder, or any file in it, whenever you like.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Opens a cache folder, creating it if needed, and removes what dead processes left half-written.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Cache, LoadError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|source| LoadError::Cache { path: folder.clone(), source })?;
        let cache = Cache { folder };
        cache.remove_leftovers();
        Ok(cache)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the bytes of a digest are or would be.
    fn path(&self, digest: &Sha256) -> PathBuf {
        self.folder.join(hex(digest))
    }

    /// The bytes of a digest, checked against it; `None` if absent or damaged (then the entry is removed).
    pub fn get(&self, digest: &Sha256) -> Result<Option<Vec<u8>>, LoadError> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LoadError::Cache { path, source }),
        };
        if sha256(&bytes) == *digest {
            return Ok(Some(bytes));
        }
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LoadError::Cache { path, source }),
            _ => Ok(None),
        }
    }

    /// Stores bytes and returns their digest. When it returns, they survive a crash of the machine.
    pub fn put(&self, bytes: &[u8]) -> Result<Sha256, LoadError> {
        let digest = sha256(bytes);
        if self.get(&digest)?.is_none() {
            let path = self.path(&digest);
            self.write(&path, bytes).map_err(|source| LoadError::Cache { path, source })?;
        }
        Ok(digest)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(INCOMING).tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        // The rename itself is durable once the folder is synced.
        File::open(&self.folder)?.sync_all()
    }

    /// Best effort: a leftover that cannot be removed does no harm.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let old = || {
                let modified = entry.metadata().and_then(|m| m.modified()).ok()?;
                SystemTime::now().duration_since(modified).ok().map(|age| age > INCOMING_AGE_MAX)
            };
            if entry.file_name().to_string_lossy().starts_with(INCOMING) && old() == Some(true) {
                fs::remove_file(entry.path()).ok();
            }
        }
    }
}
