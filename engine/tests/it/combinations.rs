//! Invariants of every allowed combination of the registered components of batch policies, on random workloads.
//!
//! A new component is tested without a line here, except a cap that does not keep itself below every cap ([`sample`],
//! [`guarantees_cap`]). With `POWERSWEEP_COMPONENT`, only combinations with this component are tested.
use std::sync::LazyLock;

use powersweep_engine::batch::kernel::{JobRows, Policy, Simulation};
use powersweep_engine::batch::platform::Machine;
use powersweep_engine::batch::policy::batch::{Batch, event_order};
use powersweep_engine::batch::policy::composed::Composed;
use powersweep_engine::components;
use powersweep_engine::spec::{Component, Default, Param, Type};
use powersweep_engine::workload::{Job, Workload};
use powersweep_engine::{Choice, Details, JobRecord, Limits, Role, SeriesPoint, SimSpec, Summary, Value};
use proptest::prelude::*;

use crate::golden::workload;
use crate::{conformance, wasm};

/// Procs of the machine.
const PROCS: u32 = 16;

/// Roles that are combined.
const ROLES: [Role; 5] = [Role::Order, Role::Backfill, Role::GearRule, Role::Capacity, Role::Cap];

/// A value for a parameter without a default, or whose default has no effect on the small machine of these tests.
fn sample(param: &Param, component: &Component) -> Option<Value> {
    match (param.name, param.default, param.ty) {
        // The machine of these tests draws 3.4 W idle, 4.6 W busy at the lowest gear and 16 W at the top gear. `admission`
        // does not change running jobs, so that it keeps constant caps only. `power-precedence` suspends jobs instead of
        // lowering them, and needs a cap that admits the widest job at its gear.
        ("cap_schedule_w", ..) if component.name == "admission" => Some(Value::Reals(vec![7.0])),
        ("cap_schedule_w", ..) if component.name == "power-precedence" => Some(Value::Reals(vec![17.0, 6.0, 9.0])),
        ("cap_schedule_w", ..) => Some(Value::Reals(vec![12.0, 6.0, 9.0])),
        ("cap_period_s", ..) => Some(Value::Real(700.0)),
        ("ols_period_s", ..) => Some(Value::Real(900.0)),
        ("ols_sla_slowdown", ..) => Some(Value::Real(3.0)),
        ("two_level_procs", ..) => Some(Value::Int(9)),
        ("suspend_time_s", ..) => Some(Value::Real(200.0)),
        ("resume_rate_procs_per_min", ..) => Some(Value::Int(5)),
        (_, Default::Required, Type::Real { min, max, .. }) => Some(Value::Real((min + 0.5).clamp(min, max))),
        (_, Default::Required, Type::Int { min, max }) => Some(Value::Int((min + 1).clamp(min, max))),
        (_, Default::Required, Type::Bool) => Some(Value::Bool(true)),
        (_, Default::Required, Type::OneOf(names)) => Some(Value::Text(names[0].to_owned())),
        (_, Default::Required, Type::Formula { .. }) => Some(Value::Text(conformance::FORMULA.to_owned())),
        (_, Default::Required, Type::Module) => Some(Value::Text("easy.wasm".to_owned())),
        (_, Default::Required, Type::Locator | Type::Signal { .. }) => {
            panic!("these tests need a value for {} of {}", param.name, component.role.key())
        }
        (_, Default::Required, Type::Reals { min, max }) => Some(Value::Reals(vec![(min + 0.5).clamp(min, max)])),
        _ => None,
    }
}

fn choice(component: &'static Component) -> Choice {
    let mut choice = Choice::new(component);
    for param in component.params {
        if let Some(value) = sample(param, component) {
            choice.set(param.name, value).unwrap();
        }
    }
    choice
}

/// The component that is tested alone.
static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("POWERSWEEP_COMPONENT").ok());

/// Every allowed combination of components, on the machine of these tests.
static SPECS: LazyLock<Vec<SimSpec>> = LazyLock::new(|| {
    let mut specs = vec![SimSpec::new()];
    specs[0].choice_mut(Role::Platform).set("procs", Value::Int(i64::from(PROCS))).unwrap();
    for wanted in ["watch_machine", "node_lists"] {
        specs[0].choice_mut(Role::Statistics).set(wanted, Value::Bool(true)).unwrap();
    }
    for role in ROLES {
        specs = specs
            .into_iter()
            .flat_map(|spec| {
                components::of(role).map(move |component| {
                    let mut spec = spec.clone();
                    spec.choose(choice(component));
                    spec
                })
            })
            .collect();
    }
    specs.retain(|spec| spec.problems().is_empty() && (spec.module_name().is_none() || cfg!(feature = "wasm")));
    for spec in specs.iter_mut().filter(|spec| spec.module_name().is_some()) {
        wasm::place_easy(spec);
    }
    let Some(wanted) = WANTED.as_deref() else { return specs };
    let has = |spec: &SimSpec| spec.choices().any(|choice| choice.component().name == wanted);
    let is_drawn = EXPECTED.into_iter().flat_map(components::of).any(|component| component.name == wanted);
    if !is_drawn || specs.iter().any(has) {
        specs.retain(has);
    }
    assert!(!specs.is_empty(), "no component is called {wanted}");
    specs
});

/// Number of settings besides the components. Bit 0: procs need time and power to wake and to switch off. Bit 1: each class
/// of jobs has its own beta. Bit 2: `pdrc` starts jobs blindly.
const SETTINGS: u8 = 3;

/// A spec with some of the [`SETTINGS`].
fn with(spec: &SimSpec, settings: u8) -> SimSpec {
    let mut spec = spec.clone();
    if settings & 1 != 0 {
        // Powers below that of a busy proc at the lowest gear (0.29 W), so that all caps can be kept.
        for (name, value) in [("wake_s", 60.0), ("wake_w", 0.25), ("off_s", 45.0), ("off_w", 0.1), ("asleep_w", 0.02)] {
            spec.choice_mut(Role::Platform).set(name, Value::Real(value)).unwrap();
        }
    }
    if settings & 2 != 0 {
        spec.choice_mut(Role::Platform).set("class_betas", Value::Reals(vec![0.5, 0.1, 0.9])).unwrap();
    }
    if settings & 4 != 0 && spec.choice(Role::Cap).component().name == "pdrc" {
        spec.choice_mut(Role::Cap).set("pdrc_start", Value::Text("blind".to_owned())).unwrap();
    }
    assert_eq!(spec.problems(), Vec::<String>::new());
    spec
}

/// Roles of what is expected of jobs. Their components are drawn for each simulation, because all combinations are too many.
const EXPECTED: [Role; 3] = [Role::Predictor, Role::Corrector, Role::BackfillOrder];

/// A spec with a component of each of these roles by number, or with the wanted one, unless it is refused.
fn expecting(mut spec: SimSpec, numbers: [usize; 3]) -> SimSpec {
    for (role, number) in EXPECTED.into_iter().zip(numbers) {
        let components: Vec<_> = components::of(role).collect();
        let before = spec.clone();
        let wanted = components.iter().find(|component| WANTED.as_deref() == Some(component.name));
        spec.choose(choice(wanted.unwrap_or(&components[number % components.len()])));
        if !spec.problems().is_empty() {
            spec = before;
        }
    }
    spec
}

fn name(spec: &SimSpec) -> String {
    ROLES.into_iter().chain(EXPECTED).map(|role| spec.choice(role).component().name).collect::<Vec<_>>().join(" + ")
}

/// The results of one simulation.
type Ran = (Summary, Vec<JobRecord>, Vec<SeriesPoint>);

fn run(spec: &SimSpec, workload: &Workload) -> Ran {
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    let measured = powersweep_engine::simulate(spec, workload, &Limits::NONE, &mut details);
    let measured = measured.unwrap_or_else(|error| panic!("{}: {error}", name(spec)));
    let summary = measured.jobs().unwrap().clone();
    assert!(summary.energy_residual < 1e-9, "energy is not the sum of jobs and idle: {}", summary.energy_residual);
    assert!(summary.little_residual < 1e-9, "Little's law: {}", summary.little_residual);
    assert!(summary.procs_residual < 1e-9, "states of procs do not add up: {}", summary.procs_residual);
    (summary, details.jobs.unwrap(), details.series.unwrap())
}

/// The points of a step function, in order of time.
fn steps<'a>(series: &'a [SeriesPoint], name: &str) -> Vec<&'a SeriesPoint> {
    series.iter().filter(|point| point.series == name && point.level.is_none()).collect()
}

/// The integral of a step function up to `end_s`.
fn integral(steps: &[&SeriesPoint], end_s: f64) -> f64 {
    let ends = steps.iter().skip(1).map(|point| point.x).chain([end_s]);
    steps.iter().zip(ends).map(|(point, end)| point.value * (end - point.x)).sum()
}

/// Checks that every job ran once, after its submit, for at least its run time, and that there were always enough procs.
fn check_jobs(spec: &SimSpec, jobs: &[Job], rows: &[JobRecord]) {
    let name = name(spec);
    assert_eq!(rows.len(), jobs.len(), "{name}");
    let mut changes = Vec::new();
    for (job, row) in jobs.iter().zip(rows) {
        assert_eq!(row.job_id, job.id, "{name}");
        assert!(row.start_s >= job.submit_s, "{name}: {row:?}");
        assert!(row.finish_s - row.start_s >= job.run_s * (1.0 - 1e-12), "{name}: {row:?}");
        changes.push((row.start_s, i64::from(job.procs)));
        changes.push((row.finish_s, -i64::from(job.procs)));
    }
    // At equal instants ends come before starts.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut used = 0;
    for (at, more) in changes {
        used += more;
        assert!(used <= i64::from(PROCS), "{name}: {used} procs in use at {at} s");
    }
}

/// Checks that jobs hold at most the active procs. Jobs of length 0 are left out: they may have ended before procs went to
/// sleep at the same instant.
fn check_active(spec: &SimSpec, (summary, rows, series): &Ran) {
    let name = name(spec);
    let mut active: Vec<(f64, f64)> =
        steps(series, "active_procs").iter().map(|point| (point.x, point.value)).collect();
    assert_eq!(active.is_empty(), summary.last_finish_s == summary.first_submit_s, "{name}: active procs over time");
    active.push((f64::INFINITY, 0.0));
    for now in active.windows(2) {
        let ((from_s, procs), (until_s, _)) = (now[0], now[1]);
        let held = |row: &&JobRecord| row.start_s < row.finish_s && row.start_s < until_s && row.finish_s > from_s;
        for at_s in rows.iter().filter(held).map(|row| row.start_s.max(from_s)) {
            let together = rows.iter().filter(held).filter(|row| row.start_s <= at_s && row.finish_s > at_s);
            let used: u32 = together.map(|row| row.procs).sum();
            assert!(f64::from(used) <= procs, "{name}: {used} procs in use at {at_s} s, {procs} active");
        }
    }
}

/// Checks that each job has as many nodes as procs, and shares no node with another job at the same time.
fn check_nodes(spec: &SimSpec, rows: &[JobRecord]) {
    let name = name(spec);
    let nodes = |row: &JobRecord| -> Vec<u32> {
        let ranges = row.node_list.as_deref().unwrap().split(' ').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse().unwrap()
        });
        ranges.flatten().collect()
    };
    let lists: Vec<_> = rows.iter().map(nodes).collect();
    for (at, (row, list)) in rows.iter().zip(&lists).enumerate() {
        assert_eq!(list.len(), row.procs as usize, "{name}: {row:?}");
        assert!(list.iter().all(|node| *node < PROCS), "{name}: {row:?}");
        for (other, others) in rows.iter().zip(&lists).skip(at + 1) {
            let together = row.start_s.max(other.start_s) < row.finish_s.min(other.finish_s);
            assert!(!together || list.iter().all(|node| !others.contains(node)), "{name}: {row:?} {other:?}");
        }
    }
}

/// Checks the series of power: its integral is the energy, and it is below the cap if the rule guarantees this.
fn check_power(spec: &SimSpec, (summary, _, series): &Ran) {
    let name = name(spec);
    let power = steps(series, "power_w");
    assert!(!power.is_empty(), "{name}: no power is recorded");
    let energy = integral(&power, summary.last_finish_s);
    let scale = summary.energy_total_j.max(1.0);
    assert!((energy - summary.energy_total_j).abs() < 1e-9 * scale, "{name}: {energy} {summary:?}");
    if !guarantees_cap(spec) {
        return;
    }
    let caps = steps(series, "power_cap_w");
    assert!(!caps.is_empty(), "{name}: no cap is recorded");
    for point in &power {
        let cap = caps.iter().rev().find(|cap| cap.x <= point.x).unwrap().value;
        assert!(point.value <= cap * (1.0 + 1e-9), "{name}: {} W at {} s, the cap is {cap} W", point.value, point.x);
    }
}

/// Whether a rule keeps the power below a cap that is at least the power of all procs at the lowest gear, as here.
/// `admission` does not change running jobs, so that it cannot keep the cap when procs wake.
fn guarantees_cap(spec: &SimSpec) -> bool {
    match spec.choice(Role::Cap).component().name {
        "none" | "performance-precedence" => false,
        "admission" => spec.choice(Role::Capacity).component().name == "none",
        _ => true,
    }
}

/// Checks that a simulation that is cloned after `instants` gives the result of the original.
fn check_clone<P: Policy>(spec: &SimSpec, jobs: &[Job], policy: P, instants: usize) {
    let machine = Machine::new(spec, None).unwrap();
    let recorder = JobRows::new(jobs.len());
    let mut original = Simulation::new(jobs, machine, &Limits::NONE, event_order(spec).unwrap(), policy, recorder);
    let name = name(spec);
    for _ in 0..instants {
        original.advance().unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    let mut clone = original.clone();
    for simulation in [&mut original, &mut clone] {
        simulation.run().unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    assert_eq!(original.recorder().outcomes(), clone.recorder().outcomes(), "{name}");
    assert_eq!(original.integrals(), clone.integrals(), "{name}");
}

/// Random jobs with priorities and classes.
fn jobs() -> impl Strategy<Value = Workload> {
    let time = prop_oneof![1 => Just(0u32), 4 => 1u32..2000];
    let job = (prop_oneof![1 => Just(0u32), 2 => 0..400u32], time, 0..1000u32, 1..=PROCS, 1..=3u8);
    prop::collection::vec(job, 1..40).prop_map(|jobs| {
        let mut submit = 0.0;
        let mut priorities = Vec::new();
        let jobs: Vec<_> = jobs
            .into_iter()
            .map(|(gap, run, over, procs, priority)| {
                submit += f64::from(gap);
                priorities.push(priority);
                (submit, f64::from(run), f64::from(run + over), procs)
            })
            .collect();
        let mut workload = workload(&jobs);
        for (job, priority) in workload.jobs.iter_mut().zip(priorities) {
            (job.priority, job.class) = (priority, (job.id % 3) as u8);
        }
        workload
    })
}

/// Number of simulations of each test: `POWERSWEEP_CASES`, or 500.
fn cases() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(500, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn combinations_conform(
        workload in jobs(),
        spec in 0..SPECS.len(),
        settings in 0u8..1 << SETTINGS,
        expected in any::<[u8; 3]>(),
        instants in 0usize..30,
    ) {
        let spec = &expecting(with(&SPECS[spec], settings), expected.map(usize::from));
        if Composed::is_needed(spec) {
            let policy = Composed::new(spec, &Machine::new(spec, None).unwrap(), false).unwrap();
            check_clone(spec, &workload.jobs, policy, instants);
        } else {
            let policy = Batch::new(spec, &Machine::new(spec, None).unwrap()).unwrap();
            check_clone(spec, &workload.jobs, policy, instants);
        }
        let ran = run(spec, &workload);
        check_jobs(spec, &workload.jobs, &ran.1);
        check_active(spec, &ran);
        check_nodes(spec, &ran.1);
        check_power(spec, &ran);
        prop_assert_eq!(ran, run(spec, &workload), "{} is not deterministic", name(spec));
    }
}

#[test]
fn every_component_is_in_some_combination() {
    if std::env::var_os("POWERSWEEP_COMPONENT").is_some() {
        return;
    }
    for role in ROLES {
        for component in components::of(role) {
            let count = SPECS.iter().filter(|spec| spec.choice(role).component() == component).count();
            let is_built = component.name != "wasm" || cfg!(feature = "wasm");
            assert!(count > 0 || !is_built, "{} `{}` is refused in every combination", role.key(), component.name);
        }
    }
}
