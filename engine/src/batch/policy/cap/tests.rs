//! A clone of a run under a cap continues like the original.
use crate::batch::kernel::{EventOrder, JobRows, Simulation};
use crate::batch::platform::Machine;
use crate::batch::policy::composed::Composed;
use crate::components;
use crate::limits::Limits;
use crate::spec::{Choice, Role, SimSpec, Value};
use crate::workload;

fn spec(cap: &str, backfill: &str) -> SimSpec {
    let mut spec = SimSpec::new();
    let choices = [
        (Role::Source, "tracsim"),
        (Role::Power, "table"),
        (Role::Order, "priority"),
        (Role::Backfill, backfill),
        (Role::Cap, cap),
    ];
    for (role, name) in choices {
        spec.choose(Choice::new(components::find(role, name).expect("it is registered")));
    }
    let mut set = |role, name, value| spec.choice_mut(role).set(name, value).expect("it fits");
    set(Role::Source, "tracsim_gap_mean_s", Value::Real(400.0));
    set(Role::Platform, "gears_ghz", Value::Reals(vec![1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0]));
    set(Role::Cap, "cap_schedule_w", Value::Reals(vec![45e3, 35e3, 25e3]));
    spec
}

#[test]
fn a_clone_continues_like_the_original() {
    let rules = [
        ("admission", "easy"),
        ("uniform", "knapsack"),
        ("pdrc", "within-priority"),
        ("power-precedence", "within-priority"),
        ("performance-precedence", "none"),
        ("uniform", "conservative"),
        ("pdrc", "conservative"),
    ];
    for (cap, backfill) in rules {
        let spec = spec(cap, backfill);
        assert_eq!(spec.problems(), Vec::<String>::new());
        let workload = workload::build(&spec, None).expect("it builds");
        let machine = Machine::new(&spec, Some(150)).expect("it is a machine");
        let policy = Composed::new(&spec, &machine, true).expect("it is a policy");
        let recorder = JobRows::new(workload.jobs.len());
        let mut run = Simulation::new(&workload.jobs, machine, &Limits::NONE, EventOrder::Batch, policy, recorder);
        for _ in 0..5 {
            for _ in 0..7 {
                run.advance().expect("it goes on");
            }
            let (mut original, mut clone) = (run.clone(), run.clone());
            original.run().expect("it ends");
            clone.run().expect("it ends");
            assert_eq!(original.recorder().outcomes(), clone.recorder().outcomes());
            assert_eq!(original.integrals(), clone.integrals());
            let finished = [original, clone].map(|run| {
                let mut points = Vec::new();
                (run.into_parts().1.finish(Some(&mut points)), points)
            });
            assert_eq!(finished[0], finished[1], "{cap}");
        }
    }
}
