//! Lawson & Smirni 2005: active procs by the two-level policy and by online simulation.
use powersweep_engine::{Details, Limits, Role, SeriesPoint, SimSpec, Summary, Value};

use crate::golden::workload;
use crate::logs;
use crate::specs::{Build, series_alone, simulate};

/// Submit (s), run (s), estimate (s), procs.
type Jobs<'a> = &'a [(f64, f64, f64, u32)];

/// Start times, steps of the active procs, and the summary, on 4 procs.
fn run(build: Build, jobs: Jobs<'_>) -> (Vec<f64>, Vec<(f64, f64)>, Summary) {
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    let spec = build.int("procs", 4).0;
    let measured = powersweep_engine::simulate(&spec, &workload(jobs), &Limits::NONE, &mut details).unwrap();
    let starts = details.jobs.unwrap().iter().map(|job| job.start_s).collect();
    (starts, series(&details.series.unwrap(), "active_procs"), measured.jobs().unwrap().clone())
}

/// The points of a series.
fn series(points: &[SeriesPoint], name: &str) -> Vec<(f64, f64)> {
    points.iter().filter(|point| point.series == name).map(|point| (point.x, point.value)).collect()
}

fn two_level() -> Build {
    Build::log().choose(Role::Capacity, "two-level").int("two_level_procs", 2)
}

/// Narrow jobs, and one that needs more than the lower level of 2 procs.
const ONE_WIDE: [(f64, f64, f64, u32); 5] =
    [(0., 10., 10., 1), (1., 10., 10., 3), (12., 5., 5., 2), (13., 5., 5., 1), (13., 2., 2., 2)];

#[test]
fn two_level_raises_the_active_procs_for_a_wide_job_only() {
    // The active procs are lowered at 0, raised for job 2 at 1, and lowered when it ends at 11. So job 4 waits for job 3,
    // and job 5 for job 4.
    let (starts, active, summary) = run(two_level(), &ONE_WIDE);
    assert_eq!(starts, [0., 1., 12., 17., 22.]);
    assert_eq!(active, [(0., 2.), (1., 4.), (11., 2.)]);
    assert_eq!(summary.active_changes_count, 3);
    assert_eq!(summary.active_savings, Some(1.0 - 68.0 / 96.0));
    assert_eq!(summary.utilization_active, Some(59.0 / 68.0));
    assert_eq!(summary.asleep_proc_h * 3600.0, 28.0);
    assert_eq!(summary.transition_proc_h, 0.0);
}

#[test]
fn procs_that_wake_count_as_active_and_can_be_used_after_their_wake_time() {
    // Two procs are woken at 1 and can be used at 4: job 2 runs from 4 to 14. Job 3 (2 procs) is the head at 12, reserved
    // at 14 with 2 extra procs; job 4 takes one of them at 13. Job 5 starts when job 4 ends, at 18. When job 3 ends, at 19,
    // 2 procs are in use, and two fall asleep.
    let slow = two_level().real("wake_s", 3.0).real("wake_w", 7.0).real("asleep_w", 1.0);
    let (starts, active, summary) = run(slow, &ONE_WIDE);
    assert_eq!(starts, [0., 4., 14., 13., 18.]);
    assert_eq!(active, [(0., 2.), (1., 4.), (19., 2.)]);
    assert_eq!(summary.active_savings, Some(1.0 - 76.0 / 80.0));
    assert_eq!((summary.asleep_proc_h * 3600.0, summary.transition_proc_h * 3600.0), (4.0, 6.0));
    assert_eq!((summary.energy_asleep_j, summary.energy_transition_j), (4.0, 42.0));
    assert!(summary.procs_residual < 1e-12 && summary.energy_residual < 1e-12);
}

#[test]
fn procs_that_switch_off_can_be_used_only_after_they_are_off() {
    // Two procs switch off from 0 to 5. Job 2 needs them at 1: they count as active at once, and can be used at 5, or at 8
    // with a wake time of 3 s.
    let jobs = &ONE_WIDE[..2];
    let (starts, active, summary) = run(two_level().real("off_s", 5.0), jobs);
    assert_eq!(starts, [0., 5.]);
    assert_eq!(active, [(0., 2.), (1., 4.)]);
    assert_eq!((summary.asleep_proc_h, summary.transition_proc_h * 3600.0), (0.0, 10.0));
    let (starts, ..) = run(two_level().real("off_s", 5.0).real("wake_s", 3.0), jobs);
    assert_eq!(starts, [0., 8.]);
}

#[test]
fn procs_that_wake_are_releases_for_every_backfilling_rule() {
    // At 2 job 2 is reserved at 4, when the procs have woken. Job 3 ends by then and overtakes; job 4 would end later.
    let jobs = [(0., 10., 10., 1), (1., 10., 10., 3), (2., 2., 2., 1), (2., 3., 3., 1)];
    let slow = |backfill| two_level().real("wake_s", 3.0).choose(Role::Backfill, backfill);
    assert_eq!(run(slow("easy"), &jobs).0, [0., 4., 2., 10.]);
    assert_eq!(run(slow("conservative"), &jobs).0, [0., 4., 2., 10.]);
    assert_eq!(run(slow("none"), &jobs).0, [0., 4., 10., 12.]);
}

fn ols(sla: f64) -> Build {
    Build::log().choose(Role::Capacity, "ols").real("ols_period_s", 10.0).real("ols_sla_slowdown", sla)
}

/// Job 1 (2 procs) runs until 25; at 20 two narrow jobs wait; at 21 a wide job arrives.
const QUEUED: [(f64, f64, f64, u32); 4] = [(0., 25., 25., 2), (11., 10., 10., 1), (12., 10., 10., 1), (21., 4., 4., 4)];

#[test]
fn online_simulation_keeps_as_few_procs_active_as_the_service_level_allows() {
    // At 10 no job waits: the 2 procs in use stay active. At 20, with 2 procs both jobs would start at 25, with a mean
    // slowdown of (2.4 + 2.3)/2 = 2.35. With 3 procs job 2 starts at once: (1.9 + 2.3)/2 = 2.1. Job 4 raises the active
    // procs at 21, and still waits at 30.
    let (starts, active, summary) = run(ols(2.5), &QUEUED);
    assert_eq!((starts, active), (vec![0., 21., 21., 31.], vec![(0., 4.), (10., 2.), (21., 4.)]));
    // The slowdowns are 1, 2, 1.9 and 2: none is above 2.5, two are above 1.95.
    assert_eq!(summary.over_sla_share, 0.0);
    assert_eq!(run(ols(2.5).real("sla_slowdown", 1.95), &QUEUED).2.over_sla_share, 0.5);
    let (starts, active, _) = run(ols(2.2), &QUEUED);
    assert_eq!((starts, active), (vec![0., 20., 21., 31.], vec![(0., 4.), (10., 2.), (20., 3.), (21., 4.)]));
    let (starts, active, _) = run(ols(2.0), &QUEUED);
    assert_eq!((starts, active), (vec![0., 20., 20., 30.], vec![(0., 4.), (10., 2.), (20., 4.)]));
}

#[test]
fn online_simulation_keeps_a_least_number_of_procs_and_uses_given_levels() {
    // Job 2 starts on the third proc at 11, job 3 at 21 with a slowdown of 1.9.
    let expected = (vec![0., 11., 21., 31.], vec![(0., 4.), (10., 3.), (21., 4.)]);
    let (starts, active, _) = run(ols(2.0).int("ols_min_active_procs", 3), &QUEUED);
    assert_eq!((starts, active), expected);
    let (starts, active, _) = run(ols(2.0).set("ols_levels_procs", Value::Reals(vec![1., 3., 9.])), &QUEUED);
    assert_eq!((starts, active), expected);
    // The only sufficient level exceeds the machine: all procs stay active.
    let (_, active, _) = run(ols(2.0).set("ols_levels_procs", Value::Reals(vec![1., 9.])), &QUEUED);
    assert_eq!(active, [(0., 4.)]);
}

#[test]
fn online_simulation_uses_run_times_or_estimates() {
    // Job 1 is estimated to end at 100: with 2 procs the others would wait until then. With 3 procs job 2 starts at 20 and
    // job 3 at 30: (1.9 + 2.8)/2 = 2.35.
    let mut jobs = QUEUED;
    jobs[0].2 = 100.;
    let (_, active, _) = run(ols(2.5), &jobs);
    assert_eq!(active, [(0., 4.), (10., 2.), (21., 4.)]);
    let (_, active, _) = run(ols(2.5).text("ols_durations", "estimate"), &jobs);
    assert_eq!(active, [(0., 4.), (10., 2.), (20., 3.), (21., 4.)]);
}

#[test]
fn weekly_series_by_hand() {
    // In the first week, 2 of 2 active procs are in use; job 2 ends in the third week.
    const WEEK: f64 = 604_800.0;
    let jobs = [(100., WEEK, WEEK, 2), (200., WEEK, WEEK, 1), (100. + WEEK, 86_400., 86_400., 1)];
    let mut details = series_alone();
    let spec = two_level().int("procs", 4).0;
    let mut workload = workload(&jobs);
    workload.log_waits_s = vec![0., WEEK - 100., -1.];
    powersweep_engine::simulate(&spec, &workload, &Limits::NONE, &mut details).unwrap();
    let points = details.series.unwrap();
    let values =
        |name: &str| series(&points, name).into_iter().map(|(x, v)| ((x - 100.) / WEEK, v)).collect::<Vec<_>>();
    // Job 2 starts with job 3 at the end of the first week and ends a week later.
    assert_eq!(values("week_arrivals_count"), [(0., 2.), (1., 1.), (2., 0.)]);
    assert_eq!(values("week_demand_proc_days"), [(0., 10.5), (1., 1.)]);
    assert_eq!(values("week_utilization"), [(0., 1.), (1., (WEEK + 86_400.) / (2. * WEEK))]);
    assert_eq!(values("week_active_procs_mean"), [(0., 2.), (1., 2.)]);
    // An end at a border belongs to the week that begins there.
    assert_eq!(values("week_slowdown_lawson_tau10s_mean"), [(1., 1.), (2., 1. + (WEEK - 100.) / WEEK)]);
    assert_eq!(values("week_over_sla_share"), [(1., 0.), (2., 0.)]);
    // The log started job 1 at once and job 2 at 100 + a week.
    assert_eq!(values("week_log_utilization"), [(0., 0.5), (1., 0.25)]);
    assert_eq!(series(&points, "active_procs"), [(100., 2.)]);
}

/// A workload of the paper: log, procs, lower level of the two-level policy (Table 1).
struct Whole {
    log: &'static str,
    procs: i64,
    low: i64,
}

const CTC: Whole = Whole { log: "CTC-SP2-1996-3.1-cln", procs: 512, low: 308 };
const KTH: Whole = Whole { log: "KTH-SP2-1996-2.1-cln", procs: 100, low: 75 };
const SDSC: Whole = Whole { log: "SDSC-SP2-1998-4.2-cln", procs: 128, low: 110 };
const BLUE: Whole = Whole { log: "SDSC-BLUE-2000-4.1-cln", procs: 1152, low: 922 };

impl Whole {
    fn spec(&self) -> Build {
        Build::log().int("procs", self.procs).text("estimates", "exact")
    }

    /// All procs active; two-level; online simulation.
    fn policies(&self) -> [SimSpec; 3] {
        let low = self.spec().choose(Role::Capacity, "two-level").int("two_level_procs", self.low);
        [self.spec().0, low.0, self.spec().choose(Role::Capacity, "ols").0]
    }

    /// The summaries of the policies.
    fn summaries(&self) -> [Summary; 3] {
        let log = logs::read(logs::folder().join(format!("{}.swf.gz", self.log)));
        let workload = logs::workload(&self.spec().0, &log);
        self.policies().map(|spec| simulate(&spec, &workload, &Limits::NONE, None).unwrap())
    }
}

/// Checks that two values agree within a relative distance.
#[track_caller]
fn near(ours: f64, anchor: f64, relative: f64) {
    assert!((ours - anchor).abs() <= relative * anchor.abs(), "{ours} is not {anchor}");
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn slowdowns_of_kth_equal_the_known_values() {
    let summaries = KTH.summaries();
    for (summary, slowdown) in summaries.iter().zip([72.583209, 172.564622, 126.200474]) {
        near(summary.slowdown_lawson_tau10s_mean, slowdown, 1e-6);
    }
}

/// Figure 2 and its description in the text.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_whole_logs_show_what_the_paper_claims() {
    let utilizations = [(CTC, 0.556), (KTH, 0.699), (SDSC, 0.834), (BLUE, 0.764)];
    for (whole, utilization) in utilizations {
        let [all, two_level, ols] = whole.summaries();
        let ctc = whole.procs == CTC.procs;
        let slowdown = |summary: &Summary| summary.slowdown_lawson_tau10s_mean;
        let savings = |summary: &Summary| summary.active_savings.unwrap();
        let active = |summary: &Summary| summary.utilization_active.unwrap();
        for summary in [&all, &two_level, &ols] {
            let residuals = [summary.procs_residual, summary.energy_residual, summary.busy_residual];
            assert!(residuals.iter().chain([&summary.little_residual]).all(|r| *r < 1e-12), "{}", whole.log);
        }

        assert!((active(&all) - utilization).abs() <= 0.005, "{}: {}", whole.log, active(&all));
        assert_eq!((savings(&all), all.active_changes_count), (0.0, 0));

        assert!(savings(&two_level) >= if ctc { 0.30 } else { 0.095 }, "{}: {}", whole.log, savings(&two_level));
        assert!(active(&two_level) >= 0.80);
        assert!(ctc || slowdown(&two_level) <= 2.6 * slowdown(&all));

        assert!(ctc || slowdown(&ols) < slowdown(&two_level));
        assert!(slowdown(&ols) <= 200.0);
        assert!(ctc || (0.07..=0.10).contains(&savings(&ols)), "{}: {}", whole.log, savings(&ols));
        assert!(active(&ols) < active(&two_level));
    }
}
