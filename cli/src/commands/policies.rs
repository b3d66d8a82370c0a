//! `powersweep policies`: the components.

use std::collections::BTreeSet;

use powersweep_engine::components;
use powersweep_engine::spec::{Component, Default, Param, Role, Section};
use powersweep_experiments::reading::unknown;
use serde_json::{Value as Json, json};

use crate::args::PoliciesArgs;
use crate::exit::{Outcome, failure};
use crate::screen;

/// Lists all components, or the components of one name.
pub fn run(args: &PoliciesArgs) -> Outcome {
    let chosen: Vec<&Component> = match &args.name {
        None => components::COMPONENTS.to_vec(),
        Some(name) => components::COMPONENTS.iter().copied().filter(|e| e.name == *name).collect(),
    };
    if chosen.is_empty() {
        // Several roles have a component `none`.
        let names: BTreeSet<&str> = components::COMPONENTS.iter().map(|e| e.name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let name = args.name.as_deref().unwrap_or_default();
        return Err(failure!(Usage, "{}", unknown("component", name, &names)));
    }
    match args.output.is_json() {
        true => {
            let components: Vec<Json> = chosen.iter().map(|e| component_json(e)).collect();
            screen::print_json(json!({ "components": components }))
        }
        false => screen::print(&chosen.iter().map(|e| component_text(e)).collect::<Vec<_>>().join("\n")),
    }
}

fn component_text(component: &Component) -> String {
    let default = if component.role.default_component() == component.name { " (default)" } else { "" };
    let source = if component.source.is_empty() { String::new() } else { format!("  Source: {}.\n", component.source) };
    let mut text = format!("{} = \"{}\"{default}\n  {}\n{source}", component.role.key(), component.name, component.doc);
    if !component.params.is_empty() {
        let mut table = screen::table();
        for param in component.params {
            let name = format!("  {}", param.name);
            table.add_row([name, default_text(param), param.expectation(), param.doc.to_owned()]);
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

/// The section of a manifest in which a component is chosen.
fn section(role: Role) -> &'static str {
    match role.section() {
        Section::Workloads => "workloads",
        Section::Platforms => "platforms",
        Section::Policies => "policies",
        Section::Statistics => "statistics",
    }
}

fn component_json(component: &Component) -> Json {
    let params: Vec<Json> = component
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
        "role": component.role.key(),
        "name": component.name,
        "version": component.version,
        "default": component.role.default_component() == component.name,
        "source": component.source,
        "doc": component.doc,
        "params": params,
        "section": section(component.role),
    })
}
