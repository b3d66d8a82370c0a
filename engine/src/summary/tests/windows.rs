//! Warm-up and cool-down.
use super::window::measured;
use super::*;

/// Jobs submitted every 10 s from 100 on, with the given waits.
fn rows(waits: &[f64]) -> Vec<Row> {
    (0_u32..).zip(waits).map(|(i, &wait)| (100.0 + 10.0 * f64::from(i), wait, 20.0, 20.0, 1)).collect()
}

fn cut(waits: &[f64], set: &[(&str, Value)]) -> std::ops::Range<usize> {
    let rows = rows(waits);
    let (jobs, outcomes): (Vec<_>, Vec<_>) = rows.iter().map(|r| (job(r), outcome(r))).unzip();
    measured(&choice(set), &jobs, &outcomes)
}

#[test]
fn fixed_cuts_go_by_jobs_and_by_time() {
    let waits = [0.0; 20];
    let int = Value::Int;
    let real = Value::Real;
    assert_eq!(cut(&waits, &[]), 0..20);
    assert_eq!(cut(&waits, &[("warmup_jobs", int(3)), ("cooldown_jobs", int(2))]), 3..18);
    // The submits are 100, 110, ..., 290: jobs before 130 and after 260 are cut.
    assert_eq!(cut(&waits, &[("warmup_s", real(30.0)), ("cooldown_s", real(30.0))]), 3..17);
    // The longer of two cuts applies.
    assert_eq!(cut(&waits, &[("warmup_s", real(30.0)), ("warmup_jobs", int(5))]), 5..20);
    assert_eq!(cut(&waits, &[("warmup_s", real(30.0)), ("warmup_jobs", int(1))]), 3..20);
}

#[test]
fn a_cut_shows_in_every_job_metric_but_not_in_the_machine_metrics() {
    let rows = rows(&[500.0, 40.0, 60.0, 900.0]);
    let all = summary_of(&rows, &choice(&[]), 4);
    let s = summary_of(&rows, &choice(&[("warmup_jobs", Value::Int(1)), ("cooldown_jobs", Value::Int(1))]), 4);
    assert_eq!((s.jobs_count, s.measured_jobs_count, s.warmup_jobs_count, s.cooldown_jobs_count), (4, 2, 1, 1));
    assert_eq!((s.wait_s_mean, s.wait_s_max, s.gear_jobs_count), (50.0, 60.0, vec![2]));
    assert_eq!((s.window_begin_s, s.window_end_s), (110.0, 120.0));
    assert_eq!(s.window_offered_load, Some(40.0 / (4.0 * 10.0)));
    assert_eq!((s.energy_total_j, s.utilization_installed), (all.energy_total_j, all.utilization_installed));
    assert_eq!(s.little_residual, all.little_residual);
}

#[test]
fn the_window_includes_other_jobs_that_run_or_end_inside_it() {
    // Measured: the second and third job, so the window is [10, 50]. The first job runs from 0 to 30.
    let rows =
        [(0.0, 0.0, 30.0, 30.0, 2), (10.0, 0.0, 10.0, 10.0, 1), (50.0, 0.0, 10.0, 10.0, 4), (60.0, 0.0, 5.0, 5.0, 1)];
    let s = summary_of(&rows, &choice(&[("warmup_jobs", Value::Int(1)), ("cooldown_jobs", Value::Int(1))]), 4);
    // 2 procs for 20 s and 1 for 10 s of 4 procs for 40 s; two completions in 40 s.
    assert_eq!(s.window_utilization, Some(50.0 / 160.0));
    assert_eq!(s.window_throughput_jobs_per_h, Some(2.0 * 90.0));
    assert_eq!(s.window_offered_load, Some(50.0 / 160.0));
}

#[test]
fn mser5_cuts_the_transient() {
    let mut waits = vec![1000.0; 10];
    waits.extend((0..90).map(|i| f64::from(i % 5)));
    let rule = || ("warmup_rule", Value::Text("mser5".into()));
    assert_eq!(cut(&waits, &[rule()]), 10..100);
    // On top of the fixed cut.
    assert_eq!(cut(&waits, &[rule(), ("warmup_jobs", Value::Int(7))]), 12..100);
    // Of equal statistics the least cut is taken, here none.
    assert_eq!(cut(&[3.0; 50], &[rule()]), 0..50);
    // At most half of the batches, here nine, is cut; the last three jobs make no batch.
    let rising: Vec<f64> = (0..48).map(|i| f64::from(48 - i).powi(4)).collect();
    assert_eq!(cut(&rising, &[rule()]), 20..48);
    // Fewer than five jobs make no batch.
    assert_eq!(cut(&[9.0, 0.0, 0.0], &[rule()]), 0..3);
}

/// Computes the statistic by its definition for every truncation.
#[test]
fn mser5_minimises_its_statistic() {
    let waits: Vec<f64> = (0..200).map(|i| (400.0 / f64::from(1 + i)) * f64::from(1 + (i * 7919) % 13)).collect();
    let means: Vec<f64> = waits.chunks(5).map(|c| c.iter().sum::<f64>() / 5.0).collect();
    let statistic = |d: usize| {
        let kept = &means[d..];
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        kept.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / (kept.len() as f64).powi(2)
    };
    let best = (0..=20).min_by(|&a, &b| statistic(a).total_cmp(&statistic(b))).expect("truncations");
    assert!(best > 0, "the case must have a transient");
    assert_eq!(cut(&waits, &[("warmup_rule", Value::Text("mser5".into()))]), 5 * best..200);
}

#[test]
fn cuts_that_leave_no_job_are_refused() {
    let jobs: Vec<_> = rows(&[0.0; 4]).iter().map(job).collect();
    let error = check(&choice(&[("warmup_jobs", Value::Int(3)), ("cooldown_jobs", Value::Int(1))]), &jobs);
    let message = error.expect_err("nothing is left").to_string();
    assert!(message.contains("none of the 4 jobs") && message.contains("warmup_jobs"), "{message}");
    assert!(check(&choice(&[("warmup_s", Value::Real(31.0))]), &jobs).is_err());
    assert!(check(&choice(&[("warmup_s", Value::Real(30.0))]), &jobs).is_ok());
    assert!(matches!(check(&choice(&[]), &[]), Err(SimError::Empty(_))));
}
