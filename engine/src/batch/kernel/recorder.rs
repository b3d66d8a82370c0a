//! Recorders: the records of finished jobs.
use crate::batch::job_record::JobRecord;
use crate::limits::list_bytes;
use crate::summary::Outcome;
use crate::workload::Job;

/// A finished job, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finished {
    /// Index of the job in the workload.
    pub index: usize,
    /// Time in which the job held procs without executing (s).
    pub suspended_s: f64,
    /// Its schedule.
    pub outcome: Outcome,
}

/// Receives each job as it ends.
pub trait Recorder: Clone {
    /// A waiting job has started.
    #[inline(always)]
    fn started(&mut self, job: &Job, now_s: f64) {
        let _ = (job, now_s);
    }

    /// A job has ended.
    fn finished(&mut self, job: &Finished);
    /// Bytes held, for the memory limit.
    fn bytes(&self) -> usize;
}

/// Keeps an [`Outcome`] of each job for the summary, in workload order.
#[derive(Debug, Clone)]
pub struct Outcomes {
    outcomes: Vec<Outcome>,
}

impl Outcomes {
    /// A recorder for a number of jobs.
    pub fn new(jobs: usize) -> Outcomes {
        let none = Outcome { start_s: f64::NAN, finish_s: f64::NAN, energy_j: 0.0, gear_index: 0, backfilled: false };
        Outcomes { outcomes: vec![none; jobs] }
    }

    /// The outcomes in workload order; jobs that have not ended have NaN times.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
}

impl Recorder for Outcomes {
    #[inline]
    fn finished(&mut self, job: &Finished) {
        self.outcomes[job.index] = job.outcome;
    }

    fn bytes(&self) -> usize {
        list_bytes(&self.outcomes)
    }
}

/// Keeps [`Outcomes`] and the other values of the `jobs` table.
#[derive(Debug, Clone)]
pub struct JobRows {
    outcomes: Outcomes,
    suspended_s: Vec<f64>,
}

impl JobRows {
    /// A recorder for a number of jobs.
    pub fn new(jobs: usize) -> JobRows {
        JobRows { outcomes: Outcomes::new(jobs), suspended_s: vec![0.0; jobs] }
    }

    /// The outcomes in workload order.
    pub fn outcomes(&self) -> &[Outcome] {
        self.outcomes.outcomes()
    }

    /// Fills `rows` with a record of each job, in workload order.
    pub fn write(&self, jobs: &[Job], rows: &mut Vec<JobRecord>) {
        rows.clear();
        rows.extend(jobs.iter().zip(self.outcomes()).zip(&self.suspended_s).map(|((job, outcome), suspended_s)| {
            JobRecord {
                job_id: job.id,
                submit_s: job.submit_s,
                start_s: outcome.start_s,
                finish_s: outcome.finish_s,
                run_s: outcome.finish_s - outcome.start_s - suspended_s,
                run_top_s: job.run_s,
                requested_s: job.estimate_s,
                predicted_s: None,
                corrections_count: None,
                procs: job.procs,
                node_list: None,
                gear_index: outcome.gear_index,
                energy_j: outcome.energy_j,
                backfilled: outcome.backfilled,
                killed: job.killed,
                priority: job.priority,
                job_class: u32::from(job.class) + 1,
                suspended_s: *suspended_s,
            }
        }));
    }
}

impl Recorder for JobRows {
    #[inline]
    fn finished(&mut self, job: &Finished) {
        self.outcomes.finished(job);
        self.suspended_s[job.index] = job.suspended_s;
    }

    fn bytes(&self) -> usize {
        self.outcomes.bytes() + list_bytes(&self.suspended_s)
    }
}
