//! The reference of manifests matches the build.
//!
//! `POWERSWEEP_REGENERATE=1 cargo test -p powersweep-experiments --test it documented` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use powersweep_engine::components;
use powersweep_engine::spec::{Component, Default, Param, Role, Section};
use powersweep_experiments::designs::{KINDS, Kind};
use powersweep_experiments::schema;
use serde_json::Value as Json;

const HEAD: &str = "# Manifest

This page is generated from the program by `cargo xtask docs`. `powersweep policies NAME` shows a component in the terminal, and
`powersweep schema` prints the JSON Schema for editors; `experiments/manifests/quickstart.toml` in the source is an annotated
manifest. Unknown keys, wrong values and combinations that make no sense are errors with their place.

An axis is a list, such as `bsld_threshold = [1.5, 2]`, or a range, such as `{ from = 1.5, to = 3, step = 0.5 }` or
`{ from = 1, count = 10 }`, whose ends are included and whose decimals are exact. Any component and any parameter below can be
an axis, and any parameter below that is part of a task's identity, or a key of signals, can have a range of a design, such as
`{ from = 1.5, to = 3, design = \"knobs\" }`.

## Top level

| key | required | meaning |
|---|---|---|
";

/// The head of a table of parameters.
const PARAMETERS: &str = "| parameter | default | value | meaning |\n|---|---|---|---|\n";

/// The keys of the top level, in the order in which manifests have them.
const KEYS: [&str; 15] = [
    "version",
    "name",
    "description",
    "seeds",
    "tables",
    "series",
    "limits",
    "zip",
    "exclude",
    "workloads",
    "platforms",
    "policies",
    "statistics",
    "designs",
    "signals",
];

fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}

fn keys(schema: &Json) -> String {
    let of_schema = schema["properties"].as_object().expect("a manifest has keys");
    assert_eq!(of_schema.len(), KEYS.len(), "KEYS has the schema's keys");
    let required = schema["required"].as_array().expect("some are required");
    let mut text = String::new();
    for key in KEYS {
        let is_required = if required.iter().any(|name| name == key) { "yes" } else { "" };
        let about = of_schema[key]["description"].as_str().expect("every key is explained");
        let _ = writeln!(text, "| `{key}` | {is_required} | {} |", plain(about));
    }
    text.push_str("\nKeys of `[limits]`:\n\n| key | meaning |\n|---|---|\n");
    for (key, limit) in of_schema["limits"]["properties"].as_object().expect("there are limits") {
        let _ = writeln!(text, "| `{key}` | {} |", plain(limit["description"].as_str().expect("a text")));
    }
    text
}

fn component(component: &Component) -> String {
    let Component { role, name, version, doc, source, params, .. } = component;
    let default = if role.default_component() == *name { ", the default" } else { "" };
    let mut text = format!("#### `{} = \"{name}\"`\n\n{} (Version {version}{default}.", role.key(), plain(doc));
    if !source.is_empty() {
        let _ = write!(text, " Source: {}.", plain(source));
    }
    text.push_str(")\n\n");
    let (shared, own): (Vec<&Param>, Vec<&Param>) = params.iter().partition(|param| is_shared(*role, param.name));
    if !shared.is_empty() {
        let names: Vec<String> = shared.iter().map(|param| format!("`{}`", param.name)).collect();
        let _ = writeln!(text, "Shared parameters, explained above: {}.\n", names.join(", "));
    }
    if !own.is_empty() {
        text += &parameters(own);
        text.push('\n');
    }
    text
}

/// Whether several components of a role have a parameter.
fn is_shared(role: Role, name: &str) -> bool {
    let has_it = |component: &&Component| component.params.iter().any(|param| param.name == name);
    components::of(role).filter(has_it).count() > 1
}

/// The parameters that several components of a role have. A name has one declaration, so that equal names have equal rows.
fn shared(role: Role) -> String {
    let mut found: Vec<&Param> = Vec::new();
    for param in components::of(role).flat_map(|component| component.params) {
        if is_shared(role, param.name) && found.iter().all(|known| known.name != param.name) {
            found.push(param);
        }
    }
    match found.is_empty() {
        true => String::new(),
        false => format!("Parameters that several components share:\n\n{}\n", parameters(found)),
    }
}

/// A table of parameters.
fn parameters<'a>(params: impl IntoIterator<Item = &'a Param>) -> String {
    PARAMETERS.to_owned() + &params.into_iter().map(parameter).collect::<String>()
}

fn parameter(param: &Param) -> String {
    let default = match param.default {
        Default::Unset => "not set".to_owned(),
        Default::Required => "required".to_owned(),
        other => other.value().map(|value| format!("`{value}`")).unwrap_or_default(),
    };
    format!("| `{}` | {default} | {} | {} |\n", param.name, plain(&param.expectation()), plain(param.doc))
}

/// The kinds of designs.
fn designs() -> String {
    let mut text = "\n## `[designs.NAME]`\n\n[Designs](../designs.md) explains the keys.\n\n".to_owned();
    text += "| `kind` | keys | `count` | a greater `count` | points |\n|---|---|---|---|---|\n";
    for kind in KINDS {
        let keys: Vec<String> = kind.keys.iter().map(|key| format!("`{key}`")).collect();
        let Kind { name, count, extension, doc, .. } = kind;
        let _ = writeln!(text, "| `{name}` | {} | {count} | {extension} | {} |", keys.join(", "), plain(doc));
    }
    text
}

#[test]
fn manifest_md_is_up_to_date() {
    let mut text = HEAD.to_owned() + &keys(&schema::json_schema());
    let sections = [
        ("[workloads.NAME]", Section::Workloads),
        ("[platforms.NAME]", Section::Platforms),
        ("[policies.NAME]", Section::Policies),
        ("[statistics]", Section::Statistics),
    ];
    for (title, section) in sections {
        let _ = write!(text, "\n## `{title}`\n\n");
        for role in Role::ALL.into_iter().filter(|role| role.section() == section) {
            let _ = write!(text, "### `{}`\n\n{}", role.key(), shared(role));
            components::of(role).for_each(|of_role| text.push_str(&component(of_role)));
        }
    }
    text += &designs();
    text.push_str("\n## `[signals.NAME]`\n\n[Signals](../signals.md) explains the keys.\n\n");
    text += &parameters(schema::signal_keys());
    let text = text.trim_end().to_owned() + "\n";
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "no parameter is explained twice");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/manifest.md");
    if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("the repository is writable");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/reference/manifest.md is generated: run `cargo xtask docs`");
}
