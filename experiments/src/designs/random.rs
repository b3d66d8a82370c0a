//! Independent random points, and the keyed permutation that other kinds share.

use super::kind::{Generator, Kind, RANGES_MAX, SEED_DEFAULT};

pub(super) static KIND: Kind = Kind {
    name: "random",
    doc: "Independent, uniformly distributed points: the reference that every other kind is compared with, and the sample for \
          distributions of results.",
    count: "points",
    extension: "more points keep the old ones",
    keys: &["count", "seed"],
    points: |settings| Some(settings.count),
    ranges_max: RANGES_MAX,
    build: |settings| Box::new(Random { seed: settings.seed.unwrap_or(SEED_DEFAULT) }),
};

/// Different coordinates. A coordinate is drawn without replacement, so that points differ.
const CELLS: u64 = 1 << 40;

#[derive(Debug)]
struct Random {
    seed: u64,
}

impl Random {
    fn order(&self, dimension: usize) -> Permutation {
        Permutation::new(CELLS, mix(self.seed, dimension as u64))
    }
}

impl Generator for Random {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        (self.order(dimension).at(point) as f64 + 0.5) / CELLS as f64
    }

    fn inverse(&self, coordinate: f64, dimension: usize) -> Option<u64> {
        let cell = (coordinate * CELLS as f64) as u64;
        (cell < CELLS).then(|| self.order(dimension).place_of(cell))
    }

    fn resolution(&self) -> Option<f64> {
        Some(1.0 / CELLS as f64)
    }
}

/// The increment of SplitMix64.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next number of SplitMix64 (Steele, Lea & Flood 2014).
pub(crate) fn splitmix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that depends on all bits of both.
pub(super) fn mix(key: u64, number: u64) -> u64 {
    splitmix(splitmix(key) ^ number)
}

/// A permutation of the numbers below `len` without a table: a Feistel network, repeated until the number is below `len`
/// (Black & Rogaway 2002).
#[derive(Debug, Clone, Copy)]
pub(super) struct Permutation {
    len: u64,
    key: u64,
    /// Bits of each half.
    half: u32,
}

const ROUNDS: u64 = 6;

impl Permutation {
    pub(super) fn new(len: u64, key: u64) -> Permutation {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Permutation { len, key, half: bits.div_ceil(2).max(1) }
    }

    fn round(&self, round: u64, half: u64) -> u64 {
        mix(self.key ^ round, half) & ((1 << self.half) - 1)
    }

    /// The number at a place.
    pub(super) fn at(&self, place: u64) -> u64 {
        self.walked(place, |mut left, mut right| {
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ self.round(round, right));
            }
            (left, right)
        })
    }

    /// The place of a number.
    pub(super) fn place_of(&self, number: u64) -> u64 {
        self.walked(number, |mut left, mut right| {
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ self.round(round, left), left);
            }
            (left, right)
        })
    }

    fn walked(&self, mut number: u64, step: impl Fn(u64, u64) -> (u64, u64)) -> u64 {
        loop {
            let (left, right) = step(number >> self.half, number & ((1 << self.half) - 1));
            number = left << self.half | right;
            if number < self.len {
                return number;
            }
        }
    }
}
