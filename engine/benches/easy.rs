//! Speed of EASY against a yardstick in C++, on real logs, in paired runs.
//!
//! Each round runs the yardstick and the engine one after the other and takes the best of a few repeats of each. The
//! bench prints the median over the rounds of engine jobs/s over yardstick jobs/s. The engine's time is the whole call
//! of `simulate`, with energy meter and summary metrics and without a table of jobs. Logs come from the folder
//! `POWERSWEEP_TRACES`, the yardstick's source from `POWERSWEEP_YARDSTICK` (else `../shared/bench/easy_yardstick.cpp`
//! beside the repository). Without logs the bench is skipped; without the yardstick it prints no ratios. `--test` runs
//! one short round; `--only-easy` and `--only-bsld` run the engine alone, for profilers. A name restricts the logs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, components, simulate};

const LOGS: [(&str, i64, f64); 6] = [
    ("KTH-SP2-1996-2.1-cln", 100, 0.85),
    ("SDSC-SP2-1998-4.2-cln", 128, 0.85),
    ("CTC-SP2-1996-3.1-cln", 430, 0.85),
    ("CTC-SP2-1996-3.1-cln", 338, 0.85),
    ("SDSC-BLUE-2000-4.2-cln", 1152, 0.85),
    ("CEA-Curie-2011-2.1-cln", 93_312, 0.9),
];

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats) = if short { (1, 1) } else { (9, 7) };
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from) else {
        println!("skipped: POWERSWEEP_TRACES is not set");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let source = std::env::var_os("POWERSWEEP_YARDSTICK")
        .map_or_else(|| root.join("../shared/bench/easy_yardstick.cpp"), PathBuf::from);
    let alone = std::env::args().find(|arg| arg.starts_with("--only-"));
    let yardstick = if alone.is_some() { None } else { compile(&source) };
    if yardstick.is_none() && alone.is_none() {
        println!("no yardstick: {} cannot be compiled with g++; ratios are left out", source.display());
    }
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    for (log, procs, target) in LOGS.into_iter().filter(|l| only.as_ref().is_none_or(|o| l.0.contains(o.as_str()))) {
        let text = text(&traces.join(format!("{log}.swf.gz")));
        let easy = spec(procs);
        let bsld = bsld(easy.clone());
        let workload = workload::build(&easy, Some(&swf::parse(&text, log).unwrap())).unwrap();
        if let Some(alone) = &alone {
            let spec = if alone == "--only-bsld" { &bsld } else { &easy };
            println!("{log}: {:.2} ms", engine_s(spec, &workload, if short { 1 } else { 100 }) * 1e3);
            continue;
        }
        let (mut easy_ratios, mut bsld_ratios, mut best) = (Vec::new(), Vec::new(), (f64::MAX, f64::MAX, f64::MAX));
        for _ in 0..rounds {
            let theirs = yardstick.as_ref().map_or(f64::NAN, |program| yardstick_s(program, &text, procs, repeats));
            let ours = engine_s(&easy, &workload, repeats);
            let ours_bsld = engine_s(&bsld, &workload, repeats);
            easy_ratios.push(theirs / ours);
            bsld_ratios.push(theirs / ours_bsld);
            best = (best.0.min(theirs), best.1.min(ours), best.2.min(ours_bsld));
        }
        let jobs = workload.jobs.len() as f64;
        println!(
            "{log:24} {procs:6} procs {jobs:7} jobs: yardstick {:5.2} M jobs/s, EASY {:5.2} M jobs/s, BSLD {:5.2} M jobs/s; \
             median ratio EASY {:.3} (target {target}), BSLD {:.3} (target 0.5)",
            jobs / best.0 / 1e6,
            jobs / best.1 / 1e6,
            jobs / best.2 / 1e6,
            median(&mut easy_ratios),
            median(&mut bsld_ratios),
        );
    }
}

fn spec(procs: i64) -> SimSpec {
    let mut spec = SimSpec::new();
    let mut source = Choice::new(components::find(Role::Source, "swf").unwrap());
    source.set("log", Value::Text("bench".to_owned())).unwrap();
    spec.choose(source);
    spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).unwrap();
    // Like the yardstick, drops records without run time and jobs that are wider than the machine.
    spec.choice_mut(Role::Rules).set("min_run_s", Value::Real(1.0)).unwrap();
    spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("drop".to_owned())).unwrap();
    spec
}

fn bsld(mut spec: SimSpec) -> SimSpec {
    let mut rule = Choice::new(components::find(Role::GearRule, "bsld").unwrap());
    rule.set("bsld_threshold", Value::Real(2.0)).unwrap();
    spec.choose(rule);
    spec.choice_mut(Role::Backfill).set("extra_procs", Value::Bool(false)).unwrap();
    spec
}

/// Best time of a whole `simulate` call (s).
fn engine_s(spec: &SimSpec, workload: &Workload, repeats: u32) -> f64 {
    (0..repeats)
        .map(|_| {
            let begin = Instant::now();
            std::hint::black_box(simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap());
            begin.elapsed().as_secs_f64()
        })
        .fold(f64::MAX, f64::min)
}

/// Best time of the yardstick's simulation alone (s).
fn yardstick_s(program: &Path, text: &[u8], procs: i64, repeats: u32) -> f64 {
    let mut child = Command::new(program)
        .args([&procs.to_string(), "user", &repeats.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let words: Vec<&str> = output.split_whitespace().collect();
    let at = words.iter().position(|&word| word == "best_s").unwrap();
    words[at + 1].parse().unwrap()
}

fn compile(source: &Path) -> Option<PathBuf> {
    let program = std::env::temp_dir().join(format!("powersweep-yardstick-{}", std::process::id()));
    let status = Command::new("g++").args(["-O2", "-std=c++17", "-o"]).arg(&program).arg(source).status().ok()?;
    status.success().then_some(program)
}

fn text(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
