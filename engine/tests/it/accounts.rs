//! Energy weighed by signals, against a sum over every second.
use std::sync::Arc;

use powersweep_engine::energy::EnergySplit;
use powersweep_engine::signal::{Beyond, Edges, Sample, Signal, SignalError};
use powersweep_engine::workload::Workload;
use powersweep_engine::{Details, JobRecord, Limits, Measured, Role, SimError, SimSpec, Value};

use crate::golden::workload;
use crate::specs::Build;

/// Procs of the machine.
const PROCS: u64 = 8;
/// Joules in a kilowatt-hour.
const J_PER_KWH: f64 = 3.6e6;

/// A small generator of test cases (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

/// Jobs whose times are whole seconds, so that a schedule changes at whole seconds only.
fn jobs(random: &mut Random) -> Workload {
    let mut submit_s = random.below(500);
    let count = 1 + random.below(12);
    let jobs: Vec<(f64, f64, f64, u32)> = (0..count)
        .map(|_| {
            submit_s += random.below(90);
            let run_s = random.below(120);
            let estimate_s = run_s + random.below(60);
            (submit_s as f64, run_s as f64, estimate_s as f64, 1 + random.below(PROCS) as u32)
        })
        .collect();
    workload(&jobs)
}

/// Signals with uneven steps of whole seconds, and holes in which the value before holds.
fn signal(random: &mut Random, sample: Sample) -> Signal {
    let mut at_s = -(random.below(300) as f64);
    let count = 1 + random.below(30);
    let mut times_s = Vec::new();
    for _ in 0..count {
        times_s.push(at_s);
        let most = if random.below(10) == 0 { 900 } else { 40 };
        at_s += 1.0 + random.below(most) as f64;
    }
    let values = (0..count).map(|_| random.below(100_000) as f64 / 64.0 - 200.0).collect();
    let beyond = if random.below(2) == 0 { Beyond::Hold } else { Beyond::Wrap };
    Signal::new(times_s, values, vec![], at_s, sample, beyond).unwrap()
}

fn spec(random: &mut Random) -> SimSpec {
    let order = ["fcfs", "sjf", "widest"][random.below(3) as usize];
    let backfill = ["none", "easy", "conservative"][random.below(3) as usize];
    Build::log().choose(Role::Order, order).choose(Role::Backfill, backfill).int("procs", PROCS as i64).0
}

fn run(spec: &SimSpec, workload: &Workload, energy: Option<EnergySplit>) -> (Measured, Details) {
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), energy };
    let measured = powersweep_engine::simulate(spec, workload, &Limits::NONE, &mut details).unwrap();
    (measured, details)
}

/// Each change of several signals.
#[derive(Debug)]
struct All(Vec<Signal>);

impl Edges for All {
    fn next_after(&self, at_s: f64) -> f64 {
        self.0.iter().map(|signal| signal.next_after(at_s)).fold(f64::INFINITY, f64::min)
    }
}

/// Machine, jobs, jobs at once, and the machine in the window of submissions, second by second.
fn by_second(signal: &Signal, rows: &[JobRecord], idle_w: f64, (first_s, last_s): (f64, f64)) -> [f64; 4] {
    let mut sums = [0.0; 4];
    let last_submit_s = rows.iter().map(|row| row.submit_s).fold(f64::NEG_INFINITY, f64::max);
    let mut at_s = first_s;
    while at_s < last_s {
        let value = signal.at(at_s + 0.5).unwrap();
        let power = |row: &JobRecord| row.energy_j / (row.finish_s - row.start_s);
        let within = |row: &JobRecord, start_s: f64| start_s <= at_s && at_s < start_s + (row.finish_s - row.start_s);
        let scheduled: Vec<&JobRecord> = rows.iter().filter(|row| within(row, row.start_s)).collect();
        let jobs_w: f64 = scheduled.iter().map(|row| power(row)).sum();
        let busy: u32 = scheduled.iter().map(|row| row.procs).sum();
        let at_once_w: f64 = rows.iter().filter(|row| within(row, row.submit_s)).map(power).sum();
        let machine_w = jobs_w + (PROCS - u64::from(busy)) as f64 * idle_w;
        let counted_w = if at_s < last_submit_s { machine_w } else { machine_w - PROCS as f64 * idle_w };
        for (sum, power_w) in sums.iter_mut().zip([machine_w, jobs_w, at_once_w, counted_w]) {
            *sum += power_w * value / J_PER_KWH;
        }
        at_s += 1.0;
    }
    sums
}

#[track_caller]
fn close(found: f64, expected: f64, scale: f64) {
    assert!((found - expected).abs() <= 1e-9 * scale.max(expected.abs()), "{found} is not {expected}");
}

#[test]
fn weights_equal_a_sum_over_every_second() {
    let mut random = Random(26);
    for case in 0..1_000 {
        let (workload, spec) = (jobs(&mut random), spec(&mut random));
        // The value at the middle of a second is the mean of a line over it.
        let samples = [Sample::Mean, Sample::Point, Sample::Mean];
        let signals: Vec<Signal> = samples.map(|sample| signal(&mut random, sample)).into();
        let energy = EnergySplit::new(Arc::new(All(signals.clone())));
        let (measured, details) = run(&spec, &workload, Some(energy));
        let (plain, without) = run(&spec, &workload, None);
        assert_eq!((&measured, &details.jobs), (&plain, &without.jobs), "case {case}: signals change nothing");
        let (rows, cells) = (details.jobs.unwrap(), details.energy.unwrap().cells);
        let summary = measured.jobs().unwrap();
        let span = (workload.jobs[0].submit_s, rows.iter().map(|row| row.finish_s).fold(f64::NEG_INFINITY, f64::max));
        let idle_w =
            if summary.idle_proc_h > 0.0 { summary.energy_idle_j / (summary.idle_proc_h * 3600.0) } else { 0.0 };
        let energy_j: f64 = cells.iter().map(|cell| cell.machine.energy_j).sum();
        close(energy_j, summary.energy_total_j, 1.0);
        for signal in &signals {
            let weight = signal.weigh(&cells, &[]).unwrap();
            let [machine, jobs, at_once, window] = by_second(signal, &rows, idle_w, span);
            // Values have both signs: the scale is that of the terms.
            let scale = summary.energy_total_j * 1_600.0 / J_PER_KWH;
            close(weight.machine, machine, scale);
            close(weight.jobs, jobs, scale);
            close(weight.at_once, at_once, scale);
            // A machine that is never idle does not show its idle power.
            if summary.idle_proc_h > 0.0 {
                close(weight.window, window, scale);
            }
        }
    }
}

#[test]
fn a_constant_signal_weighs_the_energy() {
    let mut random = Random(1);
    for _ in 0..100 {
        let (workload, spec) = (jobs(&mut random), spec(&mut random));
        let signal = Signal::new(vec![0.0], vec![250.0], vec![true], 0.0, Sample::Mean, Beyond::Hold).unwrap();
        let (measured, details) = run(&spec, &workload, Some(EnergySplit::new(Arc::new(signal.clone()))));
        let weight = signal.weigh(&details.energy.unwrap().cells, &[]).unwrap();
        close(weight.machine, measured.jobs().unwrap().energy_total_j * 250.0 / J_PER_KWH, 1e-9);
        close(weight.jobs, weight.at_once, 1e-9);
        assert!(weight.time_mean.is_nan() || (weight.mean - 250.0).abs() < 1e-9);
        assert!(weight.estimated_share.is_some_and(|share| share.is_nan() || share == 1.0));
    }
}

/// A job that waits for nothing and runs for long: the simulation has a handful of events, and a million changes of its signal.
#[test]
fn the_energy_between_changes_of_a_signal_counts_as_memory() {
    let workload = workload(&[(0.0, 1e6, 1e6, 2), (1e6 + 1.0, 10.0, 10.0, 2)]);
    let times: Vec<f64> = (0..1_000_000).map(f64::from).collect();
    let values = vec![250.0; times.len()];
    let signal = Signal::new(times, values, vec![], 1e6, Sample::Mean, Beyond::Hold).unwrap();
    let spec = Build::log().int("procs", 4).0;
    let run = |max_bytes: usize| {
        let energy = Some(EnergySplit::new(Arc::new(signal.clone())));
        let mut details = Details { jobs: None, series: None, energy };
        let limits = Limits { max_bytes, ..Limits::NONE };
        powersweep_engine::simulate(&spec, &workload, &limits, &mut details).map(drop)
    };
    assert_eq!(run(64 << 20), Err(SimError::MemoryLimit(64 << 20)));
    assert_eq!(run(1 << 30), Ok(()));
}

#[test]
fn a_run_that_outlasts_its_signal_is_an_error_with_the_instant() {
    let workload = workload(&[(100.0, 400.0, 400.0, 2), (150.0, 10.0, 10.0, 2)]);
    let signal = Signal::new(vec![0.0, 60.0], vec![1.0, 2.0], vec![], 300.0, Sample::Mean, Beyond::Error).unwrap();
    let spec = Build::log().int("procs", 4).0;
    let (_, details) = run(&spec, &workload, Some(EnergySplit::new(Arc::new(signal.clone()))));
    assert_eq!(signal.weigh(&details.energy.unwrap().cells, &[]), Err(SignalError::NotCovered(300.0)));
}

#[test]
fn a_policy_that_ends_later_counts_no_more_idle_power_in_the_window() {
    // 4 procs of 4 W busy and 1.8 W idle; electricity is cleaner from 1000 s on.
    let jobs = workload(&[(0.0, 100.0, 100.0, 4), (50.0, 100.0, 100.0, 1)]);
    let grid = Signal::new(vec![0.0, 1_000.0], vec![2.0, 1.8], vec![], 2_000.0, Sample::Mean, Beyond::Hold).unwrap();
    let now = Build::log()
        .int("procs", 4)
        .set("gears_ghz", Value::Reals(vec![1.0]))
        .set("gear_volts", Value::Reals(vec![1.0]))
        .choose(Role::Power, "stated")
        .set("busy_w", Value::Reals(vec![4.0]))
        .real("idle_w", 1.8);
    let mut later = Build(now.0.clone()).choose(Role::Deferral, "lowest-slot").text("defer_signal", "grid").0;
    later.place_signal("grid", Arc::new(grid.clone()));
    let weigh = |spec: &SimSpec| {
        let (_, details) = run(spec, &jobs, Some(EnergySplit::new(Arc::new(grid.clone()))));
        let weight = grid.weigh(&details.energy.unwrap().cells, &[]).unwrap();
        [weight.machine, weight.window, weight.jobs].map(|sum| (sum * J_PER_KWH).round())
    };
    // Up to 50 s the whole machine, then what it draws beyond 7.2 W, and the jobs' 1600 J and 400 J.
    assert_eq!(weigh(&now.0), [5_080.0, 1_600.0 + 880.0 + 440.0, 4_000.0]);
    assert_eq!(weigh(&later), [14_400.0 + 4_572.0, 720.0 + 1_584.0 + 396.0, 3_600.0]);
}
