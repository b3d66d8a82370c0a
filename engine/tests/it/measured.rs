//! Measured powers of jobs: schedules by hand, and the energy against a sum over every second.
use std::fmt::Write as _;

use powersweep_engine::workload;
use powersweep_engine::workload::swf::{self, SwfLog};
use powersweep_engine::{JobRecord, Limits, Role, Summary};
use proptest::prelude::*;

use crate::capped::{capped, platform};
use crate::specs::{Build, recorded, simulate};

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
fn the_knapsack_weighs_measured_powers() {
    // At the lower gear the jobs draw 8 and 16 W, which are 4 and 12 W above idle. 12.5 W are left, enough for each alone.
    let jobs: [Job; 2] = [(0, 10, 2, 1, 20.0), (0, 10, 2, 1, 40.0)];
    let (_, rows) = run(&measured(capped("priority", "knapsack", "uniform", &[20.5], 1e6)), &jobs);
    assert_eq!(rows.iter().map(|row| (row.start_s, row.finish_s)).collect::<Vec<_>>(), [(0.0, 20.0), (20.0, 40.0)]);
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

/// A log with samples of a job's power (W), each for some seconds; jobs without samples have their mean.
fn sampled_log(jobs: &[Job], samples: &[(u32, Vec<f64>)]) -> SwfLog {
    let mut text = String::new();
    for ((id, (submit, run, procs, user, power_w)), (step_s, watts)) in (1..).zip(jobs).zip(samples) {
        let _ = writeln!(text, "{id} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 {user} 1 -1 1 -1 -1 -1");
        if *power_w > 0.0 {
            let _ = writeln!(text, "; JobPowerW: {id} {power_w}");
            if !watts.is_empty() {
                let words: Vec<String> = watts.iter().map(f64::to_string).collect();
                let _ = writeln!(text, "; JobPowerSeriesW: {id} {step_s} {}", words.join(" "));
            }
        }
    }
    swf::parse(text.as_bytes(), "jobs.swf").unwrap()
}

fn sampled(build: Build) -> Build {
    build.text("job_power", "measured-series")
}

fn run_sampled(build: &Build, jobs: &[Job], samples: &[(u32, Vec<f64>)]) -> (Summary, Vec<JobRecord>) {
    assert_eq!(build.0.problems(), Vec::<String>::new());
    let workload = workload::build(&build.0, Some(&sampled_log(jobs, samples))).unwrap();
    let mut rows = Vec::new();
    let summary = simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    (summary, rows)
}

#[test]
fn a_job_draws_its_samples_one_after_the_other() {
    // The first job draws 6 W for 4 s, 10 W for 4 s and 16 W for 2 s; the second one 10 W by the model.
    let samples = [(4, vec![6.0, 10.0, 16.0]), (1, vec![])];
    let build = sampled(platform(4)).flag("watch_machine", true);
    let (summary, rows) = run_sampled(&build, &PAIR, &samples);
    assert!((rows[0].energy_j - 96.0).abs() < 1e-9 && rows[1].energy_j == 200.0, "{rows:?}");
    assert_eq!((summary.energy_idle_j, summary.energy_total_j, summary.power_peak_w), (80.0, 376.0, 28.0));
    assert!(summary.energy_residual < 1e-12);
    let workload = workload::build(&build.0, Some(&sampled_log(&PAIR, &samples))).unwrap();
    let power = recorded("power_w", &build.0, &workload);
    assert_eq!(power, [(0.0, 18.0), (4.0, 22.0), (8.0, 28.0), (10.0, 16.0), (20.0, 8.0)]);
    // The last sample holds to the end, and samples behind the end count nothing.
    let (short, _) = run_sampled(&build, &PAIR, &[(4, vec![6.0]), (1, vec![])]);
    let (long, _) = run_sampled(&build, &PAIR, &[(5, vec![6.0, 6.0, 99.0]), (1, vec![])]);
    assert_eq!((short.energy_total_j, short.power_peak_w), (340.0, 18.0));
    assert_eq!((long.energy_total_j, long.power_peak_w), (340.0, 18.0));
}

#[test]
fn a_cap_reacts_to_a_sample() {
    // One job of 2 procs, 20 s; 4 procs, idle 2 W each. From 5 s on it draws 40 W: with the idle procs 44 W, over 30 W. At
    // the lower gear it draws 40% of that for twice the time: 15 s of work are left, of which 5 s at 40 W take 10 s.
    let jobs: [Job; 1] = [(0, 20, 2, 1, 10.0)];
    let samples = [(5, vec![10.0, 40.0, 10.0])];
    let capped_by = |rule: &str| run_sampled(&sampled(capped("fcfs", "none", rule, &[30.0], 1e6)), &jobs, &samples);
    let (summary, rows) = capped_by("pdrc");
    // 5 s at 10 W, 10 s at 16 W, then 10 s at the top gear again.
    assert_eq!((rows[0].finish_s, rows[0].energy_j), (25.0, 50.0 + 160.0 + 100.0));
    assert_eq!((summary.power_cap_excess_max_w, summary.gear_changes_count), (Some(0.0), 2));
    assert!(summary.energy_residual < 1e-12 && summary.watch_residual.unwrap() < 1e-12, "{summary:?}");
    // `uniform` raises gears when the cap changes, not before: the last 10 s of work take 20 s at 4 W.
    let (summary, rows) = capped_by("uniform");
    assert_eq!((rows[0].finish_s, rows[0].energy_j), (35.0, 50.0 + 160.0 + 80.0));
    assert_eq!(summary.power_cap_excess_max_w, Some(0.0));
    // Admission does not change running jobs: the excess is measured.
    let (summary, rows) = capped_by("admission");
    assert_eq!((rows[0].finish_s, rows[0].energy_j), (20.0, 50.0 + 200.0 + 100.0));
    assert_eq!((summary.power_cap_excess_max_w, summary.power_cap_violation_j), (Some(14.0), Some(70.0)));
    // A job that waits for power starts when a sample ends.
    let jobs: [Job; 2] = [(0, 20, 2, 1, 20.0), (1, 5, 1, 1, 10.0)];
    let samples = [(5, vec![24.0, 12.0]), (1, vec![])];
    let starts = |knowledge: &str| {
        let build = sampled(capped("fcfs", "none", "admission", &[30.0], 1e6)).text("power_knowledge", knowledge);
        run_sampled(&build, &jobs, &samples).1.iter().map(|row| (row.start_s, row.gear_index)).collect::<Vec<_>>()
    };
    assert_eq!(starts("oracle"), [(0.0, 1), (1.0, 0)]);
    // By its peak the first job does not fit at the top gear, for which 28 W would be needed.
    let build = sampled(capped("fcfs", "none", "admission", &[26.0], 1e6)).text("power_knowledge", "peak");
    assert_eq!(run_sampled(&build, &jobs, &samples).1[0].gear_index, 0);
}

#[test]
fn a_sample_at_the_instant_of_an_event_causes_no_pass_of_its_own() {
    // At 10 s the second job ends early and the first one draws less. The third job needs the procs of the second: a pass
    // between the two changes would let the fourth job overtake it.
    let text = "1 0 -1 20 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1\n; JobPowerW: 1 18\n; JobPowerSeriesW: 1 10 24 12\n\
                2 0 -1 10 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1\n\
                3 1 -1 5 2 -1 -1 2 5 -1 1 1 1 -1 1 -1 -1 -1\n\
                4 2 -1 5 1 -1 -1 1 5 -1 1 1 1 -1 1 -1 -1 -1\n";
    let build = sampled(capped("fcfs", "easy", "admission", &[37.0], 1e6));
    let workload = workload::build(&build.0, Some(&swf::parse(text.as_bytes(), "jobs.swf").unwrap())).unwrap();
    let mut rows = Vec::new();
    simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    assert_eq!(rows.iter().map(|row| row.start_s).collect::<Vec<_>>(), [0.0, 0.0, 10.0, 15.0]);
}

#[test]
fn what_is_wrong_with_samples_is_said() {
    let read = |lines: &str| {
        let record = "1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 -1 1 -1 -1 -1";
        swf::parse(format!("{record}\n{lines}\n").as_bytes(), "a.swf").map_err(|error| error.to_string())
    };
    let refused = |lines: &str, message: &str| {
        let error = read(lines).unwrap_err();
        assert!(error.starts_with("a.swf, line ") && error.contains(message), "{message}: {error}");
    };
    let mean = "; JobPowerW: 1 30\n";
    assert_eq!(
        read(&format!("{mean}; JobPowerSeriesW: 1 20 10 0 50")).unwrap().power_series.watts(),
        [10.0, 0.0, 50.0]
    );
    refused("; JobPowerSeriesW: 1 20 10", "stands behind the `JobPowerW` of the job, and there is none");
    for (samples, message) in [
        ("2 20 10", "stands behind the record of job 1"),
        ("1 0 10", "a step above 0"),
        ("1", "a step above 0"),
        ("", "a job, a step and samples"),
        ("1 20", "at least one sample"),
        ("1 20 -1", "samples of at least 0 W"),
        ("1 20 5 x", "samples of at least 0 W"),
        ("1 20 inf", "samples of at least 0 W"),
        ("1 20 5\n; JobPowerSeriesW: 1 20 5", "a second `JobPowerSeriesW`"),
    ] {
        refused(&format!("{mean}; JobPowerSeriesW: {samples}"), message);
    }
    let without = workload::build(&sampled(platform(4)).0, Some(&log(&PAIR))).unwrap_err().to_string();
    assert!(without.starts_with("jobs.swf: no job has samples of its power"), "{without}");
    let empty = workload::build(&sampled(platform(4)).0, Some(&log(&[(0, 1, 1, 1, 0.0)]))).unwrap_err().to_string();
    assert!(empty.contains("`job_power` = \"measured-series\" needs some"), "{empty}");
}

/// The sample of a job at a second of its run.
fn sample_at((step_s, watts): &(u32, Vec<f64>), job: &Job, second: u32) -> f64 {
    match job.4 {
        0.0 => 10.0 * f64::from(job.2),
        mean if watts.is_empty() => mean,
        _ => watts[(second / step_s).min(watts.len() as u32 - 1) as usize],
    }
}

fn with_samples() -> impl Strategy<Value = Vec<(Job, (u32, Vec<f64>))>> {
    let job = (0_u32..200, 0_u32..90, 1_u32..=4, 1_i32..4, prop_oneof![Just(0.0), 1.0..60.0]);
    let samples = (1_u32..40, prop::collection::vec(0.0..60.0, 0..6));
    prop::collection::vec((job, samples), 1..20).prop_map(|mut jobs| {
        jobs.sort_by_key(|(job, _)| job.0);
        // One job has samples at least.
        jobs[0].0.4 = 33.3;
        jobs[0].1.1.push(20.0);
        jobs
    })
}

proptest! {
    #[test]
    fn samples_give_the_energy_of_every_second(
        jobs in with_samples(),
        backfill in prop::sample::select(vec!["none", "easy", "conservative"]),
    ) {
        let (jobs, samples): (Vec<Job>, Vec<(u32, Vec<f64>)>) = jobs.into_iter().unzip();
        let build = platform(6).choose(Role::Backfill, backfill).flag("watch_machine", true);
        let (summary, rows) = run_sampled(&sampled(build), &jobs, &samples);
        // Powers do not change a schedule without a cap.
        let (_, model) = run(&platform(6).choose(Role::Backfill, backfill), &jobs);
        prop_assert!(rows.iter().zip(&model).all(|(a, b)| (a.start_s, a.finish_s) == (b.start_s, b.finish_s)));
        let (mut energy_j, mut peak_w) = (0.0, 0.0_f64);
        let last_s = rows.iter().map(|row| row.finish_s as u32).max().unwrap();
        for at in jobs[0].0..last_s {
            let mut power_w = 12.0;
            for ((row, job), samples) in rows.iter().zip(&jobs).zip(&samples) {
                if row.start_s as u32 <= at && at < row.finish_s as u32 {
                    power_w += sample_at(samples, job, at - row.start_s as u32) - 2.0 * f64::from(job.2);
                }
            }
            (energy_j, peak_w) = (energy_j + power_w, peak_w.max(power_w));
        }
        prop_assert!((summary.energy_total_j - energy_j).abs() <= 1e-9 * energy_j.max(1.0), "{} {energy_j}", summary.energy_total_j);
        prop_assert!((summary.power_peak_w - peak_w).abs() <= 1e-6, "{} {peak_w}", summary.power_peak_w);
        for ((row, job), samples) in rows.iter().zip(&jobs).zip(&samples) {
            let expected: f64 = (0..job.1).map(|second| sample_at(samples, job, second)).sum();
            prop_assert!((row.energy_j - expected).abs() <= 1e-9 * expected.max(1.0), "{row:?} {expected}");
        }
        prop_assert!(summary.energy_residual < 1e-9 && summary.watch_residual.unwrap_or(0.0) < 1e-9, "{summary:?}");
    }

    #[test]
    fn equal_samples_are_the_mean(
        jobs in with_samples(),
        cap in prop::sample::select(vec!["admission", "uniform", "pdrc", "power-precedence"]),
        backfill in prop::sample::select(vec!["none", "easy", "conservative"]),
        caps in prop::collection::vec(15.0..90.0, 1..4),
        knowledge in prop::sample::select(vec!["oracle", "model", "user-history", "noise", "peak"]),
        change in any::<bool>(),
    ) {
        let (jobs, mut samples): (Vec<Job>, Vec<(u32, Vec<f64>)>) = jobs.into_iter().unzip();
        if !change {
            for (job, (_, watts)) in jobs.iter().zip(&mut samples) {
                watts.iter_mut().for_each(|watts| *watts = job.4);
            }
        }
        let build = |series: &str| {
            let build = capped("fcfs", backfill, cap, &caps, 35.0).text("over_cap_jobs", "drop");
            build.text("job_power", series).text("power_knowledge", knowledge)
        };
        let log = sampled_log(&jobs, &samples);
        let run = |series: &str| {
            let build = build(series);
            assert_eq!(build.0.problems(), Vec::<String>::new());
            let workload = workload::build(&build.0, Some(&log)).unwrap();
            let mut rows = Vec::new();
            simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).map(|summary| (summary, rows))
        };
        let Ok((series, rows)) = run("measured-series") else { return Ok(()) };
        prop_assert!(series.energy_residual < 1e-9 && series.watch_residual.unwrap_or(0.0) < 1e-9, "{series:?}");
        if !change {
            let (mean, expected) = run("measured-mean").unwrap();
            prop_assert!(rows.iter().zip(&expected).all(|(a, b)| (a.start_s, a.finish_s) == (b.start_s, b.finish_s)));
            prop_assert!((series.energy_total_j - mean.energy_total_j).abs() <= 1e-9 * mean.energy_total_j);
        }
    }
}
