//! The jobs that hold procs under a cap, and plans of their gears.
use super::allowance::above_idle_w;
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::error::Result;

/// A job that holds procs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) job: JobId,
    pub(super) priority: u8,
    /// The gear rule's choice, the highest gear of the job.
    ceiling: u8,
    /// Planned gear.
    gear: u8,
}

/// Direction of a change of gears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Down,
    Up,
}

/// The jobs that hold procs, in order of arrival, with their planned gears.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldJobs {
    pub(super) jobs: Vec<Held>,
    /// Power of the machine at the planned gears (W).
    power_w: f64,
    /// Greatest power that does not exceed the cap (W).
    pub(super) limit_w: f64,
}

impl HeldJobs {
    pub(super) fn add<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, ceiling: u8) {
        let at = self.jobs.partition_point(|held| held.job < job);
        self.jobs.insert(at, Held { job, priority: cluster.priority(job), ceiling, gear: ceiling });
    }

    /// A copy of these jobs with their numbers in copies of the cluster.
    pub(super) fn fork(&self, copied: &Copied) -> HeldJobs {
        let known = |held: &Held| copied.number(held.job).map(|job| Held { job, ..*held });
        HeldJobs { jobs: self.jobs.iter().filter_map(known).collect(), ..*self }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Ok(at) = self.jobs.binary_search_by_key(&job, |held| held.job) {
            self.jobs.remove(at);
        }
    }

    /// Adjusts gears if jobs or the cap have changed, or the power exceeds the limit: lowers gears one by one until the
    /// power keeps to the limit, or raises them while it does. `by_priority`: lowers the lowest priority first and raises
    /// the highest first, instead of all jobs together.
    pub(super) fn adjust<R: Recorder>(
        &mut self,
        by_priority: bool,
        changed: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        self.power_w = cluster.power_w();
        if !changed && self.power_w <= self.limit_w {
            return Ok(());
        }
        for held in &mut self.jobs {
            held.gear = cluster.gear(held.job).unwrap_or(held.gear);
        }
        let groups = if by_priority { self.priorities() } else { vec![None] };
        if self.power_w > self.limit_w {
            for &group in groups.iter().rev() {
                while self.power_w > self.limit_w && self.step(cluster, group, Step::Down)? {}
            }
        } else {
            for &group in &groups {
                while self.step(cluster, group, Step::Up)? {}
            }
        }
        for held in &self.jobs {
            if cluster.gear(held.job) != Some(held.gear) {
                cluster.set_gear(held.job, held.gear)?;
            }
        }
        Ok(())
    }

    /// The priorities of the jobs, ascending: the highest (1) first.
    fn priorities(&self) -> Vec<Option<u8>> {
        let mut priorities: Vec<Option<u8>> = self.jobs.iter().map(|held| Some(held.priority)).collect();
        priorities.sort_unstable();
        priorities.dedup();
        priorities
    }

    /// Plans one gear down for all jobs of a priority above the lowest gear, or one gear up for all jobs below their
    /// ceilings if the power then keeps to the limit. Without a priority, for jobs of all priorities. `false`: the plan
    /// has not changed.
    fn step<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>, priority: Option<u8>, step: Step) -> Result<bool> {
        cluster.step()?;
        let moves = |held: &Held| {
            let can_move = if step == Step::Down { held.gear > 0 } else { held.gear < held.ceiling };
            can_move && priority.is_none_or(|priority| held.priority == priority)
        };
        let to = |held: &Held| if step == Step::Down { held.gear - 1 } else { held.gear + 1 };
        let (mut any, mut power_w) = (false, self.power_w);
        for held in self.jobs.iter().filter(|held| moves(held)) {
            any = true;
            power_w += above_idle_w(cluster, held.job, to(held)) - above_idle_w(cluster, held.job, held.gear);
        }
        if !any || (step == Step::Up && power_w > self.limit_w) {
            return Ok(false);
        }
        self.power_w = power_w;
        for held in self.jobs.iter_mut().filter(|held| moves(held)) {
            held.gear = to(held);
        }
        Ok(true)
    }
}
