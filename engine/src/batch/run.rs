//! Simulates batch jobs: from a spec and a workload to a summary.
use std::borrow::Cow;

use super::job_needs::JobNeeds;
use super::job_power::JobPowers;
use super::kernel::{EventOrder, JobRows, Outcomes, Policy, Recorder, Simulation};
use super::platform::Machine;
use super::policy::batch::{self, Batch};
use super::policy::cap::CapReach;
use super::policy::composed::Composed;
use super::prediction::Predictions;
use super::{nodes, weekly};
use crate::details::Details;
use crate::energy::{EnergySplit, Idle, Splitter};
use crate::error::SimError;
use crate::limits::Limits;
use crate::series::SeriesPoint;
use crate::spec::{Role, SimSpec};
use crate::summary::{self, Integrals, Outcome, PowerIntegrals, Predicted, Summary};
use crate::workload::{Job, Workload, tracsim};

/// Simulates a spec without problems to the end.
///
/// # Errors
/// See [`SimError`].
pub(crate) fn simulate(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<Summary, SimError> {
    let prepared = Prepared::new(spec, workload)?;
    let statistics = spec.choice(Role::Statistics);
    summary::check(statistics, &prepared.jobs)?;
    let fcfs_starts = if statistics.bool("fairness") { Some(prepared.strict_fcfs_starts(limits)?) } else { None };
    let priorities = has_priorities(spec);
    let Details { jobs: rows, series, energy } = details;
    let split = energy.clone();
    let mut finish = |outcomes: &[Outcome], measures: Measures, series: &mut Option<Vec<SeriesPoint>>| {
        let Measures { integrals, power, splitter, predicted } = measures;
        if let Some((energy, splitter)) = energy.as_mut().zip(splitter) {
            energy.finish(splitter, &prepared.jobs, outcomes)?;
        }
        let gears = prepared.machine.gears.len();
        let integrals = Integrals {
            clamped_count: prepared.clamped_count,
            dropped_wide_count: prepared.dropped_wide_count,
            dropped_over_cap_count: prepared.dropped_over_cap_count,
            ..integrals
        };
        let sla = summary::sla_slowdown(spec);
        if let Some(points) = series {
            weekly::record(points, workload, &prepared.jobs, outcomes, &integrals, sla);
            points.sort_by(|a, b| a.series.cmp(b.series).then(a.level.cmp(&b.level)));
        }
        let starts = fcfs_starts.as_deref();
        let mut summary = summary::summarize(statistics, &prepared.jobs, outcomes, &integrals, gears, starts, sla);
        summary::fill_kinds(&mut summary, statistics, &prepared.jobs, outcomes, priorities);
        if let Some(powers) = &prepared.powers {
            let (count, share) = powers.measured(&prepared.jobs);
            (summary.power_measured_jobs_count, summary.power_measured_share) = (Some(count), share);
        }
        if let Some(needs) = &prepared.needs {
            let measured = summary::measured(statistics, &prepared.jobs, outcomes);
            needs.fill(&mut summary, &prepared.machine, (&prepared.jobs, outcomes), measured);
        }
        if let Some(predicted) = &predicted {
            let measured = summary::measured(statistics, &prepared.jobs, outcomes);
            summary::fill_predictions(&mut summary, &prepared.jobs, outcomes, predicted, measured);
        }
        if let Some(power) = power {
            summary::fill_power(&mut summary, &power, &integrals);
        }
        Ok(summary)
    };
    let split = split.as_ref();
    if let Some(rows) = rows {
        let (recorder, measures) = prepared.run(spec, limits, JobRows::new(prepared.jobs.len()), series, split)?;
        recorder.write(&prepared.jobs, rows);
        if statistics.bool("node_lists") {
            let lists = nodes::lists(prepared.machine.procs, &prepared.jobs, recorder.outcomes());
            rows.iter_mut().zip(lists).for_each(|(row, list)| row.node_list = Some(list));
        }
        for (row, predicted) in rows.iter_mut().zip(measures.predicted.iter().flatten()) {
            (row.predicted_s, row.corrections_count) = (Some(predicted.first_s), Some(predicted.corrections_count));
        }
        finish(recorder.outcomes(), measures, series)
    } else {
        let (recorder, measures) = prepared.run(spec, limits, Outcomes::new(prepared.jobs.len()), series, split)?;
        finish(recorder.outcomes(), measures, series)
    }
}

/// The measures of a run besides its jobs.
struct Measures {
    integrals: Integrals,
    /// Integrals of the watched machine.
    power: Option<PowerIntegrals>,
    /// The energy split at the changes of signals.
    splitter: Option<Splitter>,
    /// The predictions of all jobs; `None` without a predictor.
    predicted: Option<Vec<Predicted>>,
}

/// Whether the jobs of a spec have priorities from the generator or the log.
fn has_priorities(spec: &SimSpec) -> bool {
    spec.choice(Role::Source).component().name == tracsim::COMPONENT.name
        || spec.choice(Role::Rules).text("priority_from") != "none"
}

/// A workload on its machine, with checked jobs that fit.
struct Prepared<'w> {
    machine: Machine,
    /// The workload's own jobs unless `wide_jobs` or `over_cap_jobs` changed some.
    jobs: Cow<'w, [Job]>,
    /// Measured powers, if jobs draw them.
    powers: Option<JobPowers<'w>>,
    /// User of each record.
    users: &'w [i32],
    /// What jobs need of the pools of the machine, if it has some.
    needs: Option<JobNeeds>,
    clamped_count: u64,
    dropped_wide_count: u64,
    dropped_over_cap_count: u64,
}

impl<'w> Prepared<'w> {
    fn new(spec: &'w SimSpec, workload: &'w Workload) -> Result<Prepared<'w>, SimError> {
        let machine = Machine::new(spec, workload.native_procs)?;
        let widest = check_jobs(&workload.jobs, &machine)?;
        let mut prepared = Prepared {
            machine,
            jobs: Cow::Borrowed(&workload.jobs),
            powers: JobPowers::new(spec, workload),
            users: &workload.users,
            needs: None,
            clamped_count: 0,
            dropped_wide_count: 0,
            dropped_over_cap_count: 0,
        };
        if widest > prepared.machine.procs {
            prepared.fit_wide_jobs(spec.choice(Role::Rules).text("wide_jobs"))?;
        }
        prepared.drop_over_cap_jobs(spec)?;
        prepared.fit_needs(spec.choice(Role::Rules).text("wide_jobs"), workload)?;
        if prepared.jobs.is_empty() {
            return Err(SimError::Empty(prepared.why_empty(workload.jobs.len())));
        }
        Ok(prepared)
    }

    /// Applies `over_cap_jobs`.
    fn drop_over_cap_jobs(&mut self, spec: &SimSpec) -> Result<(), SimError> {
        let Some(reach) = CapReach::new(spec, &self.machine).filter(|reach| reach.drops) else { return Ok(()) };
        let scales = self.powers.as_ref().map(|powers| powers.scales(&self.jobs, &self.machine)).transpose()?;
        let scale = |at: usize| scales.as_ref().map_or(1.0, |scales| scales.known(at));
        let admits = |(at, job): (usize, &Job)| reach.admits(job.procs, job.class, scale(at));
        if !self.jobs.iter().enumerate().all(admits) {
            let admitted: Vec<Job> =
                self.jobs.iter().enumerate().filter(|job| admits(*job)).map(|(_, job)| job.clone()).collect();
            self.dropped_over_cap_count = (self.jobs.len() - admitted.len()) as u64;
            self.jobs = Cow::Owned(admitted);
        }
        Ok(())
    }

    /// Applies `wide_jobs` to the jobs that need more of a pool than the machine has.
    fn fit_needs(&mut self, wide_jobs: &str, workload: &Workload) -> Result<(), SimError> {
        if self.machine.pools.is_empty() {
            return Ok(());
        }
        let fitted = JobNeeds::fitted(&mut self.jobs, &self.machine, &workload.needs, wide_jobs)?;
        self.clamped_count += fitted.clamped_count;
        self.dropped_wide_count += fitted.dropped_count;
        self.needs = Some(fitted.needs);
        Ok(())
    }

    fn why_empty(&self, before: usize) -> String {
        let over_cap = match self.dropped_over_cap_count {
            0 => String::new(),
            count => format!("; {count} exceeded every cap of the schedule"),
        };
        let wide = self.dropped_wide_count;
        if before == 0 {
            "it had none".to_owned()
        } else {
            format!("{wide} of {before} jobs were wider than the machine{over_cap}")
        }
    }

    /// Applies `wide_jobs` to the jobs that need more procs than the machine has.
    fn fit_wide_jobs(&mut self, rule: &str) -> Result<(), SimError> {
        let machine_procs = self.machine.procs;
        let wide: Vec<&Job> = self.jobs.iter().filter(|job| job.procs > machine_procs).collect();
        let count = wide.len() as u64;
        match (rule, wide.first()) {
            ("clamp", _) => {
                self.jobs.to_mut().iter_mut().for_each(|job| job.procs = job.procs.min(machine_procs));
                self.clamped_count = count;
            }
            ("drop", _) => {
                self.jobs.to_mut().retain(|job| job.procs <= machine_procs);
                self.dropped_wide_count = count;
            }
            (_, Some(&&Job { id: job_id, record, procs, .. })) => {
                return Err(SimError::TooWide { job_id, record, procs, machine_procs });
            }
            (_, None) => {}
        }
        Ok(())
    }

    fn run<R: Recorder>(
        &self,
        spec: &SimSpec,
        limits: &Limits<'_>,
        recorder: R,
        series: &mut Option<Vec<SeriesPoint>>,
        split: Option<&EnergySplit>,
    ) -> Result<(R, Measures), SimError> {
        let order = batch::event_order(spec)?;
        if Composed::is_needed(spec) {
            let policy = Composed::new(spec, &self.machine, series.is_some())?;
            let (recorder, measures, policy) = self.run_policy(Some(spec), order, limits, recorder, policy, split)?;
            Ok((recorder, Measures { power: policy.finish(series.as_mut()), ..measures }))
        } else {
            let policy = Batch::new(spec, &self.machine)?;
            let (recorder, measures, _) = self.run_policy(Some(spec), order, limits, recorder, policy, split)?;
            Ok((recorder, measures))
        }
    }

    fn run_policy<R: Recorder, P: Policy>(
        &self,
        spec: Option<&SimSpec>,
        order: EventOrder,
        limits: &Limits<'_>,
        recorder: R,
        policy: P,
        split: Option<&EnergySplit>,
    ) -> Result<(R, Measures, P), SimError> {
        let mut simulation = Simulation::new(&self.jobs, self.machine.clone(), limits, order, policy, recorder);
        if let Some(powers) = &self.powers {
            simulation.cluster.set_scales(powers.scales(&self.jobs, &self.machine)?);
        }
        if let Some(needs) = &self.needs {
            simulation.cluster.set_needs(needs.by_job.clone());
        }
        if let Some(spec) = spec {
            simulation.set_predictions(Predictions::of(spec, &self.jobs, self.users), batch::passes(spec));
        }
        if let Some(energy) = split {
            let last_submit_s = self.jobs.last().map_or(f64::INFINITY, |job| job.submit_s);
            let idle = Idle { power_w: self.machine.idle_w(), last_submit_s };
            simulation.split(energy, idle, limits.max_bytes);
        }
        simulation.run()?;
        let (splitter, predicted) = (simulation.take_splitter(), simulation.cluster.take_predictions());
        let measures = Measures { integrals: simulation.integrals(), power: None, splitter, predicted };
        let (recorder, policy) = simulation.into_parts();
        Ok((recorder, measures, policy))
    }

    /// When each job would start under strict first come, first served at the top gear (s).
    fn strict_fcfs_starts(&self, limits: &Limits<'_>) -> Result<Vec<f64>, SimError> {
        let (recorder, policy) = (Outcomes::new(self.jobs.len()), Batch::strict_fcfs(&self.machine));
        let (recorder, ..) = self.run_policy(None, EventOrder::Batch, limits, recorder, policy, None)?;
        Ok(recorder.outcomes().iter().map(|outcome| outcome.start_s).collect())
    }
}

/// Checks the kernel's preconditions on jobs, which `workload::build` meets and other callers may not. Returns the
/// procs of the widest job.
fn check_jobs(jobs: &[Job], machine: &Machine) -> Result<u32, SimError> {
    if jobs.len() >= JOBS_MAX {
        return Err(SimError::Invalid(format!("{} jobs are too many for one simulation ({JOBS_MAX})", jobs.len())));
    }
    // NaN is in no range.
    let time = |t: f64| (0.0..f64::INFINITY).contains(&t);
    // A machine with one table for all jobs accepts every class.
    if machine.job_classes() > 1
        && let Some(problem) = jobs.iter().find_map(|job| machine.job_class_problem(job.id, job.class))
    {
        return Err(SimError::Invalid(problem));
    }
    let valid =
        |job: &Job| (job.submit_s.abs() < f64::INFINITY) & time(job.run_s) & time(job.estimate_s) & (job.procs >= 1);
    // Without branches, because nearly every job is valid.
    let (mut good, mut widest, mut before_s) = (true, 0, f64::NEG_INFINITY);
    for job in jobs {
        good &= valid(job) & (before_s <= job.submit_s);
        widest = widest.max(job.procs);
        before_s = job.submit_s;
    }
    if good {
        return Ok(widest);
    }
    if let Some(job) = jobs.iter().find(|job| !valid(job)) {
        return Err(SimError::Invalid(format!(
            "job {} (record {}) cannot be simulated: submit {} s, run {} s, estimate {} s, {} procs",
            job.id, job.record, job.submit_s, job.run_s, job.estimate_s, job.procs
        )));
    }
    if let Some(pair) = jobs.windows(2).find(|pair| pair[0].submit_s > pair[1].submit_s) {
        return Err(SimError::Invalid(format!(
            "job {} (submit {} s) comes after job {} (submit {} s): jobs must be sorted by submit time",
            pair[1].id, pair[1].submit_s, pair[0].id, pair[0].submit_s
        )));
    }
    Ok(widest)
}

/// Greatest number of jobs: their numbers have 32 bits, and a few numbers have other meanings.
const JOBS_MAX: usize = u32::MAX as usize - 16;
