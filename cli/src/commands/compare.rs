//! `powersweep compare`: two sets of rows, pair by pair.

use powersweep::block_on;
use powersweep::compare::{CompareOptions, Compared, FEW};
use powersweep_dataset::text::{Column, Entry, Sheet};
use powersweep_dataset::{Comparison, Interval};

use crate::args::{CompareArgs, RowFormat};
use crate::exit::Outcome;
use crate::framed::{encoding, sheet, written};
use crate::screen;

/// Compares two sets of rows.
pub fn run(args: &CompareArgs) -> Outcome {
    args.out.check()?;
    let CompareArgs { table, columns, only, by, pool, .. } = args;
    let (columns, only, by, pool) = (columns.clone(), only.clone(), by.clone(), pool.clone());
    let options = CompareOptions { table: *table, columns, only, by, pool };
    let found = block_on(async { args.from.place()?.compare(&args.a, &args.b, &options).await })?;
    if let Some(encoding) = encoding(args.out.format()) {
        note_single(&found);
        return written(&found.rows(), encoding, 0, &args.out, &args.a);
    }
    let table = shown(&found);
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
    let by = match found.paired_by.is_empty() {
        true => String::new(),
        false => format!(" with the same {}", found.paired_by.join(", ")),
    };
    let mut text = format!("\nA is {}, B is {}: {}{by}.", args.a, args.b, screen::count(found.pairs as u64, "pair"));
    if let Some(left_out) = found.left_out() {
        text += &format!(" {left_out}.");
    }
    if !found.pooled.is_empty() {
        text += &format!(" All values of {} are pooled: --by compares them apart.", found.pooled.join(", "));
    }
    let replicates = found.replicates_min();
    text += &match (found.are_weeks, replicates) {
        (true, 0 | 1) => " The jobs are of one week: there is no interval.".to_owned(),
        (true, weeks) => format!(" Intervals (95%) are those of a bootstrap of {weeks} weeks."),
        (false, 0 | 1) => {
            " One seed has no interval: use several seeds, or with tables = [\"jobs\"] in the manifest --table jobs."
                .to_owned()
        }
        (false, seeds) => format!(" Intervals (95%) are over {seeds} seeds."),
    };
    if (2..FEW).contains(&replicates) {
        text += " These are few: more would make the intervals narrower and surer.";
    }
    text
}

/// The table for people.
fn shown(found: &Compared) -> Sheet {
    let all: Vec<_> = found.groups.iter().flat_map(|group| group.columns.iter().map(move |of| (group, of))).collect();
    let number = |value: f64| Entry::Text(screen::number(value));
    let ends = |interval: Interval| match interval.ends {
        Some((low, f64::INFINITY)) => Entry::Text(format!("{} to ∞", screen::number(low))),
        Some((low, high)) => Entry::Text(format!("{} to {}", screen::number(low), screen::number(high))),
        None => Entry::Empty,
    };
    let percent = |share: f64| Entry::Text(format!("{:.0}%", 100.0 * share));
    let column = |name: &str, is_numeric: bool, entries: Vec<Entry>| Column {
        name: name.to_owned(),
        title: name.replace("interval", "95% CI"),
        unit: String::new(),
        exponent: 0,
        is_numeric,
        interval: String::new(),
        entries,
    };
    let of = |name: &str, entry: &dyn Fn(&Comparison) -> Entry| {
        let entry = |comparison: &Option<Comparison>| comparison.as_ref().map_or(Entry::Empty, entry);
        column(name, true, all.iter().map(|(_, column)| entry(&column.comparison)).collect())
    };
    let keys = found.by.iter().enumerate().map(|(at, name)| {
        column(name, false, all.iter().map(|(group, _)| Entry::Text(group.values[at].exact())).collect())
    });
    let metrics = all.iter().map(|(_, column)| {
        let (name, unit) = (&column.name, &column.unit);
        Entry::Text(if unit.is_empty() { name.clone() } else { format!("{name} ({unit})") })
    });
    let mut columns: Vec<Column> = keys.collect();
    columns.extend([
        column("metric", false, metrics.collect()),
        of("A", &|of| number(of.a)),
        of("B", &|of| number(of.b)),
        of("B - A", &|of| number(of.difference.value)),
        of("interval", &|of| ends(of.difference)),
        of("B / A", &|of| number(of.ratio.value)),
        of("interval", &|of| ends(of.ratio)),
        of("A is less", &|of| percent(of.a_less)),
        of("B is less", &|of| percent(of.b_less)),
    ]);
    Sheet { columns }
}
