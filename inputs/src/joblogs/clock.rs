//! The times of a job log: which instants they are.

use std::cell::Cell;

use crate::error::{Place, Problem, shortened};
use crate::table::clock::{OUT_OF_RANGE, SECOND_US, Shown, UNIX_S, Zone, is_in_range, needless_zone};
use crate::table::stamp::Stamp;

/// The end of 1970, by any local clock (µs since 1970 UTC).
const ZERO_END_US: i64 = 366 * 86_400 * SECOND_US;

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

    /// The time that is later by a span.
    pub(crate) fn after(self, span_us: i64) -> Option<Time> {
        let second_us = self.second_us.map(|us| us.checked_add(span_us));
        Some(Time { us: self.us.checked_add(span_us)?, second_us: second_us.flatten() })
    }

    /// The instants that are meant.
    pub(crate) fn instants(self) -> impl Iterator<Item = i64> + Clone {
        std::iter::once(self.us).chain(self.second_us)
    }
}

/// Reads the times of a job log. Its columns may have times of several kinds.
#[derive(Debug)]
pub(crate) struct JobClock {
    zone: Option<Zone>,
    /// Whether a time needed the zone.
    needs_zone: Cell<bool>,
    /// The kind of the times that needed none.
    without_zone: Cell<Option<&'static str>>,
}

impl JobClock {
    /// The clock of the setting `timezone`.
    pub(crate) fn new(timezone: Option<&str>) -> Result<JobClock, Problem> {
        let zone = timezone.map(Zone::named).transpose()?;
        Ok(JobClock { zone, needs_zone: Cell::new(false), without_zone: Cell::new(None) })
    }

    /// The instant of a time such as `2023-01-31T14:00:00`, with an offset or without, or of a Unix time (s). A date alone is
    /// no time. `None` for the zero of a clock, a time of 1970, which stands for no time. `column`: its name.
    pub(crate) fn read(&self, text: &str, place: Place, column: &str) -> Result<Option<Time>, Problem> {
        Ok(Some(self.instant_of(text, place, column)?).filter(|time| time.us >= ZERO_END_US))
    }

    fn instant_of(&self, text: &str, place: Place, column: &str) -> Result<Time, Problem> {
        let no_time = |reason: &str| Problem::cell(place, column, text, reason);
        if let Ok(seconds) = text.parse::<i64>() {
            let unix_s = Some(seconds).filter(|seconds| UNIX_S.contains(seconds));
            let unix_s = unix_s.ok_or_else(|| no_time("is no Unix time from 2001 on"))?;
            return Ok(self.instant(unix_s * SECOND_US, "Unix times (s)"));
        }
        match Stamp::parse(text).filter(|_| text.contains(':')) {
            Some(Stamp::Instant(us)) if is_in_range(us) => Ok(self.instant(us, "the times have offsets")),
            Some(Stamp::Instant(_)) => Err(no_time(OUT_OF_RANGE)),
            Some(Stamp::Local(us)) => self.local(us, text, place),
            Some(Stamp::Number(_)) | None => Err(no_time(
                "is not a time: times are dates from 1970 to 2200 such as 2023-01-31T14:00:00 (with an offset such as +01:00, or \
                 without), or Unix times in seconds",
            )),
        }
    }

    /// A time that needs no zone. `kind`: what the times are.
    pub(crate) fn instant(&self, us: i64, kind: &'static str) -> Time {
        self.without_zone.set(Some(kind));
        Time::only(us)
    }

    fn local(&self, local_us: i64, text: &str, place: Place) -> Result<Time, Problem> {
        let Some(zone) = &self.zone else { return Err(Problem::no_timezone(place, text)) };
        self.needs_zone.set(true);
        match zone.instants(local_us) {
            Shown::Once(us) => Ok(Time::only(us)),
            Shown::Twice(us, second_us) => Ok(Time { us, second_us: Some(second_us) }),
            Shown::Never => {
                let reason = format!(
                    "{} does not exist in {}, where the clocks went forward: the times are of another zone; set `timezone` to \
                     it, such as \"UTC\" or, for a clock that never changes, \"Etc/GMT-1\" for UTC+1",
                    shortened(text),
                    zone.name
                );
                Err(Problem::Zone { place, reason })
            }
        }
    }

    /// Refuses a zone that no time needed.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.without_zone.get().filter(|_| self.zone.is_some() && !self.needs_zone.get()) {
            Some(kind) => Err(needless_zone(kind)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2017-01-01 00:00 UTC.
    const YEAR_S: i64 = 1_483_228_800;

    fn read(timezone: Option<&str>, text: &str) -> Result<Vec<i64>, String> {
        let clock = JobClock::new(timezone).map_err(|problem| problem.to_string())?;
        let time = clock.read(text, Place::Line(3), "Start").map_err(|problem| problem.to_string())?.expect("a time");
        Ok(time.instants().map(|us| us / SECOND_US - YEAR_S).collect())
    }

    #[test]
    fn times_of_all_forms() {
        for text in ["1483228800", "2017-01-01T00:00:00Z", "2017-01-01T01:00:00+0100", "2016-12-31T19:00:00-05:00"] {
            assert_eq!(read(None, text), Ok(vec![0]), "{text}");
        }
        for text in [
            "2017-01-01T01:00:00",
            "2017-01-01 01:00:00",
            "2017-01-01T01:00",
            "2017/01/01 1:00",
            "01.01.2017 01:00:00,0",
        ] {
            assert_eq!(read(Some("Europe/Berlin"), text), Ok(vec![0]), "{text}");
            assert_eq!(read(Some("utc"), text), Ok(vec![3600]), "{text}");
        }
    }

    #[test]
    fn the_zero_of_a_clock_is_no_time() {
        let clock = JobClock::new(Some("Europe/Berlin")).expect("a zone");
        for text in ["1970-01-01T00:00:00", "1970-01-01T01:00:00", "1970-01-01T00:00:00Z"] {
            assert_eq!(clock.read(text, Place::Line(3), "Start"), Ok(None), "{text}");
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
        let texts =
            "|Unknown|2017-01-01|2017-02-29T00:00:00|17:00:00|2017-01-01T00:00:00[UTC]|1e9|nan|2017-01-01T00:00:60";
        for text in texts.split('|') {
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
    #[test]
    fn a_zone_that_no_time_needs_is_refused() {
        let refusal = |timezone: Option<&str>, texts: &[&str]| {
            let clock = JobClock::new(timezone).expect("a zone");
            texts.iter().for_each(|text| {
                assert!(clock.read(text, Place::Line(2), "Start").is_ok_and(|time| time.is_some()));
            });
            clock.finish().err().map(|problem| problem.to_string())
        };
        let (with_offset, unix, local) = ("2017-01-01T00:00:00Z", "1483228800", "2017-01-01T00:00:00");
        for (text, kind) in [(with_offset, "the times have offsets"), (unix, "Unix times (s)")] {
            let sentence = format!("`timezone` does not fit the file: its times need no zone ({kind}); remove it");
            assert_eq!(refusal(Some("UTC"), &[text, text]), Some(sentence));
            assert_eq!(refusal(None, &[text]), None);
            assert_eq!(refusal(Some("Europe/Berlin"), &[text, local, text]), None);
        }
        assert_eq!(refusal(Some("Europe/Berlin"), &[]), None);
    }
}
