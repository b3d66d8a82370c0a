//! `powersweep compare`: two sets of rows, pair by pair.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use powersweep_dataset::Datasets;
use powersweep_dataset::compare::{Pairs, compare, pairs};
use powersweep_dataset::grouped::{FooterFacts, collected, keys};
use powersweep_dataset::reading::Reading;
use powersweep_dataset::source::conditions;
use powersweep_dataset::text::{Column, Entry, Sheet};
use powersweep_dataset::{Comparison, Interval, Rows};
use powersweep_results::Table;

use crate::args::{CompareArgs, RowFormat};
use crate::exit::{Failure, Kind, OrKind, Outcome, failure};
use crate::framed::{encoding, sheet, written};
use crate::{client, screen, stored};

/// The column that tells the week of a job.
const SUBMIT: &str = "submit_s";
/// Length of a week (s).
const WEEK_S: f64 = 604_800.0;

/// Compares two sets of rows.
pub fn run(args: &CompareArgs) -> Outcome {
    args.out.check()?;
    if args.table == Table::Failures {
        return Err(failure!(Usage, "--table failures has nothing to compare; choose tasks, jobs or series"));
    }
    client::block_on(async {
        let datasets = stored::datasets(&args.from).await?;
        let (a, b) = (Side::open(&datasets, &args.a, args).await?, Side::open(&datasets, &args.b, args).await?);
        let axes: BTreeSet<&str> = a.varying().chain(b.varying()).collect();
        let mut axes: Vec<&str> = axes.into_iter().chain(keys(args.table).iter().copied()).collect();
        let mut measures: Vec<&str> = match args.columns.is_empty() {
            true => a.known.usual(args.table),
            false => args.columns.iter().map(|name| name.trim()).collect(),
        };
        let compared = measures.len();
        if args.table == Table::Jobs {
            measures.push(SUBMIT);
        }
        axes.retain(|name| !measures.contains(name));
        let (a, b) =
            (a.rows(&datasets, args, &axes, &measures).await?, b.rows(&datasets, args, &axes, &measures).await?);
        let found = pairs(&a, &b)?;
        let weeks = (args.table == Table::Jobs).then(|| weeks(&a, &found));
        let compared = (0..compared).map(|at| (at, compare(&values(&a, &b, &found, at), weeks.as_deref())));
        let compared: Vec<(String, String, Option<Comparison>)> = compared.map(|(at, of)| named(&a, at, of)).collect();
        if let Some(encoding) = encoding(args.out.format()) {
            note_single(&found);
            return written(&table(&compared)?, encoding, 0, &args.out, &args.a);
        }
        let table = shown(&compared);
        if args.out.format() != RowFormat::Table {
            note_single(&found);
            return sheet(&table, 0, &args.out);
        }
        sheet(&table, 0, &args.out)?;
        screen::print(&said(&found, weeks.as_deref(), args))
    })
}

/// One set of rows.
struct Side {
    reading: Reading,
    conditions: Vec<String>,
    known: FooterFacts,
}

impl Side {
    /// Opens `EXPERIMENT:CONDITION,...`.
    async fn open(datasets: &Datasets, text: &str, args: &CompareArgs) -> Result<Side, Failure> {
        let (experiment, own) = text.split_once(':').unwrap_or((text, ""));
        let reading = datasets.read(experiment, args.table).await?;
        reading.check_table()?;
        let known = FooterFacts::read(datasets, experiment).await?;
        let conditions = split(own).into_iter().chain(args.only.iter().cloned()).collect();
        Ok(Side { reading, conditions, known })
    }

    fn varying(&self) -> impl Iterator<Item = &str> {
        let varying = self.known.candidates.iter().filter(|candidate| candidate.varies());
        varying.map(|candidate| candidate.name.as_str())
    }

    async fn rows(
        &self,
        datasets: &Datasets,
        args: &CompareArgs,
        axes: &[&str],
        measures: &[&str],
    ) -> Result<Rows, Failure> {
        let only = conditions(args.table, &self.conditions)?;
        collected(datasets, &self.reading, &self.known, [axes, measures], only).await
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
fn named(rows: &Rows, at: usize, of: Option<Comparison>) -> (String, String, Option<Comparison>) {
    let field = &rows.measures()[at].0;
    let unit = field.metadata().get(powersweep_dataset::frame::UNIT).cloned().unwrap_or_default();
    (field.name().clone(), unit, of)
}

fn note_single(found: &Pairs) {
    if found.single != (0, 0) {
        screen::note(&format!("powersweep: {}", without_partner(found)));
    }
}

fn without_partner(found: &Pairs) -> String {
    let (a, b) = found.single;
    format!("{} of A and {b} of B have no partner and are left out", screen::count(a as u64, "row"))
}

/// What was compared, below the table.
fn said(found: &Pairs, weeks: Option<&[i64]>, args: &CompareArgs) -> String {
    let by = if found.by.is_empty() { String::new() } else { format!(" with the same {}", found.by.join(", ")) };
    let mut text =
        format!("\nA is {}, B is {}: {}{by}.", args.a, args.b, screen::count(found.rows.len() as u64, "pair"));
    if found.single != (0, 0) {
        text += &format!(" {}.", without_partner(found));
    }
    let blocks = weeks.map(|weeks| weeks.iter().collect::<BTreeSet<_>>().len());
    match blocks {
        Some(1) => text += " The jobs are of one week: there is no interval.",
        Some(weeks) => text += &format!(" Intervals (95%) are those of a bootstrap of {weeks} weeks."),
        None if found.rows.len() == 1 => {
            text += " One pair has no interval: use several seeds, or with tables = [\"jobs\"] in the manifest --table jobs.";
        }
        None => text += " Intervals (95%) are those of the pairs.",
    }
    text
}

/// The table for people.
fn shown(compared: &[(String, String, Option<Comparison>)]) -> Sheet {
    let number = |value: f64| Entry::Text(screen::number(value));
    let ends = |interval: Interval| match interval.ends {
        Some((low, high)) => Entry::Text(format!("{} to {}", screen::number(low), screen::number(high))),
        None => Entry::Empty,
    };
    let percent = |share: f64| Entry::Text(format!("{:.0}%", 100.0 * share));
    let of = |name: &str, entry: &dyn Fn(&Comparison) -> Entry| Column {
        name: name.to_owned(),
        unit: String::new(),
        exponent: 0,
        is_numeric: true,
        entries: compared.iter().map(|(_, _, of)| of.as_ref().map_or(Entry::Empty, entry)).collect(),
    };
    let metric = |(name, unit, _): &(String, String, Option<Comparison>)| {
        Entry::Text(if unit.is_empty() { name.clone() } else { format!("{name} ({unit})") })
    };
    let metrics = Column {
        name: "metric".to_owned(),
        unit: String::new(),
        exponent: 0,
        is_numeric: false,
        entries: compared.iter().map(metric).collect(),
    };
    let columns = vec![
        metrics,
        of("A", &|of| number(of.a)),
        of("B", &|of| number(of.b)),
        of("B - A", &|of| number(of.difference.value)),
        of("interval", &|of| ends(of.difference)),
        of("B / A", &|of| number(of.ratio.value)),
        of("interval", &|of| ends(of.ratio)),
        of("A is less", &|of| percent(of.a_less)),
        of("B is less", &|of| percent(of.b_less)),
    ];
    Sheet { columns }
}

/// The table for programs.
fn table(compared: &[(String, String, Option<Comparison>)]) -> Result<RecordBatch, Failure> {
    let texts = |of: fn(&(String, String, Option<Comparison>)) -> &String| {
        Arc::new(compared.iter().map(|row| Some(of(row).clone())).collect::<StringArray>()) as ArrayRef
    };
    let reals = |of: fn(&Comparison) -> Option<f64>| {
        let value = |row: &(String, String, Option<Comparison>)| row.2.as_ref().and_then(of);
        Arc::new(compared.iter().map(value).collect::<Float64Array>()) as ArrayRef
    };
    let count = compared.iter().map(|(_, _, of)| Some(of.map_or(0, |of| of.pairs as i64)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("metric", texts(|row| &row.0)),
        ("unit", texts(|row| &row.1)),
        ("pairs", Arc::new(count.collect::<Int64Array>())),
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
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, DataType::clone(column.data_type()), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect())
        .or_kind(Kind::Failure)
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
