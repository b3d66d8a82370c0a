//! `powersweep policies`: the components.

use powersweep::policy_costs::{self as costs, Cost};
use powersweep::simulate::unknown_parameter;
use powersweep_engine::components;
use powersweep_engine::components::refusals::{Setting, refusals, refused_with};
use powersweep_engine::spec::{Component, Default, Param, Role, Section};
use serde_json::{Value as Json, json};

use crate::args::PoliciesArgs;
use crate::exit::{Outcome, failure};
use crate::screen;

/// Lists all components or those of a role, one line each, or explains the component or the parameter of a name.
pub fn run(args: &PoliciesArgs) -> Outcome {
    let name = args.name.as_deref();
    let all = components::COMPONENTS.iter().copied();
    let is_role = name.is_none_or(|name| Role::ALL.iter().any(|role| role.key() == name));
    let is_chosen =
        |of: &&'static Component| name.is_none_or(|name| if is_role { of.role.key() } else { of.name } == name);
    let mut chosen: Vec<&'static Component> = all.clone().filter(is_chosen).collect();
    let has_param = |of: &&'static Component| of.params.iter().any(|param| Some(param.name) == name);
    let is_param = chosen.is_empty();
    if is_param {
        chosen = all.clone().filter(has_param).collect();
    }
    if chosen.is_empty() {
        return Err(failure!(Usage, "{}", unknown_parameter(name.unwrap_or_default())));
    }
    match args.output.is_json() {
        true => {
            let components: Vec<Json> = chosen.iter().map(|of| component_json(of, !is_role)).collect();
            screen::print_json(json!({ "components": components }))
        }
        false if is_role => screen::print(&list(&chosen)),
        false => screen::print(
            &(chosen.iter().map(|of| component_text(of, name.filter(|_| is_param))).collect::<Vec<_>>().join("\n")
                + &footnote(if is_param { &[] } else { &chosen })),
        ),
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
    format!("{table}\n\n`powersweep policies NAME` shows the score card and the parameters of a component.")
}

/// How costs were measured, if one is shown.
fn footnote(chosen: &[&'static Component]) -> String {
    match chosen.iter().any(|component| costs::of(component).is_some()) {
        true => format!("\n{}\n", costs::MEASURED),
        false => String::new(),
    }
}

/// The facts on the score card of a policy's component: what it reads, what it guarantees, its cost.
pub(crate) fn facts(component: &Component) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !component.reads.is_empty() {
        facts.push(("Reads", component.reads.to_owned()));
    }
    if !component.guarantees.is_empty() {
        facts.push(("Guarantees", component.guarantees.to_owned()));
    }
    if component.role.section() == Section::Policies && component.role.default_component() != component.name {
        facts.push(("Cost", costs::of(component).map_or("Not measured.".to_owned(), cost_text)));
    }
    facts
}

fn cost_text(Cost { beside, least, greatest, .. }: &Cost) -> String {
    let beside = if beside.is_empty() { String::new() } else { format!(", with {beside}") };
    format!("{least:.1} to {greatest:.1} times that of EASY first come first served{beside}.")
}

/// A component, or one of its parameters alone.
fn component_text(component: &'static Component, param: Option<&str>) -> String {
    let default = if component.role.default_component() == component.name { " (default)" } else { "" };
    let source = if component.source.is_empty() { String::new() } else { format!("  Source: {}.\n", component.source) };
    let mut text = format!("{} = \"{}\"{default}\n", component.role.key(), component.name);
    if param.is_none() {
        text.push_str(&format!("  {}\n{source}", component.doc));
        facts(component).iter().for_each(|(fact, of)| text.push_str(&format!("  {fact}: {of}\n")));
        let refused = refusals(component);
        text.push_str(if refused.is_empty() { "" } else { "  Cannot be combined with:\n" });
        refused.iter().for_each(|(with, reason)| text.push_str(&format!("    {with}\n      {reason}\n")));
    }
    let mut table = screen::table();
    for of in component.params.iter().filter(|of| param.is_none_or(|name| name == of.name)) {
        table.add_row([format!("  {}", of.name), default_text(of), of.expectation(), of.doc.to_owned()]);
    }
    if table.row_count() > 0 {
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

fn component_json(component: &'static Component, is_whole: bool) -> Json {
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
    let setting = |Setting { key, value }: Setting| json!({ "key": key, "value": value });
    let cost = |Cost { beside, least, greatest, .. }: &Cost| json!({ "least": least, "greatest": greatest, "with": beside, "measured": costs::MEASURED });
    let refused = || -> Vec<Json> {
        let refused = refused_with(component).into_iter();
        let one = refused
            .map(|one| json!({ "setting": one.setting.map(setting), "with": setting(one.with), "reason": one.reason }));
        one.collect()
    };
    json!({
        "role": component.role.key(),
        "name": component.name,
        "version": component.version,
        "default": component.role.default_component() == component.name,
        "source": component.source,
        "doc": component.doc,
        "params": params,
        "section": component.role.section().key(),
        "reads": component.reads,
        "guarantees": component.guarantees,
        "cost_over_easy": costs::of(component).map(cost),
        // Found by trying all others: for a component by name only.
        "refused_with": is_whole.then(refused),
    })
}
