//! Text in columns: CSV with commas, semicolons or tabs.

use ::csv::{ByteRecord, ErrorKind, Position, Reader, ReaderBuilder};
use powersweep_experiments::signals::{Form, Reading};

use crate::error::{Place, Problem, shortened};
use crate::signals::ROWS_MAX;
use crate::signals::clock::Times;
use crate::signals::table::{Row, Table, ValueColumn};

/// Separators of columns. A decimal comma needs one that is no comma.
const SEPARATORS: [u8; 3] = *b",;\t";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A table of text, before its rows are read.
pub(super) struct Sheet<'a> {
    /// Names of the columns, without blanks around them.
    pub(super) names: Vec<String>,
    text: &'a [u8],
    rows: Reader<&'a [u8]>,
    /// The first row, which tells a table from other text.
    first: Option<(u32, ByteRecord)>,
    decimal_comma: bool,
}

/// The columns that are read.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) time: usize,
    pub(super) value: usize,
    /// Column that flags estimates.
    pub(super) flag: Option<usize>,
    /// Column of the sources of values, which may be estimates.
    pub(super) source: Option<usize>,
    /// Column of the grid's zone.
    pub(super) zone: Option<usize>,
}

impl<'a> Sheet<'a> {
    /// Reads the header and the first row.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Sheet<'a>, Problem> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let separator = separator(bytes);
        let mut rows = ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(bytes);
        let mut header = ByteRecord::new();
        rows.read_byte_record(&mut header).map_err(unreadable)?;
        let names: Option<Vec<String>> =
            header.iter().map(|name| str::from_utf8(name).ok().map(|name| name.trim().to_owned())).collect();
        match names {
            None => Err(Problem::Content("the names of the columns are not UTF-8: save the file as UTF-8".to_owned())),
            Some(names) if names.len() < 2 => Err(Problem::Content(format!(
                "the first line, {:?}, names one column: a signal has a column of times and one of values, separated by \
                 commas, semicolons or tabs",
                shortened(names.first().map_or("", String::as_str))
            ))),
            Some(names) => {
                let mut sheet = Sheet { names, text: bytes, rows, first: None, decimal_comma: separator != b',' };
                let mut first = ByteRecord::new();
                sheet.first = sheet.next(&mut first)?.map(|line| (line, first));
                Ok(sheet)
            }
        }
    }

    /// Reads the next row; returns its line, `None` after the last row.
    fn next(&mut self, record: &mut ByteRecord) -> Result<Option<u32>, Problem> {
        if let Some((line, first)) = self.first.take() {
            *record = first;
            return Ok(Some(line));
        }
        if !self.rows.read_byte_record(record).map_err(unreadable)? {
            return Ok(None);
        }
        let line = line(self.text, record.position());
        if record.len() != self.names.len() {
            let (place, found, expected) = (Place::Line(line.into()), record.len(), self.names.len());
            return Err(Problem::Fields { place, found, expected, hint: "" });
        }
        Ok(Some(line))
    }

    /// A problem with a column, which the setting can solve.
    pub(super) fn problem(&self, setting: &'static str, reason: String) -> Problem {
        Problem::Column { reason, setting: Some(setting), columns: self.names.clone() }
    }

    /// The column of a name, matched without case.
    pub(super) fn find(&self, setting: &'static str, name: &str) -> Result<usize, Problem> {
        let all = || self.names.iter().enumerate();
        let mut exact = all().filter(|(_, known)| *known == name);
        let mut similar = all().filter(|(_, known)| known.to_lowercase() == name.trim().to_lowercase());
        let found = match (exact.next(), exact.next()) {
            (None, _) => (similar.next(), similar.next()),
            found => found,
        };
        match found {
            (Some((at, _)), None) => Ok(at),
            (None, _) => Err(self.problem(setting, format!("there is no column {:?}", shortened(name)))),
            (Some(_), Some(_)) => {
                Err(self.problem(setting, format!("several columns have the name {:?}", shortened(name))))
            }
        }
    }

    /// Reads the rows. Times without an offset are of UTC if the name of their column says so.
    pub(super) fn table(
        mut self,
        form: Form,
        columns: &Columns,
        column: ValueColumn,
        reading: &Reading,
    ) -> Result<Table, Problem> {
        let mut rows = Vec::new();
        let (mut times, mut zone, mut flagged, mut by_source) = (Times::default(), None, 0, 0);
        let mut record = ByteRecord::new();
        while let Some(line) = self.next(&mut record)? {
            if rows.len() == ROWS_MAX {
                return Err(Problem::TooManyRows { limit: ROWS_MAX, filled: false });
            }
            let cell = |at: usize, reason: String| {
                Problem::cell(Place::Line(line.into()), &self.names[at], &String::from_utf8_lossy(&record[at]), reason)
            };
            let text = |at: usize| str::from_utf8(&record[at]).map_err(|_| cell(at, "is not UTF-8".to_owned()));
            let time_us = times.read(text(columns.time)?, line).map_err(|reason| cell(columns.time, reason))?;
            let value = match number(text(columns.value)?, self.decimal_comma) {
                Ok(None) => f64::NAN,
                Ok(Some(value)) => column.convert(value).map_err(|reason| cell(columns.value, reason))?,
                Err(reason) => return Err(cell(columns.value, reason.to_owned())),
            };
            let flag = match columns.flag {
                Some(at) => flag(text(at)?).ok_or_else(|| cell(at, "is neither true nor false".to_owned()))?,
                None => false,
            };
            let estimated_source = columns.source.is_some_and(|at| is_estimate(&record[at]));
            flagged += u64::from(flag);
            by_source += u64::from(estimated_source && !flag);
            if let Some(at) = columns.zone {
                let name = text(at)?.trim();
                match &zone {
                    None => zone = Some(name.to_owned()),
                    Some(known) if known != name => {
                        let reason = format!("follows {known:?}: the file of a signal has one zone");
                        return Err(cell(at, reason));
                    }
                    Some(_) => {}
                }
            }
            rows.push(Row { time_us, value, line, estimated: flag || estimated_source });
        }
        let time_column = self.names.swap_remove(columns.time);
        let utc = says_utc(&time_column).then_some("UTC, by the name of the column of times");
        let clock = if rows.is_empty() {
            return Err(Problem::Content("the file has a header and no rows".to_owned()));
        } else {
            times.clock(utc, reading.timezone.as_deref(), Place::Line)?
        };
        let zone = zone.filter(|zone| !zone.is_empty());
        let estimates = (columns.flag.is_some() || columns.source.is_some()).then_some((flagged, by_source));
        Ok(Table { form, rows, place: Place::Line, clock, time_column, column, estimates, zone })
    }
}

fn unreadable(error: ::csv::Error) -> Problem {
    match error.kind() {
        ErrorKind::Io(source) => Problem::Content(format!("the text cannot be read: {source}")),
        _ => Problem::Content(format!("the text is not in columns: {error}")),
    }
}

/// The line on which a record begins. The reader's position is where the record before ended, so that it is before blank
/// lines.
fn line(text: &[u8], position: Option<&Position>) -> u32 {
    let Some(position) = position else { return 0 };
    let begin = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let ends = text.get(begin..).unwrap_or_default().iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    let line = position.line() + ends.filter(|byte| **byte == b'\n').count() as u64;
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// The separator that the header has most of.
fn separator(bytes: &[u8]) -> u8 {
    let header = bytes.trim_ascii_start().split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let mut quoted = false;
    let mut counts = SEPARATORS.map(|_| 0_usize);
    for byte in header {
        quoted ^= *byte == b'"';
        if let Some(at) = SEPARATORS.iter().position(|separator| separator == byte).filter(|_| !quoted) {
            counts[at] += 1;
        }
    }
    // The first one where counts are equal.
    let most = (0..SEPARATORS.len()).rev().max_by_key(|at| counts[*at]).unwrap_or(0);
    SEPARATORS[most]
}

/// The words of a column's name, in small letters.
pub(super) fn words(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a column of times says that they are of UTC.
pub(super) fn says_utc(name: &str) -> bool {
    words(name).iter().any(|word| word == "utc")
}

/// A number; `None` if the cell is empty.
fn number(text: &str, decimal_comma: bool) -> Result<Option<f64>, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let plain = match text.split_once(',') {
        None => text.parse(),
        Some(_) if !decimal_comma => {
            return Err("has a comma: numbers have a decimal point where commas separate columns");
        }
        Some((whole, fraction)) if whole.contains('.') || fraction.contains([',', '.']) => {
            return Err("has more than one separator: numbers have no separators of thousands");
        }
        Some((whole, fraction)) => format!("{whole}.{fraction}").parse(),
    };
    match plain {
        Ok(number) if f64::is_finite(number) => Ok(Some(number)),
        Ok(_) => Err("is not a finite number"),
        Err(_) => Err("is not a number: leave the cell empty where there is no value"),
    }
}

fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" | "" => Some(false),
        _ => None,
    }
}

/// Whether the source of a value is an estimate, such as "Electricity Maps Estimation".
fn is_estimate(source: &[u8]) -> bool {
    let word = b"estimat";
    source.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}
