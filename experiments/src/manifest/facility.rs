//! Keys of a block `[signals.NAME]` about the facility: losses between the machine and the meter, and a battery there.

use std::collections::BTreeMap;

use powersweep_engine::Value;
use powersweep_engine::account::J_PER_KWH;
use powersweep_engine::battery::{Battery, BatteryPolicy, Statistic};

use crate::signals::{BatteryRule, Facility, Pue, Quantity, Sample, Word};

use super::signal_keys::FACILITY_KEYS as KEYS;

/// Why the keys of a block contradict each other.
#[derive(Debug)]
pub(super) struct Refused {
    /// The key to look at.
    pub(super) key: &'static str,
    pub(super) message: String,
    pub(super) expected: &'static str,
}

/// The values of a combination, by their keys.
type Given<'a> = BTreeMap<&'a str, Value>;

fn refused<T>(key: &'static str, message: String, expected: &'static str) -> Result<T, Refused> {
    Err(Refused { key, message, expected })
}

fn given_real(values: &Given<'_>, key: &str) -> Option<f64> {
    match values.get(key) {
        Some(Value::Real(value)) => Some(*value),
        _ => None,
    }
}

/// The facility of a combination.
pub(super) fn read(values: &Given<'_>, quantity: Quantity, sample: Sample) -> Result<Facility, Refused> {
    let given = KEYS.iter().find(|key| values.contains_key(key.name));
    if let Some(key) = given.filter(|_| !matches!(quantity, Quantity::Carbon | Quantity::Price)) {
        let message = format!("`{}` weighs no {}", key.name, quantity.word());
        return refused(key.name, message, "expected it with a carbon or a price");
    }
    for key in ["embodied_g_per_proc_hour", "battery_embodied_g_per_hour"] {
        if quantity == Quantity::Price && values.contains_key(key) {
            return refused(key, format!("`{key}` is no cost"), "expected it in a block of carbon");
        }
    }
    Ok(Facility {
        pue: pue(values)?,
        supply_efficiency: given_real(values, "supply_efficiency").unwrap_or(1.0),
        embodied_g_per_proc_hour: given_real(values, "embodied_g_per_proc_hour").unwrap_or(0.0),
        battery: battery(values, sample)?,
        battery_embodied_g_per_hour: given_real(values, "battery_embodied_g_per_hour").unwrap_or(0.0),
    })
}

fn pue(values: &Given<'_>) -> Result<Pue, Refused> {
    match (values.get("pue_signal"), values.get("pue_curve")) {
        (None, None) => Ok(Pue::Constant(given_real(values, "pue").unwrap_or(1.0))),
        (Some(Value::Text(label)), Some(Value::Reals(curve))) if !values.contains_key("pue") => {
            let points: Vec<(f64, f64)> = curve.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            let increase = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if curve.len() % 2 != 0 || points.is_empty() || !increase || points.iter().any(|(_, pue)| *pue < 1.0) {
                let expected = "expected pairs of an increasing temperature and a PUE of at least 1";
                return refused("pue_curve", "`pue_curve` is no curve".to_owned(), expected);
            }
            Ok(Pue::Curve { signal: label.as_str().into(), points })
        }
        (Some(_), Some(_)) => {
            refused("pue", "`pue` and `pue_signal` both state the PUE".to_owned(), "expected one of them")
        }
        (Some(_), None) => refused("pue_signal", "`pue_signal` needs `pue_curve`".to_owned(), "expected both"),
        (None, Some(_)) => refused("pue_curve", "`pue_curve` needs `pue_signal`".to_owned(), "expected both"),
    }
}

fn battery(values: &Given<'_>, sample: Sample) -> Result<Option<(BatteryRule, Battery)>, Refused> {
    let Some(Value::Text(word)) = values.get("battery_policy") else {
        let key = KEYS.iter().find(|key| key.name.starts_with("battery_") && values.contains_key(key.name));
        return match key {
            Some(key) => refused(key.name, format!("`{}` needs `battery_policy`", key.name), "expected both"),
            None => Ok(None),
        };
    };
    let Some(rule) = BatteryRule::of_word(word) else { return Ok(None) };
    if sample == Sample::Point {
        let message = "a battery cannot follow a signal that changes at all times".to_owned();
        return refused("battery_policy", message, "expected sample = \"mean\"");
    }
    let needed = |key: &'static str| match values.get(key) {
        Some(Value::Real(value)) => Ok(*value),
        Some(Value::Int(value)) => Ok(*value as f64),
        _ => refused(key, format!("battery_policy = \"{word}\" needs `{key}`"), "expected both"),
    };
    let unused: &[&'static str] = match rule {
        BatteryRule::Single => &["battery_upper_threshold", "battery_window"],
        BatteryRule::Double => &["battery_window"],
        _ => &["battery_upper_threshold"],
    };
    if let Some(key) = unused.iter().find(|key| values.contains_key(**key)) {
        let message = format!("battery_policy = \"{word}\" does not read `{key}`");
        return refused(key, message, "expected the keys of one policy; write a block for each policy");
    }
    let running = |statistic| {
        let window = needed("battery_window")? as usize;
        Ok(BatteryPolicy::Running { statistic, window, first: given_real(values, "battery_threshold") })
    };
    let policy = match rule {
        BatteryRule::Single => {
            let threshold = needed("battery_threshold")?;
            BatteryPolicy::Thresholds { lower: threshold, upper: threshold }
        }
        BatteryRule::Double => {
            let (lower, upper) = (needed("battery_threshold")?, needed("battery_upper_threshold")?);
            if upper < lower {
                let message = "`battery_upper_threshold` is less than `battery_threshold`".to_owned();
                return refused("battery_upper_threshold", message, "expected at least that value");
            }
            BatteryPolicy::Thresholds { lower, upper }
        }
        BatteryRule::RunningMean => running(Statistic::Mean)?,
        BatteryRule::RunningMeanPlus => running(Statistic::MeanPlus)?,
        BatteryRule::RunningMedian => running(Statistic::Median)?,
        BatteryRule::RunningQuartiles => running(Statistic::Quartiles)?,
    };
    let capacity_j = needed("battery_kwh")? * J_PER_KWH;
    let battery = Battery {
        capacity_j,
        charge_w: needed("battery_charge_w")?,
        initial_j: capacity_j * given_real(values, "battery_initial_share").unwrap_or(0.0),
        efficiency: given_real(values, "battery_efficiency").unwrap_or(1.0),
        policy,
    };
    Ok(Some((rule, battery)))
}
