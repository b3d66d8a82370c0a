//! Storage that fails under a running coordinator: a full disk, a read-only disk, a disk that does not answer. Leasing
//! stops, the status has the reason, and leasing continues when the storage works again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use powersweep_farmtest::sweeps::four_policies;

use super::farm::{Farm, PATIENCE};
use super::{is_root, long, step, system, try_system};
use crate::random::Random;

const NAME: &str = "disk";

/// A separate file system on a folder; unmounted when dropped.
struct Mounted {
    path: PathBuf,
    /// The command that ends the fault.
    remedy: Option<(&'static str, Vec<String>)>,
    filler: Option<Filler>,
}

/// Fills the blocks that the farm's own compaction frees on a full disk, until it is dropped.
struct Filler {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filler {
    fn start(mut file: File) -> Filler {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let fill = move || {
            while !ended.load(Ordering::Relaxed) {
                if file.write_all(&[0; 512]).is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        };
        Filler { ends, thread: Some(std::thread::spawn(fill)) }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Mounted {
    fn new(path: &Path, args: &[&str]) -> Result<Mounted, String> {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        try_system("mount", &[args, &[text(path)]].concat())?;
        Ok(Mounted { path: path.to_owned(), remedy: None, filler: None })
    }

    fn break_with(&mut self, fault: Fault) {
        let path = text(&self.path).to_owned();
        match fault {
            Fault::Full => {
                let filler = self.path.join("filler");
                let mut file = File::create(&filler).expect("it can be created");
                let mut size = 1 << 20;
                // Fills the last blocks, too.
                while size >= 512 {
                    if file.write_all(&vec![0; size]).and_then(|()| file.sync_data()).is_err() {
                        size /= 2;
                    }
                }
                self.filler = Some(Filler::start(file));
                self.remedy = Some(("rm", vec![text(&filler).to_owned()]));
            }
            Fault::ReadOnly => {
                // The mount is busy with open files, so a read-only one is mounted over it.
                let data = format!("{path}/data");
                system("mount", &["--bind", &data, &data]);
                self.remedy = Some(("umount", vec!["--lazy".to_owned(), data.clone()]));
                system("mount", &["-o", "remount,bind,ro", &data]);
            }
            Fault::Stalled => {
                self.remedy = Some(("fsfreeze", vec!["--unfreeze".to_owned(), path.clone()]));
                system("fsfreeze", &["--freeze", &path]);
            }
        }
    }

    fn repair(&mut self) {
        self.filler = None;
        if let Some((program, args)) = self.remedy.take() {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            if let Err(error) = try_system(program, &args) {
                eprintln!("{error}");
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.repair();
        if let Err(error) = try_system("umount", &["--lazy", text(&self.path)]) {
            eprintln!("{error}");
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Full,
    ReadOnly,
    Stalled,
}

fn text(path: &Path) -> &str {
    path.to_str().expect("test folders have plain names")
}

/// A file system that can be frozen: ext4 in a file.
fn ext4(farm: &Farm) -> Result<Mounted, String> {
    let image = farm.sandbox.path("image");
    let file = File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(96 << 20).map_err(|error| error.to_string())?;
    try_system("mkfs.ext4", &["-q", text(&image)])?;
    Mounted::new(&farm.sandbox.path("disk"), &["-o", "loop", text(&image)])
}

fn tmpfs(farm: &Farm) -> Result<Mounted, String> {
    Mounted::new(&farm.sandbox.path("disk"), &["-t", "tmpfs", "-o", "size=48m", "tmpfs"])
}

/// Asserts that the coordinator reports stalled storage; returns the reason.
fn assert_paused(farm: &mut Farm, fault: Fault) -> String {
    let mut reason = String::new();
    let paused = farm.wait_status(Duration::from_secs(60), |status| {
        reason.clone_from(&status.storage_reason);
        status.storage_stalled
    });
    assert!(paused, "{fault:?}: the status does not say that storage fails");
    assert!(!reason.is_empty(), "{fault:?}: no reason");
    let at = format!("127.0.0.1:{}", farm.port);
    let shown = farm.sandbox.run(&["status", "--coordinator", &at, "--data", "disk/data"]).exits(0);
    shown.prints(&["STORAGE STALLED: "]);
    reason
}

fn under_faults(mount: impl Fn(&Farm) -> Result<Mounted, String>, fault: Fault) {
    if !is_root(&format!("{fault:?} storage")) {
        return;
    }
    let (tasks, rounds) = if long() { (4000_u32, 6) } else { (600, 1) };
    let mut random = Random::new();
    let mut farm = Farm::on("disk/data", &[]);
    let mut mounted = match mount(&farm) {
        Ok(mounted) => mounted,
        Err(reason) => return println!("skipped: {reason}"),
    };
    farm.start();
    farm.submit(NAME, tasks, if long() { 8000 } else { 3000 });
    (0..2).for_each(|_| farm.add_worker(1));
    for round in 0..rounds {
        let done = farm.wait_more(1 + step(&mut random, tasks, rounds));
        mounted.break_with(fault);
        let reason = assert_paused(&mut farm, fault);
        println!("{fault:?} with {done} tasks done: {reason}");
        // A coordinator that is killed meanwhile cannot start before the fault ends.
        let killed = fault != Fault::Stalled && round % 2 == 0;
        if killed {
            farm.kill_coordinator();
            farm.spawn_coordinator(farm.port, &[]).wait().exits(5);
        }
        std::thread::sleep(random.ms_below(2000));
        mounted.repair();
        if killed {
            farm.start();
        }
        let over = farm.wait_status(PATIENCE, |status| !status.storage_stalled);
        assert!(over, "{fault:?}: the fault is over, but storage is still stalled");
    }
    farm.wait_finished();
    farm.stop();
    println!("{rounds} times {fault:?} storage in one sweep");
    farm.assert_undisturbed();
}

#[test]
fn a_full_disk_stalls_the_farm_until_it_has_space() {
    under_faults(tmpfs, Fault::Full);
}

#[test]
#[ignore = "a minute: `.ci/full disk`"]
fn a_read_only_disk_stalls_the_farm_until_it_is_writable() {
    under_faults(tmpfs, Fault::ReadOnly);
}

#[test]
#[ignore = "a minute: `.ci/full disk`"]
fn a_hanging_disk_stalls_the_farm_until_it_answers() {
    under_faults(ext4, Fault::Stalled);
}

/// A sweep with the table `jobs`: its uploads are refused first, because they need more room than the state.
#[test]
fn a_full_disk_stalls_a_run_with_rows_of_jobs_visibly() {
    if !is_root("a full disk under rows of jobs") {
        return;
    }
    let farm = Farm::on("disk/data", &[]);
    let mut mounted = match tmpfs(&farm) {
        Ok(mounted) => mounted,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let sandbox = &farm.sandbox;
    sandbox.write("jobs.toml", four_policies("jobs", 200, 3000, "tables = [\"jobs\"]"));
    let mut run = sandbox.start(&["run", "jobs.toml", "--slots", "1", "--show", "0", "--data", "disk/data"]);
    let status = || -> serde_json::Value {
        let shown = sandbox.run(&["status", "--json", "--data", "disk/data"]);
        serde_json::from_str(&shown.stdout).unwrap_or_default()
    };
    let done = |status: &serde_json::Value| status["experiments"][0]["done"].as_u64();
    wait_for(|| done(&status()) > Some(5));
    mounted.break_with(Fault::Full);
    run.says("powersweep: waiting: storage stalled: ");
    let mut stalled = status();
    wait_for(|| {
        stalled = status();
        stalled["storage_stalled"] == true
    });
    assert_eq!(stalled["experiments"][0]["eta_s"], serde_json::Value::Null, "{stalled}");
    println!("full with {:?} tasks done: {}", done(&stalled), stalled["storage_reason"]);
    mounted.repair();
    run.says("powersweep: storage works again");
    run.wait().exits(0);
    let jobs =
        ["results", "jobs", "--table", "jobs", "--format", "csv", "--columns", "task_index", "--data", "disk/data"];
    assert_eq!(sandbox.run(&jobs).exits(0).stdout.lines().count(), 1 + 200 * 3000);
}

/// The state can be written, and the uploads cannot: a file is in the place of their folder.
#[test]
fn refused_uploads_stall_the_farm_until_they_are_taken() {
    let mut farm = Farm::new();
    farm.start();
    let folder = farm.sandbox.path("data/.powersweep/staging/upload");
    let _ = std::fs::remove_dir_all(&folder);
    farm.sandbox.write("data/.powersweep/staging/upload", "in the way");
    farm.sandbox.write("jobs.toml", four_policies("jobs", 8, 50, "tables = [\"jobs\"]"));
    let mut submit = farm.sandbox.start(&["submit", "jobs.toml", "--wait", "--data", "data"]);
    farm.add_worker(1);
    let mut reason = String::new();
    let stalled = farm.wait_status(PATIENCE, |status| {
        reason.clone_from(&status.storage_reason);
        status.storage_stalled && status.experiments.iter().all(|experiment| experiment.eta_s.is_none())
    });
    assert!(stalled && reason.contains("storage refuses rows of `jobs`: "), "{reason}");
    submit.says("powersweep: waiting: storage refuses rows of `jobs`");
    std::fs::remove_file(&folder).expect("it is a file");
    submit.wait().exits(0);
    assert!(farm.wait_status(PATIENCE, |status| !status.storage_stalled), "it is still stalled");
    let jobs = ["results", "jobs", "--table", "jobs", "--format", "csv", "--columns", "task_index"];
    let jobs = farm.sandbox.run(&[&jobs[..], &["--data", "data"]].concat()).exits(0);
    assert_eq!(jobs.stdout.lines().count(), 1 + 8 * 50);
    farm.stop();
}

fn wait_for(mut wanted: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !wanted() {
        assert!(begun.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}
