//! Power caps: schedules that are small enough to check by hand, and invariants of every rule.
use powersweep_engine::workload::Workload;
use powersweep_engine::{Details, JobRecord, Limits, Role, SimError, SimSpec, Summary, Value};
use proptest::prelude::*;

use crate::conformance;
use crate::golden::workload;
use crate::specs::{Build, series_alone, simulate};

/// A job: submit, run time, procs, priority.
pub(crate) type Job = (f64, f64, u32, u8);

/// Procs with two gears (4 W and half the speed; 10 W), 2 W idle.
pub(crate) fn platform(procs: i64) -> Build {
    Build::log()
        .choose(Role::Power, "table")
        .set("gears_ghz", Value::Reals(vec![1.0, 2.0]))
        .set("table_power_w", Value::Reals(vec![4.0, 10.0]))
        .set("table_time_s", Value::Reals(vec![2.0, 1.0]))
        .int("table_nodes", 1)
        .real("idle_fraction", 0.2)
        .int("procs", procs)
}

pub(crate) fn capped(order: &str, backfill: &str, cap: &str, caps_w: &[f64], period_s: f64) -> Build {
    let build = platform(4).choose(Role::Order, order).choose(Role::Backfill, backfill).choose(Role::Cap, cap);
    build.set("cap_schedule_w", Value::Reals(caps_w.to_vec())).real("cap_period_s", period_s)
}

/// The scheduler of Zhang et al. 2014 under a cap; PDRC starts jobs blindly, as in the paper.
pub(crate) fn tracsim(cap: &str, caps_w: &[f64], period_s: f64) -> Build {
    let build = capped("priority", "within-priority", cap, caps_w, period_s);
    if cap == "pdrc" { build.text("pdrc_start", "blind") } else { build }
}

pub(crate) fn jobs(list: &[Job]) -> Workload {
    let mut workload = workload(&list.iter().map(|&(at, run, procs, _)| (at, run, run, procs)).collect::<Vec<_>>());
    for (job, &(.., priority)) in workload.jobs.iter_mut().zip(list) {
        job.priority = priority;
    }
    workload
}

pub(crate) fn run(build: &Build, list: &[Job]) -> (Summary, Vec<JobRecord>) {
    let mut rows = Vec::new();
    let summary = simulate(&build.0, &jobs(list), &Limits::NONE, Some(&mut rows)).unwrap();
    (summary, rows)
}

/// Checks start and end of each job.
#[track_caller]
pub(crate) fn times(build: Build, list: &[Job], expected: &[(f64, f64)]) -> Vec<JobRecord> {
    assert_eq!(build.0.problems(), Vec::<String>::new());
    let (_, rows) = run(&build, list);
    assert_eq!(rows.iter().map(|row| (row.start_s, row.finish_s)).collect::<Vec<_>>(), expected);
    rows
}

const PAIR: [Job; 2] = [(0., 10., 2, 1), (0., 10., 2, 2)];

#[test]
fn pdrc_raises_the_first_priority_and_lowers_the_last() {
    // Both jobs start at 4 W a proc: 16 W. Job 1 is raised (28 W), job 2 cannot be raised (40 W). When job 1 ends at 10,
    // job 2 has done half of its work and is raised.
    let rows = times(tracsim("pdrc", &[28.], 1e3), &PAIR, &[(0., 10.), (0., 15.)]);
    assert_eq!((rows[0].energy_j, rows[1].energy_j), (200., 2. * (4. * 10. + 10. * 5.)));
    assert_eq!((rows[0].gear_index, rows[0].priority, rows[1].priority), (0, 1, 2));
    // 16 W from 5 to 10 and from 15 on: job 1 is lowered at 5 with 5 s of remaining work, and raised at 10 with 2.5 s. Job 2
    // has done 6.25 s of work at 12.5, when it is raised; it is lowered at 15 with 1.25 s of remaining work.
    times(tracsim("pdrc", &[28., 16.], 5.), &PAIR, &[(0., 12.5), (0., 17.5)]);
}

#[test]
fn pdrc_starts_jobs_blindly_or_if_they_fit() {
    // 12 W do not suffice for both jobs at the lowest gear. With blind starts both start, and exceed the cap.
    let (summary, _) = run(&tracsim("pdrc", &[12.], 1e3), &PAIR);
    assert_eq!((summary.power_cap_excess_max_w, summary.power_cap_violation_share), (Some(4.), Some(1.)));
    assert_eq!(summary.power_cap_violation_j, Some(80.));
    // Otherwise job 2 waits for job 1.
    let fitting = |cap_w| capped("priority", "within-priority", "pdrc", &[cap_w], 1e3);
    times(fitting(12.), &PAIR, &[(0., 20.), (20., 40.)]);
    // Under 28 W job 2 fits when job 1 is lowered; then job 1 is raised again.
    times(fitting(28.), &PAIR, &[(0., 10.), (0., 15.)]);
}

#[test]
fn pdrc_with_easy_respects_watts() {
    // 12 W, 4 W above idle, suffice for two procs at the lowest gear. So each job waits for the previous one, though procs
    // are free.
    let list = [(0., 10., 2, 1), (1., 10., 2, 1), (2., 10., 1, 1)];
    let build = capped("fcfs", "easy", "pdrc", &[12.], 1e3);
    times(build, &list, &[(0., 20.), (20., 40.), (40., 60.)]);
}

#[test]
fn power_precedence_suspends_the_last_of_the_lowest_priority() {
    let list = [(0., 10., 2, 1), (0., 10., 1, 3), (0., 10., 1, 3), (1., 10., 1, 1)];
    // Jobs 1 to 3 together would draw 40 W; with job 3 suspended 32 W, with job 2 suspended, too, 24 W. Suspended jobs keep
    // their procs, so that job 4 starts at 10. Then 32 W exceed the cap again, and job 3 is suspended for another 10 s.
    let rows = times(tracsim("power-precedence", &[28.], 1e3), &list, &[(0., 10.), (0., 20.), (0., 30.), (10., 20.)]);
    assert_eq!(rows.iter().map(|row| row.suspended_s).collect::<Vec<_>>(), [0., 10., 20., 0.]);
    assert_eq!((rows[1].energy_j, rows[1].run_s, rows[2].energy_j), (120., 10., 140.));
    let (summary, _) = run(&tracsim("power-precedence", &[28.], 1e3), &list);
    assert_eq!((summary.energy_suspended_j, summary.suspended_proc_h), (Some(60.), Some(30. / 3600.)));
    // The energy of a job includes the power of its procs while it is suspended.
    assert_eq!(rows.iter().map(|row| row.energy_j).sum::<f64>(), summary.energy_computational_j + 60.);
    // Executing procs: 2 until 10, 2 until 20, 1 until 30. With suspended ones: 4, 3, 1.
    assert!((summary.cpu_utilization.unwrap() - 50. / 120.).abs() < 1e-12);
    assert!((summary.cpu_utilization_with_suspended.unwrap() - (40. + 30. + 10.) / 120.).abs() < 1e-12);
    assert_eq!(summary.cpu_utilization_with_suspended_high_share, Some(20. / 30.));
    // 32 W suffice for job 2, too.
    times(tracsim("power-precedence", &[32.], 1e3), &list[..3], &[(0., 10.), (0., 10.), (0., 20.)]);
}

#[test]
fn performance_precedence_measures_the_violation() {
    let (summary, rows) = run(&tracsim("performance-precedence", &[28.], 1e3), &PAIR);
    assert_eq!(rows.iter().map(|row| row.finish_s).collect::<Vec<_>>(), [10., 10.]);
    assert_eq!((summary.power_cap_violation_share, summary.power_cap_excess_max_w), (Some(1.), Some(12.)));
    assert_eq!((summary.power_cap_violation_j, summary.power_cap_mean_w), (Some(120.), Some(28.)));
    assert!((summary.trapped_unused_share.unwrap() - (1. - 400. / 280.)).abs() < 1e-12);
    assert!((summary.trapped_unused_kwh.unwrap() + 120. / 3.6e6).abs() < 1e-18);
    assert_eq!((summary.cpu_utilization, summary.cpu_utilization_high_share), (Some(1.), Some(1.)));
    assert_eq!(summary.jobs_count_priority_2, None, "no rule gives priorities");
}

#[test]
fn within_priority_starts_one_priority_after_the_other() {
    // Job 3 fits beside job 1. Job 4 would fit, too, but waits until job 2, which has a higher priority, has started.
    let list = [(0., 10., 3, 1), (0., 5., 2, 1), (0., 10., 1, 1), (0., 1., 1, 2), (0., 1., 4, 2)];
    let build = || platform(4).choose(Role::Order, "priority").choose(Role::Backfill, "within-priority");
    let expected = [(0., 10.), (10., 15.), (0., 10.), (10., 11.), (15., 16.)];
    times(build(), &list, &expected);
    // Procs in use: 4 until 10, 3 until 11, 2 until 15, 4 until 16.
    let (summary, _) = run(&build(), &list);
    assert!((summary.cpu_utilization.unwrap() - (40. + 3. + 8. + 4.) / 64.).abs() < 1e-12);
    assert_eq!(summary.cpu_utilization_high_share, Some(12. / 16.));
    assert_eq!((summary.power_cap_mean_w, summary.trapped_unused_kwh), (None, None));
    // In strict order no job overtakes job 2.
    times(
        platform(4).choose(Role::Order, "priority").choose(Role::Backfill, "none"),
        &list,
        &[(0., 10.), (10., 15.), (10., 20.), (10., 11.), (20., 21.)],
    );
}

#[test]
fn the_knapsack_fills_the_power() {
    let knapsack = |caps_w: &[f64], period_s| capped("priority", "knapsack", "uniform", caps_w, period_s);
    // 8 W above idle suffice for 4 procs at 2 W: jobs 1 and 3; job 2 waits until they end.
    let list = [(0., 10., 1, 1), (0., 10., 2, 1), (0., 10., 3, 1)];
    times(knapsack(&[16.], 1e3), &list, &[(0., 20.), (20., 40.), (0., 20.)]);
    // 6 W suffice for 3 procs: jobs 1 and 2 are found before job 3.
    times(knapsack(&[14.], 1e3), &list, &[(0., 20.), (0., 20.), (20., 40.)]);
    // 12 W suffice for all 6 procs at the lowest gear, but only 4 exist; at the top gear they suffice for one proc: job 1. At
    // 10 jobs 2 and 3 are together too wide at the lowest gear, and each draws too much at the top gear. The machine is
    // empty, so that the larger one starts.
    times(knapsack(&[20.], 1e3), &list, &[(0., 10.), (30., 50.), (10., 30.)]);
    // The jobs are together too wide at every gear. At the top gear the largest set that fits starts.
    times(knapsack(&[1e3], 1e3), &list, &[(0., 10.), (10., 30.), (0., 10.)]);
    // Priority 1 comes first, though jobs of priority 2 would fill the machine. No job of priority 1 waits then, but jobs of
    // priority 2 are considered only at the next event, an arrival or an end.
    let list = [(0., 10., 4, 2), (0., 10., 1, 1), (0., 10., 2, 2)];
    times(knapsack(&[16.], 1e3), &list, &[(20., 40.), (0., 20.), (40., 60.)]);
    let list = [list[0], list[1], list[2], (5., 10., 4, 3)];
    times(knapsack(&[16.], 1e3), &list, &[(25., 45.), (0., 20.), (5., 25.), (45., 65.)]);
    // At 10 the cap rises to 40 W and the job is raised: the remaining half of its work takes 5 s.
    times(knapsack(&[16., 40.], 10.), &[(0., 10., 4, 1)], &[(0., 15.)]);
    // The job is raised at 4, with 2 s of work done, and lowered at 8, with 6 s of work done.
    times(knapsack(&[16., 40., 16.], 4.), &[(0., 10., 4, 1)], &[(0., 16.)]);
}

#[test]
fn the_gear_rule_sets_the_ceiling() {
    // The lowest gear satisfies the threshold: no cap rule raises the job above it.
    for (cap, backfill) in [("pdrc", "easy"), ("uniform", "easy"), ("admission", "easy"), ("pdrc", "conservative")] {
        let build = capped("fcfs", backfill, cap, &[1e3, 2e3], 3.).choose(Role::GearRule, "bsld");
        times(build.real("bsld_threshold", 1e3), &[(0., 10., 4, 1)], &[(0., 20.)]);
    }
}

#[test]
fn watts_are_a_second_resource_of_easy() {
    // 26 W, 18 W above idle. Jobs 1 and 2 run at the top gear and leave 2 W. There are procs for job 3, but it needs 4 W,
    // which job 1 frees at 10; then job 3 leaves 1 proc and 6 W. Job 4 ends at 8 at the lowest gear. Job 5 ends after 10, but
    // fits beside job 3. Job 3 starts at the lowest gear, because there are no 16 W for the top gear.
    let list = [(0., 10., 1, 1), (0., 20., 1, 1), (1., 10., 2, 1), (2., 3., 1, 1), (3., 10., 1, 1)];
    let easy = || capped("fcfs", "easy", "admission", &[26.], 1e3);
    let rows = times(easy(), &list, &[(0., 10.), (0., 20.), (10., 30.), (2., 8.), (8., 28.)]);
    assert_eq!(rows.iter().map(|row| row.gear_index).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    assert_eq!(rows.iter().map(|row| row.backfilled).collect::<Vec<_>>(), [false, false, false, true, true]);
    // Without extra procs job 5 waits for job 3.
    times(easy().flag("extra_procs", false), &list, &[(0., 10.), (0., 20.), (10., 30.), (2., 8.), (10., 30.)]);
    // In strict order no job overtakes job 3.
    let none = capped("fcfs", "none", "admission", &[26.], 1e3);
    times(none, &list, &[(0., 10.), (0., 20.), (10., 30.), (10., 16.), (16., 36.)]);
}

#[test]
fn easy_under_a_cap_reserves_procs() {
    // 24 W, 16 W above idle. Job 2 is reserved with all procs at 10. Job 1 leaves 8 W, in which jobs 3 and 4 run one after
    // the other. Then there are 16 W for the 4 procs of job 2: it starts at the lowest gear.
    let list = [(0., 10., 1, 1), (1., 10., 4, 1), (2., 4., 1, 1), (3., 4., 1, 1)];
    times(capped("fcfs", "easy", "admission", &[24.], 1e3), &list, &[(0., 10.), (10., 30.), (2., 6.), (6., 10.)]);
}

#[test]
fn the_gear_rule_decides_whether_a_lowered_job_ends_in_time() {
    // 18 W, 10 W above idle. No gear has a slowdown below 1, so that the gear rule always chooses the top gear. Job 1 leaves
    // 2 W. Job 2 is reserved at 10 with 8 W. Job 3 would end at 6 at the top gear; the cap lowers it, and it ends at 10.
    let list = [(0., 10., 1, 1), (1., 10., 4, 1), (2., 4., 1, 1)];
    let easy =
        || capped("fcfs", "easy", "admission", &[18.], 1e3).choose(Role::GearRule, "bsld").real("bsld_threshold", 1.);
    let rows = times(easy(), &list, &[(0., 10.), (10., 30.), (2., 10.)]);
    assert_eq!(rows.iter().map(|row| row.gear_index).collect::<Vec<_>>(), [1, 0, 0]);
    let exclusive = easy().flag("reservation_inclusive", false);
    times(exclusive, &list, &[(0., 10.), (10., 30.), (30., 34.)]);
}

#[test]
fn a_job_overtakes_at_a_higher_gear_if_the_lower_one_ends_too_late() {
    // 26 W for 7 procs, 12 W above idle, suffice for 6 procs at the lowest gear. Job 1 ends at 20; then job 2 leaves a proc
    // but no watts. Any gear satisfies the threshold. Job 3 would end at 26 at the lowest gear, which is too late without
    // watts; at the top gear it ends at 14.
    let easy = || {
        let build = capped("fcfs", "easy", "admission", &[26.], 1e3).int("procs", 7);
        build.choose(Role::GearRule, "bsld").real("bsld_threshold", 1e3)
    };
    let list = |run_s| [(0., 10., 2, 1), (1., 10., 6, 1), (2., run_s, 1, 1)];
    let rows = times(easy(), &list(12.), &[(0., 20.), (20., 40.), (2., 14.)]);
    assert_eq!(rows.iter().map(|row| row.gear_index).collect::<Vec<_>>(), [0, 0, 1]);
    // If it ends too late at every gear, it waits for job 2.
    times(easy(), &list(20.), &[(0., 20.), (20., 40.), (40., 80.)]);
}

#[test]
fn a_head_that_the_cap_never_admits_has_no_reservation() {
    // 13 W, 5 W above idle, suffice for two procs at the lowest gear: never for job 1, not even alone. The others start when
    // there are watts, whatever they delay. From 100 on there are watts for all jobs: job 1 is reserved at the end of job 4,
    // and job 5 waits.
    let list = [(0., 10., 4, 1), (1., 40., 1, 1), (2., 60., 1, 1), (5., 30., 1, 1), (101., 50., 1, 1)];
    let expected = [(141., 151.), (1., 81.), (2., 122.), (81., 141.), (151., 201.)];
    times(capped("fcfs", "easy", "admission", &[13., 100., 100.], 100.), &list, &expected);
}

#[test]
fn a_job_without_watts_waits_for_a_higher_cap_or_starves() {
    let one = [(0., 10., 2, 1)];
    for backfill in ["easy", "conservative"] {
        for cap in ["admission", "uniform", "power-precedence"] {
            for caps_w in [&[9.][..], &[9., 10.]] {
                let spec = capped("fcfs", backfill, cap, caps_w, 5.).0;
                let error = simulate(&spec, &jobs(&one), &Limits::NONE, None).unwrap_err();
                // `power-precedence` suspends jobs instead of lowering them.
                let lowest = cap != "power-precedence";
                assert!(matches!(error, SimError::Starved { job_id: 1, .. }), "{error}");
                assert_eq!(error.to_string().contains("the lowest gear"), lowest, "{error}");
            }
        }
        // 12 W from 5 on.
        times(capped("fcfs", backfill, "admission", &[9., 12.], 5.), &one, &[(5., 25.)]);
    }
}

/// Two procs at the lowest gear and two idle procs draw 12 W, one and three 10 W.
#[test]
fn jobs_over_every_cap_are_dropped_and_counted() {
    let list = [(0., 10., 2, 1), (0., 10., 1, 1), (0., 10., 4, 1)];
    let build = || capped("fcfs", "easy", "admission", &[9., 11.], 5.).text("over_cap_jobs", "drop");
    let (summary, rows) = run(&build(), &list);
    assert_eq!((summary.jobs_count, summary.dropped_over_cap_count), (1, 2));
    assert_eq!((rows[0].job_id, rows[0].start_s), (2, 5.));
    let error = simulate(&build().0, &jobs(&list[2..]), &Limits::NONE, None).unwrap_err();
    assert!(error.to_string().contains("1 exceeded every cap of the schedule"), "{error}");
}

#[test]
fn combinations_that_make_no_sense_are_refused() {
    let problem = |build: Build| build.0.problems().join("; ");
    let caps = || Value::Reals(vec![10.]);
    let cap = |backfill, name| {
        Build::log().choose(Role::Backfill, backfill).choose(Role::Cap, name).set("cap_schedule_w", caps())
    };
    assert_eq!(problem(cap("conservative", "pdrc")), "");
    assert!(problem(cap("knapsack", "pdrc")).contains("needs `power_cap` = \"uniform\""));
    assert!(problem(cap("knapsack", "uniform")).contains("needs `queue_order` = \"priority\""));
    assert!(problem(Build::log().choose(Role::Backfill, "within-priority")).contains("not \"fcfs\""));
    let bsld = cap("easy", "admission").choose(Role::GearRule, "bsld").real("bsld_threshold", 2.0);
    assert_eq!(problem(Build(bsld.0.clone())), "");
    assert!(problem(bsld.text("head_gear", "fixed")).contains("`head_gear` = \"fixed\""));
    let knapsack = cap("knapsack", "uniform").choose(Role::Order, "priority").choose(Role::GearRule, "bsld");
    assert!(problem(knapsack.real("bsld_threshold", 2.0)).contains("`gear_rule` = \"bsld\" makes no sense"));
    assert!(problem(cap("easy", "pdrc").set("cap_schedule_w", Value::Reals(vec![0.]))).contains("above 0"));
    assert!(problem(platform(4).real("beta", 0.3)).contains("`beta` and `table_time` = \"measured\""));
    assert_eq!(problem(platform(4).real("beta", 0.3).text("table_time", "beta")), "");
    assert!(
        problem(Build::log().real("beta", 0.3).set("class_betas", Value::Reals(vec![0.5])))
            .contains("`beta` and `class_betas`")
    );
}

#[test]
fn each_class_of_jobs_has_its_tables_of_power_and_run_time() {
    let mut workload = jobs(&[(0., 10., 1, 1), (0., 10., 1, 1), (0., 10., 1, 1)]);
    workload.jobs[1].class = 1;
    let build = || {
        platform(4)
            .set("table_power_w", Value::Reals(vec![4., 10., 3., 20.]))
            .set("table_time_s", Value::Reals(vec![2., 1., 4., 1.]))
            .real("idle_fraction", 0.1)
            .choose(Role::Cap, "pdrc")
            .text("pdrc_start", "blind")
            .set("cap_schedule_w", Value::Reals(vec![13.]))
            .choose(Role::Order, "priority")
            .choose(Role::Backfill, "within-priority")
    };
    // A proc draws 2 W idle, 0.1 of the greatest power of 20 W. At the lowest gears there are 4 + 3 + 4 + 2 = 13 W, the cap.
    let mut rows = Vec::new();
    let summary = simulate(&build().0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    // At 20 jobs 1 and 3 end: 9 W. Job 2 cannot be raised to 26 W, and ends at 40.
    assert_eq!(rows.iter().map(|row| row.finish_s).collect::<Vec<_>>(), [20., 40., 20.]);
    assert_eq!(
        rows.iter().map(|row| (row.energy_j, row.job_class)).collect::<Vec<_>>(),
        [(80., 1), (120., 2), (80., 1)]
    );
    assert!(summary.energy_residual < 1e-12);
    workload.jobs[2].class = 2;
    let error = simulate(&build().0, &workload, &Limits::NONE, None).unwrap_err().to_string();
    assert!(error.contains("job 3 is of class 3, and the platform has tables for 2 classes"), "{error}");
    // A beta for each class, and constant power besides the procs.
    let betas =
        Build::log().set("class_betas", Value::Reals(vec![0., 1.])).set("gears_ghz", Value::Reals(vec![1., 2.]));
    let betas = betas.set("gear_volts", Value::Reals(vec![1., 1.])).int("procs", 4).real("cooling_w", 100.);
    let lowest = betas.choose(Role::GearRule, "bsld").real("bsld_threshold", 1e3);
    workload.jobs[2].class = 0;
    let summary = simulate(&lowest.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    assert_eq!(rows.iter().map(|row| row.finish_s).collect::<Vec<_>>(), [10., 20., 10.]);
    assert_eq!(summary.energy_static_j, Some(2000.));
    assert!((summary.energy_total_j - summary.energy_computational_j - summary.energy_idle_j - 2000.).abs() < 1e-9);
}

#[test]
fn series_are_step_functions_whose_integral_is_the_energy() {
    let spec = tracsim("pdrc", &[28., 16.], 5.).0;
    let mut details = series_alone();
    let measured = powersweep_engine::simulate(&spec, &jobs(&PAIR), &Limits::NONE, &mut details).unwrap();
    let points = details.series.unwrap();
    let steps = |name: &str, level: Option<i64>| -> Vec<(f64, f64)> {
        points.iter().filter(|p| p.series == name && p.level == level).map(|p| (p.x, p.value)).collect()
    };
    let power = [(0., 28.), (5., 16.), (10., 28.), (12.5, 24.), (15., 12.), (17.5, 8.)];
    assert_eq!(steps("power_w", None), power);
    assert_eq!(steps("power_cap_w", None), [(0., 28.), (5., 16.), (10., 28.), (15., 16.)]);
    assert_eq!(steps("procs_by_gear", Some(1)), [(0., 2.), (5., 0.), (10., 2.), (15., 0.)]);
    assert_eq!(steps("procs_by_gear", Some(0)), [(0., 2.), (5., 4.), (10., 2.), (12.5, 0.), (15., 2.), (17.5, 0.)]);
    assert_eq!(steps("procs_by_priority", Some(2)), [(0., 2.), (17.5, 0.)]);
    assert_eq!(steps("procs_by_job_class", Some(1)), [(0., 4.), (12.5, 2.), (17.5, 0.)]);
    assert_eq!(steps("frequency_mean_ghz", None), [(0., 1.5), (5., 1.), (10., 1.5), (15., 1.)]);
    assert_eq!(steps("cpu_utilization", None), [(0., 1.), (12.5, 0.5), (17.5, 0.)]);
    let share = steps("cpu_utilization_time_share", None);
    assert_eq!((share.len(), share[10], share[20]), (21, (0.5, 5. / 17.5), (1., 12.5 / 17.5)));
    let energy: f64 = power.windows(2).map(|two| two[0].1 * (two[1].0 - two[0].0)).sum();
    let total = measured.jobs().unwrap().energy_total_j;
    assert!((energy - total).abs() < 1e-9, "{energy} {total}");
    assert!(points.windows(2).all(|two| (two[0].series, two[0].level) <= (two[1].series, two[1].level)));
}

/// Combinations of order, backfilling rule and cap rule that are allowed under a cap.
pub(crate) fn combinations() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let caps = ["admission", "uniform", "pdrc", "pdrc-blind", "power-precedence", "performance-precedence"];
    caps.into_iter().flat_map(|cap| {
        let rules = [
            ("fcfs", "none"),
            ("sjf", "easy"),
            ("fcfs", "easy"),
            ("wfp3", "easy"),
            ("priority", "easy"),
            ("fcfs", "conservative"),
            ("wfp3", "conservative"),
            ("priority", "within-priority"),
            ("priority", "knapsack"),
        ];
        let allowed = move |(_, backfill): &(&str, &str)| *backfill != "knapsack" || cap == "uniform";
        rules.into_iter().filter(allowed).map(move |(order, backfill)| (order, backfill, cap))
    })
}

pub(crate) fn combined(order: &str, backfill: &str, cap: &str, caps_w: &[f64], gears: &str) -> SimSpec {
    let blind = cap == "pdrc-blind";
    let cap = if blind { "pdrc" } else { cap };
    let mut build = capped(order, backfill, cap, caps_w, 700.).int("procs", 16);
    if blind {
        build = build.text("pdrc_start", "blind");
    }
    if gears == "bsld" {
        build = build.choose(Role::GearRule, "bsld").real("bsld_threshold", 2.);
    }
    build.0
}

pub(crate) fn list() -> impl Strategy<Value = Workload> {
    let time = prop_oneof![1 => Just(0u32), 6 => 1u32..2000];
    let job = (prop_oneof![1 => Just(0u32), 2 => 0u32..400], time, 0u32..500, 1u32..=16, 1u8..=3);
    prop::collection::vec(job, 1..40).prop_map(|list| {
        let mut at = 0.;
        let times = list.iter().map(|&(gap, run, over, procs, _)| {
            at += f64::from(gap);
            (at, f64::from(run), f64::from(run + over), procs)
        });
        let mut workload = workload(&times.collect::<Vec<_>>());
        for (job, &(.., priority)) in workload.jobs.iter_mut().zip(&list) {
            job.priority = priority;
        }
        workload
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Caps are at least the power of a full machine at the lowest gear (64 W), so that every job can run.
    #[test]
    fn every_combination_conforms_under_a_cap(
        workload in list(),
        caps in prop::collection::vec(64u32..170, 1..5),
        gears in prop_oneof![Just("top"), Just("bsld")],
    ) {
        let caps_w: Vec<f64> = caps.into_iter().map(f64::from).collect();
        for (order, backfill, cap) in combinations() {
            let gears = if backfill == "knapsack" { "top" } else { gears };
            // Under `power-precedence` jobs run at the top gear and need more than 64 W.
            let more_w = if cap == "power-precedence" { 100. } else { 0. };
            let caps_w: Vec<f64> = caps_w.iter().map(|cap_w| cap_w + more_w).collect();
            let spec = combined(order, backfill, cap, &caps_w, gears);
            prop_assert_eq!(spec.problems(), Vec::<String>::new());
            let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
            let measured = powersweep_engine::simulate(&spec, &workload, &Limits::NONE, &mut details).unwrap();
            let summary = measured.jobs().unwrap();
            let name = format!("{order} {backfill} {cap} {gears}");
            if !["admission", "performance-precedence"].contains(&cap) {
                prop_assert_eq!(summary.power_cap_excess_max_w, Some(0.), "{}", name);
            }
            let residuals = [summary.energy_residual, summary.procs_residual, summary.busy_residual, summary.watch_residual.unwrap()];
            prop_assert!(residuals.iter().all(|residual| *residual < 1e-9), "{} {:?}", name, residuals);
            let rows = details.jobs.as_ref().unwrap();
            check_rows(&workload, rows);
            let power: Vec<_> = details.series.as_ref().unwrap().iter().filter(|p| p.series == "power_w").collect();
            let energy: f64 = power.windows(2).map(|two| two[0].value * (two[1].x - two[0].x)).sum();
            let last = power.last().map_or(0., |p| p.value * (summary.last_finish_s - p.x));
            prop_assert!((energy + last - summary.energy_total_j).abs() <= 1e-9 * summary.energy_total_j.max(1.), "{}", name);
            let again = simulate(&spec, &workload, &Limits::NONE, None).unwrap();
            prop_assert_eq!(summary, &again, "{}: not deterministic", name);
        }
    }

    /// Without a cap the engine uses faster implementations, whose schedules must be the same.
    #[test]
    fn a_cap_that_is_never_reached_does_not_change_the_schedule(workload in list(), extra_procs in any::<bool>()) {
        for order in ["fcfs", "sjf", "wfp3", "f1", "widest", "priority", "formula"] {
            for backfill in ["none", "easy", "conservative", "kept-head"] {
                for gears in ["top", "bsld"] {
                    let mut without = conformance::ordered(platform(16), order).choose(Role::Backfill, backfill);
                    if backfill == "easy" {
                        without = without.flag("extra_procs", extra_procs);
                    }
                    if gears == "bsld" {
                        without = without.choose(Role::GearRule, "bsld").real("bsld_threshold", 2.);
                    }
                    let with = Build(without.0.clone()).choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(vec![1e6]));
                    let rows = |build: &Build| {
                        let mut rows = Vec::new();
                        simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
                        rows
                    };
                    prop_assert_eq!(rows(&without), rows(&with), "{} {} {}", order, backfill, gears);
                }
            }
        }
    }
}

/// Checks that every job ran once, for a time between those at the top and at the lowest gear, and that there were always
/// enough procs.
pub(crate) fn check_rows(workload: &Workload, rows: &[JobRecord]) {
    assert_eq!(rows.len(), workload.jobs.len());
    let mut steps = Vec::new();
    for (job, row) in workload.jobs.iter().zip(rows) {
        assert!(row.job_id == job.id && row.start_s >= job.submit_s, "{row:?}");
        let slack = 1e-9 * (1. + job.run_s);
        assert!(row.run_s >= job.run_s - slack && row.run_s <= 2. * job.run_s + slack, "{row:?}");
        steps.push((row.start_s, i64::from(job.procs)));
        steps.push((row.finish_s, -i64::from(job.procs)));
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut used = 0;
    for (at, more) in steps {
        used += more;
        assert!(used <= 16, "{used} procs in use at {at} s");
    }
}
