//! Access files: found without an option, closed to others, checked by role, replaced.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use powersweep_farmtest::sweeps::four_policies;

use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::{BINARY, Ended, Sandbox};
use crate::sweeps::synthetic;

const FOLDER: &str = "results/data/.powersweep/access";

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is this user's");
}

/// No option, no variable, no file made by hand.
#[test]
fn a_coordinator_a_worker_and_a_submit_find_each_other_by_the_data() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, url) = sandbox.serve(&[]);
    let mut worker = sandbox.start(&["worker", "--name", "w1"]);
    worker.says(&format!("connected to {url}"));
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0).prints(&["sweep: 4 tasks, 0 done already, 4 to run"]);
    for command in [&["status"][..], &["health"], &["plan", "sweep.toml"], &["flush", "sweep"], &["access", "show"]] {
        sandbox.run(command).exits(0);
    }
    terminate(worker);
    terminate(served);
    let rows = rows::tasks(&sandbox.path("results/data"), "sweep");
    assert!(rows.len() == 4 && rows.values().all(|row| row["worker"] == "w1"));
    let mode =
        |name: &str| std::fs::metadata(sandbox.path(FOLDER).join(name)).expect("it is there").permissions().mode();
    assert_eq!(mode("") & 0o777, 0o700);
    for file in ["client.json", "worker.json", "server.json"] {
        assert_eq!(mode(file) & 0o777, 0o600, "{file}");
    }
    assert_eq!(std::fs::read_dir(sandbox.path(FOLDER)).expect("it is there").count(), 3);
}

/// A coordinator that starts again elsewhere is found by its workers: they read the file again.
#[test]
fn a_worker_follows_its_coordinator_to_another_port() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, url) = sandbox.serve(&[]);
    let mut worker = worker(&sandbox, "w", "", &[]);
    terminate(served);
    let (served, other) = sandbox.serve(&[]);
    assert_ne!(url, other);
    worker.says(&format!("connected to {other}"));
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0);
    terminate(worker);
    terminate(served);
}

/// No secret is in the arguments or the environment of a process.
#[test]
fn each_token_admits_its_role_and_its_coordinator_only() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, url) = sandbox.serve(&[]);
    let at = |file: &str| format!("{FOLDER}/{file}");
    let (client, worker) = (at("client.json"), at("worker.json"));
    // Its own file says the role, before a connection is made.
    let refused = |args: &[&str], texts: &[&str]| drop(sandbox.run(args).exits(8).says(texts));
    let wrong = ["worker.json is the access file of a worker", "client.json"];
    refused(&["submit", "sweep.toml", "--access", &worker], &wrong);
    refused(&["delete", "sweep", "--access", &worker], &wrong);
    refused(&["worker", "--access", &client], &["client.json is the access file of a client"]);
    // A join line does not say it: the coordinator refuses.
    let line = |role: &str| {
        let ended = sandbox.run(&["access", "export", role, "--join"]).exits(0);
        let line = ended.stdout.trim().to_owned();
        assert!(line.starts_with("psw1.") && line.ends_with(&url["https://".len()..]), "{line}");
        line
    };
    let private = |name: &str, text: &str| set_mode(&sandbox.write(name, text), 0o600);
    private("worker.join", &line("--worker"));
    private("client.join", &line("--client"));
    refused(&["submit", "sweep.toml", "--access", "worker.join"], &["this is the token of a worker", "client.json"]);
    refused(&["cancel", "sweep", "--access", "worker.join"], &["this is the token of a worker"]);
    refused(&["worker", "--access", "client.join"], &["this is the token of a client", "worker.json"]);
    // Another coordinator: its certificate is not trusted, and its token is not valid.
    let (other, _) = sandbox.serve(&["--data", "other"]);
    let ended = sandbox.run(&["status", "--access", "other/.powersweep/access", "--coordinator", &url]).exits(7);
    ended.says(&["invalid peer certificate", "another coordinator than that of the access file"]);
    let own = std::fs::read_to_string(sandbox.path("client.join")).expect("it was written");
    let (digest, place) = (own.split('.').nth(1).expect("a digest"), own.split('@').nth(1).expect("an address"));
    let forged = format!("psw1.{digest}.{}@{place}", "0".repeat(64));
    private("forged", &forged);
    refused(&["submit", "sweep.toml", "--access", "forged"], &["the token is not valid"]);
    private("pinned", &own.replace(digest, &"1".repeat(64)));
    sandbox.run(&["submit", "sweep.toml", "--access", "pinned"]).exits(7).says(&["invalid peer certificate"]);
    // The lines themselves work.
    let mut worker = sandbox.start(&["worker", "--access", "worker.join"]);
    worker.says("connected to");
    sandbox.run(&["submit", "sweep.toml", "--wait", "--access", "client.join"]).exits(0);
    for running in [worker, other, served] {
        terminate(running);
    }
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, _) = sandbox.serve(&[]);
    for (file, command) in [("client.json", &["submit", "sweep.toml"][..]), ("worker.json", &["worker"])] {
        let path = sandbox.path(FOLDER).join(file);
        set_mode(&path, 0o640);
        let ended = sandbox.run(command).exits(8);
        ended.says(&["is open to other users (mode 0640)", &format!("chmod 600 {}", path.display())]);
        set_mode(&path, 0o600);
    }
    sandbox.run(&["submit", "sweep.toml"]).exits(0);
    terminate(served);
    set_mode(&sandbox.path(FOLDER), 0o755);
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["run", "sweep.toml"], &["access", "show"]] {
        sandbox.run(command).exits(8).says(&["is open to other users (mode 0755)", "chmod 700"]);
    }
    set_mode(&sandbox.path(FOLDER), 0o700);
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
}

#[test]
fn rotated_tokens_end_after_their_grace_or_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (mut served, _) = sandbox.serve(&[]);
    let mut worker = worker(&sandbox, "w", "", &[]);
    let export = |file: &str| {
        sandbox.run(&["access", "export", "--client", "--output", file]).exits(0);
    };
    export("old.json");
    sandbox.run(&["access", "export", "--client", "--output", "old.json"]).exits(2).says(&["old.json exists already"]);
    sandbox.run(&["access", "rotate"]).exits(0).prints(&["the former tokens stay valid for 10 min"]);
    sandbox.run(&["status", "--access", "old.json"]).exits(0);
    export("new.json");
    sandbox.run(&["access", "rotate", "--grace", "0s"]).exits(0).prints(&["not valid any more"]);
    // The worker's stream is cut, and it comes back with the new token of its file.
    worker.says("no connection to");
    served.says("the tokens in");
    for file in ["old.json", "new.json"] {
        let ended = sandbox.run(&["submit", "sweep.toml", "--access", file]).exits(8);
        ended.says(&["the token is not valid: it was rotated", "powersweep access export"]);
    }
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0);
    terminate(worker);
    terminate(served);
    sandbox.run(&["access", "export"]).exits(2).says(&["whose access?", "--worker", "--name NAME"]);
    sandbox.run(&["access", "rotate", "--data", "nosuch"]).exits(2).says(&["no coordinator has served"]);
}

/// A process that began before another one has ended tokens must not write them back.
#[test]
fn rotations_at_once_end_both_tokens() {
    let sandbox = Sandbox::new();
    terminate(sandbox.serve(&[]).0);
    let token = |role: &str| {
        let file = std::fs::read_to_string(sandbox.path(FOLDER).join(format!("{role}.json"))).expect("it is there");
        let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
        file["token"].as_str().expect("text").to_owned()
    };
    let valid = || std::fs::read_to_string(sandbox.path(FOLDER).join("server.json")).expect("it is there");
    for round in 0..30 {
        let former = ["client", "worker"].map(token);
        let both = ["--client", "--worker"].map(|role| sandbox.start(&["access", "rotate", role, "--grace", "0s"]));
        for rotated in both {
            rotated.wait().exits(0);
        }
        for (role, former) in ["client", "worker"].into_iter().zip(former) {
            assert!(!valid().contains(&former), "round {round}: the former token of a {role} is valid again");
            assert!(valid().contains(&token(role)), "round {round}: {role}.json has a token that is not valid");
        }
    }
}

/// `--insecure` waives TLS and never the token.
#[test]
fn without_encryption_tokens_are_needed_all_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let mut served = sandbox.start(&["serve", "--listen", "127.0.0.1:0", "--insecure"]);
    assert!(served.says("powersweep: serving").contains(" at http://127.0.0.1:"));
    sandbox.run(&["submit", "sweep.toml"]).exits(2).says(&["is unencrypted", "--insecure"]);
    sandbox.run(&["submit", "sweep.toml", "--insecure"]).exits(0);
    let line = sandbox.run(&["access", "export", "--client", "--join"]).exits(0).stdout;
    let token = line.split(['.', '@']).nth(2).expect("a token").to_owned();
    set_mode(&sandbox.write("forged", line.replace(&token, "guess")), 0o600);
    let ended = sandbox.run(&["status", "--insecure", "--access", "forged"]).exits(8);
    ended.says(&["the token is not valid"]);
    terminate(served);
}

/// A variable or an option that names a listener of somebody else, which waits for tokens.
#[test]
fn the_token_of_an_encrypted_coordinator_is_never_sent_without_encryption() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let place = listener.local_addr().expect("a socket");
    let url = format!("http://{place}");
    let variables = [("POWERSWEEP_INSECURE", "true"), ("POWERSWEEP_COORDINATOR", &*url)];
    let refused = |ended: Ended| {
        ended.exits(2).says(&["never sent without encryption"]);
        let called = listener.accept().err().map(|error| error.kind());
        assert_eq!(called, Some(std::io::ErrorKind::WouldBlock), "nobody connected");
    };
    for command in ["status", "health", "worker"] {
        refused(sandbox.run_with(&[command], &variables));
    }
    refused(sandbox.run(&["status", "--insecure", "--coordinator", &url]));
    let line = sandbox.run(&["access", "export", "--client", "--join"]).exits(0).stdout;
    set_mode(&sandbox.write("line", line), 0o600);
    refused(sandbox.run_with(&["status", "--access", "line"], &variables));
    let file = std::fs::read_to_string(sandbox.path(FOLDER).join("client.json")).expect("it is there");
    let mut file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    file["addresses"] = serde_json::json!([url]);
    set_mode(&sandbox.write("changed.json", file.to_string()), 0o600);
    refused(sandbox.run(&["status", "--insecure", "--access", "changed.json"]));
    terminate(served);
}

/// The access of object stores, and the user's own, lie in the user's folders.
#[test]
fn the_users_own_file_is_found_where_there_is_no_data() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, _) = sandbox.serve(&["--data", "far"]);
    let config = sandbox.path("config");
    std::fs::create_dir_all(config.join("powersweep")).expect("it can be made");
    for role in ["client", "worker"] {
        let output = format!("config/powersweep/{role}.json");
        sandbox.run(&["access", "export", &format!("--{role}"), "--data", "far", "--output", &output]).exits(0);
    }
    let variables = [("XDG_CONFIG_HOME", config.to_str().expect("text"))];
    let mut worker = sandbox.command(BINARY);
    let mut worker = sandbox.spawn({
        worker.arg("worker").envs(variables);
        worker
    });
    worker.says("connected to");
    sandbox.run_with(&["submit", "sweep.toml", "--wait"], &variables).exits(0);
    sandbox.run_with(&["status"], &variables).exits(0).prints(&["sweep", "finished"]);
    terminate(worker);
    terminate(served);
}

/// A user of this machine who owns nothing here; deleted in the end.
pub(crate) struct Stranger(String);

impl Stranger {
    pub(crate) fn new() -> Option<Stranger> {
        // Tests run at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("psw{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let quiet = |program: &str, args: &[&str]| {
            let done = Command::new(program).args(args).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !crate::fire::is_root("a test with a second user") || !quiet("setpriv", &["--version"]) {
            println!("skipped: only root can make a second user");
            return None;
        }
        quiet("useradd", &["--no-create-home", &name]).then_some(Stranger(name))
    }

    fn run(&self, sandbox: &Sandbox, args: &[&str]) -> Ended {
        let program = sandbox.path("bin/powersweep");
        self.start(sandbox, program.to_str().expect("a plain name"), args)
    }

    /// Runs a program to its end.
    pub(crate) fn start(&self, sandbox: &Sandbox, program: &str, args: &[&str]) -> Ended {
        let mut command = sandbox.command("setpriv");
        command.args(["--reuid", &self.0, "--regid", &self.0, "--clear-groups", "--", program]).args(args);
        command.env("HOME", sandbox.path("stranger"));
        sandbox.spawn(command).wait()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = Command::new("userdel").arg(&self.0).output();
    }
}

#[test]
fn a_second_user_of_the_machine_is_refused() {
    let Some(stranger) = Stranger::new() else { return };
    let sandbox = Sandbox::new();
    // The stranger can read everything but the access folder, and run the binary.
    set_mode(&sandbox.path(""), 0o755);
    std::fs::create_dir_all(sandbox.path("bin")).expect("it can be made");
    std::fs::copy(BINARY, sandbox.path("bin/powersweep")).expect("it can be copied");
    sandbox.write("sweep.toml", four_policies("sweep", 8, 10, ""));
    let (served, url) = sandbox.serve(&[]);
    sandbox.run(&["submit", "sweep.toml"]).exits(0);
    let own = ["belongs to user 0", "powersweep access export"];
    for command in [
        &["submit", "sweep.toml"][..],
        &["worker"],
        &["delete", "sweep", "--data-too", "--force"],
        &["cancel", "sweep"],
        &["status"],
        &["access", "show"],
        &["access", "rotate"],
        &["access", "export", "--worker"],
    ] {
        stranger.run(&sandbox, command).exits(8).says(&own);
        if command[0] != "access" {
            let ended = stranger.run(&sandbox, &[command, &["--coordinator", &url, "--access", FOLDER]].concat());
            ended.exits(8).says(&own);
        }
    }
    // Nothing that the stranger sees of the processes is a secret.
    let files = ["client.json", "worker.json"].map(|file| std::fs::read_to_string(sandbox.path(FOLDER).join(file)));
    let mut ps = sandbox.command("ps");
    ps.args(["axeww", "-o", "args"]);
    let seen = sandbox.spawn(ps).wait().exits(0).stdout;
    for file in files {
        let file: serde_json::Value = serde_json::from_str(&file.expect("it is there")).expect("it is JSON");
        assert!(!seen.contains(file["token"].as_str().expect("a text")), "a token is in the list of processes");
    }
    // Data that is open to all does not open the access.
    let data = sandbox.path("results/data");
    set_mode(&data, 0o777);
    let status = sandbox.run(&["status", "--format", "json"]).exits(0).json();
    assert_eq!(status["experiments"][0]["state"], "waiting", "the sweep is as it was submitted");
    terminate(served);
    stranger.run(&sandbox, &["serve", "--listen", "127.0.0.1:0"]).code().filter(|code| *code != 0).expect("refused");
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
}
