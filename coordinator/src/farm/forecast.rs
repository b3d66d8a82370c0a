//! The remaining time of an experiment, as a range: the work of its open tasks over the pace of its slots.
//!
//! Work is learned by cell: a workload and a policy of the manifest, in seconds a job where the manifest says how many
//! jobs a task has, else in seconds a task. Cells without a hand-in take the costs of their neighbours, with a wide range.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use powersweep_experiments::{Sweep, TaskKind};

use super::index_set::{IndexSet, index_at};
use super::pending::Closed;

/// Open tasks that are looked at for one estimate.
const SAMPLES: u64 = 256;
/// Tasks of a hand-in whose cells are looked at.
const LEARNED: usize = 64;
/// Cells that are kept; more share one.
const CELLS_MAX: usize = 4_096;
/// Standard deviations on each side of a range: nine of ten values lie within.
const WIDTH: f64 = 1.645;
/// Least relative uncertainty of a learned cost: later tasks of a cell are not like earlier ones.
const DRIFT: f64 = 0.12;
/// Relative uncertainty of a cost from one hand-in.
const ONE_HAND_IN: f64 = 0.6;
/// Standard deviation of the logarithm of costs between workloads, before any two are known.
const BETWEEN_WORKLOADS: f64 = 1.2;
/// Standard deviation of the logarithm of costs between policies on one workload, before any two are known.
const BETWEEN_POLICIES: f64 = 0.6;
/// Time between samples of the pace, and their greatest number: the pace is that of the last minute.
const PACE: (Duration, usize) = (Duration::from_secs(2), 30);
/// Share of the slot time that tasks take, before it is measured, and its relative uncertainty.
const UNMEASURED_PACE: (f64, f64) = (0.9, 0.25);
/// Time for the last commit and the last parts (s).
const FINISH_S: f64 = 1.0;

/// A remaining time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Left {
    pub(super) least_s: f64,
    pub(super) likely_s: f64,
    pub(super) most_s: f64,
}

/// Tasks of like cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    workload: usize,
    policy: usize,
    /// Whether its costs are those of a job.
    by_job: bool,
}

/// The measured cost of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Learned {
    seconds: f64,
    size: f64,
    tasks: f64,
    hand_ins: f64,
    /// Mean cost of a hand-in, and the sum of its squared deviations.
    mean_s: f64,
    squares_s2: f64,
}

impl Learned {
    fn add(&mut self, tasks: f64, size: f64, seconds: f64) {
        self.seconds += seconds;
        self.size += size;
        self.tasks += tasks;
        self.hand_ins += 1.0;
        let (each_s, before_s) = (seconds / size, self.mean_s);
        self.mean_s += (each_s - before_s) / self.hand_ins;
        self.squares_s2 += (each_s - before_s) * (each_s - self.mean_s);
    }

    /// Seconds for each unit of size.
    fn unit_s(&self) -> f64 {
        (self.seconds / self.size).max(1e-9)
    }

    /// Standard deviation of the cost of a hand-in over its mean.
    fn deviation(&self) -> f64 {
        match self.hand_ins {
            count if count > 1.0 => (self.squares_s2 / (count - 1.0)).sqrt() / self.mean_s.max(1e-9),
            _ => ONE_HAND_IN,
        }
    }

    /// Relative uncertainty of the mean cost.
    fn uncertainty(&self) -> f64 {
        let error = self.deviation().max(ONE_HAND_IN / self.hand_ins) / self.hand_ins.sqrt();
        error.hypot(DRIFT)
    }

    /// Relative variance of the cost of one task.
    fn task_variance(&self) -> f64 {
        self.deviation().powi(2) * self.tasks / self.hand_ins
    }
}

/// The cost of tasks, from measured cells.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    /// Seconds for each unit of size.
    unit_s: f64,
    /// Relative uncertainty of `unit_s`.
    uncertainty: f64,
    /// Relative variance of the cost of one task.
    variance: f64,
}

/// Work of open tasks.
#[derive(Debug, Clone, Default, PartialEq)]
struct Work {
    /// Slot time of all tasks (s).
    likely_s: f64,
    /// Uncertainty of the slot time by workload (s): costs of one workload err together.
    by_workload_s: BTreeMap<usize, f64>,
    /// Variance of the sum of the tasks by chance (s²).
    variance_s2: f64,
    /// A time that few tasks exceed (s).
    longest_s: f64,
}

/// Slot time up to an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pace {
    at: Duration,
    /// Slot time that tasks took (s).
    spent_s: f64,
    /// Time of all slots (s).
    slots_s: f64,
}

/// What is open in an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) closed: Closed<'a>,
    pub(super) cursor: u64,
    /// Tasks without a lease.
    pub(super) pending: u64,
    pub(super) slots: u64,
}

/// The learned costs of tasks, from which the remaining time follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Forecast {
    /// The generation of the manifest whose cells are learned.
    generation: u64,
    cells: BTreeMap<Cell, Learned>,
    now: Pace,
    /// Samples, each taken with a hand-in; the oldest first.
    pace: VecDeque<Pace>,
    /// The last estimate.
    pub(super) left: Option<Left>,
}

impl Forecast {
    /// Counts the time of all slots up to `at`. `slots`: those that may run tasks of the experiment.
    pub(super) fn pass(&mut self, at: Duration, slots: u64) {
        let passed = at.saturating_sub(std::mem::replace(&mut self.now.at, at));
        self.now.slots_s += passed.as_secs_f64() * slots as f64;
    }

    /// Tasks of one hand-in took this slot time together (s).
    pub(super) fn learn(&mut self, sweep: &Sweep, generation: u64, indices: &[u64], seconds: f64) {
        if generation != self.generation {
            *self = Forecast { generation, now: self.now, ..Forecast::default() };
        }
        if indices.is_empty() || !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        let step = indices.len().div_ceil(LEARNED);
        let looked_at = indices.iter().step_by(step);
        let each = indices.len() as f64 / looked_at.len() as f64;
        let mut parts: BTreeMap<Cell, (f64, f64)> = BTreeMap::new();
        for &index in looked_at {
            let (cell, size) = self.cell(sweep.kind(index));
            let part = parts.entry(cell).or_default();
            *part = (part.0 + each, part.1 + each * size);
        }
        // A hand-in of several cells is divided by the costs known so far.
        let expected = |cell: &Cell, size: f64| self.cost(*cell, 1.0).map_or(1.0, |cost| cost.unit_s) * size;
        let all: f64 = parts.iter().map(|(cell, (_, size))| expected(cell, *size)).sum();
        let shares: Vec<f64> = parts.iter().map(|(cell, (_, size))| expected(cell, *size) / all).collect();
        for ((cell, (tasks, size)), share) in parts.into_iter().zip(shares) {
            self.cells.entry(cell).or_default().add(tasks, size, seconds * share);
        }
        self.now.spent_s += seconds;
        if self.pace.back().is_none_or(|last| self.now.at.saturating_sub(last.at) >= PACE.0) {
            if self.pace.len() == PACE.1 {
                self.pace.pop_front();
            }
            self.pace.push_back(self.now);
        }
    }

    fn cell(&self, kind: TaskKind) -> (Cell, f64) {
        let cell = Cell { workload: kind.workload, policy: kind.policy, by_job: kind.jobs.is_some() };
        let full = self.cells.len() >= CELLS_MAX && !self.cells.contains_key(&cell);
        let others = Cell { workload: usize::MAX, policy: usize::MAX, by_job: cell.by_job };
        let cell = if full { others } else { cell };
        (cell, kind.jobs.unwrap_or(1).max(1) as f64)
    }

    /// The cost of a cell whose tasks have this size; `None` before the first hand-in.
    fn cost(&self, cell: Cell, size: f64) -> Option<Cost> {
        if let Some(learned) = self.cells.get(&cell) {
            let uncertainty = learned.uncertainty();
            return Some(Cost { unit_s: learned.unit_s(), uncertainty, variance: learned.task_variance() });
        }
        let (costs, between) = self.neighbours(cell, size);
        let count = costs.len() as f64;
        let mean = costs.iter().map(|cost| cost.ln()).sum::<f64>() / count;
        let squares: f64 = costs.iter().map(|cost| (cost.ln() - mean).powi(2)).sum();
        // The deviation before any is known counts as one neighbour.
        let uncertainty = ((between.powi(2) + squares) / count).sqrt();
        let unit_s = costs.iter().sum::<f64>() / count;
        (count > 0.0).then_some(Cost { unit_s, uncertainty, variance: 0.5 })
    }

    /// Costs that a cell without a hand-in may have, and the deviation of their logarithms before any is known: those of
    /// its workload under other policies, else those of its policy, else all.
    fn neighbours(&self, cell: Cell, size: f64) -> (Vec<f64>, f64) {
        let of_workload = self.cells.iter().filter(|(other, _)| other.workload == cell.workload);
        let scaled = of_workload.map(|(other, learned)| learned.unit_s() * self.ratio(cell.policy, other.policy));
        let scaled: Vec<f64> = scaled.collect();
        if !scaled.is_empty() {
            return (scaled, BETWEEN_POLICIES);
        }
        let has_policy = self.cells.keys().any(|other| other.policy == cell.policy);
        let near = self.cells.iter().filter(|(other, _)| !has_policy || other.policy == cell.policy);
        let costs = near.map(|(other, learned)| match other.by_job == cell.by_job {
            true => learned.unit_s(),
            false => learned.seconds / learned.tasks / size,
        });
        (costs.collect(), BETWEEN_WORKLOADS)
    }

    /// Cost under a policy over that under another: the geometric mean of the workloads that ran under both, else 1.
    fn ratio(&self, policy: usize, other: usize) -> f64 {
        let pairs = self.cells.iter().filter(|(cell, _)| cell.policy == policy).filter_map(|(cell, learned)| {
            let twin = self.cells.get(&Cell { policy: other, ..*cell })?;
            Some((learned.unit_s() / twin.unit_s()).ln())
        });
        let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio, count + 1.0));
        if count > 0.0 { (sum / count).exp() } else { 1.0 }
    }

    /// Share of the slot time that tasks take, and its relative uncertainty.
    fn share(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.pace.front(), self.pace.back()) else { return UNMEASURED_PACE };
        let slots_s = last.slots_s - first.slots_s;
        if last.at.saturating_sub(first.at) < 2 * PACE.0 || slots_s <= 0.0 {
            return UNMEASURED_PACE;
        }
        // A long task is counted whole, with the hand-in at its end.
        let share = ((last.spent_s - first.spent_s) / slots_s).clamp(0.01, 1.0);
        (share, 0.05 + 0.2 / (self.pace.len() as f64).sqrt())
    }

    /// Estimates the remaining time; `None` before the first hand-in, without slots, and without open tasks.
    pub(super) fn estimate(&self, generation: u64, open: &Open<'_>) -> Option<Left> {
        let (leased, tasks) = (open.closed.leased, open.closed.leased.len() + open.pending);
        if generation != self.generation || self.cells.is_empty() || open.slots == 0 || tasks == 0 {
            return None;
        }
        let mut costs = BTreeMap::new();
        let mut cost = |index: u64| {
            let (cell, size) = self.cell(open.sweep.kind(index));
            let cost = *costs.entry(cell).or_insert_with(|| self.cost(cell, size));
            cost.map(|cost| (cell.workload, cost, size))
        };
        let mut work = Work::default();
        work.add(leased.len(), spread(leased).filter_map(&mut cost).collect());
        let running_s = if leased.is_empty() { 0.0 } else { work.likely_s / leased.len() as f64 };
        work.add(open.pending, open.pending_sample().filter_map(&mut cost).collect());
        let (share, share_uncertainty) = self.share();
        let factor = (WIDTH * work.uncertainty().hypot(share_uncertainty)).exp();
        let pace = share * open.slots as f64;
        // Tasks in slots have begun: half of their work is done, in the mean.
        let in_slots_s = running_s * open.slots.min(leased.len()) as f64;
        let likely_s = (work.likely_s - in_slots_s / 2.0).max(0.0) / pace + running_s / 2.0;
        let least_s = (work.likely_s / factor - in_slots_s).max(0.0) / pace;
        let most_s = work.likely_s * factor / pace + work.longest_s + FINISH_S;
        Some(Left { least_s: least_s.min(likely_s), likely_s, most_s: most_s.max(likely_s) })
    }
}

impl Work {
    /// Adds tasks, of which some are known: workload, cost and size.
    fn add(&mut self, tasks: u64, known: Vec<(usize, Cost, f64)>) {
        let each = tasks as f64 / known.len().max(1) as f64;
        for (workload, cost, size) in known {
            let seconds = cost.unit_s * size;
            self.likely_s += each * seconds;
            *self.by_workload_s.entry(workload).or_default() += each * seconds * cost.uncertainty;
            self.variance_s2 += each * cost.variance * seconds.powi(2);
            self.longest_s = self.longest_s.max(seconds * (1.0 + WIDTH * cost.variance.sqrt()));
        }
    }

    /// Standard deviation of the logarithm of the work.
    fn uncertainty(&self) -> f64 {
        let squares: f64 = self.by_workload_s.values().map(|seconds| seconds.powi(2)).sum();
        ((squares + self.variance_s2) / self.likely_s.max(1e-9).powi(2)).ln_1p().sqrt()
    }
}

impl Open<'_> {
    /// Indices of pending tasks, spread evenly; none if all of them were returned by workers.
    fn pending_sample(&self) -> impl Iterator<Item = u64> + '_ {
        let indices = self.sweep.index_count().saturating_sub(self.cursor);
        let samples = SAMPLES.min(indices);
        let at = move |k: u64| u128::from(indices) * u128::from(2 * k + 1) / u128::from(2 * samples);
        let found =
            (0..samples).filter_map(move |k| self.sweep.next_included(self.cursor + u64::try_from(at(k)).ok()?));
        found.filter(|index| self.closed.is_pending(*index))
    }
}

/// Some indices of a set: of each chunk the first, the middle and the last.
fn spread(set: &IndexSet) -> impl Iterator<Item = u64> + '_ {
    set.chunks().take(LEARNED).flat_map(|(chunk, bits)| {
        let middle = u32::try_from(bits.len() / 2).ok().and_then(|at| bits.select(at));
        [bits.min(), middle, bits.max()].into_iter().flatten().map(move |bit| index_at(chunk, bit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_ins_of_the_same_cost_for_each_unit_of_size_do_not_deviate() {
        let mut learned = Learned::default();
        learned.add(1.0, 2.0, 5.0);
        learned.add(1.0, 4.0, 10.0);
        assert_eq!((learned.unit_s(), learned.deviation()), (2.5, 0.0));
        learned.add(1.0, 1.0, 4.0);
        assert!(learned.deviation() > 0.2, "{learned:?}");
    }

    #[test]
    fn a_cost_for_each_job_becomes_one_for_each_task_by_its_size() {
        let mut forecast = Forecast::default();
        let known = Cell { workload: 0, policy: 0, by_job: true };
        forecast.cells.entry(known).or_default().add(2.0, 20.0, 40.0);
        let (costs, between) = forecast.neighbours(Cell { workload: 1, policy: 0, by_job: false }, 10.0);
        assert_eq!((costs, between), (vec![2.0], BETWEEN_WORKLOADS));
        let (costs, _) = forecast.neighbours(Cell { workload: 1, ..known }, 10.0);
        assert_eq!(costs, [2.0]);
    }

    #[test]
    fn a_hand_in_without_time_is_learned_and_a_negative_time_is_not() {
        let sweep = crate::farm::tests::sweep("e", 10);
        let mut forecast = Forecast::default();
        for seconds in [-1.0, f64::NAN] {
            forecast.learn(&sweep, 1, &[0], seconds);
            assert!(forecast.cells.is_empty());
        }
        forecast.learn(&sweep, 1, &[], 5.0);
        assert!(forecast.cells.is_empty());
        forecast.learn(&sweep, 1, &[0], 0.0);
        assert_eq!(forecast.cells.len(), 1);
    }

    #[test]
    fn the_sample_of_pending_tasks_covers_them_evenly() {
        let sweep = crate::farm::tests::sweep("e", 10_000);
        let none = IndexSet::new();
        let closed = Closed { done: &none, leased: &none, failed: &none };
        let open = Open { sweep: &sweep, closed, cursor: 2_000, pending: 8_000, slots: 1 };
        let sample: Vec<u64> = open.pending_sample().collect();
        let step = 8_000 / SAMPLES;
        assert_eq!(sample.len() as u64, SAMPLES);
        for (number, index) in (0..).zip(sample) {
            let from = 2_000 + number * 8_000 / SAMPLES;
            assert!((from..=from + step).contains(&index), "sample {number} is {index}");
        }
    }
}
