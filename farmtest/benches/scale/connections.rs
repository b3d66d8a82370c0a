//! Ten thousand workers on one coordinator: how long a worker waits from its hand-in to its next lease, at a moderate
//! load. Workers are connections from other processes.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::server::{Files, Server, machine, trivial};
use crate::worker::{Load, Workers};
use crate::{folder, number};

/// Processes that the workers live in: each has its own limit of open files.
const PROCESSES: usize = 4;
/// What a task takes on average: with 10,000 workers 2,000 tasks a second.
const TASK_MS: u64 = 5000;

pub(crate) fn run(binary: &Path, runtime: &Runtime) {
    let workers = number("POWERSWEEP_SCALE_WORKERS", 10_000) as usize;
    let seconds = number("POWERSWEEP_SCALE_SECONDS", 180);
    let data = folder();
    let server = Server::start(binary, data.path(), runtime);
    server.submit(&trivial("connections", 1_000_000_000), runtime);
    let load =
        Load { url: server.url.clone(), workers: workers / PROCESSES, rows: 1, ahead: 8, task_ms: TASK_MS, seconds };
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| load.start()).collect();
    let began = Instant::now();
    let (mut cpu, mut done, mut at) = (server.cpu_s(), 0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(10));
        // They end only when what they saw is read.
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
            Files::of(data.path()).count(),
            answered.as_secs_f64() * 1e3
        );
        (cpu, done, at) = (server.cpu_s(), state.done, Instant::now());
    }
    let mut waits: Vec<u32> = Vec::new();
    let (mut rows, mut lost) = (0, 0);
    for process in processes {
        let seen = process.wait();
        waits.extend(seen.waits_us);
        rows += seen.rows;
        lost += seen.lost;
    }
    waits.sort_unstable();
    let at =
        |p: f64| waits.get(((waits.len().max(1) - 1) as f64 * p) as usize).map_or(f64::NAN, |&us| f64::from(us) / 1e3);
    println!("  {rows} rows acknowledged, {lost} connections lost");
    println!(
        "  from hand-in to next lease, ms: p50 {:.1}, p90 {:.1}, p99 {:.1} (wanted: under 100), p99.9 {:.1}, most {:.1} of {}; {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        waits.len(),
        machine()
    );
}
