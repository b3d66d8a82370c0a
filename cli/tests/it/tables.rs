//! The commands that read, copy and rebuild tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value as Json;

use crate::rows::{self, without_run_facts};
use crate::sandbox::{Running, Sandbox, contents};
use crate::sweeps::{JOBS, TINY_LOG, WIDE, synthetic};

/// Tasks of some milliseconds, so that their sweep can be stopped before its end.
pub(crate) const SLOW: &str = r#"version = 1
name = "slow"
seeds = { from = 1, count = 250 }
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 6000
synthetic_procs = 64
[platforms.cluster]
[policies.plain]
queue_order = ["fcfs", "sjf"]
"#;

const SLOW_TASKS: usize = 500;

/// Starts the slow sweep and waits until some of it is done.
fn begun(sandbox: &Sandbox) -> Running {
    sandbox.write("slow.toml", SLOW);
    let mut run = sandbox.start(&["run", "slow.toml", "--data", "data", "--show", "0", "-j", "1", "--quiet"]);
    loop {
        assert!(run.runs(), "it ended by itself: {}", run.stderr());
        if done(sandbox) >= 20 {
            return run;
        }
    }
}

fn done(sandbox: &Sandbox) -> u64 {
    let status = sandbox.run(&["status", "slow", "--data", "data", "--format", "json"]);
    if status.code() != Some(0) {
        return 0;
    }
    status.json()["experiments"][0]["done"].as_u64().expect("a number")
}

/// Ids of the rows of `results`.
fn seen(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.run(&["results", "slow", "--data", "data", "--format", "csv", "--columns", "task_id"]).exits(0);
    let mut ids: Vec<String> = lines.stdout.lines().skip(1).map(str::to_owned).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "a row occurs twice");
    ids
}

#[test]
fn results_of_queues_show_metrics_of_queues() {
    let sandbox = Sandbox::new();
    let manifest = r#"version = 1
name = "queues"
[workloads.poisson]
source = "open-poisson"
target_utilization = [0.5, 0.9]
[platforms.cots]
machine = "server-classes"
[policies.buffered]
kind = "buffered"
[statistics]
statistics_kind = "steady-state"
least_jobs_count = 3200
"#;
    sandbox.write("queues.toml", manifest);
    let run = sandbox.run(&["run", "queues.toml"]).exits(0);
    let run = run.prints(&["target_utilization", "mean wait (s)", "mean response (s)", "energy per job (J)"]);
    assert!(!run.stdout.contains("BSLD"), "{run}");
}

#[test]
fn unpublished_rows_are_shown() {
    let sandbox = Sandbox::new();
    let run = begun(&sandbox);
    let before = done(&sandbox);
    let live = seen(&sandbox);
    assert!(live.len() as u64 >= before.min(20), "{} rows of {before} done tasks", live.len());
    run.signal("KILL");
    drop(run);
    let stored = seen(&sandbox);
    assert!(rows::read(&sandbox.path("data"), "slow", "tasks").is_empty(), "no row is published yet");
    assert_eq!(stored.len() as u64, done(&sandbox));
    let (live, stored): (BTreeSet<_>, BTreeSet<_>) = (live.into_iter().collect(), stored.into_iter().collect());
    assert!(live.is_subset(&stored), "rows have disappeared");
    sandbox.run(&["results", "slow", "--data", "data", "--rows", "3"]).exits(0).prints(&["mean wait (s)", "more rows"]);
}

#[test]
fn adopt_rebuilds_a_lost_state_and_the_sweep_continues() {
    let sandbox = Sandbox::new();
    let run = begun(&sandbox);
    run.signal("INT");
    run.wait().exits(130);
    let half = rows::tasks(&sandbox.path("data"), "slow").len();
    assert!((20..SLOW_TASKS).contains(&half), "{half} rows");
    std::fs::remove_dir_all(sandbox.path("data/.powersweep/state")).expect("it is there");
    let run = ["run", "slow.toml", "--data", "data", "--quiet", "--show", "0"];
    let refused = sandbox.run(&run).exits(8).says(&["powersweep adopt"]);
    assert!(refused.stderr.contains("slow"), "{refused}");
    sandbox.run(&["plan", "slow.toml", "--data", "data"]).exits(0).says(&["powersweep adopt"]);
    // The refused run has created a state without the experiment.
    let adopt = ["adopt", "slow.toml", "--data", "data"];
    let words = format!("slow: {half} of {SLOW_TASKS} tasks have rows; {} to run", SLOW_TASKS - half);
    sandbox.run(&adopt).exits(0).prints(&[&words]);
    sandbox.run(&adopt).exits(8).says(&["needs no adoption"]);
    sandbox.run(&run).exits(0);
    let undisturbed = Sandbox::new();
    undisturbed.write("slow.toml", SLOW);
    undisturbed.run(&run).exits(0);
    let (adopted, whole) = (rows::tasks(&sandbox.path("data"), "slow"), rows::tasks(&undisturbed.path("data"), "slow"));
    assert_eq!(adopted.len(), SLOW_TASKS);
    for (index, row) in &whole {
        assert_eq!(without_run_facts(&adopted[index]), without_run_facts(row), "task {index}");
    }
}

/// After an edit of the manifest, the tasks have other indices.
#[test]
fn adopted_rows_are_found_by_identity() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 3));
    let run = ["run", "s.toml", "--quiet", "--show", "0"];
    sandbox.run(&run).exits(0);
    std::fs::remove_dir_all(sandbox.path("results/data/.powersweep")).expect("it is there");
    sandbox.write("s.toml", synthetic("s", 2));
    // The state would not know the rows that left.
    for adopt in [&["adopt", "s.toml"][..], &["adopt", "s.toml", "--accept"]] {
        let refused = sandbox.run(adopt).exits(8);
        let refused = refused.says(&["2 rows of no task of this manifest: an edit removed their values", "s@left"]);
        assert!(refused.stdout.is_empty(), "{refused}");
    }
    sandbox.write("s.toml", synthetic("s", 5));
    sandbox.run(&["adopt", "s.toml"]).exits(0).prints(&["s: 6 of 10 tasks have rows; 4 to run"]);
    sandbox.run(&run).exits(0);
    let found = rows::read(&sandbox.path("results/data"), "s", "tasks");
    let ids: BTreeSet<_> = found.iter().map(|row| row["task_id"].to_string()).collect();
    assert_eq!((found.len(), ids.len()), (10, 10));
}

/// Files of an optional table are missed as those of `tasks` are, and no remedy hides that.
#[test]
fn lost_rows_of_another_table_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let with_logs = |args: &[&str]| sandbox.run(&[args, &["--traces", "logs"]].concat());
    let run = || with_logs(&["run", "jobs.toml", "--quiet"]);
    run().exits(0);
    let delete = |folder: &str| std::fs::remove_dir_all(sandbox.path(folder)).expect("it is there");
    delete("results/data/jobs/jobs");
    let lacks = ["lacks 1 of 1 file of jobs/jobs: the state counts 12 rows in them", "Or run all tasks again"];
    run().exits(5).says(&lacks);
    with_logs(&["verify", "jobs"]).exits(5).says(&lacks);
    sandbox.run(&["export", "jobs", "--output", "out"]).exits(5).says(&lacks);
    sandbox.run(&["delete", "jobs"]).exits(0);
    let none = ["4 tasks with a row in `tasks` and none in `jobs`"];
    with_logs(&["adopt", "jobs.toml"]).exits(8).says(&none).says(&["nothing was changed"]);
    with_logs(&["adopt", "jobs.toml", "--accept"]).exits(0).says(&none).prints(&["4 of 4 tasks have rows"]);
    with_logs(&["verify", "jobs"]).exits(1).says(&["not compared: jobs of 4 tasks: they have none there"]);
    sandbox.run(&["delete", "jobs", "--data-too"]).exits(0);
    run().exits(0);
    with_logs(&["verify", "jobs"]).exits(0).prints(&["jobs 12 rows"]);
    delete("results/data/jobs/tasks");
    delete("results/data/.powersweep");
    let twice = ["rows of 4 tasks in `jobs` that have no row in `tasks`"];
    with_logs(&["adopt", "jobs.toml"]).exits(8).says(&twice);
}

#[test]
fn adopt_reports_copies_and_unreadable_states() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 3));
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    let state = sandbox.path("results/data/.powersweep/state");
    for file in contents(&state.join("manifest")).keys() {
        std::fs::write(file, "not a manifest").expect("it is writable");
    }
    sandbox.run(&["adopt", "s.toml"]).exits(5).says(&["cannot be read", "--set-aside renames the state"]);
    let begun = Instant::now();
    sandbox.run(&["results", "s"]).exits(5);
    assert!(begun.elapsed() < Duration::from_secs(20), "no owner may be writing the state: it is not read again");
    let tasks = sandbox.path("results/data/s/tasks");
    let part = contents(&tasks).into_iter().next().expect("a part");
    std::fs::write(tasks.join("copy.parquet"), &part.1).expect("it is writable");
    sandbox.write("results/data/s/tasks/other.parquet", "not a part");
    let complaints = ["copy.parquet is a copy of a part", "other.parquet is not a part"];
    sandbox.run(&["adopt", "s.toml", "--set-aside"]).exits(8).says(&complaints);
    assert!(state.join("manifest").exists(), "nothing was changed");
    sandbox
        .run(&["adopt", "s.toml", "--accept", "--set-aside"])
        .exits(0)
        .prints(&["s: 6 of 6 tasks have rows; 0 to run"]);
    sandbox.run(&["status"]).exits(0).prints(&["finished"]);
}

#[test]
fn every_format_has_every_row() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.run(&["run", "jobs.toml", "--traces", "logs", "--quiet", "--show", "0"]).exits(0);
    let results = |args: &[&str]| sandbox.run(&[&["results", "jobs"][..], args].concat());
    let csv = results(&["--table", "jobs", "--format", "csv", "--columns", "job_id,task_id,wait_s"]).exits(0).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (1 + 4 * 3, "job_id,task_id,wait_s"));
    let json = results(&["--format", "json"]).exits(0).stdout;
    let parsed: Vec<Json> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let stored = rows::tasks(&sandbox.path("results/data"), "jobs");
    assert_eq!(parsed.len(), stored.len());
    for row in &parsed {
        let stored = &stored[&row["task_index"].as_u64().expect("an index")];
        assert_eq!(row.as_object().expect("a row").len(), stored.len());
        let started = row["started_at"].as_str().expect("a text");
        assert!(started.starts_with("20") && started.ends_with('Z'), "{started}");
        for name in ["task_id", "queue_order", "wait_s_mean", "gears_ghz", "bsld_threshold"] {
            assert_eq!(row[name], stored[name], "{name}");
        }
    }
    results(&["--table", "jobs", "--format", "parquet", "--output", "j.parquet"]).exits(0);
    assert_eq!(file_rows(&sandbox.path("j.parquet")), 12);
    results(&["--format", "arrow", "--output", "t.arrow"]).exits(0);
    let stream = StreamReader::try_new(File::open(sandbox.path("t.arrow")).expect("there"), None).expect("a stream");
    assert_eq!(stream.map(|batch| batch.expect("whole").num_rows()).sum::<usize>(), 4);
    results(&["--table", "jobs"]).exits(0).prints(&["job_id", "energy_j"]);
    results(&["--table", "failures"]).exits(0).prints(&["no rows yet"]);
    results(&["--columns", "wait_s_men"]).exits(2).says(&["did you mean `wait_s_mean`"]);
    results(&["--output", "x.csv"]).exits(2).says(&["--output needs --format"]);
    results(&["--format", "csv", "--output", "none/x.csv"])
        .exits(5)
        .says(&["cannot write none/x.csv: there is no folder none"]);
    sandbox.run(&["results", "job"]).exits(2).says(&["did you mean `jobs`"]);
    let left: Vec<_> = std::fs::read_dir(sandbox.path("")).expect("there").flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn every_failed_attempt_has_a_row() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.run(&["run", "wide.toml", "--traces", "logs", "--quiet", "--show", "0"]).exits(3);
    let failures = ["results", "wide", "--table", "failures"];
    sandbox.run(&failures).exits(0).prints(&["policy", "seed", "failure_kind"]);
    let asked = sandbox.run(&[&failures[..], &["--columns", "queue_order"]].concat()).exits(2);
    asked.says(&["failures have no `queue_order`", "`powersweep status`"]);
    let json = sandbox.run(&["results", "wide", "--table", "failures", "--format", "json"]).exits(0).stdout;
    let rows: Vec<Json> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((&row["attempt"], &row["failure_kind"]), (&1.into(), &"spec".into()), "{row}");
        assert!(row["message"].as_str().is_some_and(|message| message.contains("procs")), "{row}");
    }
}

#[test]
fn an_export_is_one_sorted_file_for_each_table() {
    let sandbox = Sandbox::new();
    // More rows than a row group of a part.
    let text = synthetic("big", 60).replace("synthetic_jobs_count = 60", "synthetic_jobs_count = 600");
    sandbox.write("big.toml", text.replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n"));
    sandbox.run(&["run", "big.toml", "--quiet", "--show", "0"]).exits(0);
    let export = ["export", "big", "--output", "copy"];
    sandbox.run(&export).exits(0).prints(&["tasks: 120 rows", "jobs: 72000 rows"]);
    sandbox.run(&export).exits(2).says(&["exists already"]);
    let names: BTreeSet<String> =
        contents(&sandbox.path("copy")).keys().map(|path| path.display().to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let order = |path: &Path| -> Vec<(i64, i64)> {
        let file = File::open(path).expect("there");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
        assert!(reader.metadata().num_row_groups() <= 2);
        let number = |batch: &RecordBatch, name: &str, row: usize| {
            let column = batch.column_by_name(name).expect("there");
            column.as_primitive::<arrow::datatypes::Int64Type>().value(row)
        };
        let batches = reader.build().expect("readable").map(|batch| batch.expect("whole"));
        batches
            .flat_map(|batch| {
                let keys =
                    (0..batch.num_rows()).map(|row| (number(&batch, "task_index", row), number(&batch, "job_id", row)));
                keys.collect::<Vec<_>>()
            })
            .collect()
    };
    let jobs = order(&sandbox.path("copy/jobs.parquet"));
    let sorted: BTreeSet<_> = jobs.iter().copied().collect();
    assert_eq!(jobs.len(), 72_000);
    assert!(jobs.iter().eq(&sorted), "sorted by task; the jobs of a task keep their order");
    sandbox.run(&["export", "big", "--table", "tasks", "--output", "t.parquet"]).exits(0).prints(&["tasks: 120 rows"]);
    assert_eq!(file_rows(&sandbox.path("t.parquet")), 120);
    sandbox.run(&["export", "big", "--table", "jobs", "--output", "t.parquet"]).exits(0);
    assert_eq!(file_rows(&sandbox.path("t.parquet")), 72_000, "a file is replaced");
    sandbox.run(&["export", "big", "--output", "all.parquet"]).exits(2).says(&["--table"]);
    sandbox.run(&["export", "none", "--output", "x"]).exits(2);
    let left: Vec<_> = std::fs::read_dir(sandbox.path("")).expect("there").flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
    assert!(!sandbox.path("x").exists());
}

/// `--wide` gives each row the components and parameters of its task, whichever bucket it is sorted in.
#[test]
fn a_wide_export_joins_the_tasks() {
    let sandbox = Sandbox::new();
    let text = synthetic("big", 60).replace("synthetic_jobs_count = 60", "synthetic_jobs_count = 600");
    sandbox.write("big.toml", text.replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n"));
    sandbox.run(&["run", "big.toml", "--quiet", "--show", "0"]).exits(0);
    let orders: BTreeMap<String, String> = rows::tasks(&sandbox.path("results/data"), "big")
        .into_values()
        .map(|row| (text_of(&row["task_id"]), text_of(&row["queue_order"])))
        .collect();
    sandbox
        .run(&["export", "big", "--wide", "--output", "wide"])
        .exits(0)
        .prints(&["tasks: 120 rows", "jobs: 72000 rows"]);
    sandbox.run(&["export", "big", "--output", "narrow"]).exits(0);
    let narrow = batches(&sandbox.path("narrow/jobs.parquet"));
    let wide = batches(&sandbox.path("wide/jobs.parquet"));
    let own = narrow.num_columns();
    assert_eq!(wide.columns()[..own], *narrow.columns(), "the own columns in the same order");
    assert!(wide.num_columns() > own + 100);
    assert!(wide.column_by_name("param_task_index").is_none(), "both tables have the index");
    assert!(wide.column_by_name("param_procs").is_some_and(|column| column.null_count() == 72_000));
    let text = |name: &str| wide.column_by_name(name).expect("a column").as_string::<i32>();
    for (id, order) in text("task_id").iter().zip(text("queue_order")) {
        assert_eq!(order, Some(orders[id.expect("an id")].as_str()));
    }
    sandbox.run(&["results", "big", "--table", "jobs", "--columns", "queue_order"]).exits(2).says(&["`tasks` has it"]);
}

fn text_of(value: &Json) -> String {
    value.as_str().expect("a text").to_owned()
}

/// All rows of a Parquet file.
fn batches(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("there")).expect("Parquet");
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().expect("readable").map(|batch| batch.expect("whole")).collect();
    concat_batches(&schema, &batches).expect("of one schema")
}

/// An edit adds a table; done tasks have no rows in it.
#[test]
fn tasks_without_rows_in_an_added_table_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 2));
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox.write("s.toml", synthetic("s", 3).replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n"));
    let gap = "4 tasks with a row have no rows in `jobs`";
    sandbox.run(&["plan", "s.toml"]).exits(0).prints(&["4 done already, 2 would run", gap]);
    sandbox.run(&["run", "s.toml", "--show", "0"]).exits(0).says(&[gap]);
    let plan = sandbox.run(&["plan", "s.toml", "--format", "json"]).exits(0).json();
    assert_eq!(plan["lacking"]["jobs"], 4, "{plan}");
    assert_eq!(rows::read(&sandbox.path("results/data"), "s", "jobs").len(), 2 * 60);
}

/// The manifest does not ask for the table: there will never be rows.
#[test]
fn a_table_that_the_manifest_does_not_have_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 1));
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    let reason = "the manifest of s has no table `jobs`: add tables = [\"jobs\"]";
    sandbox.run(&["results", "s", "--table", "jobs"]).exits(2).says(&[reason]);
    sandbox.run(&["results", "s", "--table", "jobs", "--format", "csv"]).exits(2).says(&[reason]);
    sandbox.run(&["export", "s", "--table", "jobs", "--output", "jobs.parquet"]).exits(2).says(&[reason]);
    sandbox.run(&["results", "s", "--table", "accounts"]).exits(2).says(&["no signals", "add [signals.NAME]"]);
    sandbox.run(&["results", "s", "--table", "failures"]).exits(0).prints(&["no rows yet"]);
}

#[test]
fn an_export_makes_no_folder_with_the_name_of_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 1));
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    let export = |args: &[&str]| sandbox.run(&[&["export", "s"], args].concat());
    let hint = "powersweep results s --table tasks --format csv --output t.csv";
    export(&["--table", "tasks", "-o", "t.csv"]).exits(2).says(&["does not write .csv files", hint]);
    export(&["-o", "t.CSV"]).exits(2).says(&["does not write .csv files"]);
    export(&["--table", "tasks", "-o", "t.csv.gz"]).exits(2).says(&["does not write .gz files"]);
    assert_eq!(std::fs::read_dir(sandbox.path("")).expect("there").count(), 2, "no file was made");
    // The command in the message works; a folder may have a dot in its name.
    let args: Vec<&str> = hint.split(' ').skip(1).collect();
    sandbox.run(&args).exits(0);
    assert!(sandbox.path("t.csv").is_file());
    export(&["-o", "s-2026.11"]).exits(0);
    let compressed = ["results", "s", "--format", "csv", "-o", "rows.csv.gz"];
    sandbox.run(&compressed).exits(2).says(&["rows.csv.gz: rows are not compressed"]);
    assert!(sandbox.path("s-2026.11/tasks.parquet").is_file());
}

fn file_rows(path: &Path) -> i64 {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("there")).expect("Parquet");
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn wrong_columns_and_conditions_are_explained() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    let results = |args: &[&str]| sandbox.run(&[&["results", "sweep"], args].concat());
    for (args, said) in [
        (["--where", "queue_order>=3"], "queue_order has texts, which are neither less nor greater: use = or !="),
        (
            ["--where", "queue_order=sjff"],
            "no row satisfies `queue_order=sjff`: queue_order is fcfs, sjf; did you mean `sjf`?",
        ),
        (["--where", "seed=7"], "no row satisfies `seed=7`: seed is 1"),
        (["--columns", "energy"], "tasks has no column `energy`; it has energy_"),
        (["--columns", "seed wait_s_mean"], "names are separated by commas: seed,wait_s_mean"),
    ] {
        results(&args).exits(2).says(&[said]);
    }
    // Names are offered in the order of the table, in which the most used ones come first.
    sandbox
        .run(&["best", "sweep", "--minimise", "energy"])
        .exits(2)
        .says(&["it has energy_precision, energy_total_j,"]);
    let blank = results(&["--columns", "seed,", "wait_s_mean"]).exits(2);
    blank.says(&["the values of --columns are separated by commas, without blanks: --columns seed,wait_s_mean"]);
    results(&["--where", "wait_s_mean<0"]).exits(0).prints(&["no row satisfies `wait_s_mean<0`: wait_s_mean is "]);
    results(&["--by", "seed", "--where", "policy=none"]).exits(2).says(&["no row satisfies `policy=none`"]);
}
