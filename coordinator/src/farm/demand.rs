//! Demand: the work that waits for workers, as programs that start workers need it.

use powersweep_proto::v1;

use super::Farm;
use super::experiment::Experiment;

impl Farm {
    /// The tasks that are ready to run and have no lease, and their slot time.
    pub fn demand(&self) -> v1::Demand {
        let mut demand =
            v1::Demand { slots: self.slots, blocked: self.why_more_workers_are_no_use(), ..v1::Demand::default() };
        for experiment in self.experiments.values() {
            demand.leased_tasks += experiment.leased.len();
            if experiment.can_run() {
                add_waiting(&mut demand, experiment);
            }
        }
        demand
    }

    fn why_more_workers_are_no_use(&self) -> String {
        let reason = if self.stopping {
            "the coordinator is ending"
        } else if self.is_stalled() {
            "storage does not accept rows"
        } else if self.is_behind_with_parts() {
            "rows wait until parts are written"
        } else {
            ""
        };
        reason.to_owned()
    }
}

/// Adds the waiting tasks of one experiment.
fn add_waiting(demand: &mut v1::Demand, experiment: &Experiment) {
    let waiting = experiment.pending_tasks();
    if waiting == 0 {
        return;
    }
    demand.waiting_tasks += waiting;
    match experiment.cost.p90_s() {
        None => demand.unmeasured_tasks += waiting,
        Some(p90_s) => {
            demand.waiting_s += waiting as f64 * p90_s;
            demand.shortest_s = Some(demand.shortest_s.map_or(p90_s, |shortest_s| shortest_s.min(p90_s)));
        }
    }
}
