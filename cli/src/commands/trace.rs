//! `powersweep trace info`: facts about a log before the workload's rules change its jobs.

use powersweep_engine::facts::Datum;
use powersweep_engine::workload::log_facts::{LogFacts, LogTotals, Spread};
use powersweep_experiments::Digest;
use serde_json::{Map, Value as Json, json};

use crate::args::{LogArgs, OutputArgs};
use crate::exit::Outcome;
use crate::{inputs, screen};

/// Prints the facts about a log.
pub fn info(name: &str, sha256: Option<Digest>, args: &LogArgs, output: OutputArgs) -> Outcome {
    let library = inputs::library(args);
    let log_format = inputs::format(&library, name)?;
    let bytes = inputs::log(&library, log_format, name, sha256)?;
    let facts = LogFacts::of(&inputs::parsed(log_format, &bytes)?);
    let digest = bytes.digest.to_string();
    match output.is_json() {
        true => screen::print_json(to_json(&facts, &digest)),
        false => screen::print(&to_text(&facts, &digest)),
    }
}

fn value(datum: Datum<'_>) -> Json {
    match datum {
        Datum::Null => Json::Null,
        Datum::Bool(v) => json!(v),
        Datum::Int(v) => json!(v),
        Datum::Real(v) => json!(v),
        Datum::Text(v) => json!(v),
        Datum::Counts(v) => json!(v),
        Datum::Reals(v) => json!(v),
    }
}

/// A value for people.
fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Number(number) if number.is_f64() => screen::number(number.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

fn totals(facts: &LogFacts) -> impl Iterator<Item = (&'static str, Json)> + '_ {
    LogTotals::FIELDS.iter().map(|field| (field.name, value((field.get)(&facts.totals))))
}

fn to_json(facts: &LogFacts, digest: &str) -> Json {
    let spread = |s: &Spread| -> Map<String, Json> {
        Spread::FIELDS.iter().map(|field| (field.name.to_owned(), value((field.get)(s)))).collect()
    };
    let spreads: Map<String, Json> =
        facts.spreads.iter().map(|(name, s)| ((*name).to_owned(), Json::Object(spread(s)))).collect();
    let header: Vec<Json> = facts.header.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let totals: Map<String, Json> = totals(facts).map(|(name, value)| (name.to_owned(), value)).collect();
    json!({ "file": facts.file, "sha256": digest, "header": header, "totals": totals, "spreads": spreads })
}

fn to_text(facts: &LogFacts, digest: &str) -> String {
    let mut table = screen::table();
    table.add_row(["file", facts.file.as_str()]);
    table.add_row(["sha256 of the text", digest]);
    for key in ["Computer", "Installation", "Note"] {
        if let Some((_, value)) = facts.header.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)) {
            table.add_row([key, value.as_str()]);
        }
    }
    // Source, settings and ledger of a log that `import` wrote.
    for (key, value) in facts.header.iter().filter(|(key, _)| key.starts_with("Import")) {
        table.add_row([key, value]);
    }
    for (name, value) in totals(facts).filter(|(_, value)| !value.is_null()) {
        table.add_row([name.to_owned(), text(&value)]);
    }
    let mut spreads = screen::table();
    spreads.set_header([""].into_iter().chain(Spread::FIELDS.iter().map(|field| field.name)));
    for (name, spread) in &facts.spreads {
        let values = Spread::FIELDS.iter().map(|field| text(&value((field.get)(spread))));
        spreads.add_row([(*name).to_owned()].into_iter().chain(values));
    }
    format!("{table}\n\n{spreads}")
}
