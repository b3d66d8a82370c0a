//! Known answers of the bijection, and each distribution at fixed seeds.
use super::*;

/// The published vectors for 7 and 10 rounds (Random123's `kat_vectors`): counter, key, block.
#[test]
fn blocks_match_the_published_vectors() {
    let pi = ([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
    let vectors = [
        (7, [0; 4], [0; 2], [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48]),
        (7, [u32::MAX; 4], [u32::MAX; 2], [0x5207_ddc2, 0x4516_5e59, 0x4d8e_e751, 0x8c52_f662]),
        (7, pi.0, pi.1, [0x4dfc_caba, 0x190a_87f0, 0xc473_62ba, 0xb6b5_242a]),
        (10, [0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        (10, [u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (10, pi.0, pi.1, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
    ];
    for (rounds, counter, key, expected) in vectors {
        assert_eq!(block(rounds, counter, key), expected, "{rounds} rounds of {counter:x?} with key {key:x?}");
    }
}

#[test]
fn a_stream_is_its_blocks_in_order() {
    let mut stream = Philox::substream(0xa409_3822_0000_0007, Purpose::RunTime, 9);
    for number in 0..3 {
        let [a, b, c, d] = block(10, [number, 0, 9, 3], [7, 0xa409_3822]);
        assert_eq!(stream.bits(), u64::from(a) | u64::from(b) << 32);
        assert_eq!(stream.bits(), u64::from(c) | u64::from(d) << 32);
    }
    stream.next_block = u64::from(u32::MAX) + 1;
    let [a, b, ..] = block(10, [0, 1, 9, 3], [7, 0xa409_3822]);
    assert_eq!(stream.bits(), u64::from(a) | u64::from(b) << 32, "the block number fills two words");
}

#[test]
fn filling_gives_the_words_of_single_draws() {
    for (before, count) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 8), (1, 8), (1, 100), (3, 37)] {
        let mut one = Philox::substream(5, Purpose::Size, 2);
        one.next_block = u64::from(u32::MAX) - 2;
        let mut many = one.clone();
        for _ in 0..before {
            assert_eq!(one.bits(), many.bits());
        }
        let mut words = vec![0; count];
        many.fill(&mut words);
        assert_eq!(words, (0..count).map(|_| one.bits()).collect::<Vec<_>>(), "{before} before, {count}");
        assert_eq!(one, many);
    }
}

#[test]
fn streams_differ_by_seed_purpose_and_index() {
    let first = |mut s: Philox| s.bits();
    let words = [
        first(Philox::stream(1, Purpose::Arrival)),
        first(Philox::stream(2, Purpose::Arrival)),
        first(Philox::stream(1, Purpose::Size)),
        first(Philox::stream(1, Purpose::RunTime)),
        first(Philox::stream(1, Purpose::Estimate)),
        first(Philox::substream(1, Purpose::Arrival, 1)),
        first(Philox::stream(1 << 32, Purpose::Arrival)),
    ];
    for (i, a) in words.iter().enumerate() {
        assert!(words[..i].iter().all(|b| a != b), "stream {i} repeats an earlier one");
    }
    assert_eq!(words[0], first(Philox::substream(1, Purpose::Arrival, 0)));
}

const DRAWS: usize = 100_000;

/// Sorted draws of a fixed stream.
fn sample(mut draw: impl FnMut(&mut Philox) -> f64) -> Vec<f64> {
    let mut stream = Philox::stream(20_260_101, Purpose::Arrival);
    let mut values: Vec<f64> = (0..DRAWS).map(|_| draw(&mut stream)).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Kolmogorov-Smirnov distance times sqrt(n) stays under 1.95 with probability 0.999.
fn assert_follows(name: &str, sorted: &[f64], cdf: impl Fn(f64) -> f64) {
    let n = sorted.len() as f64;
    let gap = |(i, &x): (usize, &f64)| {
        let f = cdf(x);
        (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
    };
    let distance = sorted.iter().enumerate().map(gap).fold(0.0, f64::max) * n.sqrt();
    assert!(distance < 1.95, "{name}: Kolmogorov-Smirnov statistic {distance}");
}

#[test]
fn uniform_lies_inside_the_open_interval() {
    let values = sample(Philox::uniform);
    assert_follows("uniform", &values, |x| x);
    let largest = ((u64::MAX >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64);
    assert!(largest < 1.0 && 0.5 * (1.0 / (1_u64 << 52) as f64) > 0.0);
    let scaled = sample(|s| s.uniform_in(-3.0, 5.0));
    assert_follows("scaled uniform", &scaled, |x| (x + 3.0) / 8.0);
}

#[test]
fn integers_below_n_are_equally_likely() {
    let mut stream = Philox::stream(5, Purpose::Size);
    let mut counts = [0_u32; 7];
    for _ in 0..70_000 {
        counts[stream.below(7) as usize] += 1;
    }
    // Chi-squared with 6 degrees of freedom: under 22.5 with probability 0.999.
    let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
    assert!(chi < 22.5, "{counts:?}");
    assert_eq!(stream.below(1), 0);
    assert!((0..100).all(|_| stream.below((1 << 63) + 1) <= 1 << 63));
}

#[test]
fn exponential_and_normal_follow_their_distributions() {
    assert_follows("exponential", &sample(|s| s.exponential(40.0)), |x| 1.0 - (-x / 40.0).exp());
    assert_follows("normal", &sample(Philox::normal), |x| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2));
}

#[test]
fn gamma_follows_its_distribution() {
    use crate::workload::lublin::gamma_cdf;
    for (shape, scale) in [(0.3, 2.0), (1.0, 1.0), (4.2, 0.94), (10.46, 0.4871), (312.0, 0.03)] {
        let name = format!("gamma({shape}, {scale})");
        assert_follows(&name, &sample(|s| s.gamma(shape, scale)), |x| gamma_cdf(x, shape, scale));
    }
}

#[test]
fn chance_is_true_with_its_probability() {
    let mut stream = Philox::stream(8, Purpose::Size);
    let hits = (0..DRAWS).filter(|_| stream.chance(0.244)).count() as f64 / DRAWS as f64;
    assert!((hits - 0.244).abs() < 0.005, "{hits}");
    assert!((0..1000).all(|_| !stream.chance(0.0) && stream.chance(1.0)));
}

/// Fails on a machine whose arithmetic or `libm` differs, and when a distribution consumes its stream in another way.
#[test]
fn draws_are_bit_exact() {
    let mut s = Philox::stream(1, Purpose::Arrival);
    let draws = [s.uniform(), s.exponential(1.0), s.normal(), s.gamma(4.2, 0.94), s.gamma(0.5, 1.0)];
    let expected = [0.11725548097682259, 3.2204924957606313, 0.1663662938939903, 4.215964121935084, 1.3751344614893315];
    assert_eq!(draws, expected);
}
