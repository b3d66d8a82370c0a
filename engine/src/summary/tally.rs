//! Sums over the measured jobs, in one pass.
use super::measure::greatest;
use super::quantile;
use super::sum::{Sums, ratio};
use super::{Outcome, Summary};
use crate::workload::Job;

/// Bound of Mu'alem & Feitelson's bounded slowdown and of Lawson & Smirni's slowdown (s).
const TAU_SHORT_S: f64 = 10.0;
/// Bound of the slowdown in Etinski et al. 2010 (s).
const TAU_ETINSKI_S: f64 = 600.0;

/// Waits and bounded slowdowns of a class of jobs.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    count: u64,
    sums: Sums<2>,
    /// Plain sums of the present block, which `sums` do not include yet.
    block: [f64; 2],
}

impl Class {
    #[inline(always)]
    fn add(&mut self, wait: f64, bsld: f64) {
        self.count += 1;
        self.block[0] += wait;
        self.block[1] += bsld;
    }

    #[inline]
    fn end_block(&mut self) {
        self.sums.add_each(std::mem::take(&mut self.block));
    }

    fn means(&self) -> (u64, Option<f64>, Option<f64>) {
        let count = self.count as f64;
        let [wait, bsld] = self.sums.values();
        (self.count, ratio(wait, count), ratio(bsld, count))
    }
}

/// Index of the size class: 1, 2-8, 9-32, 33 and more procs.
#[inline(always)]
fn size_class(procs: u32) -> usize {
    usize::from(procs > 1) + usize::from(procs > 8) + usize::from(procs > 32)
}

/// Index of the class of run times: under 10 min, under 1 h, under 8 h, and more.
#[inline(always)]
fn run_class(run_s: f64) -> usize {
    usize::from(run_s >= 600.0) + usize::from(run_s >= 3600.0) + usize::from(run_s >= 28_800.0)
}

/// Sums over the measured jobs.
pub(super) struct Tally {
    tau: f64,
    waits: Vec<f64>,
    turnarounds: Vec<f64>,
    /// In the order of [`Tally::add_job`].
    sums: Sums<12>,
    bsld_max: f64,
    slowdown_max: f64,
    slowdown_count: u64,
    procs: u64,
    waited: u64,
    sla: f64,
    over_sla: u64,
    backfilled: u64,
    gears: Vec<u64>,
    sizes: [Class; 4],
    runs: [Class; 4],
}

impl Tally {
    pub(super) fn new(jobs: usize, gears: usize, tau: f64, sla: f64) -> Tally {
        Tally {
            tau,
            waits: Vec::with_capacity(jobs),
            turnarounds: Vec::with_capacity(jobs),
            sums: Sums::default(),
            bsld_max: f64::NEG_INFINITY,
            slowdown_max: f64::NEG_INFINITY,
            slowdown_count: 0,
            procs: 0,
            waited: 0,
            sla,
            over_sla: 0,
            backfilled: 0,
            gears: vec![0; gears],
            sizes: [Class::default(); 4],
            runs: [Class::default(); 4],
        }
    }

    /// Adds a block of jobs and their outcomes.
    pub(super) fn add(&mut self, jobs: &[Job], outcomes: &[Outcome]) {
        let mut block = [0.0; 12];
        for (job, outcome) in jobs.iter().zip(outcomes) {
            self.add_job(job, outcome, &mut block);
        }
        self.sums.add_each(block);
        self.sizes.iter_mut().chain(&mut self.runs).for_each(Class::end_block);
    }

    #[inline(always)]
    fn add_job(&mut self, job: &Job, outcome: &Outcome, block: &mut [f64; 12]) {
        let wait = outcome.start_s - job.submit_s;
        let turnaround = wait + (outcome.finish_s - outcome.start_s);
        let top = job.run_s;
        let bounded = |tau: f64| greatest(turnaround / greatest(top, tau), 1.0);
        let at_least_short = greatest(top, TAU_SHORT_S);
        let relative = turnaround / at_least_short;
        let short = greatest(relative, 1.0);
        let procs = f64::from(job.procs);
        let area = procs * top;

        self.waits.push(wait);
        self.turnarounds.push(turnaround);
        block[0] += turnaround;
        block[1] += bounded(TAU_ETINSKI_S);
        let lawson = 1.0 + wait / at_least_short;
        block[2] += lawson;
        block[3] += procs * wait;
        block[4] += procs * short;
        block[5] += area;
        block[6] += area * short;
        if self.tau != TAU_SHORT_S {
            block[7] += bounded(self.tau);
        }
        if top > 0.0 {
            let slowdown = if top >= TAU_SHORT_S { relative } else { turnaround / top };
            block[8] += slowdown;
            block[9] += slowdown * slowdown;
            self.slowdown_max = greatest(self.slowdown_max, slowdown);
            self.slowdown_count += 1;
        }
        block[10] += turnaround * turnaround;
        block[11] += short * short;
        self.bsld_max = greatest(self.bsld_max, short);
        self.procs += u64::from(job.procs);
        self.waited += u64::from(wait > 0.0);
        self.over_sla += u64::from(lawson > self.sla);
        self.backfilled += u64::from(outcome.backfilled);
        self.gears[usize::from(outcome.gear_index)] += 1;
        self.sizes[size_class(job.procs)].add(wait, short);
        self.runs[run_class(top)].add(wait, short);
    }

    /// Fills the metrics of measured jobs.
    pub(super) fn fill(self, s: &mut Summary) {
        let count = self.waits.len() as f64;
        let [sums @ .., slowdown_squares, turnaround_squares, bsld_squares] = self.sums.values();
        let [turnaround, etinski, lawson, wait_by_procs, bsld_by_procs, area, bsld_by_area, bsld, slowdown] = sums;
        let mut classes = Sums::<2>::default();
        self.sizes.iter().for_each(|class| classes.join(class.sums));
        let [wait, short] = classes.values();
        s.wait_s_mean = wait / count;
        s.turnaround_s_mean = turnaround / count;
        s.turnaround_s_rms = (turnaround_squares / count).sqrt();
        s.wait_s_sd = deviation(&self.waits, s.wait_s_mean);
        s.turnaround_s_sd = deviation(&self.turnarounds, s.turnaround_s_mean);
        let waits = quantile::of(self.waits);
        (s.wait_s_p50, s.wait_s_p95, s.wait_s_p99, s.wait_s_max) = (waits.p50, waits.p95, waits.p99, waits.max);
        let turns = quantile::of(self.turnarounds);
        (s.turnaround_s_p50, s.turnaround_s_p95) = (turns.p50, turns.p95);
        (s.turnaround_s_p99, s.turnaround_s_max) = (turns.p99, turns.max);

        s.bsld_tau10s_mean = short / count;
        s.bsld_mean = if self.tau == TAU_SHORT_S { s.bsld_tau10s_mean } else { bsld / count };
        s.bsld_tau10s_max = self.bsld_max;
        s.bsld_tau10s_rms = (bsld_squares / count).sqrt();
        s.bsld_tau600s_mean = etinski / count;
        s.slowdown_lawson_tau10s_mean = lawson / count;
        s.over_sla_share = self.over_sla as f64 / count;
        let with_slowdown = self.slowdown_count as f64;
        s.slowdown_mean = ratio(slowdown, with_slowdown);
        s.slowdown_rms = ratio(slowdown_squares, with_slowdown).map(f64::sqrt);
        s.slowdown_max = (self.slowdown_count > 0).then_some(self.slowdown_max);
        s.bsld_tau10s_procs_weighted_mean = bsld_by_procs / self.procs as f64;
        s.bsld_tau10s_area_weighted_mean = ratio(bsld_by_area, area);
        s.wait_s_procs_weighted_mean = wait_by_procs / self.procs as f64;

        s.waited_count = self.waited;
        s.backfilled_count = self.backfilled;
        s.reduced_count = self.gears.iter().rev().skip(1).sum();
        s.gear_jobs_count = self.gears;
        fill_classes(s, &self.sizes, &self.runs);
    }
}

/// Fills the means by size and by run time.
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

/// Sample standard deviation around a known mean; `None` for fewer than two values. There are four sums side by side,
/// because each addition to a single sum would wait for the one before.
fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let square = |v: f64| (v - mean) * (v - mean);
    let (fours, rest) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for four in fours {
        for (sum, &v) in sums.iter_mut().zip(four) {
            *sum += square(v);
        }
    }
    let squares = sums.iter().sum::<f64>() + rest.iter().map(|&v| square(v)).sum::<f64>();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}
