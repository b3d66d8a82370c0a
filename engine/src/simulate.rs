//! From a spec and a workload to a summary.
use std::borrow::Cow;

use crate::kernel::{EventOrder, JobRows, Outcomes, Policy, Recorder, Simulation};
use crate::platform::Machine;
use crate::policy::batch::{self, Batch};
use crate::policy::composed::Composed;
use crate::queueing;
use crate::registry::Slot;
use crate::summary::{self, Integrals, Outcome, Summary};
use crate::workload::{Job, Workload};
use crate::{Details, Limits, Measured, SimError, SimSpec, weekly};

/// Runs one simulation to its end.
///
/// `details`: optional tables to fill.
///
/// # Errors
/// See [`SimError`] for which are final and which may be tried again.
pub fn simulate(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<Measured, SimError> {
    details.clear();
    let measured = if queueing::is_model(spec) {
        queueing::simulate(spec, limits, details).map(|summary| Measured::Queues(Box::new(summary)))
    } else {
        simulate_jobs(spec, workload, limits, details).map(|summary| Measured::Jobs(Box::new(summary)))
    };
    debug_assert!(details.declared(), "a part records a series that is not declared in `series::SERIES`");
    measured
}

fn simulate_jobs(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<Summary, SimError> {
    let prepared = Prepared::new(spec, workload)?;
    let statistics = spec.part(Slot::Statistics);
    summary::check(statistics, &prepared.jobs)?;
    let fcfs_starts = if statistics.bool("fairness") { Some(prepared.strict_fcfs_starts(limits)?) } else { None };
    let finish = |outcomes: &[Outcome], integrals: Integrals| {
        let gears = prepared.machine.classes[0].gears.len();
        let integrals = Integrals {
            clamped_count: prepared.clamped_count,
            dropped_wide_count: prepared.dropped_wide_count,
            ..integrals
        };
        let sla = summary::sla_slowdown(spec);
        summary::summarize(statistics, &prepared.jobs, outcomes, &integrals, gears, fcfs_starts.as_deref(), sla)
    };
    let series = &mut details.series;
    let mut finish = |outcomes: &[Outcome], integrals: Integrals| {
        if let Some(points) = series {
            weekly::record(points, workload, &prepared.jobs, outcomes, &integrals, summary::sla_slowdown(spec));
        }
        finish(outcomes, integrals)
    };
    if let Some(rows) = &mut details.jobs {
        let (recorder, integrals) = prepared.run(spec, limits, JobRows::new(prepared.jobs.len()))?;
        recorder.write(&prepared.jobs, rows);
        Ok(finish(recorder.outcomes(), integrals))
    } else {
        let (recorder, integrals) = prepared.run(spec, limits, Outcomes::new(prepared.jobs.len()))?;
        Ok(finish(recorder.outcomes(), integrals))
    }
}

/// A workload on its machine: wide jobs dealt with, everything checked.
struct Prepared<'w> {
    machine: Machine,
    /// The workload's own jobs unless `wide_jobs` changed some.
    jobs: Cow<'w, [Job]>,
    clamped_count: u64,
    dropped_wide_count: u64,
}

impl<'w> Prepared<'w> {
    fn new(spec: &SimSpec, workload: &'w Workload) -> Result<Prepared<'w>, SimError> {
        if let Some(problem) = spec.problems().into_iter().next() {
            return Err(SimError::Invalid(problem));
        }
        let machine = Machine::new(spec, workload.native_procs)?;
        check_jobs(&workload.jobs)?;
        let mut prepared =
            Prepared { machine, jobs: Cow::Borrowed(&workload.jobs), clamped_count: 0, dropped_wide_count: 0 };
        prepared.fit_wide_jobs(spec.part(Slot::Rules).text("wide_jobs"))?;
        if prepared.jobs.is_empty() {
            let why = format!("{} of {} jobs were wider than the machine", workload.jobs.len(), workload.jobs.len());
            return Err(SimError::Empty(if workload.jobs.is_empty() { "it had none".to_owned() } else { why }));
        }
        Ok(prepared)
    }

    /// Applies `wide_jobs` to the jobs that need more procs than the machine has.
    fn fit_wide_jobs(&mut self, rule: &str) -> Result<(), SimError> {
        let machine_procs = self.machine.procs();
        let Some(first) = self.jobs.iter().find(|job| job.procs > machine_procs) else {
            return Ok(());
        };
        let jobs = match rule {
            "clamp" => {
                let mut jobs = self.jobs.to_vec();
                for job in jobs.iter_mut().filter(|job| job.procs > machine_procs) {
                    job.procs = machine_procs;
                    self.clamped_count += 1;
                }
                jobs
            }
            "drop" => {
                let jobs: Vec<Job> = self.jobs.iter().filter(|job| job.procs <= machine_procs).cloned().collect();
                self.dropped_wide_count = (self.jobs.len() - jobs.len()) as u64;
                jobs
            }
            _ => {
                return Err(SimError::TooWide {
                    job_id: first.id,
                    record: first.record,
                    procs: first.procs,
                    machine_procs,
                });
            }
        };
        self.jobs = Cow::Owned(jobs);
        Ok(())
    }

    fn run<R: Recorder>(&self, spec: &SimSpec, limits: &Limits<'_>, recorder: R) -> Result<(R, Integrals), SimError> {
        if Composed::is_needed(spec) {
            self.run_policy(spec, limits, recorder, Composed::new(spec, &self.machine)?)
        } else {
            self.run_policy(spec, limits, recorder, Batch::new(spec, &self.machine)?)
        }
    }

    fn run_policy<R: Recorder, P: Policy>(
        &self,
        spec: &SimSpec,
        limits: &Limits<'_>,
        recorder: R,
        policy: P,
    ) -> Result<(R, Integrals), SimError> {
        let order = batch::event_order(spec)?;
        let mut simulation = Simulation::new(&self.jobs, self.machine.clone(), limits, order, policy, recorder);
        simulation.run()?;
        let integrals = simulation.integrals();
        Ok((simulation.into_recorder(), integrals))
    }

    /// When each job would start under strict first come, first served at the top gear (s).
    fn strict_fcfs_starts(&self, limits: &Limits<'_>) -> Result<Vec<f64>, SimError> {
        let policy = Batch::strict_fcfs(&self.machine);
        let recorder = Outcomes::new(self.jobs.len());
        let order = EventOrder::Batch;
        let mut simulation = Simulation::new(&self.jobs, self.machine.clone(), limits, order, policy, recorder);
        simulation.run()?;
        Ok(simulation.recorder().outcomes().iter().map(|outcome| outcome.start_s).collect())
    }
}

/// What the kernel takes for granted about jobs. `workload::build` gives it; a caller may bring its own.
fn check_jobs(jobs: &[Job]) -> Result<(), SimError> {
    if jobs.len() >= JOBS_MAX {
        return Err(SimError::Invalid(format!("{} jobs are too many for one simulation ({JOBS_MAX})", jobs.len())));
    }
    // Comparisons with NaN are false. Without branches: nearly every job is valid.
    let time = |t: f64| (0.0..f64::INFINITY).contains(&t);
    let valid =
        |job: &Job| (job.submit_s.abs() < f64::INFINITY) & time(job.run_s) & time(job.estimate_s) & (job.procs >= 1);
    let sorted = |pair: &[Job]| pair[0].submit_s <= pair[1].submit_s;
    if jobs.iter().fold(true, |all, job| all & valid(job)) && jobs.windows(2).fold(true, |all, pair| all & sorted(pair))
    {
        return Ok(());
    }
    if let Some(job) = jobs.iter().find(|job| !valid(job)) {
        return Err(SimError::Invalid(format!(
            "job {} (record {}) cannot be simulated: submit {} s, run {} s, estimate {} s, {} procs",
            job.id, job.record, job.submit_s, job.run_s, job.estimate_s, job.procs
        )));
    }
    if let Some(pair) = jobs.windows(2).find(|pair| !sorted(pair)) {
        return Err(SimError::Invalid(format!(
            "job {} (submit {} s) comes after job {} (submit {} s): jobs must be sorted by submit time",
            pair[1].id, pair[1].submit_s, pair[0].id, pair[0].submit_s
        )));
    }
    Ok(())
}

/// Jobs are numbered in 32 bits, with a few numbers set aside.
const JOBS_MAX: usize = u32::MAX as usize - 16;
