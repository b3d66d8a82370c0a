//! Ledgers: what happened to the rows of job logs and signals, as the results have it.

use powersweep_inputs::joblogs::{Count, Ledger, Rule};
use powersweep_inputs::signals::{self, Loaded};
use serde_json::{Value as Json, json};

/// The ledger of a job log.
pub fn of_job_log(file: &str, ledger: &Ledger) -> Json {
    let one = |(rule, count): (Rule, Count)| {
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
        let one = |(rule, count): (signals::Rule, u64)| {
            json!({
                "rule": rule.name(),
                "effect": rule.effect().word(),
                "rows_count": count,
                "meaning": rule.sentence(),
            })
        };
        found.push(json!({
            "file": &*signal.file,
            "signal": &*signal.label,
            "column": series.facts.column,
            "read_count": series.ledger.read,
            "kept_count": series.ledger.kept,
            "rules": series.ledger.rules().map(one).collect::<Vec<_>>(),
        }));
    }
    found
}

/// The stored ledgers of an experiment; empty without a job log or signal.
pub fn parsed(text: &str) -> Vec<Json> {
    // An older coordinator sends none.
    serde_json::from_str(text).unwrap_or_default()
}
