//! Decisions of a policy: each is checked, then carried out or refused.
use super::cluster::{Cluster, DONE, FUTURE, IDLE, JobId, Running, STEPS_PER_CHECK, SUSPENDED, WAITING};
use super::events::{Alarm, End};
use super::recorder::Recorder;
use crate::error::{SimError, Stop};
use crate::limits::list_bytes;
use crate::timers::time_key;
use crate::workload::Job;

/// Decisions.
impl<'w, R: Recorder> Cluster<'w, R> {
    /// Starts a waiting job. `overtook`: an earlier job of the queue still waits.
    /// Returns its estimated end (s).
    ///
    /// # Errors
    /// [`SimError::Policy`] if the job does not wait, the procs are not free or the gear does not exist.
    #[inline(always)]
    pub fn start(&mut self, job: JobId, gear: u8, overtook: bool) -> Result<f64, Stop> {
        let Some(waiting) = self.jobs.get(job as usize) else {
            return Err(self.refuse_start(job, gear));
        };
        let &Job { run_s, mut estimate_s, procs, class: job_class, .. } = waiting;
        if let Some(predictions) = &self.predictions {
            estimate_s = predictions.present_s(job);
        }
        let (phase, state) = (&mut self.phase[job as usize], &mut self.states);
        if *phase != WAITING || usize::from(gear) >= state.gears || procs > state.free {
            return Err(self.refuse_start(job, gear));
        }
        if let Some(pools) = &mut self.pools {
            let needs = pools.needs[job as usize];
            if !pools.free.cover(needs) {
                return Err(self.refuse_start(job, gear));
            }
            pools.free.take(needs);
        }
        let now_s = self.now_s;
        let idle = state.after_gears + IDLE;
        let base = state.stride * usize::from(job_class);
        let busy = base + usize::from(gear);
        let factor = self.gears[busy].time_factor;
        let end_s = now_s + run_s * factor;
        let seq = self.starts_count;
        let run = Running {
            job,
            seq,
            procs,
            gear,
            start_gear: gear,
            backfilled: overtook,
            executing: true,
            base: base as u16,
            start_s: now_s,
            since_s: now_s,
            run_left_s: run_s,
            estimate_left_s: estimate_s,
            end_s,
            suspended_s: 0.0,
            energy_j: 0.0,
        };
        let entry = self.free_entries.take_lowest().unwrap_or(self.running.len() as u32);
        match self.running.get_mut(entry as usize) {
            Some(place) => *place = run,
            None => self.running.push(run),
        }
        *phase = entry;
        state.free -= procs;
        self.starts_count += 1;
        self.ends.set(End::new(time_key(end_s), seq, entry));
        self.meter.idle_procs -= procs;
        self.meter.shift(idle, busy, procs);
        if self.scales.is_some() {
            self.exceed_by_start(entry as usize);
        }
        self.meter.wait_ends(f64::from(procs) * run_s);
        self.recorder.started(waiting, now_s);
        if self.predictions.is_some() {
            self.prediction_begins(entry as usize);
        }
        Ok(now_s + estimate_s * factor)
    }

    /// Changes the gear of a running job; its remaining run time and estimate scale with the new gear. Returns its new
    /// estimated end (s).
    ///
    /// # Errors
    /// [`SimError::Policy`] if the job does not execute or the gear does not exist.
    pub fn set_gear(&mut self, job: JobId, gear: u8) -> Result<f64, Stop> {
        let entry = self.executing_entry(job, true, "set the gear of")?;
        let gears = self.states.gears;
        if usize::from(gear) >= gears {
            return Err(
                self.refuse(format!("job {} cannot run at gear {gear}: there are {gears} gears", self.name(job)))
            );
        }
        let old = self.running[entry].gear;
        if old != gear {
            self.settle(entry);
            self.gear_changes_count += 1;
            let before = self.excess(&self.running[entry]);
            let run = &mut self.running[entry];
            let from = run.level();
            run.gear = gear;
            self.meter.shift(from, run.level(), run.procs);
            let after = self.excess(&self.running[entry]);
            self.meter.exceed(after - before);
            self.schedule(entry);
        }
        Ok(self.estimated_end(&self.running[entry]))
    }

    /// Suspends a running job: it keeps its procs, which draw idle power, and makes no progress.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the job does not execute.
    pub fn suspend(&mut self, job: JobId) -> Result<(), Stop> {
        let entry = self.executing_entry(job, true, "suspend")?;
        self.settle(entry);
        let excess = self.excess(&self.running[entry]);
        self.meter.exceed(-excess);
        let run = &mut self.running[entry];
        run.executing = false;
        run.end_s = f64::INFINITY;
        self.ends.clear(entry);
        self.plan_sample(entry);
        let run = &self.running[entry];
        self.meter.shift(run.level(), self.states.after_gears + SUSPENDED, run.procs);
        Ok(())
    }

    /// Resumes a suspended job at its gear. Returns its estimated end (s).
    ///
    /// # Errors
    /// [`SimError::Policy`] if the job is not suspended.
    pub fn resume(&mut self, job: JobId) -> Result<f64, Stop> {
        let entry = self.executing_entry(job, false, "resume")?;
        self.settle(entry);
        let excess = self.excess(&self.running[entry]);
        self.meter.exceed(excess);
        let run = &mut self.running[entry];
        run.executing = true;
        self.meter.shift(self.states.after_gears + SUSPENDED, run.level(), run.procs);
        self.schedule(entry);
        Ok(self.estimated_end(&self.running[entry]))
    }

    /// Sets a timer: `Policy::timer` is called at a later instant, and a pass follows.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the instant is not after now or not finite.
    pub fn set_timer(&mut self, at_s: f64, token: u64) -> Result<(), Stop> {
        if !(at_s.is_finite() && at_s > self.now_s) {
            return Err(self.refuse(format!("cannot set a timer for {at_s} s, which is not after now")));
        }
        self.timers.push(at_s, Alarm::Policy(token));
        Ok(())
    }

    /// Cancels all pending timers with a token and sets one, unless the instant is infinite.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the instant is not after now.
    pub fn move_timer(&mut self, at_s: f64, token: u64) -> Result<(), Stop> {
        self.timers.cancel(Alarm::Policy(token));
        if at_s == f64::INFINITY { Ok(()) } else { self.set_timer(at_s, token) }
    }

    /// Counts a step of a loop of unbounded length, and checks the limits every 1,024 steps.
    ///
    /// # Errors
    /// [`SimError::Deadline`], [`SimError::EventLimit`], [`SimError::MemoryLimit`].
    #[inline]
    pub fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps >= STEPS_PER_CHECK { self.check_limits() } else { Ok(()) }
    }

    /// Counts several steps, as [`Cluster::step`] counts one.
    ///
    /// # Errors
    /// Those of [`Cluster::step`].
    pub fn count_steps(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = u32::try_from(steps).unwrap_or(u32::MAX).saturating_add(self.steps);
        if self.steps >= STEPS_PER_CHECK { self.check_limits() } else { Ok(()) }
    }

    /// Whether the caller's deadline has passed, for work that the kernel does not see.
    pub(crate) fn deadline_passed(&self) -> &'w dyn Fn() -> bool {
        self.limits.deadline_passed
    }

    #[cold]
    pub(super) fn check_limits(&mut self) -> Result<(), Stop> {
        self.steps = 0;
        if (self.limits.deadline_passed)() {
            return Err(Stop::new(SimError::Deadline));
        }
        self.check_events()?;
        let bytes = self.bytes();
        if bytes > self.limits.max_bytes {
            return Err(Stop::new(SimError::MemoryLimit(self.limits.max_bytes)));
        }
        Ok(())
    }

    /// Whether the run has had no more events than allowed: also asked at its end, which is between two checks.
    #[cold]
    pub(super) fn check_events(&self) -> Result<(), Stop> {
        let most = self.limits.max_events;
        if self.events_count > most { Err(Stop::new(SimError::EventLimit(most))) } else { Ok(()) }
    }

    fn bytes(&self) -> usize {
        let parts = [
            list_bytes(&self.running),
            list_bytes(&self.phase),
            self.free_entries.bytes(),
            self.ends.bytes(),
            self.timers.bytes(),
            self.meter.bytes(),
            self.sleep.bytes(),
            self.recorder.bytes(),
            self.scales.as_ref().map_or(0, |scales| scales.bytes()),
            self.pools.as_ref().map_or(0, |pools| pools.bytes()),
            self.predictions.as_ref().map_or(0, |predictions| predictions.bytes()),
            self.corrections.bytes(),
        ];
        parts.into_iter().sum()
    }

    fn name(&self, job: JobId) -> i64 {
        self.jobs.get(job as usize).map_or(-1, |j| j.id)
    }

    fn executing_entry(&self, job: JobId, executing: bool, verb: &str) -> Result<usize, Stop> {
        let entry = self.phase.get(job as usize).map_or(usize::MAX, |&phase| phase as usize);
        match self.running.get(entry) {
            Some(run) if run.executing == executing => Ok(entry),
            _ => {
                let state = if executing { "does not execute" } else { "is not suspended" };
                Err(self.refuse(format!("cannot {verb} job {}, which {state}", self.name(job))))
            }
        }
    }

    #[cold]
    pub(crate) fn refuse(&self, what: String) -> Stop {
        Stop::new(SimError::Policy { now_s: self.now_s, what })
    }

    #[cold]
    fn refuse_start(&self, job: JobId, gear: u8) -> Stop {
        if self.jobs.get(job as usize).is_none() {
            return self.refuse(format!("job {job} cannot start: it does not exist"));
        }
        let reason = match self.phase[job as usize] {
            FUTURE => "it has not been submitted".to_owned(),
            DONE => "it has ended".to_owned(),
            WAITING if usize::from(gear) >= self.states.gears => format!("gear {gear} does not exist"),
            WAITING if self.procs(job) <= self.states.free => {
                self.missing(job).unwrap_or_else(|| "its needs are not free".to_owned())
            }
            WAITING => format!("it needs {} procs, {} are free", self.procs(job), self.states.free),
            _ => "it runs already".to_owned(),
        };
        self.refuse(format!("job {} cannot start: {reason}", self.name(job)))
    }
}
