//! Tables of text and of Parquet, and the times in their cells, for job logs and signals.

pub(crate) mod clock;
mod pages;
pub(crate) mod parquet;
mod sheet;
pub(crate) mod stamp;
mod texts;

pub(crate) use sheet::{Row, Sheet, find, need};
pub(crate) use texts::texts;

use crate::error::Problem;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Begins a text in JSON.
pub(crate) const JSON: &[u8] = b"{";

/// Beginnings of files of other kinds than text in rows, with their names.
const OTHERS: [(&[u8], &str); 9] = [
    (b"\x1f\x8b", "compressed by gzip: decompress it, or give it the ending .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: decompress it, or give it the ending .zst"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet: save its table as CSV"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (parquet::MAGIC, "Parquet, not text"),
    (b"<", "a page or a document of XML, not a table"),
    (JSON, "JSON, not rows of text"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
];

/// The content of a file without its byte order mark. Refuses an empty file, and files of other kinds than text in rows, unless
/// their beginning is one of `expected`.
pub(crate) fn content<'a>(bytes: &'a [u8], expected: &[&[u8]]) -> Result<&'a [u8], Problem> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(Problem::Content("the file is empty".to_owned()));
    }
    match OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic) && !expected.contains(magic)) {
        Some((_, kind)) => Err(Problem::Content(format!("the file is {kind}"))),
        None => Ok(bytes),
    }
}
