//! Ten thousand workers on one coordinator at a moderate load: the time of a slot without a task, and the time from a
//! hand-in to the next lease, which is queued behind the worker's tasks. Workers are connections from other processes.
//!
//! A lease is sent once it is durable, so both times are measured twice: on a disk, beside the time of a synced write
//! of the size of a commit, and in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::server::{Files, Server, machine, trivial};
use crate::worker::{Load, Wait, Workers};
use crate::{folder, number};

/// Processes of the workers: each has its own limit of open files.
const PROCESSES: usize = 4;
/// Mean duration of a task: with 10,000 workers 2,000 tasks a second.
const TASK_MS: u64 = 5000;
/// Length of the spans of time for which waits are shown.
const SPAN_MS: u32 = 10_000;

/// A folder of files in memory, where the system has one.
const MEMORY: &str = "/dev/shm";
/// A commit of 25 ms at this load: 50 hand-ins of one row.
const COMMIT_BYTES: usize = 110_000;

pub(crate) fn run(binary: &Path, runtime: &Runtime) {
    println!("  on a disk:");
    let data = folder();
    let disk = Disk::watch(data.path());
    measure(binary, runtime, data.path());
    println!("  a synced file of {COMMIT_BYTES} bytes on this disk meanwhile: {}", percentiles(disk.end()));
    if let Ok(data) = tempfile::tempdir_in(MEMORY) {
        println!("  in memory:");
        measure(binary, runtime, data.path());
    }
}

/// Writes files beside the farm and measures the times.
struct Disk {
    ends: Arc<AtomicBool>,
    writes: JoinHandle<Vec<u32>>,
}

impl Disk {
    fn watch(data: &Path) -> Disk {
        let ends = Arc::new(AtomicBool::new(false));
        let (ended, path) = (Arc::clone(&ends), data.join("synced"));
        let bytes: Vec<u8> = (0..COMMIT_BYTES).map(|at| (at * at) as u8).collect();
        let writes = std::thread::spawn(move || {
            let mut took_us = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let began = Instant::now();
                let mut file = File::create(&path).expect("it can be created");
                file.write_all(&bytes).and_then(|()| file.sync_all()).expect("it can be written");
                took_us.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
                std::thread::sleep(Duration::from_millis(100));
            }
            took_us
        });
        Disk { ends, writes }
    }

    fn end(self) -> Vec<u32> {
        self.ends.store(true, Ordering::Relaxed);
        self.writes.join().expect("it does not panic")
    }
}

fn measure(binary: &Path, runtime: &Runtime, data: &Path) {
    let workers = number("POWERSWEEP_SCALE_WORKERS", 10_000) as usize;
    let seconds = number("POWERSWEEP_SCALE_SECONDS", 120);
    let server = Server::start(binary, data, runtime);
    server.submit(&trivial("connections", 1_000_000_000), runtime);
    let load = Load {
        access: server.access.clone(),
        workers: workers / PROCESSES,
        rows: 1,
        ahead: 8,
        task_ms: TASK_MS,
        seconds,
    };
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| load.start()).collect();
    let began = Instant::now();
    let (mut cpu, mut done, mut at) = (server.cpu_s(), 0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(10));
        // They end only when their output is read.
        if began.elapsed().as_secs() >= seconds || processes.iter_mut().any(Workers::ended) {
            break;
        }
        let asked = Instant::now();
        let status = server.status(runtime);
        let answered = asked.elapsed();
        let state = &status.experiments[0];
        let seconds = at.elapsed().as_secs_f64();
        println!(
            "  {:5.1} s: {} workers, {:.0} tasks/s, coordinator {:.0}% of a core, resident {:.0} MiB, {} files, status in \
             {:.0} ms",
            began.elapsed().as_secs_f64(),
            status.workers.len(),
            (state.done - done) as f64 / seconds,
            (server.cpu_s() - cpu) / seconds * 100.0,
            server.memory_mib().0,
            Files::of(data).count(),
            answered.as_secs_f64() * 1e3
        );
        (cpu, done, at) = (server.cpu_s(), state.done, Instant::now());
    }
    let (mut answers, mut empty): (Vec<Wait>, Vec<Wait>) = (Vec::new(), Vec::new());
    let (mut rows, mut lost) = (0, 0);
    for process in processes {
        let seen = process.wait();
        answers.extend(seen.answers);
        empty.extend(seen.empty);
        rows += seen.rows;
        lost += seen.lost;
    }
    println!("  {rows} rows acknowledged, {lost} connections lost");
    println!("  a slot without a task (p99 wanted: under 100), {}:", machine());
    show(&empty);
    println!("  from hand-in to next lease (p99 wanted: under 100):");
    show(&answers);
}

/// Shows waits by the time of their end, and all of them.
fn show(waits: &[Wait]) {
    let mut by_span: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for wait in waits {
        by_span.entry(wait.at_ms / SPAN_MS).or_default().push(wait.us);
    }
    for (span, waits) in by_span {
        println!("  {:5} s: {}", span * SPAN_MS / 1000, percentiles(waits));
    }
    println!("  all: {}", percentiles(waits.iter().map(|wait| wait.us).collect()));
}

/// Percentiles of waits, as text.
fn percentiles(mut waits_us: Vec<u32>) -> String {
    waits_us.sort_unstable();
    let at = |p: f64| {
        let at = (waits_us.len().max(1) - 1) as f64 * p;
        waits_us.get(at as usize).map_or(f64::NAN, |&us| f64::from(us) / 1e3)
    };
    format!(
        "p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.1} ms of {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        waits_us.len()
    )
}
