//! Searches that run few tasks: which candidates to try next, from what is known of the tried ones.
//!
//! A search is a function of what is known. It keeps no state of its own, so that it continues wherever rows are.

mod bisection;
mod constraint;
mod halving;

pub use bisection::{Exception, bisection, exception};
pub use constraint::Constraint;
pub use halving::{Score, anchor, halving, rung, seeds_of_rungs};

use powersweep_engine::seeds::Dependence;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::cell::real;
use crate::replicates::Method;
use crate::stats::{mean, standard_error};
use crate::{Cell, Condition};

/// What a search needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<T> {
    /// These candidates must be tried, or tried with more seeds.
    Try(Vec<T>),
    /// The best candidate.
    Found(usize),
    /// No candidate satisfies the conditions.
    Nothing,
}

/// A mean over seeds, or a share of them, with its 95% interval where there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The mean or share; `None` without values.
    pub mean: Option<f64>,
    /// The ends of the interval: Student's of a mean, Clopper and Pearson's of a share. `None` where there is no interval.
    pub ends: Option<(f64, f64)>,
}

/// `mean`, `low95` and `high95`, and half the width of the interval as `ci95`.
impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Estimate", 4)?;
        fields.serialize_field("mean", &self.mean.map(real))?;
        fields.serialize_field("ci95", &self.ends.map(|(low, high)| real((high - low) / 2.0)))?;
        fields.serialize_field("low95", &self.ends.map(|(low, _)| real(low)))?;
        fields.serialize_field("high95", &self.ends.map(|(_, high)| real(high)))?;
        fields.end()
    }
}

impl Estimate {
    /// The estimate from the values of seeds with this dependence, in any order; NaN counts as no value. Seeds that are alike are
    /// one observation.
    pub fn of(values: impl Iterator<Item = f64>, seeds: Dependence) -> Estimate {
        let mut values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let error = standard_error(&values).filter(|_| seeds != Dependence::Alike);
        let half_width = error.and_then(|error| Some(Method::of(seeds, 95).errors(values.len())? * error));
        Estimate::around(mean(&values), half_width)
    }

    /// A mean with half the width of its interval.
    pub fn around(mean: Option<f64>, half_width: Option<f64>) -> Estimate {
        Estimate { mean, ends: mean.zip(half_width).map(|(mean, half)| (mean - half, mean + half)) }
    }

    /// Estimates the mean of a candidate over all seeds from its values with the first seeds. `anchor` has the values of
    /// another candidate with all seeds, and `there` its values of the tasks of `values`: the first seeds, or tasks of a shorter
    /// workload. The estimate is the anchor's mean plus the mean difference between both candidates in these tasks; its interval is
    /// the interval of the mean difference. Candidates that simulate the same jobs differ much less from each other than the
    /// jobs of different seeds do.
    pub fn across(values: &[f64], there: &[f64], anchor: &[f64], seeds: Dependence) -> Estimate {
        let of_anchor = Estimate::of(anchor.iter().copied(), seeds);
        let differences = Estimate::of(values.iter().zip(there).map(|(value, anchor)| value - anchor), seeds);
        let mean = of_anchor.mean.zip(differences.mean).map(|(anchor, difference)| anchor + difference);
        let half_width = differences.ends.map(|(low, high)| (high - low) / 2.0);
        Estimate::around(mean, half_width)
    }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds for the mean.
    pub holds: bool,
    /// Whether the interval of the mean lies on one side of the limit. Values of a random simulation with one seed have no
    /// interval, and are uncertain.
    pub is_certain: bool,
}

impl Verdict {
    /// The verdict of a condition on an estimate. `is_whole`: the values are all that there are, such as the one task of a
    /// log.
    pub fn of(condition: &Condition, estimate: Estimate, is_whole: bool) -> Verdict {
        let holds_at = |value: Option<f64>| condition.holds(&value.map_or(Cell::Null, Cell::Real));
        let holds = holds_at(estimate.mean);
        let is_certain = match estimate.ends {
            Some((low, high)) => [low, high].iter().all(|end| holds_at(Some(*end)) == holds),
            None => is_whole,
        };
        Verdict { holds, is_certain }
    }

    /// The verdict in one word.
    pub fn word(self) -> &'static str {
        match (self.holds, self.is_certain) {
            (_, false) => "uncertain",
            (true, true) => "feasible",
            (false, true) => "infeasible",
        }
    }

    /// The verdict of several conditions together.
    pub fn all(verdicts: impl Iterator<Item = Verdict> + Clone) -> Verdict {
        let holds = verdicts.clone().all(|verdict| verdict.holds);
        let is_certain = match holds {
            true => verdicts.clone().all(|verdict| verdict.is_certain),
            false => verdicts.clone().any(|verdict| !verdict.holds && verdict.is_certain),
        };
        Verdict { holds, is_certain }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::Error;

    fn condition(text: &str) -> Condition {
        Condition::parse::<Error>(text, |_| Ok(DataType::Float64)).expect(text)
    }

    fn verdict(text: &str, values: &[f64], is_whole: bool) -> (bool, bool) {
        let found =
            Verdict::of(&condition(text), Estimate::of(values.iter().copied(), Dependence::Independent), is_whole);
        (found.holds, found.is_certain)
    }

    #[test]
    fn an_interval_across_the_limit_is_uncertain() {
        // 5 ± 2.48
        let values = [4.0, 5.0, 6.0];
        assert_eq!(verdict("x <= 8", &values, false), (true, true));
        assert_eq!(verdict("x <= 7", &values, false), (true, false));
        assert_eq!(verdict("x <= 4", &values, false), (false, false));
        assert_eq!(verdict("x <= 2", &values, false), (false, true));
        assert_eq!(verdict("x > 2", &values, false), (true, true));
    }

    #[test]
    fn an_anchor_gives_the_mean_of_seeds_that_did_not_run() {
        let anchor = [10.0, 20.0, 60.0];
        let found = Estimate::across(&[12.0, 22.0], &anchor, &anchor, Dependence::Independent);
        assert_eq!((found.mean, found.ends), (Some(32.0), Some((32.0, 32.0))));
        assert_eq!(
            Estimate::across(&[12.0], &anchor, &anchor, Dependence::Independent),
            Estimate { mean: Some(32.0), ends: None }
        );
        assert_eq!(Estimate::across(&[f64::NAN], &anchor, &anchor, Dependence::Independent).mean, None);
    }

    #[test]
    fn one_value_is_certain_only_where_there_are_no_others() {
        assert_eq!(verdict("x <= 8", &[5.0], false), (true, false));
        assert_eq!(verdict("x <= 8", &[5.0], true), (true, true));
        assert_eq!(verdict("x <= 8", &[5.0, 5.0], false), (true, true));
        assert_eq!(verdict("x <= 8", &[f64::NAN], true), (false, true));
    }

    #[test]
    fn one_certain_failure_decides() {
        let of = |holds, is_certain| Verdict { holds, is_certain };
        let all = |verdicts: &[Verdict]| Verdict::all(verdicts.iter().copied());
        assert_eq!(all(&[]), of(true, true));
        assert_eq!(all(&[of(true, false), of(true, true)]), of(true, false));
        assert_eq!(all(&[of(true, false), of(false, true)]), of(false, true));
        assert_eq!(all(&[of(true, true), of(false, false)]), of(false, false));
    }
}
