//! Slow references, written from the sentences of the page on exact rules alone.

use super::*;

/// A signal of a week with steps of whole hours, and few different values.
fn coarse(cases: &mut Cases, values: u64) -> Signal {
    let (mut times_s, mut drawn, mut hour) = (Vec::new(), Vec::new(), 0);
    while hour < 24 * 7 {
        times_s.push(hour as f64 * HOUR_S);
        drawn.push(1.0 + cases.below(values) as f64);
        hour += 1 + cases.below(6);
    }
    Signal::new(times_s, drawn, vec![], WEEK_S, Sample::Mean, Beyond::Wrap).expect("well formed")
}

/// The begins of the intervals from the one that holds an instant, before another instant (s).
fn begins(signal: &Signal, from_s: f64, before_s: f64) -> Vec<f64> {
    let turns = (0..4).flat_map(|turn| signal.edges().map(move |edge| edge + f64::from(turn) * WEEK_S));
    let mut begins: Vec<f64> = turns.filter(|begin| *begin < before_s).collect();
    begins.sort_by(f64::total_cmp);
    begins.dedup();
    let present = begins.iter().rposition(|begin| *begin <= from_s).expect("the week begins at 0");
    begins.split_off(present)
}

#[test]
fn of_equal_candidates_the_first_is_taken() {
    let mut cases = Cases(Philox::stream(35, Purpose::Shuffle));
    for case in 0..12 {
        let signal = coarse(&mut cases, 2);
        let mut jobs = cases.jobs(25);
        // Whole hours, so that windows have equal sums; a length of 0 counts as 1 s.
        jobs.iter_mut().for_each(|job| job.estimate_s = (job.estimate_s / 3.0 / HOUR_S).floor() * HOUR_S);
        jobs.iter_mut().for_each(|job| job.run_s = job.estimate_s);
        let wait_max_s = (1 + cases.below(30)) as f64 * 1_800.0;
        let params = [("defer_wait_max_s", Value::Real(wait_max_s))];
        let expected = |cost: &dyn Fn(&Job, f64) -> f64| -> Vec<f64> {
            jobs.iter().map(|job| least(&candidates(&signal, job, wait_max_s), |at| cost(job, at))).collect()
        };
        let slot = expected(&|_, at| signal.at(at).expect("it goes on"));
        assert_eq!(starts(spec("lowest-slot", &signal, &params), &jobs), slot, "case {case}");
        let window = expected(&|job, at| by_second(&signal, at, job.estimate_s.max(1.0)));
        assert_eq!(starts(spec("lowest-window", &signal, &params), &jobs), window, "case {case}");
    }
}

#[test]
fn of_equal_windows_far_ahead_the_first_is_taken() {
    let prices = [10.1, 20.3, 30.0, 40.7, 55.0];
    for (step_s, length_s, expected_s) in
        [(HOUR_S, 1.0, 37.0), (HOUR_S, 10.0, 37.0), (900.0, 7.3, 37.0), (300.0, 400.0, 1_500.0)]
    {
        let times_s: Vec<f64> = (0..480).map(|at| f64::from(at) * step_s).collect();
        let values = prices.iter().copied().cycle().take(480).collect();
        let signal = Signal::new(times_s, values, vec![], 480.0 * step_s, Sample::Mean, Beyond::Wrap);
        let signal = signal.expect("well formed");
        let mut jobs = Cases(Philox::stream(37, Purpose::Shuffle)).jobs(1);
        (jobs[0].submit_s, jobs[0].run_s, jobs[0].estimate_s) = (37.0, length_s, length_s);
        for rule in ["lowest-window", "saving-per-wait"] {
            let spec = spec(rule, &signal, &[("defer_wait_max_s", Value::Real(WEEK_S))]);
            assert_eq!(starts(spec, &jobs), [expected_s], "{rule}: {length_s} s in steps of {step_s} s");
        }
    }
}

#[test]
fn quantile_takes_one_of_the_values_and_counts_each_interval_once() {
    let mut cases = Cases(Philox::stream(36, Purpose::Shuffle));
    for case in 0..12 {
        let (signal, jobs) = (coarse(&mut cases, 9), cases.jobs(25));
        let wait_max_s = (1 + cases.below(60)) as f64 * 1_800.0;
        let horizon_s = (1 + cases.below(40)) as f64 * HOUR_S;
        let quantile = cases.below(11) as f64 / 10.0;
        let reference = |job: &Job| {
            let (mut now_s, latest_s) = (job.submit_s, job.submit_s + wait_max_s);
            loop {
                let next_s = begins(&signal, now_s, now_s + WEEK_S)[1];
                let known = begins(&signal, now_s, now_s + horizon_s);
                let mut values: Vec<f64> = known.iter().map(|begin| signal.at(*begin).expect("it goes on")).collect();
                let present = values[0];
                values.sort_by(f64::total_cmp);
                let number = ((values.len() as f64 * quantile).floor() as usize).min(values.len() - 1);
                if present <= values[number] {
                    return now_s;
                }
                now_s = next_s;
                if now_s >= latest_s {
                    return latest_s;
                }
            }
        };
        let expected: Vec<f64> = jobs.iter().map(reference).collect();
        let params = [
            ("defer_wait_max_s", Value::Real(wait_max_s)),
            ("defer_horizon_s", Value::Real(horizon_s)),
            ("defer_quantile_short", Value::Real(quantile)),
            ("defer_quantile_long", Value::Real(quantile)),
        ];
        assert_eq!(starts(spec("quantile", &signal, &params), &jobs), expected, "case {case}");
    }
}

#[test]
fn persistence_repeats_the_least_number_of_days_before() {
    const DAY_S: f64 = 86_400.0;
    let mut cases = Cases(Philox::stream(37, Purpose::Shuffle));
    for case in 0..20 {
        let signal = coarse(&mut cases, 400);
        let spec = spec("lowest-slot", &signal, &[("defer_forecast", Value::Text("persistence".to_owned()))]);
        let mut forecast = Forecast::new(spec.choice(Role::Deferral), &signal, 7);
        let now_s = cases.below(5 * 86_400) as f64;
        assert!(forecast.issue(now_s));
        forecast.reach(now_s + 4.0 * DAY_S);
        let known = begins(&signal, now_s, now_s + 4.0 * DAY_S);
        let value = |begin_s: &f64| {
            let days = (0..9).map(f64::from).find(|days| begin_s - days * DAY_S <= known[0]).expect("a few days");
            let days = if *begin_s > known[0] { days.max(1.0) } else { 0.0 };
            signal.at(begin_s - days * DAY_S).expect("it repeats")
        };
        let expected: Vec<f64> = known.iter().map(value).collect();
        assert_eq!(forecast.values()[..known.len()], expected, "case {case}");
    }
}

#[test]
fn a_forecast_ends_where_its_signal_ends() {
    let mut cases = Cases(Philox::stream(38, Purpose::Shuffle));
    let mut without = 0;
    for case in 0..3 {
        let values: Vec<f64> = (0..48).map(|_| 1.0 + cases.below(400) as f64).collect();
        let times_s: Vec<f64> = (0..48).map(|hour| f64::from(hour) * HOUR_S).collect();
        let end_s = 48.0 * HOUR_S;
        let signal = Signal::new(times_s, values, vec![], end_s, Sample::Mean, Beyond::Error).expect("well formed");
        let mut jobs = cases.jobs(40);
        jobs.iter_mut().for_each(|job| job.submit_s = (job.submit_s / 2.5).floor());
        let wait_max_s = (1 + cases.below(60)) as f64 * 1_800.0;
        let params = [("defer_wait_max_s", Value::Real(wait_max_s))];
        // Candidates whose window goes beyond the end are left out; a job without a candidate is released now.
        let mut expected = |window: bool, cost: &dyn Fn(&Job, f64) -> f64| -> Vec<f64> {
            let start = |job: &Job| {
                let length_s = if window { job.estimate_s } else { 1.0 };
                let mut known = candidates(&signal, job, wait_max_s);
                known.retain(|at| at + length_s <= end_s);
                without += usize::from(known.is_empty());
                if known.is_empty() { job.submit_s } else { least(&known, |at| cost(job, at)) }
            };
            jobs.iter().map(start).collect()
        };
        let slot = expected(false, &|_, at| signal.at(at).expect("covered"));
        let window = expected(true, &|job, at| by_second(&signal, at, job.estimate_s));
        let saving = expected(true, &|job, at| {
            let saved = by_second(&signal, job.submit_s, job.estimate_s) - by_second(&signal, at, job.estimate_s);
            -saved / (at - job.submit_s + job.estimate_s)
        });
        for (rule, expected) in [("lowest-slot", slot), ("lowest-window", window), ("saving-per-wait", saving)] {
            assert_eq!(starts(spec(rule, &signal, &params), &jobs), expected, "case {case}, {rule}");
        }
    }
    assert!(without > 3, "{without} jobs had no candidate");
}

/// Jobs that are released together enter in the order of their submission, those that arrive at this instant after them.
#[test]
fn released_jobs_enter_in_the_order_of_their_submission() {
    let mut cases = Cases(Philox::stream(39, Purpose::Shuffle));
    for case in 0..20 {
        let (signal, mut jobs) = (coarse(&mut cases, 4), cases.jobs(40));
        for job in &mut jobs {
            job.submit_s = (job.submit_s / 2.0 / HOUR_S).floor() * HOUR_S;
            (job.run_s, job.estimate_s) = (9_000.0, 9_000.0);
        }
        let wait_max_s = (1 + cases.below(30)) as f64 * HOUR_S;
        let release = |job: &Job| least(&candidates(&signal, job, wait_max_s), |at| signal.at(at).expect("it goes on"));
        let mut entries: Vec<(f64, usize)> = jobs.iter().enumerate().map(|(at, job)| (release(job), at)).collect();
        entries.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (mut expected, mut free_s) = (vec![0.0; jobs.len()], 0.0_f64);
        for (release_s, at) in entries {
            expected[at] = free_s.max(release_s);
            free_s = expected[at] + 9_000.0;
        }
        for order in ["fcfs", "sjf"] {
            let mut spec = spec("lowest-slot", &signal, &[("defer_wait_max_s", Value::Real(wait_max_s))]);
            spec.choose(Choice::new(components::find(Role::Order, order).expect("registered")));
            let rows = run(spec, &jobs, 1).expect("it runs");
            assert_eq!(rows.iter().map(|row| row.start_s).collect::<Vec<_>>(), expected, "case {case}, {order}");
        }
    }
}

/// The errors of a forecast that is issued at an instant, by interval.
fn errors(signal: &Signal, seed: u64, now_s: f64, count: usize) -> Vec<f64> {
    let spec = spec("lowest-slot", signal, &[("defer_forecast", Value::Text("noise".to_owned()))]);
    let mut forecast = Forecast::new(spec.choice(Role::Deferral), signal, seed);
    assert!(forecast.issue(now_s));
    while forecast.values().len() < count {
        forecast.reach(forecast.end_of(forecast.values().len() - 1));
    }
    let (begins_s, values) = (forecast.begins_s(), forecast.values());
    (0..count).map(|at| values[at] / signal.at(begins_s[at]).expect("it repeats") - 1.0).collect()
}

/// A signal of a day with equal steps (s).
fn daily(step_s: u32) -> Signal {
    let times_s: Vec<f64> = (0..86_400 / step_s).map(|at| f64::from(at * step_s)).collect();
    let values = vec![1e6; times_s.len()];
    Signal::new(times_s, values, vec![], 86_400.0, Sample::Mean, Beyond::Wrap).expect("well formed")
}

#[test]
fn noise_is_an_autoregressive_normal_process_of_the_hours_ahead() {
    let hourly = daily(3_600);
    let squared = 0.97_f64.powi(2);
    let s = 0.11 / (2.0 / std::f64::consts::PI).sqrt() / ((1.0 - squared.powi(96)) / (1.0 - squared)).sqrt();
    let mut draws = Vec::new();
    for seed in 0..400 {
        let path = errors(&hourly, seed, 5.0 * HOUR_S, 60);
        assert_eq!(path[0], 0.0);
        draws.extend(path.windows(2).map(|pair| (pair[1] - 0.97 * pair[0]) / s));
    }
    let n = draws.len() as f64;
    let moment = |power: i32| draws.iter().map(|z| z.powi(power)).sum::<f64>() / n;
    let next = draws.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / n;
    // Six standard errors of each estimate.
    for (found, expected, error) in
        [(moment(1), 0.0, 1.0), (moment(2), 1.0, 2.0), (moment(3), 0.0, 15.0), (moment(4), 3.0, 96.0), (next, 0.0, 1.0)]
    {
        assert!((found - expected).abs() < 6.0 * (error / n).sqrt(), "{found} for {expected}");
    }
}

#[test]
fn noise_depends_on_the_seed_and_the_number_of_the_interval_alone() {
    let (hourly, quarters) = (daily(3_600), daily(900));
    let path = errors(&hourly, 7, 5.0 * HOUR_S, 30);
    // Any instant of the interval, and any question, has the path.
    assert_eq!(errors(&hourly, 7, 5.9 * HOUR_S, 30), path);
    assert_ne!(errors(&hourly, 8, 5.0 * HOUR_S, 30), path);
    assert_ne!(errors(&hourly, 7, 6.0 * HOUR_S, 30), path);
    // Numbers go on in the next turn.
    assert_ne!(errors(&hourly, 7, 29.0 * HOUR_S, 30), path);
    // Interval 5 of a signal of quarters begins at 1:15. Its intervals have the errors of whole hours from there.
    let of_quarters = errors(&quarters, 7, 4_500.0, 4 * 30);
    for (hour, four) in of_quarters.chunks(4).enumerate() {
        assert!(four.iter().all(|error| (error - path[hour]).abs() < 1e-9), "hour {hour}: {four:?} {}", path[hour]);
    }
}
