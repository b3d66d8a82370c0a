//! Copies of the present state: simulations of the future in which no more jobs arrive.
//!
//! A copy has the running and waiting jobs, with new numbers in order of arrival, so that its cost depends on these
//! jobs and not on the whole log. It has the machine with its gears, sleeping procs and transitions, and no timers of
//! the policy, measurements or records.
use std::sync::Arc;

use super::cluster::{Cluster, JobId, Running, WAITING};
use super::events::{Alarm, End, Ends, FreeEntries};
use super::policy::Policy;
use super::recorder::Recorder;
use super::{EventOrder, Passes, Simulation};
use crate::error::Stop;
use crate::timers::{Timers, time_key};
use crate::workload::Job;

/// How long jobs run in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durations {
    /// Their true run times.
    Run,
    /// Their estimates; jobs that have outlived their estimates end at once.
    Estimate,
}

/// The jobs of copies: those that run or wait, in order of arrival.
#[derive(Debug)]
pub(crate) struct Copied {
    jobs: Vec<Job>,
    /// Their numbers in the original.
    numbers: Vec<JobId>,
    durations: Durations,
}

impl Copied {
    /// The number of a job in the copies.
    pub(crate) fn number(&self, original: JobId) -> Option<JobId> {
        self.numbers.binary_search(&original).ok().map(|at| at as JobId)
    }

    /// A job by its number in the original, with its run time in the copies.
    pub(crate) fn job(&self, original: JobId) -> Option<&Job> {
        self.number(original).map(|number| &self.jobs[number as usize])
    }
}

impl<'w, R: Recorder> Cluster<'w, R> {
    /// Jobs that hold procs, in order of start.
    pub fn running_jobs(&self) -> impl Iterator<Item = JobId> {
        self.in_order_of_start().into_iter().map(|run| run.job)
    }

    /// Job, procs, gear and estimated end (s) of each job that holds procs, in any order.
    pub(crate) fn each_running(&self) -> impl Iterator<Item = (JobId, u32, u8, f64)> {
        self.holding().map(|run| (run.job, run.procs, run.gear, self.estimated_end(run)))
    }

    fn holding(&self) -> impl Iterator<Item = &Running> {
        let holds = |(entry, run): &(usize, &Running)| self.phase[run.job as usize] as usize == *entry;
        self.running.iter().enumerate().filter(holds).map(|(_, run)| run)
    }

    fn in_order_of_start(&self) -> Vec<&Running> {
        let mut running: Vec<&Running> = self.holding().collect();
        running.sort_unstable_by_key(|run| run.seq);
        running
    }

    /// The jobs of copies of this state, for [`Cluster::fork`]. `waiting`: the policy's waiting jobs.
    pub(crate) fn copied_jobs(&self, waiting: &[JobId], durations: Durations) -> Copied {
        let mut numbers: Vec<JobId> = self.holding().map(|run| run.job).chain(waiting.iter().copied()).collect();
        numbers.sort_unstable();
        let mut jobs: Vec<Job> = numbers.iter().map(|&job| self.jobs[job as usize].clone()).collect();
        if durations == Durations::Estimate {
            for (job, number) in jobs.iter_mut().zip(&numbers) {
                job.estimate_s = self.estimate_s(*number);
                job.run_s = job.estimate_s;
            }
        }
        Copied { jobs, numbers, durations }
    }

    /// A copy of this state, after the completions and arrivals of the present instant and before its pass.
    pub(crate) fn fork<'f, S: Recorder>(&self, copied: &'f Copied, recorder: S) -> Cluster<'f, S>
    where
        'w: 'f,
    {
        let mut phase = vec![WAITING; copied.jobs.len()];
        let mut ends = Ends::of_entries(self.running_count());
        let mut running = Vec::with_capacity(self.running_count());
        for (entry, run) in (0_u32..).zip(self.in_order_of_start()) {
            let job = copied.number(run.job).expect("running jobs are copied");
            let mut run = Running { job, seq: entry, ..run.clone() };
            if copied.durations == Durations::Estimate {
                let end_s = self.estimated_end(&run);
                // A job that has outlived its estimate ends at once, a suspended one when it is resumed.
                run.run_left_s = run.estimate_left_s.max(0.0);
                if run.executing {
                    run.end_s = end_s.max(self.now_s);
                }
            }
            phase[job as usize] = entry;
            if run.executing {
                ends.set(End::new(time_key(run.end_s), entry, entry));
            }
            running.push(run);
        }
        let mut meter = self.meter.fork();
        for (job, _) in copied.jobs.iter().zip(&phase).filter(|(_, phase)| **phase == WAITING) {
            meter.wait_begins(f64::from(job.procs) * job.run_s);
        }
        // Jobs that run for their estimates are never corrected.
        let predictions = self.predictions.as_ref().filter(|_| copied.durations == Durations::Run);
        let mut copy = Cluster {
            jobs: &copied.jobs,
            limits: self.limits,
            machine: Arc::clone(&self.machine),
            now_s: self.now_s,
            first_submit_s: self.first_submit_s,
            states: self.states,
            gears: self.gears.clone(),
            starts_count: running.len() as u32,
            running,
            free_entries: FreeEntries::default(),
            phase,
            ends,
            timers: self.timers.only(|alarm| !matches!(alarm, Alarm::Policy(_))),
            meter,
            sleep: self.sleep.fork(self.now_s),
            recorder,
            scales: self.copied_scales(&copied.numbers),
            pools: self.copied_pools(&copied.numbers),
            predictions: predictions.map(|predictions| Box::new(predictions.copied(&copied.numbers))),
            corrections: Timers::default(),
            done_count: 0,
            gear_changes_count: 0,
            events_count: 0,
            steps: 0,
            rescheduled_count: 0,
        };
        (0..copy.running.len()).for_each(|entry| copy.plan_correction(entry));
        copy
    }

    /// Counts the events and steps of a copy towards the limits.
    ///
    /// # Errors
    /// As [`Cluster::step`].
    pub(crate) fn steps_of<S: Recorder>(&mut self, copy: &Cluster<'_, S>) -> Result<(), Stop> {
        let steps = copy.events_count + u64::from(copy.steps);
        self.steps = self.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        self.step()
    }
}

impl<'w, P: Policy, R: Recorder> Simulation<'w, P, R> {
    /// The simulation of a copy, in which no more jobs arrive, after the pass of the present instant.
    ///
    /// # Errors
    /// Those of the pass.
    pub(crate) fn of_copy(cluster: Cluster<'w, R>, policy: P, order: EventOrder) -> Result<Simulation<'w, P, R>, Stop> {
        let submitted = cluster.jobs.len();
        let due = std::collections::VecDeque::new();
        let passes = Passes::ALL;
        let mut copy = Simulation { cluster, policy, order, passes, submitted, next_submit: u64::MAX, due };
        copy.policy.pass(&mut copy.cluster)?;
        Ok(copy)
    }
}
