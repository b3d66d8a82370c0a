//! The values that a search tries of a parameter, as a command line states them.

use powersweep_engine::spec::{Param, Role, Type};
use powersweep_engine::{Value, components};

use crate::decimal::Decimal;
use crate::manifest::values::{Ends, values_of};
use crate::names::suggestion;
use crate::units::converted;
use crate::values::LISTED_MAX;

/// A range of reals without a step has at least this number of steps.
const STEPS_MIN: i128 = 100;

/// A parameter with the values that are tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    /// The parameter.
    pub name: &'static str,
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
    /// The values: numbers ascend, others are in the order of the text.
    pub values: Vec<Value>,
    /// The step, if the text has none.
    pub default_step: Option<f64>,
}

impl Over {
    /// Reads `PARAMETER=FROM..TO:STEP` or `PARAMETER=a,b,c`. A range of reals may omit the step: it is then the greatest
    /// power of ten of which at least a hundred fill the range. The error says what would be right.
    pub fn parse(text: &str) -> Result<Over, String> {
        let wrong = |reason: String| format!("{text}: {reason}");
        let Some((name, values)) = text.split_once('=').map(|(name, values)| (name.trim(), values.trim())) else {
            return Err(wrong("write PARAMETER=FROM..TO:STEP, or a list PARAMETER=a,b,c".to_owned()));
        };
        let param = param(name).map_err(&wrong)?;
        let read = match values.split_once("..") {
            Some((from, rest)) => range(param, from.trim(), rest),
            None => list(param, values).map(|values| (values, None)),
        };
        let (values, default_step) = read.map_err(&wrong)?;
        Ok(Over { name: param.name, unit: param.unit, values, default_step })
    }

    /// Whether the values are numbers, which have an order.
    pub fn is_numeric(&self) -> bool {
        self.values.iter().all(|value| matches!(value, Value::Int(_) | Value::Real(_)))
    }
}

fn param(name: &str) -> Result<&'static Param, String> {
    let mut params = components::COMPONENTS.iter().flat_map(|component| component.params);
    if let Some(param) = params.find(|param| param.name == name) {
        return match param.ty {
            Type::Locator | Type::Signal { .. } | Type::Module | Type::Formula { .. } | Type::Reals { .. } => {
                Err(format!(
                    "`{name}` is {}: list its values in the manifest; each has an answer of its own",
                    if matches!(param.ty, Type::Reals { .. }) { "a list" } else { "no number and no choice" }
                ))
            }
            _ => Ok(param),
        };
    }
    if Role::ALL.into_iter().any(|role| role.key() == name) {
        return Err(format!("`{name}` chooses components: list them in the manifest; each has an answer of its own"));
    }
    let names: Vec<&str> =
        components::COMPONENTS.iter().flat_map(|component| component.params).map(|param| param.name).collect();
    Err(format!("there is no parameter `{name}`; {}", suggestion(name, names)))
}

/// The values of a range, and its step if the text has none.
fn range(param: &Param, from: &str, rest: &str) -> Result<(Vec<Value>, Option<f64>), String> {
    let is_whole = match param.ty {
        Type::Int { .. } => true,
        Type::Real { .. } => false,
        _ => return Err(format!("`{}` has no ranges: list its values, each {}", param.name, param.expectation())),
    };
    let number = |text: &str| number(param, text, is_whole);
    let (to, step) = match rest.split_once(':') {
        Some((to, step)) => (number(to.trim())?, Some(number(step.trim())?)),
        None => (number(rest.trim())?, None),
    };
    let from = number(from)?;
    let chosen = match step {
        Some(step) => step,
        None if is_whole => {
            return Err(format!(
                "the range of the whole number `{}` needs a step: `{from}..{to}:1` tries every value",
                param.name
            ));
        }
        None => default_step(from, to)?,
    };
    let ends = Ends { from, to: Some(to), step: chosen, count: None };
    let values = values_of(param, &ends, is_whole)
        .map_err(|(expected, help)| help.map_or(expected.clone(), |help| format!("{expected}; {help}")))?;
    if values.len() > LISTED_MAX {
        return Err(format!("the range has {} values, more than {LISTED_MAX}: give a greater step", values.len()));
    }
    Ok((values.iter().collect(), step.is_none().then(|| chosen.to_f64())))
}

fn number(param: &Param, text: &str, is_whole: bool) -> Result<Decimal, String> {
    let found = Decimal::parse(text).filter(|number| !is_whole || number.mantissa_at(0).is_some());
    found.ok_or_else(|| {
        let hint = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%') {
            _ if let Some(number) = converted(text, param.unit) => format!("; it is in {}: write {number}", param.unit),
            start if start != text && Decimal::parse(start).is_some() => match param.unit {
                "" => "; it has no unit".to_owned(),
                unit => format!("; write the number alone, in {unit}"),
            },
            _ => String::new(),
        };
        format!("`{text}` cannot be a value of `{}`, which is {}{hint}", param.name, param.expectation())
    })
}

/// The greatest power of ten of which a whole number, at least [`STEPS_MIN`], fills the range.
fn default_step(from: Decimal, to: Decimal) -> Result<Decimal, String> {
    let too_fine = || "the range needs a step: its ends have too many digits".to_owned();
    let finest = from.exponent.min(to.exponent);
    let ends = (to.mantissa_at(finest).ok_or_else(too_fine)?, from.mantissa_at(finest).ok_or_else(too_fine)?);
    let distance = ends.0.checked_sub(ends.1).ok_or_else(too_fine)?;
    if distance <= 0 {
        return Err("expected a range whose second number is above the first".to_owned());
    }
    // Begins above the greatest one, and goes down to the first that fits.
    let most = finest + 40;
    let fits = |exponent: &i32| match u32::try_from(exponent - finest) {
        Ok(shift) => {
            10_i128.checked_pow(shift).is_some_and(|step| distance % step == 0 && distance / step >= STEPS_MIN)
        }
        // Finer than the ends: every such power fills the range.
        Err(_) => 10_i128
            .checked_pow((finest - exponent).unsigned_abs())
            .and_then(|parts| parts.checked_mul(distance))
            .is_some_and(|steps| steps >= STEPS_MIN),
    };
    let exponent = (finest - 3..=most).rev().find(fits).ok_or_else(too_fine)?;
    Ok(Decimal { mantissa: 1, exponent })
}

fn list(param: &Param, values: &str) -> Result<Vec<Value>, String> {
    let mut read = Vec::new();
    for text in values.split(',').map(str::trim) {
        let raw = match param.ty {
            Type::Bool => text.parse().map(Value::Bool).map_err(|_| format!("`{text}` is neither true nor false"))?,
            Type::Int { .. } => {
                let number = number(param, text, true)?;
                let whole = number.mantissa_at(0).and_then(|whole| i64::try_from(whole).ok());
                Value::Int(whole.ok_or_else(|| format!("`{text}` is too great"))?)
            }
            Type::Real { unlimited: true, .. } if text == "unlimited" => Value::Real(f64::INFINITY),
            Type::Real { .. } => Value::Real(number(param, text, false)?.to_f64()),
            Type::OneOf(_)
            | Type::Locator
            | Type::Signal { .. }
            | Type::Module
            | Type::Formula { .. }
            | Type::Reals { .. } => Value::Text(text.to_owned()),
        };
        let value = param.check(raw).map_err(|error| error.to_string())?;
        if read.contains(&value) {
            return Err(format!("{value} is listed twice"));
        }
        read.push(value);
    }
    let number = |value: &Value| match value {
        Value::Int(value) => *value as f64,
        Value::Real(value) => *value,
        _ => 0.0,
    };
    read.sort_by(|one, other| number(one).total_cmp(&number(other)));
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reals(text: &str) -> Vec<f64> {
        let values = Over::parse(text).unwrap_or_else(|reason| panic!("{reason}")).values;
        values.into_iter().map(|value| if let Value::Real(value) = value { value } else { panic!("{value}") }).collect()
    }

    #[test]
    fn ranges_and_lists_are_exact() {
        assert_eq!(reals("size_factor=0.5..1:0.1"), [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]);
        assert_eq!(reals(" size_factor = 2, 0.5,1 "), [0.5, 1.0, 2.0]);
        let ints = Over::parse("synthetic_jobs_count=100..300:100").expect("a range").values;
        assert_eq!(ints, [100, 200, 300].map(Value::Int));
        let names = Over::parse("wide_jobs=drop,clamp").expect("a list");
        assert_eq!(names.values, ["drop", "clamp"].map(|name| Value::Text(name.to_owned())));
        assert!(!names.is_numeric());
    }

    #[test]
    fn a_range_of_reals_has_a_step_of_its_own() {
        for (text, step, count) in [
            ("size_factor=0.5..2", 0.01, 151),
            ("size_factor=1..2", 0.01, 101),
            ("size_factor=1..1.125", 0.001, 126),
            ("size_factor=1..11", 0.1, 101),
            ("size_factor=1..900", 1.0, 900),
        ] {
            let over = Over::parse(text).expect(text);
            assert_eq!((over.default_step, over.values.len()), (Some(step), count), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, reason) in [
            ("size_factor", "write PARAMETER=FROM..TO:STEP"),
            ("size_facto=1..2", "did you mean `size_factor`?"),
            ("backfill=easy,none", "`backfill` chooses components"),
            ("log=a,b", "`log` is no number"),
            ("formula=procs", "`formula` is no number and no choice: list its values in the manifest"),
            ("synthetic_jobs_count=100..300", "`100..300:1` tries every value"),
            ("synthetic_jobs_count=100..300.5:1", "`300.5` cannot be a value of `synthetic_jobs_count`"),
            ("size_factor=0.5kW..2", "`0.5kW` cannot be a value of `size_factor`, which is a number"),
            ("size_factor=0.5kW..2", "it has no unit"),
            ("size_factor=2..1", "whose second number is above the first"),
            ("size_factor=2..1:0.1", "`to` to be at least `from`"),
            ("size_factor=1..2:0", "`step` above 0"),
            ("size_factor=1..2:0.3", "`to = 1.9` would be"),
            ("size_factor=-1..2:1", "above 0"),
            ("size_factor=1,1.0", "1 is listed twice"),
            ("size_factor=", "`` cannot be a value"),
            ("size_factor=1..2:0.000001", "give a greater step"),
            ("wide_jobs=clamp..drop", "has no ranges"),
            ("wide_jobs=clip", "must be one of"),
        ] {
            let error = Over::parse(text).expect_err(text);
            assert!(error.contains(reason) && error.starts_with(&format!("{text}: ")), "{text}: {error}");
        }
    }
}
