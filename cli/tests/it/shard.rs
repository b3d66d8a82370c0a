//! `powersweep shard`: parts of a sweep without a coordinator, on one folder.
//!
//! `POWERSWEEP_SEED` repeats the moments of the kills.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use powersweep_farmtest::dataset::assert_undisturbed;
use powersweep_farmtest::sweeps::four_policies;
use serde_json::Value as Json;

use crate::random::Random;
use crate::rows;
use crate::sandbox::{Ended, Running, Sandbox};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// A shard without progress for this time hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The experiment of most tests.
const NAME: &str = "e";

fn start(sandbox: &Sandbox, index: u32, of: u32, more: &[&str]) -> Running {
    let (index, of) = (index.to_string(), of.to_string());
    let args = ["shard", "e.toml", "--data", "data", "--slots", "1", "--index", &index, "--of", &of];
    sandbox.start(&[&args[..], more].concat())
}

fn run(sandbox: &Sandbox, index: u32, of: u32) -> Ended {
    start(sandbox, index, of, &[]).wait()
}

/// The experiment in `status`.
fn status(sandbox: &Sandbox) -> Json {
    let status = sandbox.run(&["status", NAME, "--json", "--data", "data"]).exits(0).json();
    status["experiments"][0].clone()
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The task ids that `results` shows, each of which must occur once.
fn ids(sandbox: &Sandbox) -> BTreeSet<String> {
    ids_in(&sandbox.path("data"))
}

fn ids_in(data: &Path) -> BTreeSet<String> {
    let args = ["results", NAME, "--format", "csv", "--columns", "task_id", "--data", data.to_str().expect("text")];
    let shown = Sandbox::new().run(&args).exits(0).stdout;
    let ids: Vec<String> = shown.lines().skip(1).map(str::to_owned).collect();
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(distinct.len(), ids.len(), "a task is shown twice");
    distinct
}

/// Waits until a shard has a row; returns its number of done tasks.
fn wait_for_rows(sandbox: &Sandbox, index: u32, running: &mut Running) -> u64 {
    let begun = Instant::now();
    loop {
        assert!(running.runs(), "shard {index} ended: {}", running.stderr());
        assert!(begun.elapsed() < PATIENCE, "no progress: {}", running.stderr());
        let looked = sandbox.run(&["status", NAME, "--json", "--data", "data"]);
        // Before the first shard has begun, there is no experiment.
        if looked.code() == Some(0) {
            let done = number(&looked.json()["experiments"][0]["shards"][index as usize]["done"]);
            if done > 0 {
                return done;
            }
        }
    }
}

/// Waits until a shard has this number of rows, and stops it there with SIGSTOP.
fn suspend_with_rows(sandbox: &Sandbox, index: u32, of: u32, rows: u64, running: &mut Running) {
    let begun = Instant::now();
    let state = sandbox.path(&format!("data/.powersweep/shards/{NAME}/{index}-of-{of}/state"));
    loop {
        assert!(running.runs(), "shard {index} ended: {}", running.stderr());
        assert!(begun.elapsed() < PATIENCE, "no progress: {}", running.stderr());
        if state.exists() {
            running.signal("STOP");
            if number(&status(sandbox)["shards"][index as usize]["done"]) >= rows {
                return;
            }
            running.signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn eight_shards_of_which_three_are_killed_leave_the_rows_of_a_run() {
    const TASKS: usize = 800;
    const SHARDS: u32 = 8;
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", four_policies(NAME, TASKS as u64, 6000, ""));
    sandbox.run(&["run", "e.toml", "--quiet", "--show", "0", "--data", "undisturbed"]).exits(0);
    let mut random = Random::new();
    let mut victims = BTreeSet::new();
    while victims.len() < 3 {
        victims.insert(u32::try_from(random.below(SHARDS.into())).expect("a small number"));
    }
    for &index in &victims {
        let mut running = start(&sandbox, index, SHARDS, &[]);
        suspend_with_rows(&sandbox, index, SHARDS, 1 + random.below(20), &mut running);
        running.signal("CONT");
        // The sum is read while the shard runs: rows in its state, and parts of the others.
        let reading = std::thread::spawn({
            let data = sandbox.path("data");
            move || ids_in(&data)
        });
        std::thread::sleep(random.ms_below(20));
        assert!(running.runs(), "shard {index} ended before its kill");
        // Dropping it kills it.
        drop(running);
        let shown = reading.join().expect("the reader does not panic").len() as u64;
        let found = status(&sandbox);
        let killed = &found["shards"][index as usize];
        let (done, tasks) = (number(&killed["done"]), number(&killed["tasks"]));
        println!("shard {index} killed at {done} of {tasks} tasks; {shown} rows were shown");
        assert!(0 < done && done < tasks && killed["state"] == "stopped", "{killed}");
        assert!(shown <= number(&found["done"]));
        assert_eq!(ids(&sandbox).len() as u64, number(&found["done"]), "every durable row is shown");
    }
    let order: Vec<u32> = (0..SHARDS).collect();
    for two in order.chunks(2) {
        let running: Vec<Running> = two.iter().map(|index| start(&sandbox, *index, SHARDS, &[])).collect();
        running.into_iter().for_each(|shard| drop(shard.wait().exits(0)));
    }
    let [data, undisturbed] = ["data", "undisturbed"].map(|name| sandbox.path(name));
    assert_eq!(assert_undisturbed(&data, &undisturbed, NAME, "tasks"), TASKS);
    let found = status(&sandbox);
    assert_eq!((&found["state"], &found["rows_unpublished"]), (&"finished".into(), &0.into()), "{found}");
    assert_eq!(number(&found["done"]), TASKS as u64);
    assert_eq!(ids(&sandbox).len(), TASKS);
    // A shard that is started again finds nothing to run.
    start(&sandbox, 3, SHARDS, &[]).wait().exits(0).says(&["shard 3 of 8: e: 100 tasks, 100 done already, 0 to run"]);
}

#[test]
fn uploads_of_a_killed_shard_are_read_and_published_once() {
    const TASKS: usize = 200;
    const JOBS: usize = 400;
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", four_policies(NAME, TASKS as u64, JOBS as u32, "tables = [\"jobs\"]"));
    sandbox.run(&["run", "e.toml", "--quiet", "--show", "0", "--data", "undisturbed"]).exits(0);
    let mut running = start(&sandbox, 1, 2, &[]);
    wait_for_rows(&sandbox, 1, &mut running);
    drop(running);
    let done = number(&status(&sandbox)["done"]) as usize;
    let jobs = ["results", NAME, "--table", "jobs", "--format", "csv", "--columns", "job_id", "--data", "data"];
    let shown = sandbox.run(&jobs).exits(0).stdout.lines().count() - 1;
    assert_eq!(shown, done * JOBS, "uploads of {done} tasks");
    for index in [0, 1] {
        run(&sandbox, index, 2).exits(0);
    }
    let [data, undisturbed] = ["data", "undisturbed"].map(|name| sandbox.path(name));
    assert_eq!(assert_undisturbed(&data, &undisturbed, NAME, "tasks"), TASKS);
    assert_eq!(assert_undisturbed(&data, &undisturbed, NAME, "jobs"), TASKS * JOBS);
    sandbox.run(&["export", NAME, "--output", "copy", "--data", "data"]).exits(0).prints(&["tasks: 200 rows"]);
}

#[test]
fn the_first_shard_fixes_number_and_manifest() {
    let sandbox = Sandbox::new();
    let manifest = synthetic(NAME, 5);
    sandbox.write("e.toml", &manifest);
    run(&sandbox, 0, 3).exits(0);
    run(&sandbox, 1, 4).exits(8).says(&["e is divided into 3 shards", "use --of 3, or give the manifest another name"]);
    run(&sandbox, 3, 3).exits(2).says(&["the shards have the numbers 0 to 2"]);
    sandbox.run(&["shard", "e.toml", "--of", "3", "--data", "data"]).exits(2).says(&["--index is missing"]);
    let in_array = ["shard", "e.toml", "--of", "3", "--data", "data"];
    sandbox.run_with(&in_array, &[("SLURM_ARRAY_TASK_ID", "0")]).exits(0).says(&["shard 0 of 3: e: ", ", 0 to run"]);
    sandbox.write("e.toml", manifest.replace("count = 5", "count = 6"));
    run(&sandbox, 1, 3).exits(8).says(&["run another manifest", "seeds.count: 5 -> 6", "Undo the edit"]);
    sandbox.run(&["plan", "e.toml", "--data", "data"]).exits(8).says(&["run another manifest"]);
    sandbox.write("e.toml", format!("# A comment changes no task.\n{manifest}"));
    run(&sandbox, 1, 3).exits(0);
    run(&sandbox, 2, 3).exits(0);
    assert_eq!(rows::tasks(&sandbox.path("data"), NAME).len(), 10);
    // More shards than tasks.
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic(NAME, 1));
    (0..4).for_each(|index| drop(run(&sandbox, index, 4).exits(0)));
    assert_eq!(status(&sandbox)["state"], "finished");
    assert_eq!(rows::tasks(&sandbox.path("data"), NAME).len(), 2);
}

#[test]
fn an_experiment_is_sharded_or_coordinated() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic(NAME, 3));
    sandbox.write("f.toml", synthetic("f", 3));
    sandbox.write("g.toml", synthetic("g", 3));
    run(&sandbox, 0, 2).exits(0);
    let never = "an experiment is sharded or coordinated, never both";
    sandbox.run(&["run", "e.toml", "--data", "data"]).exits(8).says(&["e runs in 2 shards", never]);
    sandbox.run(&["adopt", "e.toml", "--data", "data"]).exits(8).says(&["e runs in 2 shards"]);
    for command in ["pause", "resume", "cancel", "retry", "flush", "prune", "delete"] {
        sandbox.run(&[command, NAME, "--data", "data"]).exits(8).says(&["take no requests"]);
    }
    let (served, url) = sandbox.serve(&["--data", "data"]);
    sandbox.run(&["submit", "e.toml", "--data", "data"]).exits(8).says(&["e runs in 2 shards", never]);
    sandbox.run(&["plan", "e.toml", "--data", "data", "--coordinator", &url]).exits(8).says(&["e runs in 2 shards"]);
    sandbox.run(&["submit", "f.toml", "--data", "data"]).exits(0);
    sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["e: 2 shards", "not begun", "coordinator "]);
    let f = ["shard", "f.toml", "--data", "data", "--index", "0", "--of", "2"];
    sandbox.run(&f).exits(8).says(&["f belongs to the coordinator of", never]);
    // A shard needs no coordinator, and does not disturb one.
    run(&sandbox, 1, 2).exits(0);
    served.signal("TERM");
    served.wait().exits(0);
    sandbox.run(&f).exits(8).says(&["f belongs to the coordinator of"]);
    assert_eq!(rows::tasks(&sandbox.path("data"), NAME).len(), 6);
    // Without its shards, the experiment can be given to a coordinator.
    std::fs::remove_dir_all(sandbox.path("data/.powersweep/shards/e")).expect("it was there");
    sandbox.run(&["adopt", "e.toml", "--data", "data"]).exits(0).prints(&["e: 6 of 6 tasks have rows"]);
    // Rows that no state knows would occur twice.
    sandbox.run(&["run", "g.toml", "--data", "data", "--quiet"]).exits(0);
    sandbox.run(&["delete", "g", "--data", "data"]).exits(0);
    let g = ["shard", "g.toml", "--data", "data", "--index", "0", "--of", "2"];
    sandbox.run(&g).exits(8).says(&["has rows of g, but neither a coordinator's state nor shards"]);
}

#[test]
fn commands_show_the_sum_of_the_shards() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic(NAME, 8));
    run(&sandbox, 1, 3).exits(0).says(&["shard 1 of 3: e: 5 tasks, 0 done already, 5 to run"]);
    let found = status(&sandbox);
    assert_eq!((&found["state"], &found["tasks"], &found["done"]), (&"waiting".into(), &16.into(), &5.into()));
    assert_eq!(found["reason"], "of 3 shards, 2 not begun");
    let states: Vec<&str> = (0..3).filter_map(|index| found["shards"][index]["state"].as_str()).collect();
    assert_eq!(states, ["not begun", "finished", "not begun"]);
    let tasks: u64 = (0..3).map(|index| number(&found["shards"][index]["tasks"])).sum();
    assert_eq!(tasks, 16);
    sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["e: 3 shards", "not begun", "finished"]);
    let plan = ["plan", "e.toml", "--data", "data"];
    sandbox.run(&plan).exits(0).prints(&["e: 16 tasks, 5 done already, 11 would run"]);
    let verdicts = (0..16).map(|index| {
        let json = sandbox.run(&[&plan[..], &["--json", "--index", &format!("{index}")]].concat()).exits(0).json();
        json["verdict"].as_str().map(str::to_owned).expect("a text")
    });
    assert_eq!(verdicts.filter(|verdict| verdict == "would not run").count(), 5);
    sandbox.run(&["results", NAME, "--data", "data"]).exits(0).prints(&["fcfs"]);
    assert_eq!(ids(&sandbox).len(), 5);
}

#[test]
fn damage_of_one_sharded_experiment_is_its_own() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic(NAME, 8));
    sandbox.write("f.toml", synthetic("f", 8));
    run(&sandbox, 1, 3).exits(0);
    sandbox.run(&["shard", "f.toml", "--data", "data", "--index", "0", "--of", "2"]).exits(0);
    sandbox.write("data/.powersweep/shards/f/shards.json", "{ \"of\": ");
    let shown =
        sandbox.run(&["status", "--data", "data"]).exits(0).prints(&["e: 3 shards", "f: its shards cannot be read"]);
    assert!(shown.stdout.contains("shards.json"), "{shown}");
    let found = sandbox.run(&["status", "--data", "data", "--json"]).exits(0).json();
    let states: Vec<_> =
        found["experiments"].as_array().expect("a list").iter().map(|e| (&e["name"], &e["state"])).collect();
    assert_eq!(states, [(&"e".into(), &"waiting".into()), (&"f".into(), &"unknown".into())] as [(&Json, &Json); 2]);
    sandbox.run(&["status", "f", "--data", "data"]).exits(5);
}

#[test]
fn a_shard_ends_in_good_order() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", four_policies(NAME, 400, 3000, ""));
    let mut running = start(&sandbox, 0, 2, &[]);
    wait_for_rows(&sandbox, 0, &mut running);
    assert_eq!(status(&sandbox)["shards"][0]["state"], "running");
    run(&sandbox, 0, 2).exits(6).says(&["e: shard 0 of 2 runs already in process", "--take-over"]);
    running.signal("TERM");
    running.wait().exits(130).says(&["Run the same command to continue"]);
    let found = status(&sandbox);
    assert_eq!((&found["shards"][0]["state"], &found["rows_unpublished"]), (&"stopped".into(), &0.into()), "{found}");
    let kept = number(&found["done"]);
    assert!(kept > 0 && kept < 200, "{found}");
    assert_eq!(rows::tasks(&sandbox.path("data"), NAME).len() as u64, kept);
    // A limit that is not reached.
    start(&sandbox, 1, 2, &["--time-limit", "3:55:00"]).wait().exits(0);
    run(&sandbox, 0, 2).exits(0);
    assert_eq!(rows::tasks(&sandbox.path("data"), NAME).len(), 400);
}

#[test]
fn a_time_limit_keeps_the_finished_tasks() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", four_policies(NAME, 40_000, 3000, ""));
    let limit = ["--time-limit", "12s", "--drain-limit", "1s"];
    start(&sandbox, 0, 1, &limit).wait().exits(130).says(&["the time limit ends before the tasks of this shard"]);
    let found = status(&sandbox);
    assert_eq!((&found["state"], &found["rows_unpublished"]), (&"waiting".into(), &0.into()), "{found}");
    assert!(number(&found["done"]) > 0, "{found}");
}

#[test]
fn failed_tasks_are_counted_and_retried() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", WIDE.replace("\"wide\"", "\"e\""));
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let logs = ["--traces", "logs"];
    let codes: Vec<Option<i32>> = (0..2).map(|index| start(&sandbox, index, 2, &logs).wait().code()).collect();
    assert!(codes.contains(&Some(3)) && codes.iter().all(|code| matches!(code, Some(0 | 3))), "{codes:?}");
    let found = status(&sandbox);
    assert_eq!((&found["state"], number(&found["failed"])), (&"failed".into(), 2));
    assert_eq!(found["failures"].as_array().map(Vec::len), Some(2), "{found}");
    let failed = (0..2).find(|index| codes[*index as usize] == Some(3)).expect("one failed");
    start(&sandbox, failed, 2, &logs).wait().exits(3).says(&["0 to run"]);
    let retried = start(&sandbox, failed, 2, &[&logs[..], &["--retry-failed"]].concat()).wait().exits(3);
    assert!(!retried.stderr.contains(" 0 to run"), "{retried}");
}
