//! Rows in columns: CSV with commas, semicolons or tabs, and Parquet, whose cells are read as texts.

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use arrow::array::RecordBatch;
use bytes::Bytes;
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use super::texts;
use crate::error::{Place, Problem, shortened};
use crate::joblogs::formats::parquet::{self, damaged};

/// Separators of columns.
const SEPARATORS: [u8; 3] = *b",;\t";

/// A table before its rows are read.
pub(in crate::joblogs::formats) struct Sheet<'a> {
    /// Names of the columns, without blanks around them.
    pub(in crate::joblogs::formats) names: Vec<String>,
    rows: Rows<'a>,
    record: StringRecord,
    number: u64,
}

/// The rows of a table.
enum Rows<'a> {
    Csv(Box<Reader<&'a [u8]>>),
    Parquet(Box<Batches>),
}

/// The rows of a Parquet file.
struct Batches {
    /// The opened file, until its first row is read.
    file: Option<ParquetRecordBatchReaderBuilder<Bytes>>,
    /// Whether the cells of a column are read.
    is_read: Vec<bool>,
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
    /// Rows of the file that are still to come.
    left: usize,
}

/// A row.
pub(in crate::joblogs::formats) struct Row<'a> {
    /// Its line, from 1.
    pub(super) line: u64,
    /// Its number, from 1.
    pub(super) number: u64,
    names: &'a [String],
    record: &'a StringRecord,
}

impl<'a> Sheet<'a> {
    /// Reads the header.
    pub(in crate::joblogs::formats) fn open(bytes: &'a [u8]) -> Result<Sheet<'a>, Problem> {
        if bytes.starts_with(parquet::MAGIC) {
            let (names, rows) = Batches::open(bytes)?;
            return Ok(Sheet { names, rows: Rows::Parquet(Box::new(rows)), record: StringRecord::new(), number: 0 });
        }
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
        Ok(Sheet { names, rows: Rows::Csv(Box::new(rows)), record: StringRecord::new(), number: 0 })
    }

    /// Reads the cells of these columns only. A table of Parquet may have many other ones.
    pub(super) fn read_only<'c>(&mut self, columns: impl Iterator<Item = &'c usize>) {
        if let Rows::Parquet(rows) = &mut self.rows {
            rows.is_read.fill(false);
            columns.for_each(|column| rows.is_read[*column] = true);
        }
    }

    /// The column of a name: the exact name, else without regard to case.
    pub(in crate::joblogs::formats) fn find(&self, name: &str) -> Option<usize> {
        let exact = self.names.iter().position(|known| known == name);
        exact.or_else(|| self.names.iter().position(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The next row.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, Problem> {
        let is_read = match &mut self.rows {
            Rows::Csv(rows) => rows.read_record(&mut self.record).map_err(|error| unreadable(&error))?,
            Rows::Parquet(rows) => parquet::guarded(|| rows.read_row(&self.names, &mut self.record))?,
        };
        if !is_read {
            return Ok(None);
        }
        self.number += 1;
        let line = self.record.position().map_or(self.number, csv::Position::line);
        let (found, expected) = (self.record.len(), self.names.len());
        if found != expected {
            return Err(Problem::Fields { place: Place::Line(line), found, expected, hint: ": is the file cut?" });
        }
        Ok(Some(Row { line, number: self.number, names: &self.names, record: &self.record }))
    }
}

impl Batches {
    /// The names of the columns, and the rows.
    fn open(bytes: &[u8]) -> Result<(Vec<String>, Batches), Problem> {
        parquet::guarded(|| {
            let (file, left) = parquet::open(bytes)?;
            let names: Vec<String> = file.schema().fields().iter().map(|field| field.name().clone()).collect();
            let is_read = vec![true; names.len()];
            Ok((names, Batches { file: Some(file), is_read, batches: None, batch: None, at: 0, left }))
        })
    }

    /// Begins to read the wanted columns.
    fn begin(&self, file: ParquetRecordBatchReaderBuilder<Bytes>) -> Result<ParquetRecordBatchReader, Problem> {
        parquet::check_size(&file, self.left, |at| self.is_read.get(at) == Some(&true))?;
        let read = self.is_read.iter().enumerate().filter(|(_, is_read)| **is_read).map(|(at, _)| at);
        let mask = ProjectionMask::roots(file.parquet_schema(), read);
        file.with_projection(mask).build().map_err(damaged)
    }

    /// Reads the next row; `false` behind the last one. Cells of columns that are not read are empty.
    fn read_row(&mut self, names: &[String], record: &mut StringRecord) -> Result<bool, Problem> {
        if let Some(file) = self.file.take() {
            self.batches = Some(self.begin(file)?);
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
        for (is_read, name) in self.is_read.iter().zip(names) {
            let array = if *is_read { arrays.next() } else { None };
            let Some(array) = array else {
                record.push_field("");
                continue;
            };
            text.clear();
            texts::write(array, self.at, name, &mut text)?;
            record.push_field(&text);
        }
        self.at += 1;
        Ok(true)
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
        Problem::cell(Place::Line(self.line), self.name(at), self.get(at), reason)
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
