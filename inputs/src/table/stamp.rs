//! Times as files write them.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::table::clock::{SECOND_US, is_in_range};

/// Microseconds of a day.
const DAY_US: i64 = 86_400 * SECOND_US;

/// Greatest number that a time may be.
const NUMBER_MAX: f64 = 1e13;

/// A time in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stamp {
    /// Date and time without an offset (µs since 1970 by the same clock).
    Local(i64),
    /// Date and time with an offset (µs since 1970 UTC).
    Instant(i64),
    /// A number.
    Number(f64),
}

impl Stamp {
    /// Reads a time; `None` if the text is none.
    pub(crate) fn parse(text: &str) -> Option<Stamp> {
        Stamp::parse_by(text, false)
    }

    /// Reads a time. `day_first`: `01/02/2025` is the first of February; otherwise it is no time, since it can mean two.
    pub(crate) fn parse_by(text: &str, day_first: bool) -> Option<Stamp> {
        // An interval such as `01.01.2025 00:00 - 01.01.2025 01:00` is at its begin.
        let text = text.split_once(" - ").map_or(text, |(begin, _)| begin).trim();
        match dated(text.as_bytes(), day_first) {
            Some(stamp) => Some(stamp),
            None => number(text).map(Stamp::Number),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    // A date without separators would be a number of seconds that nobody meant.
    if is_date_without_separators(text.as_bytes()) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.abs() < NUMBER_MAX)
}

fn is_date_without_separators(text: &[u8]) -> bool {
    let pair = |at: usize| text.get(at..at + 2).and_then(digits);
    text.iter().all(u8::is_ascii_digit)
        && matches!(text.len(), 8 | 10 | 12)
        && matches!(pair(0), Some(19..=21))
        && matches!(pair(4), Some(1..=12))
        && matches!(pair(6), Some(1..=31))
        && (text.len() == 8 || matches!(pair(8), Some(0..=24)))
        && (text.len() < 12 || matches!(pair(10), Some(0..=59)))
}

fn digits(text: &[u8]) -> Option<i32> {
    text.iter().try_fold(0_i32, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i32::from(byte - b'0')))
}

/// Date and time: `2023-01-31`, `2023/01/31` or `31.01.2023`, then a blank or `T`, `HH:MM`, seconds and their fraction if
/// there are any, `AM` or `PM` for hours from 1 to 12, then `Z` or an offset if there is one. `24:00` is the begin of the next day.
fn dated(text: &[u8], day_first: bool) -> Option<Stamp> {
    let mut rest = Rest(text);
    let (year, month, day) = match text.get(2) {
        Some(separator @ (b'.' | b'/')) if day_first || *separator == b'.' => {
            let (day, _, month) = (rest.number(2, 2)?, rest.byte(&[*separator])?, rest.number(2, 2)?);
            rest.byte(&[*separator])?;
            (rest.number(4, 4)?, month, day)
        }
        _ => {
            let (year, separator) = (rest.number(4, 4)?, rest.byte(b"-/")?);
            let (month, _) = (rest.number(2, 2)?, rest.byte(&[separator])?);
            (year, month, rest.number(2, 2)?)
        }
    };
    let (mut hour, mut minute, mut second, mut micros, mut offset_s) = (0, 0, 0, 0, None);
    if !rest.0.is_empty() {
        rest.byte(b"Tt ")?;
        rest.blanks();
        (hour, _, minute) = (rest.number(1, 2)?, rest.byte(b":")?, rest.number(2, 2)?);
        if rest.byte(b":").is_some() {
            second = rest.number(2, 2)?;
            if rest.byte(b".,").is_some() {
                micros = rest.fraction()?;
            }
        }
        rest.blanks();
        if let Some(half) = rest.half() {
            hour = if (1..=12).contains(&hour) { hour % 12 + half } else { return None };
        }
        rest.blanks();
        offset_s = if rest.0.is_empty() { None } else { Some(rest.offset()?) };
    }
    let is_end_of_day = (hour, minute, second, micros) == (24, 0, 0, 0);
    if is_end_of_day {
        hour = 0;
    }
    let small = |number: i32| i8::try_from(number).ok();
    let year = i16::try_from(year).ok()?;
    let time = DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, 0).ok()?;
    let day_us = if is_end_of_day { DAY_US } else { 0 };
    let local_us = Offset::UTC.to_timestamp(time).ok()?.as_microsecond() + i64::from(micros) + day_us;
    if !is_in_range(local_us) {
        return None;
    }
    Some(match offset_s {
        None => Stamp::Local(local_us),
        Some(offset_s) => Stamp::Instant(local_us - i64::from(offset_s) * SECOND_US),
    })
}

/// What is left of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i32> {
        let length = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at(length);
        self.0 = rest;
        if length < least { None } else { digits(number) }
    }

    /// One of these bytes.
    fn byte(&mut self, expected: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        expected.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// `AM` or `PM`: the hours to add.
    fn half(&mut self) -> Option<i32> {
        let (half, rest) = self.0.split_first_chunk::<2>()?;
        let hours = match half.map(|byte| byte.to_ascii_uppercase()) {
            [b'A', b'M'] => 0,
            [b'P', b'M'] => 12,
            _ => return None,
        };
        self.0 = rest;
        Some(hours)
    }

    fn blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// The fraction of a second (µs); digits after the sixth are cut off.
    fn fraction(&mut self) -> Option<i32> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(length);
        self.0 = rest;
        let micros = (0..6).try_fold(0, |sum, at| Some(sum * 10 + digits(fraction.get(at..at + 1).unwrap_or(b"0"))?));
        if length == 0 { None } else { micros }
    }

    /// `Z`, or an offset such as `+01:00`, `-0530`, `+02` (s).
    fn offset(&mut self) -> Option<i32> {
        let offset_s = match self.byte(b"Zz+-")? {
            b'Z' | b'z' => 0,
            sign => {
                let hours = self.number(2, 2)?;
                let minutes = match (self.byte(b":"), self.0.is_empty()) {
                    (None, true) => 0,
                    _ => self.number(2, 2)?,
                };
                if hours > 18 || minutes > 59 {
                    return None;
                }
                (hours * 3600 + minutes * 60) * if sign == b'-' { -1 } else { 1 }
            }
        };
        self.0.is_empty().then_some(offset_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 3_600 * SECOND_US;
    /// 2023-03-14 00:00 UTC.
    const PI_DAY_US: i64 = 1_678_752_000 * SECOND_US;

    #[test]
    fn times_of_all_forms() {
        for text in [
            "2023-03-14",
            "2023-03-14 00:00",
            "2023/03/14 0:00:00",
            "14.03.2023 00:00",
            " 2023-03-14T00:00:00.0 ",
            "2023-03-13 24:00",
            "2023-03-13T24:00:00",
            "2023-03-14 12:00 AM",
            "14.03.2023 00:00 - 14.03.2023 01:00",
        ] {
            assert_eq!(Stamp::parse(text), Some(Stamp::Local(PI_DAY_US)), "{text}");
        }
        for text in [
            "2023-03-14T03:30Z",
            "2023-03-14 3:30 am Z",
            "2023-03-14 03:30AM+00:00",
            "2023-03-14 09:00:00+05:30",
            "2023-03-14 01:30:00 -0200",
            "2023-03-13t22:30:00-05",
        ] {
            assert_eq!(Stamp::parse(text), Some(Stamp::Instant(PI_DAY_US + HOUR_US / 2 * 7)), "{text}");
        }
        for (text, hours) in [("2023-03-14 12:00 PM", 12), ("2023-03-14 1:00:00 pm", 13), ("2023-03-14 11:00 PM", 23)] {
            assert_eq!(Stamp::parse(text), Some(Stamp::Local(PI_DAY_US + hours * HOUR_US)), "{text}");
        }
        let fraction = Stamp::parse("2021-06-17T09:27:00.1219559+00:00");
        assert_eq!(fraction, Some(Stamp::Instant(1_623_922_020_121_955)));
        assert_eq!(Stamp::parse("1577836800"), Some(Stamp::Number(1_577_836_800.0)));
        assert_eq!(Stamp::parse("-0.5"), Some(Stamp::Number(-0.5)));
    }

    #[test]
    fn the_day_may_be_first() {
        let interval = "14/03/2023 00:00:00 - 14/03/2023 01:00:00";
        assert_eq!(Stamp::parse_by(interval, true), Some(Stamp::Local(PI_DAY_US)));
        assert_eq!((Stamp::parse(interval), Stamp::parse_by("03/14/2023 00:00", true)), (None, None));
    }

    #[test]
    fn other_texts_are_no_times() {
        let texts = "|2023-02-29|2023-13-01|01/02/2023|2023-03-14 24:01|2023-03-14 13:00 PM|2023-03-14 0:00 AM|2023-03-14 25:00|2023-03-14 12|2023-03-14T00:00:60Z|2023-03/14|nan|inf\
                     |20230314|2023031407|202303140700|2023-03-14T00:00+1|2023-03-14 00:00 CET|1e13|0100-01-01|1969-12-31|2201-01-01|2023-03-14 0:0";
        for text in texts.split('|') {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
    }
}
