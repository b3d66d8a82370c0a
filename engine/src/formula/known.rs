//! Bounds of a formula's value for all values of its variables, and the direction in which time changes the value.
//!
//! Sums, products, quotients and roots round to the nearest number, so that bounds and directions of exact arithmetic hold for
//! them, too. Other functions of `libm` may be off by more: a value that changes with time has no known direction behind them.
use super::{Binary, Formula, Function, Op};

/// The direction in which time changes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// The value stays.
    Constant,
    /// The value never falls.
    Rises,
    /// The value never rises.
    Falls,
    /// The value may rise and fall.
    Varies,
}

impl Trend {
    /// Of a sum of two such values.
    fn with(self, other: Trend) -> Trend {
        match (self, other) {
            (Trend::Constant, trend) | (trend, Trend::Constant) => trend,
            _ if self == other => self,
            _ => Trend::Varies,
        }
    }

    fn negated(self) -> Trend {
        match self {
            Trend::Rises => Trend::Falls,
            Trend::Falls => Trend::Rises,
            trend => trend,
        }
    }

    /// Of the value times a number within these bounds.
    fn times(self, low: f64, high: f64) -> Trend {
        match self {
            Trend::Constant => Trend::Constant,
            trend if low >= 0.0 => trend,
            trend if high <= 0.0 => trend.negated(),
            _ => Trend::Varies,
        }
    }

    /// Behind a function that may round in any way.
    fn rounded(self) -> Trend {
        if self == Trend::Constant { self } else { Trend::Varies }
    }
}

/// Bounds and direction of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The value is not less; not NaN.
    pub low: f64,
    /// The value is not greater; not NaN.
    pub high: f64,
    /// The direction in which time changes the value.
    pub trend: Trend,
}

impl Known {
    fn negated(self) -> Known {
        Known { low: -self.high, high: -self.low, trend: self.trend.negated() }
    }

    fn has_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    fn has_infinity(self) -> bool {
        self.low == f64::NEG_INFINITY || self.high == f64::INFINITY
    }

    /// A sum. `None` here and below: there may be no value.
    fn plus(self, other: Known) -> Option<Known> {
        let (low, high) = (self.low + other.low, self.high + other.high);
        let opposite = |a: Known, b: Known| a.low == f64::NEG_INFINITY && b.high == f64::INFINITY;
        let is_undefined = opposite(self, other) || opposite(other, self);
        (!is_undefined).then_some(Known { low, high, trend: self.trend.with(other.trend) })
    }

    /// A product.
    fn times(self, other: Known) -> Option<Known> {
        if (self.has_zero() && other.has_infinity()) || (self.has_infinity() && other.has_zero()) {
            return None;
        }
        let trend = self.trend.times(other.low, other.high).with(other.trend.times(self.low, self.high));
        Some(Known { trend, ..corners(self, other, |a, b| a * b) })
    }

    /// A quotient, unless the divisor may be 0.
    fn over(self, other: Known) -> Option<Known> {
        if other.has_zero() || (self.has_infinity() && other.has_infinity()) {
            return None;
        }
        let by = other.trend.negated().times(self.low, self.high);
        let trend = self.trend.times(other.low, other.high).with(by);
        Some(Known { trend, ..corners(self, other, |a, b| a / b) })
    }

    /// The value, multiplied by itself.
    fn repeated(self, times: u8) -> Known {
        let product = |factor: f64| (1..times).fold(factor, |product, _| product * factor);
        if self.low >= 0.0 {
            return Known { low: product(self.low), high: product(self.high), ..self };
        }
        if self.high <= 0.0 {
            let positive = self.negated().repeated(times);
            return if times.is_multiple_of(2) { positive } else { positive.negated() };
        }
        let most = product(self.high.max(-self.low));
        Known { low: if times.is_multiple_of(2) { 0.0 } else { -most }, high: most, trend: self.trend.rounded() }
    }

    /// Of a function that never falls and has a value for these bounds.
    fn mapped(self, function: impl Fn(f64) -> f64) -> Known {
        Known { low: function(self.low), high: function(self.high), ..self }
    }
}

/// The bounds of an operation that is monotonous in both values.
fn corners(a: Known, b: Known, of: impl Fn(f64, f64) -> f64) -> Known {
    let all = [of(a.low, b.low), of(a.low, b.high), of(a.high, b.low), of(a.high, b.high)];
    let (low, high) =
        (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max));
    Known { low, high, trend: Trend::Varies }
}

impl Formula {
    /// Bounds and direction of the formula's value; `None` if the formula may have no value. `variable` gives the bounds
    /// and the direction of a variable, by its position in the list.
    pub fn known(&self, variable: impl Fn(u8) -> Known) -> Option<Known> {
        let mut stack: Vec<Known> = Vec::new();
        for op in &self.ops {
            let known = match *op {
                Op::Number(value) => Known { low: value, high: value, trend: Trend::Constant },
                Op::Variable(at) => variable(at),
                Op::Negate => stack.pop()?.negated(),
                Op::Repeat(times) => stack.pop()?.repeated(times),
                Op::Binary(operator) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    operator.known(a, b)?
                }
                Op::Call(function) => {
                    let first = stack.len() - function.signature().1;
                    let known = function.known(&stack[first..])?;
                    stack.truncate(first);
                    known
                }
            };
            stack.push(known);
        }
        stack.pop()
    }
}

impl Binary {
    fn known(self, a: Known, b: Known) -> Option<Known> {
        match self {
            Binary::Add => a.plus(b),
            Binary::Subtract => a.plus(b.negated()),
            Binary::Multiply => a.times(b),
            Binary::Divide => a.over(b),
            Binary::Power => None,
            _ => Some(Known { low: 0.0, high: 1.0, trend: a.trend.with(b.trend).rounded() }),
        }
    }
}

impl Function {
    fn known(self, values: &[Known]) -> Option<Known> {
        let a = values[0];
        let rounded = Known { trend: a.trend.rounded(), ..a };
        let of = |value| self.of(value, 0.0, 0.0);
        match (self, values) {
            (Function::Min, [_, b]) => {
                Some(Known { low: a.low.min(b.low), high: a.high.min(b.high), trend: a.trend.with(b.trend) })
            }
            (Function::Max, [_, b]) => {
                Some(Known { low: a.low.max(b.low), high: a.high.max(b.high), trend: a.trend.with(b.trend) })
            }
            (Function::Sqrt, _) if a.low >= 0.0 => Some(a.mapped(of)),
            (Function::Floor | Function::Ceil, _) => Some(a.mapped(of)),
            (Function::Ln | Function::Log2 | Function::Log10, _) if a.low >= 0.0 => Some(rounded.mapped(of)),
            (Function::Cbrt | Function::Exp, _) => Some(rounded.mapped(of)),
            _ => None,
        }
    }
}
