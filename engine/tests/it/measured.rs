//! Measured powers of jobs: schedules by hand, and the energy against a sum over every second.
use std::fmt::Write as _;

use powersweep_engine::workload;
use powersweep_engine::workload::swf::{self, SwfLog};
use powersweep_engine::{JobRecord, Limits, Role, Summary};
use proptest::prelude::*;

use crate::capped::{capped, platform};
use crate::specs::{Build, simulate};

/// A job: submit, run time, procs, user, measured power (W); 0 where it was not measured.
type Job = (u32, u32, u32, i32, f64);

fn log(jobs: &[Job]) -> SwfLog {
    let mut text = String::new();
    for (id, (submit, run, procs, user, power_w)) in (1..).zip(jobs) {
        let _ = writeln!(text, "{id} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 {user} 1 -1 1 -1 -1 -1");
        if *power_w > 0.0 {
            let _ = writeln!(text, "; JobPowerW: {id} {power_w}");
        }
    }
    swf::parse(text.as_bytes(), "jobs.swf").unwrap()
}

fn measured(build: Build) -> Build {
    build.text("job_power", "measured-mean")
}

fn run(build: &Build, jobs: &[Job]) -> (Summary, Vec<JobRecord>) {
    assert_eq!(build.0.problems(), Vec::<String>::new());
    let workload = workload::build(&build.0, Some(&log(jobs))).unwrap();
    let mut rows = Vec::new();
    let summary = simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    (summary, rows)
}

/// Procs with two gears (4 W and half the speed; 10 W), 2 W idle: the first job draws 5 W a proc.
const PAIR: [Job; 2] = [(0, 10, 2, 1, 10.0), (0, 20, 1, 2, 0.0)];

#[test]
fn a_job_draws_its_measured_power_or_that_of_the_model() {
    let (summary, rows) = run(&measured(platform(4)), &PAIR);
    assert_eq!(rows.iter().map(|row| row.energy_j).collect::<Vec<_>>(), [100.0, 200.0]);
    // 1 idle proc for 10 s, 3 for 10 s.
    assert_eq!((summary.energy_idle_j, summary.energy_total_j), (80.0, 380.0));
    assert_eq!((summary.power_peak_w, summary.energy_residual), (22.0, 0.0));
    assert_eq!((summary.power_measured_jobs_count, summary.power_measured_share), (Some(1), Some(0.5)));
    let (model, _) = run(&platform(4), &PAIR);
    assert_eq!((model.energy_total_j, model.power_measured_jobs_count), (480.0, None));
}

#[test]
fn a_gear_scales_a_measured_power_as_that_of_the_model() {
    // Job 1 at the lower gear draws 10 W * 4/10 for 20 s, and job 2 4 W for 40 s: 8 + 4 W and an idle proc keep to 14 W.
    let build = measured(capped("fcfs", "none", "uniform", &[11.9], 1e6));
    let (summary, rows) = run(&build, &PAIR);
    assert_eq!(rows.iter().map(|row| (row.finish_s, row.energy_j)).collect::<Vec<_>>(), [(20.0, 80.0), (40.0, 160.0)]);
    assert!(summary.energy_residual < 1e-12 && summary.watch_residual.unwrap() < 1e-12, "{summary:?}");
}

#[test]
fn a_cap_sees_what_it_may_know() {
    // Two jobs of 2 procs draw 5 W a proc, 10 W by the model. 4 idle procs draw 8 W.
    let jobs: [Job; 3] = [(0, 10, 2, 1, 10.0), (0, 10, 2, 1, 10.0), (30, 10, 2, 1, 10.0)];
    let build = |knowledge: &str, cap_w: f64| {
        measured(capped("fcfs", "none", "admission", &[cap_w], 1e6)).text("power_knowledge", knowledge)
    };
    let starts = |build: &Build, jobs: &[Job]| -> Vec<(f64, u8)> {
        run(build, jobs).1.iter().map(|row| (row.start_s, row.gear_index)).collect()
    };
    // Both jobs at the top gear draw 20 W; by the model the first one does not fit at it.
    assert_eq!(starts(&build("oracle", 20.0), &jobs), [(0.0, 1), (0.0, 1), (30.0, 1)]);
    assert_eq!(starts(&build("model", 20.0), &jobs)[0], (0.0, 0));
    // The first job draws 14 W with the idle procs; the second one would add 16 W by the model, and 4 W at the lower gear.
    assert_eq!(starts(&build("model", 25.0), &jobs), [(0.0, 1), (0.0, 0), (30.0, 1)]);
    assert_eq!(starts(&build("oracle", 25.0), &jobs), [(0.0, 1), (0.0, 1), (30.0, 1)]);
    // A user's ended jobs teach: the third and the fourth job start at the top gear, and not those of another user.
    let more = |user: i32| [jobs[0], jobs[1], (30, 10, 2, user, 10.0), (30, 10, 2, user, 10.0)];
    assert_eq!(starts(&build("user-history", 25.0), &more(1)), [(0.0, 1), (0.0, 0), (30.0, 1), (30.0, 1)]);
    assert_eq!(starts(&build("user-history", 25.0), &more(2)), [(0.0, 1), (0.0, 0), (30.0, 1), (30.0, 0)]);
    // A known power that is too low exceeds the cap, and the excess is measured.
    let hot: [Job; 2] = [(0, 10, 2, 1, 40.0), (0, 10, 2, 1, 40.0)];
    let (summary, rows) = run(&build("model", 60.0), &hot);
    assert_eq!((rows[1].start_s, summary.power_cap_excess_max_w.unwrap()), (0.0, 80.0 - 60.0));
    assert_eq!(run(&build("oracle", 60.0), &hot).0.power_cap_excess_max_w, Some(0.0));
}

#[test]
fn an_error_of_the_known_power_is_drawn_for_each_job() {
    let jobs: Vec<Job> = (0..40).map(|at| (at, 50, 1 + at % 3, 1, 8.0)).collect();
    let build = |sd: f64, seed: u64| {
        let build = measured(capped("fcfs", "easy", "admission", &[25.0], 1e6));
        let mut build = build.text("power_knowledge", "noise").real("power_noise_sd", sd);
        build.0.seed = seed;
        build
    };
    let oracle = run(&measured(capped("fcfs", "easy", "admission", &[25.0], 1e6)), &jobs);
    assert_eq!(run(&build(0.0, 1), &jobs), oracle, "no error is an oracle");
    assert_ne!(run(&build(0.5, 1), &jobs), oracle);
    assert_ne!(run(&build(0.5, 1), &jobs), run(&build(0.5, 2), &jobs));
    assert_eq!(run(&build(0.5, 1), &jobs), run(&build(0.5, 1), &jobs));
}

#[test]
fn what_cannot_be_is_refused() {
    let problems = |build: Build| build.0.problems().join("; ");
    assert!(problems(measured(Build::log())).contains("`power_top_w` is left at 1 W a proc"));
    assert!(problems(platform(4).text("power_knowledge", "model")).contains("set `job_power`"));
    assert!(
        problems(measured(platform(4)).real("power_noise_sd", 0.5)).contains("needs `power_knowledge` = \"noise\"")
    );
    assert!(problems(measured(platform(4).choose(Role::Source, "poisson"))).contains("`poisson` is no log"));
    let build = measured(platform(4));
    let error = workload::build(&build.0, Some(&log(&[(0, 1, 1, 1, 0.0)]))).unwrap_err().to_string();
    assert!(error.starts_with("jobs.swf: no job has a measured power"), "{error}");
}

/// Energy of the machine second by second: measured and unmeasured jobs at the top gear, idle procs.
fn by_second(jobs: &[Job], rows: &[JobRecord], procs: u32) -> f64 {
    let last_s = rows.iter().map(|row| row.finish_s).fold(0.0, f64::max);
    let mut energy_j = 0.0;
    let mut at_s = f64::from(jobs[0].0);
    while at_s < last_s {
        let running = rows.iter().zip(jobs).filter(|(row, _)| row.start_s <= at_s && at_s < row.finish_s);
        let (mut busy, mut power_w) = (0, 0.0);
        for (row, job) in running {
            busy += row.procs;
            power_w += if job.4 > 0.0 { job.4 } else { 10.0 * f64::from(row.procs) };
        }
        energy_j += power_w + 2.0 * f64::from(procs - busy);
        at_s += 1.0;
    }
    energy_j
}

proptest! {
    #[test]
    fn the_energy_is_that_of_every_second(
        mut jobs in prop::collection::vec((0_u32..200, 0_u32..90, 1_u32..=6, 1_i32..4, prop_oneof![Just(0.0), 0.1..200.0]), 1..25),
        backfill in prop::sample::select(vec!["none", "easy", "conservative"]),
        knowledge in prop::sample::select(vec!["oracle", "model", "user-history"]),
    ) {
        jobs.sort_by_key(|job| job.0);
        jobs[0].4 = 33.3;
        // A job without a length draws nothing.
        let build = measured(platform(6).choose(Role::Backfill, backfill)).text("power_knowledge", knowledge);
        let (summary, rows) = run(&build, &jobs);
        let expected = by_second(&jobs, &rows, 6);
        prop_assert!((summary.energy_total_j - expected).abs() <= 1e-9 * expected.max(1.0), "{} {expected}", summary.energy_total_j);
        prop_assert!(summary.energy_residual < 1e-9 && summary.busy_residual < 1e-9);
    }

    #[test]
    fn an_oracle_keeps_to_every_cap(
        mut jobs in prop::collection::vec((0_u32..200, 1_u32..90, 1_u32..=4, 1_i32..4, prop_oneof![Just(0.0), 1.0..60.0]), 1..20),
        cap in prop::sample::select(vec!["admission", "uniform", "pdrc"]),
        backfill in prop::sample::select(vec!["none", "easy", "conservative", "knapsack"]),
        cap_w in 40.0..90.0,
    ) {
        jobs.sort_by_key(|job| job.0);
        jobs[0].4 = 33.3;
        let mut build = capped("fcfs", backfill, cap, &[cap_w], 1e6);
        build = measured(build.text("over_cap_jobs", "drop"));
        // A rule of backfilling may refuse a cap.
        prop_assume!(build.0.problems().is_empty());
        let workload = workload::build(&build.0, Some(&log(&jobs))).unwrap();
        let Ok(summary) = simulate(&build.0, &workload, &Limits::NONE, None) else { return Ok(()) };
        prop_assert!(summary.power_cap_excess_max_w.unwrap() <= 1e-6, "{:?}", summary.power_cap_excess_max_w);
        prop_assert!(summary.energy_residual < 1e-9 && summary.watch_residual.unwrap() < 1e-9, "{summary:?}");
    }
}
