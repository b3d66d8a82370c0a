//! The cost of each rule over EASY, on real logs at their own load and under higher load, in paired runs.
//!
//! The bench prints a row for each rule: median over the rounds of the rule's time over that of EASY (first come, first
//! served), time per job, mean number of waiting jobs, and a digest of all starts and gears, so that two versions can be compared.
//! The last two workloads are loaded: KTH-SP2 on 65% of its procs, and generated jobs. On 65% of the procs, a row also has the
//! growth of the rule: the exponent of the number of waiting jobs that the time per job has grown with since the full machine; 1
//! is linear growth. A machine under a cap has six gears of 100 to 200 W and 80 W idle, and 75% of its peak power.
//!
//! Times are processor times of `simulate` without a table of jobs. Logs come from the folder `POWERSWEEP_TRACES`; without it the
//! bench is skipped. `--log=TEXT` and `--rule=TEXT` (a name or a part of names) restrict it, `--slow` adds the rules that take
//! minutes on large logs, `--test` runs one short round.
#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use powersweep_engine::signal::{Beyond, Sample, Signal};
use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Measured, Role, SimSpec, Value, components, simulate};

use timing::best_s;

/// Log, or the generator of jobs; procs, and the part of them that the machine has.
const WORKLOADS: [(&str, i64, f64); 7] = [
    ("KTH-SP2-1996-2.1-cln", 100, 1.0),
    ("SDSC-SP2-1998-4.2-cln", 128, 1.0),
    ("CTC-SP2-1996-3.1-cln", 338, 1.0),
    ("SDSC-BLUE-2000-4.2-cln", 1_152, 1.0),
    ("CEA-Curie-2011-2.1-cln", 93_312, 1.0),
    ("KTH-SP2-1996-2.1-cln", 100, 0.65),
    (LUBLIN, 256, 0.8),
];

/// The generator of the loaded workload.
const LUBLIN: &str = "lublin";

const HOUR_S: f64 = 3_600.0;

/// Name, components by role and parameters, and whether the rule takes minutes on large logs.
type Rule = (&'static str, &'static [(Role, &'static str)], bool);

const RULES: &[Rule] = &[
    ("none", &[(Role::Backfill, "none")], false),
    ("easy priority", &[(Role::Order, "priority")], false),
    ("easy sjf", &[(Role::Order, "sjf")], false),
    ("easy widest", &[(Role::Order, "widest")], false),
    ("easy f1", &[(Role::Order, "f1")], false),
    ("easy wfp3", &[(Role::Order, "wfp3")], false),
    ("none wfp3", &[(Role::Order, "wfp3"), (Role::Backfill, "none")], false),
    ("easy formula", &[(Role::Order, "formula")], false),
    ("none formula", &[(Role::Order, "formula"), (Role::Backfill, "none")], false),
    ("easy bsld", &[(Role::GearRule, "bsld")], false),
    ("conservative", &[(Role::Backfill, "conservative")], false),
    ("conservative bsld", &[(Role::Backfill, "conservative"), (Role::GearRule, "bsld")], false),
    ("kept-head", &[(Role::Backfill, "kept-head")], false),
    ("within-priority", &[(Role::Order, "priority"), (Role::Backfill, "within-priority")], false),
    ("easy fcbf", &[(Role::BackfillOrder, "fcfs")], false),
    ("easy priority bf", &[(Role::BackfillOrder, "priority")], false),
    ("easy sjbf", &[(Role::BackfillOrder, "sjf")], false),
    ("easy widest bf", &[(Role::BackfillOrder, "widest")], false),
    ("easy wfp3 bf", &[(Role::BackfillOrder, "wfp3")], false),
    ("easy f1 bf", &[(Role::BackfillOrder, "f1")], false),
    ("easy formula bf", &[(Role::BackfillOrder, "formula")], false),
    ("exact", &[(Role::Predictor, "exact")], false),
    ("scaled", &[(Role::Predictor, "scaled")], false),
    ("recent-average", &[(Role::Predictor, "recent-average")], false),
    ("recent increments", &[(Role::Predictor, "recent-average"), (Role::Corrector, "increments")], false),
    ("recent doubling", &[(Role::Predictor, "recent-average"), (Role::Corrector, "doubling")], false),
    ("recent sjbf", &[(Role::Predictor, "recent-average"), (Role::BackfillOrder, "sjf")], false),
    ("sgd-linear", &[(Role::Predictor, "sgd-linear")], false),
    ("sgd sjbf", &[(Role::Predictor, "sgd-linear"), (Role::BackfillOrder, "sjf")], false),
    ("cap admission", &[(Role::Cap, "admission")], false),
    ("cap uniform", &[(Role::Cap, "uniform")], false),
    ("cap pdrc", &[(Role::Cap, "pdrc")], false),
    ("cap performance", &[(Role::Cap, "performance-precedence")], false),
    ("cap power", &[(Role::Cap, "power-precedence")], false),
    ("cap none", &[(Role::Cap, "admission"), (Role::Backfill, "none")], false),
    ("two-level", &[(Role::Capacity, "two-level")], false),
    ("ols", &[(Role::Capacity, "ols")], false),
    ("power-save", &[(Role::Capacity, "power-save")], false),
    ("wait-awhile", &[(Role::Deferral, "wait-awhile")], false),
    ("lowest-slot", &[(Role::Deferral, "lowest-slot")], false),
    ("lowest-window", &[(Role::Deferral, "lowest-window")], false),
    ("saving-per-wait", &[(Role::Deferral, "saving-per-wait")], false),
    ("quantile", &[(Role::Deferral, "quantile")], false),
    ("knapsack", &[(Role::Order, "priority"), (Role::Cap, "uniform"), (Role::Backfill, "knapsack")], true),
    ("cap conservative", &[(Role::Cap, "admission"), (Role::Backfill, "conservative")], true),
    (DEPTH_100, &[(Role::Cap, "admission"), (Role::Backfill, "conservative")], false),
];

/// Conservative backfilling under a cap, with reservations for a hundred jobs.
const DEPTH_100: &str = "cap depth 100";

fn main() {
    let option = |name: &str| std::env::args().find_map(|arg| arg.strip_prefix(name).map(str::to_owned));
    let flag = |name: &str| std::env::args().any(|arg| arg == name);
    let (rounds, repeats) = if flag("--test") { (1, 1) } else { (5, 1) };
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES") else {
        println!("skipped: POWERSWEEP_TRACES is not set");
        return;
    };
    let (log, rule) = (option("--log="), option("--rule="));
    let is_chosen = |wanted: &Option<String>, name: &str| {
        let is_exact = |text: &String| RULES.iter().any(|rule| rule.0 == text);
        wanted.as_ref().is_none_or(|text| if is_exact(text) { name == text } else { name.contains(text.as_str()) })
    };
    // By rule on the full machine of the log that is also loaded: time per job (s) and waiting jobs.
    let mut at_full_size: HashMap<_, (f64, f64)> = HashMap::new();
    for (name, procs, size_factor) in WORKLOADS.into_iter().filter(|(name, ..)| is_chosen(&log, name)) {
        let easy = spec(name, procs, size_factor);
        let workload = workload(traces.as_ref(), name, &easy);
        let jobs = workload.jobs.len() as f64;
        let size = if size_factor == 1.0 { String::new() } else { format!(", {size_factor} of the procs") };
        println!("{name}{size}, {jobs} jobs: EASY {:.2} ms", best_s(5, || time(&easy, &workload)) * 1e3);
        println!("  {:20} {:>8} {:>11} {:>9} {:>16} growth", "", "of EASY", "us per job", "waiting", "starts");
        for &(rule, choices, is_slow) in RULES.iter().filter(|(name, ..)| is_chosen(&rule, name)) {
            if is_slow && !flag("--slow") {
                continue;
            }
            let mut spec = with(&easy, choices);
            if rule == DEPTH_100 {
                spec.choice_mut(Role::Backfill).set("reservation_depth", Value::Int(100)).unwrap();
            }
            let mut rounds = (0..rounds).map(|_| {
                let easy_s = best_s(repeats.max(2), || time(&easy, &workload));
                let rule_s = best_s(repeats, || time(&spec, &workload));
                (rule_s / easy_s, rule_s / jobs)
            });
            let first = rounds.next().unwrap();
            let mut all = vec![first];
            all.extend(rounds.take_while(|_| first.0 <= 40.0));
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (ratio, per_job_s) = all[all.len() / 2];
            let waiting = waiting(&spec, &workload);
            let growth = at_full_size.get(&(name, rule)).map_or(String::new(), |(full_s, full_waiting)| {
                format!("{:.2}", (per_job_s / full_s).ln() / (waiting / full_waiting).ln())
            });
            at_full_size.insert((name, rule), (per_job_s, waiting));
            let per_job_us = per_job_s * 1e6;
            let starts = digest(&spec, &workload);
            println!("  {rule:20} {ratio:8.2} {per_job_us:11.3} {waiting:9.1} {starts:016x} {growth}");
        }
    }
}

/// Mean number of waiting jobs.
fn waiting(spec: &SimSpec, workload: &Workload) -> f64 {
    match simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap() {
        Measured::Jobs(summary) => summary.queue_length_mean.unwrap(),
        Measured::Queues(_) => unreachable!("the workloads are jobs"),
    }
}

fn time(spec: &SimSpec, workload: &Workload) {
    simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap();
}

/// A digest of starts and gears.
fn digest(spec: &SimSpec, workload: &Workload) -> u64 {
    let mut details = Details { jobs: Some(Vec::new()), ..Details::default() };
    simulate(spec, workload, &Limits::NONE, &mut details).unwrap();
    let mut hasher = DefaultHasher::new();
    for job in details.jobs.unwrap() {
        (job.job_id, job.start_s.to_bits(), job.finish_s.to_bits()).hash(&mut hasher);
    }
    hasher.finish()
}

fn spec(name: &str, procs: i64, size_factor: f64) -> SimSpec {
    let mut spec = SimSpec::new();
    let source = if name == LUBLIN { name } else { "swf" };
    let mut source = Choice::new(components::find(Role::Source, source).unwrap());
    if name == LUBLIN {
        source.set("synthetic_jobs_count", Value::Int(50_000)).unwrap();
        source.set("synthetic_procs", Value::Int(procs)).unwrap();
    } else {
        source.set("log", Value::Text("bench".to_owned())).unwrap();
    }
    spec.choose(source);
    spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).unwrap();
    spec.choice_mut(Role::Platform).set("size_factor", Value::Real(size_factor)).unwrap();
    spec.choice_mut(Role::Rules).set("min_run_s", Value::Real(1.0)).unwrap();
    spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("drop".to_owned())).unwrap();
    spec
}

fn with(easy: &SimSpec, choices: &[(Role, &str)]) -> SimSpec {
    let mut spec = easy.clone();
    for &(role, name) in choices {
        let mut choice = Choice::new(components::find(role, name).unwrap());
        match (role, name) {
            (Role::Order | Role::BackfillOrder, "formula") => {
                let param = choice.component().params[0].name;
                choice.set(param, Value::Text("-(wait_s / max(estimate_s, 1))^3 * procs".to_owned())).unwrap();
            }
            (Role::Capacity, "two-level") => {
                let procs = spec.choice(Role::Platform).int("procs");
                choice.set("two_level_procs", Value::Int(procs / 2)).unwrap();
            }
            (Role::Capacity, "power-save") => choice.set("suspend_time_s", Value::Real(600.0)).unwrap(),
            (Role::Deferral, _) => {
                choice.set("defer_signal", Value::Text("grid".to_owned())).unwrap();
                spec.place_signal("grid", Arc::new(signal()));
            }
            (Role::GearRule, "bsld") => choice.set("bsld_threshold", Value::Real(2.0)).unwrap(),
            (Role::Cap, _) => {
                choice.set("cap_schedule_share", Value::Reals(vec![0.75])).unwrap();
                choice.set("over_cap_jobs", Value::Text("drop".to_owned())).unwrap();
                let mut power = Choice::new(components::find(Role::Power, "stated").unwrap());
                power.set("busy_w", Value::Reals(vec![100.0, 120.0, 140.0, 160.0, 180.0, 200.0])).unwrap();
                power.set("idle_w", Value::Real(80.0)).unwrap();
                spec.choose(power);
                let gears = Value::Reals(vec![0.8, 1.1, 1.4, 1.7, 2.0, 2.3]);
                spec.choice_mut(Role::Platform).set("gears_ghz", gears).unwrap();
            }
            _ => (),
        }
        spec.choose(choice);
    }
    assert_eq!(spec.problems(), Vec::<String>::new());
    spec
}

/// Hours of four years with days and weeks.
fn signal() -> Signal {
    let hours = 4 * 8_766;
    let wave = |hour: usize, period: f64| (hour as f64 / period * std::f64::consts::TAU).sin();
    let values = (0..hours).map(|hour| 300.0 + 80.0 * wave(hour, 24.0) + 20.0 * wave(hour, 167.0)).collect();
    let times_s = (0..hours).map(|hour| hour as f64 * HOUR_S).collect();
    Signal::new(times_s, values, vec![], hours as f64 * HOUR_S, Sample::Mean, Beyond::Wrap).unwrap()
}

fn workload(traces: &Path, name: &str, spec: &SimSpec) -> Workload {
    if name == LUBLIN {
        return workload::build(spec, None).unwrap();
    }
    let mut text = Vec::new();
    let file = std::fs::File::open(traces.join(format!("{name}.swf.gz"))).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
    workload::build(spec, Some(&swf::parse(&text, name).unwrap())).unwrap()
}
