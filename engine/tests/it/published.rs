//! Comparison with published schedules of EASY (Gaussier, Glesser, Reis & Trystram, SC'15): all start times must be equal.
use std::collections::BTreeMap;

use powersweep_engine::{JobRecord, Limits, Summary};

use crate::specs::simulate;
use sha2::{Digest, Sha256};

use crate::logs;
use crate::specs::Build;

/// One published schedule.
struct Case {
    name: &'static str,
    procs: i64,
    estimates: &'static str,
    jobs: usize,
}

const CASES: [Case; 4] = [
    Case { name: "KTH-SP2", procs: 100, estimates: "user", jobs: 28_481 },
    Case { name: "KTH-SP2", procs: 100, estimates: "exact", jobs: 28_481 },
    Case { name: "SDSC-SP2", procs: 128, estimates: "user", jobs: 54_006 },
    Case { name: "SDSC-SP2", procs: 128, estimates: "exact", jobs: 54_006 },
];

fn run(case: &Case, order: &str, log: &powersweep_engine::workload::swf::SwfLog) -> (Summary, Vec<JobRecord>) {
    let spec = Build::log()
        .text("event_order", order)
        .text("arrival_ties", "job_id")
        .text("estimates", case.estimates)
        .int("procs", case.procs)
        .0;
    let mut jobs = Vec::new();
    let summary = simulate(&spec, &logs::workload(&spec, log), &Limits::NONE, Some(&mut jobs)).unwrap();
    assert_eq!(jobs.len(), case.jobs);
    (summary, jobs)
}

/// SHA-256 of the lines `job_id,start` sorted by job id.
fn starts_sha256(jobs: &[JobRecord]) -> String {
    let starts: BTreeMap<i64, f64> = jobs.iter().map(|job| (job.job_id, job.start_s)).collect();
    let text: String = starts.iter().map(|(id, start)| format!("{id},{start}\n")).collect();
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn every_published_start_is_equal() {
    let folder = logs::folder();
    let mut compared = 0;
    for case in &CASES {
        let file = folder.join(format!("../published-schedules/{}.{}.swf.gz", case.name, case.estimates));
        let log = logs::read(file);
        let (_, jobs) = run(case, "submit-first", &log);
        let starts: BTreeMap<i64, f64> = jobs.iter().map(|job| (job.job_id, job.start_s)).collect();
        let differences = log
            .records
            .iter()
            .filter(|record| {
                compared += 1;
                starts[&record.id] != record.submit_s + record.wait_s
            })
            .count();
        assert_eq!(differences, 0, "{} {}: {differences} starts differ", case.name, case.estimates);
    }
    assert_eq!(compared, 164_974);
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn aggregates_of_the_published_schedules_are_equal() {
    let folder = logs::folder();
    let metrics = std::fs::read_to_string(folder.join("../published-schedules/metrics.csv")).unwrap();
    let mut rows = 0;
    for line in metrics.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (name, estimates, order) = (fields[0], fields[1], fields[2]);
        if order == "published" {
            continue;
        }
        let case = CASES.iter().find(|c| c.name == name && c.estimates == estimates).unwrap();
        let log = logs::read(folder.join(format!("../published-schedules/{name}.{estimates}.swf.gz")));
        let (summary, jobs) = run(case, order, &log);
        assert_eq!(starts_sha256(&jobs), fields[12], "{name} {estimates} {order}");
        for (metric, ours, column) in [
            ("mean wait", summary.wait_s_mean, 5),
            ("greatest wait", summary.wait_s_max, 6),
            ("bsld 10", summary.bsld_tau10s_mean, 7),
            ("bsld 600", summary.bsld_tau600s_mean, 8),
            ("utilization", summary.utilization_installed.unwrap(), 9),
            ("makespan", summary.makespan_s, 10),
        ] {
            let theirs: f64 = fields[column].parse().unwrap();
            let is_equal = (ours - theirs).abs() <= 1e-9 * theirs;
            assert!(is_equal, "{name} {estimates} {order} {metric}: {ours}, not {theirs}");
        }
        rows += 1;
    }
    assert_eq!(rows, 4);
}
