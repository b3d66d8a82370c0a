//! Text in columns: CSV with commas, semicolons or tabs.

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use crate::error::{Problem, shortened};

/// Separators of columns.
const SEPARATORS: [u8; 3] = *b",;\t";

/// A table before its rows are read.
pub(in crate::formats) struct Sheet<'a> {
    /// Names of the columns, without blanks around them.
    pub(in crate::formats) names: Vec<String>,
    rows: Reader<&'a [u8]>,
    record: StringRecord,
    number: u64,
}

/// A row.
pub(in crate::formats) struct Row<'a> {
    /// Its line, from 1.
    pub(super) line: u64,
    /// Its number, from 1.
    pub(super) number: u64,
    names: &'a [String],
    record: &'a StringRecord,
}

impl<'a> Sheet<'a> {
    /// Reads the header.
    pub(in crate::formats) fn open(bytes: &'a [u8]) -> Result<Sheet<'a>, Problem> {
        let builder = &mut ReaderBuilder::new();
        let mut rows = builder.delimiter(separator(bytes)).has_headers(false).flexible(true).from_reader(bytes);
        let mut header = StringRecord::new();
        rows.read_record(&mut header).map_err(|error| unreadable(&error))?;
        let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        if names.len() < 2 {
            return Err(Problem::Content(format!(
                "the first line, {:?}, names one column; columns are separated by commas, semicolons or tabs",
                shortened(names.first().map_or("", String::as_str))
            )));
        }
        Ok(Sheet { names, rows, record: StringRecord::new(), number: 0 })
    }

    /// The column of a name: the exact name, else without regard to case.
    pub(in crate::formats) fn find(&self, name: &str) -> Option<usize> {
        let exact = self.names.iter().position(|known| known == name);
        exact.or_else(|| self.names.iter().position(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The next row.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, Problem> {
        if !self.rows.read_record(&mut self.record).map_err(|error| unreadable(&error))? {
            return Ok(None);
        }
        self.number += 1;
        let line = self.record.position().map_or(0, csv::Position::line);
        let (found, expected) = (self.record.len(), self.names.len());
        if found != expected {
            return Err(Problem::Fields { line, found, expected, hint: ": is the file cut?" });
        }
        Ok(Some(Row { line, number: self.number, names: &self.names, record: &self.record }))
    }
}

impl Row<'_> {
    /// The text of a column.
    pub(super) fn get(&self, at: usize) -> &str {
        self.record.get(at).unwrap_or_default().trim()
    }

    /// The name of a column.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// Whether it is the header again.
    pub(super) fn is_header(&self) -> bool {
        self.record.iter().map(str::trim).eq(self.names.iter().map(String::as_str))
    }

    /// A problem with a cell.
    pub(super) fn problem(&self, at: usize, reason: &str) -> Problem {
        let (column, text) = (shortened(self.name(at)), shortened(self.get(at)));
        Problem::Cell { line: self.line, column, text, reason: reason.to_owned() }
    }
}

fn unreadable(error: &csv::Error) -> Problem {
    let line = error.position().map_or_else(String::new, |place| format!("line {}: ", place.line()));
    match error.kind() {
        ErrorKind::Utf8 { .. } => Problem::Content(format!("{line}the text is not UTF-8: save the file as UTF-8")),
        _ => Problem::Content(format!("the text is not in columns: {error}")),
    }
}

/// The separator that the header has most of; the first one where counts are equal.
fn separator(bytes: &[u8]) -> u8 {
    let header = bytes.trim_ascii_start().split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let count = |separator: u8| header.iter().filter(|byte| **byte == separator).count();
    SEPARATORS.into_iter().rev().max_by_key(|separator| count(*separator)).unwrap_or(b',')
}
