//! Ledgers: what happened to the rows of job logs and signals. For programs, and in results, they are JSON.

use powersweep_inputs::joblogs::{Count, Ledger, Rule};
use powersweep_inputs::signals::{self, Series};
use serde_json::{Value as Json, json};

use crate::screen;

/// The ledger of a job log for programs.
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

/// The ledger of one reading of a signal's file for programs. `label`: of the signal.
pub fn of_signal(file: &str, label: &str, series: &Series) -> Json {
    let one = |(rule, count): (signals::Rule, u64)| {
        json!({
            "rule": rule.name(),
            "effect": rule.effect().word(),
            "rows_count": count,
            "meaning": rule.sentence(),
        })
    };
    json!({
        "file": file,
        "signal": label,
        "column": series.facts.column,
        "read_count": series.ledger.read,
        "kept_count": series.ledger.kept,
        "rules": series.ledger.rules().map(one).collect::<Vec<_>>(),
    })
}

/// The stored ledgers of an experiment; empty without a job log or signal.
pub fn parsed(text: &str) -> Vec<Json> {
    // An older coordinator sends none.
    serde_json::from_str(text).unwrap_or_default()
}

/// A ledger for people.
pub fn text(ledger: &Json) -> String {
    let count = |name: &str| ledger[name].as_u64().unwrap_or_default();
    let word = |of: &Json, name: &str| of[name].as_str().map(|text| powersweep_proto::plain(text).into_owned());
    let (read, kept) = (count("read_count"), count("kept_count"));
    let mut table = screen::table();
    table.set_header(["effect", "rows", "rule", "first line", "meaning"]);
    table.add_row(["read", &read.to_string()]);
    table.add_row(["kept", &kept.to_string()]);
    for rule in ledger["rules"].as_array().into_iter().flatten() {
        let number = |name: &str| rule[name].as_u64().map(|count| count.to_string());
        let cells = [
            word(rule, "effect"),
            number("rows_count"),
            word(rule, "rule"),
            number("first_line"),
            word(rule, "meaning"),
        ];
        table.add_row(cells.map(Option::unwrap_or_default));
    }
    let signal = word(ledger, "signal").map_or_else(String::new, |label| format!("signal {label}, "));
    let file = word(ledger, "file").unwrap_or_default();
    let dropped = read.saturating_sub(kept);
    format!("{signal}{file}: {} read = {kept} kept + {dropped} dropped\n{table}", screen::count(read, "row"))
}
