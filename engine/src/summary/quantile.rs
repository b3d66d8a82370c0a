//! Quantiles by selection, in place.

/// Median, 95th and 99th percentile and maximum of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// The quantiles of `values`, none of which is negative. NaN for an empty sample.
///
/// Linear interpolation between order statistics at position q (n - 1) (Hyndman & Fan 1996, type 7). Each selection works
/// on the values above the previous one.
pub(super) fn of(values: Vec<f64>) -> Quantiles {
    if values.is_empty() {
        return Quantiles { p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, max: f64::NAN };
    }
    // The bits of values without a sign have the order of the values. Adding 0 turns a negative zero into a positive one.
    let mut values: Vec<u64> = values.into_iter().map(|v| (v + 0.0).to_bits()).collect();
    let n = values.len();
    // `values[sorted_below..]` holds the order statistics from `sorted_below` on, in any order.
    let mut sorted_below = 0;
    let mut at = |percent: usize| {
        let scaled = percent * (n - 1);
        let (rank, fraction) = (scaled / 100, (scaled % 100) as f64 / 100.0);
        let (_, &mut low, above) = values[sorted_below..].select_nth_unstable(rank - sorted_below);
        sorted_below = rank;
        if fraction == 0.0 {
            return f64::from_bits(low);
        }
        let high = f64::from_bits(above.iter().copied().fold(u64::MAX, u64::min));
        let low = f64::from_bits(low);
        low + (high - low) * fraction
    };
    let [p50, p95, p99] = [50, 95, 99].map(&mut at);
    let max = values[sorted_below..].iter().copied().fold(0, u64::max);
    Quantiles { p50, p95, p99, max: f64::from_bits(max) }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn interpolates_between_order_statistics() {
        let q = of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((q.p50, q.max), (2.5, 4.0));
        assert!((q.p95 - 3.85).abs() < 1e-12, "{}", q.p95);
        assert!((q.p99 - 3.97).abs() < 1e-12, "{}", q.p99);
    }

    #[test]
    fn a_single_value_is_every_quantile() {
        let q = of(vec![7.0]);
        assert_eq!((q.p50, q.p95, q.p99, q.max), (7.0, 7.0, 7.0, 7.0));
    }

    #[test]
    fn one_hundred_and_one_values_hit_the_percentiles_exactly() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let q = of(values);
        assert_eq!((q.p50, q.p95, q.p99, q.max), (50.0, 95.0, 99.0, 100.0));
    }
}
