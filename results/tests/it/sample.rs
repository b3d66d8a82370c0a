//! Sample rows: those of a sweep of two policies, several thresholds and two sources.

use std::sync::Arc;

use powersweep_engine::components::find;
use powersweep_engine::spec::{Choice, Role, Value};
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Account, JobRecord, Measured, SeriesPoint, SimSpec, Summary};
use powersweep_experiments::TaskSpec;
use powersweep_results::identity::{Micros, RunFacts};
use uuid::Uuid;

/// A pseudo-random number below 1 from an index, so that columns look like measurements.
fn noise(i: u64) -> f64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1_u64 << 53) as f64
}

fn component(role: Role, name: &str) -> Choice {
    Choice::new(find(role, name).expect("registered"))
}

/// Task `i`: even ones read a log and lower gears, odd ones are generated and run at the top gear.
pub(crate) fn task(i: u64) -> TaskSpec {
    let mut sim = SimSpec::new();
    sim.seed = i + 1;
    let even = i.is_multiple_of(2);
    if even {
        let mut log = component(Role::Source, "swf");
        log.set("log", Value::Text("CTC-SP2-1996-3.1-cln".to_owned())).expect("a text");
        sim.choose(log);
        let mut gears = component(Role::GearRule, "bsld");
        gears.set("bsld_threshold", Value::Real(1.5 + noise(i))).expect("in range");
        gears
            .set("wq_threshold", Value::Real(if i.is_multiple_of(4) { f64::INFINITY } else { 4.0 }))
            .expect("in range");
        sim.choose(gears);
    }
    TaskSpec {
        experiment: Arc::from("sample"),
        index: i,
        task_id: Uuid::from_u128(u128::from(i) << 64 | 0x0000_0000_0000_0000_8000_0000_0000_0000 | u128::from(i)),
        workload: Arc::from(if even { "CTC" } else { "synthetic" }),
        platform: Arc::from("original"),
        policy: Arc::from(if even { "bsld" } else { "no-dvfs" }),
        digest: even.then(|| [0xab; 32].into()),
        log: even.then(|| Arc::from("CTC-SP2-1996-3.1-cln")),
        sim,
    }
}

/// The metrics of task `i`.
pub(crate) fn summary(i: u64) -> Measured {
    Measured::Jobs(Box::new(Summary {
        jobs_count: 4982,
        measured_jobs_count: 4982,
        events_count: 9964 + i,
        machine_procs: 430,
        makespan_s: 2.5e6 + 1e5 * noise(i + 1),
        wait_s_mean: 7786.753 * noise(i + 2),
        wait_s_p95: 4e4 * noise(i + 3),
        bsld_tau600s_mean: 1.0 + 4.0 * noise(i + 4),
        slowdown_mean: i.is_multiple_of(2).then(|| 1.0 + 90.0 * noise(i + 5)),
        reduced_count: i % 4000,
        gear_jobs_count: vec![i, 0, 1, 2, 3, 4000 - i % 4000],
        gear_busy_proc_s: (0..6).map(|g| 1e7 * noise(i * 6 + g)).collect(),
        utilization_installed: Some(noise(i + 6)),
        energy_total_j: 9e8 * noise(i + 7),
        energy_computational_j: 8e8 * noise(i + 8),
        power_peak_w: 430.0 * noise(i + 9),
        energy_residual: 1e-16 * noise(i + 10),
        ..Summary::default()
    }))
}

/// The rules' counts of task `i`.
pub(crate) fn counts(i: u64) -> RuleCounts {
    RuleCounts { records_count: 77_222, sliced_out_count: 72_222, dropped_run_count: i % 3, ..RuleCounts::default() }
}

/// How task `i` ran: tasks start 1.5 s apart from 2023-11-14T22:13:20Z on.
pub(crate) fn run(i: u64) -> RunFacts {
    RunFacts {
        attempt: 1,
        worker: format!("node{}", i % 8),
        started_at: Micros(1_700_000_000_000_000 + 1_500_000 * i.cast_signed()),
        wall_ms: 4.0 + noise(i + 11),
        engine_ms: 3.0 + noise(i + 12),
        parse_ms: 0.0,
    }
}

/// `n` jobs.
pub(crate) fn jobs(n: u64) -> Vec<JobRecord> {
    let job = |i: u64| {
        let (submit_s, run_s) = (100.0 * i as f64, 1.0 + 1000.0 * noise(i).floor());
        JobRecord {
            job_id: i.cast_signed() + 20_000,
            submit_s,
            start_s: submit_s + 0.5,
            finish_s: submit_s + 0.5 + run_s,
            run_s,
            run_top_s: run_s,
            requested_s: 2.0 * run_s,
            predicted_s: i.is_multiple_of(2).then_some(1.5 * run_s),
            corrections_count: i.is_multiple_of(2).then_some(u32::try_from(i % 3).expect("small")),
            procs: 1 + u32::try_from(i % 64).expect("small"),
            node_list: i.is_multiple_of(2).then(|| "0-3 7".to_owned()),
            gear_index: u8::try_from(i % 6).expect("small"),
            energy_j: run_s * 3.0,
            backfilled: i.is_multiple_of(3),
            killed: false,
            priority: 1,
            job_class: 1,
            suspended_s: 0.0,
        }
    };
    (0..n).map(job).collect()
}

/// `n` points of a series by week.
pub(crate) fn series(n: i64) -> Vec<SeriesPoint> {
    let point = |i: i64| SeriesPoint {
        series: "sample",
        level: (i > 0).then_some(i),
        x: 604_800.0 * i as f64,
        value: noise(i.cast_unsigned()),
    };
    (0..n).map(point).collect()
}

/// Accounts under this many signals; every second one is a price.
pub(crate) fn accounts(n: u64) -> Vec<Account> {
    let account = |i: u64| {
        let (carbon, price) = (i.is_multiple_of(2).then(|| noise(i)), (!i.is_multiple_of(2)).then(|| noise(i)));
        Account {
            signal: "grid".to_owned(),
            signal_index: i,
            quantity: if carbon.is_some() { "carbon" } else { "price" },
            read_by_policy: i == 1,
            signal_file: "grid.csv".to_owned(),
            zone: carbon.map(|_| "DE".to_owned()),
            signal_column: None,
            anchor: Some("2023-01-01T00:00:00Z".to_owned()),
            facility_energy_j: 1.2e9,
            pue_mean: Some(1.2),
            supply_efficiency: 0.9,
            emissions_g: carbon,
            embodied_emissions_g: carbon,
            cost: price,
            currency: price.map(|_| "EUR".to_owned()),
            battery_policy: Some("double".to_owned()),
            battery_kwh: Some(noise(i)),
            battery_charge_w: None,
            battery_threshold: Some(noise(i)),
            battery_upper_threshold: None,
            battery_window: Some(i),
            battery_initial_share: None,
            battery_efficiency: Some(1.0),
            battery_charged_j: Some(noise(i)),
            battery_discharged_j: None,
            battery_end_j: Some(0.0),
            signal_energy_mean: Some(noise(i)),
            signal_time_mean: Some(noise(i + 1)),
            jobs_emissions_g: carbon,
            at_once_emissions_g: carbon,
            jobs_cost: price,
            at_once_cost: price,
            window_emissions_g: carbon,
            window_cost: price,
            estimated_share: None,
        }
    };
    (0..n).map(account).collect()
}
