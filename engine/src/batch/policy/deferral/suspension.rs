//! Suspension of running jobs by a deferral rule.
//!
//! The rule is asked about a job when the job starts, and about all started jobs at the begin of each interval of the
//! signal. A suspended job resumes at the latest when the rest of its length must begin for it to end by its latest end:
//! its submission, its longest deferral and its length together. So time in the queue leaves less time for suspension.
use super::Rule;
use super::forecast::Forecast;
use super::rule::Ask;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::error::Result;

/// A deferrable job that has started.
#[derive(Debug, Clone, Copy)]
struct Started {
    job: JobId,
    /// Latest end by the job's estimate, and by its true run time (s).
    end_s: [f64; 2],
    /// While the job is suspended, the instant at which it must resume (s); infinite while it executes.
    resume_s: f64,
}

/// The started jobs that may be suspended.
#[derive(Debug, Clone)]
pub(super) struct Suspension {
    /// Whether the rule assumes true run times instead of estimates.
    of_run: bool,
    /// Jobs that may not be deferred, in the order of their submission.
    exempt: Vec<JobId>,
    started: Vec<Started>,
    /// Begin of the interval in which all were reviewed last (s).
    reviewed_s: f64,
    /// The first instant at which a suspended job must resume (s).
    resume_s: f64,
    /// Jobs that were suspended or resumed, until the backfilling rule is told.
    pub(super) changed: Vec<JobId>,
}

impl Suspension {
    pub(super) fn new(of_run: bool) -> Suspension {
        Suspension {
            of_run,
            exempt: Vec::new(),
            started: Vec::new(),
            reviewed_s: f64::NEG_INFINITY,
            resume_s: f64::INFINITY,
            changed: Vec::new(),
        }
    }

    /// An arrived job may not be deferred.
    pub(super) fn exempt(&mut self, job: JobId) {
        self.exempt.push(job);
    }

    /// Whether jobs have started that may be suspended and have not ended.
    pub(super) fn has_jobs(&self) -> bool {
        !self.started.is_empty()
    }

    /// The first instant at which a suspended job must resume (s).
    pub(super) fn resume_s(&self) -> f64 {
        self.resume_s
    }

    /// Whether the rule must be asked about the started jobs, with a forecast that was issued now.
    pub(super) fn is_due(&self, now_s: f64, forecast: &Forecast) -> bool {
        self.has_jobs() && (forecast.present_s() > self.reviewed_s || self.resume_s <= now_s)
    }

    /// Before a scheduling pass: asks the rule about each started job, and suspends or resumes it.
    pub(super) fn review<R: Recorder>(
        &mut self,
        rule: &mut Rule,
        forecast: &mut Forecast,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let changes = forecast.present_s() > self.reviewed_s;
        self.reviewed_s = forecast.present_s();
        self.resume_s = f64::INFINITY;
        cluster.count_steps(self.started.len() as u64)?;
        let mut kept = 0;
        for at in 0..self.started.len() {
            let mut started = self.started[at];
            if changes || started.resume_s <= cluster.now_s() {
                if !self.decide(&mut started, rule, forecast, cluster)? {
                    continue;
                }
            } else if !cluster.is_running(started.job) {
                continue;
            }
            self.resume_s = self.resume_s.min(started.resume_s);
            self.started[kept] = started;
            kept += 1;
        }
        self.started.truncate(kept);
        Ok(())
    }

    /// After a scheduling pass: asks the rule about a job that has started in it, if the job may be deferred.
    pub(super) fn started<R: Recorder>(
        &mut self,
        job: JobId,
        wait_max_s: f64,
        rule: &mut Rule,
        forecast: &mut Forecast,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        if self.exempt.binary_search(&job).is_ok() {
            return Ok(());
        }
        let latest_s = cluster.submit_s(job) + wait_max_s;
        let length_s = [cluster.estimate_s(job), cluster.true_run_s(job)].map(|length_s| length_s.max(1.0));
        let end_s = length_s.map(|length_s| latest_s + length_s);
        let mut started = Started { job, end_s, resume_s: f64::INFINITY };
        self.decide(&mut started, rule, forecast, cluster)?;
        self.resume_s = self.resume_s.min(started.resume_s);
        self.started.push(started);
        // Jobs that started earlier in this interval were reviewed in it.
        self.reviewed_s = forecast.present_s();
        Ok(())
    }

    /// Suspends or resumes a job as the rule says; `false` if the job has ended.
    #[inline(always)]
    fn decide<R: Recorder>(
        &mut self,
        started: &mut Started,
        rule: &mut Rule,
        forecast: &mut Forecast,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<bool> {
        let Some(([estimate_s, run_s], executed)) = cluster.left_s(started.job) else { return Ok(false) };
        let basis = usize::from(self.of_run);
        let rest_s = [estimate_s, run_s][basis].max(1.0);
        let (now_s, latest_s) = (cluster.now_s(), started.end_s[basis] - rest_s);
        let ask = Ask { now_s, latest_s, estimate_s, run_s };
        let executes = latest_s <= now_s || rule.executes(&ask, forecast);
        started.resume_s = if executes { f64::INFINITY } else { latest_s };
        if executes != executed {
            if executes {
                cluster.resume(started.job)?;
            } else {
                cluster.suspend(started.job)?;
            }
            self.changed.push(started.job);
        }
        Ok(true)
    }
}
