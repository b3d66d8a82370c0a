//! Metrics of a sample, as Prometheus gets them.

mod documented;
mod grafana;

use super::*;

/// A metric, read from the text.
struct Metric {
    name: String,
    kind: String,
    labels: Vec<String>,
    help: String,
}

/// The text of a coordinator with one experiment and one worker.
fn sample() -> String {
    let counters = Counters::default();
    counters.commits.observe(Duration::from_millis(3));
    counters.commits.observe(Duration::from_secs(60));
    counters.failure(v1::FailureKind::Memory);
    let experiment = v1::ExperimentStatus {
        name: "a\"b".to_owned(),
        tasks: 10,
        done: 4,
        running: 1,
        quarantined: 2,
        eta_s: Some(1.5),
        ..Default::default()
    };
    let worker = v1::WorkerStatus { slots: 4, busy_slots: 1, leased_tasks: 9, ..Default::default() };
    let status = v1::StatusReply {
        build: "1".to_owned(),
        experiments: vec![experiment],
        workers: vec![worker],
        ..Default::default()
    };
    Snapshot { counters: Arc::new(counters), status }.text()
}

/// The metrics of the sample, in the order of the text.
fn metrics() -> Vec<Metric> {
    let text = sample();
    let described = text.split("# HELP ").skip(1).map(|part| {
        let (name, rest) = part.split_once(' ').expect("a help follows the name");
        let (help, rest) = rest.split_once(&format!("\n# TYPE {name} ")).expect("a kind follows the help");
        let (kind, samples) = rest.split_once('\n').expect("samples follow the kind");
        assert!(!help.is_empty() && samples.starts_with(name), "{part}");
        // No value of the sample's labels has a comma or an equals sign.
        let labels = samples.lines().next().and_then(|line| line.split_once('{')?.1.rsplit_once('}'));
        let names = labels.iter().flat_map(|(labels, _)| labels.split(',').filter_map(|label| label.split('=').next()));
        let labels = names.filter(|label| *label != "le").map(str::to_owned).collect();
        Metric { name: name.to_owned(), kind: kind.to_owned(), labels, help: help.to_owned() }
    });
    described.collect()
}

#[test]
fn every_metric_is_written_with_its_help_and_labels() {
    let text = sample();
    assert_eq!(metrics().len(), text.lines().filter(|line| line.starts_with("# TYPE ")).count());
    for line in [
        "powersweep_tasks{experiment=\"a\\\"b\",state=\"open\"} 3",
        "powersweep_eta_seconds{experiment=\"a\\\"b\"} 1.5",
        "powersweep_slots{state=\"idle\"} 3",
        "powersweep_failures_total{kind=\"memory\"} 1",
        "powersweep_commit_seconds_bucket{le=\"0.0025\"} 0",
        "powersweep_commit_seconds_bucket{le=\"0.005\"} 1",
        "powersweep_commit_seconds_bucket{le=\"+Inf\"} 2",
        "powersweep_commit_seconds_sum 60.003",
        "powersweep_request_seconds_count{request=\"submit\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn only_names_of_this_machine_are_answered() {
    for host in ["localhost", "localhost:9464", "127.0.0.1:9464", "[::1]:9464", "[::1]"] {
        assert!(is_loopback(host), "{host}");
    }
    for host in ["", "evil.example", "evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1:9464"] {
        assert!(!is_loopback(host), "{host}");
    }
}
