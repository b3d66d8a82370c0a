//! The cluster of `deploy/private-slurm.sh`, and what happens to its nodes and jobs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::{system, try_system};

/// Far longer than the cluster needs for anything.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// A private Slurm around this test.
pub(super) struct Cluster {
    /// Folder with the process ids of its daemons.
    pids: PathBuf,
}

/// Waits until a condition holds.
#[track_caller]
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} takes too long");
        std::thread::sleep(LOOK);
    }
}

/// Runs a command of Slurm for at most two seconds. The controller may ask a dead node for up to `MessageTimeout` before it answers
/// others, and the tests must keep work in stock meanwhile.
fn ask(program: &str, args: &[&str]) -> Result<String, String> {
    try_system("timeout", &[&["2", program], args].concat())
}

/// The answer of squeue about jobs with a name, one line a job; an error while the controller does not answer.
fn queue(name: &str, states: &str, format: &str) -> Result<Vec<String>, String> {
    let (name, states, format) = (format!("--name={name}"), format!("--states={states}"), format!("--format={format}"));
    let answer = ask("squeue", &["--noheader", "--array", "--sort=i", &name, &states, &format])?;
    Ok(answer.lines().map(|line| line.trim().to_owned()).collect())
}

/// The answer about jobs with a name, as soon as the controller answers.
#[track_caller]
fn queue_answer(name: &str, states: &str, format: &str) -> Vec<String> {
    let mut answer = None;
    wait("an answer of the controller", || {
        answer = queue(name, states, format).ok();
        answer.is_some()
    });
    answer.unwrap_or_default()
}

/// States of jobs that hold or want nodes.
const ALIVE: &str = "PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING";

impl Cluster {
    /// The cluster of this process; prints why there is none.
    pub(super) fn find(test: &str) -> Option<Cluster> {
        let pids = std::env::var_os("SLURM_PIDS");
        if pids.is_none() {
            println!("skipped: {test} needs deploy/private-slurm.sh");
        }
        Some(Cluster { pids: pids?.into() })
    }

    /// Whether it has a database, and with it limits of users.
    pub(super) fn has_accounting(&self) -> bool {
        self.pids.join("slurmdbd.pid").is_file()
    }

    // ---- daemons and nodes

    /// Sends a signal to a daemon: slurmctld, or the slurmd of a node.
    pub(super) fn signal(&self, daemon: &str, signal: &str) {
        let pid = std::fs::read_to_string(self.pids.join(format!("{daemon}.pid"))).expect("it runs");
        system("kill", &[&format!("-{signal}"), pid.trim()]);
    }

    /// Kills the slurmd of a node. The processes of its jobs live on.
    pub(super) fn kill(&self, node: &str) {
        self.signal(node, "KILL");
    }

    /// Starts the slurmd of a node again.
    pub(super) fn restart(&self, node: &str) {
        system("slurmd", &["-N", node]);
    }

    /// Whether a node's state has a word; "idle" also stands for a node that has jobs.
    pub(super) fn node_is(&self, node: &str, state: &str) -> bool {
        let is = ask("sinfo", &["--noheader", "--nodes", node, "--partition=low", "--format=%T"]);
        let is = is.unwrap_or_default();
        let usable = ["idle", "mixed", "allocated"].contains(&is.trim());
        if state == "idle" { usable } else { is.contains(state) }
    }

    // ---- jobs

    /// Jobs with a name that wait or run, each as one text.
    pub(super) fn jobs(&self, name: &str) -> Vec<String> {
        queue_answer(name, ALIVE, "%F_%K %T %r")
    }

    /// The states of the ended jobs with a name, in the order of their submission.
    pub(super) fn ended(&self, name: &str) -> Vec<String> {
        let ended = queue_answer(name, "all", "%T");
        ended.into_iter().filter(|state| !ALIVE.split(',').any(|alive| alive == state)).collect()
    }

    /// Lets requeued jobs start at once: Slurm delays them for two minutes.
    pub(super) fn hurry(&self, name: &str) {
        for line in queue(name, "PENDING", "%A|%r").unwrap_or_default() {
            if let Some((job, "BeginTime")) = line.split_once('|') {
                let _ = ask("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]);
            }
        }
    }

    /// The running job that got its node last, and this node.
    pub(super) fn youngest(&self, name: &str) -> Option<(String, String)> {
        let lines = queue(name, "RUNNING", "%S|%F_%K|%N").unwrap_or_default();
        let (_, job) = lines.iter().filter_map(|line| line.split_once('|')).max()?;
        job.split_once('|').map(|(job, node)| (job.to_owned(), node.to_owned()))
    }

    /// Runs a job that needs every node, in the partition that takes them from others.
    pub(super) fn preempt(&self) {
        let place = ["--partition=high", "--exclusive", "--nodes=4"];
        let options = [&["--parsable", "--output=/dev/null", "--wrap=sleep 3"], &place[..]].concat();
        let job = system("sbatch", &options);
        let of = format!("--jobs={}", job.trim());
        wait("a job that preempts", || {
            let state = ask("squeue", &["--noheader", "--states=all", "--format=%T", &of]);
            state.is_ok_and(|state| state.trim() == "COMPLETED")
        });
    }

    /// Kills the worker of an allocation with SIGKILL.
    pub(super) fn kill_worker(&self, allocation: &str) -> bool {
        let wanted = format!("POWERSWEEP_ALLOCATION={allocation}");
        let mut killed = false;
        for process in std::fs::read_dir("/proc").expect("processes are listed").flatten() {
            let variables = std::fs::read(process.path().join("environ")).unwrap_or_default();
            if variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
                let pid = process.file_name();
                killed |= Command::new("kill").arg("-KILL").arg(pid).status().is_ok_and(|status| status.success());
            }
        }
        killed
    }
}

/// Counts the nodes of waiting and running jobs all the time.
pub(super) struct Watch {
    ends: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the jobs with a name.
    pub(super) fn begin(name: &str) -> Watch {
        let (ends, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (name, told, seen) = (name.to_owned(), ends.clone(), most.clone());
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                // No answer while the controller stands still.
                let nodes = queue(&name, ALIVE, "%D").unwrap_or_default();
                seen.fetch_max(nodes.iter().filter_map(|n| n.parse::<u64>().ok()).sum(), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        Watch { ends, most, thread: Some(thread) }
    }

    /// Ends the watch; returns the greatest number of nodes.
    pub(super) fn end(mut self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it watched");
        }
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}
