use super::*;
use crate::components;
use crate::spec::{SimSpec, Value};
use crate::workload::{Workload, WorkloadError, build, problems, swf};

fn spec(rules: &[(&str, Value)]) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Source, "swf").expect("is registered")));
    for (name, value) in rules {
        spec.choice_mut(Role::Rules).set(name, value.clone()).expect("is valid");
    }
    spec
}

fn text(t: &str) -> Value {
    Value::Text(t.to_owned())
}

/// Records (number, submit, run, allocated, requested, requested time) as a log.
fn log(records: &[(i64, f64, f64, i64, i64, f64)]) -> swf::SwfLog {
    let mut text = "; MaxProcs: 16\n".to_owned();
    for (id, submit, run, allocated, requested, time) in records {
        text += &format!("{id} {submit} -1 {run} {allocated} -1 -1 {requested} {time} -1 1 1 1 -1 1 -1 -1 -1\n");
    }
    swf::parse(text.as_bytes(), "t.swf").expect("reads")
}

fn made(records: &[(i64, f64, f64, i64, i64, f64)], rules: &[(&str, Value)]) -> Workload {
    build(&spec(rules), Some(&log(records))).expect("builds")
}

fn ids(workload: &Workload) -> Vec<i64> {
    workload.jobs.iter().map(|j| j.id).collect()
}

#[test]
fn a_plain_record_becomes_a_job_unchanged() {
    let workload = made(&[(7, 10.0, 50.0, 3, 4, 60.0)], &[]);
    let job = Job {
        id: 7,
        submit_s: 10.0,
        run_s: 50.0,
        estimate_s: 60.0,
        procs: 4,
        record: 1,
        killed: false,
        priority: 1,
        class: 0,
    };
    assert_eq!(workload.jobs, [job]);
    assert_eq!(workload.native_procs, Some(16));
    assert_eq!(workload.counts, RuleCounts { records_count: 1, ..RuleCounts::default() });
}

#[test]
fn a_record_without_submit_or_run_time_is_dropped_and_counted_once() {
    let records = [
        (1, -1.0, -1.0, 1, 1, 9.0),
        (2, 0.0, -1.0, 1, 1, 9.0),
        (3, 0.0, 0.0, 1, 1, 9.0),
        (4, -1.0, 5.0, 1, 1, 9.0),
        (5, 0.0, 5.0, 1, 1, 9.0),
    ];
    let workload = made(&records, &[]);
    assert_eq!(ids(&workload), [3, 5]);
    assert_eq!((workload.counts.dropped_submit_count, workload.counts.dropped_run_count), (2, 1));
    let workload = made(&records, &[("min_run_s", Value::Real(5.0))]);
    assert_eq!(ids(&workload), [5]);
    assert_eq!((workload.counts.dropped_submit_count, workload.counts.dropped_run_count), (2, 2));
}

#[test]
fn a_record_without_a_run_time_gets_the_missing_one_and_a_run_time_of_zero_stays() {
    let records = [
        (1, 0.0, -1.0, 1, 1, 9.0),
        (2, 0.0, 0.0, 1, 1, 9.0),
        (3, 0.0, -1.0, 1, 1, -1.0),
        (4, -1.0, -1.0, 1, 1, 9.0),
        (5, 0.0, 8.0, 1, 1, 9.0),
    ];
    let shown = |rules: &[(&str, Value)]| {
        let workload = made(&records, &[&[("missing_run_s", Value::Real(6.0))], rules].concat());
        let RuleCounts { filled_run_count, filled_estimate_count, dropped_run_count, .. } = workload.counts;
        let jobs: Vec<_> = workload.jobs.iter().map(|job| (job.id, job.run_s, job.estimate_s)).collect();
        (jobs, [filled_run_count, filled_estimate_count, dropped_run_count])
    };
    let (first, third, fifth) = ((1, 6.0, 9.0), (3, 6.0, 6.0), (5, 8.0, 9.0));
    assert_eq!(shown(&[]), (vec![first, (2, 0.0, 9.0), third, fifth], [2, 1, 0]));
    assert_eq!(shown(&[("min_run_s", Value::Real(1.0))]), (vec![first, third, fifth], [2, 1, 1]));
    // The least run time holds for filled ones, too; counts of filled values are over the jobs kept.
    assert_eq!(shown(&[("min_run_s", Value::Real(7.0))]), (vec![fifth], [0, 0, 3]));
    let exact = shown(&[("estimates", text("exact"))]);
    assert_eq!(exact, (vec![(1, 6.0, 6.0), (2, 0.0, 0.0), third, (5, 8.0, 8.0)], [2, 0, 0]));
}

#[test]
fn procs_fall_back_to_the_other_field_and_then_to_one() {
    let records = [
        (1, 0.0, 1.0, 3, 4, 9.0),
        (2, 0.0, 1.0, 3, -1, 9.0),
        (3, 0.0, 1.0, -1, 4, 9.0),
        (4, 0.0, 1.0, 0, 0, 9.0),
        (5, 0.0, 1.0, -1, -1, 9.0),
    ];
    for (field, procs) in [("requested", [4, 3, 4, 1, 1]), ("allocated", [3, 3, 4, 1, 1])] {
        let workload = made(&records, &[("procs_field", text(field))]);
        assert_eq!(workload.jobs.iter().map(|j| j.procs).collect::<Vec<_>>(), procs, "{field}");
        assert_eq!((workload.counts.procs_fallback_count, workload.counts.procs_missing_count), (1, 2), "{field}");
    }
}

#[test]
fn records_without_a_processor_count_are_dropped_if_the_rules_say_so() {
    let records =
        [(1, 0.0, 1.0, 3, -1, 9.0), (2, 0.0, 1.0, -1, 4, 9.0), (3, 0.0, 1.0, 0, -1, 9.0), (4, 0.0, -1.0, -1, -1, 9.0)];
    for field in ["requested", "allocated"] {
        let workload = made(&records, &[("procs_field", text(field)), ("missing_procs", text("drop"))]);
        let counts = workload.counts;
        assert_eq!(ids(&workload), [1, 2]);
        let dropped = (counts.dropped_procs_count, counts.dropped_run_count, counts.procs_missing_count);
        assert_eq!(dropped, (1, 1, 0), "{field}: each record is counted once");
    }
    let nothing = build(&spec(&[("missing_procs", text("drop"))]), Some(&log(&records[2..3])));
    assert!(nothing.unwrap_err().to_string().contains("1 without a processor count"));
}

#[test]
fn estimates_are_requested_filled_or_exact() {
    let records = [(1, 0.0, 100.0, 1, 1, 200.0), (2, 0.0, 100.0, 1, 1, -1.0), (3, 0.0, 100.0, 1, 1, 0.0)];
    let shown = |rules: &[(&str, Value)]| {
        let workload = made(&records, rules);
        let jobs = workload.jobs.iter().map(|j| (j.run_s, j.estimate_s, j.killed)).collect::<Vec<_>>();
        (jobs, workload.counts.filled_estimate_count, workload.counts.overrun_count)
    };
    let user = (100.0, 200.0, false);
    assert_eq!(shown(&[]), (vec![user, (100.0, 100.0, false), (100.0, 100.0, false)], 2, 0));
    let long = [("missing_estimate_s", Value::Real(300.0))];
    assert_eq!(shown(&long), (vec![user, (100.0, 300.0, false), (100.0, 300.0, false)], 2, 0));
    let short = [("missing_estimate_s", Value::Real(30.0))];
    assert_eq!(shown(&short), (vec![user, (30.0, 30.0, true), (30.0, 30.0, true)], 2, 2));
    let exact = [("estimates", text("exact")), ("missing_estimate_s", Value::Real(30.0))];
    assert_eq!(shown(&exact), (vec![(100.0, 100.0, false); 3], 0, 0));
}

#[test]
fn a_job_that_outlives_its_estimate_is_killed_or_runs_on() {
    let records = [(1, 0.0, 100.0, 1, 1, 99.5), (2, 0.0, 100.0, 1, 1, 100.0)];
    let shown = |rules: &[(&str, Value)]| {
        let workload = made(&records, rules);
        assert_eq!(
            workload.jobs[1],
            Job { id: 2, record: 2, estimate_s: 100.0, run_s: 100.0, killed: false, ..workload.jobs[0] }
        );
        (workload.jobs[0].run_s, workload.jobs[0].killed, workload.counts.overrun_count)
    };
    assert_eq!(shown(&[]), (99.5, true, 1));
    assert_eq!(shown(&[("overrun", text("run-on"))]), (100.0, false, 1));
    let exact = made(&records, &[("estimates", text("exact"))]);
    assert_eq!((exact.jobs[0].run_s, exact.jobs[0].estimate_s, exact.counts.overrun_count), (100.0, 100.0, 0));
}

/// Ten records, numbers 10, 20, ..., submits 0, 1, ... s.
fn ten() -> Vec<(i64, f64, f64, i64, i64, f64)> {
    (0..10).map(|i| (10 + i * 10, i as f64, 1.0, 1, 1, 1.0)).collect()
}

#[test]
fn slices_are_half_open_and_intersect() {
    let kept = |rules: &[(&str, Value)]| {
        let workload = made(&ten(), rules);
        assert_eq!(workload.counts.sliced_out_count + workload.jobs.len() as u64, 10);
        ids(&workload)
    };
    assert_eq!(kept(&[("job_number_from", Value::Int(20)), ("job_number_to", Value::Int(40))]), [20, 30]);
    assert_eq!(kept(&[("job_number_from", Value::Int(91))]), [100]);
    assert_eq!(kept(&[("record_from", Value::Int(8))]), [90, 100]);
    assert_eq!(kept(&[("record_from", Value::Int(2)), ("record_to", Value::Int(3))]), [30]);
    assert_eq!(kept(&[("record_to", Value::Int(i64::MAX))]).len(), 10);
    assert_eq!(kept(&[("submit_from_s", Value::Real(3.0)), ("submit_to_s", Value::Real(5.0))]), [40, 50]);
    assert_eq!(kept(&[("submit_to_s", Value::Real(4.5)), ("record_from", Value::Int(3))]), [40, 50]);
}

#[test]
fn a_record_without_a_submit_time_is_in_no_submit_slice() {
    let records = [(1, -1.0, 5.0, 1, 1, 9.0), (2, 4.0, 5.0, 1, 1, 9.0)];
    let counts = made(&records, &[("submit_to_s", Value::Real(5.0))]).counts;
    assert_eq!((counts.sliced_out_count, counts.dropped_submit_count), (1, 0));
}

#[test]
fn an_empty_slice_is_refused_with_its_bounds() {
    for (rules, wanted) in [
        (
            [("job_number_from", Value::Int(7)), ("job_number_to", Value::Int(7))],
            "the slice is empty: job_number_from = 7 must be less than job_number_to = 7",
        ),
        (
            [("record_from", Value::Int(7)), ("record_to", Value::Int(3))],
            "the slice is empty: record_from = 7 must be less than record_to = 3",
        ),
        (
            [("submit_from_s", Value::Real(2.5)), ("submit_to_s", Value::Real(1.0))],
            "the slice is empty: submit_from_s = 2.5 must be less than submit_to_s = 1",
        ),
    ] {
        let error = build(&spec(&rules), Some(&log(&ten()))).expect_err("is contradictory");
        assert_eq!(error.to_string(), wanted);
        assert_eq!(problems(&spec(&rules)), [wanted]);
    }
    assert!(problems(&spec(&[])).is_empty());
}

#[test]
fn the_error_for_an_empty_workload_counts_the_records_of_each_rule() {
    let message =
        |records: &[_], rules: &[_]| build(&spec(rules), Some(&log(records))).expect_err("is empty").to_string();
    let records = [(1, -1.0, -1.0, 1, 1, 9.0), (2, 0.0, 3.0, 1, 1, 9.0), (3, 0.0, 3.0, 1, 1, 9.0)];
    assert_eq!(
        message(&records, &[("record_to", Value::Int(2)), ("min_run_s", Value::Real(3.5))]),
        "t.swf: no job is left of 3 records: 1 outside the slice (record_to = 2), 1 without a submit time, 1 without a \
         run time or with one below min_run_s = 3.5"
    );
    assert_eq!(
        message(&records, &[("submit_from_s", Value::Real(1.0)), ("job_number_from", Value::Int(0))]),
        "t.swf: no job is left of 3 records: 3 outside the slice (job_number_from = 0, submit_from_s = 1)"
    );
    assert_eq!(message(&[], &[]), "t.swf: no job is left of 0 records: the source has no record");
    let missing = build(&spec(&[]), None).expect_err("has no log");
    assert!(matches!(missing, WorkloadError::LogMissing(_)), "{missing}");
}

#[test]
fn interarrival_times_are_scaled_from_the_first_job_kept() {
    let records = [(1, 50.0, -1.0, 1, 1, 9.0), (2, 130.0, 1.0, 1, 1, 9.0), (3, 100.0, 1.0, 1, 1, 9.0)];
    let submits = |factor: f64| {
        let workload = made(&records, &[("interarrival_factor", Value::Real(factor))]);
        workload.jobs.iter().map(|j| (j.id, j.submit_s)).collect::<Vec<_>>()
    };
    assert_eq!(submits(0.5), [(3, 100.0), (2, 115.0)]);
    assert_eq!(submits(2.0), [(3, 100.0), (2, 160.0)]);
    assert_eq!(submits(1.0), [(3, 100.0), (2, 130.0)]);
}

#[test]
fn ties_of_arrival_are_in_file_or_number_order() {
    let records =
        [(9, 5.0, 1.0, 1, 1, 9.0), (4, 5.0, 1.0, 1, 1, 9.0), (7, 1.0, 1.0, 1, 1, 9.0), (1, 5.0, 1.0, 1, 1, 9.0)];
    assert_eq!(ids(&made(&records, &[])), [7, 9, 4, 1]);
    assert_eq!(ids(&made(&records, &[("arrival_ties", text("job_id"))])), [7, 1, 4, 9]);
    let positions: Vec<u64> = made(&records, &[]).jobs.iter().map(|j| j.record).collect();
    assert_eq!(positions, [3, 1, 2, 4], "records have numbers in the file's order");
}

/// A job a day for 30 days, each of a width of its own.
fn days() -> Vec<(i64, f64, f64, i64, i64, f64)> {
    (0..30).map(|day| (day + 1, 86_400.0 * day as f64 + 5.0, 10.0, day + 1, day + 1, 10.0)).collect()
}

fn seeded(seed: u64, rules: &[(&str, Value)]) -> Workload {
    let mut spec = spec(rules);
    spec.seed = seed;
    build(&spec, Some(&log(&days()))).expect("builds")
}

#[test]
fn whole_blocks_are_drawn_with_replacement() {
    let weeks = [("resample_days", Value::Real(7.0))];
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 1..=40 {
        let jobs = seeded(seed, &weeks).jobs;
        // The last two days are no whole week.
        assert_eq!(jobs.len(), 28);
        for (at, week) in jobs.chunks(7).enumerate() {
            let first = week[0].procs;
            assert!([1, 8, 15, 22].contains(&first), "{first}");
            firsts.insert((at, first));
            for (day, job) in week.iter().enumerate() {
                assert_eq!(job.procs, first + day as u32);
                assert_eq!(job.submit_s, 5.0 + 86_400.0 * (7 * at + day) as f64);
                assert_eq!((job.id, job.record), ((7 * at + day + 1) as i64, u64::from(job.procs)));
            }
        }
    }
    assert_eq!(firsts.len(), 16, "every week comes at every place");
    assert_eq!(seeded(3, &weeks).jobs, seeded(3, &weeks).jobs);
    let more = seeded(1, &[("resample_days", Value::Real(7.0)), ("resample_blocks", Value::Int(9))]);
    assert_eq!(more.jobs.len(), 63);
}

#[test]
fn jitter_moves_submits_a_little() {
    let moved = |seed| seeded(seed, &[("submit_jitter_s", Value::Real(100.0))]).jobs;
    let (jobs, plain) = (moved(1), seeded(1, &[]).jobs);
    let distances: Vec<f64> = jobs.iter().zip(&plain).map(|(job, plain)| job.submit_s - plain.submit_s).collect();
    assert!(distances.iter().all(|distance| distance.abs() <= 100.0), "{distances:?}");
    assert!(distances.iter().any(|d| *d > 30.0) && distances.iter().any(|d| *d < -30.0), "{distances:?}");
    assert!(jobs.iter().all(|job| job.submit_s >= 5.0));
    assert_ne!(jobs, moved(2));
    assert_eq!(seeded(2, &[]).jobs, plain, "without it the seed draws nothing");
}

#[test]
fn blocks_that_the_jobs_do_not_have_are_refused() {
    let refused = |rules: &[(&str, Value)], max_bytes| {
        let built = crate::workload::build_within(&spec(rules), Some(&log(&days())), max_bytes);
        built.map(|workload| workload.jobs.len()).expect_err("is refused")
    };
    let month = refused(&[("resample_days", Value::Real(30.0))], u64::MAX).to_string();
    assert!(month.contains("the jobs arrive within 29.0 days, which is fewer than two whole blocks"), "{month}");
    let alone = refused(&[("resample_blocks", Value::Int(3))], u64::MAX).to_string();
    assert!(alone.contains("needs `resample_days`"), "{alone}");
    let many = [("resample_days", Value::Real(7.0)), ("resample_blocks", Value::Int(10_000))];
    assert!(matches!(refused(&many, 1 << 20), WorkloadError::TooLarge { jobs: 70_000, .. }));
}

#[test]
fn a_record_without_a_requested_time_is_dropped_if_the_rules_say_so() {
    let records = [(1, 0.0, 5.0, 1, 1, -1.0), (2, 1.0, 5.0, 1, 1, 0.0), (3, 2.0, 5.0, 1, 1, 9.0)];
    let workload = made(&records, &[("missing_estimate", text("drop"))]);
    assert_eq!((ids(&workload), workload.counts.dropped_estimate_count), (vec![3], 2));
    let error =
        build(&spec(&[("missing_estimate", text("drop"))]), Some(&log(&records[..2]))).expect_err("none is left");
    assert_eq!(error.to_string(), "t.swf: no job is left of 2 records: 2 without a requested time");
}

#[test]
fn added_records_come_after_those_of_the_log_and_have_users() {
    let reals = |numbers: &[f64]| Value::Reals(numbers.to_vec());
    let added = reals(&[1.0, 4.0, 7.0, 2.0, 9.0, 3.0, 2.0, 0.0, 8.0, 1.0, 6.0, 4.0]);
    let rules = [("added_records", added), ("arrival_ties", text("job_id"))];
    let workload = made(&[(7, 4.0, 50.0, 3, 4, 60.0)], &rules);
    assert_eq!(ids(&workload), [2, 1, 7]);
    assert_eq!((workload.jobs[0].record, workload.jobs[0].killed, workload.jobs[0].run_s), (3, true, 6.0));
    assert_eq!((workload.jobs[1].procs, workload.jobs[1].estimate_s), (2, 9.0));
    assert_eq!((workload.users.as_slice(), workload.counts.added_records_count), ([1, 3, 4].as_slice(), 2));
    assert_eq!(workload.counts.records_count, 3);

    let wrong = |numbers: &[f64]| problems(&spec(&[("added_records", reals(numbers))])).concat();
    assert_eq!(wrong(&[1.0, 4.0]), "`added_records` has 2 numbers: a record has 6");
    let half = wrong(&[1.0, 4.0, 7.0, 2.5, 9.0, 3.0]);
    assert_eq!(half, "`added_records`, record 1: the processor count 2.5 is no whole number up to 1073741824");
    let mut generated = spec(&[("added_records", reals(&[1.0, 4.0, 7.0, 2.0, 9.0, 3.0]))]);
    generated.choose(Choice::new(components::find(Role::Source, "lublin").expect("is registered")));
    assert_eq!(
        problems(&generated),
        ["`added_records` adds to the records of a log, and the source `lublin` is no log: leave it out"]
    );
}
