//! Conservative backfilling with and without power caps: schedules that are small enough to check by hand, and a comparison
//! with a simple, slow reference implementation, job by job.
//!
//! The reference searches plain lists for every reservation and shares no code with the engine. It implements the top gear
//! as ceiling and the cap rule `admission`.
use powersweep_engine::workload::Workload;
use powersweep_engine::{Limits, Role, Value};
use proptest::prelude::*;

use crate::capped::{capped, check_rows, combinations, combined, list, platform, times};
use crate::golden::workload;
use crate::specs::{Build, simulate};

mod reference;
use reference::{PERIOD_S, PROCS, Rules, schedule};

#[test]
fn reservations_hold_watts() {
    // 6 procs, 10 W above idle. Job 1 draws 8 W. Job 2 is reserved with 6 W at 10, job 3 with all 10 W at 30. Job 4 could
    // start at once with a proc and 2 W, but would hold them for 60 s and delay job 3: it is reserved after job 3, where
    // the watts suffice for the top gear.
    let list = [(0., 10., 1, 1), (1., 10., 3, 1), (2., 10., 5, 1), (3., 30., 1, 1)];
    let build = |backfill| capped("fcfs", backfill, "admission", &[22.], 1e3).int("procs", 6);
    let rows = times(build("conservative"), &list, &[(0., 10.), (10., 30.), (30., 50.), (50., 80.)]);
    assert_eq!(rows.iter().map(|row| row.gear_index).collect::<Vec<_>>(), [1, 0, 0, 1]);
    // EASY protects only job 2.
    times(build("easy"), &list, &[(0., 10.), (10., 30.), (63., 83.), (3., 63.)]);
}

#[test]
fn a_reservation_is_made_at_the_gear_with_the_earliest_start() {
    // The jobs of `watts_are_a_second_resource_of_easy`: for job 3, 4 W are free at 10, and 16 W only at 20. Job 4 gets 2 W
    // at once, and job 5 when job 4 ends.
    let list = [(0., 10., 1, 1), (0., 20., 1, 1), (1., 10., 2, 1), (2., 3., 1, 1), (3., 10., 1, 1)];
    let build = capped("fcfs", "conservative", "admission", &[26.], 1e3);
    let rows = times(build, &list, &[(0., 10.), (0., 20.), (10., 30.), (2., 8.), (8., 28.)]);
    assert_eq!(rows.iter().map(|row| row.gear_index).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    assert_eq!(rows.iter().map(|row| row.backfilled).collect::<Vec<_>>(), [false, false, false, true, true]);
}

#[test]
fn a_job_that_the_cap_never_admits_has_no_reservation_and_delays_no_job() {
    // 4 W above idle until 5, then 12 W until 10. Job 1 needs 6 W and has no reservation. Job 2 starts at once. At 5 job 1
    // is reserved at the end of job 2; from 10 on the cap is exceeded.
    let list = [(0., 10., 3, 1), (1., 4., 2, 1), (2., 3., 2, 1)];
    for cap in ["admission", "uniform"] {
        let build = capped("fcfs", "conservative", cap, &[12., 20.], 5.);
        let rows = times(build, &list[..2], &[(9., 29.), (1., 9.)]);
        assert!(rows[1].backfilled);
        // At 5 there are procs and watts for job 3, but it would hold them until 11 and delay job 1.
        times(capped("fcfs", "conservative", cap, &[12., 20.], 5.), &list, &[(9., 29.), (1., 9.), (29., 35.)]);
    }
}

#[test]
fn reservations_follow_gears_that_a_cap_changes() {
    // 32 W above idle, 8 W from 5 on, 32 W from 10 on. At 1 job 2 is reserved at 10, the end of job 1. At 5 job 1 is
    // lowered, and its expected end is 15: job 3, which takes 8 s, ends before. At 10 both are raised, and job 2 is
    // reserved at 12.5. At 15 job 2 has done a quarter of its work, and runs at half the speed for 5 s.
    let list = [(0., 10., 2, 1), (1., 10., 3, 1), (6., 4., 2, 1)];
    let build = capped("fcfs", "conservative", "uniform", &[40., 16.], 5.);
    times(build, &list, &[(0., 12.5), (12.5, 25.), (6., 12.)]);
}

#[test]
fn reservations_follow_suspended_jobs() {
    // 20 W above idle until 30: job 2 is suspended until job 1 ends. The expected end of job 2 is 11 at 1, and 13 at 3.
    // So job 4, which needs 9 s, overtakes job 3 at 3, but is suspended until 10. Job 3 needs 32 W, which are free at 30.
    let list = [(0., 10., 2, 1), (0., 10., 1, 2), (1., 10., 4, 1), (3., 9., 1, 3)];
    let build = capped("fcfs", "conservative", "power-precedence", &[28., 40.], 30.);
    let rows = times(build, &list, &[(0., 10.), (0., 20.), (20., 40.), (3., 19.)]);
    assert_eq!(rows.iter().map(|row| row.suspended_s).collect::<Vec<_>>(), [0., 10., 10., 7.]);
}

#[test]
fn a_blind_start_is_reserved_for_the_time_at_the_lowest_gear() {
    // 20 W above idle. Job 1 is raised right after its start, so that job 2 is reserved at 10. Job 3 would end by then at
    // the top gear, but jobs start at the lowest gear, at which job 4 needs 6 s. There are no 32 W to raise job 2; job 3 is
    // raised.
    let list = [(0., 10., 2, 1), (1., 10., 4, 1), (2., 5., 2, 2), (3., 3., 2, 2)];
    let build = capped("fcfs", "conservative", "pdrc", &[28.], 1e3).text("pdrc_start", "blind");
    times(build, &list, &[(0., 10.), (10., 30.), (30., 35.), (3., 9.)]);
}

#[test]
fn a_start_below_the_reserved_gear_renews_the_other_reservations() {
    // 12 W above idle; running jobs count as lowered. Job 1 starts at the top gear. For job 2 there are 4 W for the lowest
    // gear, but no 16 W: it runs until 21, where job 3 is reserved. Job 4 is reserved for 10 s at the top gear, counted as
    // 2 W. But there are no 8 W, and at the lowest gear its expected end is 23. All jobs together exceed the cap and are
    // lowered, so that job 1 ends at 17. At 21 job 4 is raised; it ends at 22.
    let list = [(0., 10., 1, 1), (1., 10., 2, 1), (2., 10., 4, 1), (3., 10., 1, 1)];
    let build = capped("fcfs", "conservative", "pdrc", &[20.], 1e3);
    times(build, &list, &[(0., 17.), (1., 21.), (22., 42.), (3., 22.)]);
}

#[test]
fn jobs_behind_the_reservation_depth_start_where_there_is_a_hole_now() {
    // Job 2 is reserved at 10. With a depth of 1, job 3 (reserved at 20 otherwise) has no reservation, and job 4 takes the
    // procs that job 3 would need: at 10 and 20 these run, and job 3 starts at 33.
    let list = [(0., 10., 10., 3), (1., 10., 10., 3), (2., 10., 10., 4), (3., 30., 30., 1)];
    let starts = |build: Build| -> Vec<f64> {
        let mut rows = Vec::new();
        simulate(&build.0, &workload(&list), &Limits::NONE, Some(&mut rows)).unwrap();
        rows.iter().map(|row| row.start_s).collect()
    };
    let rule = || platform(4).choose(Role::Backfill, "conservative");
    assert_eq!(starts(rule()), [0., 10., 20., 30.]);
    assert_eq!(starts(rule().int("reservation_depth", 1)), [0., 10., 33., 3.]);
    assert_eq!(starts(rule().int("reservation_depth", 2)), [0., 10., 20., 30.]);
}

#[test]
fn an_idle_machine_before_a_reservation_is_no_starvation() {
    // Shortest first. At 1 job 2 is reserved from 10 to 20, at 2 job 3 at 20. Job 1 ends at 5 instead of 10: job 3, now the
    // first, needs 8 s, does not fit before job 2 and keeps its time. Then job 2 starts. It ends at 15, as estimated, so
    // that no reservation is renewed. No job runs until 20.
    let workload = workload(&[(0., 5., 10., 4), (1., 10., 10., 3), (2., 8., 8., 2)]);
    let starts = |build: Build| -> Vec<f64> {
        assert_eq!(build.0.problems(), Vec::<String>::new());
        let mut rows = Vec::new();
        simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
        rows.iter().map(|row| row.start_s).collect()
    };
    let plain = platform(4).choose(Role::Order, "sjf").choose(Role::Backfill, "conservative");
    assert_eq!(starts(plain), [0., 5., 20.]);
    for cap in ["admission", "uniform", "pdrc", "power-precedence"] {
        assert_eq!(starts(capped("sjf", "conservative", cap, &[100.], 1e3)), [0., 5., 20.], "{cap}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Some jobs run longer than estimated, and procs need time and power to wake.
    #[test]
    fn schedules_are_valid_with_overdue_jobs_and_waking_procs(
        workload in list(),
        share in 0.3..1.2f64,
        caps in prop::collection::vec(64u32..170, 1..5),
        capacity in prop_oneof![Just("none"), Just("two-level"), Just("ols")],
    ) {
        let mut workload = workload;
        for job in &mut workload.jobs {
            job.estimate_s = (job.estimate_s * share).floor();
        }
        for (order, backfill, cap) in combinations().filter(|(_, backfill, _)| *backfill == "conservative") {
            let more_w = if cap == "power-precedence" { 100. } else { 0. };
            let caps_w: Vec<f64> = caps.iter().map(|&cap_w| f64::from(cap_w) + more_w).collect();
            let mut build = Build(combined(order, backfill, cap, &caps_w, "bsld")).choose(Role::Capacity, capacity);
            build = build.real("wake_s", 90.).real("wake_w", 4.).real("off_s", 30.).real("off_w", 3.);
            build = match capacity {
                "two-level" => build.int("two_level_procs", 6),
                "ols" => build.real("ols_period_s", 600.).real("ols_sla_slowdown", 3.),
                _ => build,
            };
            let mut rows = Vec::new();
            let summary = simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
            check_rows(&workload, &rows);
            let residuals = (summary.energy_residual, summary.procs_residual);
            prop_assert!(residuals.0 < 1e-9 && residuals.1 < 1e-9, "{} {} {} {:?}", order, cap, capacity, residuals);
        }
    }

    /// A full machine needs 64 W at the lowest gear. The first cap is never below, so that every job is admitted.
    #[test]
    fn starts_ends_and_gears_equal_the_reference(
        workload in list(),
        share in prop_oneof![Just(1.), 0.5..1.5f64],
        caps in prop::collection::vec(36u32..170, 0..4),
        sjf in any::<bool>(),
        depth in depths(),
    ) {
        let mut workload: Workload = workload;
        for job in &mut workload.jobs {
            job.estimate_s = (job.estimate_s * share).floor();
        }
        let mut caps_w: Vec<f64> = caps.into_iter().map(f64::from).collect();
        if let Some(first) = caps_w.first_mut() {
            *first = first.max(64.);
        }
        let order = if sjf { "sjf" } else { "fcfs" };
        let build = platform(i64::from(PROCS)).choose(Role::Order, order).choose(Role::Backfill, "conservative");
        let mut build = with_depth(build, depth);
        if !caps_w.is_empty() {
            build = build.choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(caps_w.clone()));
            build = Build(build.0).real("cap_period_s", PERIOD_S);
        }
        let mut rows = Vec::new();
        simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
        let ours: Vec<_> = rows.iter().map(|row| (row.start_s, row.finish_s, usize::from(row.gear_index))).collect();
        let rules = Rules { procs: PROCS, caps_w: &caps_w, sjf, events: "batch", depth: depth.unwrap_or(usize::MAX) };
        prop_assert_eq!(ours, schedule(&workload.jobs, rules), "caps {:?}, depth {:?}", caps_w, depth);
    }
}

/// Reservation depths; most often none.
fn depths() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), (1..5usize).prop_map(Some)]
}

fn with_depth(build: Build, depth: Option<usize>) -> Build {
    match depth {
        Some(depth) => build.int("reservation_depth", depth as i64),
        None => build,
    }
}

/// Number of small workloads of the comparison without a cap: `POWERSWEEP_CASES`, or 4,000.
fn cases() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(4000, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// With few procs and short times, many events share an instant. Estimates may be 0, too long or too short.
    #[test]
    fn conservative_equals_the_reference_in_every_event_order(
        list in prop::collection::vec((0u32..6, 0u32..12, 0u32..12, 1u32..=4), 1..14),
        kill in any::<bool>(),
        sjf in any::<bool>(),
        depth in depths(),
    ) {
        let mut submit_s = 0.;
        let times = list.iter().map(|&(gap, run, estimate, procs)| {
            submit_s += f64::from(gap.saturating_sub(2));
            let run = if kill { run.min(estimate) } else { run };
            (submit_s, f64::from(run), f64::from(estimate), procs)
        });
        let workload = workload(&times.collect::<Vec<_>>());
        for events in ["batch", "submit-first", "finish-first"] {
            let order = if sjf { "sjf" } else { "fcfs" };
            let build = platform(4).choose(Role::Order, order).choose(Role::Backfill, "conservative");
            let build = with_depth(build, depth);
            let mut rows = Vec::new();
            simulate(&build.text("event_order", events).0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
            let ours: Vec<_> = rows.iter().map(|row| (row.start_s, row.finish_s, usize::from(row.gear_index))).collect();
            let rules = Rules { procs: 4, caps_w: &[], sjf, events, depth: depth.unwrap_or(usize::MAX) };
            prop_assert_eq!(ours, schedule(&workload.jobs, rules), "{} {} {:?}", order, events, depth);
        }
    }

    /// A depth of one is EASY, and a depth that no queue exceeds is the rule without one.
    #[test]
    fn a_reservation_depth_lies_between_easy_and_all_jobs(
        list in prop::collection::vec((0u32..6, 1u32..12, 0u32..12, 1u32..=4), 1..14),
    ) {
        let mut submit_s = 0.;
        let times = list.iter().map(|&(gap, run, longer, procs)| {
            submit_s += f64::from(gap.saturating_sub(2));
            (submit_s, f64::from(run), f64::from(run + longer), procs)
        });
        let workload = workload(&times.collect::<Vec<_>>());
        let starts = |build: Build| -> Vec<f64> {
            let mut rows = Vec::new();
            simulate(&build.0, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
            rows.iter().map(|row| row.start_s).collect()
        };
        let rule = |backfill| platform(4).choose(Role::Backfill, backfill);
        prop_assert_eq!(starts(rule("conservative").int("reservation_depth", 1)), starts(rule("easy")));
        prop_assert_eq!(starts(rule("conservative").int("reservation_depth", 14)), starts(rule("conservative")));
    }
}
