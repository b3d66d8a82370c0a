//! A selection: the rows of a value, and the operations on them.

use std::collections::BTreeMap;

use powersweep_dataset::Stat;
use powersweep_dataset::stats::standard_error;
use powersweep_engine::Value;
use powersweep_results::Table;
use serde::{Deserialize, Deserializer};

/// The name of a column that every list column has besides the columns of its table: the place of an element, from 1.
pub(crate) const ELEMENT: &str = "element";

/// The column of a repetition that chooses a manifest.
pub(crate) const MANIFEST: &str = "manifest";

/// Conditions: a column and the values one of which its cell must have. Every number is a real, also one of an integer
/// column.
pub(crate) type Conditions = BTreeMap<String, Vec<Value>>;

/// A value of a condition as a file has it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Bool(bool),
    Real(f64),
    Text(String),
}

impl From<Cell> for Value {
    fn from(cell: Cell) -> Value {
        match cell {
            Cell::Bool(value) => Value::Bool(value),
            Cell::Real(number) => Value::Real(number),
            Cell::Text(text) => Value::Text(text),
        }
    }
}

/// Conditions as a file has them.
pub(crate) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Conditions, D::Error> {
    let columns: BTreeMap<String, Vec<Cell>> = Deserialize::deserialize(deserializer)?;
    let one = |(column, cells): (String, Vec<Cell>)| (column, cells.into_iter().map(Value::from).collect());
    Ok(columns.into_iter().map(one).collect())
}

/// The values of one repetition, by column.
pub(crate) type Fixed = Vec<(String, Value)>;

/// A function from the values of several rows to one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum Aggregate {
    /// The value of the only row. It has no name: an unknown name reads as it.
    #[default]
    Only,
    /// A statistic of the values.
    Stat(Stat),
    /// The standard error of the mean of independent values.
    StandardError,
    /// The greatest ratio of two neighbouring values, the larger over the smaller; ratios with a zero do not count.
    /// Only for groups, which have an order.
    GreatestChange,
}

impl From<String> for Aggregate {
    fn from(name: String) -> Aggregate {
        let change = (name == "greatest-change").then_some(Aggregate::GreatestChange);
        change.or_else(|| Aggregate::parse(&name)).unwrap_or_default()
    }
}

impl Aggregate {
    pub(crate) const COUNT: Aggregate = Aggregate::Stat(Stat::Count);

    fn parse(name: &str) -> Option<Aggregate> {
        let percent = |text: &str| text.parse::<u8>().ok().filter(|p| *p <= 100);
        Some(Aggregate::Stat(match name {
            "mean" => Stat::Mean,
            "sum" => Stat::Sum,
            "min" => Stat::Min,
            "max" => Stat::Max,
            "count" => Stat::Count,
            "standard-error" => return Some(Aggregate::StandardError),
            _ => Stat::Percentile(f64::from(name.strip_prefix('p').and_then(percent)?)),
        }))
    }

    /// The aggregate of the values. Except for a change they are sorted first, so that the order of rows does not
    /// matter.
    pub(crate) fn of(self, mut values: Vec<f64>) -> Result<f64, String> {
        if self != Aggregate::GreatestChange {
            values.sort_by(f64::total_cmp);
        }
        let n = values.len();
        if values.is_empty() && self != Aggregate::COUNT {
            return Err("there is no row".to_owned());
        }
        Ok(match self {
            Aggregate::Only if n == 1 => values[0],
            Aggregate::Only => return Err(format!("there are {n} rows where one was expected")),
            Aggregate::Stat(stat) => stat.of(&values).ok_or("there is no row")?,
            Aggregate::StandardError => standard_error(&values).ok_or("one value has no standard error")?,
            Aggregate::GreatestChange => {
                let changes = values.windows(2).map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1]));
                let greatest = changes.filter(|change| change.is_finite()).max_by(f64::total_cmp);
                greatest.ok_or("there are no two neighbours to compare")?
            }
        })
    }
}

/// A step that aggregates groups.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename = "a step")]
pub(crate) struct Step {
    /// An aggregate of a selection, or `greatest-change`: the greatest ratio of neighbouring values along the one column of
    /// `over`.
    pub(crate) aggregate: Aggregate,
    /// The columns over which the groups are aggregated; all without it.
    pub(crate) over: Vec<String>,
}

/// The rows of a value, and the operations on them. They apply in the order of the fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a selection")]
pub(crate) struct Selection {
    /// The name of a set of conditions; `where` adds to them and overrides them.
    pub(crate) runs: Option<String>,
    /// The conditions of `runs`.
    #[serde(skip)]
    pub(crate) of_runs: Option<Conditions>,
    /// The experiment that has the rows; the default is that of `runs`, then the first of the file.
    pub(crate) manifest: Option<String>,
    /// The table that has the rows; the default is `tasks`.
    pub(crate) table: Option<String>,
    /// The column of the value: of the table, else of the task in `tasks`.
    pub(crate) column: Option<String>,
    /// Conditions: a column and its value, or a list of alternative values; `"unlimited"` is infinity. A list column has one
    /// row an element, and the column `element` is the place of the element, from 1.
    #[serde(rename = "where", deserialize_with = "conditions")]
    pub(crate) conditions: Conditions,
    /// Columns whose inherited conditions stay although `runs` is set.
    pub(crate) same: Vec<String>,
    /// Columns by which the rows are grouped; each group has a value.
    pub(crate) by: Option<Vec<String>>,
    /// The value of a group's rows: `mean`, `sum`, `min`, `max`, `count`, `standard-error` (of the mean), or a percentile
    /// such as `p50`. Without it there must be exactly one row.
    pub(crate) aggregate: Option<Aggregate>,
    /// Another selection; if it is grouped, the operation works group by group.
    pub(crate) divided_by: Option<Box<Selection>>,
    /// Another selection, which is subtracted.
    pub(crate) minus: Option<Box<Selection>>,
    /// Whether it is one minus the value.
    pub(crate) one_minus: Option<bool>,
    /// A factor, such as 100 for percent.
    pub(crate) times: Option<f64>,
    /// Whether it is the absolute value.
    pub(crate) absolute: Option<bool>,
    /// The last steps, which aggregate groups.
    pub(crate) then: Option<Vec<Step>>,
}

impl Selection {
    /// A value after `one_minus`, `times` and `absolute`.
    pub(crate) fn changed(&self, value: f64) -> f64 {
        let value = if self.one_minus == Some(true) { 1.0 - value } else { value };
        let value = value * self.times.unwrap_or(1.0);
        if self.absolute == Some(true) { value.abs() } else { value }
    }

    /// The column whose values the value is, or their mean or another statistic, unless an operation changes them.
    pub(crate) fn unchanged(&self) -> Option<&str> {
        let is_other = self.divided_by.is_some() || self.minus.is_some() || self.then.is_some() || self.times.is_some();
        let is_changed = is_other || self.one_minus == Some(true) || self.aggregate == Some(Aggregate::COUNT);
        // The name of a value of a series says nothing.
        self.column.as_deref().filter(|name| !is_changed && *name != "value")
    }

    /// The table of the rows; that of the selection around it without one.
    pub(crate) fn rows(&self, outer: Table) -> Table {
        self.table.as_deref().and_then(Table::from_name).unwrap_or(outer)
    }

    /// This selection, overridden by the keys of `other`. If `other` names runs, only the conditions on its `same`
    /// columns stay.
    pub(crate) fn with(&self, other: &Selection) -> Selection {
        let mut merged = self.clone();
        if other.runs.is_some() {
            merged.runs.clone_from(&other.runs);
            merged.of_runs.clone_from(&other.of_runs);
            merged.conditions.retain(|column, _| other.same.contains(column));
        }
        merged.conditions.extend(other.conditions.clone());
        merged.manifest = other.manifest.clone().or(merged.manifest);
        merged.table = other.table.clone().or(merged.table);
        merged.column = other.column.clone().or(merged.column);
        merged.by = other.by.clone().or(merged.by);
        merged.aggregate = other.aggregate.or(merged.aggregate);
        merged.divided_by = other.divided_by.clone().or(merged.divided_by);
        merged.minus = other.minus.clone().or(merged.minus);
        merged.one_minus = other.one_minus.or(merged.one_minus);
        merged.times = other.times.or(merged.times);
        merged.absolute = other.absolute.or(merged.absolute);
        merged.then = other.then.clone().or(merged.then);
        merged
    }

    /// This selection with one more condition.
    pub(crate) fn at(&self, column: &str, value: &Value) -> Selection {
        let mut selection = self.clone();
        selection.conditions.insert(column.to_owned(), vec![value.clone()]);
        selection
    }

    /// Columns by which the value is still grouped after all steps.
    pub(crate) fn left_grouped(&self) -> Vec<String> {
        let mut by = self.by.clone().unwrap_or_default();
        for step in self.then.iter().flatten() {
            by.retain(|name| !step.over.is_empty() && !step.over.contains(name));
        }
        by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregates_by_hand() {
        let of = |name: &str| Aggregate::parse(name).map(|a| a.of(vec![4.0, 1.0, 2.0]).expect("there are values"));
        assert_eq!(of("mean"), Some(7.0 / 3.0));
        assert_eq!((of("sum"), of("min"), of("max"), of("count")), (Some(7.0), Some(1.0), Some(4.0), Some(3.0)));
        assert_eq!((of("p0"), of("p50"), of("p75"), of("p100")), (Some(1.0), Some(2.0), Some(3.0), Some(4.0)));
        assert_eq!((of("p101"), of("median"), of("")), (None, None, None));
        // Squares of 5/3, 4/3 and 1/3 are 42/9, over 2 and over 3.
        assert!((of("standard-error").expect("it is one") - (42.0_f64 / 9.0 / 6.0).sqrt()).abs() < 1e-15);
        assert!(Aggregate::StandardError.of(vec![1.0]).is_err() && of("greatest-change").is_none());
        assert_eq!(Aggregate::GreatestChange.of(vec![2.0, 4.0, 1.0, 0.0, 9.0]), Ok(4.0));
        assert!(Aggregate::GreatestChange.of(vec![1.0]).is_err());
        assert!(Aggregate::Only.of(vec![1.0, 2.0]).is_err() && Aggregate::Stat(Stat::Mean).of(vec![]).is_err());
        assert_eq!(Aggregate::COUNT.of(vec![]), Ok(0.0));
    }
}
