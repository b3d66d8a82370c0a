mod sentences;
mod suspension;

use super::*;
use crate::signal::{Beyond, Sample, Signal};
use crate::spec::{Choice, Value};
use crate::workload::{Job, Workload};
use crate::{Details, JobRecord, Limits, components};
use std::sync::Arc;

const HOUR_S: f64 = 3_600.0;
const WEEK_S: f64 = 7.0 * 86_400.0;

/// A small generator of test cases.
struct Cases(Philox);

impl Cases {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// A signal of a week with steps of whole hours, uneven or of one hour each. It repeats, or its last value holds.
    fn signal(&mut self, hourly: bool) -> Signal {
        let (mut times_s, mut values, mut hour) = (Vec::new(), Vec::new(), 0);
        while hour < 24 * 7 {
            times_s.push(hour as f64 * HOUR_S);
            values.push(self.below(400) as f64);
            hour += if hourly { 1 } else { 1 + self.below(6) };
        }
        let beyond = if self.below(2) == 0 { Beyond::Wrap } else { Beyond::Hold };
        Signal::new(times_s, values, vec![], WEEK_S, Sample::Mean, beyond).expect("well formed")
    }

    /// Jobs of one proc in the first five days.
    fn jobs(&mut self, count: u64) -> Vec<Job> {
        let mut submits: Vec<u64> = (0..count).map(|_| self.below(5 * 86_400)).collect();
        submits.sort_unstable();
        let job = |(at, submit): (usize, u64), run: u64, more: u64| Job {
            id: at as i64 + 1,
            submit_s: submit as f64,
            run_s: run as f64,
            estimate_s: (run + more) as f64,
            procs: 1,
            record: at as u64 + 1,
            killed: false,
            priority: 1,
            class: 0,
        };
        submits.into_iter().enumerate().map(|pair| job(pair, 1 + self.below(40_000), self.below(9_000))).collect()
    }
}

fn spec(rule: &str, signal: &Signal, params: &[(&str, Value)]) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Deferral, rule).expect("registered")));
    let choice = spec.choice_mut(Role::Deferral);
    choice.set("defer_signal", Value::Text("grid".to_owned())).expect("a label");
    params.iter().for_each(|(name, value)| choice.set(name, value.clone()).expect("in range"));
    spec.place_signal("grid", Arc::new(signal.clone()));
    spec
}

fn run(mut spec: SimSpec, jobs: &[Job], procs: i64) -> Result<Vec<JobRecord>, SimError> {
    spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).expect("in range");
    let workload = Workload { jobs: jobs.to_vec(), ..Workload::default() };
    let mut details = Details { jobs: Some(Vec::new()), ..Details::default() };
    crate::simulate(&spec, &workload, &Limits::NONE, &mut details)?;
    Ok(details.jobs.expect("asked for"))
}

/// The starts on a machine on which no job waits for another.
fn starts(spec: SimSpec, jobs: &[Job]) -> Vec<f64> {
    run(spec, jobs, jobs.len() as i64).expect("it runs").iter().map(|row| row.start_s).collect()
}

/// The instants at which a job may be released: its submission, and every whole hour at which the signal changes.
fn candidates(signal: &Signal, job: &Job, wait_max_s: f64) -> Vec<f64> {
    let mut hours = vec![job.submit_s];
    let mut hour = (job.submit_s / HOUR_S).floor() + 1.0;
    while hour * HOUR_S <= job.submit_s + wait_max_s {
        if signal.edges().any(|edge| edge % WEEK_S == hour * HOUR_S % WEEK_S) {
            hours.push(hour * HOUR_S);
        }
        hour += 1.0;
    }
    hours
}

/// The integral second by second.
fn by_second(signal: &Signal, from_s: f64, length_s: f64) -> f64 {
    (0..length_s as u64).map(|second| signal.at(from_s + second as f64 + 0.5).expect("it goes on")).sum()
}

/// The first candidate with the least cost.
fn least(candidates: &[f64], cost: impl Fn(f64) -> f64) -> f64 {
    let mut best = candidates[0];
    for at in &candidates[1..] {
        if cost(*at) < cost(best) {
            best = *at;
        }
    }
    best
}

#[test]
fn jobs_start_where_a_slow_reference_says() {
    let mut cases = Cases(Philox::stream(26, Purpose::Shuffle));
    for case in 0..4 {
        let signal = cases.signal(case % 2 == 0);
        let jobs = cases.jobs(25);
        let wait_max_s = (1 + cases.below(30)) as f64 * 1_800.0;
        let common = [("defer_wait_max_s", Value::Real(wait_max_s))];
        let oracle = [common[0].clone(), ("defer_length", Value::Text("run".to_owned()))];
        let expected = |cost: &dyn Fn(&Job, f64) -> f64| -> Vec<f64> {
            jobs.iter().map(|job| least(&candidates(&signal, job, wait_max_s), |at| cost(job, at))).collect()
        };
        let slot = expected(&|_, at| signal.at(at).expect("it goes on"));
        assert_eq!(starts(spec("lowest-slot", &signal, &common), &jobs), slot, "case {case}");
        let window = expected(&|job, at| by_second(&signal, at, job.estimate_s));
        assert_eq!(starts(spec("lowest-window", &signal, &common), &jobs), window, "case {case}");
        let window = expected(&|job, at| by_second(&signal, at, job.run_s));
        assert_eq!(starts(spec("lowest-window", &signal, &oracle), &jobs), window, "case {case}");
        let saving = expected(&|job, at| {
            let saved = by_second(&signal, job.submit_s, job.run_s) - by_second(&signal, at, job.run_s);
            -saved / (at - job.submit_s + job.run_s)
        });
        assert_eq!(starts(spec("saving-per-wait", &signal, &oracle), &jobs), saving, "case {case}");
    }
}

#[test]
fn the_threshold_is_that_of_a_slow_reference() {
    let mut cases = Cases(Philox::stream(27, Purpose::Shuffle));
    for _ in 0..12 {
        let (signal, jobs) = (cases.signal(true), cases.jobs(25));
        let wait_max_s = (1 + cases.below(60)) as f64 * 1_800.0;
        let reference = |job: &Job| {
            let mut now_s = job.submit_s;
            loop {
                let latest_s = job.submit_s + wait_max_s;
                if now_s >= latest_s {
                    return latest_s;
                }
                let first = (now_s / HOUR_S).floor();
                // The hour that has begun, and those that begin within 24 hours from now.
                let hours = (0..=24).map(|h| first + f64::from(h)).filter(|hour| hour * HOUR_S < now_s + 86_400.0);
                let mut values: Vec<f64> = hours.map(|hour| signal.at(hour * HOUR_S).expect("it goes on")).collect();
                let present = values[0];
                values.sort_by(f64::total_cmp);
                let share = if job.estimate_s < 7_200.0 { 0.2 } else { 0.35 };
                if present <= values[(values.len() as f64 * share) as usize] {
                    return now_s;
                }
                now_s = (first + 1.0) * HOUR_S;
            }
        };
        let expected: Vec<f64> = jobs.iter().map(reference).collect();
        let params = [("defer_wait_max_s", Value::Real(wait_max_s))];
        assert_eq!(starts(spec("quantile", &signal, &params), &jobs), expected);
    }
}

#[test]
fn a_constant_signal_and_a_share_of_zero_defer_no_job() {
    let mut cases = Cases(Philox::stream(28, Purpose::Shuffle));
    let jobs = cases.jobs(200);
    let plain = run(SimSpec::new(), &jobs, 4).expect("it runs");
    // Sums of 0.1 in another order differ in their last bits.
    let constant = Signal::new(vec![0.0], vec![0.1], vec![], HOUR_S, Sample::Mean, Beyond::Wrap).expect("well formed");
    let varying = cases.signal(true);
    for rule in ["lowest-slot", "lowest-window", "saving-per-wait", "quantile", "wait-awhile"] {
        assert_eq!(run(spec(rule, &constant, &[]), &jobs, 4).expect("it runs"), plain, "{rule}");
        let none = [("defer_share", Value::Real(0.0))];
        assert_eq!(run(spec(rule, &varying, &none), &jobs, 4).expect("it runs"), plain, "{rule}");
        assert_ne!(run(spec(rule, &varying, &[]), &jobs, 4).expect("it runs"), plain, "{rule}");
    }
}

/// Every rule with every other component of the policy: jobs start at or after their submission, and all end.
#[test]
fn deferral_composes_with_every_order_backfilling_rule_gear_rule_capacity_rule_and_cap() {
    let mut cases = Cases(Philox::stream(29, Purpose::Shuffle));
    let (signal, jobs) = (cases.signal(true), cases.jobs(60));
    let mut ran = 0;
    for rule in ["lowest-window", "quantile", "wait-awhile"] {
        for role in [Role::Order, Role::Backfill, Role::GearRule, Role::Capacity, Role::Cap] {
            for component in components::of(role) {
                let mut spec = spec(rule, &signal, &[]);
                spec.choose(Choice::new(component));
                for (name, value) in [
                    ("cap_schedule_w", Value::Reals(vec![60.0])),
                    ("bsld_threshold", Value::Real(2.0)),
                    ("two_level_procs", Value::Int(3)),
                ] {
                    let _ = spec.choice_mut(role).set(name, value);
                }
                spec.choice_mut(Role::Platform).set("procs", Value::Int(4)).expect("in range");
                if !spec.problems().is_empty() || spec.choice(role).missing().next().is_some() {
                    continue;
                }
                let rows =
                    run(spec, &jobs, 4).unwrap_or_else(|error| panic!("{rule} with {}: {error}", component.name));
                assert_eq!(rows.len(), jobs.len());
                assert!(rows.iter().all(|row| row.submit_s <= row.start_s && row.start_s <= row.finish_s));
                ran += 1;
            }
        }
    }
    assert!(ran > 50, "{ran} combinations ran");
}

/// A cap that never binds and GPUs that no job needs change nothing, although they choose other types of the backfilling
/// rules.
#[test]
fn deferred_jobs_enter_the_queue_alike_with_a_cap_and_with_pools() {
    let mut cases = Cases(Philox::stream(33, Purpose::Shuffle));
    for _ in 0..20 {
        let (signal, jobs) = (cases.signal(true), cases.jobs(150));
        for backfill in ["none", "easy", "conservative"] {
            for order in ["fcfs", "sjf", "wfp3"] {
                // Half of the jobs do not wait, and enter before jobs that were submitted earlier.
                let mut spec = spec("lowest-slot", &signal, &[("defer_share", Value::Real(0.5))]);
                spec.choose(Choice::new(components::find(Role::Backfill, backfill).expect("registered")));
                spec.choose(Choice::new(components::find(Role::Order, order).expect("registered")));
                let plain = run(spec.clone(), &jobs, 3).expect("it runs");
                let mut pools = spec.clone();
                pools.choose(Choice::new(components::find(Role::Source, "swf").expect("registered")));
                for (role, name, value) in [
                    (Role::Source, "log", Value::Text("any".to_owned())),
                    (Role::Rules, "gpus_from", Value::Text("log".to_owned())),
                    (Role::Platform, "gpus", Value::Int(4)),
                ] {
                    pools.choice_mut(role).set(name, value).expect("in range");
                }
                assert_eq!(run(pools, &jobs, 3).expect("it runs"), plain, "{backfill}, {order}, pools");
                spec.choose(Choice::new(components::find(Role::Cap, "admission").expect("registered")));
                spec.choice_mut(Role::Cap).set("cap_schedule_w", Value::Reals(vec![1e9])).expect("in range");
                assert_eq!(run(spec, &jobs, 3).expect("it runs"), plain, "{backfill}, {order}");
            }
        }
    }
}

#[test]
fn forecasts_have_the_error_that_they_should_have() {
    let constant =
        Signal::new(vec![0.0], vec![100.0], vec![], HOUR_S, Sample::Mean, Beyond::Wrap).expect("well formed");
    let spec = spec("lowest-slot", &constant, &[("defer_forecast", Value::Text("noise".to_owned()))]);
    let mean_error = |lead_h: usize| {
        let mut forecast = Forecast::new(spec.choice(Role::Deferral), &constant, 7);
        let errors = (0..4_000).map(|hour| {
            let now_s = f64::from(hour) * HOUR_S;
            assert!(forecast.issue(now_s));
            forecast.reach(now_s + lead_h as f64 * HOUR_S);
            (forecast.values()[lead_h] - 100.0).abs() / 100.0
        });
        errors.sum::<f64>() / 4_000.0
    };
    assert_eq!(mean_error(0), 0.0);
    let (day, four_days) = (mean_error(24), mean_error(96));
    assert!((0.105..0.115).contains(&four_days) && day < four_days, "{day} after a day, {four_days} after four");
}

#[test]
fn persistence_is_the_day_before() {
    let mut cases = Cases(Philox::stream(30, Purpose::Shuffle));
    let signal = cases.signal(true);
    let spec = spec("lowest-slot", &signal, &[("defer_forecast", Value::Text("persistence".to_owned()))]);
    let mut forecast = Forecast::new(spec.choice(Role::Deferral), &signal, 7);
    assert!(forecast.issue(50.5 * HOUR_S));
    forecast.reach(100.0 * HOUR_S);
    for (ahead, known_h) in [(0, 0.0), (1, -23.0), (24, 0.0), (25, -23.0), (49, -23.0)] {
        assert_eq!(Some(forecast.values()[ahead]), signal.at((50.0 + known_h) * HOUR_S), "{ahead}");
    }
}

/// Times without a regular step: the last value begins at the last time, which is the end, and holds.
fn uneven(times_s: &[f64], values: &[f64]) -> Signal {
    let end_s = times_s[times_s.len() - 1];
    Signal::new(times_s.to_vec(), values.to_vec(), vec![], end_s, Sample::Mean, Beyond::Hold).expect("well formed")
}

fn job(submit_s: f64, run_s: f64) -> Job {
    Job { submit_s, run_s, estimate_s: run_s, ..Cases(Philox::stream(1, Purpose::Shuffle)).jobs(1)[0] }
}

#[test]
fn the_value_that_holds_behind_uneven_times_is_seen() {
    let times_s = [0.0, 1009.0, 2018.0, 3012.0, 3073.0, 5076.0, 6085.0, 7596.0];
    let signal = uneven(&times_s, &[3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0]);
    let wait = [("defer_wait_max_s", Value::Real(2_800.0))];
    for rule in ["lowest-slot", "lowest-window", "saving-per-wait", "quantile", "wait-awhile"] {
        assert_eq!(starts(spec(rule, &signal, &wait), &[job(7_000.0, 100.0)]), [7_596.0], "{rule}");
    }
}

#[test]
fn the_value_that_holds_behind_uneven_times_is_one_value_for_quantiles() {
    // A job at 200 compares 5, the present value, with 5 and 3, the value that holds from 300 on.
    let signal = uneven(&[0.0, 100.0, 200.0, 300.0], &[2.0, 9.0, 5.0, 3.0]);
    let share = |share: f64| {
        let params = [("defer_wait_max_s", Value::Real(1e4)), ("defer_quantile_short", Value::Real(share))];
        starts(spec("quantile", &signal, &params), &[job(200.0, 10.0)])[0]
    };
    // floor(2 * 0.5) = 1 value is below the quantile, which is 5. Of 5, 3 and 3 it would be 3.
    assert_eq!(share(0.5), 200.0);
    assert_eq!(share(0.4), 300.0);
}

#[test]
fn jobs_that_quantile_releases_together_enter_in_the_order_of_their_submission() {
    // 9 until 10, then 1. A long, a short and a long job wait for 10, on one proc.
    let signal = uneven(&[0.0, 10.0], &[9.0, 1.0]);
    let params = [("defer_quantile_short", Value::Real(0.0)), ("defer_quantile_long", Value::Real(0.0))];
    let jobs = [job(1.0, 8_000.0), job(2.0, 100.0), job(3.0, 8_000.0)];
    let rows = run(spec("quantile", &signal, &params), &jobs, 1).expect("it runs");
    assert_eq!(rows.iter().map(|row| row.start_s).collect::<Vec<_>>(), [10.0, 8_010.0, 8_110.0]);
}

#[test]
fn a_signal_that_ends_is_an_error_with_the_way_out() {
    let short = Signal::new(vec![0.0], vec![1.0], vec![], HOUR_S, Sample::Mean, Beyond::Error).expect("well formed");
    let jobs = Cases(Philox::stream(31, Purpose::Shuffle)).jobs(20);
    let error = run(spec("lowest-slot", &short, &[]), &jobs, 4).expect_err("it is not covered").to_string();
    assert!(error.contains("`defer_signal` has no value at") && error.contains("beyond = \"hold\""), "{error}");
}
