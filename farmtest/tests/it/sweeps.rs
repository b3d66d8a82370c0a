//! Manifests of the tests, and their rows directly from the engine.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use powersweep_engine::{Details, Limits, simulate, workload};
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::{jobs, series, tasks};

/// A log of a few jobs.
pub(crate) const TINY_LOG: &[u8] = b"; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
3 6 -1 30 1 -1 -1 1 40 -1 1 1 1 1 1 1 -1 -1
";

/// Tasks on [`TINY_LOG`], with these optional tables.
pub(crate) fn on_a_log(name: &str, tables: &[&str]) -> String {
    format!(
        r#"
version = 1
name = "{name}"
tables = {tables:?}
[workloads.w]
source = "swf"
log = "tiny"
interarrival_factor = {{ from = 0.5, to = 1.5, step = 0.1 }}
[platforms.p]
procs = 4
[policies.q]
queue_order = ["fcfs", "sjf"]
"#
    )
}

pub(crate) fn digests(manifest: &Manifest) -> BTreeMap<String, Digest> {
    manifest.logs().into_iter().map(|log| (log.log, Digest::of(TINY_LOG))).collect()
}

/// The expected rows of `tasks`, `jobs` and `series`, by a plain loop over the sweep.
pub(crate) fn expected(manifest: &str) -> (RecordBatch, RecordBatch, RecordBatch) {
    let manifest = Manifest::parse("test.toml", manifest).expect("the test's manifest is right");
    let digests = digests(&manifest);
    let sweep = Sweep::new(manifest, digests).expect("the digests are given");
    let log = workload::swf::parse(TINY_LOG, "tiny").expect("the log is right");
    let (mut task_rows, mut job_rows) = (tasks::Builder::new(), jobs::Builder::new());
    let mut series_rows = series::Builder::new();
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    for index in 0..sweep.index_count() {
        let Some(spec) = sweep.task(index) else { continue };
        let built = workload::build(&spec.sim, Some(&log)).expect("a workload");
        let summary = simulate(&spec.sim, &built, &Limits::NONE, &mut details).expect("a summary");
        let run = RunFacts {
            attempt: 1,
            worker: String::new(),
            started_at: Micros(0),
            wall_ms: 0.0,
            engine_ms: 0.0,
            parse_ms: 0.0,
        };
        task_rows.push(&spec, &built.counts, &summary, &run);
        job_rows.push(&spec, details.jobs.as_deref().unwrap_or_default());
        series_rows.push(&spec, details.series.as_deref().unwrap_or_default());
    }
    (task_rows.finish(), job_rows.finish(), series_rows.finish())
}
