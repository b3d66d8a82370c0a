//! Whether two variants of a level hold the same components somewhere, decided without enumerating them.

use std::collections::BTreeMap;

use powersweep_engine::Value;

use crate::decimal::Decimal;
use crate::space::{Column, Digit, LOG, Level, Variant, tells_apart};
use crate::values::{Values, compare};

/// Pairs of variants, and rows of zips, that one search may look at.
const STEPS_MAX: u64 = 4_000_000;
/// Ranges up to this length are compared value by value.
const SCAN_MAX: u64 = 100_000;

/// What two variants have in common.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overlap {
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// An example: values that both have, of the parameters that vary in either.
    pub(crate) example: BTreeMap<&'static str, Value>,
}

/// A search that would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Compares names of logs.
pub(crate) type SameLog<'a> = &'a dyn Fn(&Value, &Value) -> bool;

/// The first pair of variants of a level that hold the same components somewhere.
pub(crate) fn find(level: &Level, same_log: SameLog<'_>) -> Result<Option<Overlap>, TooMany> {
    let mut steps = 0;
    let mut found: Option<Overlap> = None;
    for bucket in level.buckets() {
        for (at, first) in bucket.iter().enumerate() {
            for second in &bucket[at + 1..] {
                step(&mut steps)?;
                let pair = Pair { a: &level.variants[*first], b: &level.variants[*second], same_log };
                let earlier = found.as_ref().is_none_or(|o| (*first, *second) < (o.first, o.second));
                if earlier && let Some(example) = pair.common(&mut steps)? {
                    found = Some(Overlap { first: *first, second: *second, example });
                }
            }
        }
    }
    Ok(found)
}

/// Two rows of a digit that give the same task, if there are any.
pub(crate) fn repeated_rows(digit: &Digit) -> Option<(u64, u64)> {
    let telling: Vec<&Column> = digit.columns.iter().filter(|column| column.identity).collect();
    if telling.len() == 1 && digit.columns.len() == 1 {
        return None;
    }
    let order = |a: u64, b: u64| {
        let by_column = telling.iter().map(|column| compare(&column.values.get(a), &column.values.get(b)));
        by_column.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    };
    let mut rows: Vec<u64> = (0..digit.len().min(SCAN_MAX)).collect();
    rows.sort_by(|a, b| order(*a, *b).then(a.cmp(b)));
    rows.windows(2).find(|pair| order(pair[0], pair[1]).is_eq()).map(|pair| (pair[0], pair[1]))
}

fn step(steps: &mut u64) -> Result<(), TooMany> {
    *steps += 1;
    if *steps > STEPS_MAX { Err(TooMany) } else { Ok(()) }
}

type Assignment = BTreeMap<&'static str, Value>;

struct Pair<'a> {
    a: &'a Variant,
    b: &'a Variant,
    same_log: SameLog<'a>,
}

impl Pair<'_> {
    /// Values that both have; `None` if they have nothing in common.
    fn common(&self, steps: &mut u64) -> Result<Option<Assignment>, TooMany> {
        let mut assigned = Assignment::new();
        let params =
            self.a.choices.iter().flat_map(|choice| choice.component().params).filter(|param| tells_apart(param));
        for param in params {
            let (a, b) = (self.a.column(param.name), self.b.column(param.name));
            let zipped = |variant: &Variant, column: Option<(usize, &Column)>| {
                column.is_some_and(|(d, _)| variant.digits[d].columns.len() > 1)
            };
            if zipped(self.a, a) || zipped(self.b, b) {
                continue;
            }
            let common = match (a, b) {
                (None, None) => match (self.a.fixed(param.name), self.b.fixed(param.name)) {
                    (Some(a), Some(b)) if self.same(param.name, a, b) => continue,
                    (None, None) => continue,
                    _ => None,
                },
                (Some((_, column)), None) => self
                    .b
                    .fixed(param.name)
                    .and_then(|value| self.find_in(column, value))
                    .map(|at| column.values.get(at)),
                (None, Some((_, column))) => self
                    .a
                    .fixed(param.name)
                    .and_then(|value| self.find_in(column, value))
                    .map(|at| column.values.get(at)),
                (Some((_, a)), Some((_, b))) => self.shared(a, b),
            };
            match common {
                Some(value) => assigned.insert(param.name, value),
                None => return Ok(None),
            };
        }
        let groups: Vec<&Digit> =
            self.a.digits.iter().chain(&self.b.digits).filter(|digit| digit.columns.len() > 1).collect();
        Ok(self.join(&groups, &mut assigned, steps)?.then_some(assigned))
    }

    fn same(&self, name: &str, a: &Value, b: &Value) -> bool {
        if name == LOG { (self.same_log)(a, b) } else { compare(a, b).is_eq() }
    }

    fn find_in(&self, column: &Column, value: &Value) -> Option<u64> {
        if column.name == LOG {
            return (0..column.values.len()).find(|at| (self.same_log)(&column.values.get(*at), value));
        }
        column.values.position(value)
    }

    /// A value of both columns.
    fn shared(&self, a: &Column, b: &Column) -> Option<Value> {
        let (short, long) = if a.values.len() <= b.values.len() { (a, b) } else { (b, a) };
        if short.values.len() > SCAN_MAX {
            return common_of_ranges(&short.values, &long.values);
        }
        short.values.iter().find(|value| self.find_in(long, value).is_some())
    }

    /// Chooses a row of every zip so that all agree; `assigned` then holds the choice.
    fn join(&self, groups: &[&Digit], assigned: &mut Assignment, steps: &mut u64) -> Result<bool, TooMany> {
        let Some((digit, rest)) = groups.split_first() else { return Ok(true) };
        for row in 0..digit.len() {
            step(steps)?;
            let before = assigned.clone();
            let fits = digit.columns.iter().filter(|column| column.identity).all(|column| {
                let value = column.values.get(row);
                if let Some(known) = assigned.get(column.name) {
                    return self.same(column.name, known, &value);
                }
                let fits = [self.a, self.b].into_iter().all(|variant| match variant.column(column.name) {
                    // A zipped axis of the other variant is joined in its turn.
                    Some((at, _)) if variant.digits[at].columns.len() > 1 => true,
                    Some((_, other)) => self.find_in(other, &value).is_some(),
                    None => variant.fixed(column.name).is_some_and(|other| self.same(column.name, other, &value)),
                });
                assigned.insert(column.name, value);
                fits
            });
            if fits && self.join(rest, assigned, steps)? {
                return Ok(true);
            }
            *assigned = before;
        }
        Ok(false)
    }
}

/// A common value of two long ranges, by the Chinese remainder theorem. Numbers too large for exact arithmetic count as
/// common: refusing two such ranges is better than running a task twice.
fn common_of_ranges(a: &Values, b: &Values) -> Option<Value> {
    let terms = |values: &Values| match *values {
        Values::Ints { from, step, count } => Some((i128::from(from), i128::from(step), 0, i128::from(count))),
        Values::Reals { from, step, exponent, count } => Some((from, step, exponent, i128::from(count))),
        Values::List { .. } => None,
    };
    let ((a_from, a_step, a_exp, a_count), (b_from, b_step, b_exp, b_count)) = (terms(a)?, terms(b)?);
    let exponent = a_exp.min(b_exp);
    let scale = |mantissa: i128, from: i32| Decimal { mantissa, exponent: from }.mantissa_at(exponent);
    let at = || {
        let (a_from, a_step) = (scale(a_from, a_exp)?, scale(a_step, a_exp)?);
        let (b_from, b_step) = (scale(b_from, b_exp)?, scale(b_step, b_exp)?);
        let last = (a_from.checked_add(a_step.checked_mul(a_count - 1)?)?)
            .min(b_from.checked_add(b_step.checked_mul(b_count - 1)?)?);
        Some(first_common((a_from, a_step), (b_from, b_step))?.filter(|value| *value <= last))
    };
    match at() {
        None => Some(a.get(0)),
        Some(None) => None,
        Some(Some(mantissa)) if matches!(a, Values::Ints { .. }) => {
            Some(Value::Int(i64::try_from(mantissa).expect("a value of a range of 64-bit integers")))
        }
        Some(Some(mantissa)) => Some(Value::Real(Decimal { mantissa, exponent }.to_f64())),
    }
}

/// The least value at or after both starts that both progressions have. The outer `None`: overflow.
fn first_common((a, s): (i128, i128), (b, t): (i128, i128)) -> Option<Option<i128>> {
    // Extended Euclid: g = gcd(s, t) and x with s*x = g (mod t).
    let (mut g, mut r, mut x, mut y) = (s, t, 1_i128, 0_i128);
    while r != 0 {
        let q = g / r;
        (g, r) = (r, g - q * r);
        (x, y) = (y, x.checked_sub(q.checked_mul(y)?)?);
    }
    let distance = b.checked_sub(a)?;
    if distance % g != 0 {
        return Some(None);
    }
    let modulus = t / g;
    let steps = (distance / g).rem_euclid(modulus).checked_mul(x.rem_euclid(modulus))? % modulus;
    let value = a.checked_add(s.checked_mul(steps)?)?;
    let period = s.checked_mul(modulus)?;
    let start = a.max(b);
    let behind = start.checked_sub(value)?;
    let periods = if behind > 0 { behind.checked_add(period - 1)? / period } else { 0 };
    Some(Some(value.checked_add(periods.checked_mul(period)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_common_term_is_that_of_a_search() {
        for (a, s) in [(0, 1), (3, 7), (-20, 6), (5, 12)] {
            for (b, t) in [(0, 1), (10, 4), (1, 9), (-3, 15), (100, 7)] {
                let searched = (0..5000).map(|i| a + s * i).find(|v| *v >= b && (v - b) % t == 0);
                assert_eq!(first_common((a, s), (b, t)), Some(searched), "{a}+{s}i {b}+{t}j");
            }
        }
    }

    #[test]
    fn long_ranges_are_compared_exactly() {
        let range = |from, step| Values::Reals { from, step, exponent: -1, count: 1_000_000 };
        assert_eq!(common_of_ranges(&range(0, 2), &range(1, 2)), None);
        assert_eq!(common_of_ranges(&range(0, 2), &range(3, 3)), Some(Value::Real(0.6)));
        let far = Values::Ints { from: 5_000_000, step: 1, count: 200_000 };
        assert_eq!(common_of_ranges(&Values::Ints { from: 0, step: 1, count: 200_000 }, &far), None);
    }
}
