//! What a command reads to show or copy rows, and what it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use arrow::array::{Array, AsArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::rows;
use crate::sandbox::{Sandbox, contents};
use crate::sweeps::synthetic;

/// Two policies of two parameters each; `queue_order` follows from the policy.
pub(crate) const POLICIES: &str = r#"version = 1
name = "shown"
seeds = { from = 1, count = 300 }
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 1
synthetic_procs = 64
[policies.first]
queue_order = "fcfs"
[policies.second]
queue_order = "sjf"
gear_rule = "bsld"
bsld_threshold = [1.5, 2.5]
"#;

/// The columns that a command has read, with the bytes of their pages.
pub(crate) fn read(stderr: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for line in stderr.lines().filter(|line| line.contains("rows read")) {
        let value = |name: &str| {
            let after = line.split(&format!("{name}=")).nth(1).unwrap_or_else(|| panic!("{name} in {line}"));
            after.split(' ').next().expect("a value").trim_matches('"').to_owned()
        };
        let bytes: u64 = value("bytes").parse().expect("a number");
        for column in value("columns").split(',') {
            *found.entry(column.to_owned()).or_default() += bytes;
        }
    }
    found
}

#[test]
fn the_table_reads_only_what_it_shows() {
    let sandbox = Sandbox::new();
    sandbox.write("shown.toml", POLICIES);
    let log = [("POWERSWEEP_LOG", "powersweep_dataset::reading=debug")];
    let run = sandbox.run_with(&["run", "shown.toml", "--show", "30"], &log).exits(0);
    let results = sandbox.run_with(&["results", "shown", "--rows", "30"], &log).exits(0);
    for ended in [&run, &results] {
        let lines: Vec<&str> = ended.stdout.trim_end().lines().collect();
        assert_eq!(lines.len(), 1 + 30 + 1, "{ended}");
        let head: Vec<&str> = lines[0].split_whitespace().take(3).collect();
        // The policy determines the order and the rule of gears; only the threshold varies within a policy.
        assert_eq!(head, ["policy", "seed", "bsld_threshold"], "{ended}");
        assert!(lines[31].contains("870 more rows"), "{ended}");
        let seeds: Vec<&str> = lines[1..31].iter().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(seeds[..3], ["1", "2", "3"], "the first rows by index: {ended}");
        let columns = read(&ended.stderr);
        for shown in ["task_index", "policy", "seed", "bsld_threshold", "wait_s_mean", "energy_total_j"] {
            assert!(columns.contains_key(shown), "{shown} in {columns:?}");
        }
        // A list, and a column that differs in a row group of several labels, are read, too.
        for other in ["task_id", "started_at", "worker", "makespan_s", "synthetic_procs", "gear_jobs_count", "caps_w"] {
            assert!(!columns.contains_key(other), "{other} in {columns:?}");
        }
        assert!(columns.len() < 30, "{columns:?}");
    }
}

#[test]
fn rows_for_programs_are_read_column_by_column() {
    let sandbox = Sandbox::new();
    sandbox.write("shown.toml", POLICIES);
    sandbox.run(&["run", "shown.toml", "--quiet", "--show", "0"]).exits(0);
    let log = [("POWERSWEEP_LOG", "powersweep_dataset::reading=debug")];
    let csv = ["results", "shown", "--format", "csv", "--columns", "seed,wait_s_mean"];
    let csv = sandbox.run_with(&csv, &log).exits(0);
    assert_eq!(csv.stdout.lines().count(), 901);
    let size: usize = contents(&sandbox.path("results/data/shown/tasks")).values().map(Vec::len).sum();
    let columns = read(&csv.stderr);
    assert_eq!(columns.keys().collect::<Vec<_>>(), ["seed", "wait_s_mean"]);
    assert!(columns["seed"] * 4 < size as u64, "{columns:?} of {size} bytes");
}

/// All rows of a Parquet file.
fn batch(sandbox: &Sandbox, path: &str) -> RecordBatch {
    let file = File::open(sandbox.path(path)).expect("there");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().expect("readable").map(|batch| batch.expect("whole")).collect();
    arrow::compute::concat_batches(&schema, &batches).expect("one schema")
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch.schema().fields().iter().map(|field| field.name().clone()).collect()
}

#[test]
fn a_tidy_export_has_what_differs_and_what_was_measured() {
    let sandbox = Sandbox::new();
    sandbox.write("shown.toml", POLICIES.replace("count = 300", "count = 3"));
    sandbox.run(&["run", "shown.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox.run(&["export", "shown", "--tidy", "--output", "tidy"]).exits(0).prints(&["tasks: 9 rows"]);
    let tasks = batch(&sandbox, "tidy/tasks.parquet");
    let found = names(&tasks);
    assert_eq!(found[..5], ["policy", "seed", "queue_order", "gear_rule", "bsld_threshold"]);
    assert!(found[5..].iter().any(|name| name == "wait_s_mean"), "{found:?}");
    let absent = ["task_id", "worker", "started_at", "synthetic_jobs_count", "lp_theta", "gears_ghz"];
    assert!(absent.iter().all(|absent| !found.iter().any(|name| name == absent)), "{found:?}");
    for (field, column) in tasks.schema().fields().iter().zip(tasks.columns()).skip(5) {
        assert!(column.null_count() < column.len(), "{} has no value", field.name());
    }
    sandbox.run(&["export", "shown", "--tidy", "--wide", "--output", "x"]).exits(2);
}

#[test]
fn a_tidy_export_of_jobs_has_the_parameters_of_their_tasks() {
    let sandbox = Sandbox::new();
    let text =
        POLICIES.replace("count = 300", "count = 2").replace("synthetic_jobs_count = 1", "synthetic_jobs_count = 5");
    sandbox.write("shown.toml", text.replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n"));
    sandbox.run(&["run", "shown.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox
        .run(&["export", "shown", "--tidy", "--output", "tidy"])
        .exits(0)
        .prints(&["tasks: 6 rows", "jobs: 30 rows"]);
    let jobs = batch(&sandbox, "tidy/jobs.parquet");
    let found = names(&jobs);
    assert_eq!(found[..6], ["policy", "seed", "queue_order", "gear_rule", "bsld_threshold", "job_id"]);
    let text = |name: &str| jobs.column_by_name(name).expect("a column").as_string::<i32>();
    for (policy, order) in text("policy").iter().zip(text("queue_order")) {
        assert_eq!(order, Some(if policy == Some("first") { "fcfs" } else { "sjf" }));
    }
    let thresholds = jobs.column_by_name("bsld_threshold").expect("a column");
    assert_eq!(thresholds.null_count(), 10, "null where the rule has no threshold");
}

/// Rows of several manifests are in several parts, whose indices overlap.
#[test]
fn an_export_sorts_the_rows_of_many_parts() {
    let sandbox = Sandbox::new();
    for seeds in [5, 9, 7, 20] {
        sandbox.write("s.toml", synthetic("s", seeds));
        sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    }
    let parts = contents(&sandbox.path("results/data/s/tasks")).len();
    assert!(parts >= 3, "{parts} parts");
    sandbox.run(&["export", "s", "--output", "copy"]).exits(0).prints(&["tasks: 40 rows"]);
    let tasks = batch(&sandbox, "copy/tasks.parquet");
    let index = tasks.column_by_name("task_index").expect("a column").as_primitive::<arrow::datatypes::Int64Type>();
    let ids = tasks.column_by_name("task_id").expect("a column").as_string::<i32>();
    let keys: Vec<(i64, &str)> = index.values().iter().copied().zip(ids.iter().flatten()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    assert!(
        index.values().iter().copied().eq(0..40),
        "indices of the newest manifest, whatever the parts have: {keys:?}"
    );
    let stored = rows::read(&sandbox.path("results/data"), "s", "tasks");
    let expected: BTreeMap<&str, &rows::Row> =
        stored.iter().map(|row| (row["task_id"].as_str().expect("a text"), row)).collect();
    let seeds = tasks.column_by_name("seed").expect("a column").as_primitive::<arrow::datatypes::Int64Type>();
    let orders = tasks.column_by_name("queue_order").expect("a column").as_string::<i32>();
    let unique: BTreeSet<&str> = ids.iter().flatten().collect();
    assert_eq!(unique.len(), 40);
    for (row, id) in ids.iter().flatten().enumerate() {
        let stored = expected[id];
        assert_eq!(stored["seed"], seeds.value(row));
        assert_eq!(stored["queue_order"], orders.value(row));
    }
}

#[test]
fn instants_on_the_screen_are_for_people() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", synthetic("s", 1));
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    let shown = sandbox.run(&["results", "s", "--columns", "task_index,started_at"]).exits(0);
    let line = shown.stdout.lines().nth(1).expect("a row").trim().to_owned();
    assert!(line.contains(" 20") && line.ends_with(" UTC") && !line.contains("Z"), "{line}");
}

#[test]
fn a_part_explains_itself() {
    let sandbox = Sandbox::new();
    let text = synthetic("s", 1);
    sandbox.write("s.toml", &text);
    sandbox.run(&["run", "s.toml", "--quiet", "--show", "0"]).exits(0);
    let (path, _) = contents(&sandbox.path("results/data/s/tasks")).into_iter().next().expect("a part");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("there")).expect("Parquet");
    let field = reader.schema().field_with_name("wait_s_mean").expect("a column");
    assert_eq!(field.metadata().get("unit").map(String::as_str), Some("s"));
    assert!(field.metadata()["description"].contains("wait"), "{:?}", field.metadata());
    let pairs = reader.metadata().file_metadata().key_value_metadata().expect("entries");
    let value = |key: &str| {
        let found = pairs.iter().find(|pair| pair.key == format!("powersweep.{key}"));
        found.and_then(|pair| pair.value.clone()).unwrap_or_else(|| panic!("{key} in {pairs:?}"))
    };
    assert_eq!(value("manifest"), text);
    let versions: BTreeMap<String, u32> = serde_json::from_str(&value("component_versions")).expect("an object");
    assert!(versions["kernel"] >= 1 && versions.keys().any(|name| name.contains("easy")), "{versions:?}");
    assert!(value("build").starts_with(env!("CARGO_PKG_VERSION")), "{}", value("build"));
}

#[test]
fn a_manifest_chooses_its_series() {
    let sandbox = Sandbox::new();
    let text =
        POLICIES.replace("count = 300", "count = 2").replace("synthetic_jobs_count = 1", "synthetic_jobs_count = 50");
    let of = |keys: &str| text.replace("version = 1\n", &format!("version = 1\n{keys}\n"));
    let recorded = |name: &str| -> BTreeSet<String> {
        let rows = rows::read(&sandbox.path("results/data"), name, "series");
        rows.iter().map(|row| row["series"].as_str().expect("a text").to_owned()).collect()
    };
    sandbox.write("all.toml", of("tables = [\"series\"]").replace("name = \"shown\"", "name = \"all\""));
    sandbox.run(&["run", "all.toml", "--quiet", "--show", "0"]).exits(0);
    let all = recorded("all");
    assert!(all.len() > 1, "{all:?}");
    let one = all.first().expect("a series");
    sandbox.write("some.toml", of(&format!("series = [\"{one}\"]")).replace("name = \"shown\"", "name = \"some\""));
    sandbox.run(&["run", "some.toml", "--quiet", "--show", "0"]).exits(0);
    assert_eq!(recorded("some"), BTreeSet::from([one.clone()]));
    sandbox.write("wrong.toml", of("series = [\"powr_w\"]"));
    let refused = sandbox.run(&["run", "wrong.toml"]);
    assert_ne!(refused.code(), Some(0), "{refused}");
    assert!(refused.stderr.contains("there is no series") && refused.stderr.contains(one.as_str()), "{refused}");
}
