//! The written dataset, read as any reader would: every file of a table's folder.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{SortOptions, concat_batches, lexsort_to_indices, take_record_batch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Columns that say who ran a task when, and how long it took: they differ between two runs.
const OF_THE_RUN: [&str; 6] = ["worker", "attempt", "started_at", "wall_ms", "engine_ms", "parse_ms"];

/// All rows of a table, sorted by `keys`.
pub(crate) fn table(data: &Path, experiment: &str, table: &str, keys: &[&str]) -> RecordBatch {
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

pub(crate) fn sorted(batch: &RecordBatch, keys: &[&str]) -> RecordBatch {
    let column = |key: &&str| arrow::compute::SortColumn {
        values: Arc::clone(batch.column_by_name(key).unwrap_or_else(|| panic!("no column {key}"))),
        options: Some(SortOptions::default()),
    };
    let columns: Vec<_> = keys.iter().map(column).collect();
    let order = lexsort_to_indices(&columns, None).expect("keys sort");
    take_record_batch(batch, &order).expect("rows can be taken")
}

/// The `tasks` table by task.
pub(crate) fn tasks(data: &Path, experiment: &str) -> RecordBatch {
    table(data, experiment, "tasks", &["task_id"])
}

/// Task ids, which must differ.
pub(crate) fn distinct_ids(tasks: &RecordBatch) -> Vec<String> {
    let ids = text(tasks, "task_id");
    for pair in ids.windows(2) {
        assert_ne!(pair[0], pair[1], "a task has two rows");
    }
    ids
}

/// A column as text.
pub(crate) fn text(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    let column = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8).expect("casts to text");
    column.as_string::<i32>().iter().map(|v| v.unwrap_or_default().to_owned()).collect()
}

/// Both tables hold the same rows in every column that does not depend on the run.
pub(crate) fn assert_same(left: &RecordBatch, right: &RecordBatch) {
    assert_eq!(left.num_rows(), right.num_rows(), "rows");
    let mut compared = 0;
    for field in right.schema().fields() {
        if OF_THE_RUN.contains(&field.name().as_str()) {
            continue;
        }
        let of = |batch: &RecordBatch| -> ArrayRef {
            Arc::clone(batch.column_by_name(field.name()).unwrap_or_else(|| panic!("no column {}", field.name())))
        };
        assert_eq!(&of(left), &of(right), "column {}", field.name());
        compared += 1;
    }
    assert!(compared > 50, "only {compared} columns were compared");
}
