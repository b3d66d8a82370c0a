//! Decompression of a log, with a limit on the size of the text.
use std::io::{self, BufRead, BufReader, Read};

use crate::library::LoadError;

/// How a file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Gzip,
    Zstd,
}

const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

impl Kind {
    /// By the ending of the file name, else by the first bytes. The name comes first, so that an archive with a damaged
    /// beginning is reported as damaged and not read as text.
    fn of(name: &str, head: &[u8]) -> Kind {
        let name = name.split(['?', '#']).next().unwrap_or(name).to_ascii_lowercase();
        if name.ends_with(".gz") || head.starts_with(GZIP_MAGIC) {
            Kind::Gzip
        } else if name.ends_with(".zst") || head.starts_with(ZSTD_MAGIC) {
            Kind::Zstd
        } else {
            Kind::Plain
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "text",
            Kind::Gzip => "gzip",
            Kind::Zstd => "zstd",
        }
    }
}

/// Reads the text of a stored log. `name` is its file name, `origin` the path or URL for messages. `read_error` makes
/// the error of a file that cannot be read.
pub(crate) fn text(
    stored: impl Read,
    name: &str,
    origin: &str,
    limit_bytes: u64,
    read_error: impl Fn(io::Error) -> LoadError,
) -> Result<Vec<u8>, LoadError> {
    let mut stored = BufReader::with_capacity(1 << 16, stored);
    let kind = Kind::of(name, stored.fill_buf().map_err(&read_error)?);
    let mut text = Vec::new();
    // One byte beyond the limit distinguishes a text at the limit from a longer one.
    let limit = limit_bytes.saturating_add(1);
    let outcome = match kind {
        Kind::Plain => stored.take(limit).read_to_end(&mut text),
        // A file of the Parallel Workloads Archive may have several gzip members.
        Kind::Gzip => flate2::bufread::MultiGzDecoder::new(stored).take(limit).read_to_end(&mut text),
        Kind::Zstd => zstd::Decoder::with_buffer(stored).and_then(|d| d.take(limit).read_to_end(&mut text)),
    };
    match outcome {
        Ok(_) if text.len() as u64 > limit_bytes => {
            Err(LoadError::TooLarge { origin: origin.to_owned(), limit_bytes, text: true })
        }
        Ok(_) => {
            text.shrink_to_fit();
            Ok(text)
        }
        // The operating system failed, not the data.
        Err(source) if kind == Kind::Plain || source.raw_os_error().is_some() => Err(read_error(source)),
        Err(source) => Err(LoadError::Damaged { origin: origin.to_owned(), kind: kind.name(), source }),
    }
}
