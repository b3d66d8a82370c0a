//! The remaining time of an experiment, as a range: the work of its open tasks over the pace of its slots.
//!
//! The cost of a task is the mean of its workload and policy of the manifest: in seconds a job where the manifest says how
//! many jobs a task has, else in seconds a task. Before the first hand-in of the two, the mean is that of the workload, else
//! that of all tasks, and its range is wider.

use std::collections::BTreeMap;
use std::time::Duration;

use powersweep_experiments::{Sweep, TaskKind};

use super::index_set::{IndexSet, index_at};
use super::pending::Closed;

/// Open tasks that are looked at for one estimate.
const SAMPLES: u64 = 256;
/// Tasks of a hand-in whose kinds are looked at.
const LEARNED: usize = 64;
/// Means that are kept.
const MEANS_MAX: usize = 4_096;
/// Factor between a mean of many hand-ins and both ends of its range: later tasks are not like earlier ones.
const RANGE: f64 = 1.1;
/// Further factor of a mean of one hand-in. Its logarithm falls with the root of the number of hand-ins.
const ONE_HAND_IN: f64 = 1.4;
/// Further factor for a policy without a hand-in under the workload.
const OTHER_POLICY: f64 = 1.7;
/// Further factor for a workload without a hand-in.
const OTHER_WORKLOAD: f64 = 3.0;
/// Share of the slots' time that tasks take, before it is measured.
const SHARE: f64 = 0.9;
/// Time in which a measured share loses most of its weight (s).
const SHARE_S: f64 = 60.0;
/// Time for the last commit and the last parts (s).
const FINISH_S: f64 = 1.0;

/// A remaining time, or the slot time of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RemainingTime {
    pub(super) least_s: f64,
    pub(super) likely_s: f64,
    pub(super) most_s: f64,
}

/// Tasks with one mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    WorkloadAndPolicy(usize, usize),
    Workload(usize),
    /// All tasks whose jobs the manifest counts, with a mean for each job.
    Counted,
    /// All, with a mean for each task.
    All,
}

/// Costs of the tasks of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Costs {
    seconds: f64,
    /// Jobs or tasks.
    size: f64,
    hand_ins: f64,
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

/// Learned costs, and the last estimate.
#[derive(Debug, Clone, Default)]
pub(super) struct Forecast {
    /// The generation of the manifest whose costs are learned.
    generation: u64,
    costs: BTreeMap<Group, Costs>,
    /// The last counted instant.
    at: Duration,
    /// Time of all slots since the last hand-in (s), and the instant of that hand-in.
    since_s: f64,
    learned_at: Duration,
    /// Time of all slots between the first and the last hand-in, and the time that tasks took of it (s). Both fade.
    slots_s: f64,
    spent_s: f64,
    pub(super) left: Option<RemainingTime>,
}

impl Forecast {
    /// A forecast of an experiment that exists from `at` on: the time of slots before does not count.
    pub(super) fn since(at: Duration) -> Forecast {
        Forecast { at, ..Forecast::default() }
    }

    /// Counts the time of all slots up to `at`. `slots`: those that may run tasks of the experiment.
    pub(super) fn pass(&mut self, at: Duration, slots: u64) {
        let passed = at.saturating_sub(std::mem::replace(&mut self.at, at));
        self.since_s += passed.as_secs_f64() * slots as f64;
    }

    /// Tasks of one hand-in took this slot time together (s).
    pub(super) fn learn(&mut self, sweep: &Sweep, generation: u64, indices: &[u64], seconds: f64) {
        if generation != self.generation {
            *self = Forecast { generation, ..Forecast::since(self.at) };
        }
        if indices.is_empty() || !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        if !self.costs.is_empty() {
            let kept = (-self.at.saturating_sub(self.learned_at).as_secs_f64() / SHARE_S).exp();
            (self.slots_s, self.spent_s) = (kept * self.slots_s + self.since_s, kept * self.spent_s + seconds);
        }
        (self.learned_at, self.since_s) = (self.at, 0.0);
        let looked_at = indices.iter().step_by(indices.len().div_ceil(LEARNED));
        let kinds: Vec<TaskKind> = looked_at.map(|index| sweep.kind(*index)).collect();
        // A hand-in of several kinds is divided by the costs known so far.
        let expected_s: Vec<f64> =
            kinds.iter().map(|kind| self.cost(*kind).map_or(1.0, |cost| cost.likely_s)).collect();
        let (all_s, count) = (expected_s.iter().sum::<f64>(), kinds.len() as f64);
        for (kind, expected_s) in kinds.into_iter().zip(expected_s) {
            for (group, size, _) in groups(kind) {
                if self.costs.len() >= MEANS_MAX && !self.costs.contains_key(&group) {
                    continue;
                }
                let costs = self.costs.entry(group).or_default();
                costs.seconds += seconds * expected_s / all_s;
                costs.size += size * indices.len() as f64 / count;
                costs.hand_ins += 1.0 / count;
            }
        }
    }

    /// The slot time of a task; `None` before the first hand-in.
    fn cost(&self, kind: TaskKind) -> Option<RemainingTime> {
        groups(kind).find_map(|(group, size, factor)| {
            let costs = self.costs.get(&group)?;
            let likely_s = (costs.seconds / costs.size).max(1e-9) * size;
            let range = factor * RANGE * ONE_HAND_IN.powf(costs.hand_ins.max(1.0).sqrt().recip());
            Some(RemainingTime { least_s: likely_s / range, likely_s, most_s: likely_s * range })
        })
    }

    /// The slot time of a number of tasks of which some are known by index, and the longest time that one of them may take.
    fn work(&self, sweep: &Sweep, tasks: u64, known: impl Iterator<Item = u64>) -> (RemainingTime, f64) {
        let costs: Vec<RemainingTime> = known.filter_map(|index| self.cost(sweep.kind(index))).collect();
        let each = tasks as f64 / costs.len().max(1) as f64;
        let sum = |of: fn(&RemainingTime) -> f64| each * costs.iter().map(of).sum::<f64>();
        let all = RemainingTime {
            least_s: sum(|cost| cost.least_s),
            likely_s: sum(|cost| cost.likely_s),
            most_s: sum(|cost| cost.most_s),
        };
        (all, costs.iter().map(|cost| cost.most_s).fold(0.0, f64::max))
    }

    /// Estimates the remaining time; `None` before the first hand-in, without slots, and without open tasks.
    pub(super) fn estimate(&self, generation: u64, open: &Open<'_>) -> Option<RemainingTime> {
        let (leased, slots) = (open.closed.leased, open.slots as f64);
        let is_known = generation == self.generation && !self.costs.is_empty();
        if !is_known || open.slots == 0 || leased.len() + open.pending == 0 {
            return None;
        }
        let (running, running_max_s) = self.work(open.sweep, leased.len(), spread(leased));
        let (waiting, waiting_max_s) = self.work(open.sweep, open.pending, open.pending_sample());
        let share = if self.slots_s > 0.0 { (self.spent_s / self.slots_s).clamp(0.01, 1.0) } else { SHARE };
        let pace = share * slots;
        // Tasks in slots have begun: half of their work is done, in the mean.
        let leases = leased.len().max(1) as f64;
        let in_slots = slots.min(leased.len() as f64) / leases;
        let likely_s =
            (waiting.likely_s + running.likely_s * (1.0 - in_slots / 2.0)) / pace + running.likely_s / leases / 2.0;
        let least_s = (waiting.least_s + running.least_s * (1.0 - in_slots)) / pace;
        let most_s = (waiting.most_s + running.most_s) / pace + running_max_s.max(waiting_max_s) + FINISH_S;
        Some(RemainingTime { least_s: least_s.min(likely_s), likely_s, most_s: most_s.max(likely_s) })
    }
}

/// The groups of a kind, the closest first, with its size in the unit of the group's mean, and the factor of the range that
/// its tasks have by this mean.
fn groups(kind: TaskKind) -> impl Iterator<Item = (Group, f64, f64)> {
    let TaskKind { workload, policy, jobs } = kind;
    let size = jobs.unwrap_or(1).max(1) as f64;
    let of_workload =
        [(Group::WorkloadAndPolicy(workload, policy), size, 1.0), (Group::Workload(workload), size, OTHER_POLICY)];
    let counted = jobs.map(|_| (Group::Counted, size, OTHER_WORKLOAD));
    of_workload.into_iter().chain(counted).chain([(Group::All, 1.0, OTHER_WORKLOAD)])
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
    fn a_mean_of_jobs_becomes_one_of_tasks_for_a_workload_without_a_number_of_jobs() {
        let known = TaskKind { workload: 0, policy: 0, jobs: Some(10) };
        let mut forecast = Forecast::default();
        for (group, size, _) in groups(known) {
            forecast.costs.insert(group, Costs { seconds: 40.0, size: 2.0 * size, hand_ins: 1.0 });
        }
        let likely_s = |workload, jobs| forecast.cost(TaskKind { workload, policy: 0, jobs }).expect("known").likely_s;
        assert_eq!((likely_s(1, None), likely_s(1, Some(10)), likely_s(1, Some(30))), (20.0, 20.0, 60.0));
        assert_eq!(likely_s(0, Some(5)), 10.0);
    }

    #[test]
    fn the_range_narrows_with_hand_ins_and_widens_with_distance() {
        let sweep = crate::farm::tests::sweep("e", 10);
        let mut forecast = Forecast::default();
        let kind = sweep.kind(0);
        let width = |forecast: &Forecast, kind| {
            let cost = forecast.cost(kind).expect("a hand-in was learned");
            cost.most_s / cost.least_s
        };
        forecast.learn(&sweep, 1, &[0], 5.0);
        let after_one = width(&forecast, kind);
        (1..9).for_each(|index| forecast.learn(&sweep, 1, &[index], 5.0));
        let [known, other_policy, other_workload] =
            [kind, TaskKind { policy: kind.policy + 1, ..kind }, TaskKind { workload: kind.workload + 1, ..kind }]
                .map(|kind| width(&forecast, kind));
        assert!(known < after_one && known < other_policy && other_policy < other_workload, "{known} {after_one}");
    }

    #[test]
    fn a_hand_in_without_time_is_learned_and_a_negative_time_is_not() {
        let sweep = crate::farm::tests::sweep("e", 10);
        let mut forecast = Forecast::default();
        for seconds in [-1.0, f64::NAN] {
            forecast.learn(&sweep, 1, &[0], seconds);
            assert!(forecast.costs.is_empty());
        }
        forecast.learn(&sweep, 1, &[], 5.0);
        assert!(forecast.costs.is_empty());
        forecast.learn(&sweep, 1, &[0], 0.0);
        assert!(!forecast.costs.is_empty());
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
