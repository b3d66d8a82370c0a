//! What an operator sees: metrics, logs as JSON, a line for each submit, control request and worker.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value as Json;

use crate::farm::{terminate, worker};
use crate::sandbox::Sandbox;
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// The metrics of a coordinator, as a caller of this host gets them.
pub(crate) fn get(address: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn metrics_count_what_the_farm_does() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox
        .run(&["serve", "--metrics", "0.0.0.0:0"])
        .exits(2)
        .says(&["0.0.0.0:0 is open to other machines", "--metrics"]);
    let (mut served, _) = sandbox.serve(&["--metrics", "127.0.0.1:0"]);
    let line = served.says("powersweep: metrics at http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.strip_suffix("/metrics")).expect("an address");
    let worker = worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0);
    sandbox.run(&["submit", "wide.toml", "--wait", "--traces", "logs"]).exits(3);
    sandbox.run(&["flush", "sweep"]).exits(0);
    let answer = get(address, address);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4"), "{answer}");
    let value = |sample: &str| -> f64 {
        let line = answer.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{sample} in\n{answer}"))
    };
    for (sample, expected) in [
        ("powersweep_tasks{experiment=\"sweep\",state=\"done\"}", 4.0),
        ("powersweep_tasks{experiment=\"wide\",state=\"failed\"}", 2.0),
        ("powersweep_rows{experiment=\"sweep\",place=\"parts\"}", 4.0),
        ("powersweep_workers", 1.0),
        ("powersweep_slots{state=\"idle\"}", 1.0),
        ("powersweep_storage_stalled", 0.0),
        ("powersweep_request_seconds_count{request=\"submit\"}", 2.0),
        ("powersweep_streams_total", 1.0),
        ("powersweep_received_rows_total", 10.0),
        // 60 jobs in each of four tasks, three in each of six.
        ("powersweep_simulated_jobs_total", 258.0),
        ("powersweep_commit_failures_total", 0.0),
    ] {
        assert_eq!(value(sample), expected, "{sample}");
    }
    for sample in [
        "powersweep_commit_seconds_count",
        "powersweep_commit_seconds_sum",
        "powersweep_received_bytes_total{kind=\"rows\"}",
        "powersweep_received_bytes_total{kind=\"logs\"}",
        "powersweep_committed_row_bytes_total",
        "powersweep_parts_total{result=\"published\"}",
        "powersweep_slot_seconds_total{experiment=\"sweep\",phase=\"engine\"}",
    ] {
        assert!(value(sample) > 0.0, "{sample}");
    }
    let failures = answer.lines().filter(|line| line.starts_with("powersweep_failures_total{"));
    let failures: f64 = failures.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert!(failures >= 2.0, "{answer}");
    // A web page cannot read them by a name that it made mean this machine.
    assert!(get(address, "evil.example:9464").starts_with("HTTP/1.1 403"));
    terminate(worker);
    terminate(served);
}

/// The objects on standard error; every line must be one.
fn objects(stderr: &str) -> Vec<Json> {
    stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn each_submit_control_request_and_worker_is_in_the_log() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let mut served = sandbox.start(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    served.says("powersweep: serving");
    let mut worker = sandbox.start(&["worker", "--name", "ada", "--slots", "1", "--log-format", "json"]);
    worker.says("connected to");
    sandbox.run(&["submit", "wide.toml", "--wait", "--traces", "logs"]).exits(3);
    sandbox.run(&["pause", "nosuch"]).exits(2);
    sandbox.run(&["delete", "wide"]).exits(0);
    sandbox.run(&["submit", "wide.toml", "--traces", "logs"]).exits(8);
    let worked = terminate(worker);
    let served = terminate(served);
    let audit: Vec<Json> = objects(&served.stderr).into_iter().filter(|o| o["target"] == "powersweep::audit").collect();
    let line =
        |action: &str| audit.iter().find(|o| o["action"] == action).unwrap_or_else(|| panic!("{action}: {audit:?}"));
    let submit = line("submit");
    assert_eq!((&submit["experiment"], &submit["message"]), (&"wide".into(), &"accepted".into()), "{submit}");
    assert_eq!((&submit["tasks"], &submit["generation"]), (&8.into(), &1.into()), "{submit}");
    assert!(submit["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{submit}");
    let refused =
        audit.iter().find(|o| o["action"] == "submit" && o["message"] == "refused").expect("a refused submit");
    assert_eq!(refused["experiment"], "wide");
    let (pause, delete, join) = (line("pause"), line("delete"), line("join"));
    assert_eq!((&pause["message"], &delete["message"]), (&"refused".into(), &"accepted".into()));
    assert!(pause["reason"].as_str().is_some_and(|reason| reason.contains("nosuch")), "{pause}");
    assert_eq!((&join["worker"], &join["slots"]), (&"ada".into(), &1.into()));
    let ids: std::collections::BTreeSet<&str> = audit.iter().filter_map(|o| o["request"].as_str()).collect();
    assert_eq!(ids.len(), audit.len(), "each call has an id of its own: {audit:?}");
    // Client and worker have different tokens, which the lines tell apart without showing them.
    assert_eq!(submit["token"], delete["token"]);
    assert_ne!(submit["token"], join["token"]);
    let failed: Vec<Json> = objects(&worked.stderr).into_iter().filter(|o| o["level"] == "WARN").collect();
    let tasks: Vec<&Json> = failed.iter().map(|o| &o["task"]).collect();
    assert!(!tasks.is_empty() && tasks.iter().all(|task| task.is_u64()), "{failed:?}");
    assert!(failed.iter().all(|o| o["experiment"] == "wide" && o["attempt"].is_u64()), "{failed:?}");
}
