//! Power caps: what keeps the machine's power below a limit that may change in time.
//!
//! A rule is told of timers (changes of the cap), enforces the cap on running jobs before the scheduling pass, says what a
//! starting job must fit, and adjusts running jobs after the pass; see [`super::composed`] for the order. The gear rule's
//! choice is a job's ceiling: a cap may lower the job below it and raise it back, never above.
//!
//! "Exceeds the cap" means by more than rounding: power > cap * (1 + 1e-9). If the power with all jobs at their lowest gears
//! exceeds the cap and the rule does not suspend, the violation is measured. If nothing runs, and no cap of the list lets the
//! first waiting job start, the simulation ends with [`SimError::Starved`].
//!
//! A rule is a file with its description and a [`CapRule`]; the list below registers it.
//!
//! # TracSim's components here
//!
//! Tables I and II of Zhang et al. 2014 list what a user of TracSim sets and reads. Their places:
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
//! | Cluster.JobList | [`Cluster::running_jobs`]; waiting jobs are the policy's |
//! | Cluster.PowerCap, setPowerCap | `caps_w`, `cap_period_s`; series `power_cap_w` |
//! | Cluster.setTracManager | `power_cap` |
//! | Cluster.setJobScheduler | `queue_order`, `backfill` |
//! | cooling | `cooling_w` |
pub mod admission;
pub(crate) mod allowance;
mod held;
pub mod pdrc;
pub mod performance_precedence;
pub mod power_precedence;
mod rule;
mod schedule;
#[cfg(test)]
mod tests;
pub mod uniform;

use super::batch::Batch;
use super::rules::rules;
use crate::batch::kernel::{Cluster, Copied, Ended, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::spec::{Component, Role, SimSpec};
use allowance::limit_w;
use held::AllHeld;
use rule::CapRule;
use schedule::Schedule;

/// No cap.
pub const NONE: Component =
    Component { role: Role::Cap, name: "none", version: 1, doc: "No power cap.", ..Component::BATCH };

rules! { $
    /// What is done for the cap's sake.
    enum Rule {
        admission: Admission,
        uniform: Uniform,
        pdrc: Pdrc,
        power_precedence: PowerPrecedence,
        performance_precedence: PerformancePrecedence,
    }
}

/// The token of the timer at which the cap changes. The timers of capacity rules and of scheduling have lower ones.
pub(super) const TOKEN: u64 = 1 << 63;

/// The chosen cap rule.
#[derive(Debug, Clone)]
pub(crate) enum Cap {
    /// No cap.
    None,
    /// A cap.
    Capped(Box<Capped>),
}

/// A cap and its rule under way.
#[derive(Debug, Clone)]
pub(crate) struct Capped {
    rule: Rule,
    schedule: Schedule,
    held: AllHeld,
    /// A period has ended.
    due: bool,
    /// The cap has changed, and the pass of that instant is not over.
    cap_changed: bool,
    /// The cap has changed, or jobs have started or ended, since gears were adjusted.
    changed: bool,
    /// Caps in a row under which nothing could execute; not counted in copies.
    stalled: Option<usize>,
}

impl Cap {
    /// The cap of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, machine: &Machine) -> Result<Cap, SimError> {
        let choice = spec.choice(Role::Cap);
        if *choice.component() == NONE {
            return Ok(Cap::None);
        }
        let rule = chosen!(choice.component(), (spec, machine)).ok_or_else(|| {
            let name = choice.component().name;
            SimError::Invalid(format!("the batch policy does not know the power_cap `{name}`"))
        })?;
        Ok(Cap::Capped(Box::new(Capped {
            rule,
            schedule: Schedule::new(choice),
            held: AllHeld::default(),
            due: false,
            cap_changed: false,
            changed: false,
            stalled: Some(0),
        })))
    }

    /// The rule for a copy of the cluster, with the present cap for ever: a copy has none of the rule's timers. It is made
    /// after the cap's change and before its enforcement, which the first pass of the copy catches up on. A copy in which
    /// nothing can go on just ends.
    pub(crate) fn fork(&self, copied: &Copied) -> Cap {
        match self {
            Cap::None => Cap::None,
            Cap::Capped(capped) => Cap::Capped(Box::new(Capped {
                rule: capped.rule.clone(),
                schedule: capped.schedule.fork(),
                held: capped.held.fork(copied),
                due: false,
                cap_changed: capped.cap_changed,
                changed: capped.changed,
                stalled: None,
            })),
        }
    }

    /// The present cap (W).
    pub(crate) fn cap_w(&self) -> Option<f64> {
        match self {
            Cap::None => None,
            Cap::Capped(capped) => Some(capped.schedule.cap_w()),
        }
    }

    /// Before anything else happens: timers are set here.
    pub(crate) fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let Cap::Capped(capped) = self else { return Ok(()) };
        capped.schedule.begin(cluster.now_s());
        capped.set_timer(cluster)
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, ended: &Ended) {
        if let Cap::Capped(capped) = self {
            capped.held.remove(ended.job);
            capped.changed = true;
        }
    }

    /// A timer of the rule has come: the cap changes.
    pub(crate) fn timer(&mut self) {
        if let Cap::Capped(capped) = self {
            capped.due = true;
        }
    }

    /// Before the capacity rule decides: the cap changes if its time has come.
    pub(crate) fn change<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match self {
            Cap::None => Ok(()),
            Cap::Capped(capped) => capped.change(cluster),
        }
    }

    /// Before the scheduling pass: enforces the cap on running jobs.
    pub(crate) fn enforce<R: Recorder>(&mut self, batch: &mut Batch, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match self {
            Cap::None => Ok(()),
            Cap::Capped(capped) => capped.enforce(batch, cluster),
        }
    }

    /// After the scheduling pass: raises gears.
    pub(crate) fn after_pass<R: Recorder>(
        &mut self,
        batch: &mut Batch,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        match self {
            Cap::None => Ok(()),
            Cap::Capped(capped) => capped.after_pass(batch, cluster),
        }
    }
}

impl Capped {
    fn set_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.schedule.next_s().map_or(Ok(()), |at_s| cluster.set_timer(at_s, TOKEN))
    }

    fn limit_w(&self) -> f64 {
        limit_w(self.schedule.cap_w())
    }

    fn change<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        if std::mem::take(&mut self.due) {
            self.schedule.next();
            self.set_timer(cluster)?;
            (self.cap_changed, self.changed) = (true, true);
        }
        Ok(())
    }

    fn enforce<R: Recorder>(&mut self, batch: &mut Batch, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let limit_w = self.limit_w();
        let (held, cap_changed) = (&mut self.held, self.cap_changed);
        each!(&self.rule, rule => rule.before_pass(held, limit_w, cap_changed, cluster))?;
        batch.allow(each!(&self.rule, rule => rule.allowance(limit_w)));
        Ok(())
    }

    fn after_pass<R: Recorder>(&mut self, batch: &Batch, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        for &(job, ceiling) in batch.waiting().started() {
            self.changed = true;
            // A job of run time 0 ends in a later round of this instant.
            self.held.add(cluster, job, ceiling);
        }
        let limit_w = self.limit_w();
        let changed = std::mem::take(&mut self.changed);
        let held = &mut self.held;
        each!(&self.rule, rule => rule.after_pass(held, limit_w, changed, cluster))?;
        self.check_starvation(batch, cluster)?;
        self.cap_changed = false;
        Ok(())
    }

    /// Ends the run if nothing executes, and has not under any cap of the list, though a job could take its procs.
    fn check_starvation<R: Recorder>(&mut self, batch: &Batch, cluster: &Cluster<'_, R>) -> Result<(), Stop> {
        let Some(stalled) = &mut self.stalled else { return Ok(()) };
        let executing = cluster.executing(0).any(|(.., procs)| procs > 0);
        let starved = self.held.jobs().first().map(|held| held.job).or_else(|| batch.waiting().first());
        let Some(job) = starved.filter(|_| !executing) else {
            *stalled = 0;
            return Ok(());
        };
        let in_transition = cluster.any_coming() || cluster.switching(0) > 0;
        let room = cluster.procs(job) <= cluster.free(0) && !batch.waiting().waits_for_reservation();
        if in_transition || (self.held.jobs().is_empty() && !room) {
            // It waits for procs that wake, for the watts of those that switch off, or for its reservation.
            *stalled = 0;
            return Ok(());
        }
        *stalled += usize::from(self.cap_changed || *stalled == 0);
        if *stalled < self.schedule.count() + usize::from(self.schedule.count() > 1) {
            return Ok(());
        }
        let gear = each!(&self.rule, rule => rule.lowest_start());
        Err(Stop::new(SimError::Starved { job_id: cluster.job_id(job), now_s: cluster.now_s(), gear }))
    }
}
