//! Power saving as Slurm does it: procs that have been idle for a time are switched off, and woken for jobs.
use std::collections::VecDeque;

use super::rule::{CapacityRule, TOKEN, problems, too_many};
use crate::batch::kernel::{Cluster, Durations, Outcomes, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::capped::CappedBatch;
use crate::error::Result;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Description of power saving.
pub const COMPONENT: Component = Component {
    role: Role::Capacity,
    name: "power-save",
    version: 1,
    source: "Slurm power saving guide",
    doc: "Procs that have been idle for `suspend_time_s` are switched off. The scheduler plans with procs that are \
          switched off as if they were available after `wake_s`; as many are woken as the jobs need that it would start \
          now if all procs were awake. Jobs take the procs that have been idle for the shortest time. All procs are \
          awake at the start. The platform's `wake_s` and `off_s` are the times that resuming and suspending take, which \
          in Slurm are at most ResumeTimeout and SuspendTimeout.",
    reads: "How long procs have been idle, and the jobs that would start now if all procs were awake.",
    guarantees: "Only procs that have been idle for `suspend_time_s` are switched off, at least \
                 `suspend_exc_procs` idle procs are left awake by that, and the rates are kept. Waits have no \
                 bound: a job waits for its procs to wake.",
    params: &[
        Param {
            name: "suspend_time_s",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: true, unlimited: true },
            unit: "s",
            default: Default::Required,
            doc: "Time for which a proc is idle before it is switched off (SuspendTime); `inf`: never.",
        },
        rate_param(
            "suspend_rate_procs_per_min",
            "Procs that are switched off in a minute at most (SuspendRate, in procs); 0: no limit. Minutes count from the \
             first submit.",
        ),
        rate_param(
            "resume_rate_procs_per_min",
            "Procs that are woken in a minute at most (ResumeRate, in procs); 0: no limit. Minutes count from the first \
             submit.",
        ),
        Param {
            name: "suspend_exc_procs",
            ty: Type::Int { min: 0, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(0),
            doc: "Idle procs that are not switched off (the number after the colon in SuspendExcNodes); at most those of \
                  the machine.",
        },
    ],
    problems: problems::<PowerSave>,
    ..Component::BATCH
};

/// A parameter of a rate; without limit by default.
const fn rate_param(name: &'static str, doc: &'static str) -> Param {
    Param { name, ty: Type::Int { min: 0, max: 1 << 30 }, unit: "procs/min", default: Default::Int(0), doc }
}

/// The rule `power-save`.
#[derive(Debug, Clone)]
pub(crate) struct PowerSave {
    suspend_time_s: f64,
    exempt: u32,
    suspends: Rate,
    resumes: Rate,
    idle: Idle,
    /// Procs of the jobs that would start in this pass if all procs were awake; 0 if the number has no effect.
    wanted: u32,
    /// Free procs before the pass.
    free: u32,
    /// Instant of the timer (s); infinite if none is set.
    timer_s: f64,
}

impl CapacityRule for PowerSave {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<PowerSave> {
        let choice = spec.choice(Role::Capacity);
        let rate =
            |name| Rate { limit: Some(choice.int(name) as u32).filter(|&limit| limit > 0), minute: 0.0, used: 0 };
        Some(PowerSave {
            suspend_time_s: choice.real("suspend_time_s"),
            exempt: choice.int("suspend_exc_procs") as u32,
            suspends: rate("suspend_rate_procs_per_min"),
            resumes: rate("resume_rate_procs_per_min"),
            idle: Idle::default(),
            wanted: 0,
            free: machine.procs,
            timer_s: f64::INFINITY,
        })
    }

    fn problems(choice: &Choice, machine_procs: Option<f64>) -> Vec<String> {
        too_many("suspend_exc_procs", choice.opt_int("suspend_exc_procs"), machine_procs).into_iter().collect()
    }

    fn timer(&mut self) {
        self.timer_s = f64::INFINITY;
    }

    fn counts_sleeping(&self) -> bool {
        true
    }

    /// Wakes the procs that jobs could start on.
    fn before_pass<R: Recorder>(
        &mut self,
        batch: &mut CappedBatch,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<u32>> {
        self.free = cluster.free();
        self.wanted = if self.reads_wanted(batch, cluster) { procs_to_start(batch, cluster)? } else { 0 };
        let missing = self.wanted.saturating_sub(self.free + cluster.waking());
        let resumed = self.resumes.take(missing, minute(cluster));
        cluster.set_wakes_later(resumed < missing);
        Ok((resumed > 0).then(|| cluster.active() + resumed))
    }

    /// Switches procs off that have been idle for long and that no job waits for.
    fn after_pass<R: Recorder>(&mut self, _: &CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<Option<u32>> {
        let (now_s, free) = (cluster.now_s(), cluster.free());
        self.idle.now(now_s, free);
        self.idle.ripen(now_s, self.suspend_time_s);
        let started = self.free.saturating_sub(free);
        let kept = (self.wanted - started.min(self.wanted)).saturating_sub(cluster.waking()) + self.exempt;
        let suspended = self.suspends.take(self.idle.ripe.min(free.saturating_sub(kept)), minute(cluster));
        self.idle.ripe -= suspended;
        self.set_timer(cluster)?;
        Ok((suspended > 0).then(|| cluster.active() - suspended))
    }
}

impl PowerSave {
    /// Whether jobs may start on procs that sleep or wake, and their number has an effect: they may need procs that are not
    /// coming, or procs are about to be switched off.
    fn reads_wanted<R: Recorder>(&self, batch: &CappedBatch, cluster: &Cluster<'_, R>) -> bool {
        let unready = cluster.asleep() + cluster.switching();
        let mut coming = self.free + cluster.waking();
        let too_many = |job| {
            let fits = cluster.procs(job) <= coming;
            coming -= if fits { cluster.procs(job) } else { 0 };
            !fits
        };
        unready > 0 && (self.idle.is_ripe(cluster.now_s(), self.suspend_time_s) || batch.waiting().any(too_many))
    }

    /// Sets the timer for the next instant at which procs have been idle for long enough, or a rate allows more.
    fn set_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let ripe_s = self.idle.next_since_s().map_or(f64::INFINITY, |since_s| since_s + self.suspend_time_s);
        let limited = self.suspends.is_used_up() || self.resumes.is_used_up();
        let minute_s =
            if limited { cluster.first_submit_s() + (minute(cluster) + 1.0) * MINUTE_S } else { f64::INFINITY };
        let timer_s = ripe_s.min(minute_s);
        if timer_s != self.timer_s {
            cluster.move_timer(timer_s, TOKEN)?;
            self.timer_s = timer_s;
        }
        Ok(())
    }
}

/// Procs of the jobs that would start now if all procs were awake.
fn procs_to_start<R: Recorder>(batch: &mut CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<u32> {
    let awake = cluster.free() + cluster.asleep() + cluster.switching();
    match batch.batch.procs_of_starts(awake, cluster)? {
        Some(procs) => Ok(procs),
        None if batch.waiting().any(|job| cluster.procs(job) <= awake) => procs_to_start_on_a_copy(batch, cluster),
        None => Ok(0),
    }
}

/// [`procs_to_start`] by a pass of a copy, whose jobs do not end: its recorder has no places.
pub(super) fn procs_to_start_on_a_copy<R: Recorder>(batch: &CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<u32> {
    let copied = cluster.copied_jobs(&batch.waiting().jobs(), Durations::Run);
    let mut copy = cluster.fork(&copied, Outcomes::new(0));
    let mut policy = batch.fork(&copied, &copy);
    copy.wake_all_at_once();
    let free = copy.free();
    policy.pass(&mut copy)?;
    cluster.steps_of(&copy)?;
    Ok(free - copy.free())
}

const MINUTE_S: f64 = 60.0;

/// The present minute, counted from the first submit.
fn minute<R: Recorder>(cluster: &Cluster<'_, R>) -> f64 {
    let (begin_s, now_s) = (cluster.first_submit_s(), cluster.now_s());
    let mut minute = ((now_s - begin_s) / MINUTE_S).floor();
    // The sum of a begin and a number of minutes is rounded: the next minute must begin after now.
    while begin_s + (minute + 1.0) * MINUTE_S <= now_s {
        minute += 1.0;
    }
    minute
}

/// A limit of procs in a minute.
#[derive(Debug, Clone)]
struct Rate {
    /// `None`: no limit.
    limit: Option<u32>,
    minute: f64,
    /// Procs of this minute.
    used: u32,
}

impl Rate {
    /// The procs of `wanted` that the limit leaves in a minute. They count from now on.
    fn take(&mut self, wanted: u32, minute: f64) -> u32 {
        let Some(limit) = self.limit else { return wanted };
        if minute != self.minute {
            (self.minute, self.used) = (minute, 0);
        }
        let taken = wanted.min(limit - self.used);
        self.used += taken;
        taken
    }

    fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| limit == self.used)
    }
}

/// Idle procs by the instant since which they are idle. Procs that have been idle for the shortest time are used first.
#[derive(Debug, Clone, Default)]
struct Idle {
    /// Procs that have been idle for long enough.
    ripe: u32,
    /// The others: instants (s), ascending, and procs.
    since: VecDeque<(f64, u32)>,
    /// Procs of `since`.
    young: u32,
}

impl Idle {
    /// From now on, `free` procs are idle.
    fn now(&mut self, now_s: f64, free: u32) {
        let before = self.ripe + self.young;
        if free > before {
            self.young += free - before;
            self.since.push_back((now_s, free - before));
            return;
        }
        let mut fewer = before - free;
        while fewer > 0
            && let Some((_, procs)) = self.since.back_mut()
        {
            let taken = fewer.min(*procs);
            *procs -= taken;
            self.young -= taken;
            fewer -= taken;
            if *procs == 0 {
                self.since.pop_back();
            }
        }
        self.ripe -= fewer;
    }

    /// Procs become ripe that have been idle for a time.
    fn ripen(&mut self, now_s: f64, time_s: f64) {
        while let Some((_, procs)) = self.since.pop_front_if(|(since_s, _)| *since_s + time_s <= now_s) {
            self.young -= procs;
            self.ripe += procs;
        }
    }

    /// Whether procs are ripe, or become ripe now.
    fn is_ripe(&self, now_s: f64, time_s: f64) -> bool {
        self.ripe > 0 || time_s == 0.0 || self.next_since_s().is_some_and(|since_s| since_s + time_s <= now_s)
    }

    /// The instant since which the oldest procs are idle that are not ripe (s).
    fn next_since_s(&self) -> Option<f64> {
        self.since.front().map(|(since_s, _)| *since_s)
    }
}
