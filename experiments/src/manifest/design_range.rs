//! The range of a parameter of a design: `{ from = 1.5, to = 3, design = "knobs" }`.

use std::cmp::Ordering;

use powersweep_engine::Value;
use powersweep_engine::spec::{Param, Type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::canonical::compare;
use crate::designs::range::Scale;
use crate::errors::Problem;
use crate::values::Values;

use super::values::{integer, kind, list, number, range, unknown_keys};

/// The key of a range that names its design.
pub(super) const DESIGN: &str = "design";
/// The keys of a range of a design.
pub(crate) const RANGE_KEYS: [&str; 6] = [DESIGN, "from", "to", "step", "scale", "values"];

/// Whether a value of a parameter is a range of a design.
pub(crate) fn is_reference(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_table().is_some_and(|table| table.contains_key(DESIGN))
}

/// A parameter in a block whose values are those of a design.
pub(super) struct Reference<'a, 'i> {
    pub(super) param: &'static Param,
    pub(super) table: &'a DeTable<'i>,
    pub(super) value: &'a Spanned<DeValue<'i>>,
}

/// How a range of a parameter is written.
pub(super) fn shape(param: &Param) -> &'static str {
    match param.ty {
        Type::Real { .. } | Type::Reals { .. } => {
            "{ from = 1, to = 2, design = \"NAME\" }, with `step` or scale = \"log\" if needed"
        }
        Type::Int { .. } => "{ from = 1, to = 10, design = \"NAME\" }, with `step` or scale = \"log\" if needed",
        _ => "{ values = [...], design = \"NAME\" }",
    }
}

/// The scale of a range.
pub(super) fn scale(reference: &Reference<'_, '_>, problems: &mut Vec<Problem>) -> Option<Scale> {
    let (param, table, before) = (reference.param, reference.table, problems.len());
    unknown_keys(table, &RANGE_KEYS, "a range of a design", problems);
    let is_log = match table.get("scale").map(|value| (value, value.get_ref().as_str())) {
        None | Some((_, Some("linear"))) => false,
        Some((_, Some("log"))) => true,
        Some((value, _)) => {
            problems.push(Problem::new(value.span(), "`scale` is wrong", "expected \"linear\" or \"log\""));
            false
        }
    };
    if let Some(values) = table.get("values") {
        return listed(reference, values, problems).filter(|_| problems.len() == before);
    }
    let number = match param.ty {
        Type::Reals { min, max } => {
            Param { ty: Type::Real { min, max, min_allowed: true, unlimited: false }, ..*param }
        }
        _ => *param,
    };
    if !matches!(number.ty, Type::Real { .. } | Type::Int { .. }) {
        let message = format!("the range of `{}` is wrong", param.name);
        problems.push(Problem::new(reference.value.span(), message, format!("expected {}", shape(param))));
    }
    if let (Some(step), true) = (table.get("step"), is_log) {
        problems.push(Problem::new(step.span(), "a logarithmic range has no `step`", "expected `from` and `to`"));
    }
    if problems.len() > before {
        return None;
    }
    let found = of_numbers(&number, reference, is_log, problems)?;
    Some(if matches!(param.ty, Type::Reals { .. }) { Scale::One(Box::new(found)) } else { found })
}

/// The scale of a range of numbers.
fn of_numbers(
    param: &Param,
    Reference { table, value, .. }: &Reference<'_, '_>,
    is_log: bool,
    problems: &mut Vec<Problem>,
) -> Option<Scale> {
    if !is_log && (matches!(param.ty, Type::Int { .. }) || table.contains_key("step")) {
        let own = table.iter().filter(|(key, _)| !matches!(key.get_ref().as_ref(), DESIGN | "scale"));
        let steps: DeTable<'_> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        return range(param, value.span(), &steps, problems).map(Scale::Listed);
    }
    let mut end = |key: &str| end(param, table, value, key, problems);
    let (from, to) = (end("from"), end("to"));
    let (from, to) = (from?, to?);
    let has_width = match (&from, &to) {
        (Value::Real(from), Value::Real(to)) => from < to && (to - from).is_finite() && (!is_log || *from > 0.0),
        (Value::Int(from), Value::Int(to)) => from < to && *from > 0 && *to < i64::MAX,
        _ => false,
    };
    if !has_width {
        let at_least = if is_log { "expected 0 < `from` < `to`" } else { "expected `from` < `to`" };
        let is_low = matches!(from, Value::Real(from) if from <= 0.0) || matches!(from, Value::Int(from) if from <= 0);
        let (wrong, expected) = match compare(&from, &to) {
            Ordering::Greater => (format!("begins at {from}, above its end {to}"), at_least),
            Ordering::Equal => ("has no width".to_owned(), at_least),
            Ordering::Less if is_log && is_low => (format!("begins at {from}, which has no logarithm"), at_least),
            Ordering::Less => ("is too wide".to_owned(), "expected ends that are nearer to each other"),
        };
        let message = format!("the range of `{}` {wrong}", param.name);
        problems.push(Problem::new(value.span(), message, expected));
        return None;
    }
    match (from, to) {
        (Value::Int(from), Value::Int(to)) => Some(Scale::LogInts { from, to }),
        (Value::Real(from), Value::Real(to)) if is_log => Some(Scale::Log { from, to }),
        (Value::Real(from), Value::Real(to)) => Some(Scale::Linear { from, to }),
        _ => None,
    }
}

/// The values of a list, which all differ.
fn listed(reference: &Reference<'_, '_>, values: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Scale> {
    let param = reference.param;
    if let Some(key) = ["from", "to", "step", "scale"].into_iter().find(|key| reference.table.contains_key(*key)) {
        let message = format!("a range has `values` or `{key}`");
        problems.push(Problem::new(values.span(), message, "expected one of them"));
    }
    let Some(items) = values.get_ref().as_array() else {
        problems.push(Problem::new(values.span(), "`values` is wrong", "expected a list"));
        return None;
    };
    let values = list(param, values.span(), items, problems)?.values;
    let Values::List { values: all, sorted } = &values else { return Some(Scale::Listed(values)) };
    let is_equal = |pair: &&[u32]| compare(&all[pair[0] as usize], &all[pair[1] as usize]).is_eq();
    if let Some(pair) = sorted.windows(2).find(is_equal) {
        let message = format!("`{}` has the value {} twice", param.name, all[pair[0] as usize]);
        problems.push(Problem::new(reference.value.span(), message, "expected values that all differ"));
    }
    Some(Scale::Listed(values))
}

/// An end of a range.
fn end(
    param: &Param,
    table: &DeTable<'_>,
    value: &Spanned<DeValue<'_>>,
    key: &str,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let Some(value) = table.get(key) else {
        let message = format!("the range of `{}` has no `{key}`", param.name);
        problems.push(Problem::new(value.span(), message, format!("expected {}", shape(param))));
        return None;
    };
    let is_whole = matches!(param.ty, Type::Int { .. });
    let given = match value.get_ref() {
        DeValue::Integer(v) if is_whole => integer(v).map(Value::Int),
        other => number(other).filter(|_| !is_whole).map(Value::Real),
    };
    let found = given.and_then(|given| param.check(given).ok()).filter(|v| *v != Value::Real(f64::INFINITY));
    if found.is_none() {
        let message = format!("`{key}` of the range of `{}` cannot be {}", param.name, kind(value.get_ref()));
        problems.push(Problem::new(value.span(), message, format!("expected {}", param.expectation())));
    }
    found
}
