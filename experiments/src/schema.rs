//! JSON Schema of the manifest (draft 2020-12), for editors: completion, documentation and checks while typing.
//!
//! The schema is generated from the list of components, so that it has exactly the components and parameters of this
//! build. It describes single keys. Rules over several keys (lengths of zips, overlaps, required parameters) are
//! checked only by [`Manifest::parse`](crate::Manifest::parse).

use powersweep_engine::spec::{Default as ParamDefault, Param, Role, Section, Type};
use powersweep_engine::{components, formula};
use serde_json::{Map, Value as Json, json};

use crate::designs::{COUNT_MAX, KINDS};
use crate::limits::{self, DEADLINE, EVENTS};
use crate::manifest::block::{params, roles};
use crate::manifest::design_range::RANGE_KEYS;
use crate::manifest::exclude::LABELS;
use crate::manifest::signal_keys::KEYS as SIGNAL_KEYS;
use crate::manifest::top::{SEEDS, series_names};
use crate::manifest::{TEXT_MAX, Tables};
use crate::names::NAME_MAX;

/// The schema of a manifest.
pub fn json_schema() -> Json {
    let blocks = |section: Section, doc: &str| {
        json!({
            "description": doc,
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", NAME_MAX - 1) },
            "additionalProperties": block(section, "A named block; its label becomes a column of the results."),
        })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "powersweep manifest",
        "description": format!("A sweep over workloads, platforms, policies and seeds (at most {TEXT_MAX} bytes of TOML)."),
        "type": "object",
        "required": ["version", "name", "workloads", "policies"],
        "additionalProperties": false,
        "properties": {
            "version": { "description": "Version of the manifest's format.", "const": 1 },
            "name": {
                "description": "Name of the experiment: a folder of the results.",
                "type": "string",
                "pattern": format!("^[a-z0-9][a-z0-9._-]{{0,{}}}$", NAME_MAX - 1),
            },
            "description": { "description": "What the experiment is about.", "type": "string" },
            "tables": {
                "description": "Optional result tables: `jobs` has one row for each simulated job, `series` one row for each point of a series.",
                "type": "array",
                "uniqueItems": true,
                "items": { "enum": Tables::LISTED },
            },
            "series": {
                "description": "The series to record, in the table `series`; without this key, `tables = [\"series\"]` records all.",
                "type": "array",
                "minItems": 1,
                "uniqueItems": true,
                "items": { "enum": series_names() },
            },
            "limits": limits(),
            "seeds": { "description": SEEDS.doc, "anyOf": [axis(&SEEDS), until()] },
            "workloads": blocks(Section::Workloads, "Where jobs come from."),
            "platforms": blocks(Section::Platforms, "Machines and their power."),
            "policies": blocks(Section::Policies, "How jobs are scheduled."),
            "designs": {
                "description": "Designs: points over the ranges of several parameters, which vary together as one axis. A block gives a parameter its range with `design = \"NAME\"`.",
                "type": "object",
                "propertyNames": { "pattern": format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", NAME_MAX - 1) },
                "additionalProperties": design(),
            },
            "signals": {
                "description": "Series of values over time, such as carbon intensity and price, that the energy of each task is weighed by: a row of the table `accounts` for each task and signal.",
                "type": "object",
                "propertyNames": { "pattern": format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", NAME_MAX - 1) },
                "additionalProperties": signal(),
            },
            "statistics": block(Section::Statistics, "What is measured and how."),
            "exclude": {
                "description": "Combinations that are left out. All conditions of a table must hold.",
                "type": "array",
                "items": condition(),
            },
            "zip": {
                "description": "Kinds of blocks that are paired one by one, in the order of the text.",
                "type": "array",
                "items": { "type": "array", "minItems": 2, "uniqueItems": true, "items": { "enum": LABELS } },
            },
        },
    })
}

/// The limits of a task.
fn limits() -> Json {
    let one = |param: &Param| {
        let mut schema = value(&param.ty);
        bound(&mut schema, "description", Some(json!(format!("{} [{}]", param.doc, param.unit))));
        schema
    };
    let memory = json!({
        "description": limits::MEMORY_DOC,
        "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": "^ *[0-9.]+ *([kKmMgGtT]?[iI]?[bB])? *$" }],
    });
    json!({
        "description": "Limits of one attempt at a task. They are not part of a task's identity.",
        "type": "object",
        "additionalProperties": false,
        "properties": { DEADLINE.name: one(&DEADLINE), EVENTS.name: one(&EVENTS), limits::MEMORY: memory },
    })
}

/// A design: one of the kinds, with the keys that it takes.
fn design() -> Json {
    let kinds = KINDS.into_iter().map(|kind| {
        let mut properties = Map::new();
        properties.insert("kind".to_owned(), json!({ "const": kind.name, "description": kind.doc }));
        for key in kind.keys {
            let schema = match *key {
                "count" => json!({ "description": kind.count, "type": "integer", "minimum": 1, "maximum": COUNT_MAX }),
                "seed" => json!({ "description": "Other seeds give other points.", "type": "integer", "minimum": 0 }),
                "levels" => json!({ "description": "Values of each range: an even number.", "type": "integer", "minimum": 2, "default": 4 }),
                "second_order" => json!({ "description": "Whether there are rows of BA.", "type": "boolean", "default": false }),
                "file" => json!({ "description": "Path of the points from the manifest's folder.", "type": "string" }),
                _ => json!({ "description": "The lines of the points.", "type": "string" }),
            };
            properties.insert((*key).to_owned(), schema);
        }
        let mut required = vec!["kind"];
        required.extend(kind.keys.contains(&"count").then_some("count"));
        json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
    });
    json!({ "description": "A named design.", "oneOf": kinds.collect::<Vec<Json>>() })
}

/// Seeds that are added until means are known.
fn until() -> Json {
    let texts = |description: &str| {
        json!({
            "description": description,
            "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }],
        })
    };
    let number =
        |description: &str, least: u64| json!({ "description": description, "type": "integer", "minimum": least });
    json!({
        "description": "Seeds that are added until means are known.",
        "type": "object",
        "required": ["until", "at_most"],
        "additionalProperties": false,
        "properties": {
            "until": texts("Half the width of an interval of a mean, and its limit: a part of the mean, such as \"ci95(bsld_mean) < 2%\", or a number in the unit of the metric."),
            "at_least": number("Number of seeds of the first stage; 10 by default.", 2),
            "at_most": number("Greatest number of seeds of a combination.", 2),
            "from": number("The first seed; 1 by default.", 0),
            "by": texts("Combinations with equal values of these columns have equally many seeds; by default each combination has its own number."),
        },
    })
}

/// The range of a parameter in a design.
fn range_of_design(param: &Param) -> Json {
    let number = if matches!(param.ty, Type::Int { .. }) { "integer" } else { "number" };
    let is_number = matches!(param.ty, Type::Int { .. } | Type::Real { .. } | Type::Reals { .. });
    let mut properties = Map::new();
    for key in RANGE_KEYS {
        let schema = match key {
            "from" | "to" | "step" if is_number => json!({ "type": number }),
            "scale" if is_number => json!({ "enum": ["linear", "log"] }),
            "values" => json!({ "type": "array", "minItems": 1, "items": value(&param.ty) }),
            "design" => json!({ "type": "string" }),
            _ => continue,
        };
        properties.insert(key.to_owned(), schema);
    }
    json!({
        "description": "The range of a design. A range that stands in another block, or listed points, need `design` only.",
        "type": "object",
        "required": ["design"],
        "additionalProperties": false,
        "properties": properties,
    })
}

/// The keys of a block of signals.
pub fn signal_keys() -> &'static [Param] {
    &SIGNAL_KEYS
}

/// A block of signals.
fn signal() -> Json {
    let mut properties: Map<String, Json> =
        SIGNAL_KEYS.iter().map(|param| (param.name.to_owned(), designed_axis(param))).collect();
    properties.insert("zip".to_owned(), zip(properties.keys()));
    let required: Vec<&str> =
        SIGNAL_KEYS.iter().filter(|key| key.default == ParamDefault::Required).map(|key| key.name).collect();
    json!({
        "description": "A named block; its label is in the column `signal`. Lists are combined.",
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

/// The zips of a block with these axes.
fn zip<'a>(names: impl Iterator<Item = &'a String>) -> Json {
    let names: Vec<&String> = names.collect();
    json!({
        "description": "Axes of this block that advance together.",
        "type": "array",
        "items": { "type": "array", "minItems": 2, "uniqueItems": true, "items": { "enum": names } },
    })
}

/// A block of a section.
fn block(section: Section, doc: &str) -> Json {
    let mut properties = Map::new();
    for role in roles(section) {
        properties.insert(role.key().to_owned(), choice(role));
    }
    for (_, param) in params(section) {
        let schema = if param.is_identity() { designed_axis(param) } else { axis(param) };
        properties.insert(param.name.to_owned(), schema);
    }
    properties.insert("zip".to_owned(), zip(properties.keys()));
    json!({ "description": doc, "type": "object", "additionalProperties": false, "properties": properties })
}

/// The components of a role, each with its documentation.
fn choice(role: Role) -> Json {
    let choices: Vec<Json> = components::of(role)
        .map(|component| json!({ "const": component.name, "description": component.doc }))
        .collect();
    let one = json!({ "oneOf": choices });
    json!({
        "description": format!("One of the components for {} of [{}], or a list as an axis.", role.key(), role.section().key()),
        "default": role.default_component(),
        "anyOf": [one.clone(), { "type": "array", "minItems": 1, "uniqueItems": true, "items": one }],
    })
}

/// An axis, or the range of a design.
fn designed_axis(param: &Param) -> Json {
    let mut schema = axis(param);
    if let Some(Json::Array(forms)) = schema.get_mut("anyOf") {
        forms.push(range_of_design(param));
    }
    schema
}

/// A value of a parameter, a list of values, or a range.
fn axis(param: &Param) -> Json {
    let one = value(&param.ty);
    let range = range(&param.ty);
    let mut items = vec![one.clone()];
    items.extend(range.clone());
    let items = if items.len() == 1 { one.clone() } else { json!({ "anyOf": items }) };
    let mut forms = vec![one, json!({ "type": "array", "minItems": 1, "items": items })];
    forms.extend(range);
    let owners: Vec<String> = components::COMPONENTS
        .iter()
        .filter(|component| component.params.iter().any(|p| p.name == param.name))
        .map(|component| format!("{} = \"{}\"", component.role.key(), component.name))
        .collect();
    let unit = if param.unit.is_empty() { String::new() } else { format!(" [{}]", param.unit) };
    let owners = if owners.is_empty() { String::new() } else { format!(" Parameter of {}.", owners.join(", ")) };
    let mut schema = json!({ "description": format!("{}{unit}{owners}", param.doc), "anyOf": forms });
    let default = match param.default.value() {
        Some(powersweep_engine::Value::Bool(v)) => Some(json!(v)),
        Some(powersweep_engine::Value::Int(v)) => Some(json!(v)),
        Some(powersweep_engine::Value::Real(v)) if v.is_finite() => Some(json!(v)),
        Some(powersweep_engine::Value::Real(_)) => Some(json!("unlimited")),
        Some(powersweep_engine::Value::Text(v)) => Some(json!(v)),
        Some(powersweep_engine::Value::Reals(v)) => Some(json!(v)),
        None => None,
    };
    if let (Some(default), Json::Object(schema)) = (default, &mut schema) {
        schema.insert("default".to_owned(), default);
    }
    schema
}

/// One value of a type.
fn value(ty: &Type) -> Json {
    match *ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int { min, max } => {
            let mut schema = json!({ "type": "integer" });
            bound(&mut schema, "minimum", (min != i64::MIN).then(|| json!(min)));
            bound(&mut schema, "maximum", (max != i64::MAX).then(|| json!(max)));
            schema
        }
        Type::Real { min, max, min_allowed, unlimited } => {
            let mut schema = json!({ "type": "number" });
            let least = if min_allowed { "minimum" } else { "exclusiveMinimum" };
            bound(&mut schema, least, (min > f64::MIN).then(|| json!(min)));
            bound(&mut schema, "maximum", (max < f64::MAX).then(|| json!(max)));
            if unlimited { json!({ "anyOf": [schema, { "const": "unlimited" }] }) } else { schema }
        }
        Type::OneOf(names) => json!({ "enum": names }),
        Type::Locator | Type::Signal { .. } => json!({ "type": "string" }),
        Type::Module => json!({ "type": "string", "minLength": 1 }),
        Type::Formula { .. } => json!({ "type": "string", "minLength": 1, "maxLength": formula::TEXT_MAX }),
        Type::Reals { min, max } => {
            let mut item = json!({ "type": "number" });
            bound(&mut item, "minimum", (min > f64::MIN).then(|| json!(min)));
            bound(&mut item, "maximum", (max < f64::MAX).then(|| json!(max)));
            json!({ "type": "array", "minItems": 1, "items": item })
        }
    }
}

fn bound(schema: &mut Json, key: &str, value: Option<Json>) {
    if let (Json::Object(schema), Some(value)) = (schema, value) {
        schema.insert(key.to_owned(), value);
    }
}

/// A range of numbers, if the type has ranges.
fn range(ty: &Type) -> Option<Json> {
    let (number, step_needed) = match ty {
        Type::Int { .. } => ("integer", false),
        Type::Real { .. } => ("number", true),
        _ => return None,
    };
    let required = |last: &'static str| if step_needed { vec!["from", last, "step"] } else { vec!["from", last] };
    Some(json!({
        "description": "A range, both ends included; decimals are exact.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "from": { "type": number },
            "to": { "type": number },
            "step": { "type": number, "exclusiveMinimum": 0 },
            "count": { "type": "integer", "minimum": 1 },
        },
        "oneOf": [{ "required": required("to") }, { "required": required("count") }],
    }))
}

/// The conditions of an `[[exclude]]` table: labels, components, parameters, the seed.
fn condition() -> Json {
    let mut properties = Map::new();
    let texts =
        json!({ "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }] });
    for label in LABELS {
        properties.insert(label.to_owned(), texts.clone());
    }
    for role in Role::ALL {
        properties.insert(role.key().to_owned(), choice(role));
    }
    for param in components::COMPONENTS.iter().flat_map(|component| component.params) {
        let mut schema = axis(param);
        if let (Type::Real { .. }, Some(Json::Array(forms))) = (param.ty, schema.get_mut("anyOf")) {
            forms.push(json!({
                "description": "All values of an interval, both ends included.",
                "type": "object",
                "required": ["from", "to"],
                "additionalProperties": false,
                "properties": { "from": { "type": "number" }, "to": { "type": "number" } },
            }));
        }
        properties.insert(param.name.to_owned(), schema);
    }
    properties.insert("seed".to_owned(), axis(&SEEDS));
    for property in properties.values_mut() {
        // An editor would offer a default as a condition.
        if let Json::Object(property) = property {
            property.remove("default");
        }
    }
    json!({ "type": "object", "minProperties": 1, "additionalProperties": false, "properties": properties })
}
