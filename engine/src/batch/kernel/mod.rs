//! The discrete-event kernel.
//!
//! The kernel owns simulated time, machines, running jobs, gears, power states, the energy meter and the recorder
//! ([`Cluster`]); a [`Policy`] owns the waiting jobs. [`Simulation`] joins them: it handles one instant after the
//! other, reports the events to the policy and asks it for decisions.
//!
//! Invariants: events are handled in the total order time, kind, sequence; times are `f64` seconds compared without a
//! tolerance; an event allocates no memory once the buffers have grown; the state can be cloned at every instant, and a
//! clone continues exactly like the original.
//!
//! **One instant.** With [`EventOrder::Batch`]: all completions in the order of starts, all submissions, timers, then
//! one pass; a job of run time 0 that the pass started completes at the same instant in a further round (completions,
//! then a pass), until no completion is due. The other orders make a pass after every single event:
//!
//! - [`EventOrder::SubmitFirst`] (the simulators that descend from pyss): submissions first, then completions in the
//!   order of starts. A job whose completion is due at this instant and whose estimated end has passed releases its
//!   procs before all other events, although the pass for its completion comes later.
//! - [`EventOrder::SubmitFirstHeld`] (RLScheduler): so, too, but every job holds its procs until its completion.
//! - [`EventOrder::FinishFirst`] (CQSim): completions first in the order of starts, then submissions.
//!
//! **Estimates that have passed.** A job that outlives its estimate (`overrun = "run-on"`) keeps its procs; at every
//! pass, a policy expects it to end now.

mod cluster;
mod decisions;
mod events;
mod fork;
mod meter;
mod policy;
mod pools;
mod powers;
mod predicted;
mod recorder;
mod samples;
mod sleep;
mod view;

pub use cluster::{Cluster, Ended, JobId};
pub(crate) use fork::{Copied, Durations};
pub use policy::Policy;
pub(crate) use powers::{Known, Scales};
pub use recorder::{Finished, JobRows, Outcomes, Recorder};
pub(crate) use samples::{JobSamples, SampledScales};

use std::collections::VecDeque;

use super::platform::Machine;
use super::prediction::Predictions;
use crate::energy::{EnergySplit, Idle, Splitter};
use crate::error::{SimError, Stop};
use crate::limits::Limits;
use crate::summary;
use crate::timers::{key_time, time_key};
use crate::workload::Job;
use events::{Alarm, End};

/// How the events of one instant are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrder {
    /// All completions, all submissions, one pass.
    Batch,
    /// A pass after every event, submissions first. Jobs whose estimated end has come have released their procs.
    SubmitFirst,
    /// A pass after every event, submissions first. Jobs hold their procs until their completions.
    SubmitFirstHeld,
    /// A pass after every event, completions first.
    FinishFirst,
}

/// The events besides completions that a pass follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// All submissions; if false, only submissions of jobs for which enough procs are free.
    pub at_every_submission: bool,
    /// Corrections of predictions.
    pub at_correction: bool,
}

impl Passes {
    /// A pass after every event.
    pub const ALL: Passes = Passes { at_every_submission: true, at_correction: true };
}

/// A completion of the present instant before its pass.
#[derive(Debug, Clone, Copy)]
struct Due {
    end: End,
    /// The job, if its procs are already free.
    released: Option<JobId>,
}

/// Key of a job's submit; greater than every key if there is no such job.
#[inline]
fn submit_key(jobs: &[Job], job: usize) -> u64 {
    jobs.get(job).map_or(u64::MAX, |job| time_key(job.submit_s))
}

/// A running simulation.
#[derive(Clone)]
pub struct Simulation<'w, P, R> {
    pub(in crate::batch) cluster: Cluster<'w, R>,
    policy: P,
    order: EventOrder,
    passes: Passes,
    /// Number of jobs submitted so far.
    submitted: usize,
    /// Key of the next submit, greater than every key after the last.
    next_submit: u64,
    /// Completions of the present instant before their pass.
    due: VecDeque<Due>,
}

impl<'w, P: Policy, R: Recorder> Simulation<'w, P, R> {
    /// A simulation at its first instant, with an empty machine.
    ///
    /// `jobs`: sorted by submit, at least one, none wider than the machine.
    pub fn new(
        jobs: &'w [Job],
        machine: Machine,
        limits: &'w Limits<'w>,
        order: EventOrder,
        policy: P,
        recorder: R,
    ) -> Simulation<'w, P, R> {
        let cluster = Cluster::new(jobs, machine, limits, recorder);
        Simulation {
            cluster,
            policy,
            order,
            passes: Passes::ALL,
            submitted: 0,
            next_submit: submit_key(jobs, 0),
            due: VecDeque::new(),
        }
    }

    /// Runs to the last completion.
    ///
    /// # Errors
    /// See [`SimError`]; the state is not to be used afterwards.
    pub fn run(&mut self) -> Result<(), Stop> {
        while self.advance()? {}
        Ok(())
    }

    /// Handles the next instant; `false` if all jobs have ended.
    ///
    /// # Errors
    /// See [`SimError`]; the state is not to be used afterwards.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, Stop> {
        let jobs = self.cluster.jobs();
        if self.cluster.done_count() == jobs.len() {
            return self.cluster.check_events().map(|()| false);
        }
        let next = self.next_key();
        if next == u64::MAX {
            return Err(self.stuck());
        }
        if self.cluster.scales.is_some() && self.change_samples(next)? {
            return Ok(true);
        }
        self.cluster.advance(key_time(next));
        match self.order {
            EventOrder::Batch => self.batch_instant(next)?,
            EventOrder::SubmitFirst => self.single_instant(next, true, true)?,
            EventOrder::SubmitFirstHeld => self.single_instant(next, true, false)?,
            EventOrder::FinishFirst => self.single_instant(next, false, false)?,
        }
        Ok(true)
    }

    /// Key of the next instant; greater than every key if there is no future event.
    #[inline(always)]
    fn next_key(&mut self) -> u64 {
        let next = self.next_submit.min(self.cluster.ends.first_key());
        next.min(self.cluster.timers.first_key()).min(self.cluster.corrections.first_key())
    }

    /// The next instant (s), if there is a future event.
    pub(crate) fn next_instant_s(&mut self) -> Option<f64> {
        let next = self.next_key();
        (next != u64::MAX).then(|| key_time(next))
    }

    /// The machine and the running jobs.
    pub fn cluster(&self) -> &Cluster<'w, R> {
        &self.cluster
    }

    /// The policy, for tests.
    #[cfg(test)]
    pub(crate) fn policy(&self) -> &P {
        &self.policy
    }

    /// The recorder.
    pub fn recorder(&self) -> &R {
        self.cluster.recorder()
    }

    /// The recorder and the policy, at the end.
    pub fn into_parts(self) -> (R, P) {
        (self.cluster.into_recorder(), self.policy)
    }

    /// The recorder, at the end.
    pub fn into_recorder(self) -> R {
        self.cluster.into_recorder()
    }

    /// Also splits the energy, in cells of at most this memory; called before the first instant.
    pub(crate) fn split(&mut self, energy: &EnergySplit, idle: Idle, max_bytes: usize) {
        self.cluster.meter.split(energy, idle, max_bytes);
    }

    /// Sets the predictions of run times, and after which events a pass follows; called before the first instant.
    pub(crate) fn set_predictions(&mut self, predictions: Option<Predictions>, passes: Passes) {
        if let Some(predictions) = predictions {
            self.cluster.set_predictions(predictions);
        }
        self.passes = passes;
    }

    /// The split energy, at the end.
    pub(crate) fn take_splitter(&mut self) -> Option<Splitter> {
        self.cluster.meter.take_splitter()
    }

    /// The integrals of the run, at the end.
    pub fn integrals(&self) -> summary::Integrals {
        self.cluster.integrals()
    }

    /// The next change of a power, if it comes before the next event: the policy is told of it. A change at the instant of
    /// the next event is carried out before the event. Returns whether the instant was before the event.
    #[cold]
    fn change_samples(&mut self, event: u64) -> Result<bool, Stop> {
        let change = self.cluster.next_sample();
        if change > event {
            return Ok(false);
        }
        self.count_event()?;
        self.cluster.advance(key_time(change));
        if self.cluster.change_samples(change) && change < event {
            self.policy.powers_changed(&mut self.cluster)?;
        }
        Ok(change < event)
    }

    fn batch_instant(&mut self, now: u64) -> Result<(), Stop> {
        loop {
            let mut pass = false;
            while let Some(end) = self.cluster.ends.take(now) {
                self.count_event()?;
                let job = self.complete(end);
                self.cluster.learn(job);
                pass = true;
            }
            while self.next_submit == now {
                pass |= self.submit()?;
            }
            while self.cluster.corrections.first_key() == now {
                pass |= self.correct()?;
            }
            while self.cluster.timers.first_key() == now {
                self.alarm()?;
                pass = true;
            }
            if pass {
                self.policy.pass(&mut self.cluster)?;
            }
            if self.cluster.ends.first_key() != now {
                return Ok(());
            }
        }
    }

    /// `release`: jobs whose estimated end has passed release their procs before all other events.
    fn single_instant(&mut self, now: u64, submit_first: bool, release: bool) -> Result<(), Stop> {
        loop {
            self.collect_due(now, release)?;
            let mut pass = true;
            if self.cluster.corrections.first_key() == now {
                pass = self.correct()?;
            } else if self.next_submit == now && (submit_first || self.due.is_empty()) {
                pass = self.submit()?;
            } else if let Some(Due { end, released }) = self.due.pop_front() {
                let job = match released {
                    Some(job) => {
                        self.policy.ended_before();
                        job
                    }
                    None if self.cluster.is_current(end) => self.complete(end),
                    None => continue,
                };
                self.cluster.learn(job);
                self.count_event()?;
            } else if self.cluster.timers.first_key() == now {
                self.alarm()?;
            } else {
                return Ok(());
            }
            if pass {
                self.policy.pass(&mut self.cluster)?;
            }
        }
    }

    /// Moves the completions of this instant to `due`. `release`: those whose estimated end has passed release their
    /// procs at once.
    fn collect_due(&mut self, now: u64, release: bool) -> Result<(), Stop> {
        while let Some(end) = self.cluster.ends.take(now) {
            let released = release && self.cluster.estimated_end_of(end) <= self.cluster.now_s();
            let released = released.then(|| self.complete(end));
            self.due.push_back(Due { end, released });
        }
        Ok(())
    }

    /// A job arrives; returns whether a pass follows.
    #[inline(always)]
    fn submit(&mut self) -> Result<bool, Stop> {
        let job = self.submitted as JobId;
        self.submitted += 1;
        self.next_submit = submit_key(self.cluster.jobs(), self.submitted);
        self.count_event()?;
        self.cluster.submit(job);
        let pass = self.passes.at_every_submission || self.cluster.procs(job) <= self.cluster.free();
        self.policy.submitted(&self.cluster, job);
        Ok(pass)
    }

    /// Handles a prediction that may have passed; returns whether a pass follows.
    fn correct(&mut self) -> Result<bool, Stop> {
        self.count_event()?;
        let Some((job, before_s)) = self.cluster.correct_next() else { return Ok(false) };
        self.policy.corrected(&self.cluster, job, before_s);
        Ok(self.passes.at_correction)
    }

    /// A job ends; returns the job.
    #[inline]
    fn complete(&mut self, end: End) -> JobId {
        let ended = self.cluster.complete(end);
        self.policy.ended(&self.cluster, &ended);
        ended.job
    }

    fn alarm(&mut self) -> Result<(), Stop> {
        self.count_event()?;
        match self.cluster.timers.pop() {
            Some(Alarm::Policy(token)) => self.policy.timer(&self.cluster, token),
            Some(alarm) => self.cluster.transition(alarm),
            None => {}
        }
        Ok(())
    }

    #[inline]
    fn count_event(&mut self) -> Result<(), Stop> {
        self.cluster.events_count += 1;
        if self.cluster.events_count.is_multiple_of(1024) { self.cluster.check_limits() } else { Ok(()) }
    }

    #[cold]
    fn stuck(&self) -> Stop {
        let waiting = self.submitted - self.cluster.done_count() - self.cluster.running_count();
        Stop::new(SimError::Policy {
            now_s: self.cluster.now_s(),
            what: format!(
                "no event is left, but {waiting} jobs wait and {} jobs hold procs",
                self.cluster.running_count()
            ),
        })
    }
}
