//! Time and size of a sweep before it runs: a few of its tasks are simulated on a short part of their workloads.

use std::time::Duration;

use powersweep_engine::workload::{self, GENERATORS, Workload};
use powersweep_engine::{Details, Limits, Role, SimError, SimSpec, Value, simulate};
use powersweep_experiments::{Manifest, Sweep, TaskSpec};
use powersweep_inputs::library::ParsedLogs;
use powersweep_worker::task::processor_time;
use serde::Serialize;

use crate::plan::workload;

/// Tasks that are simulated, spread over the sweep.
const TASKS: u64 = 5;
/// Maximum number of jobs of a workload that are simulated.
const JOBS: u64 = 1_000;
/// Maximum processor time of one simulation: `plan` answers at once.
const DEADLINE: Duration = Duration::from_millis(40);
/// Assumed time of a job (s) in a sampled task whose simulation fails, such as a shortened workload of warm-up jobs only.
const JOB_S: f64 = 2e-6;
/// Time of a task beside its simulation (s): its row, its share of a lease and of a hand-in.
const TASK_S: f64 = 2e-5;
/// Bytes of a row of `tasks` in a part, measured.
const TASK_ROW_BYTES: f64 = 320.0;
/// Bytes of a row of `jobs` in a part, measured.
const JOB_ROW_BYTES: f64 = 20.0;
/// Bytes of a row of `series` in a part, measured.
const SERIES_ROW_BYTES: f64 = 3.0;

/// Time and size of the tasks that would run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Tasks: rows of the table `tasks`.
    #[serde(rename = "rows")]
    pub tasks: u64,
    /// Size of the parts (bytes).
    pub bytes: f64,
    /// Time of all tasks on one core (s).
    pub core_s: f64,
    /// Time of the longest of the simulated tasks on one core (s).
    pub longest_task_s: f64,
    /// A task took longer than it was measured: the time is a lower bound.
    #[serde(rename = "core_s_is_lower_bound")]
    pub is_least: bool,
    /// Jobs of a task, in the mean; `None` if the jobs are drawn during the run.
    pub jobs_each: Option<f64>,
    /// Rows of the table `series` of a task, in the mean; 0 without this table.
    pub series_each: f64,
    /// Whether the table `jobs` is written.
    #[serde(skip)]
    pub with_jobs: bool,
}

/// One measured task.
struct Sample {
    seconds: f64,
    jobs: Option<u64>,
    series: f64,
    is_least: bool,
}

impl Estimate {
    /// The estimate for the tasks of a sweep that would run; `None` without any, or if none can be measured. It simulates
    /// a few tasks on a short part of their workloads.
    pub fn of(sweep: &Sweep, to_run: u64, logs: &ParsedLogs) -> Option<Estimate> {
        let at = |k: u64| u128::from(sweep.index_count()) * u128::from(2 * k + 1) / u128::from(2 * TASKS);
        let index = |k: u64| sweep.next_included(u64::try_from(at(k)).ok()?).or_else(|| sweep.next_included(0));
        let samples: Vec<Sample> =
            (0..TASKS.min(to_run)).filter_map(|k| measure(&sweep.task(index(k)?)?, sweep.manifest(), logs)).collect();
        let count = samples.len() as f64;
        if samples.is_empty() {
            return None;
        }
        let with_jobs = sweep.manifest().tables().jobs;
        let jobs: Option<u64> = samples.iter().map(|sample| sample.jobs).sum();
        let jobs_each = jobs.map(|jobs| jobs as f64 / count);
        let job_rows = jobs_each.filter(|_| with_jobs).unwrap_or_default();
        let series_each = samples.iter().map(|sample| sample.series).sum::<f64>() / count;
        let bytes_each = TASK_ROW_BYTES + JOB_ROW_BYTES * job_rows + SERIES_ROW_BYTES * series_each;
        Some(Estimate {
            tasks: to_run,
            jobs_each,
            core_s: (samples.iter().map(|sample| sample.seconds).sum::<f64>() / count + TASK_S) * to_run as f64,
            longest_task_s: samples.iter().map(|sample| sample.seconds).fold(0.0, f64::max),
            is_least: samples.iter().any(|sample| sample.is_least),
            bytes: bytes_each * to_run as f64,
            series_each,
            with_jobs,
        })
    }
}

/// Simulates a task on a short part of its workload. The time of a log's reading is not the task's: a log is read once.
fn measure(task: &TaskSpec, manifest: &Manifest, logs: &ParsedLogs) -> Option<Sample> {
    let begun = processor_time();
    let (sim, workload, jobs) = shortened(task, logs)?;
    let prepared = processor_time();
    let limits = Limits { deadline_passed: &|| processor_time() - prepared >= DEADLINE, ..Limits::NONE };
    let mut details = Details { series: manifest.tables().series.then(Vec::new), ..Details::default() };
    let ended = simulate(&sim, &workload, &limits, &mut details);
    let counted_from = if task.digest.is_some() { prepared } else { begun };
    let seconds = (processor_time() - counted_from).as_secs_f64();
    let share = jobs.map_or(1.0, |jobs| jobs as f64 / workload.jobs.len().max(1) as f64);
    let points = details.series.iter().flatten().filter(|point| manifest.records(point.series)).count();
    let series = points as f64 * share;
    Some(match ended {
        Ok(_) => Sample { seconds: seconds * share, jobs, series, is_least: false },
        Err(SimError::Deadline) => Sample { seconds: seconds * share, jobs, series, is_least: true },
        Err(_) => Sample { seconds: jobs? as f64 * JOB_S, jobs, series, is_least: false },
    })
}

/// A task with at most [`JOBS`] jobs, and the number of jobs of the whole task.
fn shortened(task: &TaskSpec, logs: &ParsedLogs) -> Option<(SimSpec, Workload, Option<u64>)> {
    let mut sim = task.sim.clone();
    let source = *sim.choice(Role::Source).component();
    if let Some(jobs) = workload::generated_jobs(&sim) {
        let generator = GENERATORS.iter().find(|generator| generator.component == source)?;
        let short = i64::try_from(jobs.min(JOBS)).ok()?;
        sim.choice_mut(Role::Source).set(generator.jobs_count, Value::Int(short)).ok()?;
        let workload = workload::build(&sim, None).ok()?;
        return Some((sim, workload, Some(jobs)));
    }
    if task.digest.is_none() {
        // Jobs of queues are drawn during the run.
        return Some((sim, Workload::default(), None));
    }
    let whole = workload(task, logs).ok()?;
    let kept = whole.jobs.len().min(usize::try_from(JOBS).ok()?);
    let short = Workload {
        jobs: whole.jobs[..kept].to_vec(),
        log_waits_s: Vec::new(),
        powers: whole.powers.clone(),
        power_series: whole.power_series.clone(),
        needs: whole.needs.clone(),
        users: whole.users.clone(),
        ..*whole
    };
    Some((sim, short, Some(whole.jobs.len() as u64)))
}
