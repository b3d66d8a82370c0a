//! One record of each kind, and batches of the stored tables without a simulation.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::publish::rolled_schema;
use powersweep_coordinator::records::*;
use powersweep_results::wire;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// One record of each kind, with values that show in the bytes.
pub(crate) fn one_of_each() -> Vec<Record> {
    vec![
        Record::Epoch(7),
        Record::Experiment(ExperimentRecord {
            name: "etinski2010".into(),
            generation: 2,
            manifest: "version = 1\nname = \"etinski2010\"\n".into(),
            digests: BTreeMap::from([("SDSC-SP2".to_owned(), [0xAB; 32]), ("CTC".to_owned(), [0x01; 32])]),
            pins: BTreeMap::from([("kernel".to_owned(), 1), ("order/fcfs".to_owned(), 3)]),
            tasks_schema: 0xFEED_0000_0000_0001,
            tables: vec![Table::Jobs],
            created_us: 1_790_000_000_000_000,
            state: ExperimentState::Running,
            priority: -5,
        }),
        Record::Earlier(EarlierRecord {
            experiment: "etinski2010".into(),
            generation: 1,
            manifest: "version = 1\n".into(),
            digests: BTreeMap::from([("CTC".to_owned(), [0x01; 32])]),
        }),
        Record::DoneChunk(DoneChunk {
            experiment: "etinski2010".into(),
            generation: 2,
            chunk: 3,
            bitmap: (0..65_536).collect(),
        }),
        Record::DoneChunk(DoneChunk {
            experiment: "etinski2010".into(),
            generation: 2,
            chunk: 4,
            bitmap: [0, 5, 65_535].into_iter().collect(),
        }),
        Record::Rows(RowsRecord {
            experiment: "etinski2010".into(),
            table: Table::Tasks,
            seq: 300,
            generation: 2,
            received_us: -1,
            hand_ins: vec![
                EncodedRows {
                    rows: 4,
                    mask: Some(RoaringBitmap::from_iter([1, 3])),
                    encoded: Bytes::from_static(b"rows as they came"),
                },
                EncodedRows { rows: 1, mask: None, encoded: Bytes::from_static(b"and more") },
            ],
        }),
        Record::Intent(Intent {
            experiment: "etinski2010".into(),
            table: Table::Tasks,
            part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001),
            source: Source::Rows { first_seq: 1, last_seq: 300 },
            rows: 1200,
        }),
        Record::Intent(Intent {
            experiment: "etinski2010".into(),
            table: Table::Jobs,
            part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002),
            source: Source::Staged,
            rows: 64,
        }),
        Record::Intent(Intent {
            experiment: "etinski2010".into(),
            table: Table::Series,
            part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0003),
            source: Source::Merged { uploads: vec![Uuid::from_u128(5), Uuid::from_u128(6)] },
            rows: 128,
        }),
        Record::Upload(UploadRecord {
            experiment: "etinski2010".into(),
            table: Table::Jobs,
            part_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0004),
            rows: 5_000,
            bytes: 123_456,
            received_us: 1_790_000_000_000_002,
        }),
        Record::Covered(CoveredRecord { experiment: "etinski2010".into(), table: Table::Jobs, tasks: 1_000_000 }),
        Record::Totals(Totals {
            experiment: "etinski2010".into(),
            table: Table::Tasks,
            parts: 2,
            rows: 524_288,
            bytes: 99_000_000,
        }),
        Record::Failure(FailureRecord {
            experiment: "etinski2010".into(),
            generation: 2,
            index: 196_613,
            attempts: 3,
            crashes: 1,
            kind: FailureKind::Panic,
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
            ranges: vec![10..20, 25..26, 1_000_000_000..1_000_000_100],
            worker_id: Uuid::from_u128(9),
            worker: "node7".into(),
            attempt: 2,
        }),
        Record::Log(LogRecord { digest: [0xCD; 32], bytes: 12_345_678, name: "SDSC-SP2".into() }),
        Record::Leaving(LeavingRecord { experiment: "etinski2010".into(), fate: Fate::Rename("etinski2010@1".into()) }),
        Record::Leaving(LeavingRecord { experiment: "quickstart".into(), fate: Fate::Erase }),
        Record::GenerationFloor(12),
    ]
}

/// The same as version 2 of the format knew it: each hand-in was a record.
pub(crate) fn one_of_each_in_version_2() -> Vec<Record> {
    let mut records = one_of_each();
    for record in &mut records {
        if let Record::Rows(rows) = record {
            rows.hand_ins.truncate(1);
        }
    }
    records
}

/// The same as version 1 of the format knew it.
pub(crate) fn one_of_each_in_version_1() -> Vec<Record> {
    let known = one_of_each_in_version_2().into_iter().filter_map(|record| match record {
        Record::Experiment(experiment) => Some(Record::Experiment(ExperimentRecord { priority: 0, ..experiment })),
        Record::Failure(failure) => Some(Record::Failure(FailureRecord { forgiven: 0, ..failure })),
        Record::Leaving(_) | Record::GenerationFloor(_) | Record::Upload(_) | Record::Covered(_) => None,
        Record::Intent(Intent { source: Source::Merged { .. }, .. }) => None,
        other => Some(other),
    });
    known.collect()
}

/// A batch of a stored table; row `id` carries `id` in every column that holds one.
pub(crate) fn rows_of(table: Table, ids: std::ops::Range<u64>) -> RecordBatch {
    let schema = rolled_schema(table).expect("a table of the coordinator");
    let columns = schema.fields().iter().map(|field| column(field, ids.clone())).collect();
    RecordBatch::try_new(schema, columns).expect("columns made from the schema fit it")
}

fn column(field: &Field, ids: std::ops::Range<u64>) -> ArrayRef {
    let n = (ids.end - ids.start) as usize;
    match field.data_type() {
        DataType::Utf8 => Arc::new(ids.map(|id| Some(id.to_string())).collect::<StringArray>()),
        DataType::Int64 => Arc::new(ids.map(|id| id as i64).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(ids.map(|id| id as f64).collect::<Float64Array>()),
        DataType::Boolean => Arc::new(ids.map(|id| Some(id % 2 == 0)).collect::<BooleanArray>()),
        DataType::Timestamp(..) => {
            let instants = ids.map(|id| id as i64).collect::<TimestampMicrosecondArray>();
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
    let mask = (!left_out.is_empty()).then(|| left_out.iter().copied().collect());
    RowsRecord {
        experiment: experiment.to_owned(),
        table,
        seq,
        generation: 1,
        received_us: 1,
        hand_ins: vec![EncodedRows {
            rows: (ids.end - ids.start) as u32,
            mask,
            encoded: wire::encode(&rows_of(table, ids)).expect("small enough"),
        }],
    }
}

/// A complete Parquet part of the tasks table.
pub(crate) fn a_part(experiment: &str, part_id: Uuid, ids: std::ops::Range<u64>) -> Bytes {
    let batch = rows_of(Table::Tasks, ids);
    let footer =
        powersweep_results::part::Footer { experiment: experiment.to_owned(), part_id, rows: batch.num_rows() as u64 };
    powersweep_results::part::encode(&batch.schema(), &[batch], &footer).expect("a small part")
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
