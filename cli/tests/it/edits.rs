//! Edits of a manifest: a table holds the rows of the present manifest alone.

use std::collections::BTreeSet;

use crate::rows;
use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

fn ids(rows: &[rows::Row]) -> BTreeSet<String> {
    rows.iter().map(|row| row["task_id"].to_string()).collect()
}

#[test]
fn a_table_has_the_rows_of_the_present_manifest_alone() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let jobs = "tables = [\"jobs\"]\n";
    let run = |jobs_count: u32| {
        let text = synthetic("sweep", 2).replace("= 60", &format!("= {jobs_count}"));
        sandbox.write("sweep.toml", text.replacen("seeds", &format!("{jobs}seeds"), 1));
        sandbox.run(&["run", "sweep.toml", "--data", "data"]).exits(0)
    };
    let counts = |table: &str| (rows::read(&data, "sweep", table).len(), rows::read(&data, "sweep@left", table).len());
    run(60).says(&["4 tasks, 0 done already, 4 to run"]);
    let first = ids(&rows::read(&data, "sweep", "tasks"));
    run(70).says(&["4 tasks, 0 done already, 4 to run; 4 rows of values that left the manifest kept in sweep@left"]);
    assert_eq!((counts("tasks"), counts("jobs")), ((4, 4), (4 * 70, 4 * 60)));
    let table = rows::read(&data, "sweep", "tasks");
    assert!(table.iter().all(|row| row["synthetic_jobs_count"] == 70) && ids(&table).is_disjoint(&first));
    // The command reads what a plain glob reads, also of the rows that left.
    let left = sandbox.run(&["results", "sweep@left", "--data", "data", "--columns", "task_id", "--format", "csv"]);
    assert_eq!(left.exits(0).stdout.lines().count(), 1 + 4);
    sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["sweep: 4 rows of values that left", "prune sweep"]);
    // The values are back: no task runs.
    run(60).says(&["4 tasks, 4 done already, 0 to run; 4 rows"]);
    assert_eq!((counts("tasks"), counts("jobs")), ((4, 4), (4 * 60, 4 * 70)));
    assert_eq!(ids(&rows::read(&data, "sweep", "tasks")), first);
    sandbox.run(&["prune", "sweep", "--data", "data"]).exits(0).prints(&["are deleted"]);
    assert_eq!((counts("tasks"), counts("jobs")), ((4, 0), (4 * 60, 0)));
    assert!(!data.join("sweep@left").exists(), "no empty folder stays");
    sandbox.run(&["prune", "sweep", "--data", "data"]).exits(0).prints(&["has no rows of values that left"]);
    run(70).says(&["4 tasks, 0 done already, 4 to run"]);
}

#[test]
fn a_submit_of_another_experiment_of_the_same_name_is_refused() {
    let sandbox = Sandbox::new();
    let (_served, url) = sandbox.serve(&[]);
    let submit = |args: &[&str], user: &str| {
        let args = [&["submit", "sweep.toml", "--coordinator", &url], args].concat();
        sandbox.run_with(&args, &[("USER", user)])
    };
    sandbox.write("sweep.toml", synthetic("sweep", 3));
    submit(&[], "ada").exits(0);
    submit(&[], "bob").exits(0);
    sandbox.write("sweep.toml", synthetic("sweep", 4));
    submit(&[], "bob").exits(8).says(&["sweep was submitted by ada", "--replace"]);
    sandbox.write("sweep.toml", synthetic("sweep", 3).replace("= 60", "= 80"));
    submit(&[], "ada").exits(8).says(&["shares no task", "6 to run", "synthetic_jobs_count: 60 -> 80", "--replace"]);
    let status = sandbox.run(&["status", "--coordinator", &url, "--format", "json"]).exits(0).json();
    assert_eq!((&status["experiments"][0]["tasks"], &status["experiments"][0]["owner"]), (&6.into(), &"ada".into()));
    submit(&["--replace"], "bob").exits(0).prints(&["6 tasks, 0 done already, 6 to run"]);
}

/// Rows keep the indices of the manifests that they ran under. Commands order them, and make artifacts of them, by the newest.
#[test]
fn after_an_edit_rows_have_the_order_of_the_newest_manifest() {
    let sandbox = Sandbox::new();
    let run = |orders: &str| {
        let head = "version = 1\nname = \"sweep\"\nseeds = { from = 1, count = 7 }\n";
        let workload = "[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 40\n";
        sandbox.write("sweep.toml", format!("{head}{workload}[policies.p]\nqueue_order = [{orders}]\n"));
        sandbox.run(&["run", "sweep.toml", "--quiet", "--show", "0"]).exits(0);
    };
    run("\"sjf\", \"wfp3\"");
    run("\"fcfs\", \"sjf\", \"f1\", \"wfp3\"");
    let columns = ["--columns", "queue_order,seed", "--format", "csv"];
    let shown = |args: &[&str]| sandbox.run(&[&["results", "sweep"], args].concat()).exits(0).stdout;
    let groups = shown(&["--by", "queue_order", "--columns", "wait_s_mean", "--format", "csv"]);
    let order: Vec<&str> = groups.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(order, ["fcfs", "sjf", "f1", "wfp3"]);
    let by_index = shown(&[&["--sort", "task_index"], &columns[..]].concat());
    // A program gets all rows, of which people see the first 24.
    let all = order.iter().flat_map(|order| (1..=7).map(move |seed| format!("{order},{seed}")));
    assert!(by_index.lines().skip(1).eq(all), "{by_index}");
    sandbox.run(&["artifact", "sweep", "--output", "sweep.zip"]).exits(0);
    sandbox.run(&["verify", "sweep.zip"]).exits(0).prints(&["28 rows equal"]);
    sandbox.run(&["verify", "sweep"]).exits(0).prints(&["28 rows equal"]);
}
