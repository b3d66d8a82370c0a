//! Invariants of every policy, on random workloads over all combinations, and comparison with the reference.
use powersweep_engine::batch::kernel::{JobRows, Simulation};
use powersweep_engine::batch::platform::Machine;
use powersweep_engine::batch::policy::batch::{Batch, event_order};
use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::workload::{Job, Workload};
use powersweep_engine::{JobRecord, Limits, Role, SimSpec, Value};

use crate::specs::simulate;
use proptest::prelude::*;

use crate::etinski::{ATLAS, CTC, SDSC, Slice, THUNDER};
use crate::golden::workload;
use crate::reference::{self, Ran, Rules};
use crate::specs::Build;
use crate::{logs, specs};

const ORDERS: [&str; 6] = ["fcfs", "sjf", "widest", "wfp3", "f1", "formula"];
const BACKFILLS: [&str; 6] = ["none", "easy", "easy-extra", "conservative", "kept-head", "kept-head-alone"];
const GEAR_RULES: [&str; 5] = ["top", "bsld", "bsld-4", "bsld-kept", "bsld-fixed"];
const EVENT_ORDERS: [&str; 4] = ["batch", "submit-first", "submit-first-held", "finish-first"];

/// An expression over the job and the queue. The reference has it, too.
pub(crate) const FORMULA: &str = "if(queue_length > 3, area_proc_s, -wait_s) * (1 + free_procs / machine_procs)";

/// With this queue order; a formula gets its expression.
pub(crate) fn ordered(build: Build, order: &str) -> Build {
    let build = build.choose(Role::Order, order);
    if order == "formula" { build.text("formula", FORMULA) } else { build }
}

/// One combination of components.
fn build(order: &str, backfill: &str, gear_rule: &str, events: &str, procs: i64) -> SimSpec {
    let kind = backfill.trim_end_matches("-extra").trim_end_matches("-alone");
    let mut build = ordered(specs::Build::log(), order).choose(Role::Backfill, kind);
    build = build.text("event_order", events).int("procs", procs);
    if kind == "easy" {
        build = build.flag("extra_procs", backfill == "easy-extra");
    }
    if backfill == "kept-head-alone" {
        build = build.flag("overtake", false);
    }
    if gear_rule != "top" {
        build = build.choose(Role::GearRule, "bsld").real("bsld_threshold", 1.5);
        let head = match gear_rule {
            "bsld-kept" => "until-early-end",
            "bsld-fixed" => "fixed",
            _ => "renew",
        };
        build = build.text("head_gear", head);
        if gear_rule == "bsld-4" {
            build = build.real("wq_threshold", 4.0);
        }
    }
    build.0
}

pub(crate) fn run(spec: &SimSpec, workload: &Workload) -> Vec<JobRecord> {
    let mut rows = Vec::new();
    let summary = simulate(spec, workload, &Limits::NONE, Some(&mut rows)).unwrap();
    assert!(summary.energy_residual < 1e-9, "energy is not the sum of jobs and idle: {}", summary.energy_residual);
    assert!(summary.little_residual < 1e-9, "Little's law: {}", summary.little_residual);
    assert!(summary.procs_residual < 1e-9, "busy + idle is not all: {}", summary.procs_residual);
    rows
}

fn factors(spec: &SimSpec) -> Vec<f64> {
    Machine::new(spec, None).unwrap().gears.iter().map(|gear| gear.time_factor).collect()
}

/// Checks that every job ran once, for its run time, and that there were always enough procs.
fn check(spec: &SimSpec, jobs: &[Job], rows: &[JobRecord], procs: u32) {
    assert_eq!(rows.len(), jobs.len());
    let factors = factors(spec);
    let mut steps = Vec::new();
    for (job, row) in jobs.iter().zip(rows) {
        assert_eq!(row.job_id, job.id);
        assert!(row.start_s >= job.submit_s, "{row:?}");
        assert_eq!(row.finish_s, row.start_s + job.run_s * factors[usize::from(row.gear_index)], "{row:?}");
        steps.push((row.start_s, i64::from(job.procs)));
        steps.push((row.finish_s, -i64::from(job.procs)));
    }
    // At equal instants ends come before starts.
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut used = 0;
    for (at, procs_more) in steps {
        used += procs_more;
        assert!(used <= i64::from(procs), "{used} procs in use at {at} s");
    }
}

/// Checks that a simulation that is cloned after `instants` gives the result of the original.
fn check_clone(spec: &SimSpec, jobs: &[Job], instants: usize) {
    let machine = Machine::new(spec, None).unwrap();
    let policy = Batch::new(spec, &machine).unwrap();
    let recorder = JobRows::new(jobs.len());
    let mut original = Simulation::new(jobs, machine, &Limits::NONE, event_order(spec).unwrap(), policy, recorder);
    for _ in 0..instants {
        original.advance().unwrap();
    }
    let mut clone = original.clone();
    original.run().unwrap();
    clone.run().unwrap();
    assert_eq!(original.recorder().outcomes(), clone.recorder().outcomes());
    assert_eq!(original.integrals(), clone.integrals());
}

/// Random jobs; gaps between submits and run times are often 0. `exact`: estimates equal run times.
pub(crate) fn jobs(procs: u32, exact: bool) -> impl Strategy<Value = Workload> {
    jobs_of(procs, exact, 400, 1..60)
}

/// Random jobs of at most `procs` procs, with gaps below `gap`.
fn jobs_of(procs: u32, exact: bool, gap: u32, count: std::ops::Range<usize>) -> impl Strategy<Value = Workload> {
    let time = || prop_oneof![1 => Just(0u32), 4 => 1u32..2000];
    let over = if exact { 0..1u32 } else { 0..1000u32 };
    let job = (prop_oneof![1 => Just(0u32), 2 => 0..gap], time(), over, 1..=procs);
    prop::collection::vec(job, count).prop_map(|jobs| {
        let mut submit = 0.0;
        let jobs: Vec<_> = jobs
            .into_iter()
            .map(|(gap, run, over, procs)| {
                submit += f64::from(gap);
                (submit, f64::from(run), f64::from(run + over), procs)
            })
            .collect();
        workload(&jobs)
    })
}

fn combinations() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    ORDERS.into_iter().flat_map(|order| {
        BACKFILLS.into_iter().flat_map(move |backfill| {
            GEAR_RULES
                .into_iter()
                .flat_map(move |gear| EVENT_ORDERS.into_iter().map(move |events| (order, backfill, gear, events)))
        })
    })
}

/// Number of random workloads of each test: `POWERSWEEP_CASES`, or 24.
pub(crate) fn cases() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(24, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_conforms(workload in jobs(16, false), instants in 0usize..40) {
        for (order, backfill, gear, events) in combinations() {
            let spec = build(order, backfill, gear, events, 16);
            let rows = run(&spec, &workload);
            check(&spec, &workload.jobs, &rows, 16);
            prop_assert_eq!(&rows, &run(&spec, &workload), "not deterministic");
            check_clone(&spec, &workload.jobs, instants);
        }
    }

    #[test]
    fn every_combination_conforms_with_overdue_jobs(workload in jobs(16, false), share in 0.0..1.0f64) {
        let mut workload = workload;
        for job in &mut workload.jobs {
            job.estimate_s = (job.estimate_s * share).floor();
        }
        for (order, backfill, gear, events) in combinations() {
            let spec = build(order, backfill, gear, events, 16);
            check(&spec, &workload.jobs, &run(&spec, &workload), 16);
        }
    }

    #[test]
    fn starts_ends_and_gears_equal_the_reference(workload in jobs(16, false), share in 0.5..1.5f64) {
        let mut workload = workload;
        for job in &mut workload.jobs {
            job.estimate_s = (job.estimate_s * share).floor();
        }
        for order in ORDERS {
            for backfill in ["none", "easy", "easy-extra", "kept-head", "kept-head-alone"] {
                for gear in ["top", "bsld", "bsld-4"] {
                    let spec = build(order, backfill, gear, "batch", 16);
                    compare(&spec, &workload, &run(&spec, &workload), backfill);
                }
            }
        }
    }

    /// More procs than fit into 14 bits, and more running jobs than the engine keeps one by one.
    #[test]
    fn many_running_jobs_on_a_large_machine_equal_the_reference(workload in jobs_of(1000, false, 12, 150..300)) {
        for (backfill, gear) in [("easy", "top"), ("easy-extra", "top"), ("easy-extra", "bsld"), ("kept-head", "bsld")] {
            let spec = build("fcfs", backfill, gear, "batch", 40_000);
            compare(&spec, &workload, &run(&spec, &workload), backfill);
        }
    }

    #[test]
    fn with_exact_estimates_the_head_keeps_its_first_reservation(workload in jobs(16, true)) {
        for backfill in ["easy", "easy-extra"] {
            let spec = build("fcfs", backfill, "top", "batch", 16);
            for ran in compare(&spec, &workload, &run(&spec, &workload), backfill) {
                prop_assert!(ran.promised.is_none_or(|promised| ran.start <= promised), "{:?}", ran);
            }
        }
    }

    #[test]
    fn conservative_with_exact_estimates_is_not_later_than_strict_fcfs(workload in jobs(16, true)) {
        let mut workload = workload;
        // The reservation of a job of length 0 does not delay other jobs.
        for job in &mut workload.jobs {
            (job.run_s, job.estimate_s) = (job.run_s.max(1.0), job.estimate_s.max(1.0));
        }
        let starts = |backfill| run(&build("fcfs", backfill, "top", "batch", 16), &workload);
        for (conservative, strict) in starts("conservative").iter().zip(starts("none")) {
            prop_assert!(conservative.start_s <= strict.start_s, "{:?} {:?}", conservative, strict);
        }
    }
}

/// Compares a schedule with that of the reference, job by job.
fn compare(spec: &SimSpec, workload: &Workload, rows: &[JobRecord], backfill: &'static str) -> Vec<Ran> {
    let platform = spec.choice(Role::Platform);
    let procs = platform.int("procs") as u32;
    let gear_rule = spec.choice(Role::GearRule);
    let rules = Rules {
        procs,
        order: spec.choice(Role::Order).component().name,
        backfill,
        bsld: gear_rule.opt_real("bsld_threshold").map(|t| (t, gear_rule.real("wq_threshold"))),
        coef: factors(spec),
    };
    let mut jobs = workload.jobs.clone();
    jobs.iter_mut().for_each(|job| job.procs = job.procs.min(procs));
    let expected = reference::schedule(&jobs, &rules);
    for (row, ran) in rows.iter().zip(&expected) {
        let ours = (row.start_s, row.finish_s, usize::from(row.gear_index));
        assert_eq!(ours, (ran.start, ran.end, ran.gear), "job {} under {rules:?}", row.job_id);
    }
    expected
}

/// The schedules of one log under the rules of the paper.
fn compare_slice(slice: &Slice, log: &SwfLog) {
    let extra = Build(slice.dvfs(2.0, 16.0)).flag("extra_procs", true).0;
    let specs = [
        (slice.spec(), "easy"),
        (slice.dvfs(2.0, f64::INFINITY), "easy"),
        (slice.dvfs(1.5, 4.0), "easy"),
        (slice.dvfs(3.0, 0.0), "easy"),
        (extra, "easy-extra"),
    ];
    for (spec, backfill) in specs {
        let workload = logs::workload(&spec, log);
        compare(&spec, &workload, &run(&spec, &workload), backfill);
    }
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_papers_workloads_equal_the_reference() {
    for slice in [CTC, SDSC, THUNDER, ATLAS] {
        compare_slice(&slice, &slice.read(&logs::folder()));
    }
}

#[test]
fn cuts_of_the_papers_workloads_equal_the_reference() {
    let thunder = Slice { from: 12_000, to: 13_000, ..THUNDER };
    for slice in [CTC, thunder] {
        compare_slice(&slice, &logs::cut(slice.log));
    }
}

#[test]
fn a_wider_gear_table_reaches_the_kernel() {
    let jobs = workload(&[(0., 100., 100., 1)]);
    let spec = Build(build("fcfs", "none", "bsld", "batch", 1))
        .set("gears_ghz", Value::Reals(vec![1.0, 3.0, 4.0]))
        .set("gear_volts", Value::Reals(vec![1.0, 1.1, 1.2]))
        .real("beta", 1.0)
        .real("bsld_threshold", 1.6)
        .0;
    let rows = run(&spec, &jobs);
    // 400/600 is below the threshold: the job runs at the lowest gear, four times as long.
    assert_eq!((rows[0].gear_index, rows[0].finish_s), (0, 400.0));
}
