//! Networks that fail: cuts, silence in one direction, loss. Root allows faults between hosts (network namespaces);
//! without root, a relay makes the faults.

use std::time::{Duration, Instant};

use powersweep_farmtest::sweeps::four_policies;
use serde_json::Value as Json;

use super::farm::{Farm, PATIENCE, run_undisturbed};
use super::relay::Relay;
use super::{is_root, long, step, system, try_system};
use crate::random::Random;
use crate::sandbox::{BINARY, Running, Sandbox};

const NAME: &str = "network";

/// A relay breaks connections, or silences them in one direction or both.
#[test]
#[ignore = "a minute: `.ci/full network`"]
fn broken_and_silent_connections_lose_no_row() {
    let (tasks, rounds) = if long() { (8000_u32, 60) } else { (1600, 6) };
    let mut random = Random::new();
    let mut farm = Farm::new();
    let relay = Relay::to(farm.port);
    farm.workers_port = relay.port;
    farm.start();
    farm.submit(NAME, tasks, 6000);
    (0..2).for_each(|_| farm.add_worker(1));
    for round in 0..rounds {
        farm.wait_more(1 + step(&mut random, tasks, rounds));
        let (from_workers, to_workers) =
            [(true, true), (true, false), (false, true), (false, false)][round as usize % 4];
        relay.hold(from_workers, to_workers);
        std::thread::sleep(random.ms_below(1000));
        // Half of the silences end in a break, which loses messages in flight.
        if !(from_workers || to_workers) || random.below(2) == 0 {
            relay.break_all();
        }
        relay.hold(false, false);
    }
    farm.wait_finished();
    farm.stop();
    let counts = farm.journal();
    println!("{rounds} silences and breaks in one sweep: {counts:?}");
    farm.assert_undisturbed();
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../farmtest/hosts.sh");
const COORDINATOR: u32 = 1;
const HOSTS: u32 = 3;

/// Hosts with a coordinator on the first and a worker on each of the others.
struct Hosts {
    prefix: String,
    faults: u32,
    sandbox: Sandbox,
    /// Dropped before the hosts.
    processes: Vec<Running>,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.processes.clear();
        if let Err(error) = try_system(SCRIPT, &["down", &self.prefix, &HOSTS.to_string()]) {
            eprintln!("{error}");
        }
    }
}

impl Hosts {
    /// `None` where network namespaces are impossible; prints the reason.
    fn up() -> Option<Hosts> {
        if !is_root("a test with network namespaces") {
            return None;
        }
        let prefix = format!("ps{}x", std::process::id() % 100_000);
        let hosts = Hosts { prefix, faults: 0, sandbox: Sandbox::new(), processes: Vec::new() };
        if let Err(reason) = try_system(SCRIPT, &["up", &hosts.prefix, &HOSTS.to_string()]) {
            println!("skipped: {reason}");
            return None;
        }
        Some(hosts)
    }

    fn start(&mut self, host: u32, args: &[&str]) {
        let mut command = self.sandbox.command("ip");
        command.args(["netns", "exec", &format!("{}{host}", self.prefix), BINARY]).args(args);
        self.processes.push(self.sandbox.spawn(command));
    }

    fn ask(&self, args: &[&str]) -> crate::sandbox::Ended {
        let mut command = self.sandbox.command("ip");
        command.args(["netns", "exec", &format!("{}{COORDINATOR}", self.prefix), BINARY]).args(args);
        command.args(["--coordinator", "127.0.0.1:7450", "--data", "data"]);
        self.sandbox.spawn(command).wait()
    }

    fn start_all(&mut self) {
        self.start(COORDINATOR, &["serve", "--listen", "0.0.0.0:7450", "--data", "data"]);
        self.processes[0].says("powersweep: serving");
        for host in 2..=HOSTS {
            let name = format!("h{host}");
            self.start(host, &["worker", "--data", "data", "--name", &name, "--slots", "1"]);
        }
    }

    /// A fault, or the end of one.
    fn change(&mut self, verb: &str, args: &[u32]) {
        let args: Vec<String> = args.iter().map(u32::to_string).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        system(SCRIPT, &[&[verb, &self.prefix], &args[..]].concat());
        self.faults += u32::from(["cut", "drop", "loss"].contains(&verb));
    }

    fn submit(&self, name: &str, tasks: u32) {
        let file = format!("{name}.toml");
        self.sandbox.write(&file, four_policies(name, tasks.into(), 2000, ""));
        self.ask(&["submit", &file]).exits(0);
    }

    fn status(&self) -> Json {
        self.ask(&["status", "--format", "json"]).exits(0).json()
    }

    /// Waits until the status meets a condition.
    fn wait(&self, condition: &str, wanted: impl Fn(&Json) -> bool) {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if wanted(&status) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{condition}: {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn wait_done(&self, name: &str, tasks: u64) {
        let done = |e: &Json| e["name"] == name && e["done"].as_u64() >= Some(tasks);
        self.wait(name, |status| status["experiments"].as_array().is_some_and(|all| all.iter().any(done)));
    }

    /// Waits until this number of workers is connected again.
    fn wait_workers(&self, count: usize) {
        let near = |w: &&Json| w["seen_s_ago"].as_f64().is_some_and(|s| s < 5.0);
        let workers = |status: &Json| status["workers"].as_array().map_or(0, |all| all.iter().filter(near).count());
        self.wait("workers", |status| workers(status) >= count);
    }

    fn assert_undisturbed(&self, name: &str, tasks: u32) {
        run_undisturbed(&self.sandbox, name);
        let [data, undisturbed] = ["data", "undisturbed"].map(|data| self.sandbox.path(data));
        let rows = powersweep_farmtest::dataset::assert_undisturbed(&data, &undisturbed, name, "tasks");
        assert_eq!(rows, tasks as usize);
    }

    /// A sweep with faults when a tenth of it is done; `lasts` says how long.
    fn sweep(&mut self, name: &str, tasks: u32, faults: &[(&str, &[u32])], ends: &[(&str, &[u32])], lasts: Lasts) {
        self.submit(name, tasks);
        self.wait_done(name, u64::from(tasks) / 10);
        for (verb, args) in faults {
            self.change(verb, args);
        }
        match lasts {
            Lasts::TillTheEnd => self.wait_done(name, tasks.into()),
            Lasts::For(time) => std::thread::sleep(time),
        }
        for (verb, args) in ends {
            self.change(verb, args);
        }
        self.wait_done(name, tasks.into());
        self.wait_workers(HOSTS as usize - 1);
        println!("{name}: {tasks} tasks done, all workers are back");
    }
}

enum Lasts {
    /// Until the sweep has ended.
    TillTheEnd,
    For(Duration),
}

/// Name, faults, the commands that end them, and their duration.
type Case<'a> = (&'a str, &'a [(&'a str, &'a [u32])], &'a [(&'a str, &'a [u32])], Lasts);

#[test]
fn hosts_without_a_reliable_network_lose_no_row() {
    let Some(mut hosts) = Hosts::up() else { return };
    hosts.start_all();
    let s = Duration::from_secs;
    let short: Vec<Case<'_>> = vec![
        ("cut", &[("cut", &[2])], &[("heal", &[2])], Lasts::For(s(2))),
        ("deaf", &[("drop", &[2, 1]), ("drop", &[1, 3])], &[("calm", &[2]), ("calm", &[1])], Lasts::For(s(2))),
    ];
    let full: Vec<Case<'_>> = vec![
        ("cut", &[("cut", &[2])], &[("heal", &[2])], Lasts::TillTheEnd),
        // Longer than a coordinator waits for a silent worker, which then reconnects with finished tasks.
        ("cut_long", &[("cut", &[2])], &[("heal", &[2])], Lasts::For(s(50))),
        ("unheard", &[("drop", &[1, 2])], &[("undrop", &[1, 2])], Lasts::TillTheEnd),
        ("deaf", &[("drop", &[2, 1])], &[("undrop", &[2, 1])], Lasts::TillTheEnd),
        ("deaf_long", &[("drop", &[2, 1])], &[("undrop", &[2, 1])], Lasts::For(s(50))),
        ("alone", &[("cut", &[1])], &[("heal", &[1])], Lasts::For(s(10))),
        ("alone_long", &[("cut", &[1])], &[("heal", &[1])], Lasts::For(s(50))),
        ("loss", &[("loss", &[1, 30]), ("loss", &[2, 30])], &[("calm", &[1]), ("calm", &[2])], Lasts::TillTheEnd),
        ("loss_and_cut", &[("loss", &[1, 30]), ("cut", &[3])], &[("heal", &[3]), ("calm", &[1])], Lasts::For(s(20))),
    ];
    let (cases, tasks) = if long() { (full, 2000) } else { (short, 200) };
    let names: Vec<&str> = cases.iter().map(|case| case.0).collect();
    for (name, faults, ends, lasts) in cases {
        hosts.sweep(name, tasks, faults, ends, lasts);
    }
    for mut process in std::mem::take(&mut hosts.processes).into_iter().rev() {
        assert!(process.runs(), "it ended by itself: {}", process.stderr());
        process.terminate();
        process.wait().exits(0);
    }
    for name in &names {
        hosts.assert_undisturbed(name, tasks);
    }
    println!(
        "{} faults of the network in {} sweeps: {} rows equal the undisturbed runs', 0 lost, 0 twice",
        hosts.faults,
        names.len(),
        names.len() * tasks as usize
    );
}
