//! Cost of a row: `cargo bench -p powersweep-results`.

#[path = "../tests/it/sample.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod sample;

use arrow::array::RecordBatch;
use divan::Bencher;
use divan::counter::ItemsCount;
use powersweep_results::part::{self, Footer};
use powersweep_results::{jobs, tasks, wire};
use uuid::Uuid;

const ROWS: u64 = 1000;

fn main() {
    let batch = batch(0);
    let wire = wire::encode(&batch).expect("encodes").len() as u64;
    let memory = batch.get_array_memory_size() as u64;
    println!("columns {}, wire {} B/row (one row alone {} B)", batch.num_columns(), wire / ROWS, one_row());
    println!("memory {} B/row", memory / ROWS);
    let (batches, footer) = part_of(65);
    let parquet = part::encode(&tasks::schema(), &batches, &footer).expect("encodes").len() as u64;
    println!("Parquet {} B/row in a part of {} rows", parquet / footer.rows, footer.rows);
    divan::main();
}

fn batch(from: u64) -> RecordBatch {
    let mut builder = tasks::Builder::new();
    for i in from..from + ROWS {
        builder.push(&sample::task(i), &sample::counts(i), &sample::summary(i), &sample::run(i));
    }
    builder.finish()
}

fn one_row() -> usize {
    let mut builder = tasks::Builder::new();
    builder.push(&sample::task(0), &sample::counts(0), &sample::summary(0), &sample::run(0));
    wire::encode(&builder.finish()).expect("encodes").len()
}

fn part_of(n: u64) -> (Vec<RecordBatch>, Footer) {
    let batches = (0..n).map(|i| batch(i * ROWS)).collect();
    (batches, Footer::new("sample", Uuid::nil(), n * ROWS))
}

#[divan::bench]
fn push_tasks(bencher: Bencher<'_, '_>) {
    let rows: Vec<_> =
        (0..ROWS).map(|i| (sample::task(i), sample::counts(i), sample::summary(i), sample::run(i))).collect();
    let mut builder = tasks::Builder::new();
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        for (task, counts, summary, run) in &rows {
            builder.push(task, counts, summary, run);
        }
        builder.finish()
    });
}

#[divan::bench]
fn push_jobs(bencher: Bencher<'_, '_>) {
    let (task, jobs) = (sample::task(0), sample::jobs(5000));
    let mut builder = jobs::Builder::new();
    bencher.counter(ItemsCount::new(jobs.len())).bench_local(|| {
        builder.push(&task, &jobs);
        builder.finish()
    });
}

#[divan::bench]
fn encode_wire(bencher: Bencher<'_, '_>) {
    let batch = batch(0);
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| wire::encode(&batch));
}

#[divan::bench]
fn encode_wire_one_row(bencher: Bencher<'_, '_>) {
    let batch = batch(0).slice(0, 1);
    bencher.counter(ItemsCount::new(1_u64)).bench_local(|| wire::encode(&batch));
}

#[divan::bench]
fn decode_wire(bencher: Bencher<'_, '_>) {
    let bytes = wire::encode(&batch(0)).expect("encodes");
    let schema = tasks::schema();
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| wire::decode(&bytes, &schema));
}

/// Hand-ins of one row are gathered for a part.
#[divan::bench]
fn gather_wire_of_one_row(bencher: Bencher<'_, '_>) {
    let batch = batch(0);
    let hand_ins: Vec<_> = (0..ROWS as usize).map(|i| wire::encode(&batch.slice(i, 1)).expect("encodes")).collect();
    let mut gather = wire::Gather::new(&tasks::schema());
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        hand_ins.iter().for_each(|bytes| gather.push(bytes, []).expect("decodes"));
        gather.finish()
    });
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn encode_parquet(bencher: Bencher<'_, '_>) {
    let (batches, footer) = part_of(65);
    bencher.counter(ItemsCount::new(footer.rows)).bench_local(|| part::encode(&tasks::schema(), &batches, &footer));
}
