use super::*;
use crate::components;
use crate::spec::Value;

fn generated(source: &str, params: &[(&str, Value)]) -> SimSpec {
    let mut spec = SimSpec::new();
    let mut choice = Choice::new(components::find(Role::Source, source).expect("is registered"));
    for (name, value) in params {
        choice.set(name, value.clone()).expect("is valid");
    }
    spec.choose(choice);
    spec
}

#[test]
fn the_rules_apply_to_generated_jobs() {
    for generator in GENERATORS {
        let Generator { component: Component { name, .. }, jobs_count, machine_procs, .. } = generator;
        let mut spec = generated(name, &[(jobs_count, Value::Int(50)), (machine_procs, Value::Int(256))]);
        spec.choice_mut(Role::Rules).set("record_from", Value::Int(10)).expect("is valid");
        let workload = build(&spec, None).expect("builds");
        assert_eq!(workload.jobs.iter().map(|j| j.id).collect::<Vec<_>>(), (11..=50).collect::<Vec<_>>(), "{name}");
        assert_eq!(workload.native_procs, Some(256));
        let counts = workload.counts;
        assert_eq!((counts.records_count, counts.sliced_out_count, counts.filled_estimate_count), (50, 10, 40));
        spec.seed += 1;
        assert_ne!(build(&spec, None).expect("builds").jobs, workload.jobs, "{name}: the seed matters");
    }
}

#[test]
fn extreme_parameters_are_errors() {
    let many = generated("lublin", &[("synthetic_jobs_count", Value::Int(1 << 40))]);
    let error = build_within(&many, None, 1 << 30).expect_err("is too large");
    assert!(matches!(error, WorkloadError::TooLarge { jobs, .. } if jobs == 1 << 40), "{error}");
    let slow = generated("poisson", &[("poisson_rate_per_h", Value::Real(1e-305))]);
    let error = build(&slow, None).expect_err("submit times overflow");
    assert!(error.to_string().contains("has the submit time inf s"), "{error}");
}

#[test]
fn a_stated_machine_size_replaces_that_of_the_source() {
    let mut spec = generated("poisson", &[]);
    spec.choice_mut(Role::Rules).set("native_procs", Value::Int(77)).expect("is valid");
    assert_eq!(build(&spec, None).expect("builds").native_procs, Some(77));
}
