use powersweep_engine::rng::{Philox, Purpose};

use super::grid::{Grid, Refused};
use super::morris::{Morris, Step};
use super::saltelli::Saltelli;
use super::*;

/// Indices of Ishigami's function: a = 7, b = 0.1.
const ISHIGAMI: [(f64, f64); 3] = [(0.313_905_19, 0.557_588_58), (0.442_411_14, 0.442_411_14), (0.0, 0.243_683_39)];

/// Ishigami & Homma 1990, on the unit cube.
fn ishigami(u: &[f64]) -> f64 {
    use std::f64::consts::PI;
    let x: Vec<f64> = u.iter().map(|u| -PI + 2.0 * PI * u).collect();
    x[0].sin() + 7.0 * x[1].sin().powi(2) + 0.1 * x[2].powi(4) * x[0].sin()
}

/// The function G of Sobol'.
fn g(u: &[f64]) -> f64 {
    const A: [f64; 8] = [0.0, 1.0, 4.5, 9.0, 99.0, 99.0, 99.0, 99.0];
    u.iter().zip(A).map(|(u, a)| ((4.0 * u - 2.0).abs() + a) / (1.0 + a)).product()
}

/// The values of a function at the rows of the matrices, in the order of a design.
fn rows(design: &Saltelli, of: fn(&[f64]) -> f64, base: impl FnMut(usize) -> Vec<f64>) -> Vec<f64> {
    let mut values = Vec::new();
    for both in (0..design.count).map(base) {
        let (a, b) = both.split_at(design.ranges);
        let with = |of: &[f64], other: &[f64], at: usize| {
            let mut point = of.to_vec();
            point[at] = other[at];
            point
        };
        values.push(of(a));
        values.extend((0..design.ranges).map(|at| of(&with(a, b, at))));
        if design.is_second_order {
            values.extend((0..design.ranges).map(|at| of(&with(b, a, at))));
        }
        values.push(of(b));
    }
    values
}

fn of_one_seed(values: Vec<f64>) -> Values {
    let known = || values.iter().copied().filter(|value| !value.is_nan());
    let range = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    Values { by_seed: vec![values], seeds: Dependence::Independent, range }
}

fn known(found: &[Index]) -> Vec<f64> {
    found.iter().map(|index| index.span.value().expect("no value is missing")).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance, "index {at}: {found} {expected}");
    }
}

/// Points that every language computes alike.
fn weyl(row: usize, dimension: usize) -> f64 {
    const PRIMES: [f64; 16] =
        [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0, 41.0, 43.0, 47.0, 53.0];
    let place = (row as f64 + 0.5) * PRIMES[dimension].sqrt();
    place - place.floor()
}

/// Indices that SALib 1.6.0 gives for these points: `sobol.analyze` with and without second order.
#[test]
fn indices_of_sobol_equal_salibs() {
    let design = Saltelli { count: 256, ranges: 3, is_second_order: true };
    let values = rows(&design, ishigami, |row| (0..6).map(|dimension| weyl(row, dimension)).collect());
    let found = indices(&design, &of_one_seed(values));
    let expected = [
        0.312_632_891_118_570_1,
        0.490_815_970_558_281_9,
        0.500_625_134_716_280_6,
        0.441_950_590_560_601_3,
        0.028_026_023_392_791_55,
        0.237_054_632_335_211_32,
        0.004_904_263_932_426_933,
        0.282_058_750_699_544_1,
        -0.062_947_607_621_405_14,
    ];
    assert_close(&known(&found), &expected, 1e-12);
    // SALib's half widths, from other resamples: S1 0.102, 0.097, 0.106; ST 0.123, 0.076, 0.055; S2 0.166, 0.220, 0.130.
    let expected = [0.102, 0.123, 0.097, 0.076, 0.106, 0.055, 0.166, 0.220, 0.130];
    for (found, of) in found.iter().zip(expected) {
        let (value, (low, high)) = (found.span.value().expect("known"), found.ends.expect("an interval"));
        // The lower end of a share is not below 0.
        assert!(((high - value) / of - 1.0).abs() < 0.12, "{found:?} {of}");
        assert!(low == 0.0 || ((value - low) / of - 1.0).abs() < 0.12, "{found:?} {of}");
    }

    let design = Saltelli { count: 128, ranges: 8, is_second_order: false };
    let values = rows(&design, g, |row| (0..16).map(|dimension| weyl(row, dimension)).collect());
    let expected = [
        0.711_471_538_861_725_4,
        0.788_983_655_625_982_2,
        0.189_138_152_767_334_1,
        0.246_423_072_492_044_04,
        0.027_691_217_247_125_03,
        0.037_374_332_605_440_2,
        0.010_308_750_701_508_692,
        0.011_460_242_328_694_246,
        3.881_794_235_520_026e-5,
        0.000_103_326_223_255_769_12,
        0.001_133_619_148_168_755_2,
        0.000_109_325_215_446_612_82,
        0.000_354_846_053_434_873_7,
        0.000_137_022_343_437_198_73,
        0.000_547_705_902_435_534_7,
        0.000_114_405_820_109_040_72,
    ];
    assert_close(&known(&indices(&design, &of_one_seed(values))), &expected, 1e-12);
}

/// Indices that SALib 1.6.0 gives for these trajectories: `morris.analyze`.
#[test]
fn elementary_effects_equal_salibs() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut design, mut values) = (Morris { ranges: 8, steps: Vec::new() }, Vec::new());
    for _ in 0..20 {
        let low: Vec<u64> = (0..8).map(|_| draw(2)).collect();
        let is_upper: Vec<u64> = (0..8).map(|_| draw(2)).collect();
        let mut order: Vec<usize> = (0..8).collect();
        (1..8).rev().for_each(|at| order.swap(at, draw(at as u64 + 1) as usize));
        let coordinate = |range: usize, is_upper: u64| (low[range] + 2 * is_upper) as f64 / 3.0;
        let mut point: Vec<f64> = (0..8).map(|range| coordinate(range, is_upper[range])).collect();
        values.push(g(&point));
        for range in order {
            let before = point[range];
            point[range] = coordinate(range, 1 - is_upper[range]);
            design.steps.push(Step { range, by: point[range] - before });
            values.push(g(&point));
        }
    }
    let found = indices(&design, &of_one_seed(values));
    let expected = [
        [1.060_747_927_988_365_4, 2.759_434_468_866_816_6, 2.693_889_888_098_019],
        [0.262_295_695_106_746_5, 1.623_695_053_097_793_2, 1.825_437_936_095_395_2],
        [-0.297_543_516_654_596, 0.717_549_871_149_121_7, 0.773_748_451_347_025_4],
        [-0.050_887_716_910_737_05, 0.343_340_540_555_631_07, 0.395_774_554_409_037_97],
        [-0.016_071_986_000_374_093, 0.038_199_646_283_726_026, 0.042_760_661_623_520_48],
        [0.008_182_658_742_262_126, 0.031_278_806_681_531_35, 0.037_291_855_060_945_75],
        [0.001_281_607_166_255_088_8, 0.036_342_202_642_873_09, 0.042_172_327_010_727_08],
        [0.008_615_366_456_715_248, 0.042_339_443_928_694_28, 0.049_132_194_949_647_67],
    ];
    assert_close(&known(&found), expected.as_flattened(), 1e-12);
    // SALib's half widths of mu* of the first four: 0.268, 0.340, 0.167, 0.078.
    let half = |at: usize| found[3 * at + 1].ends.map(|(low, high)| (high - low) / 2.0).expect("an interval");
    for (at, of) in [0.268, 0.340, 0.167, 0.078].into_iter().enumerate() {
        assert!((half(at) / of - 1.0).abs() < 0.12, "{at}: {}", half(at));
    }
}

#[test]
fn a_step_that_changes_no_value_has_no_effect() {
    let step = |by| Step { range: 0, by };
    let design = Morris { ranges: 1, steps: vec![step(0.5), step(0.0), step(-1.0)] };
    let found = known(&indices(&design, &of_one_seed(vec![1.0, 2.0, 7.0, 7.0, 2.0, 1.0])));
    assert_close(&found, &[1.5, 1.5, 0.5f64.sqrt()], 1e-15);
}

/// A parameter with one effect everywhere, of values that are rounded.
#[test]
fn a_sigma_that_rounding_alone_gives_is_0() {
    let steps: Vec<Step> = (0..30).map(|at| Step { range: 0, by: if at % 2 == 0 { 0.3 } else { -0.7 } }).collect();
    let mut values = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let from = 1e6 + at as f64 / 7.0;
        values.extend([from, from + 0.1 * step.by]);
    }
    let found = known(&indices(&Morris { ranges: 1, steps }, &of_one_seed(values)));
    assert_close(&found[..2], &[0.1, 0.1], 1e-9);
    assert_eq!(found[2], 0.0);
}

/// The Markdown and the LaTeX of a column of indices, each a value with half the width of its interval.
fn written(indices: &[(f64, Option<f64>)]) -> [String; 2] {
    let index = |(value, half): &(f64, Option<f64>)| {
        vec![Some(Index { span: Span::of(*value), ends: half.map(|half| (value - half, value + half)) })]
    };
    let rows: Vec<_> = indices.iter().map(index).collect();
    let sheet = crate::text::Sheet::of(&table::frame(Vec::new(), &["S1"], "", &rows));
    [sheet.markdown(), sheet.latex()]
}

#[test]
fn a_heading_has_an_interval_if_a_value_has_one() {
    assert!(written(&[(0.25, None), (0.5, None)])[1].contains("\nS1 \\\\\n"));
    assert!(written(&[(0.25, Some(0.1)), (0.5, None)])[1].contains("\nS1 [95\\% CI] \\\\\n"));
}

#[test]
fn an_interval_that_is_wider_than_its_value_sets_the_power_of_ten() {
    let [text, _] = written(&[(8.9e-4, Some(0.044)), (1.2e-4, Some(0.03))]);
    assert!(text.ends_with("| 0.001 [-0.043, 0.045] |\n| 0.000 [-0.030, 0.030] |\n"), "{text}");
}

#[test]
fn rounding_noise_asks_for_no_digits() {
    assert!(written(&[(1.5, Some(2e-16))])[0].ends_with("| 1.500 [1.500, 1.500] |\n"));
    // A value that is noise itself, beside a number.
    let [text, _] = written(&[(1.7e-16, Some(1e-16)), (3.0, Some(0.25))]);
    assert!(text.ends_with("| 0.00 [0.00, 0.00] |\n| 3.00 [2.75, 3.25] |\n"), "{text}");
    assert!(written(&[(1.5, Some(2e-8))])[0].contains("1.500000000 [1.499999980, "));
}

/// Shares of many designs with independent base points whose intervals contain the true indices. `POWERSWEEP_REPETITIONS` sets
/// their number: `.ci/full intervals` takes 4,000, since the standard deviation of a share of 1,000
/// is 0.007.
#[test]
fn intervals_of_indices_cover_the_truth() {
    let repetitions: u64 =
        std::env::var("POWERSWEEP_REPETITIONS").map_or(100, |text| text.parse().expect("a number of repetitions"));
    let is_long = repetitions >= 1_000;
    let design = Saltelli { count: 512, ranges: 3, is_second_order: false };
    let mut inside = [0; 6];
    for case in 0..repetitions {
        let mut random = Philox::stream(case, Purpose::Arrival);
        let values = rows(&design, ishigami, |_| (0..6).map(|_| random.uniform()).collect());
        let truth = ISHIGAMI.map(|(first, total)| [first, total]);
        let found = resampled(&design, &of_one_seed(values), if is_long { 1_000 } else { 100 });
        for (at, found) in found.iter().enumerate() {
            let (low, high) = found.ends.expect("an interval");
            inside[at] += u32::from((low..=high).contains(&truth.as_flattened()[at]));
        }
    }
    let shares = inside.map(|count| f64::from(count) / repetitions as f64);
    println!("{repetitions} repetitions: {shares:?}");
    let expected = if is_long { 0.93..=0.97 } else { 0.86..=1.0 };
    assert!(shares.iter().all(|share| expected.contains(share)), "{shares:?}");
}

/// Whatever the missing values are, the indices of the whole lie within the bounds.
#[test]
fn bounds_contain_the_indices_of_every_value_that_may_be_missing() {
    let design = Saltelli { count: 64, ranges: 3, is_second_order: true };
    let values = rows(&design, ishigami, |row| (0..6).map(|dimension| weyl(row, dimension)).collect());
    let whole = indices(&design, &of_one_seed(values.clone()));
    let lacking: Vec<f64> =
        values.iter().enumerate().map(|(at, value)| if at % 97 == 3 { f64::NAN } else { *value }).collect();
    let all = of_one_seed(values);
    let found = indices(&design, &Values { by_seed: vec![lacking], seeds: Dependence::Independent, range: all.range });
    for (found, whole) in found.iter().zip(&whole) {
        let value = whole.span.value().expect("known");
        let (low, high) = found.ends.expect("an interval");
        assert!(!found.span.is_known() && (found.span.low..=found.span.high).contains(&value), "{found:?} {value}");
        assert!((low == 0.0 || low < found.span.low) && (found.span.high < high || high == 1.0));
    }
    // An index is an estimate where no missing value touches it.
    let morris = Morris {
        ranges: 2,
        steps: [(0, 0.5), (1, 0.5), (0, 0.5), (1, 0.5)].map(|(range, by)| Step { range, by }).into(),
    };
    let found = indices(
        &morris,
        &Values {
            by_seed: vec![vec![1.0, 2.0, f64::NAN, 0.0, 2.0, 3.0]],
            seeds: Dependence::Independent,
            range: (0.0, 9.0),
        },
    );
    assert_eq!(found[0].span.value(), Some(3.0), "mu of the first range");
    assert_eq!((found[3].span.low, found[3].span.high), (-1.0, 8.0), "mu of the second range");
}

/// Seeds that move all values alike do not widen the interval of an index; seeds that move its effect do.
#[test]
fn seeds_widen_intervals_where_effects_depend_on_them() {
    let steps = (0..20).flat_map(|_| [Step { range: 0, by: 0.5 }, Step { range: 1, by: 0.5 }]).collect();
    let design = Morris { ranges: 2, steps };
    let value = |seed: f64, effect: f64| {
        (0..20)
            .flat_map(move |at| [seed, seed + 1.0 + effect, seed + 1.0 + effect + f64::from(at % 2)])
            .collect::<Vec<_>>()
    };
    let width = |by_seed: Vec<Vec<f64>>| {
        let found = indices(&design, &Values { by_seed, seeds: Dependence::Independent, range: (0.0, 1.0) });
        found[0].ends.map(|(low, high)| high - low).expect("an interval")
    };
    assert!(width(vec![value(0.0, 0.0), value(50.0, 0.0), value(90.0, 0.0)]) < 1e-9);
    assert!(width(vec![value(0.0, 0.0), value(50.0, 0.5), value(90.0, -0.5)]) > 0.5);
}

/// Few seeds, whose effects differ more than those of trajectories: Student's t and the deviation of a sample cover the truth. Values
/// that are never negative have no negative end.
#[test]
fn intervals_over_few_seeds_cover_the_truth() {
    let steps = (0..20).map(|_| Step { range: 0, by: 0.5 }).collect();
    let design = Morris { ranges: 1, steps };
    for seeds in [2, 3, 5] {
        let mut inside = 0;
        for case in 0..1_000 {
            let mut random = Philox::stream(case, Purpose::Arrival);
            let effects: Vec<f64> = (0..20).map(|_| 2.0 + 0.2 * random.normal()).collect();
            let mut seed = || {
                let own = random.normal();
                effects.iter().flat_map(|effect| [0.0, (effect + own) / 2.0]).collect::<Vec<f64>>()
            };
            let values = Values {
                by_seed: (0..seeds).map(|_| seed()).collect(),
                seeds: Dependence::Independent,
                range: (0.0, 1.0),
            };
            let found = resampled(&design, &values, 50);
            let (low, high) = found[0].ends.expect("an interval");
            inside += u32::from((low..=high).contains(&2.0));
            assert!(found[1..].iter().all(|index| index.ends.is_some_and(|(low, _)| low >= 0.0)), "{found:?}");
        }
        assert!((930..=975).contains(&inside), "{seeds} seeds: {inside} of 1,000");
    }
}

fn grid(levels: &[usize], keep: impl Fn(&[usize]) -> bool) -> Grid {
    let mut cells = vec![Vec::new()];
    for count in levels {
        cells =
            cells.iter().flat_map(|cell| (0..*count).map(move |level| [cell.as_slice(), &[level]].concat())).collect();
    }
    cells.retain(|cell| keep(cell));
    Grid { levels: levels.to_vec(), cells }
}

fn values_of(grid: &Grid, of: impl Fn(&[usize]) -> f64) -> Values {
    of_one_seed(grid.cells.iter().map(|cell| of(cell)).collect())
}

/// The jackknife leaves out each seed once, at the cost of one look at a seed: with a look at all others, this takes hours.
#[test]
fn half_a_million_seeds_have_shares() {
    let full = grid(&[2], |_| true);
    let seed = |seed: u64| {
        let noise = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
        vec![noise, noise + 1e6]
    };
    let by_seed: Vec<Vec<f64>> = (0..500_000).map(seed).collect();
    let found = full.shares(&Values { by_seed, seeds: Dependence::Independent, range: (0.0, 1.0) }).expect("shares");
    let [alone, with_others] = found.of_axes[0];
    for index in [alone, with_others] {
        assert!((index.span.low - 1.0).abs() < 1e-6, "{index:?}");
    }
}

/// y = 3 x1 + x2 + x1 x2 with x1 and x2 of -1, 1 and a third axis without an effect: variances 9, 1 and 1 of 11.
#[test]
fn shares_of_a_full_grid_are_those_of_its_decomposition() {
    let of = |cell: &[usize]| {
        let x = |at: usize| 2.0 * cell[at] as f64 - 1.0;
        3.0 * x(0) + x(1) + x(0) * x(1)
    };
    let full = grid(&[2, 2, 3], |_| true);
    let found = full.shares(&values_of(&full, of)).expect("shares");
    let share = |index: Index| index.span.value().expect("known") * 11.0;
    let of_axes: Vec<f64> = found.of_axes.iter().flat_map(|pair| pair.map(share)).collect();
    assert_close(&of_axes, &[9.0, 10.0, 1.0, 2.0, 0.0, 0.0], 1e-12);
    let pairs: Vec<f64> = found.of_pairs.iter().map(|(_, index)| share(*index)).collect();
    assert_close(&pairs, &[1.0, 0.0, 0.0], 1e-12);
    assert!(found.of_axes.iter().flatten().all(|index| index.ends.is_none()), "one seed has no interval");
    // A missing cell bounds what it touches.
    let mut lacking = values_of(&full, of);
    lacking.by_seed[0][3] = f64::NAN;
    let found = full.shares(&lacking).expect("bounds");
    let first = found.of_axes[0][0].span;
    assert!(first.low < 9.0 / 11.0 && first.high > 9.0 / 11.0 && !first.is_known(), "{first:?}");
}

#[test]
fn an_additive_model_is_found_in_a_partial_grid() {
    let of = |cell: &[usize]| [0.0, 1.0, 5.0][cell[0]] + [0.0, 2.0, -1.0, 4.0][cell[1]];
    let full = grid(&[3, 4], |_| true);
    let partial = grid(&[3, 4], |cell| (cell[0] + 2 * cell[1]) % 5 != 3);
    assert!(!partial.is_full() && partial.cells.len() == 10);
    let (of_full, of_partial) = (
        full.shares(&values_of(&full, of)).expect("shares"),
        partial.shares(&values_of(&partial, of)).expect("shares"),
    );
    // The effects are those of the full grid; the variance of its cells is another.
    let ratio = |found: &[[Index; 2]]| found[0][0].span.low / found[1][0].span.low;
    assert!((ratio(&of_full.of_axes) / ratio(&of_partial.of_axes) - 1.0).abs() < 1e-12);
    assert!(of_partial.of_pairs.is_empty());
    let diagonal = grid(&[3, 3], |cell| cell[0] == cell[1]);
    assert_eq!(diagonal.shares(&values_of(&diagonal, |cell| cell[0] as f64)).err(), Some(Refused::Confounded(1)));
}

/// Ten seeds, whose noise is large: the jackknife's shares have no bias, and its intervals cover the shares of the truth.
#[test]
fn intervals_over_seeds_cover_the_shares_of_the_truth() {
    let full = grid(&[3, 4], |_| true);
    let truth =
        |cell: &[usize]| [0.0, 1.0, 5.0][cell[0]] + [0.0, 2.0, -1.0, 4.0][cell[1]] + ((cell[0] * cell[1]) % 3) as f64;
    let exact = full.shares(&values_of(&full, truth)).expect("shares");
    let (mut inside, mut total) = (0, 0.0);
    for case in 0..1_000 {
        let mut random = Philox::stream(case, Purpose::Arrival);
        let mut seed = || {
            let load = 10.0 * random.normal();
            full.cells.iter().map(|cell| truth(cell) + load + 2.0 * random.normal()).collect::<Vec<_>>()
        };
        let values =
            Values { by_seed: (0..10).map(|_| seed()).collect(), seeds: Dependence::Independent, range: (0.0, 1.0) };
        let found = full.shares(&values).expect("shares");
        let (low, high) = found.of_axes[0][0].ends.expect("ten seeds");
        inside += u32::from((low..=high).contains(&exact.of_axes[0][0].span.low));
        total += found.of_axes[0][0].span.low;
    }
    assert!((930..=970).contains(&inside), "{inside}");
    assert!((total / 1_000.0 - exact.of_axes[0][0].span.low).abs() < 0.005, "{total} {:?}", exact.of_axes[0][0]);
}
