//! Cases that are small enough to check by hand.
use super::*;

/// Three jobs on 10 procs: (submit, wait, run_top, run, procs).
///
/// | job | wait | turnaround | bsld 10 s | bsld 600 s | 1 + wait/max(10, run) | (wait + run)/run |
/// |---|---|---|---|---|---|---|
/// | 1 | 0 | 100 | 1 | 1 | 1 | 1 |
/// | 2 | 90 | 95 | 9.5 | 1 | 10 | 19 |
/// | 3 | 180 | 1180 | 1.18 | 1.18 | 1.18 | 1.18 |
const ROWS: [Row; 3] =
    [(1000.0, 0.0, 100.0, 100.0, 10), (1010.0, 90.0, 5.0, 5.0, 1), (1020.0, 180.0, 1000.0, 1000.0, 4)];

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{got} instead of {expected}");
}

#[test]
fn job_metrics_of_three_jobs() {
    let s = summary_of(&ROWS, &choice(&[]), 10);
    assert_eq!((s.jobs_count, s.measured_jobs_count, s.warmup_jobs_count, s.cooldown_jobs_count), (3, 3, 0, 0));
    assert_eq!((s.first_submit_s, s.last_finish_s, s.makespan_s), (1000.0, 2200.0, 1200.0));
    assert_eq!((s.wait_s_mean, s.wait_s_p50, s.wait_s_max), (90.0, 90.0, 180.0));
    // Positions 1.9 and 1.98 of 0 ..= 2.
    close(s.wait_s_p95, 171.0);
    close(s.wait_s_p99, 178.2);
    close(s.wait_s_sd.expect("three jobs"), 90.0);
    close(s.turnaround_s_mean, 1375.0 / 3.0);
    assert_eq!((s.turnaround_s_p50, s.turnaround_s_max), (100.0, 1180.0));
    close(s.bsld_tau10s_mean, (1.0 + 9.5 + 1.18) / 3.0);
    assert_eq!(s.bsld_mean, s.bsld_tau10s_mean, "10 s is the default bound");
    assert_eq!(s.bsld_tau10s_max, 9.5);
    close(s.bsld_tau600s_mean, (1.0 + 1.0 + 1.18) / 3.0);
    close(s.slowdown_lawson_tau10s_mean, (1.0 + 10.0 + 1.18) / 3.0);
    close(s.slowdown_mean.expect("run times"), (1.0 + 19.0 + 1.18) / 3.0);
    close(s.bsld_tau10s_procs_weighted_mean, (10.0 + 9.5 + 4.0 * 1.18) / 15.0);
    close(s.bsld_tau10s_area_weighted_mean.expect("areas"), (1000.0 + 5.0 * 9.5 + 4000.0 * 1.18) / 5005.0);
    close(s.wait_s_procs_weighted_mean, (90.0 + 720.0) / 15.0);
    assert_eq!((s.waited_count, s.reduced_count, s.gear_jobs_count), (2, 0, vec![3]));
}

#[test]
fn machine_metrics_of_three_jobs() {
    let s = summary_of(&ROWS, &choice(&[]), 10);
    // Busy 10 * 100 + 1 * 5 + 4 * 1000 = 5005 of 12,000 processor-seconds.
    close(s.utilization_installed.expect("a span"), 5005.0 / 12_000.0);
    assert_eq!(s.utilization_active, s.utilization_installed);
    close(s.offered_load.expect("submits differ"), 5005.0 / (10.0 * 20.0));
    close(s.throughput_jobs_per_h.expect("a span"), 9.0);
    close(s.queue_length_mean.expect("a span"), 270.0 / 1200.0);
    close(s.loss_of_capacity.expect("a span"), 7.0 / 12_000.0);
    close(s.energy_total_j, 5005.0 + 0.2 * 6995.0);
    close(s.energy_per_job_j, s.energy_total_j / 3.0);
    close(s.energy_delay_product_js, s.energy_total_j * 1375.0 / 3.0);
    close(s.power_mean_w.expect("a span"), s.energy_total_j / 1200.0);
    close(s.busy_proc_h, 5005.0 / 3600.0);
    assert_eq!(s.gear_residence_share, [1.0]);
    // In the window [1000, 1020] only job 1 runs: 10 procs for 20 s, and nothing completes.
    assert_eq!((s.window_begin_s, s.window_end_s), (1000.0, 1020.0));
    assert_eq!((s.window_utilization, s.window_throughput_jobs_per_h), (Some(1.0), Some(0.0)));
    for residual in [s.little_residual, s.procs_residual, s.busy_residual, s.energy_residual] {
        assert!(residual < 1e-12, "{residual}");
    }
}

#[test]
fn jobs_at_the_borders_belong_to_the_documented_classes() {
    let sizes = [1, 2, 8, 9, 32, 33];
    let runs = [599.0, 600.0, 3599.0, 3600.0, 28_799.0, 28_800.0];
    let rows: Vec<Row> = (0_u32..).zip(sizes).zip(runs).map(|((i, n), r)| (0.0, f64::from(i), r, r, n)).collect();
    let s = summary_of(&rows, &choice(&[]), 40);
    let by_size = [s.wait_s_mean_size_1, s.wait_s_mean_size_2_8, s.wait_s_mean_size_9_32, s.wait_s_mean_size_33_up];
    let by_run = [s.wait_s_mean_run_10min, s.wait_s_mean_run_1h, s.wait_s_mean_run_8h, s.wait_s_mean_run_8h_up];
    assert_eq!(by_size, [0.0, 1.5, 3.5, 5.0].map(Some));
    assert_eq!(by_run, [0.0, 1.5, 3.5, 5.0].map(Some));
    let counts = [s.jobs_count_size_1, s.jobs_count_size_2_8, s.jobs_count_size_9_32, s.jobs_count_size_33_up];
    assert_eq!(counts, [1, 2, 2, 1]);
    let counts = [s.jobs_count_run_10min, s.jobs_count_run_1h, s.jobs_count_run_8h, s.jobs_count_run_8h_up];
    assert_eq!(counts, [1, 2, 2, 1]);
}

#[test]
fn gears_lengthen_the_numerator_of_slowdowns_only() {
    // 1000 s at the top gear, executed in 1500 s after a wait of 300 s.
    let jobs = [job(&(0.0, 300.0, 1000.0, 1500.0, 2))];
    let mut outcomes = [outcome(&(0.0, 300.0, 1000.0, 1500.0, 2))];
    outcomes[0].gear_index = 1;
    let s = summarize(&choice(&[]), &jobs, &outcomes, &integrals(&jobs, &outcomes, 4, 3), 3, None, 200.0);
    assert_eq!((s.bsld_tau600s_mean, s.slowdown_mean, s.slowdown_lawson_tau10s_mean), (1.8, Some(1.8), 1.3));
    assert_eq!((s.gear_jobs_count, s.reduced_count), (vec![0, 1, 0], 1));
    assert_eq!((s.gear_busy_proc_s, s.gear_residence_share), (vec![0.0, 3000.0, 0.0], vec![0.0, 1.0, 0.0]));
}

#[test]
fn fairness_counts_delays_only() {
    let jobs: Vec<_> = ROWS.iter().map(job).collect();
    let outcomes: Vec<_> = ROWS.iter().map(outcome).collect();
    let integrals = integrals(&jobs, &outcomes, 10, 1);
    let s = summarize(&choice(&[]), &jobs, &outcomes, &integrals, 1, Some(&[1000.0, 1070.0, 1500.0]), 200.0);
    // Job 2 starts at 1100, 30 s late; job 3 at 1200, early.
    assert_eq!((s.fairness_delay_s_mean, s.fairness_delay_s_max), (Some(10.0), Some(30.0)));
    assert_eq!(s.fairness_delayed_count, Some(1));
    let without = summarize(&choice(&[]), &jobs, &outcomes, &integrals, 1, None, 200.0);
    assert_eq!((without.fairness_delay_s_mean, without.fairness_delayed_count), (None, None));
}

#[test]
fn one_job_of_no_length_has_no_rates() {
    let s = summary_of(&[(5.0, 0.0, 0.0, 0.0, 3)], &choice(&[]), 4);
    assert_eq!((s.makespan_s, s.wait_s_p99, s.turnaround_s_max), (0.0, 0.0, 0.0));
    assert_eq!((s.bsld_tau10s_mean, s.bsld_tau600s_mean, s.slowdown_lawson_tau10s_mean), (1.0, 1.0, 1.0));
    let null = [
        s.wait_s_sd,
        s.turnaround_s_sd,
        s.slowdown_mean,
        s.bsld_tau10s_area_weighted_mean,
        s.utilization_active,
        s.utilization_installed,
        s.offered_load,
        s.throughput_jobs_per_h,
        s.window_utilization,
        s.window_offered_load,
        s.window_throughput_jobs_per_h,
        s.loss_of_capacity,
        s.queue_length_mean,
        s.backlog_proc_s_mean,
        s.power_mean_w,
        s.power_p95_w,
    ];
    assert_eq!(null, [None; 16]);
    assert!(s.gear_residence_share.is_empty());
    assert_eq!([s.little_residual, s.procs_residual, s.busy_residual, s.energy_residual], [0.0; 4]);
}

#[test]
fn equal_submits_have_a_span_but_no_window() {
    let s = summary_of(&[(7.0, 0.0, 60.0, 60.0, 1), (7.0, 0.0, 0.0, 0.0, 1)], &choice(&[]), 1);
    assert_eq!((s.offered_load, s.window_utilization), (None, None));
    assert_eq!((s.utilization_installed, s.slowdown_mean), (Some(1.0), Some(1.0)));
}

#[test]
fn residuals_show_a_wrong_meter() {
    let jobs: Vec<_> = ROWS.iter().map(job).collect();
    let outcomes: Vec<_> = ROWS.iter().map(outcome).collect();
    let right = integrals(&jobs, &outcomes, 10, 1);
    let wrong = Integrals {
        queue_length_s: right.queue_length_s + 27.0,
        busy_proc_s: vec![right.busy_proc_s[0] * 1.5],
        energy_busy_j: right.energy_busy_j + 100.0,
        ..right
    };
    let s = summarize(&choice(&[]), &jobs, &outcomes, &wrong, 1, None, 200.0);
    close(s.little_residual, 0.1);
    close(s.busy_residual, 0.5);
    close(s.procs_residual, 2502.5 / 12_000.0);
    close(s.energy_residual, 100.0 / s.energy_total_j);
}
