//! Reads a dataset like any reader, every file of a table's folder, and compares two datasets. Every test with faults
//! ends with this comparison.
//!
//! A wrong dataset is a failed test, so these functions panic.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Columns of the run (worker, times): they differ between two runs.
pub const OF_THE_RUN: [&str; 6] = ["worker", "attempt", "started_at", "wall_ms", "engine_ms", "parse_ms"];

/// All rows of a table, sorted by `keys`. Panics if its folder has no file, or a file that is no readable Parquet.
pub fn table(data: &Path, experiment: &str, table: &str, keys: &[&str]) -> RecordBatch {
    let folder = data.join(experiment).join(table);
    let mut batches = Vec::new();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder is readable").path();
        assert_eq!(path.extension().and_then(|e| e.to_str()), Some("parquet"), "{}", path.display());
        let file = File::open(&path).expect("a part opens");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a part is Parquet");
        batches.extend(reader.build().expect("a part is readable").map(|b| b.expect("a part is whole")));
    }
    assert!(!batches.is_empty(), "no part in {}", folder.display());
    let all = concat_batches(&batches[0].schema(), &batches).expect("parts have one schema");
    sorted(&all, keys)
}

/// The rows in the order of these columns; null comes first.
pub fn sorted(batch: &RecordBatch, keys: &[&str]) -> RecordBatch {
    let keys: Vec<_> = keys.iter().map(|name| column(batch, name)).collect();
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_by(|a, b| {
        let by_key = keys.iter().map(|key| compare(key, *a as usize, *b as usize));
        by_key.fold(Ordering::Equal, Ordering::then)
    });
    take_record_batch(batch, &UInt32Array::from(order)).expect("rows can be taken")
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> &'b ArrayRef {
    batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"))
}

/// The order of two rows by one column.
fn compare(column: &ArrayRef, a: usize, b: usize) -> Ordering {
    if column.is_null(a) || column.is_null(b) {
        return column.is_valid(a).cmp(&column.is_valid(b));
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(a).cmp(column.as_string::<i32>().value(b)),
        DataType::Int64 => {
            let values = column.as_primitive::<Int64Type>();
            values.value(a).cmp(&values.value(b))
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            values.value(a).total_cmp(&values.value(b))
        }
        other => panic!("no order for {other}"),
    }
}

/// The `tasks` table by task.
pub fn tasks(data: &Path, experiment: &str) -> RecordBatch {
    table(data, experiment, "tasks", &["task_id"])
}

/// Task ids, which must differ.
pub fn distinct_ids(tasks: &RecordBatch) -> Vec<String> {
    let ids = text(tasks, "task_id");
    for pair in ids.windows(2) {
        assert_ne!(pair[0], pair[1], "a task has two rows");
    }
    ids
}

/// A column of texts or whole numbers as text.
pub fn text(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = column(batch, name);
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(|v| v.unwrap_or_default().to_owned()).collect(),
        DataType::Int64 => {
            let shown = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
            column.as_primitive::<Int64Type>().iter().map(shown).collect()
        }
        other => panic!("column {name} is {other}, neither text nor whole numbers"),
    }
}

/// The columns that identify a table's rows.
fn keys(table: &str) -> &'static [&'static str] {
    match table {
        "jobs" => &["task_id", "job_id"],
        "series" => &["task_id", "series", "level", "x"],
        _ => &["task_id"],
    }
}

/// Checks that a table of a disturbed run has the rows of an undisturbed run, each once, in every column except
/// [`OF_THE_RUN`]. Returns the number of rows.
pub fn assert_undisturbed(disturbed: &Path, undisturbed: &Path, experiment: &str, name: &str) -> usize {
    assert_undisturbed_but(disturbed, undisturbed, experiment, name, &[])
}

/// Compares two datasets without some columns: `task_index` counts in the manifest that a task ran under, and edits change
/// it.
pub fn assert_undisturbed_but(
    disturbed: &Path,
    undisturbed: &Path,
    experiment: &str,
    name: &str,
    but: &[&str],
) -> usize {
    let [left, right] = [disturbed, undisturbed].map(|data| table(data, experiment, name, keys(name)));
    if name == "tasks" {
        assert_eq!(distinct_ids(&left).len(), right.num_rows(), "{experiment}: tasks");
    }
    assert_same_but(&left, &right, but);
    right.num_rows()
}

/// [`assert_undisturbed_but`] for tables that do not fit into memory: it compares number and hashes of each task's rows.
pub fn assert_undisturbed_large(
    disturbed: &Path,
    undisturbed: &Path,
    experiment: &str,
    name: &str,
    but: &[&str],
) -> u64 {
    let [left, right] = [disturbed, undisturbed].map(|data| fingerprints(data, experiment, name, but));
    assert_eq!(left.len(), right.len(), "{experiment}: tasks with rows in {name}");
    for (task, fingerprint) in &right {
        assert_eq!(left.get(task), Some(fingerprint), "{experiment}: rows and hash of task {task} in {name}");
    }
    right.values().map(|(rows, _)| rows).sum()
}

/// By task, the number of its rows and the sum of their hashes, without [`OF_THE_RUN`] and some other columns.
fn fingerprints(data: &Path, experiment: &str, table: &str, but: &[&str]) -> BTreeMap<String, (u64, u64)> {
    let folder = data.join(experiment).join(table);
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let file = File::open(entry.expect("the folder is readable").path()).expect("a part opens");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a part is Parquet").build();
        for batch in reader.expect("a part is readable") {
            let batch = batch.expect("a part is whole");
            for (task, hash) in column(&batch, "task_id").as_string::<i32>().iter().zip(row_hashes(&batch, but)) {
                let (rows, sum) = found.entry(task.expect("every row has a task").to_owned()).or_default();
                *rows += 1;
                *sum = sum.wrapping_add(hash);
            }
        }
    }
    found
}

fn row_hashes(batch: &RecordBatch, but: &[&str]) -> Vec<u64> {
    let mut hashes = vec![0_u64; batch.num_rows()];
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if OF_THE_RUN.iter().chain(but).any(|name| name == field.name()) {
            continue;
        }
        for (row, hash) in hashes.iter_mut().enumerate() {
            let value = if column.is_null(row) { 1 } else { value_hash(column, row) };
            *hash = (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    hashes
}

fn value_hash(column: &ArrayRef, row: usize) -> u64 {
    match column.data_type() {
        DataType::Boolean => u64::from(column.as_boolean().value(row)),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as u64,
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_bits(),
        DataType::Utf8 => {
            let bytes = column.as_string::<i32>().value(row).bytes();
            bytes.fold(0, |hash: u64, byte| (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517c_c1b7_2722_0a95))
        }
        other => panic!("no hash of {other}"),
    }
}

/// Both tables hold the same rows in every column that does not depend on the run.
pub fn assert_same(left: &RecordBatch, right: &RecordBatch) {
    assert_same_but(left, right, &[]);
}

fn assert_same_but(left: &RecordBatch, right: &RecordBatch, but: &[&str]) {
    assert_eq!(left.num_rows(), right.num_rows(), "rows");
    assert_eq!(left.schema().fields().len(), right.schema().fields().len(), "columns");
    for field in right.schema().fields() {
        if OF_THE_RUN.iter().chain(but).any(|name| name == field.name()) {
            continue;
        }
        assert_eq!(column(left, field.name()), column(right, field.name()), "column {}", field.name());
    }
}
