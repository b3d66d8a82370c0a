//! Two sets of rows, compared pair by pair.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use powersweep_dataset::compare::{Pairs, compare, pairs};
use powersweep_dataset::frame::UNIT;
use powersweep_dataset::grouped::{FooterFacts, collected, keys};
use powersweep_dataset::reading::Reading;
use powersweep_dataset::source::conditions;
use powersweep_dataset::words::count;
use powersweep_dataset::{Comparison, Datasets, Error, Rows, failure};
use powersweep_results::Table;

use crate::place::Place;

/// The column that tells the week of a job.
const SUBMIT: &str = "submit_s";
/// Length of a week (s).
const WEEK_S: f64 = 604_800.0;

/// The table, columns and conditions of a comparison.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// The table; by default `tasks`.
    pub table: Table,
    /// Columns of numbers; by default the usual metrics of the table.
    pub columns: Vec<String>,
    /// Conditions on the rows of both sets, such as `seed<3`.
    pub only: Vec<String>,
}

/// A column of two sets of rows.
#[derive(Debug, Clone)]
pub struct ComparedColumn {
    /// The column.
    pub name: String,
    /// Its unit; empty without one.
    pub unit: String,
    /// The comparison; `None` if no pair has both values.
    pub comparison: Option<Comparison>,
}

/// Two sets of rows, compared.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Each column.
    pub columns: Vec<ComparedColumn>,
    /// Number of pairs.
    pub pairs: usize,
    /// The columns with equal values in a pair.
    pub by: Vec<String>,
    /// Rows of either set without a partner.
    pub single: (usize, usize),
    /// Of jobs: the weeks that the intervals are resampled from.
    pub weeks: Option<usize>,
}

impl Compared {
    /// A row for each column, for programs.
    pub fn rows(&self) -> RecordBatch {
        let texts = |of: fn(&ComparedColumn) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.columns.iter().map(of)))
        };
        let reals = |of: fn(&Comparison) -> Option<f64>| -> ArrayRef {
            let value = |column: &ComparedColumn| column.comparison.as_ref().and_then(of);
            Arc::new(self.columns.iter().map(value).collect::<Float64Array>())
        };
        let pairs = self.columns.iter().map(|column| column.comparison.map_or(0, |of| of.pairs as i64));
        let columns = [
            ("metric", texts(|column| &column.name)),
            ("unit", texts(|column| &column.unit)),
            ("pairs", Arc::new(Int64Array::from_iter_values(pairs))),
            ("mean_a", reals(|of| Some(of.a))),
            ("mean_b", reals(|of| Some(of.b))),
            ("difference", reals(|of| Some(of.difference.value))),
            ("difference_low", reals(|of| of.difference.ends.map(|ends| ends.0))),
            ("difference_high", reals(|of| of.difference.ends.map(|ends| ends.1))),
            ("ratio", reals(|of| Some(of.ratio.value))),
            ("ratio_low", reals(|of| of.ratio.ends.map(|ends| ends.0))),
            ("ratio_high", reals(|of| of.ratio.ends.map(|ends| ends.1))),
            ("a_less", reals(|of| Some(of.a_less))),
            ("b_less", reals(|of| Some(of.b_less))),
        ];
        let columns = columns.map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns).expect("a value for each column")
    }

    /// The rows without a partner in words, if there are any.
    pub fn left_out(&self) -> Option<String> {
        let (a, b) = self.single;
        let rows = count(a as u64, "row");
        (self.single != (0, 0)).then(|| format!("{rows} of A and {b} of B have no partner and are left out"))
    }
}

impl Place {
    /// Compares two sets of rows pair by pair. A set is `EXPERIMENT` or `EXPERIMENT:CONDITION,...`; a pair has the same
    /// workload, machine and seed.
    ///
    /// # Errors
    /// An experiment, column or condition is unknown, or the rows make no pairs.
    pub async fn compare(&self, a: &str, b: &str, options: &CompareOptions) -> Result<Compared, Error> {
        if options.table == Table::Failures {
            return Err(failure!(Usage, "failures have nothing to compare; choose tasks, jobs or series"));
        }
        let datasets = self.datasets().await?;
        let (a, b) = (Side::open(&datasets, a, options).await?, Side::open(&datasets, b, options).await?);
        let axes: BTreeSet<&str> = a.varying().chain(b.varying()).collect();
        let mut axes: Vec<&str> = axes.into_iter().chain(keys(options.table).iter().copied()).collect();
        let mut measures: Vec<&str> = match options.columns.is_empty() {
            true => a.known.usual(options.table),
            false => options.columns.iter().map(|name| name.trim()).collect(),
        };
        let compared = measures.len();
        if options.table == Table::Jobs {
            measures.push(SUBMIT);
        }
        axes.retain(|name| !measures.contains(name));
        let columns = [axes.as_slice(), measures.as_slice()];
        let (a, b) =
            (a.rows(&datasets, options.table, columns).await?, b.rows(&datasets, options.table, columns).await?);
        let found = pairs(&a, &b)?;
        let weeks = (options.table == Table::Jobs).then(|| weeks(&a, &found));
        let column = |at| column(&a, at, compare(&values(&a, &b, &found, at), weeks.as_deref()));
        let columns = (0..compared).map(column).collect();
        let weeks = weeks.as_ref().map(|weeks| weeks.iter().collect::<BTreeSet<_>>().len());
        let Pairs { rows, by, single, .. } = found;
        Ok(Compared { columns, pairs: rows.len(), by, single, weeks })
    }
}

/// One set of rows.
struct Side {
    reading: Reading,
    conditions: Vec<String>,
    known: FooterFacts,
}

impl Side {
    /// Opens `EXPERIMENT:CONDITION,...`.
    async fn open(datasets: &Datasets, text: &str, options: &CompareOptions) -> Result<Side, Error> {
        let (experiment, own) = text.split_once(':').unwrap_or((text, ""));
        let reading = datasets.read(experiment, options.table).await?;
        reading.check_table()?;
        let known = FooterFacts::read(datasets, experiment).await?;
        let conditions = split(own).into_iter().chain(options.only.iter().cloned()).collect();
        Ok(Side { reading, conditions, known })
    }

    fn varying(&self) -> impl Iterator<Item = &str> {
        let varying = self.known.candidates.iter().filter(|candidate| candidate.varies());
        varying.map(|candidate| candidate.name.as_str())
    }

    async fn rows(&self, datasets: &Datasets, table: Table, columns: [&[&str]; 2]) -> Result<Rows, Error> {
        let only = conditions(table, &self.conditions)?;
        collected(datasets, &self.reading, &self.known, columns, only).await
    }
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from(c == '[') - i32::from(c == ']');
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The week of each pair.
fn weeks(a: &Rows, found: &Pairs) -> Vec<i64> {
    let submits = a.measures().last().map(|(_, values)| values.as_slice()).unwrap_or_default();
    found.rows.iter().map(|(row, _)| (submits[*row] / WEEK_S).floor() as i64).collect()
}

fn values(a: &Rows, b: &Rows, found: &Pairs, at: usize) -> Vec<(f64, f64)> {
    let (a, b) = (&a.measures()[at].1, &b.measures()[at].1);
    found.rows.iter().map(|(of_a, of_b)| (a[*of_a], b[*of_b])).collect()
}

/// A comparison with the name and the unit of its measure.
fn column(rows: &Rows, at: usize, comparison: Option<Comparison>) -> ComparedColumn {
    let field = &rows.measures()[at].0;
    let unit = field.metadata().get(UNIT).cloned().unwrap_or_default();
    ComparedColumn { name: field.name().clone(), unit, comparison }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn lists_in_conditions_stay_whole() {
        assert_eq!(split("policy=easy,gears_ghz=[1,2],seed<3"), ["policy=easy", "gears_ghz=[1,2]", "seed<3"]);
        assert!(split("").is_empty());
    }
}
