//! `powersweep policies`: the components.

use std::collections::BTreeSet;

use powersweep_engine::components;
use powersweep_engine::spec::{Component, Default, Param, Role, Section};
use powersweep_experiments::reading::unknown;
use serde_json::{Value as Json, json};

use crate::args::PoliciesArgs;
use crate::exit::{Outcome, failure};
use crate::screen;

/// Lists all components or those of a role, one line each; explains the components of one name.
pub fn run(args: &PoliciesArgs) -> Outcome {
    let name = args.name.as_deref();
    let all = components::COMPONENTS.iter().copied();
    let is_role = name.is_none_or(|name| Role::ALL.iter().any(|role| role.key() == name));
    let is_chosen = |of: &&Component| name.is_none_or(|name| if is_role { of.role.key() } else { of.name } == name);
    let chosen: Vec<&Component> = all.clone().filter(is_chosen).collect();
    if chosen.is_empty() {
        // Several roles have a component `none`.
        let names: BTreeSet<&str> = all.map(|of| of.name).chain(Role::ALL.map(Role::key)).collect();
        let names: Vec<&str> = names.into_iter().collect();
        return Err(failure!(Usage, "{}", unknown("component", name.unwrap_or_default(), &names)));
    }
    match args.output.is_json() {
        true => {
            let components: Vec<Json> = chosen.iter().map(|of| component_json(of)).collect();
            screen::print_json(json!({ "components": components }))
        }
        false if is_role => screen::print(&list(&chosen)),
        false => screen::print(&chosen.iter().map(|of| component_text(of)).collect::<Vec<_>>().join("\n")),
    }
}

/// One line for each component: the first sentence on it.
fn list(chosen: &[&Component]) -> String {
    let mut table = screen::table();
    table.set_header(["role", "component", "what it does"]);
    for of in chosen {
        let first = of.doc.split_once(". ").map_or(of.doc, |(first, _)| first).trim_end_matches('.');
        table.add_row([of.role.key(), of.name, first]);
    }
    format!("{table}\n\n`powersweep policies NAME` explains the parameters of a component.")
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
