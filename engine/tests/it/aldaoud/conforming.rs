//! The conformance suite of policies of queues, for each registered policy of classes of jobs. With `POWERSWEEP_COMPONENT`,
//! only the policy of this name is tested.
use powersweep_engine::components;
use powersweep_engine::lp::System;
use powersweep_engine::queues::policies::classes::{Rescaled, Visitor, visit};
use powersweep_engine::queues::{Poisson, QueuePolicy, ServerTable};
use powersweep_engine::spec::{Component, Value};
use powersweep_engine::{Choice, Role, SimSpec};
use proptest::prelude::*;

use super::properties::systems;
use super::tables::{choice, reals, spec, with};
use crate::queues::conforms;

const JOBS: u64 = 600;

/// The visitor that runs the suite and returns the number of completed jobs.
struct Suite;

impl Visitor for Suite {
    type Output = u64;

    fn visit<P: QueuePolicy>(self, table: ServerTable, arrivals: Rescaled<Poisson>, policy: P) -> u64 {
        conforms(&policy, &table, &arrivals, JOBS).len() as u64
    }
}

/// A policy with parameters that have an effect on the systems of these tests, where jobs take about a second.
fn sample(component: &Component, lpas_share: f64, over: &str) -> Choice {
    let real = |name, value| (name, Value::Real(value));
    match component.name {
        "class-lpas" => choice(Role::Policy, component.name, &[real("lpas_capacity_share", lpas_share)]),
        "class-ordered-beta" => {
            choice(Role::Policy, component.name, &[real("beta_window_s", 7.0), real("beta_target_s", 1.0)])
        }
        "class-dvs" => {
            let values = [real("dvs_period_s", 0.37), ("dvs_utilization", Value::Text(over.to_owned()))];
            choice(Role::Policy, component.name, &values)
        }
        name => choice(Role::Policy, name, &[]),
    }
}

/// Specs of a system under each registered policy that fits it.
fn under_each_policy(base: &SimSpec, lpas_share: f64, over: &str) -> Vec<SimSpec> {
    let wanted = std::env::var("POWERSWEEP_COMPONENT").ok();
    let components = components::of(Role::Policy).filter(|e| wanted.as_ref().is_none_or(|wanted| e.name == wanted));
    let specs = components.map(|component| with(base, sample(component, lpas_share, over)));
    specs.filter(|spec| spec.problems().is_empty()).collect()
}

fn conform(specs: &[SimSpec]) {
    for spec in specs {
        let name = spec.choice(Role::Policy).component().name;
        let completed = visit(spec, Suite).expect("it is a policy of classes");
        // A server of LPAS stays free for the next arrival of an eligible class, so that the last jobs of other classes may
        // wait for ever.
        assert!(completed == JOBS || name == "class-lpas", "{name}: {completed}");
    }
}

/// Up to 3 changes of all servers' speeds and of the arrivals; every server but server 0 may leave.
fn changes(machines: usize) -> impl Strategy<Value = Vec<(f64, f64, Vec<f64>)>> {
    let speed = prop_oneof![1 => Just(0.0), 1 => Just(1.0), 2 => 0.3_f64..2.0];
    let change = (1.0_f64..60.0, 0.3_f64..2.0, proptest::collection::vec(speed, machines));
    proptest::collection::vec(change, 1..4).prop_map(|changes| {
        let mut at_s = 0.0;
        let later = |(gap_s, arrivals, mut speeds): (f64, f64, Vec<f64>)| {
            at_s += gap_s;
            speeds[0] = speeds[0].max(0.3);
            (at_s, arrivals, speeds)
        };
        changes.into_iter().map(later).collect()
    })
}

/// The changes as parameters of source and platform.
fn changed(base: &SimSpec, changes: &[(f64, f64, Vec<f64>)]) -> SimSpec {
    let mut spec = base.clone();
    let at_s: Vec<f64> = changes.iter().map(|(at_s, _, _)| *at_s).collect();
    let factors: Vec<f64> = changes.iter().map(|(_, factor, _)| *factor).collect();
    spec.choice_mut(Role::Source).set("arrivals_change_at_s", reals(&at_s)).expect("is valid");
    spec.choice_mut(Role::Source).set("arrivals_change_factors", reals(&factors)).expect("is valid");
    let each =
        || changes.iter().flat_map(|(at_s, _, speeds)| speeds.iter().zip(1_u32..).map(move |(v, j)| (*at_s, j, *v)));
    let lists: [(&str, Vec<f64>); 3] = [
        ("speed_change_at_s", each().map(|(at_s, _, _)| at_s).collect()),
        ("speed_change_groups", each().map(|(_, group, _)| f64::from(group)).collect()),
        ("speed_change_factors", each().map(|(_, _, speed)| speed).collect()),
    ];
    for (name, list) in lists {
        spec.choice_mut(Role::Platform).set(name, reals(&list)).expect("is valid");
    }
    spec
}

/// The system with servers that can execute every class, as ordered-beta assumes: otherwise its timers go on for ever while
/// jobs wait for servers that are switched off.
fn able(system: &System) -> System {
    let cells = || (0..system.classes()).flat_map(|i| (0..system.machines()).map(move |j| (i, j)));
    let rates = cells().map(|(i, j)| system.rate_per_s(i, j).max(0.3)).collect();
    let busy_w = cells().map(|(i, j)| system.busy_w(i, j)).collect();
    System::new(system.arrivals_per_s().to_vec(), rates, busy_w, system.idle_w().to_vec()).expect("a system")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn policies_of_classes_conform(system in systems(), seed in 0_u64..1000, share in 0.0_f64..1.0, total in any::<bool>()) {
        let over = if total { "total" } else { "period" };
        let mut base = spec(&system);
        base.seed = seed;
        let mut specs = under_each_policy(&base, share, over);
        prop_assert!(!specs.is_empty(), "no policy of classes is registered, or none of the name in POWERSWEEP_COMPONENT");
        for spec in &mut specs {
            if spec.choice(Role::Policy).component().name == "class-ordered-beta" {
                spec.choose(super::tables::spec(&able(&system)).choice(Role::Platform).clone());
            }
        }
        conform(&specs);
    }

    #[test]
    fn policies_of_classes_conform_in_systems_that_change(
        (system, changes) in systems().prop_flat_map(|system| {
            let machines = system.machines();
            (Just(able(&system)), changes(machines))
        }),
        seed in 0_u64..1000,
        share in 0.0_f64..1.0,
    ) {
        let mut base = spec(&system);
        base.seed = seed;
        // For policies under which servers do not change: only the arrivals change.
        let mut arrivals_alone = changed(&base, &changes);
        arrivals_alone.choose(base.choice(Role::Platform).clone());
        conform(&under_each_policy(&changed(&base, &changes), share, "period"));
        conform(&under_each_policy(&arrivals_alone, share, "total"));
    }
}
