//! Computes the summary from outcomes and integrals.
use super::sum::{Sum, Sums, ratio};
use super::tally::Tally;
use super::{Integrals, Outcome, Summary, window};
use crate::spec::Choice;
use crate::workload::Job;

/// Seconds in an hour.
const SECONDS_PER_HOUR: f64 = 3600.0;

/// Computes the summary of one simulation.
///
/// `statistics`: the choice with warm-up, cool-down and `bsld_tau_s`. `jobs`: as simulated, in workload order, procs after
/// `wide_jobs`. `outcomes`: one for each job, in the same order. `gears`: number of gears of the machine. `fcfs_starts`:
/// start of each job under strict first come, first served, if fairness is measured. `sla_slowdown`: the service level.
///
/// [`super::check`] must have succeeded before the simulation; without a job to measure the means would be NaN.
///
/// # Panics
/// If the slices differ in length or a gear is not below `gears`: a bug of the caller.
pub fn summarize(
    statistics: &Choice,
    jobs: &[Job],
    outcomes: &[Outcome],
    integrals: &Integrals,
    gears: usize,
    fcfs_starts: Option<&[f64]>,
    sla_slowdown: f64,
) -> Summary {
    assert_eq!(jobs.len(), outcomes.len(), "one outcome for each job");
    let measured = window::measured(statistics, jobs, outcomes);
    let mut all = AllJobs::new(jobs, &measured);
    let mut tally = Tally::new(measured.len(), gears, statistics.real("bsld_tau_s"), sla_slowdown);
    for range in [0..measured.start, measured.clone(), measured.end..jobs.len()] {
        // A block of jobs at a time, see [`BLOCK`].
        for (jobs, outcomes) in jobs[range.clone()].chunks(BLOCK).zip(outcomes[range.clone()].chunks(BLOCK)) {
            let area = all.add(jobs, outcomes);
            if range == measured {
                all.window.area.add(area);
                tally.add(jobs, outcomes);
            }
        }
    }
    let mut summary = Summary {
        jobs_count: jobs.len() as u64,
        measured_jobs_count: measured.len() as u64,
        warmup_jobs_count: measured.start as u64,
        cooldown_jobs_count: (jobs.len() - measured.end) as u64,
        killed_count: all.killed,
        ..Summary::default()
    };
    all.fill(&mut summary, integrals);
    tally.fill(&mut summary);
    fill_integrals(&mut summary, integrals);
    if let Some(starts) = fcfs_starts {
        assert_eq!(starts.len(), jobs.len(), "one start under strict order for each job");
        fill_fairness(&mut summary, &outcomes[measured.clone()], &starts[measured]);
    }
    summary
}

/// Number of jobs whose terms are added plainly before the compensated sums take the total: small enough that a plain sum
/// is as exact as its terms, large enough that the cost of compensation is negligible.
const BLOCK: usize = 64;

/// `f64::max` without the handling of NaN, which no time is.
#[inline(always)]
pub(super) fn greatest(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// `f64::min` without the handling of NaN.
#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Sums over all simulated jobs, measured or not.
struct AllJobs {
    killed: u64,
    /// In the order of [`AllJobs::add`].
    sums: Sums<5>,
    first_submit: f64,
    last_submit: f64,
    window: Window,
}

/// The measured window: first to last submit of a measured job.
struct Window {
    begin: f64,
    end: f64,
    area: Sum,
    completed: u64,
}

impl AllJobs {
    fn new(jobs: &[Job], measured: &std::ops::Range<usize>) -> AllJobs {
        let submit = |job: Option<&Job>| job.map_or(f64::NAN, |j| j.submit_s);
        let inside = &jobs[measured.clone()];
        let (begin, end) = (submit(inside.first()), submit(inside.last()));
        AllJobs {
            killed: 0,
            sums: Sums::default(),
            first_submit: submit(jobs.first()),
            last_submit: submit(jobs.last()),
            window: Window { begin, end, area: Sum::default(), completed: 0 },
        }
    }

    /// Adds a block of jobs; returns their sum of procs * run time.
    #[inline]
    fn add(&mut self, jobs: &[Job], outcomes: &[Outcome]) -> f64 {
        let (begin, end) = (self.window.begin, self.window.end);
        let (mut wait, mut energy, mut busy, mut area, mut window) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut killed, mut completed) = (0, 0);
        for (job, outcome) in jobs.iter().zip(outcomes) {
            let procs = f64::from(job.procs);
            let overlap = least(outcome.finish_s, end) - greatest(outcome.start_s, begin);
            wait += outcome.start_s - job.submit_s;
            energy += outcome.energy_j;
            busy += procs * (outcome.finish_s - outcome.start_s);
            area += procs * job.run_s;
            window += procs * greatest(overlap, 0.0);
            killed += u64::from(job.killed);
            completed += u64::from((outcome.finish_s >= begin) & (outcome.finish_s <= end));
        }
        self.killed += killed;
        self.window.completed += completed;
        self.sums.add_each([wait, energy, busy, area, window]);
        area
    }

    fn fill(&self, summary: &mut Summary, integrals: &Integrals) {
        let [wait, energy, busy, area, window_busy] = self.sums.values();
        let procs = f64::from(integrals.machine_procs);
        let submits = procs * (self.last_submit - self.first_submit);
        summary.offered_load = ratio(area, submits);
        let window = &self.window;
        let length = window.end - window.begin;
        (summary.window_begin_s, summary.window_end_s) = (window.begin, window.end);
        summary.window_utilization = ratio(window_busy, procs * length);
        summary.window_offered_load = ratio(window.area.value(), procs * length);
        summary.window_throughput_jobs_per_h = ratio(SECONDS_PER_HOUR * window.completed as f64, length);

        summary.little_residual = residual(integrals.queue_length_s, wait, wait);
        // Jobs hold their procs while they are suspended.
        let metered = integrals.busy_proc_s.iter().sum::<f64>() + integrals.suspended_proc_s;
        summary.busy_residual = residual(metered, busy, busy);
        let total = integrals.energy_total_j();
        let resting = integrals.energy_idle_j + integrals.energy_asleep_j + integrals.energy_transition_j;
        let of_no_job = resting + integrals.energy_static_j;
        summary.energy_residual = residual(total - of_no_job, energy, total);
        let capacity = procs * (integrals.last_finish_s - integrals.first_submit_s);
        let parts = metered + integrals.idle_proc_s + integrals.asleep_proc_s + integrals.transition_proc_s;
        summary.procs_residual = residual(parts, capacity, capacity);
    }
}

/// Fills the fields from the kernel's integrals, and energies by job and by time.
fn fill_integrals(summary: &mut Summary, integrals: &Integrals) {
    let span = integrals.last_finish_s - integrals.first_submit_s;
    let capacity = f64::from(integrals.machine_procs) * span;
    let busy: f64 = integrals.busy_proc_s.iter().sum();
    summary.clamped_count = integrals.clamped_count;
    summary.dropped_wide_count = integrals.dropped_wide_count;
    summary.dropped_over_cap_count = integrals.dropped_over_cap_count;
    summary.events_count = integrals.events_count;
    summary.machine_procs = integrals.machine_procs;
    summary.first_submit_s = integrals.first_submit_s;
    summary.last_finish_s = integrals.last_finish_s;
    summary.makespan_s = span;

    summary.gear_busy_proc_s.clone_from(&integrals.busy_proc_s);
    summary.gear_residence_share = integrals.busy_proc_s.iter().filter_map(|&s| ratio(s, busy)).collect();
    summary.gear_changes_count = integrals.gear_changes_count;
    summary.utilization_active = ratio(busy, integrals.active_proc_s);
    summary.utilization_installed = ratio(busy, capacity);
    summary.active_savings = ratio(integrals.active_proc_s, capacity).map(|active| 1.0 - active);
    summary.active_procs_mean = ratio(integrals.active_proc_s, span);
    summary.active_changes_count = active_changes(integrals);
    summary.throughput_jobs_per_h = ratio(SECONDS_PER_HOUR * summary.jobs_count as f64, span);
    summary.loss_of_capacity = ratio(integrals.lost_proc_s, capacity);
    summary.queue_length_mean = ratio(integrals.queue_length_s, span);
    summary.queue_length_max = integrals.queue_length_max;
    summary.backlog_proc_s_mean = ratio(integrals.backlog_proc_s2, span);
    summary.backlog_proc_s_max = integrals.backlog_proc_s_max;

    summary.energy_computational_j = integrals.energy_busy_j;
    summary.energy_idle_j = integrals.energy_idle_j;
    summary.energy_asleep_j = integrals.energy_asleep_j;
    summary.energy_transition_j = integrals.energy_transition_j;
    summary.energy_total_j = integrals.energy_total_j();
    summary.energy_static_j = (integrals.energy_static_j > 0.0).then_some(integrals.energy_static_j);
    summary.energy_per_job_j = summary.energy_total_j / summary.jobs_count as f64;
    summary.energy_delay_product_js = summary.energy_total_j * summary.turnaround_s_mean;
    summary.power_mean_w = ratio(summary.energy_total_j, span);
    summary.power_p95_w = integrals.power_p95_w;
    summary.power_peak_w = integrals.power_peak_w;
    summary.busy_proc_h = busy / SECONDS_PER_HOUR;
    summary.idle_proc_h = integrals.idle_proc_s / SECONDS_PER_HOUR;
    summary.asleep_proc_h = integrals.asleep_proc_s / SECONDS_PER_HOUR;
    summary.transition_proc_h = integrals.transition_proc_s / SECONDS_PER_HOUR;
}

/// Number of changes of the active procs. All are active before the first submit, at which the first step begins.
fn active_changes(integrals: &Integrals) -> u64 {
    let procs = integrals.active_steps.iter().map(|&(_, procs)| procs);
    let before = std::iter::once(integrals.machine_procs).chain(procs.clone());
    before.zip(procs).filter(|(before, procs)| before != procs).count() as u64
}

/// Fills the delays against strict first come, first served.
fn fill_fairness(summary: &mut Summary, outcomes: &[Outcome], fcfs_starts: &[f64]) {
    let (mut sum, mut max, mut delayed) = (Sum::default(), 0.0_f64, 0);
    for (outcome, fcfs) in outcomes.iter().zip(fcfs_starts) {
        let delay = (outcome.start_s - fcfs).max(0.0);
        sum.add(delay);
        max = max.max(delay);
        delayed += u64::from(delay > 0.0);
    }
    summary.fairness_delay_s_mean = ratio(sum.value(), outcomes.len() as f64);
    summary.fairness_delay_s_max = Some(max);
    summary.fairness_delayed_count = Some(delayed);
}

/// Difference of two values that should be equal, relative to a scale of at least 1.
fn residual(a: f64, b: f64, scale: f64) -> f64 {
    (a - b).abs() / scale.max(1.0)
}
