//! Signals in tables of text.

use powersweep_experiments::signals::{Form, Reading};

use crate::error::{Place, Problem};
use crate::signals::ROWS_MAX;
use crate::signals::clock::Times;
use crate::signals::table::{Row, Table, ValueColumn};
use crate::table::{Sheet, need};

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

/// A problem with a column, which the setting can solve.
pub(super) fn problem(names: &[String], setting: &'static str, reason: String) -> Problem {
    Problem::Column { reason, setting: Some(setting), columns: names.to_vec() }
}

/// The column of a name.
pub(super) fn column(names: &[String], setting: &'static str, name: &str) -> Result<usize, Problem> {
    need(names, name).map_err(|reason| problem(names, setting, reason))
}

/// Reads the rows. Times without an offset are of UTC if the name of their column says so.
pub(super) fn table(
    mut sheet: Sheet<'_>,
    form: Form,
    columns: &Columns,
    column: ValueColumn,
    reading: &Reading,
) -> Result<Table, Problem> {
    let mut rows = Vec::new();
    let (mut times, mut zone, mut flagged, mut by_source) = (Times::default(), None, 0, 0);
    sheet.read_only([columns.time, columns.value].into_iter().chain(columns.flag).chain(columns.zone));
    while let Some(row) = sheet.next_row()? {
        if rows.len() == ROWS_MAX {
            return Err(Problem::TooLarge { limit: format!("{ROWS_MAX} rows") });
        }
        let line = u32::try_from(row.place.number()).unwrap_or(u32::MAX);
        let time_us = times.read(row.get(columns.time), line).map_err(|reason| row.problem(columns.time, reason))?;
        let value = match row.get(columns.value) {
            "" => f64::NAN,
            text => {
                let value = row.number(text).map_err(|reason| row.problem(columns.value, reason))?;
                column.convert(value).map_err(|reason| row.problem(columns.value, reason))?
            }
        };
        let flag = match columns.flag {
            Some(at) => flag(row.get(at)).ok_or_else(|| row.problem(at, "is neither true nor false"))?,
            None => false,
        };
        let estimated_source = columns.source.is_some_and(|at| is_estimate(row.bytes(at)));
        flagged += u64::from(flag);
        by_source += u64::from(estimated_source && !flag);
        if let Some(at) = columns.zone {
            let known = zone.get_or_insert_with(|| row.get(at).to_owned());
            if known != row.get(at) {
                return Err(row.problem(at, format!("follows {known:?}: the file of a signal has one zone")));
            }
        }
        rows.push(Row { time_us, value, line, estimated: flag || estimated_source });
    }
    if rows.is_empty() {
        return Err(Problem::Content("the file has a header and no rows".to_owned()));
    }
    let time_column = sheet.names.swap_remove(columns.time);
    let utc = says_utc(&time_column).then_some("UTC, by the name of the column of times");
    let clock = times.clock(utc, reading.timezone.as_deref(), Place::Line)?;
    let zone = zone.filter(|zone| !zone.is_empty());
    let estimates = (columns.flag.is_some() || columns.source.is_some()).then_some((flagged, by_source));
    Ok(Table { form, rows, place: Place::Line, clock, time_column, column, estimates, zone })
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
