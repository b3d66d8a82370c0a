//! Coordinator, workers and clients as separate processes.

use crate::rows;
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::{JOBS, TINY_LOG, WIDE};

/// Starts a worker and waits for its connection. Without a URL, it finds the coordinator of `./results/data`.
pub(crate) fn worker(sandbox: &Sandbox, name: &str, url: &str, args: &[&str]) -> Running {
    let at: &[&str] = if url.is_empty() { &[] } else { &["--coordinator", url] };
    let mut worker = sandbox.start(&[&["worker", "--slots", "1", "--name", name], at, args].concat());
    worker.says("connected to");
    worker
}

/// Ends a coordinator or a worker.
#[track_caller]
pub(crate) fn terminate(running: Running) -> crate::sandbox::Ended {
    running.signal("TERM");
    running.wait().exits(0)
}

/// The workers have no folder of logs.
#[test]
fn workers_get_logs_from_the_coordinator() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let (served, url) = sandbox.serve(&["--data", "data"]);
    let workers = ["w1", "w2"].map(|name| worker(&sandbox, name, &url, &["--data", "data"]));
    let submit = ["submit", "jobs.toml", "--traces", "logs", "--data", "data"];
    sandbox
        .run(&[&submit[..], &["--dry-run"]].concat())
        .exits(0)
        .prints(&["jobs: 4 tasks, 0 done already, 4 would run"]);
    sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["no experiment yet"]);
    sandbox.run(&[&submit[..], &["--wait"]].concat()).exits(0).prints(&["jobs: 4 tasks, 0 done already, 4 to run"]);
    for at in [&[][..], &["--coordinator", &url]] {
        let status = ["status", "jobs", "--format", "json", "--data", "data"];
        let status = sandbox.run(&[&status[..], at].concat()).exits(0).json();
        let jobs = &status["experiments"][0];
        assert_eq!((&jobs["state"], &jobs["done"], &jobs["failed"]), (&"finished".into(), &4.into(), &0.into()));
        assert_eq!(status["workers"].as_array().map(Vec::len), Some(2), "{status}");
        assert!(!status["build"].as_str().expect("a text").is_empty());
    }
    for worker in workers {
        terminate(worker);
    }
    terminate(served);
    sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["no coordinator runs", "finished"]);
    assert_eq!(rows::tasks(&sandbox.path("data"), "jobs").len(), 4);
    assert_eq!(rows::read(&sandbox.path("data"), "jobs", "jobs").len(), 4 * 3);
}

/// `--wait` says what it waits for, and what failed in the end.
#[test]
fn a_wait_reports_failed_tasks_and_their_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let (served, url) = sandbox.serve(&[]);
    let mut waiting =
        sandbox.start(&["submit", "wide.toml", "--wait", "--traces", "logs", "--coordinator", url.as_str()]);
    waiting.says("powersweep: waiting: no worker is connected");
    let worker = worker(&sandbox, "w", &url, &[]);
    let ended =
        waiting.wait().exits(3).says(&["wide: 2 tasks failed", "such as task 0 (attempt 1, w, for good): job 2"]);
    assert_eq!(ended.stderr.matches("reproduce: powersweep simulate").count(), 1, "{ended}");
    terminate(worker);
    terminate(served);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "wide").len(), 6);
}
