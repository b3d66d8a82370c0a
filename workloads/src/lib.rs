//! Where logs come from: search path, download, decompression, digest, caches.
//!
//! - [`Library`] finds a log by name on a search path, by path, or by URL, and returns its text with the digest that
//!   identifies it in results: the SHA-256 of the decompressed bytes.
//! - [`Cache`] keeps bytes on disk under their SHA-256. Workers keep the logs in it that they fetched by digest, and
//!   downloads go through it.
//! - [`ParsedLogs`] keeps parsed logs and built workloads in memory, each made once however many threads ask.
//!
//! Everything here blocks; async callers use a blocking thread. What a log means is not known here: parsing and rules
//! are in the engine.

mod cache;
mod decompress;
mod download;
mod error;
mod library;
mod memo;
mod parsed;
mod sha;

pub use cache::Cache;
pub use error::LoadError;
pub use library::{Library, LogBytes, Origin};
pub use parsed::ParsedLogs;
pub use sha::{Sha256, hex, parse_hex, sha256};

/// Greatest sizes that are read. A log beyond them is refused before it fills the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file or download as it is stored.
    pub stored_bytes: u64,
    /// Bytes of its text.
    pub text_bytes: u64,
}

impl Default for Limits {
    /// 512 MiB stored, 2 GiB of text: the largest logs of the Parallel Workloads Archive have some 100 MB of text.
    fn default() -> Self {
        Limits { stored_bytes: 512 << 20, text_bytes: 2 << 30 }
    }
}
