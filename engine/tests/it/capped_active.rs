//! Power caps together with capacity rules, under which procs sleep, with suspended jobs, and with equal entries.
use powersweep_engine::{Role, Value};

use crate::capped::{Job, combinations, combined, jobs, platform, run, times, tracsim};
use crate::specs::{Build, recorded};

#[test]
fn online_simulation_uses_the_cap_that_begins_at_its_instant() {
    // At 1000 the cap falls to 20 W. The five waiting jobs of 1000 s have waited 900 s: all must start at once to keep
    // their slowdowns below 2. 20 W suffice for four jobs at the lowest gear on 6 active procs (12 W idle), for two on 8,
    // and for one on 9. So all procs stay active, and no job starts before the cap rises. Under the previous cap, 100 W, 6
    // active procs would suffice.
    let list: Vec<Job> = std::iter::once((0., 1000., 10, 1)).chain((0..5).map(|_| (100., 1000., 1, 1))).collect();
    let build = |cap_period_s| {
        let build = platform(10).choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(vec![100., 20.]));
        let build = build.real("cap_period_s", cap_period_s).choose(Role::Capacity, "ols");
        build.real("ols_period_s", 1000.).real("ols_sla_slowdown", 2.)
    };
    let mut expected = vec![(0., 1000.)];
    expected.extend([(2000., 3000.); 5]);
    times(build(1000.), &list, &expected);
    // If the cap falls a second later, 6 procs are active: four jobs start at the lowest gear, the fifth at 2000.
    let active = |build: Build| {
        let steps = recorded("active_procs", &build.0, &jobs(&list)).into_iter();
        steps.filter(|&(at_s, _)| at_s <= 1000.).collect::<Vec<_>>()
    };
    assert_eq!(active(build(1000.)), [(0., 10.)]);
    assert_eq!(active(build(1001.)), [(0., 10.), (1000., 6.)]);
}

#[test]
fn procs_of_suspended_jobs_are_not_idle() {
    // Of four procs, jobs 1 to 3 hold four until 10. Jobs 2 and 3 and then job 4 hold three until 20, job 3 one until 30.
    let list = [(0., 10., 2, 1), (0., 10., 1, 3), (0., 10., 1, 3), (1., 10., 1, 1)];
    let idle = recorded("idle_procs", &tracsim("power-precedence", &[28.], 1e3).0, &jobs(&list));
    assert_eq!(idle, [(0., 0.), (10., 1.), (20., 3.), (30., 4.)]);
}

#[test]
fn waiting_for_watts_of_procs_that_switch_off_is_no_starvation() {
    // Eight procs switch off at 0 and draw 160 W until 100. No job runs from 10 on, but job 2 does not starve.
    let build = platform(10).choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(vec![100.]));
    let build =
        build.choose(Role::Capacity, "two-level").int("two_level_procs", 2).real("off_s", 100.).real("off_w", 20.);
    times(build, &[(0., 10., 2, 1), (20., 10., 2, 1)], &[(0., 10.), (100., 110.)]);
}

#[test]
fn power_precedence_resumes_at_every_event() {
    // Jobs 1 and 2 would draw 84 W with two idle procs, so that job 2 is suspended; the idle procs go to sleep. When job 3
    // arrives, 80 W suffice for job 2, which resumes.
    let build = platform(10).choose(Role::Order, "priority").choose(Role::Backfill, "within-priority");
    let build = build.choose(Role::Cap, "power-precedence").set("cap_schedule_w", Value::Reals(vec![80.]));
    let build = build.choose(Role::Capacity, "two-level").int("two_level_procs", 8);
    let list = [(0., 1000., 4, 1), (0., 1000., 4, 2), (100., 10., 1, 3)];
    let rows = times(build, &list, &[(0., 1000.), (0., 1100.), (1000., 1010.)]);
    assert_eq!(rows[1].suspended_s, 100.);
}

/// An equal entry of a list is no change of the cap, as an equal row of a signal is none.
#[test]
fn equal_entries_of_a_schedule_are_one_cap() {
    let job = |at: u32| (f64::from(at * 2), f64::from(5 + at * 7 % 20), 1 + at * 2 % 3, 1 + (at % 3) as u8);
    let list: Vec<Job> = (0..40).map(job).collect();
    for (order, backfill, cap) in combinations() {
        let found = |caps_w: &[f64], period_s: f64| {
            let spec = Build(combined(order, backfill, cap, caps_w, "top")).int("procs", 4);
            run(&spec.real("cap_period_s", period_s), &list)
        };
        let context = format!("{order} {backfill} {cap}");
        assert_eq!(found(&[34., 34.], 3.), found(&[34.], 3.), "{context}");
        assert_eq!(found(&[34., 34., 22., 22.], 5.), found(&[34., 22.], 10.), "{context}");
    }
}
