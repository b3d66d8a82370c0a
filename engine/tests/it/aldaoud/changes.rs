//! Systems that change: servers leave and return, speeds and arrivals change.
use powersweep_engine::queues::policies::classes::{Changing, Fcfs, Lpas, Phase, Rescaled};
use powersweep_engine::queues::{Arrivals, State};
use powersweep_engine::{Role, Value};

use super::schedules::{energy_j, run, table};
use super::systems;
use super::tables::{choice, lpas, reals, row, spec, with};
use crate::listed::Listed;

fn phase(at_s: f64, speeds: &[f64], shares: Option<&[f64]>) -> Phase {
    Phase { at_s, speeds: speeds.to_vec(), shares: shares.map(<[f64]>::to_vec) }
}

#[test]
fn arrivals_are_denser_where_the_factor_is_greater() {
    let inner = Listed::new(&[1.0, 2.0, 3.0, 5.0, 6.0, 7.0].map(|s| (s, 1.0, 0)));
    let mut arrivals = Rescaled::new(inner, vec![(0.0, 1.0), (2.0, 2.0), (4.0, 0.5)]);
    let times: Vec<f64> = (0..7).map(|_| arrivals.next().arrived_s).collect();
    assert_eq!(times, [1.0, 2.0, 2.5, 3.5, 4.0, 6.0, f64::INFINITY]);
}

#[test]
fn a_leaving_server_completes_its_job_and_a_returning_server_takes_the_next() {
    let phases = vec![
        phase(0.0, &[1.0, 1.0], None),
        phase(2.0, &[1.0, 0.0], None),
        phase(6.0, &[1.0, 1.0], None),
        phase(8.0, &[2.0, 1.0], None),
    ];
    let jobs = [(0.0, 5.0, 0), (1.0, 2.0, 0), (4.0, 4.0, 0), (5.5, 1.0, 0)];
    let mut table = table(&[[1.0, 1.0]]);
    table.off_w = vec![0.0; 2];
    let (rows, servers) = run(table, Changing::new(Fcfs::new(1), phases), &jobs, 10.0);
    // Server 1 is off from 3 to 6. At 8 server 0 has done 3 of 4; the remaining work takes half a second.
    assert_eq!(rows, [(0, 0, 0.0, 5.0), (1, 1, 1.0, 3.0), (2, 0, 5.0, 8.5), (3, 1, 6.0, 7.0)]);
    assert_eq!(servers.in_state_s(1, State::Off), 3.0);
    let busy_s = 5.0 + 2.0 + 3.5 + 1.0;
    assert_eq!(energy_j(&servers), busy_s * 10.0 + (20.0 - busy_s - 3.0) * 4.0);
}

#[test]
fn new_shares_wake_a_sleeping_server() {
    let phases = vec![phase(0.0, &[1.0], None), phase(3.25, &[1.0], Some(&[1.0]))];
    let policy = Changing::new(Lpas::new(vec![0.5], 1), phases);
    let jobs = [(1.0, 2.0, 0), (3.2, 2.0, 0), (6.0, 1.0, 0)];
    let (rows, servers) = run(table(&[[1.0]]), policy, &jobs, 8.0);
    // By the old share the server would sleep from 3 to 4: the timer of 4 is void.
    assert_eq!(rows, [(0, 0, 1.0, 3.0), (1, 0, 3.25, 5.25), (2, 0, 6.0, 7.0)]);
    assert_eq!(servers.in_state_s(0, State::Asleep), 0.25);
}

#[test]
fn programs_are_solved_at_every_change() {
    let mut changing = spec(&systems::structured(1.0));
    changing.choice_mut(Role::Source).set("arrivals_change_at_s", reals(&[1000.0, 2000.0])).expect("is valid");
    changing.choice_mut(Role::Source).set("arrivals_change_factors", reals(&[1.5, 0.5])).expect("is valid");
    let platform = changing.choice_mut(Role::Platform);
    for (name, values) in [
        ("speed_change_at_s", [500.0, 2000.0]),
        ("speed_change_groups", [7.0, 7.0]),
        ("speed_change_factors", [0.0, 1.0]),
    ] {
        platform.set(name, reals(&values)).expect("is valid");
    }
    changing.choice_mut(Role::Statistics).set("horizon_s", Value::Real(3000.0)).expect("is valid");
    assert_eq!(changing.problems(), Vec::<String>::new());
    let summary = row(&with(&changing, lpas(1.0)));
    assert_eq!(summary.lp_solved_count, Some(4));
    assert!((summary.lp_lambda.expect("it has one") - 2.336).abs() < 1e-9, "lambda* of the start");
    assert!(summary.group_utilization[6] < 0.51, "off half of the time: {:?}", summary.group_utilization);
    let expected = 24.5 * (1000.0 + 1.5 * 1000.0 + 0.5 * 1000.0);
    assert!((summary.measured_jobs_count as f64 / expected - 1.0).abs() < 0.03, "{}", summary.measured_jobs_count);
    for kind in ["class-fcfs", "class-pme"] {
        let summary = row(&with(&changing, choice(Role::Policy, kind, &[])));
        assert_eq!(summary.lp_solved_count, None);
        assert!(summary.group_utilization[6] < 0.51, "{kind}: off half of the time");
        // Group 7 is off for half of the 3000 s.
        assert!((summary.asleep_proc_h * 3600.0 - 1500.0).abs() < 1.0, "{kind}: {}", summary.asleep_proc_h * 3600.0);
    }
}

#[test]
fn impossible_changes_are_refused() {
    let good = spec(&systems::structured(1.0));
    let with_lists = |role: Role, lists: &[(&str, &[f64])]| {
        let mut spec = good.clone();
        for (name, values) in lists {
            spec.choice_mut(role).set(name, reals(values)).expect("is in its range");
        }
        spec
    };
    let speeds = |at: &[f64], groups: &[f64], factors: &[f64]| {
        let lists = [("speed_change_at_s", at), ("speed_change_groups", groups), ("speed_change_factors", factors)];
        with_lists(Role::Platform, &lists)
    };
    let arrivals = |at: &[f64], factors: &[f64]| {
        with_lists(Role::Source, &[("arrivals_change_at_s", at), ("arrivals_change_factors", factors)])
    };
    let all: Vec<f64> = (1..=7).map(f64::from).collect();
    let beta = with(&speeds(&[1.0], &[1.0], &[0.0]), choice(Role::Policy, "class-ordered-beta", &[]));
    let steady = with(&arrivals(&[1.0], &[0.5]), choice(Role::Statistics, "steady-state", &[]));
    let cases = [
        (with_lists(Role::Source, &[("arrivals_change_at_s", &[1.0])]), "`arrivals_change_factors` has 0 values"),
        (arrivals(&[2.0, 1.0], &[1.0, 2.0]), "`arrivals_change_at_s` must ascend: 2 is followed by 1"),
        (speeds(&[1.0], &[1.0, 2.0], &[1.0]), "`speed_change_groups` has 2 values and `speed_change_at_s` 1"),
        (speeds(&[1.0], &[8.0], &[1.0]), "`speed_change_groups` must be numbers of groups, 1 to 7, not 8"),
        (speeds(&[5.0; 7], &all, &[0.0; 7]), "from 5 s on, class 1 cannot be executed by any machine"),
        (beta, "`speed_change_at_s` does not go with `kind` \"class-ordered-beta\""),
        (steady, "have no steady state"),
    ];
    for (spec, expected) in cases {
        let problems = spec.problems();
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{problems:?} does not say {expected}");
    }
}
