//! Tables with a column of times and columns of values: prices, caps, intensities of publishers of their own.

use powersweep_experiments::signals::{Form, Quantity, Reading, says_end, words};

use super::sheet::{Columns, column, currency_column, is_hour, is_zone, problem, says_utc, table, unit_column};
use crate::error::{Problem, Problems, shortened};
use crate::signals::table::{Table, ValueColumn};
use crate::signals::unit::Unit;
use crate::table::Sheet;
use crate::table::clock::Zone;

/// Words of columns of times; also words that end with "time", such as WattTime's `oootime`.
const TIME_WORDS: [&str; 13] = [
    "mtu",
    "date",
    "datetime",
    "timestamp",
    "time",
    "from",
    "start",
    "begin",
    "datum",
    "seconds",
    "offset",
    "utc",
    "t",
];

/// Words of columns of times that say when the row was written.
const WRITTEN_WORDS: [&str; 5] = ["created", "updated", "modified", "published", "generated"];

/// Columns of carbon intensities whose unit (g/kWh) is known: those of Great Britain, OpenDC, Electricity Maps and the Carbon
/// Aware SDK.
const KNOWN_INTENSITIES: [&str; 5] =
    ["intensity.forecast", "intensity.actual", "carbon_intensity", "carbonintensity", "rating"];

pub(super) fn read(sheet: Sheet<'_>, form: Form, reading: &Reading) -> Result<Table, Problem> {
    let is_time = |name: &String| is_time(name, reading.quantity);
    let has_dates = sheet.names.iter().any(|name| is_date(name) && is_time(name));
    let times: Vec<bool> = sheet.names.iter().map(|name| is_time(name) && !(has_dates && is_clock(name))).collect();
    let mut problems = Problems::default();
    let time = problems.take(match &reading.time_column {
        Some(name) => column(&sheet.names, "time_column", name),
        None => time_column(&sheet.names, &times),
    });
    problems.take(reading.timezone.as_deref().map(Zone::named).transpose());
    let hour = time.map_or(Ok(None), |time| hour_column(&sheet.names, time));
    let hour = problems.take(hour).flatten();
    let value = match (&reading.column, time) {
        (Some(name), _) => problems.take(column(&sheet.names, "column", name)),
        (None, Some(time)) => problems.take(value_column(&sheet.names, time, hour, &times, reading.quantity)),
        // Which column has the values depends on which has the times.
        (None, None) => None,
    };
    // The unit may be wrong, too, whichever the column is.
    if value.is_none()
        && let Some(text) = &reading.unit
    {
        problems.take(Unit::of_setting(reading.quantity, text));
    }
    problems.finish()?;
    let Some((time, value)) = time.zip(value) else { return Err(Problem::Several(Vec::new())) };
    if time == value {
        return Err(problem(
            &sheet.names,
            "column",
            format!("{:?} is the column of times", shortened(&sheet.names[time])),
        ));
    }
    let name = &sheet.names[value];
    let is_known = form == Form::OpenDc || KNOWN_INTENSITIES.iter().any(|known| name.eq_ignore_ascii_case(known));
    let usual = (is_known && reading.quantity == Quantity::Carbon).then_some("g/kWh");
    let values = ValueColumn::new(name, reading, usual)?;
    let zones = (0..sheet.names.len()).filter(|at| *at != value && *at != time && is_zone(&sheet.names[*at])).collect();
    let currency = currency_column(&sheet.names, reading.quantity).filter(|at| *at != value);
    let unit = unit_column(&sheet.names).filter(|at| *at != value);
    let columns = Columns { time, hour, value, flag: None, source: None, zones, currency, unit };
    table(sheet, form, &columns, values, reading)
}

/// Whether a column has times, by its name.
fn is_time(name: &str, quantity: Quantity) -> bool {
    let is_word = |word: &String| TIME_WORDS.contains(&word.as_str()) || word.ends_with("time");
    // `to` alone, and `Interval End`.
    let is_span = |word: &String| matches!(word.as_str(), "interval" | "period" | "delivery" | "hour" | "month");
    says_end(name) && (words(name).len() == 1 || words(name).iter().any(is_span))
        || words(name).iter().any(is_word) && Unit::in_name(quantity, name).is_none()
}

/// The one column of times that can be meant: where one says UTC, that one.
fn time_column(names: &[String], times: &[bool]) -> Result<usize, Problem> {
    let is_written = |name: &str| words(name).iter().any(|word| WRITTEN_WORDS.contains(&word.as_str()));
    let found = (0..names.len()).filter(|at| times[*at] && !is_written(&names[*at]));
    let (ends, begins): (Vec<usize>, Vec<usize>) = found.partition(|at| says_end(&names[*at]));
    // Ends of intervals are times only where nothing says when they begin.
    let found = if begins.is_empty() { ends } else { begins };
    let of_utc: Vec<usize> = found.iter().copied().filter(|at| says_utc(&names[*at])).collect();
    match (&of_utc[..], &found[..]) {
        ([one], _) | ([], [one]) => Ok(*one),
        (_, []) => Err(problem(names, "time_column", "no column of times is found".to_owned())),
        _ => Err(problem(names, "time_column", "several columns can be the times".to_owned())),
    }
}

/// Whether a column has dates, by its name.
fn is_date(name: &str) -> bool {
    let has = |known: &[&str]| words(name).iter().any(|word| known.contains(&word.as_str()));
    has(&["date", "day", "datum"]) && !has(&["time", "hour"])
}

/// Whether a column has times of a day where another one has dates.
fn is_clock(name: &str) -> bool {
    matches!(words(name).as_slice(), [word] if ["time", "uhrzeit"].contains(&word.as_str()))
}

/// The column of hours beside a column of dates.
fn hour_column(names: &[String], time: usize) -> Result<Option<usize>, Problem> {
    if !is_date(&names[time]) {
        return Ok(None);
    }
    let is_hour = |name: &String| is_hour(name) || is_clock(name);
    let hours: Vec<usize> = (0..names.len()).filter(|at| *at != time && is_hour(&names[*at])).collect();
    match hours[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(problem(names, "time_column", "several columns can be the hours".to_owned())),
    }
}

/// The one column of values that can be meant: the only one, or the only one whose name is of the quantity.
fn value_column(
    names: &[String],
    time: usize,
    hour: Option<usize>,
    times: &[bool],
    quantity: Quantity,
) -> Result<usize, Problem> {
    // Whole words: "Cape Town" is no cap.
    let known: &[&str] = match quantity {
        Quantity::Carbon => &["carbon", "co2", "co2eq", "carbonintensity", "intensity", "emissions", "rating"],
        Quantity::Price => &["price", "prices", "preis", "tariff"],
        Quantity::Cap | Quantity::CapShare => &["cap", "powercap", "limit"],
        Quantity::Temperature => &["temp", "temperature"],
    };
    let is_meant = |name: &str| {
        words(name).iter().any(|word| known.contains(&word.as_str())) || Unit::in_name(quantity, name).is_some()
    };
    let is_other = |at: &usize| *at != time && Some(*at) != hour && !times[*at] && !is_zone(&names[*at]);
    let (currency, unit) = (currency_column(names, quantity), unit_column(names));
    let is_value = |at: &usize| is_other(at) && Some(*at) != currency && Some(*at) != unit;
    let others: Vec<usize> = (0..names.len()).filter(is_value).collect();
    let meant: Vec<usize> = others.iter().copied().filter(|at| is_meant(&names[*at])).collect();
    match (&meant[..], &others[..]) {
        ([one], _) | ([], [one]) => Ok(*one),
        (_, []) => Err(problem(names, "column", "no column of values is found".to_owned())),
        _ => Err(problem(names, "column", "several columns can be the values".to_owned())),
    }
}
