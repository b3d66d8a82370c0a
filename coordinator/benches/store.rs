//! Speed of the store in a folder: `POWERSWEEP_SPEED_DIR=/tmp cargo bench -p powersweep-coordinator --bench store`.
//!
//! Prints commits of one caller and of several, rows that become durable and are published, and the start after a kill; then,
//! for four minutes, the commits of a shared folder, whose log files are kept for three minutes. The folder is made in
//! `POWERSWEEP_SPEED_DIR`, else where temporary files are, which may be memory.

#[path = "../tests/it/store_samples.rs"]
#[allow(dead_code)] // The tests use the other samples.
mod store_samples;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use powersweep_coordinator::publish::make_visible;
use powersweep_coordinator::records::*;
use powersweep_coordinator::store::{Batch, Location, SlateStore, Store};
use powersweep_proto::v1::{IndexRange, LeaseId};
use powersweep_results::Table;
use powersweep_results::part::Origin;
use uuid::Uuid;

use crate::store_samples::hand_in;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    commits_in_a_folder().await;
    a_sweep_of_100_000_tasks().await;
    log_files_of_a_shared_folder().await;
}

fn folder() -> tempfile::TempDir {
    let parent = std::env::var_os("POWERSWEEP_SPEED_DIR").map_or_else(std::env::temp_dir, Into::into);
    tempfile::tempdir_in(parent).expect("a folder to measure in")
}

fn files(path: &Path) -> (u64, u64) {
    let Ok(entries) = std::fs::read_dir(path) else { return (0, 0) };
    entries.flatten().fold((0, 0), |(count, bytes), entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => {
            let (more, size) = files(&entry.path());
            (count + more, bytes + size)
        }
        Ok(meta) => (count + 1, bytes + meta.len()),
        Err(_) => (count, bytes),
    })
}

fn percentile(times: &mut [Duration], p: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * p) as usize].as_secs_f64() * 1e3
}

fn small(n: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Record::Lease(LeaseRecord {
        id: LeaseId { epoch: 1, counter: n },
        experiment: "e".into(),
        generation: 1,
        ranges: vec![IndexRange { start: n * 100, end: n * 100 + 100 }],
        worker_id: Uuid::nil().into(),
        worker: "w".into(),
        attempt: 1,
        ended: false,
    }));
    if n > 0 {
        batch.delete(Key::Lease { id: LeaseId { epoch: 1, counter: n - 1 } });
    }
    batch
}

async fn commits_in_a_folder() {
    let folder = folder();
    let store = Arc::new(SlateStore::open(&Location::directory(folder.path()).expect("a path")).await.expect("opens"));
    let mut times = Vec::new();
    let started = Instant::now();
    for n in 0..2000 {
        let start = Instant::now();
        store.commit(small(n)).await.expect("durable");
        times.push(start.elapsed());
    }
    let rate = 2000.0 / started.elapsed().as_secs_f64();
    println!(
        "one caller: {rate:.0} commits/s, ms p50 {:.2} p99 {:.2}",
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.99)
    );
    for callers in [4, 32] {
        let started = Instant::now();
        let tasks = (0..callers).map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in 0..300 {
                    store.commit(small(n)).await.expect("durable");
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        println!("{callers} callers: {:.0} commits/s", f64::from(callers * 300) / started.elapsed().as_secs_f64());
    }
    println!("state: {:?} files and bytes", files(&folder.path().join(".powersweep/state")));
}

/// Publishes the hand-ins up to one, as the state machine and its driver do.
async fn publish(store: &dyn Store, last_seq: u64, rows: u64) {
    let (experiment, table, part_id) = ("e".into(), Table::Tasks, Uuid::now_v7().into());
    let intent =
        Intent { experiment, table: table.into(), part_id, first_seq: 0, last_seq, rows, refused: String::new() };
    let mut batch = Batch::new();
    batch.put(Record::Intent(intent.clone()));
    store.commit(batch).await.expect("durable");
    let bytes = make_visible(store, &intent, Origin::default()).await.expect("published").bytes;
    let mut batch = Batch::new();
    batch.delete(Key::Intent { part_id: *intent.part_id });
    for seq in 0..=last_seq {
        batch.delete(Key::Rows { experiment: "e".into(), table, seq });
    }
    let (experiment, table) = ("e".into(), intent.table);
    batch.put(Record::Totals(Totals { experiment, table, parts: 1, rows, bytes, ..Totals::default() }));
    store.commit(batch).await.expect("durable");
}

async fn a_sweep_of_100_000_tasks() {
    let folder = folder();
    let location = Location::directory(folder.path()).expect("a path");
    let rows = hand_in("e", Table::Tasks, 0, 0..1000, &[]);
    println!("a hand-in of 1,000 rows has {} bytes", rows.header().bytes);
    let process = tokio::runtime::Runtime::new().expect("a runtime");
    let place = location.clone();
    let work = process.spawn(async move {
        let store: Arc<dyn Store> = Arc::new(SlateStore::open(&place).await.expect("opens"));
        let started = Instant::now();
        for seq in 0..100 {
            let mut batch = Batch::new();
            batch.put(Record::Rows(RowsRecord { seq, ..rows.clone() }));
            let first = seq * 1000;
            let (from, to) = ((first & !0xFFFF), first + 1000);
            let bits = (from..to.min(from + CHUNK_TASKS)).map(|index| (index & 0xFFFF) as u32);
            let bitmap = Stored::of_bits(bits.collect());
            let chunk = (from >> 16) as u32;
            batch.put(Record::DoneChunk(DoneChunk { experiment: "e".into(), generation: 1, chunk, bitmap }));
            store.commit(batch).await.expect("durable");
        }
        println!("100 hand-ins of 1,000 rows: {:.0} rows/s durable", 1e5 / started.elapsed().as_secs_f64());
        let started = Instant::now();
        publish(&*store, 9, 10_000).await;
        println!("10,000 rows published in {:.2?}", started.elapsed());
        store
    });
    let store = work.await.expect("no panic");
    process.shutdown_background();
    drop(store);
    println!("state: {:?} files and bytes", files(&folder.path().join(".powersweep/state")));
    let started = Instant::now();
    let store = SlateStore::open(&location).await.expect("opens");
    let opened = started.elapsed();
    let loaded = store.load().await.expect("loads");
    println!(
        "after a kill: opened in {opened:.2?}, loaded in {:.2?}: {} done chunks, {} hand-ins",
        started.elapsed() - opened,
        loaded.done.len(),
        loaded.rows.len()
    );
}

/// Log files live for three minutes there, and a busy coordinator writes the most that its pace allows.
async fn log_files_of_a_shared_folder() {
    let folder = folder();
    let location = Location::shared(folder.path()).expect("a path");
    let process = tokio::runtime::Runtime::new().expect("a runtime");
    let place = location.clone();
    let work = process.spawn(async move {
        let store = SlateStore::open(&place).await.expect("opens");
        let (started, mut commits) = (Instant::now(), 0);
        while started.elapsed() < Duration::from_secs(240) {
            store.commit(small(commits)).await.expect("durable");
            commits += 1;
        }
        println!("a shared folder: {:.1} commits/s of one caller", commits as f64 / started.elapsed().as_secs_f64());
        store
    });
    let store = work.await.expect("no panic");
    process.shutdown_background();
    drop(store);
    let log_files = files(&folder.path().join(".powersweep/state/wal")).0;
    let started = Instant::now();
    let store = SlateStore::open(&location).await.expect("opens");
    store.load().await.expect("loads");
    println!("a shared folder: {log_files} log files, opened and loaded after a kill in {:.2?}", started.elapsed());
}
