//! `results` and `export` of a user who has an access file and no data folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use crate::access::set_mode;
use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::{Ended, Running, Sandbox, contents};
use crate::showing::{POLICIES, read};
use crate::sweeps::{JOBS, TINY_LOG, synthetic};
use crate::tables::SLOW;

/// A coordinator in one folder, and a user in another one with another home, who has copies of the access files.
struct Two {
    farm: Sandbox,
    user: Sandbox,
    served: Running,
}

impl Two {
    fn new(args: &[&str]) -> Two {
        let (farm, user) = (Sandbox::new(), Sandbox::new());
        let (served, _) = farm.serve(args);
        for role in ["client", "worker"] {
            let file = format!("{role}.json");
            farm.run(&["access", "export", &format!("--{role}"), "--output", &file]).exits(0);
            let bytes = std::fs::read(farm.path(&file)).expect("it was exported");
            set_mode(&user.write(&file, bytes), 0o600);
        }
        Two { farm, user, served }
    }

    /// Runs a sweep to its end.
    fn finished(args: &[&str], name: &str, manifest: &str) -> Two {
        let two = Two::new(args);
        two.farm.write("logs/tiny.swf", TINY_LOG);
        two.submit(&format!("{name}.toml"), manifest, &["--wait"]);
        two
    }

    fn submit(&self, file: &str, manifest: &str, args: &[&str]) {
        self.farm.write(file, manifest);
        let worker = args.contains(&"--wait").then(|| worker(&self.farm, "w", "", &[]));
        self.farm.run(&[&["submit", file, "--traces", "logs"], args].concat()).exits(0);
        worker.into_iter().for_each(|worker| drop(terminate(worker)));
    }

    /// Runs a command here and there; both must end and write alike.
    #[track_caller]
    fn both(&self, args: &[&str]) -> Ended {
        let here = self.farm.run(args);
        let there = self.user.run(&[args, &["--access", "client.json"]].concat());
        assert_eq!((there.code(), &there.stdout), (here.code(), &here.stdout), "{here}\n{there}");
        there
    }

    /// Exports here and there; all files must have the same bytes.
    #[track_caller]
    fn both_export(&self, experiment: &str, args: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
        self.both(&[&["export", experiment, "--output", "copy"], args].concat()).exits(0);
        let files = [&self.farm, &self.user].map(|sandbox| {
            let folder = sandbox.path("copy");
            let found = contents(&folder);
            std::fs::remove_dir_all(&folder).expect("it was made");
            let relative = |path: PathBuf| path.strip_prefix(&folder).expect("in it").to_owned();
            found.into_iter().map(|(path, bytes)| (relative(path), bytes)).collect::<BTreeMap<_, _>>()
        });
        assert!(files[0] == files[1], "{:?} and {:?}", files[0].keys(), files[1].keys());
        files[0].clone()
    }

    fn done(&self, experiment: &str) -> u64 {
        let status = ["status", experiment, "--format", "json", "--access", "client.json"];
        self.user.run(&status).exits(0).json()["experiments"][0]["done"].as_u64().expect("a number")
    }
}

#[test]
fn tables_of_a_finished_sweep_are_the_same_as_those_of_the_data() {
    let two = Two::finished(&[], "jobs", JOBS);
    for args in [
        &[][..],
        &["--rows", "2"],
        &["--format", "csv"],
        &["--json"],
        &["--format", "csv", "--columns", "task_index,queue_order,wait_s_mean"],
        &["--table", "jobs"],
        &["--table", "jobs", "--format", "csv"],
        &["--table", "failures"],
    ] {
        let ended = two.both(&[&["results", "jobs"], args].concat()).exits(0);
        assert!(!ended.stdout.is_empty() && ended.stderr.is_empty(), "{ended}");
    }
    two.both(&["results", "jobs", "--table", "jobs", "--format", "csv"]).exits(0).prints(&["job_id"]);
    two.both(&["results", "jobs", "--table", "series"]).exits(2).says(&["the manifest of jobs has no table `series`"]);
    two.both(&["export", "jobs", "--table", "series", "--output", "s"]).exits(2).says(&["has no table `series`"]);
    for args in [&[][..], &["--tidy"], &["--wide"], &["--table", "jobs", "--wide"]] {
        assert!(two.both_export("jobs", args).contains_key(&PathBuf::from("jobs.parquet")));
    }
    // The file of one table, as Parquet too.
    two.both(&["results", "jobs", "--format", "parquet", "--output", "rows.parquet"]).exits(0);
    let [here, there] = [&two.farm, &two.user].map(|sandbox| std::fs::read(sandbox.path("rows.parquet")));
    assert!(here.expect("written") == there.expect("written"));
    // Rows whose experiment was deleted are read, as in the data.
    two.farm.run(&["delete", "jobs"]).exits(0);
    two.both(&["results", "jobs"]).exits(0).says(&["the coordinator has no state of jobs"]);
    two.both(&["results", "jobs", "--table", "series"]).exits(0).prints(&["no rows yet"]);
    terminate(two.served);
}

#[test]
fn rows_of_a_running_sweep_are_read_once_each() {
    let two = Two::new(&[]);
    // Far more tasks than are done before the worker ends, and few enough rows to be read again and again.
    let slow = SLOW.replace("count = 250", "count = 50000").replace("jobs_count = 6000", "jobs_count = 60000");
    two.submit("slow.toml", &slow, &[]);
    let worker = worker(&two.farm, "w", "", &[]);
    let ids = |ended: Ended| -> BTreeSet<String> {
        let lines: Vec<String> = ended.exits(0).stdout.lines().skip(1).map(str::to_owned).collect();
        let ids: BTreeSet<String> = lines.iter().cloned().collect();
        assert_eq!(ids.len(), lines.len(), "a row occurs twice");
        ids
    };
    let csv = ["results", "slow", "--format", "csv", "--columns", "task_id"];
    let remote = || ids(two.user.run(&[&csv[..], &["--access", "client.json"]].concat()));
    let mut seen = BTreeSet::new();
    while seen.len() < 15 {
        let before = two.done("slow");
        let now = remote();
        assert!(now.len() as u64 >= before && now.is_superset(&seen), "{} rows of {before} tasks", now.len());
        seen = now;
    }
    assert!(rows::read(&two.farm.path("results/data"), "slow", "tasks").is_empty(), "no row is published yet");
    // Some rows in a part, others not.
    two.farm.run(&["flush", "slow"]).exits(0);
    let published = rows::read(&two.farm.path("results/data"), "slow", "tasks").len();
    while seen.len() < published + 8 {
        seen = remote();
    }
    terminate(worker);
    assert_eq!(remote(), ids(two.farm.run(&csv)));
    let shown = two.both(&["results", "slow", "--rows", "3"]).exits(0);
    shown.prints(&["seed", "mean wait (s)", "more rows"]);
    two.both_export("slow", &[]);
    two.both_export("slow", &["--tidy"]);
    terminate(two.served);
}

/// The sum of the bytes that clients have read.
fn sent_bytes(metrics: &str) -> u64 {
    let mut stream = TcpStream::connect(metrics).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let line = answer.lines().find_map(|line| line.strip_prefix("powersweep_sent_bytes_total "));
    line.unwrap_or_else(|| panic!("{answer}")).parse().expect("a number")
}

#[test]
fn only_what_is_shown_is_sent() {
    let metrics = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").to_string();
    let two = Two::finished(&["--metrics", &metrics], "shown", &POLICIES.replace("count = 300", "count = 2000"));
    let parts = contents(&two.farm.path("results/data/shown/tasks"));
    let stored: usize = parts.values().map(Vec::len).sum();
    assert_eq!(sent_bytes(&metrics), 0);
    let log = [("POWERSWEEP_LOG", "powersweep_dataset::reading=debug")];
    let results = ["results", "shown", "--rows", "30", "--access", "client.json"];
    let columns = read(&two.user.run_with(&results, &log).exits(0).stderr);
    assert!(columns.contains_key("wait_s_mean") && !columns.contains_key("started_at"), "{columns:?}");
    assert!(columns.len() < 30, "{columns:?}");
    let sent = sent_bytes(&metrics);
    println!("{sent} bytes of {stored} were sent");
    // Half of it are footers.
    assert!(sent > 0 && sent < stored as u64 / 2, "{sent} of {stored} bytes");
    terminate(two.served);
}

#[test]
fn errors_of_readers_are_those_of_status() {
    let two = Two::finished(&[], "jobs", JOBS);
    let read = |experiment: &str, access: &str| {
        let results = two.user.run(&["results", experiment, "--access", access]);
        let export = two.user.run(&["export", experiment, "--access", access, "--output", "copy"]);
        let status = two.user.run(&["status", experiment, "--access", access]);
        for ended in [&results, &export] {
            assert_eq!((ended.code(), &ended.stderr), (status.code(), &status.stderr), "{ended}");
        }
        assert!(!two.user.path("copy").exists(), "nothing is left");
        results
    };
    read("job", "client.json").exits(2).says(&["there is no experiment job; did you mean `jobs`?"]);
    read("jobs", "worker.json").exits(8).says(&["worker.json is the access file of a worker", "client.json"]);
    let join = two.farm.run(&["access", "export", "--worker", "--join"]).exits(0).stdout;
    set_mode(&two.user.write("worker.join", join), 0o600);
    read("jobs", "worker.join").exits(8).says(&["this is the token of a worker", "client.json"]);
    read("jobs", "absent.json").exits(2);
    terminate(two.served);
    let gone = two.user.run(&["results", "jobs", "--access", "client.json"]).exits(7);
    gone.says(&["no coordinator answers at", "powersweep serve"]);
}

/// Where rows are read is decided by the command line, then by the folder, then by variables and configurations.
#[test]
fn data_here_is_read_unless_the_command_line_names_a_coordinator() {
    let two = Two::finished(&[], "far", &synthetic("far", 2));
    let user = &two.user;
    let shown = |args: &[&str], variables: &[(&str, &str)], rows: usize| {
        let args = [args, &["--format", "csv", "--columns", "task_id"]].concat();
        let ended = user.run_with(&args, variables).exits(0);
        assert_eq!(ended.stdout.lines().count(), 1 + rows, "{ended}");
    };
    user.run(&["results", "far"]).exits(2).says(&["results/data: give the folder", "--data", "--access"]);
    let config = user.path("config");
    let from_config = [("XDG_CONFIG_HOME", config.to_str().expect("text"))];
    let from_variable = [("POWERSWEEP_ACCESS", "client.json")];
    let file = std::fs::read(user.path("client.json")).expect("it is there");
    set_mode(&user.write("config/powersweep/client.json", file), 0o600);
    for variables in [from_config, from_variable] {
        shown(&["results", "far"], &variables, 4);
    }
    // The folder here has another experiment of the same name.
    user.write("far.toml", synthetic("far", 1));
    user.run(&["run", "far.toml", "--quiet"]).exits(0);
    for variables in [from_config, from_variable] {
        shown(&["results", "far"], &variables, 2);
        shown(&["results", "far", "--data", "absent"], &variables, 4);
    }
    shown(&["results", "far", "--access", "client.json"], &[], 4);
    shown(&["results", "far", "--access", "client.json", "--data", "results/data"], &[], 2);
    user.run(&["export", "far", "--access", "client.json", "--output", "far"]).exits(0).prints(&["tasks: 4 rows"]);
    user.run(&["export", "far", "--output", "near"]).exits(0).prints(&["tasks: 2 rows"]);
    terminate(two.served);
}
