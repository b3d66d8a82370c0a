//! The simulation's only source of randomness.

/// A generator of numbers that follow from a seed (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(mix(seed ^ 0x5eed))
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % n.max(1)
    }

    /// A number of `from..=to`.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True once in `n` times; never if `n` is 0.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }

    /// Mostly short, now and then long: `from..=to` microseconds on a logarithmic scale.
    pub(super) fn delay_us(&mut self, from: u64, to: u64) -> u64 {
        let doublings = 64 - (to / from.max(1)).leading_zeros();
        let scale = self.below(u64::from(doublings));
        (from << scale).min(to) + self.below(from)
    }
}

/// SplitMix64's finaliser: a number that looks random and follows from another.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
