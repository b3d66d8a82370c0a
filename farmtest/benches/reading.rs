//! Cost of showing and copying many rows: `results` on the screen, two columns as CSV, `export`. Prints wall time and
//! greatest memory of each command, and both as a ratio to those of the two columns.
//!
//!     cargo build --release && cargo bench -p powersweep-farmtest --bench reading
//!
//! POWERSWEEP_READING_TASKS is the number of rows, 1,000,000 by default: tasks of one job. The binary is POWERSWEEP_BIN,
//! else the one beside this bench.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use powersweep_farmtest::bench_binary;

const ROUNDS: usize = 5;

fn main() {
    let Some(binary) = bench_binary() else {
        println!("skipped: no powersweep binary; run `cargo build --release` first");
        return;
    };
    let tasks: u64 = match std::env::var("POWERSWEEP_READING_TASKS") {
        Ok(text) => text.parse().expect("POWERSWEEP_READING_TASKS is a number"),
        Err(_) => 1_000_000,
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("rows.toml"), manifest(tasks)).expect("writable");
    let (made_s, _) = measured(&binary, folder.path(), &["run", "rows.toml", "--quiet", "--show", "0"]);
    println!("{tasks} rows made in {made_s:.1} s");
    let csv = median(&binary, folder.path(), &["results", "rows", "--format", "csv", "--columns", "seed,wait_s_mean"]);
    report("two columns as CSV", csv, csv);
    report("table on the screen", median(&binary, folder.path(), &["results", "rows"]), csv);
    report("export", measured(&binary, folder.path(), &["export", "rows", "--output", "copy"]), csv);
    report("tidy export", measured(&binary, folder.path(), &["export", "rows", "--tidy", "--output", "tidy"]), csv);
}

/// A sweep of this number of tasks of one job, half of them at each threshold.
fn manifest(tasks: u64) -> String {
    format!(
        "version = 1\nname = \"rows\"\nseeds = {{ from = 1, count = {} }}\n[workloads.synthetic]\nsource = \"lublin\"\n\
         synthetic_jobs_count = 1\n[policies.gears]\ngear_rule = \"bsld\"\nbsld_threshold = [1.5, 2]\n",
        tasks.div_ceil(2)
    )
}

fn report(what: &str, (seconds, mib): (f64, f64), (unit_s, unit_mib): (f64, f64)) {
    let (times, memory) = (seconds / unit_s, mib / unit_mib);
    println!("{what}: {seconds:.2} s ({times:.2}), {mib:.0} MiB ({memory:.2})");
}

fn median(binary: &Path, folder: &Path, args: &[&str]) -> (f64, f64) {
    let mut rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| measured(binary, folder, args)).collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    rounds[ROUNDS / 2]
}

/// Wall time (s) and greatest resident memory (MiB) of a command.
fn measured(binary: &Path, folder: &Path, args: &[&str]) -> (f64, f64) {
    let begun = Instant::now();
    let mut command = Command::new(binary);
    let mut child = command.args(args).current_dir(folder).stdout(Stdio::null()).spawn().expect("the binary starts");
    let mut kib = 0;
    let status = loop {
        kib = memory_kib(child.id()).unwrap_or(0).max(kib);
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success(), "{args:?}");
    (begun.elapsed().as_secs_f64(), f64::from(kib) / 1024.0)
}

/// Greatest resident memory of a process so far; `None` after its end, and where there is no /proc.
fn memory_kib(id: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
