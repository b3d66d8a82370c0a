use super::*;
use crate::components;
use crate::spec::Choice;
use crate::workload::Job;
use crate::workload::needs::NeedsOfRecord;

/// 10 procs of 10 W busy, 2 W idle, 4 W busy at the lowest gear: 20 W idle, 100 W at most.
fn spec(cap: Option<(&str, &[f64])>) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Power, "table").unwrap()));
    let reals = |values: &[f64]| Value::Reals(values.to_vec());
    let power = spec.choice_mut(Role::Power);
    power.set("table_power_w", reals(&[4.0, 10.0])).unwrap();
    power.set("table_time_s", reals(&[2.0, 1.0])).unwrap();
    power.set("table_nodes", Value::Int(1)).unwrap();
    power.set("idle_fraction", Value::Real(0.2)).unwrap();
    spec.choice_mut(Role::Platform).set("gears_ghz", reals(&[1.0, 2.0])).unwrap();
    spec.choice_mut(Role::Platform).set("procs", Value::Int(10)).unwrap();
    if let Some((name, caps_w)) = cap {
        spec.choose(Choice::new(components::find(Role::Cap, name).unwrap()));
        spec.choice_mut(Role::Cap).set("cap_schedule_w", reals(caps_w)).unwrap();
        spec.choice_mut(Role::Cap).set("cap_period_s", Value::Real(60.0)).unwrap();
    }
    spec
}

fn job(id: i64, procs: u32) -> Job {
    Job {
        id,
        submit_s: 0.0,
        run_s: 1.0,
        estimate_s: 1.0,
        procs,
        record: id as u64,
        killed: false,
        priority: 1,
        class: 0,
    }
}

fn demand(procs: &[u32]) -> Demand {
    let jobs = (1..).zip(procs).map(|(id, procs)| job(id, *procs)).collect();
    Demand::of(&Workload { jobs, ..Workload::default() })
}

fn kinds(spec: &SimSpec, procs: &[u32]) -> Vec<FindingKind> {
    findings(spec, Some(&demand(procs))).into_iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_cap_binds_below_the_peak_power_only() {
    assert_eq!(kinds(&spec(Some(("admission", &[99.0]))), &[1]), []);
    assert_eq!(kinds(&spec(Some(("admission", &[100.0]))), &[1]), [FindingKind::IdleCap]);
    assert_eq!(kinds(&spec(Some(("admission", &[1e9, 50.0]))), &[1]), []);
    let found = findings(&spec(Some(("pdrc", &[2000.0]))), None);
    assert_eq!(found[0].message, "the cap of 2000 W never binds: all 10 procs draw at most 100 W");
}

#[test]
fn a_relative_cap_is_judged_in_watts() {
    let relative = |shares: &[f64]| {
        let mut spec = spec(None);
        spec.choose(Choice::new(components::find(Role::Cap, "admission").unwrap()));
        spec.choice_mut(Role::Cap).set("cap_schedule_share", Value::Reals(shares.to_vec())).unwrap();
        spec.choice_mut(Role::Platform).set("cooling_w", Value::Real(100.0)).unwrap();
        assert_eq!(spec.problems(), Vec::<String>::new());
        findings(&spec, Some(&demand(&[1, 8]))).into_iter().map(|found| (found.about, found.message)).collect()
    };
    // All procs at the top gear draw 100 W, the cooling 100 W.
    let found: Vec<_> = relative(&[1.0]);
    assert_eq!(found[0].1, "the cap of 200 W never binds: all 10 procs draw at most 200 W");
    assert_eq!(relative(&[0.9]), []);
    // 120 W idle; 8 procs at the lowest gear and 2 idle ones: 136 W.
    let found: Vec<_> = relative(&[0.625]);
    assert!(found[0].1.contains("120 W of the cap of 125 W: at most 2 of 10 procs"), "{found:?}");
    assert!(found[1].1.contains("needs a cap of at least 136 W") && found[1].0 == "cap_schedule_share", "{found:?}");
    let found: Vec<_> = relative(&[0.9, 0.8]);
    assert_eq!(found[0].1, "`cap_schedule_share` = [0.9, 0.8] is one cap that changes every 3000 s");
}

#[test]
fn an_idle_machine_near_its_cap_is_reported() {
    let near = findings(&spec(Some(("admission", &[26.0]))), Some(&demand(&[1])));
    assert_eq!(near.len(), 1, "{near:?}");
    assert!(near[0].message.contains("20 W of the cap of 26 W: at most 3 of 10 procs"), "{near:?}");
    let above = findings(&spec(Some(("performance-precedence", &[19.0]))), Some(&demand(&[1])));
    assert!(above[0].message.contains("more than the cap of 19 W"), "{above:?}");
}

#[test]
fn a_job_over_every_cap_is_named_with_its_watts_and_width() {
    // 8 procs at the lowest gear and 2 idle procs: 36 W.
    assert_eq!(kinds(&spec(Some(("admission", &[36.0]))), &[8]), []);
    let over = findings(&spec(Some(("admission", &[35.0, 30.0]))), Some(&demand(&[1, 8])));
    assert!(over[0].message.contains("job 2 of 8 procs needs a cap of at least 36 W"), "{over:?}");
    assert!(over[0].message.contains("the greatest cap is 35 W"), "{over:?}");
    // At the top gear, which `power-precedence` does not lower: 84 W.
    assert_eq!(kinds(&spec(Some(("power-precedence", &[83.0]))), &[8]), [FindingKind::OverCapJob]);
    assert_eq!(kinds(&spec(Some(("power-precedence", &[84.0]))), &[8]), []);
    assert_eq!(kinds(&spec(Some(("performance-precedence", &[35.0]))), &[8]), []);
    let mut dropping = spec(Some(("admission", &[35.0])));
    dropping.choice_mut(Role::Cap).set("over_cap_jobs", Value::Text("drop".to_owned())).unwrap();
    assert_eq!(kinds(&dropping, &[8]), []);
}

#[test]
fn a_job_wider_than_its_partition_is_reported() {
    let mut spec = SimSpec::new();
    spec.choice_mut(Role::Platform).set("partition_procs", Value::Reals(vec![8.0, 4.0])).unwrap();
    spec.choice_mut(Role::Platform).set("gpus", Value::Int(2)).unwrap();
    let need = |record: u64, partition: u32, gpus: u32| NeedsOfRecord { record, partition, gpus, proc_memory_kib: 0 };
    let mut said = |jobs: &[(u32, u32, u32)], rule: &str| {
        spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text(rule.to_owned())).unwrap();
        let numbered = || (1..).zip(jobs);
        let workload = Workload {
            jobs: numbered().map(|(id, (procs, ..))| job(id, *procs)).collect(),
            needs: numbered().map(|(id, (_, partition, gpus))| need(id as u64, *partition, *gpus)).collect(),
            ..Workload::default()
        };
        let found = findings(&spec, Some(&Demand::of(&workload)));
        let wide = found.into_iter().find(|finding| finding.kind == FindingKind::WideJob);
        wide.map(|finding| finding.message).unwrap_or_default()
    };
    assert_eq!(said(&[(8, 1, 2), (4, 2, 0)], "error"), "");
    let partition = "job 2 needs 6 procs of partition 2, the machine has 4 procs of partition 2: the task fails";
    assert!(said(&[(8, 1, 2), (6, 2, 0)], "error").starts_with(partition));
    assert!(said(&[(1, 1, 3)], "error").starts_with("job 1 needs 3 GPUs, the machine has 2 GPUs"));
    assert_eq!(said(&[(6, 2, 3)], "clamp"), "");
    assert!(said(&[(1, 3, 0)], "clamp").starts_with("job 1 needs partition 3, the machine has 2 partitions"));
    assert_eq!(said(&[(1, 3, 0)], "drop"), "");
    assert!(said(&[(13, 1, 0)], "error").starts_with("job 1 needs 13 procs, the machine has 12"));
}

#[test]
fn wide_jobs_are_reported_unless_a_rule_handles_them() {
    let mut spec = spec(None);
    let wide = findings(&spec, Some(&demand(&[3, 11])));
    assert!(wide[0].message.contains("job 2 needs 11 procs, the machine has 10"), "{wide:?}");
    spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("clamp".to_owned())).unwrap();
    assert_eq!(kinds(&spec, &[11]), []);
}

#[test]
fn a_machine_of_unknown_size_is_reported() {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Source, "swf").unwrap()));
    let found = findings(&spec, Some(&demand(&[3])));
    let machine = found.iter().find(|finding| finding.kind == FindingKind::NoMachine).expect("it is reported");
    assert!(machine.message.contains("the size of the machine is not known"), "{found:?}");
    assert!(findings(&spec, None).iter().all(|finding| finding.kind != FindingKind::NoMachine));
    spec.choice_mut(Role::Platform).set("procs", Value::Int(8)).unwrap();
    assert!(!kinds(&spec, &[3]).contains(&FindingKind::NoMachine));
}

#[test]
fn a_workload_without_jobs_is_the_only_finding() {
    let demand = Demand::lacking("the log is empty".to_owned());
    let found = findings(&SimSpec::new(), Some(&demand));
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::NoJobs]);
    assert_eq!(found[0].message, "the log is empty: the task fails when it begins");
}

#[test]
fn estimates_far_from_run_times_are_named_where_jobs_wait_by_them() {
    let mut spec = spec(None);
    let jobs = [1.0, 1.9].map(|estimate_s| Job { estimate_s, ..job(1, 1) });
    let kinds = |spec: &SimSpec, jobs: &[Job]| {
        let demand = Demand::of(&Workload { jobs: jobs.to_vec(), ..Workload::default() });
        findings(spec, Some(&demand)).into_iter().map(|found| (found.kind, found.message)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&spec, &jobs), []);
    spec.choose(Choice::new(components::find(Role::Deferral, "lowest-window").unwrap()));
    assert_eq!(kinds(&spec, &jobs), []);
    let found = kinds(&spec, &[Job { estimate_s: 5.0, ..job(1, 1) }, job(2, 1)]);
    assert_eq!(found[0].0, FindingKind::UserEstimates);
    assert!(found[0].1.ends_with("the estimates of this workload are 3.0 times the run times"), "{found:?}");
    spec.choice_mut(Role::Deferral).set("defer_length", Value::Text("run".to_owned())).unwrap();
    assert_eq!(kinds(&spec, &[Job { estimate_s: 5.0, ..job(1, 1) }]), []);
}

#[test]
fn choices_that_change_nothing_are_named() {
    let found = |choose: &[(Role, &str)], param: Option<(Role, &str, Value)>| -> Vec<String> {
        let mut spec = spec(None);
        for (role, name) in choose {
            spec.choose(Choice::new(components::find(*role, name).unwrap()));
        }
        if spec.choice(Role::GearRule).component().name == "bsld" {
            spec.choice_mut(Role::GearRule).set("bsld_threshold", Value::Real(2.0)).unwrap();
        }
        param.into_iter().for_each(|(role, name, value)| spec.choice_mut(role).set(name, value).unwrap());
        findings(&spec, None)
            .into_iter()
            .filter(|one| one.kind == FindingKind::NoEffect)
            .map(|one| one.message)
            .collect()
    };
    let message =
        "`corrector` = \"doubling\" changes nothing with `predictor` = \"user\", whose predictions are never corrected";
    assert_eq!(found(&[(Role::Corrector, "doubling")], None), [message]);
    assert_eq!(found(&[(Role::Corrector, "doubling"), (Role::Predictor, "exact")], None).len(), 1);
    assert!(found(&[(Role::Corrector, "doubling"), (Role::Predictor, "recent-average")], None).is_empty());
    let fixed = || Some((Role::GearRule, "head_gear", Value::Text("fixed".to_owned())));
    let exclusive = || Some((Role::GearRule, "reservation_inclusive", Value::Bool(false)));
    for (backfill, reserves) in [("none", false), ("easy", true), ("kept-head", true), ("conservative", false)] {
        let choose = [(Role::Backfill, backfill), (Role::GearRule, "bsld")];
        assert_eq!(found(&choose, fixed()).is_empty(), reserves, "{backfill}");
        assert_eq!(found(&choose[..1], exclusive()).is_empty(), reserves, "{backfill}");
        assert!(found(&choose, None).is_empty(), "{backfill}");
    }
    assert!(found(&[(Role::Backfill, "none")], exclusive())[0].starts_with("`reservation_inclusive` = false changes"));
}

#[test]
fn relative_power_and_schedules_need_no_workload() {
    let found = findings(&SimSpec::new(), None);
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::RelativePower]);
    let mut spec = spec(Some(("admission", &[50.0, 60.0])));
    assert_eq!(kinds(&spec, &[1]), []);
    spec.choice_mut(Role::Cap).set("cap_period_s", Value::Real(3000.0)).unwrap();
    let found = findings(&spec, None);
    assert_eq!(found[0].message, "`cap_schedule_w` = [50, 60] is one cap that changes every 3000 s");
    assert!(found[0].help.contains("[[50], [60]]"), "{found:?}");
}
