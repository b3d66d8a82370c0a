//! Signals in tables of text, of Parquet and of JSON.

use std::borrow::Cow;
use std::collections::BTreeSet;

use powersweep_experiments::signals::{Form, IntervalTime, Quantity, Reading, says_end, words};

use crate::error::{Place, Problem, shortened};
use crate::signals::clock::Times;
use crate::signals::table::{Row, Table, ValueColumn};
use crate::signals::{ROWS_MAX, Rule};
use crate::table::clock::SECOND_US;
use crate::table::stamp::Stamp;
use crate::table::{Row as TextRow, Sheet, need};

/// The columns that are read.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) time: usize,
    /// Column of the hours of days, where the times are dates.
    pub(super) hour: Option<usize>,
    pub(super) value: usize,
    /// Column that flags estimates.
    pub(super) flag: Option<usize>,
    /// Column of the sources of values, which may be estimates.
    pub(super) source: Option<usize>,
    /// Columns of the grid's zone, of which the first names it.
    pub(super) zones: Vec<usize>,
    /// Column of the currency of prices.
    pub(super) currency: Option<usize>,
    /// Column of the unit of the values.
    pub(super) unit: Option<usize>,
}

/// Whether a column has hours of days.
pub(super) fn is_hour(name: &str) -> bool {
    words(name).iter().any(|word| word == "hour" || word == "he")
}

/// Whether a column of hours says that they are ends.
fn says_end_of_hours(name: &str) -> bool {
    says_end(name) || words(name).iter().any(|word| word == "he")
}

/// Words of columns that name a zone of the grid, or an area.
const ZONE_WORDS: [&str; 5] = ["area", "zone", "region", "mapcode", "location"];

/// Whether a column names zones of the grid.
pub(super) fn is_zone(name: &str) -> bool {
    let words = words(name);
    let has = |known: &str| words.iter().any(|word| word == known);
    ZONE_WORDS.into_iter().any(has) && !has("time") || name.eq_ignore_ascii_case("mapcode")
}

/// The column of the currency of prices.
pub(super) fn currency_column(names: &[String], quantity: Quantity) -> Option<usize> {
    let is_currency = |name: &String| words(name).iter().any(|word| word == "currency");
    names.iter().position(is_currency).filter(|_| quantity == Quantity::Price)
}

/// Name of the column of units in JSON that states them once.
pub(super) const UNITS: &str = "units";

/// The column of the unit of values.
pub(super) fn unit_column(names: &[String]) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case("unit") || name.eq_ignore_ascii_case(UNITS))
}

/// Checks that all rows have one currency, and that it is that of the unit.
struct Currency<'a> {
    unit: Option<&'a str>,
    first: Option<String>,
}

impl Currency<'_> {
    fn check(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        let first = self.first.get_or_insert_with(|| text.to_owned());
        if first != text {
            return Err(format!(
                "follows {first:?}: the file of a signal has one currency; cut it where the currency changes"
            ));
        }
        match self.unit.filter(|unit| !unit.eq_ignore_ascii_case(text)) {
            Some(unit) => Err(format!("is another currency than {unit}, that of the unit")),
            None => Ok(()),
        }
    }
}

/// The hours of days in a column: from 0 to 23, which are begins, or from 1 to 24, which are ends.
#[derive(Default)]
struct Hours {
    has_first: bool,
    has_last: bool,
}

impl Hours {
    /// The time of a date and an hour such as `7`, `07:00` or `7:00 AM`.
    fn time(&mut self, date: &str, text: &str) -> Result<String, &'static str> {
        let (hour, minute) = text.split_once(':').unwrap_or((text, "00"));
        let hour: u8 = hour.parse().map_err(|_| NO_HOUR)?;
        let is_morning = minute.trim_end().to_ascii_uppercase().ends_with("AM");
        self.has_first |= hour == 0 || hour == 12 && is_morning;
        self.has_last |= hour == 24;
        Ok(format!("{date} {hour:02}:{minute}"))
    }

    /// Whether times are the ends of intervals: by the setting, else by the names of the columns, else by the hours.
    fn say_end(&self, columns: &Columns, names: &[String], setting: Option<IntervalTime>) -> Result<bool, Problem> {
        let hours = columns.hour.map(|at| &names[at]);
        match (setting, hours) {
            (Some(time), _) => Ok(time == IntervalTime::End),
            (None, _) if says_end(&names[columns.time]) => Ok(true),
            (None, Some(name)) if says_end_of_hours(name) => Ok(true),
            (None, Some(name)) if self.has_first == self.has_last => {
                let reason =
                    format!("the column {name:?} may have begins or ends of hours: set it to \"begin\" or \"end\"");
                Err(Problem::setting("interval_time", reason))
            }
            (None, _) => Ok(self.has_last),
        }
    }
}

/// The reason why other texts of a column of hours are refused.
const NO_HOUR: &str = "is no hour from 0 to 24";

/// An hour (µs).
const HOUR_US: i64 = 3600 * SECOND_US;

/// Whether more than half of the rows are an hour from the one above.
fn are_hourly(rows: &[Row]) -> bool {
    let is_hour = |pair: &&[Row]| (pair[1].time_us - pair[0].time_us).abs() == HOUR_US;
    rows.windows(2).filter(is_hour).count() * 2 > rows.len() - 1
}

/// The rows of one zone.
struct Zones<'a> {
    wanted: Option<&'a str>,
    columns: &'a [usize],
    first: Option<String>,
    /// The column with several zones, and its zones.
    several: Option<(usize, BTreeSet<String>)>,
}

/// Maximum number of zones in a message.
const ZONES_SHOWN: usize = 12;

impl Zones<'_> {
    /// Whether a row is of the zone.
    fn has(&mut self, row: &TextRow<'_>) -> bool {
        let Some(first) = self.columns.first() else { return true };
        if let Some(wanted) = self.wanted {
            return self.columns.iter().any(|at| row.get(*at) == wanted);
        }
        let known = self.first.get_or_insert_with(|| row.get(*first).to_owned());
        if known != row.get(*first) {
            let known = known.clone();
            let (_, zones) = self.several.get_or_insert_with(|| (*first, BTreeSet::from([known])));
            if zones.len() < ZONES_SHOWN {
                zones.insert(row.get(*first).to_owned());
            }
        }
        self.several.is_none()
    }

    /// Refuses several zones where none is chosen.
    fn check(&self, columns: &[String]) -> Result<(), Problem> {
        let Some((at, names)) = &self.several else { return Ok(()) };
        let more = if names.len() == ZONES_SHOWN { ", ..." } else { "" };
        let names = names.iter().map(|name| format!("{:?}", shortened(name))).collect::<Vec<_>>().join(", ");
        let column = &columns[*at];
        let reason =
            format!("the column {column:?} has several zones, and a signal is of one: set it to one of {names}{more}");
        Err(Problem::setting("zone", reason))
    }
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
    let (mut times, mut flagged, mut by_source) = (Times::of_column(&sheet.names[columns.time]), 0, 0);
    let mut dropped: Vec<(Rule, u64)> = sheet.banner().into_iter().map(|line| (Rule::Banner, line)).collect();
    let (is_timestamp, has_rows) = (sheet.is_timestamp(columns.time), sheet.has_rows());
    if reading.zone.is_some() && columns.zones.is_empty() {
        let reason = "no column has zones or areas in its name; leave it out";
        return Err(Problem::setting("zone", reason));
    }
    let is_year = words(&sheet.names[columns.time]).iter().any(|word| word == "year");
    let mut zones = Zones { wanted: reading.zone.as_deref(), columns: &columns.zones, first: None, several: None };
    let mut hours = Hours::default();
    let mut currency = Currency { unit: column.unit.currency.as_deref(), first: None };
    let used =
        [columns.time, columns.value].into_iter().chain(columns.hour).chain(columns.flag).chain(columns.currency);
    let used = used.chain(columns.unit).chain(columns.zones.iter().copied());
    sheet.read_only(used.chain(columns.source.filter(|_| has_rows)));
    while let Some(row) = sheet.next_row()? {
        if rows.len() == ROWS_MAX {
            return Err(Problem::TooLarge { limit: format!("{ROWS_MAX} rows") });
        }
        if !zones.has(&row) {
            dropped.extend(reading.zone.as_ref().map(|_| (Rule::OtherZone, row.place.number())));
            continue;
        }
        let line = u32::try_from(row.place.number()).unwrap_or(u32::MAX);
        let text = time_text(&row, columns, &mut hours, is_year)?;
        let time_us = times.read(&text, line).map_err(|reason| wrong_time(&row, columns, reason))?;
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
        if let Some(at) = columns.currency {
            currency.check(row.get(at)).map_err(|reason| row.problem(at, reason))?;
        }
        if let Some(at) = columns.unit {
            column.check_unit(row.get(at)).map_err(|reason| row.problem(at, reason))?;
        }
        rows.push(Row { time_us, value, line, estimated: flag || estimated_source });
    }
    zones.check(&sheet.names)?;
    sheet.check_numbers()?;
    let zone = reading.zone.clone().or(zones.first).filter(|zone| !zone.is_empty());
    if rows.is_empty() {
        return Err(match &reading.zone {
            Some(zone) => Problem::setting("zone", format!("no row is of the zone {:?}", shortened(zone))),
            None if has_rows => Problem::Content("the file has no rows".to_owned()),
            None => Problem::Content("the file has a header and no rows".to_owned()),
        });
    }
    let mut is_end = hours.say_end(columns, &sheet.names, reading.interval_time)?;
    // Hours of a day number its intervals: where the clocks change, hour 3 begins at 02:00, and does not end at what they show.
    if is_end && columns.hour.is_some_and(|at| is_hour(&sheet.names[at])) && are_hourly(&rows) {
        rows.iter_mut().for_each(|row| row.time_us -= HOUR_US);
        is_end = false;
    }
    let time_column = sheet.names.swap_remove(columns.time);
    let utc = says_utc(&time_column).then_some("UTC, by the name of the column of times");
    let utc = utc.or(is_timestamp.then_some("UTC, as OpenDC reads them"));
    let place: fn(u64) -> Place = if has_rows { Place::Row } else { Place::Line };
    let clock = times.clock(utc, reading.timezone.as_deref(), place)?;
    let estimates = (columns.flag.is_some() || columns.source.is_some()).then_some((flagged, by_source));
    Ok(Table { form, rows, place, clock, time_column, column, estimates, zone, dropped, is_end })
}

/// Whether a column of times says that they are of UTC.
pub(super) fn says_utc(name: &str) -> bool {
    words(name).iter().any(|word| word == "utc")
}

/// The time of a row.
fn time_text<'a>(
    row: &'a TextRow<'_>,
    columns: &Columns,
    hours: &mut Hours,
    is_year: bool,
) -> Result<Cow<'a, str>, Problem> {
    match columns.hour {
        None if is_year => Ok(begin_of_year(row.get(columns.time))),
        None => Ok(Cow::Borrowed(row.get(columns.time))),
        Some(at) => {
            let time = hours.time(row.get(columns.time), row.get(at));
            time.map(Cow::Owned).map_err(|reason| row.problem(at, reason))
        }
    }
}

/// The problem with the time of a row: with the cell of its hour where the date is right.
fn wrong_time(row: &TextRow<'_>, columns: &Columns, reason: String) -> Problem {
    let midnight = format!("{} 00:00", row.get(columns.time));
    match columns.hour {
        Some(at) if Stamp::parse(&midnight).is_some() => row.problem(at, NO_HOUR),
        _ => row.problem(columns.time, reason),
    }
}

/// The date at which a year such as 2023 begins; other texts stay.
fn begin_of_year(text: &str) -> Cow<'_, str> {
    let is_year = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_year { Cow::Owned(format!("{text}-01-01")) } else { Cow::Borrowed(text) }
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
