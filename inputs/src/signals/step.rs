//! The regular step of a series: which times must be there, and when its last interval ends.

use crate::signals::clock::Clock;
use crate::signals::table::Row;

/// A step from a time to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Microseconds.
    Fixed(i64),
    /// Months of the calendar, such as 12 for years.
    Months(i64),
}

/// The regular steps of a series.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The row from which on a step holds, and the step; the first is of row 0.
    changes: Vec<(usize, Step)>,
}

/// Least equal steps one after the other, and the least time that they take (µs), that are a step of their own: markets went from
/// hours to quarters of an hour at one instant.
const CHANGE_STEPS_MIN: usize = 96;
const CHANGE_US_MIN: i64 = 7 * 86_400 * 1_000_000;

/// Greatest day of a month that every month has.
const DAY_MAX: i8 = 28;

impl Steps {
    /// The steps of rows in order of time; `None` if they have no regular step.
    pub(crate) fn of(rows: &[Row], clock: &Clock) -> Option<Steps> {
        let one = |step| Steps { changes: vec![(0, step)] };
        if let Some(months) = months(rows, clock) {
            return Some(one(Step::Months(months)));
        }
        let steps: Vec<i64> = rows.windows(2).map(|pair| pair[1].time_us - pair[0].time_us).collect();
        let changes = changes(&steps);
        match changes.len() {
            0 | 1 => regular(steps).map(|step| one(Step::Fixed(step))),
            _ => Some(Steps { changes }),
        }
    }

    /// The step behind a row.
    fn at(&self, row: usize) -> Step {
        let after = self.changes.partition_point(|(from, _)| *from <= row);
        self.changes[after.saturating_sub(1)].1
    }

    /// The time that is some steps behind a row.
    pub(crate) fn after(&self, rows: &[Row], row: usize, count: i64, clock: &Clock) -> i64 {
        match self.at(row) {
            Step::Fixed(us) => rows[row].time_us + count * us,
            Step::Months(months) => clock.months_after(rows[row].time_us, count * months),
        }
    }

    /// The end of the last interval.
    pub(crate) fn end(&self, rows: &[Row], clock: &Clock) -> i64 {
        rows.len().checked_sub(1).map_or(0, |last| self.after(rows, last, 1, clock))
    }

    /// The begin of the interval that ends at the first row.
    pub(crate) fn begin(&self, rows: &[Row], clock: &Clock) -> i64 {
        self.after(rows, 0, -1, clock)
    }

    /// The last step (µs): of a calendar, the step to the end.
    pub(crate) fn last_us(&self, rows: &[Row], clock: &Clock) -> i64 {
        self.end(rows, clock) - rows.last().map_or(0, |row| row.time_us)
    }

    /// The step behind a row with its unit.
    pub(crate) fn shown(&self, row: usize) -> String {
        match self.at(row) {
            Step::Fixed(us) => format!("{} s", us as f64 / 1e6),
            Step::Months(12) => "1 year".to_owned(),
            Step::Months(1) => "1 month".to_owned(),
            Step::Months(months) => format!("{months} months"),
        }
    }

    /// Times that are missing between a row and the next: none if they are less than one and a half steps apart.
    pub(crate) fn missing_behind(&self, rows: &[Row], row: usize, clock: &Clock) -> i64 {
        let (begin_us, end_us) = (rows[row].time_us, rows[row + 1].time_us);
        match self.at(row) {
            // (apart + step / 2) / step, rounded down, is the number of steps, rounded.
            Step::Fixed(us) => ((end_us - begin_us + us / 2) / us - 1).max(0),
            Step::Months(months) => (months_between(clock, begin_us, end_us).unwrap_or(0) / months - 1).max(0),
        }
    }
}

/// The step between two times that more than half of the steps have (µs). There is none if more than a tenth of the steps
/// are no multiples of it: such a file lists changes, and its last step says nothing about the end.
fn regular(mut steps: Vec<i64>) -> Option<i64> {
    steps.sort_unstable();
    // A step of more than half of the steps is also the one in the middle.
    let middle = *steps.get(steps.len() / 2)?;
    let count = steps.partition_point(|step| *step <= middle) - steps.partition_point(|step| *step < middle);
    let off_grid = steps.iter().filter(|step| (*step % middle).min(middle - *step % middle) > middle / 20).count();
    (count * 2 > steps.len() && off_grid * 10 <= steps.len()).then_some(middle)
}

/// The rows at which the step changes for long. A missing time of a step, which leaves a multiple of it, ends no step.
fn changes(steps: &[i64]) -> Vec<(usize, Step)> {
    // The first row of each part, its step, and how many steps of it are equal.
    let (mut parts, mut at): (Vec<(usize, i64, usize)>, usize) = (Vec::new(), 0);
    for equal in steps.chunk_by(|a, b| a == b) {
        let step = equal[0];
        match parts.last_mut() {
            Some((_, part, count)) if *part == step => *count += equal.len(),
            Some((_, part, _)) if equal.len() == 1 && step.checked_rem(*part) == Some(0) => {}
            _ => parts.push((at, step, equal.len())),
        }
        at += equal.len();
    }
    let mut changes: Vec<(usize, Step)> = Vec::new();
    let mut before = None;
    for (from, step, count) in parts {
        let is_long = count >= CHANGE_STEPS_MIN && step.saturating_mul(count as i64) >= CHANGE_US_MIN;
        if is_long && changes.last().is_none_or(|(_, before)| *before != Step::Fixed(step)) {
            // Times can be missing where the step changes.
            let gap = before.filter(|(_, gap, count)| *count == 1 && gap % step == 0).map(|(from, _, _)| from);
            changes.push((if changes.is_empty() { 0 } else { gap.unwrap_or(from) }, Step::Fixed(step)));
        }
        before = Some((from, step, count));
    }
    changes
}

/// The months between rows that are all at the same time of the same day of their months: the number that more than half of the
/// steps have.
fn months(rows: &[Row], clock: &Clock) -> Option<i64> {
    let first = clock.civil(rows.first()?.time_us).filter(|time| time.day() <= DAY_MAX)?;
    let is_same = |row: &Row| {
        clock.civil(row.time_us).is_some_and(|time| time.day() == first.day() && time.time() == first.time())
    };
    if !rows.iter().all(is_same) {
        return None;
    }
    let between = |pair: &[Row]| months_between(clock, pair[0].time_us, pair[1].time_us);
    let mut steps: Vec<i64> = rows.windows(2).map(between).collect::<Option<_>>()?;
    steps.sort_unstable();
    let middle = *steps.get(steps.len() / 2)?;
    let count = steps.iter().filter(|step| **step == middle).count();
    (middle > 0 && count * 2 > steps.len()).then_some(middle)
}

/// Months of the calendar from a time to another one.
fn months_between(clock: &Clock, begin_us: i64, end_us: i64) -> Option<i64> {
    let (begin, end) = (clock.civil(begin_us)?, clock.civil(end_us)?);
    let months = |time: jiff::civil::DateTime| i64::from(time.year()) * 12 + i64::from(time.month());
    Some(months(end) - months(begin))
}
