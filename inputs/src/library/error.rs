//! Why a log could not be loaded.
use std::io;
use std::path::PathBuf;

use powersweep_engine::workload::LogFormat;
use powersweep_experiments::Digest;

use super::load::HERE;

/// A log that cannot be loaded. [`LoadError::is_retryable`] says whether the same call may succeed later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No file has this name. Final.
    #[error("there is no {} `{log}`: {}{}", if *.is_log { "log" } else { "file" }, looked_in(.places), nearest_names(.nearest))]
    NotFound {
        /// The name or path asked for.
        log: String,
        /// Whether a log was asked for, not a signal, a job log or a module.
        is_log: bool,
        /// Folders that were searched.
        places: Vec<PathBuf>,
        /// Similar names of logs in these folders, the nearest first.
        nearest: Vec<String>,
    },
    /// The path is a folder, a pipe or a device. Final.
    #[error("{} is {what}", .path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// Its kind, and why it is no log.
        what: &'static str,
    },
    /// A manifest of somebody else names a path. Final.
    #[error("{log} is a path, and the manifest in a file of rows may name files of the search path only")]
    Path {
        /// The path.
        log: String,
    },
    /// No source is chosen, and the name does not show the format. Final.
    #[error("the ending of {file} belongs to no log format: expected {}{}", endings_of(.formats), compressed(.file))]
    UnknownFormat {
        /// Path or URL.
        file: String,
        /// The formats that it could have.
        formats: Vec<&'static LogFormat>,
    },
    /// The file cannot be read. Final, unless the file system was at fault.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The archive is damaged or incomplete. Final.
    #[error("{origin} is a damaged or incomplete {kind} file ({source}): download it again")]
    Damaged {
        /// Path or URL.
        origin: String,
        /// gzip or zstd.
        kind: &'static str,
        /// The error of the decoder.
        source: io::Error,
    },
    /// Larger than the [`Limits`](crate::library::Limits). Final.
    #[error("{origin} has more than {limit_bytes} bytes{}, the limit for such files", if *.text { " of text" } else { "" })]
    TooLarge {
        /// Path or URL.
        origin: String,
        /// The limit.
        limit_bytes: u64,
        /// Whether the decompressed text is too large, not the stored file.
        text: bool,
    },
    /// The file is not the one whose digest the manifest gives. Final.
    #[error("{origin} is another file than the given SHA-256 says: its SHA-256 is {found}, not {expected}")]
    WrongSha256 {
        /// Path or URL.
        origin: String,
        /// The digest of the manifest.
        expected: Digest,
        /// The digest of the file.
        found: Digest,
    },
    /// A URL without a SHA-256: its content could change between two runs. Final.
    #[error(
        "{url}: a URL needs the SHA-256 of its file as downloaded (64 hexadecimal digits): `log_sha256` or `file_sha256` of a \
         manifest, `--sha256` of a command"
    )]
    Sha256Missing {
        /// The URL.
        url: String,
    },
    /// A URL with a user name or a password. Final.
    #[error(
        "{url} was given with a user name or a password, which others could read: download the file, and give its path"
    )]
    Secret {
        /// The URL without them.
        url: String,
    },
    /// The server responded with an error. Retryable for 408, 429 and 5xx.
    #[error("cannot download {url}: the server responded with HTTP status {status}")]
    Status {
        /// The URL.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The download was interrupted. Retryable.
    #[error("cannot download {url}: {reason}")]
    Download {
        /// The URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The cache folder cannot be used. Retryable: a full disk may have room later.
    #[error("cannot use the cache of logs at {}: {source}", .path.display())]
    Cache {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl LoadError {
    /// Whether the same call may succeed later although manifest and files stay the same.
    pub fn is_retryable(&self) -> bool {
        match self {
            LoadError::Download { .. } | LoadError::Cache { .. } => true,
            LoadError::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            _ => false,
        }
    }
}

fn looked_in(places: &[PathBuf]) -> String {
    if places.is_empty() {
        return "the search path is empty; set POWERSWEEP_TRACES to folders with logs and signals, or give a path or URL"
            .to_owned();
    }
    let shown = |place: &PathBuf| match place.as_os_str() == HERE {
        true => "the current folder".to_owned(),
        false => place.display().to_string(),
    };
    format!("looked in {}", places.iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn endings_of(formats: &[&LogFormat]) -> String {
    let one = |format: &&LogFormat| format!("{} (source `{}`)", format.endings().join(", "), format.component.name);
    formats.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn compressed(file: &str) -> &'static str {
    match [".bz2", ".xz", ".zip", ".7z", ".Z"].iter().any(|ending| file.ends_with(ending)) {
        true => "; decompress it: logs are read with gzip and zstd only",
        false => "",
    }
}

fn nearest_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; similar names there: {}", names.join(", ")) }
}
