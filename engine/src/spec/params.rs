//! Parameters of components: types, ranges, values, and messages about values out of range.
use std::fmt;

use crate::facts::{Datum, Kind};
use crate::formula::{Formula, Variable};

/// A parameter's value after conversion to its declared type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// A real number; never NaN. `+inf` stands for "unlimited" where the parameter allows it.
    Real(f64),
    /// A name or free text.
    Text(String),
    /// A vector of reals, such as a gear table.
    Reals(Vec<f64>),
}

impl Value {
    /// The value, borrowed.
    pub fn datum(&self) -> Datum<'_> {
        match self {
            Value::Bool(v) => Datum::Bool(*v),
            Value::Int(v) => Datum::Int(*v),
            Value::Real(v) => Datum::Real(*v),
            Value::Text(v) => Datum::Text(v),
            Value::Reals(v) => Datum::Reals(v),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Real(v) if *v == f64::INFINITY => write!(f, "unlimited"),
            Value::Real(v) => write!(f, "{v}"),
            Value::Text(v) => write!(f, "{v}"),
            Value::Reals(v) => write!(f, "[{}]", v.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Type and range of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// A truth value.
    Bool,
    /// An integer in `min..=max`.
    Int {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A real in `min..=max`.
    Real {
        /// Least value.
        min: f64,
        /// Greatest finite value.
        max: f64,
        /// Whether `min` itself is allowed.
        min_allowed: bool,
        /// Whether `"unlimited"` (stored as `+inf`) is allowed.
        unlimited: bool,
    },
    /// One of a few names.
    OneOf(&'static [&'static str]),
    /// Text that locates a log: its name, path, URL or digest. Such a parameter is no part of a task's identity, which has
    /// the digest of the log instead.
    Locator,
    /// The label of a block of `[signals]`. It is no part of a task's identity, which has the content and the settings of
    /// the signal instead.
    Signal {
        /// The quantities that the signal may have.
        quantities: &'static [&'static str],
    },
    /// The name or path of a policy module. It is no part of a task's identity, which has the digest of the module
    /// instead.
    Module,
    /// An expression. Its value is the formula's own text ([`Formula`]), so that two spellings of one formula are equal.
    Formula {
        /// The variables that it can read.
        variables: &'static [Variable],
    },
    /// A vector of reals, each in `min..=max`.
    Reals {
        /// Least element.
        min: f64,
        /// Greatest element.
        max: f64,
    },
}

impl Type {
    /// The kind of its values.
    pub fn kind(&self) -> Kind {
        match self {
            Type::Bool => Kind::Bool,
            Type::Int { .. } => Kind::Int,
            Type::Real { .. } => Kind::Real,
            Type::OneOf(_) | Type::Locator | Type::Signal { .. } | Type::Module | Type::Formula { .. } => Kind::Text,
            Type::Reals { .. } => Kind::Reals,
        }
    }
}

/// The value of a parameter that the manifest does not set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real.
    Real(f64),
    /// A name.
    Text(&'static str),
    /// A vector.
    Reals(&'static [f64]),
    /// No value: the parameter does not apply unless it is set (null in the results).
    Unset,
    /// The manifest must set it.
    Required,
}

impl Default {
    /// The default as a value; `None` for [`Default::Unset`] and [`Default::Required`].
    pub fn value(&self) -> Option<Value> {
        match *self {
            Default::Bool(v) => Some(Value::Bool(v)),
            Default::Int(v) => Some(Value::Int(v)),
            Default::Real(v) => Some(Value::Real(v)),
            Default::Text(v) => Some(Value::Text(v.to_owned())),
            Default::Reals(v) => Some(Value::Reals(v.to_vec())),
            Default::Unset | Default::Required => None,
        }
    }
}

/// One parameter of a component: also one column of the `tasks` table.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Unique among all components; the key in a manifest and the column in the results.
    pub name: &'static str,
    /// Type and range.
    pub ty: Type,
    /// Unit as people write it ("s", "W", "GHz"), "" for a pure number.
    pub unit: &'static str,
    /// Value when the manifest sets none.
    pub default: Default,
    /// Meaning and source.
    pub doc: &'static str,
}

/// A value that does not fit its parameter. Final: the spec is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{param}` must be {expected}, not {found}")]
pub struct ValueError {
    /// The parameter's name.
    pub param: String,
    /// The values that are allowed.
    pub expected: String,
    /// The value that was given.
    pub found: String,
}

impl Param {
    /// A parameter with one of a few names; the first is the default.
    pub const fn one_of(name: &'static str, names: &'static [&'static str], doc: &'static str) -> Param {
        Param { name, ty: Type::OneOf(names), unit: "", default: Default::Text(names[0]), doc }
    }

    /// A truth value, `false` by default.
    pub const fn flag(name: &'static str, doc: &'static str) -> Param {
        Param { name, ty: Type::Bool, unit: "", default: Default::Bool(false), doc }
    }

    /// A real above 0, up to `max`.
    pub const fn positive(
        name: &'static str,
        max: f64,
        unit: &'static str,
        default: Default,
        doc: &'static str,
    ) -> Param {
        let ty = Type::Real { min: 0.0, max, min_allowed: false, unlimited: false };
        Param { name, ty, unit, default, doc }
    }

    /// Whether the value is part of a task's identity.
    pub fn is_identity(&self) -> bool {
        !matches!(self.ty, Type::Locator | Type::Signal { .. } | Type::Module)
    }

    /// The allowed values in words, for error messages and help.
    pub fn expectation(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.ty {
            Type::Bool => "true or false".to_owned(),
            Type::Int { min: i64::MIN, max: i64::MAX } => format!("an integer{unit}"),
            Type::Int { min, max: i64::MAX } => format!("an integer of at least {min}{unit}"),
            Type::Int { min, max } => format!("an integer from {min} to {max}{unit}"),
            Type::Real { min, max, min_allowed, unlimited } => {
                let or = if unlimited { " or \"unlimited\"" } else { "" };
                format!("a number{}{unit}{or}", interval(min, max, min_allowed))
            }
            Type::OneOf(names) => {
                format!("one of {}", names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", "))
            }
            Type::Locator => "a text".to_owned(),
            Type::Module => "the path of a WebAssembly module".to_owned(),
            Type::Signal { quantities } => {
                format!("the label of a block of [signals] with the quantity {}", quantities.join(" or "))
            }
            Type::Formula { variables } => {
                let names: Vec<&str> = variables.iter().map(|variable| variable.name).collect();
                format!("an expression over {}", names.join(", "))
            }
            Type::Reals { min, max } => match interval(min, max, true) {
                free if free.is_empty() => format!("a list of numbers{unit}"),
                interval => format!("a list of numbers, each{interval}{unit}"),
            },
        }
    }

    /// Converts a value to this parameter's type and checks its range: integers widen to reals, `"unlimited"` becomes
    /// `+inf` where it is allowed, `-0.0` becomes `0.0`, NaN is refused, a formula gets its own text.
    pub fn check(&self, value: Value) -> Result<Value, ValueError> {
        let real = match &value {
            Value::Int(v) => *v as f64,
            Value::Real(v) => *v,
            _ => f64::NAN,
        };
        let wrong = |value: &Value| ValueError {
            param: self.name.to_owned(),
            expected: self.expectation(),
            found: match (value, self.ty) {
                (Value::Text(text), _) => match text.char_indices().nth(TEXT_SHOWN) {
                    Some((end, _)) => format!("\"{}...\", which has {} bytes", &text[..end], text.len()),
                    None => format!("\"{text}\""),
                },
                (Value::Real(v), _) => number(*v),
                (Value::Reals(v), Type::Reals { min, max }) => wrong_element(v, min, max),
                (other, _) => other.to_string(),
            },
        };
        match (self.ty, value) {
            (Type::Bool, v @ Value::Bool(_)) => Ok(v),
            (Type::Int { min, max }, Value::Int(v)) if (min..=max).contains(&v) => Ok(Value::Int(v)),
            (Type::Real { unlimited: true, .. }, Value::Text(t)) if t == "unlimited" => Ok(Value::Real(f64::INFINITY)),
            (Type::Real { unlimited: true, .. }, Value::Real(v)) if v == f64::INFINITY => Ok(Value::Real(v)),
            (Type::Real { min, max, min_allowed, .. }, value @ (Value::Int(_) | Value::Real(_))) => {
                let above = if min_allowed { real >= min } else { real > min };
                if real.is_finite() && above && real <= max { Ok(Value::Real(real + 0.0)) } else { Err(wrong(&value)) }
            }
            (Type::OneOf(names), Value::Text(t)) if names.contains(&t.as_str()) => Ok(Value::Text(t)),
            (Type::Locator | Type::Signal { .. }, v @ Value::Text(_)) => Ok(v),
            (Type::Module, Value::Text(t)) if t.contains("://") => {
                let expected = "the path of a file: a module is a file here, not a URL".to_owned();
                Err(ValueError { expected, ..wrong(&Value::Text(t)) })
            }
            (Type::Module, Value::Text(t)) if !t.is_empty() => Ok(Value::Text(t)),
            (Type::Formula { variables }, Value::Text(t)) => match Formula::parse(&t, variables) {
                Ok(formula) => Ok(Value::Text(formula.to_string())),
                Err(error) => {
                    let expected = format!("an expression ({error})");
                    Err(ValueError { expected, ..wrong(&Value::Text(t)) })
                }
            },
            (Type::Reals { min, max }, Value::Reals(v))
                if !v.is_empty() && v.len() <= LIST_VALUES_MAX && v.iter().all(|x| (min..=max).contains(x)) =>
            {
                Ok(Value::Reals(v.into_iter().map(|x| x + 0.0).collect()))
            }
            (_, value) => Err(wrong(&value)),
        }
    }
}

/// Greatest number of characters of a text that a message repeats.
const TEXT_SHOWN: usize = 200;

/// An interval in words, to follow "a number".
fn interval(min: f64, max: f64, min_allowed: bool) -> String {
    let low = match (min <= -BOUND_MAX, min_allowed) {
        (true, _) => String::new(),
        (false, true) => format!(" of at least {}", number(min)),
        (false, false) => format!(" above {}", number(min)),
    };
    let high = if max >= BOUND_MAX { String::new() } else { format!(" up to {}", number(max)) };
    low + &high
}

/// Bounds of at least this size only keep arithmetic finite, and are left out of messages.
const BOUND_MAX: f64 = 1e300;

/// A number as people write it: `0.25`, `65536`, `1e-9`, `1e12`.
fn number(value: f64) -> String {
    let plain = value.abs() < 1e7 && (value == 0.0 || value.abs() >= 1e-4);
    if plain || !value.is_finite() { value.to_string() } else { format!("{value:e}") }
}

/// Greatest number of values in a list. Every row has the lists of its task.
const LIST_VALUES_MAX: usize = 100_000;

/// The first element out of range, with its place from 1; or what else is wrong with the list.
fn wrong_element(values: &[f64], min: f64, max: f64) -> String {
    match values.iter().zip(1..).find(|(v, _)| !(min..=max).contains(*v)) {
        Some((value, place)) => format!("{} (value {place} of {})", number(*value), values.len()),
        None if values.is_empty() => "an empty list".to_owned(),
        None => format!("{} numbers: at most {LIST_VALUES_MAX} are allowed", values.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(ty: Type) -> Param {
        Param { name: "p", ty, unit: "W", default: Default::Unset, doc: "" }
    }

    fn real(min: f64, max: f64, min_allowed: bool) -> String {
        param(Type::Real { min, max, min_allowed, unlimited: false }).expectation()
    }

    #[test]
    fn expectations_leave_out_huge_bounds_and_have_short_numbers() {
        assert_eq!(real(0.0, 1e300, false), "a number above 0 W");
        assert_eq!(real(f64::MIN, f64::MAX, true), "a number W");
        assert_eq!(real(-1e300, 1e12, true), "a number up to 1e12 W");
        assert_eq!(real(1e-9, 65_536.0, true), "a number of at least 1e-9 up to 65536 W");
        assert_eq!(real(0.05, 0.999, true), "a number of at least 0.05 up to 0.999 W");
        let list = |min, max| param(Type::Reals { min, max }).expectation();
        assert_eq!(list(0.0, 1e300), "a list of numbers, each of at least 0 W");
        assert_eq!(list(1e-6, 1e9), "a list of numbers, each of at least 1e-6 up to 1e9 W");
        assert_eq!(list(f64::MIN, f64::MAX), "a list of numbers W");
    }

    #[test]
    fn a_long_text_is_cut_in_messages() {
        let found = |text: &str| param(Type::Bool).check(Value::Text(text.to_owned())).expect_err("a text").found;
        assert_eq!(found("yes"), "\"yes\"");
        assert_eq!(found(&"é".repeat(201)), format!("\"{}...\", which has 402 bytes", "é".repeat(200)));
    }

    #[test]
    fn a_list_has_at_most_a_hundred_thousand_values() {
        let list = |values: usize| param(Type::Reals { min: 0.0, max: 1.0 }).check(Value::Reals(vec![0.5; values]));
        assert!(list(100_000).is_ok());
        assert_eq!(list(100_001).expect_err("too long").found, "100001 numbers: at most 100000 are allowed");
    }

    #[test]
    fn an_error_about_a_list_names_the_first_wrong_element() {
        let rates = param(Type::Reals { min: 0.0, max: 1e300 });
        let wrong = |values: &[f64]| rates.check(Value::Reals(values.to_vec())).expect_err("is wrong").to_string();
        assert_eq!(
            wrong(&[5.0, -9.0, -1.0]),
            "`p` must be a list of numbers, each of at least 0 W, not -9 (value 2 of 3)"
        );
        assert!(wrong(&[1.0, f64::NAN]).ends_with("not NaN (value 2 of 2)"));
        assert!(wrong(&[1e301]).ends_with("not 1e301 (value 1 of 1)"));
        assert!(wrong(&[]).ends_with("not an empty list"));
    }
}
