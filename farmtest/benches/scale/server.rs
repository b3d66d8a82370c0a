//! A coordinator process under load, for the benches of scale: its start, requests, memory and files.
//!
//! Workers are other processes (see [`crate::worker`]), so that the measured values are the coordinator's alone.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use powersweep_farmtest::sweeps::four_policies;
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::{Address, Target};
use powersweep_proto::v1;
use tokio::runtime::Runtime;

/// Far longer than a start takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sweep of tasks of one synthetic job each. `tasks` must be a multiple of 4.
pub(crate) fn trivial(name: &str, tasks: u64) -> String {
    four_policies(name, tasks, 1, "")
}

/// Load of the machine, which wall times depend on.
pub(crate) fn machine() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, load {}", load.split(' ').next().unwrap_or("unknown"))
}

/// A `powersweep serve`. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// Its folder of access files.
    pub(crate) access: String,
    /// Time from the start of the process to its first answer.
    pub(crate) ready_after: Duration,
}

impl Server {
    /// Starts on a free port and waits until it answers.
    pub(crate) fn start(binary: &Path, data: &Path, runtime: &Runtime) -> Server {
        let began = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut words = String::new();
        loop {
            let mut line = String::new();
            let read = said.read_line(&mut line).expect("its words can be read");
            assert!(read > 0 && began.elapsed() < PATIENCE, "powersweep serve does not start: {words}{line}");
            if line.contains("powersweep: serving") {
                break;
            }
            words.push_str(&line);
        }
        let access = data.join(".powersweep/access").to_str().expect("temporary folders have plain names").to_owned();
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = said.read_to_string(&mut rest);
            rest.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).take(20).for_each(|line| {
                println!("  serve: {line}");
            });
        });
        let mut server = Server { child, access, ready_after: Duration::ZERO };
        server.status(runtime);
        server.ready_after = began.elapsed();
        server
    }

    /// State of all experiments.
    pub(crate) fn status(&self, runtime: &Runtime) -> v1::StatusReply {
        runtime.block_on(async {
            let mut client = target(&self.access, Role::Client).connect().await.expect("it answers");
            client.status(v1::StatusRequest::default()).await.expect("it answers").into_inner()
        })
    }

    /// State of the only experiment.
    pub(crate) fn experiment(&self, runtime: &Runtime) -> v1::ExperimentStatus {
        self.status(runtime).experiments.into_iter().next().expect("an experiment is there")
    }

    /// Submits; returns the time of the call, with connecting.
    pub(crate) fn submit(&self, manifest: &str, runtime: &Runtime) -> (v1::SubmitReply, Duration) {
        let began = Instant::now();
        let request = v1::SubmitRequest { manifest: manifest.to_owned(), ..Default::default() };
        let reply = runtime.block_on(async {
            let mut client = target(&self.access, Role::Client).connect().await.expect("it answers");
            client.submit(request).await.expect("the manifest is right").into_inner()
        });
        (reply, began.elapsed())
    }

    /// Resident memory now and at most, MiB.
    pub(crate) fn memory_mib(&self) -> (f64, f64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN)
        };
        (kib("VmRSS:") / 1024.0, kib("VmHWM:") / 1024.0)
    }

    /// Processor time so far, in seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
        let ticks = |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN);
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Kills it, like a crash.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The coordinator of a folder of access files.
pub(crate) fn target(access: &str, role: Role) -> Target {
    let file = Path::new(access).join(role.file_name());
    Target::new(&Address::of(Source::File(file), role)).expect("the coordinator has written it")
}

/// Files of the coordinator's state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Files {
    pub(crate) wal: u64,
    pub(crate) sorted: u64,
    pub(crate) meta: u64,
    pub(crate) other: u64,
    pub(crate) bytes: u64,
}

impl Files {
    /// The files below `data/.powersweep`.
    pub(crate) fn of(data: &Path) -> Files {
        let mut files = Files::default();
        files.add(&data.join(".powersweep"));
        files
    }

    fn add(&mut self, folder: &Path) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                self.add(&entry.path());
                continue;
            }
            self.bytes += meta.len();
            match folder.file_name().and_then(|name| name.to_str()) {
                Some("wal") => self.wal += 1,
                Some("compacted") => self.sorted += 1,
                Some("manifest" | "compactions") => self.meta += 1,
                _ => self.other += 1,
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.wal + self.sorted + self.meta + self.other
    }

    pub(crate) fn mib(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20)
    }
}
