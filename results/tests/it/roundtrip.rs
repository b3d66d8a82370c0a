//! Batches and parts hold what was pushed.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_experiments::TaskSpec;
use powersweep_results::columns::{DESCRIPTION, UNIT};
use powersweep_results::failures::Failure;
use powersweep_results::identity::Micros;
use powersweep_results::join::{self, TasksById};
use powersweep_results::part::{self, Footer, Origin};
use powersweep_results::{ResultsError, failures, jobs, series, tasks};
use uuid::Uuid;

use crate::sample;

pub(crate) fn tasks_batch(from: u64, to: u64) -> RecordBatch {
    let mut builder = tasks::Builder::new();
    for i in from..to {
        builder.push(&sample::task(i), &sample::counts(i), &sample::summary(i), &sample::run(i));
    }
    builder.finish()
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> &'b Arc<dyn Array> {
    batch.column_by_name(name).unwrap_or_else(|| panic!("no column `{name}`"))
}

fn text<'b>(batch: &'b RecordBatch, name: &str, row: usize) -> Option<&'b str> {
    let array = column(batch, name).as_string::<i32>();
    array.is_valid(row).then(|| array.value(row))
}

fn real(batch: &RecordBatch, name: &str, row: usize) -> Option<f64> {
    let array = column(batch, name).as_primitive::<Float64Type>();
    array.is_valid(row).then(|| array.value(row))
}

fn int(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let array = column(batch, name).as_primitive::<Int64Type>();
    array.is_valid(row).then(|| array.value(row))
}

/// Tasks in the order of a sweep: neighbours differ only in the seed.
fn neighbours() -> Vec<TaskSpec> {
    let runs = [(0, 3), (1, 1), (2, 2), (0, 2), (3, 4)];
    let run = |(kind, tasks): (u64, u64)| {
        let first = sample::task(kind);
        (0..tasks).map(move |i| {
            let mut task = TaskSpec { index: 10 * kind + i, task_id: sample::task(100 + i).task_id, ..first.clone() };
            task.sim.seed = i;
            task
        })
    };
    runs.into_iter().flat_map(run).collect()
}

#[test]
fn rows_pushed_together_equal_rows_pushed_alone() {
    let mut together = tasks::Builder::new();
    let mut alone = Vec::new();
    for (i, task) in (0..).zip(neighbours()) {
        let mut builder = tasks::Builder::new();
        for builder in [&mut together, &mut builder] {
            builder.push(&task, &sample::counts(i), &sample::summary(i), &sample::run(i));
        }
        alone.push((builder.bytes(), builder.finish()));
    }
    let bytes: usize = alone.iter().map(|(bytes, _)| bytes).sum();
    assert_eq!(together.bytes(), bytes);
    let batches: Vec<RecordBatch> = alone.into_iter().map(|(_, batch)| batch).collect();
    assert_eq!(together.finish(), concat_batches(&tasks::schema(), &batches).expect("of one schema"));
    assert_eq!(together.finish().num_rows(), 0, "the builder is empty");
}

#[test]
fn jobs_pushed_together_equal_jobs_pushed_alone() {
    let mut together = jobs::Builder::new();
    let mut alone = Vec::new();
    // Some tasks have no jobs, and so has the first of several that differ only in the seed.
    for (count, task) in [0, 2, 3, 0, 1, 0, 4, 1, 0, 0, 2, 1].into_iter().zip(neighbours()) {
        let mut builder = jobs::Builder::new();
        for builder in [&mut together, &mut builder] {
            builder.push(&task, &sample::jobs(count));
        }
        alone.push(builder.finish());
    }
    assert_eq!(together.finish(), concat_batches(&jobs::schema(), &alone).expect("of one schema"));
}

#[test]
fn a_task_row_has_the_spec_the_run_and_the_metrics() {
    let batch = tasks_batch(0, 4);
    assert_eq!(batch.num_rows(), 4);
    assert_eq!(text(&batch, "experiment", 0), Some("sample"));
    assert_eq!(text(&batch, "task_id", 3), Some("00000000-0000-0003-8000-000000000003"));
    assert_eq!(int(&batch, "seed", 3), Some(4));
    assert_eq!(int(&batch, "task_index", 2), Some(2));
    assert_eq!(text(&batch, "gear_rule", 2), Some("bsld"));
    assert_eq!(text(&batch, "gear_rule", 3), Some("top"));
    assert_eq!(text(&batch, "log", 0), Some("CTC-SP2-1996-3.1-cln"));
    assert_eq!(text(&batch, "log_digest", 0), Some("ab".repeat(32).as_str()));
    assert_eq!(text(&batch, "log_digest", 1), None);
    assert_eq!(real(&batch, "wq_threshold", 0), Some(f64::INFINITY));
    assert_eq!(real(&batch, "wq_threshold", 2), Some(4.0));
    assert_eq!(int(&batch, "dropped_run_count", 2), Some(2));
    assert_eq!(real(&batch, "wait_s_mean", 1), Some(sample::summary(1).jobs().expect("of jobs").wait_s_mean));
    assert_eq!(real(&batch, "slowdown_mean", 0), sample::summary(0).jobs().expect("of jobs").slowdown_mean);
    let started = column(&batch, "started_at").as_primitive::<TimestampMicrosecondType>();
    assert_eq!(started.value(2), 1_700_000_003_000_000);
    let gears = column(&batch, "gear_jobs_count").as_list::<i32>().value(3);
    assert_eq!(gears.as_primitive::<Int64Type>().values(), &[3, 0, 1, 2, 3, 3997]);
    let ghz = column(&batch, "gears_ghz").as_list::<i32>().value(0);
    assert_eq!(ghz.as_primitive::<Float64Type>().values(), &[0.8, 1.1, 1.4, 1.7, 2.0, 2.3]);
}

#[test]
fn values_that_do_not_apply_are_null() {
    let batch = tasks_batch(0, 2);
    assert_eq!(real(&batch, "bsld_threshold", 1), None, "the top gear has no threshold");
    assert_eq!(int(&batch, "synthetic_procs", 0), None, "a log is not generated");
    assert_eq!(text(&batch, "log", 1), None, "a generator reads no log");
    assert_eq!(real(&batch, "missing_estimate_s", 0), None, "unset parameters have no value");
    assert_eq!(real(&batch, "slowdown_mean", 1), None, "a metric without a value");
}

#[test]
fn a_builder_can_be_used_after_finish() {
    let mut builder = tasks::Builder::new();
    let mut rows = Vec::new();
    for i in 0..3 {
        builder.push(&sample::task(i), &sample::counts(i), &sample::summary(i), &sample::run(i));
        assert_eq!(builder.len(), 1);
        assert!(builder.bytes() > 500, "{} bytes", builder.bytes());
        rows.push(builder.finish());
        assert!(builder.is_empty());
    }
    let together = arrow::compute::concat_batches(&tasks::schema(), &rows).expect("one schema");
    assert_eq!(together, tasks_batch(0, 3));
}

#[test]
fn jobs_carry_the_keys_of_their_task() {
    let mut builder = jobs::Builder::new();
    builder.push(&sample::task(0), &sample::jobs(5));
    builder.push(&sample::task(1), &[]);
    builder.push(&sample::task(3), &sample::jobs(2));
    let batch = builder.finish();
    assert_eq!(batch.num_rows(), 7);
    assert_eq!(text(&batch, "policy", 4), Some("bsld"));
    assert_eq!(text(&batch, "policy", 5), Some("no-dvfs"));
    assert_eq!((text(&batch, "workload", 4), text(&batch, "workload", 5)), (Some("CTC"), Some("synthetic")));
    assert_eq!((int(&batch, "task_index", 4), int(&batch, "task_index", 5)), (Some(0), Some(3)));
    assert_eq!((int(&batch, "seed", 4), int(&batch, "seed", 5)), (Some(1), Some(4)));
    assert_eq!(text(&batch, "task_id", 6), Some("00000000-0000-0003-8000-000000000003"));
    assert_eq!(int(&batch, "job_id", 6), Some(20_001));
    assert_eq!(real(&batch, "wait_s", 1), Some(0.5));
    assert_eq!(int(&batch, "procs", 1), Some(2));
    assert!(!column(&batch, "backfilled").as_boolean().value(1));
}

#[test]
fn points_of_series_carry_the_keys_of_their_task() {
    let mut builder = series::Builder::new();
    builder.push(&sample::task(0), &sample::series(3));
    builder.push(&sample::task(1), &[]);
    builder.push(&sample::task(3), &sample::series(1));
    let batch = builder.finish();
    assert_eq!(batch.num_rows(), 4);
    assert_eq!((text(&batch, "policy", 2), text(&batch, "policy", 3)), (Some("bsld"), Some("no-dvfs")));
    assert_eq!(text(&batch, "series", 0), Some("sample"));
    assert_eq!((int(&batch, "level", 0), int(&batch, "level", 2)), (None, Some(2)));
    assert_eq!(real(&batch, "x", 2), Some(1_209_600.0));
    assert!(real(&batch, "value", 3).is_some());
}

#[test]
fn failures_carry_kind_and_message() {
    let mut builder = failures::Builder::new();
    let failure = Failure {
        attempt: 2,
        worker: "node1".to_owned(),
        failed_at: Micros(1_700_000_000_000_000),
        failure_kind: "deadline".to_owned(),
        message: "over 60 s".to_owned(),
    };
    builder.push(&sample::task(1), &[failure]);
    let batch = builder.finish();
    assert_eq!(int(&batch, "task_index", 0), Some(1));
    assert_eq!(int(&batch, "attempt", 0), Some(2));
    assert_eq!(text(&batch, "failure_kind", 0), Some("deadline"));
    assert_eq!(text(&batch, "message", 0), Some("over 60 s"));
}

#[test]
fn a_join_adds_the_simulated_spec() {
    let axes: Vec<String> = tasks::axes().into_iter().map(|column| column.name).chain(["task_id".to_owned()]).collect();
    let batch = tasks_batch(0, 3);
    let kept: Vec<usize> = axes.iter().map(|name| batch.schema().index_of(name).expect("a column of tasks")).collect();
    let tasks = TasksById::new(batch.project(&kept).expect("columns of the batch")).expect("it has ids");
    let mut builder = jobs::Builder::new();
    for i in [2, 0, 9] {
        builder.push(&sample::task(i), &sample::jobs(2));
    }
    let jobs = builder.finish();
    let joined = tasks.join(&jobs).expect("it has ids");
    assert_eq!(joined.num_columns(), jobs.num_columns() + axes.len() - 1);
    assert_eq!(joined.columns()[..jobs.num_columns()], *jobs.columns(), "the own columns are unchanged");
    assert_eq!(real(&joined, "wq_threshold", 1), Some(4.0));
    assert_eq!(real(&joined, "wq_threshold", 3), Some(f64::INFINITY));
    assert_eq!(text(&joined, "gear_rule", 2), Some("bsld"));
    assert_eq!(text(&joined, "gear_rule", 4), None, "a task without a row in `tasks`");
    let unit = joined.schema().field_with_name("power_top_w").expect("a parameter").metadata().get("unit").cloned();
    assert_eq!(unit.as_deref(), Some("W"), "the columns keep their units");
    // `procs` of the job, and `procs` of the machine.
    assert_eq!((int(&joined, "procs", 1), int(&joined, "param_procs", 1)), (Some(2), None));
    let own = join::of_tasks(&joined, &BTreeSet::from([sample::task(9).task_id.to_string()])).expect("it has ids");
    assert_eq!(own.num_rows(), 2);
    assert_eq!(text(&own, "task_id", 0), text(&joined, "task_id", 4));
}

#[test]
fn a_part_holds_its_rows_and_its_identity() {
    let batches = [tasks_batch(0, 10), tasks_batch(10, 13)];
    let footer = Footer::new("sample", Uuid::now_v7(), 13);
    let bytes = part::encode(&tasks::schema(), &batches, &footer).expect("encodes");
    assert_eq!(part::read_footer(&bytes).expect("our footer"), footer);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a Parquet file").build().expect("readable");
    let read: Vec<_> = reader.collect::<Result<_, _>>().expect("readable rows");
    let read = arrow::compute::concat_batches(&tasks::schema(), &read).expect("the same schema");
    assert_eq!(read, tasks_batch(0, 13));
}

#[test]
fn a_footer_states_the_origin_of_the_rows() {
    let origin = Origin {
        manifest: "version = 1\n".to_owned(),
        log_digests: [("CTC \"SP2\"".to_owned(), "ab".repeat(32))].into(),
        component_versions: [("kernel".to_owned(), 3), ("order/sjf".to_owned(), 1)].into(),
        build: "0.1.0 (0123456789ab)".to_owned(),
        ledgers: r#"[{"file":"jobs.sacct","read_count":3}]"#.to_owned(),
    };
    let footer = Footer { origin: origin.clone(), ..Footer::new("sample", Uuid::now_v7(), 1) };
    let encode = |footer: &Footer| part::encode(&tasks::schema(), &[tasks_batch(0, 1)], footer).expect("encodes");
    assert_eq!(part::read_footer(&encode(&footer)).expect("our footer"), footer);
    // Every part has a footer: a manifest of a megabyte is left out.
    let long = Origin { manifest: "#".repeat(1 << 20), ..origin };
    let bytes = encode(&Footer { origin: long.clone(), ..footer });
    assert!(bytes.len() < 1 << 19, "{} bytes", bytes.len());
    let found = part::read_footer(&bytes).expect("our footer").origin;
    assert_eq!(found, Origin { manifest: String::new(), ..long });
}

#[test]
fn columns_are_explained_in_the_file() {
    let bytes = part::encode(&tasks::schema(), &[tasks_batch(0, 1)], &Footer::new("sample", Uuid::nil(), 1));
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.expect("encodes")).expect("a Parquet file");
    for (column, field) in tasks::columns().iter().zip(reader.schema().fields()) {
        assert_eq!(field.metadata().get(DESCRIPTION), Some(&column.doc), "{}", column.name);
        let unit = field.metadata().get(UNIT).map_or("", String::as_str);
        assert_eq!(unit, column.unit, "{}", column.name);
    }
}

#[test]
fn a_footer_that_powersweep_did_not_write_is_refused() {
    let batch = tasks_batch(0, 1);
    let wrong = Footer::new("sample", Uuid::nil(), 2);
    assert!(part::encode(&tasks::schema(), std::slice::from_ref(&batch), &wrong).is_err(), "a wrong row count");

    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), tasks::schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    let foreign = writer.into_inner().expect("closed").into();
    assert!(matches!(part::read_footer(&foreign), Err(ResultsError::Footer(_))));
    assert!(matches!(part::read_footer(&foreign.slice(..100)), Err(ResultsError::Parquet(_))));
}
