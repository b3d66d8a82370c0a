//! JSON of Open-Meteo: hourly values with times of a fixed offset.
//!
//! `utc_offset_seconds` counts for the whole file, whatever zone `timezone` names: the times of a file do not change with
//! the clocks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use powersweep_experiments::signals::{Form, IntervalTime, Quantity, Reading};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Place, Problem, shortened};
use crate::signals::ROWS_MAX;
use crate::signals::clock::{Clock, Times};
use crate::signals::table::{Row, Table, ValueColumn};
use crate::table::clock::SECOND_US;

/// The column of a temperature 2 m above the ground.
const TEMPERATURE: &str = "temperature_2m";
const TIME: &str = "time";

/// Greatest offset of a clock (s).
const OFFSET_MAX_S: i64 = 18 * 3600;

/// An answer; other keys do not matter.
#[derive(Deserialize)]
struct Answer<'a> {
    utc_offset_seconds: Option<i64>,
    #[serde(borrow, default)]
    hourly: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(borrow, default)]
    hourly_units: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Why Open-Meteo refused the request.
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
}

/// A time: text, or Unix seconds.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time<'a> {
    Unix(i64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

pub(super) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    let refused = |reason: String| Problem::Content(format!("the file is not an answer of Open-Meteo: {reason}"));
    let text = str::from_utf8(bytes).map_err(|_| refused("it is not UTF-8".to_owned()))?;
    if text.trim_start().starts_with('[') {
        return Err(Problem::Content("the file has answers for several places: a signal is of one place".to_owned()));
    }
    let answer: Answer<'_> = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    let Some(hourly) = answer.hourly else {
        let why = answer.reason.map_or(String::new(), |reason| format!(" ({})", shortened(&reason)));
        return Err(refused(format!("it has no hourly values{why}")));
    };
    let problem = |setting, reason| {
        let columns = hourly.keys().map(|name| name.clone().into_owned()).collect();
        Problem::Column { reason, setting: Some(setting), columns }
    };
    let find = |setting, name: &str| {
        hourly.get(name).ok_or_else(|| problem(setting, format!("there is no column {:?}", shortened(name))))
    };
    let time_column = reading.time_column.as_deref().unwrap_or(TIME);
    let name = match (reading.column.as_deref(), reading.quantity) {
        (Some(name), _) => name,
        (None, Quantity::Temperature) => TEMPERATURE,
        (None, _) => return Err(problem("column", "the column of values is not known".to_owned())),
    };
    let stated = answer.hourly_units.get(name).map(|unit| &**unit);
    let column = ValueColumn::new(name, reading, stated)?;
    let other_unit =
        |reason| Problem::setting("unit", format!("the unit {:?} of the file {reason}", stated.unwrap_or_default()));
    column.check_unit(stated.unwrap_or_default()).map_err(other_unit)?;
    let unreadable = |name: &str, error| refused(format!("{:?} cannot be read: {error}", shortened(name)));
    let times: Vec<Time<'_>> = serde_json::from_str(find("time_column", time_column)?.get())
        .map_err(|error| unreadable(time_column, error))?;
    let values: Vec<Option<f64>> =
        serde_json::from_str(find("column", name)?.get()).map_err(|error| unreadable(name, error))?;
    if times.len() != values.len() || times.is_empty() {
        return Err(refused(format!("it has {} times and {} values", times.len(), values.len())));
    }
    if times.len() > ROWS_MAX {
        return Err(Problem::TooLarge { limit: format!("{ROWS_MAX} rows") });
    }
    let (rows, clock) = rows(times, values, answer.utc_offset_seconds, time_column, &column, reading)?;
    Ok(Table {
        form: Form::OpenMeteo,
        rows,
        place: Place::Row,
        clock,
        time_column: time_column.to_owned(),
        column,
        estimates: None,
        zone: None,
        dropped: Vec::new(),
        is_end: reading.interval_time == Some(IntervalTime::End),
    })
}

fn rows(
    times: Vec<Time<'_>>,
    values: Vec<Option<f64>>,
    offset_s: Option<i64>,
    time_column: &str,
    column: &ValueColumn,
    reading: &Reading,
) -> Result<(Vec<Row>, Clock), Problem> {
    let mut clock = Times::default();
    let mut rows = Vec::with_capacity(times.len());
    for ((time, value), line) in times.into_iter().zip(values).zip(1..) {
        let cell =
            |column: &str, text: &str, reason: String| Problem::cell(Place::Row(line.into()), column, text, reason);
        let text = match time {
            Time::Unix(time) => Cow::Owned(time.to_string()),
            Time::Text(text) => text,
        };
        let time_us = clock.read(&text, line).map_err(|reason| cell(time_column, &text, reason))?;
        let converted =
            |value: f64| column.convert(value).map_err(|reason| cell(&column.name, &value.to_string(), reason));
        rows.push(Row { time_us, value: value.map_or(Ok(f64::NAN), converted)?, line, estimated: false });
    }
    let fixed = match offset_s.filter(|offset_s| offset_s.abs() <= OFFSET_MAX_S) {
        Some(offset_s) => format!("UTC{:+} h, by `utc_offset_seconds`", offset_s as f64 / 3600.0),
        None => return Err(Problem::Content("the file has no `utc_offset_seconds` of a clock".to_owned())),
    };
    let offset_us = offset_s.unwrap_or_default() * SECOND_US;
    if !clock.is_local() || offset_us == 0 {
        return Ok((rows, clock.clock(Some(&fixed), reading.timezone.as_deref(), Place::Row)?));
    }
    if let Some(name) = &reading.timezone {
        return Err(Problem::setting("timezone", format!("{fixed}, not {}; remove it", shortened(name))));
    }
    rows.iter_mut().for_each(|row| row.time_us -= offset_us);
    Ok((rows, Clock::Instants(fixed)))
}
