//! Ledgers: what happened to the rows of job logs and signals, as the results have it.

use powersweep_inputs::ledger::{Count, Ledger, Rule};
use powersweep_inputs::signals::Loaded;
use serde_json::{Value as Json, json};

/// The ledger of a file.
pub fn of_file<R: Rule>(file: &str, ledger: &Ledger<R>) -> Json {
    let one = |(rule, count): (R, Count)| {
        json!({
            "rule": rule.name(),
            "effect": rule.effect().word(),
            "rows_count": count.rows,
            "first_line": count.first_line,
            "meaning": rule.sentence(),
        })
    };
    json!({
        "file": file,
        "read_count": ledger.read,
        "kept_count": ledger.kept,
        "dropped_count": ledger.dropped(),
        "rules": ledger.rules().map(one).collect::<Vec<_>>(),
    })
}

/// The ledger of each reading of a signal's file.
pub fn of_signals(signals: &[Loaded]) -> Vec<Json> {
    let mut read = Vec::new();
    let mut found = Vec::new();
    for Loaded { signal, series } in signals {
        if read.contains(&(&signal.file, &signal.reading)) {
            continue;
        }
        read.push((&signal.file, &signal.reading));
        let mut ledger = of_file(&signal.file, &series.ledger);
        ledger["signal"] = json!(&*signal.label);
        ledger["column"] = json!(series.facts.column);
        found.push(ledger);
    }
    found
}

/// The changes of a file's rows by rule, in one line; empty if all are kept unchanged.
pub fn changes<R: Rule>(ledger: &Ledger<R>) -> String {
    let one = |(rule, count): (R, Count)| format!("{} {} ({})", count.rows, rule.effect().word(), rule.name());
    ledger.rules().map(one).collect::<Vec<_>>().join(", ")
}

/// The stored ledgers of an experiment; empty without a job log or signal.
pub fn parsed(text: &str) -> Vec<Json> {
    // An older coordinator sends none.
    serde_json::from_str(text).unwrap_or_default()
}
