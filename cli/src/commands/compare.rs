//! `powersweep compare`: two sets of rows, pair by pair.

use std::collections::BTreeSet;

use powersweep::compare::{CompareOptions, Compared, split_set};
use powersweep::inputs::LOGS_BYTES;
use powersweep::run::RunOptions;
use powersweep::shaken::shaken_set;
use powersweep::{Place, block_on};
use powersweep_dataset::text::{Column, Entry, Sheet};
use powersweep_dataset::titles::{labelled, title};
use powersweep_dataset::words::{endless, ends_beside, number_beside};
use powersweep_dataset::{Comparison, Interval};
use powersweep_inputs::library::ParsedLogs;

use super::progress::to_its_end;
use super::submit;
use crate::args::{CompareArgs, RowFormat};
use crate::exit::{Failure, Outcome};
use crate::framed::{encoding, sheet, written};
use crate::{inputs, interrupt, screen};

/// Compares two sets of rows.
pub fn run(args: &CompareArgs) -> Outcome {
    args.out.check()?;
    let CompareArgs { table, columns, only, by, pool, .. } = args;
    let (columns, only, by, pool) = (columns.clone(), only.clone(), by.clone(), pool.clone());
    let options = CompareOptions { table: *table, columns, only, by, pool };
    let mut sets = [args.a.clone(), args.b.clone()];
    let found = block_on(async {
        let place = args.from.place()?;
        if let Some(jitter_s) = args.shaken {
            sets = shaken(args, &place, jitter_s).await?;
        }
        place.compare(&sets[0], &sets[1], &options).await
    })?;
    if let Some(encoding) = encoding(args.out.format()) {
        note_single(&found);
        return written(&found.rows(), encoding, 0, &args.out, &sets[0]);
    }
    let is_paper = matches!(args.out.format(), RowFormat::Latex | RowFormat::Typst);
    let table = if is_paper { shown(&found.clone().for_paper(), true) } else { shown(&found, false) };
    if args.out.format() != RowFormat::Table {
        note_single(&found);
        return sheet(&table, 0, &args.out);
    }
    sheet(&table, 0, &args.out)?;
    screen::print(&format!("\n{}{}", found.said(&sets[0], &sets[1]), lacking(&found)))
}

/// Runs the experiments of both sets with shaken input. Returns the sets of these experiments.
async fn shaken(args: &CompareArgs, place: &Place, jitter_s: f64) -> Result<[String; 2], Failure> {
    let run = RunOptions { stop: interrupt::token(), ..RunOptions::default() };
    let options = inputs::derived("the manifest of the rows", &args.logs, ParsedLogs::new(LOGS_BYTES), run);
    let sets = [&args.a, &args.b];
    for experiment in BTreeSet::from(sets.map(|set| split_set(set).0)) {
        let begun = place.shake(experiment, jitter_s, &options).await?;
        screen::note(&submit::describe(begun.submitted(), None));
        to_its_end(false, begun).await?;
    }
    Ok(sets.map(|set| shaken_set(set)))
}

fn note_single(found: &Compared) {
    if let Some(left_out) = found.left_out() {
        screen::note(&format!("powersweep: {left_out}"));
    }
}

/// The options that give what the comparison lacks.
fn lacking(found: &Compared) -> String {
    let mut text = String::new();
    if !found.pooled.is_empty() {
        text += " Pooled values are compared apart by --by.";
    }
    if found.groups.iter().any(|group| group.are_alike) {
        text += " --shaken 60 moves each submit by up to a minute, by ten seeds, and compares again.";
    }
    if !found.are_weeks && found.replicates_min() < 2 {
        text += " The table jobs, with tables = [\"jobs\"] in the manifest, is compared by --table jobs.";
    }
    text
}

/// The table for people; for a paper, its metrics are in words. A metric that some groups have, such as the cost of a price, has no
/// row in the others.
fn shown(found: &Compared, is_paper: bool) -> Sheet {
    let each = || found.groups.iter().flat_map(|group| group.columns.iter().map(move |of| (group, of)));
    let known: BTreeSet<&str> =
        each().filter(|(_, of)| of.comparison.is_some()).map(|(_, of)| of.name.as_str()).collect();
    let all: Vec<_> = each().filter(|(_, of)| of.comparison.is_some() || !known.contains(of.name.as_str())).collect();
    let ends = |of: Interval, most: f64| of.ends.map_or(Entry::Empty, |ends| Entry::Text(ends_beside(ends, most)));
    let percent = |share: f64| Entry::Text(format!("{:.0}%", 100.0 * share));
    let column = |name: &str, is_numeric: bool, entries: Vec<Entry>| Column {
        name: name.to_owned(),
        title: name.replace("interval", "95% CI"),
        is_numeric,
        entries,
        ..Column::default()
    };
    let of = |name: &str, entry: &dyn Fn(&Comparison) -> Entry| {
        let entry = |comparison: &Option<Comparison>| comparison.as_ref().map_or(Entry::Empty, entry);
        column(name, true, all.iter().map(|(_, column)| entry(&column.comparison)).collect())
    };
    let keys = found.by.iter().enumerate().map(|(at, name)| {
        column(name, false, all.iter().map(|(group, _)| Entry::Text(group.values[at].exact())).collect())
    });
    let metrics = all.iter().map(|(_, column)| {
        let name = if is_paper { title(&column.name).0 } else { column.name.clone() };
        Entry::Text(labelled(&name, &column.unit))
    });
    let mut columns: Vec<Column> = keys.collect();
    columns.extend([
        column("metric", false, metrics.collect()),
        of("A", &|of| Entry::Text(number_beside(of.a, of.greatest()))),
        of("B", &|of| Entry::Text(number_beside(of.b, of.greatest()))),
        of("B - A", &|of| Entry::Text(number_beside(of.difference.value, of.greatest()))),
        of("interval", &|of| ends(of.difference, of.greatest())),
        of("B / A", &|of| match of.ratio.value {
            value if value.is_finite() => Entry::Text(screen::number(value)),
            value if value.is_nan() => Entry::Empty,
            value => Entry::Text(endless(value).to_owned()),
        }),
        of("interval", &|of| ends(of.ratio, 0.0)),
        of("A is less", &|of| percent(of.a_less)),
        of("B is less", &|of| percent(of.b_less)),
    ]);
    Sheet { columns }
}
