//! Exponential random numbers in bulk: the ziggurat of Marsaglia & Tsang (2000).
use std::sync::LazyLock;

use super::Philox;

/// Layers of equal area.
const LAYERS: usize = 256;
/// Where the tail begins, and the area of each layer (Marsaglia & Tsang 2000, for 256 layers).
const TAIL_BEGIN: f64 = 7.697_117_470_131_05;
const AREA: f64 = 0.003_949_659_822_581_572;
/// Words drawn at once.
const WORDS: usize = 256;
/// 2^-53.
const ULP: f64 = 1.0 / (1_u64 << 53) as f64;

/// The layers: `x` their right ends, widest first (`x[0]` is the virtual width of the lowest layer, `x[LAYERS]` is 0),
/// `height` the density there.
#[derive(Debug)]
struct Layers {
    x: [f64; LAYERS + 1],
    height: [f64; LAYERS + 1],
}

/// Computed with exactly rounded operations and `libm` alone, so that every machine has the same table.
static TABLE: LazyLock<Layers> = LazyLock::new(|| {
    let mut x = [0.0; LAYERS + 1];
    let mut height = [1.0; LAYERS + 1];
    height[1] = libm::exp(-TAIL_BEGIN);
    x[0] = AREA / height[1];
    height[0] = 0.0;
    x[1] = TAIL_BEGIN;
    for i in 2..LAYERS {
        height[i] = height[i - 1] + AREA / x[i - 1];
        x[i] = -libm::log(height[i]);
    }
    Layers { x, height }
});

/// A stream of exponential numbers of mean 1. It takes its words from a [`Philox`] stream of its own, in blocks. The number
/// of words that a draw consumes varies (98.9% of the draws consume one).
#[derive(Debug, Clone)]
pub struct Exponential {
    source: Philox,
    words: Box<[u64; WORDS]>,
    used: usize,
    table: &'static Layers,
}

impl Exponential {
    /// Draws from a stream.
    pub fn new(source: Philox) -> Exponential {
        Exponential { source, words: Box::new([0; WORDS]), used: WORDS, table: &TABLE }
    }

    #[inline]
    fn word(&mut self) -> u64 {
        if self.used == WORDS {
            self.refill();
        }
        let word = self.words[self.used % WORDS];
        self.used += 1;
        word
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.source.fill(&mut self.words[..]);
        self.used = 0;
    }

    /// The next number: 0 < x < infinity.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        let table = self.table;
        let word = self.word();
        let layer = word as usize % LAYERS;
        let x = ((word >> 11) as f64 + 0.5) * ULP * table.x[layer];
        if x < table.x[layer + 1] { x } else { self.draw_rarely(layer, x) }
    }

    /// Decides on a point outside the part of its layer that lies wholly below the density.
    #[cold]
    fn draw_rarely(&mut self, mut layer: usize, mut x: f64) -> f64 {
        let table = self.table;
        loop {
            if layer == 0 {
                // The tail is the distribution itself, shifted.
                return TAIL_BEGIN - libm::log(self.uniform());
            }
            let (low, high) = (table.height[layer], table.height[layer + 1]);
            if low + (high - low) * self.uniform() < libm::exp(-x) {
                return x;
            }
            let word = self.word();
            layer = word as usize % LAYERS;
            x = ((word >> 11) as f64 + 0.5) * ULP * table.x[layer];
            if x < table.x[layer + 1] {
                return x;
            }
        }
    }

    /// Uniform on the open interval (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Purpose;
    use super::*;

    #[test]
    fn layers_have_equal_areas_and_end_at_the_top() {
        let table = &*TABLE;
        assert!((table.x[0] * table.height[1] - AREA).abs() < 1e-15);
        let tail = libm::exp(-TAIL_BEGIN);
        assert!((TAIL_BEGIN * tail + tail - AREA).abs() < 1e-15, "the lowest layer is rectangle and tail");
        for i in 1..LAYERS {
            assert!(table.x[i + 1] < table.x[i]);
            assert!((table.x[i] * (table.height[i + 1] - table.height[i]) - AREA).abs() < 2e-12, "layer {i}");
        }
    }

    #[test]
    fn moments_and_distribution_are_exponential() {
        const DRAWS: usize = 2_000_000;
        let mut stream = Exponential::new(Philox::stream(7, Purpose::RunTime));
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| stream.draw()).collect();
        let n = DRAWS as f64;
        let moment = |k: i32| draws.iter().map(|x| x.powi(k)).sum::<f64>() / n;
        // Five standard errors: sqrt((2k)! - k!^2)/sqrt(n).
        for (k, exact, sd) in [(1, 1.0, 1.0), (2, 2.0, 20_f64.sqrt()), (3, 6.0, 684_f64.sqrt())] {
            assert!((moment(k) - exact).abs() < 5.0 * sd / n.sqrt(), "moment {k}: {}", moment(k));
        }
        draws.sort_by(f64::total_cmp);
        assert!(draws[0] > 0.0);
        // Kolmogorov-Smirnov: 1.95/sqrt(n) is exceeded with probability 0.001.
        let distance = draws
            .iter()
            .enumerate()
            .map(|(i, x)| {
                let cdf = 1.0 - libm::exp(-x);
                (cdf - i as f64 / n).abs().max((cdf - (i + 1) as f64 / n).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
        let beyond = draws.iter().filter(|x| **x > TAIL_BEGIN).count() as f64;
        let expected = n * libm::exp(-TAIL_BEGIN);
        assert!((beyond - expected).abs() < 5.0 * expected.sqrt(), "{beyond} draws in the tail, not {expected}");
    }

    #[test]
    fn neighbours_are_not_correlated() {
        let mut stream = Exponential::new(Philox::stream(8, Purpose::Arrival));
        let draws: Vec<f64> = (0..500_000).map(|_| stream.draw() - 1.0).collect();
        for lag in [1, 2, 255, 256] {
            let products = draws.iter().zip(&draws[lag..]).map(|(a, b)| a * b).sum::<f64>();
            let correlation = products / (draws.len() - lag) as f64;
            assert!(correlation.abs() < 5.0 / (draws.len() as f64).sqrt(), "lag {lag}: {correlation}");
        }
    }

    /// A change of arithmetic, `libm` or the consumption of words fails here: raise the versions of the components that draw.
    #[test]
    fn the_first_draws_are_bit_exact() {
        let mut stream = Exponential::new(Philox::stream(1, Purpose::Arrival));
        let first: Vec<f64> = (0..4).map(|_| stream.draw()).collect();
        assert_eq!(first, [0.3127876701568263, 0.14410399537194624, 1.3572217275197105, 2.223821240389307]);
        let bits = (0..1_000_000).fold(0_u64, |bits, _| bits.rotate_left(1) ^ stream.draw().to_bits());
        assert_eq!(bits, 16_634_762_994_504_200_243);
    }
}
