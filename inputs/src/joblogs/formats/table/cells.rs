//! Cells of tables.

use crate::error::{Place, Problem};
use crate::joblogs::clock::{Clock, SECOND_US, Time};
use crate::joblogs::settings::TimeUnit;

/// Greatest span of time (s): longer ones are errors of a file.
pub(super) const SPAN_MAX_S: i64 = 10_000_000_000;

/// Least number (s) that is a Unix time: 2001. Smaller ones are times from the second 0 of the log.
const UNIX_MIN_S: i64 = 1_000_000_000;

/// Whether a cell has no value.
pub(super) fn is_missing(text: &str) -> bool {
    let words = ["", "-", "n/a", "na", "nan", "none", "null", "unknown"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A finite number.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Reads the times of a table, which are all those of a calendar or all count from the second 0 of the log.
pub(super) struct Times<'a> {
    unit: TimeUnit,
    clock: &'a Clock,
    is_calendar: Option<bool>,
}

impl<'a> Times<'a> {
    pub(super) fn new(unit: TimeUnit, clock: &'a Clock) -> Times<'a> {
        Times { unit, clock, is_calendar: None }
    }

    /// Whether the times are those of a calendar.
    pub(super) fn is_calendar(&self) -> bool {
        self.is_calendar.unwrap_or(false)
    }

    /// The instant of a time: a number in the unit of the table, or a date. `place`: line and name of the column.
    pub(super) fn read(&mut self, text: &str, place: (Place, &str)) -> Result<Time, Problem> {
        let problem = |reason: &str| Problem::cell(place.0, place.1, text, reason);
        let (time, is_calendar) = match number(text) {
            None => (self.clock.read(text, place)?, true),
            Some(number) => {
                let us = self.unit.us(number).filter(|us| (0..=SPAN_MAX_S * SECOND_US).contains(us));
                let us =
                    us.ok_or_else(|| problem("is no time from 0 to 10^10 s; `time_unit` says what numbers are"))?;
                (Time::only(us), us >= UNIX_MIN_S * SECOND_US)
            }
        };
        match self.is_calendar {
            Some(first) if first != is_calendar => {
                Err(problem("is another kind of time than those above: Unix times and dates begin at 10^9 s, in 2001"))
            }
            _ => {
                self.is_calendar = Some(is_calendar);
                Ok(time)
            }
        }
    }
}
