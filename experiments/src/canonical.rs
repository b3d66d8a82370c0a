//! The canonical form of values: when two values are the same, and the bytes that stand for them.
//!
//! Task ids, keys of built workloads and the search for equal tasks in a manifest all rest on this module. There is one
//! zero: `-0.0` counts as `0.0`. NaN never gets this far (`Param::check` refuses it).

use std::cmp::Ordering;

use powersweep_engine::spec::{Default, Param};
use powersweep_engine::{Choice, Value, components};

/// A total order of values. Two values are equal exactly when their canonical bytes are.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    let real = |a: &f64, b: &f64| one_zero(*a).total_cmp(&one_zero(*b));
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => real(a, b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Reals(a), Value::Reals(b)) => {
            let elements = a.iter().zip(b).map(|(a, b)| real(a, b));
            elements.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => tag(a).cmp(&tag(b)),
    }
}

/// Appends a value. Bytes of different values differ, and none begin with those of another.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &Value) {
    out.push(tag(value));
    match value {
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Real(v) => push_real(out, *v),
        Value::Text(v) => push_text(out, v),
        Value::Reals(v) => {
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            v.iter().for_each(|v| push_real(out, *v));
        }
    }
}

/// Appends a text with its length in front.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a choice: role, name and version of the component, and the parameters that `is_in` accepts and that are not
/// at their default.
///
/// Nothing is appended for the default component of a role, at version 1, without such parameters.
pub fn push_choice(out: &mut Vec<u8>, choice: &Choice, is_in: impl Fn(&Param) -> bool) {
    let component = choice.component();
    let begin = out.len();
    push_text(out, component.role.key());
    push_text(out, component.name);
    out.extend_from_slice(&component.version.to_le_bytes());
    let count_at = out.len();
    out.extend_from_slice(&0_u32.to_le_bytes());
    let mut count = 0_u32;
    // `values` is ordered by name, and released names have the same order.
    for (name, value) in choice.values() {
        let param = component.params.iter().find(|p| p.name == name);
        if param.is_some_and(|param| is_in(param) && !is_default(param, value)) {
            count += 1;
            push_text(out, components::identity_name(name));
            push_value(out, value);
        }
    }
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    if count == 0 && component.version == 1 && component.name == component.role.default_component() {
        out.truncate(begin);
    }
}

/// Whether a value equals the parameter's default, without building the default.
fn is_default(param: &Param, value: &Value) -> bool {
    let same = |a: &f64, b: &f64| one_zero(*a).to_bits() == one_zero(*b).to_bits();
    match (param.default, value) {
        (Default::Bool(a), Value::Bool(b)) => a == *b,
        (Default::Int(a), Value::Int(b)) => a == *b,
        (Default::Real(a), Value::Real(b)) => same(&a, b),
        (Default::Text(a), Value::Text(b)) => a == b,
        (Default::Reals(a), Value::Reals(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => false,
    }
}

/// The first byte of a value: its kind.
fn tag(value: &Value) -> u8 {
    match value {
        Value::Bool(_) => b'b',
        Value::Int(_) => b'i',
        Value::Real(_) => b'r',
        Value::Text(_) => b't',
        Value::Reals(_) => b'v',
    }
}

fn push_real(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&one_zero(value).to_bits().to_le_bytes());
}

/// The number with one zero: `0.0` for `-0.0`.
fn one_zero(value: f64) -> f64 {
    value + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_exactly_when_their_bytes_are() {
        let reals = |values: &[f64]| Value::Reals(values.to_vec());
        let text = |text: &str| Value::Text(text.to_owned());
        let values = [
            Value::Bool(false),
            Value::Bool(true),
            Value::Int(-1),
            Value::Int(0),
            Value::Int(1),
            Value::Real(-1.0),
            Value::Real(-0.0),
            Value::Real(0.0),
            Value::Real(f64::INFINITY),
            text(""),
            text("a"),
            text("ab"),
            reals(&[]),
            reals(&[0.0]),
            reals(&[-0.0]),
            reals(&[0.0, 0.0]),
            reals(&[1.0]),
        ];
        let bytes = |value: &Value| {
            let mut out = Vec::new();
            push_value(&mut out, value);
            out
        };
        for a in &values {
            for b in &values {
                assert_eq!(compare(a, b).is_eq(), bytes(a) == bytes(b), "{a:?} {b:?}");
                assert_eq!(compare(a, b), compare(b, a).reverse(), "{a:?} {b:?}");
                assert!(bytes(a) == bytes(b) || !bytes(a).starts_with(&bytes(b)), "{a:?} {b:?}");
            }
        }
        assert_eq!(compare(&Value::Real(-0.0), &Value::Real(0.0)), Ordering::Equal);
    }
}
