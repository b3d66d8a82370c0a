//! Partitions, GPUs and memory: with one pool the schedules of a machine without pools, with several those of a slow
//! reference.
mod reference;

use std::collections::BTreeSet;

use powersweep_engine::workload::Workload;
use powersweep_engine::workload::needs::NeedsOfRecord;
use powersweep_engine::{JobRecord, Limits, Role, SimSpec, Value};
use proptest::prelude::*;

use crate::conformance::{FORMULA, jobs, ordered};
use crate::specs::{Build, simulate};
use crate::{golden, logs};
use reference::{Rigid, Rule};

/// KiB as GiB.
fn gib(kib: i64) -> Value {
    Value::Real(kib as f64 / f64::from(1 << 20))
}

/// A log on partitions of these procs.
fn partitioned(partition_procs: &[f64]) -> Build {
    Build::log().text("partition_from", "partition").set("partition_procs", Value::Reals(partition_procs.to_vec()))
}

fn run(spec: &SimSpec, workload: &Workload) -> Vec<JobRecord> {
    assert_eq!(spec.problems(), Vec::<String>::new());
    let mut rows = Vec::new();
    let summary = simulate(spec, workload, &Limits::NONE, Some(&mut rows)).unwrap_or_else(|error| panic!("{error}"));
    assert!(summary.energy_residual < 1e-9 && summary.little_residual < 1e-9 && summary.procs_residual < 1e-9);
    rows
}

/// The needs of a job: partition, GPUs, memory of each proc (KiB).
fn needs(at: usize, (partition, gpus, proc_memory_kib): (u32, u32, u32)) -> NeedsOfRecord {
    NeedsOfRecord { record: at as u64 + 1, partition, gpus, proc_memory_kib: u64::from(proc_memory_kib) }
}

/// Rules with all that they know of orders, gears and events: order, backfilling, gear rule, event order.
fn combinations() -> impl Iterator<Item = [&'static str; 4]> {
    let orders = ["fcfs", "sjf", "wfp3", "formula"];
    let gears = ["top", "bsld", "bsld-4", "bsld-kept", "bsld-fixed"];
    orders.into_iter().flat_map(move |order| {
        ["none", "easy", "easy-extra", "conservative"].into_iter().flat_map(move |backfill| {
            gears.into_iter().flat_map(move |gear| {
                ["batch", "submit-first", "finish-first"].map(|events| [order, backfill, gear, events])
            })
        })
    })
}

/// A spec with these rules.
fn with(build: Build, [order, backfill, gear, events]: [&str; 4]) -> SimSpec {
    let kind = if backfill.starts_with("easy") { "easy" } else { backfill };
    let mut build = ordered(build, order).choose(Role::Backfill, kind).text("event_order", events);
    if kind == "easy" {
        build = build.flag("extra_procs", backfill == "easy-extra");
    }
    if gear != "top" {
        build = build.choose(Role::GearRule, "bsld").real("bsld_threshold", 1.5);
        build = match gear {
            "bsld-4" => build.real("wq_threshold", 4.0),
            "bsld-kept" => build.text("head_gear", "until-early-end"),
            "bsld-fixed" => build.text("head_gear", "fixed"),
            _ => build,
        };
    }
    build.0
}

/// The platforms of one pool of 16 procs, or with pools that limit no job; and one without pools.
fn one_pool() -> [Build; 3] {
    let unlimited = || Build::log().text("gpus_from", "log").text("memory_from", "requested").int("procs", 16);
    [
        partitioned(&[16.]),
        unlimited().int("gpus", 1 << 20).set("memory_gib", gib(1 << 40)),
        partitioned(&[16.]).text("gpus_from", "log").int("gpus", 0),
    ]
}

/// Number of random workloads for each of the tests below: `POWERSWEEP_CASES`, or 24.
fn few() -> u32 {
    crate::conformance::cases()
}

/// Number of small random workloads: `POWERSWEEP_CASES`, or 4,000.
fn many() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(4000, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: few(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Bit for bit: starts, ends, energies, gears, overtaking.
    #[test]
    fn one_pool_equals_a_machine_without_pools(workload in jobs(16, false), share in 0.3..1.3f64, gpus in 0u32..3) {
        assert!(FORMULA.contains("free_procs"));
        let mut workload = workload;
        for job in &mut workload.jobs {
            job.estimate_s = (job.estimate_s * share).floor();
        }
        for rules in combinations() {
            let plain = run(&with(Build::log().int("procs", 16), rules), &workload);
            for (at, build) in one_pool().into_iter().enumerate() {
                let gpus = if at == 1 { gpus } else { 0 };
                workload.needs = (0..workload.jobs.len()).map(|job| needs(job, (1, gpus, 7))).collect();
                prop_assert_eq!(&run(&with(build, rules), &workload), &plain, "{:?}, platform {}", rules, at);
            }
        }
    }
}

/// A machine of the reference: procs of partitions, then GPUs and memory (KiB) if it has them.
#[derive(Debug, Clone)]
struct Vectors {
    partitions: Vec<i64>,
    gpus: Option<i64>,
    memory: Option<i64>,
}

impl Vectors {
    fn build(&self) -> Build {
        let mut build = partitioned(&self.partitions.iter().map(|&procs| procs as f64).collect::<Vec<_>>());
        if let Some(gpus) = self.gpus {
            build = build.text("gpus_from", "log").int("gpus", gpus);
        }
        if let Some(memory) = self.memory {
            build = build.text("memory_from", "requested").set("memory_gib", gib(memory));
        }
        build
    }

    fn capacity(&self) -> Vec<i64> {
        self.partitions.iter().copied().chain(self.gpus).chain(self.memory).collect()
    }
}

fn machine() -> impl Strategy<Value = Vectors> {
    let optional = || prop::option::of(2i64..6);
    (prop::collection::vec(1i64..5, 1..4), optional(), optional()).prop_map(|(partitions, gpus, memory)| Vectors {
        partitions,
        gpus,
        memory,
    })
}

/// Jobs that fit a machine. Gaps, run times and estimates are often 0, and estimates too long or too short.
fn rigid(machine: &Vectors) -> impl Strategy<Value = Vec<Rigid>> + use<> {
    let machine = machine.clone();
    let job = (0i64..5, 0i64..14, 0i64..14, any::<[u8; 4]>(), any::<bool>());
    prop::collection::vec(job, 1..16).prop_map(move |list| {
        let mut submit = 0;
        let job = |(gap, run, estimate, draws, kill): (i64, i64, i64, [u8; 4], bool)| {
            submit += (gap - 2).max(0);
            let [partition, procs, gpus, memory] = draws.map(i64::from);
            let partition = partition as usize % machine.partitions.len();
            let mut demand = vec![0; machine.partitions.len()];
            demand[partition] = 1 + procs % machine.partitions[partition];
            demand.extend(machine.gpus.map(|most| (gpus % (most + 3) - 2).max(0)));
            // A whole number of KiB for each proc.
            demand.extend(machine.memory.map(|most| memory % (most / demand[partition] + 1) * demand[partition]));
            Rigid { submit, run: if kill { run.min(estimate) } else { run }, estimate, partition, demand }
        };
        list.into_iter().map(job).collect()
    })
}

/// These jobs as a workload of the engine.
fn workload(machine: &Vectors, jobs: &[Rigid]) -> Workload {
    let partitions = machine.partitions.len();
    let times: Vec<_> = jobs
        .iter()
        .map(|job| (job.submit as f64, job.run as f64, job.estimate as f64, job.demand[job.partition] as u32))
        .collect();
    let mut workload = golden::workload(&times);
    let needs_of = |(at, job): (usize, &Rigid)| {
        let gpus = if machine.gpus.is_some() { job.demand[partitions] as u32 } else { 0 };
        let memory = if machine.memory.is_some() { job.demand[job.demand.len() - 1] as u32 } else { 0 };
        needs(at, (job.partition as u32 + 1, gpus, memory / job.demand[job.partition] as u32))
    };
    workload.needs = jobs.iter().enumerate().map(needs_of).collect();
    workload
}

/// Checks that no resource is ever used above its capacity.
fn check_capacity(machine: &Vectors, jobs: &[Rigid], rows: &[JobRecord]) {
    let instants: BTreeSet<i64> = rows.iter().map(|row| row.start_s as i64).collect();
    for at in instants {
        for (p, capacity) in machine.capacity().into_iter().enumerate() {
            let holds = |row: &JobRecord| row.start_s <= at as f64 && (at as f64) < row.finish_s;
            let used: i64 = jobs.iter().zip(rows).filter(|(_, row)| holds(row)).map(|(job, _)| job.demand[p]).sum();
            assert!(used <= capacity, "{used} of {capacity} of resource {p} are used at {at} s");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: many(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn several_pools_equal_the_reference(
        (machine, jobs) in machine().prop_flat_map(|machine| (Just(machine.clone()), rigid(&machine))),
    ) {
        let workload = workload(&machine, &jobs);
        for (order, shortest_first) in [("fcfs", false), ("sjf", true)] {
            for (backfill, rule) in [
                ("none", Rule::None),
                ("easy", Rule::Easy { extra: false }),
                ("easy-extra", Rule::Easy { extra: true }),
                ("conservative", Rule::Conservative),
            ] {
                let rows = run(&with(machine.build(), [order, backfill, "top", "batch"]), &workload);
                check_capacity(&machine, &jobs, &rows);
                let starts: Vec<i64> = rows.iter().map(|row| row.start_s as i64).collect();
                let expected = reference::schedule(&jobs, &machine.capacity(), rule, shortest_first);
                prop_assert_eq!(starts, expected, "{} {}", order, backfill);
            }
        }
    }
}

/// On a real log, with all its jobs in one partition.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn one_partition_on_a_real_log_equals_the_whole_machine() {
    let folder = logs::folder();
    let log = logs::read(folder.join("SDSC-SP2-1998-4.2-cln.swf.gz"));
    let slice = |build: Build| build.int("record_from", 5_000).int("record_to", 8_000).text("wide_jobs", "drop");
    let partition = partitioned(&[128.]).text("partition_from", "group");
    // All groups are in partition 1.
    let groups: BTreeSet<i32> = log.records.iter().map(|record| record.group).collect();
    let map = groups.into_iter().flat_map(|group| [f64::from(group), 1.]).collect();
    let partition = slice(partition).set("partition_map", Value::Reals(map)).0;
    for rules in combinations().filter(|[.., events]| *events == "batch") {
        let plain = with(slice(Build::log().int("procs", 128)), rules);
        let partition = with(Build(partition.clone()), rules);
        let rows = run(&plain, &logs::workload(&plain, &log));
        assert_eq!(run(&partition, &logs::workload(&partition, &log)), rows, "{rules:?}");
    }
}

/// Job number, procs, memory requested and used, partition.
const LOG: &str = "\
; MaxProcs: 12
1 0 -1 10 4 -1 300 4 10 100 1 1 1 -1 1 1 -1 -1
2 0 -1 10 4 -1 300 4 10 -1 1 1 1 -1 1 2 -1 -1
; JobGpus: 2 2
3 1 -1 10 2 -1 -1 2 10 -1 1 1 1 -1 1 7 -1 -1
";

fn from_log(build: Build) -> Workload {
    let log = powersweep_engine::workload::swf::parse(LOG.as_bytes(), "t.swf").unwrap();
    logs::workload(&build.0, &log)
}

#[test]
fn needs_are_read_from_the_log_and_counted() {
    let read = |memory: &str| {
        let build = Build::log().text("partition_from", "partition").text("gpus_from", "log");
        from_log(build.text("memory_from", memory))
    };
    let workload = read("requested");
    assert_eq!(workload.needs, [needs(0, (1, 0, 100)), needs(1, (2, 2, 0)), needs(2, (7, 0, 0))]);
    assert_eq!((workload.counts.memory_fallback_count, workload.counts.memory_missing_count), (0, 2));
    let workload = read("requested-or-used");
    assert_eq!(workload.needs.iter().map(|needs| needs.proc_memory_kib).collect::<Vec<_>>(), [100, 300, 0]);
    assert_eq!((workload.counts.memory_fallback_count, workload.counts.memory_missing_count), (1, 1));
    assert_eq!(from_log(Build::log()).needs, []);
    // A mapped value, and values that no pair has.
    let map = Value::Reals(vec![7., 2.]);
    let mapped = from_log(Build::log().text("partition_from", "partition").set("partition_map", map));
    assert_eq!(mapped.needs.iter().map(|needs| needs.partition).collect::<Vec<_>>(), [0, 0, 2]);
}

/// Two jobs of one proc and 3 TiB each: a machine of 4 TiB has room for one of them.
#[test]
fn the_memory_of_a_proc_is_not_capped() {
    let log = "1 0 -1 1800 1 -1 -1 1 -1 3221225472 1 1 1 -1 1 1 -1 -1\n2 0 -1 1800 1 -1 -1 1 -1 3221225472 1 1 1 -1 1 1 -1 -1\n";
    let log = powersweep_engine::workload::swf::parse(log.as_bytes(), "t.swf").unwrap();
    let on = |tib: f64| {
        let build = Build::log().int("procs", 2).text("memory_from", "requested");
        let spec = build.set("memory_gib", Value::Real(tib * 1024.)).0;
        let mut rows = Vec::new();
        let summary = simulate(&spec, &logs::workload(&spec, &log), &Limits::NONE, Some(&mut rows));
        summary.map(|_| rows.iter().map(|row| row.start_s).collect::<Vec<_>>()).map_err(|error| error.to_string())
    };
    assert_eq!([on(4.), on(6.)], [Ok(vec![0., 1800.]), Ok(vec![0., 0.])]);
    assert!(on(2.).unwrap_err().contains("of memory"));
}

#[test]
fn jobs_that_the_machine_never_fits_are_errors_or_counted() {
    let build = |wide: &str| {
        let build = partitioned(&[3., 4.]).text("gpus_from", "log").int("gpus", 1).text("memory_from", "requested");
        build.set("memory_gib", gib(250)).text("wide_jobs", wide)
    };
    let map = |build: Build| build.set("partition_map", Value::Reals(vec![1., 1., 2., 2., 7., 1.]));
    let fails = |build: Build| {
        let workload = from_log(Build(build.0.clone()));
        simulate(&build.0, &workload, &Limits::NONE, None).unwrap_err().to_string()
    };
    let error = fails(build("error"));
    assert!(error.starts_with("job 1 (record 1) needs 4 procs of partition 1, and the machine has 3 procs"), "{error}");
    let error = fails(build("clamp"));
    assert!(error.starts_with("job 3 (record 3) needs partition 7, and the machine has 2 partitions"), "{error}");
    // Job 1 keeps 3 procs and 250 KiB, job 2 keeps one GPU.
    let clamped = map(build("clamp")).0;
    let mut rows = Vec::new();
    let workload = from_log(Build(clamped.clone()));
    let summary = simulate(&clamped, &workload, &Limits::NONE, Some(&mut rows)).unwrap();
    assert_eq!((summary.clamped_count, summary.jobs_count), (2, 3));
    assert_eq!(rows.iter().map(|row| (row.procs, row.start_s)).collect::<Vec<_>>(), [(3, 0.), (4, 0.), (2, 10.)]);
    assert_eq!(summary.partition_jobs_count, Some(vec![2, 1]));
    assert_eq!(summary.partition_wait_s_mean, Some(vec![4.5, 0.]));
    assert_eq!(summary.partition_utilization, Some(vec![50. / 60., 40. / 80.]));
    assert_eq!(summary.gpu_utilization, Some(0.5));
    let dropped = build("drop").0;
    let workload = from_log(Build(dropped.clone()));
    let error = simulate(&dropped, &workload, &Limits::NONE, None).unwrap_err().to_string();
    assert!(error.contains("3 of 3 jobs were wider than the machine"), "{error}");
}

#[test]
fn a_partition_does_not_wait_for_another() {
    // Jobs 1 and 2 fill partition 1, job 3 of partition 2 starts at once and overtakes nobody.
    let mut workload = golden::workload(&[(0., 10., 10., 2), (1., 10., 10., 2), (2., 10., 10., 2), (3., 5., 5., 1)]);
    workload.needs = vec![needs(0, (1, 1, 0)), needs(1, (1, 0, 0)), needs(2, (2, 0, 0)), needs(3, (1, 0, 0))];
    for backfill in ["none", "easy", "conservative"] {
        let rows = run(&with(partitioned(&[2., 2.]), ["fcfs", backfill, "top", "batch"]), &workload);
        let starts: Vec<_> = rows.iter().map(|row| (row.start_s, row.backfilled)).collect();
        assert_eq!(starts[..2], [(0., false), (10., false)], "{backfill}");
        assert_eq!(starts[2].0, 2., "{backfill}");
        assert_eq!(starts[3].0, 20., "{backfill}");
    }
}

#[test]
fn what_cannot_be_combined_is_refused() {
    let problem = |build: Build| build.0.problems().join(" ");
    let build = || partitioned(&[8., 8.]);
    assert_eq!(problem(build()), "");
    for (build, says) in [
        (build().choose(Role::Backfill, "knapsack"), "counts the procs of one machine only"),
        (build().int("procs", 16), "leave `procs` out"),
        (build().flag("node_lists", true), "knows no partitions"),
        (Build::log().int("gpus", 4), "set `gpus_from` = \"log\""),
        (partitioned(&[8.5]), "8.5 is none"),
        (partitioned(&[1.; 15]), "at most 14 are possible"),
        (Build::log().set("partition_map", Value::Reals(vec![1., 1.])), "`partition_from` names no field"),
        (build().choose(Role::Source, "lublin"), "is no log"),
    ] {
        assert!(problem(Build(build.0.clone())).contains(says), "{says}: {}", problem(build));
    }
    let capped = build().choose(Role::Cap, "admission").set("cap_schedule_w", Value::Reals(vec![9.]));
    assert!(problem(capped).contains("`power_cap` = \"admission\" cannot be combined with `partition_procs`"));
}
