//! Rows in columns: CSV with commas, semicolons or tabs, and Parquet, whose cells are read as texts.

use std::collections::HashMap;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use csv::{ByteRecord, Position, Reader, ReaderBuilder};

use super::decimals::Decimals;
use super::parquet::{self, File, Limits, damaged};
use super::stamp::Stamp;
use super::texts;
use crate::error::{Place, Problem, shortened};

/// Maximum number of names of cells.
const COLUMNS_MAX: usize = 1000;

/// Separators of columns. A decimal comma needs one that is no comma.
const SEPARATORS: [u8; 3] = *b",;\t";

/// A table before its rows are read.
pub(crate) struct Sheet<'a> {
    /// Names of the columns, without blanks around them.
    pub names: Vec<String>,
    rows: Rows<'a>,
    /// Whether the cells of a column are read.
    is_read: Vec<bool>,
    record: ByteRecord,
    /// Whether the record is of a row that was read ahead.
    is_ahead: bool,
    number: u64,
    /// The separators of numbers, where commas do not separate columns.
    decimals: Option<Decimals>,
    /// Lines before the header.
    banner: Vec<u64>,
}

/// The rows of a table.
enum Rows<'a> {
    Csv { reader: Box<Reader<&'a [u8]>>, text: &'a [u8], lines_before: u64 },
    Parquet(Box<Batches>),
    Cells(std::vec::IntoIter<ByteRecord>),
}

/// The rows of a Parquet file.
struct Batches {
    /// The opened file, until its first row is read.
    file: Option<File>,
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
    /// Rows of the file that are still to come.
    left: usize,
    limits: Limits,
    /// Bytes of the cells so far.
    cell_bytes: u64,
}

/// A row.
pub(crate) struct Row<'a> {
    pub place: Place,
    /// Its number, from 1.
    pub number: u64,
    names: &'a [String],
    record: &'a ByteRecord,
    decimals: Option<&'a Decimals>,
}

impl<'a> Sheet<'a> {
    /// Reads the header of a text, and its first row, which tells a table from other text. Without `separator`, the header
    /// shows which of the usual ones separates the columns.
    pub(crate) fn of_text(text: &'a [u8], separator: Option<u8>) -> Result<Sheet<'a>, Problem> {
        // A banner is known by the usual separators.
        let banner = if separator.is_none() { banner(text) } else { Vec::new() };
        let (lines_before, text) = banner.last().map_or((0, text), |(line, end)| (*line, &text[*end..]));
        let separator = separator.unwrap_or_else(|| usual_separator(text));
        let mut reader = ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(text);
        let mut header = ByteRecord::new();
        reader.read_byte_record(&mut header).map_err(unreadable)?;
        let name = |name: &[u8]| str::from_utf8(name).map(|name| name.trim().to_owned());
        let names: Vec<String> = header.iter().map(name).collect::<Result<_, _>>().map_err(|_| {
            Problem::Content("the names of the columns are not UTF-8: save the file as UTF-8".to_owned())
        })?;
        if names.len() < 2 {
            return Err(Problem::Content(format!(
                "the first line, {:?}, names one column: a table has several, separated by commas, semicolons or tabs",
                shortened(names.first().map_or("", String::as_str))
            )));
        }
        let mut sheet = Sheet::new(names, Rows::Csv { reader: Box::new(reader), text, lines_before });
        sheet.banner = banner.into_iter().map(|(line, _)| line).collect();
        sheet.decimals = (separator != b',').then(Decimals::default);
        sheet.is_ahead = sheet.read()?;
        if sheet.is_ahead {
            sheet.place()?;
        }
        Ok(sheet)
    }

    /// Reads the names of the columns of a Parquet file.
    pub(crate) fn of_parquet(bytes: &[u8], limits: Limits) -> Result<Sheet<'a>, Problem> {
        let file = parquet::guarded(|| File::open(bytes, limits))?;
        let (names, left) = (file.names(), file.rows);
        let batches = Batches { file: Some(file), batches: None, batch: None, at: 0, left, limits, cell_bytes: 0 };
        Ok(Sheet::new(names, Rows::Parquet(Box::new(batches))))
    }

    /// Rows of cells with their names, which are columns in the order in which they occur. A cell that a row lacks is empty.
    pub(crate) fn of_cells(rows: Vec<Vec<(String, String)>>) -> Result<Sheet<'a>, Problem> {
        let mut names: Vec<String> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (name, _) in rows.iter().flatten() {
            if !places.contains_key(name) {
                places.insert(name.clone(), names.len());
                names.push(name.clone());
            }
        }
        if names.len() > COLUMNS_MAX {
            return Err(Problem::TooLarge { limit: format!("{COLUMNS_MAX} columns") });
        }
        let record = |row: Vec<(String, String)>| {
            let mut cells = vec![String::new(); names.len()];
            row.into_iter().for_each(|(name, cell)| cells[places[&name]] = cell);
            ByteRecord::from(cells)
        };
        let records: Vec<ByteRecord> = rows.into_iter().map(record).collect();
        Ok(Sheet::new(names, Rows::Cells(records.into_iter())))
    }

    fn new(names: Vec<String>, rows: Rows<'a>) -> Sheet<'a> {
        let is_read = vec![true; names.len()];
        let (record, banner) = (ByteRecord::new(), Vec::new());
        Sheet { names, rows, is_read, record, is_ahead: false, number: 0, decimals: None, banner }
    }

    /// Lines before the header.
    pub(crate) fn banner(&self) -> Vec<u64> {
        self.banner.clone()
    }

    /// Whether its places are rows, not lines.
    pub(crate) fn has_rows(&self) -> bool {
        !matches!(self.rows, Rows::Csv { .. })
    }

    /// Whether a column of Parquet has timestamps of no zone. Known before rows are read.
    pub(crate) fn is_timestamp(&self, at: usize) -> bool {
        let Rows::Parquet(batches) = &self.rows else { return false };
        let kind = |file: &File| file.schema().field(at).data_type().clone();
        batches.file.as_ref().is_some_and(|file| matches!(kind(file), DataType::Timestamp(_, None)))
    }

    /// Reads the cells of these columns only: those of other columns may be bytes of any kind.
    pub(crate) fn read_only(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.is_read.fill(false);
        columns.into_iter().for_each(|column| self.is_read[column] = true);
    }

    /// The next row.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, Problem> {
        if !std::mem::take(&mut self.is_ahead) && !self.read()? {
            return Ok(None);
        }
        self.number += 1;
        let Sheet { names, record, number, decimals, .. } = &*self;
        let row = Row { place: self.place()?, number: *number, names, record, decimals: decimals.as_ref() };
        let mut read = self.is_read.iter().zip(record).zip(names).filter(|((is_read, _), _)| **is_read);
        match read.find(|((_, cell), _)| str::from_utf8(cell).is_err()) {
            Some(((_, cell), name)) => {
                Err(Problem::cell(row.place, name, &String::from_utf8_lossy(cell), "is not UTF-8"))
            }
            None => Ok(Some(row)),
        }
    }

    /// Refuses numbers of the rows that were read whose decimal separator is not clear.
    pub(crate) fn check_numbers(&self) -> Result<(), Problem> {
        self.decimals.as_ref().map_or(Ok(()), Decimals::check)
    }

    /// Reads the next row into the record; `false` behind the last one.
    fn read(&mut self) -> Result<bool, Problem> {
        match &mut self.rows {
            Rows::Csv { reader, .. } => reader.read_byte_record(&mut self.record).map_err(unreadable),
            Rows::Cells(rows) => Ok(rows.next().map(|record| self.record = record).is_some()),
            Rows::Parquet(rows) => parquet::guarded(|| rows.read_row(&self.names, &self.is_read, &mut self.record)),
        }
    }

    /// The place of the record, which must have a field for each column.
    fn place(&self) -> Result<Place, Problem> {
        let place = match &self.rows {
            Rows::Csv { text, lines_before, .. } => Place::Line(lines_before + line(text, self.record.position())),
            Rows::Parquet(_) | Rows::Cells(_) => Place::Row(self.number),
        };
        let (found, expected) = (self.record.len(), self.names.len());
        let hint = if found < expected { ": is the file cut?" } else { "" };
        if found == expected { Ok(place) } else { Err(Problem::Fields { place, found, expected, hint }) }
    }
}

impl Batches {
    /// Reads the next row; `false` behind the last one. Cells of columns that are not read are empty.
    fn read_row(&mut self, names: &[String], is_read: &[bool], record: &mut ByteRecord) -> Result<bool, Problem> {
        if let Some(file) = self.file.take() {
            self.batches = Some(file.read(|at| is_read.get(at) == Some(&true))?);
        }
        while self.batch.as_ref().is_none_or(|batch| self.at >= batch.num_rows()) {
            let next = self.batches.as_mut().and_then(Iterator::next).transpose().map_err(damaged)?;
            let Some(next) = next else {
                return if self.left == 0 { Ok(false) } else { Err(damaged("it has fewer rows than it says")) };
            };
            (self.batch, self.at) = (Some(next), 0);
        }
        let Some(batch) = &self.batch else { return Ok(false) };
        self.left = self.left.checked_sub(1).ok_or_else(|| damaged("it has more rows than it says"))?;
        record.clear();
        let mut arrays = batch.columns().iter();
        let mut text = String::new();
        for (is_read, name) in is_read.iter().zip(names) {
            text.clear();
            if let Some(array) = is_read.then(|| arrays.next()).flatten() {
                texts::write(array, self.at, name, &mut text)?;
            }
            record.push_field(text.as_bytes());
        }
        self.cell_bytes += record.as_slice().len() as u64;
        if self.cell_bytes > self.limits.cell_bytes() {
            return Err(self.limits.too_many_cell_bytes());
        }
        self.at += 1;
        Ok(true)
    }
}

impl Row<'_> {
    /// The text of a column that is read, without blanks around it.
    pub(crate) fn get(&self, at: usize) -> &str {
        str::from_utf8(self.bytes(at)).unwrap_or_default().trim()
    }

    /// The bytes of a column.
    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        self.record.get(at).unwrap_or_default()
    }

    /// The name of a column.
    pub(crate) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// Whether it is the header again.
    pub(crate) fn is_header(&self) -> bool {
        self.record.iter().map(<[u8]>::trim_ascii).eq(self.names.iter().map(String::as_bytes))
    }

    /// The number in a text, or why there is none. It may have a decimal comma where commas do not separate columns.
    pub(crate) fn number(&self, text: &str) -> Result<f64, &'static str> {
        let plain = match (text.split_once(','), self.decimals) {
            (None, _) => text.parse(),
            (Some(_), None) => {
                return Err("has a comma: numbers have a decimal point where commas separate columns");
            }
            (Some((whole, fraction)), _) if whole.contains('.') || fraction.contains([',', '.']) => {
                return Err("has more than one separator: numbers have no separators of thousands");
            }
            (Some((whole, fraction)), _) => format!("{whole}.{fraction}").parse(),
        };
        match plain {
            Ok(number) if f64::is_finite(number) => {
                if let Some((decimals, parts)) = self.decimals.zip(text.split_once([',', '.'])) {
                    decimals.note(self.place, text, parts);
                }
                Ok(number)
            }
            Ok(_) => Err("is not a finite number"),
            Err(_) => Err("is not a number: leave the cell empty where there is no value"),
        }
    }

    /// A problem with a cell.
    pub(crate) fn problem(&self, at: usize, reason: impl Into<String>) -> Problem {
        Problem::cell(self.place, self.name(at), self.get(at), reason)
    }
}

/// The column of a name: the one of exactly this name, else the one whose name differs in case only. An error if several can be
/// meant.
pub(crate) fn find(names: &[String], name: &str) -> Result<Option<usize>, String> {
    let all = || names.iter().enumerate();
    let mut exact = all().filter(|(_, known)| *known == name);
    let mut similar = all().filter(|(_, known)| known.to_lowercase() == name.trim().to_lowercase());
    let found = match (exact.next(), exact.next()) {
        (None, _) => (similar.next(), similar.next()),
        found => found,
    };
    match found {
        (_, Some(_)) => Err(format!("several columns have the name {:?}", shortened(name))),
        (first, None) => Ok(first.map(|(at, _)| at)),
    }
}

/// [`find`] for a column that must be there.
pub(crate) fn need(names: &[String], name: &str) -> Result<usize, String> {
    find(names, name)?.ok_or_else(|| format!("there is no column {:?}", shortened(name)))
}

fn unreadable(error: csv::Error) -> Problem {
    Problem::Content(format!("the text is not in columns: {error}"))
}

/// The line on which a record begins. The reader's position is where the record before ended, so that it is before blank
/// lines.
fn line(text: &[u8], position: Option<&Position>) -> u64 {
    let Some(position) = position else { return 0 };
    let begin = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let ends = text.get(begin..).unwrap_or_default().iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + ends.filter(|byte| **byte == b'\n').count() as u64
}

/// Maximum number of lines before the header.
const BANNER_MAX: usize = 20;

/// The lines before the header, each with its number and the byte behind its end. The header is the first line that has as many
/// cells as the next one; lines before it count as such only if they have fewer cells. A line that begins with a time or a number
/// is no header: the lines before it have the header.
fn banner(text: &[u8]) -> Vec<(u64, usize)> {
    let mut end = 0;
    let lines = text.split_inclusive(|byte| *byte == b'\n').take(2 * BANNER_MAX).zip(1_u64..).map(|(line, number)| {
        end += line.len();
        (number, end, line)
    });
    let lines: Vec<(u64, usize, &[u8])> = lines.collect();
    let filled: Vec<usize> =
        (0..lines.len()).filter(|at| !lines[*at].2.trim_ascii().is_empty()).take(BANNER_MAX).collect();
    let cells = |at: usize, separator: u8| outside_of_quotes(lines[at].2).filter(|byte| *byte == separator).count() + 1;
    let header =
        filled.windows(2).map(|pair| (pair, usual_separator(lines[pair[0]].2))).find_map(|(pair, separator)| {
            let count = cells(pair[0], separator);
            let is_header = count > 1 && cells(pair[1], separator) == count;
            is_header.then_some((pair[0], separator, count))
        });
    let Some((header, separator, count)) = header else { return Vec::new() };
    if begins_with_time(lines[header].2, separator) {
        return Vec::new();
    }
    let is_banner = |at: &usize| {
        // Spreadsheets write the separator into a line of its own.
        lines[*at].2.starts_with(b"sep=")
            || cells(*at, separator) < count && lines[*at].2.iter().filter(|byte| **byte == b'"').count() % 2 == 0
    };
    let before = filled.into_iter().take_while(|at| *at < header);
    if before.clone().all(|at| is_banner(&at)) {
        before.map(|at| (lines[at].0, lines[at].1)).collect()
    } else {
        Vec::new()
    }
}

/// Whether the first cell of a line is a time or a number.
fn begins_with_time(line: &[u8], separator: u8) -> bool {
    let cell = line.split(|byte| *byte == separator).next().unwrap_or_default();
    str::from_utf8(cell).is_ok_and(|cell| Stamp::parse_by(cell.trim().trim_matches('"'), true).is_some())
}

/// The bytes of a line that are not between quotes.
fn outside_of_quotes(line: &[u8]) -> impl Iterator<Item = u8> {
    let mut quoted = false;
    line.iter().copied().filter(move |byte| {
        quoted ^= *byte == b'"';
        !quoted
    })
}

/// The separator that the header has most of outside of quotes; the first one where counts are equal.
fn usual_separator(text: &[u8]) -> u8 {
    let header = text.trim_ascii_start().split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let mut counts = SEPARATORS.map(|_| 0_usize);
    for byte in outside_of_quotes(header) {
        if let Some(at) = SEPARATORS.iter().position(|separator| *separator == byte) {
            counts[at] += 1;
        }
    }
    let most = (0..SEPARATORS.len()).rev().max_by_key(|at| counts[*at]).unwrap_or(0);
    SEPARATORS[most]
}
