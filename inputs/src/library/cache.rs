//! Files on disk under their SHA-256.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use powersweep_experiments::Digest;
use rustix::fs::OFlags;

use crate::library::LoadError;

/// Prefix of temporary files.
const INCOMING: &str = ".incoming-";

/// A temporary file older than this was left by a process that died.
const INCOMING_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A folder of files named by their SHA-256, shared by any number of processes.
///
/// An entry is complete or absent: it is written to a temporary file, synced and renamed. An entry whose bytes do not
/// match its name (a damaged disk, a manual edit) is removed and reported as absent, so that it is fetched again. The
/// folder, or any file in it, may be removed at any time.
///
/// With a limit, storing an entry first deletes the least recently used ones until the new one fits. The modification
/// time of a file says when it was used last; every `get` sets it, so that all processes agree. An entry that a process
/// is reading is locked and stays. Several processes may evict at the same time: an entry that another process has
/// deleted counts as deleted, so that no process deletes more than it needs.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    limit_bytes: Option<u64>,
}

impl Cache {
    /// Opens a cache folder, creating it if needed, and removes temporary files that dead processes left.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Cache, LoadError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|source| LoadError::Cache { path: folder.clone(), source })?;
        let cache = Cache { folder, limit_bytes: None };
        cache.remove_temporary_files();
        Ok(cache)
    }

    /// Limits the bytes of all entries together. A larger entry is not stored.
    pub fn with_limit(self, limit_bytes: Option<u64>) -> Cache {
        Cache { limit_bytes, ..self }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a digest, whether it exists or not.
    fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// The bytes of a digest, checked against it; `None` if absent or damaged (then the entry is removed).
    pub fn get(&self, digest: Digest) -> Result<Option<Vec<u8>>, LoadError> {
        let path = self.path(digest);
        match read_used(&path) {
            Ok(bytes) if bytes.as_ref().is_some_and(|bytes| Digest::of(bytes) == digest) => return Ok(bytes),
            // It is damaged.
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LoadError::Cache { path, source }),
        }
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LoadError::Cache { path, source }),
            _ => Ok(None),
        }
    }

    /// Stores bytes and returns their digest. When it returns, they survive a crash of the machine.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, LoadError> {
        let digest = Digest::of(bytes);
        if self.limit_bytes.is_none_or(|limit| bytes.len() as u64 <= limit) && self.get(digest)?.is_none() {
            let path = self.path(digest);
            // Evict before writing: a full disk may have room afterwards.
            self.make_room(bytes.len() as u64);
            self.write(&path, bytes).map_err(|source| LoadError::Cache { path, source })?;
        }
        Ok(digest)
    }

    /// Deletes the least recently used entries until `more` bytes fit. Best effort: an entry that cannot be deleted
    /// stays.
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
            // Other files in the folder are not the cache's to delete.
            name.to_str()?.parse::<Digest>().ok()?;
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

    /// Best effort: a temporary file that cannot be removed does no harm.
    fn remove_temporary_files(&self) {
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

/// Opens an entry, without waiting for the other end of a pipe that somebody has put in its place.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads an entry under a lock against deletion, and sets the time of its last use; `None` if it is no regular file.
fn read_used(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    // On file systems without locks, an open file can still be read to its end after it was deleted.
    file.lock_shared().ok();
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    // In a read-only folder this fails. This process then evicts nothing there either.
    file.set_modified(SystemTime::now()).ok();
    Ok(Some(bytes))
}

/// Deletes an entry unless a process is reading it; true if the file no longer exists.
fn delete_unused(path: &Path) -> bool {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match open(path) {
        Ok(file) => match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => false,
            // This process has the lock, or the file system has no locks.
            _ => fs::remove_file(path).map_or_else(|error| is_missing(&error), |()| true),
        },
        Err(error) => is_missing(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn entry(number: u8) -> Vec<u8> {
        vec![number; 100]
    }

    fn used_at(cache: &Cache, number: u8, seconds: u64) {
        let file = File::open(cache.path(Digest::of(&entry(number)))).expect("it is there");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("it is ours");
    }

    fn stored(cache: &Cache) -> Vec<u8> {
        (0..9).filter(|number| cache.path(Digest::of(&entry(*number))).exists()).collect()
    }

    #[test]
    fn a_pipe_in_the_place_of_an_entry_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(folder.path()).expect("it opens");
        let digest = Digest::of(&entry(1));
        let made = Command::new("mkfifo").arg(cache.path(digest)).status();
        assert!(made.expect("mkfifo is there").success());
        assert_eq!(cache.get(digest).expect("it does not wait"), None);
        cache.put(&entry(1)).expect("stored");
        assert_eq!(cache.get(digest).expect("read"), Some(entry(1)));
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("notes.txt"), [0; 1000]).expect("it is writable");
        let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(350));
        for number in 0..3 {
            cache.put(&entry(number)).expect("it is stored");
            used_at(&cache, number, 100 + u64::from(number));
        }
        assert_eq!(cache.get(Digest::of(&entry(0))).expect("it is read"), Some(entry(0)), "used just now");
        cache.put(&entry(3)).expect("it is stored");
        assert_eq!(stored(&cache), [0, 2, 3]);
        assert!(folder.path().join("notes.txt").exists(), "only entries are deleted");
        cache.put(&[7; 351]).expect("it is fine");
        assert_eq!(stored(&cache), [0, 2, 3], "an entry beyond the limit evicts nothing");
    }

    #[test]
    fn an_entry_that_is_being_read_is_not_evicted() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(folder.path()).expect("it opens").with_limit(Some(200));
        for number in 0..2 {
            cache.put(&entry(number)).expect("it is stored");
            used_at(&cache, number, 100 + u64::from(number));
        }
        let reader = File::open(cache.path(Digest::of(&entry(0)))).expect("it is there");
        reader.lock_shared().expect("no other lock is held");
        cache.put(&entry(2)).expect("it is stored");
        assert_eq!(stored(&cache), [0, 2]);
        drop(reader);
        cache.put(&entry(3)).expect("it is stored");
        assert_eq!(stored(&cache), [2, 3]);
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
                        let got = cache.get(digest).expect("it is read");
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
