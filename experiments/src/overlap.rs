//! Whether two variants of a level share a combination of choices, decided without enumerating the variants.

use std::collections::BTreeMap;

use powersweep_engine::Value;

use crate::canonical::compare;
use crate::space::{Column, Designed, Digit, Level, SameLog, Variant, same_value, tells_apart};
use crate::values::LISTED_MAX;

/// Greatest number of pairs of variants, values of axes and rows of zips that one search visits.
const STEPS_MAX: u64 = 4_000_000;

/// Two variants with a common combination of choices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overlap {
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// An example: common values of the parameters that vary in either variant.
    pub(crate) example: BTreeMap<&'static str, Value>,
}

/// A search that would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

/// The first pair of variants of a level with a common combination of choices.
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
    let mut rows: Vec<u64> = (0..digit.len().min(LISTED_MAX)).collect();
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
    /// Common values; `None` if there is no common combination.
    fn common(&self, steps: &mut u64) -> Result<Option<Assignment>, TooMany> {
        let mut assigned = Assignment::new();
        let params =
            self.a.choices.iter().flat_map(|choice| choice.component().params).filter(|param| tells_apart(param));
        for param in params {
            if self.a.designed_by(param.name).is_some() || self.b.designed_by(param.name).is_some() {
                continue;
            }
            let (a, b) = (self.a.column(param.name), self.b.column(param.name));
            let zipped = |variant: &Variant, column: Option<(usize, &Column)>| {
                column.is_some_and(|(d, _)| variant.digits[d].columns.len() > 1)
            };
            if zipped(self.a, a) || zipped(self.b, b) {
                continue;
            }
            let common = match (a, b) {
                (None, None) => match (self.a.fixed(param.name), self.b.fixed(param.name)) {
                    (None, None) => continue,
                    (Some(a), Some(b)) if self.same(param.name, a, b) => continue,
                    _ => None,
                },
                (Some((_, column)), None) => self.found_in(column, self.b.fixed(param.name)),
                (None, Some((_, column))) => self.found_in(column, self.a.fixed(param.name)),
                (Some((_, a)), Some((_, b))) => self.shared(a, b, steps)?,
            };
            match common {
                Some(value) => assigned.insert(param.name, value),
                None => return Ok(None),
            };
        }
        for (one, other) in [(self.a, self.b), (self.b, self.a)] {
            for designed in &one.designed {
                if !self.may_share_a_point(designed, other, &mut assigned, steps)? {
                    return Ok(None);
                }
            }
        }
        let groups: Vec<&Digit> =
            self.a.digits.iter().chain(&self.b.digits).filter(|digit| digit.columns.len() > 1).collect();
        Ok(self.join(&groups, &mut assigned, steps)?.then_some(assigned))
    }

    /// Whether another variant may have the values of a point. Where parameters of the design are axes there, it is assumed.
    fn may_share_a_point(
        &self,
        designed: &Designed,
        other: &Variant,
        assigned: &mut Assignment,
        steps: &mut u64,
    ) -> Result<bool, TooMany> {
        let points = &designed.points;
        let names: Vec<&'static str> = (0..points.ranges.len()).map(|at| points.name(at)).collect();
        if names.iter().all(|name| !other.varies(name)) {
            if points.find(|name| other.fixed(name)).is_none() {
                return Ok(false);
            }
            let fixed = names.into_iter().filter_map(|name| Some((name, other.fixed(name)?.clone())));
            assigned.extend(fixed);
            return Ok(true);
        }
        if let ([name], Some((_, column))) = (&names[..], other.column(names[0])) {
            for value in column.values.iter() {
                step(steps)?;
                if points.find(|_| Some(&value)).is_some() {
                    assigned.insert(name, value);
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let theirs = names.first().and_then(|name| other.designed_by(name));
        let Some(theirs) = theirs.filter(|theirs| theirs.design != designed.design) else { return Ok(true) };
        if theirs.points.ranges.len() != names.len() || names.iter().any(|name| other.designed_by(name).is_none()) {
            return Ok(true);
        }
        for point in 0..points.len() {
            step(steps)?;
            let values: Assignment = (0..).zip(&names).map(|(at, name)| (*name, points.value(point, at))).collect();
            if theirs.points.find(|name| values.get(name)).is_some() {
                assigned.extend(values);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn same(&self, name: &str, a: &Value, b: &Value) -> bool {
        same_value(name, a, b, self.same_log)
    }

    /// The value, as the column has it; `None` if the column lacks it.
    fn found_in(&self, column: &Column, value: Option<&Value>) -> Option<Value> {
        column.position(value?, self.same_log).map(|at| column.values.get(at))
    }

    /// A value of both columns.
    fn shared(&self, a: &Column, b: &Column, steps: &mut u64) -> Result<Option<Value>, TooMany> {
        let (short, long) = if a.values.len() <= b.values.len() { (a, b) } else { (b, a) };
        if let (Some((a, a_last)), Some((b, b_last))) = (short.values.ends(), long.values.ends())
            && (compare(&a_last, &b).is_lt() || compare(&b_last, &a).is_lt())
        {
            return Ok(None);
        }
        for value in short.values.iter() {
            step(steps)?;
            if long.position(&value, self.same_log).is_some() {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Chooses a row of every zip so that all rows agree; `assigned` then holds their values.
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
                    // A zipped axis of the other variant is joined later.
                    Some((at, _)) if variant.digits[at].columns.len() > 1 => true,
                    Some((_, other)) => other.position(&value, self.same_log).is_some(),
                    None if variant.varies(column.name) => true,
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
