//! Sums over the measured jobs, in one pass.
use super::measure::ratio;
use super::quantile;
use super::{Outcome, Summary, sum::Sum};
use crate::workload::Job;

/// Bound of Mu'alem & Feitelson's bounded slowdown and of Lawson & Smirni's slowdown (s).
const TAU_SHORT_S: f64 = 10.0;
/// Bound of the slowdown in Etinski et al. 2010 (s).
const TAU_ETINSKI_S: f64 = 600.0;

/// Sums over a class of jobs.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    count: u64,
    wait: Sum,
    bsld: Sum,
}

impl Class {
    #[inline(always)]
    fn add(&mut self, wait: f64, bsld: f64) {
        self.count += 1;
        self.wait.add(wait);
        self.bsld.add(bsld);
    }

    fn means(&self) -> (u64, Option<f64>, Option<f64>) {
        let count = self.count as f64;
        (self.count, ratio(self.wait.value(), count), ratio(self.bsld.value(), count))
    }
}

/// Position of a size among 1, 2-8, 9-32, 33 and more procs.
#[inline(always)]
fn size_class(procs: u32) -> usize {
    usize::from(procs > 1) + usize::from(procs > 8) + usize::from(procs > 32)
}

/// Position of a run time among under 10 min, 1 h, 8 h, and more.
#[inline(always)]
fn run_class(run_s: f64) -> usize {
    usize::from(run_s >= 600.0) + usize::from(run_s >= 3600.0) + usize::from(run_s >= 28_800.0)
}

/// Sums over the measured jobs.
pub(super) struct Tally {
    tau: f64,
    waits: Vec<f64>,
    turnarounds: Vec<f64>,
    turnaround: Sum,
    bsld: Sum,
    bsld_max: f64,
    bsld_etinski: Sum,
    lawson: Sum,
    slowdown: Sum,
    slowdown_count: u64,
    wait: Sum,
    bsld_short: Sum,
    procs: u64,
    wait_by_procs: Sum,
    bsld_by_procs: Sum,
    area: Sum,
    bsld_by_area: Sum,
    waited: u64,
    backfilled: u64,
    gears: Vec<u64>,
    sizes: [Class; 4],
    runs: [Class; 4],
}

impl Tally {
    pub(super) fn new(jobs: usize, gears: usize, tau: f64) -> Tally {
        Tally {
            tau,
            waits: Vec::with_capacity(jobs),
            turnarounds: Vec::with_capacity(jobs),
            turnaround: Sum::default(),
            bsld: Sum::default(),
            bsld_max: f64::NEG_INFINITY,
            bsld_etinski: Sum::default(),
            lawson: Sum::default(),
            slowdown: Sum::default(),
            slowdown_count: 0,
            wait: Sum::default(),
            bsld_short: Sum::default(),
            procs: 0,
            wait_by_procs: Sum::default(),
            bsld_by_procs: Sum::default(),
            area: Sum::default(),
            bsld_by_area: Sum::default(),
            waited: 0,
            backfilled: 0,
            gears: vec![0; gears],
            sizes: [Class::default(); 4],
            runs: [Class::default(); 4],
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, job: &Job, outcome: &Outcome) {
        let wait = outcome.start_s - job.submit_s;
        let turnaround = wait + (outcome.finish_s - outcome.start_s);
        let top = job.run_s;
        let bounded = |tau: f64| (turnaround / top.max(tau)).max(1.0);
        let short = bounded(TAU_SHORT_S);

        self.waits.push(wait);
        self.turnarounds.push(turnaround);
        self.wait.add(wait);
        self.turnaround.add(turnaround);
        self.bsld.add(bounded(self.tau));
        self.bsld_short.add(short);
        self.bsld_max = self.bsld_max.max(short);
        self.bsld_etinski.add(bounded(TAU_ETINSKI_S));
        self.lawson.add(1.0 + wait / top.max(TAU_SHORT_S));
        if top > 0.0 {
            self.slowdown.add(turnaround / top);
            self.slowdown_count += 1;
        }

        let procs = f64::from(job.procs);
        self.procs += u64::from(job.procs);
        self.wait_by_procs.add(procs * wait);
        self.bsld_by_procs.add(procs * short);
        self.area.add(procs * top);
        self.bsld_by_area.add(procs * top * short);

        self.waited += u64::from(wait > 0.0);
        self.backfilled += u64::from(outcome.backfilled);
        self.gears[usize::from(outcome.gear_index)] += 1;
        self.sizes[size_class(job.procs)].add(wait, short);
        self.runs[run_class(top)].add(wait, short);
    }

    /// Writes the fields over measured jobs.
    pub(super) fn fill(mut self, s: &mut Summary) {
        let count = self.waits.len() as f64;
        s.wait_s_mean = self.wait.value() / count;
        s.turnaround_s_mean = self.turnaround.value() / count;
        s.wait_s_sd = deviation(&self.waits, s.wait_s_mean);
        s.turnaround_s_sd = deviation(&self.turnarounds, s.turnaround_s_mean);
        let waits = quantile::of(&mut self.waits);
        (s.wait_s_p50, s.wait_s_p95, s.wait_s_p99, s.wait_s_max) = (waits.p50, waits.p95, waits.p99, waits.max);
        let turns = quantile::of(&mut self.turnarounds);
        (s.turnaround_s_p50, s.turnaround_s_p95) = (turns.p50, turns.p95);
        (s.turnaround_s_p99, s.turnaround_s_max) = (turns.p99, turns.max);

        s.bsld_mean = self.bsld.value() / count;
        s.bsld_tau10s_mean = self.bsld_short.value() / count;
        s.bsld_tau10s_max = self.bsld_max;
        s.bsld_tau600s_mean = self.bsld_etinski.value() / count;
        s.slowdown_lawson_tau10s_mean = self.lawson.value() / count;
        s.slowdown_mean = ratio(self.slowdown.value(), self.slowdown_count as f64);
        s.bsld_tau10s_procs_weighted_mean = self.bsld_by_procs.value() / self.procs as f64;
        s.bsld_tau10s_area_weighted_mean = ratio(self.bsld_by_area.value(), self.area.value());
        s.wait_s_procs_weighted_mean = self.wait_by_procs.value() / self.procs as f64;

        s.waited_count = self.waited;
        s.backfilled_count = self.backfilled;
        s.reduced_count = self.gears.iter().rev().skip(1).sum();
        s.gear_jobs_count = self.gears;
        fill_classes(s, &self.sizes, &self.runs);
    }
}

/// Writes the means by size class and by run class.
fn fill_classes(s: &mut Summary, sizes: &[Class; 4], runs: &[Class; 4]) {
    let [one, small, medium, large] = sizes.map(|c| c.means());
    (s.jobs_count_size_1, s.wait_s_mean_size_1, s.bsld_tau10s_mean_size_1) = one;
    (s.jobs_count_size_2_8, s.wait_s_mean_size_2_8, s.bsld_tau10s_mean_size_2_8) = small;
    (s.jobs_count_size_9_32, s.wait_s_mean_size_9_32, s.bsld_tau10s_mean_size_9_32) = medium;
    (s.jobs_count_size_33_up, s.wait_s_mean_size_33_up, s.bsld_tau10s_mean_size_33_up) = large;
    let [minutes, hour, hours, more] = runs.map(|c| c.means());
    (s.jobs_count_run_10min, s.wait_s_mean_run_10min, s.bsld_tau10s_mean_run_10min) = minutes;
    (s.jobs_count_run_1h, s.wait_s_mean_run_1h, s.bsld_tau10s_mean_run_1h) = hour;
    (s.jobs_count_run_8h, s.wait_s_mean_run_8h, s.bsld_tau10s_mean_run_8h) = hours;
    (s.jobs_count_run_8h_up, s.wait_s_mean_run_8h_up, s.bsld_tau10s_mean_run_8h_up) = more;
}

/// Sample standard deviation around a known mean; nothing with fewer than two values.
fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}
