//! Paths in a manifest start in its folder, wherever a command runs.

use powersweep_experiments::Digest;
use serde_json::Value as Json;

use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::{BINARY, Ended, Sandbox};
use crate::sweeps::{JOBS, TINY_LOG, synthetic};

/// Jobs on the log `./tiny.swf`, in the folder `study`. The current folder has another log of this path.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("study/jobs.toml", JOBS.replace("\"tiny\"", "\"./tiny.swf\""));
    sandbox.write("study/tiny.swf", TINY_LOG);
    sandbox.write("tiny.swf", TINY_LOG.replace("3 6 -1 30", "3 6 -1 31"));
    sandbox
}

fn digest(log: &str) -> Json {
    Json::from(Digest::of(log.as_bytes()).to_string())
}

#[track_caller]
fn assert_read(data: &std::path::Path, log: &str) {
    let rows = rows::tasks(data, "jobs");
    assert_eq!(rows.len(), 4);
    assert!(rows.values().all(|row| row["log_digest"] == digest(log)), "{rows:?}");
}

#[test]
fn a_log_is_found_beside_its_manifest() {
    let sandbox = sandbox();
    sandbox.run(&["run", "study/jobs.toml", "--quiet"]).exits(0);
    let data = sandbox.path("results/data");
    assert_read(&data, TINY_LOG);
    // Neither the manifest's path nor the current folder belong to a task's identity.
    let mut inside = sandbox.command(BINARY);
    inside.args(["run", "jobs.toml", "--data", "../results/data"]).current_dir(sandbox.path("study"));
    sandbox.spawn(inside).wait().exits(0).says(&["4 done already, 0 to run"]);
    let done = ["plan", "study/jobs.toml", "--index", "0"];
    sandbox.run(&done).exits(0).prints(&["would not run: its row is in"]);

    std::fs::remove_dir_all(data.join(".powersweep")).expect("the state can be deleted");
    sandbox.run(&["adopt", "study/jobs.toml"]).exits(0).prints(&["jobs: 4 of 4 tasks have rows"]);
}

#[test]
fn a_submitted_log_is_read_beside_its_manifest() {
    let sandbox = sandbox();
    let (served, url) = sandbox.serve(&["--data", "farm"]);
    let worker = worker(&sandbox, "w", &url, &["--data", "farm"]);
    sandbox.run(&["submit", "study/jobs.toml", "--data", "farm", "--wait"]).exits(0);
    terminate(worker);
    terminate(served);
    assert_read(&sandbox.path("farm"), TINY_LOG);
}

#[test]
fn only_the_log_of_the_command_line_starts_in_the_current_folder() {
    let sandbox = sandbox();
    let simulate = |args: &[&str]| -> Ended {
        sandbox.run(&[&["simulate", "study/jobs.toml", "--index", "0", "--format", "json"], args].concat()).exits(0)
    };
    assert_eq!(simulate(&[]).json()["log_digest"], digest(TINY_LOG));
    let other = digest(&TINY_LOG.replace("3 6 -1 30", "3 6 -1 31"));
    assert_eq!(simulate(&["--log", "./tiny.swf"]).json()["log_digest"], other);
    assert_eq!(simulate(&["-s", "log=./tiny.swf"]).json()["log_digest"], other);
}

/// A name without a folder is looked for on the search path, then beside the manifest.
#[test]
fn a_name_is_found_beside_its_manifest_after_the_search_path() {
    let sandbox = sandbox();
    sandbox.write("study/jobs.toml", JOBS);
    sandbox.run(&["run", "study/jobs.toml", "--quiet"]).exits(0);
    assert_read(&sandbox.path("results/data"), TINY_LOG);
    sandbox.run(&["run", "study/jobs.toml", "--quiet", "--traces", ".", "--data", "other"]).exits(0);
    assert_read(&sandbox.path("other"), &TINY_LOG.replace("3 6 -1 30", "3 6 -1 31"));
    std::fs::remove_file(sandbox.path("study/tiny.swf")).expect("it can be deleted");
    let ended = sandbox.run(&["plan", "study/jobs.toml"]).exits(4);
    ended.says(&["there is no log `tiny` (line 6, [workloads.w]): looked in study", "POWERSWEEP_TRACES"]);
}

#[test]
fn claims_find_the_manifests_beside_them() {
    let sandbox = Sandbox::new();
    sandbox.write("paper/two.toml", synthetic("two", 2));
    sandbox.write("paper/claims.toml", crate::check::claims("./two.toml", 1e9, true));
    sandbox.run(&["check", "paper/claims.toml"]).exits(0).says(&["3 of 3 demanded claims of the paper hold"]);
    std::fs::remove_file(sandbox.path("paper/two.toml")).expect("it can be deleted");
    sandbox.run(&["check", "paper/claims.toml"]).exits(2).says(&["there is no manifest file paper/./two.toml"]);
}
