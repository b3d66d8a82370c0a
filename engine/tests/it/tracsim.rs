//! Claims of Zhang et al. 2014, on forty job lists and for two choices of their unpublished parameters.
use powersweep_engine::workload::build as build_workload;
use powersweep_engine::{Limits, Role, SimSpec, Summary, Value};

use crate::specs::{Build, simulate};

const LISTS: u64 = 40;

/// A choice of unpublished parameters: caps (W), idle power over busy power, base times by workload type (s).
struct Reading {
    caps_w: [f64; 4],
    idle_fraction: f64,
    base_s: &'static [f64],
}

const READINGS: [Reading; 2] = [
    Reading { caps_w: [45e3, 35e3, 25e3, 35e3], idle_fraction: 0.3, base_s: &[250.0] },
    Reading { caps_w: [30e3, 45e3, 30e3, 25e3], idle_fraction: 0.1, base_s: &[289.0] },
];

const POLICIES: [&str; 4] = ["pdrc", "knapsack", "power-precedence", "performance-precedence"];
const SIZES: [&str; 3] = ["large", "mixed", "small"];

fn spec(reading: &Reading, sizes: &str, policy: &str, seed: u64) -> SimSpec {
    let knapsack = policy == "knapsack";
    let mut spec = Build(SimSpec::new())
        .choose(Role::Source, "tracsim")
        .text("tracsim_sizes", sizes)
        .set("tracsim_base_s", Value::Reals(reading.base_s.to_vec()))
        .set("gears_ghz", Value::Reals(vec![1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0]))
        .choose(Role::Power, "table")
        .real("idle_fraction", reading.idle_fraction)
        .choose(Role::Order, "priority")
        .choose(Role::Backfill, if knapsack { "knapsack" } else { "within-priority" });
    if policy != "none" {
        spec = spec.choose(Role::Cap, if knapsack { "uniform" } else { policy });
        spec = spec.set("cap_schedule_w", Value::Reals(reading.caps_w.to_vec()));
    }
    if policy == "pdrc" {
        spec = spec.text("pdrc_start", "blind");
    }
    spec.0.seed = seed;
    spec.0
}

fn run(reading: &Reading, sizes: &str, policy: &str) -> Vec<Summary> {
    let simulate = |seed| {
        let spec = spec(reading, sizes, policy, seed);
        let workload = build_workload(&spec, None).unwrap();
        simulate(&spec, &workload, &Limits::NONE, None).unwrap()
    };
    (1..=LISTS).map(simulate).collect()
}

fn mean(runs: &[Summary], of: impl Fn(&Summary) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

#[test]
fn the_claims_hold_on_forty_lists_under_both_readings() {
    for (at, reading) in READINGS.iter().enumerate() {
        for sizes in SIZES {
            let [pdrc, knapsack, power, performance] = POLICIES.map(|policy| run(reading, sizes, policy));
            for (policy, runs) in POLICIES.iter().zip([&pdrc, &knapsack, &power, &performance]) {
                println!(
                    "reading {at} {sizes:>5} {policy:>22}: unused {:+.3} ({:+.2} kWh) violation {:.3} cpu {:.3} ({:.3} held) \
                     turnaround {:.0} s, by priority {:.0} {:.0} {:.0} s, span {:.0} s",
                    mean(runs, |s| s.trapped_unused_share.unwrap()),
                    mean(runs, |s| s.trapped_unused_kwh.unwrap()),
                    mean(runs, |s| s.power_cap_violation_share.unwrap()),
                    mean(runs, |s| s.cpu_utilization.unwrap()),
                    mean(runs, |s| s.cpu_utilization_with_suspended.unwrap()),
                    mean(runs, |s| s.turnaround_s_mean),
                    mean(runs, |s| s.turnaround_s_mean_priority_1.unwrap()),
                    mean(runs, |s| s.turnaround_s_mean_priority_2.unwrap()),
                    mean(runs, |s| s.turnaround_s_mean_priority_3.unwrap()),
                    mean(runs, |s| s.makespan_s),
                );
                let priority = [
                    mean(runs, |s| s.turnaround_s_mean_priority_1.unwrap()),
                    mean(runs, |s| s.turnaround_s_mean_priority_2.unwrap()),
                    mean(runs, |s| s.turnaround_s_mean_priority_3.unwrap()),
                ];
                assert!(priority.is_sorted(), "{sizes} {policy}: {priority:?}");
                for summary in runs {
                    assert!(summary.energy_residual < 1e-9 && summary.watch_residual.unwrap() < 1e-9);
                }
            }
            for runs in [&pdrc, &knapsack, &power] {
                assert!(runs.iter().all(|s| s.power_cap_excess_max_w == Some(0.0)), "the cap is kept");
            }
            let unused = |runs: &[Summary]| mean(runs, |s| s.trapped_unused_share.unwrap());
            assert!(unused(&pdrc) < unused(&knapsack) && unused(&pdrc) < unused(&power), "{sizes}");
            assert!(unused(&performance) < 0.0, "{sizes}");
            let turnaround = |runs: &[Summary]| mean(runs, |s| s.turnaround_s_mean);
            assert!(turnaround(&pdrc) < turnaround(&knapsack) && turnaround(&pdrc) < turnaround(&power), "{sizes}");
        }
    }
}

#[test]
fn the_priority_scheduler_alone_uses_most_nodes_with_small_jobs() {
    let [large, mixed, small] = SIZES.map(|sizes| run(&READINGS[0], sizes, "none"));
    for (sizes, runs) in SIZES.iter().zip([&large, &mixed, &small]) {
        println!(
            "{sizes:>5}: cpu utilization {:.3}, at least 0.75 in {:.3} of the time",
            mean(runs, |s| s.cpu_utilization.unwrap()),
            mean(runs, |s| s.cpu_utilization_high_share.unwrap())
        );
        assert!(runs.iter().all(|s| s.trapped_unused_share.is_none() && s.power_cap_mean_w.is_none()));
        assert!(runs.iter().all(|s| s.turnaround_s_mean_priority_1.is_some()));
    }
    let cpu = |runs: &[Summary]| mean(runs, |s| s.cpu_utilization.unwrap());
    assert!(cpu(&small) > cpu(&mixed) && cpu(&small) > cpu(&large));
}
