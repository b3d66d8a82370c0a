//! `powersweep compare`: two sets of rows, pair by pair.

use powersweep::block_on;
use powersweep::compare::{CompareOptions, Compared, ComparedColumn};
use powersweep_dataset::text::{Column, Entry, Sheet};
use powersweep_dataset::{Comparison, Interval};

use crate::args::{CompareArgs, RowFormat};
use crate::exit::Outcome;
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
        return written(&found.rows(), encoding, 0, &args.out, &args.a);
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
    if let Some(left_out) = found.left_out() {
        screen::note(&format!("powersweep: {left_out}"));
    }
}

/// What was compared, below the table.
fn said(found: &Compared, args: &CompareArgs) -> String {
    let by = if found.by.is_empty() { String::new() } else { format!(" with the same {}", found.by.join(", ")) };
    let mut text = format!("\nA is {}, B is {}: {}{by}.", args.a, args.b, screen::count(found.pairs as u64, "pair"));
    if let Some(left_out) = found.left_out() {
        text += &format!(" {left_out}.");
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
