//! Tables with measured powers: PM100 and F-DATA, as Parquet and as CSV, and tables of any origin.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, ListBuilder, PrimitiveBuilder, StringArray};
use arrow::array::{DictionaryArray, TimestampMicrosecondArray, TimestampNanosecondArray};
use arrow::datatypes::{Int32Type, Int64Type};
use powersweep_inputs::joblogs::{Format, JobLog, Procs, Settings, read};
use powersweep_inputs::ledger::Rule as _;

use crate::joblogs::parquet::{changed_bytes_of, file};
use crate::joblogs::{check, defaults, utc};

/// 2020-05-05 10:00 UTC (s).
const DAY_S: i64 = 1_588_672_800;

fn lists(lists: &[&[i64]]) -> ArrayRef {
    let mut builder = ListBuilder::new(PrimitiveBuilder::<Int64Type>::new());
    for list in lists {
        builder.values().append_slice(list);
        builder.append(true);
    }
    Arc::new(builder.finish())
}

/// Times of PM100: with a zone, as nanoseconds.
fn instants(seconds: &[i64]) -> ArrayRef {
    let times = seconds.iter().map(|second| (DAY_S + second) * 1_000_000_000).collect::<Vec<_>>();
    Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))
}

fn texts(texts: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

fn numbers(numbers: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(numbers.to_vec()))
}

/// Three jobs of PM100: two nodes for 50 s with three samples, one node without samples, one node with samples of 0.
fn pm100() -> Vec<(&'static str, ArrayRef)> {
    let states: DictionaryArray<Int32Type> = ["COMPLETED", "FAILED", "COMPLETED"].into_iter().collect();
    vec![
        ("job_id", numbers(&[5, 6, 7])),
        ("user_id", numbers(&[70, 71, 70])),
        ("group_id", numbers(&[3, 3, 3])),
        ("partition", texts(&["1", "1", "2"])),
        ("num_nodes_alloc", numbers(&[2, 1, 1])),
        ("num_cores_alloc", numbers(&[256, 128, 128])),
        ("num_gpus_alloc", numbers(&[8, 4, 0])),
        ("job_state", Arc::new(states)),
        ("submit_time", instants(&[0, 10, 20])),
        ("eligible_time", instants(&[0, 10, 20])),
        ("start_time", instants(&[30, 40, 50])),
        ("end_time", instants(&[80, 90, 60])),
        ("run_time", numbers(&[50, 50, 10])),
        ("time_limit", texts(&["1440", "INFINITE", "60"])),
        ("node_power_consumption", lists(&[&[1000, 2000, 3000, 9000], &[], &[0]])),
        ("cpu_power_consumption", lists(&[&[1], &[], &[]])),
    ]
}

fn powers(log: &JobLog) -> Vec<Option<f64>> {
    log.details.iter().map(|detail| detail.power_w).collect()
}

fn ledger(log: &JobLog) -> Vec<(&'static str, u64)> {
    log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows)).collect()
}

#[test]
fn jobs_of_pm100() {
    let nodes = Settings { procs: Procs::Nodes, ..defaults(Format::Pm100) };
    let log = read(&file(pm100()), "job_table.parquet", &nodes).expect("reads");
    check(&log);
    let jobs: Vec<_> = log.records.iter().map(|job| (job.id, job.submit_s, job.wait_s, job.run_s)).collect();
    assert_eq!(jobs, [(5, 0.0, 30.0, 50.0), (6, 10.0, 30.0, 50.0), (7, 20.0, 30.0, 10.0)]);
    let sizes: Vec<_> = log.records.iter().map(|job| (job.procs_allocated, job.requested_s, job.status)).collect();
    assert_eq!(sizes, [(2, 86_400.0, 1), (1, -1.0, 0), (1, 3_600.0, 1)]);
    // Samples of 20 s: the third counts for 10 s, the fourth lies behind the end.
    assert_eq!(powers(&log), [Some((1000.0 * 20.0 + 2000.0 * 20.0 + 3000.0 * 10.0) / 50.0), None, None]);
    let samples = log.details[0].power_samples.as_ref().expect("samples");
    assert_eq!((samples.step_s, &samples.watts[..]), (20.0, &[1000.0, 2000.0, 3000.0][..]));
    assert_eq!(ledger(&log), [("no_limit", 1), ("samples_long", 1), ("no_power", 2)]);
    assert_eq!(log.facts.unix_start_s, Some(DAY_S));
    let swf = log.swf("abc");
    assert!(swf.contains("; JobPowerW: 5 1800\n; JobPowerSeriesW: 5 20 1000 2000 3000\n"), "{swf}");
    let gpus = Settings { procs: Procs::Gpus, ..defaults(Format::Pm100) };
    let gpus = read(&file(pm100()), "job_table.parquet", &gpus).expect("reads");
    assert_eq!(gpus.records.iter().map(|job| job.procs_allocated).collect::<Vec<_>>(), [8, 4]);
}

#[test]
fn versions_of_pm100() {
    // An earlier version has one column of powers, and other names of the processors.
    let rename = |(name, array): (&'static str, ArrayRef)| match name {
        "node_power_consumption" => ("power_consumption", array),
        "num_cores_alloc" => ("num_cpus_alloc", array),
        other => (other, array),
    };
    let earlier = |settings: Settings| {
        let columns = pm100().into_iter().map(rename).filter(|(name, _)| !name.starts_with("cpu_power")).collect();
        read(&file(columns), "job_table.parquet", &settings)
    };
    let log = earlier(Settings { procs: Procs::Nodes, ..defaults(Format::Pm100) }).expect("reads");
    assert_eq!(powers(&log)[0], Some(1800.0));
    let error = earlier(defaults(Format::Pm100)).expect_err("no cores").to_string();
    assert!(error.contains("the table has no cpus; jobs have nodes"), "{error}");
    let without = |name: &str| {
        let columns = pm100().into_iter().filter(|(column, _)| *column != name).collect();
        read(&file(columns), "job_table.parquet", &defaults(Format::Pm100)).expect_err(name).to_string()
    };
    assert!(without("end_time").contains("there is no column end_time, which the published table has"));
    let error = without("node_power_consumption");
    assert!(error.contains("the columns are not those of a table of jobs that pm100 has published"), "{error}");
}

/// Two jobs of F-DATA: local times as texts, frequencies in MHz.
fn fdata() -> Vec<(&'static str, ArrayRef)> {
    let times = |first: &str| texts(&[&format!("2021-04-01 {first}:00:00"), &format!("2021-04-01 {first}:30:00")]);
    vec![
        ("jid", texts(&["jid_1", "jid_2"])),
        ("usr", texts(&["usr_1", "usr_2"])),
        ("cnumat", numbers(&[96, 48])),
        ("nnuma", numbers(&[2, 1])),
        ("adt", times("00")),
        ("sdt", times("01")),
        ("edt", times("03")),
        ("elpl", numbers(&[86_400, 7_200])),
        ("econ", Arc::new(Float64Array::from(vec![1_500_000.0, 720_000.0]))),
        ("avgpcon", Arc::new(Float64Array::from(vec![100.0, 100.0]))),
        ("freq_alloc", Arc::new(Int32Array::from(vec![2200, 2000]))),
        ("pclass", texts(&["compute-bound", "memory-bound"])),
        ("exit state", texts(&["completed", "failed"])),
        ("embedding", lists(&[&[1, 2], &[3]])),
    ]
}

#[test]
fn jobs_of_fdata() {
    let tokyo = Settings { procs: Procs::Nodes, timezone: Some("Asia/Tokyo".to_owned()), ..defaults(Format::FData) };
    let log = read(&file(fdata()), "21_04.parquet", &tokyo).expect("reads");
    check(&log);
    assert_eq!(powers(&log), [Some(200.0), Some(100.0)]);
    assert_eq!(log.details.iter().map(|detail| detail.ghz).collect::<Vec<_>>(), [Some(2.2), Some(2.0)]);
    assert_eq!(log.queues, ["compute-bound", "memory-bound"]);
    // 2 nodes of 100 W for two hours are 1.44 MJ, and the table states 1.5 MJ: within 5%.
    assert_eq!(ledger(&log), [("renumbered", 2)]);
    assert_eq!(log.records.iter().map(|job| (job.run_s, job.status)).collect::<Vec<_>>(), [(7200.0, 1), (7200.0, 0)]);
    let error = read(&file(fdata()), "21_04.parquet", &defaults(Format::FData)).expect_err("a zone").to_string();
    assert!(error.contains("set `timezone`"), "{error}");
}

#[test]
fn any_table_may_be_parquet() {
    let columns = vec![
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from(vec![DAY_S * 1_000_000, DAY_S * 1_000_000 + 500_000])) as ArrayRef,
        ),
        ("length", numbers(&[60, 30])),
        ("width", Arc::new(Int32Array::from(vec![Some(3), None]))),
        ("watts", lists(&[&[10, 30], &[5]])),
        ("other", Arc::new(arrow::array::BinaryArray::from_vec(vec![b"x", b"y"]))),
    ];
    let settings = |step: Option<u32>| Settings {
        columns: Some("submit=at,run=length,cpus=width,power_w=watts".to_owned()),
        power_step_s: step,
        ..utc(Format::Csv)
    };
    let log = read(&file(columns.clone()), "jobs.parquet", &settings(None)).expect("reads");
    check(&log);
    assert_eq!((powers(&log), ledger(&log)), (vec![Some(20.0)], vec![("no_procs", 1)]));
    assert_eq!(log.details[0].power_samples, None);
    // The second sample holds from 10 s on.
    let log = read(&file(columns.clone()), "jobs.parquet", &settings(Some(10))).expect("reads");
    assert_eq!(powers(&log), [Some((10.0 * 10.0 + 30.0 * 50.0) / 60.0)]);
    let refused = |change: &str, message: &str| {
        let settings = Settings { columns: Some(change.to_owned()), ..utc(Format::Csv) };
        let error = read(&file(columns.clone()), "jobs.parquet", &settings).expect_err(message).to_string();
        assert!(error.contains(message), "{message}: {error}");
    };
    refused("submit=at,run=length,cpus=other", "the column other has values of the type Binary");
    refused("submit=at,run=watts,cpus=width", "row 1, column \"watts\": \"[10, 30]\" is no time");
    let helios = read(&file(columns.clone()), "a.parquet", &utc(Format::Helios)).expect_err("no CSV").to_string();
    assert!(helios.contains("the file is Parquet, not text"), "{helios}");
    let cut = &file(columns.clone())[..200];
    let error = read(cut, "a.parquet", &settings(None)).expect_err("cut").to_string();
    assert!(error.contains("the file is damaged, or not Parquet"), "{error}");
}

#[test]
fn one_sample_above_all_reason_is_no_measurement() {
    let text = "s,r,n,p\n0,60,1,\"[100, 30000]\"\n1,60,1,\"[100, 300]\"\n2,10,1,\"[100, 30000]\"\n";
    let settings = Settings {
        columns: Some("submit=s,run=r,nodes=n,power_w=p".to_owned()),
        procs: Procs::Nodes,
        power_step_s: Some(30),
        ..defaults(Format::Csv)
    };
    let log = read(text.as_bytes(), "a.csv", &settings).expect("reads");
    assert_eq!(powers(&log), [None, Some(200.0), Some(100.0)]);
    assert_eq!(ledger(&log), [("samples_long", 1), ("implausible_power", 1)]);
}

#[test]
fn samples_of_a_node_need_the_number_of_nodes() {
    let text = "s,r,c,n,p\n0,60,4,2,\"[100, 300]\"\n1,60,4,,\"[100, 300]\"\n";
    let settings = Settings {
        columns: Some("submit=s,run=r,cpus=c,nodes=n,node_power_w=p".to_owned()),
        power_step_s: Some(30),
        ..defaults(Format::Csv)
    };
    let log = read(text.as_bytes(), "a.csv", &settings).expect("reads");
    check(&log);
    assert_eq!((powers(&log), ledger(&log)), (vec![Some(400.0), None], vec![("no_power", 1)]));
    assert_eq!(log.details[0].power_samples.as_ref().expect("samples").watts, [200.0, 600.0]);
}

#[test]
fn changed_bytes_of_pm100() {
    changed_bytes_of(Format::Pm100, &file(pm100()));
}

#[test]
fn changed_bytes_of_fdata() {
    changed_bytes_of(Format::FData, &file(fdata()));
}
