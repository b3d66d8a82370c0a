//! Lines of a text.

use std::iter::Enumerate;
use std::slice::Split;

use crate::error::Problem;

/// Whether a byte ends a line.
type IsEnd = fn(&u8) -> bool;

/// The lines that are not empty, with their numbers from 1.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a>(Enumerate<Split<'a, u8, IsEnd>>);

impl<'a> Lines<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Lines<'a> {
        let is_end: IsEnd = |byte| *byte == b'\n';
        Lines(bytes.split(is_end).enumerate())
    }

    /// The next line, without its end and blanks before that.
    pub(super) fn next_text(&mut self) -> Result<Option<(u64, &'a str)>, Problem> {
        let mut lines = self.0.by_ref().map(|(at, line)| (at as u64 + 1, line.trim_ascii_end()));
        let Some((line, bytes)) = lines.find(|(_, bytes)| !bytes.is_empty()) else { return Ok(None) };
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Some((line, text))),
            Err(_) => Err(Problem::Content(format!(
                "line {line} is not UTF-8: save the file as UTF-8, or leave columns of free text out"
            ))),
        }
    }
}
