//! `powersweep results` with groups, ratios, pivots and the formats of papers.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::rows::{self, Row, number};
use crate::sandbox::Sandbox;

/// Two policies, two machines, three seeds; one policy with two thresholds; a row for every job.
const SWEEP: &str = "
version = 1
name = \"groups\"
seeds = [1, 2, 3]
tables = [\"jobs\"]

[workloads.made]
source = \"lublin\"
synthetic_jobs_count = 60
synthetic_procs = 64

[platforms.cluster]
size_factor = [1, 1.5]

[policies.full]
backfill = \"easy\"

[policies.save]
backfill = \"easy\"
gear_rule = \"bsld\"
bsld_threshold = [1.5, 3]
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("groups.toml", SWEEP);
    sandbox.run(&["run", "groups.toml", "--quiet"]).exits(0);
    sandbox
}

fn tasks(sandbox: &Sandbox) -> Vec<Row> {
    rows::read(&sandbox.path("results/data"), "groups", "tasks")
}

fn lines(sandbox: &Sandbox, args: &[&str]) -> Vec<Row> {
    rows::lines(sandbox, &[&["results", "groups"], args].concat())
}

fn near(one: f64, other: f64) -> bool {
    rows::near(one, other, 1e-12)
}

#[test]
fn groups_have_means_and_intervals_over_seeds() {
    let sandbox = sandbox();
    let all = tasks(&sandbox);
    let groups =
        lines(&sandbox, &["--by", "policy,bsld_threshold,size_factor", "--columns", "wait_s_mean,energy_total_j"]);
    assert_eq!(groups.len(), 6);
    for group in &groups {
        let of_group =
            |row: &&Row| ["policy", "bsld_threshold", "size_factor"].iter().all(|key| row[*key] == group[*key]);
        let waits: Vec<f64> = all.iter().filter(of_group).map(|row| number(row, "wait_s_mean")).collect();
        assert_eq!(waits.len(), 3);
        let mean = waits.iter().sum::<f64>() / 3.0;
        assert!(near(number(group, "mean(wait_s_mean)"), mean));
        // t(0.95; 2) = 4.30265273
        let sd = (waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        assert!((number(group, "ci95(wait_s_mean)") - 4.302_652_73 * sd / 3f64.sqrt()).abs() < 1e-6 * mean);
    }
    // In the order of the manifest.
    assert_eq!(groups[0]["policy"], "full");
}

#[test]
fn a_ratio_is_that_of_rows_with_the_same_machine_and_seed() {
    let sandbox = sandbox();
    let base: BTreeMap<String, f64> = tasks(&sandbox)
        .iter()
        .filter(|row| row["policy"] == "full")
        .map(|row| (format!("{} {}", row["size_factor"], row["seed"]), number(row, "energy_total_j")))
        .collect();
    let args = [
        "--by",
        "policy,bsld_threshold",
        "--columns",
        "energy_total_j",
        "--ratio-to",
        "policy=full",
        "--stat",
        "mean,count",
    ];
    let groups = lines(&sandbox, &args);
    for group in &groups {
        let own = |row: &Row| ["policy", "bsld_threshold"].iter().all(|key| row[*key] == group[*key]);
        let all = tasks(&sandbox);
        let of_group: Vec<&Row> = all.iter().filter(|row| own(row)).collect();
        let energy: f64 = of_group.iter().map(|row| number(row, "energy_total_j")).sum();
        let of_base: f64 = of_group.iter().map(|row| base[&format!("{} {}", row["size_factor"], row["seed"])]).sum();
        assert_eq!(group["count(energy_total_j)"], Json::from(6));
        assert!(near(number(group, "ratio(energy_total_j)"), energy / of_base), "{group:?}");
    }
    assert_eq!(groups[0]["ratio(energy_total_j)"], Json::from(1.0));
    assert!(number(&groups[2], "ratio(energy_total_j)") < 1.0);
    // The compared rows are the groups where none are named.
    assert_eq!(lines(&sandbox, &["--ratio-to", "policy=full"]).len(), 2);
    sandbox
        .run(&["results", "groups", "--ratio-to", "policy=easy"])
        .exits(2)
        .says(&["no row is in the baseline; in the rows, policy is full, save"]);
}

#[test]
fn conditions_have_operators_in_every_table() {
    let sandbox = sandbox();
    let count = |args: &[&str]| lines(&sandbox, args).len();
    assert_eq!(count(&["--where", "size_factor>1"]), 9);
    assert_eq!(count(&["--where", "policy!=full", "--where", "seed<=2"]), 8);
    assert_eq!(count(&["--where", "bsld_threshold="]), 6);
    assert_eq!(count(&["--where", "seed>=3", "--rows", "2"]), 2);
    let waits = lines(&sandbox, &["--table", "jobs", "--where", "wait_s>100"]);
    let all = rows::read(&sandbox.path("results/data"), "groups", "jobs");
    assert_eq!(waits.len(), all.iter().filter(|job| number(job, "wait_s") > 100.0).count());
    // A parameter of the task.
    assert_eq!(count(&["--table", "jobs", "--where", "bsld_threshold=3"]), 6 * 60);
    sandbox.run(&["results", "groups", "--where", "size_factr>1"]).exits(2).says(&["did you mean `size_factor`"]);
    sandbox.run(&["results", "groups", "--where", "size_factor"]).exits(2).says(&["is no condition", "procs>=100"]);
}

#[test]
fn jobs_are_grouped_by_parameters_of_their_tasks() {
    let sandbox = sandbox();
    let groups =
        lines(&sandbox, &["--table", "jobs", "--by", "bsld_threshold", "--columns", "wait_s", "--stat", "p95,count"]);
    assert_eq!(groups.len(), 3);
    assert!(groups.iter().all(|group| group["count(wait_s)"] == 360));
    let ids: Vec<Json> =
        tasks(&sandbox).iter().filter(|row| row["bsld_threshold"] == 3.0).map(|row| row["task_id"].clone()).collect();
    let jobs = rows::read(&sandbox.path("results/data"), "groups", "jobs");
    let mut waits: Vec<f64> =
        jobs.iter().filter(|job| ids.contains(&job["task_id"])).map(|job| number(job, "wait_s")).collect();
    waits.sort_by(f64::total_cmp);
    // Position 0.95 * 359 = 341.05.
    let p95 = waits[341] + 0.05 * (waits[342] - waits[341]);
    assert!(near(number(&groups[2], "p95(wait_s)"), p95), "{groups:?} {p95}");
}

#[test]
fn tables_are_sorted_pivoted_and_written_for_papers() {
    let sandbox = sandbox();
    let run = |args: &[&str]| {
        sandbox
            .run(&[&["results", "groups", "--by", "size_factor,policy", "--columns", "energy_total_j"], args].concat())
    };
    let pivoted = run(&["--pivot", "policy", "--stat", "mean", "--format", "markdown"]).exits(0);
    let heading = pivoted.stdout.lines().next().expect("a heading");
    // The manifest leaves the power at 1 W.
    assert_eq!(heading, "| size_factor | energy_total_j full (relative) | energy_total_j save (relative) |");
    assert_eq!(pivoted.stdout.lines().count(), 4);
    let sorted = lines(
        &sandbox,
        &[
            "--by",
            "policy,size_factor,bsld_threshold",
            "--sort",
            "energy_total_j",
            "--top",
            "2",
            "--columns",
            "energy_total_j",
        ],
    );
    assert_eq!(sorted.len(), 2);
    assert!(number(&sorted[0], "mean(energy_total_j)") <= number(&sorted[1], "mean(energy_total_j)"));
    assert_eq!(sorted[0]["policy"], "save");
    run(&["--format", "latex", "--output", "table.tex"]).exits(0);
    let latex = std::fs::read_to_string(sandbox.path("table.tex")).expect("it was written");
    assert!(
        latex.starts_with("\\begin{tabular}{rlr@{\\,}r}\n\\toprule\n")
            && latex.contains("size factor & policy & \\multicolumn"),
        "{latex}"
    );
    run(&["--format", "typst"]).exits(0).prints(&["#table(", "table.header([size factor]"]);
    run(&["--format", "csv"]).exits(0).prints(&["size_factor,policy,mean(energy_total_j)"]);
    // Rows without groups, too.
    sandbox
        .run(&["results", "groups", "--rows", "1", "--format", "markdown"])
        .exits(0)
        .prints(&["| full |", "mean wait (s)"]);
    let of_measures = ["results", "groups", "--columns", "seed,size_factor,wait_s_mean,energy_total_j", "--rows", "3"];
    let latex = sandbox.run(&[&of_measures[..], &["--format", "latex"]].concat()).exits(0);
    assert!(latex.stdout.contains("total energy (relative)") && !latex.stdout.contains("00000"), "{latex}");
    // What is ordered by need not be shown.
    let waits = lines(&sandbox, &["--by", "size_factor,policy", "--columns", "wait_s_mean", "--stat", "p95"]);
    for (sort, columns) in [("p95(wait_s_mean)", 4), ("wait_s_mean", 4)] {
        let sorted = ["--by", "size_factor,policy", "--columns", "energy_total_j", "--sort", sort];
        let sorted = lines(&sandbox, &sorted);
        assert!(sorted.len() == waits.len() && sorted.iter().all(|row| row.len() == columns), "{sorted:?}");
        let wait = |row: &Row| {
            let is_it = |of: &&Row| ["size_factor", "policy"].iter().all(|name| of[*name] == row[*name]);
            number(waits.iter().find(is_it).expect("its group"), "p95(wait_s_mean)")
        };
        assert!(sort == "wait_s_mean" || sorted.is_sorted_by_key(wait), "{sorted:?}");
    }
    run(&["--sort", "waits"]).exits(2).says(&["the result has no column `waits`"]);
    run(&["--pivot", "seed"]).exits(2).says(&["seed"]);
    let twice = sandbox.run(&["results", "groups", "--by", "seed,seed", "--columns", "wait_s_mean"]);
    twice.exits(2).says(&["the column `seed` is named twice"]);
    run(&["--stat", "average"]).exits(2).says(&["unknown statistic `average`; there are mean"]);
    sandbox
        .run(&["results", "groups", "--by", "policy", "--columns", "worker"])
        .exits(2)
        .says(&["`worker` has no numbers"]);
}

#[test]
fn a_mean_over_rows_that_are_no_replications_says_so() {
    let sandbox = sandbox();
    let mixed = sandbox.run(&["results", "groups", "--by", "policy", "--columns", "energy_total_j"]).exits(0);
    mixed.says(&["a mean is over rows that differ in size_factor, bsld_threshold: group by more columns"]);
    let args = ["results", "groups", "--by", "policy,bsld_threshold,size_factor", "--columns", "energy_total_j"];
    let clean = sandbox.run(&args).exits(0);
    assert_eq!(clean.stderr, "");
    assert!(clean.stdout.contains('±'), "{clean}");
    // What remains after a condition, and labels that parameters determine, are no mixture.
    let fixed = ["results", "groups", "--by", "policy", "--where", "size_factor=1", "--where", "bsld_threshold!=3"];
    assert_eq!(sandbox.run(&fixed).exits(0).stderr, "");
    let determined = ["results", "groups", "--by", "bsld_threshold,size_factor", "--columns", "energy_total_j"];
    assert_eq!(sandbox.run(&determined).exits(0).stderr, "");
}

/// Jobs of a warm-up are rows of the table of jobs. The best is no choice among workloads.
#[test]
fn rows_that_are_not_what_they_seem_are_told() {
    let sandbox = Sandbox::new();
    let warm = SWEEP.replace("synthetic_jobs_count = 60", "synthetic_jobs_count = [60, 90]");
    sandbox.write("groups.toml", warm + "[statistics]\nwarmup_jobs = 20\n");
    sandbox.run(&["run", "groups.toml", "--quiet"]).exits(0);
    let said = ["jobs of the warm-up and the cool-down are among these rows"];
    sandbox
        .run(&["results", "groups", "--table", "jobs", "--by", "policy", "--columns", "wait_s"])
        .exits(0)
        .says(&said);
    let sets = ["compare", "groups:policy=full", "groups:policy=save,bsld_threshold=3", "--columns"];
    sandbox.run(&[&sets[..], &["wait_s", "--table", "jobs"]].concat()).exits(0).says(&said);
    assert!(!sandbox.run(&[&sets[..], &["wait_s_mean"]].concat()).exits(0).stderr.contains("warm-up"));
    let best = ["best", "groups", "--minimise", "energy_total_j,wait_s_mean"];
    sandbox.run(&best).exits(0).says(&["the best are chosen among different synthetic_jobs_count"]);
    let of_one = [&best[..], &["--where", "synthetic_jobs_count=90"]].concat();
    assert!(!sandbox.run(&of_one).exits(0).stderr.contains("nobody decides"));
}

/// While the sweep runs, and for a user who has an access file alone.
#[test]
fn unpublished_rows_are_grouped_through_a_coordinator() {
    let sandbox = sandbox();
    let here = sandbox.run(&["results", "groups", "--by", "policy", "--json"]).exits(0).stdout;
    let (served, _) = sandbox.serve(&[]);
    sandbox.run(&["access", "export", "--client", "--output", "client.json"]).exits(0);
    let there =
        sandbox.run(&["results", "groups", "--by", "policy", "--json", "--access", "client.json"]).exits(0).stdout;
    assert_eq!(here, there);
    crate::farm::terminate(served);
}
