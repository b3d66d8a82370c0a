//! Reading the values of an axis: a scalar, a list, a range, or a list with ranges in it.

use std::ops::Range;

use powersweep_engine::Value;
use powersweep_engine::spec::{Param, Type};
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use crate::decimal::Decimal;
use crate::errors::Problem;
use crate::names::{LABEL_RULE, hint, is_label, suggestion};
use crate::units::converted;
use crate::values::{LISTED_MAX, Values};

/// The values of an axis with the places of the listed ones.
pub(crate) struct Read {
    pub(crate) values: Values,
    /// One place for each value of a list; empty for a range.
    pub(crate) spans: Vec<Range<usize>>,
}

/// A TOML value as messages show it: a scalar itself, or the kind of the value.
pub fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", text.chars().take(60).collect::<String>()),
        DeValue::Integer(v) => v.to_string(),
        DeValue::Float(v) => v.to_string(),
        DeValue::Boolean(v) => v.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// An integer that fits 64 bits.
pub fn integer(value: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&value.as_str().replace('_', ""), value.radix()).ok()
}

/// The text that says what was expected in place of a value. Integers beyond 64 bits have a text of their own.
fn expected(value: &DeValue<'_>, otherwise: String) -> String {
    match value {
        DeValue::Integer(v) if integer(v).is_none() => "integers go from -2^63 to 2^63 - 1".to_owned(),
        _ => format!("expected {otherwise}"),
    }
}

/// Reports the keys of a table that are none of these. `owner`: whose keys they are.
pub(crate) fn unknown_keys(table: &DeTable<'_>, known: &[&str], owner: &str, problems: &mut Vec<Problem>) {
    for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
        let message = format!("{owner} has no key `{}`", key.get_ref());
        let help = suggestion(key.get_ref(), known.iter().copied());
        problems.push(Problem::new(key.span(), message, "unknown key").help(help));
    }
}

/// The tables of a section by their labels. Reports wrong labels, and keys that are no tables. `nouns`: what the tables are,
/// and one of them.
pub(super) fn named_tables<'a, 'i>(
    section: &'a DeTable<'i>,
    name: &str,
    nouns: (&str, &str),
    problems: &mut Vec<Problem>,
) -> Vec<(&'a Spanned<DeString<'i>>, &'a DeTable<'i>)> {
    let mut tables = Vec::new();
    for (label, value) in section {
        let shown = label.get_ref().escape_debug();
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("[{name}] holds named {}, not the key `{shown}`", nouns.0);
            let expected = format!("expected it in a {} [{name}.NAME]", nouns.1);
            problems.push(Problem::new(label.span(), message, expected));
            continue;
        };
        if !is_label(label.get_ref()) {
            let message = format!("`{shown}` cannot be a label");
            problems.push(Problem::new(label.span(), message, format!("expected {LABEL_RULE}")));
        }
        tables.push((label, table));
    }
    tables
}

/// An integer of a table; `default` for a key that is missing. `owner`: the table in messages, and its place.
pub(super) fn bounded(
    table: &DeTable<'_>,
    owner: &(&str, Range<usize>),
    key: &str,
    (least, most): (i64, i64),
    default: Option<i64>,
    problems: &mut Vec<Problem>,
) -> Option<i64> {
    let expected = if most == i64::MAX {
        format!("expected an integer of at least {least}")
    } else {
        format!("expected an integer from {least} to {most}")
    };
    let Some(value) = table.get(key) else {
        if default.is_none() {
            problems.push(Problem::new(owner.1.clone(), format!("{} needs `{key}`", owner.0), expected));
        }
        return default;
    };
    let found = value.get_ref().as_integer().and_then(integer).filter(|found| (least..=most).contains(found));
    if found.is_none() {
        problems.push(Problem::new(value.span(), format!("`{key}` cannot be {}", kind(value.get_ref())), expected));
    }
    found
}

/// Reads the values of a parameter. They may repeat, since zipped axes may repeat values.
pub(crate) fn read(param: &Param, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Read> {
    let vector = matches!(param.ty, Type::Reals { .. });
    match value.get_ref() {
        DeValue::Array(items) if vector && !items.iter().any(|item| item.get_ref().is_array()) => {
            let value = scalar(param, value, problems)?;
            Some(Read { values: Values::one(value), spans: Vec::new() })
        }
        DeValue::Array(items) => list(param, value.span(), items, problems),
        DeValue::Table(table) => {
            let values = range(param, value.span(), table, problems)?;
            Some(Read { values, spans: Vec::new() })
        }
        _ => {
            let span = value.span();
            let value = scalar(param, value, problems)?;
            Some(Read { values: Values::one(value), spans: vec![span] })
        }
    }
}

pub(crate) fn list(
    param: &Param,
    span: Range<usize>,
    items: &[Spanned<DeValue<'_>>],
    problems: &mut Vec<Problem>,
) -> Option<Read> {
    if items.is_empty() {
        problems.push(Problem::new(span, format!("`{}` is an empty list", param.name), "expected at least one value"));
        return None;
    }
    if let [only] = items
        && let DeValue::Table(table) = only.get_ref()
    {
        let values = range(param, only.span(), table, problems)?;
        return Some(Read { values, spans: Vec::new() });
    }
    let before = problems.len();
    let (mut values, mut spans) = (Vec::new(), Vec::new());
    for item in items {
        if let DeValue::Table(table) = item.get_ref() {
            let Some(range) = range(param, item.span(), table, problems) else { continue };
            if range.len() > LISTED_MAX - (values.len() as u64).min(LISTED_MAX) {
                problems.push(too_long(item.span(), param.name));
                return None;
            }
            spans.extend((0..range.len()).map(|_| item.span()));
            values.extend(range.iter());
        } else if let Some(value) = scalar(param, item, problems) {
            values.push(value);
            spans.push(item.span());
        }
    }
    if values.len() as u64 > LISTED_MAX {
        problems.push(too_long(span, param.name));
    }
    (problems.len() == before).then(|| Read { values: Values::list(values), spans })
}

fn too_long(span: Range<usize>, name: &str) -> Problem {
    Problem::new(
        span,
        format!("`{name}` lists more than {LISTED_MAX} values"),
        "expected fewer values, or a single range",
    )
}

/// The problem of a list that is one value: its first wrong element.
fn wrong_element(param: &Param, span: Range<usize>, items: &[Spanned<DeValue<'_>>]) -> Problem {
    let expected = format!("expected {}", param.expectation());
    let fits = |item: &DeValue<'_>| number(item).is_some_and(|v| param.check(Value::Reals(vec![v])).is_ok());
    match items.iter().zip(1..).find(|(item, _)| !fits(item.get_ref())) {
        Some((item, place)) => {
            let message = format!("value {place} of `{}` cannot be {}", param.name, kind(item.get_ref()));
            Problem::new(item.span(), message, expected).maybe_help(in_unit(param, item.get_ref()))
        }
        None => Problem::new(span, format!("`{}` cannot be an empty list", param.name), expected),
    }
}

/// One value of the parameter's type.
fn scalar(param: &Param, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Value> {
    let wrong = |expectation: String| {
        let expected = expected(value.get_ref(), expectation);
        Problem::new(value.span(), format!("`{}` cannot be {}", param.name, kind(value.get_ref())), expected)
    };
    let raw = match value.get_ref() {
        DeValue::Boolean(v) => Some(Value::Bool(*v)),
        DeValue::Integer(v) => integer(v).map(Value::Int),
        DeValue::Float(v) => real(v.as_str()).map(Value::Real),
        DeValue::String(v) => Some(Value::Text(v.to_string())),
        DeValue::Array(items) => {
            items.iter().map(|item| number(item.get_ref())).collect::<Option<Vec<f64>>>().map(Value::Reals)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    };
    match raw.map(|raw| param.check(raw)) {
        Some(Ok(value)) => Some(value),
        checked => {
            if let (Type::Reals { .. }, DeValue::Array(items)) = (param.ty, value.get_ref()) {
                problems.push(wrong_element(param, value.span(), items));
                return None;
            }
            let help = match (param.ty, value.get_ref()) {
                (Type::OneOf(names), DeValue::String(text)) => hint(text, names.iter().copied()),
                (Type::Int { .. }, DeValue::Float(_)) => Some("write it without a decimal point".to_owned()),
                (Type::Real { .. } | Type::Int { .. }, DeValue::String(text)) if Decimal::parse(text).is_some() => {
                    Some("write the number without quotes".to_owned())
                }
                (Type::Real { .. } | Type::Int { .. } | Type::Reals { .. }, value) => in_unit(param, value),
                _ => None,
            };
            // An error about a formula has its place in the text.
            let expectation = checked.and_then(Result::err).map_or_else(|| param.expectation(), |error| error.expected);
            problems.push(wrong(expectation).maybe_help(help));
            None
        }
    }
}

/// A hint for a text such as `12 h`: the number in the unit of the parameter.
fn in_unit(param: &Param, value: &DeValue<'_>) -> Option<String> {
    let DeValue::String(text) = value else { return None };
    converted(text, param.unit).map(|number| format!("`{}` is in {}: write {number}", param.name, param.unit))
}

/// A number of any kind.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(v) => integer(v).map(|v| v as f64),
        DeValue::Float(v) => real(v.as_str()),
        _ => None,
    }
}

/// A float literal; `None` if it overflows.
fn real(text: &str) -> Option<f64> {
    let value: f64 = text.replace('_', "").parse().ok()?;
    (value.is_finite() || text.contains("inf")).then_some(value)
}

/// The keys of a range.
pub(crate) struct Ends {
    pub(crate) from: Decimal,
    pub(crate) to: Option<Decimal>,
    pub(crate) step: Decimal,
    pub(crate) count: Option<i64>,
}

/// Reads `{ from, to, step }`, `{ from, count }` or `{ from, count, step }`.
pub(crate) fn range(
    param: &Param,
    span: Range<usize>,
    table: &DeTable<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Values> {
    let whole = match param.ty {
        Type::Int { .. } => true,
        Type::Real { .. } => false,
        _ => {
            let message = format!("`{}` cannot be a table", param.name);
            problems.push(Problem::new(span, message, format!("expected {}", param.expectation())));
            return None;
        }
    };
    let ends = ends(param, span.clone(), table, whole, problems)?;
    match values_of(param, &ends, whole) {
        Ok(values) => Some(values),
        Err((expected, help)) => {
            let message = format!("the range of `{}` is wrong", param.name);
            problems.push(Problem::new(span, message, expected).maybe_help(help));
            None
        }
    }
}

fn ends(
    param: &Param,
    span: Range<usize>,
    table: &DeTable<'_>,
    whole: bool,
    problems: &mut Vec<Problem>,
) -> Option<Ends> {
    let before = problems.len();
    let (mut from, mut to, mut step, mut count) = (None, None, None, None);
    for (key, value) in table {
        let number = match value.get_ref() {
            DeValue::Integer(v) => integer(v).map(|v| Decimal { mantissa: v.into(), exponent: 0 }),
            DeValue::Float(v) if !whole => Decimal::parse(v.as_str()),
            _ => None,
        };
        let place = match key.get_ref().as_ref() {
            "from" => &mut from,
            "to" => &mut to,
            "step" => &mut step,
            "count" => {
                count = match value.get_ref() {
                    DeValue::Integer(v) => integer(v).filter(|count| *count > 0),
                    _ => None,
                };
                if count.is_none() {
                    let expected = expected(value.get_ref(), "an integer of at least 1".to_owned());
                    problems.push(Problem::new(value.span(), "`count` is wrong", expected));
                }
                continue;
            }
            other => {
                let help = suggestion(other, ["from", "to", "step", "count"]);
                let message = format!("a range has no key `{other}`");
                problems.push(Problem::new(key.span(), message, "unknown key").help(help));
                continue;
            }
        };
        *place = number;
        if number.is_none() {
            let wanted = if whole { "an integer" } else { "a number of at most 30 digits" };
            let expected = expected(value.get_ref(), wanted.to_owned());
            problems.push(Problem::new(value.span(), format!("`{}` of a range is wrong", key.get_ref()), expected));
        }
    }
    if problems.len() > before {
        return None;
    }
    let shape = "expected { from, to, step }, { from, count } or { from, count, step }";
    let complete = from.is_some() && (to.is_some() != count.is_some()) && (step.is_some() || whole);
    if !complete {
        let message = format!("the range of `{}` is incomplete", param.name);
        let help = (!whole && step.is_none()).then(|| "a range of reals needs `step`".to_owned());
        problems.push(Problem::new(span, message, shape).maybe_help(help));
        return None;
    }
    Some(Ends { from: from?, to, step: step.unwrap_or(Decimal { mantissa: 1, exponent: 0 }), count })
}

/// The values, or the expectation and a hint.
pub(crate) fn values_of(param: &Param, ends: &Ends, whole: bool) -> Result<Values, (String, Option<String>)> {
    let fail = |expected: &str| (expected.to_owned(), None);
    let too_fine = || fail("expected numbers of similar size: these have too many digits for exact arithmetic");
    let exponent = ends.from.exponent.min(ends.step.exponent).min(ends.to.map_or(i32::MAX, |to| to.exponent));
    let from = ends.from.mantissa_at(exponent).ok_or_else(too_fine)?;
    let step = ends.step.mantissa_at(exponent).ok_or_else(too_fine)?;
    if step <= 0 {
        return Err(fail("expected a `step` above 0"));
    }
    let count = match (ends.count, ends.to) {
        (Some(count), _) => i128::from(count),
        (None, Some(to)) => {
            let to = to.mantissa_at(exponent).ok_or_else(too_fine)?;
            let distance = to.checked_sub(from).ok_or_else(too_fine)?;
            if distance < 0 {
                return Err(fail("expected `to` to be at least `from`"));
            }
            if distance % step != 0 {
                let at = |steps: i128| Decimal { mantissa: from + steps * step, exponent };
                let below = (distance / step).max(1);
                let help = format!("`to = {}` would be a whole number of steps", at(below));
                return Err(("expected a whole number of steps from `from` to `to`".to_owned(), Some(help)));
            }
            distance / step + 1
        }
        (None, None) => return Err(fail("expected `to` or `count`")),
    };
    let count = i64::try_from(count).map_err(|_| fail("expected fewer values"))?;
    let last = step.checked_mul(i128::from(count - 1)).and_then(|d| d.checked_add(from)).ok_or_else(too_fine)?;
    let count = count.unsigned_abs();
    let values = if whole {
        let (first, last) = (i64::try_from(from), i64::try_from(last));
        match (first, last, i64::try_from(step)) {
            (Ok(from), Ok(_), Ok(step)) => Values::Ints { from, step, count },
            _ => return Err(fail("integers go from -2^63 to 2^63 - 1")),
        }
    } else {
        Values::Reals { from, step, exponent, count }
    };
    for end in [values.get(0), values.get(count - 1)] {
        param.check(end).map_err(|e| fail(&format!("expected {}, not {}", e.expected, e.found)))?;
    }
    if !whole && !distinct(&values, from.unsigned_abs().max(last.unsigned_abs()), step, exponent) {
        return Err(fail("expected a larger `step`: neighbouring values are the same number"));
    }
    Ok(values)
}

/// Whether all values of a range of reals differ as `f64`.
fn distinct(values: &Values, greatest: u128, step: i128, exponent: i32) -> bool {
    // With a step above the spacing of `f64` at the far end, neighbours differ.
    if (greatest / step.unsigned_abs()) < 1 << 51 && exponent > -300 {
        return true;
    }
    // Values ascend, so equal ones are neighbours.
    values.len() <= LISTED_MAX && (1..values.len()).all(|i| values.get(i) != values.get(i - 1))
}
