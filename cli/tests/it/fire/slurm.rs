//! Workers and coordinators in jobs of a real Slurm, which `deploy/private-slurm.sh` starts around the tests.

mod cluster;

use std::time::{Duration, Instant};

use powersweep_farmtest::dataset::assert_undisturbed_but;
use powersweep_farmtest::sweeps::four_policies;
use powersweep_proto::v1::StatusReply;

use self::cluster::{Cluster, Watch};
use super::farm::{Farm, PATIENCE, run_undisturbed};
use super::{long, step, system};
use crate::random::Random;
use crate::runs::path_with;
use crate::sandbox::{BINARY, Running, Sandbox};

/// The table `jobs` makes a hand-in large.
const JOBS_TABLE: &str = "tables = [\"jobs\"]";
/// Nodes that the launcher may use; the cluster has one more.
const MAX_NODES: u64 = 3;
/// Slots of an allocation.
const CPUS: u64 = 2;
/// Time for which squeue lies in one way (s).
const LIE_S: u64 = 8;
/// Longest life of a worker here: its job's time limit of two minutes, less the reserve of 30 s.
const WORKER_LIFE: Duration = Duration::from_secs(90);

/// What the launcher's squeue does, by the text of the file `queue-mode`.
const SQUEUE: &str = r#"#!/bin/bash
case $(cat "$QUEUE_MODE") in
hangs) exec sleep 1000 ;;
empty) exit 0 ;;
ended) /usr/bin/squeue "$@" | sed 's/|RUNNING|/|COMPLETED|/' ;;
*) exec /usr/bin/squeue "$@" ;;
esac
"#;

/// Each worker has a node. All workers share one processor of the machine, so that the sweep lasts longer than its faults.
const SITE: &str = r#"[slurm]
options = ["--exclusive"]
prologue = ["taskset --cpu-list --pid 0 $$ >/dev/null"]
"#;

/// Starts a launcher with short times.
fn launch(sandbox: &Sandbox, more: &[&str]) -> Running {
    sandbox.write_program("squeue", SQUEUE);
    sandbox.write("site.toml", SITE);
    let (nodes, cpus) = (format!("--max-nodes={MAX_NODES}"), format!("--cpus={CPUS}"));
    let mut command = sandbox.command(BINARY);
    command.args(["launch", "slurm", "--data", "data", "--site", "site.toml", &nodes, &cpus]);
    if !more.iter().any(|option| option.starts_with("--time=")) {
        command.arg("--time=2");
    }
    command.args(["--backlog=3", "--poll=2s", "--patience=0s", "--idle-limit=20s", "--until-idle=3s"]).args(more);
    command.env("PATH", path_with(&sandbox.path("bin"))).env("QUEUE_MODE", sandbox.path("queue-mode"));
    sandbox.spawn(command)
}

fn queue_mode(sandbox: &Sandbox, mode: &str) {
    sandbox.write("queue-mode", mode);
}

/// `launch status`, once a launcher has written its state.
fn launch_status(sandbox: &Sandbox) -> serde_json::Value {
    let begun = Instant::now();
    loop {
        let shown = sandbox.run(&["launch", "status", "--data", "data", "--json"]);
        if shown.code() == Some(0) {
            return shown.json();
        }
        assert!(begun.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn name(sandbox: &Sandbox) -> String {
    launch_status(sandbox)["name"].as_str().expect("a name").to_owned()
}

/// Connected workers in an allocation.
fn workers_in(status: &StatusReply, allocation: &str) -> usize {
    status.workers.iter().filter(|worker| worker.connected && worker.allocation == allocation).count()
}

/// A farm whose workers come from Slurm.
struct Site {
    cluster: Cluster,
    farm: Farm,
    launcher: Running,
    name: String,
    random: Random,
    tasks: u32,
}

impl Site {
    /// Submits a sweep and starts a launcher on an empty queue.
    fn new(cluster: Cluster, tasks: u32, jobs: u32) -> Site {
        let mut farm = Farm::new();
        farm.start();
        farm.submit_with("slurm", tasks, jobs, JOBS_TABLE);
        queue_mode(&farm.sandbox, "");
        let launcher = launch(&farm.sandbox, &[]);
        let name = name(&farm.sandbox);
        Site { cluster, farm, launcher, name, random: Random::new(), tasks }
    }

    /// Requeued jobs need not wait, and work is left.
    fn look(&mut self) {
        self.cluster.hurry(&self.name);
        self.farm.keep(self.tasks / 2);
        std::thread::sleep(Duration::from_millis(200));
    }

    fn look_for(&mut self, seconds: u64) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds) {
            self.look();
        }
    }

    /// Waits until a node's state has a word.
    fn wait_node(&mut self, node: &str, state: &str) {
        let begun = Instant::now();
        while !self.cluster.node_is(node, state) {
            assert!(begun.elapsed() < PATIENCE, "node {node} is not {state}");
            self.look();
        }
    }

    /// Lets the sweep go on for a random number of tasks.
    fn go_on(&mut self) {
        self.look();
        let more = 1 + step(&mut self.random, self.tasks, 40);
        let done = self.farm.wait_more(more);
        println!("{done} of {} tasks done", self.farm.tasks());
    }

    /// The allocation that got its nodes last, and its node.
    fn youngest(&mut self) -> (String, String) {
        let begun = Instant::now();
        loop {
            self.look();
            if let Some(found) = self.cluster.youngest(&self.name) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "no allocation runs");
        }
    }

    /// Waits until the worker of the youngest allocation is connected; returns the allocation and its node.
    fn youngest_connected(&mut self) -> (String, String) {
        loop {
            let (allocation, node) = self.youngest();
            let connects = |status: &StatusReply| workers_in(status, &allocation) == 1;
            if self.farm.wait_status(Duration::from_secs(5), connects) {
                return (allocation, node);
            }
        }
    }

    /// A job of higher priority takes all nodes.
    fn preempt(&mut self) {
        self.youngest_connected();
        self.cluster.preempt();
        println!("all nodes were taken by a job of higher priority");
    }

    /// Slurm loses a node whose worker lives on, and starts its job a second time elsewhere. The first worker may end before the
    /// second one connects, so that another node is lost then.
    fn lose_node(&mut self) {
        assert!((0..3).any(|_| self.loses_node()), "no allocation had two workers at the same time");
    }

    /// Whether the allocation of a lost node had two workers at the same time.
    fn loses_node(&mut self) -> bool {
        let (allocation, node) = self.youngest_connected();
        self.farm.keep(self.tasks);
        let begun = Instant::now();
        self.cluster.kill(&node);
        self.wait_node(&node, "down");
        let (mut twice, mut last) = (false, StatusReply::default());
        while !twice && begun.elapsed() < WORKER_LIFE {
            self.look();
            twice = self.farm.wait_status(Duration::from_secs(1), |status| {
                last.clone_from(status);
                workers_in(status, &allocation) == 2
            });
        }
        let seconds = begun.elapsed().as_secs();
        println!("node {node} was lost: {allocation} had two workers at the same time: {twice}, after {seconds} s");
        if !twice {
            let log = self.farm.sandbox.run(&["launch", "log", &allocation, "--data", "data"]);
            println!("{:?}\n{last:?}\n{log}", self.cluster.jobs(&self.name));
        }
        self.cluster.restart(&node);
        self.wait_node(&node, "idle");
        twice
    }

    fn requeue(&mut self) {
        let (allocation, _) = self.youngest_connected();
        system("scontrol", &["requeue", &allocation]);
        println!("{allocation} was requeued");
    }

    fn suspend(&mut self) {
        let (allocation, _) = self.youngest_connected();
        system("scontrol", &["suspend", &allocation]);
        self.look_for(7);
        system("scontrol", &["resume", &allocation]);
        println!("{allocation} was suspended for 7 s");
    }

    /// The controller stands still for longer than its clients wait.
    fn controller_hangs(&mut self) {
        self.cluster.signal("slurmctld", "STOP");
        std::thread::sleep(Duration::from_secs(40));
        self.cluster.signal("slurmctld", "CONT");
        println!("slurmctld stood still");
    }

    fn queue_lies(&mut self) {
        for mode in ["empty", "ended"] {
            queue_mode(&self.farm.sandbox, mode);
            self.look_for(LIE_S);
        }
        queue_mode(&self.farm.sandbox, "");
        println!("squeue answered with no job for {LIE_S} s, and with ended jobs for {LIE_S} s");
    }

    fn queue_hangs(&mut self) {
        queue_mode(&self.farm.sandbox, "hangs");
        self.launcher.says("squeue gave no answer within 60 s");
        queue_mode(&self.farm.sandbox, "");
        println!("squeue hung for 60 s");
    }

    /// A worker ends as failed.
    fn kill_worker(&mut self) {
        let (allocation, _) = self.youngest_connected();
        assert!(self.cluster.kill_worker(&allocation), "no process of {allocation}");
        println!("the worker of {allocation} was killed");
    }

    /// The launcher is killed, and the next one continues, in a partition whose preempted jobs are cancelled.
    fn restart_launcher(&mut self) {
        self.launcher.signal("KILL");
        std::thread::sleep(Duration::from_secs(1));
        let next = launch(&self.farm.sandbox, &["--partition=spot"]);
        let killed = std::mem::replace(&mut self.launcher, next).wait();
        println!("{}", killed.stderr.trim_end());
        println!("the launcher was killed, and started again");
    }

    /// Waits for the end of sweep, launcher and jobs, and compares the rows.
    fn end(mut self, watch: Watch) {
        let cluster = self.cluster;
        self.farm.wait_finished_while(|| cluster.hurry(&self.name));
        let ended = self.launcher.wait().exits(0);
        println!("{}\n{}", ended.stderr.trim_end(), ended.stdout.trim_end());
        assert_eq!(cluster.jobs(&self.name), Vec::<String>::new(), "jobs are left in the queue");
        let most = watch.end();
        println!("at most {most} nodes at a time were asked for, of {MAX_NODES} allowed ones");
        assert!(most > 0 && most <= MAX_NODES, "{most} nodes");
        let states = cluster.ended(&self.name);
        println!("states of the ended jobs: {states:?}");
        self.farm.stop();
        self.farm.assert_undisturbed();
    }
}

/// From an empty queue to an empty queue; the time limits of the jobs are shorter than the sweep.
#[test]
fn a_sweep_survives_what_a_cluster_does_to_its_jobs() {
    let Some(cluster) = Cluster::find("a sweep in jobs of Slurm") else { return };
    let (tasks, jobs) = if long() { (20_000, 3_000) } else { (600, 4_000) };
    let mut site = Site::new(cluster, tasks, jobs);
    let watch = Watch::begin(&site.name);
    let mut faults: Vec<fn(&mut Site)> =
        vec![Site::preempt, Site::lose_node, Site::requeue, Site::restart_launcher, Site::queue_lies];
    if long() {
        faults.extend([Site::suspend, Site::preempt, Site::controller_hangs, Site::queue_hangs, Site::kill_worker]);
        faults.extend([Site::preempt, Site::lose_node]);
    }
    for fault in faults {
        site.go_on();
        fault(&mut site);
    }
    site.end(watch);
}

/// The only waiting tasks take longer than a worker may run.
#[test]
fn nothing_is_submitted_when_no_task_fits() {
    let Some(cluster) = Cluster::find("a launcher without work that fits") else { return };
    let mut farm = Farm::new();
    farm.start();
    farm.submit("long", 40, 6_000_000);
    farm.add_worker(1);
    farm.wait_done(4, PATIENCE);
    let worker = farm.workers.remove(0);
    worker.signal("TERM");
    worker.wait().exits(0);
    queue_mode(&farm.sandbox, "");
    let launcher = launch(&farm.sandbox, &["--drain-limit=80s"]);
    let begun = Instant::now();
    let why = loop {
        let why = launch_status(&farm.sandbox)["why"].to_string();
        if why.contains("no waiting task fits") || begun.elapsed() > PATIENCE {
            break why;
        }
    };
    assert!(why.contains("no waiting task fits"), "{why}");
    std::thread::sleep(Duration::from_secs(5));
    let status = launch_status(&farm.sandbox);
    println!("{} submissions: {why}", status["counts"]["submissions"]);
    assert_eq!(status["counts"]["submissions"], 0);
    assert_eq!(cluster.jobs(status["name"].as_str().expect("a name")), Vec::<String>::new());
    launcher.signal("TERM");
    launcher.wait().exits(130);
    farm.stop();
}

/// Runs a sweep in a quality of service that allows two submitted jobs; returns the launcher's status at its end.
fn run_in_narrow() -> serde_json::Value {
    let mut farm = Farm::new();
    farm.start();
    farm.submit("limit", 4_000, 2_000);
    queue_mode(&farm.sandbox, "");
    let launcher = launch(&farm.sandbox, &["--qos=narrow"]);
    farm.wait_done(4_000, PATIENCE);
    launcher.wait().exits(0);
    farm.stop();
    farm.assert_undisturbed();
    let status = launch_status(&farm.sandbox);
    let counts = &status["counts"];
    println!("{} submissions, {} refusals, {}", counts["submissions"], counts["refusals"], status["troubles"]);
    status
}

#[test]
fn a_limit_on_submitted_jobs_is_kept() {
    let Some(cluster) = Cluster::find("a limit on submitted jobs") else { return };
    if !cluster.has_accounting() {
        println!("skipped: a limit on submitted jobs needs deploy/private-slurm.sh --accounting");
        return;
    }
    let status = run_in_narrow();
    let counts = &status["counts"];
    assert!(counts["allocations"].as_u64() > Some(1) && counts["refusals"] == 0, "{status}");

    // Another job of the user takes one of the two places, so that the second submission is refused.
    let other = system("sbatch", &["--parsable", "--qos=narrow", "--output=/dev/null", "--wrap=sleep 600"]);
    let status = run_in_narrow();
    system("scancel", &[other.trim()]);
    assert!(status["counts"]["refusals"].as_u64() > Some(0), "{status}");
    assert!(status["troubles"].to_string().contains("QOSMaxSubmitJobPerUserLimit"), "{status}");
}

/// What a user does first on a new cluster.
#[test]
fn a_site_file_a_dry_run_and_a_check_work_on_a_real_cluster() {
    if Cluster::find("site file, dry run and check").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let (_served, _) = sandbox.serve(&[]);
    sandbox.run(&["site", "init", "--output", "site.toml"]).exits(0);
    let site = ["launch", "slurm", "--site", "site.toml", "--time", "10"];
    sandbox.run(&[&site[..], &["--dry-run"]].concat()).exits(0).says(&["Slurm would accept this job"]);
    let refused = sandbox.run(&[&site[..], &["--dry-run", "--partition", "none"]].concat());
    refused.exits(8).says(&["Slurm would refuse this job"]);
    sandbox.run(&[&site[..], &["--check"]].concat()).exits(0).prints(&["takes the token"]);
}

/// The experiment's tasks and done tasks; `None` while no coordinator answers.
fn progress(sandbox: &Sandbox) -> Option<(u64, u64)> {
    let shown = sandbox.run(&["status", "hand-over", "--data", "data", "--json"]);
    let status = (shown.code() == Some(0)).then(|| shown.json())?;
    let experiment = &status["experiments"][0];
    Some((experiment["tasks"].as_u64()?, experiment["done"].as_u64()?))
}

/// Submits this number of tasks as soon as a coordinator takes them.
fn submit(sandbox: &Sandbox, tasks: u64) {
    sandbox.write("hand-over.toml", four_policies("hand-over", tasks, 2_000, ""));
    let begun = Instant::now();
    while sandbox.run(&["submit", "hand-over.toml", "--data", "data"]).code() != Some(0) {
        assert!(begun.elapsed() < PATIENCE, "no coordinator takes the sweep");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// No server may live on the login node: three coordinators in jobs hand over to the next one during a sweep.
#[test]
#[ignore = "minutes: `.ci/full slurm`"]
fn coordinators_in_jobs_hand_over_during_a_sweep() {
    let Some(cluster) = Cluster::find("coordinators in jobs") else { return };
    let sandbox = Sandbox::new();
    queue_mode(&sandbox, "");
    let launched = launch(&sandbox, &["--coordinator", "--time=4"]).wait().exits(0);
    println!("{}", launched.stdout.trim_end());
    let mut tasks = 4_000;
    submit(&sandbox, tasks);
    let name = format!("{}-coordinator", name(&sandbox));
    let begun = Instant::now();
    loop {
        let coordinators = cluster.ended(&name).len();
        let progress = progress(&sandbox);
        if coordinators < 3 && progress.is_some_and(|(all, done)| done + 2_000 > all) {
            tasks += 4_000;
            submit(&sandbox, tasks);
        }
        if coordinators >= 3 && progress.is_some_and(|(all, done)| done == all && all == tasks) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(1_800), "{coordinators} hand-overs, {progress:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    let begun = Instant::now();
    while !cluster.jobs(&name).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the last coordinator does not end: {:?}", cluster.jobs(&name));
        std::thread::sleep(Duration::from_secs(1));
    }
    let states = cluster.ended(&name);
    println!("states of the coordinators' jobs: {states:?}");
    let (successor, coordinators) = states.split_last().expect("there are jobs");
    assert!(coordinators.iter().all(|state| state == "COMPLETED") && successor == "CANCELLED", "{states:?}");
    run_undisturbed(&sandbox, "hand-over");
    let [data, undisturbed] = ["data", "undisturbed"].map(|folder| sandbox.path(folder));
    let rows = assert_undisturbed_but(&data, &undisturbed, "hand-over", "tasks", &["task_index"]);
    assert_eq!(rows as u64, tasks);
    println!("{} coordinators in one sweep: {rows} rows equal the undisturbed run's", coordinators.len());
}
