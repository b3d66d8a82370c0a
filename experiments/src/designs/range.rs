//! The range of a parameter: from coordinates between 0 and 1 to values, and back.

use std::fmt;

use powersweep_engine::Value;
use powersweep_engine::spec::Param;

use crate::values::Values;

/// A parameter of a design with its range.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) param: &'static Param,
    pub(crate) scale: Scale,
    /// The values that listed points may have; `None` for all.
    pub(crate) bounds: Option<Scale>,
}

impl Range {
    /// The values that points may have, in words.
    pub(crate) fn shown(&self) -> String {
        self.bounds.as_ref().unwrap_or(&self.scale).to_string()
    }
}

/// From coordinates to values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scale {
    /// Reals, equally likely.
    Linear { from: f64, to: f64 },
    /// Reals whose logarithms are equally likely.
    Log { from: f64, to: f64 },
    /// Integers, each as likely as the reals from it to the next one on a logarithmic scale.
    LogInts { from: i64, to: i64 },
    /// Values of a list or of a range with a step, equally likely.
    Listed(Values),
    /// Lists that have one number of a scale.
    One(Box<Scale>),
}

impl Scale {
    /// The value at a coordinate.
    pub(crate) fn value(&self, coordinate: f64) -> Value {
        match self {
            Scale::Linear { from, to } => Value::Real((from + coordinate * (to - from)).clamp(*from, *to) + 0.0),
            Scale::Log { from, to } => Value::Real(between(*from, *to, coordinate).clamp(*from, *to)),
            Scale::LogInts { from, to } => {
                let value = between(*from as f64, *to as f64 + 1.0, coordinate).floor();
                Value::Int((value as i64).clamp(*from, *to))
            }
            Scale::Listed(values) => {
                let place = (coordinate * values.len() as f64) as u64;
                values.get(place.min(values.len() - 1))
            }
            Scale::One(of) => list_of(of.value(coordinate)),
        }
    }

    /// The coordinate of a value; `None` of a scale on which neighbouring coordinates share a value.
    pub(crate) fn coordinate(&self, value: &Value) -> Option<f64> {
        let value = &only(value)?;
        match self {
            Scale::One(of) => of.coordinate(&Value::Real(*value)),
            Scale::Linear { from, to } if (*from..=*to).contains(value) => Some((value - from) / (to - from)),
            Scale::Log { from, to } if (*from..=*to).contains(value) => {
                Some((libm::log(*value) - libm::log(*from)) / (libm::log(*to) - libm::log(*from)))
            }
            _ => None,
        }
    }

    /// The place of a value in the range: 0 is the least value, 1 the greatest one. Values that are not all numbers are spaced
    /// evenly, in their order.
    pub(crate) fn place(&self, value: &Value) -> f64 {
        let share = |value: f64, from: f64, to: f64| if from < to { (value - from) / (to - from) } else { 0.5 };
        match (self, value) {
            (Scale::LogInts { from, to }, Value::Int(value)) => {
                share(libm::log(*value as f64), libm::log(*from as f64), libm::log(*to as f64))
            }
            (Scale::One(of), _) => only(value).map_or(0.5, |value| of.place(&Value::Real(value))),
            (Scale::Listed(values), _) => match (number(value), numbers(values)) {
                (Some(value), Some((from, to))) => share(value, from, to),
                _ => share(values.position(value).unwrap_or(0) as f64, 0.0, (values.len() - 1) as f64),
            },
            _ => self.coordinate(value).unwrap_or(0.5),
        }
    }

    /// Whether a point may have a value.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Scale::One(of), _) => only(value).is_some_and(|value| of.contains(&Value::Real(value))),
            (Scale::Listed(values), _) => values.position(value).is_some(),
            (Scale::LogInts { from, to }, Value::Int(value)) => (from..=to).contains(&value),
            _ => self.coordinate(value).is_some(),
        }
    }

    /// Whether coordinates at this distance have values that differ by many units in the last place, so that a value gives
    /// its coordinate back.
    pub(crate) fn resolves(&self, distance: f64) -> bool {
        const UNITS: f64 = 64.0;
        let (width, greatest) = match self {
            Scale::Linear { from, to } => (to - from, from.abs().max(to.abs())),
            Scale::Log { from, to } => {
                let (from, to) = (libm::log(*from), libm::log(*to));
                (to - from, from.abs().max(to.abs()).max(1.0))
            }
            Scale::One(of) => return of.resolves(distance),
            Scale::LogInts { .. } | Scale::Listed(_) => return false,
        };
        width * distance >= UNITS * f64::EPSILON * greatest
    }
}

/// The list of one number.
pub(crate) fn list_of(value: Value) -> Value {
    if let Value::Real(value) = value { Value::Reals(vec![value]) } else { value }
}

/// A real, or the only one of a list.
pub(crate) fn only(value: &Value) -> Option<f64> {
    match value {
        Value::Real(value) => Some(*value),
        Value::Reals(values) if values.len() == 1 => values.first().copied(),
        _ => None,
    }
}

/// A value as a finite number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        _ => only(value).filter(|value| value.is_finite()),
    }
}

/// The least and the greatest of values that are all numbers.
fn numbers(values: &Values) -> Option<(f64, f64)> {
    if let Some((from, to)) = values.ends() {
        return number(&from).zip(number(&to));
    }
    values.iter().try_fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), value| {
        let value = number(&value)?;
        Some((least.min(value), greatest.max(value)))
    })
}

/// The real between two others whose logarithm has this share of the way. libm: the same on all machines.
fn between(from: f64, to: f64, coordinate: f64) -> f64 {
    // The ends are exact.
    if coordinate <= 0.0 || coordinate >= 1.0 {
        return if coordinate <= 0.0 { from } else { to };
    }
    let (low, high) = (libm::log(from), libm::log(to));
    libm::exp(low + coordinate * (high - low))
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scale::Linear { from, to } => write!(f, "{from} to {to}"),
            Scale::Log { from, to } => write!(f, "{from} to {to}, logarithmic"),
            Scale::LogInts { from, to } => write!(f, "{from} to {to}, integer, logarithmic"),
            Scale::One(of) => of.fmt(f),
            Scale::Listed(values) => match values.ends() {
                Some((from, to)) => write!(f, "{from} to {to}, {} values", values.len()),
                None => {
                    const SHOWN: usize = 5;
                    let shown: Vec<String> = values.iter().take(SHOWN).map(|value| value.to_string()).collect();
                    let more = values.len().saturating_sub(SHOWN as u64);
                    write!(f, "{}", shown.join(", "))?;
                    if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
                }
            },
        }
    }
}
