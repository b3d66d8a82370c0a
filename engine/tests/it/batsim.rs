//! Workloads of Batsim's own tests and experiments, and the schedules that Batsim made of one of them.
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::workload::{self, batsim};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, components, simulate};

/// The folder of Batsim's files.
fn folder() -> PathBuf {
    let folder = std::env::var_os("POWERSWEEP_JOBLOGS").filter(|folder| !folder.is_empty());
    PathBuf::from(folder.expect("POWERSWEEP_JOBLOGS names a folder, or is not set")).join("batsim")
}

fn bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut plain = Vec::new();
    match path.extension().is_some_and(|ending| ending == "gz") {
        true => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap(),
        false => (&bytes[..]).read_to_end(&mut plain).unwrap(),
    };
    plain
}

fn read(path: &Path) -> SwfLog {
    batsim::FORMAT.read(&bytes(path), &path.display().to_string()).unwrap_or_else(|error| panic!("{error}"))
}

fn spec(set: &[(Role, &str, Value)]) -> SimSpec {
    let mut sim = SimSpec::new();
    sim.choose(Choice::new(components::find(Role::Source, "batsim").unwrap()));
    for (role, name, value) in set {
        sim.choice_mut(*role).set(name, value.clone()).unwrap();
    }
    sim
}

#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn every_workload_of_batsim_is_read() {
    let folder = folder();
    // Jobs, and those whose run time depends on a network or on traces.
    let expected: BTreeMap<&str, (usize, usize)> = [
        ("example_workload_hpc_seed1_jobs250.json", (250, 0)),
        ("test_batsim_paper_workload_seed1.json.gz", (800, 0)),
        ("test_compo_sequence_delay.json", (23, 0)),
        ("test_delays.json", (10, 0)),
        ("test_energy_minimal_load0.json", (2, 0)),
        ("test_energy_minimal_load100.json", (2, 0)),
        ("test_energy_minimal_load50.json", (2, 2)),
        ("test_extra_data_desired_allocation.json", (10, 0)),
        ("test_homo_ptasks.json", (6, 4)),
        ("test_long_workload.json", (18, 5)),
        ("test_one_delay_job.json", (1, 0)),
        ("test_same_submit_time.json", (18, 0)),
        ("test_usage_trace.json", (24, 22)),
        ("test_various_profile_types.json", (11, 8)),
        ("test_walltime.json", (44, 0)),
    ]
    .into();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.join("workloads")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let log = read(&path);
        let unknown = log.records.iter().filter(|record| record.run_s < 0.0).count();
        assert_eq!((log.records.len(), unknown), expected[name], "{name}");
        assert_eq!(log.header.get("Note").is_some(), unknown > 0, "{name}");
        assert!(log.header.procs().is_some(), "{name}");
        // The rules count the jobs that they drop.
        let built = workload::build(&spec(&[]), Some(&log));
        match built {
            Ok(workload) => {
                assert_eq!(workload.jobs.len(), log.records.len() - unknown, "{name}");
                assert_eq!(workload.counts.dropped_run_count, unknown as u64, "{name}");
            }
            Err(error) => {
                assert!(unknown == log.records.len() && error.to_string().contains("run time"), "{name}: {error}")
            }
        }
        seen += 1;
    }
    assert_eq!(seen, expected.len());
}

/// The authors state how long each profile runs on hosts of 1 Gflop/s.
#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn run_times_are_those_that_the_authors_expect() {
    let folder = folder();
    let mut compared = 0;
    for name in ["test_compo_sequence_delay.json", "test_homo_ptasks.json"] {
        let path = folder.join("workloads").join(name);
        let log = read(&path);
        let text: serde_json::Value = serde_json::from_slice(&bytes(&path)).unwrap();
        for (job, record) in text["jobs"].as_array().unwrap().iter().zip(&log.records) {
            let expected = text["profiles"][job["profile"].as_str().unwrap()]["expected_execution_time"].as_f64();
            if record.run_s >= 0.0 {
                assert_eq!(Some(record.run_s), expected, "{job}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 25);
}

#[test]
fn the_speed_of_processors_divides_operations_and_not_delays() {
    let text = br#"{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 2, "profile": "both"}],
        "profiles": {"cpu": {"type": "ptask", "cpu": [3e9, 6e9]}, "wait": {"type": "delay", "delay": 4},
        "both": {"type": "composed", "seq": ["cpu", "wait"]}}}"#;
    let log = batsim::FORMAT.read(text, "w.json").unwrap();
    for (speed, run_s) in [(1.0, 10.0), (2.0, 7.0), (0.5, 16.0)] {
        let sim = spec(&[(Role::Source, "batsim_speed_gflops", Value::Real(speed))]);
        assert_eq!(workload::build(&sim, Some(&log)).unwrap().jobs[0].run_s, run_s, "{speed}");
    }
}

/// The values of a column of a CSV file without quotes.
fn column(path: &Path, name: &str) -> Vec<String> {
    let text = String::from_utf8(bytes(path)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let at = lines.next().unwrap().iter().position(|column| column == name).unwrap();
    lines.map(|mut line| line.swap_remove(at)).collect()
}

/// 801 jobs on 32 hosts, under EASY and conservative backfilling of the schedulers that Batsim had in 2016. These take other
/// decisions than ours for a tenth of the jobs, and end at the same instant.
#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn most_starts_are_those_of_batsim() {
    let folder = folder().join("evalys/medium_late");
    let log = read(&folder.join("medium_late.json.gz"));
    assert_eq!((log.records.len(), log.header.procs()), (801, Some(32)));
    for backfill in ["easy", "conservative"] {
        let mut sim = spec(&[]);
        sim.choose(Choice::new(components::find(Role::Backfill, backfill).unwrap()));
        let workload = workload::build(&sim, Some(&log)).unwrap();
        let mut details = Details { jobs: Some(Vec::new()), series: None, ..Details::default() };
        simulate(&sim, &workload, &Limits::NONE, &mut details).unwrap();
        let jobs = details.jobs.unwrap();
        let out = folder.join(backfill).join("out_jobs.csv.gz");
        let starts = column(&out, "job_id").into_iter().zip(column(&out, "starting_time"));
        let starts: BTreeMap<i64, f64> =
            starts.map(|(id, start)| (id.parse().unwrap(), start.parse().unwrap())).collect();
        let differ = jobs.iter().filter(|job| (job.start_s - starts[&job.job_id]).abs() > 1e-5).count();
        let last = jobs.iter().map(|job| job.finish_s).fold(0.0, f64::max);
        println!("{backfill}: {differ} of {} starts differ, makespan {last}", jobs.len());
        assert!(differ <= 80, "{backfill}: {differ}");
        assert!((last - 16_088.51).abs() < 1e-5, "{backfill}: {last}");
    }
}
