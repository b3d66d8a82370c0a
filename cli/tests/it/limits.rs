//! Limits of tasks and of workers, in real processes.

use std::path::Path;
use std::time::Duration;

use crate::farm::{self, terminate};
use crate::runs::path_with;
use crate::sandbox::{BINARY, Sandbox};
use crate::sweeps::synthetic;

#[test]
fn a_task_beyond_a_limit_fails_with_the_reason() {
    let sandbox = Sandbox::new();
    let task = |name: &str| synthetic(name, 1).replace("= 60", "= 3000");
    let limited = |name: &str, limit: &str| {
        sandbox.write(&format!("{name}.toml"), format!("limits = {{ {limit} }}\n{}", task(name)));
    };
    limited("memory", "task_max_memory = \"1 KiB\"");
    limited("events", "task_max_events = 1");
    for (name, said) in [("memory", "a task may take 1024"), ("events", "more than 1 events")] {
        let ended = sandbox.run(&["run", &format!("{name}.toml"), "--data", "data", "--quiet"]).exits(3);
        assert!(ended.stderr.contains(said), "{ended}");
        assert!(ended.stderr.contains("attempt 3"), "{ended}");
        // The command that reproduces the failure has the same limit.
        let status = sandbox.run(&["status", name, "--data", "data", "--format", "json"]).exits(0).json();
        let line = status["experiments"][0]["failures"][0]["reproduce"].as_str().expect("a command").to_owned();
        let mut shell = sandbox.command("sh");
        shell
            .args(["-c", &line])
            .env("PATH", path_with(Path::new(BINARY).parent().expect("the binary is in a folder")));
        sandbox.spawn(shell).wait().exits(1).says(&[said]);
    }
    let late = sandbox.run(&["simulate", "--set", "synthetic_jobs_count=200000", "--task-deadline", "1ms"]);
    late.exits(1).says(&["not finished within 0.001 s"]);
}

#[test]
fn a_too_large_workload_fails_with_the_option_that_helps() {
    let sandbox = Sandbox::new();
    sandbox.write("large.toml", synthetic("large", 1).replace("= 60", "= 3000"));
    let run = |memory: &str| sandbox.run(&["run", "large.toml", "--quiet", "--workload-memory", memory]);
    let refused = run("16 KiB").exits(3);
    assert!(refused.stderr.contains("16384 are allowed"), "{refused}");
    assert!(refused.stderr.contains("a larger --workload-memory"), "{refused}");
    sandbox.run(&["retry", "large"]).exits(0);
    run("16 MiB").exits(0);
}

fn worker<'a>(url: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    [&["worker", "--slots", "1", "--coordinator", url], args].concat()
}

#[test]
fn a_worker_ends_at_its_limits() {
    let sandbox = Sandbox::new();
    for wrong in [["--time-limit", "5 parsecs"], ["--task-max-memory", "much"], ["--idle-limit", "0"]] {
        sandbox.run(&[&["worker"][..], &wrong].concat()).exits(2);
    }
    let (_served, url) = sandbox.serve(&[]);
    sandbox.run(&["worker", "--time-limit", "5s"]).exits(2).says(&["leaves no time to work"]);
    let nobody = ["worker", "--connect-limit", "300ms", "--coordinator", "127.0.0.1:1"];
    sandbox.run(&nobody).exits(7).says(&["powersweep: no coordinator at https://127.0.0.1:1"]);
    sandbox.run(&worker(&url, &["--idle-limit", "300ms"])).exits(0).prints(&["nothing to do for its idle limit"]);
    let short = worker(&url, &["--time-limit", "2500ms", "--drain-limit", "0"]);
    sandbox.run(&short).exits(0).prints(&["its time limit is near"]);
    // Long tasks: a second signal ends the worker, and a drain limit of 0 hands the tasks back.
    sandbox.write("long.toml", synthetic("long", 50).replace("= 60", "= 200000"));
    sandbox.run(&["submit", "long.toml", "--coordinator", &url]).exits(0);
    let mut busy = sandbox.start(&worker(&url, &["--drain-limit", "1h"]));
    busy.says("connected to");
    std::thread::sleep(Duration::from_millis(500));
    busy.signal("TERM");
    busy.signal("INT");
    // The worker may answer the two signals in either order. Its exit code names the signal that it answers last.
    let ended = busy.wait();
    assert!(matches!(ended.code(), Some(130 | 143)), "{ended}");
    let mut handed_back = sandbox.start(&worker(&url, &["--drain-limit", "0"]));
    handed_back.says("connected to");
    std::thread::sleep(Duration::from_millis(500));
    handed_back.signal("INT");
    let ended = handed_back.wait().exits(0).prints(&["worker ended (asked to stop)"]);
    assert!(!ended.stdout.contains("run again"), "{ended}");
    let status = sandbox.run(&["status", "long", "--format", "json", "--coordinator", &url]).exits(0).json();
    assert_eq!(status["experiments"][0]["failed"], 0, "no attempt has failed: {status}");
}

#[test]
fn a_suspended_worker_is_not_late_and_asks_which_leases_continue() {
    let sandbox = Sandbox::new();
    let jobs = if cfg!(debug_assertions) { "300_000" } else { "1_000_000" };
    let text = synthetic("slow", 4).replace("synthetic_jobs_count = 60", &format!("synthetic_jobs_count = {jobs}"));
    sandbox.write("slow.toml", format!("{text}[limits]\ntask_deadline_s = 5\n"));
    let (served, _) = sandbox.serve(&[]);
    let mut worker = farm::worker(&sandbox, "w", "", &[]);
    let submit = sandbox.start(&["submit", "slow.toml", "--wait"]);
    let running = || sandbox.run(&["status", "--json"]).exits(0).json()["experiments"][0]["running"].as_u64();
    while running().is_none_or(|running| running == 0) {}
    worker.signal("STOP");
    std::thread::sleep(Duration::from_secs(7));
    worker.signal("CONT");
    worker.says("this process stood still for");
    submit.wait().exits(0);
    let failures = sandbox.run(&["results", "slow", "--table", "failures", "--format", "csv"]).exits(0);
    assert_eq!(failures.stdout.lines().count(), 1, "{failures}");
    terminate(worker);
    terminate(served);
}
