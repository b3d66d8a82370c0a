//! Paths and URLs of a manifest, and the machine of a worker: what leaves the house has none of them.

use std::path::Path;

use crate::rows;
use crate::sandbox::Sandbox;
use crate::sweeps::{JOBS, TINY_LOG};

/// The files of a folder with a text, as bytes.
fn with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(with(&path, text));
        } else if std::fs::read(&path).expect("readable").windows(text.len()).any(|bytes| bytes == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A log by an absolute path, whose folder says whose it is.
#[test]
fn an_absolute_path_is_in_no_part_no_state_and_no_copy() {
    let sandbox = Sandbox::new();
    let log = sandbox.write("home-of-ann/tiny.swf", TINY_LOG);
    sandbox.write("sweep.toml", JOBS.replace("\"tiny\"", &format!("\"{}\"", log.display())));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    for row in rows::tasks(&sandbox.path("results/data"), "jobs").values() {
        assert_eq!(row["log"], "tiny.swf");
    }
    sandbox.run(&["export", "jobs", "--output", "copy"]).exits(0);
    sandbox.run(&["report", "jobs", "--output", "copy/report.html"]).exits(0);
    for place in ["results/data/jobs", "results/data/.powersweep", "copy"] {
        assert_eq!(with(&sandbox.path(place), "home-of-ann"), [""; 0]);
    }
    // The places count where the files are read: the same manifest again, and a part of it with the search path.
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    sandbox.run(&["plan", "sweep.toml"]).exits(0);
    sandbox.run(&["verify", "jobs", "--tasks", "4", "--traces", "home-of-ann"]).exits(0);
    sandbox.run(&["verify", "jobs", "--tasks", "4", "--manifest", "sweep.toml"]).exits(0);
}

#[test]
fn a_worker_and_a_user_have_no_name_in_rows_and_reports() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.swf", TINY_LOG);
    sandbox.write("sweep.toml", JOBS);
    let (served, _) = sandbox.serve(&[]);
    let variables = [("HOSTNAME", "node-of-ann"), ("USER", "ann-the-user"), ("LOGNAME", "ann-the-user")];
    let mut command = sandbox.command(crate::sandbox::BINARY);
    command.arg("worker").envs(variables);
    let mut worker = sandbox.spawn(command);
    worker.says("connected to");
    sandbox.run_with(&["submit", "sweep.toml", "--traces", ".", "--wait"], &variables).exits(0);
    crate::farm::terminate(worker);
    sandbox.run(&["status", "jobs", "--json"]).exits(0).prints(&["ann-the-user"]);
    sandbox.run(&["export", "jobs", "--output", "copy"]).exits(0);
    sandbox.run(&["report", "jobs", "--output", "copy/report.html"]).exits(0);
    crate::farm::terminate(served);
    for place in ["results/data/jobs", "copy"] {
        for name in ["node-of-ann", "ann-the-user"] {
            assert_eq!(with(&sandbox.path(place), name), [""; 0]);
        }
    }
    let rows = rows::tasks(&sandbox.path("results/data"), "jobs");
    assert!(rows.values().all(|row| row["worker"].as_str().is_some_and(|name| name.starts_with("worker-"))));
}

/// Such a log is published with a paper.
#[test]
fn a_log_that_import_writes_has_the_name_of_its_source_alone() {
    let sandbox = Sandbox::new();
    let table = sandbox.write("home-of-ann/jobs.csv", "s,b,r,n\n0,0,60,1\n5,0,60,2\n");
    let columns = "submit=s,wait=b,run=r,nodes=n";
    let source = table.display().to_string();
    let import = ["import", "csv", &source, "--columns", columns, "--procs", "nodes", "--machine-procs", "4"];
    sandbox.run(&[&import[..], &["-o", "jobs.swf"]].concat()).exits(0);
    let log = std::fs::read_to_string(sandbox.path("jobs.swf")).expect("it was written");
    assert!(log.contains("; ImportSource: jobs.csv, SHA-256 ") && !log.contains("home-of-ann"), "{log}");
}
