//! Schedules of each base policy that are small enough to check by hand.
use powersweep_engine::workload::{Job, Workload};
use powersweep_engine::{JobRecord, Limits, Role, SimError, Value};

use crate::specs::simulate;

use crate::specs::Build;

/// A workload of (submit, run, estimate, procs).
pub(crate) fn workload(jobs: &[(f64, f64, f64, u32)]) -> Workload {
    let jobs = jobs.iter().enumerate().map(|(i, &(submit_s, run_s, estimate_s, procs))| Job {
        id: i as i64 + 1,
        submit_s,
        run_s,
        estimate_s,
        procs,
        record: i as u64 + 1,
        killed: false,
        priority: 1,
        class: 0,
    });
    Workload { jobs: jobs.collect(), ..Workload::default() }
}

fn run(build: Build, procs: i64, jobs: &[(f64, f64, f64, u32)]) -> Vec<JobRecord> {
    let mut rows = Vec::new();
    simulate(&build.int("procs", procs).0, &workload(jobs), &Limits::NONE, Some(&mut rows)).unwrap();
    rows
}

#[track_caller]
fn starts(build: Build, procs: i64, jobs: &[(f64, f64, f64, u32)], expected: &[f64]) {
    let starts: Vec<f64> = run(build, procs, jobs).iter().map(|job| job.start_s).collect();
    assert_eq!(starts, expected);
}

fn batch(order: &str, backfill: &str) -> Build {
    Build::log().choose(Role::Order, order).choose(Role::Backfill, backfill)
}

/// On 4 procs: job 1 holds 3 until 10; job 2 (3 procs) is the head, reserved at 10 with 1 extra proc.
const SPARE: [(f64, f64, f64, u32); 5] =
    [(0., 10., 10., 3), (1., 10., 10., 3), (2., 5., 5., 1), (3., 20., 20., 1), (4., 2., 2., 1)];

#[test]
fn under_strict_fcfs_no_job_overtakes() {
    // Job 3 waits behind job 2, job 4 for job 3's proc at 15, job 5 for job 2's end.
    starts(batch("fcfs", "none"), 4, &SPARE, &[0., 10., 10., 15., 20.]);
}

#[test]
fn easy_uses_extra_procs_unless_it_is_forbidden() {
    // Job 3 ends by 10, so that it overtakes at 2. At 7 its proc is free again: job 4 takes it as an extra proc until 27.
    starts(batch("fcfs", "easy"), 4, &SPARE, &[0., 10., 2., 7., 20.]);
    // Without extra procs only job 5 ends by 10.
    starts(batch("fcfs", "easy").flag("extra_procs", false), 4, &SPARE, &[0., 10., 2., 10., 7.]);
    let rows = run(batch("fcfs", "easy"), 4, &SPARE);
    assert_eq!(rows.iter().map(|job| job.backfilled).collect::<Vec<_>>(), [false, false, true, true, false]);
}

#[test]
fn a_kept_head_stays_behind_a_better_job_and_keeps_its_first_reservation() {
    // Shortest first. Job 2 (4 procs) is chosen at 1. It starts before the shorter jobs 3 and 4, which arrive until job 1 ends at 10.
    let jobs = [(0., 10., 20., 3), (1., 30., 30., 4), (2., 5., 5., 4), (10., 6., 6., 4)];
    starts(batch("sjf", "kept-head"), 4, &jobs, &[0., 10., 40., 45.]);
    starts(batch("sjf", "easy"), 4, &jobs, &[0., 21., 10., 15.]);
    // Job 1 outlives its estimate, by which job 2 is reserved at 20. Job 4 ends before, job 3 does not, although it would leave enough
    // procs. After 20 no job overtakes.
    let jobs = [(0., 30., 20., 3), (1., 5., 5., 3), (2., 20., 20., 1), (3., 6., 6., 1), (20., 1., 1., 1)];
    starts(batch("fcfs", "kept-head"), 4, &jobs, &[0., 30., 30., 3., 35.]);
    starts(batch("fcfs", "kept-head").flag("overtake", false), 4, &jobs, &[0., 30., 30., 35., 35.]);
    // Shortest first. Job 2 is reserved at 20. Jobs overtake in order of arrival: job 3 before the shorter job 4, which comes after it.
    let jobs = [(0., 20., 20., 3), (1., 30., 30., 4), (2., 9., 9., 1), (2., 8., 8., 1)];
    starts(batch("sjf", "kept-head"), 4, &jobs, &[0., 20., 2., 11.]);
    // Job 4 would end at the reservation.
    let exclusive = batch("sjf", "kept-head").flag("reservation_inclusive", false);
    starts(exclusive, 4, &[jobs[0], jobs[1], jobs[2], (2., 9., 9., 1)], &[0., 20., 2., 50.]);
}

#[test]
fn conservative_protects_all_jobs_and_easy_only_the_head() {
    // Job 4 (1 proc, 100 s) would delay job 3 (4 procs), which is not the head.
    let jobs = [(0., 10., 10., 3), (1., 10., 10., 3), (2., 5., 5., 4), (3., 100., 100., 1)];
    starts(batch("fcfs", "easy"), 4, &jobs, &[0., 10., 103., 3.]);
    starts(batch("fcfs", "conservative"), 4, &jobs, &[0., 10., 20., 25.]);
    starts(batch("fcfs", "conservative"), 4, &SPARE, &[0., 10., 2., 7., 20.]);
}

#[test]
fn conservative_moves_reservations_up_when_a_job_ends_early() {
    // Job 1 ends at 6 instead of 10: job 2 moves from 10 to 6, job 4 stays at 7, job 5 moves from 20 to 16.
    let mut jobs = SPARE;
    jobs[0].1 = 6.;
    starts(batch("fcfs", "conservative"), 4, &jobs, &[0., 6., 2., 7., 16.]);
    // Job 3 (4 procs) is reserved at 12, job 4 from 5 to 12. Job 1 ends at 4 instead of 12. Job 3 is moved first, but does
    // not fit before the reservation of job 4; then job 4 moves to 4. Job 3 keeps 12, though all procs are idle from 11 on.
    let jobs = [(0., 4., 12., 3), (0., 5., 5., 1), (1., 6., 6., 4), (2., 7., 7., 1)];
    starts(batch("fcfs", "conservative"), 4, &jobs, &[0., 0., 12., 4.]);
}

#[test]
fn conservative_starts_a_reserved_job_when_an_overdue_job_ends() {
    // Job 1 is estimated to end at 10 and ends at 15. Job 2 is reserved at 10 and starts at 15.
    let jobs = [(0., 15., 10., 4), (1., 5., 5., 4), (2., 5., 5., 4), (12., 1., 1., 1)];
    starts(batch("fcfs", "conservative"), 4, &jobs, &[0., 15., 20., 25.]);
}

#[test]
fn conservative_keeps_reservations_behind_one_that_an_overdue_job_blocks() {
    // Shortest first. Job 2 (4 procs) is reserved at 4, the estimated end of job 1, and job 3 (2 procs) at 10. Job 1 holds
    // its 2 procs until 20, but job 3 starts on the other two at 10.
    let jobs = [(0., 20., 4., 2), (0., 6., 6., 4), (0., 5., 5., 2)];
    starts(batch("sjf", "conservative"), 4, &jobs, &[0., 20., 10.]);
}

#[test]
fn easy_expects_an_overdue_job_to_end_now() {
    // Job 1 is overdue from 10 on. At 12 the head is reserved at 12, where job 1 would leave 4 procs free: 1 is extra.
    let jobs = [(0., 15., 10., 3), (1., 5., 5., 3), (12., 9., 9., 1)];
    starts(batch("fcfs", "easy"), 4, &jobs, &[0., 15., 12.]);
    starts(batch("fcfs", "easy").flag("extra_procs", false), 4, &jobs, &[0., 15., 15.]);
}

#[test]
fn jobs_start_in_the_queue_order() {
    let jobs = [(0., 10., 10., 2), (1., 5., 5., 2), (2., 3., 3., 2), (3., 5., 5., 2)];
    starts(batch("sjf", "none"), 2, &jobs, &[0., 13., 10., 18.]);
    let jobs = [(0., 10., 10., 4), (1., 5., 5., 1), (2., 5., 5., 3), (3., 5., 5., 3)];
    starts(batch("widest", "none"), 4, &jobs, &[0., 15., 10., 15.]);
    // The narrow job overtakes the second wide one.
    starts(batch("widest", "easy"), 4, &jobs, &[0., 10., 10., 15.]);
    // At 10 job 2 has (9/9)^3*4 = 4, job 4 (4/2)^3*1 = 8 and job 3 (5/10)^3*4 = 0.5; at 12 job 2 is still ahead of job 3.
    let jobs = [(0., 10., 10., 4), (1., 9., 9., 4), (5., 10., 10., 4), (6., 2., 2., 1)];
    starts(batch("wfp3", "none"), 4, &jobs, &[0., 12., 21., 10.]);
    // Scores 12 + 0, 4 + 0 and 4 + 870*log10(2): the later submit weighs more than the longer estimate.
    let jobs = [(0., 10., 10., 4), (1., 1000., 1000., 4), (1., 10., 10., 4), (2., 10., 10., 4)];
    starts(batch("f1", "none"), 4, &jobs, &[0., 20., 10., 1020.]);
    // Under EASY the head is the first in the order: job 3 (estimate 3) is reserved at 10, and job 4 ends by then.
    let jobs = [(0., 10., 10., 3), (1., 5., 5., 4), (2., 3., 3., 4), (3., 6., 6., 1)];
    starts(batch("sjf", "easy"), 4, &jobs, &[0., 13., 10., 3.]);
}

#[test]
fn event_orders_differ_where_events_share_an_instant() {
    // At 5 job 1 ends early and job 3 arrives. If the submission is first, job 3 overtakes the head (reserved at 20).
    let jobs = [(0., 5., 20., 3), (1., 10., 10., 4), (5., 10., 10., 1)];
    for (order, expected) in [
        ("batch", [0., 5., 15.]),
        ("submit-first", [0., 15., 5.]),
        ("submit-first-held", [0., 15., 5.]),
        ("finish-first", [0., 5., 15.]),
    ] {
        starts(batch("fcfs", "easy").text("event_order", order), 4, &jobs, &expected);
    }
    // At 5 two jobs end early. After the first end the head does not fit, and job 4 overtakes it.
    let jobs = [(0., 5., 20., 2), (0., 5., 20., 1), (1., 10., 10., 4), (2., 10., 10., 2)];
    for (order, expected) in [
        ("batch", [0., 0., 5., 15.]),
        ("submit-first", [0., 0., 15., 5.]),
        ("submit-first-held", [0., 0., 15., 5.]),
        ("finish-first", [0., 0., 15., 5.]),
    ] {
        starts(batch("fcfs", "easy").text("event_order", order), 4, &jobs, &expected);
    }
    // At 5 job 1 ends as estimated and job 4 arrives; job 3 (the head) then fits. Even if the submission is first, a job
    // counts as ended at its estimated end: the head starts, and job 4 (1 proc) cannot overtake it.
    let jobs = [(0., 5., 5., 3), (0., 30., 30., 1), (1., 10., 10., 3), (5., 3., 3., 1)];
    for order in ["batch", "submit-first", "submit-first-held", "finish-first"] {
        starts(batch("fcfs", "easy").text("event_order", order), 4, &jobs, &[0., 0., 5., 15.]);
    }
    // Shortest first. At 5 job 1 ends as estimated, and jobs 2 and 3 arrive. If job 1 counts as ended, job 2 starts before job 3 arrives;
    // if it holds its procs, the shorter job 3 is there when they become free.
    let jobs = [(0., 5., 5., 4), (5., 10., 10., 4), (5., 3., 3., 4)];
    for (order, expected) in [
        ("batch", [0., 8., 5.]),
        ("submit-first", [0., 5., 15.]),
        ("submit-first-held", [0., 8., 5.]),
        ("finish-first", [0., 5., 15.]),
    ] {
        starts(batch("sjf", "easy").text("event_order", order), 4, &jobs, &expected);
    }
}

#[test]
fn a_job_of_no_run_time_holds_its_procs_during_the_pass_that_starts_it() {
    let jobs = [(0., 0., 0., 2), (0., 0., 7., 2), (0., 5., 5., 2), (0., 5., 5., 1)];
    for order in ["batch", "submit-first", "submit-first-held", "finish-first"] {
        for backfill in ["none", "easy", "conservative"] {
            starts(batch("fcfs", backfill).text("event_order", order), 2, &jobs, &[0., 0., 0., 5.]);
        }
    }
}

/// Two gears: run times are longer by half at the lower gear.
pub(crate) fn two_gears(build: Build) -> Build {
    build.set("gears_ghz", Value::Reals(vec![1.0, 2.0])).set("gear_volts", Value::Reals(vec![1.0, 1.2]))
}

#[test]
fn bsld_lowers_gears_while_the_predicted_slowdown_allows() {
    let jobs = [(0., 100., 100., 2), (10., 1000., 1000., 2), (20., 600., 600., 2)];
    let bsld = || two_gears(batch("fcfs", "easy")).choose(Role::GearRule, "bsld").real("bsld_threshold", 2.0);
    // Job 1: 150/600, bounded to 1, is below 2. Job 2: (140 + 1500)/1000 = 1.64 is below 2. Job 3: (1630 + 900)/600 is
    // above 2, also at the top gear: it runs at the top gear.
    let rows = run(bsld(), 2, &jobs);
    assert_eq!(
        rows.iter().map(|r| (r.start_s, r.finish_s, r.gear_index)).collect::<Vec<_>>(),
        [(0., 150., 0), (150., 1650., 0), (1650., 2250., 1)]
    );
    // If no other job may wait, job 2 runs at the top gear, because job 3 waits.
    let rows = run(bsld().real("wq_threshold", 0.0), 2, &jobs);
    assert_eq!(
        rows.iter().map(|r| (r.start_s, r.finish_s, r.gear_index)).collect::<Vec<_>>(),
        [(0., 150., 0), (150., 1150., 1), (1150., 1750., 1)]
    );
    // A slowdown equal to the threshold is admissible only if the threshold is inclusive.
    let gear = |build: Build| run(build, 2, &jobs)[1].gear_index;
    assert_eq!(gear(bsld().real("bsld_threshold", 1.64)), 1);
    assert_eq!(gear(bsld().real("bsld_threshold", 1.64).flag("threshold_inclusive", true)), 0);
}

#[test]
fn bsld_keeps_the_reservation_when_jobs_overtake() {
    // The head is reserved at 150 (job 1 runs at the lower gear). A third job of 100 s ends by then at the lower gear, a
    // third job of 150 s only at the top gear.
    let jobs = [(0., 100., 100., 3), (0., 700., 700., 4), (0., 100., 100., 1)];
    let bsld = || two_gears(batch("fcfs", "easy")).choose(Role::GearRule, "bsld").real("bsld_threshold", 3.0);
    let third = |jobs: &[_]| {
        let rows = run(bsld(), 4, jobs);
        (rows[2].start_s, rows[2].gear_index)
    };
    assert_eq!(third(&jobs), (0., 0));
    let longer = [jobs[0], jobs[1], (0., 150., 150., 1)];
    assert_eq!(third(&longer), (0., 1));
    // An end equal to the reservation is not admissible if the reservation is exclusive.
    assert_eq!(run(bsld().flag("reservation_inclusive", false), 4, &longer)[2].start_s, 850.0 + 350.0);
    // Job 2 is reserved at 10, and job 3 would end at 10.
    let sharp = [(0., 10., 10., 3), (1., 10., 10., 4), (2., 8., 8., 1), (2., 7., 7., 1)];
    let top = || batch("fcfs", "easy").flag("extra_procs", false);
    starts(top(), 4, &sharp, &[0., 10., 2., 20.]);
    starts(top().flag("reservation_inclusive", false), 4, &sharp, &[0., 10., 20., 2.]);
}

#[test]
fn the_reserved_heads_gear_is_renewed_or_kept() {
    // Job 2 is reserved at 750 behind job 1 (estimate 500 s, lower gear): the predicted slowdown (749 + 900)/600 = 2.7 is
    // not below 2, so that the gear is the top gear. Job 1 ends at 150, and the slowdown is (149 + 900)/600 = 1.7.
    let jobs = [(0., 100., 500., 2), (1., 600., 600., 2)];
    let bsld = |head: &str| {
        two_gears(batch("fcfs", "easy"))
            .choose(Role::GearRule, "bsld")
            .real("bsld_threshold", 2.0)
            .text("head_gear", head)
    };
    assert_eq!(run(bsld("renew"), 2, &jobs)[1].gear_index, 0);
    assert_eq!(run(bsld("until-early-end"), 2, &jobs)[1].gear_index, 0);
    assert_eq!(run(bsld("fixed"), 2, &jobs)[1].gear_index, 1);
    // Without an early end: at 2 job 2 is reserved at 600; another job waits, so that lower gears are not allowed. That job
    // has overtaken by 600, when the gear is renewed.
    let jobs = [(0., 600., 600., 3), (2., 600., 600., 4), (2., 300., 300., 1)];
    let gear = |head: &str| {
        let build = bsld(head).real("bsld_threshold", 5.0).real("wq_threshold", 0.0);
        run(build, 4, &jobs)[1].gear_index
    };
    assert_eq!((gear("renew"), gear("until-early-end"), gear("fixed")), (0, 1, 1));
    // Jobs 1 and 2 outlive their estimates. Job 3, alone in the queue, is reserved at 10, when job 1 should end. At 50 both
    // should have ended, so that job 3 leaves a proc to job 4.
    let jobs = [(0., 100., 10., 2), (0., 100., 20., 1), (1., 10., 10., 4), (50., 200., 200., 1)];
    for head in ["renew", "until-early-end", "fixed"] {
        starts(bsld(head).real("bsld_threshold", 1.0), 5, &jobs, &[0., 0., 100., 50.]);
    }
}

#[test]
fn wide_jobs_are_an_error_clamped_or_dropped() {
    let jobs = [(0., 10., 10., 2), (1., 10., 10., 9), (2., 10., 10., 4)];
    let error = simulate(&batch("fcfs", "easy").int("procs", 4).0, &workload(&jobs), &Limits::NONE, None);
    assert_eq!(error, Err(SimError::TooWide { job_id: 2, record: 2, procs: 9, machine_procs: 4 }));
    starts(batch("fcfs", "easy").text("wide_jobs", "clamp"), 4, &jobs, &[0., 10., 20.]);
    starts(batch("fcfs", "easy").text("wide_jobs", "drop"), 4, &jobs, &[0., 10.]);
    let spec = batch("fcfs", "easy").text("wide_jobs", "drop").int("procs", 1).0;
    assert!(matches!(simulate(&spec, &workload(&jobs), &Limits::NONE, None), Err(SimError::Empty(_))));
}

#[test]
fn machine_size_and_gear_tables_are_checked() {
    let jobs = workload(&[(0., 10., 10., 2)]);
    let run = |build: Build| simulate(&build.0, &jobs, &Limits::NONE, None);
    let message = |build: Build| run(build).unwrap_err().to_string();
    assert!(message(batch("fcfs", "easy")).contains("set `procs`"));
    assert_eq!(run(batch("fcfs", "easy").int("procs", 3).real("size_factor", 1.5)).unwrap().machine_procs, 5);
    assert!(message(batch("fcfs", "easy").int("procs", 1).real("size_factor", 0.1)).contains("size_factor"));
    let gears = |ghz: &[f64], volts: &[f64]| {
        let build = batch("fcfs", "easy").int("procs", 4);
        build.set("gears_ghz", Value::Reals(ghz.to_vec())).set("gear_volts", Value::Reals(volts.to_vec()))
    };
    assert!(message(gears(&[1.0, 2.0], &[1.0])).contains("one voltage"));
    assert!(message(gears(&[2.0, 1.0], &[1.0, 1.2])).contains("ascend"));
    assert_eq!(gears(&[2.0, 1.0], &[1.0]).0.problems().len(), 2);
}

#[test]
fn a_run_ends_at_its_limits() {
    let jobs: Vec<_> = (0..2000).map(|i| (f64::from(i), 10., 10., 1)).collect();
    let workload = workload(&jobs);
    let spec = batch("fcfs", "easy").int("procs", 4).0;
    let run = |limits: &Limits<'_>| simulate(&spec, &workload, limits, None).unwrap_err();
    assert_eq!(run(&Limits { max_events: 1500, ..Limits::NONE }), SimError::EventLimit(1500));
    // 512 arrivals and 512 ends: the number is checked at each 1,024th event.
    let few = self::workload(&jobs[..512]);
    let events = |max_events| simulate(&spec, &few, &Limits { max_events, ..Limits::NONE }, None);
    assert_eq!((events(1024).unwrap().events_count, events(1023).err()), (1024, Some(SimError::EventLimit(1023))));
    // It is checked at the end of a short run, too.
    let short = self::workload(&jobs[..5]);
    let events = |max_events| simulate(&spec, &short, &Limits { max_events, ..Limits::NONE }, None);
    assert_eq!((events(10).unwrap().events_count, events(9).err()), (10, Some(SimError::EventLimit(9))));
    assert_eq!(run(&Limits { max_bytes: 1000, ..Limits::NONE }), SimError::MemoryLimit(1000));
    // Records of jobs count: with them, the least limit is higher.
    let least = |with_rows: bool| {
        let suffices = |max_bytes| {
            let (limits, mut rows) = (Limits { max_bytes, ..Limits::NONE }, Vec::new());
            simulate(&spec, &workload, &limits, with_rows.then_some(&mut rows)).is_ok()
        };
        (1..10_000).find(|kib| suffices(kib << 10)).unwrap()
    };
    assert!(least(true) > least(false), "{} KiB, {} KiB", least(true), least(false));
    assert_eq!(run(&Limits { deadline_passed: &|| true, ..Limits::NONE }), SimError::Deadline);
}

#[test]
fn fairness_compares_with_strict_fcfs() {
    // Starts under strict FCFS: 0, 10, 20, 25. EASY starts job 3 at 103 and job 4 at 3: one job is delayed, by 83 s.
    let jobs = [(0., 10., 10., 3), (1., 10., 10., 3), (2., 5., 5., 4), (3., 100., 100., 1)];
    let spec = batch("fcfs", "easy").int("procs", 4).flag("fairness", true).0;
    let summary = simulate(&spec, &workload(&jobs), &Limits::NONE, None).unwrap();
    assert_eq!(summary.fairness_delayed_count, Some(1));
    assert_eq!(summary.fairness_delay_s_mean, Some(83.0 / 4.0));
}

/// Loss of capacity counts idle procs while a job waits.
#[test]
fn idle_procs_are_lost_while_a_job_waits() {
    let build = batch("fcfs", "none").int("procs", 4);
    // One proc idles for 10 s before job 2 starts, and none after it.
    let jobs = workload(&[(0., 10., 10., 3), (0., 30., 30., 4)]);
    let summary = simulate(&build.0, &jobs, &Limits::NONE, None).unwrap();
    assert_eq!(summary.loss_of_capacity, Some(10. / (4. * 40.)));
}
