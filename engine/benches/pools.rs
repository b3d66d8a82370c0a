//! Speed of `easy` and `conservative` on a machine with one partition against the machine without pools, in paired runs.
//!
//! Each round simulates both, one after the other, and takes the best of a few repeats of each. The bench prints the median over
//! the rounds of jobs/s with one partition over jobs/s without. Logs come from the folder `POWERSWEEP_TRACES`; without it the bench
//! is skipped. Times are processor times if the system reports them (Linux). `--test` runs one short round.
#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::io::Read;
use std::path::{Path, PathBuf};

use powersweep_engine::workload::needs::NeedsOfRecord;
use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Measured, Role, SimSpec, Value, components, simulate};

use timing::best_s;

const LOGS: [(&str, u32); 3] =
    [("CTC-SP2-1996-3.1-cln", 338), ("SDSC-BLUE-2000-4.2-cln", 1152), ("CEA-Curie-2011-2.1-cln", 93_312)];

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats) = if short { (1, 1) } else { (5, 3) };
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from) else {
        println!("skipped: POWERSWEEP_TRACES is not set");
        return;
    };
    for (log, procs) in LOGS {
        let workload = workload(&traces, log, procs);
        let jobs = workload.jobs.len() as f64;
        for backfill in ["easy", "conservative"] {
            let (plain, pooled) = (spec(procs, backfill, false), spec(procs, backfill, true));
            assert_eq!(simulated(&plain, &workload), simulated(&pooled, &workload), "the schedules are equal");
            let (mut ratios, mut best) = (Vec::new(), (f64::MAX, f64::MAX));
            for _ in 0..rounds {
                let without_s = best_s(repeats, || simulated(&plain, &workload));
                let with_s = best_s(repeats, || simulated(&pooled, &workload));
                ratios.push(without_s / with_s);
                best = (best.0.min(without_s), best.1.min(with_s));
            }
            ratios.sort_by(f64::total_cmp);
            println!(
                "{log:24} {backfill:12}: without pools {:5.2} M jobs/s, one partition {:5.2} M jobs/s; median ratio {:.3}",
                jobs / best.0 / 1e6,
                jobs / best.1 / 1e6,
                ratios[ratios.len() / 2],
            );
        }
    }
}

/// The mean wait (s).
fn simulated(spec: &SimSpec, workload: &Workload) -> f64 {
    match simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap() {
        Measured::Jobs(summary) => summary.wait_s_mean,
        Measured::Queues(_) => unreachable!("the policy is of jobs"),
    }
}

fn spec(procs: u32, backfill: &str, pooled: bool) -> SimSpec {
    let mut spec = SimSpec::new();
    let mut source = Choice::new(components::find(Role::Source, "swf").unwrap());
    source.set("log", Value::Text("bench".to_owned())).unwrap();
    spec.choose(source);
    spec.choose(Choice::new(components::find(Role::Backfill, backfill).unwrap()));
    let (rules, text) = (Role::Rules, |text: &str| Value::Text(text.to_owned()));
    spec.choice_mut(rules).set("wide_jobs", text("drop")).unwrap();
    if pooled {
        spec.choice_mut(rules).set("partition_from", text("partition")).unwrap();
        spec.choice_mut(Role::Platform).set("partition_procs", Value::Reals(vec![f64::from(procs)])).unwrap();
    } else {
        spec.choice_mut(Role::Platform).set("procs", Value::Int(i64::from(procs))).unwrap();
    }
    spec
}

/// The workload of a log, with all jobs in partition 1.
fn workload(traces: &Path, log: &str, procs: u32) -> Workload {
    let file = std::fs::File::open(traces.join(format!("{log}.swf.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let parsed = swf::parse(&bytes, log).unwrap();
    let mut workload = workload::build(&spec(procs, "easy", false), Some(&parsed)).unwrap();
    let needs = |record| NeedsOfRecord { record, partition: 1, gpus: 0, proc_memory_kib: 0 };
    workload.needs = (1..=parsed.records.len() as u64).map(needs).collect();
    workload
}
