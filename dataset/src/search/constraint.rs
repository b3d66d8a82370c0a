//! Constraints on the seeds of a combination of parameters: on a mean, `wait_s_mean <= 3600`, or on the share of seeds,
//! `P(wait_s_mean <= 3600) >= 0.95`.

use arrow::datatypes::DataType;

use super::{Estimate, Verdict};
use crate::error::{Error, usage};
use crate::rows::is_number;
use crate::{Cell, Condition, Op};

/// Halvings of the interval in which an end of a share's interval lies.
const HALVINGS: usize = 60;
/// The probability beyond each end of a 95% interval.
const TAIL: f64 = 0.025;

/// A condition on the seeds of a combination of parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// The constraint as it was written; of a quantile, the condition on a share that it stands for.
    pub text: String,
    /// The condition on the mean of a column over the seeds; with a share, on the value of each seed.
    pub condition: Condition,
    /// How the share of the seeds that satisfy the condition is compared (`<`, `<=`, `>` or `>=`), and with which share from 0
    /// to 1. `None` for a condition on the mean.
    pub share: Option<(Op, f64)>,
    /// Whether the column has numbers: texts have no mean.
    pub has_mean: bool,
}

impl Constraint {
    /// The column that a constraint names.
    pub fn column_of(text: &str) -> &str {
        let inner = parts(text).map(|(inner, _)| inner).or_else(|| quantile(text).map(|(column, ..)| column));
        Condition::column_of(inner.unwrap_or(text))
    }

    /// Reads `P(CONDITION) >= SHARE`, or a condition on a mean. `p95(COLUMN) <= NUMBER` is `P(COLUMN <= NUMBER) >= 0.95`, and
    /// `p5(COLUMN) >= NUMBER` is `P(COLUMN >= NUMBER) >= 0.95`.
    ///
    /// # Errors
    /// The condition or the share is wrong.
    pub fn parse(text: &str, type_of: impl FnOnce(&str) -> Result<DataType, Error>) -> Result<Constraint, Error> {
        let text = text.trim();
        let mut has_mean = false;
        let type_of = |name: &str| type_of(name).inspect(|of| has_mean = is_number(of));
        let mut text = text.to_owned();
        let (condition, share) = if let Some((column, percent, rest)) = quantile(&text) {
            let condition = Condition::parse::<Error>(&format!("{column}{rest}"), type_of)?;
            let share = match condition.op {
                Op::Less | Op::AtMost => percent / 100.0,
                Op::Greater | Op::AtLeast => 1.0 - percent / 100.0,
                Op::Equal | Op::NotEqual => {
                    return Err(usage(format!("`{text}`: a quantile is compared by < <= > or >=")));
                }
            };
            // Its values are shares, under a name that says so.
            text = format!("P({column}{rest}) >= {}", (share * 1e12).round() / 1e12);
            (condition, Some((Op::AtLeast, share)))
        } else if let Some((inner, rest)) = parts(&text) {
            (Condition::parse::<Error>(inner, type_of)?, Some(share(&text, rest)?))
        } else {
            (Condition::parse::<Error>(&text, type_of)?, None)
        };
        Ok(Constraint { text, condition, share, has_mean })
    }

    /// The name of the constrained quantity: the column of a mean, the whole text of a share.
    pub fn name(&self) -> &str {
        if self.share.is_some() { &self.text } else { &self.condition.column }
    }

    /// The limit of the constrained quantity; `None` for a text.
    pub fn limit(&self) -> Option<f64> {
        self.share.map(|(_, share)| share).or_else(|| self.condition.value.number())
    }

    /// The least number of seeds that can make a share certain: all of them satisfy the condition, or none of them where few may.
    /// Infinite where no number can; `None` for a condition on the mean.
    pub fn seeds_min(&self) -> Option<f64> {
        let (op, limit) = self.share?;
        let most = if matches!(op, Op::AtLeast | Op::Greater) { limit } else { 1.0 - limit };
        Some((TAIL.ln() / most.ln()).ceil().abs().max(1.0))
    }

    /// The share of the values that satisfy the condition, with its interval, and the verdict; `None` for a
    /// condition on the mean. The interval of Clopper & Pearson (1934) contains the true share in at least 95 of 100
    /// cases. `is_whole`: the values are all that there are.
    pub fn judge_share(&self, values: &[f64], is_whole: bool) -> Option<(Estimate, Verdict)> {
        let (op, limit) = self.share?;
        let holding = values.iter().filter(|value| self.condition.holds(&Cell::Real(**value))).count();
        if values.is_empty() {
            return Some((Estimate::default(), Verdict { holds: false, is_certain: is_whole }));
        }
        let (low, high) = interval(holding, values.len());
        let share = holding as f64 / values.len() as f64;
        let holds_at = |share: f64| op.holds(share.total_cmp(&limit));
        let holds = holds_at(share);
        let is_certain = is_whole || (holds_at(low) == holds && holds_at(high) == holds);
        let estimate = Estimate { mean: Some(share), ends: (!is_whole).then_some((low, high)) };
        Some((estimate, Verdict { holds, is_certain }))
    }
}

/// The comparison of a share of seeds that follows `P(...)`.
fn share(text: &str, rest: &str) -> Result<(Op, f64), Error> {
    // The right side is read as a condition on a number.
    let outer = Condition::parse::<Error>(&format!("share{rest}"), |_| Ok(DataType::Float64));
    match outer.ok().and_then(|outer| Some((outer.op, outer.value.number()?))) {
        Some((op, share)) if (0.0..=1.0).contains(&share) && !matches!(op, Op::Equal | Op::NotEqual) => Ok((op, share)),
        _ => Err(usage(format!(
            "`{text}`: a share of seeds is compared by < <= > or >= with a number from 0 to 1, such as P(wait_s_mean <= 3600) >= 0.95"
        ))),
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

    fn constraint(text: &str) -> Result<Constraint, String> {
        Constraint::parse(text, |_| Ok(DataType::Float64)).map_err(|error| error.to_string())
    }

    #[test]
    fn shares_and_quantiles_are_read() {
        let found = constraint("P(wait_s_mean <= 3600) >= 0.95").expect("of a share");
        assert_eq!((found.condition.column.as_str(), found.share), ("wait_s_mean", Some((Op::AtLeast, 0.95))));
        let of_quantile = constraint("p95(wait_s_mean) <= 3600").expect("a quantile");
        assert_eq!(
            (&of_quantile, of_quantile.name()),
            (&found, "P(wait_s_mean <= 3600) >= 0.95"),
            "the shown number is a share"
        );
        let least = constraint("p10(utilization) >= 0.5").expect("a quantile");
        assert_eq!((least.share, least.condition.op), (Some((Op::AtLeast, 0.9)), Op::AtLeast));
        let mean = constraint(" wait_s_mean <= 3600").expect("of a mean");
        assert_eq!((mean.name(), mean.limit(), mean.share), ("wait_s_mean", Some(3600.0), None));
        assert_eq!((found.name(), found.limit()), ("P(wait_s_mean <= 3600) >= 0.95", Some(0.95)));
        assert_eq!(Constraint::column_of("P( wait_s_mean<=1)>0.5"), "wait_s_mean");
        assert_eq!(Constraint::column_of("power_w <= 1"), "power_w");
        for wrong in ["P(x <= 1)", "P(x <= 1) = 0.5", "P(x <= 1) >= 95", "P(x) >= 0.5", "p95(x) = 3"] {
            assert!(constraint(wrong).is_err(), "{wrong}");
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
        let constraint = constraint("P(x <= 1) >= 0.95").expect("of a share");
        let judged = |values: &[f64], is_whole| constraint.judge_share(values, is_whole).expect("of a share");
        let verdict = |holding: usize, of: usize| {
            let values: Vec<f64> = (0..of).map(|at| if at < holding { 1.0 } else { 2.0 }).collect();
            let (estimate, verdict) = judged(&values, false);
            assert_eq!((estimate.mean, estimate.ends), (Some(holding as f64 / of as f64), Some(interval(holding, of))));
            (verdict.holds, verdict.is_certain)
        };
        assert_eq!(verdict(20, 20), (true, false), "0.832 is possible");
        assert_eq!(verdict(72, 72), (true, true));
        assert_eq!(constraint.seeds_min(), Some(72.0));
        let least = |text: &str| super::tests::constraint(text).ok().and_then(|of| of.seeds_min());
        assert_eq!(
            ["P(x <= 1) <= 0.05", "P(x <= 1) >= 1", "P(x <= 1) >= 0", "x <= 1"].map(least),
            [Some(72.0), Some(f64::INFINITY), Some(1.0), None]
        );
        assert_eq!(verdict(90, 100), (false, false), "0.951 is possible");
        assert_eq!(verdict(80, 100), (false, true));
        assert_eq!(judged(&[0.5], true).1, Verdict { holds: true, is_certain: true });
    }
}
