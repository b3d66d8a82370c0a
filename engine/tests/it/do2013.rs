//! The queues of Do et al. 2013: comparison with theory, with the exact Markov chain and with published values.
use powersweep_engine::components;
use powersweep_engine::queues::{Priority, ServerClasses};
use powersweep_engine::spec::{Choice, Role};
use powersweep_engine::workload::{self, Workload};
use powersweep_engine::{Details, Limits, QueueSummary, SimError, SimSpec, Value, simulate};

use crate::specs::series_alone;

/// The paper's cluster and policy at a utilization, with at least `jobs` measured jobs.
pub(crate) fn spec(buffering: &str, priority: &str, utilization: f64, jobs: i64) -> SimSpec {
    let mut spec = SimSpec::new();
    for (role, name) in [
        (Role::Source, "open-poisson"),
        (Role::Platform, "server-classes"),
        (Role::Policy, "buffered"),
        (Role::Statistics, "steady-state"),
    ] {
        spec.choose(Choice::new(components::find(role, name).unwrap()));
    }
    set(&mut spec, "target_utilization", Value::Real(utilization));
    set(&mut spec, "buffering", Value::Text(buffering.to_owned()));
    set(&mut spec, "server_priority", Value::Text(priority.to_owned()));
    set(&mut spec, "least_jobs_count", Value::Int(jobs));
    spec
}

/// One queue for `servers` servers of rate 1.
fn servers_of_rate_1(servers: f64, utilization: f64, jobs: i64) -> SimSpec {
    let mut spec = spec("common", "energy-efficiency", utilization, jobs);
    for (name, value) in
        [("class_servers", servers), ("class_rates_per_s", 1.0), ("class_busy_w", 200.0), ("class_idle_w", 50.0)]
    {
        set(&mut spec, name, Value::Reals(vec![value]));
    }
    spec
}

pub(crate) fn set(spec: &mut SimSpec, name: &str, value: Value) {
    let role = spec.choices().find(|p| p.component().params.iter().any(|q| q.name == name)).unwrap().component().role;
    spec.choice_mut(role).set(name, value).unwrap();
}

pub(crate) fn try_run(spec: &SimSpec, details: &mut Details) -> Result<QueueSummary, SimError> {
    let workload: Workload = workload::build(spec, None).unwrap();
    let measured = simulate(spec, &workload, &Limits::NONE, details)?;
    Ok(measured.queues().unwrap().clone())
}

pub(crate) fn run(spec: &SimSpec) -> QueueSummary {
    let summary = try_run(spec, &mut Details::default()).unwrap();
    assert!(summary.procs_residual < 1e-9, "server-seconds do not add up: {}", summary.procs_residual);
    assert!(summary.little_residual < 1e-9, "Little's law: {}", summary.little_residual);
    summary
}

/// Checks that an estimate is within `widths` half-widths of the exact value.
#[track_caller]
fn close(metric: &str, estimate: f64, half_width: Option<f64>, exact: f64, widths: f64) {
    let half_width = half_width.expect("the statistics are `steady-state`");
    assert!((estimate - exact).abs() < widths * half_width, "{metric}: {estimate} +- {half_width}, exact {exact}");
}

/// Erlang's C formula: the probability of waiting of M/M/c with offered traffic a = lambda / mu.
fn erlang_c(c: u32, a: f64) -> f64 {
    let mut b = 1.0;
    for k in 1..=c {
        b = a * b / (f64::from(k) + a * b);
    }
    b / (1.0 - a / f64::from(c) * (1.0 - b))
}

#[test]
fn one_and_several_servers_follow_erlang() {
    for (c, u) in [(1, 0.5), (1, 0.8), (3, 0.7), (24, 0.9)] {
        let summary = run(&servers_of_rate_1(f64::from(c), u, 1_000_000));
        let a = f64::from(c) * u;
        let waiting = erlang_c(c, a);
        let wait_s = waiting / (f64::from(c) - a);
        close("wait", summary.wait_s_mean, summary.wait_s_half_width, wait_s, 1.3);
        close("response", summary.turnaround_s_mean, summary.turnaround_s_half_width, wait_s + 1.0, 1.3);
        assert!((summary.waited_share - waiting).abs() < 0.01, "{c} servers at {u}: {}", summary.waited_share);
        // The wait of a job that waits is exponential with mean 1/(c - a).
        let of_waited = summary.wait_s_mean_of_waited.unwrap();
        assert!((of_waited * (f64::from(c) - a) - 1.0).abs() < 0.12, "{of_waited}");
        assert!((summary.queue_length_mean.unwrap() - a * wait_s).abs() < 0.12 * (a * wait_s).max(0.1));
        let energy_j = (200.0 * a + 50.0 * (f64::from(c) - a)) / a;
        close("energy", summary.energy_per_job_j, summary.energy_per_job_half_width_j, energy_j, 1.3);
        assert!((summary.utilization_installed.unwrap() - u).abs() < 0.005);
    }
}

#[test]
fn general_work_follows_pollaczek_and_khinchine() {
    for (distribution, scv) in [("deterministic", 0.0), ("gamma", 0.5), ("gamma", 2.5), ("hyperexponential", 4.0)] {
        let mut spec = servers_of_rate_1(1.0, 0.6, 1_000_000);
        set(&mut spec, "work_distribution", Value::Text(distribution.to_owned()));
        if scv > 0.0 {
            set(&mut spec, "work_scv", Value::Real(scv));
        }
        set(&mut spec, "work_mean", Value::Real(2.0));
        let summary = run(&spec);
        // lambda E[S^2]/2(1 - rho), with E[S] = 2 and lambda = 0.3.
        let wait_s = 0.3 * 4.0 * (1.0 + scv) / (2.0 * 0.4);
        close(distribution, summary.wait_s_mean, summary.wait_s_half_width, wait_s, 1.3);
        close(distribution, summary.service_s_mean, summary.service_s_half_width.map(|w| w + 1e-9), 2.0, 1.3);
    }
}

/// Nominal 95% intervals of the stopping rule must contain the true mean in at least 90% of 200 runs of M/M/1 at 80%.
#[test]
fn intervals_of_the_stopping_rule_cover_the_mean() {
    let mut spec = servers_of_rate_1(1.0, 0.8, 50_000);
    set(&mut spec, "confidence", Value::Real(0.95));
    set(&mut spec, "response_precision", Value::Real(0.05));
    let covered = (1..=80)
        .filter(|&seed| {
            spec.seed = seed;
            let summary = run(&spec);
            assert_eq!(summary.precision_reached, Some(true));
            (summary.turnaround_s_mean - 5.0).abs() <= summary.turnaround_s_half_width.unwrap()
        })
        .count();
    assert!(covered >= 72, "{covered} of 80 intervals cover the mean");
}

#[test]
fn classes_are_ranked_as_in_table_3() {
    let platform = |set: &[(&str, Value)]| {
        let mut choice = Choice::new(components::find(Role::Platform, "server-classes").unwrap());
        set.iter().for_each(|(name, value)| choice.set(name, value.clone()).unwrap());
        ServerClasses::new(&choice)
    };
    let classes = platform(&[]);
    let rounded = |values: Vec<f64>| values.iter().map(|v| (v * 1000.0).round() / 1000.0).collect::<Vec<_>>();
    assert_eq!(rounded(classes.performance()), [1.0, 0.824, 0.435]);
    // The paper prints 0.64 and 0.66 for the first two; C/P of its Table 2 gives these.
    assert_eq!(rounded(classes.efficiency()), [0.618, 0.679, 1.0]);
    assert_eq!(classes.ranking(Priority::HighPerformance), [0, 1, 2]);
    assert_eq!(classes.ranking(Priority::EnergyEfficiency), [2, 1, 0]);
    let table = classes.table();
    assert_eq!([table.rates[0], table.rates[8], table.rates[16]], [1.0, 0.82, 0.43]);
    let exact = platform(&[("rate_rounding", Value::Text("none".to_owned()))]).table();
    assert_eq!(exact.rates[8], 5_286_503.0 / 6_419_253.0);
    // Of equal speeds the lower busy power is first; of classes that are equal in both, the platform's order holds.
    let equals = platform(&[
        ("class_ops_per_s", Value::Reals(vec![5.0, 7.0, 5.0])),
        ("class_busy_w", Value::Reals(vec![9.0, 9.0, 8.0])),
    ]);
    assert_eq!(equals.ranking(Priority::HighPerformance), [1, 2, 0]);
    // With two classes they are the paper's first two types; with four, the last two are of the third type.
    let watts = |classes: &[f64]| {
        let table = platform(&[("class_servers", Value::Reals(classes.to_vec()))]).table();
        (table.rates, table.busy_w, table.free_w)
    };
    assert_eq!(watts(&[1., 1.]), (vec![1., 0.82], vec![1700., 1275.], vec![364., 331.]));
    assert_eq!(watts(&[1.; 4]).1, [1700., 1275., 457., 457.]);
    // The slowed servers of section 3.2.3 have the same ranking.
    let slowed =
        platform(&[("rate_factor", Value::Real(0.7)), ("class_busy_w", Value::Reals(vec![1169.0, 881.0, 317.0]))]);
    assert_eq!(slowed.ranking(Priority::EnergyEfficiency), [2, 1, 0]);
    assert!((slowed.capacity_per_s(true) - 12.6).abs() < 1e-12);
    assert!((slowed.capacity_per_s(false) - 18.0).abs() < 1e-12);
}

#[test]
fn a_spec_is_repeatable_and_seeds_differ() {
    let spec = spec("separate", "high-performance", 0.7, 50_000);
    let mut other = spec.clone();
    other.seed = 2;
    assert_eq!(run(&spec), run(&spec));
    assert_ne!(run(&spec).wait_s_mean, run(&other).wait_s_mean);
}

#[test]
fn a_run_ends_by_precision_or_by_the_least_or_greatest_number_of_jobs() {
    let mut spec = spec("common", "energy-efficiency", 0.5, 1_000);
    let least = run(&spec);
    assert_eq!((least.measured_jobs_count, least.batch_jobs_count), (1_024, Some(32)), "a multiple of 32");
    assert_eq!((least.warmup_jobs_count, least.jobs_count), (10_000, 11_024));
    assert_eq!(least.precision_reached, None, "no precision is given");
    set(&mut spec, "energy_precision", Value::Real(0.01));
    set(&mut spec, "response_precision", Value::Real(0.01));
    let precise = run(&spec);
    assert_eq!(precise.precision_reached, Some(true));
    let doublings = precise.measured_jobs_count / least.measured_jobs_count;
    assert!(doublings > 4 && doublings.is_power_of_two(), "{doublings}");
    assert!(precise.turnaround_s_half_width.unwrap() <= 0.01 * precise.turnaround_s_mean);
    assert!(precise.energy_per_job_half_width_j.unwrap() <= 0.01 * precise.energy_per_job_j);
    assert!(precise.batches_lag1.unwrap() < 0.2);
    set(&mut spec, "most_jobs_count", Value::Int(5_000));
    let most = run(&spec);
    assert_eq!((most.precision_reached, most.measured_jobs_count), (Some(false), 4_096));
}

#[test]
fn the_distribution_of_response_times_is_a_series() {
    let mut details = series_alone();
    let mut spec = servers_of_rate_1(1.0, 0.5, 1_000_000);
    set(&mut spec, "cdf_step_s", Value::Real(0.5));
    set(&mut spec, "cdf_max_s", Value::Real(10.0));
    let with = try_run(&spec, &mut details).unwrap();
    let points = details.series.unwrap();
    assert_eq!(points.len(), 21);
    for point in &points {
        // Response times of M/M/1 are exponential of rate mu - lambda.
        let exact = 1.0 - (-0.5 * point.x).exp();
        assert!((point.value - exact).abs() < 0.01, "{point:?}, exact {exact}");
        assert_eq!((point.series, point.level), ("response_time_cdf", None));
    }
    assert_eq!(with, run(&spec), "recording the series does not change the summary");
}

#[test]
fn idle_servers_that_are_off_draw_no_power() {
    let mut spec = spec("common", "energy-efficiency", 0.5, 20_000);
    let on = run(&spec);
    set(&mut spec, "idle_servers", Value::Text("off".to_owned()));
    let off = run(&spec);
    assert_eq!(on.energy_per_job_j, on.energy_per_job_idle_on_j);
    assert_eq!(off.energy_per_job_j, on.energy_per_job_idle_off_j);
    assert_eq!(off.energy_per_job_idle_on_j, on.energy_per_job_j, "both are in every row");
    assert_eq!(off.energy_total_j, off.energy_computational_j);
}

#[test]
fn impossible_models_are_refused_with_the_reason() {
    let good = spec("common", "energy-efficiency", 0.5, 1_000);
    let refused = |change: &dyn Fn(&mut SimSpec), words: &[&str]| {
        let mut spec = good.clone();
        change(&mut spec);
        let problems = spec.problems().join("\n");
        for word in words {
            assert!(problems.contains(word), "{word:?} is not in {problems:?}");
        }
        assert!(matches!(try_run(&spec, &mut Details::default()), Err(SimError::Invalid(_))));
    };
    assert_eq!(good.problems(), Vec::<String>::new());
    let choose = |role, name| move |spec: &mut SimSpec| spec.choose(Choice::new(components::find(role, name).unwrap()));
    refused(&choose(Role::Order, "sjf"), &["queue_order", "sjf", "buffered"]);
    refused(&choose(Role::Backfill, "conservative"), &["backfill", "conservative"]);
    refused(&choose(Role::GearRule, "bsld"), &["gear_rule", "bsld"]);
    refused(&choose(Role::Statistics, "summary"), &["statistics_kind", "summary", "steady-state"]);
    refused(&choose(Role::Platform, "homogeneous"), &["machine", "homogeneous", "server-classes"]);
    refused(&choose(Role::Source, "lublin"), &["source", "lublin", "open-poisson"]);
    refused(&choose(Role::Policy, "batch"), &["source", "machine", "statistics_kind", "batch"]);
    refused(&|s| set(s, "wide_jobs", Value::Text("drop".to_owned())), &["wide_jobs", "buffered"]);
    refused(&|s| set(s, "class_servers", Value::Reals(vec![8.0, 8.5, 1.0])), &["class_servers", "8.5"]);
    let mut two = good.clone();
    set(&mut two, "class_servers", Value::Reals(vec![8.0, 4.0]));
    assert_eq!(two.problems(), Vec::<String>::new());
    refused(&|s| set(s, "class_idle_w", Value::Reals(vec![8.0])), &["class_idle_w", "class_servers"]);
    refused(&|s| set(s, "class_busy_w", Value::Reals(vec![8.0, 0.0, 1.0])), &["class_busy_w", "above 0"]);
    refused(&|s| set(s, "arrival_rate_per_s", Value::Real(1.0)), &["target_utilization", "arrival_rate_per_s"]);
    refused(&|s| set(s, "target_utilization", Value::Real(1.0)), &["offered load", "target_utilization"]);
    refused(&|s| set(s, "work_scv", Value::Real(2.0)), &["work_scv", "exponential"]);
    refused(&|s| set(s, "work_distribution", Value::Text("gamma".to_owned())), &["work_scv", "gamma"]);
    refused(&|s| set(s, "most_jobs_count", Value::Int(100)), &["least_jobs_count", "most_jobs_count"]);
    refused(&|s| set(s, "cdf_step_s", Value::Real(1e-6)), &["cdf_step_s", "cdf_max_s"]);
}

/// The exact Markov chain of the Common Queue. While a server is free, its state is the number of busy servers of each class;
/// with all servers busy, the length of the queue is geometric.
mod exact {
    /// Steady-state means.
    #[derive(Debug)]
    pub(super) struct Exact {
        pub(super) wait_s: f64,
        pub(super) service_s: f64,
        pub(super) waiting_share: f64,
        pub(super) energy_on_j: f64,
        pub(super) energy_off_j: f64,
    }

    const EACH: usize = 8;
    const SIDE: usize = EACH + 1;
    const STATES: usize = SIDE * SIDE * SIDE;

    /// The means for classes of 8 servers in order of priority, with their rates, busy and idle powers.
    pub(super) fn common_queue(lambda: f64, rates: [f64; 3], busy_w: [f64; 3], idle_w: [f64; 3]) -> Exact {
        let counts = |state: usize| [state / (SIDE * SIDE), state / SIDE % SIDE, state % SIDE];
        let strides = [SIDE * SIDE, SIDE, 1];
        let mut q = vec![0.0; STATES * STATES];
        for state in 0..STATES {
            let busy = counts(state);
            if let Some(class) = (0..3).find(|&i| busy[i] < EACH) {
                q[state * STATES + state + strides[class]] += lambda;
            }
            for class in (0..3).filter(|&i| busy[i] > 0) {
                q[state * STATES + state - strides[class]] += busy[class] as f64 * rates[class];
            }
        }
        let mut p = stationary(&mut q);
        // The state with all servers busy and n waiting jobs has the probability p_full * rho^n.
        let capacity = EACH as f64 * rates.iter().sum::<f64>();
        let rho = lambda / capacity;
        let full = p[STATES - 1];
        p[STATES - 1] = full / (1.0 - rho);
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
        let waiting_share = p[STATES - 1];
        let mut busy = [0.0; 3];
        for (state, p) in p.iter().enumerate() {
            (0..3).for_each(|i| busy[i] += p * counts(state)[i] as f64);
        }
        let sum = |f: &dyn Fn(usize) -> f64| (0..3).map(f).sum::<f64>() / lambda;
        let energy_off_j = sum(&|i| busy[i] * busy_w[i]);
        Exact {
            wait_s: waiting_share * rho / (1.0 - rho) / lambda,
            service_s: sum(&|i| busy[i]),
            waiting_share,
            energy_on_j: energy_off_j + sum(&|i| (EACH as f64 - busy[i]) * idle_w[i]),
            energy_off_j,
        }
    }

    /// Stationary weights of a chain from its transition rates, without subtractions (Grassmann, Taksar & Heyman 1985).
    fn stationary(q: &mut [f64]) -> Vec<f64> {
        for n in (1..STATES).rev() {
            let (head, tail) = q.split_at_mut(n * STATES);
            let last = &tail[..n];
            let out: f64 = last.iter().sum();
            for row in head.chunks_exact_mut(STATES) {
                let into = row[n] / out;
                row[n] = into;
                if into > 0.0 {
                    row[..n].iter_mut().zip(last).for_each(|(to, from)| *to += into * from);
                }
            }
        }
        let mut p = vec![1.0];
        for n in 1..STATES {
            p.push((0..n).map(|i| p[i] * q[i * STATES + n]).sum());
        }
        p
    }
}

const LOADS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
const PRIORITIES: [&str; 2] = ["energy-efficiency", "high-performance"];

/// The exact means of the paper's cluster with a Common Queue.
fn exact(priority: &str, utilization: f64) -> exact::Exact {
    let mut classes = [(1.0, 1700.0, 364.0), (0.82, 1275.0, 331.0), (0.43, 457.0, 108.0)];
    if priority == "energy-efficiency" {
        classes.reverse();
    }
    exact::common_queue(18.0 * utilization, classes.map(|c| c.0), classes.map(|c| c.1), classes.map(|c| c.2))
}

/// Standard error of a mean from its half-width at the default level of 99%, by 32 batches.
fn standard_error(half_width: Option<f64>) -> f64 {
    half_width.unwrap() / powersweep_engine::queues::t_quantile(0.99, 31)
}

/// Checks that a run of the Common Queue agrees with its Markov chain within four standard errors. Returns the relative
/// standard error of the wait.
fn check_against_exact(priority: &str, utilization: f64, jobs: i64) -> f64 {
    let summary = run(&spec("common", priority, utilization, jobs));
    let exact = exact(priority, utilization);
    let error = |metric: &str, mean: f64, half_width: Option<f64>, exact: f64| {
        let error = standard_error(half_width);
        let off = (mean - exact) / error;
        println!("{priority} {utilization} {metric}: {mean} exact {exact}, {off:.2} standard errors of {error:.2e}");
        assert!(off.abs() < 4.0, "{priority} {utilization} {metric}: {mean}, exact {exact}, standard error {error}");
        error / mean
    };
    error("service", summary.service_s_mean, summary.service_s_half_width, exact.service_s);
    error("energy", summary.energy_per_job_j, summary.energy_per_job_half_width_j, exact.energy_on_j);
    let off = summary.energy_per_job_idle_off_j / exact.energy_off_j - 1.0;
    assert!(off.abs() < 1e-2, "idle off: {}, exact {}", summary.energy_per_job_idle_off_j, exact.energy_off_j);
    assert!((summary.waited_share - exact.waiting_share).abs() < 0.02, "{}", summary.waited_share);
    error("wait", summary.wait_s_mean, summary.wait_s_half_width, exact.wait_s)
}

#[test]
fn the_common_queue_agrees_with_its_markov_chain() {
    for priority in PRIORITIES {
        for utilization in [0.7, 0.9] {
            check_against_exact(priority, utilization, 600_000);
        }
    }
}

#[test]
fn the_exact_chain_gives_the_printed_energies_and_service_time() {
    let (ee, hp) = (exact("energy-efficiency", 0.5), exact("high-performance", 0.5));
    let within = |found: f64, printed: f64, share: f64| {
        assert!((found / printed - 1.0).abs() < share, "{found}, printed {printed}");
    };
    within(ee.service_s, 1.58441, 5e-4);
    within(ee.energy_on_j, 1769.27, 5e-4);
    within(hp.energy_on_j, 1989.82, 5e-4);
    within(ee.energy_off_j, 1399.0, 5e-4);
    within(hp.energy_off_j, 1649.0, 5e-4);
}

/// claims/papers/do2013.toml compares the simulated waits with these.
#[test]
fn the_exact_waits_are_those_of_the_claims() {
    let waits_s = [
        [0.000503020192, 0.00375937404, 0.0184107856, 0.0731164394, 0.308751623],
        [0.0000433394831, 0.000844760083, 0.00813763102, 0.0495813743, 0.268739135],
    ];
    for (priority, waits_s) in PRIORITIES.into_iter().zip(waits_s) {
        for (utilization, wait_s) in LOADS.into_iter().zip(waits_s) {
            let exact = exact(priority, utilization).wait_s;
            assert!((exact / wait_s - 1.0).abs() < 1e-8, "{priority} {utilization}: {exact}, claims have {wait_s}");
        }
    }
}

/// Compares the schemes under one seed, so that they have the same jobs.
fn check_schemes(priority: &str, utilization: f64, jobs: i64) {
    let of = |buffering| run(&spec(buffering, priority, utilization, jobs));
    let [common, class, separate] = ["common", "class", "separate"].map(of);
    let waits = [&common, &class, &separate].map(|s| s.wait_s_mean);
    assert!(waits.is_sorted_by(|a, b| a < b), "waits at {utilization} {priority}: {waits:?}");
    if utilization >= 0.8 {
        let responses = [&common, &class, &separate].map(|s| s.turnaround_s_mean);
        assert!(responses.is_sorted_by(|a, b| a < b), "responses at {utilization} {priority}: {responses:?}");
    }
    for other in [&class, &separate] {
        for of in [|s: &QueueSummary| s.energy_per_job_idle_on_j, |s: &QueueSummary| s.energy_per_job_idle_off_j] {
            let ratio = of(other) / of(&common);
            assert!((ratio - 1.0).abs() < 2e-3, "energy at {utilization} {priority}: {ratio}");
        }
    }
}

#[test]
fn waits_are_ordered_by_scheme_and_energies_are_not() {
    for (priority, utilization) in
        [(PRIORITIES[0], 0.5), (PRIORITIES[1], 0.6), (PRIORITIES[0], 0.8), (PRIORITIES[1], 0.9)]
    {
        check_schemes(priority, utilization, 300_000);
    }
}

#[test]
#[ignore = "10^9 jobs take minutes: `.ci/full queues`"]
fn long_runs_give_the_printed_values() {
    for priority in PRIORITIES {
        for utilization in LOADS {
            check_schemes(priority, utilization, 4_000_000);
            let jobs = if utilization == 0.5 { 100_000_000 } else { 20_000_000 };
            let relative = check_against_exact(priority, utilization, jobs);
            let allowed = if utilization == 0.5 { 0.1 } else { 0.02 };
            assert!(relative < allowed, "{priority} {utilization}: standard error of the wait {relative}");
        }
    }
    let [ee, hp] = PRIORITIES.map(|priority| run(&spec("common", priority, 0.5, 100_000_000)));
    let printed = [
        (ee.energy_per_job_idle_on_j, 1769.27),
        (hp.energy_per_job_idle_on_j, 1989.82),
        (ee.energy_per_job_idle_off_j, 1399.0),
        (hp.energy_per_job_idle_off_j, 1649.0),
        (ee.service_s_mean, 1.58441),
    ];
    for (found, printed) in printed {
        println!("{found}, printed {printed}: {:+.5}", found / printed - 1.0);
        assert!((found / printed - 1.0).abs() < 5e-4, "{found}, printed {printed}");
    }
}

/// Section 3.2.3: a cluster slowed to 70%.
#[test]
fn slowing_down_costs_more_response_time_than_it_saves_energy() {
    let slowed = |spec: &SimSpec| {
        let mut spec = spec.clone();
        set(&mut spec, "rate_factor", Value::Real(0.7));
        set(&mut spec, "class_busy_w", Value::Reals(vec![1169.0, 881.0, 317.0]));
        spec
    };
    for priority in PRIORITIES {
        let full = spec("common", priority, 0.7, 200_000);
        let (fast, slow) = (run(&full), run(&slowed(&full)));
        assert!((slow.offered_load.unwrap() - 0.7).abs() < 1e-12, "of the slowed cluster");
        let response = slow.turnaround_s_mean / fast.turnaround_s_mean - 1.0;
        let energy = 1.0 - slow.energy_per_job_idle_off_j / fast.energy_per_job_idle_off_j;
        assert!(response > energy, "response +{response}, energy -{energy}");
        for rate in [8.0, 10.0, 12.0] {
            let mut full = full.clone();
            let stream = components::find(Role::Source, "open-poisson").unwrap();
            full.choose(Choice::new(stream));
            set(&mut full, "arrival_rate_per_s", Value::Real(rate));
            let (fast, slow) = (run(&full), run(&slowed(&full)));
            assert!(slow.turnaround_s_mean > fast.turnaround_s_mean);
            let rises = slow.energy_per_job_idle_off_j > fast.energy_per_job_idle_off_j;
            assert_eq!(rises, priority == "energy-efficiency", "{priority} at {rate} jobs a second");
        }
        let mut unslowed = slowed(&full);
        set(&mut unslowed, "target_utilization", Value::Real(0.6));
        set(&mut unslowed, "utilization_of", Value::Text("unslowed".to_owned()));
        assert!((run(&unslowed).offered_load.unwrap() - 0.6 / 0.7).abs() < 1e-12);
    }
}
