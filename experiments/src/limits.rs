//! Limits of one task, and amounts with units.
//!
//! A limit can stop an attempt but never changes a row. So limits are not part of a task's identity, and a manifest
//! whose limits change keeps its rows.

use powersweep_engine::Value;
use powersweep_engine::spec::{Default as ParamDefault, Param, Type};
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;
use crate::manifest::values::{integer, kind, read, unknown_keys};

/// The limits of a manifest's `[limits]`. A missing entry does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TaskLimits {
    /// Longest simulation of one task (s), above 0. Loading and parsing its log does not count.
    pub task_deadline_s: Option<f64>,
    /// Maximum number of simulated events of one task, at least 1.
    pub task_max_events: Option<u64>,
    /// Maximum memory of one task's workload and of the state of its simulation, in bytes, at least 1.
    pub task_max_memory_bytes: Option<u64>,
}

/// Longest deadline (s): some 30 years, so that adding it to an instant cannot overflow.
pub const DEADLINE_MAX_S: f64 = 1e9;

pub(crate) const DEADLINE: Param = Param {
    name: "task_deadline_s",
    ty: Type::Real { min: 0.0, max: DEADLINE_MAX_S, min_allowed: false, unlimited: false },
    unit: "s",
    default: ParamDefault::Real(f64::INFINITY),
    doc: "Longest simulation of one task; none by default. Loading and parsing its log does not count. An attempt that \
          takes longer fails and is repeated on another worker; after three attempts the task has failed.",
};

pub(crate) const EVENTS: Param = Param {
    name: "task_max_events",
    ty: Type::Int { min: 1, max: i64::MAX },
    unit: "events",
    default: ParamDefault::Int(i64::MAX),
    doc: "Most simulated events of one task; no limit by default.",
};

/// The key of the memory limit.
pub(crate) const MEMORY: &str = "task_max_memory";
/// The documentation of the memory limit.
pub(crate) const MEMORY_DOC: &str = "Most memory of one task: its workload and the state of its simulation (running jobs, events, \
     power, recorded series); no limit by default. Bytes, or a text with a unit such as \"512 MiB\".";

const KEYS: [&str; 3] = [DEADLINE.name, EVENTS.name, MEMORY];

/// Reads `[limits]`.
pub(crate) fn limits(top: &DeTable<'_>, problems: &mut Vec<Problem>) -> TaskLimits {
    let mut limits = TaskLimits::default();
    let Some(value) = top.get("limits") else { return limits };
    let Some(table) = value.get_ref().as_table() else {
        problems.push(Problem::new(value.span(), "`limits` must be a table", "expected [limits]"));
        return limits;
    };
    let mut one = |param: &Param, value: &toml::Spanned<DeValue<'_>>| {
        if matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_)) {
            let message = format!("`{}` must be one value: a limit cannot be an axis", param.name);
            problems.push(Problem::new(value.span(), message, "expected a number"));
            return None;
        }
        read(param, value, problems).map(|read| read.values.get(0))
    };
    if let Some(Value::Real(seconds)) = table.get(DEADLINE.name).and_then(|value| one(&DEADLINE, value)) {
        limits.task_deadline_s = Some(seconds);
    }
    if let Some(Value::Int(events)) = table.get(EVENTS.name).and_then(|value| one(&EVENTS, value)) {
        limits.task_max_events = u64::try_from(events).ok();
    }
    if let Some(value) = table.get(MEMORY) {
        match memory(value.get_ref()) {
            Ok(bytes) => limits.task_max_memory_bytes = Some(bytes),
            Err(expected) => {
                let message = format!("`{MEMORY}` cannot be {}", kind(value.get_ref()));
                problems.push(Problem::new(value.span(), message, expected));
            }
        }
    }
    unknown_keys(table, &KEYS, "[limits]", problems);
    limits
}

fn memory(value: &DeValue<'_>) -> Result<u64, String> {
    let expected = || "expected bytes, or a text such as \"512 MiB\"".to_owned();
    match value {
        DeValue::String(text) => bytes(text).map_err(|error| format!("expected {error}")),
        DeValue::Integer(number) => {
            integer(number).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0).ok_or_else(expected)
        }
        _ => Err(expected()),
    }
}

/// Units of bytes, in powers of 1024 and of 1000.
const BYTE_UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

/// An amount of bytes such as `4096`, `512MiB`, `1.5 GB`; at least 1.
///
/// # Errors
/// The text that was expected.
pub fn bytes(text: &str) -> Result<u64, String> {
    let expected = || format!("bytes such as 4096, 512MiB or 1.5 GB instead of `{text}`");
    let lower = text.trim().to_ascii_lowercase();
    let (number, factor) = BYTE_UNITS
        .iter()
        .find_map(|(unit, factor)| lower.strip_suffix(unit).map(|number| (number.trim_end(), *factor)))
        .unwrap_or((lower.as_str(), 1));
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(expected);
    }
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let amount = number.parse::<f64>().ok().filter(|_| plain && factor > 1).ok_or_else(expected)? * factor as f64;
    if (1.0..1e18).contains(&amount) { Ok(amount as u64) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let good = [("1", 1), ("512MiB", 512 << 20), (" 1.5 GB ", 1_500_000_000), ("2kb", 2000), ("7 B", 7)];
        for (text, expected) in good {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "MiB", "1 MiBs", "99999999TB", "1e9", "infGB", "nan kb", "0.0001kb"] {
            let error = bytes(text).expect_err(text);
            assert!(error.contains(text) && error.contains("512MiB"), "{error}");
        }
    }
}
