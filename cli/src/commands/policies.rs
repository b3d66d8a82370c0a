//! `powersweep policies`: the registry, as a table or JSON.

use comfy_table::{ContentArrangement, Table, presets};
use powersweep_engine::registry::{self, Default, Entry, Param, Slot};
use serde_json::{Value as Json, json};

use crate::args::{Format, PoliciesArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;

/// Lists every part, or the named one with its parameters in full.
pub fn run(args: &PoliciesArgs) -> Outcome {
    let chosen: Vec<&Entry> = match &args.name {
        None => registry::ENTRIES.to_vec(),
        Some(name) => registry::ENTRIES.iter().copied().filter(|e| e.name == *name).collect(),
    };
    if chosen.is_empty() {
        let names: Vec<&str> = registry::ENTRIES.iter().map(|e| e.name).collect();
        let name = args.name.as_deref().unwrap_or_default();
        return Err(Failure::new(Exit::Usage, screen::unknown("part", name, &names)));
    }
    match args.format {
        Format::Json => screen::print_json(&Json::Array(chosen.iter().map(|e| entry_json(e)).collect())),
        Format::Table => screen::print(&chosen.iter().map(|e| entry_text(e)).collect::<Vec<_>>().join("\n")),
    }
}

fn entry_text(entry: &Entry) -> String {
    let default = if entry.slot.default_part() == entry.name { " (default)" } else { "" };
    let source = if entry.source.is_empty() { String::new() } else { format!("  Source: {}.\n", entry.source) };
    let mut text = format!("{} = \"{}\"{default}\n  {}\n{source}", entry.slot.key(), entry.name, entry.doc);
    if !entry.params.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        for param in entry.params {
            table.add_row([
                format!("  {}", param.name),
                default_text(param),
                param.expectation(),
                param.doc.to_owned(),
            ]);
        }
        text.push_str(&format!("{table}\n"));
    }
    text
}

fn default_text(param: &Param) -> String {
    match param.default {
        Default::Unset => "not set".to_owned(),
        Default::Required => "required".to_owned(),
        other => other.value().map(|v| v.to_string()).unwrap_or_default(),
    }
}

fn entry_json(entry: &Entry) -> Json {
    let params: Vec<Json> = entry
        .params
        .iter()
        .map(|p| {
            json!({
                "name": p.name,
                "expected": p.expectation(),
                "unit": p.unit,
                "default": default_text(p),
                "required": p.default == Default::Required,
                "doc": p.doc,
            })
        })
        .collect();
    json!({
        "slot": entry.slot.key(),
        "name": entry.name,
        "version": entry.version,
        "default": entry.slot.default_part() == entry.name,
        "source": entry.source,
        "doc": entry.doc,
        "params": params,
        "section": match entry.slot { Slot::Source | Slot::Rules => "workloads", Slot::Platform | Slot::Power => "platforms", Slot::Statistics => "statistics", _ => "policies" },
    })
}
