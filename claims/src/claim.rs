//! Claims of a paper.

use std::collections::BTreeMap;

use powersweep_engine::Value;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::selection::{Conditions, Fixed, MANIFEST, Selection, conditions};

/// The claims of one paper.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a claims file")]
pub struct Claims {
    /// The version of the format, 1.
    pub(crate) version: f64,
    /// Short name of the paper, such as `etinski2010`.
    pub(crate) paper: String,
    /// Authors, year and title.
    pub(crate) title: String,
    /// The experiments; a selection that names none uses the first.
    pub(crate) manifests: Vec<String>,
    /// Named sets of conditions: `[runs.NAME]` has columns with their values, and may have `manifest`.
    pub(crate) runs: BTreeMap<String, Runs>,
    /// The claims, one `[[claims]]` each.
    pub(crate) claims: Vec<Claim>,
    /// The figures and tables, if they are in the same file.
    #[serde(rename = "presets", deserialize_with = "is_there")]
    pub(crate) has_presets: bool,
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// A set of conditions. Its key `manifest` is the experiment that has the rows; the other keys are columns.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    pub(crate) manifest: Option<String>,
    pub(crate) conditions: Conditions,
}

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Runs, D::Error> {
        let mut conditions = conditions(deserializer)?;
        let manifest = conditions.remove(MANIFEST).and_then(|names| Some(names.first()?.to_string()));
        Ok(Runs { manifest, conditions })
    }
}

/// One claim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a claim")]
pub(crate) struct Claim {
    /// A name that no other claim of the file has.
    pub(crate) id: String,
    /// The claim as a sentence. `{COLUMN}` stands for the value of a column of `per`.
    pub(crate) text: String,
    /// The place in the paper, such as `Table 1`.
    pub(crate) source: Option<String>,
    /// In place of `source`: what a number that no paper prints is taken from, such as `reading`, `exact solution` or
    /// `conservation`. Such a claim is a guard.
    pub(crate) guard: Option<String>,
    /// Whether the claim must hold. The default is true.
    #[serde(default = "yes")]
    pub(crate) demanded: bool,
    /// The reason why the claim is not demanded: required then.
    pub(crate) why: Option<String>,
    /// Repetitions: every combination of the values of a table of columns, or a list of tables. The key `manifest` chooses
    /// an experiment.
    pub(crate) per: Vec<Repetition>,
    /// The conditions of each repetition; one empty entry for a claim that is not repeated.
    #[serde(skip)]
    pub(crate) repetitions: Vec<Fixed>,
    /// Columns: `less_than`, `greater_than` and `ascending` compare group by group. The mean difference decides, and is shown with its
    /// 95% interval if `seed` is one of them.
    pub(crate) paired: Vec<String>,
    /// A selection: our value.
    pub(crate) value: Selection,
    /// The published number: one for all repetitions, or one each, as in the other lists of numbers.
    pub(crate) published: Vec<f64>,
    /// The number of a guard, in place of `published`.
    pub(crate) expected: Vec<f64>,
    /// The tolerance of the published or expected number.
    pub(crate) within: Option<Within>,
    /// Least value.
    pub(crate) at_least: Vec<f64>,
    /// Greatest value.
    pub(crate) at_most: Vec<f64>,
    /// A number that the value exceeds.
    pub(crate) above: Vec<f64>,
    /// A number that exceeds the value.
    pub(crate) below: Vec<f64>,
    /// A selection whose value is greater. It inherits the keys of `value` that it does not set.
    pub(crate) less_than: Option<Box<Selection>>,
    /// A selection whose value is smaller. It inherits the keys of `value` that it does not set.
    pub(crate) greater_than: Option<Box<Selection>>,
    /// A column with a list of values, under which our values increase strictly.
    #[serde(deserialize_with = "conditions")]
    pub(crate) ascending: Conditions,
}

pub(crate) fn yes() -> bool {
    true
}

/// Repetitions of a claim.
#[derive(Debug, Clone, Deserialize)]
pub(crate) enum Repetition {
    Table(#[serde(deserialize_with = "conditions")] Conditions),
    /// Not a table.
    One(IgnoredAny),
}

/// The tolerance of a published or expected number: the largest of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "`within`")]
pub(crate) struct Within {
    /// A part of the number: 0.05 is 5%.
    pub(crate) relative: f64,
    /// A number in the unit of the value.
    pub(crate) absolute: f64,
    /// A selection whose value is the tolerance, such as the half-width of a confidence interval. It inherits the keys of
    /// `value` that it does not set.
    pub(crate) of: Option<Box<Selection>>,
}

/// A condition on a value. Numbers are one for all repetitions, or one each.
#[derive(Debug, Clone)]
pub(crate) enum Comparison<'a> {
    /// Close to a published or expected number.
    Within { stated: &'a [f64], within: &'a Within },
    /// A number that is shown beside ours, without a tolerance.
    Shown(&'a [f64]),
    /// A number on one side of the value. `holds`: whether our value and the number satisfy the sign.
    Bound { numbers: &'a [f64], sign: &'static str, holds: fn(f64, f64) -> bool },
    /// A value of our own, with the sign between ours and it.
    Other { other: &'a Selection, sign: &'static str },
    /// The values under these conditions on a column increase strictly.
    Ascending { column: &'a str, places: &'a [Value] },
}

impl Claims {
    /// The paper's short name.
    pub fn paper(&self) -> &str {
        &self.paper
    }

    /// Authors, year and title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Number of claims; each repetition counts.
    pub fn count(&self, demanded_only: bool) -> usize {
        self.chosen(demanded_only).map(|claim| claim.repetitions.len()).sum()
    }

    /// The claims, or only those that are demanded.
    pub(crate) fn chosen(&self, demanded_only: bool) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| claim.demanded || !demanded_only)
    }
}

impl Claim {
    /// The comparisons of the claim, all of which must hold.
    pub(crate) fn comparisons<'a>(&'a self) -> Vec<Comparison<'a>> {
        let stated = numbers(&self.published).or_else(|| numbers(&self.expected)).map(|stated| match &self.within {
            Some(within) => Comparison::Within { stated, within },
            None => Comparison::Shown(stated),
        });
        let bound = |list, sign, holds| numbers(list).map(|numbers| Comparison::Bound { numbers, sign, holds });
        let other =
            |other: &'a Option<Box<Selection>>, sign| Some(Comparison::Other { other: other.as_deref()?, sign });
        let found = [
            stated,
            bound(&self.at_least, "≥", |ours, bound| ours >= bound),
            bound(&self.at_most, "≤", |ours, bound| ours <= bound),
            bound(&self.above, ">", |ours, bound| ours > bound),
            bound(&self.below, "<", |ours, bound| ours < bound),
            other(&self.less_than, "<"),
            other(&self.greater_than, ">"),
            self.ascending.first_key_value().map(|(column, places)| Comparison::Ascending { column, places }),
        ];
        found.into_iter().flatten().collect()
    }
}

fn numbers(list: &[f64]) -> Option<&[f64]> {
    (!list.is_empty()).then_some(list)
}

impl<'a> Comparison<'a> {
    /// The numbers of the comparison.
    pub(crate) fn numbers(&self) -> Option<&'a [f64]> {
        match self {
            Comparison::Within { stated: numbers, .. }
            | Comparison::Shown(numbers)
            | Comparison::Bound { numbers, .. } => Some(numbers),
            Comparison::Other { .. } | Comparison::Ascending { .. } => None,
        }
    }

    /// The selection that the value is compared with, or that gives the tolerance.
    pub(crate) fn other(&self) -> Option<&'a Selection> {
        match self {
            Comparison::Other { other, .. } => Some(other),
            Comparison::Within { within, .. } => within.of.as_deref(),
            _ => None,
        }
    }
}
