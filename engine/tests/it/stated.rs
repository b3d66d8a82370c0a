//! Watts that are stated directly, and caps that are stated as shares of the machine's peak power.
use std::sync::Arc;

use powersweep_engine::batch::platform::Machine;
use powersweep_engine::signal::{Beyond, Sample, Signal};
use powersweep_engine::{JobRecord, Limits, Role, SimError, Summary, Value};
use proptest::prelude::*;

use crate::capped::{combinations, combined, list, platform};
use crate::golden::workload;
use crate::specs::{Build, simulate};

fn run(build: &Build, workload: &powersweep_engine::workload::Workload) -> (Summary, Vec<JobRecord>) {
    assert_eq!(build.0.problems(), Vec::<String>::new());
    let mut rows = Vec::new();
    (simulate(&build.0, workload, &Limits::NONE, Some(&mut rows)).unwrap(), rows)
}

/// 4 procs of two gears: 40 W and 100 W busy, 20 W idle, 4 W asleep.
fn stated() -> Build {
    let build = Build::log().choose(Role::Power, "stated").int("procs", 4);
    build
        .set("gears_ghz", Value::Reals(vec![1.0, 2.0]))
        .set("busy_w", Value::Reals(vec![40.0, 100.0]))
        .real("idle_w", 20.0)
}

#[test]
fn energy_is_that_of_the_stated_watts() {
    // 3 procs are busy for 10 s at the top gear, and one idles.
    let one = workload(&[(0., 10., 10., 3)]);
    let (summary, rows) = run(&stated(), &one);
    assert_eq!((rows[0].energy_j, summary.energy_total_j), (3000., 3200.));
    // Nodes of two procs draw these watts: each proc draws half of them, also asleep.
    let (summary, rows) = run(&stated().int("watts_of_procs", 2), &one);
    assert_eq!((rows[0].energy_j, summary.energy_total_j), (1500., 1600.));
    let asleep_w = |build: Build| Machine::new(&build.0, None).unwrap().sleep.asleep_w;
    assert_eq!(asleep_w(stated().real("asleep_w", 4.0)), 4.);
    assert_eq!(asleep_w(stated().real("asleep_w", 4.0).int("watts_of_procs", 2)), 2.);
    // A machine without gears has one.
    let one_gear = stated().set("gears_ghz", Value::Reals(vec![1.0])).set("busy_w", Value::Reals(vec![100.0]));
    assert_eq!(run(&one_gear, &one).0.energy_total_j, 3200.);
}

#[test]
fn watts_that_make_no_sense_are_refused() {
    let problem = |build: Build| build.0.problems().join("; ");
    let default_gears =
        Build::log().choose(Role::Power, "stated").set("busy_w", Value::Reals(vec![100.0])).real("idle_w", 9.);
    assert!(problem(default_gears).contains("`busy_w` has 1 values for 6 gears"));
    assert!(problem(stated().real("idle_w", 41.0)).contains("an idle processor draws no more than a busy one"));
    let cap = |build: Build| problem(build.choose(Role::Cap, "admission"));
    assert!(cap(stated()).contains("`cap_schedule_w` in watts, `cap_schedule_share`"));
    let relative = |shares: &[f64]| {
        stated().choose(Role::Cap, "admission").set("cap_schedule_share", Value::Reals(shares.to_vec()))
    };
    assert!(problem(relative(&[0.5]).set("cap_schedule_w", Value::Reals(vec![1.0]))).contains("both state the caps"));
    assert!(problem(relative(&[0.5, 0.0])).contains("`cap_schedule_share` must be above 0"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stated_watts_equal_a_table_of_them(workload in list()) {
        let table = platform(16).text("table_time", "beta");
        let stated = Build::log().choose(Role::Power, "stated").int("procs", 16).real("idle_w", 2.0);
        let stated = stated.set("gears_ghz", Value::Reals(vec![1.0, 2.0])).set("busy_w", Value::Reals(vec![4.0, 10.0]));
        for gears in ["top", "bsld"] {
            let with = |build: &Build| {
                let build = Build(build.0.clone()).choose(Role::GearRule, gears);
                run(&if gears == "bsld" { build.real("bsld_threshold", 2.0) } else { build }, &workload)
            };
            prop_assert_eq!(with(&table), with(&stated));
        }
    }

    /// A share of 1 is the peak, at which no cap binds; smaller shares do.
    #[test]
    fn a_share_of_the_peak_equals_its_watts(workload in list(), shares in prop::collection::vec(0.5..1.0f64, 0..3)) {
        let shares: Vec<f64> = shares.into_iter().chain([1.0]).collect();
        for (order, backfill, cap) in combinations() {
            let watts = Build(combined(order, backfill, cap, &[1.0], "top")).real("cooling_w", 50.0);
            let peak_w = 16.0 * 10.0 + 50.0;
            prop_assert_eq!(Machine::new(&watts.0, None).unwrap().peak_w(false), peak_w);
            let caps_w = shares.iter().map(|share| share * peak_w).collect();
            let written = watts.0.choice(Role::Cap).clone();
            let mut relative = Build(watts.0.clone()).choose(Role::Cap, written.component().name);
            for (name, value) in written.values().filter(|(name, _)| *name != "cap_schedule_w") {
                relative = relative.set(name, value.clone());
            }
            relative = relative.set("cap_schedule_share", Value::Reals(shares.clone()));
            let watts = watts.set("cap_schedule_w", Value::Reals(caps_w));
            prop_assert_eq!(run(&watts, &workload), run(&relative, &workload), "{} {} {}", order, backfill, cap);
        }
    }

    /// A signal with the caps of a schedule gives the rows of the schedule; a signal that never binds, those without a cap.
    #[test]
    fn a_signal_of_caps_equals_a_schedule(workload in list(), lower_w in prop::collection::vec(80.0..160.0f64, 0..3)) {
        // The last cap admits a job of all procs.
        let caps_w: Vec<f64> = lower_w.into_iter().chain([160.0]).collect();
        let first_s = workload.jobs[0].submit_s;
        let placed = |values: &[f64]| {
            let times_s = (0..values.len()).map(|at| first_s + 700.0 * at as f64).collect();
            let end_s = first_s + 700.0 * values.len() as f64;
            Arc::new(Signal::new(times_s, values.to_vec(), vec![], end_s, Sample::Mean, Beyond::Wrap).unwrap())
        };
        for (order, backfill, cap) in combinations() {
            let schedule = Build(combined(order, backfill, cap, &caps_w, "top"));
            let signal = |param: &str, values: &[f64]| {
                let written = schedule.0.choice(Role::Cap).clone();
                let mut build = Build(schedule.0.clone()).choose(Role::Cap, written.component().name);
                for (name, value) in written.values().filter(|(name, _)| *name != "cap_schedule_w") {
                    build = build.set(name, value.clone());
                }
                build = build.text(param, "limit");
                build.0.place_signal("limit", placed(values));
                build
            };
            let name = format!("{order} {backfill} {cap}");
            prop_assert_eq!(run(&signal("cap_signal", &caps_w), &workload), run(&schedule, &workload), "{}", &name);
            let shares: Vec<f64> = caps_w.iter().map(|cap_w| cap_w / 160.0).collect();
            let of_shares = Build(combined(order, backfill, cap, &shares.iter().map(|s| s * 160.0).collect::<Vec<_>>(), "top"));
            prop_assert_eq!(run(&signal("cap_signal_share", &shares), &workload), run(&of_shares, &workload), "{}", &name);
            let (_, never) = run(&signal("cap_signal", &[1e15, 1e15]), &workload);
            let (_, constant) = run(&Build(combined(order, backfill, cap, &[1e15], "top")), &workload);
            prop_assert_eq!(never, constant, "{}", &name);
        }
    }
}

#[test]
fn a_signal_that_repeats_one_cap_is_a_constant_cap() {
    let cap = Signal::new(vec![0., 700.], vec![1., 1.], vec![], 1400., Sample::Mean, Beyond::Wrap).unwrap();
    let mut build = Build(combined("fcfs", "none", "admission", &[1.], "top")).choose(Role::Cap, "admission");
    build = build.text("cap_signal", "limit");
    build.0.place_signal("limit", Arc::new(cap));
    let error = simulate(&build.0, &workload(&[(0., 10., 10., 1)]), &Limits::NONE, None).unwrap_err();
    assert!(matches!(error, SimError::Starved { job_id: 1, .. }), "{error:?}");
}
