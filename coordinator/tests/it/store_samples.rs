//! One record of each kind, and batches of the stored tables without a simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::records::*;
use powersweep_experiments::Digest;
use powersweep_proto::v1::{ExperimentState, FailureKind, IndexRange, LeaseId};
use powersweep_results::Table;
use powersweep_results::wire;
use uuid::Uuid;

fn fragment(id: u128, rows: u64) -> Fragment {
    Fragment {
        part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + id).into(),
        rows,
        bytes: 100 * rows,
    }
}

/// One record of each kind, with values that show in the bytes.
pub(crate) fn one_of_each() -> Vec<Record> {
    vec![
        Record::Epoch(7),
        Record::Experiment(ExperimentRecord {
            name: "etinski2010".into(),
            generation: 2,
            manifest: "version = 1\nname = \"etinski2010\"\n".into(),
            digests: BTreeMap::from([
                ("SDSC-SP2".to_owned(), Digest::from([0xAB; 32]).into()),
                ("CTC".to_owned(), Digest::from([0x01; 32]).into()),
            ]),
            pins: BTreeMap::from([("kernel".to_owned(), 1), ("order/fcfs".to_owned(), 3)]),
            tasks_schema: 0xFEED_0000_0000_0001,
            tables: vec![Table::Jobs.into()],
            created_us: 1_790_000_000_000_000,
            state: ExperimentState::Running.into(),
            priority: -5,
            split_due: true,
            pruning: true,
            owner: "ada".into(),
            ledgers: r#"[{"file":"jobs.sacct"}]"#.into(),
        }),
        Record::Earlier(EarlierRecord {
            experiment: "etinski2010".into(),
            generation: 1,
            manifest: "version = 1\n".into(),
            digests: BTreeMap::from([("CTC".to_owned(), Digest::from([0x01; 32]).into())]),
        }),
        Record::DoneChunk(DoneChunk {
            experiment: "etinski2010".into(),
            generation: 2,
            chunk: 3,
            bitmap: Stored::of_bits((0..65_536).collect()),
        }),
        Record::DoneChunk(DoneChunk {
            experiment: "etinski2010".into(),
            generation: 2,
            chunk: 4,
            bitmap: Stored::of_bits([0, 5, 65_535].into_iter().collect()),
        }),
        Record::Rows(RowsRecord {
            experiment: "etinski2010".into(),
            table: Table::Tasks.into(),
            seq: 300,
            generation: 2,
            received_us: -1,
            hand_ins: vec![
                EncodedRows {
                    rows: 4,
                    mask: Some(Stored::of_bits([1, 3].into_iter().collect())),
                    encoded: Bytes::from_static(b"rows as they came"),
                    decoded_bytes: 0,
                },
                EncodedRows { rows: 1, mask: None, encoded: Bytes::from_static(b"and more"), decoded_bytes: 0 },
            ],
            upload: None,
        }),
        Record::Rows(RowsRecord {
            experiment: "etinski2010".into(),
            ..upload(7, Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0004), 5_000)
        }),
        Record::Intent(Intent {
            experiment: "etinski2010".into(),
            table: Table::Failures.into(),
            part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001).into(),
            first_seq: 1,
            last_seq: 300,
            rows: 1200,
            refused: String::new(),
        }),
        Record::Covered(CoveredRecord {
            experiment: "etinski2010".into(),
            table: Table::Jobs.into(),
            tasks: 1_000_000,
        }),
        Record::Totals(Totals {
            experiment: "etinski2010".into(),
            table: Table::Tasks.into(),
            parts: 2,
            rows: 524_288,
            bytes: 99_000_000,
            left_rows: 77,
            uploads_left_out: 0,
            rows_left_out: 0,
        }),
        Record::Failure(FailureRecord {
            experiment: "etinski2010".into(),
            generation: 2,
            index: 196_613,
            attempts: 3,
            crashes: 1,
            kind: FailureKind::Panic.into(),
            quarantined: true,
            message: "index out of bounds: grün".into(),
            worker: "node7".into(),
            at_us: 1_790_000_000_000_001,
            forgiven: 2,
        }),
        Record::Lease(LeaseRecord {
            id: LeaseId { epoch: 7, counter: 1_000_000 },
            experiment: "etinski2010".into(),
            generation: 2,
            ranges: [(10, 20), (25, 26), (1_000_000_000, 1_000_000_100)]
                .map(|(start, end)| IndexRange { start, end })
                .to_vec(),
            worker_id: Uuid::from_u128(9).into(),
            worker: "node7".into(),
            attempt: 2,
            ended: false,
        }),
        Record::Log(LogRecord { digest: Digest::from([0xCD; 32]).into(), bytes: 12_345_678, name: "SDSC-SP2".into() }),
        Record::Leaving(LeavingRecord {
            experiment: "etinski2010".into(),
            removal: Removal::Rename("etinski2010@1".into()).into(),
        }),
        Record::Leaving(LeavingRecord { experiment: "quickstart".into(), removal: Removal::Erase.into() }),
        Record::GenerationFloor(12),
        Record::Split(SplitRecord {
            experiment: "etinski2010".into(),
            id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0005).into(),
            generation: 2,
            parts: vec![SplitPart {
                table: Table::Tasks.into(),
                is_left: true,
                old: fragment(6, 9),
                kept: Some(fragment(7, 4)),
                moved: Some(fragment(8, 5)),
            }],
        }),
    ]
}

/// A batch of a stored table; row `id` carries `id` in every column that holds one.
pub(crate) fn rows_of(table: Table, ids: std::ops::Range<u64>) -> RecordBatch {
    assert!(!table.is_optional(), "a table of the coordinator");
    let schema = table.schema();
    let columns = schema.fields().iter().map(|field| column(field, ids.clone())).collect();
    RecordBatch::try_new(schema, columns).expect("columns made from the schema fit it")
}

/// Values of a column; row `id` carries `id`.
pub(crate) fn column(field: &Field, ids: std::ops::Range<u64>) -> ArrayRef {
    let n = (ids.end - ids.start) as usize;
    match field.data_type() {
        DataType::Utf8 => Arc::new(ids.map(|id| Some(id.to_string())).collect::<StringArray>()),
        DataType::Int64 => Arc::new(ids.map(|id| id as i64).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(ids.map(|id| id as f64).collect::<Float64Array>()),
        DataType::Boolean => Arc::new(ids.map(|id| Some(id % 2 == 0)).collect::<BooleanArray>()),
        DataType::Timestamp(..) => {
            let instants = TimestampMicrosecondArray::from_iter_values(ids.map(|id| id as i64));
            Arc::new(instants.with_data_type(field.data_type().clone()))
        }
        DataType::List(item) => {
            let empty = new_null_array(item.data_type(), 0);
            Arc::new(ListArray::new(Arc::clone(item), OffsetBuffer::from_repeated_length(0, n), empty, None))
        }
        other => new_null_array(other, n),
    }
}

/// A hand-in of these rows, the positions in `left_out` masked.
pub(crate) fn hand_in(
    experiment: &str,
    table: Table,
    seq: u64,
    ids: std::ops::Range<u64>,
    left_out: &[u32],
) -> RowsRecord {
    let mask = (!left_out.is_empty()).then(|| Stored::of_bits(left_out.iter().copied().collect()));
    RowsRecord {
        experiment: experiment.to_owned(),
        table: table.into(),
        seq,
        generation: 1,
        received_us: 1,
        hand_ins: vec![EncodedRows {
            rows: (ids.end - ids.start) as u32,
            mask,
            encoded: wire::encode(&rows_of(table, ids)).expect("small enough"),
            decoded_bytes: 0,
        }],
        upload: None,
    }
}

/// An accepted upload of `e`.
pub(crate) fn upload(seq: u64, part_id: Uuid, rows: u64) -> RowsRecord {
    RowsRecord {
        experiment: "e".into(),
        table: Table::Jobs.into(),
        seq,
        generation: 1,
        received_us: 1_790_000_000_000_002,
        hand_ins: Vec::new(),
        upload: Some(Upload { part_id: part_id.into(), rows, bytes: 123_456 }),
    }
}

/// A complete Parquet part of the tasks table.
pub(crate) fn a_part(experiment: &str, part_id: Uuid, ids: std::ops::Range<u64>) -> Bytes {
    let batch = rows_of(Table::Tasks, ids);
    let footer = powersweep_results::part::Footer::new(experiment, part_id, batch.num_rows() as u64);
    powersweep_results::part::encode(&batch.schema(), &[batch], &footer).expect("a small part")
}

/// Uploads rows of `jobs` with these ids.
pub(crate) async fn stage_jobs(
    store: &dyn powersweep_coordinator::store::Store,
    experiment: &str,
    part_id: Uuid,
    ids: std::ops::Range<u64>,
) {
    let upload = a_part(experiment, part_id, ids);
    store.objects().expect("open").stage(experiment, Table::Jobs, part_id, upload).await.expect("uploaded");
}

/// The ids in a part, in order.
pub(crate) fn ids_in(part: Bytes) -> Vec<u64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(part).expect("a Parquet file").build().expect("readable");
    let mut ids = Vec::new();
    for batch in reader {
        let batch = batch.expect("a readable batch");
        let column = batch.column_by_name("task_id").expect("every table has it");
        let texts = column.as_string::<i32>();
        ids.extend((0..texts.len()).map(|row| texts.value(row).parse::<u64>().expect("a number as text")));
    }
    ids
}
