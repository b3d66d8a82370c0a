//! Why a file was refused.

/// Maximum size of a file (bytes), decompressed.
pub const BYTES_MAX: usize = 256 << 20;

/// Maximum number of rows of a file, and of times of a series: 19 years of minutes.
pub const ROWS_MAX: usize = 10_000_000;

/// A file that is refused. Final: the same file with the same settings is refused again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct SignalError {
    /// Name of the file.
    pub file: String,
    /// What is wrong with it, and what helps.
    pub problem: Problem,
}

/// What is wrong with a file. Places (`at`) are lines of text, or rows of other forms, such as "line 3".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More bytes than the limit.
    #[error("the file has more than {} MiB, the limit for signals", BYTES_MAX >> 20)]
    TooLarge,
    /// More rows than the limit, in the file or after gaps are filled.
    #[error("the signal has more than {ROWS_MAX} times, the limit for signals{}", if *.filled {
        ", because of its gaps: cut the file where it has none"
    } else {
        ""
    })]
    TooManyRows {
        /// Whether the filled gaps are too long.
        filled: bool,
    },
    /// The content is not of the form.
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
    #[error("{reason}: set `{setting}`. Columns: {}", names(.columns))]
    Column {
        /// What was looked for.
        reason: String,
        /// The setting that helps.
        setting: &'static str,
        /// The names of the columns.
        columns: Vec<String>,
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
        "{at}: the time {text:?} has no offset and the file names no zone, so it could be UTC or the time of any local clock: \
         set `timezone` to an IANA name such as \"Europe/Berlin\", or to \"UTC\""
    )]
    NoTimezone {
        /// The place of the first time.
        at: String,
        /// The time in the file.
        text: String,
    },
    /// A cell cannot be read.
    #[error("{at}, column {column:?}: {text:?} {reason}")]
    Cell {
        /// The place.
        at: String,
        /// The column.
        column: String,
        /// The cell, at most 60 characters.
        text: String,
        /// The reason.
        reason: String,
    },
    /// Times go back.
    #[error("{at}: the time {time} is before the time of the row above: sort the rows by time")]
    Order {
        /// The place.
        at: String,
        /// The time.
        time: String,
    },
    /// Times that occur more than once with different values.
    #[error(
        "{at}: the time {time} occurs again with another value ({} in all): set `duplicates` to \"first\", \"last\" or \
         \"mean\" to accept them", rows(*.count))]
    Duplicate {
        /// The place of the first one.
        at: String,
        /// The time.
        time: String,
        /// Rows whose time has occurred before.
        count: u64,
    },
    /// A local time that no clock showed.
    #[error(
        "{at}: {time} does not exist in {zone}, where the clocks went forward ({} in all): set `clock_change = \"repair\"` to \
         drop such rows; if the file's clock never changes, name a zone without clock changes, such as \"Etc/GMT-1\" for \
         UTC+1", rows(*.count))]
    NoSuchTime {
        /// The place of the first one.
        at: String,
        /// The local time.
        time: String,
        /// The zone.
        zone: String,
        /// Rows whose time does not exist.
        count: u64,
    },
    /// A local time that the clocks showed twice and the file has once.
    #[error(
        "{at}: the clocks of {zone} showed {time} twice, where they went back, and the file has it once ({} in all): set \
         `clock_change = \"repair\"` to use the value for both; if the file's clock never changes, name a zone without clock \
         changes, such as \"Etc/GMT-1\" for UTC+1", rows(*.count))]
    OneOfTwo {
        /// The place of the first one.
        at: String,
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
