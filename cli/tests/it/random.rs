//! Random numbers that a seed repeats.

use std::time::Duration;

/// A fixed sequence of pseudo-random numbers (Knuth's MMIX generator).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        let seed = std::env::var("POWERSWEEP_SEED").ok().and_then(|s| s.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("POWERSWEEP_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub(crate) fn ms_below(&mut self, n: u64) -> Duration {
        Duration::from_micros(self.below(1000 * n))
    }
}
