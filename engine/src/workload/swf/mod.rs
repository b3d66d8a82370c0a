//! Reader of logs in the Standard Workload Format 2.2, with the deviations of published logs.
//!
//! A record is a line of 18 numbers between blanks; `;` starts a comment, and comments of the form `; Key: value` are
//! the header. The reader accepts deviations that occur in published logs: decimals in any field, tabs, carriage returns,
//! blank lines, comments between records, a missing final newline, unsorted records, gaps in the ids, header keys indented
//! or right after the `;`, values with trailing text. Any other line is an error that names file, line and field; a number
//! is never guessed.
//!
//! [`super::rules`] decides which records are used and how missing values (-1) are filled.
//!
//! Invariants: no input makes [`parse`] panic, and every number in a [`Record`] is finite and at most 2^53 in size.

mod gpus;
mod header;
mod number;
mod power;

pub use gpus::{GPUS_KEY, RecordGpus};
pub use header::Header;
pub use power::{POWER_KEY, POWER_SERIES_KEY, PowerSeries, RecordPower, spans};

use std::sync::Arc;

use number::NumberProblem;

use super::LogFormat;
use super::kinds::{BYTE_ORDER_MARK, other_kind};
use crate::spec::Component;

/// Description of the SWF source.
pub const COMPONENT: Component = Component {
    name: "swf",
    version: 2,
    source: "Chapin et al. 1999, Standard Workload Format 2.2",
    doc: "A log in the Standard Workload Format, plain, .gz or .zst, by name, path or URL.",
    params: &[super::LOG, super::LOG_SHA256, super::LOG_IMPORT],
    ..super::LOG_SOURCE
};

/// The format.
pub static FORMAT: LogFormat = LogFormat {
    component: COMPONENT,
    suffix: "swf",
    parse,
    sample: "; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1\n",
};

/// Numbers in a record.
const FIELDS: usize = 18;

/// Greatest processor count that a record may state.
const PROCS_MAX: f64 = (1u32 << 30) as f64;

/// Names of the 18 fields, as the format's definition gives them.
const FIELD_NAMES: [&str; FIELDS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// One record of a log, with the fields that simulations and statistics use. -1 means "not known".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// Job number (field 1): 0 or more, not always ascending, with gaps.
    pub id: i64,
    /// Submit time (field 2) in seconds of the log, or -1, as of a partial execution beside the record of its whole job.
    pub submit_s: f64,
    /// Wait time in the log's own schedule (field 3) in seconds, or -1.
    pub wait_s: f64,
    /// Run time (field 4) in seconds, or -1 for a job that never ran.
    pub run_s: f64,
    /// Requested time (field 9) in seconds, or -1.
    pub requested_s: f64,
    /// Allocated processors (field 5), or -1.
    pub procs_allocated: i32,
    /// Requested processors (field 8), or -1.
    pub procs_requested: i32,
    /// User (field 12), or -1.
    pub user: i32,
    /// Group (field 13), or -1.
    pub group: i32,
    /// Queue (field 15), or -1.
    pub queue: i32,
    /// Partition (field 16), or -1.
    pub partition: i32,
    /// Requested memory of each processor (field 10) in KiB, rounded up, or -1.
    pub memory_requested_kib: i64,
    /// Used memory of each processor (field 7) in KiB, likewise.
    pub memory_used_kib: i64,
    /// Status (field 11): 0..=5 by the definition, exit codes of either sign in some logs.
    pub status: i32,
    /// Line of the file (from 1; the last line that fits for files beyond 2^32 lines).
    pub line: u32,
}

impl Record {
    /// A record without known fields, for struct updates in formats with fewer fields.
    pub const UNKNOWN: Record = Record {
        id: 0,
        submit_s: -1.0,
        wait_s: -1.0,
        run_s: -1.0,
        requested_s: -1.0,
        procs_allocated: -1,
        procs_requested: -1,
        user: -1,
        group: -1,
        queue: -1,
        partition: -1,
        memory_requested_kib: -1,
        memory_used_kib: -1,
        status: -1,
        line: 0,
    };
}

/// A parsed log: header and records in file order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwfLog {
    /// Name of the file, for messages.
    pub file: String,
    /// The header comments.
    pub header: Header,
    /// The records in file order.
    pub records: Vec<Record>,
    /// Work of some records in the order of the records, for formats whose run times depend on the speed of a processor.
    pub work: Vec<Work>,
    /// Measured powers of some records in the order of the records.
    pub powers: Vec<RecordPower>,
    /// Samples of some of these powers.
    pub power_series: Arc<PowerSeries>,
    /// GPUs of some records in the order of the records.
    pub gpus: Vec<RecordGpus>,
}

/// The run time of a record as a function of speed. The record's own is that at 1 Gflop/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Position of the record.
    pub record: usize,
    /// The part of the run time that does not depend on the speed (s).
    pub fixed_s: f64,
    /// Operations of a processor (10^9).
    pub gflop: f64,
}

impl SwfLog {
    /// The records with the run times on processors of this speed.
    pub fn records_at(&self, speed_gflops: f64) -> impl ExactSizeIterator<Item = Record> + '_ {
        // At this speed the run times are those of the records, bit by bit.
        let mut work = self.work.iter().filter(move |_| speed_gflops != 1.0).peekable();
        self.records.iter().enumerate().map(move |(at, record)| match work.next_if(|work| work.record == at) {
            Some(work) => Record { run_s: work.fixed_s + work.gflop / speed_gflops, ..*record },
            None => *record,
        })
    }

    /// Bytes of memory that the log holds, for caches with a budget.
    pub fn memory_bytes(&self) -> usize {
        size_of::<SwfLog>()
            + self.file.capacity()
            + self.header.memory_bytes()
            + self.records.capacity() * size_of::<Record>()
            + self.work.capacity() * size_of::<Work>()
            + self.powers.capacity() * size_of::<RecordPower>()
            + self.power_series.memory_bytes()
            + self.gpus.capacity() * size_of::<RecordGpus>()
    }
}

/// Why a log cannot be read. All final: the file has to be replaced or repaired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwfError {
    /// A record has more or fewer than 18 fields.
    #[error(
        "{file}, line {line}: a record has 18 fields, this line has {found}{}",
        cut(*.last_line)
    )]
    FieldCount {
        /// The log.
        file: String,
        /// Line of the file, from 1.
        line: u64,
        /// Fields on the line.
        found: usize,
        /// Whether the file ends within this line: then it was probably cut.
        last_line: bool,
    },
    /// The format does not allow the value of a field.
    #[error("{file}, line {line}, field {field} ({name}): expected {expected}, found `{found}`{}", cut(*.last_line))]
    Field {
        /// The log.
        file: String,
        /// Line of the file, from 1.
        line: u64,
        /// Field, from 1 to 18.
        field: usize,
        /// The field's name.
        name: &'static str,
        /// The values that the format allows.
        expected: &'static str,
        /// The text of the field; unprintable bytes escaped, long ones cut.
        found: String,
        /// Whether the file ends within this line: then it was probably cut.
        last_line: bool,
    },
    /// A line does not follow its format.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// The log.
        file: String,
        /// Line of the file, from 1.
        line: u64,
        /// The problem.
        what: String,
    },
    /// The file is of another kind than text.
    #[error("{file}: the file is {kind}")]
    OtherKind {
        /// The log.
        file: String,
        /// The kind, and what helps.
        kind: &'static str,
    },
    /// Another of these errors, in a file whose name has no ending of the format.
    #[error("{error} (read in the format `{format}`)")]
    ReadAs {
        /// The error.
        error: Box<SwfError>,
        /// The format, as a manifest's `source` names it.
        format: &'static str,
    },
}

fn cut(last_line: bool) -> &'static str {
    if last_line { "; it is the last line and has no line end: is the file truncated?" } else { "" }
}

/// Reads a log. `file` is its name for messages.
///
/// Memory: 88 bytes for each record, besides `bytes`. Errors are final and name the first line that cannot be read.
pub fn parse(bytes: &[u8], file: &str) -> Result<SwfLog, SwfError> {
    let bytes = plain(bytes, &[], file)?;
    if !bytes.contains(&b'\n') && bytes.trim_ascii().contains(&b'\r') {
        let kind = "a text whose lines end in CR alone, as on an old Macintosh: save it with line ends of LF";
        return Err(SwfError::OtherKind { file: file.to_owned(), kind });
    }
    let mut log = SwfLog { file: file.to_owned(), ..SwfLog::default() };
    log.records.reserve_exact(records_at_most(bytes));
    let mut cursor = number::Cursor::new(bytes);
    let (mut line, mut series) = (0u64, PowerSeries::default());
    while !cursor.at_end() {
        line += 1;
        let start = cursor.position();
        match cursor.skip_blanks() {
            None => {}
            Some(b';') => {
                let comment = cursor.rest_of_line();
                let above = log.records.last().map(|record| (log.records.len() - 1, record.id));
                let read = if let Some(text) = power::text(comment, POWER_KEY) {
                    power::read(text, above, &log.powers).map(|power| log.powers.push(power))
                } else if let Some(text) = power::text(comment, POWER_SERIES_KEY) {
                    series.read(text, above, &log.powers)
                } else if let Some(text) = power::text(comment, GPUS_KEY) {
                    gpus::read(text, above, &log.gpus).map(|gpus| log.gpus.push(gpus))
                } else {
                    log.header.read(comment)
                };
                read.map_err(|what| SwfError::Line { file: file.to_owned(), line, what })?;
            }
            Some(_) => {
                let record =
                    read_record(&mut cursor, line).map_err(|problem| explain(problem, bytes, start, file, line))?;
                log.records.push(record);
            }
        }
        cursor.next_line();
    }
    log.records.shrink_to_fit();
    leave_out_parts(&mut log.records);
    log.power_series = Arc::new(series);
    Ok(log)
}

/// Statuses of the partial executions of a job that was swapped out.
const PARTIAL: std::ops::RangeInclusive<i32> = 2..=4;

/// Takes the submit times of partial executions beside the record of their whole job. All have its job number and follow one
/// another. Only the first would have one, and a workload has the whole job only.
fn leave_out_parts(records: &mut [Record]) {
    for job in records.chunk_by_mut(|a, b| a.id == b.id).filter(|job| job.len() > 1) {
        let is_part = |record: &Record| PARTIAL.contains(&record.status);
        if !job.iter().all(is_part) {
            job.iter_mut().filter(|record| is_part(record)).for_each(|record| record.submit_s = -1.0);
        }
    }
}

/// The bytes of a text without a byte order mark; an error for a file of another kind that is not `expected`.
pub(super) fn plain<'a>(bytes: &'a [u8], expected: &[&[u8]], file: &str) -> Result<&'a [u8], SwfError> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match other_kind(text, expected) {
        Some(kind) => Err(SwfError::OtherKind { file: file.to_owned(), kind }),
        None => Ok(text),
    }
}

/// Upper bound of the records in a text: the number of lines, and a record has at least 36 bytes. Counting first costs
/// little, whereas a growing vector would hold its contents twice.
fn records_at_most(bytes: &[u8]) -> usize {
    let mut lines = 1usize;
    // A byte can count a block of at most 255 bytes, which the compiler turns into vector code.
    for block in bytes.chunks(255) {
        lines += usize::from(block.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>());
    }
    lines.min(bytes.len() / (2 * FIELDS) + 1)
}

/// The problem of a line, before [`explain`] adds its place and text.
enum Problem {
    FieldCount,
    Field { index: usize, expected: &'static str },
}

/// Reads the record at the cursor and moves the cursor to the end of the line's fields.
fn read_record(cursor: &mut number::Cursor<'_>, line: u64) -> Result<Record, Problem> {
    let mut values = [0f64; FIELDS];
    for (index, value) in values.iter_mut().enumerate() {
        if cursor.skip_blanks().is_none() {
            return Err(Problem::FieldCount);
        }
        *value = cursor.number().map_err(|problem| Problem::Field {
            index,
            expected: match problem {
                NumberProblem::NotANumber => "a number",
                NumberProblem::TooLarge => "a number of at most 2^53 in size",
            },
        })?;
    }
    if cursor.skip_blanks().is_some() {
        return Err(Problem::FieldCount);
    }
    Ok(Record {
        id: whole(&values, 0, 0.0, number::LARGEST)? as i64,
        submit_s: known(&values, 1)?,
        wait_s: known(&values, 2)?,
        run_s: known(&values, 3)?,
        requested_s: known(&values, 8)?,
        procs_allocated: procs(&values, 4)?,
        procs_requested: procs(&values, 7)?,
        status: label(&values, 10)?,
        user: label(&values, 11)?,
        group: label(&values, 12)?,
        queue: label(&values, 14)?,
        partition: label(&values, 15)?,
        memory_requested_kib: kib(values[9]),
        memory_used_kib: kib(values[6]),
        line: u32::try_from(line).unwrap_or(u32::MAX),
    })
}

/// A time: 0 or more, or -1.
fn known(values: &[f64; FIELDS], index: usize) -> Result<f64, Problem> {
    let value = values[index];
    if value >= 0.0 || value == -1.0 {
        Ok(value)
    } else {
        Err(Problem::Field { index, expected: "a time of 0 or more, or -1 for \"not known\"" })
    }
}

/// A whole number in a range.
fn whole(values: &[f64; FIELDS], index: usize, min: f64, max: f64) -> Result<f64, Problem> {
    let value = values[index];
    if (min..=max).contains(&value) && value as i64 as f64 == value {
        Ok(value)
    } else {
        let expected = match index {
            0 => "a whole number of 0 or more",
            4 | 7 => "a whole number from 0 to 2^30, or -1 for \"not known\"",
            _ => "a whole number of at most 2^31 - 1 in size",
        };
        Err(Problem::Field { index, expected })
    }
}

/// A processor count, or -1.
fn procs(values: &[f64; FIELDS], index: usize) -> Result<i32, Problem> {
    Ok(whole(values, index, -1.0, PROCS_MAX)? as i32)
}

/// A number that stands for a name: user, group, queue, partition, status.
fn label(values: &[f64; FIELDS], index: usize) -> Result<i32, Problem> {
    Ok(whole(values, index, -f64::from(i32::MAX), f64::from(i32::MAX))? as i32)
}

/// A memory (KiB), or -1 for a value that is none. A number of the log is at most 2^53.
fn kib(value: f64) -> i64 {
    if value >= 0.0 { value.ceil() as i64 } else { -1 }
}

/// The error for a problem of the line that begins at `start`.
#[cold]
fn explain(problem: Problem, bytes: &[u8], start: usize, file: &str, line: u64) -> SwfError {
    let end = bytes[start..].iter().position(|b| *b == b'\n').map(|n| start + n);
    let text = &bytes[start..end.unwrap_or(bytes.len())];
    let mut fields = text.split(|b| number::is_blank(*b)).filter(|f| !f.is_empty());
    let file = file.to_owned();
    match problem {
        Problem::FieldCount => SwfError::FieldCount { file, line, found: fields.count(), last_line: end.is_none() },
        Problem::Field { index, expected } => SwfError::Field {
            file,
            line,
            field: index + 1,
            name: FIELD_NAMES[index],
            expected,
            found: printable(fields.nth(index).unwrap_or_default()),
            last_line: end.is_none(),
        },
    }
}

/// A field's text for a message: at most 40 bytes, unprintable ones escaped.
fn printable(field: &[u8]) -> String {
    const SHOWN: usize = 40;
    let cut = if field.len() > SHOWN { "..." } else { "" };
    format!("{}{cut}", field[..field.len().min(SHOWN)].escape_ascii())
}

#[cfg(test)]
mod tests;
