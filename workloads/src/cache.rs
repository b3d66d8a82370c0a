//! Bytes on disk under their SHA-256.
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::LoadError;
use crate::sha::{Sha256, hex, parse_hex, sha256};

/// Beginning of the names of files that are being written.
const INCOMING: &str = ".incoming-";

/// Files that are being written for longer than this were left by a process that died.
const INCOMING_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A folder of bytes named by their SHA-256, shared by any number of processes.
///
/// An entry is complete or absent: it is written to a temporary file, synced and renamed. An entry whose bytes do not
/// give its name (a damaged disk, a meddling hand) is removed and reported as absent, so that it is fetched again.
/// Remove the folder, or any file in it, whenever you like.
///
/// With a limit, storing an entry deletes those that were not used for longest until all others fit. When an entry was
/// used is its file's modification time, which every `get` sets, so that all processes agree. An entry that somebody
/// reads is locked and stays. A process that is looking for room deletes no more than it must even while others do the
/// same: an entry that is gone when it comes to it counts as deleted.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    limit_bytes: Option<u64>,
}

impl Cache {
    /// Opens a cache folder, creating it if needed, and removes what dead processes left half-written.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Cache, LoadError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|source| LoadError::Cache { path: folder.clone(), source })?;
        let cache = Cache { folder, limit_bytes: None };
        cache.remove_leftovers();
        Ok(cache)
    }

    /// The same with a limit of what all entries may take (bytes). An entry beyond the whole limit is not stored.
    pub fn with_limit(self, limit_bytes: Option<u64>) -> Cache {
        Cache { limit_bytes, ..self }
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
        let bytes = match read_used(&path) {
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
        if self.limit_bytes.is_none_or(|limit| bytes.len() as u64 <= limit) && self.get(&digest)?.is_none() {
            let path = self.path(&digest);
            // Before it is written: a full disk may have room afterwards.
            self.make_room(bytes.len() as u64);
            self.write(&path, bytes).map_err(|source| LoadError::Cache { path, source })?;
        }
        Ok(digest)
    }

    /// Deletes what was not used for longest until `more` bytes fit. Best effort: what cannot be deleted stays.
    fn make_room(&self, more: u64) {
        let Some(limit) = self.limit_bytes else { return };
        let mut entries = self.entries();
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        for entry in entries {
            if total.saturating_add(more) <= limit {
                return;
            }
            if delete_unused(&entry.path) {
                total -= entry.bytes;
            }
        }
    }

    /// The complete entries.
    fn entries(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let entry = |file: fs::DirEntry| {
            let name = file.file_name();
            // Nothing else that lies there is ours to delete.
            parse_hex(name.to_str()?)?;
            let facts = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Entry { path: file.path(), bytes: facts.len(), used: facts.modified().ok()? })
        };
        files.flatten().filter_map(entry).collect()
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

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Reads an entry, locked against deletion, and notes that it was used.
fn read_used(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    // Where there are no locks, an open file can still be read to its end after its name is gone.
    file.lock_shared().ok();
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    // A folder that cannot be written to is not cleaned up by this process either.
    file.set_modified(SystemTime::now()).ok();
    Ok(bytes)
}

/// Deletes an entry that nobody reads; true if it is gone.
fn delete_unused(path: &Path) -> bool {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => false,
            // Locked, or no locks here.
            _ => fs::remove_file(path).map_or_else(|error| gone(&error), |()| true),
        },
        Err(error) => gone(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8) -> Vec<u8> {
        vec![number; 100]
    }

    fn used_at(cache: &Cache, number: u8, seconds: u64) {
        let file = File::open(cache.path(&sha256(&entry(number)))).expect("it is there");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("it is ours");
    }

    fn there(cache: &Cache) -> Vec<u8> {
        (0..9).filter(|number| cache.path(&sha256(&entry(*number))).exists()).collect()
    }

    #[test]
    fn beyond_its_limit_what_was_not_used_for_longest_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("notes.txt"), [0; 1000]).expect("it is writable");
        let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(350));
        for number in 0..3 {
            cache.put(&entry(number)).expect("it is stored");
            used_at(&cache, number, 100 + u64::from(number));
        }
        assert_eq!(cache.get(&sha256(&entry(0))).expect("it is read"), Some(entry(0)), "used just now");
        cache.put(&entry(3)).expect("it is stored");
        assert_eq!(there(&cache), [0, 2, 3]);
        assert!(folder.path().join("notes.txt").exists(), "only entries are deleted");
        cache.put(&[7; 351]).expect("it is fine");
        assert_eq!(there(&cache), [0, 2, 3], "what cannot fit deletes nothing");
    }

    #[test]
    fn an_entry_in_use_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(200));
        for number in 0..2 {
            cache.put(&entry(number)).expect("it is stored");
            used_at(&cache, number, 100 + u64::from(number));
        }
        let reader = File::open(cache.path(&sha256(&entry(0)))).expect("it is there");
        reader.lock_shared().expect("nobody else has it");
        cache.put(&entry(2)).expect("it is stored");
        assert_eq!(there(&cache), [0, 2]);
        drop(reader);
        cache.put(&entry(3)).expect("it is stored");
        assert_eq!(there(&cache), [2, 3]);
    }

    #[test]
    fn many_processes_share_one_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for worker in 0..4_u8 {
                let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(500));
                scope.spawn(move || {
                    for round in 0..100_u8 {
                        let bytes = entry(round.wrapping_mul(7 + worker) % 9);
                        let digest = cache.put(&bytes).expect("it is stored");
                        let got = cache.get(&digest).expect("it is read");
                        assert!(got.is_none_or(|got| got == bytes));
                    }
                });
            }
        });
        let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(500));
        cache.put(&[1; 10]).expect("it is stored");
        assert!(cache.entries().iter().map(|entry| entry.bytes).sum::<u64>() <= 500);
    }
}
