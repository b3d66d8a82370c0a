//! Every file of `POWERSWEEP_JOBLOGS` is read with the ledger that is expected, or refused with a sentence that is right about
//! it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use powersweep_inputs::joblogs::{Format, Procs, Settings, TimeUnit, read};
use powersweep_inputs::ledger::Rule as _;

use crate::joblogs::{XDMOD, check, defaults, utc};

/// The folder of the files.
fn folder() -> PathBuf {
    let folder = std::env::var_os("POWERSWEEP_JOBLOGS").filter(|folder| !folder.is_empty());
    folder.expect("POWERSWEEP_JOBLOGS names a folder, or is not set").into()
}

fn bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|ending| ending != "gz") {
        return bytes;
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

fn files(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(below)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = format!("{below}{}", entry.file_name().to_str().expect("UTF-8"));
        match entry.file_type().expect("a type").is_dir() {
            true => files(folder, &format!("{name}/"), found),
            false => found.push(name),
        }
    }
    found.sort();
}

/// What a reading must give: the ledger, or a part of the message.
enum Expected {
    Ledger(&'static str),
    Refused(&'static str),
}

/// The ledger in one line.
fn outcome(path: &Path, settings: &Settings) -> Result<String, String> {
    let log = read(&bytes(path), "file", settings).map_err(|error| error.to_string())?;
    check(&log);
    let rules = log.ledger.rules().map(|(rule, count)| format!(", {} {}", rule.name(), count.rows)).collect::<String>();
    Ok(format!("{} = {} + {}{rules}", log.ledger.read, log.ledger.kept, log.ledger.dropped()))
}

fn compare(file: &str, expected: &Expected, found: Result<String, String>) {
    match expected {
        Expected::Ledger(ledger) => assert_eq!(found.as_deref(), Ok(*ledger), "{file}"),
        Expected::Refused(part) => {
            let message = found.expect_err(file);
            assert!(message.contains(part), "{file}: {message}");
        }
    }
}

#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn dumps_of_slurm() {
    let folder = folder();
    let no_header = Settings { columns: Some(XDMOD.to_owned()), ..utc(Format::Slurm) };
    let expected: BTreeMap<&str, Expected> = [
        (
            "slurm2sql_test-data1.csv",
            Expected::Ledger("5 = 2 + 3, step 3, end_from_elapsed 1, energy_shared 2, power_from_energy 2"),
        ),
        (
            "slurm2sql_test-data2.csv",
            Expected::Ledger("5 = 2 + 3, step 3, end_from_elapsed 1, energy_shared 2, power_from_energy 2"),
        ),
        ("slurm2sql_test-data3.csv", Expected::Refused("there is no column State, which says whether a job has ended")),
        ("xdmod_accounting-logs-with-job-arrays.log", Expected::Ledger("6 = 6 + 0, array_range 5, renumbered 5")),
        ("xdmod_accounting-logs.log", Expected::Ledger("4 = 3 + 1, no_procs 1")),
        ("xdmod_non-ended-job-state.log", Expected::Ledger("2 = 0 + 2, not_ended 2")),
        ("xdmod_phillips.log.gz", Expected::Ledger("4285 = 4046 + 239, never_started 239")),
        ("xdmod_robertson-filter-test.log", Expected::Ledger("1 = 1 + 0, sizes_differ 1")),
        ("xdmod_unknown-job-state.log", Expected::Ledger("2 = 0 + 2, unknown_state 2")),
        ("xdmod_utf8-multibyte-chars.log", Expected::Ledger("1 = 1 + 0")),
    ]
    .into();
    let mut found = Vec::new();
    files(&folder, "slurm/", &mut found);
    for name in &found {
        let file = name.trim_start_matches("slurm/");
        let settings = if file.starts_with("xdmod") { &no_header } else { &utc(Format::Slurm) };
        compare(file, &expected[file], outcome(&folder.join(name), settings));
        // Neither the columns nor the zone of times is guessed.
        let message = outcome(&folder.join(name), &defaults(Format::Slurm)).expect_err(file);
        let part = match file {
            "slurm2sql_test-data3.csv" => "there is no column State",
            _ if file.starts_with("xdmod") => "line 1 does not name the columns",
            _ => "line 2: the time \"2019-07-31T22:29:14\" has no offset",
        };
        assert!(message.contains(part), "{file}: {message}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn accounting_logs_of_pbs() {
    let folder = folder();
    let read = |name: &str| outcome(&folder.join("accounting-other").join(name), &defaults(Format::Pbs));
    let ledger = "9 = 9 + 0, suspended 3, limit_unknown 1, size_requested 1, renumbered 1";
    assert_eq!(read("xdmod_pbs.log").as_deref(), Ok(ledger));
    for name in ["xdmod_lsf.log", "xdmod_sge.log", "xdmod_uge.log"] {
        let message = read(name).expect_err(name);
        assert!(message.contains("line 1: no record of PBS"), "{message}");
    }
}

#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn tables_of_alibaba() {
    let folder = folder();
    let gpus = Settings { procs: Procs::Gpus, ..defaults(Format::Alibaba) };
    let expected: [(&str, &Settings, Expected); 10] = [
        (
            "alibaba_openb_pod_list_default.csv.gz",
            &defaults(Format::Alibaba),
            Expected::Ledger("8152 = 7221 + 931, not_ended 34, never_started 897, rounded_up 5889, renumbered 7221"),
        ),
        (
            "alibaba_openb_pod_list_default.csv.gz",
            &gpus,
            Expected::Ledger(
                "8152 = 6171 + 1981, not_ended 34, never_started 897, no_procs 1050, rounded_up 2562, renumbered 6171",
            ),
        ),
        (
            "alibaba_openb_pod_list_gpuspec33.csv.gz",
            &gpus,
            Expected::Ledger(
                "8152 = 6171 + 1981, not_ended 34, never_started 897, no_procs 1050, rounded_up 2562, renumbered 6171",
            ),
        ),
        ("alibaba_openb_pod_list_multigpu50.csv.gz", &gpus, Expected::Refused("sizes of pods without times")),
        ("alibaba_openb_node_list_all_node.csv.gz", &gpus, Expected::Refused("the file lists nodes, not jobs")),
        ("alibaba_spot2026_node_info_df.csv.gz", &gpus, Expected::Refused("the file lists nodes, not jobs")),
        ("alibaba_spot2026_job_info_excerpt.csv", &gpus, Expected::Ledger("4 = 4 + 0")),
        ("alibaba_spot2026_job_info_excerpt.csv", &defaults(Format::Alibaba), Expected::Ledger("4 = 4 + 0")),
        (
            "alibaba_2025_disaggregated_DLRM_trace.csv.gz",
            &gpus,
            Expected::Ledger("23871 = 3218 + 20653, not_ended 8878, no_submit 2603, no_procs 9172, renumbered 3218"),
        ),
        (
            "alibaba_2025_disaggregated_DLRM_trace.csv.gz",
            &defaults(Format::Alibaba),
            Expected::Ledger("23871 = 12390 + 11481, not_ended 8878, no_submit 2603, renumbered 12390"),
        ),
    ];
    let mut found = Vec::new();
    files(&folder, "gpu/", &mut found);
    for name in &found {
        assert!(expected.iter().any(|(known, ..)| format!("gpu/{known}") == *name), "{name}");
    }
    for (name, settings, expected) in &expected {
        compare(name, expected, outcome(&folder.join("gpu").join(name), settings));
    }
}

/// GAIA's tables state hours, and one of them seconds.
#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn tables_of_gaia() {
    let folder = folder();
    let of = |name: &str, unit: TimeUnit| {
        let columns = Some("submit=arrival_time,run=length,cpus=cpus".to_owned());
        let settings = Settings { columns, time_unit: Some(unit), ..defaults(Format::Csv) };
        let log = read(&bytes(&folder.join("gaia").join(name)), name, &settings).expect("reads");
        check(&log);
        let last = log.records.last().map_or(0.0, |job| job.submit_s / 3600.0);
        let longest = log.records.iter().map(|job| job.run_s / 3600.0).fold(0.0, f64::max);
        (log.ledger.kept, log.ledger.dropped(), last.floor(), longest.floor())
    };
    assert_eq!(of("azure-100k.csv.gz", TimeUnit::Hours), (99_988, 0, 8759.0, 71.0));
    assert_eq!(of("mustang-trace-2015-100k.csv.gz", TimeUnit::Hours), (100_000, 0, 8755.0, 15.0));
    assert_eq!(of("pai-100k.csv.gz", TimeUnit::Hours), (99_998, 0, 8759.0, 71.0));
    assert_eq!(of("pai_1k.csv.gz", TimeUnit::Seconds), (1000, 0, 167.0, 59.0));
}

#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn tasks_of_opendc() {
    let folder = folder();
    let mut found = Vec::new();
    files(&folder, "opendc/", &mut found);
    let expected: BTreeMap<&str, &str> = [
        ("bitbrains-small/tasks.parquet", "50 = 50 + 0"),
        ("single_task/tasks.parquet", "1 = 1 + 0"),
        ("steam_surf_tasks.parquet", "194917 = 194917 + 0"),
        ("surf_week/tasks.parquet", "6295 = 6295 + 0"),
        ("trace-v2.0/tasks.parquet", "4 = 4 + 0"),
        ("trace-v2.1/tasks.parquet", "4 = 4 + 0"),
        ("workflow_example/tasks.parquet", "4 = 4 + 0, dependencies_ignored 3"),
    ]
    .into();
    for name in &found {
        let file = name.trim_start_matches("opendc/");
        let found = outcome(&folder.join(name), &defaults(Format::OpenDc));
        let expected = match expected.get(file) {
            Some(ledger) => Expected::Ledger(ledger),
            None if file.ends_with("fragments.parquet") => {
                Expected::Refused("the file has fragments of tasks, not tasks")
            }
            None if file.starts_with("failures/") => Expected::Refused("the file has failures of machines, not tasks"),
            None => Expected::Refused("the time of submission in row 1 is 1970-01-20 in milliseconds"),
        };
        compare(file, &expected, found);
    }
    let seconds = Settings { time_unit: Some(TimeUnit::Seconds), procs: Procs::Gpus, ..defaults(Format::OpenDc) };
    let found = outcome(&folder.join("opendc/small_gpu/tasks.parquet"), &seconds);
    assert_eq!(found.as_deref(), Ok("25 = 25 + 0"));
}

/// Against sums that awk computes from the file.
#[test_with::env(POWERSWEEP_JOBLOGS)]
#[test]
fn the_work_of_a_real_log_is_kept() {
    let folder = folder();
    let settings = Settings { columns: Some(XDMOD.to_owned()), ..utc(Format::Slurm) };
    let log = read(&bytes(&folder.join("slurm/xdmod_phillips.log.gz")), "phillips", &settings).expect("reads");
    let work = log.records.iter().map(|job| job.run_s * f64::from(job.procs_allocated)).sum::<f64>();
    let zeros = log.records.iter().filter(|job| job.run_s == 0.0).count();
    assert_eq!((log.records.len(), work, zeros), (4046, 42_364_758.0, 22));
    assert_eq!(log.details.iter().filter(|detail| detail.gpus == Some(2)).count(), 2);
}
