//! Compensated summation.

/// A running sum with the rounding errors kept aside (Knuth's branch-free two-sum, Neumaier's use of it): as exact as
/// twice the precision for sums of moderate condition, and the same on every machine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// Adds a term.
    #[inline(always)]
    pub(super) fn add(&mut self, x: f64) {
        let high = self.high + x;
        let rest = high - self.high;
        self.low += (self.high - (high - rest)) + (x - rest);
        self.high = high;
    }

    /// The sum.
    pub(super) fn value(self) -> f64 {
        self.high + self.low
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn small_terms_survive_large_ones() {
        let mut sum = Sum::default();
        for x in [1e16, 1.0, -1e16, 1.0] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 2.0);
        assert_ne!(1e16 + 1.0 - 1e16 + 1.0, 2.0, "plain summation loses it");
    }
}
