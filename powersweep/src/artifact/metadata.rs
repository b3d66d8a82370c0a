//! The facts of an artifact as an RO-Crate 1.1: JSON-LD with words of schema.org.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::{METADATA, Study, manifest_path};

/// The id of the program that simulated.
const PROGRAM: &str = "#powersweep";

/// The file `ro-crate-metadata.json`. `files`: all others but the list of digests.
pub(super) fn ro_crate(study: &Study, files: &BTreeMap<String, PathBuf>) -> Json {
    let paths = || files.keys().map(String::as_str).chain([super::SUMS]);
    let ids = |paths: &mut dyn Iterator<Item = &str>| paths.map(|path| json!({ "@id": path })).collect::<Vec<_>>();
    let mut authors = Vec::new();
    let (licence, licence_entity) = licence(study);
    let description = format!(
        "Rows, manifests and digests of the experiments {}, with what verifies them.",
        study.experiments.iter().map(|experiment| experiment.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let mut graph = vec![
        json!({
            "@id": METADATA, "@type": "CreativeWork", "about": { "@id": "./" },
            "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
        }),
        json!({
            "@id": "./", "@type": "Dataset", "name": study.title, "description": description,
            "datePublished": study.date, "license": licence, "hasPart": ids(&mut paths()),
            "mentions": one_or_all(mentions(study)),
        }),
        licence_entity,
    ];
    for (number, text) in (1..).zip(&study.authors) {
        let (name, address) = author(text);
        let id = address.map_or(format!("#author-{number}"), str::to_owned);
        graph.push(json!({ "@id": id, "@type": "Person", "name": name }));
        authors.push(json!({ "@id": id }));
    }
    if !authors.is_empty() {
        graph[1]["author"] = one_or_all(authors);
    }
    graph.extend(paths().map(|path| file(path, files.get(path))));
    graph.push(json!({
        "@id": PROGRAM, "@type": "SoftwareApplication", "name": "powersweep",
        "description": "Parameter sweeps of power-aware cluster scheduling.",
        "softwareVersion": versions(study).join(", "),
    }));
    for experiment in &study.experiments {
        let rows: Vec<Json> = experiment
            .tables
            .keys()
            .map(|table| super::table_path(&experiment.name, table))
            .filter(|path| files.contains_key(path))
            .map(|path| json!({ "@id": path }))
            .collect();
        let inputs = experiment.inputs.iter().filter_map(|input| input.path.clone());
        let objects = std::iter::once(manifest_path(&experiment.name)).chain(inputs);
        graph.push(json!({
            "@id": action(&experiment.name), "@type": "CreateAction",
            "name": format!("Simulation of {}", experiment.name), "endTime": study.date,
            "instrument": { "@id": PROGRAM }, "result": one_or_all(rows),
            "object": one_or_all(objects.map(|path| json!({ "@id": path })).collect()),
        }));
    }
    json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph })
}

/// JSON-LD has one value where there is one.
fn one_or_all(mut values: Vec<Json>) -> Json {
    if values.len() == 1 { values.remove(0) } else { Json::from(values) }
}

/// Name and address of an author.
pub(super) fn author(text: &str) -> (&str, Option<&str>) {
    match text.split_once('<').and_then(|(name, rest)| Some((name.trim(), rest.strip_suffix('>')?))) {
        Some((name, address)) if address.starts_with("https://") => (name, Some(address)),
        _ => (text, None),
    }
}

fn action(experiment: &str) -> String {
    format!("#simulation-{experiment}")
}

fn mentions(study: &Study) -> Vec<Json> {
    study.experiments.iter().map(|experiment| json!({ "@id": action(&experiment.name) })).collect()
}

/// The programs that simulated the rows.
pub(super) fn versions(study: &Study) -> Vec<&str> {
    let all: BTreeSet<&str> = study.experiments.iter().flat_map(|e| &e.simulated_by).map(String::as_str).collect();
    all.into_iter().collect()
}

/// The licence of the whole, by its address if it has an identifier of SPDX.
fn licence(study: &Study) -> (Json, Json) {
    let name = study.licence.as_deref().unwrap_or("No licence is stated");
    let is_identifier = |c: char| c.is_ascii_alphanumeric() || "-.+".contains(c);
    let id = match study.licence.as_deref() {
        Some(name) if name.starts_with("https://") => name.to_owned(),
        Some(name) if name.chars().all(is_identifier) => format!("https://spdx.org/licenses/{name}"),
        _ => "#licence".to_owned(),
    };
    let description = "The licence of the artifact. Files of inputs/ have their own.";
    (json!({ "@id": id }), json!({ "@id": id, "@type": "CreativeWork", "name": name, "description": description }))
}

fn file(path: &str, stored: Option<&PathBuf>) -> Json {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let format = match ending {
        "toml" => "application/toml",
        "json" => "application/json",
        "parquet" => "application/vnd.apache.parquet",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "md" => "text/markdown",
        "tex" => "application/x-tex",
        "sh" => "application/x-sh",
        "gz" => "application/gzip",
        "wasm" => "application/wasm",
        _ if path == super::SUMS || path == super::CONTAINER => "text/plain",
        _ => "application/octet-stream",
    };
    let mut entity = json!({ "@id": path, "@type": "File", "name": path, "encodingFormat": format });
    if let Some(bytes) = stored.and_then(|path| path.metadata().ok()) {
        entity["contentSize"] = json!(bytes.len().to_string());
    }
    if let Some(description) = description(path) {
        entity["description"] = json!(description);
    }
    entity
}

fn description(path: &str) -> Option<&'static str> {
    Some(match path {
        super::SUMS => "SHA-256 of every other file",
        super::STUDY => "Experiments, inputs and figures, for programs",
        super::VERDICTS => "Each claim of the paper beside its value",
        super::VERSIONS => "Versions of the components and of the programs",
        super::SCRIPT => "Verifies digests, rows and claims, and draws the figures again",
        super::DESCRIPTION => "Two pages with what forms of reviewers ask",
        super::CONTAINER => "Recipe of an image with the program",
        super::README => "What the files are",
        _ => return None,
    })
}
