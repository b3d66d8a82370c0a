//! Random manifests: decoding, encoding, counting and skipping agree with a brute-force evaluation of the conditions.

use std::collections::BTreeSet;

use powersweep_engine::{Role, Value};
use powersweep_experiments::{Decoder, TaskSpec};

use crate::{Random, sweep};

/// Number of manifests.
const CASES: u64 = 200;
/// Larger sweeps are skipped, since brute force visits every index.
const INDICES_MAX: u64 = 700;

/// One condition of an `[[exclude]]` table: its key and the values as in TOML.
type Condition = (&'static str, Vec<&'static str>);

const WORKLOAD: [(&str, &[&str]); 4] = [
    ("synthetic_jobs_count", &["10", "20", "30"]),
    ("min_run_s", &["0", "1.5", "60"]),
    ("wide_jobs", &["\"clamp\"", "\"drop\"", "\"error\""]),
    ("interarrival_factor", &["0.5", "1", "2"]),
];
const PLATFORM: [(&str, &[&str]); 3] =
    [("size_factor", &["1", "1.1", "2"]), ("beta", &["0", "0.5", "1"]), ("procs", &["8", "64"])];
const POLICY: [(&str, &[&str]); 4] = [
    ("queue_order", &["\"fcfs\"", "\"sjf\"", "\"f1\""]),
    ("backfill", &["\"none\"", "\"easy\"", "\"conservative\""]),
    ("gear_rule", &["\"top\"", "\"bsld\""]),
    ("event_order", &["\"batch\"", "\"submit-first\""]),
];
const GEARS: [(&str, &[&str]); 3] = [
    ("bsld_threshold", &["1.5", "2", "3"]),
    ("wq_threshold", &["0", "4", "\"unlimited\""]),
    ("head_gear", &["\"renew\"", "\"fixed\""]),
];

fn list(values: &[&str]) -> String {
    if let [one] = values { (*one).to_owned() } else { format!("[{}]", values.join(", ")) }
}

/// A manifest without `[[exclude]]` tables, and the tables.
fn manifest(random: &mut Random) -> (String, Vec<Vec<Condition>>) {
    let mut text = String::from("version = 1\nname = \"random\"\n");
    let seeds = ["", "seeds = 7\n", "seeds = [3, 1, 2]\n", "seeds = { from = 5, count = 4 }\n"];
    text.push_str(seeds[random.below(seeds.len())]);
    let mut axes: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    let blocks = |random: &mut Random,
                  text: &mut String,
                  section: &str,
                  params: &[(&'static str, &'static [&'static str])],
                  axes: &mut Vec<(&'static str, Vec<&'static str>)>| {
        // Blocks differ in a value of their own, so that they cannot overlap.
        for (at, label) in ["a", "b", "c"].iter().enumerate().take(1 + random.below(3)) {
            text.push_str(&format!("[{section}.{label}]\n"));
            match section {
                "workloads" => text.push_str(&format!("synthetic_procs = {}\n", 100 + at)),
                "platforms" => text.push_str(&format!("static_share = 0.{at}\n")),
                _ => text.push_str(&format!("reservation_inclusive = true\ngear_bsld_tau_s = {}\n", 600 + at)),
            }
            for (name, values) in params {
                let needed = *name == "gear_rule";
                if needed || random.chance(60) {
                    let values = if needed { vec!["\"bsld\""] } else { random.some(values) };
                    text.push_str(&format!("{name} = {}\n", list(&values)));
                    axes.push((name, values));
                }
            }
            if section == "policies" {
                for (name, values) in GEARS {
                    let values = random.some(values);
                    text.push_str(&format!("{name} = {}\n", list(&values)));
                    axes.push((name, values));
                }
            }
        }
    };
    blocks(random, &mut text, "workloads", &WORKLOAD, &mut axes);
    blocks(random, &mut text, "platforms", &PLATFORM, &mut axes);
    blocks(random, &mut text, "policies", &POLICY, &mut axes);
    axes.push(("workload", vec!["\"a\""]));
    axes.push(("platform", vec!["\"a\""]));
    axes.push(("policy", vec!["\"a\""]));
    let excludes = (0..random.below(5))
        .map(|_| {
            let mut exclude: Vec<Condition> = Vec::new();
            for _ in 0..=random.below(3) {
                let (name, values) = random.pick(&axes).clone();
                if exclude.iter().all(|(known, _)| *known != name) {
                    exclude.push((name, random.some(&values)));
                }
            }
            exclude
        })
        .collect();
    (text, excludes)
}

/// Whether a task has one of the values, read from its spec.
fn holds(task: &TaskSpec, (name, values): &Condition) -> bool {
    let shown = match *name {
        "workload" => format!("\"{}\"", task.workload),
        "platform" => format!("\"{}\"", task.platform),
        "policy" => format!("\"{}\"", task.policy),
        _ => match Role::ALL.into_iter().find(|role| role.key() == *name) {
            Some(role) => format!("\"{}\"", task.sim.choice(role).component().name),
            None => match task.sim.choices().find_map(|choice| choice.get(name)) {
                None => return false,
                Some(Value::Text(text)) => format!("\"{text}\""),
                Some(Value::Real(v)) if v.is_infinite() => "\"unlimited\"".to_owned(),
                Some(value) => value.to_string(),
            },
        },
    };
    values.contains(&shown.as_str())
}

#[test]
fn random_sweeps_agree_with_brute_force() {
    let (mut with_excludes, mut all_excluded) = (0, 0);
    for seed in 0..CASES {
        let mut random = Random(seed);
        let (plain, excludes) = manifest(&mut random);
        let full = sweep(&plain);
        if full.index_count() > INDICES_MAX {
            continue;
        }
        let tasks: Vec<TaskSpec> = (0..full.index_count()).map(|index| full.task(index).expect("a task")).collect();
        let ids: BTreeSet<_> = tasks.iter().map(|task| task.task_id).collect();
        assert_eq!(ids.len(), tasks.len(), "seed {seed}");
        for task in &tasks {
            assert_eq!(full.index_of(task), Some(task.index), "seed {seed}");
        }
        let excluded: Vec<bool> =
            tasks.iter().map(|task| excludes.iter().any(|exclude| exclude.iter().all(|c| holds(task, c)))).collect();
        let mut text = plain.clone();
        for exclude in &excludes {
            text.push_str("[[exclude]]\n");
            exclude.iter().for_each(|(name, values)| text.push_str(&format!("{name} = {}\n", list(values))));
        }
        // Conditions that never hold together, or that leave nothing, are errors of their own.
        let empty = excludes.iter().any(|exclude| !tasks.iter().any(|t| exclude.iter().all(|c| holds(t, c))));
        if empty || excluded.iter().all(|e| *e) {
            let errors = crate::errors(&text);
            assert!(errors.contains("matches nothing") || errors.contains("every task is excluded"), "{errors}");
            all_excluded += 1;
            continue;
        }
        with_excludes += u64::from(!excludes.is_empty());
        let sweep = sweep(&text);
        assert_eq!(sweep.task_count(), excluded.iter().filter(|e| !**e).count() as u64, "seed {seed}\n{text}");
        let mut next = None;
        let mut decoder = Decoder::new(sweep.clone());
        for index in (0..sweep.index_count()).rev() {
            // One decoder for all tasks: values that it keeps from one task must not appear in another.
            assert_eq!(decoder.task(index), sweep.task(index), "seed {seed} index {index}\n{text}");
            let out = excluded[usize::try_from(index).expect("small")];
            assert_eq!(sweep.is_excluded(index), out, "seed {seed} index {index}\n{text}");
            assert_eq!(sweep.task(index).is_none(), out);
            if !out {
                next = Some(index);
            }
            assert_eq!(sweep.next_included(index), next, "seed {seed} from {index}\n{text}");
        }
        for axis in sweep.axes().iter().filter(|axis| axis.section == "seeds") {
            assert_eq!(axis.values.iter().filter_map(|v| v.tasks_count).sum::<u64>(), sweep.task_count());
        }
        let by_block: u64 = sweep.blocks().iter().filter(|b| b.section == "policies").map(|b| b.tasks_count).sum();
        assert_eq!(by_block, sweep.task_count());
    }
    assert!(with_excludes > CASES / 8, "{with_excludes} of {CASES} cases had excludes");
    assert!(all_excluded > 0, "the generator should also leave nothing at times");
}

/// Number of edits.
const EDITS: u64 = 60;

/// The manifest with values removed or reordered, axes reduced to one value, other seeds, and perhaps an `[[exclude]]`
/// table.
fn edited(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((name, values)) = line.split_once(" = [").filter(|_| random.chance(70)) else {
            lines.push(line.to_owned());
            continue;
        };
        let values: Vec<&str> = values.trim_end_matches(']').split(", ").collect();
        let mut values = random.some(&values);
        if random.chance(50) {
            values.reverse();
        }
        lines.push(format!("{name} = {}", list(&values)));
    }
    if random.chance(30) {
        lines.push("[[exclude]]\npolicy = \"a\"\nworkload = \"a\"".to_owned());
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_mapping_agrees_with_index_of() {
    let (mut kept, mut lost) = (0_u64, 0_u64);
    for seed in 0..EDITS {
        let mut random = Random(seed);
        let from = manifest(&mut random).0;
        // From few values to many, or the other way round.
        let to = edited(&from, &mut random);
        let (from, to) = if random.chance(50) { (from, to) } else { (edited(&to, &mut random), from) };
        let usable = |text: &str| powersweep_experiments::Manifest::parse("test.toml", text).is_ok();
        if !usable(&from) || !usable(&to) {
            continue;
        }
        let (old, new) = (sweep(&from), sweep(&to));
        let mut mapping = powersweep_experiments::Mapping::new(&old, &new);
        let step = 1 + old.index_count() / 200;
        for index in (0..old.index_count()).step_by(usize::try_from(step).expect("small")) {
            // In any order: tables built for one task must be right for the others.
            let index = if random.chance(30) { random.next() % old.index_count() } else { index };
            let Some(task) = old.task(index) else { continue };
            let expected = new.index_of(&task);
            assert_eq!(mapping.index(index), expected, "seed {seed} index {index}\n{from}\n{to}");
            *(if expected.is_some() { &mut kept } else { &mut lost }) += 1;
        }
    }
    assert!(kept > 500 && lost > 500, "{kept} tasks kept, {lost} lost");
}
