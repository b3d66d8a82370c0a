//! Many uploads become one part.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_results::columns::fingerprint;
use powersweep_results::merge::{COPY_ROWS_MIN, merge};
use powersweep_results::part::{self, Footer};
use powersweep_results::{ResultsError, failures, jobs};
use uuid::Uuid;

use crate::roundtrip::tasks_batch;
use crate::sample;

fn jobs_of(task: u64, n: u64) -> RecordBatch {
    let mut rows = jobs::Builder::new();
    rows.push(&sample::task(task), &sample::jobs(n));
    rows.finish()
}

fn object(batch: &RecordBatch) -> Bytes {
    let footer = footer(batch.num_rows() as u64);
    part::encode(&batch.schema(), std::slice::from_ref(batch), &footer).expect("a part")
}

fn footer(rows: u64) -> Footer {
    Footer::new("sample", Uuid::now_v7(), rows)
}

/// All rows, and the number of row groups.
fn read(part: Bytes) -> (RecordBatch, usize) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(part).expect("Parquet");
    let groups = reader.metadata().num_row_groups();
    let batches: Vec<_> = reader.build().expect("readable").map(|b| b.expect("whole")).collect();
    (concat_batches(&batches[0].schema(), &batches).expect("one schema"), groups)
}

#[track_caller]
fn merged(batches: &[RecordBatch]) -> usize {
    let expected = concat_batches(&batches[0].schema(), batches).expect("one schema");
    let objects: Vec<Bytes> = batches.iter().map(object).collect();
    let footer = footer(expected.num_rows() as u64);
    let part = merge(&objects, &footer).expect("they fit");
    assert_eq!(part::read_footer(&part).expect("a part"), footer);
    let (rows, groups) = read(part);
    assert_eq!(fingerprint(&rows.schema()), fingerprint(&expected.schema()));
    assert_eq!(rows.columns(), expected.columns());
    groups
}

#[test]
fn small_objects_share_a_row_group_and_large_ones_are_copied() {
    let small: Vec<_> = (0..20).map(|task| jobs_of(task, 7 + task)).collect();
    assert_eq!(merged(&small), 1);
    let large: Vec<_> = (0..3).map(|task| jobs_of(task, COPY_ROWS_MIN + task)).collect();
    assert_eq!(merged(&large), 3);
    assert_eq!(merged(&large[..1]), 1);
    assert_eq!(merged(&[tasks_batch(0, 9), tasks_batch(9, 10)]), 1);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let (a, b) = (object(&jobs_of(0, 3)), object(&tasks_batch(0, 3)));
    assert!(matches!(merge(&[a.clone(), b], &footer(6)), Err(ResultsError::Footer("columns"))));
    assert!(matches!(merge(&[a.clone(), a.clone()], &footer(7)), Err(ResultsError::Footer("row count"))));
    assert!(matches!(merge(&[], &footer(0)), Err(ResultsError::Footer("row count"))));
    assert!(matches!(merge(&[a.slice(..a.len() - 9)], &footer(3)), Err(ResultsError::Parquet(_))));
    let none = failures::Builder::new().finish();
    assert!(merge(&[object(&none)], &footer(0)).is_ok(), "no rows are rows too");
}
