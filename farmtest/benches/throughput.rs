//! Trivial tasks a second through real processes: `powersweep serve`, workers, `powersweep submit`, over loopback.
//!
//!     cargo build --release && cargo bench -p powersweep-farmtest --bench throughput
//!
//! A task is the simulation of one synthetic job by the ordinary worker, with the full row of the `tasks` table. The
//! clock starts when `submit` starts and stops when the last part is visible and its rows are counted, by DuckDB where
//! POWERSWEEP_PYTHON has it, else by the footers of the parts. CPU times are those of the processes while the clock
//! runs; on a loaded machine they are more reliable than the rate. The coordinator logs the CPU time of encoding parts.
//!
//! POWERSWEEP_THROUGHPUT_TASKS (default 500,000) sets the tasks of a sweep, POWERSWEEP_THROUGHPUT_ROUNDS (default 3)
//! the rounds, and POWERSWEEP_THROUGHPUT_SETUPS the workers and slots (default `16x1,1x2`). The binary is
//! POWERSWEEP_BIN, else the one beside this bench.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parquet::file::metadata::ParquetMetaDataReader;
use powersweep_farmtest::bench_binary;

/// Interval of checks of the dataset's folder and of logs.
const POLL: Duration = Duration::from_millis(20);
/// Only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(900);
/// Clock ticks a second in /proc: the same on every Linux.
const TICKS_PER_S: f64 = 100.0;
/// Rates of other programs, measured on a machine of two cores, for which the goals are, too.
const OTHERS: &str = "HyperQueue 0.26: 27,650/s with 16 workers x 64 slots and no results, 935/s with one worker of two \
                      slots; Ray 1,646/s; Dask 671/s";
/// Cores that the goals are for.
const CORES: f64 = 2.0;

/// Workers and slots of each, with the rate that is the goal (tasks/s).
struct Setup {
    workers: usize,
    slots: usize,
    wanted: Option<f64>,
}

/// Times of one sweep.
struct Measured {
    wall_s: f64,
    coordinator_s: f64,
    /// The share of `coordinator_s` that encodes parts.
    encoding_s: f64,
    workers_s: f64,
    client_s: f64,
    counted_by: &'static str,
}

fn main() {
    let Some(binary) = bench_binary() else {
        println!("skipped: no powersweep binary; run `cargo build --release` first");
        return;
    };
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
    };
    let (tasks, rounds) = (number("POWERSWEEP_THROUGHPUT_TASKS", 500_000), number("POWERSWEEP_THROUGHPUT_ROUNDS", 3));
    println!("{tasks} tasks of one job; {OTHERS}");
    for setup in setups() {
        for round in 0..rounds {
            let measured = sweep(&binary, &setup, tasks);
            print(&setup, round, tasks, &measured);
        }
    }
}

fn setups() -> Vec<Setup> {
    let text = std::env::var("POWERSWEEP_THROUGHPUT_SETUPS").unwrap_or_else(|_| "16x1,1x2".to_owned());
    let setup = |word: &str| {
        let (workers, slots) = word.split_once('x')?;
        let (workers, slots) = (workers.parse().ok()?, slots.parse().ok()?);
        let wanted = match (workers, slots) {
            (16, _) => Some(30_000.0),
            (1, 2) => Some(15_000.0),
            _ => None,
        };
        Some(Setup { workers, slots, wanted })
    };
    text.split(',').map(|w| setup(w).unwrap_or_else(|| panic!("`{w}` is not WORKERSxSLOTS"))).collect()
}

fn print(setup: &Setup, round: u64, tasks: u64, m: &Measured) {
    let us = |seconds: f64| seconds * 1e6 / tasks as f64;
    let rate = tasks as f64 / m.wall_s;
    let Setup { workers, slots, wanted } = setup;
    let wanted = wanted.map_or(String::new(), |w| format!(" ({:.2} of the {w} wanted)", rate / w));
    let total = m.coordinator_s + m.workers_s + m.client_s;
    println!(
        "{workers} workers x {slots} slots, round {round}: {rate:.0} tasks/s{wanted}, {:.2} s until counted by {}",
        m.wall_s, m.counted_by
    );
    println!(
        "  CPU a task: coordinator {:.2} us without encoding (at most 8 wanted), {:.2} us with it (15); workers {:.2} us; \
         all {:.2} us",
        us(m.coordinator_s - m.encoding_s),
        us(m.coordinator_s),
        us(m.workers_s),
        us(total),
    );
    println!(
        "  {CORES} cores of a quiet machine could do {:.0} tasks/s at this cost; busy for this: {:.2} cores",
        CORES * tasks as f64 / total,
        total / m.wall_s,
    );
}

/// Runs a sweep of `tasks` tasks in an empty folder, from an idle farm to the counted rows.
fn sweep(binary: &Path, setup: &Setup, tasks: u64) -> Measured {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let manifest = folder.path().join("trivial.toml");
    std::fs::write(&manifest, trivial(tasks)).expect("the folder is writable");
    let run = |args: &[&str], name: &str| Process::start(binary, args, &folder.path().join(name));

    let data_arg = data.to_str().expect("temporary folders have plain names");
    let mut coordinator = run(&["serve", "--listen", "127.0.0.1:0", "--data", data_arg], "serve");
    coordinator.says("powersweep: serving");
    let slots = setup.slots.to_string();
    let mut workers: Vec<Process> = (0..setup.workers)
        .map(|n| {
            let name = format!("worker-{n}");
            run(&["worker", "--slots", &slots, "--name", &name, "--data", data_arg], &name)
        })
        .collect();
    workers.iter_mut().for_each(|worker| drop(worker.says("connected to")));
    let mut counter = Counter::start(&data.join("trivial/tasks"));

    let cpu = |processes: &[Process]| processes.iter().map(Process::cpu_s).sum::<f64>();
    let (coordinator_before, workers_before) = (coordinator.cpu_s(), cpu(&workers));
    let begun = Instant::now();
    let mut submit = run(&["submit", manifest.to_str().expect("a plain name"), "--data", data_arg], "submit");
    let client_s = submit.ends_well();
    wait_for_rows(&data.join("trivial/tasks"), tasks);
    let counted = counter.count();
    let wall_s = begun.elapsed().as_secs_f64();
    let (coordinator_s, workers_s) = (coordinator.cpu_s() - coordinator_before, cpu(&workers) - workers_before);
    assert_eq!(counted.unwrap_or(tasks), tasks, "DuckDB counts other rows than the footers");
    let encoding_s = coordinator.encoding_s();
    let counted_by = if counted.is_some() { "DuckDB" } else { "Parquet footers" };
    Measured { wall_s, coordinator_s, encoding_s, workers_s, client_s, counted_by }
}

/// A sweep over seeds: every task has its own workload, id and row.
fn trivial(tasks: u64) -> String {
    format!(
        "version = 1\nname = \"trivial\"\nseeds = {{ from = 1, count = {tasks} }}\n\
         [workloads.one]\nsource = \"poisson\"\nsynthetic_jobs_count = 1\n[platforms.p]\n[policies.easy]\n"
    )
}

/// Waits until the parts' footers have this number of rows in total.
fn wait_for_rows(folder: &Path, tasks: u64) {
    let begun = Instant::now();
    let mut parts: BTreeMap<PathBuf, u64> = BTreeMap::new();
    while parts.values().sum::<u64>() < tasks {
        assert!(begun.elapsed() < PATIENCE, "only {parts:?} of {tasks} rows");
        std::thread::sleep(POLL);
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("the folder can be listed").path();
            parts.entry(path).or_insert_with_key(|path| rows_of(path));
        }
    }
}

fn rows_of(part: &Path) -> u64 {
    let file = File::open(part).expect("a part that is listed can be read");
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a part that is listed is whole");
    u64::try_from(metadata.file_metadata().num_rows()).expect("a count")
}

/// A started `powersweep`; killed when dropped.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; its messages go to the file `log`.
    fn start(binary: &Path, args: &[&str], log: &Path) -> Process {
        let said = || File::create(log).expect("the folder is writable");
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POWERSWEEP_")) {
            command.env_remove(name);
        }
        command.env("POWERSWEEP_LOG", "powersweep_coordinator::publish=debug,powersweep=info,warn");
        let child = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said()).spawn();
        Process { child: child.expect("the binary starts"), log: log.to_owned() }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log can be read")
    }

    /// Waits until a message has this text; returns the line.
    fn says(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = self.said();
            if let Some(line) = said.split_inclusive('\n').find(|line| line.contains(text) && line.ends_with('\n')) {
                return line.trim_end().to_owned();
            }
            let ended = self.child.try_wait().expect("it can be waited for").is_some();
            assert!(!ended && begun.elapsed() < PATIENCE, "it does not say {text:?}:\n{said}");
            std::thread::sleep(POLL);
        }
    }

    /// Waits for its end; returns its CPU time.
    fn ends_well(&mut self) -> f64 {
        // An ended process keeps its times until it is reaped.
        let state = |stat: &str| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'));
        while !state(&self.stat()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let cpu_s = self.cpu_s();
        let status = self.child.wait().expect("it can be waited for");
        assert!(status.success(), "{status}:\n{}", self.said());
        cpu_s
    }

    fn stat(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it was not waited for")
    }

    /// CPU time of the process so far, user and system, with ended threads.
    fn cpu_s(&self) -> f64 {
        let stat = self.stat();
        // Behind the name in parentheses: state is the third field, the times are the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit(") ").next().expect("the name ends").split(' ').collect();
        let ticks = |at: usize| fields[at - 3].parse::<f64>().expect("ticks");
        (ticks(14) + ticks(15)) / TICKS_PER_S
    }

    /// The CPU time of encoding parts, from a coordinator's log.
    fn encoding_s(&self) -> f64 {
        let said = self.said();
        let ms = |line: &str| line.split_once("encoding_cpu_ms=")?.1.split(' ').next()?.parse::<f64>().ok();
        said.lines().filter_map(ms).sum::<f64>() / 1e3
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts rows by DuckDB. Started before the clock, so that the start of Python is not measured.
struct Counter(Option<Child>);

impl Counter {
    fn start(folder: &Path) -> Counter {
        let script = "import sys, duckdb\nprint('ready', flush=True)\nsys.stdin.readline()\n\
                      print(duckdb.sql(f\"select count(*) from '{sys.argv[1]}/*.parquet'\").fetchall()[0][0])";
        let Some(python) = std::env::var_os("POWERSWEEP_PYTHON") else { return Counter(None) };
        let mut command = Command::new(python);
        command.args(["-c", script]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut counter = Counter(command.spawn().ok());
        if counter.line().as_deref() != Some("ready") {
            println!("POWERSWEEP_PYTHON has no DuckDB: rows are counted by the footers");
            counter = Counter(None);
        }
        counter
    }

    fn line(&mut self) -> Option<String> {
        let output = self.0.as_mut()?.stdout.as_mut().expect("it is piped");
        let mut line = String::new();
        BufReader::with_capacity(1, output).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    /// The rows in the folder now, if there is a DuckDB.
    fn count(&mut self) -> Option<u64> {
        self.0.as_mut()?.stdin.as_mut().expect("it is piped").write_all(b"\n").expect("it waits for a line");
        let line = self.line()?;
        self.0.as_mut()?.wait().expect("it ends");
        Some(line.parse().unwrap_or_else(|e| panic!("DuckDB says {line:?}: {e}")))
    }
}
