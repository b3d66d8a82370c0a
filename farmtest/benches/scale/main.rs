//! The coordinator at scale: a sweep of 10^9 tasks, the start on 10^6 finished tasks, memory and files over 10^7 tasks
//! and over minutes of small commits, ten thousand workers. Prints numbers beside their goals and does not judge them.
//!
//!     cargo build --release
//!     cargo bench -p powersweep-farmtest --bench scale [-- accept recover many small connections]
//!
//! The binary is POWERSWEEP_BIN, else the one beside this bench. POWERSWEEP_SCALE_TASKS: tasks of `many` (10,000,000).
//! POWERSWEEP_SCALE_SECONDS: length of `small` and `connections` (120). POWERSWEEP_SCALE_WORKERS: those of
//! `connections` (10,000).

mod connections;
mod server;
mod worker;

use std::path::Path;
use std::time::{Duration, Instant};

use powersweep_farmtest::bench_binary;
use server::{Files, Server, machine, trivial};
use tokio::runtime::Runtime;
use worker::{Load, Workers, serve_as_workers};

/// A section of the bench: gets the binary and a runtime for requests.
type Section = fn(&Path, &Runtime);

const SECTIONS: [(&str, Section); 5] =
    [("accept", accept), ("recover", recover), ("many", many), ("small", small), ("connections", connections::run)];

fn main() {
    if serve_as_workers() {
        return;
    }
    let Some(binary) = bench_binary() else {
        println!("skipped: no powersweep binary; run `cargo build --release` first");
        return;
    };
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runtime = Runtime::new().expect("a runtime starts");
    for (name, section) in SECTIONS {
        if asked.is_empty() || asked.iter().any(|arg| arg == name) {
            println!("{name}: {}", machine());
            section(&binary, &runtime);
        }
    }
}

/// Allowed size of the state in addition to three times the live rows: 256 MB.
const ALLOWED_MIB: f64 = 256e6 / (1 << 20) as f64;

/// Ordinary workers of `many`, of one slot each.
const ORDINARY: usize = 16;

/// A number from the environment.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Workers that hand in their leased tasks at once.
fn fast(access: &str, workers: usize, rows: usize, seconds: u64) -> Workers {
    Load { access: access.to_owned(), workers, rows, ahead: 4, task_ms: 0, seconds }.start()
}

fn accept(binary: &Path, runtime: &Runtime) {
    let data = folder();
    let server = Server::start(binary, data.path(), runtime);
    let (before, _) = server.memory_mib();
    let (reply, took) = server.submit(&trivial("billion", 1_000_000_000), runtime);
    let (accepted, _) = server.memory_mib();
    println!(
        "  {} tasks accepted in {:.1} ms (wanted: under 1,000), resident {before:.1} MiB before, {accepted:.1} MiB then",
        reply.tasks,
        took.as_secs_f64() * 1e3
    );
    // Sixteen workers: leases and done bits are far apart.
    let seen = fast(&server.access, 16, 5, 5).wait();
    let (now, most) = server.memory_mib();
    let state = server.experiment(runtime);
    println!(
        "  {} tasks done and {} leased: resident {now:.1} MiB, at most {most:.1} MiB (wanted: under 64)",
        state.done, state.running
    );
    println!("  {} rows acknowledged, {} of them lost", seen.rows, seen.rows.saturating_sub(state.done));
}

fn recover(binary: &Path, runtime: &Runtime) {
    for (what, tasks, rows) in [
        ("10^6 done, all rows in parts", 1_000_000, 1000),
        ("10^6 of 10^7 done, rows of 1,000 a hand-in", 10_000_000, 1000),
        ("10^6 of 10^7 done, rows of 20 a hand-in", 10_000_000, 20),
    ] {
        let data = folder();
        let server = Server::start(binary, data.path(), runtime);
        server.submit(&trivial("recover", tasks), runtime);
        let workers = fast(&server.access, 4, rows, 600);
        let done = |server: &Server| {
            let state = server.experiment(runtime);
            state.done >= 1_000_000 && (tasks > 1_000_000 || state.rows_in_parts >= 1_000_000)
        };
        while !done(&server) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let before = server.experiment(runtime);
        server.kill();
        drop(workers);
        let files = Files::of(data.path());
        let mut starts = Vec::new();
        let mut lost = 0;
        for _ in 0..5 {
            let server = Server::start(binary, data.path(), runtime);
            starts.push(server.ready_after.as_secs_f64() * 1e3);
            lost = before.done.saturating_sub(server.experiment(runtime).done);
            if starts.len() == 1 {
                println!("  {what}: resident {:.1} MiB after the start", server.memory_mib().0);
            }
            server.kill();
        }
        let shown: Vec<String> = starts.iter().map(|ms| format!("{ms:.0}")).collect();
        println!(
            "  {what}: {} done, {} rows unpublished, {} files, {:.0} MiB; started in ms {} (wanted: under 1,000); {lost} lost",
            before.done,
            before.rows_unpublished,
            files.count(),
            files.mib(),
            shown.join(" ")
        );
    }
}

/// Prints memory and files until `over` is true of the number of done tasks. A hand-in has `rows` rows.
fn watch(
    server: &Server,
    data: &Path,
    runtime: &Runtime,
    rows: usize,
    every: Duration,
    mut over: impl FnMut(u64) -> bool,
) {
    let row_bytes = worker::encode(rows).len() as f64 / rows as f64;
    let began = Instant::now();
    let (mut most_files, mut most_mib, mut printed) = (0, 0.0f64, Instant::now());
    let (mut most_of_allowed, mut at) = (0.0f64, (0.0, 0.0));
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let files = Files::of(data);
        most_files = most_files.max(files.count());
        most_mib = most_mib.max(files.mib());
        let state = server.experiment(runtime);
        let live_mib = state.rows_unpublished as f64 * row_bytes / f64::from(1 << 20);
        let of_allowed = files.mib() / (3.0 * live_mib + ALLOWED_MIB);
        if of_allowed > most_of_allowed {
            (most_of_allowed, at) = (of_allowed, (files.mib(), live_mib));
        }
        let ended = over(state.done);
        if printed.elapsed() > every || ended {
            printed = Instant::now();
            let (now, most) = server.memory_mib();
            println!(
                "  {:6.1} s: {:9} done, {:7} unpublished, resident {now:6.1} MiB (most {most:6.1}), cpu {:6.1} s, files {:5} (wal \
                 {} sorted {} meta {} other {}), {:6.1} MiB",
                began.elapsed().as_secs_f64(),
                state.done,
                state.rows_unpublished,
                server.cpu_s(),
                files.count(),
                files.wal,
                files.sorted,
                files.meta,
                files.other,
                files.mib()
            );
        }
        if ended {
            break;
        }
    }
    println!(
        "  at most {most_files} files (wanted: under 2,000) and {most_mib:.0} MiB of state; at most {most_of_allowed:.2} of \
         three times the live rows + 256 MB (wanted: under 1): {:.0} MiB with {:.0} MiB of live rows",
        at.0, at.1
    );
}

fn many(binary: &Path, runtime: &Runtime) {
    println!("  {ORDINARY} ordinary workers:");
    many_with(binary, runtime, |access| (0..ORDINARY).map(|_| Workers::ordinary(binary, access)).collect());
    println!("  workers that compute nothing:");
    many_with(binary, runtime, |access| vec![fast(access, 4, 1000, 3600)]);
}

fn many_with(binary: &Path, runtime: &Runtime, start: impl Fn(&str) -> Vec<Workers>) {
    let tasks = number("POWERSWEEP_SCALE_TASKS", 10_000_000);
    let data = folder();
    let server = Server::start(binary, data.path(), runtime);
    server.submit(&trivial("many", tasks), runtime);
    let workers = start(&server.access);
    watch(&server, data.path(), runtime, 1000, Duration::from_secs(10), |done| done >= tasks);
    while server.experiment(runtime).rows_in_parts < tasks {
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(workers);
    let (now, _) = server.memory_mib();
    println!(
        "  all in parts: resident {now:.1} MiB, {:.2} us of coordinator time a task",
        server.cpu_s() * 1e6 / tasks as f64
    );
}

fn small(binary: &Path, runtime: &Runtime) {
    let seconds = number("POWERSWEEP_SCALE_SECONDS", 120);
    let data = folder();
    let server = Server::start(binary, data.path(), runtime);
    server.submit(&trivial("small", 1_000_000_000), runtime);
    let began = Instant::now();
    let load = Load { access: server.access.clone(), workers: 8, rows: 1, ahead: 1, task_ms: 0, seconds };
    let mut workers = load.start();
    watch(&server, data.path(), runtime, 1, Duration::from_secs(15), |_| workers.ended());
    let seen = workers.wait();
    println!(
        "  {:.0} hand-ins of one row a second, {:.1} us of coordinator time each",
        seen.rows as f64 / began.elapsed().as_secs_f64(),
        server.cpu_s() * 1e6 / seen.rows as f64
    );
}
