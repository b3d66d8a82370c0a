//! Compares the Lublin-Feitelson generator with the sample that its authors published in the Parallel Workloads Archive
//! (lublin_256: 10,000 jobs for 256 nodes). The sample has other random numbers, so that only distributions can agree.
//!
//! The sample is the "whole sample" variant: every job has type 0. Its sizes show that UMed = log2(256) - 2.5 = 5.5.
use powersweep_engine::spec::{Role, Value};
use powersweep_engine::workload::GeneratedJob;
use powersweep_engine::workload::lublin::{self, COMPONENT};
use powersweep_engine::{Choice, SimSpec};

use crate::logs;

const SAMPLE_JOBS: usize = 10_000;
/// Number of generated jobs: their sampling error is small beside that of the sample.
const GENERATED_JOBS: i64 = 200_000;

/// Critical value of the two-sample Kolmogorov-Smirnov statistic, distance * sqrt(n m/(n + m)), at 0.1%.
const KS_CRITICAL: f64 = 1.95;

fn sample() -> Vec<GeneratedJob> {
    let log = logs::read(logs::folder().join("lublin_256.swf.gz"));
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(&powersweep_engine::workload::swf::COMPONENT));
    spec.choice_mut(Role::Source).set("log", Value::Text("lublin_256".to_owned())).unwrap();
    let workload = logs::workload(&spec, &log);
    let job = |j: &powersweep_engine::workload::Job| GeneratedJob {
        submit_s: j.submit_s,
        run_s: j.run_s,
        estimate_s: None,
        procs: j.procs,
        priority: j.priority,
        class: j.class,
    };
    let jobs: Vec<_> = workload.jobs.iter().map(job).collect();
    assert_eq!(jobs.len(), SAMPLE_JOBS);
    jobs
}

fn generated(seed: u64, count: i64) -> Vec<GeneratedJob> {
    generated_types("combined", seed, count)
}

fn generated_types(types: &str, seed: u64, count: i64) -> Vec<GeneratedJob> {
    let mut choice = Choice::new(&COMPONENT);
    choice.set("lublin_types", Value::Text(types.to_owned())).unwrap();
    choice.set("synthetic_jobs_count", Value::Int(count)).unwrap();
    choice.set("synthetic_procs", Value::Int(256)).unwrap();
    lublin::generate(&choice, seed)
}

/// Kolmogorov-Smirnov distance of two samples, times sqrt(n m/(n + m)).
fn ks(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(a), sorted(b));
    let share = |v: &[f64], x: f64| v.partition_point(|y| *y <= x) as f64 / v.len() as f64;
    let distance = a.iter().chain(&b).map(|&x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max);
    let (n, m) = (a.len() as f64, b.len() as f64);
    distance * (n * m / (n + m)).sqrt()
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(q * (sorted.len() - 1) as f64) as usize]
}

fn gaps(jobs: &[GeneratedJob]) -> Vec<f64> {
    jobs.windows(2).map(|w| w[1].submit_s - w[0].submit_s).collect()
}

/// Distance of the sample's statistic from the mean of generated workloads of the same length, in their standard deviations.
fn deviations(name: &str, sample: f64, ours: &[f64]) -> f64 {
    let n = ours.len() as f64;
    let mean = ours.iter().sum::<f64>() / n;
    let sd = (ours.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let z = (sample - mean) / sd;
    println!("{name:32} sample {sample:10.4}  generated {mean:10.4} +- {sd:8.4}  {z:6.2} sd");
    z
}

type Statistic = (&'static str, fn(&[GeneratedJob]) -> f64);

fn mean_of(jobs: &[GeneratedJob], f: impl Fn(&GeneratedJob) -> f64) -> f64 {
    jobs.iter().map(f).sum::<f64>() / jobs.len() as f64
}

fn share(jobs: &[GeneratedJob], test: impl Fn(&GeneratedJob) -> bool) -> f64 {
    mean_of(jobs, |j| f64::from(u8::from(test(j))))
}

fn runs(jobs: &[GeneratedJob]) -> Vec<f64> {
    jobs.iter().map(|j| j.run_s).collect()
}

/// Moments and quantiles of sizes, run times and gaps, and correlations.
const STATISTICS: &[Statistic] = &[
    ("share of serial jobs", |j| share(j, |j| j.procs == 1)),
    ("share of powers of two from 2", |j| share(j, |j| j.procs > 1 && j.procs.is_power_of_two())),
    ("share of 256 procs", |j| share(j, |j| j.procs == 256)),
    ("mean procs", |j| mean_of(j, |j| f64::from(j.procs))),
    ("mean squared procs", |j| mean_of(j, |j| f64::from(j.procs).powi(2))),
    ("mean run (s)", |j| mean_of(j, |j| j.run_s)),
    ("mean squared run (s^2)", |j| mean_of(j, |j| j.run_s.powi(2))),
    ("mean ln run", |j| mean_of(j, |j| j.run_s.ln())),
    ("run p25 (s)", |j| quantile(&runs(j), 0.25)),
    ("run p50 (s)", |j| quantile(&runs(j), 0.5)),
    ("run p75 (s)", |j| quantile(&runs(j), 0.75)),
    ("run p95 (s)", |j| quantile(&runs(j), 0.95)),
    ("mean area (proc s)", |j| mean_of(j, |j| f64::from(j.procs) * j.run_s)),
    ("long runs of serial jobs", |j| mean_of(j, |j| if j.procs == 1 && j.run_s > 4000.0 { 1.0 } else { 0.0 })),
    ("long runs above 32 procs", |j| mean_of(j, |j| if j.procs > 32 && j.run_s > 4000.0 { 1.0 } else { 0.0 })),
    ("mean gap (s)", |j| gaps(j).iter().sum::<f64>() / (j.len() - 1) as f64),
    ("mean ln(gap + 1)", |j| gaps(j).iter().map(|g| (g + 1.0).ln()).sum::<f64>() / (j.len() - 1) as f64),
    ("gap p25 (s)", |j| quantile(&gaps(j), 0.25)),
    ("gap p50 (s)", |j| quantile(&gaps(j), 0.5)),
    ("gap p75 (s)", |j| quantile(&gaps(j), 0.75)),
    ("gap p95 (s)", |j| quantile(&gaps(j), 0.95)),
    ("submits from 0 to 6 h", |j| share(j, |j| j.submit_s % 86_400.0 < 21_600.0)),
    ("submits from 6 to 12 h", |j| share(j, |j| (21_600.0..43_200.0).contains(&(j.submit_s % 86_400.0)))),
    ("submits from 12 to 18 h", |j| share(j, |j| (43_200.0..64_800.0).contains(&(j.submit_s % 86_400.0)))),
];

/// The sample is one draw of the same model. Each of the 24 statistics must be within 4 standard deviations of its mean over
/// 200 generated workloads. For normal statistics, about 1 of 650 samples would fail.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn moments_and_quantiles_agree_with_the_published_sample() {
    let sample = sample();
    let many: Vec<_> = (1..=200).map(|seed| generated(seed, SAMPLE_JOBS as i64)).collect();
    let far: Vec<_> = STATISTICS
        .iter()
        .map(|(name, f)| (name, deviations(name, f(&sample), &many.iter().map(|j| f(j)).collect::<Vec<_>>())))
        .filter(|(_, z)| z.abs() > 4.0)
        .collect();
    assert!(far.is_empty(), "{far:?}");
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn sizes_and_run_times_follow_the_published_sample() {
    let sample = sample();
    let ours = generated(1, GENERATED_JOBS);
    let sizes = |jobs: &[GeneratedJob]| -> Vec<f64> { jobs.iter().map(|j| f64::from(j.procs)).collect() };
    let distance = ks(&sizes(&sample), &sizes(&ours));
    println!("sizes: {distance}");
    assert!(distance < KS_CRITICAL, "sizes: {distance}");
    for (low, high) in [(1, 256), (1, 1), (2, 8), (9, 32), (33, 256)] {
        let runs = |jobs: &[GeneratedJob]| -> Vec<f64> {
            jobs.iter().filter(|j| (low..=high).contains(&j.procs)).map(|j| j.run_s).collect()
        };
        let distance = ks(&runs(&sample), &runs(&ours));
        println!("run times of {low} to {high} procs: {distance}");
        assert!(distance < KS_CRITICAL, "run times of {low} to {high} procs: {distance}");
    }
}

/// The comparisons above reject the model's other variant, so that they are able to fail.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_batch_interactive_variant_is_another_distribution() {
    let sample = sample();
    let other = generated_types("batch-interactive", 1, GENERATED_JOBS);
    let sizes = |jobs: &[GeneratedJob]| -> Vec<f64> { jobs.iter().map(|j| f64::from(j.procs)).collect() };
    let distances =
        [ks(&sizes(&sample), &sizes(&other)), ks(&runs(&sample), &runs(&other)), ks(&gaps(&sample), &gaps(&other))];
    assert!(distances.iter().all(|&d| d > 3.0 * KS_CRITICAL), "{distances:?}");
}

/// Gaps depend on each other by the time of day, which increases the distance. So the bound is the greatest distance of 40
/// generated workloads of the sample's length, not the critical value.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn gaps_follow_the_published_sample() {
    let sample = sample();
    let ours = gaps(&generated(1, GENERATED_JOBS));
    let hours = |jobs: &[GeneratedJob]| -> Vec<f64> { jobs.iter().map(|j| j.submit_s % 86_400.0).collect() };
    let our_hours = hours(&generated(1, GENERATED_JOBS));
    let mut spread = [Vec::new(), Vec::new()];
    for seed in 2..=41 {
        let other = generated(seed, SAMPLE_JOBS as i64);
        spread[0].push(ks(&gaps(&other), &ours));
        spread[1].push(ks(&hours(&other), &our_hours));
    }
    let found = [ks(&gaps(&sample), &ours), ks(&hours(&sample), &our_hours)];
    for ((name, found), spread) in ["gaps", "times of day"].into_iter().zip(found).zip(&spread) {
        let worst = spread.iter().copied().fold(0.0, f64::max);
        println!("{name}: {found}, generated ones up to {worst}");
        assert!(found <= worst, "{name}: {found}, generated ones up to {worst}");
    }
}
