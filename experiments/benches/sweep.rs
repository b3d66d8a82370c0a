//! Time to read a manifest and to decode, encode and skip tasks.

use std::collections::BTreeMap;

use divan::{Bencher, black_box};
use powersweep_experiments::{Digest, Manifest, Sweep, manifests};

fn main() {
    divan::main();
}

/// 10^9 indices, with excluded blocks.
const HUGE: &str = r#"
version = 1
name = "huge"
seeds = { from = 1, count = 1_000_000 }
[workloads.w]
[platforms.p]
size_factor = { from = 0.5, to = 10.4, step = 0.1 }
[policies.a]
queue_order = ["fcfs", "sjf", "widest", "wfp3", "f1"]
backfill = ["none", "easy"]
[[exclude]]
size_factor = { from = 0.5, to = 5.4, step = 0.1 }
queue_order = "sjf"
[[exclude]]
seed = [1, 500_000, 1_000_000]
"#;

/// A design with three ranges.
fn design(kind_and_count: &str) -> String {
    format!(
        r#"
version = 1
name = "design"
[designs.knobs]
{kind_and_count}
[workloads.w]
[platforms.p]
size_factor = {{ from = 0.5, to = 2, scale = "log", design = "knobs" }}
[policies.a]
gear_rule = "bsld"
bsld_threshold = {{ from = 1.5, to = 3, design = "knobs" }}
wq_threshold = {{ values = [0, 4, "unlimited"], design = "knobs" }}
"#
    )
}

fn text(name: &str) -> String {
    match name {
        "huge" => HUGE.to_owned(),
        "design" => design("kind = \"sobol\"\nseed = 1\ncount = 1_000_000_000"),
        // 40,960 points, which are compared.
        "compared" => design("kind = \"saltelli\"\ncount = 8_192"),
        _ => manifests::find(name).expect("a built-in manifest").to_owned(),
    }
}

fn sweep(name: &str) -> Sweep {
    let manifest = Manifest::parse(name, &text(name)).expect("a correct manifest");
    let digests: BTreeMap<String, Digest> =
        manifest.logs().into_iter().map(|log| (log.log.clone(), Digest::of(log.log.as_bytes()))).collect();
    Sweep::new(manifest, digests).expect("a sweep")
}

const NAMES: [&str; 5] = ["quickstart", "etinski2010", "huge", "design", "compared"];

#[divan::bench(args = NAMES)]
fn parse(name: &str) -> Manifest {
    Manifest::parse(name, &text(name)).expect("a correct manifest")
}

#[divan::bench(args = NAMES)]
fn decode(bencher: Bencher<'_, '_>, name: &str) {
    let sweep = sweep(name);
    let mut index = 0_u64;
    bencher.bench_local(|| {
        index = (index + 7_919_777) % sweep.index_count();
        let index = sweep.next_included(index).or_else(|| sweep.next_included(0)).expect("not all are excluded");
        black_box(sweep.task(index))
    });
}

#[divan::bench(args = NAMES)]
fn encode(bencher: Bencher<'_, '_>, name: &str) {
    let sweep = sweep(name);
    let index = sweep.next_included(sweep.index_count() / 2).expect("not the last block");
    let task = sweep.task(index).expect("included");
    bencher.bench(|| sweep.index_of(black_box(&task)));
}

#[divan::bench(args = NAMES)]
fn skip(bencher: Bencher<'_, '_>, name: &str) {
    let sweep = sweep(name);
    bencher.bench(|| sweep.next_included(black_box(0)));
}
