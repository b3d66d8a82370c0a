//! Lines of a text.

use crate::error::Problem;

/// The lines that are not empty, with their numbers from 1.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a> {
    rest: Option<&'a [u8]>,
    line: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Lines<'a> {
        Lines { rest: Some(bytes), line: 0 }
    }

    /// The next line, without its end and blanks before that.
    pub(super) fn next_text(&mut self) -> Result<Option<(u64, &'a str)>, Problem> {
        let Some((line, bytes)) = self.next() else { return Ok(None) };
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Some((line, text))),
            Err(_) => Err(Problem::Content(format!(
                "line {line} is not UTF-8: save the file as UTF-8, or leave columns of free text out"
            ))),
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let rest = self.rest?;
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (text, rest) = end.map_or((rest, None), |end| (&rest[..end], Some(&rest[end + 1..])));
            self.rest = rest;
            self.line += 1;
            let text = text.trim_ascii_end();
            if !text.is_empty() {
                return Some((self.line, text));
            }
        }
    }
}
