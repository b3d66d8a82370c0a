//! The real binary, killed with SIGKILL at random moments: `powersweep run` goes on where it was, and the dataset
//! equals that of an undisturbed run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::dataset::{assert_same, distinct_ids, tasks};
use crate::farm::Data;
use crate::sweeps::synthetic;

const TASKS: u32 = 2000;
const KILLS: u32 = 10;
/// Far beyond what a run takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// The binary: from `POWERSWEEP_BIN`, or beside this test in the target folder.
fn binary() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("POWERSWEEP_BIN") {
        return Some(path.into());
    }
    // target/PROFILE/deps/it-HASH
    let this = std::env::current_exe().ok()?;
    let built = this.parent()?.parent()?.join("powersweep");
    // What lies there may be of another time.
    let help = Command::new(&built).args(["run", "--help"]).output().ok()?;
    String::from_utf8_lossy(&help.stdout).contains("--data").then_some(built)
}

fn run(binary: &Path, manifest: &Path, data: &Path) -> Child {
    Command::new(binary)
        .args(["run", "--quiet", "--show", "0", "--slots", "2", "--data"])
        .arg(data)
        .arg(manifest)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the binary starts")
}

fn wait(mut child: Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().ok();
            panic!("the run hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lists the table folders again and again: whatever a listing shows must end in `.parquet`.
struct Watcher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, BTreeSet<PathBuf>)>,
}

impl Watcher {
    fn start(experiment: PathBuf) -> Watcher {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut listings, mut strange) = (0, BTreeSet::new());
            while !stopped.load(Ordering::Relaxed) {
                let tables = std::fs::read_dir(&experiment).into_iter().flatten().flatten();
                for table in tables {
                    let files = std::fs::read_dir(table.path()).into_iter().flatten().flatten();
                    strange.extend(files.map(|f| f.path()).filter(|p| p.extension().is_none_or(|e| e != "parquet")));
                    listings += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            (listings, strange)
        });
        Watcher { stop, thread }
    }

    fn end(self) -> (u64, BTreeSet<PathBuf>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watcher does not panic")
    }
}

/// A fixed sequence of pseudo-random numbers (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn ten_kills_leave_the_rows_of_an_undisturbed_run() {
    let Some(binary) = binary() else {
        eprintln!("skipped: no powersweep binary beside this test; build it, or set POWERSWEEP_BIN");
        return;
    };
    let seed = std::env::var("POWERSWEEP_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_260_101);
    println!("seed {seed} (POWERSWEEP_SEED repeats it)");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("kill.toml");
    std::fs::write(&manifest, synthetic("kill", TASKS, 1500)).expect("it is writable");

    let undisturbed = Data::new();
    let begun = Instant::now();
    assert!(wait(run(&binary, &manifest, undisturbed.path())).success());
    let whole = begun.elapsed();

    let killed = Data::new();
    let watcher = Watcher::start(killed.path().join("kill"));
    let mut kills = 0;
    while kills < KILLS {
        let mut child = run(&binary, &manifest, killed.path());
        // Moments over the length of a run divided among the kills, so that all of them can hit.
        let moment = whole.mul_f64(random.below(1000) as f64 / 1000.0 * 1.5 / f64::from(KILLS));
        std::thread::sleep(moment);
        if child.try_wait().expect("the child can be waited for").is_some() {
            break;
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        kills += 1;
    }
    println!("{kills} kills; an undisturbed run took {whole:.1?}");
    assert!(wait(run(&binary, &manifest, killed.path())).success());
    let (listings, strange) = watcher.end();
    assert!(kills >= KILLS / 2, "the sweep was over after {kills} kills");
    assert!(strange.is_empty(), "{strange:?} in one of {listings} listings");

    let written = tasks(killed.path(), "kill");
    assert_eq!(distinct_ids(&written).len(), TASKS as usize);
    assert_same(&written, &tasks(undisturbed.path(), "kill"));
}
