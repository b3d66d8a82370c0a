//! Statistics of a sample. None depends on the order of its values.

use std::fmt;

use powersweep_engine::queues::t_quantile;

use crate::error::{Error, usage};

/// What is computed of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stat {
    /// Number of values.
    Count,
    /// Sum.
    Sum,
    /// Mean.
    Mean,
    /// Standard deviation of the sample (n - 1).
    Sd,
    /// Half width of the interval of Student's t around the mean that contains the true one with this probability
    /// (percent: 90, 95 or 99), over replicates ([`crate::replicates`]). None of a single replicate.
    Interval(u32),
    /// Lower end of that interval. Of a ratio, whose interval has no middle.
    Low(u32),
    /// Upper end of that interval.
    High(u32),
    /// Percentile, between 0 and 100; linear interpolation between order statistics (type 7 of Hyndman & Fan).
    Percentile(f64),
    /// Least value.
    Min,
    /// Greatest value.
    Max,
}

impl Stat {
    /// Reads a name: `mean`, `sd`, `ci` (`ci90`, `ci95`, `ci99`), `low` and `high` (`low90` and so on), `median`, `p95`, `min`, `max`, `sum`, `count`.
    pub fn parse(name: &str) -> Result<Stat, Error> {
        let percentile = |text: &str| text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
        Ok(match name {
            "count" => Stat::Count,
            "sum" => Stat::Sum,
            "mean" => Stat::Mean,
            "sd" => Stat::Sd,
            "ci" | "ci95" => Stat::Interval(95),
            "ci90" => Stat::Interval(90),
            "ci99" => Stat::Interval(99),
            "low" | "low95" => Stat::Low(95),
            "low90" => Stat::Low(90),
            "low99" => Stat::Low(99),
            "high" | "high95" => Stat::High(95),
            "high90" => Stat::High(90),
            "high99" => Stat::High(99),
            "median" => Stat::Percentile(50.0),
            "min" => Stat::Min,
            "max" => Stat::Max,
            _ => match name.strip_prefix('p').and_then(percentile) {
                Some(percent) => Stat::Percentile(percent),
                None => {
                    let known =
                        "mean, sd, ci (ci90, ci99), low, high, median, p95 or another percentile, min, max, sum, count";
                    return Err(usage(format!("unknown statistic `{name}`; there are {known}")));
                }
            },
        })
    }

    /// The coverage (percent) of the interval that the statistic is of: it depends on which rows are of one replicate.
    pub fn coverage(self) -> Option<u32> {
        match self {
            Stat::Interval(percent) | Stat::Low(percent) | Stat::High(percent) => Some(percent),
            _ => None,
        }
    }

    /// Its value; `None` if a sample of this size has none, and of an interval, which depends on replicates. `values` are
    /// sorted, without NaN.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Stat::Count => Some(values.len() as f64),
            Stat::Sum => Some(sum(values.iter().copied())),
            Stat::Mean => mean(values),
            Stat::Sd => sd(values),
            Stat::Interval(_) | Stat::Low(_) | Stat::High(_) => None,
            Stat::Percentile(percent) => percentile(values, percent),
            Stat::Min => values.first().copied(),
            Stat::Max => values.last().copied(),
        }
    }
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stat::Count => f.write_str("count"),
            Stat::Sum => f.write_str("sum"),
            Stat::Mean => f.write_str("mean"),
            Stat::Sd => f.write_str("sd"),
            Stat::Interval(percent) => write!(f, "ci{percent}"),
            Stat::Low(percent) => write!(f, "low{percent}"),
            Stat::High(percent) => write!(f, "high{percent}"),
            Stat::Percentile(50.0) => f.write_str("median"),
            Stat::Percentile(percent) => write!(f, "p{percent}"),
            Stat::Min => f.write_str("min"),
            Stat::Max => f.write_str("max"),
        }
    }
}

/// A sum with the rounding errors added at the end (Neumaier 1974). Infinite values stay infinite.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        let next = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() { (self.sum - next) + value } else { (value - next) + self.sum };
        self.sum = next;
    }

    /// The sum of the values.
    pub fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// The [`Sum`] of values.
pub fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Sum::default();
    values.for_each(|value| sum.add(value));
    sum.value()
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return None };
    // Equal values have exactly that mean, and no deviation.
    Some(if first == last { first } else { sum(values.iter().copied()) / values.len() as f64 })
}

/// The standard deviation of a sample; `None` below two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares = sum(values.iter().map(|value| (value - mean) * (value - mean)));
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The standard error of the mean of independent values; `None` below two values.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    sd(values).map(|sd| sd / (values.len() as f64).sqrt())
}

/// The sum of all numerators over the sum of all denominators, with its standard error, linearised (Cochran 1977, 2.11 and
/// 6.4). Where all denominators are equal, it is the standard error of a mean. One part has no error.
pub fn quotient(parts: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let n = parts.clone().count() as f64;
    let under = sum(parts.clone().map(|part| part.1));
    let value = sum(parts.clone().map(|part| part.0)) / under;
    let residuals = parts.map(|(over, under)| (over - value * under) * (over - value * under));
    (value, (n / (n - 1.0) * sum(residuals)).sqrt() / under.abs())
}

/// Degrees of freedom up to which Student's t is summed term by term.
const SUMMED: usize = 1_000;

/// The t within which Student's distribution of `dof` degrees of freedom has `percent` of its mass.
///
/// Above [`SUMMED`] degrees of freedom by the expansion around the normal quantile (Abramowitz & Stegun 1964, 26.7.5), whose
/// error is below 2e-11 there.
pub fn student_t(percent: u32, dof: usize) -> f64 {
    if dof <= SUMMED {
        return t_quantile(f64::from(percent) / 100.0, dof as u32);
    }
    let (z, n) = (normal(percent), dof as f64);
    let z2 = z * z;
    let g1 = z * (z2 + 1.0) / 4.0;
    let g2 = z * (z2 * (5.0 * z2 + 16.0) + 3.0) / 96.0;
    let g3 = z * (z2 * (z2 * (3.0 * z2 + 19.0) + 17.0) - 15.0) / 384.0;
    z + g1 / n + g2 / (n * n) + g3 / (n * n * n)
}

/// [`student_t`] of a number of degrees of freedom that is not whole, at least 1: between its neighbours, the logarithm is
/// interpolated in the reciprocal, which is too great by less than 3%.
pub fn student_t_between(percent: u32, dof: f64) -> f64 {
    let below = dof.max(1.0).floor();
    let part = (1.0 / below - 1.0 / dof.max(1.0)) * below * (below + 1.0);
    let [low, high] = [below, below + 1.0].map(|dof| student_t(percent, dof as usize).ln());
    (low + part * (high - low)).exp()
}

/// The number of standard deviations around the mean within which a normal distribution has `percent` of its mass.
fn normal(percent: u32) -> f64 {
    match percent {
        90 => 1.644_853_626_951_472_2,
        99 => 2.575_829_303_548_900_4,
        _ => 1.959_963_984_540_054,
    }
}

/// The percentile of sorted values; `None` of nothing.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = percent / 100.0 * last as f64;
    let below = position.floor() as usize;
    let (low, high) = (values[below], values[(below + 1).min(last)]);
    let fraction = position - below as f64;
    // Infinity times 0 is no number.
    Some(if fraction == 0.0 || low == high { low } else { low + (high - low) * fraction })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (name, written) in [
            ("mean", "mean"),
            ("sd", "sd"),
            ("ci", "ci95"),
            ("ci99", "ci99"),
            ("low", "low95"),
            ("high90", "high90"),
            ("median", "median"),
            ("p50", "median"),
            ("p99.9", "p99.9"),
            ("count", "count"),
        ] {
            assert_eq!(Stat::parse(name).expect(name).to_string(), written);
        }
        for name in ["", "p", "p101", "pnan", "average", "ci50"] {
            assert!(Stat::parse(name).expect_err(name).message.contains("there are mean"), "{name}");
        }
    }

    #[test]
    fn statistics_of_a_small_sample() {
        let values = [1.0, 2.0, 3.0, 6.0];
        let of = |stat: Stat| stat.of(&values).expect("it has enough values");
        assert_eq!((of(Stat::Count), of(Stat::Sum), of(Stat::Mean)), (4.0, 12.0, 3.0));
        assert_eq!((of(Stat::Min), of(Stat::Max), of(Stat::Percentile(50.0))), (1.0, 6.0, 2.5));
        assert!((of(Stat::Sd) - (14.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((of(Stat::Percentile(95.0)) - 5.55).abs() < 1e-12);
    }

    #[test]
    fn small_samples_have_fewer_statistics() {
        assert_eq!(Stat::Mean.of(&[]), None);
        assert_eq!(Stat::Percentile(50.0).of(&[]), None);
        assert_eq!(Stat::Count.of(&[]), Some(0.0));
        assert_eq!(Stat::Mean.of(&[7.0]), Some(7.0));
        assert_eq!(Stat::Sd.of(&[7.0]), None);
    }

    #[test]
    fn equal_values_do_not_deviate_and_small_ones_are_not_lost() {
        assert_eq!(Stat::Sd.of(&[0.1; 7]), Some(0.0));
        assert_eq!(sum([1e16, 1.0, -1e16].into_iter()), 1.0);
        assert_eq!(Stat::Mean.of(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(Stat::Percentile(50.0).of(&[1.0, f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
    }

    #[test]
    fn the_expansion_of_t_continues_the_sums() {
        for percent in [90, 95, 99] {
            let summed = t_quantile(f64::from(percent) / 100.0, 1_001);
            assert!(
                (student_t(percent, 1_001) - summed).abs() < 2e-11,
                "{percent}: {} {summed}",
                student_t(percent, 1_001)
            );
        }
    }
}
