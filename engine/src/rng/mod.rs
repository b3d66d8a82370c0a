//! Counter-based random numbers (Philox): a stream for each purpose, the same on every machine.
//!
//! Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") is a keyed bijection:
//! block b of a stream is a pure function of (seed, purpose, index, b). So every purpose draws from its own stream, and
//! policies compared under one seed see the same arrivals, sizes and run times, whatever each purpose consumes.
//!
//! Draws use exactly rounded operations and `libm` alone, so that every machine gives the same. A change in how a
//! distribution consumes its stream changes results: raise the versions of the components that draw from it.

mod exponential;

pub use exponential::Exponential;

/// The purpose of a stream of random numbers. Results depend on the numbers: never reuse or renumber one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Times between arrivals.
    Arrival = 1,
    /// Processor counts of jobs.
    Size = 2,
    /// Run times of jobs.
    RunTime = 3,
    /// Users' estimates of run times.
    Estimate = 4,
    /// Relative errors of the rates of an almost structured system.
    RateError = 20,
    /// Relative errors of the powers of an almost structured system.
    PowerError = 21,
    /// Priorities of jobs.
    Priority = 30,
    /// Classes of jobs.
    JobClass = 31,
    /// Order of a list.
    Shuffle = 32,
    /// Which jobs may be deferred.
    Deferral = 33,
    /// Errors of forecasts of a signal.
    Forecast = 34,
    /// Which blocks of a log are drawn.
    Block = 35,
    /// By how much submits are moved.
    Jitter = 36,
    /// Errors of what a scheduler knows of the powers of jobs.
    JobPower = 37,
    /// Resampled blocks of a bootstrap, outside simulations.
    Resample = 40,
}

/// Multipliers of the two halves of a round (Salmon et al. 2011, Table 2).
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increment of the key in each round: the golden ratio and sqrt(3) - 1 as fractions of 2^32.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of the recommended variant; 7 already pass all tests of TestU01.
const ROUNDS: usize = 10;

/// Blocks computed side by side in [`Philox::fill`].
const INTERLEAVED: usize = 4;

/// One block of Philox4x32: four words from a counter and a key. Always inlined, so that [`Philox::fill`] computes several
/// blocks side by side.
#[inline(always)]
fn block(rounds: usize, mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..rounds {
        let even = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let odd = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (odd >> 32) as u32 ^ counter[1] ^ key[0],
            odd as u32,
            (even >> 32) as u32 ^ counter[3] ^ key[1],
            even as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// A stream of random numbers: 2^65 64-bit words. Cheap to make and to clone; a clone gives the same words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
    purpose: u32,
    index: u32,
    /// Number of the next block.
    next_block: u64,
    /// Second half of the last block, if it is unused.
    spare: Option<u64>,
}

impl Philox {
    /// The stream of a purpose under a seed.
    pub fn stream(seed: u64, purpose: Purpose) -> Philox {
        Philox::substream(seed, purpose, 0)
    }

    /// One of 2^32 streams of a purpose, such as one for each class of jobs. Index 0 is [`Philox::stream`].
    pub fn substream(seed: u64, purpose: Purpose, index: u32) -> Philox {
        let key = [seed as u32, (seed >> 32) as u32];
        Philox { key, purpose: purpose as u32, index, next_block: 0, spare: None }
    }

    /// The next 64 bits, uniform.
    pub fn bits(&mut self) -> u64 {
        if let Some(word) = self.spare.take() {
            return word;
        }
        let counter = [self.next_block as u32, (self.next_block >> 32) as u32, self.index, self.purpose];
        let [a, b, c, d] = block(ROUNDS, counter, self.key);
        self.next_block = self.next_block.wrapping_add(1);
        self.spare = Some(u64::from(c) | u64::from(d) << 32);
        u64::from(a) | u64::from(b) << 32
    }

    /// Fills a slice with the next words: the same words as from calls of [`Philox::bits`], but faster.
    pub fn fill(&mut self, words: &mut [u64]) {
        let spare = usize::from(self.spare.is_some()).min(words.len());
        let (first, rest) = words.split_at_mut(spare);
        for word in first {
            *word = self.bits();
        }
        // Blocks are independent: computing several at once keeps the multiplier busy.
        let (chunks, rest) = rest.as_chunks_mut::<{ 2 * INTERLEAVED }>();
        for chunk in chunks {
            let blocks: [[u32; 4]; INTERLEAVED] = std::array::from_fn(|i| {
                let number = self.next_block.wrapping_add(i as u64);
                block(ROUNDS, [number as u32, (number >> 32) as u32, self.index, self.purpose], self.key)
            });
            for ([low, high], [a, b, c, d]) in chunk.as_chunks_mut::<2>().0.iter_mut().zip(blocks) {
                *low = u64::from(a) | u64::from(b) << 32;
                *high = u64::from(c) | u64::from(d) << 32;
            }
            self.next_block = self.next_block.wrapping_add(INTERLEAVED as u64);
        }
        for word in rest {
            *word = self.bits();
        }
    }

    /// Uniform on the open interval (0, 1): the midpoints of 2^52 equal parts.
    pub fn uniform(&mut self) -> f64 {
        // 52 bits and a half: with 53 the last midpoint would round to 1.
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// Uniform on the open interval (`low`, `high`) up to rounding; both finite, `low <= high`.
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform on `0..n`, without bias (Lemire 2019). `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no integer lies below 0");
        // Low words below 2^64 mod n would make some results likelier than others.
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// `true` with probability `p`; never for `p <= 0`, always for `p >= 1`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }

    /// Standard normal, by the polar method (Marsaglia & Bray 1964); the second value of a pair is not kept.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.uniform_in(-1.0, 1.0), self.uniform_in(-1.0, 1.0));
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Gamma with the given shape and scale, both above 0: mean shape * scale, variance shape * scale^2
    /// (Marsaglia & Tsang 2000; a shape below 1 by their boost from shape + 1).
    pub fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        assert!(shape > 0.0 && scale > 0.0, "a gamma distribution has shape and scale above 0");
        if shape < 1.0 {
            let boost = libm::pow(self.uniform(), 1.0 / shape);
            return self.gamma(shape + 1.0, scale) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let u = self.uniform();
            // This bound accepts most draws without a logarithm.
            if u < 1.0 - 0.0331 * (x * x) * (x * x) || libm::log(u) < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
                return d * v * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests;
