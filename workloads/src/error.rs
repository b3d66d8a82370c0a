//! Why a log could not be had.
use std::io;
use std::path::PathBuf;

/// A log that cannot be loaded. [`LoadError::is_retryable`] says whether the same call may succeed later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No file of this name. Final.
    #[error("there is no log `{log}`: {}{}", looked_in(.places), nearest_names(.nearest))]
    NotFound {
        /// The name or path asked for.
        log: String,
        /// Folders or files looked at.
        places: Vec<PathBuf>,
        /// Names of logs there that look alike, the nearest first.
        nearest: Vec<String>,
    },
    /// The file system refused. Final, unless the file system was at fault.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no intact archive of its kind. Final.
    #[error("{origin} is a damaged or incomplete {kind} file ({source}): fetch it again from where it came")]
    Damaged {
        /// Path or URL.
        origin: String,
        /// gzip or zstd.
        kind: &'static str,
        /// What the decoder said.
        source: io::Error,
    },
    /// Larger than the [`crate::Limits`]. Final.
    #[error("{origin} has more than {limit_bytes} bytes{}, the limit for logs", if *.text { " of text" } else { "" })]
    TooLarge {
        /// Path or URL.
        origin: String,
        /// The limit.
        limit_bytes: u64,
        /// Whether the text is too large, not the file.
        text: bool,
    },
    /// The file is not the one that the manifest names. Final.
    #[error("{origin} is not the file asked for: its sha256 is {found}, log_sha256 says {expected}")]
    WrongSha256 {
        /// Path or URL.
        origin: String,
        /// Hex digits asked for.
        expected: String,
        /// Hex digits found.
        found: String,
    },
    /// Not a SHA-256. Final.
    #[error("log_sha256 of `{log}` must be 64 hex digits, not `{text}`")]
    BadSha256 {
        /// The log it belongs to.
        log: String,
        /// The text given.
        text: String,
    },
    /// A URL without a SHA-256: its content could change between two runs. Final.
    #[error("the URL {url} needs log_sha256, the SHA-256 of the file that it gives (64 hex digits)")]
    Sha256Missing {
        /// The URL.
        url: String,
    },
    /// The server answered with an error. Retryable for 408, 429 and 5xx.
    #[error("{url}: the server answered {status}")]
    Status {
        /// The URL.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The download failed on the way. Retryable.
    #[error("cannot download {url}: {reason}")]
    Download {
        /// The URL.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The cache folder cannot be used. Retryable: a disk may be full for a while.
    #[error("cannot use the cache {}: {source}", .path.display())]
    Cache {
        /// Folder or file of the cache.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LoadError {
    /// Whether the same call may succeed later without a change of manifest or files.
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
        return "the search path is empty; set POWERSWEEP_TRACES to folders with logs, or give a path or URL"
            .to_owned();
    }
    let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
    format!("looked in {}", places.join(", "))
}

fn nearest_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; similar names there: {}", names.join(", ")) }
}
