//! The jobs that hold procs under a cap, and steps of their gears.
use super::allowance::above_idle_w;
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::error::Stop;

/// A job that holds procs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) job: JobId,
    pub(super) priority: u8,
    /// The gear rule's choice: the cap may lower the job and raise it back, never above.
    ceiling: u8,
    /// The gear that it is to have at the end of the pass.
    gear: u8,
}

/// Which way gears go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Down,
    Up,
}

/// The jobs that hold procs, in list order, with the power that they would draw at their new gears.
#[derive(Debug, Clone, Default)]
pub(super) struct AllHeld {
    jobs: Vec<Held>,
    /// Power of the machine at the new gears (W).
    power_w: f64,
}

impl AllHeld {
    pub(super) fn add<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, ceiling: u8) {
        let at = self.jobs.partition_point(|held| held.job < job);
        self.jobs.insert(at, Held { job, priority: cluster.priority(job), ceiling, gear: ceiling });
    }

    /// The same jobs by the numbers that they have in copies.
    pub(super) fn fork(&self, copied: &Copied) -> AllHeld {
        let known = |held: &Held| copied.number(held.job).map(|job| Held { job, ..*held });
        AllHeld { jobs: self.jobs.iter().filter_map(known).collect(), power_w: self.power_w }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Ok(at) = self.jobs.binary_search_by_key(&job, |held| held.job) {
            self.jobs.remove(at);
        }
    }

    pub(super) fn jobs(&self) -> &[Held] {
        &self.jobs
    }

    /// Begins to plan: gears and power as they are.
    pub(super) fn plan<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        self.power_w = cluster.power_w();
        for held in &mut self.jobs {
            held.gear = cluster.gear(held.job).unwrap_or(held.gear);
        }
    }

    /// The priorities of the jobs, the highest (1) first.
    pub(super) fn priorities(&self) -> Vec<u8> {
        let mut priorities: Vec<u8> = self.jobs.iter().map(|held| held.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        priorities
    }

    /// Power at the planned gears (W).
    pub(super) fn power_w(&self) -> f64 {
        self.power_w
    }

    /// Plans one level down, or up if that keeps to the limit, for all jobs of a priority (of every one without) that are
    /// not at the lowest gear, or their ceilings. `false`: nothing has changed.
    pub(super) fn step<R: Recorder>(
        &mut self,
        cluster: &mut Cluster<'_, R>,
        priority: Option<u8>,
        step: Step,
        limit_w: f64,
    ) -> Result<bool, Stop> {
        cluster.step()?;
        let moves = |held: &Held| {
            let room = if step == Step::Down { held.gear > 0 } else { held.gear < held.ceiling };
            room && priority.is_none_or(|priority| held.priority == priority)
        };
        let to = |held: &Held| if step == Step::Down { held.gear - 1 } else { held.gear + 1 };
        let (mut any, mut power_w) = (false, self.power_w);
        for held in self.jobs.iter().filter(|held| moves(held)) {
            any = true;
            power_w += above_idle_w(cluster, held.job, to(held)) - above_idle_w(cluster, held.job, held.gear);
        }
        if !any || (step == Step::Up && power_w > limit_w) {
            return Ok(false);
        }
        self.power_w = power_w;
        for held in self.jobs.iter_mut().filter(|held| moves(held)) {
            held.gear = to(held);
        }
        Ok(true)
    }

    /// Carries the plan out.
    pub(super) fn carry_out<R: Recorder>(&self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        for held in &self.jobs {
            if cluster.gear(held.job) != Some(held.gear) {
                cluster.set_gear(held.job, held.gear)?;
            }
        }
        Ok(())
    }
}
