//! Probes DATA before the database is opened, which retries on a read-only or full disk for ever, without a message.
//!
//! A probe writes, syncs, creates the same name twice and deletes, within five seconds in all. The second creation must
//! fail: publishing without doubled rows depends on that. Only DATA's own folders remain.

use crate::store::{Location, PRIVATE_DIR, blocking};
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
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
        match location.path() {
            Some(path) => {
                let path = path.to_owned();
                blocking(move || probe_directory(&path)).await
            }
            None => probe_remote(location).await,
        }
    };
    let slow = |_| ProbeError::Slow { data: location.to_string(), hint: slow_hint(location) };
    tokio::time::timeout(PROBE_TIME, work).await.map_err(slow)?
}

fn probe_directory(data: &Path) -> Result<(), ProbeError> {
    let private = data.join(PRIVATE_DIR);
    std::fs::create_dir_all(&private).map_err(|error| classify(data, error))?;
    let name = private.join(format!("probe-{}", Uuid::new_v4().simple()));
    let link = name.with_extension("link");
    let result = probe_file(data, &name, &link);
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

fn probe_file(data: &Path, name: &Path, link: &Path) -> Result<(), ProbeError> {
    let fail = |error| classify(data, error);
    let mut file = std::fs::File::create_new(name).map_err(fail)?;
    file.write_all(&vec![0; DIRECTORY_PROBE_BYTES]).map_err(fail)?;
    file.sync_all().map_err(fail)?;
    drop(file);
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
    let path = ObjectPath::from_iter([PRIVATE_DIR, &format!("probe-{}", Uuid::new_v4().simple())]);
    match create(&store, &path).await {
        // The name is unique, so this write exists already: its answer was lost, and it was repeated.
        Ok(()) | Err(ObjectError::AlreadyExists { .. }) => {}
        Err(error) => return Err(fail(error)),
    }
    let second = create(&store, &path).await;
    let deleted = store.delete(&path).await;
    match second {
        Err(ObjectError::AlreadyExists { .. }) => deleted.map_err(fail),
        Err(error) => Err(fail(error)),
        Ok(()) => Err(ProbeError::NoCreateOnly { data: location.to_string() }),
    }
}

async fn create(store: &dyn ObjectStore, path: &ObjectPath) -> Result<(), ObjectError> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let payload = PutPayload::from_bytes(Bytes::from_static(&[0; PROBE_BYTES]));
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

fn credentials_hint(scheme: &str) -> &'static str {
    match scheme {
        "gs" => "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
        "az" | "azure" | "abfs" | "abfss" => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        _ => "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (AWS_ENDPOINT for other stores)",
    }
}

/// A possible reason for slow storage. Without credentials, the client asks an address inside the cloud for some, which
/// times out outside the cloud.
fn slow_hint(location: &Location) -> String {
    let names: &[&str] = match location.scheme() {
        "file" => return "; check its disk or network share".to_owned(),
        "gs" => &["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"],
        "az" | "azure" | "abfs" | "abfss" => &["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_ID", "AZURE_STORAGE_TOKEN"],
        _ => &["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
    };
    if names.iter().any(|name| std::env::var_os(name).is_some()) {
        return String::new();
    }
    format!("; no credentials are set: {}", credentials_hint(location.scheme()))
}
