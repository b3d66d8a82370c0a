//! The summary compared with plain formulas on random jobs.
use proptest::prelude::*;

use super::*;

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn rms(values: &[f64]) -> Option<f64> {
    mean(&values.iter().map(|value| value * value).collect::<Vec<f64>>()).map(f64::sqrt)
}

fn weighted(values: &[f64], weights: &[f64]) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total)
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

fn assert_close(name: &str, got: Option<f64>, expected: Option<f64>) {
    let same = match (got, expected) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-3),
        (None, None) => true,
        _ => false,
    };
    assert!(same, "{name}: {got:?} instead of {expected:?}");
}

/// Checks each metric of measured jobs by its own formula.
fn assert_job_metrics(s: &Summary, jobs: &[Job], outcomes: &[Outcome], tau: f64) {
    let each =
        |f: &dyn Fn(&Job, &Outcome) -> f64| -> Vec<f64> { jobs.iter().zip(outcomes).map(|(j, o)| f(j, o)).collect() };
    let wait = each(&|j, o| o.start_s - j.submit_s);
    let turnaround = each(&|j, o| o.finish_s - j.submit_s);
    let bounded = |tau: f64| each(&|j, o| ((o.finish_s - j.submit_s) / j.run_s.max(tau)).max(1.0));
    let short = bounded(10.0);
    let procs = each(&|j, _| f64::from(j.procs));
    let area = each(&|j, _| f64::from(j.procs) * j.run_s);
    let slowdown: Vec<f64> =
        turnaround.iter().zip(jobs).filter(|(_, j)| j.run_s > 0.0).map(|(t, j)| t / j.run_s).collect();
    let reals = [
        ("wait_s_mean", s.wait_s_mean, mean(&wait)),
        ("turnaround_s_mean", s.turnaround_s_mean, mean(&turnaround)),
        ("wait_s_p50", s.wait_s_p50, Some(quantile(&wait, 0.5))),
        ("wait_s_p95", s.wait_s_p95, Some(quantile(&wait, 0.95))),
        ("wait_s_p99", s.wait_s_p99, Some(quantile(&wait, 0.99))),
        ("wait_s_max", s.wait_s_max, Some(quantile(&wait, 1.0))),
        ("turnaround_s_rms", s.turnaround_s_rms, rms(&turnaround)),
        ("bsld_tau10s_rms", s.bsld_tau10s_rms, rms(&short)),
        ("turnaround_s_p50", s.turnaround_s_p50, Some(quantile(&turnaround, 0.5))),
        ("turnaround_s_p95", s.turnaround_s_p95, Some(quantile(&turnaround, 0.95))),
        ("turnaround_s_p99", s.turnaround_s_p99, Some(quantile(&turnaround, 0.99))),
        ("turnaround_s_max", s.turnaround_s_max, Some(quantile(&turnaround, 1.0))),
        ("bsld_mean", s.bsld_mean, mean(&bounded(tau))),
        ("bsld_tau10s_mean", s.bsld_tau10s_mean, mean(&short)),
        ("bsld_tau10s_max", s.bsld_tau10s_max, Some(quantile(&short, 1.0))),
        ("bsld_tau600s_mean", s.bsld_tau600s_mean, mean(&bounded(600.0))),
        (
            "slowdown_lawson_tau10s_mean",
            s.slowdown_lawson_tau10s_mean,
            mean(&each(&|j, o| 1.0 + (o.start_s - j.submit_s) / j.run_s.max(10.0))),
        ),
        ("bsld_tau10s_procs_weighted_mean", s.bsld_tau10s_procs_weighted_mean, weighted(&short, &procs)),
        ("wait_s_procs_weighted_mean", s.wait_s_procs_weighted_mean, weighted(&wait, &procs)),
    ];
    for (name, got, expected) in reals {
        assert_close(name, Some(got), expected);
    }
    assert_close("slowdown_mean", s.slowdown_mean, mean(&slowdown));
    assert_close("slowdown_rms", s.slowdown_rms, rms(&slowdown));
    assert_close("slowdown_max", s.slowdown_max, slowdown.iter().copied().reduce(f64::max));
    assert_close("bsld_tau10s_area_weighted_mean", s.bsld_tau10s_area_weighted_mean, weighted(&short, &area));
    for (name, got, values) in [("wait_s_sd", s.wait_s_sd, &wait), ("turnaround_s_sd", s.turnaround_s_sd, &turnaround)]
    {
        let n = values.len() as f64;
        let center = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
        assert_close(name, got, (n > 1.0).then(|| (squares / (n - 1.0)).sqrt()));
    }
    assert_eq!(s.waited_count, wait.iter().filter(|w| **w > 0.0).count() as u64);
    assert_eq!(s.backfilled_count, outcomes.iter().filter(|o| o.backfilled).count() as u64);
    assert_eq!(s.reduced_count, outcomes.iter().filter(|o| o.gear_index < 2).count() as u64);
    for gear in 0..3_u8 {
        let count = outcomes.iter().filter(|o| o.gear_index == gear).count() as u64;
        assert_eq!(s.gear_jobs_count[usize::from(gear)], count);
    }
    assert_classes(s, jobs, &wait, &short);
}

fn assert_classes(s: &Summary, jobs: &[Job], wait: &[f64], short: &[f64]) {
    let sizes = [
        (1.0, 1.0, s.jobs_count_size_1, s.wait_s_mean_size_1, s.bsld_tau10s_mean_size_1),
        (2.0, 8.0, s.jobs_count_size_2_8, s.wait_s_mean_size_2_8, s.bsld_tau10s_mean_size_2_8),
        (9.0, 32.0, s.jobs_count_size_9_32, s.wait_s_mean_size_9_32, s.bsld_tau10s_mean_size_9_32),
        (33.0, 1e9, s.jobs_count_size_33_up, s.wait_s_mean_size_33_up, s.bsld_tau10s_mean_size_33_up),
    ];
    // The greatest f64 below each border makes the half-open classes closed ones.
    let below = |border: f64| border.next_down();
    let runs = [
        (0.0, below(600.0), s.jobs_count_run_10min, s.wait_s_mean_run_10min, s.bsld_tau10s_mean_run_10min),
        (600.0, below(3600.0), s.jobs_count_run_1h, s.wait_s_mean_run_1h, s.bsld_tau10s_mean_run_1h),
        (3600.0, below(28_800.0), s.jobs_count_run_8h, s.wait_s_mean_run_8h, s.bsld_tau10s_mean_run_8h),
        (28_800.0, 1e12, s.jobs_count_run_8h_up, s.wait_s_mean_run_8h_up, s.bsld_tau10s_mean_run_8h_up),
    ];
    let keys: [fn(&Job) -> f64; 2] = [|j| f64::from(j.procs), |j| j.run_s];
    for (key, classes) in keys.into_iter().zip([sizes, runs]) {
        for (low, high, count, wait_mean, bsld_mean) in classes {
            let pick = |values: &[f64]| -> Vec<f64> {
                let inside = |j: &Job| key(j) >= low && key(j) <= high;
                values.iter().zip(jobs).filter(|(_, j)| inside(j)).map(|(v, _)| *v).collect()
            };
            assert_eq!(count, pick(wait).len() as u64, "class from {low}");
            assert_close("class wait", wait_mean, mean(&pick(wait)));
            assert_close("class bsld", bsld_mean, mean(&pick(short)));
        }
    }
}

/// Checks each metric of the measured window by its own formula.
fn assert_window(s: &Summary, jobs: &[Job], outcomes: &[Outcome], measured: std::ops::Range<usize>, procs: u32) {
    let (begin, end) = (jobs[measured.start].submit_s, jobs[measured.end - 1].submit_s);
    let length = end - begin;
    let over = |v: f64| (length > 0.0).then(|| v / (f64::from(procs) * length));
    let overlap = |o: &Outcome| (o.finish_s.min(end) - o.start_s.max(begin)).max(0.0);
    let busy: f64 = jobs.iter().zip(outcomes).map(|(j, o)| f64::from(j.procs) * overlap(o)).sum();
    let area: f64 = jobs[measured].iter().map(|j| f64::from(j.procs) * j.run_s).sum();
    let completed = outcomes.iter().filter(|o| (begin..=end).contains(&o.finish_s)).count();
    assert_close("window_utilization", s.window_utilization, over(busy));
    assert_close("window_offered_load", s.window_offered_load, over(area));
    let rate = (length > 0.0).then(|| 3600.0 * completed as f64 / length);
    assert_close("window_throughput_jobs_per_h", s.window_throughput_jobs_per_h, rate);
}

prop_compose! {
    fn random_row()(
        gap in prop_oneof![Just(0.0), 0.0..500.0],
        wait in prop_oneof![Just(0.0), 0.0..1e5],
        run in prop_oneof![Just(0.0), Just(600.0), 0.0..20.0, 0.0..60_000.0],
        stretch in prop_oneof![Just(1.0), 1.0..3.0],
        procs in 1..60_u32,
        gear in 0..3_u8,
        backfilled: bool,
    ) -> (Row, u8, bool) {
        ((gap, wait, run, run * stretch, procs), gear, backfilled)
    }
}

proptest! {
    #[test]
    fn equals_the_plain_formulas(
        rows in prop::collection::vec(random_row(), 1..80),
        warmup in 0..10_i64,
        cooldown in 0..10_i64,
        tau in 0.1..1000.0,
    ) {
        let mut now = 1e6;
        let (mut jobs, mut outcomes) = (Vec::new(), Vec::new());
        for (row, gear_index, backfilled) in rows {
            now += row.0;
            let row = (now, row.1, row.2, row.3, row.4);
            jobs.push(job(&row));
            outcomes.push(Outcome { gear_index, backfilled, ..outcome(&row) });
        }
        let statistics = choice(&[
            ("warmup_jobs", Value::Int(warmup)),
            ("cooldown_jobs", Value::Int(cooldown)),
            ("bsld_tau_s", Value::Real(tau)),
        ]);
        let n = jobs.len();
        let (cold, hot) = (warmup as usize, n.saturating_sub(cooldown as usize));
        prop_assert_eq!(check(&statistics, &jobs).is_ok(), cold < hot);
        prop_assume!(cold < hot);
        let s = summarize(&statistics, &jobs, &outcomes, &integrals(&jobs, &outcomes, 64, 3), 3, None, 200.0);
        assert_job_metrics(&s, &jobs[cold..hot], &outcomes[cold..hot], tau);
        assert_window(&s, &jobs, &outcomes, cold..hot, 64);
        assert_close("residence", (s.makespan_s > 0.0 && !s.gear_residence_share.is_empty())
            .then(|| s.gear_residence_share.iter().sum()), (!s.gear_residence_share.is_empty()).then_some(1.0));
        for residual in [s.little_residual, s.procs_residual, s.busy_residual, s.energy_residual] {
            prop_assert!(residual < 1e-9, "{}", residual);
        }
    }
}
