//! Every registered log format, from the source of a spec to the row.

use powersweep_engine::workload::FORMATS;
use powersweep_experiments::Digest;
use serde_json::Value as Json;

use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::{Ended, Sandbox};

/// A folder `logs` that has one log `same` in each format.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for format in FORMATS {
        sandbox.write(&format!("logs/same.{}", format.suffix), format.sample);
    }
    sandbox
}

/// A block of workloads that reads the log `same`.
fn workload(label: &str, source: &str) -> String {
    format!("[workloads.{label}]\nsource = \"{source}\"\nlog = \"same\"\n")
}

/// A manifest whose machine is large enough for any sample.
fn manifest(name: &str, workloads: &str) -> String {
    format!("version = 1\nname = \"{name}\"\n{workloads}[platforms.p]\nprocs = 1048576\n[policies.q]\n")
}

fn simulate(sandbox: &Sandbox, args: &[&str]) -> Ended {
    sandbox.run(&[&["simulate", "-s", "procs=1048576", "--traces", "logs", "--format", "json"][..], args].concat())
}

/// The worker has no folder of logs: it gets the bytes that were uploaded, and the format from the spec.
#[test]
fn a_sweep_reads_each_log_in_the_format_of_its_source() {
    let sandbox = sandbox();
    let (served, url) = sandbox.serve(&["--data", "farm"]);
    let worker = worker(&sandbox, "w", &url, &["--data", "farm"]);
    for format in FORMATS {
        let name = format.component.name;
        let file = format!("{name}.toml");
        sandbox.write(&file, manifest(name, &workload("w", name)));
        sandbox.run(&["run", &file, "--traces", "logs"]).exits(0);
        sandbox.run(&["submit", &file, "--traces", "logs", "--data", "farm", "--wait"]).exits(0);
    }
    terminate(worker);
    terminate(served);
    for format in FORMATS {
        let digest = Json::from(Digest::of(format.sample.as_bytes()).to_string());
        for data in ["results/data", "farm"] {
            let rows = rows::tasks(&sandbox.path(data), format.component.name);
            assert_eq!(rows.len(), 1, "{data}: {rows:?}");
            assert_eq!(rows[&0]["source"], format.component.name);
            assert_eq!(rows[&0]["log_digest"], digest);
        }
    }
}

#[test]
fn without_a_source_the_ending_of_the_file_decides_the_format() {
    let sandbox = sandbox();
    for format in FORMATS {
        let (name, file) = (format.component.name, format!("logs/same.{}", format.suffix));
        assert_eq!(simulate(&sandbox, &["--log", &file]).exits(0).json()["source"], name);
        let source = format!("source={name}");
        assert_eq!(simulate(&sandbox, &["--log", "same", "-s", &source]).exits(0).json()["source"], name);
        let facts = sandbox.run(&["trace", "info", &file, "--format", "json"]).exits(0).json();
        assert_eq!(facts["file"], file.as_str());
    }
}

#[test]
fn a_source_reads_a_file_of_any_ending() {
    let sandbox = sandbox();
    for format in FORMATS {
        let (name, source) = (format.component.name, format!("source={}", format.component.name));
        let (good, bad) = (format!("./{name}.good"), format!("./{name}.bad"));
        sandbox.write(&good, format.sample);
        // No format has such a line.
        sandbox.write(&bad, format!("{}no record\n", format.sample));
        simulate(&sandbox, &["--log", &good, "-s", &source]).exits(0);
        let said = format!("(read in the format `{name}`)");
        simulate(&sandbox, &["--log", &bad, "-s", &source]).exits(4).says(&[&bad, &said]);
    }
}

#[test]
fn formats_are_not_confused() {
    let [first, second, ..] = FORMATS else { panic!("only one format is registered") };
    let sandbox = sandbox();
    let (name, other) = (first.component.name, second.component.name);
    let file = format!("./first.{}", second.suffix);
    sandbox.write(&file, first.sample);
    simulate(&sandbox, &["--log", &file, "-s", &format!("source={name}")]).exits(0);
    simulate(&sandbox, &["--log", &file, "-s", &format!("source={other}")]).exits(4);

    sandbox.write("notes.txt", first.sample);
    let sources = [name, other].map(|name| format!("(source `{name}`)"));
    let said = ["the ending of ./notes.txt belongs to no log format", &sources[0], &sources[1]];
    sandbox.run(&["trace", "info", "./notes.txt"]).exits(4).says(&said);
    simulate(&sandbox, &["--log", "./notes.txt"]).exits(4).says(&said);

    sandbox.write("both.toml", manifest("both", &(workload("a", name) + &workload("b", other))));
    let ended = sandbox.run(&["plan", "both.toml", "--traces", "logs"]).exits(2);
    ended.says(&[&format!("log `same` has the sources `{name}` and `{other}`")]);
}
