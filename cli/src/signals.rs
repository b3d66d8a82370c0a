//! The signals of a manifest on the command line.

use powersweep::find::Values;
use powersweep::inputs::ledgers::changes;
use powersweep_experiments::signals::Word;
use powersweep_inputs::ledger::Rule as _;
use powersweep_inputs::signals::Loaded;
use serde_json::{Value as Json, json};

use crate::screen;

/// Signals shown; the others are counted.
const SHOWN: usize = 40;
const HEADINGS: [&str; 9] = ["signal", "file", "column", "zone", "from", "to", "step", "rows", "changes to rows"];

/// The signals as a table for people, without columns that no signal has a value of; empty without a signal. Combinations of a
/// block's lists that read a file in one way have one row.
pub fn text(loaded: &[Loaded]) -> String {
    let mut rows: Vec<[String; HEADINGS.len()]> = loaded.iter().map(row).collect();
    rows.dedup();
    if rows.is_empty() {
        return String::new();
    }
    let columns: Vec<usize> = (0..HEADINGS.len()).filter(|at| rows.iter().any(|row| !row[*at].is_empty())).collect();
    let mut table = screen::table();
    table.set_header(columns.iter().map(|at| HEADINGS[*at]));
    for row in rows.iter().take(SHOWN) {
        table.add_row(columns.iter().map(|at| &row[*at]));
    }
    let more = rows.len().saturating_sub(SHOWN);
    if more > 0 { format!("{table}\n… and {}", screen::count(more as u64, "more signal")) } else { table.to_string() }
}

fn row(one: &Loaded) -> [String; HEADINGS.len()] {
    let (signal, series) = (&one.signal, &one.series);
    let estimates = series.estimated.iter().filter(|estimated| **estimated).count();
    let estimates = (estimates > 0).then(|| format!("{estimates} estimates"));
    let changes = Some(changes(&one.series.ledger)).filter(|changes| !changes.is_empty());
    [
        format!("{} ({})", signal.label, signal.reading.quantity.word()),
        signal.file.to_string(),
        format!("{} [{}]", series.facts.column, series.facts.unit),
        series.zone.clone().unwrap_or_default(),
        one.time_text(series.times_s[0]),
        one.time_text(series.end_s),
        series.facts.step.clone().unwrap_or_else(|| "uneven".to_owned()),
        series.ledger.read.to_string(),
        changes.into_iter().chain(estimates).collect::<Vec<_>>().join(", "),
    ]
}

/// The signals for programs.
pub fn json(loaded: &[Loaded]) -> Vec<Json> {
    let one = |loaded: &Loaded| {
        let (signal, series) = (&loaded.signal, &loaded.series);
        let designed = signal.points.iter().flat_map(|points| points.values.iter());
        let designed = designed.map(|(key, value)| ((*key).to_owned(), value.clone()));
        let ledger: serde_json::Map<String, Json> =
            series.ledger.rules().map(|(rule, count)| (rule.name().to_owned(), json!(count.rows))).collect();
        json!({ "signal": &*signal.label, "signal_index": signal.index, "quantity": signal.reading.quantity.word(),
                "file": &*signal.file, "form": series.facts.form.word(), "time_column": series.facts.time_column,
                "times": series.facts.times, "column": series.facts.column, "unit": series.facts.unit,
                "zone": series.zone, "currency": series.currency, "from": loaded.time_text(series.times_s[0]),
                "to": loaded.time_text(series.end_s), "step_s": series.facts.step_s, "rows_read": series.ledger.read,
                "rows_kept": series.ledger.kept, "rows_by_rule": ledger,
                "estimates": series.estimated.iter().filter(|estimated| **estimated).count(),
                "designed": Values(designed.collect()) })
    };
    loaded.iter().map(one).collect()
}

/// A line for each file whose rows were dropped, changed or added.
pub fn note_changes(loaded: &[Loaded]) {
    let mut noted = Vec::new();
    for one in loaded {
        let changes = changes(&one.series.ledger);
        let line =
            format!("signal {}, {}: of {} rows, {changes}", one.signal.label, one.signal.file, one.series.ledger.read);
        if !changes.is_empty() && !noted.contains(&line) {
            screen::note(&line);
            noted.push(line);
        }
    }
}
