//! The read-only view of a policy: the machine and the jobs that have arrived.
use super::cluster::{Cluster, JobId, SUSPENDED};
use super::recorder::Recorder;
use crate::batch::platform::{Gear, Machine};

/// The view.
impl<'w, R: Recorder> Cluster<'w, R> {
    /// The present instant (s).
    #[inline]
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Idle procs that a job can take now.
    #[inline]
    pub fn free(&self) -> u32 {
        self.states.free
    }

    /// Procs that a job asks for.
    #[inline]
    pub fn procs(&self, job: JobId) -> u32 {
        self.jobs[job as usize].procs
    }

    /// Run time that is expected of a job at the top gear (s): its prediction, or its estimate without a predictor.
    #[inline]
    pub fn estimate_s(&self, job: JobId) -> f64 {
        match &self.predictions {
            None => self.jobs[job as usize].estimate_s,
            Some(predictions) => predictions.present_s(job),
        }
    }

    /// The user's estimate of a job's run time at the top gear (s).
    pub(crate) fn requested_s(&self, job: JobId) -> f64 {
        self.jobs[job as usize].estimate_s
    }

    /// True run time of a job at the top gear (s), for rules that assume an oracle.
    pub(crate) fn true_run_s(&self, job: JobId) -> f64 {
        self.jobs[job as usize].run_s
    }

    /// Priority of a job; 1 is the highest.
    #[inline]
    pub fn priority(&self, job: JobId) -> u8 {
        self.jobs[job as usize].priority
    }

    /// Submit instant (s) and class of a submitted job, in one access.
    #[inline(always)]
    pub fn submit_and_class(&self, job: JobId) -> (f64, u8) {
        let job = &self.jobs[job as usize];
        (job.submit_s, job.class)
    }

    /// Class of a job, from 0.
    #[inline]
    pub fn job_class(&self, job: JobId) -> u8 {
        self.jobs[job as usize].class
    }

    /// Job number of the log.
    pub fn job_id(&self, job: JobId) -> i64 {
        self.jobs[job as usize].id
    }

    /// The gears for a job.
    #[inline]
    pub fn gears_for(&self, job: JobId) -> &[Gear] {
        self.machine.gears_of(self.job_class(job))
    }

    /// Whether a job that holds procs executes; `false` if it is suspended.
    pub fn is_executing(&self, job: JobId) -> bool {
        self.entry(job).is_some_and(|entry| self.running[entry].executing)
    }

    /// Executing procs by class of jobs and gear: class of jobs, gear, procs.
    pub fn executing(&self) -> impl Iterator<Item = (usize, usize, u32)> + '_ {
        let state = self.states;
        (0..state.after_gears).map(move |at| (at / state.gears, at % state.gears, self.meter.level(at).procs()))
    }

    /// Executing procs.
    pub fn executing_procs(&self) -> u32 {
        (0..self.states.after_gears).map(|at| self.meter.level(at).procs()).sum()
    }

    /// Procs of suspended jobs.
    pub fn suspended(&self) -> u32 {
        self.meter.level(self.states.after_gears + SUSPENDED).procs()
    }

    /// Submit instant of a submitted job (s).
    #[inline]
    pub fn submit_s(&self, job: JobId) -> f64 {
        self.jobs[job as usize].submit_s
    }

    /// The first submit of the workload (s).
    pub fn first_submit_s(&self) -> f64 {
        self.first_submit_s
    }

    /// Number of jobs that hold procs.
    pub fn running_count(&self) -> usize {
        self.starts_count as usize - self.done_count
    }

    /// Number of jobs that have arrived and not started.
    pub fn waiting_count(&self) -> u32 {
        self.meter.waiting_count
    }

    /// Whether a job holds procs.
    #[inline]
    pub fn is_running(&self, job: JobId) -> bool {
        (self.phase[job as usize] as usize) < self.running.len()
    }

    /// Gear of a running job.
    pub fn gear(&self, job: JobId) -> Option<u8> {
        self.entry(job).map(|entry| self.running[entry].gear)
    }

    /// Estimated end of a running job if it keeps its gear (s): now plus the remaining estimate; earlier than now once
    /// it has outlived its estimate. A suspended job counts as if it resumed at the top gear now.
    pub fn estimated_end_s(&self, job: JobId) -> Option<f64> {
        self.entry(job).map(|entry| self.estimated_end(&self.running[entry]))
    }

    /// What is left of a job that holds procs, at its gear: of its estimate, negative once it has outlived it, and of its
    /// true run time (s); and whether the job executes.
    #[inline]
    pub(crate) fn left_s(&self, job: JobId) -> Option<([f64; 2], bool)> {
        let run = &self.running[self.entry(job)?];
        let factor = self.gear_of(run).time_factor;
        let since_s = if run.executing { self.now_s - run.since_s } else { 0.0 };
        let left_s = [run.estimate_left_s, run.run_left_s].map(|left_s| left_s * factor - since_s);
        Some((left_s, run.executing))
    }

    /// Rest of the estimate of a suspended job, at the top gear (s); `None` for another job.
    pub(crate) fn suspended_left_s(&self, job: JobId) -> Option<f64> {
        self.entry(job).map(|entry| &self.running[entry]).filter(|run| !run.executing).map(|run| run.estimate_left_s)
    }

    /// Number of changes of running jobs' estimated ends: by another gear, a suspension or a resumption. A policy that
    /// keeps estimated ends compares this number to see whether they still hold.
    pub fn rescheduled_count(&self) -> u64 {
        self.rescheduled_count
    }

    /// Number of changes of the states and powers of procs.
    pub(crate) fn proc_changes_count(&self) -> u64 {
        self.meter.changes_count
    }

    /// Power of the whole machine now (W).
    pub fn power_w(&self) -> f64 {
        self.meter.power_now_w()
    }
}
