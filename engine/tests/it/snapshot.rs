//! Results of many specs by digest: the same task must give the same row in every release, unless a version is raised.
//!
//! `snapshot.txt` has a line for each spec: the digest of its results, then the spec. The specs were drawn once. With
//! `POWERSWEEP_BLESS=1` the test writes new digests, with `POWERSWEEP_BLESS=draw` also new specs of jobs; raise the version
//! of each component whose results changed first.
use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use powersweep_engine::components;
use powersweep_engine::signal::{Beyond, Sample, Signal};
use powersweep_engine::spec::{Component, Model, Param, Type};
use powersweep_engine::workload::{self, swf};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, simulate};
use sha2::{Digest, Sha256};

use crate::swf_fuzz::Dice;

/// Specs of jobs that are drawn.
const SPECS: usize = 400;

/// Roles whose components are drawn.
const DRAWN: [Role; 8] =
    [Role::Order, Role::Backfill, Role::GearRule, Role::Capacity, Role::Cap, Role::Deferral, Role::Power, Role::Rules];

/// A number from 0 to 1.
fn share(dice: &mut Dice) -> f64 {
    dice.below(1 << 20) as f64 / f64::from(1 << 20)
}

/// A log of half a day on 44 procs, which jobs use to four fifths, with users, groups, queues and partitions, memory, GPUs, and
/// measured powers of most jobs.
static LOG: LazyLock<swf::SwfLog> = LazyLock::new(|| {
    let mut dice = Dice(1);
    let mut text = "; UnixStartTime: 1672531200\n".to_owned();
    let mut submit = 0;
    for job in 1..=240 {
        submit += if dice.below(3) == 0 { dice.below(1000) } else { dice.below(60) };
        let (run_bits, width_bits) = (6 + dice.below(8), 1 + dice.below(5));
        let run = if dice.below(12) == 0 { 0 } else { 1 + dice.below(1 << run_bits) };
        let requested = match dice.below(10) {
            0 => -1,
            1 => (run / 2) as i64,
            2 => run as i64,
            _ => (run + dice.below(4000)) as i64,
        };
        let (procs, wait) = (1 + dice.below(1 << width_bits), dice.below(500));
        let (used_kib, asked_kib) = (dice.below(1 << 21), dice.below(1 << 21));
        let [user, group, queue, partition] = [9, 3, 3, 2].map(|n| 1 + dice.below(n));
        let _ = writeln!(
            text,
            "{job} {submit} {wait} {run} {procs} -1 {used_kib} {procs} {requested} {asked_kib} 1 {user} {group} -1 {queue} \
             {partition} -1 -1"
        );
        if dice.below(4) > 0 {
            let watts = procs as f64 * (80.0 + 300.0 * share(&mut dice));
            let _ = writeln!(text, "; {}: {job} {watts}", swf::POWER_KEY);
            if dice.below(2) > 0 {
                let samples: String =
                    (0..1 + dice.below(12)).map(|_| format!(" {}", watts * 2.0 * share(&mut dice))).collect();
                let _ = writeln!(text, "; {}: {job} {}{samples}", swf::POWER_SERIES_KEY, 1 + dice.below(600));
            }
        }
        if dice.below(3) == 0 {
            let _ = writeln!(text, "; {}: {job} {}", swf::GPUS_KEY, 1 + dice.below(4));
        }
    }
    swf::parse(text.as_bytes(), "snapshot.swf").unwrap()
});

/// A signal with a day's pattern for each quantity.
fn signal(quantity: &str) -> Signal {
    let mut dice = Dice(2);
    let scale = match quantity {
        "cap" => 20_000.0,
        "cap-share" => 1.0,
        _ => 300.0,
    };
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for hour in 0..72 {
        times.push(f64::from(hour) * 3600.0 + dice.below(900) as f64);
        values.push(scale * (0.5 + 0.5 * share(&mut dice)));
    }
    times[0] = 0.0;
    Signal::new(times, values, vec![], 72.0 * 3600.0, Sample::Mean, Beyond::Wrap).unwrap()
}

/// The components of a role that are drawn: those for batch jobs, without modules, which need a file.
fn drawable(role: Role) -> Vec<&'static Component> {
    components::of(role).filter(|component| component.model == Model::Batch && component.name != "wasm").collect()
}

/// A value of a parameter; `None` for one that [`TOGETHER`] or [`CAPS`] set, or that cannot be drawn alone.
fn draw_value(role: Role, param: &Param, dice: &mut Dice) -> Option<Value> {
    let list = |lists: &[&[f64]], dice: &mut Dice| Some(Value::Reals(lists[dice.below(lists.len())].to_vec()));
    match (param.name, param.ty) {
        (
            "native_procs" | "job_number_to" | "record_to" | "submit_to_s" | "size_factor" | "priority_map"
            | "class_map",
            _,
        ) => None,
        ("busy_w", _) => list(&[&[120.0, 150.0, 190.0, 240.0, 300.0, 370.0]], dice),
        ("gears_ghz" | "gear_volts" | "table_power_w" | "table_time_s", _) => None,
        ("ols_levels_procs", _) => list(&[&[11.0, 22.0, 44.0]], dice),
        ("resample_days", _) => Some(Value::Real(0.5)),
        ("resample_blocks", _) => Some(Value::Int(4)),
        ("power_top_w", _) => Some(Value::Real(300.0)),
        ("ols_period_s", _) => Some(Value::Real(dice.pick(&[7200.0, 30_000.0]))),
        ("idle_w", _) => Some(Value::Real(dice.pick(&[20.0, 90.0]))),
        ("wake_w" | "off_w" | "asleep_w", _) if role == Role::Platform => {
            Some(Value::Real(dice.pick(&[0.2, 12.0, 80.0])))
        }
        (_, Type::Bool) => Some(Value::Bool(dice.below(2) == 0)),
        (_, Type::Int { min, max }) => Some(Value::Int(dice.pick(&[0, 1, 2, 5, 12, 30]).clamp(min, max))),
        (_, Type::Real { min, max, .. }) => {
            let value = dice.pick(&[0.0, 0.1, 0.35, 0.7, 1.0, 2.5, 60.0, 700.0, 9000.0]) * (0.5 + share(dice));
            Some(Value::Real(value.clamp(min, max)))
        }
        (_, Type::OneOf(names)) => Some(Value::Text(dice.pick(names).to_owned())),
        (_, Type::Signal { quantities }) => Some(Value::Text(quantities[0].to_owned())),
        (_, Type::Formula { .. }) => {
            let texts = [
                "estimate_s * procs",
                "-(wait_s / estimate_s)^3 * procs",
                "log10(estimate_s) * procs + 870 * log10(submit_s)",
            ];
            Some(Value::Text(dice.pick(&texts).to_owned()))
        }
        (_, Type::Locator | Type::Module | Type::Reals { .. }) => None,
    }
}

/// Values of parameters that need each other.
const TOGETHER: [&str; 8] = [
    "partition_from=partition; partition_procs=[20, 24]",
    "partition_from=partition; partition_procs=[30, 14]; wide_jobs=drop; gpus_from=log; gpus=6",
    "gpus_from=log; gpus=5; wide_jobs=clamp",
    "memory_from=requested; memory_gib=40; wide_jobs=drop",
    "memory_from=requested-or-used; memory_gib=25; gpus_from=log; gpus=9; wide_jobs=drop",
    "class_from=queue; class_betas=[0.5, 0.1, 0.9]",
    "priority_from=queue; class_from=queue; class_betas=[0, 0.4, 1]",
    "job_power=measured-series",
];

/// Ways to state a cap: for a machine of stated watts, and for all.
const CAPS: [&str; 5] = [
    "cap_schedule_w=[9000]",
    "cap_schedule_w=[12000, 6500, 9000]",
    "cap_schedule_share=[0.7]",
    "cap_schedule_share=[0.9, 0.5, 1]",
    "cap_signal_share=cap-share",
];

/// A spec in a line: the components and the values that differ from the defaults.
fn draw(dice: &mut Dice) -> String {
    let mut words = vec!["source=swf; log=snapshot.swf".to_owned()];
    let together = if dice.below(2) == 0 { dice.pick(&TOGETHER) } else { "size_factor=1" };
    words.push(together.to_owned());
    if !together.contains("partition_procs") {
        words.push("procs=44".to_owned());
    }
    let mut params: Vec<(Role, &Param)> = Vec::new();
    for role in DRAWN {
        let drawable = drawable(role);
        let optional = matches!(role, Role::Capacity | Role::Cap | Role::Deferral);
        let component = if optional && dice.below(2) == 0 { drawable[0] } else { dice.pick(&drawable) };
        words.push(format!("{}={}", role.key(), component.name));
        if role == Role::Cap && component.name != "none" {
            words.push(dice.pick(&CAPS).to_owned());
        }
        params.extend(component.params.iter().map(|param| (role, param)));
    }
    for (role, name) in [(Role::Platform, "homogeneous"), (Role::Statistics, "summary")] {
        params.extend(components::find(role, name).unwrap().params.iter().map(|param| (role, param)));
    }
    for (role, param) in params {
        let is_set = words
            .iter()
            .flat_map(|word| word.split("; "))
            .any(|word| word.split_once('=').is_some_and(|(key, _)| key == param.name));
        let is_wanted = param.default == powersweep_engine::spec::Default::Required || param.name == "power_top_w";
        if !is_set
            && (is_wanted || dice.below(5) == 0)
            && let Some(value) = draw_value(role, param, dice)
        {
            words.push(format!("{}={value}", param.name));
        }
    }
    words.join("; ")
}

fn value(param: &Param, text: &str) -> Option<Value> {
    Some(match param.ty {
        Type::Bool => Value::Bool(text.parse().ok()?),
        Type::Int { .. } => Value::Int(text.parse().ok()?),
        Type::Real { .. } if text == "unlimited" => Value::Real(f64::INFINITY),
        Type::Real { .. } => Value::Real(text.parse().ok()?),
        Type::Reals { .. } => {
            let list = text.strip_prefix('[')?.strip_suffix(']')?.split(',');
            Value::Reals(list.map(|number| number.trim().parse()).collect::<Result<_, _>>().ok()?)
        }
        Type::OneOf(_) | Type::Locator | Type::Signal { .. } | Type::Module | Type::Formula { .. } => {
            Value::Text(text.to_owned())
        }
    })
}

/// The spec of a line; `None` if it is none, or has problems.
fn spec(line: &str) -> Option<SimSpec> {
    let mut spec = SimSpec::new();
    spec.seed = 7;
    let pairs: Vec<(&str, &str)> = line.split("; ").map(|word| word.split_once('=')).collect::<Option<_>>()?;
    for &(key, name) in &pairs {
        if let Some(role) = Role::ALL.into_iter().find(|role| role.key() == key) {
            spec.choose(Choice::new(components::find(role, name)?));
        }
    }
    for &(key, text) in &pairs {
        let param = |choice: &Choice| choice.component().params.iter().find(|param| param.name == key).copied();
        let found = spec.choices().find_map(|choice| Some((choice.component().role, param(choice)?)));
        if let Some((role, param)) = found {
            spec.choice_mut(role).set(key, value(&param, text)?).ok()?;
            if matches!(param.ty, Type::Signal { .. }) {
                spec.place_signal(text, Arc::new(signal(text)));
            }
        } else if !Role::ALL.iter().any(|role| role.key() == key) {
            return None;
        }
    }
    spec.problems().is_empty().then_some(spec)
}

/// The parts of a value that state something: a new column that is null in a spec does not change its digest.
fn stated(value: &impl Debug, hash: &mut Sha256) {
    for part in format!("{value:?}").split(", ").filter(|part| !part.ends_with(": None")) {
        hash.update(part);
        hash.update("\n");
    }
}

/// The digest of the results of a spec, and whether it ran.
fn digest(spec: &SimSpec) -> (String, bool) {
    let mut hash = Sha256::new();
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    let log = (spec.choice(Role::Source).component().name == "swf").then_some(&*LOG);
    let result = workload::build(spec, log).map_err(|error| error.to_string());
    let result = result
        .and_then(|workload| simulate(spec, &workload, &Limits::NONE, &mut details).map_err(|error| error.to_string()));
    let ran = result.is_ok();
    match result {
        Ok(measured) => {
            stated(&measured, &mut hash);
            details.jobs.iter().flatten().for_each(|row| stated(row, &mut hash));
            details.series.iter().flatten().for_each(|point| hash.update(format!("{point:?}\n")));
        }
        Err(error) => hash.update(error),
    }
    (hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect(), ran)
}

/// New specs of jobs: nine in ten run.
fn drawn() -> Vec<String> {
    let (mut dice, mut lines, mut failed) = (Dice(3), Vec::new(), 0);
    while lines.len() < SPECS {
        let line = draw(&mut dice);
        let Some(spec) = spec(&line) else { continue };
        let (_, ran) = digest(&spec);
        failed += usize::from(!ran);
        if ran || 10 * failed < lines.len() {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn the_same_spec_gives_the_same_results() {
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/it/snapshot.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let known: Vec<(&str, &str)> = text.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let bless = std::env::var("POWERSWEEP_BLESS").ok();
    let mut lines: Vec<String> = known.iter().map(|(_, line)| (*line).to_owned()).collect();
    if bless.as_deref() == Some("draw") {
        let queues = lines.into_iter().filter(|line| !line.starts_with("source=swf") && spec(line).is_some());
        lines = queues.chain(drawn()).collect();
    }
    let found: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {line}", digest(&spec(line).unwrap_or_else(|| panic!("no valid spec: {line}"))).0))
        .collect();
    if bless.is_some() {
        std::fs::write(path, found.join("\n") + "\n").unwrap();
        return;
    }
    let changed: Vec<&str> =
        found.iter().zip(text.lines()).filter(|(found, known)| found != known).map(|(_, known)| known).collect();
    assert!(
        changed.is_empty(),
        "{} of {} specs have other results than before. If that is wanted, raise the versions of their components and \
         run this test with POWERSWEEP_BLESS=1:\n{}",
        changed.len(),
        found.len(),
        changed.join("\n")
    );
}
