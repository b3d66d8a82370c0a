//! The paper's tables by short simulations, and problems of impossible specs. There are fewer replications over less time
//! than the paper's 30 of 20,000 s, so that the bounds are wider than those of the whole manifest.
use powersweep_engine::components;
use powersweep_engine::spec::Value;
use powersweep_engine::workload::{self, Workload};
use powersweep_engine::{Choice, Details, Limits, Measured, QueueSummary, Role, SimSpec};

use super::systems;

const REPLICATIONS: u64 = 3;
const HORIZON_S: f64 = 6_000.0;

pub(super) fn choice(role: Role, name: &str, values: &[(&str, Value)]) -> Choice {
    let mut choice = Choice::new(components::find(role, name).expect("is registered"));
    for (name, value) in values {
        choice.set(name, value.clone()).expect("is valid");
    }
    choice
}

pub(super) fn reals(values: &[f64]) -> Value {
    Value::Reals(values.to_vec())
}

/// A spec of a system: source, platform, horizon; first come, first served.
pub(super) fn spec(system: &powersweep_engine::lp::System) -> SimSpec {
    let cells = || (0..system.classes()).flat_map(|i| (0..system.machines()).map(move |j| (i, j)));
    let rates: Vec<f64> = cells().map(|(i, j)| system.rate_per_s(i, j)).collect();
    let busy_w: Vec<f64> = cells().map(|(i, j)| system.busy_w(i, j)).collect();
    let mut spec = SimSpec::new();
    spec.choose(choice(Role::Source, "poisson-classes", &[("class_arrivals_per_s", reals(system.arrivals_per_s()))]));
    let platform = [
        ("group_rates_per_s", reals(&rates)),
        ("group_busy_w", reals(&busy_w)),
        ("group_idle_w", reals(system.idle_w())),
    ];
    spec.choose(choice(Role::Platform, "rate-matrix", &platform));
    spec.choose(choice(Role::Policy, "class-fcfs", &[]));
    spec.choose(choice(Role::Statistics, "horizon", &[("horizon_s", Value::Real(HORIZON_S))]));
    spec
}

pub(super) fn with(spec: &SimSpec, policy: Choice) -> SimSpec {
    let mut spec = spec.clone();
    spec.choose(policy);
    spec
}

pub(super) fn row(spec: &SimSpec) -> QueueSummary {
    let workload: Workload = workload::build(spec, None).expect("a source of queues needs no jobs");
    let measured = powersweep_engine::simulate(spec, &workload, &Limits::NONE, &mut Details::default());
    match measured.expect("it runs") {
        Measured::Queues(summary) => *summary,
        Measured::Jobs(_) => panic!("the spec is of queues"),
    }
}

/// Mean completion time (s) and energy (J) over the replications.
fn means(spec: &SimSpec) -> (f64, f64) {
    let (mut w, mut energy) = (0.0, 0.0);
    for seed in 1..=REPLICATIONS {
        let mut spec = spec.clone();
        spec.seed = seed;
        let summary = row(&spec);
        w += summary.turnaround_s_mean / REPLICATIONS as f64;
        energy += summary.energy_total_j / REPLICATIONS as f64;
    }
    (w, energy)
}

pub(super) fn lpas(share: f64) -> Choice {
    choice(Role::Policy, "class-lpas", &[("lpas_capacity_share", Value::Real(share))])
}

/// Compares rows of (policy, W, saving in percent over FCFS, the policy of `spec`) with simulations: W within 2%, the saving
/// within 0.6 points.
fn table(spec: &SimSpec, rows: &[(Choice, f64, f64)]) {
    let (_, base) = means(spec);
    for (policy, w_s, saving) in rows {
        let spec = with(spec, policy.clone());
        let (w, energy) = means(&spec);
        let ours = 100.0 * (1.0 - energy / base);
        let name = policy.component().name;
        assert!((w / w_s - 1.0).abs() < 0.02, "{name}: W is {w}, published {w_s}");
        assert!((ours - saving).abs() < 0.6, "{name}: the saving is {ours}, published {saving}");
    }
}

#[test]
fn simulations_agree_with_table_1() {
    let spec = spec(&systems::experiment_1());
    table(&spec, &[(choice(Role::Policy, "class-pme", &[]), 0.261, 13.20), (lpas(1.0), 0.165, 38.21)]);
}

#[test]
fn simulations_agree_with_table_2() {
    let spec = spec(&systems::experiment_2());
    let rows = [
        (choice(Role::Policy, "class-fcfs", &[]), 0.207, 0.0),
        (choice(Role::Policy, "class-pme", &[]), 0.207, 4.41),
        (lpas(1.0), 0.308, 22.38),
    ];
    table(&spec, &rows);
}

/// The platform of section 6, by its factors.
fn structured() -> Choice {
    let values = [
        ("structure_class_rates_per_s", reals(&[1.0, 2.0, 5.0, 3.0])),
        ("structure_speeds", reals(&[1.0, 3.0, 4.0, 0.2, 6.0, 5.0, 10.0])),
        ("structure_betas_j", reals(&systems::BETAS)),
        ("group_idle_w", reals(&systems::STRUCTURED_IDLE_W)),
    ];
    choice(Role::Platform, "structured", &values)
}

#[test]
fn simulations_agree_with_table_6() {
    let mut spec = spec(&systems::structured(1.0));
    spec.choose(structured());
    let window = [("beta_window_s", 25.0), ("beta_target_s", 0.2), ("beta_tolerance", 0.1)];
    let window = window.map(|(name, value)| (name, Value::Real(value)));
    let rows = [
        (choice(Role::Policy, "class-fcfs", &[]), 0.163, 0.0),
        (choice(Role::Policy, "class-pme", &[]), 0.164, 0.009),
        (lpas(1.0), 0.167, 40.93),
        (lpas(0.5), 0.20, 57.13),
        (choice(Role::Policy, "class-ordered-beta", &window), 0.177, 40.38),
    ];
    table(&spec, &rows);
}

#[test]
fn a_row_has_the_results_of_programs_and_decomposition() {
    let system = systems::structured(1.0);
    let mut spec = spec(&system);
    spec.choose(structured());
    let found = row(&with(&spec, lpas(0.5)));
    assert!((found.lp_lambda.expect("it has one") - 2.336).abs() < 1e-9);
    assert!((found.lp_capacity.expect("it has one") - 1.668).abs() < 1e-9);
    assert!((found.lp_power_w.expect("it has one") - 152.8008).abs() < 1e-6);
    let shares = found.lp_shares.expect("it has some");
    assert_eq!(shares.len(), 28);
    // A server is busy for its load at most, apart from one job.
    for (group, busy) in found.group_utilization.iter().enumerate() {
        let load: f64 = shares.iter().skip(group).step_by(7).sum();
        assert!(*busy <= load + 0.01, "group {group}: {busy} of {load}");
    }
    let theta = found.lp_theta.expect("it has some");
    for group in 0..7 {
        let load: f64 = theta.iter().skip(group).step_by(7).sum();
        assert!((load - 1.0).abs() < 1e-9, "under theta* all servers of a structured system are busy: {load}");
    }
    // The rates have rank 1.
    let (singular, rank_1) = (found.svd_singular_per_s.expect("a matrix"), found.svd_rank_1_per_s.expect("a matrix"));
    assert!(singular.len() == 4 && singular[1] < 1e-12 * singular[0], "{singular:?}");
    assert!((rank_1[7 + 6] - 20.0).abs() < 1e-10, "class 2 on the last group: {rank_1:?}");
    assert_eq!((found.svd_left.map(|u| u.len()), found.svd_right.map(|v| v.len())), (Some(16), Some(28)));
    let betas = found.svd_betas_j.expect("every group has rates");
    assert!(betas.iter().zip(systems::BETAS).all(|(ours, beta)| (ours - beta).abs() < 1e-10), "{betas:?}");
    assert_eq!(found.class_turnaround_s_mean.len(), 4);
    assert_eq!(found.class_jobs_left_count.len(), 4);
    let jobs: u64 = found.class_jobs_count.iter().sum();
    assert_eq!(jobs, found.measured_jobs_count);
    assert!((jobs as f64 / (24.5 * HORIZON_S) - 1.0).abs() < 0.02);
    assert!(found.procs_residual < 1e-9);

    let found = row(&spec);
    assert!(
        found.lp_lambda.is_some()
            && found.lp_theta.is_some()
            && found.svd_betas_j.is_some()
            && found.lp_capacity.is_none()
            && found.lp_power_w.is_none()
            && found.lp_shares.is_none()
    );
    assert_eq!(row(&spec), found, "the same spec gives the same row");
}

#[test]
fn a_group_of_servers_is_the_same_as_groups_of_one_server_each() {
    let each = spec(&systems::cluster_homogeneous());
    let mut grouped = each.clone();
    let platform = each.choice(Role::Platform);
    let firsts = [0, 2, 8, 15, 22, 26];
    let of_firsts = |name: &str| {
        let values: Vec<f64> = platform.reals(name).chunks(30).flat_map(|row| firsts.map(|first| row[first])).collect();
        (name.to_owned(), reals(&values))
    };
    let values = ["group_rates_per_s", "group_busy_w", "group_idle_w"].map(of_firsts);
    let mut values: Vec<(&str, Value)> = values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    values.push(("group_servers", reals(&systems::GROUPS.map(|count| count as f64))));
    grouped.choose(choice(Role::Platform, "rate-matrix", &values));
    for policy in ["class-fcfs", "class-pme", "class-lpas", "class-dvs"] {
        let rows = [&each, &grouped].map(|spec| {
            let mut spec = with(spec, choice(Role::Policy, policy, &[]));
            spec.choice_mut(Role::Statistics).set("horizon_s", Value::Real(50.0)).expect("is valid");
            row(&spec)
        });
        let of = |row: &QueueSummary| (row.turnaround_s_mean, row.energy_total_j, row.measured_jobs_count);
        assert_eq!(of(&rows[0]), of(&rows[1]), "{policy}");
    }
}

#[test]
fn impossible_specs_are_refused() {
    let good = spec(&systems::experiment_1());
    assert_eq!(good.problems(), Vec::<String>::new());
    let platform = |name: &str, value: &[f64]| {
        let mut spec = good.clone();
        spec.choice_mut(Role::Platform).set(name, reals(value)).expect("is in its range");
        spec
    };
    let policy = |name: &str, values: &[(&str, Value)]| with(&good, choice(Role::Policy, name, values));
    let mut unreachable = good.clone();
    unreachable.choice_mut(Role::Source).set("class_arrivals_per_s", reals(&[1.0; 4])).expect("is in its range");
    let mut without_arrivals = good.clone();
    without_arrivals.choice_mut(Role::Source).set("class_arrivals_per_s", reals(&[0.0; 3])).expect("is in its range");
    let mut standing = spec(&systems::structured(1.0));
    standing.choose(structured());
    let speeds = reals(&[1.0, 3.0, 4.0, 0.0, 6.0, 5.0, 10.0]);
    standing.choice_mut(Role::Platform).set("structure_speeds", speeds).expect("is in its range");
    // The capacity of the system is between these two factors of its arrivals.
    let steady = |factor: f64| {
        let mut spec = with(&good, choice(Role::Statistics, "steady-state", &[]));
        spec.choice_mut(Role::Source).set("arrivals_factor", Value::Real(factor)).expect("is in its range");
        spec
    };
    assert_eq!(steady(0.5).problems(), Vec::<String>::new());
    let cases = [
        (steady(10.0), "a steady state needs a capacity lambda* above 1"),
        (without_arrivals, "`class_arrivals_per_s` has no arrivals"),
        (
            with(&standing, choice(Role::Policy, "class-ordered-beta", &[])),
            "`structure_speeds` has a group without a rate: give the betas (`beta_groups_j`)",
        ),
        (platform("group_rates_per_s", &[1.0; 5]), "`group_rates_per_s` has 5 values: 3 classes"),
        (platform("group_busy_w", &[1.0; 17]), "`group_busy_w` has 17 values"),
        (platform("group_idle_w", &[1.0; 5]), "5 groups (`group_idle_w`) need 15"),
        (platform("group_servers", &[1.0; 5]), "`group_servers` has 5 values: 6 groups"),
        (platform("group_servers", &[1.5; 6]), "`group_servers` must be whole numbers, not 1.5"),
        (platform("group_servers", &[65_532.0, 1.0, 1.0, 1.0, 1.0, 1.0]), "`group_servers` adds up to more than"),
        (platform("group_rates_per_s", &[0.0; 18]), "`group_rates_per_s`: class 1 cannot be executed by any machine"),
        (unreachable, "4 classes (`class_arrivals_per_s`) and 6 groups (`group_idle_w`) need 24"),
        (
            policy("class-lpas", &[("lpas_capacity", Value::Real(2.0)), ("lpas_capacity_share", Value::Real(1.0))]),
            "`lpas_capacity` and `lpas_capacity_share`",
        ),
        (
            policy("class-ordered-beta", &[("beta_groups_j", reals(&[1.0; 5]))]),
            "`beta_groups_j` has 5 values: 6 groups",
        ),
        (policy("class-dvs", &[("dvs_mhz", reals(&[1.0, 2.0]))]), "`dvs_busy_w` has 5 values and `dvs_mhz` 2"),
        (
            policy("class-dvs", &[("dvs_mhz", reals(&[1.0, 3.0, 2.0, 4.0, 5.0]))]),
            "`dvs_mhz` must ascend: 3 is followed by 2",
        ),
    ];
    let most = [65_531.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(platform("group_servers", &most).problems(), Vec::<String>::new(), "65,536 servers are not too many");
    for (spec, expected) in cases {
        let problems = spec.problems();
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{problems:?} does not say {expected}");
    }
    let mut mixed = good.clone();
    mixed.choose(choice(Role::Platform, "homogeneous", &[]));
    assert!(!mixed.problems().is_empty(), "processors have no rate for each class");
    let mut batch = good;
    batch.choose(choice(Role::Policy, "batch", &[]));
    assert!(!batch.problems().is_empty(), "a batch policy has no classes of jobs");
}
