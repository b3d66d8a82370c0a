//! Structured systems: the published decomposition and betas, the generator, Lemma 1.
use powersweep_engine::lp::structured::{self, Decomposition, Factors};
use powersweep_engine::lp::{self, System};
use proptest::prelude::*;

use super::systems;

/// The factors of section 6.
fn factors() -> Factors {
    Factors {
        classes_per_s: vec![1.0, 2.0, 5.0, 3.0],
        machines: vec![1.0, 3.0, 4.0, 0.2, 6.0, 5.0, 10.0],
        betas: systems::BETAS.to_vec(),
    }
}

fn within(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let far = found.iter().zip(expected).any(|(f, e)| (f - e).abs() > tolerance);
    assert!(!far, "{found:?} is not {expected:?} within {tolerance}");
}

#[test]
fn the_printed_system_is_the_product_of_its_factors() {
    let matrices = factors().almost(0.0, 1);
    let printed = systems::structured(1.0);
    let cells = || (0..4).flat_map(|class| (0..7).map(move |machine| (class, machine)));
    within(&matrices.rates_per_s, &cells().map(|(i, j)| printed.rate_per_s(i, j)).collect::<Vec<_>>(), 1e-12);
    within(&matrices.busy_w, &cells().map(|(i, j)| printed.busy_w(i, j)).collect::<Vec<_>>(), 1e-9);
}

#[test]
fn the_decomposition_equals_the_printed_one() {
    let found = Decomposition::of(&systems::ALMOST_RATES, 4).expect("a matrix");
    within(&found.singular, &[99.68, 8.89, 7.05, 1.45], 0.01);
    // Columns of U and V are unique up to a common sign.
    let left = [
        [-0.17, -0.30, -0.80, -0.48],
        [-0.48, -0.81, 0.31, 0.15],
        [0.27, -0.19, -0.47, 0.82],
        [-0.82, 0.47, -0.18, 0.28],
    ];
    let right = [
        [-0.08, -0.19, -0.26, -0.01, -0.43, -0.39, -0.74],
        [0.04, 0.35, -0.40, 0.0, 0.52, 0.45, -0.49],
        [-0.12, 0.29, -0.50, 0.06, 0.31, -0.68, 0.30],
        [0.41, 0.31, -0.50, -0.01, -0.60, 0.26, 0.26],
    ];
    for k in 0..4 {
        let sign = found.left[k].iter().zip(left[k]).map(|(a, b)| a * b).sum::<f64>().signum();
        let signed = |column: &[f64]| column.iter().map(|x| sign * x).collect::<Vec<_>>();
        within(&signed(&found.left[k]), &left[k], 0.01);
        within(&signed(&found.right[k]), &right[k], 0.01);
    }
    #[rustfmt::skip]
    let rank_1 = [
        1.39, 3.12, 4.26, 0.16, 7.04, 6.44, 12.27,
        2.56, 5.75, 7.86, 0.30, 12.97, 11.88, 22.61,
        6.76, 15.16, 20.73, 0.79, 34.22, 31.33, 59.64,
        4.07, 9.13, 12.49, 0.47, 20.61, 18.87, 35.92,
    ];
    within(&found.rank_1(), &rank_1, 0.01);
    within(&structured::betas(&systems::ALMOST_BUSY_W, &found.rank_1(), 7), &systems::BETAS, 0.01);
}

#[test]
fn the_decomposition_of_a_structured_system_has_rank_1() {
    let matrices = factors().almost(0.0, 1);
    let found = Decomposition::of(&matrices.rates_per_s, 4).expect("a matrix");
    assert!(found.singular[1..].iter().all(|s| *s < 1e-12 * found.singular[0]), "{:?}", found.singular);
    within(&found.rank_1(), &matrices.rates_per_s, 1e-12 * found.singular[0]);
    within(&structured::betas(&matrices.busy_w, &found.rank_1(), 7), &systems::BETAS, 1e-10);
    assert_eq!(Decomposition::of(&[1.0, 2.0, 3.0], 2), None);
    assert_eq!(Decomposition::of(&[], 0), None);
}

#[test]
fn almost_structured_systems_stay_within_the_spread() {
    let (exact, almost) = (factors().almost(0.0, 1), factors().almost(0.5, 3));
    assert_eq!(almost, factors().almost(0.5, 3));
    assert_ne!(almost, factors().almost(0.5, 4));
    assert_eq!(factors().almost(0.0, 3), exact, "a structured system has no errors");
    let mut sums = [0.0; 2];
    let mut cells = 0.0;
    for seed in 0..200 {
        let almost = factors().almost(0.5, seed);
        for cell in 0..28 {
            let rate_error = almost.rates_per_s[cell] / exact.rates_per_s[cell] - 1.0;
            let beta = systems::BETAS[cell % 7];
            let power_error = almost.busy_w[cell] / (beta * almost.rates_per_s[cell]) - 1.0;
            assert!(rate_error.abs() < 0.5 + 1e-12 && power_error.abs() < 0.5 + 1e-12);
            sums = [sums[0] + rate_error, sums[1] + power_error];
            cells += 1.0;
        }
    }
    // Five standard errors of a mean of 5,600 uniforms on +-0.5.
    let error = 5.0 * (1.0_f64 / 12.0 / cells).sqrt();
    assert!(sums.iter().all(|sum| (sum / cells).abs() < error), "{sums:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Lemma 1, for machines without idle power.
    #[test]
    fn a_machine_has_a_load_only_if_all_machines_of_smaller_beta_have_one(
        classes_per_s in proptest::collection::vec(0.2_f64..5.0, 1..5),
        machines in proptest::collection::vec((0.2_f64..10.0, 1_u32..40), 2..8),
        arrivals in proptest::collection::vec(0.1_f64..5.0, 4),
        share in 0.0_f64..1.0,
    ) {
        // Steps of 0.5 keep unequal betas apart.
        let betas: Vec<f64> = machines.iter().map(|(_, beta)| f64::from(*beta) * 0.5).collect();
        let (classes, count) = (classes_per_s.len(), machines.len());
        let factors = Factors { classes_per_s, machines: machines.iter().map(|(gamma, _)| *gamma).collect(), betas };
        let matrices = factors.almost(0.0, 1);
        let system =
            System::new(arrivals[..classes].to_vec(), matrices.rates_per_s, matrices.busy_w, vec![0.0; count]).expect("a system");
        let capacity = lp::capacity(&system).expect("it has an optimum");
        let allocation = lp::allocation(&system, &capacity, share * capacity.lambda).expect("it has an optimum");
        let loads = allocation.loads(count);
        for (a, beta_a) in factors.betas.iter().enumerate() {
            for (b, beta_b) in factors.betas.iter().enumerate() {
                let violated = beta_a > beta_b && loads[a] > 1e-6 && loads[b] == 0.0;
                prop_assert!(!violated, "machine {} works, {} does not: {:?} {:?}", a, b, factors.betas, loads);
            }
        }
    }
}
