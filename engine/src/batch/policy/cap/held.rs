//! The jobs that hold procs under a cap, and plans of their gears.
use std::ops::Range;

use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::error::Result;

/// A job that holds procs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) job: JobId,
    pub(super) procs: u32,
    priority: u8,
    class: u8,
    /// The gear rule's choice, the highest gear of the job.
    ceiling: u8,
    /// Its gear.
    gear: u8,
    /// Planned gear.
    planned: u8,
    pub(super) suspended: bool,
}

impl Held {
    /// Power that the job adds while it executes at a gear (W), by its known power.
    #[inline]
    fn added_at_w<R: Recorder>(&self, cluster: &Cluster<'_, R>, gear: u8) -> f64 {
        let machine = cluster.machine();
        machine.added_w(self.procs, &machine.gears_of(self.class)[usize::from(gear)], cluster.known_scale(self.job))
    }

    /// Power that the job adds while it executes at its gear (W).
    pub(super) fn added_w<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> f64 {
        self.added_at_w(cluster, self.gear)
    }
}

/// Direction of a change of gears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Down,
    Up,
}

/// The jobs that hold procs, with their gears.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldJobs {
    /// By priority, the highest (1) first, then in order of arrival.
    pub(super) jobs: Vec<Held>,
    /// Power of the machine at the planned gears (W).
    power_w: f64,
    /// Greatest power that does not exceed the cap (W).
    pub(super) limit_w: f64,
    /// Jobs that this pass has suspended or resumed.
    pub(super) rescheduled: Vec<JobId>,
    /// Power of the machine (W) at which the last pass suspended and resumed no job; `None` if it did.
    pub(super) settled_w: Option<f64>,
}

impl HeldJobs {
    pub(super) fn add<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, ceiling: u8) {
        let (procs, priority, class) = (cluster.procs(job), cluster.priority(job), cluster.job_class(job));
        let gear = cluster.gear(job).unwrap_or(ceiling);
        let at = self.jobs.partition_point(|held| (held.priority, held.job) < (priority, job));
        self.jobs.insert(at, Held { job, procs, priority, class, ceiling, gear, planned: gear, suspended: false });
    }

    /// A copy of these jobs with their numbers in copies of the cluster.
    pub(super) fn fork(&self, copied: &Copied) -> HeldJobs {
        let known = |held: &Held| copied.number(held.job).map(|job| Held { job, ..*held });
        HeldJobs { jobs: self.jobs.iter().filter_map(known).collect(), rescheduled: Vec::new(), ..*self }
    }

    pub(super) fn remove<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        let key = (cluster.priority(ended.job), ended.job);
        if let Ok(at) = self.jobs.binary_search_by_key(&key, |held| (held.priority, held.job)) {
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
        // Positions of a group: of the jobs of one priority, or of all.
        let group = |held: &Held| if by_priority { held.priority } else { 0 };
        if self.power_w > self.limit_w {
            let mut until = self.jobs.len();
            while self.power_w > self.limit_w && until > 0 {
                let last = group(&self.jobs[until - 1]);
                let from = self.jobs[..until].partition_point(|held| group(held) < last);
                while self.power_w > self.limit_w && self.step(cluster, from..until, Step::Down)? {}
                until = from;
            }
        } else {
            let mut from = 0;
            while from < self.jobs.len() {
                let first = group(&self.jobs[from]);
                let until = from + self.jobs[from..].partition_point(|held| group(held) <= first);
                while self.step(cluster, from..until, Step::Up)? {}
                from = until;
            }
        }
        for held in self.jobs.iter_mut().filter(|held| held.planned != held.gear) {
            cluster.set_gear(held.job, held.planned)?;
            held.gear = held.planned;
        }
        Ok(())
    }

    /// Plans one gear down for all jobs of a group above the lowest gear, or one gear up for all jobs below their ceilings if
    /// the power then keeps to the limit. `false`: the plan has not changed.
    fn step<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>, group: Range<usize>, step: Step) -> Result<bool> {
        cluster.step()?;
        let jobs = &mut self.jobs[group];
        let moves = |held: &Held| if step == Step::Down { held.planned > 0 } else { held.planned < held.ceiling };
        let to = |held: &Held| if step == Step::Down { held.planned - 1 } else { held.planned + 1 };
        let (mut any, mut power_w) = (false, self.power_w);
        for held in jobs.iter().filter(|held| moves(held)) {
            any = true;
            power_w += held.added_at_w(cluster, to(held)) - held.added_at_w(cluster, held.planned);
        }
        if !any || (step == Step::Up && power_w > self.limit_w) {
            return Ok(false);
        }
        self.power_w = power_w;
        for held in jobs.iter_mut().filter(|held| moves(held)) {
            held.planned = to(held);
        }
        Ok(true)
    }
}
