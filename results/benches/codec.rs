//! Hand-ins by this crate's codec and by Arrow IPC in a zstd frame: `cargo bench -p powersweep-results --bench codec`.
//!
//! The rows are those of the manifest `quickstart` over more seeds. The table has the bytes of a hand-in and the processor
//! time of a row, by the number of rows of a hand-in. A worker encodes. A coordinator checks on arrival, and gathers for a
//! part. IPC messages are sent without their schema, as those of the codec are; "folded" IPC leaves columns of nulls out,
//! and has columns of equal rows in a message of one row.
//!
//! The profile of a release builds Arrow IPC for size. Compare with
//! `--config 'profile.bench.package.NAME.opt-level=3'` for arrow-ipc, arrow-select and flatbuffers.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow::ipc::{MetadataVersion, reader, root_as_message};
use powersweep_engine::{Details, Limits, simulate, workload};
use powersweep_experiments::{Manifest, Sweep, manifests};
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::wire::Gather;
use powersweep_results::{tasks, wire};
use zstd::bulk::{Compressor, Decompressor};

const ROWS: usize = 1000;

/// Repetitions of a measurement; the fastest counts.
const ROUNDS: usize = 7;

/// Rows that a measurement encodes or decodes at least.
const ROWS_MEASURED: usize = 10_000;

fn main() {
    let batch = quickstart();
    println!("| rows | form | bytes of a hand-in | encode a row (us) | check a row (us) | gather a row (us) |");
    println!("|---|---|---|---|---|---|");
    for rows in [1, 10, 100, 1000] {
        let hand_ins: Vec<RecordBatch> = (0..ROWS / rows).map(|at| batch.slice(at * rows, rows)).collect();
        let schema = tasks::schema();
        print("codec", &hand_ins, &mut |batch| wire::encode(batch).expect("encodes").to_vec(), &mut |all, joined| {
            if !joined {
                return all.iter().for_each(|bytes| {
                    black_box(wire::keys(bytes, &schema, "quickstart", None).expect("decodes"));
                });
            }
            let mut gather = Gather::new(&schema);
            all.iter().for_each(|bytes| gather.push(bytes, []).expect("decodes"));
            black_box(gather.finish().expect("fits"));
        });
        for is_folded in [false, true] {
            let ipc = std::cell::RefCell::new(Ipc::new(is_folded));
            let name = if is_folded { "Arrow IPC, folded" } else { "Arrow IPC" };
            print(name, &hand_ins, &mut |batch| ipc.borrow_mut().encode(batch), &mut |all, joined| {
                if !joined {
                    return all.iter().for_each(|bytes| drop(black_box(ipc.borrow_mut().check(bytes, &schema))));
                }
                let batches: Vec<RecordBatch> = all.iter().map(|b| ipc.borrow_mut().decode(b, &schema)).collect();
                black_box(concat_batches(&schema, &batches).expect("fits"));
            });
            let bytes = ipc.borrow_mut().encode(&hand_ins[0]);
            assert_eq!(ipc.borrow_mut().decode(&bytes, &schema), hand_ins[0]);
        }
    }
}

/// Rows of tasks of the manifest `quickstart`.
fn quickstart() -> RecordBatch {
    let text = manifests::find("quickstart").expect("it is shipped");
    let text = text.replace("seeds = [1, 2]", "seeds = { from = 1, count = 100 }");
    let manifest = Manifest::parse("quickstart", &text).expect("it is valid");
    let sweep = Sweep::new(manifest, Default::default()).expect("it has no log");
    let mut rows = tasks::Builder::new();
    let begun_us = thread_cpu_us();
    for index in 0..ROWS as u64 {
        let task = sweep.task(index * sweep.index_count() / ROWS as u64);
        let Some(task) = task.or_else(|| sweep.task(sweep.next_included(index)?)) else { continue };
        let jobs = workload::build(&task.sim, None).expect("a workload");
        let measured = simulate(&task.sim, &jobs, &Limits::NONE, &mut Details::default()).expect("it ends");
        let facts = RunFacts {
            attempt: 1,
            worker: "local".to_owned(),
            started_at: Micros(1_700_000_000_000_000 + 1_013 * index as i64),
            wall_ms: 1.7 + index as f64 / 777.0,
            engine_ms: 1.3 + index as f64 / 999.0,
            parse_ms: 0.1 + index as f64 / 333.0,
        };
        rows.push(&task, &jobs.counts, &measured, &facts);
    }
    println!("simulating a task and making its row takes {:.0} us", (thread_cpu_us() - begun_us) / ROWS as f64);
    rows.finish()
}

/// Prints a row of the table. `decode`: all hand-ins, each checked for itself, or joined into one batch.
fn print(
    form: &str,
    hand_ins: &[RecordBatch],
    encode: &mut dyn FnMut(&RecordBatch) -> Vec<u8>,
    decode: &mut dyn FnMut(&[Vec<u8>], bool),
) {
    let encoded: Vec<Vec<u8>> = hand_ins.iter().map(&mut *encode).collect();
    let bytes = encoded.iter().map(Vec::len).sum::<usize>() / encoded.len();
    let encode_us = fastest_us(&mut || hand_ins.iter().for_each(|batch| drop(black_box(encode(batch)))));
    let check_us = fastest_us(&mut || decode(&encoded, false));
    let gather_us = fastest_us(&mut || decode(&encoded, true));
    println!("| {} | {form} | {bytes} | {encode_us:.2} | {check_us:.2} | {gather_us:.2} |", hand_ins[0].num_rows());
}

/// The processor time of a row (us) in work on all rows.
fn fastest_us(work: &mut dyn FnMut()) -> f64 {
    let times = ROWS_MEASURED / ROWS;
    let round = |_| {
        let begun_us = thread_cpu_us();
        (0..times).for_each(|_| work());
        (thread_cpu_us() - begun_us) / (times * ROWS) as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Processor time of this thread so far (us).
fn thread_cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux measures it");
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e3
}

/// Messages of Arrow IPC in a zstd frame.
struct Ipc {
    is_folded: bool,
    options: IpcWriteOptions,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
}

/// How a column of a folded batch is sent.
const ROWS_FOLLOW: u8 = 0;
const EQUAL: u8 = 1;
const NULL: u8 = 2;

impl Ipc {
    fn new(is_folded: bool) -> Ipc {
        Ipc {
            is_folded,
            options: IpcWriteOptions::try_new(8, false, MetadataVersion::V5).expect("they fit"),
            compressor: Compressor::new(1).expect("a level"),
            decompressor: Decompressor::new().expect("no dictionary"),
        }
    }

    fn encode(&mut self, batch: &RecordBatch) -> Vec<u8> {
        let mut content = Vec::new();
        if self.is_folded {
            let kinds: Vec<u8> = batch.columns().iter().map(kind).collect();
            content.extend_from_slice(&kinds);
            for (wanted, rows) in [(EQUAL, 1), (ROWS_FOLLOW, batch.num_rows())] {
                let chosen: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at] == wanted).collect();
                self.push(&batch.slice(0, rows).project(&chosen).expect("in range"), &mut content);
            }
        } else {
            self.push(batch, &mut content);
        }
        let mut bytes = u32::try_from(content.len()).expect("small").to_le_bytes().to_vec();
        bytes.extend(self.compressor.compress(&content).expect("compresses"));
        bytes
    }

    fn push(&self, batch: &RecordBatch, content: &mut Vec<u8>) {
        let mut dictionaries = DictionaryTracker::new(false);
        let mut context = IpcWriteContext::default();
        let encoded = IpcDataGenerator::default().encode(batch, &mut dictionaries, &self.options, &mut context);
        let (_, encoded) = encoded.expect("encodes");
        for bytes in [&encoded.ipc_message, &encoded.arrow_data] {
            content.extend(u32::try_from(bytes.len()).expect("small").to_le_bytes());
            content.extend_from_slice(bytes);
        }
    }

    fn decompress(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (size, frame) = bytes.split_first_chunk::<4>().expect("a size");
        self.decompressor.decompress(frame, u32::from_le_bytes(*size) as usize).expect("decompresses")
    }

    /// The arrays of the messages, which the reader checks.
    fn check(&mut self, bytes: &[u8], schema: &SchemaRef) -> Vec<RecordBatch> {
        let content = self.decompress(bytes);
        if !self.is_folded {
            return vec![pop(&mut &content[..], schema)];
        }
        let (kinds, mut rest) = content.split_at(schema.fields().len());
        let of = |wanted: u8| (0..kinds.len()).filter(move |at| kinds[*at] == wanted).collect::<Vec<_>>();
        [EQUAL, ROWS_FOLLOW].map(|kind| pop(&mut rest, &Arc::new(schema.project(&of(kind)).expect("in range")))).into()
    }

    fn decode(&mut self, bytes: &[u8], schema: &SchemaRef) -> RecordBatch {
        let content = self.decompress(bytes);
        if !self.is_folded {
            return pop(&mut &content[..], schema);
        }
        let (kinds, mut rest) = content.split_at(schema.fields().len());
        let of = |wanted: u8| (0..kinds.len()).filter(move |at| kinds[*at] == wanted).collect::<Vec<_>>();
        let project = |chosen: &[usize]| Arc::new(schema.project(chosen).expect("in range"));
        let (equal, whole) = (of(EQUAL), of(ROWS_FOLLOW));
        let (equal, whole) = (pop(&mut rest, &project(&equal)), pop(&mut rest, &project(&whole)));
        let rows = whole.num_rows();
        let (mut of_equal, mut of_whole) = (equal.columns().iter(), whole.columns().iter());
        let column = |(kind, field): (&u8, &arrow::datatypes::FieldRef)| -> ArrayRef {
            match *kind {
                NULL => arrow::array::new_null_array(field.data_type(), rows),
                EQUAL => repeated(of_equal.next().expect("counted"), rows),
                _ => Arc::clone(of_whole.next().expect("counted")),
            }
        };
        let columns = kinds.iter().zip(schema.fields()).map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).expect("fits")
    }
}

fn kind(column: &ArrayRef) -> u8 {
    let rows = column.len();
    match column.null_count() == rows {
        true => NULL,
        false if column.slice(0, rows - 1) == column.slice(1, rows - 1) => EQUAL,
        false => ROWS_FOLLOW,
    }
}

fn repeated(row: &ArrayRef, rows: usize) -> ArrayRef {
    match rows {
        1 => Arc::clone(row),
        _ => arrow::compute::take(row, &arrow::array::UInt32Array::from(vec![0; rows]), None).expect("in range"),
    }
}

fn pop(content: &mut &[u8], schema: &SchemaRef) -> RecordBatch {
    let mut next = || {
        let (size, rest) = content.split_first_chunk::<4>().expect("a size");
        let (bytes, rest) = rest.split_at(u32::from_le_bytes(*size) as usize);
        *content = rest;
        bytes
    };
    let (message, data) = (next(), next());
    let message = root_as_message(message).expect("a message");
    let batch = message.header_as_record_batch().expect("a batch");
    let buffer = Buffer::from(data);
    reader::read_record_batch(&buffer, batch, Arc::clone(schema), &HashMap::new(), None, &message.version())
        .expect("fits")
}
