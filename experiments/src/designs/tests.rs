//! Properties of the kinds of designs.

use std::collections::BTreeSet;
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::components;
use powersweep_engine::spec::Param;

use super::projection::Projection;
use super::random::Permutation;
use super::range::{Range, Scale};
use super::{Design, Generator, Kind, Settings, discrepancy};
use crate::values::Values;

const PARAMS: [&str; 3] = ["beta", "bsld_threshold", "size_factor"];

fn param(name: &str) -> &'static Param {
    let params = components::COMPONENTS.iter().flat_map(|component| component.params);
    params.into_iter().find(|param| param.name == name).expect("a parameter")
}

fn settings(count: u64, ranges: usize) -> Settings {
    Settings { count, seed: None, levels: 4, second_order: false, ranges }
}

fn generator(kind: &str, settings: Settings) -> Box<dyn Generator> {
    (Kind::of(kind).expect("a kind").build)(&settings)
}

fn design(kind: &str, settings: Settings, scales: Vec<Scale>) -> Arc<Design> {
    let ranges =
        scales.into_iter().zip(PARAMS).map(|(scale, name)| Range { param: param(name), scale, bounds: None }).collect();
    Arc::new(Design::new("d", Kind::of(kind).expect("a kind"), settings, ranges).expect("points"))
}

fn projection(design: &Arc<Design>, ranges: Vec<usize>) -> Projection {
    Projection::new(design, ranges, &mut u64::MAX.clone())
}

const UNIT: Scale = Scale::Linear { from: 0.0, to: 1.0 };

/// The first 64 points in 64ths, a line for each dimension: SciPy 1.17.1, `qmc.Sobol(8, scramble=False).random(64)`.
const SCIPY: [&str; 8] = [
    "0 32 48 16 24 56 40 8 12 44 60 28 20 52 36 4 6 38 54 22 30 62 46 14 10 42 58 26 18 50 34 2 3 35 51 19 27 59 43 11 15 47 63 31 23 55 39 7 5 37 53 21 29 61 45 13 9 41 57 25 17 49 33 1",
    "0 32 16 48 24 56 8 40 20 52 4 36 12 44 28 60 30 62 14 46 6 38 22 54 10 42 26 58 18 50 2 34 17 49 1 33 9 41 25 57 5 37 21 53 29 61 13 45 15 47 31 63 23 55 7 39 27 59 11 43 3 35 19 51",
    "0 32 16 48 40 8 56 24 60 28 44 12 20 52 4 36 30 62 14 46 54 22 38 6 34 2 50 18 10 42 26 58 45 13 61 29 5 37 21 53 17 49 1 33 57 25 41 9 51 19 35 3 27 59 11 43 15 47 31 63 39 7 55 23",
    "0 32 16 48 56 24 40 8 28 60 12 44 36 4 52 20 42 10 58 26 18 50 2 34 54 22 38 6 14 46 30 62 35 3 51 19 27 59 11 43 63 31 47 15 7 39 23 55 9 41 25 57 49 17 33 1 21 53 5 37 45 13 61 29",
    "0 32 48 16 24 56 40 8 36 4 20 52 60 28 12 44 18 50 34 2 10 42 58 26 54 22 6 38 46 14 30 62 9 41 57 25 17 49 33 1 45 13 29 61 53 21 5 37 27 59 43 11 3 35 51 19 63 31 15 47 39 7 23 55",
    "0 32 48 16 8 40 56 24 20 52 36 4 28 60 44 12 62 30 14 46 54 22 6 38 42 10 26 58 34 2 18 50 59 27 11 43 51 19 3 35 47 15 31 63 39 7 23 55 5 37 53 21 13 45 61 29 17 49 33 1 25 57 41 9",
    "0 32 16 48 24 56 8 40 28 60 12 44 4 36 20 52 34 2 50 18 58 26 42 10 62 30 46 14 38 6 54 22 51 19 35 3 43 11 59 27 47 15 63 31 55 23 39 7 17 49 1 33 9 41 25 57 13 45 29 61 21 53 5 37",
    "0 32 48 16 56 24 8 40 60 28 12 44 4 36 52 20 54 22 6 38 14 46 62 30 10 42 58 26 50 18 2 34 43 11 27 59 19 51 35 3 23 55 39 7 47 15 31 63 29 61 45 13 37 5 21 53 33 1 17 49 25 57 41 9",
];

#[test]
fn the_plain_sobol_sequence_is_that_of_scipy() {
    let sobol = generator("sobol", settings(64, 8));
    for (dimension, line) in SCIPY.iter().enumerate() {
        let expected: Vec<f64> = line.split(' ').map(|n| n.parse::<f64>().expect("a number") / 64.0).collect();
        let found: Vec<f64> = (0..64).map(|point| sobol.coordinate(point, dimension)).collect();
        assert_eq!(found, expected, "dimension {dimension}");
    }
    // `qmc.Sobol(256, scramble=False, bits=32).fast_forward(123456)`, in 2^-32.
    let far = [(0, 113_803_264), (1, 784_891_904), (7, 1_993_113_600), (100, 2_283_044_864), (255, 2_091_679_744_u64)];
    for (dimension, expected) in far {
        assert_eq!(sobol.coordinate(123_456, dimension) * 2_f64.powi(32), expected as f64, "dimension {dimension}");
    }
}

/// Owen's scrambling keeps the nets: each box of area 2^-6 has one of 64 points, for all shapes of boxes.
#[test]
fn scrambled_points_are_a_net_and_differ_by_seed() {
    let of_seed = |seed| generator("sobol", Settings { seed: Some(seed), ..settings(64, 2) });
    let coordinates = |seed, dimension| (0..64).map(|p| of_seed(seed).coordinate(p, dimension)).collect::<Vec<f64>>();
    for seed in [0, 1, 7, u64::MAX] {
        let (x, y) = (coordinates(seed, 0), coordinates(seed, 1));
        for bits in 0..=6 {
            let (across, up) = (f64::from(1 << bits), f64::from(64 >> bits));
            let boxes: BTreeSet<(u64, u64)> =
                x.iter().zip(&y).map(|(x, y)| ((x * across) as u64, (y * up) as u64)).collect();
            assert_eq!(boxes.len(), 64, "seed {seed}, {across} columns");
        }
    }
    assert_ne!(coordinates(1, 0), coordinates(2, 0));
    assert_ne!(coordinates(1, 0), coordinates(1, 1));
}

#[test]
fn each_stratum_of_a_latin_hypercube_has_one_point_in_each_dimension() {
    for count in [1, 2, 7, 64, 1_000] {
        let latin = generator("latin-hypercube", settings(count, 5));
        for dimension in 0..5 {
            let strata = (0..count).map(|point| (latin.coordinate(point, dimension) * count as f64) as u64);
            assert_eq!(strata.collect::<BTreeSet<u64>>().len() as u64, count, "{count} points, dimension {dimension}");
        }
    }
}

#[test]
fn a_permutation_has_each_number_once_and_finds_its_place() {
    for len in [1, 2, 3, 10, 257, 1_000] {
        let order = Permutation::new(len, 3);
        let numbers: BTreeSet<u64> = (0..len).map(|place| order.at(place)).collect();
        assert_eq!((numbers.len() as u64, numbers.last().copied()), (len, Some(len - 1)));
        assert!((0..len).all(|place| order.place_of(order.at(place)) == place), "{len}");
    }
}

#[test]
fn random_points_have_the_moments_of_the_uniform_distribution() {
    let random = generator("random", settings(20_000, 2));
    let mean = |of: &dyn Fn(u64) -> f64| (0..20_000).map(of).sum::<f64>() / 20_000.0;
    let (x, y) = (|point| random.coordinate(point, 0) - 0.5, |point| random.coordinate(point, 1) - 0.5);
    // Five standard errors.
    assert!(mean(&x).abs() < 0.0103 && (mean(&|p| x(p) * x(p)) - 1.0 / 12.0).abs() < 0.0027, "{}", mean(&x));
    assert!(mean(&|p| x(p) * y(p)).abs() < 0.003 && mean(&|p| x(p) * x(p + 1)).abs() < 0.003);
}

#[test]
fn a_trajectory_changes_each_range_once_by_delta() {
    for (ranges, levels) in [(1, 2), (5, 4), (9, 10)] {
        let morris = generator("morris", Settings { levels, ..settings(50, ranges) });
        let delta = levels as f64 / (2 * (levels - 1)) as f64;
        let at = |point| (0..ranges).map(|dimension| morris.coordinate(point, dimension)).collect::<Vec<f64>>();
        for trajectory in 0..50 {
            let begin = trajectory * (ranges as u64 + 1);
            let mut changed = BTreeSet::new();
            for point in begin..begin + ranges as u64 {
                let steps: Vec<f64> = at(point).iter().zip(at(point + 1)).map(|(a, b)| (b - a).abs()).collect();
                let moved: Vec<usize> = (0..ranges).filter(|range| steps[*range] > 0.0).collect();
                assert!(moved.len() == 1 && (steps[moved[0]] - delta).abs() < 1e-12, "{steps:?}");
                changed.insert(moved[0]);
            }
            assert_eq!(changed.len(), ranges);
            assert!(at(begin).iter().all(|x| (x * (levels - 1) as f64).fract().abs() < 1e-9));
        }
    }
}

#[test]
fn saltelli_rows_are_those_of_a_and_b_with_one_column_exchanged() {
    let (count, ranges) = (32, 3);
    let base = generator("sobol", Settings { seed: Some(1), ..settings(count, 2 * ranges) });
    for second_order in [false, true] {
        let block = if second_order { 2 * ranges + 2 } else { ranges + 2 } as u64;
        let of = Settings { second_order, ..settings(count, ranges) };
        assert_eq!((Kind::of("saltelli").expect("a kind").points)(&of), Some(count * block));
        let saltelli = generator("saltelli", of);
        let at = |point| (0..ranges).map(|dimension| saltelli.coordinate(point, dimension)).collect::<Vec<f64>>();
        for row in 0..count {
            let half = |from: usize| (0..ranges).map(|d| base.coordinate(row, from + d)).collect::<Vec<f64>>();
            let (a, b) = (half(0), half(ranges));
            let mut expected = vec![a.clone()];
            for (of, by) in [(&a, &b), (&b, &a)].into_iter().take(1 + usize::from(second_order)) {
                for range in 0..ranges {
                    let mut exchanged = of.clone();
                    exchanged[range] = by[range];
                    expected.push(exchanged);
                }
            }
            expected.push(b);
            assert_eq!((row * block..(row + 1) * block).map(at).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn one_range_moves_at_a_time_over_its_whole_width() {
    let design = design("one-at-a-time", settings(3, 2), vec![UNIT, Scale::Linear { from: 2.0, to: 4.0 }]);
    let points: Vec<Vec<Value>> =
        (0..design.points).map(|point| (0..2).map(|range| design.value(point, range)).collect()).collect();
    let expected = [(0.5, 3.0), (0.0, 3.0), (0.5, 3.0), (1.0, 3.0), (0.5, 2.0), (0.5, 3.0), (0.5, 4.0)];
    assert_eq!(points, expected.map(|(a, b)| vec![Value::Real(a), Value::Real(b)]));
    assert_eq!(projection(&design, vec![0, 1]).repeated, [2, 5]);
}

#[test]
fn the_discrepancy_is_that_of_scipy() {
    let of = |count, ranges| {
        let design = design("sobol", settings(count, ranges), vec![UNIT; ranges]);
        discrepancy::centred_l2(&design)
    };
    // `qmc.discrepancy(qmc.Sobol(3, scramble=False).random(10), method="CD")`
    assert!((of(10, 3) - 0.021_103_292_725_703_77).abs() < 1e-14, "{}", of(10, 3));
    let listed = |values: [f64; 4], bounds: Option<Scale>| {
        let scale = Scale::Listed(Values::list(values.map(Value::Real).to_vec()));
        let range = Range { param: param(PARAMS[0]), scale, bounds };
        discrepancy::centred_l2(&Design::listed("d", vec![range], vec![vec![0, 1, 2, 3]], false))
    };
    let (near, even) = ([1.0, 1.001, 1.002, 1.003], [1.0, 1.25, 1.5, 1.75]);
    let bounds = Scale::Linear { from: 1.0, to: 2.0 };
    // `qmc.discrepancy([[0], [0.001], [0.002], [0.003]], method="CD")`, then of 0, 0.25, 0.5, 0.75 and of 0, 1/3, 2/3, 1.
    for (values, bounds, expected) in [
        (near, Some(bounds.clone()), 0.331_211_833_333_332_93),
        (even, Some(bounds), 0.020_833_333_333_333_26),
        (even, None, 0.013_888_888_888_888_395),
    ] {
        let found = listed(values, bounds);
        assert!((found - expected).abs() < 1e-12, "{values:?}: {found}");
    }
}

#[test]
fn values_have_places_in_their_ranges() {
    let at = |scale: Scale, values: &[Value]| values.iter().map(|value| scale.place(value)).collect::<Vec<f64>>();
    let list = |values: &[Value]| Scale::Listed(Values::list(values.to_vec()));
    let ints = [1, 2, 101].map(Value::Int);
    assert_eq!(at(Scale::LogInts { from: 1, to: 16 }, &[1, 4, 16].map(Value::Int)), [0.0, 0.5, 1.0]);
    assert_eq!(
        at(Scale::Listed(Values::Ints { from: 1, step: 1, count: 5 }), &[1, 2, 5].map(Value::Int)),
        [0.0, 0.25, 1.0]
    );
    assert_eq!(at(list(&[ints[2].clone(), ints[0].clone(), ints[1].clone()]), &ints), [0.0, 0.01, 1.0]);
    let words = ["b", "a", "c"].map(|word| Value::Text(word.to_owned()));
    assert_eq!(at(list(&words), &words), [0.0, 0.5, 1.0]);
    let endless = [4.0, 16.0, f64::INFINITY].map(Value::Real);
    assert_eq!(at(list(&endless), &endless), [0.0, 0.5, 1.0]);
    assert_eq!(at(list(&ints[..1]), &ints[..1]), [0.5]);
}

#[test]
fn coordinates_become_values_of_each_scale() {
    let at = |scale: &Scale| [0.0, 0.3, 0.5, 0.999_999, 1.0].map(|x| scale.value(x).to_string());
    assert_eq!(at(&Scale::Linear { from: -1.0, to: 1.0 })[..3], ["-1", "-0.4", "0"]);
    let Value::Real(middle) = (Scale::Log { from: 1.0, to: 100.0 }).value(0.5) else { panic!("a real") };
    assert!((middle - 10.0).abs() < 1e-13, "{middle}");
    assert_eq!(
        (&*at(&Scale::Log { from: 0.1, to: 3.0 })[0], &*at(&Scale::Log { from: 0.1, to: 3.0 })[4]),
        ("0.1", "3")
    );
    let ints = Scale::Listed(Values::Ints { from: 1, step: 1, count: 4 });
    assert_eq!(at(&ints), ["1", "2", "3", "4", "4"]);
    let log = Scale::LogInts { from: 1, to: 7 };
    assert_eq!(at(&log), ["1", "1", "2", "7", "7"]);
}

#[test]
fn far_points_are_found_by_their_values() {
    let scales = || vec![Scale::Linear { from: 1.5, to: 3.0 }, Scale::Log { from: 1e-3, to: 1e6 }];
    for kind in ["sobol", "latin-hypercube", "random"] {
        for seed in [None, Some(5)] {
            let design = design(kind, Settings { seed, ..settings(1_000_000_000, 2) }, scales());
            for ranges in [vec![0], vec![1], vec![0, 1]] {
                let points = projection(&design, ranges.clone());
                assert!(points.is_compared() && points.repeated.is_empty());
                for point in [0, 1, 999, 123_456_789, 999_999_999] {
                    let values: Vec<Value> = (0..ranges.len()).map(|at| points.value(point, at)).collect();
                    let value = |name: &str| Some(&values[(0..ranges.len()).find(|at| points.name(*at) == name)?]);
                    assert_eq!(points.find(value), Some(point), "{kind} {seed:?} {ranges:?}");
                    let other = Value::Real(2.000_000_123);
                    assert_eq!(points.find(|_| Some(&other)), None);
                }
            }
        }
    }
}

#[test]
fn equal_points_of_lists_are_found_once() {
    let levels = || Scale::Listed(Values::Ints { from: 1, step: 1, count: 3 });
    let design = design("random", settings(200, 2), vec![levels(), levels()]);
    let points = projection(&design, vec![0, 1]);
    assert_eq!(points.repeated.len(), 200 - 9);
    let firsts = (0..200).filter(|point| !points.repeated.contains(point));
    let mut seen = BTreeSet::new();
    for point in firsts {
        let values = [points.value(point, 0), points.value(point, 1)];
        assert!(seen.insert(format!("{values:?}")));
        let value = |name: &str| Some(&values[usize::from(name == points.name(1))]);
        assert_eq!(points.find(value), Some(point));
    }
    // Without values to compute, values within the ranges count as found.
    let within = Projection::new(&design, vec![0, 1], &mut 799);
    assert!(!within.is_compared() && within.find(|_| Some(&Value::Int(2))) == Some(0));
    assert_eq!(within.find(|_| Some(&Value::Int(4))), None);
    // A narrow range of reals cannot tell 2^32 points apart: its points are compared, too.
    let narrow = Scale::Linear { from: 1.0, to: 1.0 + 4.0 * f64::EPSILON };
    assert!(!design_of(narrow).is_distinct(0));
}

fn design_of(scale: Scale) -> Arc<Design> {
    design("sobol", settings(100, 1), vec![scale])
}
