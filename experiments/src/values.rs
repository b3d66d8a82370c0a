//! The values of one axis, as a list or as a range. A range of a million values takes a few bytes.

use std::cmp::Ordering;
use std::sync::Arc;

use powersweep_engine::Value;

use crate::canonical::compare;
use crate::decimal::Decimal;
use crate::designs::projection::Projection;

/// Greatest number of values that a list (not a range) of an axis may have.
pub(crate) const LISTED_MAX: u64 = 100_000;

/// The values of an axis, in the order of the manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    /// A list of values. `sorted` holds the positions ordered by value, for look-ups.
    List { values: Vec<Value>, sorted: Vec<u32> },
    /// `from + step * i`.
    Ints { from: i64, step: i64, count: u64 },
    /// `(from + step * i) * 10^exponent`, exactly, then the nearest `f64`.
    Reals { from: i128, step: i128, exponent: i32, count: u64 },
    /// A parameter of a design, by its number in the projection. Values may repeat.
    Designed { points: Arc<Projection>, at: usize },
}

impl Values {
    /// A list. Callers keep lists below 2^32 values ([`LISTED_MAX`]).
    pub(crate) fn list(values: Vec<Value>) -> Values {
        let mut sorted: Vec<u32> = (0..u32::try_from(values.len()).expect("lists are limited")).collect();
        sorted.sort_by(|a, b| compare(&values[*a as usize], &values[*b as usize]));
        Values::List { values, sorted }
    }

    /// One value.
    pub(crate) fn one(value: Value) -> Values {
        Values::List { values: vec![value], sorted: vec![0] }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Values::List { values, .. } => values.len() as u64,
            Values::Ints { count, .. } | Values::Reals { count, .. } => *count,
            Values::Designed { points, .. } => points.len(),
        }
    }

    /// The value at a position below [`Values::len`].
    pub(crate) fn get(&self, position: u64) -> Value {
        match self {
            Values::List { values, .. } => values[usize::try_from(position).expect("a position in a list")].clone(),
            Values::Ints { from, step, .. } => {
                let value = i128::from(*from) + i128::from(*step) * i128::from(position);
                Value::Int(i64::try_from(value).expect("the last value of a range was checked"))
            }
            Values::Designed { points, at } => points.value(position, *at),
            Values::Reals { from, step, exponent, .. } => Value::Real(
                Decimal { mantissa: from + step * i128::from(position), exponent: *exponent }.to_f64() + 0.0,
            ),
        }
    }

    /// The least and the greatest value of a range.
    pub(crate) fn ends(&self) -> Option<(Value, Value)> {
        let is_range = matches!(self, Values::Ints { .. } | Values::Reals { .. });
        is_range.then(|| (self.get(0), self.get(self.len() - 1)))
    }

    /// The position of a value; values of an axis are distinct.
    pub(crate) fn position(&self, value: &Value) -> Option<u64> {
        match (self, value) {
            (Values::List { values, sorted }, _) => {
                sorted.binary_search_by(|at| compare(&values[*at as usize], value)).ok().map(|at| u64::from(sorted[at]))
            }
            (Values::Ints { from, step, count }, Value::Int(value)) => {
                let distance = i128::from(*value) - i128::from(*from);
                let position = u64::try_from(distance / i128::from(*step)).ok()?;
                (distance % i128::from(*step) == 0 && position < *count).then_some(position)
            }
            (Values::Reals { from, step, exponent, count }, Value::Real(value)) => {
                // An estimate in floating point, then exact comparisons around it.
                let scale = |m: i128| Decimal { mantissa: m, exponent: *exponent }.to_f64();
                let guess = ((value - scale(*from)) / scale(*step)).round();
                let near = if guess.is_finite() && guess > 0.0 { guess as u64 } else { 0 };
                (near.saturating_sub(2)..=near.saturating_add(2))
                    .take_while(|position| position < count)
                    .find(|position| compare(&self.get(*position), &Value::Real(*value)) == Ordering::Equal)
            }
            (Values::Designed { .. }, _) => (0..self.len()).find(|at| compare(&self.get(*at), value).is_eq()),
            _ => None,
        }
    }

    /// All positions of a value: a list of a zipped axis may repeat it.
    pub(crate) fn positions(&self, value: &Value) -> impl Iterator<Item = u64> + '_ {
        let (listed, ranged) = match self {
            Values::List { values, sorted } => {
                let order = |at: &u32| compare(&values[*at as usize], value);
                let begin = sorted.partition_point(|at| order(at) == Ordering::Less);
                let count = sorted[begin..].partition_point(|at| order(at) == Ordering::Equal);
                (&sorted[begin..begin + count], None)
            }
            _ => (&[][..], self.position(value)),
        };
        listed.iter().map(|at| u64::from(*at)).chain(ranged)
    }

    /// The later place of each repeated value of a list, and the value.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = (usize, &Value)> {
        let (values, sorted) = match self {
            Values::List { values, sorted } => (&values[..], &sorted[..]),
            _ => (&[][..], &[][..]),
        };
        let pairs = sorted.windows(2).map(|pair| (pair[0].min(pair[1]) as usize, pair[0].max(pair[1]) as usize));
        let equal = pairs.filter(|(first, later)| compare(&values[*first], &values[*later]).is_eq());
        equal.map(|(_, later)| (later, &values[later]))
    }

    /// All values in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).map(|position| self.get(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_found_again() {
        let list = Values::list(vec![Value::Real(2.0), Value::Real(f64::INFINITY), Value::Real(0.0)]);
        let ints = Values::Ints { from: -7, step: 3, count: 50 };
        let reals = Values::Reals { from: 10, step: 1, exponent: -1, count: 21 };
        let tiny = Values::Reals { from: -3, step: 7, exponent: -12, count: 500 };
        for values in [list, ints, reals, tiny] {
            for position in 0..values.len() {
                assert_eq!(values.position(&values.get(position)), Some(position), "{values:?}");
            }
            assert_eq!(values.position(&Value::Real(1.234_567)), None);
            assert_eq!(values.position(&Value::Int(-8)), None);
        }
    }

    #[test]
    fn every_position_of_a_repeated_value_is_found() {
        let list = Values::list([3, 1, 3, 2, 3].map(Value::Int).to_vec());
        let found = |value| {
            let mut found: Vec<u64> = list.positions(&Value::Int(value)).collect();
            found.sort_unstable();
            found
        };
        assert_eq!((found(3), found(1), found(4)), (vec![0, 2, 4], vec![1], vec![]));
        let range = Values::Ints { from: 5, step: 5, count: 3 };
        assert_eq!(range.positions(&Value::Int(10)).collect::<Vec<_>>(), [1]);
        assert_eq!(range.positions(&Value::Int(11)).count(), 0);
    }

    #[test]
    fn negative_zero_is_found_as_zero() {
        assert_eq!(Values::one(Value::Real(0.0)).position(&Value::Real(-0.0)), Some(0));
    }
}
