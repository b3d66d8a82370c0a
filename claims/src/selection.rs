//! A selection: the rows of a value, and the operations on them.

use std::collections::BTreeMap;
use std::ops::Range;

use powersweep_engine::Value;
use powersweep_engine::facts::Kind;
use powersweep_experiments::Problem;
use powersweep_experiments::reading::suggestion;
use powersweep_results::Table;
use toml::de::DeTable;

use crate::read::{Conditions, ELEMENT, Item, Reader, column_of};

/// A function from the values of several rows to one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aggregate {
    /// The value of the only row.
    Only,
    Mean,
    Sum,
    Min,
    Max,
    Count,
    /// The standard error of the mean of independent values.
    StandardError,
    /// The greatest ratio of two neighbouring values, the larger over the smaller; ratios with a zero do not count.
    /// Only for groups, which have an order.
    GreatestChange,
    /// The quantile of this order, 0 to 1, linear between order statistics.
    Quantile(f64),
}

impl Aggregate {
    fn parse(name: &str) -> Option<Aggregate> {
        let percent = |text: &str| text.parse::<u8>().ok().filter(|p| *p <= 100);
        Some(match name {
            "mean" => Aggregate::Mean,
            "sum" => Aggregate::Sum,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            "count" => Aggregate::Count,
            "standard-error" => Aggregate::StandardError,
            _ => Aggregate::Quantile(f64::from(name.strip_prefix('p').and_then(percent)?) / 100.0),
        })
    }

    /// The aggregate of the values. Except for a change they are sorted first, so that the order of rows does not
    /// matter.
    pub(crate) fn of(self, mut values: Vec<f64>) -> Result<f64, String> {
        if self != Aggregate::GreatestChange {
            values.sort_by(f64::total_cmp);
        }
        let n = values.len();
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
            return if self == Aggregate::Count { Ok(0.0) } else { Err("there is no row".to_owned()) };
        };
        Ok(match self {
            Aggregate::Only if n == 1 => first,
            Aggregate::Only => return Err(format!("there are {n} rows where one was expected")),
            Aggregate::Mean => values.iter().sum::<f64>() / n as f64,
            Aggregate::Sum => values.iter().sum(),
            Aggregate::Min => first,
            Aggregate::Max => last,
            Aggregate::Count => n as f64,
            Aggregate::StandardError if n == 1 => return Err("one value has no standard error".to_owned()),
            Aggregate::StandardError => {
                let mean = values.iter().sum::<f64>() / n as f64;
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                (squares / (n - 1) as f64 / n as f64).sqrt()
            }
            Aggregate::GreatestChange => {
                let changes = values.windows(2).map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1]));
                let greatest = changes.filter(|change| change.is_finite()).max_by(f64::total_cmp);
                greatest.ok_or("there are no two neighbours to compare")?
            }
            Aggregate::Quantile(order) => {
                let at = order * (n - 1) as f64;
                let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
                low + (high - low) * at.fract()
            }
        })
    }
}

/// One step that aggregates groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) aggregate: Aggregate,
    /// The columns over which the groups are aggregated; all if `None`.
    pub(crate) over: Option<Vec<String>>,
}

/// A named set of runs.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    pub(crate) manifest: Option<String>,
    pub(crate) conditions: Conditions,
}

/// The rows of a value, and the operations on them, as a claims file states them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Conditions of `runs`.
    pub(crate) runs: Option<Conditions>,
    pub(crate) manifest: Option<String>,
    pub(crate) table: Option<Table>,
    pub(crate) column: Option<String>,
    /// Its own conditions.
    pub(crate) conditions: Conditions,
    pub(crate) same: Vec<String>,
    pub(crate) by: Option<Vec<String>>,
    pub(crate) aggregate: Option<Aggregate>,
    pub(crate) divided_by: Option<Box<Selection>>,
    pub(crate) minus: Option<Box<Selection>>,
    pub(crate) one_minus: Option<bool>,
    pub(crate) times: Option<f64>,
    pub(crate) absolute: Option<bool>,
    pub(crate) then: Option<Vec<Step>>,
}

/// The names that a selection may refer to.
pub(crate) struct Context<'a> {
    pub(crate) manifests: &'a [String],
    pub(crate) runs: &'a BTreeMap<String, Runs>,
}

const KEYS: [&str; 14] = [
    "runs",
    "manifest",
    "table",
    "column",
    "where",
    "same",
    "by",
    "aggregate",
    "divided_by",
    "minus",
    "one_minus",
    "times",
    "absolute",
    "then",
];

impl Selection {
    /// Reads a selection. `outer`: the table of the selection that this one is inside of.
    pub(crate) fn read(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>, outer: Table) -> Selection {
        reader.keys("a selection", table, &KEYS);
        let rows = rows_table(reader, table).unwrap_or(outer);
        let (runs, manifest) = runs(reader, context, table);
        let manifest = manifest_name(reader, context, table).or(manifest);
        let inner = |reader: &mut Reader, key: &str| {
            let found = reader.table(table, key)?;
            Some(Box::new(Selection::read(reader, context, found, rows)))
        };
        let (divided_by, minus) = (inner(reader, "divided_by"), inner(reader, "minus"));
        let conditions = reader.table(table, "where").map(|table| reader.conditions(rows, table, &[]));
        Selection {
            runs,
            manifest,
            table: table.get("table").map(|_| rows),
            column: value_column(reader, table, rows),
            conditions: conditions.unwrap_or_default(),
            same: names(reader, table, "same", rows).unwrap_or_default(),
            by: names(reader, table, "by", rows),
            aggregate: aggregate(reader, table),
            divided_by,
            minus,
            one_minus: reader.bool(table, "one_minus"),
            times: reader.number(table, "times"),
            absolute: reader.bool(table, "absolute"),
            then: steps(reader, table, rows),
        }
    }

    /// This selection, overridden by the keys of `other`. If `other` names runs, only the conditions on its `same`
    /// columns stay.
    pub(crate) fn with(&self, other: &Selection) -> Selection {
        let mut merged = self.clone();
        if other.runs.is_some() {
            merged.runs.clone_from(&other.runs);
            merged.conditions.retain(|column, _| other.same.contains(column));
        }
        merged.conditions.extend(other.conditions.clone());
        merged.manifest = other.manifest.clone().or(merged.manifest);
        merged.table = other.table.or(merged.table);
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

    /// A problem if the column is a list and no element is chosen, or the other way round. `fixed`: columns on which
    /// the claim sets conditions.
    pub(crate) fn elements_problem(&self, rows: Table, fixed: &[&str]) -> Option<(String, &'static str)> {
        let name = self.column.as_ref()?;
        let column = column_of(rows, name)?;
        let by = || self.by.iter().flatten().any(|name| name == ELEMENT) || fixed.contains(&ELEMENT);
        let named = self.conditions.contains_key(ELEMENT) || by();
        match (is_list(column.ty), named) {
            (true, false) if self.aggregate.is_none() => {
                Some((format!("`{name}` is a list"), "expected where = { element = 1 } too, or an `aggregate`"))
            }
            (false, true) => Some((format!("`{name}` is not a list: it has no elements"), "expected a list column")),
            _ => None,
        }
    }

    /// Columns by which the value is still grouped after all steps.
    pub(crate) fn left_grouped(&self) -> Vec<String> {
        let mut by = self.by.clone().unwrap_or_default();
        for step in self.then.iter().flatten() {
            by.retain(|name| step.over.as_ref().is_some_and(|over| !over.contains(name)));
        }
        by
    }
}

/// The table that a selection names.
fn rows_table(reader: &mut Reader, table: &DeTable<'_>) -> Option<Table> {
    let name = reader.text(table, "table")?;
    let found = Table::from_name(&name);
    if found.is_none() {
        let span = span_of(table, "table");
        let help = suggestion(&name, Table::ALL.iter().map(|t| t.name()));
        reader.problems.push(Problem::new(span, format!("there is no table `{name}`"), "unknown table").help(help));
    }
    found
}

fn runs(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>) -> (Option<Conditions>, Option<String>) {
    let Some(name) = reader.text(table, "runs") else { return (None, None) };
    match context.runs.get(&name) {
        Some(runs) => (Some(runs.conditions.clone()), runs.manifest.clone()),
        None => {
            let help = suggestion(&name, context.runs.keys().map(String::as_str));
            let message = format!("there is no [runs.{name}]");
            reader.problems.push(Problem::new(span_of(table, "runs"), message, "unknown runs").help(help));
            (None, None)
        }
    }
}

/// The manifest that a table names, one of those that the file lists.
pub(crate) fn manifest_name(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>) -> Option<String> {
    let name = reader.text(table, "manifest")?;
    if !context.manifests.contains(&name) {
        let help = suggestion(&name, context.manifests.iter().map(String::as_str));
        let message = format!("`manifests` does not list `{name}`");
        reader.problems.push(Problem::new(span_of(table, "manifest"), message, "unknown manifest").help(help));
    }
    Some(name)
}

fn value_column(reader: &mut Reader, table: &DeTable<'_>, rows: Table) -> Option<String> {
    let item = table.get("column")?;
    reader.text(table, "column")?;
    let name = item.get_ref().as_str()?.to_owned();
    let column = reader.column(rows, &toml::Spanned::new(item.span(), name.clone()));
    if name == ELEMENT
        || column.is_some_and(|column| !matches!(column.ty, Kind::Int | Kind::Real) && !is_list(column.ty))
    {
        reader.problem(item, format!("`{name}` is not a number"), "expected a column of numbers");
    }
    Some(name)
}

fn is_list(ty: Kind) -> bool {
    matches!(ty, Kind::Ints | Kind::Reals)
}

/// A list of columns.
fn names(reader: &mut Reader, table: &DeTable<'_>, key: &str, rows: Table) -> Option<Vec<String>> {
    let empty = table.get(key)?.get_ref().as_array().is_some_and(|items| items.is_empty());
    if key == "by" && empty {
        // An inner selection drops the groups that it would inherit.
        return Some(Vec::new());
    }
    let names = reader.texts(table, key)?;
    for item in table.get(key)?.get_ref().as_array()? {
        if let Some(name) = item.get_ref().as_str() {
            reader.column(rows, &toml::Spanned::new(item.span(), name.to_owned()));
        }
    }
    Some(names)
}

fn aggregate(reader: &mut Reader, table: &DeTable<'_>) -> Option<Aggregate> {
    let name = reader.text(table, "aggregate")?;
    let found = Aggregate::parse(&name);
    if found.is_none() {
        let span = span_of(table, "aggregate");
        let expected = "expected mean, sum, min, max, count, standard-error, or a percentile such as p50";
        reader.problem_at(span, format!("there is no aggregate `{name}`"), expected);
    }
    found
}

fn steps(reader: &mut Reader, table: &DeTable<'_>, rows: Table) -> Option<Vec<Step>> {
    let item: &Item<'_> = table.get("then")?;
    let Some(items) = item.get_ref().as_array() else {
        reader.problem(item, "`then` must be a list of steps", "expected such as [{ aggregate = \"max\" }]");
        return None;
    };
    let mut steps = Vec::new();
    for item in items {
        let Some(table) = item.get_ref().as_table() else {
            reader.problem(item, "a step must be a table", "expected such as { aggregate = \"max\" }");
            continue;
        };
        reader.keys("a step", table, &["aggregate", "over"]);
        let change = table.get("aggregate").is_some_and(|item| item.get_ref().as_str() == Some("greatest-change"));
        if change && table.get("over").and_then(|item| item.get_ref().as_array()).is_none_or(|over| over.len() != 1) {
            reader.problem(item, "a change needs one column", "expected such as over = [\"x\"]");
            continue;
        }
        match if change { Some(Aggregate::GreatestChange) } else { aggregate(reader, table) } {
            Some(aggregate) => steps.push(Step { aggregate, over: names(reader, table, "over", rows) }),
            None if table.get("aggregate").is_none() => {
                reader.problem(item, "the step has no `aggregate`", "expected such as { aggregate = \"max\" }");
            }
            None => {}
        }
    }
    Some(steps)
}

pub(crate) fn span_of(table: &DeTable<'_>, key: &str) -> Range<usize> {
    table.get(key).map_or(0..0, |item| item.span())
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
        assert!(Aggregate::Only.of(vec![1.0, 2.0]).is_err() && Aggregate::Mean.of(vec![]).is_err());
        assert_eq!(Aggregate::Count.of(vec![]), Ok(0.0));
    }
}
