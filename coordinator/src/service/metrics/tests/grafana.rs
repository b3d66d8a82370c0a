//! The dashboard of docker-compose.yml's profile `metrics` asks for metrics and labels that exist.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use super::{Metric, metrics};

/// Words of PromQL, and labels, in the dashboard's queries.
const WORDS: [&str; 14] = [
    "sum",
    "max",
    "by",
    "rate",
    "increase",
    "histogram_quantile",
    "label_values",
    "le",
    "experiment",
    "state",
    "phase",
    "kind",
    "place",
    "request",
];

fn dashboard() -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/compose/grafana/powersweep.json");
    let text = std::fs::read_to_string(path).expect("the dashboard is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The texts of a key, at any depth.
fn texts<'a>(value: &'a Json, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Json::Object(fields) => fields.iter().for_each(|(name, value)| match value {
            Json::String(text) if name == key => found.push(text),
            value => texts(value, key, found),
        }),
        Json::Array(values) => values.iter().for_each(|value| texts(value, key, found)),
        _ => {}
    }
}

/// The names in a query, without its texts and numbers.
fn names(query: &str) -> Vec<&str> {
    let outside = query.split('"').step_by(2);
    let words = outside.flat_map(|piece| piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).collect()
}

/// The metric of a series: a histogram has three.
fn metric<'a>(metrics: &'a [Metric], series: &str) -> Option<&'a Metric> {
    metrics.iter().find(|metric| match metric.kind.as_str() {
        "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| series.strip_suffix(end) == Some(&metric.name)),
        _ => series == metric.name,
    })
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let (dashboard, all) = (dashboard(), metrics());
    let mut queries = Vec::new();
    texts(&dashboard, "expr", &mut queries);
    let panels = dashboard["panels"].as_array().map_or(0, Vec::len);
    assert!(queries.len() >= panels && panels > 10, "{} queries, {panels} panels", queries.len());
    texts(&dashboard, "query", &mut queries);
    let mut asked = BTreeSet::new();
    for query in queries.iter().filter(|query| query.contains("powersweep_")) {
        let series: Vec<&str> = names(query).into_iter().filter(|name| name.starts_with("powersweep_")).collect();
        let metrics: Vec<&Metric> = series
            .iter()
            .map(|name| metric(&all, name).unwrap_or_else(|| panic!("no metric {name}: {query}")))
            .collect();
        for name in names(query).into_iter().filter(|name| !name.starts_with("powersweep_")) {
            assert!(WORDS.contains(&name), "{name}: {query}");
            let is_label = all.iter().any(|metric| metric.labels.iter().any(|label| label == name));
            assert!(
                !is_label || metrics.iter().any(|metric| metric.labels.iter().any(|label| label == name)),
                "no label {name}: {query}"
            );
        }
        asked.extend(metrics.iter().map(|metric| metric.name.as_str()));
    }
    assert!(asked.len() >= 12, "{asked:?}");
}

#[test]
fn the_panels_do_not_overlap() {
    let dashboard = dashboard();
    let at = |panel: &Json, key: &str| panel["gridPos"][key].as_u64().unwrap();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(at(panel, "x") + at(panel, "w") <= 24, "{panel}");
        for x in at(panel, "x")..at(panel, "x") + at(panel, "w") {
            for y in at(panel, "y")..at(panel, "y") + at(panel, "h") {
                assert!(taken.insert((x, y)), "{} covers another panel", panel["title"]);
            }
        }
    }
}
