//! Workload logs: search path, download, decompression, digest, and caches on disk and in memory.
//!
//! - [`Library`] finds a log by name on a search path, by path, or by URL. It returns the log's text and its digest:
//!   the SHA-256 of the decompressed bytes, which identifies the log in results.
//! - [`Cache`] keeps files on disk under their SHA-256: downloads, and the logs that a worker fetched from its
//!   coordinator.
//! - [`ParsedLogs`] keeps parsed logs and built workloads in memory. The engine parses and builds; each log is parsed
//!   once, however many threads ask for it.
//!
//! All calls block; asynchronous callers use a blocking thread.

mod cache;
mod decompress;
mod download;
mod error;
mod load;
mod parsed;

pub use cache::Cache;
pub use error::LoadError;
pub use load::{Library, LogBytes, Origin};
pub use parsed::ParsedLogs;

/// Size limits. A larger log is refused before it fills the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a stored (compressed) file or download.
    pub stored_bytes: u64,
    /// Bytes of the decompressed text.
    pub text_bytes: u64,
}

impl Default for Limits {
    /// 512 MiB stored, 2 GiB of text: the largest logs of the Parallel Workloads Archive have some 100 MB of text.
    fn default() -> Self {
        Limits { stored_bytes: 512 << 20, text_bytes: 2 << 30 }
    }
}
