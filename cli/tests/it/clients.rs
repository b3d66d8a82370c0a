//! Clients with tokens of their own: whose experiments they may act on, what the log says of them, and their end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::farm::terminate;
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::synthetic;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn serve(sandbox: &Sandbox) -> Running {
    let mut served = sandbox.start(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    served.says("powersweep: serving");
    served
}

#[test]
fn an_experiment_is_guarded_from_other_clients_and_the_log_names_each() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let served = serve(&sandbox);
    for name in ["ada", "bob"] {
        let added = sandbox.run(&["access", "add", name, "--output", &format!("{name}.json")]).exits(0);
        added.prints(&[&format!("{name}.json is the access of {name}")]);
    }
    sandbox.run(&["access", "add", "ada"]).exits(2).says(&["ada has a token already"]);
    sandbox.run(&["access", "add", "eve", "--output", "ada.json"]).exits(2).says(&["ada.json exists already"]);
    sandbox.run(&["access", "revoke", "eve"]).exits(2).says(&["there is no client eve"]);
    let shown = sandbox.run(&["access", "show", "--json"]).exits(0).json();
    let names: Vec<&str> =
        shown["tokens"]["clients"].as_array().into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, ["ada", "bob"], "{shown}");
    let line = sandbox.run(&["access", "export", "--name", "ada"]).exits(0).stdout;
    assert_eq!(line, std::fs::read_to_string(sandbox.path("ada.json")).expect("it was written"));

    // The name in the environment is no proof.
    let as_ada = |args: &[&str]| sandbox.run_with(&[args, &["--access", "ada.json"]].concat(), &[("USER", "bob")]);
    let as_bob = |args: &[&str]| sandbox.run_with(&[args, &["--access", "bob.json"]].concat(), &[("USER", "ada")]);
    as_ada(&["submit", "sweep.toml"]).exits(0);
    let status = || sandbox.run(&["status", "sweep", "--json"]).exits(0).json()["experiments"][0].clone();
    assert_eq!(status()["owner"], "ada", "{}", status());
    let attacks = [
        &["delete", "sweep", "--force", "--data-too"][..],
        &["cancel", "sweep"],
        &["retry", "sweep"],
        &["prune", "sweep"],
        &["priority", "sweep", "9"],
        &["pause", "sweep"],
    ];
    for attack in attacks {
        as_bob(attack).exits(8).says(&["sweep was submitted by ada: ask ada", "--any-owner"]);
    }
    as_bob(&["submit", "sweep.toml", "--priority", "9"]).exits(8).says(&["submitted by ada"]);
    as_bob(&["submit", "sweep.toml", "--restart"]).exits(8).says(&["submitted by ada"]);
    as_bob(&["submit", "sweep.toml"]).exits(0);
    as_bob(&["prepare-upgrade"]).exits(8).says(&["only the operator"]);
    assert_eq!(
        (&status()["state"], &status()["priority"], &status()["owner"]),
        (&"waiting".into(), &0.into(), &"ada".into())
    );
    // The way out, the owner, and the operator.
    as_bob(&["priority", "sweep", "9", "--any-owner"]).exits(0);
    as_ada(&["priority", "sweep", "1"]).exits(0);
    sandbox.run(&["cancel", "sweep"]).exits(0);

    // One token ends, and the others stay.
    sandbox.run(&["access", "revoke", "bob"]).exits(0);
    let begun = Instant::now();
    while as_bob(&["status"]).code() == Some(0) {
        assert!(begun.elapsed() < PATIENCE, "the token is still valid");
    }
    as_bob(&["status"]).exits(8).says(&["the token is not valid: it was rotated or revoked"]);
    as_ada(&["delete", "sweep", "--force"]).exits(0);
    let served = terminate(served);
    let lines = served.stderr.lines().map(|line| serde_json::from_str::<Json>(line).expect("an object"));
    let audit = lines.filter(|line| line["target"] == "powersweep::audit");
    let said: BTreeSet<(String, String, String)> = audit
        .map(|line| {
            ["client", "action", "message"].map(|field| line[field].as_str().unwrap_or_default().to_owned()).into()
        })
        .collect();
    let expected = [
        ("ada", "submit", "accepted"),
        ("bob", "delete", "refused"),
        ("bob", "cancel", "refused"),
        ("bob", "retry", "refused"),
        ("bob", "prune", "refused"),
        ("bob", "priority", "refused"),
        ("bob", "prepare-upgrade", "refused"),
        ("bob", "priority", "accepted"),
        ("ada", "priority", "accepted"),
        ("operator", "cancel", "accepted"),
        ("ada", "delete", "accepted"),
    ];
    for (client, action, message) in expected {
        let line = (client.to_owned(), action.to_owned(), message.to_owned());
        assert!(said.contains(&line), "{line:?} in {said:?}");
    }
}

/// Processes that add and revoke at the same time.
#[test]
fn clients_added_and_revoked_at_once_are_all_kept_or_ended() {
    let sandbox = Sandbox::new();
    terminate(serve(&sandbox));
    for round in 0..5 {
        let name = |kind: &str| format!("{kind}{round}");
        sandbox.run(&["access", "add", &name("old")]).exits(0);
        let (one, other, old) = (name("one"), name("other"), name("old"));
        let at_once = [&["add", &one][..], &["add", &other], &["revoke", &old], &["rotate"]];
        let at_once = at_once.map(|args| sandbox.start(&[&["access"], args].concat()));
        at_once.into_iter().for_each(|running| drop(running.wait().exits(0)));
        let shown = sandbox.run(&["access", "show", "--json"]).exits(0).json();
        let clients = shown["tokens"]["clients"].to_string();
        assert!(clients.contains(&name("one")) && clients.contains(&name("other")), "round {round}: {clients}");
        assert!(!clients.contains(&name("old")), "round {round}: {clients}");
    }
}
