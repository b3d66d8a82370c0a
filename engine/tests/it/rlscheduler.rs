//! Comparison with the published mean bounded slowdowns of Zhang, Dai, He, Bao & Xie (SC'20): five orders, without and with
//! backfilling, on ten sequences of 1,024 jobs of each log.
use powersweep_engine::{Limits, Role};

use crate::logs;
use crate::specs::{Build, simulate};

/// Positions of the first records of the sequences.
const BEGINS: [i64; 10] = [1981, 2714, 2756, 3316, 4022, 4299, 5228, 7085, 7762, 8850];

/// A log with its published numbers, in the order of [`ORDERS`]: without, then with backfilling.
struct Case {
    /// File of the log in the folder of the logs.
    file: &'static str,
    procs: i64,
    /// Requested time of a record without one, if it is not the run time.
    unrequested_s: Option<f64>,
    published: [[f64; 5]; 2],
}

const CASES: [Case; 3] = [
    Case {
        file: "lublin_256",
        procs: 256,
        unrequested_s: None,
        published: [[7273.77, 19753.53, 22274.74, 277.35, 258.37], [235.82, 133.87, 307.23, 73.31, 75.07]],
    },
    Case {
        file: "SDSC-SP2-1998-4.2-cln",
        procs: 128,
        unrequested_s: Some(0.0),
        published: [[1727.54, 3000.88, 1848.45, 2680.55, 1232.06], [1595.12, 1083.12, 548.01, 2167.84, 1098.22]],
    },
    Case {
        file: "HPC2N-2002-2.2-cln",
        procs: 240,
        unrequested_s: None,
        published: [[297.18, 426.99, 609.77, 157.71, 118.01], [127.38, 97.39, 175.12, 122.04, 71.95]],
    },
];

/// First come first served, WFP3, UNICEP, shortest first and F1. The scores of WFP3 and UNICEP in the study's code count no waits, and
/// take -1 s as the requested time of a cancelled job without one.
const ORDERS: [&str; 5] = [
    "submit_s",
    "((submit_s + 1) / if(requested_s > 0, requested_s, -1))^3 * procs",
    "(submit_s + 1) / (log2(procs + 1e-15) * if(requested_s > 0, requested_s, -1))",
    "requested_s",
    "log10(max(requested_s, 0.1)) * procs + 870 * log10(max(submit_s, 0.1))",
];

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn every_published_number_is_equal_to_its_last_digit() {
    for case in CASES {
        let log = logs::read(logs::folder().join(format!("{}.swf.gz", case.file)));
        let policy = |order: &str, overtake: bool| {
            let build = match case.unrequested_s {
                Some(unrequested_s) => Build::log().real("missing_estimate_s", unrequested_s),
                None => Build::log(),
            };
            build
                .text("arrival_ties", "job_id")
                .text("overrun", "run-on")
                .real("missing_run_s", 10.0)
                .int("procs", case.procs)
                .text("event_order", "submit-first-held")
                .choose(Role::Order, "formula")
                .text("formula", order)
                .choose(Role::Backfill, "kept-head")
                .flag("overtake", overtake)
                .flag("reservation_inclusive", false)
        };
        for (overtake, published) in [false, true].into_iter().zip(case.published) {
            for (order, published) in ORDERS.into_iter().zip(published) {
                let slowdowns = BEGINS.into_iter().map(|begin| {
                    let spec = policy(order, overtake).int("record_from", begin).int("record_to", begin + 1024).0;
                    simulate(&spec, &logs::workload(&spec, &log), &Limits::NONE, None).unwrap().bsld_tau10s_mean
                });
                let mean = slowdowns.sum::<f64>() / BEGINS.len() as f64;
                println!("{} {order} {overtake}: {mean:.4}, published {published}", case.file);
                assert!((mean - published).abs() < 0.005, "{} {order} {overtake}: {mean}", case.file);
            }
        }
    }
}
