//! Numbers that are known, or that lie between two ends.

use std::ops::{Add, Mul, Neg, Sub};

use crate::stats::sum;

/// Halvings of the interval in which the least mean square lies.
const STEPS: usize = 80;

/// All numbers from `low` to `high`; a known number has equal ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The least number.
    pub low: f64,
    /// The greatest number.
    pub high: f64,
}

impl Span {
    /// A known number.
    pub const fn of(value: f64) -> Span {
        Span { low: value, high: value }
    }

    /// Whether the number is known.
    pub fn is_known(self) -> bool {
        self.low == self.high
    }

    /// The number, if it is known.
    pub fn value(self) -> Option<f64> {
        Some(self.low).filter(|_| self.is_known())
    }

    /// The absolute value.
    pub fn abs(self) -> Span {
        let (low, high) = (self.low.abs(), self.high.abs());
        let contains_zero = self.low <= 0.0 && self.high >= 0.0;
        Span { low: if contains_zero { 0.0 } else { low.min(high) }, high: low.max(high) }
    }

    /// The square.
    pub fn square(self) -> Span {
        let abs = self.abs();
        Span { low: abs.low * abs.low, high: abs.high * abs.high }
    }

    /// Times a number.
    pub fn times(self, factor: f64) -> Span {
        let (one, other) = (self.low * factor, self.high * factor);
        Span { low: one.min(other), high: one.max(other) }
    }

    /// Divided by a span of positive numbers.
    pub fn over(self, positive: Span) -> Span {
        let by = |value: f64, nearer: f64, farther: f64| value / if value >= 0.0 { nearer } else { farther };
        Span { low: by(self.low, positive.high, positive.low), high: by(self.high, positive.low, positive.high) }
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span { low: self.low + other.low, high: self.high + other.high }
    }
}

impl Neg for Span {
    type Output = Span;

    fn neg(self) -> Span {
        Span { low: -self.high, high: -self.low }
    }
}

impl Sub for Span {
    type Output = Span;

    fn sub(self, other: Span) -> Span {
        self + -other
    }
}

impl Mul for Span {
    type Output = Span;

    fn mul(self, other: Span) -> Span {
        if self.is_known() && other.is_known() {
            return Span::of(self.low * other.low);
        }
        let products = [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        Span {
            low: products.into_iter().fold(f64::INFINITY, f64::min),
            high: products.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The mean.
pub fn mean(values: impl ExactSizeIterator<Item = Span> + Clone) -> Span {
    let count = values.len() as f64;
    let low = sum(values.clone().map(|of| of.low)) / count;
    match values.clone().all(Span::is_known) {
        true => Span::of(low),
        false => Span { low, high: sum(values.map(|of| of.high)) / count },
    }
}

/// Bounds of the mean square distance from the mean. The lower one is reached. The upper one is the least mean square of the
/// greatest distances from one centre, which no choice of numbers exceeds.
pub fn variance(values: &[Span]) -> Span {
    let count = values.len() as f64;
    if values.iter().all(|value| value.is_known()) {
        let mean = sum(values.iter().map(|value| value.low)) / count;
        return Span::of(sum(values.iter().map(|value| (value.low - mean).powi(2))) / count);
    }
    let least = values.iter().map(|value| value.low).fold(f64::INFINITY, f64::min);
    let greatest = values.iter().map(|value| value.high).fold(f64::NEG_INFINITY, f64::max);
    let nearest = |centre: f64| {
        let distance = |value: &Span| (value.low - centre).max(centre - value.high).max(0.0);
        sum(values.iter().map(|value| distance(value).powi(2))) / count
    };
    let farthest = |centre: f64| {
        let distance = |value: &Span| (value.high - centre).max(centre - value.low);
        sum(values.iter().map(|value| distance(value).powi(2))) / count
    };
    Span { low: minimum(nearest, least, greatest), high: minimum(farthest, least, greatest) }
}

/// The minimum of a convex function between two places, by a golden section.
fn minimum(of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let share = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - share * (high - low), low + share * (high - low));
    let (mut at_left, mut at_right) = (of(left), of(right));
    for _ in 0..STEPS {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - share * (high - low);
            at_left = of(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + share * (high - low);
            at_right = of(right);
        }
        if high - low <= f64::EPSILON * (low.abs() + high.abs()) {
            break;
        }
    }
    at_left.min(at_right)
}

#[cfg(test)]
mod tests {
    use powersweep_engine::rng::{Philox, Purpose};

    use super::*;

    fn span(low: f64, high: f64) -> Span {
        Span { low, high }
    }

    #[test]
    fn a_span_has_all_results_of_its_numbers() {
        assert_eq!(span(-2.0, 3.0) * span(-1.0, 4.0), span(-8.0, 12.0));
        assert_eq!(span(-2.0, 3.0).square(), span(0.0, 9.0));
        assert_eq!(span(-3.0, -2.0).abs(), span(2.0, 3.0));
        assert_eq!(span(1.0, 2.0) - span(0.0, 5.0), span(-4.0, 2.0));
        assert_eq!(span(-2.0, 3.0).times(-1.0), span(-3.0, 2.0));
        assert_eq!(span(-2.0, 3.0).over(span(2.0, 4.0)), span(-1.0, 1.5));
        assert_eq!(span(2.0, 3.0).over(span(2.0, 4.0)), span(0.5, 1.5));
    }

    #[test]
    fn bounds_of_a_variance_contain_every_choice() {
        let of = |values: &[f64]| variance(&values.iter().copied().map(Span::of).collect::<Vec<_>>()).low;
        assert_eq!(of(&[1.0, 2.0, 3.0, 6.0]), 3.5);
        let mut random = Philox::stream(1, Purpose::Arrival);
        for _ in 0..200 {
            let spans: Vec<Span> = (0..6)
                .map(|at| {
                    let low = random.normal();
                    if at % 2 == 0 { Span::of(low) } else { span(low, low + random.exponential(1.0)) }
                })
                .collect();
            let bounds = variance(&spans);
            let (mut least, mut greatest) = (f64::INFINITY, 0f64);
            for _ in 0..300 {
                let inside = |of: &Span| match random.below(4) {
                    0 => of.low,
                    1 => of.high,
                    _ => random.uniform_in(of.low, of.high.next_up()).min(of.high),
                };
                let found = of(&spans.iter().map(inside).collect::<Vec<_>>());
                (least, greatest) = (least.min(found), greatest.max(found));
            }
            assert!(bounds.low <= least + 1e-12 && bounds.high >= greatest - 1e-12, "{bounds:?}: {least} {greatest}");
        }
        // Both bounds are reached here.
        let bounds = variance(&[Span::of(0.0), span(0.0, 4.0)]);
        assert!(bounds.low < 1e-12 && (bounds.high - 4.0).abs() < 1e-9, "{bounds:?}");
    }
}
