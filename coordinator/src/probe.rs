//! Probes DATA before the database is opened, which retries on a read-only or full disk for ever, without a message.
//!
//! A probe writes, syncs, creates the same name twice and deletes, within five seconds in all. The second creation must
//! fail: publishing without doubled rows depends on that. An object store must also refuse to update an object that has
//! changed, and the clock of a shared file system must be near this machine's. Only DATA's own folders remain.

use crate::store::{
    Credentials, Kind, Location, MAX_CLOCK_DIFFERENCE, PRIVATE_DIR, blocking, credentials, credentials_hint,
};
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Longest time for the whole probe: a store that takes longer for five small operations is too slow for commits.
pub const PROBE_TIME: Duration = Duration::from_secs(5);

/// Bytes written to an object store.
const PROBE_BYTES: usize = 4096;

/// Bytes written to a directory: those of opening and the first commits, so that a nearly full disk is found.
const DIRECTORY_PROBE_BYTES: usize = 1 << 20;

/// Why DATA cannot be used. Final until the cause is removed, except for [`ProbeError::Slow`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum ProbeError {
    /// DATA or one of its parents is a file.
    #[error("{path} is a file, not a directory; choose another place with --data")]
    NotADirectory { path: PathBuf },
    /// The user has no permission to write.
    #[error("no permission to write in {path}; change its owner or mode, or choose another place with --data")]
    NotPermitted { path: PathBuf, source: io::Error },
    /// The file system is mounted read-only.
    #[error("{path} is on a read-only file system; choose another place with --data")]
    ReadOnly { path: PathBuf },
    /// No space or quota left.
    #[error("no space left for {path}; free some, or choose another place with --data")]
    Full { path: PathBuf, source: io::Error },
    /// Any other failure of the file system.
    #[error("cannot write in {path}")]
    Io { path: PathBuf, source: io::Error },
    /// The file system has no hard links, by which parts are published without replacing others.
    #[error("the file system of {path} has no hard links, which publishing results needs; choose another place")]
    NoHardLinks { path: PathBuf, source: io::Error },
    /// Creating a name twice succeeded: two coordinators could overwrite each other.
    #[error("{data} lets two writers create the same object: such storage would lose results")]
    NoCreateOnly { data: String },
    /// The object store does not refuse an update of an object that has changed, or refuses all.
    #[error(
        "{data} has no conditional updates (a PUT with If-Match: {found}), on which the ownership of the data depends: use \
         a store that has them, or a directory"
    )]
    NoConditionalUpdate {
        data: String,
        /// The store's answer.
        found: String,
    },
    /// The server's clock differs too much: the age of a file is its time by that clock, compared with this machine's.
    #[error(
        "the clock of the file system of {path} is {} s {} this machine's clock, and at most {} s are allowed, because \
         files of the state are deleted by their age: set both clocks (NTP), or choose another place with --data",
        difference.as_secs(), if *ahead { "ahead of" } else { "behind" }, MAX_CLOCK_DIFFERENCE.as_secs()
    )]
    Clock { path: PathBuf, difference: Duration, ahead: bool },
    /// The object store refuses the credentials, or there are none.
    #[error("{data} refuses access; {hint}")]
    Credentials {
        data: String,
        /// The variables to set.
        hint: String,
        source: Box<ObjectError>,
    },
    /// The bucket does not exist.
    #[error("{data}: no such bucket or container")]
    NoBucket { data: String, source: Box<ObjectError> },
    /// Any other failure of the object store.
    #[error("cannot use {data}")]
    Remote { data: String, source: Box<ObjectError> },
    /// The probe did not end in time. Retryable.
    #[error("{data} did not answer within {} s{hint}", PROBE_TIME.as_secs())]
    Slow {
        data: String,
        /// A possible reason, or empty.
        hint: String,
    },
}

/// Probes DATA; a missing directory is made, with its parents.
pub async fn probe(location: &Location) -> Result<(), ProbeError> {
    let work = async {
        match (location.path(), location.private_folder()) {
            (Some(path), Some(private)) => {
                let (path, location) = (path.to_owned(), location.clone());
                blocking(move || probe_directory(&path, &private, location.kind() == Kind::Shared)).await
            }
            _ => probe_remote(location).await,
        }
    };
    let slow = |_| ProbeError::Slow { data: location.to_string(), hint: slow_hint(location) };
    tokio::time::timeout(PROBE_TIME, work).await.map_err(slow)?
}

fn probe_directory(data: &Path, private: &Path, shared: bool) -> Result<(), ProbeError> {
    std::fs::create_dir_all(private).map_err(|error| classify(data, error))?;
    let name = private.join(format!("probe-{}", Uuid::new_v4().simple()));
    let link = name.with_extension("link");
    let result = probe_file(data, &name, &link, shared);
    for file in [&link, &name] {
        match std::fs::remove_file(file) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // The probe's own error says more.
            Err(_) if result.is_err() => {}
            Err(error) => return Err(classify(data, error)),
        }
    }
    result
}

fn probe_file(data: &Path, name: &Path, link: &Path, shared: bool) -> Result<(), ProbeError> {
    let fail = |error| classify(data, error);
    let before = SystemTime::now();
    let mut file = std::fs::File::create_new(name).map_err(fail)?;
    file.write_all(&vec![0; DIRECTORY_PROBE_BYTES]).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    drop(file);
    if shared {
        let written = std::fs::metadata(name).and_then(|found| found.modified()).map_err(fail)?;
        check_clock(data, written, before, SystemTime::now())?;
    }
    match std::fs::File::create_new(name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(fail(error)),
        Ok(_) => return Err(ProbeError::NoCreateOnly { data: data.display().to_string() }),
    }
    match std::fs::hard_link(name, link) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            return Err(ProbeError::NoHardLinks { path: data.to_owned(), source: error });
        }
        Err(error) => return Err(fail(error)),
    }
    match std::fs::hard_link(name, link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(fail(error)),
        Ok(()) => Err(ProbeError::NoCreateOnly { data: data.display().to_string() }),
    }
}

/// Fails if a file that was written between two times of this machine's clock has a time far from both.
fn check_clock(data: &Path, written: SystemTime, before: SystemTime, after: SystemTime) -> Result<(), ProbeError> {
    let behind = before.duration_since(written).unwrap_or_default();
    let ahead = written.duration_since(after).unwrap_or_default();
    let difference = behind.max(ahead);
    match difference > MAX_CLOCK_DIFFERENCE {
        true => Err(ProbeError::Clock { path: data.to_owned(), difference, ahead: ahead > behind }),
        false => Ok(()),
    }
}

/// The probe's error for a file system's error.
fn classify(data: &Path, source: io::Error) -> ProbeError {
    let path = data.to_owned();
    match source.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            ProbeError::NotADirectory { path: first_file(data).unwrap_or(path) }
        }
        ErrorKind::PermissionDenied => ProbeError::NotPermitted { path, source },
        ErrorKind::ReadOnlyFilesystem => ProbeError::ReadOnly { path },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ProbeError::Full { path, source },
        _ => ProbeError::Io { path, source },
    }
}

/// The file among a path, its private folder and its parents.
fn first_file(data: &Path) -> Option<PathBuf> {
    let private = data.join(PRIVATE_DIR);
    private.ancestors().find(|path| path.is_file()).map(Into::into)
}

async fn probe_remote(location: &Location) -> Result<(), ProbeError> {
    let fail = |error| classify_remote(location, error);
    let store = location.object_store().map_err(fail)?;
    let path = location.private_dir().join(format!("probe-{}", Uuid::new_v4().simple()));
    match put(&store, &path, &[0; PROBE_BYTES], PutMode::Create).await {
        // The name is unique, so this write exists already: its answer was lost, and it was repeated.
        Ok(()) | Err(ObjectError::AlreadyExists { .. }) => {}
        Err(error) => return Err(fail(error)),
    }
    let conditions = probe_conditions(location, &store, &path).await;
    let deleted = store.delete(&path).await;
    conditions.and(deleted.map_err(fail))
}

/// Whether the store refuses to create an object again, and to update an object that has changed.
async fn probe_conditions(location: &Location, store: &dyn ObjectStore, path: &ObjectPath) -> Result<(), ProbeError> {
    let fail = |error| classify_remote(location, error);
    match put(store, path, &[0; PROBE_BYTES], PutMode::Create).await {
        Err(ObjectError::AlreadyExists { .. }) => {}
        Err(error) => return Err(fail(error)),
        Ok(()) => return Err(ProbeError::NoCreateOnly { data: location.to_string() }),
    }
    let missing = |found: String| ProbeError::NoConditionalUpdate { data: location.to_string(), found };
    let found = store.head(path).await.map_err(fail)?;
    let first = UpdateVersion { e_tag: found.e_tag, version: found.version };
    match put(store, path, CHANGED, PutMode::Update(first.clone())).await {
        Ok(()) => {}
        Err(ObjectError::Precondition { .. }) => {
            // The answer to this write was lost and the write was repeated, or the store refuses each one.
            let now = store.get(path).await.map_err(fail)?.bytes().await.map_err(fail)?;
            if now != CHANGED {
                return Err(missing("the update of an unchanged object is refused".to_owned()));
            }
        }
        Err(error @ (ObjectError::NotImplemented { .. } | ObjectError::NotSupported { .. })) => {
            return Err(missing(error.to_string()));
        }
        Err(error) => return Err(fail(error)),
    }
    match put(store, path, &[1; PROBE_BYTES], PutMode::Update(first)).await {
        Err(ObjectError::Precondition { .. }) => Ok(()),
        Err(error) => Err(fail(error)),
        Ok(()) => Err(missing("the update of a changed object is carried out".to_owned())),
    }
}

/// The probe's object after its update.
const CHANGED: &[u8] = b"changed";

async fn put(
    store: &dyn ObjectStore,
    path: &ObjectPath,
    bytes: &'static [u8],
    mode: PutMode,
) -> Result<(), ObjectError> {
    let options = PutOptions { mode, ..PutOptions::default() };
    let payload = PutPayload::from_bytes(Bytes::from_static(bytes));
    store.put_opts(path, payload, options).await.map(|_| ())
}

fn classify_remote(location: &Location, source: ObjectError) -> ProbeError {
    let data = location.to_string();
    let source = Box::new(source);
    match *source {
        ObjectError::PermissionDenied { .. } | ObjectError::Unauthenticated { .. } => {
            ProbeError::Credentials { data, hint: credentials_hint(location.scheme()).to_owned(), source }
        }
        ObjectError::NotFound { .. } => ProbeError::NoBucket { data, source },
        _ => ProbeError::Remote { data, source },
    }
}

/// A possible reason for slow storage. Without credentials, the client asks an address inside the cloud for some, which
/// times out outside the cloud.
fn slow_hint(location: &Location) -> String {
    match credentials(location.scheme(), &|name| std::env::var(name).ok()) {
        None => "; check its disk or network share".to_owned(),
        Some(Credentials { found: Some(_), .. }) => String::new(),
        Some(Credentials { hint, .. }) => format!("; no credentials are set: {hint}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_much_is_refused() {
        let (second, now) = (Duration::from_secs(1), SystemTime::now());
        let check = |written| check_clock(Path::new("/data"), written, now, now + 2 * second);
        for written in [now - MAX_CLOCK_DIFFERENCE, now, now + second, now + 2 * second + MAX_CLOCK_DIFFERENCE] {
            check(written).expect("near enough");
        }
        let behind = check(now - MAX_CLOCK_DIFFERENCE - second).expect_err("far behind").to_string();
        assert!(behind.starts_with("the clock of the file system of /data is 61 s behind this machine's"), "{behind}");
        let ahead = check(now + 303 * second).expect_err("far ahead").to_string();
        assert!(ahead.contains("is 301 s ahead of this") && ahead.contains("--data"), "{ahead}");
    }
}
