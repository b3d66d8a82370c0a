//! Conditions on the share of seeds: `P(wait_s_mean <= 3600) >= 0.95`.

use arrow::datatypes::DataType;

use super::{Estimate, Verdict};
use crate::error::{Error, usage};
use crate::{Cell, Condition, Op};

/// Halvings of the interval in which an end of a share's interval lies.
const HALVINGS: usize = 60;
/// The probability beyond each end of a 95% interval.
const TAIL: f64 = 0.025;

/// A condition on the share of seeds whose values satisfy another condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Chance {
    /// The condition on the value of one seed.
    pub condition: Condition,
    /// How the share is compared: `<`, `<=`, `>` or `>=`.
    pub op: Op,
    /// The share that it is compared with, from 0 to 1.
    pub share: f64,
}

impl Chance {
    /// The column that a condition names; `None` if the text is none on a share.
    pub fn column_of(text: &str) -> Option<&str> {
        let inner = parts(text).map(|(inner, _)| inner).or_else(|| quantile(text).map(|(column, ..)| column))?;
        Some(Condition::column_of(inner))
    }

    /// Reads `P(CONDITION) >= SHARE`, or the same said by a quantile: `p95(COLUMN) <= NUMBER` is `P(COLUMN <= NUMBER) >= 0.95`, and
    /// `p5(COLUMN) >= NUMBER` is `P(COLUMN >= NUMBER) >= 0.95`. `None` for a condition of another form.
    ///
    /// # Errors
    /// The inner condition or the share is wrong.
    pub fn parse(text: &str, type_of: impl FnOnce(&str) -> Result<DataType, Error>) -> Result<Option<Chance>, Error> {
        if let Some((column, percent, rest)) = quantile(text) {
            let condition = Condition::parse::<Error>(&format!("{column}{rest}"), type_of)?;
            let share = match condition.op {
                Op::Less | Op::AtMost => percent / 100.0,
                Op::Greater | Op::AtLeast => 1.0 - percent / 100.0,
                Op::Equal | Op::NotEqual => {
                    return Err(usage(format!("`{text}`: a quantile is compared by < <= > or >=")));
                }
            };
            return Ok(Some(Chance { condition, op: Op::AtLeast, share }));
        }
        let Some((inner, rest)) = parts(text) else { return Ok(None) };
        let condition = Condition::parse::<Error>(inner, type_of)?;
        // The right side is read as a condition on a number.
        let outer = Condition::parse::<Error>(&format!("share{rest}"), |_| Ok(DataType::Float64));
        let of_share = outer.ok().and_then(|outer| Some((outer.op, outer.value.number()?)));
        match of_share {
            Some((op, share)) if (0.0..=1.0).contains(&share) && !matches!(op, Op::Equal | Op::NotEqual) => {
                Ok(Some(Chance { condition, op, share }))
            }
            _ => Err(usage(format!(
                "`{text}`: a share of seeds is compared by < <= > or >= with a number from 0 to 1, such as P(wait_s_mean <= 3600) >= 0.95"
            ))),
        }
    }

    /// The share of the values that satisfy the condition, with half the width of its interval, and the verdict. The interval is
    /// that of Clopper & Pearson (1934), which contains the true share in at least 95 of 100 cases. `is_whole`: the values are all
    /// that there are.
    pub fn judge(&self, values: &[f64], is_whole: bool) -> (Estimate, Verdict) {
        let holding = values.iter().filter(|value| self.condition.holds(&Cell::Real(**value))).count();
        if values.is_empty() {
            let estimate = Estimate { mean: None, half_width: None };
            return (estimate, Verdict { holds: false, is_certain: is_whole });
        }
        let (low, high) = interval(holding, values.len());
        let share = holding as f64 / values.len() as f64;
        let holds_at = |share: f64| self.op.holds(share.total_cmp(&self.share));
        let holds = holds_at(share);
        let is_certain = is_whole || (holds_at(low) == holds && holds_at(high) == holds);
        let estimate = Estimate { mean: Some(share), half_width: (!is_whole).then_some((high - low) / 2.0) };
        (estimate, Verdict { holds, is_certain })
    }
}

/// The condition in `P(...)`, and what follows.
fn parts(text: &str) -> Option<(&str, &str)> {
    text.trim().strip_prefix("P(")?.rsplit_once(')')
}

/// The column and the percentage of a quantile, and what follows.
fn quantile(text: &str) -> Option<(&str, f64, &str)> {
    let (percent, rest) = text.trim().strip_prefix('p')?.split_once('(')?;
    let (column, rest) = rest.split_once(')')?;
    let percent = percent.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some((column.trim(), percent, rest))
}

/// The 95% interval of a share.
fn interval(holding: usize, of: usize) -> (f64, f64) {
    let solve = |is_low: bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            // The lower end makes `holding` or more as unlikely as the tail, the upper one `holding` or fewer.
            let is_below = match is_low {
                true => 1.0 - at_most(holding - 1, of, middle) < TAIL,
                false => at_most(holding, of, middle) > TAIL,
            };
            if is_below { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    };
    let low = if holding == 0 { 0.0 } else { solve(true) };
    let high = if holding == of { 1.0 } else { solve(false) };
    (low, high)
}

/// The probability of at most `most` successes in `of` independent trials.
fn at_most(most: usize, of: usize, probability: f64) -> f64 {
    let n = of as f64;
    let log_of = |k: usize| {
        let k = k as f64;
        libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
            + k * probability.ln()
            + (n - k) * (-probability).ln_1p()
    };
    (0..=most).map(|k| log_of(k).exp()).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(text: &str) -> Result<Option<Chance>, String> {
        Chance::parse(text, |_| Ok(DataType::Float64)).map_err(|error| error.to_string())
    }

    #[test]
    fn shares_and_quantiles_are_read() {
        let found = chance("P(wait_s_mean <= 3600) >= 0.95").expect("a condition").expect("of a share");
        assert_eq!((found.condition.column.as_str(), found.op, found.share), ("wait_s_mean", Op::AtLeast, 0.95));
        assert_eq!(chance("p95(wait_s_mean) <= 3600").expect("a quantile"), Some(found));
        let least = chance("p10(utilization) >= 0.5").expect("a quantile").expect("of a share");
        assert_eq!((least.op, least.share, least.condition.op), (Op::AtLeast, 0.9, Op::AtLeast));
        assert_eq!(chance("wait_s_mean <= 3600"), Ok(None));
        assert_eq!(Chance::column_of("P( wait_s_mean<=1)>0.5"), Some("wait_s_mean"));
        assert_eq!(Chance::column_of("power_w <= 1"), None);
        for wrong in ["P(x <= 1)", "P(x <= 1) = 0.5", "P(x <= 1) >= 95", "P(x) >= 0.5", "p95(x) = 3"] {
            assert!(chance(wrong).is_err(), "{wrong}");
        }
    }

    /// Intervals that SciPy 1.17 gives: `binomtest(k, n).proportion_ci(0.95, "exact")`.
    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        for (holding, of, low, high) in [
            (0, 10, 0.0, 0.308_497_11),
            (10, 10, 0.691_502_89, 1.0),
            (19, 20, 0.751_267_24, 0.998_734_91),
            (72, 80, 0.812_434_89, 0.955_829_06),
        ] {
            let found = interval(holding, of);
            assert!((found.0 - low).abs() < 1e-7 && (found.1 - high).abs() < 1e-7, "{holding} of {of}: {found:?}");
        }
    }

    #[test]
    fn a_share_is_certain_once_its_interval_is_on_one_side() {
        let chance = chance("P(x <= 1) >= 0.95").expect("a condition").expect("of a share");
        let verdict = |holding: usize, of: usize| {
            let values: Vec<f64> = (0..of).map(|at| if at < holding { 1.0 } else { 2.0 }).collect();
            let (estimate, verdict) = chance.judge(&values, false);
            assert_eq!(estimate.mean, Some(holding as f64 / of as f64));
            (verdict.holds, verdict.is_certain)
        };
        assert_eq!(verdict(20, 20), (true, false), "0.832 is possible");
        assert_eq!(verdict(72, 72), (true, true));
        assert_eq!(verdict(90, 100), (false, false), "0.951 is possible");
        assert_eq!(verdict(80, 100), (false, true));
        assert_eq!(chance.judge(&[0.5], true).1, Verdict { holds: true, is_certain: true });
    }
}
