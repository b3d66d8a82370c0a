//! Fair sharing: which experiment is served next. The one with the higher priority; of equal ones, the one with the
//! least slot time held and recently spent.

use std::cmp::Reverse;
use std::time::Duration;

use super::experiment::Experiment;
use super::worker::Worker;
use super::{Farm, Now};

/// Half-life of spent slot time. Short, so that a new experiment does not keep all slots until it has caught up.
const HALF_LIFE: Duration = Duration::from_secs(10);

/// Least cost of a task (s), so that leased tasks count.
const COST_MIN_S: f64 = 1e-6;

/// Slot time of an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    /// Slot time spent up to `at`, decayed (s).
    spent_s: f64,
    at: Duration,
    /// Time of the first grant.
    waiting_since: Option<Duration>,
}

impl Share {
    /// Adds spent slot time (s).
    pub(super) fn add(&mut self, now: Duration, seconds: f64) {
        self.spent_s = self.spent_s(now) + if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        self.at = now;
    }

    /// Tasks were handed out.
    pub(super) fn granted(&mut self, now: Duration) {
        self.waiting_since.get_or_insert(now);
    }

    fn spent_s(&self, now: Duration) -> f64 {
        let age = now.saturating_sub(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.spent_s * (-age).exp2()
    }
}

/// Slot time that an experiment holds and recently spent (s).
fn usage_s(experiment: &Experiment, now: Duration) -> f64 {
    let waited = experiment.share.waiting_since.map_or(0.0, |since| now.saturating_sub(since).as_secs_f64());
    // Before any task has ended, each takes at least as long as the time since the first grant.
    let cost_s = experiment.cost.mean_s().unwrap_or(waited).max(COST_MIN_S);
    experiment.share.spent_s(now) + experiment.leased.len() as f64 * cost_s
}

impl Farm {
    /// Names of the experiments with pending or leased tasks, in the order in which they are served now.
    pub(super) fn serving_order(&self, now: Now) -> Vec<String> {
        let wants = |experiment: &&Experiment| experiment.can_run() && !experiment.is_complete();
        let mut wanting: Vec<&Experiment> =
            self.schedule.iter().filter_map(|name| self.experiments.get(name)).filter(wants).collect();
        if wanting.len() > 1 {
            let keyed = wanting.iter().map(|e| (Reverse(e.record.priority), usage_s(e, now.mono)));
            let mut order: Vec<((Reverse<i32>, f64), &Experiment)> = keyed.zip(wanting.iter().copied()).collect();
            // A stable sort: of equal ones, the first submitted comes first.
            order.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            wanting = order.into_iter().map(|(_, experiment)| experiment).collect();
        }
        wanting.into_iter().map(|experiment| experiment.name().to_owned()).collect()
    }

    /// Open tasks of a worker, counted in tasks of this experiment: a task of another experiment counts by its relative cost.
    pub(super) fn outstanding_in(&self, worker: &Worker, experiment: &Experiment) -> u64 {
        if self.experiments.len() < 2 {
            return worker.outstanding;
        }
        let cost_s = |experiment: &Experiment| experiment.cost.mean_s();
        let mut tasks = 0.0;
        for lease in worker.leases.iter().filter_map(|id| self.leases.get(id)) {
            let other = self.experiments.get(&lease.grant.experiment);
            let factor = match (other.and_then(cost_s), cost_s(experiment)) {
                (Some(theirs), Some(ours)) if lease.grant.experiment != experiment.name() => theirs / ours,
                _ => 1.0,
            };
            tasks += lease.open.len() as f64 * factor;
        }
        // A worker that holds any task has at least one.
        (tasks.round() as u64).max(u64::from(worker.outstanding > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_time_decays_by_half_in_a_half_life() {
        let mut share = Share::default();
        share.add(Duration::from_secs(1), 8.0);
        assert_eq!(share.spent_s(Duration::from_secs(1)), 8.0);
        assert_eq!(share.spent_s(Duration::from_secs(11)), 4.0);
        share.add(Duration::from_secs(21), 1.0);
        assert_eq!(share.spent_s(Duration::from_secs(21)), 3.0);
        share.add(Duration::from_secs(21), f64::NAN);
        assert_eq!(share.spent_s(Duration::from_secs(21)), 3.0);
    }
}
