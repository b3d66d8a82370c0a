//! The clock of a file's times: which instant a time means.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use powersweep_experiments::signals::{ClockChange, words};

use crate::error::{self, Place, Problem};
use crate::signals::ledger::{Ledger, Rule};
use crate::signals::table::Row;
use crate::table::clock::{OUT_OF_RANGE, SECOND_US, Shown, UNIX_S, Zone, civil, is_in_range, needless_zone};
use crate::table::stamp::Stamp;

/// The clock of a table's times.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Instants; the text says why.
    Instants(String),
    /// Local times of a zone.
    Zone(Zone),
    /// Seconds from the simulated time 0.
    Offsets,
}

impl Clock {
    /// An instant of a calendar, or an offset, for messages.
    pub(crate) fn show(&self, time_us: i64) -> String {
        let utc = || civil(time_us).map_or_else(|| format!("{time_us} us"), |time| format!("{time}Z"));
        match self {
            Clock::Offsets => format!("{} s", seconds(time_us)),
            Clock::Instants(_) => utc(),
            Clock::Zone(zone) => match zone.local(time_us) {
                Some(time) => format!("{} ({time} in {})", utc(), zone.name),
                None => utc(),
            },
        }
    }

    /// Date and time of a time; `None` for offsets.
    pub(crate) fn civil(&self, time_us: i64) -> Option<DateTime> {
        match self {
            Clock::Offsets => None,
            Clock::Instants(_) => civil(time_us),
            Clock::Zone(zone) => zone.local(time_us),
        }
    }

    /// The time that is some months of the calendar after a time of a day that every month has.
    pub(crate) fn months_after(&self, time_us: i64, months: i64) -> i64 {
        let after =
            self.civil(time_us).and_then(|time| time.checked_add(jiff::Span::new().try_months(months).ok()?).ok());
        let Some(after) = after.and_then(|time| Offset::UTC.to_timestamp(time).ok()) else { return time_us };
        match self {
            Clock::Zone(zone) => match zone.instants(after.as_microsecond()) {
                Shown::Once(us) | Shown::Twice(us, _) => us,
                Shown::Never => after.as_microsecond(),
            },
            Clock::Instants(_) | Clock::Offsets => after.as_microsecond(),
        }
    }

    /// What the times are, for the facts.
    pub(crate) fn describe(&self) -> String {
        match self {
            Clock::Offsets => "seconds from the simulated time 0".to_owned(),
            Clock::Instants(why) => why.clone(),
            Clock::Zone(zone) => format!("local times of {}", zone.name),
        }
    }
}

/// Seconds of microseconds.
pub(crate) fn seconds(time_us: i64) -> f64 {
    time_us as f64 / SECOND_US as f64
}

/// Range of numbers that are taken for milliseconds since 1970.
const UNIX_MS: std::ops::Range<f64> = 1e12..1e13;
/// Greatest number of a column of offsets (µs): 200 years. As seconds in double precision, different times differ.
const OFFSET_MAX_US: i64 = 200 * 366 * 86_400 * SECOND_US;
/// Greatest first number of a column of offsets (s): three years.
const FIRST_OFFSET_MAX: f64 = 1e8;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Local,
    Instant,
    UnixS,
    UnixMs,
    Offset,
}

/// Reads the times of a column, which are all of one kind.
#[derive(Debug, Default)]
pub(crate) struct Times {
    kind: Option<Kind>,
    first: (u32, String),
    day_first: bool,
}

impl Times {
    /// The times of a column of this name. ENTSO-E writes the day first, and calls its times market time units (MTU).
    pub(crate) fn of_column(name: &str) -> Times {
        Times { day_first: words(name).iter().any(|word| word == "mtu"), ..Times::default() }
    }

    /// The time of a text (µs), or why there is none.
    pub(crate) fn read(&mut self, text: &str, line: u32) -> Result<i64, String> {
        let is_either = || Stamp::parse_by(text, true).is_some();
        let stamp = Stamp::parse_by(text, self.day_first).ok_or_else(|| match is_either() {
            true => "may begin with the day or with the month: write the year first, as in 2023-01-31 14:00",
            false => {
                "is not a time: times are dates from 1970 to 2200 such as 2023-01-31 14:00 (with an offset such as +01:00 or \
                 Z, or without), Unix times, or seconds from the simulated time 0"
            }
        })?;
        let kind = match (self.kind, stamp) {
            (Some(kind @ (Kind::UnixS | Kind::UnixMs | Kind::Offset)), Stamp::Number(_)) => kind,
            (_, Stamp::Local(_)) => Kind::Local,
            (_, Stamp::Instant(_)) => Kind::Instant,
            (_, Stamp::Number(number)) if UNIX_S.contains(&(number as i64)) => Kind::UnixS,
            (_, Stamp::Number(number)) if UNIX_MS.contains(&number) => Kind::UnixMs,
            (_, Stamp::Number(number)) if number.abs() < FIRST_OFFSET_MAX => Kind::Offset,
            (_, Stamp::Number(_)) => {
                return Err("is neither a Unix time nor seconds from the simulated time 0".to_owned());
            }
        };
        match self.kind {
            None => (self.kind, self.first) = (Some(kind), (line, text.to_owned())),
            Some(first) if first != kind => {
                return Err(format!("is another kind of time than the first, {:?}", self.first.1));
            }
            Some(_) => {}
        }
        // A product that is too large for the type becomes its greatest number, which is refused below.
        let time_us = match stamp {
            Stamp::Local(time_us) | Stamp::Instant(time_us) => time_us,
            Stamp::Number(number) if kind == Kind::UnixMs => (number * 1e3).round() as i64,
            Stamp::Number(number) => (number * 1e6).round() as i64,
        };
        match kind {
            Kind::Offset if time_us.abs() > OFFSET_MAX_US => {
                Err("is more than 200 years from the simulated time 0".to_owned())
            }
            Kind::UnixS | Kind::UnixMs if !is_in_range(time_us) => Err(OUT_OF_RANGE.to_owned()),
            _ => Ok(time_us),
        }
    }

    /// Whether the times have neither offsets nor are numbers.
    pub(crate) fn is_local(&self) -> bool {
        self.kind == Some(Kind::Local)
    }

    /// The clock of these times. `utc` says why times without an offset are of UTC, if they are.
    pub(crate) fn clock(
        self,
        utc: Option<&str>,
        timezone: Option<&str>,
        place: fn(u64) -> Place,
    ) -> Result<Clock, Problem> {
        let fixed = match self.kind {
            Some(Kind::Local) | None => {
                return local(utc, timezone, (place(self.first.0.into()), &self.first.1));
            }
            Some(Kind::Instant) => Clock::Instants("the times have offsets".to_owned()),
            Some(Kind::UnixS) => Clock::Instants("Unix times (s)".to_owned()),
            Some(Kind::UnixMs) => Clock::Instants("Unix times (ms)".to_owned()),
            Some(Kind::Offset) => Clock::Offsets,
        };
        match timezone {
            None => Ok(fixed),
            Some(_) => Err(needless_zone(&fixed.describe())),
        }
    }
}

/// The clock of times without an offset. `utc` says why they are of UTC, if they are; `first` is one of them with its place.
pub(crate) fn local(
    utc: Option<&str>,
    timezone: Option<&str>,
    (place, first): (Place, &str),
) -> Result<Clock, Problem> {
    let is_utc = |name: &str| name.eq_ignore_ascii_case("UTC");
    match (utc, timezone) {
        (Some(why), Some(name)) if !is_utc(name) => {
            Err(Problem::setting("timezone", format!("{why}, not {name}; remove it")))
        }
        (Some(why), _) => Ok(Clock::Instants(why.to_owned())),
        (None, Some(name)) if is_utc(name) => Ok(Clock::Instants("UTC, by `timezone`".to_owned())),
        (None, Some(name)) => Zone::named(name).map(Clock::Zone),
        (None, None) => Err(Problem::no_timezone(place, first)),
    }
}

/// A local time that the clocks showed twice.
struct Twice {
    /// The first row with this time.
    row: Row,
    count: u64,
    second_us: i64,
}

/// The help for a file whose clock is not that of its zone.
const UNCHANGED: &str =
    "if the file's clock never changes, name a zone without clock changes, such as \"Etc/GMT-1\" for UTC+1";

/// Turns local times into instants. Of a time that the clocks showed twice, the first row in the file is the one before
/// the change. Returns the rows, and the rows that [`ClockChange::Repair`] adds.
pub(crate) fn to_instants(
    rows: Vec<Row>,
    zone: &Zone,
    setting: ClockChange,
    place: fn(u64) -> Place,
    ledger: &mut Ledger,
) -> Result<(Vec<Row>, Vec<Row>), Problem> {
    let mut twice: BTreeMap<i64, Twice> = BTreeMap::new();
    let mut first_missing = None;
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        let time_us = match zone.instants(row.time_us) {
            Shown::Once(time_us) => time_us,
            Shown::Never => {
                ledger.add(Rule::NoSuchTime, row.line.into());
                first_missing.get_or_insert(row);
                continue;
            }
            Shown::Twice(first_us, second_us) => {
                let new = || Twice { row: Row { time_us: first_us, ..row }, count: 0, second_us };
                let seen = twice.entry(row.time_us).or_insert_with(new);
                seen.count += 1;
                if seen.count == 1 { seen.row.time_us } else { seen.second_us }
            }
        };
        kept.push(Row { time_us, ..row });
    }
    let shown = |local_us: i64| civil(local_us).map_or(String::new(), |time| time.to_string());
    if setting == ClockChange::Error
        && let Some(row) = first_missing
    {
        let reason = format!(
            "{} does not exist in {}, where the clocks went forward ({} in all): set `clock_change = \"repair\"` to drop such \
             rows; {UNCHANGED}",
            shown(row.time_us),
            zone.name,
            error::rows(ledger.count(Rule::NoSuchTime).rows)
        );
        return Err(Problem::At { place: place(row.line.into()), reason });
    }
    let once = || twice.iter().filter(|(_, seen)| seen.count == 1);
    if setting == ClockChange::Error
        && let Some((local_us, seen)) = once().next()
    {
        let reason = format!(
            "the clocks of {} showed {} twice, where they went back, and the file has it once ({} in all): set `clock_change = \
             \"repair\"` to use the value for both; {UNCHANGED}",
            zone.name,
            shown(*local_us),
            error::rows(once().count() as u64)
        );
        return Err(Problem::At { place: place(seen.row.line.into()), reason });
    }
    let second = |seen: &Twice| Row { time_us: seen.second_us, ..seen.row };
    // An empty cell has no value for the second time either: that time is a gap.
    let added: Vec<Row> = once().map(|(_, seen)| second(seen)).filter(|row| !row.value.is_nan()).collect();
    added.iter().for_each(|row| ledger.add(Rule::SecondOfTwo, row.line.into()));
    Ok((kept, added))
}
