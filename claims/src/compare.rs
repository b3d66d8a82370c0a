//! Comparisons of a value with published or expected numbers and with other values.

use powersweep_dataset::replicates::{Method, Replicates, SEED};
use powersweep_dataset::stats;
use powersweep_engine::Value;

use crate::claim::Comparison;
use crate::measure::{Groups, Scope};
use crate::rows::{Needed, Rows};
use crate::selection::Selection;

/// The outcome of one comparison.
pub(crate) struct Compared {
    pub(crate) stated: String,
    pub(crate) ours: String,
    /// `None` if the comparison only shows numbers.
    pub(crate) holds: Option<bool>,
    pub(crate) numbers: (Option<f64>, Option<f64>),
}

impl Comparison<'_> {
    /// Adds the columns that the comparison reads.
    pub(crate) fn need(&self, value: &Selection, outer: &Scope, needed: &mut Needed) {
        if let Some(other) = self.other() {
            let other = value.with(other);
            outer.of_value(&other).need(&other, needed);
        }
        match self {
            Comparison::LessThan(_) | Comparison::GreaterThan(_) => {}
            Comparison::Ascending { column, places } => {
                let at = value.at(column, &places[0]);
                outer.of_value(&at).need(&at, needed);
            }
            _ => outer.of_value(value).need(value, needed),
        }
    }

    /// The outcome in repetition `i` of the claim.
    pub(crate) fn compare(&self, value: &Selection, outer: &Scope, rows: &Rows, i: usize) -> Result<Compared, String> {
        let of = |selection: &Selection| outer.of_value(selection).value(selection, rows);
        let number = |numbers: &[f64]| numbers.get(i).or(numbers.last()).copied().unwrap_or(f64::NAN);
        let ours = || mean(&of(value)?);
        let bound = |sign: &str, numbers: &[f64], holds: fn(f64, f64) -> bool| {
            let (bound, ours) = (number(numbers), ours()?);
            Ok(Compared {
                stated: format!("{sign} {}", digits(bound)),
                ours: digits(ours),
                holds: Some(holds(ours, bound)),
                numbers: (Some(bound), Some(ours)),
            })
        };
        match self {
            Comparison::Within { stated, within } => {
                let (stated, ours) = (number(stated), ours()?);
                let tolerance = within.of.as_ref().map(|other| mean(&of(&value.with(other))?)).transpose()?;
                let allowed = (within.relative * stated.abs()).max(within.absolute).max(tolerance.unwrap_or(0.0));
                Ok(Compared {
                    stated: format!("{} ± {}", digits(stated), digits(allowed)),
                    ours: digits(ours),
                    holds: Some((ours - stated).abs() <= allowed),
                    numbers: (Some(stated), Some(ours)),
                })
            }
            Comparison::Shown(stated) => {
                let (stated, ours) = (number(stated), ours()?);
                let numbers = (Some(stated), Some(ours));
                Ok(Compared { stated: digits(stated), ours: digits(ours), holds: None, numbers })
            }
            Comparison::AtLeast(numbers) => bound("≥", numbers, |ours, bound| ours >= bound),
            Comparison::AtMost(numbers) => bound("≤", numbers, |ours, bound| ours <= bound),
            Comparison::Above(numbers) => bound(">", numbers, |ours, bound| ours > bound),
            Comparison::Below(numbers) => bound("<", numbers, |ours, bound| ours < bound),
            Comparison::LessThan(other) => order(&[of(value)?, of(&value.with(other))?], "<"),
            Comparison::GreaterThan(other) => order(&[of(value)?, of(&value.with(other))?], ">"),
            Comparison::Ascending { column, places } => {
                let values: Vec<Groups> =
                    places.iter().map(|place| of(&value.at(column, place))).collect::<Result<_, String>>()?;
                let mut compared = order(&values, "<")?;
                let places: Vec<String> = places.iter().map(Value::to_string).collect();
                compared.stated = places.join(" < ");
                Ok(compared)
            }
        }
    }
}

/// Compares neighbouring values. Groups are compared in pairs; the mean of their differences decides. Pairs of seeds have the 95%
/// interval of all comparisons beside it, which says whether the difference may be 0. Equal differences have none: nothing in them
/// depends on the seed.
fn order(values: &[Groups], sign: &str) -> Result<Compared, String> {
    let mut holds = true;
    let mut intervals = Vec::new();
    for pair in values.windows(2) {
        let [a, b] = pair else { continue };
        if a.by != b.by || !a.values.keys().eq(b.values.keys()) {
            return Err("the two sides have different groups and cannot be paired".to_owned());
        }
        let differences = || a.values.values().zip(b.values.values()).map(|(a, b)| b - a);
        let mut sorted: Vec<f64> = differences().collect();
        sorted.sort_by(f64::total_cmp);
        let mean = stats::mean(&sorted).unwrap_or(f64::NAN);
        holds &= if sign == "<" { mean > 0.0 } else { mean < 0.0 };
        let Some(seed) = a.by.iter().position(|name| name == SEED) else { continue };
        let seeds: Vec<Option<i64>> = a.values.keys().map(|key| key[seed].parse().ok()).collect();
        let rows = seeds.iter().zip(differences()).filter_map(|(seed, difference)| Some(((*seed)?, difference)));
        if let Some((low, high)) = Replicates::of(rows, Method::T(95)).mean().ends.filter(|(low, high)| low < high) {
            let half = (high - low) / 2.0;
            let may_be_0 = if low <= 0.0 && 0.0 <= high { ", may be 0" } else { "" };
            intervals.push(format!("{} ± {} at 95%{may_be_0}", digits(mean), digits(half)));
        }
    }
    let means: Vec<f64> = values.iter().map(mean).collect::<Result<_, String>>()?;
    let shown: Vec<String> = means.iter().map(|mean| digits(*mean)).collect();
    let mut ours = shown.join(&format!(" {sign} "));
    if !holds {
        ours = shown.join(", ");
    }
    if !intervals.is_empty() {
        ours.push_str(&format!(" (paired {})", intervals.join("; ")));
    }
    let numbers = (None, means.first().copied());
    Ok(Compared { stated: format!("{sign} the other value"), ours, holds: Some(holds), numbers })
}

/// The mean of the groups; the value itself if there is only one group.
fn mean(groups: &Groups) -> Result<f64, String> {
    let mut values: Vec<f64> = groups.values.values().copied().collect();
    values.sort_by(f64::total_cmp);
    stats::mean(&values).ok_or_else(|| "there is no value".to_owned())
}

/// A number with up to seven significant digits.
pub(crate) fn digits(value: f64) -> String {
    if value == 0.0 || (value.fract() == 0.0 && value.abs() < 1e9) {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..9.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (6.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
