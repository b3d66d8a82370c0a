//! The JSON Schema accepts what the reader accepts. The test has a validator for the keywords that the schema uses.

use powersweep_engine::components;
use powersweep_experiments::{manifests, schema};
use serde_json::{Value as Json, json};

/// Whether a value fits a schema. Knows the keywords of our schema only.
fn fits(schema: &Json, value: &Json) -> bool {
    let Json::Object(keywords) = schema else { return schema != &json!(false) };
    keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
        "type" => match rule.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            other => panic!("type {other:?}"),
        },
        "const" => value == rule,
        "enum" => rule.as_array().is_some_and(|all| all.contains(value)),
        "minimum" => number(value).is_none_or(|v| number(rule).is_some_and(|r| v >= r)),
        "maximum" => number(value).is_none_or(|v| number(rule).is_some_and(|r| v <= r)),
        "exclusiveMinimum" => number(value).is_none_or(|v| number(rule).is_some_and(|r| v > r)),
        "anyOf" => all(rule).iter().any(|s| fits(s, value)),
        "oneOf" => all(rule).iter().filter(|s| fits(s, value)).count() == 1,
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(rule, item))),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap_or(0)),
        "uniqueItems" => value.as_array().is_none_or(|v| (1..v.len()).all(|i| !v[..i].contains(&v[i]))),
        "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= rule.as_u64().unwrap_or(0)),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap_or(0)),
        "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= rule.as_u64().unwrap_or(0)),
        "required" => {
            value.as_object().is_none_or(|map| all(rule).iter().all(|k| map.contains_key(k.as_str().unwrap_or("?"))))
        }
        "properties" => value
            .as_object()
            .is_none_or(|map| map.iter().all(|(key, value)| rule.get(key).is_none_or(|schema| fits(schema, value)))),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = |key: &str| keywords.get("properties").is_some_and(|p| p.get(key).is_some());
            map.iter().filter(|(key, _)| !known(key)).all(|(_, value)| fits(rule, value))
        }),
        // Names are tested where the reader checks them.
        "pattern" | "propertyNames" => true,
        "$schema" | "title" | "description" | "default" => rule.is_string() || keyword == "default",
        other => panic!("the schema uses the keyword {other}, which this test does not know"),
    })
}

fn number(value: &Json) -> Option<f64> {
    value.as_f64()
}

fn all(rule: &Json) -> &Vec<Json> {
    rule.as_array().expect("a list of schemas")
}

fn json_of(text: &str) -> Json {
    toml::from_str(text).expect("TOML")
}

#[test]
fn the_builtin_manifests_fit_the_schema() {
    let schema = schema::json_schema();
    for (name, text) in manifests::builtin() {
        assert!(fits(&schema, &json_of(text)), "{name}");
    }
}

#[test]
fn wrong_manifests_do_not_fit_the_schema() {
    let schema = schema::json_schema();
    let good = "version = 1\nname = \"a\"\n[workloads.w]\n[platforms.p]\nsize_factor = 1\n[policies.q]\nqueue_order = \"fcfs\"\n";
    assert!(fits(&schema, &json_of(good)));
    let designed = |range: &str| {
        format!("{good}[signals.s]\nquantity = \"carbon\"\nfile = \"a.csv\"\npue = {{ {range}, design = \"d\" }}\n")
    };
    assert!(fits(&schema, &json_of(&designed("from = 1, to = 2"))));
    assert!(!fits(&schema, &json_of(&designed("from = 1, until = 2"))));
    for (from, to) in [
        ("version = 1", "version = 2"),
        ("name", "nmae"),
        ("size_factor = 1", "size_factor = 0"),
        ("size_factor = 1", "size_factor = []"),
        ("size_factor = 1", "size_factor = { from = 1, to = 2 }"),
        ("size_factor = 1", "size_factor = \"1\""),
        ("queue_order = \"fcfs\"", "queue_order = \"fcf\""),
        ("queue_order = \"fcfs\"", "size_factor = 1"),
        ("queue_order = \"fcfs\"", "wq_threshold = \"unlimite\""),
        ("[policies.q]", "[exclude]"),
    ] {
        assert!(!fits(&schema, &json_of(&good.replace(from, to))), "{to}");
    }
}

#[test]
fn every_component_and_parameter_is_documented_in_the_schema() {
    let text = schema::json_schema().to_string();
    for component in components::COMPONENTS.iter() {
        for word in std::iter::once(component.name).chain(component.params.iter().map(|param| param.name)) {
            assert!(text.contains(&format!("\"{word}\"")), "{word}");
        }
    }
}

/// Runs if Python has a validator (`pip install jsonschema`).
#[test]
fn an_independent_validator_agrees() {
    let script = "import json,sys,jsonschema; s,*m=json.load(sys.stdin); v=jsonschema.Draft202012Validator; \
                  v.check_schema(s); [v(s).validate(i) for i in m]; print('valid',len(m))";
    let have = std::process::Command::new("python3").args(["-c", "import jsonschema"]).output();
    if !have.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 with jsonschema is not installed");
        return;
    }
    let mut all = vec![schema::json_schema()];
    all.extend(manifests::builtin().iter().map(|(_, text)| json_of(text)));
    let input = json!(all).to_string();
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("python3 starts");
    std::io::Write::write_all(child.stdin.as_mut().expect("piped"), input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("python3 ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("valid {}", manifests::builtin().len());
    assert_eq!(said.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}
