//! The life of an experiment after its submit: pause, resume, cancel, retry, priority, delete, restart, watch.

use std::time::{Duration, Instant};

use crate::rows;
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

fn worker(sandbox: &Sandbox, url: &str) -> Running {
    let mut worker = sandbox.start(&["worker", "--coordinator", url, "--slots", "1", "--name", "w"]);
    worker.says("connected to");
    worker
}

fn terminate(running: Running) {
    running.signal("TERM");
    running.wait().exits(0);
}

#[test]
fn an_experiment_is_paused_edited_and_deleted() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 20));
    let (served, url) = sandbox.serve(&[]);
    // Without --coordinator, the coordinator of --data is asked.
    let submit = ["submit", "sweep.toml", "--priority", "7", "--coordinator", url.as_str()];
    sandbox.run(&submit).exits(0).prints(&["sweep: 40 tasks, 0 done already, 40 to run"]);
    sandbox.run(&["pause", "sweep"]).exits(0).prints(&["sweep is paused, 40 tasks to run"]);
    sandbox.run(&["pause", "sweep", "--coordinator", &url]).exits(0).prints(&["sweep is paused already"]);
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0).prints(&["it is paused"]);
    let mut waiting = sandbox.start(&["submit", "sweep.toml", "--wait", "--coordinator", &url]);
    waiting.says("waiting: sweep was paused by another command; `powersweep resume sweep` continues it");
    let worker = worker(&sandbox, &url);
    let status = sandbox.run(&["status", "sweep", "--json"]).exits(0).json();
    let found = &status["experiments"][0];
    assert_eq!((found["state"].as_str(), found["priority"].as_i64()), (Some("paused"), Some(7)), "{status}");
    sandbox.run(&["plan", "sweep.toml", "--coordinator", &url]).exits(0).prints(&["40 would run"]);
    sandbox.run(&["delete", "sweep", "--data-too"]).exits(0);
    waiting.wait().exits(11).says(&["sweep was deleted "]);

    sandbox.run(&submit).exits(0).prints(&["0 done already, 40 to run"]);
    sandbox.run(&["submit", "sweep.toml", "--wait", "--coordinator", &url]).exits(0);
    sandbox.run(&["pause", "sweep"]).exits(8).says(&["sweep has ended"]);
    sandbox.run(&["priority", "sweep", "-3"]).exits(0).prints(&["sweep has priority -3"]);
    sandbox.run(&["priority", "sweep", "5000"]).exits(2).says(&["from -1000 to 1000"]);
    sandbox.run(&["flush", "sweep"]).exits(0).prints(&["published already"]);
    sandbox.run(&["flush", "nosuch"]).exits(2).says(&["there is no experiment nosuch"]);
    // After an edit only missing tasks run. `plan` counts them before, also from the state of a running coordinator.
    sandbox.write("sweep.toml", synthetic("sweep", 25));
    for place in [["--data", "results/data"], ["--coordinator", url.as_str()]] {
        let plan = [&["plan", "sweep.toml"][..], &place].concat();
        sandbox.run(&plan).exits(0).prints(&["50 tasks, 40 done already, 10 would run"]);
    }
    sandbox.run(&["submit", "sweep.toml", "--wait", "--coordinator", &url]).exits(0);
    let data = sandbox.path("results/data");
    // An index belongs to one generation of the manifest, an id to a task.
    let ids = || -> std::collections::BTreeSet<String> {
        rows::read(&data, "sweep", "tasks").iter().map(|row| row["task_id"].to_string()).collect()
    };
    assert_eq!((ids().len(), rows::read(&data, "sweep", "tasks").len()), (50, 50));
    sandbox.run(&["delete", "sweep"]).exits(0).prints(&["its rows are kept"]);
    assert_eq!(ids().len(), 50);
    sandbox.run(&["status"]).exits(0).prints(&["no experiment yet"]);
    terminate(worker);
    terminate(served);
    sandbox.run(&["delete", "sweep"]).exits(2).says(&["no state of sweep", "`powersweep adopt` rebuilds the state"]);
    sandbox.run(&["delete", "other"]).exits(2).says(&["there is no experiment other"]);
}

#[test]
fn a_cancelled_wait_ends_with_its_own_code() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 4));
    let (served, url) = sandbox.serve(&[]);
    let mut waiting = sandbox.start(&["submit", "sweep.toml", "--wait", "--coordinator", &url]);
    waiting.says("no worker is connected");
    sandbox.run(&["delete", "sweep"]).exits(8).says(&["cancel it first"]);
    sandbox.run(&["cancel", "sweep"]).exits(0).prints(&["sweep is cancelled, 8 tasks not run"]);
    waiting.wait().exits(11).says(&["sweep was cancelled by another command; 0 tasks done and kept"]);
    sandbox.run(&["status"]).exits(0).prints(&["cancelled"]);
    // Another submit continues the experiment.
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0);
    let worker = worker(&sandbox, &url);
    sandbox.run(&["submit", "sweep.toml", "--wait", "--coordinator", &url]).exits(0);
    terminate(worker);
    terminate(served);
}

/// Without a running coordinator, the commands open the data themselves.
#[test]
fn commands_work_without_a_coordinator() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let run = ["run", "wide.toml", "--traces", "logs", "--quiet"];
    sandbox.run(&["retry", "wide"]).exits(2).says(&["there are no experiments in"]);
    assert!(!sandbox.path("results").exists(), "a typing error makes no folder");
    sandbox.run(&run).exits(3);
    sandbox.run(&["retry", "wide", "--kind", "panic"]).exits(0).prints(&["wide: 0 tasks tried again"]);
    sandbox.run(&["retry", "wide", "--index", "99"]).exits(2).says(&["wide has no task 99"]);
    sandbox.run(&["retry", "wide", "--index", "0", "--kind", "spec"]).exits(0).prints(&["wide: 1 task tried again"]);
    sandbox.run(&["retry", "wide"]).exits(0).prints(&["wide: 1 task tried again"]);
    sandbox.run(&["plan", "wide.toml", "--traces", "logs"]).exits(0).prints(&["6 done already, 2 would run"]);
    sandbox.run(&run).exits(3).says(&["wide: 2 tasks failed"]);
    let data = sandbox.path("results/data");
    assert_eq!(rows::read(&data, "wide", "failures").len(), 4, "each attempt is a row");
    sandbox.run(&["pause", "wide"]).exits(8).says(&["wide has ended"]);
    sandbox.write("results/data/wide/notes.txt", "mine");
    sandbox.run(&["delete", "wide", "--data-too"]).exits(0).prints(&["wide and its rows are deleted"]);
    assert_eq!(rows::tasks(&data, "wide").len(), 0);
    assert!(data.join("wide/notes.txt").exists(), "only parts are deleted");
    sandbox.run(&run).exits(3);
    assert_eq!(rows::tasks(&data, "wide").len(), 6);
}

#[test]
fn a_restart_renames_the_rows_of_the_old_log() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE.replace("[\"error\", \"clamp\"]", "\"clamp\""));
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let run = ["run", "wide.toml", "--traces", "logs", "--quiet"];
    sandbox.run(&run).exits(0);
    sandbox.write("logs/tiny.swf", TINY_LOG.replace("6 -1 30", "6 -1 31"));
    sandbox.run(&run).exits(8).says(&["log tiny has other content", "--restart", "wide@1"]);
    sandbox.run(&[&run[..], &["--restart"]].concat()).exits(0);
    let data = sandbox.path("results/data");
    let (old, new) = (rows::tasks(&data, "wide@1"), rows::tasks(&data, "wide"));
    assert_eq!((old.len(), new.len()), (4, 4));
    let ids = |rows: &std::collections::BTreeMap<u64, rows::Row>| -> Vec<String> {
        rows.values().map(|row| row["task_id"].to_string()).collect()
    };
    assert!(ids(&old).iter().all(|id| !ids(&new).contains(id)), "the content of a log belongs to a task's identity");
    sandbox.run(&["status"]).exits(0).prints(&["wide@1", "finished"]);
    sandbox.run(&["resume", "wide@1"]).exits(8).says(&["was set aside"]);
    // With equal pins, too, --restart runs every task again.
    sandbox.run(&[&run[..], &["--restart"]].concat()).exits(0);
    assert_eq!((rows::tasks(&data, "wide@2").len(), rows::tasks(&data, "wide").len()), (4, 4));
    sandbox.run(&["delete", "wide@2", "--data-too"]).exits(0);
    sandbox.run(&["delete", "wide@1", "--data-too"]).exits(0);
    assert_eq!((rows::tasks(&data, "wide@1").len(), rows::tasks(&data, "wide").len()), (0, 4));
    assert!(!data.join("wide@1").exists(), "no empty folder stays");
    std::fs::create_dir_all(data.join("wide@1/tasks")).expect("it can be made");
    sandbox.run(&["results", "wide@1"]).exits(2).says(&["there is no experiment wide@1; did you mean `wide`?"]);
}

#[test]
fn watching_writes_a_line_for_each_change() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, url) = sandbox.serve(&[]);
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0);
    let mut watching = sandbox.start(&["status", "--watch", "--coordinator", &url]);
    watching.prints_line("sweep: waiting (no worker is connected), 0 of 4 tasks done");
    let worker = worker(&sandbox, &url);
    watching.prints_line("sweep: finished, 4 of 4 tasks done");
    watching.signal("INT");
    watching.wait().exits(0);
    terminate(worker);
    terminate(served);
}

/// A worker that was killed in the middle of its lease stays in the status for a while.
#[test]
fn a_worker_that_is_not_connected_shows_no_processors() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 100_000));
    let (served, url) = sandbox.serve(&[]);
    sandbox.run(&["submit", "sweep.toml"]).exits(0);
    let worker = worker(&sandbox, &url);
    let begun = Instant::now();
    let until = |holds: &dyn Fn(&serde_json::Value) -> bool| loop {
        let status = sandbox.run(&["status", "--json"]).exits(0).json();
        if holds(&status["workers"][0]) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
    };
    until(&|worker| worker["leased_tasks"].as_u64().is_some_and(|leased| leased > 0));
    worker.signal("KILL");
    drop(worker);
    until(&|worker| worker["name"] == "w" && worker["processors"].is_null() && worker["memory_bytes"].is_null());
    let shown = sandbox.run(&["status"]).exits(0).stdout;
    let row = shown.lines().find(|line| line.starts_with("w ")).expect("it is still known");
    // Name, slots, busy, leased, done; then the time since it was seen.
    let unit = row.split_whitespace().nth(6).expect("the columns of processor time and memory are empty");
    assert!(["ms", "s"].contains(&unit), "{shown}");
    terminate(served);
}
