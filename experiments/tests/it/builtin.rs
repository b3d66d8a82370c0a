//! The built-in manifests.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::Role;
use powersweep_experiments::{Sweep, manifests};

use crate::sweep;

fn builtin(name: &str) -> Sweep {
    sweep(manifests::find(name).expect("a built-in manifest"))
}

#[test]
fn every_builtin_manifest_decodes_and_encodes_all_its_tasks() {
    for (name, text) in manifests::builtin() {
        let sweep = sweep(text);
        assert_eq!(sweep.manifest().name(), *name);
        let mut ids = BTreeSet::new();
        for index in 0..sweep.index_count() {
            let task = sweep.task(index);
            assert_eq!(task.is_none(), sweep.is_excluded(index));
            let Some(task) = task else { continue };
            assert_eq!(task.index, index);
            assert_eq!(sweep.index_of(&task), Some(index), "{task:?}");
            assert!(ids.insert(task.task_id), "two tasks with one id");
        }
        assert_eq!(ids.len() as u64, sweep.task_count(), "{name}");
    }
}

#[test]
fn etinski_has_the_tasks_of_the_paper() {
    let sweep = builtin("etinski2010");
    // 5 workloads x (1 + 3 x 4) at the original size, and 5 x 6 sizes x 2 WQ thresholds.
    assert_eq!(sweep.task_count(), 65 + 60);
    assert_eq!(sweep.manifest().logs().len(), 5);
    let tasks: Vec<_> = (0..sweep.index_count()).filter_map(|index| sweep.task(index)).collect();
    for task in &tasks {
        let rules = task.sim.choice(Role::Rules);
        let procs = match &*task.workload {
            "CTC" => 430,
            "SDSC" => 128,
            "SDSCBlue" => 1152,
            "LLNLThunder" => 4008,
            "LLNLAtlas" => 9216,
            other => panic!("workload {other}"),
        };
        assert_eq!(rules.int("native_procs"), procs);
        assert_eq!(rules.int("job_number_to") - rules.int("job_number_from"), 5000);
        assert_eq!(rules.text("wide_jobs"), "clamp");
        assert!(!task.sim.choice(Role::Backfill).bool("extra_procs"));
        assert_eq!(task.sim.choice(Role::Statistics).real("bsld_tau_s"), 600.0);
        let factor = task.sim.choice(Role::Platform).real("size_factor");
        let gears = task.sim.choice(Role::GearRule);
        if factor > 1.0 {
            assert_eq!(gears.real("bsld_threshold"), 2.0);
            assert!([0.0, f64::INFINITY].contains(&gears.real("wq_threshold")));
        }
    }
    let base = tasks.iter().filter(|task| task.sim.choice(Role::GearRule).component().name == "top").count();
    assert_eq!(base, 5);
}

#[test]
fn lawson_runs_three_policies_on_four_whole_logs() {
    let sweep = builtin("lawson2005");
    assert_eq!(sweep.task_count(), 12);
    // Table 1 of the paper: U and L of each log.
    let table = BTreeMap::from([("CTC", (512, 308)), ("KTH", (100, 75)), ("SDSC-SP2", (128, 110))]);
    for task in (0..sweep.index_count()).filter_map(|index| sweep.task(index)) {
        let (all, low) = table.get(&*task.workload).copied().unwrap_or((1152, 922));
        assert_eq!(task.sim.choice(Role::Rules).int("native_procs"), all);
        assert_eq!(task.sim.choice(Role::Rules).text("estimates"), "exact");
        assert!(task.sim.choice(Role::Backfill).bool("extra_procs"));
        let rule = task.sim.choice(Role::Capacity);
        match rule.component().name {
            "two-level" => assert_eq!(rule.int("two_level_procs"), low),
            "ols" => assert_eq!((rule.real("ols_period_s"), rule.real("ols_sla_slowdown")), (604_800.0, 200.0)),
            other => assert_eq!(other, "none"),
        }
    }
    // On 4 logs with exact and with users' estimates: all procs, 6 periods, 3 service levels, a floor, levels; with
    // users' estimates alone, simulations that know no more.
    assert_eq!(builtin("lawson2005_sensitivity").task_count(), 8 * (1 + 6 + 3 + 1 + 1) + 4);
}

#[test]
fn aldaoud_runs_every_system_with_its_policies() {
    // Experiments 1 and 2: FCFS, PME and two capacities; section 6: ordered-beta too; 30 replications each.
    let sweep = builtin("aldaoud2011");
    assert_eq!(sweep.task_count(), (4 + 4 + 5 + 5) * 30);
    let mut systems = BTreeSet::new();
    for task in (0..sweep.index_count()).filter_map(|index| sweep.task(index)) {
        systems.insert((task.workload.to_string(), task.platform.to_string()));
        assert_eq!(task.sim.choice(Role::Statistics).real("horizon_s"), 20_000.0);
    }
    let pairs = [
        ("experiment-1", "experiment-1"),
        ("experiment-2", "experiment-2"),
        ("structured", "almost-structured"),
        ("structured", "structured"),
    ];
    assert_eq!(systems, pairs.map(|(w, p)| (w.to_owned(), p.to_owned())).into());
    // 11 rows of Table 5 at the midpoint, and three capacities of the worked example.
    assert_eq!(builtin("aldaoud2011_loads").task_count(), 11 + 3);
    // The cluster at five capacities; rows 12 to 14 of Table 5.
    assert_eq!(builtin("aldaoud2011_programs").task_count(), 5 + 3);
    // Two sets of powers, 30 times: FCFS, PME, DVS and five capacities.
    assert_eq!(builtin("aldaoud2011_cluster").task_count(), 2 * 30 * 8);
}

#[test]
fn do2013_runs_what_the_paper_shows() {
    // 3 schemes x 2 priorities x 5 loads; full and slowed at 5 loads or rates x 2 priorities; 3 and 2 loads x 2
    // priorities.
    let counts =
        [("do2013", 30), ("do2013_dvfs_load", 20), ("do2013_dvfs_rate", 20), ("do2013_waits", 6), ("do2013_long", 4)];
    for (name, count) in counts {
        let sweep = builtin(name);
        assert_eq!(sweep.task_count(), count, "{name}");
        assert!(sweep.manifest().logs().is_empty());
    }
    let sweep = builtin("do2013");
    for task in (0..sweep.index_count()).filter_map(|index| sweep.task(index)) {
        assert_eq!(task.sim.problems(), Vec::<String>::new());
        let utilization = task.sim.choice(Role::Source).real("target_utilization");
        let precision = task.sim.choice(Role::Statistics).real("response_precision");
        assert_eq!(precision, if utilization > 0.85 { 0.002 } else { 0.001 });
        assert_eq!(task.sim.choice(Role::Statistics).real("confidence"), 0.99);
    }
    let choices = sweep.component_versions();
    assert!(choices.contains_key("machine/server-classes") && !choices.contains_key("backfill/easy"), "{choices:?}");
}

#[test]
fn the_quickstart_is_small_and_needs_no_log() {
    let sweep = builtin("quickstart");
    assert_eq!(sweep.task_count(), 88);
    assert!(sweep.manifest().logs().is_empty());
}

#[test]
fn blocks_and_axes_count_their_tasks() {
    let sweep = builtin("etinski2010");
    let blocks = sweep.blocks();
    let tasks = |label: &str| blocks.iter().find(|b| &*b.label == label).map(|b| b.tasks_count);
    assert_eq!(tasks("CTC"), Some(25));
    assert_eq!(tasks("enlarged"), Some(60));
    assert_eq!(tasks("no-dvfs"), Some(5));
    let axes = sweep.axes();
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["workload", "platform", "size_factor", "policy", "bsld_threshold", "wq_threshold"]);
    let wq = &axes[5];
    assert_eq!((wq.section, &*wq.block, wq.values_count), ("policies", "bsld", 4));
    let counts: Vec<(String, Option<u64>)> = wq.values.iter().map(|v| (v.text.clone(), v.tasks_count)).collect();
    // 5 workloads x 3 thresholds at the original size; 0 and unlimited also 5 x 6 enlarged.
    let expected = [("0", 45), ("4", 15), ("16", 15), ("unlimited", 45)];
    assert_eq!(counts, expected.map(|(text, count)| (text.to_owned(), Some(count))));
}

#[test]
fn tracsim_runs_forty_lists_of_each_size_under_both_readings() {
    for (name, policies, idle) in [("tracsim2014", 5, 0.3), ("tracsim2014_caps30", 4, 0.1)] {
        let sweep = builtin(name);
        assert_eq!(sweep.task_count(), 40 * 3 * policies);
        assert!(sweep.manifest().logs().is_empty());
        for task in (0..sweep.index_count()).filter_map(|index| sweep.task(index)) {
            assert!(task.sim.problems().is_empty());
            assert_eq!(task.sim.choice(Role::Power).real("idle_fraction"), idle);
            assert_eq!(task.sim.choice(Role::Source).int("tracsim_jobs_count"), 30);
            assert_eq!(task.sim.choice(Role::Order).component().name, "priority");
        }
    }
    assert_eq!(builtin("tracsim2014_series").task_count(), 15);
}
