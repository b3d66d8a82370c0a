//! Lines of a text.

use std::iter::Enumerate;
use std::slice::Split;

use crate::error::{Place, Problem};

/// Whether a byte ends a line.
type IsEnd = fn(&u8) -> bool;

/// The lines that are not empty, with their numbers from 1.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a>(Enumerate<Split<'a, u8, IsEnd>>);

impl<'a> Lines<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Lines<'a> {
        // Old files end their lines in CR alone.
        let is_end: IsEnd = if bytes.contains(&b'\n') { |byte| *byte == b'\n' } else { |byte| *byte == b'\r' };
        Lines(bytes.split(is_end).enumerate())
    }

    /// The next line, without its end and blanks before that. Tabs are not removed: they may separate empty cells.
    pub(super) fn next_text(&mut self) -> Result<Option<(u64, &'a str)>, Problem> {
        let mut lines = self.0.by_ref().map(|(at, line)| (at as u64 + 1, without_end(line)));
        let Some((line, bytes)) = lines.find(|(_, bytes)| !bytes.trim_ascii().is_empty()) else { return Ok(None) };
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Some((line, text))),
            Err(_) => {
                let reason =
                    "the text is not UTF-8: save the file as UTF-8, or leave columns of free text out".to_owned();
                Err(Problem::At { place: Place::Line(line), reason })
            }
        }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b' '));
    &line[..end.map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_lf_or_in_cr_alone() {
        for text in ["one\n\ntwo \n", "one\r\n\r\ntwo\r\n", "one\r\rtwo\r", "one\n\ntwo"] {
            let mut lines = Lines::of(text.as_bytes());
            let mut next = || lines.next_text().expect("text");
            assert_eq!([next(), next(), next()], [Some((1, "one")), Some((3, "two")), None], "{text:?}");
        }
    }
}
