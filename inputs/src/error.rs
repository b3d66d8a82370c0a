//! Why a job log or a signal was refused.

use std::fmt;

/// A file that is refused. Final: the same file with the same settings is refused again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ReadError {
    /// Name of the file.
    pub file: String,
    /// The problem, and what helps.
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

/// A problem with a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More rows, or more bytes after decompression, than the limit.
    #[error("the file has more than {limit}, the limit for such files")]
    TooLarge {
        /// The limit with its unit.
        limit: String,
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
    #[error("{reason}{}: {}", help(*.setting), names(.columns))]
    Column {
        /// The column that was looked for.
        reason: String,
        /// The setting that helps, if there is one.
        setting: Option<&'static str>,
        /// The names of the columns.
        columns: Vec<String>,
    },
    /// A row has more or fewer fields than there are columns.
    #[error("{place} has {found} field{}, and there are {expected} columns{hint}", if *.found == 1 { "" } else { "s" })]
    Fields {
        /// The place.
        place: Place,
        /// Fields of the row.
        found: usize,
        /// Columns.
        expected: usize,
        /// The likely cause, after a colon.
        hint: &'static str,
    },
    /// A row, a record or a time is wrong.
    #[error("{place}: {reason}")]
    At {
        /// The place; of several, the first.
        place: Place,
        /// The reason.
        reason: String,
    },
    /// A local time that has no instant without a zone, or that the zone does not have.
    #[error("{place}: {reason}")]
    Zone {
        /// The place.
        place: Place,
        /// The reason.
        reason: String,
    },
    /// Several problems of settings and columns.
    #[error("{}", listed(.0))]
    Several(Vec<Problem>),
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

    /// A time without an offset, where the zone is not known.
    pub(crate) fn no_timezone(place: Place, text: &str) -> Problem {
        let reason = format!(
            "the time {:?} has no offset and the file names no zone, so it could be UTC or the time of any local clock: set \
             `timezone` to an IANA name such as \"Europe/Berlin\", to \"UTC\", or for a fixed offset such as UTC+1 to \"Etc/GMT-1\"",
            shortened(text)
        );
        Problem::Zone { place, reason }
    }

    /// The place of a problem of one row, which says nothing about other rows; `None` for a problem of the file or of a setting.
    pub(crate) fn row(&self) -> Option<Place> {
        match self {
            Problem::Fields { place, .. } | Problem::At { place, .. } | Problem::Cell { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// A cell cannot be read.
    pub(crate) fn cell(place: Place, column: &str, text: &str, reason: impl Into<String>) -> Problem {
        Problem::Cell { place, column: shortened(column), text: shortened(text), reason: reason.into() }
    }
}

/// Maximum number of problems in a message.
const PROBLEMS_SHOWN: usize = 6;

fn listed(problems: &[Problem]) -> String {
    let shown = problems.iter().take(PROBLEMS_SHOWN).map(ToString::to_string).collect::<Vec<_>>().join("\n  and ");
    match problems.len().saturating_sub(PROBLEMS_SHOWN) {
        0 => shown,
        more => format!("{shown}\n  and {more} more"),
    }
}

/// Problems of settings and columns that are reported together.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// The value, or `None` after its problem was noted.
    pub(crate) fn take<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Problem::Several(problems)) => {
                self.0.extend(problems);
                None
            }
            Err(problem) => {
                self.0.push(problem);
                None
            }
        }
    }

    /// All problems that were noted; an error if there is one.
    pub(crate) fn finish(&mut self) -> Result<(), Problem> {
        match (self.0.len(), self.0.pop()) {
            (_, None) => Ok(()),
            (1, Some(only)) => Err(only),
            (_, Some(last)) => {
                self.0.push(last);
                Err(Problem::Several(std::mem::take(&mut self.0)))
            }
        }
    }
}

/// The setting that helps to find a column, before the names of the columns.
fn help(setting: Option<&str>) -> String {
    setting.map_or("; columns".to_owned(), |setting| format!(": set `{setting}`. Columns"))
}

/// A number of rows in words.
pub(crate) fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

/// Maximum number of names in a message.
const NAMES_SHOWN: usize = 12;

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
