//! Zones of local times, and the times that a file may have.

use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use crate::error::{Problem, shortened};

/// Microseconds of a second: times are whole microseconds, so that equal times and equal steps are equal.
pub(crate) const SECOND_US: i64 = 1_000_000;

/// Unix times (s) from 2001 to 2286: smaller numbers count from another instant, larger ones are of another unit.
pub(crate) const UNIX_S: Range<i64> = 1_000_000_000..10_000_000_000;

/// Years that a time may have. Earlier ones are the zeros of clocks and spreadsheets, which stand for no time.
const YEARS: RangeInclusive<i16> = 1970..=2200;

/// The reason why other times are refused.
pub(crate) const OUT_OF_RANGE: &str = "is not a time from 1970 to 2200";

/// Whether a time (µs since 1970) is in the years that times may have.
pub(crate) fn is_in_range(us: i64) -> bool {
    civil(us).is_some_and(|time| YEARS.contains(&time.year()))
}

/// Date and time of microseconds since 1970, without an offset.
pub(crate) fn civil(us: i64) -> Option<DateTime> {
    Timestamp::from_microsecond(us).ok().map(|time| Offset::UTC.to_datetime(time))
}

/// A time zone.
#[derive(Debug)]
pub(crate) struct Zone {
    /// Its IANA name.
    pub name: String,
    rules: TimeZone,
}

/// The instants (µs since 1970 UTC) at which the clocks of a zone showed a local time.
pub(crate) enum Shown {
    Once(i64),
    /// Before and after the clocks went back.
    Twice(i64, i64),
    /// The clocks went forward.
    Never,
}

impl Zone {
    /// The zone of the setting `timezone`.
    pub(crate) fn named(name: &str) -> Result<Zone, Problem> {
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| {
            let hint = fixed_zone(name).unwrap_or_default();
            let name = shortened(name);
            let reason = format!("there is no time zone {name:?}; names are IANA's, such as \"Europe/Berlin\"{hint}");
            Problem::setting("timezone", reason)
        })?;
        Ok(Zone { name: name.to_owned(), rules })
    }

    /// The instants of a local time (µs since 1970 by the clocks of the zone).
    pub(crate) fn instants(&self, local_us: i64) -> Shown {
        let Some(time) = civil(local_us) else { return Shown::Never };
        let instant = |offset: Offset| local_us - i64::from(offset.seconds()) * SECOND_US;
        match self.rules.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => Shown::Once(instant(offset)),
            AmbiguousOffset::Fold { before, after } => Shown::Twice(instant(before), instant(after)),
            AmbiguousOffset::Gap { .. } => Shown::Never,
        }
    }

    /// The local time of an instant.
    pub(crate) fn local(&self, us: i64) -> Option<DateTime> {
        Timestamp::from_microsecond(us).ok().map(|time| self.rules.to_datetime(time))
    }
}

/// The zone of a fixed offset such as `UTC+2`, `GMT-05:00` or `+02:00`, for messages: the sign of IANA's names is reversed.
fn fixed_zone(text: &str) -> Option<String> {
    let text = text.trim();
    let signed = ["UTC", "GMT"].iter().find_map(|known| text.strip_prefix(known)).unwrap_or(text).trim();
    let (sign, reversed, digits) = match (signed.strip_prefix('+'), signed.strip_prefix('-')) {
        (Some(digits), _) => ('+', '-', digits),
        (_, Some(digits)) => ('-', '+', digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
    let hours: u8 = hours.parse().ok().filter(|hours| *hours <= 14)?;
    match minutes {
        "00" if hours == 0 => Some("; use \"UTC\"".to_owned()),
        "00" => Some(format!("; UTC{sign}{hours} is \"Etc/GMT{reversed}{hours}\", whose sign is reversed")),
        _ => None,
    }
}

/// The problem of a file that has no local times, and for which a zone is set. `why`: what its times are.
pub(crate) fn needless_zone(why: &str) -> Problem {
    Problem::setting("timezone", format!("its times need no zone ({why}); remove it"))
}
