//! Tables of text and of Parquet, and the times in their cells, for job logs and signals.

pub(crate) mod clock;
mod decimals;
pub(crate) mod parquet;
mod sheet;
pub(crate) mod stamp;
#[cfg(test)]
mod tests;
mod texts;

pub(crate) use sheet::{Row, Sheet, find, need};
pub(crate) use texts::texts;

use powersweep_engine::workload::kinds::{BYTE_ORDER_MARK, other_kind};

use crate::error::Problem;

/// The content of a file without its byte order mark. Refuses an empty file, and files of other kinds than text in rows, unless
/// their beginning is one of `expected`.
pub(crate) fn content<'a>(bytes: &'a [u8], expected: &[&[u8]]) -> Result<&'a [u8], Problem> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(Problem::Content("the file is empty".to_owned()));
    }
    match other_kind(bytes, expected) {
        Some(kind) => Err(Problem::Content(format!("the file is {kind}"))),
        None => Ok(bytes),
    }
}
