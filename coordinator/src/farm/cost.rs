//! Measured cost of a task and throughput of an experiment.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Maximum number of tasks that earlier measurements count as, so that the mean follows a change after about this
/// number of tasks.
const MEMORY_TASKS: f64 = 32.0;

/// Classes of slot times for each doubling: a percentile is at most 19% too long.
const CLASSES: f64 = 4.0;

/// Shortest slot time that is told apart (s).
const SHORTEST_S: f64 = 1e-7;

/// Slot time of a task: running mean and variance, and a percentile of all tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cost {
    mean_s: f64,
    variance_s2: f64,
    tasks: f64,
    /// Tasks by class of slot time; tasks of one hand-in count with their mean. At most some hundred classes.
    classes: BTreeMap<i32, u64>,
}

impl Cost {
    /// Adds `tasks` tasks that took `seconds` of slot time together.
    pub(super) fn add(&mut self, tasks: u64, seconds: f64) {
        if tasks == 0 || !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        let count = tasks as f64;
        let each = seconds / count;
        let weight = if self.tasks == 0.0 { 1.0 } else { count / (self.tasks.min(MEMORY_TASKS) + count) };
        let difference = each - self.mean_s;
        self.mean_s += weight * difference;
        self.variance_s2 = (1.0 - weight) * (self.variance_s2 + weight * difference * difference);
        self.tasks += count;
        let class = (each.max(SHORTEST_S).log2() * CLASSES).ceil() as i32;
        *self.classes.entry(class).or_default() += tasks;
    }

    /// The 90th percentile of the slot time of a task (s); `None` before the first hand-in or failure.
    pub(super) fn p90_s(&self) -> Option<f64> {
        let all: u64 = self.classes.values().sum();
        let mut below = 0;
        let class = self.classes.iter().find(|(_, tasks)| {
            below += **tasks;
            below * 10 >= all * 9
        });
        class.map(|(class, _)| (f64::from(*class) / CLASSES).exp2())
    }

    /// Slot time of a task (s); `None` before the first hand-in or failure.
    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.tasks > 0.0).then_some(self.mean_s.max(1e-7))
    }

    /// A time that few tasks exceed: two standard deviations above the mean (s).
    pub(super) fn long_s(&self) -> f64 {
        self.mean_s + 2.0 * self.variance_s2.max(0.0).sqrt()
    }
}

/// Samples kept: at most one a second, so about half a minute.
const SAMPLES_MAX: usize = 31;

/// Finished tasks per second over the last half minute.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    samples: VecDeque<(Duration, u64)>,
}

impl Rate {
    pub(super) fn sample(&mut self, now: Duration, done: u64) {
        if self.samples.back().is_some_and(|(at, _)| now.saturating_sub(*at) < Duration::from_secs(1)) {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((now, done));
    }

    /// Tasks per second up to `now`; 0 without samples.
    pub(super) fn per_s(&self, now: Duration, done: u64) -> f64 {
        let Some((since, before)) = self.samples.front() else { return 0.0 };
        let seconds = now.saturating_sub(*since).as_secs_f64();
        if seconds <= 0.0 { 0.0 } else { done.saturating_sub(*before) as f64 / seconds }
    }

    /// Drops the samples: the done count has changed otherwise than by finished tasks.
    pub(super) fn restart(&mut self) {
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_a_change_within_tens_of_tasks() {
        let mut cost = Cost::default();
        assert_eq!(cost.mean_s(), None);
        for _ in 0..100 {
            cost.add(10, 1.0);
        }
        assert!((cost.mean_s().unwrap() - 0.1).abs() < 1e-9);
        for _ in 0..20 {
            cost.add(10, 20.0);
        }
        assert!((cost.mean_s().unwrap() - 2.0).abs() < 0.01, "{cost:?}");
        let before = cost.clone();
        cost.add(0, 5.0);
        for no_time in [f64::NAN, f64::INFINITY, -1.0] {
            cost.add(3, no_time);
        }
        assert_eq!(cost, before);
    }

    #[test]
    fn the_first_hand_ins_count_alike() {
        let mut cost = Cost::default();
        cost.add(1, 1.0);
        cost.add(1, 3.0);
        assert_eq!(cost.mean_s(), Some(2.0));
    }

    #[test]
    fn nine_of_ten_tasks_are_not_longer_than_the_percentile() {
        let mut cost = Cost::default();
        assert_eq!(cost.p90_s(), None);
        for seconds in 1..=100 {
            cost.add(1, f64::from(seconds));
        }
        let p90_s = cost.p90_s().unwrap();
        assert!((90.0..107.2).contains(&p90_s), "{p90_s}");
        cost.add(1_000_000, 0.0);
        assert!(cost.p90_s().unwrap() <= 1.2e-7, "{cost:?}");
    }

    #[test]
    fn the_rate_is_that_of_the_window() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_s(Duration::from_secs(5), 10), 0.0);
        for second in 0..100 {
            rate.sample(Duration::from_secs(second), second * 7);
        }
        assert!((rate.per_s(Duration::from_secs(100), 700) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn frequent_samples_do_not_shorten_the_window() {
        let mut rate = Rate::default();
        for tenth in 0..310 {
            rate.sample(Duration::from_millis(100 * tenth), if tenth < 100 { 0 } else { 310 });
        }
        assert!((rate.per_s(Duration::from_secs(31), 310) - 10.0).abs() < 1e-9);
    }
}
