//! Advice for jobs that starve under a cap, and a cap that is only measured.
use powersweep_engine::{Limits, Role, Value};

use crate::capped::{capped, jobs, platform, run};
use crate::specs::{Build, simulate};

#[test]
fn a_job_over_the_cap_at_the_gear_of_a_rule_is_told_what_helps() {
    // One job waits, so that job 1 runs at the top gear: 20 W of procs and 4 W idle. At the lowest gear it would draw 12 W.
    let list = [(0., 10., 2, 1), (0., 10., 2, 1)];
    let starved = |cap: &str, gears: &str, over: &str| {
        let build = capped("fcfs", "easy", cap, &[if gears == "bsld" { 13. } else { 9. }], 1e3);
        let build = if gears == "bsld" { bsld(build).real("wq_threshold", 0.) } else { build };
        simulate(&build.text("over_cap_jobs", over).0, &jobs(&list), &Limits::NONE, None).unwrap_err().to_string()
    };
    for over in ["error", "drop"] {
        let error = starved("power-precedence", "bsld", over);
        assert!(error.contains("at the gear of `gear_rule`: raise a cap, or choose gear_rule = \"top\""), "{error}");
    }
    let error = starved("admission", "top", "error");
    assert!(error.ends_with("at the lowest gear: raise a cap, or choose over_cap_jobs = \"drop\""), "{error}");
}

fn bsld(build: Build) -> Build {
    build.choose(Role::GearRule, "bsld").real("bsld_threshold", 20.)
}

/// Nothing but the passes at changes of the cap differs from a run without a cap.
#[test]
fn a_cap_that_is_only_measured_goes_with_every_rule() {
    let list = [(0., 30., 3, 1), (1., 20., 3, 1), (2., 10., 1, 1), (3., 40., 1, 1), (4., 5., 4, 1)];
    let plain = || platform(4).choose(Role::Order, "sjf");
    let fixed = |build: Build, backfill| bsld(build).choose(Role::Backfill, backfill).text("head_gear", "fixed");
    let pooled = |build: Build| build.text("gpus_from", "log").int("gpus", 8);
    let builds: [&dyn Fn(Build) -> Build; 3] =
        [&|build| fixed(build, "easy"), &|build| fixed(build, "kept-head"), &|build| fixed(pooled(build), "easy")];
    for build in builds {
        let (uncapped, measured) = (build(plain()), build(plain()).choose(Role::Cap, "performance-precedence"));
        let measured = measured.set("cap_schedule_w", Value::Reals(vec![10.]));
        assert_eq!(measured.0.problems(), Vec::<String>::new());
        let ((_, without), (summary, with)) = (run(&uncapped, &list), run(&measured, &list));
        assert_eq!(with, without);
        assert!(summary.power_cap_violation_share.unwrap() > 0.);
        let acting = measured.choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(vec![20.]));
        assert!(!acting.0.problems().is_empty());
    }
}
