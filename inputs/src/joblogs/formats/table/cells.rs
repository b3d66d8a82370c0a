//! Cells of tables.

use crate::error::Problem;
use crate::joblogs::clock::{JobClock, Time};
use crate::joblogs::settings::TimeUnit;
use crate::table::Row;
use crate::table::clock::{SECOND_US, UNIX_S};

/// Whether a cell has no value.
pub(in crate::joblogs::formats) fn is_missing(text: &str) -> bool {
    let words = ["", "-", "n/a", "na", "nan", "none", "null", "unknown", "\\N"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Reads the times of a table, which are all those of a calendar or all count from the second 0 of the log.
pub(super) struct TableTimes {
    unit: TimeUnit,
    clock: JobClock,
    is_calendar: Option<bool>,
}

impl TableTimes {
    pub(super) fn new(unit: TimeUnit, clock: JobClock) -> TableTimes {
        TableTimes { unit, clock, is_calendar: None }
    }

    /// Whether a time is the zero of a clock, which stands for no time where the times are those of a calendar.
    pub(super) fn is_zero(&self, time: Time) -> bool {
        self.is_calendar == Some(true) && time.us == 0
    }

    /// Whether the times are those of a calendar. Refuses a zone that none of them needed.
    pub(super) fn finish(self) -> Result<bool, Problem> {
        self.clock.finish()?;
        Ok(self.is_calendar.unwrap_or(false))
    }

    /// The instant in a column: a number in the unit of the table, or a date. `None` for a date of 1970, which stands for no time.
    pub(super) fn read(&mut self, row: &Row<'_>, at: usize) -> Result<Option<Time>, Problem> {
        let text = row.get(at);
        let (time, is_calendar) = match row.number(text) {
            Err(_) => match self.clock.read(text, row.place, row.name(at))? {
                Some(time) => (time, true),
                None => return Ok(None),
            },
            Ok(number) => {
                let us = self.unit.us(number).filter(|us| (0..=UNIX_S.end * SECOND_US).contains(us));
                let us = us.ok_or_else(|| {
                    row.problem(at, "is no time from 0 to 10^10 s; `time_unit` says what numbers are")
                })?;
                let is_unix = us >= UNIX_S.start * SECOND_US;
                let kind = if is_unix { "Unix times" } else { "times from the second 0 of the log" };
                (self.clock.instant(us, kind), is_unix)
            }
        };
        match self.is_calendar {
            // 0 does not tell which times these are.
            _ if time.us == 0 => Ok(Some(time)),
            Some(first) if first != is_calendar => Err(row.problem(
                at,
                "is another kind of time than those above: Unix times and dates begin at 10^9 s, in 2001",
            )),
            _ => {
                self.is_calendar = Some(is_calendar);
                Ok(Some(time))
            }
        }
    }
}
