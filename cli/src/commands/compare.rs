//! `powersweep compare`: two sets of rows, pair by pair.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use powersweep::block_on;
use powersweep::compare::{CompareOptions, Compared, ComparedColumn};
use powersweep_dataset::text::{Column, Entry, Sheet};
use powersweep_dataset::{Comparison, Interval};

use crate::args::{CompareArgs, RowFormat};
use crate::exit::{Failure, Kind, OrKind, Outcome};
use crate::framed::{encoding, sheet, written};
use crate::screen;

/// Compares two sets of rows.
pub fn run(args: &CompareArgs) -> Outcome {
    args.out.check()?;
    let CompareArgs { table, columns, only, .. } = args;
    let options = CompareOptions { table: *table, columns: columns.clone(), only: only.clone() };
    let found = block_on(async { args.from.place()?.compare(&args.a, &args.b, &options).await })?;
    if let Some(encoding) = encoding(args.out.format()) {
        note_single(&found);
        return written(&batch(&found.columns)?, encoding, 0, &args.out, &args.a);
    }
    let table = shown(&found.columns);
    if args.out.format() != RowFormat::Table {
        note_single(&found);
        return sheet(&table, 0, &args.out);
    }
    sheet(&table, 0, &args.out)?;
    screen::print(&said(&found, args))
}

fn note_single(found: &Compared) {
    if found.single != (0, 0) {
        screen::note(&format!("powersweep: {}", without_partner(found)));
    }
}

fn without_partner(found: &Compared) -> String {
    let (a, b) = found.single;
    format!("{} of A and {b} of B have no partner and are left out", screen::count(a as u64, "row"))
}

/// What was compared, below the table.
fn said(found: &Compared, args: &CompareArgs) -> String {
    let by = if found.by.is_empty() { String::new() } else { format!(" with the same {}", found.by.join(", ")) };
    let mut text = format!("\nA is {}, B is {}: {}{by}.", args.a, args.b, screen::count(found.pairs as u64, "pair"));
    if found.single != (0, 0) {
        text += &format!(" {}.", without_partner(found));
    }
    match found.weeks {
        Some(1) => text += " The jobs are of one week: there is no interval.",
        Some(weeks) => text += &format!(" Intervals (95%) are those of a bootstrap of {weeks} weeks."),
        None if found.pairs == 1 => {
            text += " One pair has no interval: use several seeds, or with tables = [\"jobs\"] in the manifest --table jobs.";
        }
        None => text += " Intervals (95%) are those of the pairs.",
    }
    text
}

/// The table for people.
fn shown(compared: &[ComparedColumn]) -> Sheet {
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
        entries: compared.iter().map(|column| column.comparison.as_ref().map_or(Entry::Empty, entry)).collect(),
    };
    let metric = |ComparedColumn { name, unit, .. }: &ComparedColumn| {
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
fn batch(compared: &[ComparedColumn]) -> Result<RecordBatch, Failure> {
    let texts = |of: fn(&ComparedColumn) -> &String| {
        Arc::new(compared.iter().map(|row| Some(of(row).clone())).collect::<StringArray>()) as ArrayRef
    };
    let reals = |of: fn(&Comparison) -> Option<f64>| {
        let value = |row: &ComparedColumn| row.comparison.as_ref().and_then(of);
        Arc::new(compared.iter().map(value).collect::<Float64Array>()) as ArrayRef
    };
    let count = compared.iter().map(|row| Some(row.comparison.map_or(0, |of| of.pairs as i64)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("metric", texts(|row| &row.name)),
        ("unit", texts(|row| &row.unit)),
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
