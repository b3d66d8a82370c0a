//! Knapsack: the jobs and the gear that use most procs under a power cap (Zhou et al. 2013; Zhang et al. 2014,
//! Algorithm 4).
//!
//! A 0-1 knapsack: the gain of a job is its procs, its weight the power that it adds. Gears are tried from the lowest:
//! the lower the gear, the more jobs fit the power, until they need more procs than are free. So the gear is the lowest
//! at which the best set fits the free procs. The printed search ends with no set if, between two gears, the set
//! changes from too wide to empty; on an empty machine it would wait for ever. There the best set that fits is taken,
//! at the highest gear that has one.
//!
//! The search considers only sums of procs up to the free procs. A wider set has, in order of arrival, a first job that
//! exceeds them, and for wider sets only the existence of such a job matters. If all jobs add the same power a proc,
//! the weight of a set is its procs: the first set found for a sum stays the best one, sums are bits, and the search
//! ends with the first set that cannot be improved.
use super::list::{List, ListRule, Listed, Start, Waiting};
use super::within_priority::by_priority;
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::policy::cap::allowance::{Allowance, above_idle_w};
use crate::batch::policy::gear::Gears;
use crate::error::Result;
use crate::spec::{Component, Role, SimSpec};

mod by_procs;
mod by_watts;
#[cfg(test)]
mod tests;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "knapsack",
    version: 2,
    source: "Zhou et al. 2013; Zhang et al. 2014, Algorithm 4",
    doc: "At each event one set of jobs starts, all of the highest waiting priority: the one that uses most procs within \
          the watts under the cap, at the lowest gear at which it fits the free procs. If no job of this priority is \
          left, the next priority follows at the next event. For `queue_order` = \"priority\" and `power_cap` = \
          \"uniform\".",
    reads: "Free procs, priorities, the watts under the cap, and the watts of each job at each gear. No estimate.",
    guarantees: "The jobs that start fit the free procs and the watts under the cap, and have the highest waiting \
                 priority. Waits have no bound: a job may starve while other sets use more procs.",
    problems,
    ..Component::BATCH
};

/// Problems of a knapsack with other components.
fn problems(spec: &SimSpec) -> Vec<String> {
    let name = |role: Role| spec.choice(role).component().name;
    let (cap, gears) = (name(Role::Cap), name(Role::GearRule));
    let mut problems: Vec<String> = by_priority(spec).into_iter().collect();
    if cap != "uniform" {
        problems.push(format!(
            "`backfill` = \"knapsack\" chooses jobs and gear for the watts under a cap, and all jobs step together when it \
             changes: it needs `power_cap` = \"uniform\", not \"{cap}\""
        ));
    }
    if gears != "top" {
        problems.push(format!(
            "`backfill` = \"knapsack\" chooses the gears: `gear_rule` = \"{gears}\" makes no sense beside it"
        ));
    }
    problems
}

/// A list under the rule.
pub(in crate::batch::policy) type Knapsack = Listed<Search>;

/// Result of a search at one gear: positions of the jobs of the best set, ascending; empty if no job fits. `None`: the set with
/// most procs whose power fits needs more procs than are free.
type Best = Option<Vec<usize>>;

/// The bound of a set's procs.
#[derive(Debug, Clone, Copy)]
struct Width {
    /// Free procs.
    free: u32,
    /// Whether a better set that needs more than the free procs excludes the others.
    wider_wins: bool,
}

/// The search, with its buffers.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Search {
    by_procs: by_procs::Search,
    by_watts: by_watts::Search,
    procs: Vec<u32>,
    added_w: Vec<f64>,
}

impl ListRule for Search {
    /// Starts the best set of the highest waiting priority. The next priority follows at a later event, even if all
    /// jobs of the first one have started.
    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, _: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let top = (cluster.machine().gears.len() - 1) as u8;
        let Some(first) = list.waiting().first() else { return Ok(()) };
        let priority = cluster.priority(first.job);
        let window = list.waiting().partition_point(|waiting| cluster.priority(waiting.job) <= priority);
        let Some((gear, chosen)) = self.choose(&list.waiting()[..window], list.allowance(), cluster)? else {
            return Ok(());
        };
        // From the back: the order of starts decides the order of ends at one instant.
        for at in chosen.into_iter().rev() {
            list.start(at, Start { gear, ceiling: top }, at > 0, cluster)?;
        }
        list.remove_started();
        Ok(())
    }
}

impl Search {
    /// The gear, and the positions in `jobs` (in order of arrival) to start at it. `None`: no job can start.
    fn choose<R: Recorder>(
        &mut self,
        jobs: &[Waiting],
        allowance: &Allowance,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<(u8, Vec<usize>)>> {
        let free = cluster.free();
        if free == 0 || jobs.is_empty() {
            return Ok(None);
        }
        let left_w = allowance.left_w(cluster);
        let gears = cluster.machine().gears.len() as u8;
        let empty_machine = cluster.running_count() == 0;
        // On an empty machine the search must find a set if one fits.
        let mut fallback = None;
        for gear in 0..gears {
            let wider_wins = gear + 1 < gears;
            match self.best(jobs, gear, left_w, Width { free, wider_wins }, cluster)? {
                Some(set) if set.is_empty() => return Ok(fallback),
                Some(set) => return Ok(Some((gear, set))),
                None if empty_machine => {
                    let width = Width { free, wider_wins: false };
                    let set = self.best(jobs, gear, left_w, width, cluster)?.filter(|set| !set.is_empty());
                    fallback = set.map(|set| (gear, set)).or(fallback);
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// The set with most procs whose jobs add at most `left_w` (W) at a gear; of several the first that is found in
    /// order of arrival.
    fn best<R: Recorder>(
        &mut self,
        jobs: &[Waiting],
        gear: u8,
        left_w: f64,
        width: Width,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Best> {
        let one_table = !cluster.has_scales() && cluster.machine().more_job_classes.is_empty();
        if left_w >= 0.0 && one_table {
            let each_w = above_idle_w(cluster, jobs[0].job, gear) / f64::from(jobs[0].procs);
            let procs = jobs.iter().map(|job| job.procs);
            return self.by_procs.run(procs, powered(left_w, each_w), width, || cluster.step());
        }
        self.procs.clear();
        self.procs.extend(jobs.iter().map(|job| job.procs));
        self.added_w.clear();
        self.added_w.extend(jobs.iter().map(|job| above_idle_w(cluster, job.job, gear)));
        self.best_of(left_w, width, || cluster.step())
    }

    /// [`Search::best`] for jobs of `self.procs` procs that add `self.added_w` (W).
    fn best_of(&mut self, left_w: f64, width: Width, step: impl FnMut() -> Result<()>) -> Result<Best> {
        let Search { procs, added_w, by_procs, by_watts } = self;
        // If the cap is exceeded, no job that adds power fits.
        if left_w < 0.0 {
            return by_watts.run(procs, added_w, -1.0, width, step);
        }
        if !alike(procs, added_w) {
            return by_watts.run(procs, added_w, left_w, width, step);
        }
        let each_w = added_w[0] / f64::from(procs[0]);
        by_procs.run(procs.iter().copied(), powered(left_w, each_w), width, step)
    }
}

/// Whether all jobs add the same power a proc. Then weights are procs, with exact sums.
fn alike(procs: &[u32], added_w: &[f64]) -> bool {
    let each = |at: usize| added_w[at] / f64::from(procs[at]);
    (1..procs.len()).all(|at| (each(at) - each(0)).abs() <= 1e-12 * each(0).abs())
}

/// The number of procs for which the power suffices, at `each_w` (W) a proc.
fn powered(left_w: f64, each_w: f64) -> u64 {
    // The conversion saturates.
    if each_w > 0.0 { (left_w / each_w).floor() as u64 } else { u64::MAX }
}
