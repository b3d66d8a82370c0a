//! Speed of the queue order `formula` against built-in orders that it equals, in paired runs.
//!
//! Each round simulates the built-in order and its formula one after the other and takes the best of a few repeats of
//! each. The bench prints the median over the rounds of formula jobs/s over built-in jobs/s: under EASY, whose passes
//! take most of the time, and without backfilling. Logs come from the folder `POWERSWEEP_TRACES`; without it the
//! workload is generated. F1 must keep a third of its speed. Times are processor times if the system reports them (Linux),
//! so that other programs have little influence. `--test` runs one short round. The name of an order
//! restricts the orders.
#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::io::Read;
use std::path::{Path, PathBuf};

use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Measured, Role, SimSpec, Value, components, simulate};

use timing::best_s;

const LOGS: [(&str, i64); 3] =
    [("CTC-SP2-1996-3.1-cln", 430), ("SDSC-BLUE-2000-4.2-cln", 1152), ("CEA-Curie-2011-2.1-cln", 93_312)];

/// Order, its formula, and the least share of its speed.
const ORDERS: [(&str, &str, &str); 3] = [
    (
        "f1",
        "log10(max(estimate_s, 1)) * procs + 870 * log10(max(submit_s - first_submit_s, 1))",
        " (must be at least 0.333)",
    ),
    ("sjf", "estimate_s", ""),
    ("wfp3", "-((wait_s / max(estimate_s, 1)) ^ 3 * procs)", ""),
];

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats) = if short { (1, 1) } else { (7, 3) };
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    for (name, procs, workload) in workloads() {
        let jobs = workload.jobs.len() as f64;
        for backfill in ["easy", "none"] {
            for (order, formula, target) in ORDERS.into_iter().filter(|o| only.as_ref().is_none_or(|only| o.0 == only))
            {
                let built_in = spec(procs, backfill, order, None);
                let own = spec(procs, backfill, "formula", Some(formula));
                let (mut ratios, mut best) = (Vec::new(), (f64::MAX, f64::MAX));
                for _ in 0..rounds {
                    let theirs = best_s(repeats, || simulated(&built_in, &workload));
                    let ours = best_s(repeats, || simulated(&own, &workload));
                    ratios.push(theirs / ours);
                    best = (best.0.min(theirs), best.1.min(ours));
                }
                ratios.sort_by(f64::total_cmp);
                println!(
                    "{name:24} {backfill} {order:4}: built-in {:5.2} M jobs/s, formula {:5.2} M jobs/s; median ratio \
                     {:.3}{target}",
                    jobs / best.0 / 1e6,
                    jobs / best.1 / 1e6,
                    ratios[ratios.len() / 2],
                );
            }
        }
    }
}

/// Name, procs of the machine, jobs.
fn workloads() -> Vec<(String, i64, Workload)> {
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from) else {
        let mut spec = SimSpec::new();
        spec.choice_mut(Role::Source).set("synthetic_jobs_count", Value::Int(50_000)).unwrap();
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
        (name.to_owned(), procs, workload::build(&spec, Some(&swf::parse(&text, name).unwrap())).unwrap())
    };
    LOGS.into_iter().map(read).collect()
}

fn spec(procs: i64, backfill: &str, order: &str, formula: Option<&str>) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).unwrap();
    spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("drop".to_owned())).unwrap();
    spec.choose(Choice::new(components::find(Role::Backfill, backfill).unwrap()));
    let mut order = Choice::new(components::find(Role::Order, order).unwrap());
    if let Some(formula) = formula {
        order.set("formula", Value::Text(formula.to_owned())).unwrap();
    }
    spec.choose(order);
    spec
}

fn simulated(spec: &SimSpec, workload: &Workload) -> Measured {
    simulate(spec, workload, &Limits::NONE, &mut Details::default()).unwrap()
}

fn text(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}
