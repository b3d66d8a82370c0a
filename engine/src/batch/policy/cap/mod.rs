//! Power caps: rules that keep the machine's power below a limit, which may change in time.
//!
//! A rule enforces the cap on running jobs before the scheduling pass, limits how jobs may start in the pass, and
//! adjusts running jobs after it; see [`super::composed`] for the order. The gear rule's choice is a job's ceiling: a
//! cap may lower the job below it and raise it back, never above.
//!
//! "Exceeds the cap" means by more than rounding: power > cap * (1 + 1e-9). If the power with all jobs at their lowest
//! gears exceeds the cap and the rule does not suspend, the violation is measured. If nothing executes, and no cap of
//! the list lets a suspended job or the first waiting job execute, the simulation ends with [`SimError::Starved`]. Jobs
//! that no cap can admit are dropped before, if `over_cap_jobs` says so.
//!
//! A rule is a file with its description and a [`CapRule`]; the list below registers it.
//!
//! # TracSim's components here
//!
//! Tables I and II of Zhang et al. 2014 list the properties that a user of TracSim sets and reads. Here they are:
//!
//! | TracSim | here |
//! |---|---|
//! | Workload.ProblemSize, setProblemSize | `tracsim_base_s`; a log's run time (field 4) |
//! | Workload.Concurrency, setConcurrency | `tracsim_large_min` ... `tracsim_small_max`; a log's processor count |
//! | Job.Workload, setWorkload, getWorkload | `tracsim_types_count`, `class_from` and `class_map`; column `job_class` |
//! | Job.Priority, setPriority | `tracsim_priorities_count`, `priority_from` and `priority_map`; column `priority` |
//! | Job.SubTime, setSubmissionTime | `tracsim_gap_mean_s`, a log's submit time; column `submit_s` |
//! | Job.Nodes, allocNode, Node.assignTask | [`Cluster::start`]: nodes are counted; column `procs` |
//! | Job.Perf | columns `run_s`, `wait_s` ... of the `jobs` table |
//! | Job.Power | columns `energy_j` and `run_s`; eq. 1 is a sum over the job's nodes |
//! | Job.State | [`Cluster::is_running`], [`Cluster::is_executing`] |
//! | Job.StartTime, FinishTime | columns `start_s`, `finish_s` |
//! | Job.suspend, Job.resume | [`Cluster::suspend`], [`Cluster::resume`]; `power_cap = "power-precedence"` |
//! | Node.Config, Node.setFreq | `gears_ghz`, `power = "table"`; [`Cluster::set_gear`] |
//! | Node.Utilization | columns `cpu_utilization` ..., series `cpu_utilization` |
//! | Node.Task | one task a node: counted procs |
//! | Node.Power, getPower | [`Cluster::gears_for`], `idle_fraction`; [`Cluster::power_w`] |
//! | Cluster.DirtyNodes, IdleNodes | [`Cluster::free`], [`Cluster::executing`], [`Cluster::suspended`] |
//! | Cluster.JobList | [`Cluster::running_jobs`]; the policy owns the waiting jobs |
//! | Cluster.PowerCap, setPowerCap | `cap_schedule_w`, `cap_schedule_share`, `cap_period_s`; series `power_cap_w` |
//! | Cluster.setTracManager | `power_cap` |
//! | Cluster.setJobScheduler | `queue_order`, `backfill` |
//! | cooling | `cooling_w` |
pub(crate) mod acting;
pub mod admission;
pub(crate) mod allowance;
mod held;
mod over_cap;
pub mod pdrc;
pub mod performance_precedence;
pub mod power_precedence;
mod rule;
pub(crate) mod schedule;
#[cfg(test)]
mod tests;
pub mod uniform;

use super::backfill::BackfillRule;
use crate::batch::kernel::{Cluster, Copied, Ended, Recorder};
use crate::batch::platform::Machine;
use crate::batch::rules::rules;
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Role, SimSpec};
use allowance::limit_w;
use held::HeldJobs;
pub(crate) use over_cap::CapReach;
use rule::{CapRule, LeastGear};
use schedule::Schedule;

/// No cap.
pub const NONE: Component = Component {
    role: Role::Cap,
    name: "none",
    version: 1,
    doc: "No power cap.",
    reads: "Nothing.",
    guarantees: "Power has no bound below that of the machine.",
    ..Component::BATCH
};

rules! { $
    /// The chosen rule.
    enum Rule {
        admission: Admission,
        uniform: Uniform,
        pdrc: Pdrc,
        power_precedence: PowerPrecedence,
        performance_precedence: PerformancePrecedence,
    }
}

impl Rule {
    /// The rule of a spec; `None` if this folder does not have it.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Rule> {
        chosen!(spec.choice(Role::Cap).component(), (spec, machine))
    }

    fn least_gear(&self) -> LeastGear {
        each!(self, rule => rule.least_gear())
    }
}

/// Token of the timer at which the cap changes. Timers of capacity rules and of backfilling rules have lower tokens.
pub(super) const TOKEN: u64 = 1 << 63;

/// The chosen cap, its rule and the jobs that hold procs under it.
#[derive(Debug, Clone)]
pub(crate) struct Cap {
    rule: Rule,
    schedule: Schedule,
    held: HeldJobs,
    /// A period has ended.
    due: bool,
    /// The cap has changed, and the pass of that instant is not over.
    cap_changed: bool,
    /// The cap or the power of jobs has changed, or jobs have started or ended, since gears were adjusted.
    changed: bool,
    /// Consecutive caps under which nothing could execute; not counted in copies.
    stalled: Option<usize>,
    /// Advice for a job that starves, besides a higher cap.
    help: &'static str,
}

impl Cap {
    /// The cap of a spec on a machine, if the spec has one.
    pub(super) fn new(spec: &SimSpec, machine: &Machine) -> Result<Option<Cap>, SimError> {
        let choice = spec.choice(Role::Cap);
        if *choice.component() == NONE {
            return Ok(None);
        }
        let rule = Rule::of(spec, machine).ok_or_else(|| {
            let name = choice.component().name;
            SimError::Invalid(format!("the batch policy does not know the power_cap `{name}`"))
        })?;
        let (schedule, held, help) = (Schedule::new(spec, machine)?, HeldJobs::default(), over_cap::help(spec, &rule));
        Ok(Some(Cap { rule, schedule, held, due: false, cap_changed: false, changed: false, stalled: Some(0), help }))
    }

    /// The rule for a copy of the cluster, under the present cap for ever: a copy has none of the rule's timers. The
    /// copy is made after the change of the cap and before its enforcement, which the first pass of the copy does. A
    /// copy in which no job can start or go on ends without an error.
    pub(super) fn fork(&self, copied: &Copied) -> Cap {
        Cap {
            rule: self.rule.clone(),
            schedule: self.schedule.fork(),
            held: self.held.fork(copied),
            stalled: None,
            ..*self
        }
    }

    /// The present cap (W).
    pub(super) fn cap_w(&self) -> f64 {
        self.schedule.cap_w()
    }

    /// The first pass: takes the first cap, and sets the timer of its change.
    pub(super) fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        self.schedule.begin(cluster.first_submit_s()).map_err(Stop::new)?;
        self.set_timer(cluster)
    }

    /// Sets the timer of the next change.
    fn set_timer<R: Recorder>(&self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        self.schedule.next_s().map_or(Ok(()), |at_s| cluster.set_timer(at_s, TOKEN))
    }

    /// A job has ended.
    pub(super) fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.held.remove(cluster, ended);
        self.changed = true;
    }

    /// The timer is due: a period has ended.
    pub(super) fn timer(&mut self) {
        self.due = true;
    }

    /// The power of running jobs has changed.
    pub(super) fn powers_changed(&mut self) {
        self.changed = true;
    }

    /// Before the capacity rule decides: the cap changes if a period has ended.
    pub(super) fn change<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if std::mem::take(&mut self.due) {
            self.schedule.change(cluster.first_submit_s(), cluster.now_s()).map_err(Stop::new)?;
            self.set_timer(cluster)?;
            (self.cap_changed, self.changed) = (true, true);
        }
        Ok(())
    }

    /// Before the scheduling pass: enforces the cap on running jobs.
    pub(super) fn enforce<R: Recorder>(
        &mut self,
        backfill: &mut BackfillRule,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let limit_w = limit_w(self.cap_w());
        self.held.limit_w = limit_w;
        let (held, cap_changed) = (&mut self.held, self.cap_changed);
        each!(&self.rule, rule => rule.before_pass(held, cap_changed, cluster))?;
        backfill.allow(each!(&self.rule, rule => rule.allowance(limit_w)));
        Ok(())
    }

    /// After the scheduling pass: adjusts gears, or suspends and resumes jobs.
    pub(super) fn after_pass<R: Recorder>(
        &mut self,
        backfill: &mut BackfillRule,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        for &(job, ceiling) in backfill.started() {
            self.changed = true;
            // Jobs of run time 0 are added, too: they end in a later round of this instant.
            self.held.add(cluster, job, ceiling);
        }
        let (held, changed) = (&mut self.held, std::mem::take(&mut self.changed));
        each!(&self.rule, rule => rule.after_pass(held, changed, cluster))?;
        for job in self.held.rescheduled.drain(..) {
            backfill.rescheduled(cluster, job);
        }
        self.check_starvation(backfill, cluster)?;
        self.cap_changed = false;
        Ok(())
    }

    /// Ends the run if nothing has executed under any cap of the list, although a job holds its procs or could take
    /// them.
    fn check_starvation<R: Recorder>(&mut self, backfill: &BackfillRule, cluster: &Cluster<'_, R>) -> Result<()> {
        let Some(stalled) = &mut self.stalled else { return Ok(()) };
        let first_held = || self.held.jobs.iter().map(|held| held.job).min();
        let starved = || first_held().or_else(|| backfill.first());
        let Some(job) = Some(cluster.executing_procs()).filter(|procs| *procs == 0).and_then(|_| starved()) else {
            *stalled = 0;
            return Ok(());
        };
        let startable = cluster.free() + cluster.sleeping_that_count();
        let could_start = cluster.procs(job) <= startable && !backfill.has_future_reservation();
        let deferred = self.rule.least_gear() == LeastGear::Any && cluster.suspended() > 0;
        if deferred || cluster.in_transition() || (self.held.jobs.is_empty() && !could_start) {
            // The job waits for its resumption by the deferral rule, for procs that wake, for the watts of procs that switch
            // off, or for its reservation.
            *stalled = 0;
            return Ok(());
        }
        *stalled += usize::from(self.cap_changed || *stalled == 0);
        if *stalled < self.schedule.count() + usize::from(self.schedule.count() > 1) {
            return Ok(());
        }
        let (gear, help) = (self.rule.least_gear().words(), self.help);
        Err(Stop::new(SimError::Starved { job_id: cluster.job_id(job), now_s: cluster.now_s(), gear, help }))
    }
}
