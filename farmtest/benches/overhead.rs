//! Cost of the farm compared with a bare loop: `powersweep run` of a sweep on two slots, against two threads that
//! simulate the same specs with logs parsed once and write no rows. Alternates paired runs; prints wall times and the
//! median ratio.
//!
//!     cargo build --release && cargo bench -p powersweep-farmtest --bench overhead
//!
//! Needs POWERSWEEP_TRACES. The binary is POWERSWEEP_BIN, else the one beside this bench.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use powersweep_engine::{Details, Limits, simulate, workload};
use powersweep_experiments::{Manifest, Sweep, manifests};
use powersweep_farmtest::bench_binary;
use powersweep_inputs::library::Library;

const THREADS: usize = 2;
const ROUNDS: usize = 5;

/// Sixteen slices of 5,000 jobs of each log: the beginning of the first, and the distance of the beginnings.
const SLICES: [(&str, u32, u32); 5] = [
    ("CTC", 2000, 4500),
    ("SDSC", 2000, 4000),
    ("SDSCBlue", 5000, 10_000),
    ("LLNLThunder", 5000, 7000),
    ("LLNLAtlas", 4000, 2000),
];

/// The tasks of etinski2010, each on sixteen slices: 2,000.
fn slices(etinski: &str) -> String {
    let mut text = etinski.replace("name = \"etinski2010\"", "name = \"slices\"");
    for (label, from, step) in SLICES {
        let block = text.find(&format!("[workloads.{label}]")).expect("a workload of the paper");
        let slice = block + text[block..].find("job_number_from").expect("it is a slice");
        let end = slice + text[slice..].find("wide_jobs").expect("the key after the slice");
        let to = from + 5000;
        let many = format!(
            "job_number_from = {{ from = {from}, count = 16, step = {step} }}\n\
             job_number_to = {{ from = {to}, count = 16, step = {step} }}\n\
             zip = [[\"job_number_from\", \"job_number_to\"]]\n"
        );
        text.replace_range(slice..end, &many);
    }
    text
}

fn main() {
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES") else {
        println!("skipped: POWERSWEEP_TRACES is not set");
        return;
    };
    let Some(binary) = bench_binary() else {
        println!("skipped: no powersweep binary; run `cargo build --release` first");
        return;
    };
    let library = Library::new(std::env::split_paths(&traces).collect(), None);
    let etinski = manifests::find("etinski2010").expect("it is shipped");
    let slices = slices(etinski);
    for (name, text, allowed, fixed_s) in [("etinski2010", etinski, 1.25, 0.5), ("slices", &slices, 1.1, 0.0)] {
        compare(&binary, &library, name, text, allowed, fixed_s);
    }
}

fn compare(binary: &Path, library: &Library, name: &str, text: &str, allowed: f64, fixed_s: f64) {
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let bare_s = bare(library, text);
        let farm_s = farm(binary, name, text);
        let ratio = (farm_s - fixed_s) / bare_s;
        println!(
            "{name} round {round}: bare loop {bare_s:.3} s, farm {farm_s:.3} s, (farm - {fixed_s} s)/bare {ratio:.3}"
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("{name}: median ratio {:.3}, at most {allowed} wanted", ratios[ROUNDS / 2]);
}

/// Wall seconds of the bare loop, with reading and parsing of the logs.
fn bare(library: &Library, text: &str) -> f64 {
    let began = Instant::now();
    let manifest = Manifest::parse("bench", text).expect("the manifest is correct");
    let mut logs = BTreeMap::new();
    let mut digests = BTreeMap::new();
    for needed in manifest.logs() {
        let bytes = library.load(needed.format, &needed.log, None).expect("the log is in POWERSWEEP_TRACES");
        digests.insert(needed.log.clone(), bytes.digest);
        let log = needed.format.read(&bytes.bytes, &needed.log).expect("the log is well-formed");
        logs.insert(needed.log, Arc::new(log));
    }
    let sweep = Sweep::new(manifest, digests).expect("every log has a digest");
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= sweep.index_count() {
                        return;
                    }
                    let Some(task) = sweep.task(index) else { continue };
                    let log = task.log.as_ref().map(|log| logs[&**log].clone());
                    let jobs = workload::build(&task.sim, log.as_deref()).expect("the slice has jobs");
                    std::hint::black_box(
                        simulate(&task.sim, &jobs, &Limits::NONE, &mut Details::default()).expect("it simulates"),
                    );
                }
            });
        }
    });
    began.elapsed().as_secs_f64()
}

/// Wall seconds of the whole process, from an empty data folder to the last part.
fn farm(binary: &Path, name: &str, text: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = folder.path().join(format!("{name}.toml"));
    std::fs::write(&manifest, text).expect("the folder is writable");
    let began = Instant::now();
    let status = Command::new(binary)
        .args(["run", "--quiet", "--show", "0", "--slots", &THREADS.to_string(), "--data"])
        .arg(folder.path().join("data"))
        .arg(&manifest)
        .stdout(Stdio::null())
        .status()
        .expect("the binary starts");
    assert!(status.success(), "powersweep run failed: {status}");
    began.elapsed().as_secs_f64()
}
