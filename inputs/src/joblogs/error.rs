//! Why a file was refused.

/// A file that is refused. Final: the same file with the same settings is refused again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct JobLogError {
    /// Name of the file.
    pub file: String,
    /// What is wrong with it, and what helps.
    pub problem: Problem,
}

/// What is wrong with a file. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
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
    /// A column that is needed is absent.
    #[error("there is no column {wanted}, {purpose}; columns: {}", names(.columns))]
    NoColumn {
        /// Names of columns, one of which is needed.
        wanted: &'static str,
        /// What it is needed for, and how to get it.
        purpose: &'static str,
        /// The columns of the file.
        columns: Vec<String>,
    },
    /// A row has more or fewer fields than the header.
    #[error("line {line} has {found} fields, and there are {expected} columns{hint}")]
    Fields {
        /// The line.
        line: u64,
        /// Fields of the row.
        found: usize,
        /// Columns.
        expected: usize,
        /// What may be wrong, after a colon.
        hint: &'static str,
    },
    /// A cell cannot be read.
    #[error("line {line}, column {column:?}: {text:?} {reason}")]
    Cell {
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// The cell, at most 60 characters.
        text: String,
        /// The reason.
        reason: String,
    },
    /// Local times without a zone.
    #[error(
        "line {line}: the time {text:?} has no offset, so it could be UTC or the time of any local clock: set `timezone` to an \
         IANA name such as \"Europe/Berlin\", or to \"UTC\""
    )]
    NoTimezone {
        /// The line of the first time.
        line: u64,
        /// The time in the file.
        text: String,
    },
    /// A local time that no clock showed.
    #[error(
        "line {line}: {text} does not exist in {zone}, where the clocks went forward: the times are of another zone; set \
         `timezone` to it, such as \"UTC\" or, for a clock that never changes, \"Etc/GMT-1\" for UTC+1"
    )]
    NoSuchTime {
        /// The line.
        line: u64,
        /// The local time.
        text: String,
        /// The zone.
        zone: String,
    },
}

/// Maximum number of names in a message.
const NAMES_SHOWN: usize = 12;

fn names(columns: &[String]) -> String {
    let shown: Vec<String> = columns.iter().take(NAMES_SHOWN).map(|name| shortened(name)).collect();
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
