//! Commands about one task, one log, or the components and columns.

use crate::rows;
use crate::sandbox::{Sandbox, traces};
use crate::sweeps::{JOBS, TINY_LOG, synthetic};

/// `simulate MANIFEST --index N` gives the farm's row of that index, except for the facts of the run.
#[test]
fn simulate_gives_the_rows_of_the_farm() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("tiny.swf", TINY_LOG);
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    for (manifest, experiment) in [("jobs.toml", "jobs"), ("sweep.toml", "sweep")] {
        sandbox.run(&["run", manifest, "--traces", ".", "--quiet"]).exits(0);
        let farm = rows::tasks(&sandbox.path("results/data"), experiment);
        assert_eq!(farm.len(), 4);
        for (index, row) in &farm {
            let index = index.to_string();
            let args = ["simulate", manifest, "--traces", ".", "--index", &index, "--format", "json"];
            let alone: rows::Row = serde_json::from_value(sandbox.run(&args).exits(0).json()).expect("it is an object");
            assert_eq!(alone.len(), row.len());
            for (name, value) in rows::without_run_facts(row) {
                assert_eq!(alone[&name], value, "{name} of task {index} of {experiment}");
            }
        }
    }
}

#[test]
fn simulate_writes_one_row_for_each_job() {
    let sandbox = Sandbox::new();
    let simulate = |file: &str| {
        let args = ["simulate", "--all", "--seed", "3", "-s", "synthetic_jobs_count=70", "-s", "backfill=conservative"];
        sandbox.run(&[&args[..], &["--jobs", file]].concat()).exits(0).prints(&["conservative", "bsld_mean"])
    };
    simulate("jobs.csv");
    let csv = std::fs::read_to_string(sandbox.path("jobs.csv")).expect("it was written");
    assert_eq!(csv.lines().count(), 1 + 70);
    let columns = csv.lines().next().expect("a head").split(',').count();
    // Lists of gears have commas, in quotes.
    let outside_quotes = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert!(csv.lines().all(|line| outside_quotes(line) == columns - 1));
    // In the folder of a dataset, so that the same function reads it.
    std::fs::create_dir_all(sandbox.path("data/simulate/jobs")).expect("it can be made");
    simulate("data/simulate/jobs/jobs.parquet");
    let rows = rows::read(&sandbox.path("data"), "simulate", "jobs");
    assert_eq!(rows.len(), 70);
    assert_eq!(rows[0].len(), columns);
}

#[test]
fn simulate_writes_one_row_for_each_point_of_the_series() {
    let sandbox = Sandbox::new();
    let args = ["simulate", "-s", "synthetic_jobs_count=70", "--series", "series.csv"];
    sandbox.run(&args).exits(0).prints(&["bsld_mean"]);
    let csv = std::fs::read_to_string(sandbox.path("series.csv")).expect("it was written");
    assert!(csv.lines().next().expect("a head").ends_with("series,level,x,value"), "{csv}");
    assert!(csv.contains("active_procs,,"), "{csv}");
    sandbox
        .run(&["simulate", "--series", "a.csv", "--jobs", "a.csv"])
        .exits(2)
        .says(&["a.csv is the file of two outputs"]);
    sandbox.run(&["simulate", "--series", "series.txt"]).exits(2).says(&["must end in .parquet or .csv"]);
}

#[test]
fn plan_counts_done_missing_and_extra_tasks() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 3) + "[[exclude]]\nseed = 3\nqueue_order = \"sjf\"\n");
    let plan = |args: &[&str]| sandbox.run(&[&["plan", "sweep.toml"], args].concat()).exits(0);
    plan(&[]).prints(&[
        "6 combinations, 1 of them left out by [[exclude]] and `zip`",
        "sweep: 5 tasks, 0 done already, 5 would run",
        "fcfs (3), sjf (2)",
        "1 (2), 2 (2), 3 (1)",
    ]);
    plan(&["--index", "1"]).prints(&[
        "fcfs (version 1)",
        "synthetic_jobs_count = 60",
        "would run: this experiment has",
    ]);
    assert!(!sandbox.path("results").exists(), "plan writes no file");
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    plan(&[]).prints(&["sweep: 5 tasks, 5 done already, 0 would run"]);
    plan(&["--index", "1"]).prints(&["would not run: its row is in"]);
    // After an edit the seeds are 2, 3 and 4: the rows of seed 1 left the manifest.
    sandbox.write("sweep.toml", synthetic("sweep", 3).replace("from = 1", "from = 2"));
    let plan = |args: &[&str]| sandbox.run(&[&["plan", "sweep.toml", "--format", "json"], args].concat()).exits(0);
    let counts = plan(&[]).json();
    for (name, count) in [("tasks", 6), ("done", 3), ("to_run", 3), ("extra", 2), ("indices", 6)] {
        assert_eq!(counts[name], count, "{name} in {counts}");
    }
    let verdicts: Vec<String> = (0..6)
        .map(|index| plan(&["--index", &index.to_string()]).json()["verdict"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(verdicts.iter().filter(|v| *v == "would not run").count(), 3, "{verdicts:?}");
    assert_eq!(verdicts.iter().filter(|v| *v == "would run").count(), 3, "{verdicts:?}");
}

#[test]
fn schema_policies_and_columns_list_the_components() {
    let sandbox = Sandbox::new();
    let schema = sandbox.run(&["schema"]).exits(0).json();
    assert!(schema["$schema"].is_string() && schema["properties"]["workloads"].is_object());
    let policies = sandbox.run(&["policies", "--format", "json"]).exits(0).json();
    let names: Vec<&str> =
        policies["components"].as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
    let shown = sandbox.run(&["policies"]).exits(0);
    for name in ["fcfs", "sjf", "wfp3", "f1", "easy", "conservative", "bsld", "lublin", "swf"] {
        assert!(names.contains(&name), "{names:?}");
        let line = |line: &&str| line.split_whitespace().nth(1) == Some(name);
        // An order of the queue is an order of backfilling, too.
        let roles = names.iter().filter(|other| **other == name).count();
        assert_eq!(shown.stdout.lines().filter(line).count(), roles, "{name}: {shown}");
    }
    assert!(shown.stdout.lines().all(|line| line.trim_end() == line), "{shown}");
    let orders = sandbox.run(&["policies", "queue_order"]).exits(0).prints(&["wfp3"]);
    assert!(!orders.stdout.contains("conservative"), "a role lists its own components: {orders}");
    sandbox.run(&["policies", "bsld"]).exits(0).prints(&["bsld_threshold", "wq_threshold", "Etinski"]);
    sandbox.run(&["policies", "knapsack"]).exits(0).prints(&[
        "Reads: Free procs, priorities",
        "Guarantees: The jobs that start fit",
        "`queue_order` = \"fcfs\", \"sjf\"",
        "it needs `queue_order` = \"priority\", not \"fcfs\"",
    ]);
    let sjf = sandbox.run(&["policies", "sjf", "--json"]).exits(0).json();
    let order = &sjf["components"][0];
    assert!(order["reads"].is_string() && order["cost_over_easy"]["least"].is_number(), "{sjf}");
    let knapsack = serde_json::json!({ "key": "backfill", "value": "\"knapsack\"" });
    let refused = order["refused_with"].as_array().expect("a list of one component");
    assert!(refused.iter().any(|one| one["with"] == knapsack && one["setting"].is_null()), "{sjf}");
    let of_param =
        sandbox.run(&["policies", "wq_threshold"]).exits(0).prints(&["gear_rule = \"bsld\"", "wq_threshold"]);
    assert!(!of_param.stdout.contains("bsld_threshold  "), "the parameter alone: {of_param}");
    sandbox.run(&["policies", "wq_treshold"]).exits(2).says(&["did you mean `wq_threshold`"]);
    let of_column = sandbox.run(&["columns", "wait_s"]).exits(0).prints(&["jobs: a row is", "double (s)"]);
    assert_eq!(of_column.stdout.matches("a row is").count(), 1, "{of_column}");
    sandbox.run(&["columns", "wait_s_men"]).exits(2).says(&["unknown table or column", "did you mean `wait_s_mean`"]);
    let columns = sandbox.run(&["columns", "--format", "json"]).exits(0).json();
    let of =
        |table: &str| columns["columns"].as_array().expect("a list").iter().filter(|c| c["table"] == table).count();
    for table in ["tasks", "jobs", "failures"] {
        assert!(of(table) > 5, "{table}");
        let shown = sandbox.run(&["columns", table]).exits(0);
        assert!(shown.stdout.starts_with(&format!("{table}: a row is ")), "{shown}");
    }
}

#[test]
fn trace_info_counts_the_records() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.swf", TINY_LOG);
    let facts = sandbox.run(&["trace", "info", "tiny.swf", "--format", "json"]).exits(0).json();
    assert_eq!(facts["totals"]["records_count"], 3);
    assert_eq!(facts["header"][0]["key"], "MaxProcs");
    sandbox.run(&["trace", "info", "tiny", "--traces", "."]).exits(0).prints(&["sha256", "records_count"]);
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn trace_info_counts_the_records_of_a_published_log() {
    let sandbox = Sandbox::new();
    let variables = [("POWERSWEEP_TRACES", &*traces())];
    let facts = sandbox.run_with(&["trace", "info", "KTH-SP2-1996-2.1-cln", "--format", "json"], &variables).exits(0);
    assert_eq!(facts.json()["totals"]["records_count"], 28_476);
}

/// The usual ten columns, and all of them if asked for.
#[test]
fn a_simulated_task_is_shown_by_ten_metrics() {
    let sandbox = Sandbox::new();
    let few = sandbox.run(&["simulate"]).exits(0).prints(&["wait_s_mean", "energy_total_j", "--all shows them"]);
    assert_eq!(few.stdout.lines().count(), 11, "{few}");
    few.says(&["note: power is relative: `power_top_w` is left at 1 W"]);
    let caps = ["-s", "power_cap=admission", "-s", "cap_schedule_w=100000,200000", "-s", "power_top_w=200"];
    let capped = sandbox.run(&[&["simulate", "-s", "synthetic_procs=64"], &caps[..]].concat()).exits(0);
    let capped = capped.says(&["warning: the cap of 100000 W never binds", "is one cap that changes every"]);
    assert!(!capped.stderr.contains("relative"), "{capped}");
    let all = sandbox.run(&["simulate", "--all"]).exits(0).prints(&["wait_s_mean", "kernel_version"]);
    assert!(all.stdout.lines().count() > 100 && !all.stdout.contains("--all"), "{all}");
}

#[test]
fn a_quiet_run_prints_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    let quiet = sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    sandbox.run(&["run", "sweep.toml", "--quiet", "--show", "2"]).exits(0).prints(&["fcfs", "sjf"]);
}
