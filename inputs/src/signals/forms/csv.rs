//! CSV with a column of times and columns of values: prices, caps, intensities of publishers of their own.

use powersweep_experiments::signals::{Form, Quantity, Reading};

use super::sheet::{Columns, column, problem, says_utc, table, words};
use crate::error::{Problem, shortened};
use crate::signals::table::{Table, ValueColumn};
use crate::signals::unit::Unit;
use crate::table::Sheet;

/// Words of columns of times; also words that end with "time", such as WattTime's `oootime`.
const TIME_WORDS: [&str; 12] =
    ["date", "datetime", "timestamp", "time", "from", "start", "begin", "datum", "seconds", "offset", "utc", "t"];

/// Words of columns of times that end an interval, or say when the row was written.
const OTHER_TIME_WORDS: [&str; 7] = ["end", "to", "until", "bis", "created", "updated", "modified"];

/// Columns of carbon intensities whose unit (g/kWh) everybody knows: Great Britain's and OpenDC's.
const KNOWN_INTENSITIES: [&str; 3] = ["intensity.forecast", "intensity.actual", "carbon_intensity"];

pub(super) fn read(sheet: Sheet<'_>, reading: &Reading) -> Result<Table, Problem> {
    let times: Vec<bool> = sheet.names.iter().map(|name| is_time(name, reading.quantity)).collect();
    let time = match &reading.time_column {
        Some(name) => column(&sheet.names, "time_column", name)?,
        None => time_column(&sheet.names, &times)?,
    };
    let value = match &reading.column {
        Some(name) => column(&sheet.names, "column", name)?,
        None => value_column(&sheet.names, time, &times, reading.quantity)?,
    };
    if time == value {
        return Err(problem(
            &sheet.names,
            "column",
            format!("{:?} is the column of times", shortened(&sheet.names[time])),
        ));
    }
    let name = &sheet.names[value];
    let usual = KNOWN_INTENSITIES.contains(&name.as_str()).then_some("g/kWh");
    let values = ValueColumn::new(name, reading, usual)?;
    let columns = Columns { time, value, flag: None, source: None, zone: None };
    table(sheet, Form::Csv, &columns, values, reading)
}

/// Whether a column has times, by its name.
fn is_time(name: &str, quantity: Quantity) -> bool {
    let is_word = |word: &String| TIME_WORDS.contains(&word.as_str()) || word.ends_with("time");
    words(name).iter().any(is_word) && Unit::in_name(quantity, name).is_none()
}

/// The one column of times that can be meant: where one says UTC, that one.
fn time_column(names: &[String], times: &[bool]) -> Result<usize, Problem> {
    let ends = |name: &str| words(name).iter().any(|word| OTHER_TIME_WORDS.contains(&word.as_str()));
    let named = || names.iter().enumerate();
    let found: Vec<usize> = named().filter(|(at, name)| times[*at] && !ends(name)).map(|(at, _)| at).collect();
    let of_utc: Vec<usize> = found.iter().copied().filter(|at| says_utc(&names[*at])).collect();
    match (&of_utc[..], &found[..]) {
        ([one], _) | ([], [one]) => Ok(*one),
        (_, []) => Err(problem(names, "time_column", "no column of times is found".to_owned())),
        _ => Err(problem(names, "time_column", "several columns can be the times".to_owned())),
    }
}

/// The one column of values that can be meant: the only one, or the only one whose name is of the quantity.
fn value_column(names: &[String], time: usize, times: &[bool], quantity: Quantity) -> Result<usize, Problem> {
    // Whole words: "Cape Town" is no cap.
    let known: &[&str] = match quantity {
        Quantity::Carbon => &["carbon", "co2", "co2eq", "carbonintensity", "intensity", "emissions"],
        Quantity::Price => &["price", "prices", "preis", "tariff"],
        Quantity::Cap | Quantity::CapShare => &["cap", "powercap", "limit"],
        Quantity::Temperature => &["temp", "temperature"],
    };
    let is_meant = |name: &str| {
        words(name).iter().any(|word| known.contains(&word.as_str())) || Unit::in_name(quantity, name).is_some()
    };
    let others: Vec<usize> = (0..names.len()).filter(|at| *at != time && !times[*at]).collect();
    let meant: Vec<usize> = others.iter().copied().filter(|at| is_meant(&names[*at])).collect();
    match (&meant[..], &others[..]) {
        ([one], _) | ([], [one]) => Ok(*one),
        (_, []) => Err(problem(names, "column", "no column of values is found".to_owned())),
        _ => Err(problem(names, "column", "several columns can be the values".to_owned())),
    }
}
