//! Why a job log or a signal was refused.

use std::fmt;

/// A file that is refused. Final: the same file with the same settings is refused again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ReadError {
    /// Name of the file.
    pub file: String,
    /// What is wrong with it, and what helps.
    pub problem: Problem,
}

/// A place in a file. Lines and rows count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a text.
    Line(u64),
    /// A row of a file that has no lines.
    Row(u64),
}

impl Place {
    /// The number of the line or row.
    pub fn number(self) -> u64 {
        let (Place::Line(number) | Place::Row(number)) = self;
        number
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More bytes than the limit, decompressed.
    #[error("the file has more than {} MiB of data, the limit for such files", .limit_bytes >> 20)]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// More rows than the limit, in the file or after gaps are filled.
    #[error("the {} has more than {limit} {}", if *.filled { "signal" } else { "file" }, if *.filled {
        "times, the limit for signals, because of its gaps: cut the file where it has none"
    } else {
        "rows, the limit for such files"
    })]
    TooManyRows {
        /// The limit.
        limit: usize,
        /// Whether the filled gaps are too long.
        filled: bool,
    },
    /// The content is not of the format.
    #[error("{0}")]
    Content(String),
    /// A setting does not fit the file.
    #[error("`{setting}` does not fit the file: {reason}")]
    Setting {
        /// The key of the setting.
        setting: &'static str,
        /// The reason.
        reason: String,
    },
    /// A column cannot be found, or several can be meant.
    #[error("{reason}{}: {}", setting.map_or("; columns".to_owned(), |setting| format!(": set `{setting}`. Columns")), names(.columns))]
    Column {
        /// What was looked for.
        reason: String,
        /// The setting that helps, if there is one.
        setting: Option<&'static str>,
        /// The names of the columns.
        columns: Vec<String>,
    },
    /// A row has more or fewer fields than there are columns.
    #[error("{place} has {found} {}, and there are {expected} columns{hint}", if *.found == 1 { "field" } else { "fields" })]
    Fields {
        /// The place.
        place: Place,
        /// Fields of the row.
        found: usize,
        /// Columns.
        expected: usize,
        /// What may be wrong, after a colon.
        hint: &'static str,
    },
    /// No unit is stated.
    #[error("column {column:?} has no unit in its name: set `unit`, such as {examples}")]
    NoUnit {
        /// The column of the values.
        column: String,
        /// Units of the quantity.
        examples: &'static str,
    },
    /// Local times without a zone.
    #[error(
        "{place}: the time {text:?} has no offset and the file names no zone, so it could be UTC or the time of any local clock: \
         set `timezone` to an IANA name such as \"Europe/Berlin\", or to \"UTC\""
    )]
    NoTimezone {
        /// The place of the first time.
        place: Place,
        /// The time in the file.
        text: String,
    },
    /// A cell cannot be read.
    #[error("{place}, column {column:?}: {text:?} {reason}")]
    Cell {
        /// The place.
        place: Place,
        /// The column.
        column: String,
        /// The cell, at most 60 characters.
        text: String,
        /// The reason.
        reason: String,
    },
    /// Times go back.
    #[error("{place}: the time {time} is before the time of the row above: sort the rows by time")]
    Order {
        /// The place.
        place: Place,
        /// The time.
        time: String,
    },
    /// Times that occur more than once with different values.
    #[error(
        "{place}: the time {time} occurs again with another value ({} in all): set `duplicates` to \"first\", \"last\" or \
         \"mean\" to accept them", rows(*.count))]
    Duplicate {
        /// The place of the first one.
        place: Place,
        /// The time.
        time: String,
        /// Rows whose time has occurred before.
        count: u64,
    },
    /// A local time that no clock showed.
    #[error(
        "{place}: {time} does not exist in {zone}, where the clocks went forward{}, such as \"Etc/GMT-1\" for UTC+1",
        no_such_time(*.count)
    )]
    NoSuchTime {
        /// The place of the first one.
        place: Place,
        /// The local time.
        time: String,
        /// The zone.
        zone: String,
        /// Rows whose time does not exist, where the setting `clock_change` can drop them.
        count: Option<u64>,
    },
    /// A local time that the clocks showed twice and the file has once.
    #[error(
        "{place}: the clocks of {zone} showed {time} twice, where they went back, and the file has it once ({} in all): set \
         `clock_change = \"repair\"` to use the value for both; if the file's clock never changes, name a zone without clock \
         changes, such as \"Etc/GMT-1\" for UTC+1", rows(*.count))]
    OneOfTwo {
        /// The place of the first one.
        place: Place,
        /// The local time.
        time: String,
        /// The zone.
        zone: String,
        /// Times that the file has once.
        count: u64,
    },
    /// Missing times or values.
    #[error(
        "no value at {first}; {}: set `gaps` to \"hold\" (the value before; for files that list only changes) or \"interpolate\" \
         to fill them", gaps(*.times, *.values, *.step_s))]
    Gap {
        /// The first time without a value.
        first: String,
        /// Times of the regular step that the file lacks.
        times: u64,
        /// Times of the file that have no value.
        values: u64,
        /// The regular step (s).
        step_s: Option<f64>,
    },
    /// No value at all.
    #[error("column {column:?} has no value in any row")]
    Empty {
        /// The column.
        column: String,
    },
}

impl Problem {
    /// A column that is needed is absent. `purpose`: what it is needed for, and how to get it.
    pub(crate) fn no_column(wanted: &str, purpose: &str, columns: &[String]) -> Problem {
        let reason = format!("there is no column {wanted}, {purpose}");
        Problem::Column { reason, setting: None, columns: columns.to_vec() }
    }

    /// A setting does not fit the file.
    pub(crate) fn setting(setting: &'static str, reason: impl Into<String>) -> Problem {
        Problem::Setting { setting, reason: reason.into() }
    }

    /// A cell cannot be read.
    pub(crate) fn cell(place: Place, column: &str, text: &str, reason: impl Into<String>) -> Problem {
        Problem::Cell { place, column: shortened(column), text: shortened(text), reason: reason.into() }
    }
}

fn no_such_time(count: Option<u64>) -> String {
    match count {
        None => {
            ": the times are of another zone; set `timezone` to it, such as \"UTC\" or, for a clock that never changes"
                .to_owned()
        }
        Some(count) => format!(
            " ({} in all): set `clock_change = \"repair\"` to drop such rows; if the file's clock never changes, name a zone \
             without clock changes",
            rows(count)
        ),
    }
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

fn gaps(times: u64, values: u64, step_s: Option<f64>) -> String {
    let step = step_s.map_or(String::new(), |step_s| format!(", at the step of {step_s} s"));
    match (times, values) {
        (0, values) => format!("{} without a value in all", rows(values)),
        (times, 0) => format!("{times} missing in all{step}"),
        (times, values) => format!("{times} missing in all{step}, and {} without a value", rows(values)),
    }
}

/// Maximum number of names in a message.
const NAMES_SHOWN: usize = 12;

/// Names of columns.
fn names(columns: &[String]) -> String {
    let shown: Vec<String> = columns.iter().take(NAMES_SHOWN).map(|name| format!("{:?}", shortened(name))).collect();
    let more = columns.len().saturating_sub(NAMES_SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

/// Maximum number of characters of a text in a message.
const TEXT_SHOWN: usize = 60;

/// A text, cut to a length for messages.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
