//! `prepare-upgrade`: the end of a coordinator that leaves only published rows.

use crate::farm::{terminate, worker};
use crate::sandbox::{Ended, Sandbox};
use crate::sweeps::synthetic;

/// A sweep whose tasks take about a tenth of a second each.
fn slow(name: &str, seeds: u32) -> String {
    let jobs = if cfg!(debug_assertions) { "30_000" } else { "300_000" };
    synthetic(name, seeds).replace("synthetic_jobs_count = 60", &format!("synthetic_jobs_count = {jobs}"))
}

/// Numbers of the one experiment, from the stored state or its coordinator.
fn numbers(sandbox: &Sandbox) -> (u64, u64, u64) {
    let status = sandbox.run(&["status", "--json"]).exits(0).json();
    let of = |field: &str| status["experiments"][0][field].as_u64().unwrap_or_else(|| panic!("{field}: {status}"));
    (of("done"), of("rows_in_parts"), of("rows_unpublished"))
}

#[test]
fn running_tasks_finish_all_rows_are_published_and_the_next_coordinator_continues() {
    let sandbox = Sandbox::new();
    sandbox.write("slow.toml", slow("slow", 20));
    let (served, _) = sandbox.serve(&[]);
    let mut worker = worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    while numbers(&sandbox).0 < 2 {}
    sandbox.run(&["prepare-upgrade"]).exits(0).prints(&["all rows are published", "has ended"]);
    let served = served.wait().exits(0);
    assert!(served.stderr.contains("the coordinator ends for an upgrade"), "{served}");
    let (done, published, unpublished) = numbers(&sandbox);
    assert!((2..40).contains(&done), "{done} of 40");
    assert_eq!((published, unpublished), (done, 0), "every row is in a part");
    // No task was lost: each that had begun has its row, and the worker has waited for the next coordinator.
    let (served, _) = sandbox.serve(&[]);
    worker.says("connected to");
    sandbox.run(&["submit", "slow.toml", "--wait"]).exits(0);
    assert_eq!(numbers(&sandbox).0, 40);
    let failures = sandbox.run(&["results", "slow", "--table", "failures", "--format", "csv"]).exits(0);
    assert_eq!(failures.stdout.lines().count(), 1, "{failures}");
    terminate(worker);
    terminate(served);
    // Nothing runs: the command publishes by itself.
    sandbox.run(&["prepare-upgrade"]).exits(0).prints(&["all rows are published"]);
    assert_eq!(numbers(&sandbox), (40, 40, 0));
}

#[test]
fn the_drain_limit_hands_tasks_back_and_counts_no_attempt() {
    let sandbox = Sandbox::new();
    // Jobs arrive ten times as fast as the machine can run them: the queue grows, and a task takes minutes.
    let text = slow("slow", 2).replace("[platforms", "interarrival_factor = 0.1\n[platforms");
    sandbox.write("slow.toml", format!("{}backfill = \"conservative\"\n", text.replace("30_000", "300_000")));
    let (served, _) = sandbox.serve(&[]);
    let worker = worker(&sandbox, "w", "", &["--drain-limit", "0s"]);
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    while sandbox.run(&["status", "--json"]).exits(0).json()["experiments"][0]["running"] == 0 {}
    sandbox.run(&["prepare-upgrade", "--drain-limit", "0s"]).exits(0).prints(&["all rows are published"]);
    served.wait().exits(0);
    let status = sandbox.run(&["status", "--json"]).exits(0).json();
    let experiment = &status["experiments"][0];
    assert_eq!((&experiment["done"], &experiment["failed"]), (&0.into(), &0.into()), "{status}");
    terminate(worker);
}

#[test]
fn the_coordinator_of_a_run_is_not_ended() {
    let sandbox = Sandbox::new();
    sandbox.write("slow.toml", slow("slow", 40));
    let mut run = sandbox.start(&["run", "slow.toml", "--slots", "1"]);
    // Before the run has made its data, there is no status.
    let begun = |status: Ended| status.code() == Some(0) && status.json()["experiments"][0]["done"].as_u64() > Some(0);
    while !begun(sandbox.run(&["status", "--json"])) {}
    sandbox.run(&["prepare-upgrade"]).exits(8).says(&["belongs to `powersweep run`: interrupt that command"]);
    assert!(run.runs());
    run.signal("INT");
    run.wait().exits(130);
    let (done, published, unpublished) = numbers(&sandbox);
    assert_eq!((published, unpublished), (done, 0), "an interrupted run publishes its rows");
}
