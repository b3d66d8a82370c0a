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
