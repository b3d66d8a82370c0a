//! Counts of records and of their peculiarities in published logs.
use powersweep_engine::workload::log_facts::LogFacts;
use powersweep_engine::workload::swf::{self, SwfLog};
use powersweep_engine::workload::{self, RuleCounts, Workload};
use powersweep_engine::{Choice, Role, SimSpec, Value, components};

use crate::logs;

/// A log of the folder.
fn log(name: &str) -> SwfLog {
    logs::read(logs::folder().join(format!("{name}.swf.gz")))
}

/// The workload of a log under some rules.
fn build(log: &SwfLog, rules: &[(&str, Value)]) -> Workload {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Source, "swf").expect("is registered")));
    for (name, value) in rules {
        spec.choice_mut(Role::Rules).set(name, value.clone()).expect("is valid");
    }
    workload::build(&spec, Some(log)).expect("builds")
}

/// Name, records, machine.
pub(crate) const LOGS: [(&str, u64, Option<u32>); 20] = [
    ("CTC-SP2-1996-3.1-cln", 77_222, Some(338)),
    ("SDSC-SP2-1998-4.2-cln", 59_715, Some(128)),
    ("SDSC-BLUE-2000-4.2-cln", 243_306, Some(1152)),
    ("SDSC-BLUE-2000-4.1-cln", 243_314, Some(1152)),
    ("KTH-SP2-1996-2.1-cln", 28_476, Some(100)),
    ("LLNL-Thunder-2007-1.1-cln", 121_039, Some(4008)),
    ("LLNL-Atlas-2006-2.1-cln", 43_778, Some(9216)),
    ("HPC2N-2002-2.2-cln", 202_871, Some(240)),
    ("RICC-2010-2", 447_794, Some(8192)),
    ("CEA-Curie-2011-2.1-cln", 312_826, Some(93_312)),
    ("LANL-CM5-1994-4.1-cln", 122_060, Some(1024)),
    ("NASA-iPSC-1993-3.1-cln", 18_239, Some(128)),
    ("OSC-Clust-2000-3.1-cln", 36_097, Some(178)),
    ("SDSC-Par-1996-3.1-cln", 32_135, Some(400)),
    ("SDSC-DS-2004-2.1-cln", 96_069, Some(1664)),
    ("Sandia-Ross-2001-1.1-cln", 57_882, Some(1524)),
    ("LPC-EGEE-2004-1.2-cln", 234_889, Some(140)),
    ("LCG-2005-1", 188_041, Some(24_515)),
    ("UniLu-Gaia-2014-1", 51_987, Some(2004)),
    ("lublin_256", 10_000, Some(256)),
];

/// Every record becomes a job or is counted.
fn check_records(log: &SwfLog, name: &str, records: u64, procs: Option<u32>) {
    assert_eq!(log.records.len() as u64, records, "{name}");
    let Workload { jobs, native_procs, counts, .. } = build(log, &[]);
    assert_eq!(native_procs, procs, "{name}");
    assert_eq!(counts.records_count, records, "{name}");
    let dropped = counts.dropped_run_count + counts.dropped_submit_count + counts.sliced_out_count;
    assert_eq!(counts.dropped_procs_count, 0, "{name}");
    assert_eq!(jobs.len() as u64 + dropped, records, "{name}");
    assert!(jobs.is_sorted_by(|a, b| (a.submit_s, a.record) < (b.submit_s, b.record)), "{name}: order of arrival");
    assert!(jobs.iter().all(|j| j.run_s <= j.estimate_s && j.procs >= 1 && j.submit_s >= 0.0), "{name}");
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn every_log_is_read_to_its_last_record_and_every_record_is_accounted_for() {
    for (name, records, procs) in LOGS {
        check_records(&log(name), name, records, procs);
    }
}

/// The counts are those of a script that reads the files without powersweep.
#[test]
fn cuts_of_logs_have_their_records_and_peculiarities() {
    for (name, records, procs) in [
        ("KTH-SP2-1996-2.1-cln", 600, 100),
        ("CTC-SP2-1996-3.1-cln", 500, 338),
        ("LLNL-Thunder-2007-1.1-cln", 400, 4008),
    ] {
        check_records(&logs::cut(name), name, records, Some(procs));
    }
    let facts = |name: &str| LogFacts::of(&logs::cut(name)).totals;
    assert_eq!(facts("KTH-SP2-1996-2.1-cln").overrun_count, 6);
    let ctc = facts("CTC-SP2-1996-3.1-cln");
    assert_eq!((ctc.missing_procs_requested_count, ctc.overrun_count, ctc.zero_run_count), (500, 72, 1));
    let thunder = logs::cut("LLNL-Thunder-2007-1.1-cln");
    let totals = LogFacts::of(&thunder).totals;
    assert_eq!((totals.missing_submit_count, totals.submit_descents_count, totals.missing_wait_count), (18, 14, 400));
    assert_eq!((totals.missing_procs_count, totals.missing_requested_time_count), (21, 219));
    assert_eq!((totals.missing_run_count, totals.zero_run_count, totals.overrun_count), (18, 7, 25));
    let counts = build(&thunder, &[]).counts;
    assert_eq!((counts.dropped_submit_count, counts.dropped_run_count), (18, 0));
    assert_eq!(counts.procs_missing_count, 21 - 18);
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn logs_have_the_known_numbers_of_peculiar_records() {
    let facts = |name: &str| LogFacts::of(&log(name)).totals;
    let thunder = facts("LLNL-Thunder-2007-1.1-cln");
    assert_eq!(thunder.missing_submit_count, 1_190);
    assert_eq!(thunder.submit_descents_count, 808);
    assert_eq!(thunder.missing_procs_count, 2_248);
    assert_eq!(thunder.missing_requested_time_count, 82_437);
    assert_eq!(thunder.missing_wait_count, 121_039);
    let atlas = facts("LLNL-Atlas-2006-2.1-cln");
    assert_eq!(atlas.zero_run_count, 7_178);
    assert_eq!(atlas.missing_procs_count, 4_571);
    assert_eq!(atlas.missing_requested_time_count, 8_233);
    assert_eq!(atlas.submit_first_s, Some(3_273_240.0));
    assert_eq!(facts("CEA-Curie-2011-2.1-cln").zero_run_count, 17_286);
    for (name, overruns) in
        [("SDSC-BLUE-2000-4.2-cln", 23_434), ("CTC-SP2-1996-3.1-cln", 7_174), ("LANL-CM5-1994-4.1-cln", 40_180)]
    {
        assert_eq!(facts(name).overrun_count, overruns, "{name}");
    }
    for name in ["CTC-SP2-1996-3.1-cln", "NASA-iPSC-1993-3.1-cln", "SDSC-Par-1996-3.1-cln", "LCG-2005-1", "lublin_256"]
    {
        let totals = facts(name);
        assert_eq!(totals.missing_procs_requested_count, totals.records_count, "{name}");
    }
    for name in ["OSC-Clust-2000-3.1-cln", "NASA-iPSC-1993-3.1-cln", "SDSC-Par-1996-3.1-cln", "lublin_256"] {
        let totals = facts(name);
        assert_eq!(totals.missing_requested_time_count, totals.records_count, "{name}");
    }
    let sandia = log("Sandia-Ross-2001-1.1-cln");
    let statuses = || sandia.records.iter().map(|r| r.status);
    assert_eq!((statuses().min(), statuses().max()), (Some(-4), Some(271)));
    assert_eq!(sandia.header.get("Version"), Some("SWF v2"), "a key right after the semicolon");
    for (name, present) in [("SDSC-SP2-1998-4.2-cln", true), ("LPC-EGEE-2004-1.2-cln", true), ("RICC-2010-2", false)] {
        assert_eq!(facts(name).missing_run_count > 0, present, "{name}");
    }
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn rules_count_the_records_that_they_affect_on_thunder_and_atlas() {
    let thunder = log("LLNL-Thunder-2007-1.1-cln");
    let counts = build(&thunder, &[]).counts;
    assert_eq!(counts.dropped_submit_count, 1_190);
    assert_eq!(counts.dropped_run_count, 0, "records without a run time have no submit time either");
    // 11 of the 1,190 have a requested time.
    assert_eq!(counts.filled_estimate_count, 82_437 - 1_179);
    // The dropped records have no processors either.
    assert_eq!(counts.procs_missing_count, 2_248 - 1_190);
    let atlas = log("LLNL-Atlas-2006-2.1-cln");
    let counts = build(&atlas, &[]).counts;
    assert_eq!(counts.procs_missing_count, 4_571);
    assert_eq!(counts.filled_estimate_count, 8_233);
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn overdue_jobs_are_killed_unless_estimates_are_exact() {
    let blue = log("SDSC-BLUE-2000-4.2-cln");
    let text = |t: &str| Value::Text(t.to_owned());
    let killed = build(&blue, &[]);
    // 23,434 records run longer than estimated; all of them have a submit and a run time.
    assert_eq!(killed.counts.overrun_count, 23_434);
    assert_eq!(killed.jobs.iter().filter(|j| j.killed && j.run_s == j.estimate_s).count(), 23_434);
    let on = build(&blue, &[("overrun", text("run-on"))]);
    assert_eq!(on.counts.overrun_count, 23_434);
    assert_eq!(on.jobs.iter().filter(|j| j.run_s > j.estimate_s && !j.killed).count(), 23_434);
    let exact = build(&blue, &[("estimates", text("exact"))]);
    assert_eq!(exact.counts.overrun_count, 0);
    assert!(exact.jobs.iter().zip(&on.jobs).all(|(e, o)| e.run_s == o.run_s && e.estimate_s == e.run_s && !e.killed));
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_slices_of_etinski2010_have_their_jobs() {
    // Job numbers have gaps in cleaned logs: these are the records between the bounds.
    let slices = [
        ("CTC-SP2-1996-3.1-cln", 20_000),
        ("SDSC-SP2-1998-4.2-cln", 40_000),
        ("SDSC-BLUE-2000-4.2-cln", 20_000),
        ("LLNL-Thunder-2007-1.1-cln", 20_000),
        ("LLNL-Atlas-2006-2.1-cln", 10_000),
    ];
    for (name, from) in slices {
        let log = log(name);
        let bounds = [("job_number_from", Value::Int(from)), ("job_number_to", Value::Int(from + 5_000))];
        let Workload { jobs, counts, .. } = build(&log, &bounds);
        let inside = log.records.iter().filter(|r| (from..from + 5_000).contains(&r.id)).count() as u64;
        assert_eq!(counts.sliced_out_count, counts.records_count - inside, "{name}");
        let usable = |r: &&swf::Record| (from..from + 5_000).contains(&r.id) && r.run_s != -1.0 && r.submit_s != -1.0;
        assert_eq!(jobs.len(), log.records.iter().filter(usable).count(), "{name}");
        assert!(jobs.len() > 1_000, "{name}: {}", jobs.len());
    }
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn published_schedules_are_read_and_sorted_by_submit_and_number() {
    let folder = logs::folder().join("../published-schedules");
    for (name, count) in [("KTH-SP2", 28_481), ("SDSC-SP2", 54_006)] {
        for kind in ["user", "exact"] {
            let log = logs::read(folder.join(format!("{name}.{kind}.swf.gz")));
            let rules = [("arrival_ties", Value::Text("job_id".to_owned()))];
            let Workload { jobs, counts, native_procs, .. } = build(&log, &rules);
            assert_eq!(jobs.len(), count, "{name} {kind}");
            assert!(jobs.is_sorted_by(|a, b| (a.submit_s, a.id) < (b.submit_s, b.id)));
            assert_eq!(counts, RuleCounts { records_count: count as u64, ..RuleCounts::default() });
            assert_eq!(native_procs, Some(if name == "KTH-SP2" { 100 } else { 128 }), "of MaxProcs; MaxNodes is -1");
        }
    }
}
