//! Time of EASY as a WebAssembly module against the built-in EASY, in paired runs.
//!
//! Each round simulates both one after the other and takes the best of a few repeats of each. The bench prints the best times
//! and the median over the rounds of the module's time over the built-in rule's time: with the memory of the example, and with
//! 17 pages, which a module in Rust has without a smaller stack. The jobs are the first 3,000 of logs in the folder
//! `POWERSWEEP_TRACES`; without it they are generated. The goal is a ratio of 10. `--test` runs one short round.
#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use powersweep_engine::wasm::Module;
use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, components, simulate};

use timing::best_s;

const EASY: &str = include_str!("../../sdk/examples/easy.wat");

const LOGS: [(&str, i64); 3] =
    [("CTC-SP2-1996-3.1-cln", 430), ("SDSC-BLUE-2000-4.2-cln", 1152), ("CEA-Curie-2011-2.1-cln", 93_312)];

const JOBS: usize = 3_000;

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats) = if short { (1, 1) } else { (7, 3) };
    for (name, procs, workload) in workloads() {
        for pages in [1, 17] {
            let text = EASY.replace("\"memory\") 1)", &format!("\"memory\") {pages})"));
            let built_in = spec(procs, "easy");
            let mut own = spec(procs, "wasm");
            own.choice_mut(Role::Backfill).set("wasm_module", Value::Text("easy.wasm".to_owned())).unwrap();
            own.name_module([1; 32]);
            own.place_module(Arc::new(Module::new("easy.wasm", &wat::parse_str(&text).unwrap()).unwrap()));
            let (mut ratios, mut best) = (Vec::new(), (f64::MAX, f64::MAX));
            for _ in 0..rounds {
                let theirs = best_s(repeats, || simulated(&built_in, &workload, 50)) / 50.0;
                let ours = best_s(repeats, || simulated(&own, &workload, 5)) / 5.0;
                ratios.push(ours / theirs);
                best = (best.0.min(theirs), best.1.min(ours));
            }
            ratios.sort_by(f64::total_cmp);
            println!(
                "{name:24} {pages:2} pages: built-in {:6.2} ms, module {:7.2} ms; median ratio {:.1} (goal: 10)",
                best.0 * 1e3,
                best.1 * 1e3,
                ratios[ratios.len() / 2],
            );
        }
    }
}

/// Name, procs of the machine, jobs.
fn workloads() -> Vec<(String, i64, Workload)> {
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from) else {
        let mut spec = SimSpec::new();
        spec.choice_mut(Role::Source).set("synthetic_jobs_count", Value::Int(JOBS as i64)).unwrap();
        let workload = workload::build(&spec, None).unwrap();
        let procs = i64::from(workload.native_procs.unwrap());
        return vec![("generated".to_owned(), procs, workload)];
    };
    let read = |(name, procs): (&str, i64)| {
        let mut spec = SimSpec::new();
        let mut source = Choice::new(components::find(Role::Source, "swf").unwrap());
        source.set("log", Value::Text(name.to_owned())).unwrap();
        spec.choose(source);
        let text = text(&traces.join(format!("{name}.swf.gz")));
        let mut workload = workload::build(&spec, Some(&swf::parse(&text, name).unwrap())).unwrap();
        workload.jobs.truncate(JOBS);
        (name.to_owned(), procs, workload)
    };
    LOGS.into_iter().map(read).collect()
}

fn spec(procs: i64, backfill: &str) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).unwrap();
    spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("drop".to_owned())).unwrap();
    spec.choose(Choice::new(components::find(Role::Backfill, backfill).unwrap()));
    spec
}

/// The clock of processor time moves every few milliseconds.
fn simulated(spec: &SimSpec, workload: &Workload, times: u32) {
    for _ in 0..times {
        simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap();
    }
}

fn text(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}
