//! When the tasks of an experiment ran: ended tasks, busy and idle slots over time, and the last tasks.
//!
//! Rows are added once, part by part, and are not kept. Times are summed up in intervals of one width, which doubles when
//! the intervals become too many: memory depends on the number of workers alone.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use powersweep_results::Table;

use crate::scan::{self, INDEX, RowGroup, Tasks, whole};
use crate::{Datasets, Error};

/// Maximum number of intervals.
pub const INTERVALS_MAX: usize = 240;
/// Maximum number of last tasks.
pub const LAST_MAX: usize = 200;
/// The least width of an interval (µs).
const WIDTH_LEAST_US: i64 = 1_000_000;
/// Times beyond this distance from 1970 are those of a wrong clock (µs): some 3,000 years.
const DISTANCE_MAX_US: i64 = 100_000_000_000_000_000;
/// The columns that place a task in time.
const COLUMNS: [&str; 4] = [INDEX, "worker", "started_at", "wall_ms"];

/// Ended tasks, busy and idle slots of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Tasks that ended a second.
    pub ended_per_s: f64,
    /// Mean number of slots that ran a task.
    pub busy: f64,
    /// Mean number of slots of workers that ran no task, between the first and the last task of each worker.
    pub idle: f64,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its index.
    pub index: i64,
    /// The name of its worker.
    pub worker: String,
    /// Microseconds since 1970 UTC.
    pub start_us: i64,
    /// Not before the start.
    pub end_us: i64,
}

/// When the tasks of an experiment ran.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// Number of tasks that have a row.
    pub tasks: u64,
    /// Start of the first task and end of the last one (µs since 1970 UTC); `None` without rows.
    pub span_us: Option<(i64, i64)>,
    /// Start of the first interval (µs since 1970 UTC).
    pub begin_us: i64,
    /// Width of an interval (s).
    pub width_s: f64,
    /// The intervals in their order.
    pub moments: Vec<Moment>,
    /// The last tasks in the order of their ends.
    pub last: Vec<Ran>,
    /// Number of workers that ran them all.
    pub workers: usize,
    settled: Sums,
    parts: BTreeSet<String>,
}

impl Activity {
    /// The activity of all rows. Rows of parts that `last` has are not read again.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub async fn read(datasets: &Datasets, experiment: &str, last: Option<&Activity>) -> Result<Activity, Error> {
        let reading = datasets.read(experiment, Table::Tasks).await?;
        let schema = scan::columns(COLUMNS);
        let tasks = Tasks::open(&reading, &schema).await?;
        let groups = tasks.groups();
        let parts: BTreeSet<String> = groups.iter().filter_map(|group| group.part()).collect();
        let last = last.filter(|last| last.parts.is_subset(&parts));
        let mut settled = last.map_or_else(Sums::default, |last| last.settled.clone());
        let is_new =
            |group: &RowGroup<'_>| group.part().is_some_and(|name| last.is_none_or(|last| !last.parts.contains(&name)));
        for group in groups.iter().copied().filter(|group| is_new(group)) {
            group.each(&schema, whole, |batch| settled.add(batch)).await?;
        }
        let mut all = settled.clone();
        for group in groups.iter().copied().filter(|group| group.part().is_none()) {
            group.each(&schema, whole, |batch| all.add(batch)).await?;
        }
        Ok(Activity { settled, parts, ..all.activity() })
    }
}

/// Start and end of a task (µs since 1970 UTC). Both are rounded down, so that the next task of a slot is never earlier.
pub fn times(batch: &RecordBatch, row: usize) -> (i64, i64) {
    let valid = |name: &str| batch.column_by_name(name).filter(|column| column.is_valid(row));
    let start_us = valid("started_at").map_or(0, |start| start.as_primitive::<TimestampMicrosecondType>().value(row));
    let wall_ms = valid("wall_ms").map_or(0.0, |wall| wall.as_primitive::<Float64Type>().value(row));
    (start_us, end_us(start_us, wall_ms))
}

fn end_us(start_us: i64, wall_ms: f64) -> i64 {
    // A float beyond the integers becomes the nearest one.
    start_us.saturating_add((wall_ms.max(0.0) * 1000.0).floor() as i64)
}

/// Amounts by interval. Interval `n` begins at `n` times the width.
#[derive(Debug, Clone)]
struct Series {
    width_us: i64,
    /// Number of the first interval.
    first: i64,
    amounts: Vec<f64>,
}

impl Default for Series {
    fn default() -> Series {
        Series { width_us: WIDTH_LEAST_US, first: 0, amounts: Vec::new() }
    }
}

impl Series {
    /// Adds an amount that is spread evenly over a time.
    fn add(&mut self, from_us: i64, to_us: i64, amount: f64) {
        let (first, last) = loop {
            let (from, to) = (from_us.div_euclid(self.width_us), to_us.div_euclid(self.width_us));
            let end = self.first + self.amounts.len() as i64 - 1;
            let (first, last) = if self.amounts.is_empty() { (from, to) } else { (from.min(self.first), to.max(end)) };
            if last - first < INTERVALS_MAX as i64 {
                break (first, last);
            }
            self.widen();
        };
        let before = if self.amounts.is_empty() { 0 } else { (self.first - first) as usize };
        self.amounts.splice(0..0, std::iter::repeat_n(0.0, before));
        self.amounts.resize((last - first + 1) as usize, 0.0);
        self.first = first;
        let (from, to) = (from_us.div_euclid(self.width_us), to_us.div_euclid(self.width_us));
        for number in from..=to {
            let begin = number.saturating_mul(self.width_us).max(from_us);
            let end = (number + 1).saturating_mul(self.width_us).min(to_us);
            let share = if from_us == to_us { 1.0 } else { (end - begin) as f64 / (to_us - from_us) as f64 };
            self.amounts[(number - first) as usize] += amount * share;
        }
    }

    /// Doubles the width.
    fn widen(&mut self) {
        self.width_us *= 2;
        let first = self.first.div_euclid(2);
        let last = (self.first + self.amounts.len() as i64 - 1).div_euclid(2);
        let mut amounts = vec![0.0; if self.amounts.is_empty() { 0 } else { (last - first + 1) as usize }];
        for (number, amount) in (self.first..).zip(&self.amounts) {
            amounts[(number.div_euclid(2) - first) as usize] += amount;
        }
        (self.first, self.amounts) = (first, amounts);
    }

    fn amount(&self, number: i64) -> f64 {
        let at = usize::try_from(number - self.first).ok();
        at.and_then(|at| self.amounts.get(at)).copied().unwrap_or(0.0)
    }
}

/// The tasks of one worker.
#[derive(Debug, Clone)]
struct WorkerSums {
    span_us: (i64, i64),
    /// Slot time with a task (s).
    busy_s: Series,
}

/// Sums over rows.
#[derive(Debug, Clone, Default)]
struct Sums {
    tasks: u64,
    ended: Series,
    workers: BTreeMap<String, WorkerSums>,
    last: Vec<Ran>,
    /// A task that ended before is not one of the last.
    last_from_us: Option<i64>,
}

impl Sums {
    /// Adds a batch. True, so that reading goes on.
    fn add(&mut self, batch: &RecordBatch) -> bool {
        let workers = batch.column_by_name("worker").map(|column| column.as_string::<i32>());
        let indices = batch.column_by_name(INDEX).map(|column| column.as_primitive::<Int64Type>());
        let walls = batch.column_by_name("wall_ms").map(|column| column.as_primitive::<Float64Type>());
        let Some(starts) = batch.column_by_name("started_at") else { return true };
        for (row, start_us) in starts.as_primitive::<TimestampMicrosecondType>().iter().enumerate() {
            let Some(start_us) = start_us else { continue };
            let wall_ms = walls.filter(|walls| walls.is_valid(row)).map_or(0.0, |walls| walls.value(row));
            let worker = workers.filter(|workers| workers.is_valid(row)).map_or("", |workers| workers.value(row));
            let index = indices.filter(|indices| indices.is_valid(row)).map_or(0, |indices| indices.value(row));
            self.task(worker, index, start_us, end_us(start_us, wall_ms));
        }
        true
    }

    fn task(&mut self, worker: &str, index: i64, start_us: i64, end_us: i64) {
        let [start_us, end_us] = [start_us, end_us].map(|at| at.clamp(-DISTANCE_MAX_US, DISTANCE_MAX_US));
        self.tasks += 1;
        self.ended.add(end_us, end_us, 1.0);
        if !self.workers.contains_key(worker) {
            let new = WorkerSums { span_us: (start_us, end_us), busy_s: Series::default() };
            self.workers.insert(worker.to_owned(), new);
        }
        if let Some(sums) = self.workers.get_mut(worker) {
            sums.span_us = (sums.span_us.0.min(start_us), sums.span_us.1.max(end_us));
            sums.busy_s.add(start_us, end_us, (end_us - start_us) as f64 / 1e6);
        }
        if self.last_from_us.is_some_and(|from_us| end_us < from_us) {
            return;
        }
        if self.last.len() >= 2 * LAST_MAX {
            self.cut();
            self.last_from_us = self.last.first().map(|ran| ran.end_us);
        }
        self.last.push(Ran { index, worker: worker.to_owned(), start_us, end_us });
    }

    /// Keeps the last tasks, in the order of their ends.
    fn cut(&mut self) {
        self.last.sort_unstable_by_key(|ran| (ran.end_us, ran.index));
        self.last.drain(..self.last.len().saturating_sub(LAST_MAX));
    }

    fn activity(mut self) -> Activity {
        self.cut();
        let spans = self.workers.values().map(|worker| worker.span_us);
        let span_us = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let workers = self.workers.len();
        let Some((first_us, last_us)) = span_us else { return Activity::default() };
        // All series get the width with which the whole time has few enough intervals.
        let mut width_us =
            self.workers.values().map(|worker| worker.busy_s.width_us).fold(self.ended.width_us, i64::max);
        while last_us.div_euclid(width_us) - first_us.div_euclid(width_us) >= INTERVALS_MAX as i64 {
            width_us *= 2;
        }
        let all = self.workers.values_mut().map(|worker| &mut worker.busy_s).chain([&mut self.ended]);
        all.for_each(|series| {
            while series.width_us < width_us {
                series.widen();
            }
        });
        let (first, last) = (first_us.div_euclid(width_us), last_us.div_euclid(width_us));
        let width_s = width_us as f64 / 1e6;
        let mut moments: Vec<Moment> = (first..=last)
            .map(|number| Moment { ended_per_s: self.ended.amount(number) / width_s, ..Moment::default() })
            .collect();
        for worker in self.workers.values() {
            // The slots of a worker: the number that was busy at its busiest time.
            let busiest = worker.busy_s.amounts.iter().copied().fold(0.0, f64::max) / width_s;
            let slots = (busiest - 1e-6).ceil().max(1.0);
            for (number, moment) in (first..).zip(&mut moments) {
                let begin = number.saturating_mul(width_us).max(worker.span_us.0);
                let end = (number + 1).saturating_mul(width_us).min(worker.span_us.1);
                let busy = worker.busy_s.amount(number) / width_s;
                moment.busy += busy;
                moment.idle += (slots * (end - begin).max(0) as f64 / width_us as f64 - busy).max(0.0);
            }
        }
        let begin_us = first.saturating_mul(width_us);
        Activity {
            tasks: self.tasks,
            span_us,
            begin_us,
            width_s,
            moments,
            last: self.last,
            workers,
            ..Activity::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn slots_are_busy_while_tasks_run_and_idle_between_them() {
        let mut sums = Sums::default();
        // Two slots from 100 s to 110 s; one of them has no task from 104 s to 108 s. Another worker runs one task.
        for (worker, from, to) in [("a", 100, 110), ("a", 100, 104), ("a", 108, 110), ("b", 106, 107)] {
            sums.task(worker, from, from * S, to * S);
        }
        let found = sums.activity();
        assert_eq!((found.tasks, found.workers, found.width_s, found.begin_us), (4, 2, 1.0, 100 * S));
        assert_eq!(found.span_us, Some((100 * S, 110 * S)));
        let shown = |at: usize| (found.moments[at].busy, found.moments[at].idle, found.moments[at].ended_per_s);
        assert_eq!(
            [shown(0), shown(4), shown(6), shown(7)],
            [(2.0, 0.0, 0.0), (1.0, 1.0, 1.0), (2.0, 1.0, 0.0), (1.0, 1.0, 1.0)]
        );
        assert_eq!(found.moments.iter().map(|moment| moment.ended_per_s).sum::<f64>(), 4.0);
    }

    #[test]
    fn intervals_are_few_and_lose_no_time_whatever_the_time_is() {
        for step_s in [1, 7, 3_600, 86_400 * 365] {
            let (mut sums, mut busy_s) = (Sums::default(), 0.0);
            // The last task comes first, and times before 1970 are times, too.
            for task in (0..1_000).rev() {
                let (from, length) = ((task - 500) * step_s * S, 1 + task % 5);
                sums.task("w", task, from, from + length * S);
                busy_s += length as f64;
            }
            let found = sums.activity();
            assert!((1..=INTERVALS_MAX).contains(&found.moments.len()), "{} intervals", found.moments.len());
            let sum = |of: fn(&Moment) -> f64| found.moments.iter().map(of).sum::<f64>() * found.width_s;
            assert!(
                (sum(|moment| moment.busy) - busy_s).abs() < 1e-6 * busy_s,
                "{step_s}: {}",
                sum(|moment| moment.busy)
            );
            assert!((sum(|moment| moment.ended_per_s) - 1_000.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_last_tasks_are_those_that_ended_last() {
        let mut sums = Sums::default();
        for task in 0..5_000_i64 {
            let at = task * 7_919 % 5_000;
            sums.task("w", at, at * S, (at + 1) * S);
        }
        let found: Vec<i64> = sums.activity().last.iter().map(|ran| ran.index).collect();
        assert_eq!(found, (5_000 - LAST_MAX as i64..5_000).collect::<Vec<_>>());
        let mut wrong = Sums::default();
        wrong.task("w", 0, i64::MAX - 5, i64::MAX);
        wrong.task("w", 1, i64::MIN, 0);
        assert!(wrong.activity().moments.len() <= INTERVALS_MAX, "a worker's clock may be wrong");
    }
}
