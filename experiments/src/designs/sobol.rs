//! The Sobol' sequence, plain or with Owen's scrambling.

use std::sync::LazyLock;

use super::kind::{Generator, Kind};
use super::random::mix;

pub(super) static KIND: Kind = Kind {
    name: "sobol",
    doc: "The Sobol' sequence (Sobol' 1967) with the direction numbers of Joe & Kuo (2008), in Gray code order as in SciPy. With \
          `seed`, Owen's scrambling (1995) by hashes (Burley 2020). Points fill the ranges more evenly than random ones.",
    count: "points; powers of two are balanced",
    extension: "more points keep the old ones",
    keys: &["count", "seed"],
    points: |settings| Some(settings.count),
    ranges_max: DIMENSIONS,
    build: |settings| Box::new(Sobol { seed: settings.seed }),
};

/// Coordinates for which there are direction numbers.
pub(super) const DIMENSIONS: usize = 256;
/// Bits of a coordinate.
const BITS: usize = 32;
/// Least distance between two coordinates.
const CELL: f64 = 1.0 / (1_u64 << BITS) as f64;

/// By dimension and bit of the index, the number that the bit adds.
static DIRECTIONS: LazyLock<Vec<[u32; BITS]>> = LazyLock::new(|| {
    let first = std::array::from_fn(|bit| 1 << (BITS - 1 - bit));
    let lines = include_str!("joe_kuo.txt").lines().filter(|line| !line.starts_with('#'));
    std::iter::once(first).chain(lines.map(directions)).collect()
});

/// The directions of a line of the table: the recurrence (7) of Joe & Kuo.
fn directions(line: &str) -> [u32; BITS] {
    let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().expect("the table has numbers")).collect();
    let (a, initial) = (numbers[0], &numbers[1..]);
    let degree = initial.len();
    let mut all = [0; BITS];
    for bit in 0..BITS {
        all[bit] = match initial.get(bit) {
            Some(number) => number << (BITS - 1 - bit),
            None => {
                let start = all[bit - degree] ^ (all[bit - degree] >> degree);
                let with = |k: &usize| (a >> (degree - 1 - k)) & 1 == 1;
                (1..degree).filter(with).fold(start, |sum, k| sum ^ all[bit - k])
            }
        };
    }
    all
}

/// The sequence. Dimensions are scrambled independently.
#[derive(Debug)]
pub(super) struct Sobol {
    pub(super) seed: Option<u64>,
}

impl Generator for Sobol {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let mut gray = point ^ (point >> 1);
        let mut bits = 0;
        while gray > 0 {
            bits ^= DIRECTIONS[dimension][gray.trailing_zeros() as usize];
            gray &= gray - 1;
        }
        f64::from(self.key(dimension).map_or(bits, |key| scrambled(bits, key))) * CELL
    }

    fn inverse(&self, coordinate: f64, dimension: usize) -> Option<u64> {
        let bits = (coordinate / CELL).round().clamp(0.0, f64::from(u32::MAX)) as u32;
        let mut bits = self.key(dimension).map_or(bits, |key| unscrambled(bits, key));
        let mut gray = 0_u64;
        // The lowest bit of each direction is that of its number: the directions are a triangular matrix.
        for bit in (0..BITS).rev().filter(|bit| DIRECTIONS[dimension][*bit] != 0) {
            if bits >> (BITS - 1 - bit) & 1 == 1 {
                gray |= 1 << bit;
                bits ^= DIRECTIONS[dimension][bit];
            }
        }
        let shifts = [1, 2, 4, 8, 16, 32];
        Some(shifts.into_iter().fold(gray, |index, shift| index ^ (index >> shift)))
    }

    fn resolution(&self) -> Option<f64> {
        Some(CELL)
    }
}

impl Sobol {
    fn key(&self, dimension: usize) -> Option<u32> {
        self.seed.map(|seed| mix(seed, dimension as u64) as u32)
    }
}

/// Multipliers of the hash, whose even factors let a bit change higher bits only (Laine & Karras 2011, constants of Vegdahl).
const EVEN: [u32; 3] = [0x3d20_adea, 0x0552_6c56, 0x53a2_2864];

/// Owen's scrambling: whether a bit is flipped depends on the bits before it.
fn scrambled(bits: u32, key: u32) -> u32 {
    let mut x = bits.reverse_bits();
    x ^= x.wrapping_mul(EVEN[0]);
    x = x.wrapping_add(key);
    x = x.wrapping_mul((key >> 16) | 1);
    x ^= x.wrapping_mul(EVEN[1]);
    x ^= x.wrapping_mul(EVEN[2]);
    x.reverse_bits()
}

/// The inverse of [`scrambled`].
fn unscrambled(bits: u32, key: u32) -> u32 {
    // Each round makes one more of the low bits right.
    let undone = |y: u32, factor: u32| (0..BITS).fold(y, |x, _| y ^ x.wrapping_mul(factor));
    let odd = (key >> 16) | 1;
    // Newton's iteration doubles the right bits of the reciprocal.
    let reciprocal = (0..5).fold(odd, |x: u32, _| x.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(x))));
    let mut x = undone(undone(bits.reverse_bits(), EVEN[2]), EVEN[1]);
    x = x.wrapping_mul(reciprocal).wrapping_sub(key);
    undone(x, EVEN[0]).reverse_bits()
}
