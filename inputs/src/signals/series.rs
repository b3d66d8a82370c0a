//! From the rows of a file to a series: order, duplicates, ends and gaps.

use powersweep_experiments::signals::{Duplicates, Form, Gaps, Reading};

use crate::error::{self, Problem};
use crate::ledger::Effect;
use crate::signals::ROWS_MAX;
use crate::signals::clock::{self, Clock, seconds};
use crate::signals::step::Steps;
use crate::signals::table::{Row, Table};
use crate::signals::{Ledger, Rule};
use crate::table::clock::SECOND_US;

/// What the times of a series count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Seconds since 1970-01-01 00:00 UTC.
    Calendar,
    /// Seconds from the simulated time 0.
    Offset,
}

/// What was chosen to read a file, to show beside results.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The form.
    pub form: Form,
    /// The column of times.
    pub time_column: String,
    /// The column of values.
    pub column: String,
    /// The unit of the values in the file.
    pub unit: String,
    /// What the times are and why: "UTC, by the name of their column", "local times of Europe/Berlin".
    pub times: String,
    /// The regular step (s): that of more than half of the steps; where it changes for long, the last one; where the steps are
    /// months or years, the length of the last interval. `None`: a single time, or uneven steps.
    pub step_s: Option<f64>,
    /// The regular step with its unit, such as `3600 s`, `1 month` or `1 year`.
    pub step: Option<String>,
    /// Rows that the file flags as estimated.
    pub flagged: u64,
    /// Rows without the flag whose source is an estimate.
    pub estimated_by_source: u64,
}

/// Values over time, in the unit of their quantity: g/kWh, currency/kWh, W or degrees Celsius.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the times count from.
    pub base: Base,
    /// The times (s), strictly increasing, at least one.
    pub times_s: Vec<f64>,
    /// The value of each time, finite.
    pub values: Vec<f64>,
    /// End of the last interval (s): the last time and the regular step. The last time itself where there is no regular
    /// step: then nobody knows how long the last value holds.
    pub end_s: f64,
    /// Whether the value of each time is an estimate, by its flag or its source, or was filled. Empty if the file does not
    /// say.
    pub estimated: Vec<bool>,
    /// Currency of a price, where the unit says it.
    pub currency: Option<String>,
    /// Zone of the grid that the file names, such as DE.
    pub zone: Option<String>,
    /// What was chosen to read the file.
    pub facts: Facts,
    /// What happened to its rows.
    pub ledger: Ledger,
}

/// The series of a file's rows.
pub(crate) fn build(table: Table, reading: &Reading) -> Result<Series, Problem> {
    let Table { form, mut rows, place, clock, time_column, column, estimates, zone, dropped, is_end } = table;
    let mut ledger = Ledger { read: (rows.len() + dropped.len()) as u64, ..Ledger::default() };
    dropped.iter().for_each(|(rule, line)| ledger.add(*rule, *line));
    // A file may begin with its latest time.
    if rows.first().zip(rows.last()).is_some_and(|(first, last)| first.time_us > last.time_us)
        && rows.windows(2).all(|pair| pair[0].time_us >= pair[1].time_us - FOLD_US)
    {
        rows.reverse();
    }
    let (mut rows, added) = match &clock {
        Clock::Zone(zone) => clock::to_instants(rows, zone, reading.clock_change, place, &mut ledger)?,
        Clock::Instants(_) | Clock::Offsets => (rows, Vec::new()),
    };
    if let Some(pair) = rows.windows(2).find(|pair| pair[1].time_us < pair[0].time_us) {
        let time = clock.show(pair[1].time_us);
        let mut reason = format!("the time {time} is before the time of the row above: sort the rows by time");
        // Without a zone whose clocks change, the hour that the clocks show twice goes back.
        let is_local = reading.timezone.is_some() && pair[0].time_us - pair[1].time_us < FOLD_US;
        if is_local && !rows.windows(2).any(|pair| pair[0].time_us - pair[1].time_us >= FOLD_US) {
            reason.push_str(
                "; if it is the hour in which the clocks went back, set `timezone` to the zone of these clocks, such as \
                 \"Europe/Berlin\"",
            );
        }
        return Err(Problem::At { place: place(pair[1].line.into()), reason });
    }
    if !added.is_empty() {
        rows.extend(added);
        rows.sort_by_key(|row| row.time_us);
    }
    let again = |row: &Row, count| {
        let reason = format!(
            "the time {} occurs again with another value ({} in all): set `duplicates` to \"first\", \"last\" or \"mean\" to \
             accept them",
            clock.show(row.time_us),
            error::rows(count)
        );
        Problem::At { place: place(row.line.into()), reason }
    };
    let rows = without_duplicates(rows, reading.duplicates, &mut ledger, again)?;
    let rows = without_empty_ends(rows, &mut ledger);
    let Some(last) = rows.last() else {
        return Err(Problem::Content(format!("column {:?} has no value in any row", column.name)));
    };
    let last_us = last.time_us;
    let steps = Steps::of(&rows, &clock);
    let mut end_us = steps.as_ref().map_or(last_us, |steps| steps.end(&rows, &clock));
    let step_us = steps.as_ref().map(|steps| steps.last_us(&rows, &clock));
    let begin_us = steps.as_ref().map(|steps| steps.begin(&rows, &clock));
    let step = steps.as_ref().map(|steps| steps.shown(rows.len() - 1));
    let mut rows = without_gaps(rows, steps.as_ref(), reading.gaps, &mut ledger, &clock)?;
    if is_end {
        end_us = begin_of_intervals(&mut rows, begin_us, last_us)?;
    }
    ledger.kept = (rows.len() as u64).saturating_sub(ledger.total(Effect::Added));
    let (flagged, estimated_by_source) = estimates.unwrap_or_default();
    Ok(Series {
        base: if matches!(clock, Clock::Offsets) { Base::Offset } else { Base::Calendar },
        times_s: rows.iter().map(|row| seconds(row.time_us)).collect(),
        values: rows.iter().map(|row| row.value).collect(),
        end_s: seconds(end_us),
        estimated: if estimates.is_some() { rows.iter().map(|row| row.estimated).collect() } else { Vec::new() },
        zone,
        facts: Facts {
            form,
            time_column,
            column: column.name,
            unit: column.unit.text,
            times: clock.describe(),
            step_s: step_us.map(seconds),
            step,
            flagged,
            estimated_by_source,
        },
        currency: column.unit.currency,
        ledger,
    })
}

/// Time by which a file may go back where the clocks went back (µs).
const FOLD_US: i64 = 2 * 3600 * SECOND_US;

/// Gives rows that have the ends of their intervals the begins. Each interval begins where the one before ends; `begin_us` is the
/// begin of the first one. Returns the end of the last one.
fn begin_of_intervals(rows: &mut [Row], begin_us: Option<i64>, last_us: i64) -> Result<i64, Problem> {
    let mut begin_us = begin_us.ok_or_else(|| {
        let reason = "times are the ends of intervals, and without a regular step nothing says when the first one begins: set it \
                      to \"begin\", or use a file with a regular step";
        Problem::setting("interval_time", reason)
    })?;
    for row in rows {
        begin_us = std::mem::replace(&mut row.time_us, begin_us);
    }
    Ok(last_us)
}

/// One row for each time.
fn without_duplicates(
    rows: Vec<Row>,
    setting: Duplicates,
    ledger: &mut Ledger,
    again: impl Fn(&Row, u64) -> Problem,
) -> Result<Vec<Row>, Problem> {
    let mut kept = Vec::with_capacity(rows.len());
    let mut first_different = None;
    for same in rows.chunk_by(|a, b| a.time_us == b.time_us) {
        let first = same[0];
        let is_equal = |row: &Row| row.value == first.value || row.value.is_nan() && first.value.is_nan();
        let estimated = same.iter().any(|row| row.estimated);
        if same.iter().all(is_equal) {
            same[1..].iter().for_each(|row| ledger.add(Rule::EqualDuplicate, row.line.into()));
            kept.push(Row { estimated, ..first });
            continue;
        }
        first_different.get_or_insert(same[1]);
        same[1..].iter().for_each(|row| ledger.add(Rule::Duplicate, row.line.into()));
        // An empty cell is not one of the values.
        let mut values = same.iter().map(|row| row.value).filter(|value| !value.is_nan());
        let value = match setting {
            Duplicates::Error | Duplicates::First => values.next().unwrap_or(f64::NAN),
            Duplicates::Last => values.next_back().unwrap_or(f64::NAN),
            Duplicates::Mean => {
                let values: Vec<f64> = values.collect();
                if values.len() > 1 {
                    ledger.add(Rule::Averaged, first.line.into());
                }
                values.iter().sum::<f64>() / values.len() as f64
            }
        };
        kept.push(Row { value, estimated, ..first });
    }
    match first_different {
        Some(row) if setting == Duplicates::Error => Err(again(&row, ledger.count(Rule::Duplicate).rows)),
        _ => Ok(kept),
    }
}

/// The rows from the first to the last value.
fn without_empty_ends(mut rows: Vec<Row>, ledger: &mut Ledger) -> Vec<Row> {
    let end = rows.iter().rposition(|row| !row.value.is_nan()).map_or(0, |last| last + 1);
    rows.drain(end..).for_each(|row| ledger.add(Rule::EmptyAtEnd, row.line.into()));
    let begin = rows.iter().position(|row| !row.value.is_nan()).unwrap_or(0);
    rows.drain(..begin).for_each(|row| ledger.add(Rule::EmptyAtStart, row.line.into()));
    rows
}

/// Rows with a value at every time of the regular step.
fn without_gaps(
    rows: Vec<Row>,
    steps: Option<&Steps>,
    setting: Gaps,
    ledger: &mut Ledger,
    clock: &Clock,
) -> Result<Vec<Row>, Problem> {
    let empty = rows.iter().filter(|row| row.value.is_nan()).count();
    let missing_behind = |at: usize| steps.map_or(0, |steps| steps.missing_behind(&rows, at, clock));
    let gaps = || (0..rows.len().saturating_sub(1)).map(missing_behind);
    let missing = gaps().sum::<i64>();
    if missing == 0 && empty == 0 {
        return Ok(rows);
    }
    if setting == Gaps::Error {
        let first_empty = rows.iter().find(|row| row.value.is_nan()).map(|row| row.time_us);
        let missing_at = gaps().position(|missing| missing > 0);
        let first_missing = missing_at.zip(steps).map(|(at, steps)| steps.after(&rows, at, 1, clock));
        let first = first_empty.into_iter().chain(first_missing).min().unwrap_or_default();
        let step =
            missing_at.zip(steps).map_or(String::new(), |(at, steps)| format!(", at the step of {}", steps.shown(at)));
        let what = match (missing, empty) {
            (0, _) => format!("{} without a value in all", error::rows(empty as u64)),
            (_, 0) => format!("{missing} missing in all{step}"),
            _ => format!("{missing} missing in all{step}, and {} without a value", error::rows(empty as u64)),
        };
        return Err(Problem::Content(format!(
            "no value at {}; {what}: set `gaps` to \"hold\" (the value before; for files that list only changes) or \
             \"interpolate\" to fill them",
            clock.show(first)
        )));
    }
    let missing = usize::try_from(missing).ok().filter(|missing| rows.len().saturating_add(*missing) <= ROWS_MAX);
    let missing = missing.ok_or_else(|| {
        Problem::Content(format!(
            "the signal has more than {ROWS_MAX} times, the limit for signals, because of its gaps: cut the file where it has \
             none"
        ))
    })?;
    rows.iter().filter(|row| row.value.is_nan()).for_each(|row| ledger.add(Rule::ValueFilled, row.line.into()));
    let mut whole: Vec<Row> = Vec::with_capacity(rows.len() + missing);
    for (at, row) in rows.iter().enumerate() {
        whole.push(*row);
        let Some(steps) = steps.filter(|_| at + 1 < rows.len()) else { continue };
        for count in 1..=steps.missing_behind(&rows, at, clock) {
            ledger.add(Rule::TimeFilled, row.line.into());
            whole.push(Row { time_us: steps.after(&rows, at, count, clock), value: f64::NAN, ..*row });
        }
    }
    fill(&mut whole, setting);
    Ok(whole)
}

/// Fills empty values between values; the first and the last row have one.
fn fill(rows: &mut [Row], setting: Gaps) {
    let mut before = rows[0];
    let mut at = 1;
    while at < rows.len() {
        let length = rows[at..].iter().take_while(|row| row.value.is_nan()).count();
        let (gap, rest) = rows[at..].split_at_mut(length);
        let Some(after) = rest.first().copied() else { break };
        for row in gap {
            let share = (row.time_us - before.time_us) as f64 / (after.time_us - before.time_us) as f64;
            row.value = match setting {
                Gaps::Interpolate => before.value + (after.value - before.value) * share,
                Gaps::Hold | Gaps::Error => before.value,
            };
            row.estimated = true;
        }
        before = after;
        at += length + 1;
    }
}
