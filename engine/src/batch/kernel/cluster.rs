//! The state of the kernel. A policy reads it through `view.rs` and `fork.rs`, and changes it through `decisions.rs`
//! and `sleep.rs`.
//!
//! Every decision is checked: an impossible one changes nothing and returns `SimError::Policy`, which ends the run. The
//! view has neither true run times nor coming arrivals; only copies (`fork.rs`) can use true run times.

use std::sync::Arc;

use super::events::{Alarm, End, Ends, FreeEntries};
use super::meter::Meter;
use super::pools::Pools;
use super::powers::Scales;
use super::recorder::{Finished, Recorder};
use super::sleep::Sleep;
use crate::batch::platform::{Gear, Machine};
use crate::batch::prediction::Predictions;
use crate::limits::Limits;
use crate::summary;
use crate::timers::{Timers, key_time, time_key};
use crate::workload::Job;

/// A job by its position in the workload, which is in order of arrival.
pub type JobId = u32;

/// Number of steps between two checks of the limits.
pub(super) const STEPS_PER_CHECK: u32 = 1024;

/// `Cluster::phase` of a job that holds no procs. Smaller values are entries of `Cluster::running`.
pub(super) const FUTURE: u32 = u32::MAX;
pub(super) const WAITING: u32 = u32::MAX - 1;
pub(super) const DONE: u32 = u32::MAX - 2;

/// A job that holds procs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) job: JobId,
    /// Position in the order of starts, from 0. Breaks ties of completions.
    pub(super) seq: u32,
    pub(super) procs: u32,
    pub(super) gear: u8,
    pub(super) start_gear: u8,
    pub(super) backfilled: bool,
    pub(super) executing: bool,
    /// The meter's level of gear 0 for the job's class.
    pub(super) base: u16,
    pub(super) start_s: f64,
    /// Instant up to which work, estimate, suspension and energy are settled (s).
    pub(super) since_s: f64,
    /// Remaining run time at the top gear (s).
    pub(super) run_left_s: f64,
    /// Remaining estimate at the top gear (s); negative once the job outlives it.
    pub(super) estimate_left_s: f64,
    pub(super) end_s: f64,
    pub(super) suspended_s: f64,
    pub(super) energy_j: f64,
}

impl Running {
    /// The meter's level of the job while it executes.
    #[inline]
    pub(super) fn level(&self) -> usize {
        usize::from(self.base) + usize::from(self.gear)
    }
}

/// A job that has ended, as the policy sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// Procs that the job held.
    pub procs: u32,
    /// Its last gear.
    pub gear: u8,
    /// Estimated end (s).
    pub estimated_end_s: f64,
}

/// Procs by state, besides those in use, and their levels in the meter: the gears for each class of jobs, then idle,
/// suspended, asleep, switching off and waking.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct States {
    pub(super) free: u32,
    pub(super) asleep: u32,
    /// `recalled` of these will wake as soon as they are off.
    pub(super) switching_off: u32,
    pub(super) recalled: u32,
    pub(super) waking: u32,
    /// The level of idle procs, the first level that is no gear.
    pub(super) after_gears: usize,
    /// Number of gears.
    pub(super) gears: usize,
    /// Number of levels from one class of jobs to the next: the number of gears, or 0 if the class of a job does not
    /// matter.
    pub(super) stride: usize,
}

/// Offsets of levels in the meter, from `States::after_gears`.
pub(super) const IDLE: usize = 0;
pub(super) const SUSPENDED: usize = 1;
pub(super) const ASLEEP: usize = 2;
pub(super) const SWITCHING_OFF: usize = 3;
pub(super) const WAKING: usize = 4;

/// Machines, running jobs, timers and the meter.
#[derive(Clone)]
pub struct Cluster<'w, R> {
    pub(super) jobs: &'w [Job],
    pub(super) limits: &'w Limits<'w>,
    /// Shared with the copies of the cluster.
    pub(super) machine: Arc<Machine>,
    pub(super) now_s: f64,
    pub(super) first_submit_s: f64,
    pub(super) states: States,
    /// Gears by level of the meter, so that a gear takes one look-up; levels that are no gear have a filler.
    pub(super) gears: Vec<Gear>,
    pub(super) running: Vec<Running>,
    pub(super) free_entries: FreeEntries,
    /// By job: FUTURE, WAITING, DONE or the entry in `running`.
    pub(super) phase: Vec<u32>,
    pub(super) ends: Ends,
    pub(super) timers: Timers<Alarm>,
    pub(super) meter: Meter,
    pub(super) sleep: Sleep,
    pub(super) recorder: R,
    /// Powers of jobs divided by the model's; `None` if all jobs draw the power of the model.
    pub(super) scales: Option<Box<Scales>>,
    /// The pools of the machine; `None` if its procs alone count.
    pub(super) pools: Option<Box<Pools>>,
    /// Predicted run times; `None` if the policy reads the users' estimates.
    pub(super) predictions: Option<Box<Predictions>>,
    /// Jobs at the instants at which their predictions pass, unless these instants have moved.
    pub(super) corrections: Timers<JobId>,
    pub(super) starts_count: u32,
    pub(super) done_count: usize,
    pub(super) gear_changes_count: u64,
    pub(super) events_count: u64,
    pub(super) steps: u32,
    /// Number of changes of a running job's end.
    pub(super) rescheduled_count: u64,
}

/// Look-ups.
impl<'w, R: Recorder> Cluster<'w, R> {
    pub(super) fn entry(&self, job: JobId) -> Option<usize> {
        let phase = self.phase[job as usize] as usize;
        (phase < self.running.len()).then_some(phase)
    }

    /// The gear of a running job, for its class of jobs.
    #[inline]
    pub(super) fn gear_of(&self, run: &Running) -> Gear {
        self.gears[run.level()]
    }

    #[inline]
    pub(super) fn estimated_end(&self, run: &Running) -> f64 {
        if run.executing {
            run.since_s + run.estimate_left_s * self.gear_of(run).time_factor
        } else {
            self.now_s + run.estimate_left_s
        }
    }
}

/// Functions for the event loop.
impl<'w, R: Recorder> Cluster<'w, R> {
    pub(super) fn new(jobs: &'w [Job], machine: Machine, limits: &'w Limits<'w>, recorder: R) -> Cluster<'w, R> {
        let mut levels = Vec::new();
        let mut gear_table: Vec<Gear> = Vec::new();
        for gears in std::iter::once(&machine.gears).chain(&machine.more_job_classes) {
            gear_table.extend(gears);
            levels.extend(gears.iter().map(|gear| (0, gear.busy_w)));
        }
        gear_table.extend([Gear { time_factor: 1.0, busy_w: 0.0 }; WAKING + 1]);
        let gears = machine.gears.len();
        let stride = if machine.more_job_classes.is_empty() { 0 } else { gears };
        let states = States { free: machine.procs, after_gears: levels.len(), gears, stride, ..States::default() };
        let sleep = machine.sleep;
        let states_w = [machine.idle_w, machine.idle_w, sleep.asleep_w, sleep.off_w, sleep.wake_w];
        levels.extend(states_w.into_iter().enumerate().map(|(i, w)| (if i == IDLE { machine.procs } else { 0 }, w)));
        let now_s = jobs.first().map_or(0.0, |job| job.submit_s);
        let sleep = Sleep::new(now_s, machine.procs);
        Cluster {
            jobs,
            limits,
            meter: Meter::new(levels, machine.procs, machine.static_w, now_s),
            machine: Arc::new(machine),
            now_s,
            first_submit_s: now_s,
            states,
            gears: gear_table,
            running: Vec::new(),
            free_entries: FreeEntries::default(),
            phase: vec![FUTURE; jobs.len()],
            ends: Ends::default(),
            timers: Timers::default(),
            sleep,
            recorder,
            scales: None,
            pools: None,
            predictions: None,
            corrections: Timers::default(),
            starts_count: 0,
            done_count: 0,
            gear_changes_count: 0,
            events_count: 0,
            steps: 0,
            rescheduled_count: 0,
        }
    }

    pub(super) fn jobs(&self) -> &'w [Job] {
        self.jobs
    }

    pub(super) fn done_count(&self) -> usize {
        self.done_count
    }

    pub(super) fn recorder(&self) -> &R {
        &self.recorder
    }

    pub(super) fn into_recorder(self) -> R {
        self.recorder
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, now_s: f64) {
        self.now_s = now_s;
        self.meter.advance(now_s);
    }

    /// A job arrives.
    #[inline(always)]
    pub(super) fn submit(&mut self, job: JobId) {
        let Job { procs, run_s, .. } = self.jobs[job as usize];
        self.phase[job as usize] = WAITING;
        self.meter.wait_begins(f64::from(procs) * run_s);
        if let Some(predictions) = &mut self.predictions {
            predictions.submitted(job, &self.jobs[job as usize], self.now_s);
        }
    }

    #[inline]
    pub(super) fn is_current(&self, end: End) -> bool {
        let run = &self.running[end.entry()];
        run.seq == end.seq() && time_key(run.end_s) == end.key
    }

    pub(super) fn estimated_end_of(&self, end: End) -> f64 {
        self.estimated_end(&self.running[end.entry()])
    }

    /// Ends the job of a current completion and frees its procs.
    #[inline(always)]
    pub(super) fn complete(&mut self, end: End) -> Ended {
        let entry = end.entry();
        // Jobs with powers of their own are rare: other runs branch once.
        let scale = if self.scales.is_some() { self.exceed_by_end(entry) } else { 1.0 };
        let run = &mut self.running[entry];
        debug_assert_eq!(key_time(end.key), run.end_s);
        let busy = run.level();
        let gear = self.gears[busy];
        let estimated_end_s = run.since_s + run.estimate_left_s * gear.time_factor;
        let energy_j = run.energy_j + gear.busy_w * scale * f64::from(run.procs) * (self.now_s - run.since_s);
        self.recorder.finished(&Finished {
            index: run.job as usize,
            suspended_s: run.suspended_s,
            outcome: summary::Outcome {
                start_s: run.start_s,
                finish_s: self.now_s,
                energy_j,
                gear_index: run.start_gear,
                backfilled: run.backfilled,
            },
        });
        let (job, procs, last_gear) = (run.job, run.procs, run.gear);
        // A completion of this job that is still queued must not look current.
        run.end_s = f64::NEG_INFINITY;
        self.meter.shift(busy, self.states.after_gears + IDLE, procs);
        if let Some(pools) = &mut self.pools {
            pools.free.give(pools.needs[job as usize]);
        }
        self.states.free += procs;
        self.meter.idle_procs += procs;
        self.free_entries.free(entry);
        self.phase[job as usize] = DONE;
        self.done_count += 1;
        Ended { job, procs, gear: last_gear, estimated_end_s }
    }

    /// Settles a running job's work, estimate, suspension and energy up to now.
    pub(super) fn settle(&mut self, entry: usize) {
        self.rescheduled_count += 1;
        let scale = self.settled_scale(entry);
        let run = &mut self.running[entry];
        let dt = self.now_s - run.since_s;
        if run.executing {
            let gear = self.gears[run.level()];
            run.run_left_s = (run.run_left_s - dt / gear.time_factor).max(0.0);
            run.estimate_left_s -= dt / gear.time_factor;
            run.energy_j += gear.busy_w * scale * f64::from(run.procs) * dt;
        } else {
            run.suspended_s += dt;
            run.energy_j += self.machine.idle_w * f64::from(run.procs) * dt;
        }
        run.since_s = self.now_s;
    }

    /// Sets the end of a settled, executing job.
    pub(super) fn schedule(&mut self, entry: usize) {
        let factor = self.gear_of(&self.running[entry]).time_factor;
        let run = &mut self.running[entry];
        run.end_s = run.since_s + run.run_left_s * factor;
        self.ends.set(End::new(time_key(run.end_s), run.seq, entry as u32));
        self.plan_sample(entry);
        self.plan_correction(entry);
    }

    /// The integrals of the run, at its end.
    pub(super) fn integrals(&self) -> summary::Integrals {
        let states = self.states;
        let mut out = summary::Integrals {
            machine_procs: self.machine.procs,
            events_count: self.events_count,
            first_submit_s: self.first_submit_s,
            last_finish_s: self.now_s,
            busy_proc_s: vec![0.0; states.gears],
            queue_length_s: self.meter.waiting_s,
            queue_length_max: u64::from(self.meter.waiting_max),
            backlog_proc_s2: self.meter.backlog_s,
            backlog_proc_s_max: self.meter.backlog_max,
            lost_proc_s: self.meter.lost_proc_s,
            power_peak_w: self.meter.power_peak_w,
            power_p95_w: self.meter.power_quantile_w(0.95),
            gear_changes_count: self.gear_changes_count,
            ..summary::Integrals::default()
        };
        for at in 0..states.after_gears {
            let level = self.meter.level(at);
            out.busy_proc_s[at % states.gears] += level.proc_s;
            out.energy_busy_j += level.proc_s * level.watts;
        }
        let proc_s = |i: usize| self.meter.level(states.after_gears + i).proc_s;
        let energy_j = |i: usize| proc_s(i) * self.meter.level(states.after_gears + i).watts;
        out.idle_proc_s = proc_s(IDLE);
        out.suspended_proc_s = proc_s(SUSPENDED);
        out.energy_suspended_j = energy_j(SUSPENDED);
        out.asleep_proc_s = proc_s(ASLEEP);
        out.transition_proc_s = proc_s(SWITCHING_OFF) + proc_s(WAKING);
        out.energy_idle_j = energy_j(IDLE);
        out.energy_asleep_j = energy_j(ASLEEP);
        out.energy_transition_j = energy_j(SWITCHING_OFF) + energy_j(WAKING);
        out.energy_busy_j += self.meter.excess_j;
        out.energy_static_j = self.machine.static_w * (out.last_finish_s - out.first_submit_s);
        out.active_steps = self.active_steps().iter().copied().filter(|step| step.0 < self.now_s).collect();
        for (at, &(from_s, procs)) in out.active_steps.iter().enumerate() {
            let until_s = out.active_steps.get(at + 1).map_or(self.now_s, |next| next.0);
            out.active_proc_s += f64::from(procs) * (until_s - from_s);
        }
        out
    }
}
