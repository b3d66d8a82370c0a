//! Tasks of OpenDC that the tests write, whole and with changed bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use powersweep_inputs::joblogs::{Format, Procs, Settings, TimeUnit, read};
use powersweep_inputs::ledger::Rule as _;

use crate::joblogs::mutations::{self, Dice};
use crate::joblogs::{check, defaults};

pub(crate) fn file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    packed(columns, Compression::UNCOMPRESSED)
}

fn packed(columns: Vec<(&str, ArrayRef)>, compression: Compression) -> Vec<u8> {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).expect("columns of one length");
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a schema");
    writer.write(&batch).expect("a batch");
    writer.close().expect("a file");
    bytes
}

fn tasks() -> Vec<u8> {
    file(vec![
        ("id", Arc::new(Int32Array::from(vec![7, 8, 9]))),
        ("submission_time", Arc::new(Int64Array::from(vec![1_704_067_205_500, 1_704_067_200_000, 1_704_067_201_000]))),
        ("duration", Arc::new(Int64Array::from(vec![1500, 2000, 0]))),
        ("cpu_count", Arc::new(Int32Array::from(vec![16, 0, 1]))),
        ("gpu_count", Arc::new(Int32Array::from(vec![Some(2), None, Some(1)]))),
        ("mem_capacity", Arc::new(Int64Array::from(vec![32_768, 1000, 0]))),
    ])
}

#[test]
fn a_task_is_a_job() {
    let log = read(&tasks(), "tasks.parquet", &defaults(Format::OpenDc)).expect("reads");
    check(&log);
    let jobs: Vec<_> = log.records.iter().map(|job| (job.id, job.submit_s, job.run_s, job.procs_allocated)).collect();
    assert_eq!(jobs, [(9, 0.0, 0.0, 1), (7, 4.5, 1.5, 16)]);
    // 32,768 MB are 32,000,000 KiB; 0 stands for none.
    let memories: Vec<_> = log.records.iter().map(|job| job.memory_requested_kib).collect();
    assert_eq!(memories, [-1, 2_000_000]);
    let dropped: Vec<_> = log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows, count.first_line)).collect();
    assert_eq!((dropped, log.facts.unix_start_s), (vec![("no_procs", 1, 2)], Some(1_704_067_201)));
}

/// A file of a few kilobytes: each row has the same megabyte.
#[test]
fn names_that_a_dictionary_repeats_are_bounded() {
    let rows = 100;
    let number = |value: i64| Arc::new(Int64Array::from(vec![value; rows])) as ArrayRef;
    let long = "x".repeat(1 << 20);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringArray::from(vec![&*long; rows]))),
        ("submission_time", number(1_704_067_200_000)),
        ("duration", number(1500)),
        ("cpu_count", number(16)),
    ];
    let bytes = packed(columns, Compression::ZSTD(ZstdLevel::default()));
    assert!(bytes.len() < 256 << 10, "{} bytes", bytes.len());
    let read = read(&bytes, "tasks.parquet", &defaults(Format::OpenDc)).map(drop);
    let error = read.expect_err("refused").to_string();
    assert!(error.contains("64 MiB of text in the column id"), "{error}");
}

#[test]
fn what_is_wrong_is_said() {
    let refused = |bytes: &[u8], change: fn(&mut Settings), message: &str| {
        let mut settings = defaults(Format::OpenDc);
        change(&mut settings);
        let error = read(bytes, "tasks.parquet", &settings).expect_err(message).to_string();
        assert!(error.starts_with("tasks.parquet: ") && error.contains(message), "{message}: {error}");
    };
    let tasks = tasks();
    refused(b"id,submission_time\n", |_| {}, "the file is not Parquet");
    refused(&tasks[..tasks.len() - 5], |_| {}, "the file is damaged, or not Parquet");
    refused(&tasks, |settings| settings.procs = Procs::Nodes, "the tasks have no nodes");
    refused(&tasks, |settings| settings.columns = Some("id".to_owned()), "`columns` does not fit the file");
    refused(
        &tasks,
        |settings| settings.time_unit = Some(TimeUnit::Hours),
        "row 1: 1704067205500 is no time of submission",
    );
    let number = |name: &'static str, value: i64| (name, Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    let all = || vec![number("id", 1), number("submission_time", 0), number("duration", 1), number("cpu_count", 1)];
    refused(&file(all()), |_| {}, "the time of submission in row 1 is 1970-01-01 in milliseconds: set it to \"s\"");
    for at in 1..4 {
        let mut columns = all();
        let name = columns.remove(at).0;
        refused(&file(columns), |_| {}, &format!("there is no column {name}, which OpenDC's tasks have"));
    }
    let mut columns = all();
    columns[3] = ("cpu_count", Arc::new(StringArray::from(vec!["1"])));
    columns[1] = number("submission_time", 1_704_067_200_000);
    refused(&file(columns), |_| {}, "the column cpu_count has values of the type Utf8, not whole numbers");
    let ms = Settings { time_unit: Some(TimeUnit::Milliseconds), ..defaults(Format::OpenDc) };
    let log = read(&file(all()), "tasks.parquet", &ms).expect("times from 0");
    assert_eq!((log.facts.unix_start_s, log.records[0].submit_s), (None, 0.0));
}

#[test]
fn changed_bytes() {
    changed_bytes_of(Format::OpenDc, &tasks());
}

/// Reads a file with changed bytes.
pub(crate) fn changed_bytes_of(format: Format, file: &[u8]) {
    mutations::run(format, |dice: &mut Dice| {
        let mut bytes = file.to_vec();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(6) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = 0xff,
                2 => bytes[at] ^= 1 << dice.below(8),
                _ => bytes[at] = dice.next() as u8,
            }
        }
        bytes
    });
}
