//! The times of a file: which instants they are.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use crate::error::{Place, Problem, shortened};

/// Microseconds of a second: times are whole microseconds, so that equal times are equal.
pub(crate) const SECOND_US: i64 = 1_000_000;

/// Years that a time may have: others are errors of a file.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=2200;

/// Unix times (s) from 2001 to 2286; smaller numbers are no dates that a job log has.
const UNIX_S: std::ops::Range<i64> = 1_000_000_000..10_000_000_000;

/// An instant (µs since 1970 UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    /// The instant; of a local time that the clocks showed twice, the first.
    pub us: i64,
    /// The second instant of such a local time.
    pub second_us: Option<i64>,
}

impl Time {
    /// A time that can be only one instant.
    pub(crate) fn only(us: i64) -> Time {
        Time { us, second_us: None }
    }

    /// The instants that are meant.
    pub(crate) fn instants(self) -> impl Iterator<Item = i64> + Clone {
        std::iter::once(self.us).chain(self.second_us)
    }
}

/// The clock of times without an offset.
#[derive(Debug)]
pub(crate) struct Clock {
    zone: Option<(TimeZone, String)>,
}

impl Clock {
    /// The clock of the setting `timezone`.
    pub(crate) fn new(timezone: Option<&str>) -> Result<Clock, Problem> {
        let Some(name) = timezone else { return Ok(Clock { zone: None }) };
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Clock { zone: Some((TimeZone::UTC, "UTC".to_owned())) });
        }
        match TimeZoneDatabase::bundled().get(name) {
            Ok(zone) => Ok(Clock { zone: Some((zone, name.to_owned())) }),
            Err(_) => {
                let name = shortened(name);
                let reason = format!("there is no time zone {name:?}; names are IANA's, such as \"Europe/Berlin\"");
                Err(Problem::Setting { setting: "timezone", reason })
            }
        }
    }

    /// The instant of a time such as `2023-01-31T14:00:00`, with an offset or without, or of a Unix time (s). `place`: the
    /// place and the name of the column.
    pub(crate) fn read(&self, text: &str, (place, column): (Place, &str)) -> Result<Time, Problem> {
        let no_time = |reason: &str| Problem::cell(place, column, text, reason);
        if let Ok(seconds) = text.parse::<i64>() {
            let known = UNIX_S.contains(&seconds);
            return match known {
                true => Ok(Time::only(seconds * SECOND_US)),
                false => Err(no_time("is no Unix time from 2001 on")),
            };
        }
        let expected = "is not a time: times are dates such as 2023-01-31T14:00:00 (with an offset such as +01:00, or without), \
                        or Unix times in seconds";
        let in_range = |us: i64| match civil(us).is_some_and(|time| YEARS.contains(&time.year())) {
            true => Ok(us),
            false => Err(no_time("is not a time from 1970 to 2200")),
        };
        if let Some(instant) = offset(text) {
            return Ok(Time::only(in_range(instant.as_microsecond())?));
        }
        let local: DateTime = local(text).ok_or_else(|| no_time(expected))?;
        let Some((zone, name)) = &self.zone else {
            return Err(Problem::NoTimezone { place, text: shortened(text) });
        };
        let utc = Offset::UTC.to_timestamp(local).map_err(|_| no_time(expected))?.as_microsecond();
        let local_us = in_range(utc)?;
        let instant = |offset: Offset| local_us - i64::from(offset.seconds()) * SECOND_US;
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => Ok(Time::only(instant(offset))),
            AmbiguousOffset::Fold { before, after } => {
                Ok(Time { us: instant(before), second_us: Some(instant(after)) })
            }
            AmbiguousOffset::Gap { .. } => {
                Err(Problem::NoSuchTime { place, time: shortened(text), zone: name.clone(), count: None })
            }
        }
    }
}

/// A date and time without an offset. A date alone is no time.
fn local(text: &str) -> Option<DateTime> {
    let has_time = text.len() > 10 && text.contains(':') && !text.contains('[');
    text.parse().ok().filter(|_| has_time)
}

/// A date and time with an offset, or `Z`.
fn offset(text: &str) -> Option<Timestamp> {
    if text.contains('[') {
        return None;
    }
    text.parse().ok()
}

/// Date and time of microseconds since 1970 UTC.
pub(crate) fn civil(us: i64) -> Option<DateTime> {
    Timestamp::from_microsecond(us).ok().map(|time| Offset::UTC.to_datetime(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2017-01-01 00:00 UTC.
    const YEAR_S: i64 = 1_483_228_800;

    fn read(timezone: Option<&str>, text: &str) -> Result<Vec<i64>, String> {
        let clock = Clock::new(timezone).map_err(|problem| problem.to_string())?;
        let time = clock.read(text, (Place::Line(3), "Start")).map_err(|problem| problem.to_string())?;
        Ok(time.instants().map(|us| us / SECOND_US - YEAR_S).collect())
    }

    #[test]
    fn times_of_all_forms() {
        for text in ["1483228800", "2017-01-01T00:00:00Z", "2017-01-01T01:00:00+0100", "2016-12-31T19:00:00-05:00"] {
            assert_eq!(read(None, text), Ok(vec![0]), "{text}");
        }
        for text in ["2017-01-01T01:00:00", "2017-01-01 01:00:00", "2017-01-01T01:00"] {
            assert_eq!(read(Some("Europe/Berlin"), text), Ok(vec![0]), "{text}");
            assert_eq!(read(Some("utc"), text), Ok(vec![3600]), "{text}");
        }
    }

    #[test]
    fn clock_changes() {
        let autumn = read(Some("Europe/Berlin"), "2017-10-29T02:30:00").expect("shown twice");
        assert_eq!(autumn[1] - autumn[0], 3600);
        let spring = read(Some("Europe/Berlin"), "2017-03-26T02:30:00").expect_err("never shown");
        assert!(spring.starts_with("line 3: 2017-03-26T02:30:00 does not exist in Europe/Berlin"), "{spring}");
        assert_eq!(read(Some("UTC"), "2017-03-26T02:30:00").map(|times| times.len()), Ok(1));
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in
            ["", "Unknown", "2017-01-01", "2017-02-29T00:00:00", "17:00:00", "2017-01-01T00:00:00[UTC]", "1e9", "nan"]
        {
            let error = read(Some("UTC"), text).expect_err(text);
            assert!(error.starts_with("line 3, column \"Start\":") && error.contains("is not a time"), "{error}");
        }
        for (text, reason) in
            [("12", "no Unix time"), ("1483228800000", "no Unix time"), ("1969-01-01T00:00:00", "1970")]
        {
            let error = read(Some("UTC"), text).expect_err(text);
            assert!(error.contains(reason), "{error}");
        }
        assert!(read(None, "2017-01-01T00:00:00").expect_err("no zone").contains("set `timezone`"));
        assert!(read(Some("Europe/Berlim"), "x").expect_err("no zone").contains("no time zone \"Europe/Berlim\""));
    }
}
