//! `powersweep find`: the answers of the full grid from a fifth of its tasks.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::rows::{self, Row, lines, number};
use crate::sandbox::{Ended, Sandbox};

/// A sweep with the values of its axes in place of the words in capitals.
const SWEEP: &str = "
version = 1
name = \"NAME\"
seeds = { from = 1, count = SEEDS }

[workloads.made]
source = \"lublin\"
synthetic_jobs_count = 200
synthetic_procs = 64

[platforms.cluster]
size_factor = SIZES

[policies.full]
backfill = \"easy\"
";

const SAVING: &str = "
[policies.save]
backfill = \"easy\"
gear_rule = \"bsld\"
bsld_threshold = THRESHOLDS
";

const SIZES: &str = "{ from = 1, to = 2.5, step = 0.02 }";

fn manifest(name: &str, seeds: usize, sizes: &str) -> String {
    SWEEP.replace("NAME", name).replace("SEEDS", &seeds.to_string()).replace("SIZES", sizes)
}

fn saving(thresholds: &str) -> String {
    SAVING.replace("THRESHOLDS", thresholds)
}

/// A limit of a metric at which feasibility is monotone in `size_factor`, not at the ends, in each group of the rows.
fn monotone_limit(groups: &BTreeMap<String, Vec<f64>>) -> f64 {
    let is_monotone = |limit: f64| {
        groups.values().all(|means| {
            let holds: Vec<bool> = means.iter().map(|mean| *mean <= limit).collect();
            holds.is_sorted() && !holds[0] && holds[holds.len() - 1]
        })
    };
    let mut means: Vec<f64> = groups.values().flatten().copied().collect();
    means.sort_by(f64::total_cmp);
    let limits: Vec<f64> = means.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).filter(|l| is_monotone(*l)).collect();
    limits[limits.len() / 2]
}

/// Means of `bsld_mean` in the order of `size_factor`, by the other columns.
fn slowdowns(sandbox: &Sandbox, experiment: &str, by: &[&str]) -> BTreeMap<String, Vec<f64>> {
    let all = [by, &["size_factor"]].concat().join(",");
    let mut found = lines(sandbox, &["results", experiment, "--by", &all, "--columns", "bsld_mean"]);
    found.sort_by(|one, other| number(one, "size_factor").total_cmp(&number(other, "size_factor")));
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in found {
        let name = by.iter().map(|column| row[*column].to_string()).collect::<Vec<_>>().join(" ");
        groups.entry(name).or_default().push(number(&row, "mean(bsld_mean)"));
    }
    groups
}

/// The one answer.
fn answer(document: &Json) -> &Json {
    assert_eq!(document["groups"].as_array().map(Vec::len), Some(1), "{document}");
    &document["groups"][0]["answer"]
}

fn count(document: &Json, name: &str) -> u64 {
    document[name].as_u64().unwrap_or_else(|| panic!("{name} in {document}"))
}

/// The tasks that have a row. Their indices are those of several manifests.
fn ids(sandbox: &Sandbox, experiment: &str) -> Vec<String> {
    let mut ids = rows::try_ids(&sandbox.path("results/data"), &[experiment]).expect("no part is deleted");
    ids.sort();
    assert!(ids.windows(2).all(|two| two[0] != two[1]), "a task has two rows");
    ids
}

/// At most a fifth of the grid has run, and no other task.
fn is_a_fifth(sandbox: &Sandbox, document: &Json, grid: u64) {
    assert_eq!(count(document, "tasks_of_grid"), grid);
    let run = count(document, "tasks_with_rows");
    assert!(5 * run <= grid, "{run} of {grid}");
    let experiment = document["experiment"].as_str().expect("a name");
    assert_eq!(ids(sandbox, experiment).len() as u64, run);
}

fn of_size<'a>(sandbox: &Sandbox, limit: &'a str, more: &[&'a str]) -> Ended {
    let over = "size_factor=1..2.5:0.02";
    let args = ["find", "base.toml", "--over", over, "--minimise", "size_factor", "--subject-to", limit, "--quiet"];
    sandbox.run(&[&args, more].concat())
}

#[test]
fn bisection_finds_the_least_size() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", manifest("grid", 3, SIZES));
    sandbox.write("base.toml", manifest("base", 3, "[1]"));
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    let means = slowdowns(&sandbox, "grid", &["policy"]);
    let limit = format!("bsld_mean <= {}", monotone_limit(&means));
    let best = lines(&sandbox, &["best", "grid", "--minimise", "size_factor", "--subject-to", &limit]);
    let found = of_size(&sandbox, &limit, &["--json"]).exits(0).json();
    assert_eq!(answer(&found)["values"]["size_factor"], best[0]["size_factor"]);
    assert_eq!(answer(&found)["seeds"], 3);
    let mean = &answer(&found)["conditions"][0];
    assert!(rows::near(mean["mean"].as_f64().expect("a mean"), number(&best[0], "mean(bsld_mean)"), 1e-12));
    assert!(rows::near(mean["ci95"].as_f64().expect("an interval"), number(&best[0], "ci95(bsld_mean)"), 1e-12));
    is_a_fifth(&sandbox, &found, 76 * 3);
    assert_eq!((&found["version"], &found["goal"]["method"]), (&1.into(), &"bisection".into()));
    assert_eq!(found["groups"][0]["exceptions"], Json::Array(Vec::new()));
    let candidates = found["groups"][0]["candidates"].as_array().expect("the map");
    let tried = candidates.iter().filter(|candidate| candidate["verdict"] != "not tried").count();
    assert_eq!((candidates.len(), tried as u64 * 3), (76, count(&found, "tasks_run")));
    // The derived manifest has the tried tasks: it can be run, and nothing is left to run.
    let tasks = format!("{} tasks, {} done already, 0 to run", tried * 3, tried * 3);
    sandbox.run(&["run", "base-find.toml"]).exits(0).says(&[&tasks]);
    // A repetition runs nothing; another limit uses the rows.
    let again = of_size(&sandbox, &limit, &["--json"]).exits(0).json();
    assert_eq!((count(&again, "tasks_run"), answer(&again)), (0, answer(&found)));
    let text = of_size(&sandbox, &limit, &[]).exits(0);
    text.prints(&[
        "The least size_factor with bsld_mean <= ",
        "3 of 3",
        "of 228 tasks of the full grid",
        "0 of them now",
    ]);
    let strict =
        of_size(&sandbox, "bsld_mean < 0", &["--json"]).exits(1).says(&["no candidate satisfies the conditions"]);
    assert_eq!(
        (answer(&strict.json()), count(&strict.json(), "tasks_run")),
        (&Json::Null, 0),
        "the spread values are known"
    );
}

/// The least size whose share of seeds with a small slowdown is large enough, from the rows of the full grid.
#[test]
fn a_share_of_seeds_is_a_condition() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", manifest("grid", 20, "{ from = 1, to = 2.5, step = 0.25 }"));
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    let mut by_size: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows::tasks(&sandbox.path("results/data"), "grid").values() {
        by_size.entry(row["size_factor"].to_string()).or_default().push(number(row, "bsld_mean"));
    }
    let mut all: Vec<f64> = by_size.values().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    // A limit that about half of all tasks keep.
    let limit = 0.5 * (all[all.len() / 2] + all[all.len() / 2 + 1]);
    let share = |values: &[f64]| values.iter().filter(|value| **value <= limit).count() as f64 / values.len() as f64;
    let least = by_size.iter().find(|(_, values)| share(values) >= 0.8).expect("the largest machine");
    for condition in [format!("P(bsld_mean <= {limit}) >= 0.8"), format!("p80(bsld_mean) <= {limit}")] {
        let over = "size_factor=1..2.5:0.25";
        let find =
            ["find", "grid.toml", "--over", over, "--minimise", "size_factor", "--subject-to", &condition, "--json"];
        let found = sandbox.run(&find).exits(0).json();
        assert_eq!(answer(&found)["values"]["size_factor"].to_string(), *least.0, "{found}");
        assert_eq!(answer(&found)["conditions"][0]["mean"].as_f64(), Some(share(least.1)), "{found}");
    }
    let wrong = ["find", "grid.toml", "--over", "size_factor=1..2:0.5", "--minimise", "size_factor", "--subject-to"];
    sandbox.run(&[&wrong[..], &["P(bsld_mean <= 5) >= 95"]].concat()).exits(2).says(&["from 0 to 1"]);
}

/// The rows of draws from a log tell which part of its jobs a draw has.
#[test]
fn draws_from_a_log_have_the_intervals_of_results() {
    let sandbox = Sandbox::new();
    let job = |id: u64| {
        let (procs, run_s) = (1 + id * 7 % 32, 600 + id * id * 97 % 20_000);
        format!("{id} {} -1 {run_s} {procs} -1 -1 {procs} {run_s} -1 1 1 1 1 1 1 -1 -1\n", id * 6_000)
    };
    let jobs: String = (1..=400).map(job).collect();
    sandbox.write("days.swf", format!("; MaxProcs: 64\n{jobs}"));
    let made = "source = \"lublin\"\nsynthetic_jobs_count = 200\nsynthetic_procs = 64";
    let days = "source = \"swf\"\nlog = \"./days.swf\"\nresample_days = 1\nresample_blocks = 5";
    sandbox.write("draws.toml", manifest("draws", 6, "1").replace(made, days));
    let over = ["--over", "size_factor=1,2", "--minimise", "size_factor", "--subject-to", "wait_s_mean <= 100000"];
    let find = [&["find", "draws.toml"], &over[..], &["--json", "--quiet"]].concat();
    let found = sandbox.run(&find).exits(0).json();
    let shown = lines(
        &sandbox,
        &["results", "draws-find", "--where", "size_factor=1", "--columns", "wait_s_mean", "--by", "policy"],
    );
    let (half, whole) = (answer(&found)["conditions"][0]["ci95"].as_f64(), number(&shown[0], "ci95(wait_s_mean)"));
    assert!(whole > 0.0 && half.is_some_and(|half| rows::near(half, whole, 1e-12)), "{found}: {whole}");
}

#[test]
fn each_policy_has_an_answer() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", manifest("grid", 3, SIZES) + &saving("[1.5, 3]"));
    sandbox.write("base.toml", manifest("base", 3, "1") + &saving("[1.5, 3]"));
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    let means = slowdowns(&sandbox, "grid", &["policy", "bsld_threshold"]);
    assert_eq!(means.len(), 3);
    let limit = format!("bsld_mean <= {}", monotone_limit(&means));
    let found = of_size(&sandbox, &limit, &["--json"]).exits(0).json();
    let groups = found["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 3);
    for group in groups {
        let policy = group["group"]["policy"].as_str().expect("a policy");
        let threshold = group["group"].get("bsld_threshold").map_or_else(String::new, Json::to_string);
        let only = [format!("policy={policy}"), format!("bsld_threshold={threshold}")];
        let args = [
            "best",
            "grid",
            "--minimise",
            "size_factor",
            "--subject-to",
            &limit,
            "--where",
            &only[0],
            "--where",
            &only[1],
        ];
        let best = lines(&sandbox, &args);
        assert_eq!(group["answer"]["values"]["size_factor"], best[0]["size_factor"], "{policy} {threshold}");
    }
    is_a_fifth(&sandbox, &found, 3 * 76 * 3);
    // A parameter that one policy lacks: the search is over the other one.
    let over = ["find", "base.toml", "--over", "bsld_threshold=1..5:0.5", "--name", "thresholds"];
    let goal = ["--maximise", "bsld_threshold", "--subject-to", "bsld_mean <= 1e9"];
    let greatest = sandbox.run(&[&over[..], &goal].concat()).exits(0);
    greatest.says(&["left out, since bsld_threshold does not vary there: policy=full"]).prints(&["     5 "]);
}

#[test]
fn halving_finds_the_least_energy() {
    let sandbox = Sandbox::new();
    let thresholds = "{ from = 1.25, to = 9, step = 0.25 }";
    let only_saving = |text: String| text.replace("[policies.full]\nbackfill = \"easy\"\n", "");
    sandbox.write("grid.toml", only_saving(manifest("grid", 16, "1")) + &saving(thresholds));
    sandbox.write("base.toml", only_saving(manifest("base", 16, "1")) + &saving("2"));
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    let all = lines(&sandbox, &["results", "grid", "--by", "bsld_threshold", "--columns", "bsld_mean,energy_total_j"]);
    // The cheapest candidates are too slow.
    let mut slow: Vec<f64> = all.iter().map(|row| number(row, "mean(bsld_mean)")).collect();
    slow.sort_by(f64::total_cmp);
    let limit = format!("bsld_mean <= {}", 0.5 * (slow[15] + slow[16]));
    let goal = ["--minimise", "energy_total_j", "--subject-to", &limit];
    let best: Vec<Row> = lines(&sandbox, &[&["best", "grid"], &goal[..]].concat());
    let over = ["find", "base.toml", "--over", "bsld_threshold=1.25..9:0.25", "--json", "--quiet"];
    let found = sandbox.run(&[&over[..], &goal].concat()).exits(0).json();
    assert_eq!(answer(&found)["values"]["bsld_threshold"], best[0]["bsld_threshold"], "{best:?}");
    let mean = answer(&found)["goal"]["mean"].as_f64().expect("a mean");
    assert!(rows::near(mean, number(&best[0], "mean(energy_total_j)"), 1e-12));
    assert_eq!((&found["goal"]["method"], &answer(&found)["seeds"]), (&"successive halving".into(), &16.into()));
    is_a_fifth(&sandbox, &found, 32 * 16);
}

#[test]
fn an_interrupted_search_continues() {
    let sandbox = Sandbox::new();
    let slow = manifest("base", 2, "1").replace("count = 200", "count = 20000");
    sandbox.write("base.toml", slow);
    let over = "size_factor=1..2.5:0.02";
    let args = ["find", "base.toml", "--over", over, "--minimise", "size_factor", "--subject-to", "bsld_mean <= 20"];
    let mut first = sandbox.start(&args);
    first.says("step 2");
    first.signal("INT");
    let ended = first.wait();
    assert_eq!(ended.code(), Some(130), "{ended}");
    let rows = ids(&sandbox, "base-find").len() as u64;
    let second = sandbox.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(count(&second, "tasks_run") + rows, count(&second, "tasks_with_rows"));
    assert!(rows >= 10 && count(&second, "tasks_run") > 0, "{rows} rows before {second}");
    let whole = Sandbox::new();
    whole.write("base.toml", std::fs::read(sandbox.path("base.toml")).expect("it is there"));
    let whole = whole.run(&[&args[..], &["--json", "--quiet"]].concat()).exits(0).json();
    assert_eq!(second["groups"], whole["groups"]);
    assert_eq!(count(&second, "tasks_with_rows"), count(&whole, "tasks_run"));
}

#[test]
fn a_contradiction_of_monotony_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("base.toml", manifest("base", 2, "[1]"));
    // The utilisation falls with the size: great sizes fail.
    let found = of_size(&sandbox, "utilization_installed >= 0.3", &["--json"]);
    let document = found.json();
    let found = found.exits(0).says(&["all tasks: feasibility is not monotone in size_factor: 1 is feasible, but not"]);
    drop(found);
    assert_eq!(answer(&document)["values"]["size_factor"], 1.0);
    let exceptions = document["groups"][0]["exceptions"].as_array().expect("exceptions");
    assert_eq!(exceptions[0]["feasible"]["size_factor"], 1.0);
    assert!(!exceptions[0]["infeasible"].as_array().expect("values").is_empty());
}

#[test]
fn a_coordinator_runs_the_tasks() {
    let sandbox = Sandbox::new();
    sandbox.write("base.toml", manifest("base", 2, "[1]"));
    let local = of_size(&sandbox, "bsld_mean <= 20", &["--json", "--data", "local"]).exits(0).json();
    let (served, url) = sandbox.serve(&[]);
    let worker = sandbox.start(&["worker", "--slots", "2"]);
    let remote = of_size(&sandbox, "bsld_mean <= 20", &["--json", "--coordinator", &url]).exits(0).json();
    assert_eq!(remote["groups"], local["groups"]);
    assert_eq!(remote["tasks_run"], local["tasks_run"]);
    let again = of_size(&sandbox, "bsld_mean <= 20", &["--json", "--coordinator", &url]).exits(0).json();
    assert_eq!((count(&again, "tasks_run"), &again["groups"]), (0, &local["groups"]));
    for running in [worker, served] {
        running.signal("TERM");
        running.wait().exits(0);
    }
}

#[test]
fn several_parameters_and_an_uncertain_answer() {
    let sandbox = Sandbox::new();
    sandbox.write("base.toml", manifest("base", 1, "[1]"));
    let over = ["--over", "synthetic_jobs_count=100..300:100", "--over", "size_factor=1..2:0.02"];
    let args =
        [&["find", "base.toml", "--minimise", "size_factor", "--subject-to", "bsld_mean <= 20"], &over[..]].concat();
    let found = sandbox.run(&[&args[..], &["--json", "--quiet"]].concat()).exits(0).json();
    let candidates = found["groups"][0]["candidates"].as_array().expect("the map");
    assert_eq!(candidates.len(), 3 * 51);
    let holds = |candidate: &&Json| candidate["holds_for_mean"] == true;
    let sizes = candidates.iter().filter(holds).map(|candidate| candidate["values"]["size_factor"].as_f64());
    let least = sizes.map(|size| size.expect("a number")).min_by(f64::total_cmp).expect("a feasible one");
    assert_eq!(answer(&found)["values"]["size_factor"], least);
    // One seed has no interval.
    assert_eq!(
        (&answer(&found)["verdict"], &answer(&found)["conditions"][0]["ci95"]),
        (&"uncertain".into(), &Json::Null)
    );
    sandbox.run(&args).exits(0).prints(&["uncertain, feasible by mean", "Uncertain: the 95% interval"]);
    let share = [&args[..5], &["P(bsld_mean <= 20) >= 0.95"], &args[6..], &["--name", "share"]].concat();
    sandbox.run(&share).exits(0).prints(&["At least 72 seeds can tell that P(bsld_mean <= 20) >= 0.95; there are 1."]);
    let planned = sandbox.run(&["plan", "base-find.toml"]).exits(0);
    planned.prints(&[&format!("{0} tasks, {0} done already, 0 would run", count(&found, "tasks_with_rows"))]);
}

#[test]
fn wrong_questions_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("base.toml", manifest("base", 2, "[1]") + &saving("[2]"));
    let zipped = manifest("base", 2, "[1]\nbeta = [0.5]\nzip = [[\"size_factor\", \"beta\"]]");
    sandbox.write("zipped.toml", zipped);
    sandbox.write("excluded.toml", manifest("base", 2, "[1, 2]") + "[[exclude]]\nsize_factor = 2\n");
    let find = |manifest: &str, over: &str, more: &[&str], says: &str| {
        let ended = sandbox.run(&[&["find", manifest, "--over", over], more].concat()).exits(2);
        assert!(ended.stderr.contains(says), "{says:?} in {ended}");
    };
    let size = ["--minimise", "size_factor", "--subject-to", "bsld_mean <= 5"];
    find("base.toml", "size_factr=1..2", &size, "there is no parameter `size_factr`; did you mean `size_factor`?");
    find("base.toml", "synthetic_jobs_count=100..200", &size, "`100..200:1` tries every value");
    find("base.toml", "size_factor=0.5kW..2", &size, "it has no unit");
    find("base.toml", "size_factor=2..1", &size, "whose second number is above the first");
    find("base.toml", "size_factor=1..2:0.3", &size, "`to = 1.9` would be");
    find("base.toml", "size_factor=1,2", &["--minimise", "bsld_men"], "did you mean `bsld_mean`");
    find("base.toml", "size_factor=1,2", &["--minimise", "policy"], "`policy` has no numbers");
    find("base.toml", "size_factor=1..2", &["--minimise", "bsld_mean"], "give the step");
    find("base.toml", "size_factor=1,2", &["--minimise", "size_factor"], "every value of `size_factor` will do");
    find("base.toml", "size_factor=1,2", &[], "--minimise");
    find("base.toml", "wide_jobs=drop,clamp", &["--minimise", "bsld_mean"], "no block sets `wide_jobs`");
    find(
        "base.toml",
        "size_factor=1,2",
        &["--over", "size_factor=3,4", "--minimise", "bsld_mean"],
        "names `size_factor` twice",
    );
    find("zipped.toml", "size_factor=1,2", &size, "a zip names `size_factor`");
    find("excluded.toml", "size_factor=1,2", &size, "an [[exclude]] names `size_factor`");
    find(
        "base.toml",
        "size_factor=1,2",
        &[&size[..], &["--manifest-out", "base.toml"]].concat(),
        "is not a file of `powersweep find`",
    );
    assert!(!sandbox.path("base-find.toml").exists() && !sandbox.path("results").exists(), "nothing was begun");
}

#[test]
fn the_map_is_drawn() {
    let sandbox = Sandbox::new();
    sandbox.write("base.toml", manifest("base", 2, "[1]") + &saving("[2]"));
    let wrong = of_size(&sandbox, "bsld_mean <= 20", &["-o", "map.jpeg"]).exits(2);
    if !cfg!(feature = "figures") {
        wrong.says(&["this binary draws no figures"]);
        return;
    }
    wrong.says(&["the ending of map.jpeg is none of"]);
    of_size(&sandbox, "bsld_mean <= 20", &["-o", "map.csv"]).exits(0);
    let map = std::fs::read_to_string(sandbox.path("map.csv")).expect("the map");
    assert!(map.lines().count() > 10 && map.contains("\nfeasible,") && map.contains("policy=save"), "{map}");
    // The limit is a line with its condition, and the answers have a ring.
    of_size(&sandbox, "bsld_mean <= 20", &["-o", "map.vl.json"]).exits(0);
    let spec = std::fs::read_to_string(sandbox.path("map.vl.json")).expect("the map");
    for part in ["\"field\": \"limit\"", "\"text\": \"bsld_mean <= 20\"", "\"size\": 150"] {
        assert!(spec.contains(part), "{part}: {spec}");
    }
    of_size(&sandbox, "bsld_mean <= 20", &["-o", "map.png"]).exits(0);
    let bytes = std::fs::read(sandbox.path("map.png")).expect("the map");
    assert!(bytes.starts_with(b"\x89PNG"));
    if let Some(folder) = std::env::var_os("POWERSWEEP_GALLERY") {
        std::fs::write(std::path::Path::new(&folder).join("find-map.png"), bytes).expect("the gallery can be written");
    }
}

/// A short workload and a whole one of the same kind.
fn two_workloads(name: &str, thresholds: &str) -> String {
    let whole =
        "[workloads.whole]\nsource = \"lublin\"\nsynthetic_jobs_count = 600\nsynthetic_procs = 64\n\n[platforms";
    manifest(name, 2, "[1]").replacen("[platforms", whole, 1) + &saving(thresholds)
}

#[test]
fn the_best_quarter_of_a_short_workload_runs_on_the_whole_one() {
    let sandbox = Sandbox::new();
    let thresholds = "{ from = 1, to = 5, step = 0.25 }";
    sandbox.write("grid.toml", two_workloads("grid", thresholds));
    sandbox.write("base.toml", two_workloads("base", "[1]"));
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    let of = ["--minimise", "energy_total_j", "--subject-to", "bsld_mean <= 100000", "--where", "workload=whole"];
    let best = lines(&sandbox, &[&["best", "grid", "--where", "policy=save"], &of[..]].concat());
    let args =
        ["find", "base.toml", "--over", "bsld_threshold=1..5:0.25", "--rungs", "made,whole", "--json", "--quiet"];
    let args = [&args, &of[..4]].concat();
    let found = sandbox.run(&args).exits(0).json();
    assert_eq!(answer(&found)["values"]["bsld_threshold"], best[0]["bsld_threshold"]);
    let mean = answer(&found)["goal"]["mean"].as_f64().expect("a mean");
    assert!(rows::near(mean, number(&best[0], "mean(energy_total_j)"), 1e-12), "of the whole workload alone");
    assert_eq!(found["goal"]["method"], "successive halving over workloads");
    // 17 candidates on the short workload, the anchor and at most a few more on the whole one; two seeds.
    let ran = count(&found, "tasks_run");
    assert!((2 * (17 + 5)..=2 * (17 + 9)).contains(&ran), "{ran}");
    let whole = lines(&sandbox, &["results", "base-find", "--columns", "task_id", "--where", "workload=whole"]);
    assert_eq!(whole.len() as u64, ran - 2 * 17);
    assert_eq!(ids(&sandbox, "base-find").len() as u64, ran);
    // The same command runs nothing, and the manifest beside it has exactly these tasks.
    assert_eq!(count(&sandbox.run(&args).exits(0).json(), "tasks_run"), 0);
    sandbox.run(&["run", "base-find.toml", "--quiet"]).exits(0);
    assert_eq!(ids(&sandbox, "base-find").len() as u64, ran);
    for (rungs, says) in [("made", "names every workload"), ("made,other", "the manifest has made, whole")] {
        let args = [&["find", "base.toml", "--over", "bsld_threshold=1..5:1", "--rungs", rungs], &of[..4]].concat();
        sandbox.run(&args).exits(2).says(&[says]);
    }
    let size =
        ["find", "base.toml", "--over", "size_factor=1..2:0.5", "--minimise", "size_factor", "--rungs", "made,whole"];
    sandbox.run(&[&size[..], &["--subject-to", "bsld_mean <= 5"]].concat()).exits(2).says(&["by bisection"]);
}
