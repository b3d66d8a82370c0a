//! DuckDB, Polars, pandas and DataFusion read the written dataset, each in its usual way.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrow::array::RecordBatch;
use powersweep_results::failures::Failure;
use powersweep_results::identity::Micros;
use powersweep_results::part::{self, Footer};
use powersweep_results::{accounts, failures, jobs, layout, series};
use uuid::Uuid;

use crate::roundtrip::tasks_batch;
use crate::sample;

const MODULES: &str = "import datafusion, duckdb, pandas, polars, pyarrow";

/// A Python with the readers: `POWERSWEEP_PYTHON`, else `python3`.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("POWERSWEEP_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let found = Command::new(&python).args(["-c", MODULES]).output().is_ok_and(|out| out.status.success());
    found.then_some(python)
}

fn write(root: &Path, folder: &object_store::path::Path, batch: &RecordBatch) {
    let id = Uuid::now_v7();
    let footer = Footer::new("sample", id, batch.num_rows() as u64);
    let bytes = part::encode(&batch.schema(), std::slice::from_ref(batch), &footer).expect("encodes");
    let folder = root.join(folder.as_ref());
    std::fs::create_dir_all(&folder).expect("a writable folder");
    std::fs::write(folder.join(layout::part_name(id)), bytes).expect("written");
}

/// The dataset that `tests/readers.py` expects.
fn write_dataset(root: &Path) {
    write(root, &layout::tasks_dir("sample"), &tasks_batch(0, 40));
    write(root, &layout::tasks_dir("sample"), &tasks_batch(40, 60));
    let mut builder = jobs::Builder::new();
    builder.push(&sample::task(0), &sample::jobs(5));
    builder.push(&sample::task(1), &sample::jobs(2));
    write(root, &layout::table_dir("sample", "jobs"), &builder.finish());
    let mut builder = series::Builder::new();
    builder.push(&sample::task(0), &sample::series(4));
    write(root, &layout::table_dir("sample", "series"), &builder.finish());
    let mut builder = accounts::Builder::new();
    builder.push(&sample::task(0), &sample::accounts(3));
    write(root, &layout::table_dir("sample", "accounts"), &builder.finish());
    let mut builder = failures::Builder::new();
    let (worker, failure_kind, message) = ("node1".to_owned(), "deadline".to_owned(), "over 60 s".to_owned());
    let failure = Failure { attempt: 1, worker, failed_at: Micros(1_700_000_000_000_000), failure_kind, message };
    builder.push(&sample::task(2), &[failure]);
    write(root, &layout::table_dir("sample", "failures"), &builder.finish());
}

#[test]
fn duckdb_polars_pandas_and_datafusion_read_the_dataset() {
    let Some(python) = python() else {
        println!(
            "skipped: no Python with the readers; pip install -r results/tests/requirements.txt, and set \
             POWERSWEEP_PYTHON if it is not python3"
        );
        return;
    };
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let data = tempfile::tempdir().expect("a temporary folder");
    write_dataset(data.path());
    let out = Command::new(python)
        .arg(here.join("tests/readers.py"))
        .arg(data.path())
        .arg(here.join("tests/it/schema.txt"))
        .output()
        .expect("Python ran a moment ago");
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    println!("{stdout}");
    assert!(out.status.success(), "{stdout}{stderr}");
}
