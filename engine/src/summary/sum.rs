//! Compensated sums, means and ratios.

/// Several running sums, each with a second term for its rounding errors (Knuth's branch-free two-sum, as Neumaier uses
/// it): as exact as twice the precision for sums of moderate condition, and the same on every machine. The sums are side
/// by side, so that the compiler adds them in vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums<const N: usize> {
    high: [f64; N],
    low: [f64; N],
}

/// A single running sum.
pub(crate) type Sum = Sums<1>;

impl<const N: usize> Default for Sums<N> {
    fn default() -> Sums<N> {
        Sums { high: [0.0; N], low: [0.0; N] }
    }
}

impl<const N: usize> Sums<N> {
    /// Adds a term to each sum.
    #[inline(always)]
    pub(crate) fn add_each(&mut self, x: [f64; N]) {
        for ((high, low), x) in self.high.iter_mut().zip(&mut self.low).zip(x) {
            let sum = *high + x;
            let rest = sum - *high;
            *low += (*high - (sum - rest)) + (x - rest);
            *high = sum;
        }
    }

    /// Adds other sums.
    pub(super) fn join(&mut self, other: Sums<N>) {
        self.add_each(other.high);
        self.add_each(other.low);
    }

    /// The sums.
    pub(super) fn values(self) -> [f64; N] {
        std::array::from_fn(|i| self.high[i] + self.low[i])
    }
}

impl Sum {
    /// Adds a term.
    #[inline(always)]
    pub(crate) fn add(&mut self, x: f64) {
        self.add_each([x]);
    }

    /// The two terms: the differences of both between two sums add up to an exact difference of the sums.
    #[inline(always)]
    pub(crate) fn terms(self) -> (f64, f64) {
        (self.high[0], self.low[0])
    }

    /// The sum.
    pub(super) fn value(self) -> f64 {
        self.values()[0]
    }
}

/// `part / whole`; `None` if the whole is 0.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A weighted mean.
#[derive(Debug, Clone, Default)]
pub(super) struct Mean {
    weight: f64,
    sum: Sum,
}

impl Mean {
    /// Adds a value with a weight.
    pub(super) fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum.add(weight * value);
    }

    /// The sum of the weights.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// The mean; `None` if the sum of the weights is 0.
    pub(super) fn value(&self) -> Option<f64> {
        ratio(self.sum.value(), self.weight)
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
