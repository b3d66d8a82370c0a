//! `powersweep doctor`: what it finds, its advice and its exit code.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value as Json;

use crate::farm::terminate;
use crate::sandbox::{Ended, Sandbox, contents};

/// The checks by name.
fn check(ended: &Ended, name: &str) -> Json {
    let found =
        ended.json()["checks"].as_array().and_then(|checks| checks.iter().find(|c| c["check"] == name).cloned());
    found.unwrap_or_else(|| panic!("{name} in\n{ended}"))
}

#[test]
fn data_that_does_not_exist_is_not_made() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["doctor", "--json"]).exits(0);
    assert!(check(&ended, "data")["found"].as_str().is_some_and(|found| found.contains("not checked")), "{ended}");
    assert!(contents(&sandbox.path("results")).is_empty());
    assert_eq!(check(&ended, "open files")["check"], "open files");
}

#[test]
fn a_served_folder_passes_and_nothing_stays_in_it() {
    let sandbox = Sandbox::new();
    let (served, url) = sandbox.serve(&[]);
    let before = contents(&sandbox.path("results/data"));
    let ended = sandbox.run(&["doctor", "--json"]).exits(0);
    for name in ["storage", "durable writes", "owner", &format!("client at {url}"), &format!("worker at {url}")] {
        assert_eq!(check(&ended, name)["result"], "ok", "{ended}");
    }
    assert!(check(&ended, "owner")["found"].as_str().is_some_and(|found| found.contains("serves the data")), "{ended}");
    // The coordinator may add and delete files of its state meanwhile.
    let state = sandbox.path("results/data/.powersweep/state");
    let after = contents(&sandbox.path("results/data"));
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path) && !path.starts_with(&state)).collect();
    assert!(new.is_empty(), "{new:?}");
    sandbox.run(&["doctor"]).exits(0).prints(&["check", "durable writes", "takes the token"]);

    // From another machine, as a worker.
    sandbox.run(&["access", "export", "--worker", "--output", "worker.json"]).exits(0);
    let elsewhere = ["doctor", "--data", "nowhere", "--access", "worker.json", "--json"];
    let ended = sandbox.run(&elsewhere).exits(0);
    assert_eq!(check(&ended, &format!("worker at {url}"))["result"], "ok");
    terminate(served);
    // Beside the data, that is no problem: a coordinator can begin.
    let ended = sandbox.run(&["doctor", "--json"]).exits(0);
    assert_eq!(check(&ended, "owner")["found"], "no coordinator serves the data", "{ended}");
    assert_eq!(check(&ended, "port")["check"], "port");
    let ended = sandbox.run(&elsewhere).exits(7);
    let worker = check(&ended, &format!("worker at {url}"));
    assert_eq!(worker["result"], "failed");
    assert!(worker["advice"].as_str().is_some_and(|advice| advice.contains("powersweep serve")), "{worker}");
}

#[test]
fn a_rotated_token_and_an_open_file_are_found() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    sandbox.run(&["access", "export", "--worker", "--output", "worker.json"]).exits(0);
    sandbox.run(&["access", "rotate", "--grace", "0s"]).exits(0);
    let elsewhere = ["doctor", "--data", "nowhere", "--access", "worker.json"];
    // The coordinator notices the rotation within a second.
    while sandbox.run(&elsewhere).code() == Some(0) {}
    sandbox.run(&elsewhere).exits(8).prints(&["failed", "the token is not valid"]);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(sandbox.path("worker.json"), open).expect("it is this user's");
    sandbox.run(&elsewhere).exits(8).prints(&["failed", "chmod 600"]);
    terminate(served);
}

#[test]
fn storage_that_cannot_be_written_fails_with_its_code() {
    let sandbox = Sandbox::new();
    sandbox.write("data/.powersweep", "a file in the way");
    let ended = sandbox.run(&["doctor", "--data", "data", "--json"]).exits(5);
    let storage = check(&ended, "storage");
    assert_eq!(storage["result"], "failed", "{ended}");
    assert!(storage["advice"].as_str().is_some_and(|advice| advice.contains("--data")), "{ended}");
}
