//! Comparisons of a value with published or expected numbers and with other values.

use powersweep_dataset::Stat;
use powersweep_dataset::replicates::{Interval, Method, Replicates, SEED};
use powersweep_dataset::stats;
use powersweep_dataset::words::{Notation, endless};
use powersweep_engine::Value;

use crate::claim::Comparison;
use crate::evaluate::Difference;
use crate::measure::{Groups, Scope};
use crate::rows::{Needed, Rows};
use crate::selection::{Aggregate, Selection};

/// The outcome of one comparison.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) stated: String,
    pub(crate) ours: String,
    /// `None` if the comparison only shows numbers.
    pub(crate) holds: Option<bool>,
    pub(crate) numbers: (Option<f64>, Option<f64>),
    pub(crate) interval: Option<(f64, f64)>,
    /// The value on the other side, and differences from it.
    pub(crate) other: Option<f64>,
    pub(crate) differences: Vec<Difference>,
    pub(crate) is_uncertain: bool,
}

impl Comparison<'_> {
    /// Adds the columns that the comparison reads.
    pub(crate) fn need(&self, value: &Selection, outer: &Scope, needed: &mut Needed) {
        let seeded = by_seed(value, outer);
        let outer = seeded.as_ref().unwrap_or(outer);
        if let Some(other) = self.other() {
            let other = value.with(other);
            outer.of_value(&other).need(&other, needed);
        }
        match self {
            Comparison::Other { .. } => {}
            Comparison::Ascending { column, places } => {
                let at = value.at(column, &places[0]);
                outer.of_value(&at).need(&at, needed);
            }
            _ => outer.of_value(value).need(value, needed),
        }
    }

    /// The number of repetition `i`, with the sign of a bound; `None` for a comparison of our own values.
    pub(crate) fn stated(&self, i: usize) -> Option<String> {
        let numbers = self.numbers()?;
        let stated = digits(*numbers.get(i).or(numbers.last())?);
        Some(if let Comparison::Bound { sign, .. } = self { format!("{sign} {stated}") } else { stated })
    }

    /// The outcome in repetition `i` of the claim.
    pub(crate) fn compare(&self, value: &Selection, outer: &Scope, rows: &Rows, i: usize) -> Result<Compared, String> {
        let of = |selection: &Selection| outer.of_value(selection).value(selection, rows);
        let number = |numbers: &[f64]| numbers.get(i).or(numbers.last()).copied().unwrap_or(f64::NAN);
        let ours = || mean(&of(value)?);
        let seeded = by_seed(value, outer);
        let ends = |ours| interval(value, seeded.as_ref()?, rows, ours);
        let in_order = |values: &[Selection], sign: &str| {
            let groups: Vec<Groups> = values.iter().map(of).collect::<Result<_, String>>()?;
            let of_seed = |of: &Selection| by_seed(of, outer)?.of_value(of).value(of, rows).ok();
            let seeds: Option<Vec<Groups>> = values.iter().map(of_seed).collect();
            order(&groups, seeds.as_deref().unwrap_or(&groups), sign, rows.method(&outer.of_value(value).manifest))
        };
        match self {
            Comparison::Within { stated, within } => {
                let (stated, ours) = (number(stated), ours()?);
                let tolerance = within.of.as_ref().map(|other| mean(&of(&value.with(other))?)).transpose()?;
                let allowed = (within.relative * stated.abs()).max(within.absolute).max(tolerance.unwrap_or(0.0));
                let text = alike([stated, allowed]).join(" ± ");
                Ok(beside((text, stated), ours, ends(ours), |ours: f64| (ours - stated).abs() <= allowed))
            }
            Comparison::Shown(stated) => {
                let (stated, ours) = (number(stated), ours()?);
                Ok(Compared { holds: None, ..beside((digits(stated), stated), ours, ends(ours), |_| true) })
            }
            Comparison::Bound { numbers, holds, .. } => {
                let (bound, ours) = (number(numbers), ours()?);
                let stated = self.stated(i).unwrap_or_default();
                Ok(beside((stated, bound), ours, ends(ours), |ours| holds(ours, bound)))
            }
            Comparison::Other { other, sign } => in_order(&[value.clone(), value.with(other)], sign),
            Comparison::Ascending { column, places } => {
                let values: Vec<Selection> = places.iter().map(|place| value.at(column, place)).collect();
                let mut compared = in_order(&values, "<")?;
                let places: Vec<String> = places.iter().map(Value::to_string).collect();
                compared.stated = places.join(" < ");
                compared.ours = compared.ours.replace(OTHER_MINUS_OURS, "each minus the one before");
                compared.other = None;
                Ok(compared)
            }
        }
    }
}

/// The scope around a value, grouped by the seed, too. `None` for a value that is no mean of rows: no interval over the seeds
/// follows for it.
pub(crate) fn by_seed(value: &Selection, outer: &Scope) -> Option<Scope> {
    let is_mean = value.aggregate == Some(Aggregate::Stat(Stat::Mean)) && value.then.is_none();
    let mut scope = outer.clone();
    scope.by.extend([SEED.to_owned()].into_iter().filter(|seed| !outer.by.contains(seed)));
    let inner = value.divided_by.as_deref().or(value.minus.as_deref());
    let is_paired = inner.is_none_or(|inner| scope.of_value(value).within(inner).by.iter().any(|name| name == SEED));
    (is_mean && is_paired).then_some(scope)
}

/// The 95% interval of a value over the seeds, if it has one; `None` if nothing in it depends on the seed.
fn interval(value: &Selection, by_seed: &Scope, rows: &Rows, ours: f64) -> Option<(f64, f64)> {
    let found = by_seed.of_value(value).intervals(value, rows, &[]).ok()?.values.into_values().next()?;
    ends_of(found, ours)
}

/// The ends of an interval around a value; `None` if it is around another one, or nothing in it depends on the seed.
pub(crate) fn ends_of(found: Interval, ours: f64) -> Option<(f64, f64)> {
    // Where groups have different numbers of rows, the mean of their means is another estimate.
    let is_ours = (found.value - ours).abs() <= 1e-9 * ours.abs();
    found.ends.filter(|(low, high)| is_ours && low < high)
}

/// The outcome of a comparison with a stated number, of which `holds` depends. `uncertain`: the comparison holds for a part of the
/// interval.
fn beside((text, stated): (String, f64), ours: f64, ends: Option<(f64, f64)>, holds: impl Fn(f64) -> bool) -> Compared {
    let is_uncertain = ends.is_some_and(|(low, high)| {
        let nearest = stated.max(low).min(high);
        holds(low) != holds(high) || holds(low) != holds(nearest)
    });
    let uncertain = if is_uncertain { ", uncertain" } else { "" };
    let shown = match ends {
        None => digits(ours),
        Some((low, high)) if (2.0 * ours - low - high).abs() <= 1e-9 * (high - low) => {
            let [ours, half] = alike([ours, (high - low) / 2.0]);
            format!("{ours} ± {half} at 95%{uncertain}")
        }
        Some((low, high)) => {
            let [ours, low, high] = alike([ours, low, high]);
            format!("{ours} ({low} to {high} at 95%{uncertain})")
        }
    };
    let numbers = (Some(stated), Some(ours));
    let holds = Some(holds(ours));
    Compared { stated: text, ours: shown, holds, numbers, interval: ends, is_uncertain, ..Compared::default() }
}

/// The sign of the difference of two values.
const OTHER_MINUS_OURS: &str = "other minus ours";

/// Compares neighbouring values. Groups are compared in pairs; the mean of their differences decides. Pairs of seeds have the 95%
/// interval of all comparisons beside it, which says whether the difference may be 0. Equal differences have none: nothing in them
/// depends on the seed. `by_seed`: the values with a group for each seed, if they have any.
fn order(values: &[Groups], by_seed: &[Groups], sign: &str, method: Method) -> Result<Compared, String> {
    let mut holds = true;
    for pair in values.windows(2) {
        let [a, b] = pair else { continue };
        if a.by != b.by || !a.values.keys().eq(b.values.keys()) {
            return Err("the two sides have different groups and cannot be paired".to_owned());
        }
        let mut differences: Vec<f64> = a.values.values().zip(b.values.values()).map(|(a, b)| b - a).collect();
        differences.sort_by(f64::total_cmp);
        let mean = stats::mean(&differences).unwrap_or(f64::NAN);
        holds &= if sign == "<" { mean > 0.0 } else { mean < 0.0 };
    }
    let (mut intervals, mut compared) = (Vec::new(), Compared::default());
    for pair in by_seed.windows(2) {
        let [a, b] = pair else { continue };
        let Some(seed) = a.by.iter().position(|name| name == SEED).filter(|_| a.values.keys().eq(b.values.keys()))
        else {
            continue;
        };
        let differences = a.values.iter().zip(b.values.values()).map(|((key, a), b)| (key[seed].parse().ok(), b - a));
        let rows = differences.filter_map(|(seed, difference): (Option<i64>, f64)| Some((seed?, difference)));
        let found = Replicates::of(rows, method).mean();
        if let Some((low, high)) = found.ends.filter(|(low, high)| low < high) {
            let half = (high - low) / 2.0;
            let may_be_0 = if low <= 0.0 && 0.0 <= high { ", may be 0" } else { "" };
            compared.is_uncertain |= !may_be_0.is_empty();
            compared.differences.push(Difference { value: found.value, low, high });
            let [value, half] = alike([found.value, half]);
            intervals.push(format!("{value} ± {half} at 95%{may_be_0}"));
        }
    }
    let means: Vec<f64> = values.iter().map(mean).collect::<Result<_, String>>()?;
    let shown: Vec<String> = means.iter().map(|mean| digits(*mean)).collect();
    let mut ours = shown.join(&format!(" {sign} "));
    if !holds {
        ours = shown.join(", ");
    }
    if !intervals.is_empty() {
        ours.push_str(&format!(" (paired, {OTHER_MINUS_OURS}: {})", intervals.join("; ")));
    }
    let (stated, numbers) = (format!("{sign} the other value"), (None, means.first().copied()));
    Ok(Compared { stated, ours, holds: Some(holds), numbers, other: means.get(1).copied(), ..compared })
}

/// The mean of the groups; the value itself if there is only one group.
fn mean(groups: &Groups) -> Result<f64, String> {
    let mut values: Vec<f64> = groups.values.values().copied().collect();
    values.sort_by(f64::total_cmp);
    stats::mean(&values).ok_or_else(|| "there is no value".to_owned())
}

/// Numbers that stand together: all of them have a power of ten if one is so great that it has one.
fn alike<const N: usize>(values: [f64; N]) -> [String; N] {
    let greatest = values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max);
    values.map(|value| match value.is_infinite() {
        true => endless(value).to_owned(),
        false => Notation::CLAIMS.number_beside(value, greatest),
    })
}

/// A number with up to seven significant digits.
pub(crate) fn digits(value: f64) -> String {
    Notation::CLAIMS.number(value)
}

#[cfg(test)]
mod tests {
    use super::alike;

    #[test]
    fn numbers_that_stand_together_have_one_notation() {
        assert_eq!(alike([1.059e9, 478_428_019.0]), ["1.059e9", "4.784e8"]);
        assert_eq!(alike([20.0, 127.062]), ["20", "127.062"]);
        assert_eq!(alike([2.5, f64::NEG_INFINITY, f64::INFINITY]), ["2.5", "-∞", "∞"]);
    }
}
