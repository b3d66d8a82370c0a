//! Properties of the generator, without a log.
use super::*;
use crate::spec::Value;

fn choice(set: &[(&str, Value)]) -> Choice {
    let mut choice = Choice::new(&COMPONENT);
    for (name, value) in set {
        choice.set(name, value.clone()).expect("a valid value");
    }
    choice
}

fn jobs(count: i64, set: &[(&str, Value)], seed: u64) -> Vec<GeneratedJob> {
    let mut choice = choice(set);
    choice.set("synthetic_jobs_count", Value::Int(count)).expect("a valid value");
    generate(&choice, seed)
}

#[test]
fn weights_have_mean_one_and_peak_after_noon() {
    for constants in [&COMBINED, &BATCH, &INTERACTIVE] {
        let weights: &Weights = &constants.cycle;
        assert!((weights.iter().sum::<f64>() / 48.0 - 1.0).abs() < 1e-12);
        assert!(weights.iter().all(|&w| w > 0.01), "{weights:?}");
        let peak = (0..48).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).expect("48 half hours");
        assert!((24..32).contains(&peak), "peak in half hour {peak}");
        let low = (0..48).min_by(|&a, &b| weights[a].total_cmp(&weights[b])).expect("48 half hours");
        assert!((8..12).contains(&low), "least in half hour {low}");
    }
}

#[test]
fn more_jobs_extend_a_workload() {
    for types in ["combined", "batch-interactive"] {
        let set = [("lublin_types", Value::Text(types.into()))];
        let (few, many) = (jobs(50, &set, 9), jobs(500, &set, 9));
        assert_eq!(few, many[..50]);
        assert!(many.is_sorted_by(|a, b| a.submit_s <= b.submit_s));
        assert!(many.iter().all(|j| j.run_s >= 1.0 && j.run_s <= 162_754.0 && (1..=256).contains(&j.procs)));
    }
}

#[test]
fn estimates_are_the_run_time_times_a_factor() {
    let plain = jobs(300, &[], 2);
    assert!(plain.iter().all(|j| j.estimate_s.is_none()));
    let estimated = jobs(300, &[("estimate_factor_max", Value::Real(5.0))], 2);
    let mut sum = 0.0;
    for (a, b) in plain.iter().zip(&estimated) {
        assert_eq!((a.submit_s, a.run_s, a.procs), (b.submit_s, b.run_s, b.procs));
        sum += b.estimate_s.expect("estimates were asked for") / b.run_s;
    }
    assert!((sum / 300.0 - 3.0).abs() < 0.4, "mean factor {}", sum / 300.0);
}

#[test]
fn every_machine_size_has_jobs_that_fit() {
    for procs in (1..40).chain([100, 255, 256, 257, 430, 1152, 93_312, 1 << 30]) {
        for types in ["combined", "batch-interactive"] {
            let set = [("synthetic_procs", Value::Int(procs)), ("lublin_types", Value::Text(types.into()))];
            let sizes: Vec<_> = jobs(400, &set, 7).iter().map(|j| i64::from(j.procs)).collect();
            assert!(sizes.iter().all(|s| (1..=procs).contains(s)), "{types}, {procs}: {sizes:?}");
            let parallel = sizes.iter().filter(|&&s| s > 1).count();
            assert!(procs == 1 || parallel > 240, "{types}, {procs}: {parallel} parallel jobs");
        }
    }
}

/// The published program's example: on 8 nodes UMed should be 1.5.
#[test]
fn umed_of_small_machines_follows_the_authors_advice() {
    let umed = |procs| Sizes::new(&COMBINED, procs).umed;
    assert_eq!((umed(128), umed(256), umed(8)), (4.5, 5.5, 1.5));
    let batch = Sizes::new(&BATCH, 128);
    assert_eq!((batch.ulow, batch.umed, batch.uhi), (1.2, 5.0, 7.0));
    let interactive = Sizes::new(&INTERACTIVE, 128);
    assert_eq!((interactive.ulow, interactive.umed, interactive.uhi), (1.0, 3.0, 5.5));
}

/// Compares shares of sizes with the definition of their distribution.
#[test]
fn sizes_have_the_shares_of_the_two_stage_uniform() {
    let sizes: Vec<_> = jobs(100_000, &[], 11).iter().map(|j| j.procs).collect();
    let share = |test: &dyn Fn(u32) -> bool| sizes.iter().filter(|&&s| test(s)).count() as f64 / 1e5;
    assert!((share(&|s| s == 1) - 0.244).abs() < 0.005);
    // 32 = log2 in [4.5, 5.5) of [0.8, 5.5] when rounded, or 2^x in [31.5, 32.5) when not.
    let unrounded = (32.5_f64 / 31.5).log2();
    let expected = 0.86 / 4.7 * (0.576 + 0.18 * unrounded);
    let got = share(&|s| s == 32);
    assert!((got - expected).abs() < 0.004, "{got} instead of {expected}");
    // Above UMed: log2 in [6.5, 7.5) of [5.5, 8].
    let expected = 0.14 / 2.5 * (0.576 + 0.18 * (128.5_f64 / 127.5).log2());
    let got = share(&|s| s == 128);
    assert!((got - expected).abs() < 0.002, "{got} instead of {expected}");
}

/// Fails when arithmetic, `libm` or the consumption of a stream changes: then the component's version must be raised.
#[test]
fn the_first_jobs_are_exact() {
    let first = |types: &str| -> Vec<_> {
        let set = [("lublin_types", Value::Text(types.into()))];
        jobs(5, &set, 1).iter().map(|j| (j.submit_s, j.run_s, j.procs)).collect()
    };
    assert_eq!(
        first("combined"),
        [(355.0, 1248.0, 4), (386.0, 116.0, 1), (27_681.0, 17.0, 1), (28_167.0, 13.0, 4), (28_182.0, 17.0, 16)]
    );
    assert_eq!(
        first("batch-interactive"),
        [(85.0, 8206.0, 32), (144.0, 107.0, 4), (153.0, 135.0, 1), (156.0, 21.0, 8), (3417.0, 7304.0, 4)]
    );
}
