//! The keys of claims and presets in `docs/papers.md`, from the documentation of the types that are read.
//!
//! `POWERSWEEP_REGENERATE=1 cargo test -p powersweep-claims --test it documented` rewrites them.

use std::fmt::Write as _;

const TABLES: [(&str, &str, &str); 11] = [
    ("claim", "Claims", "The file of claims:"),
    ("claim", "Claim", "`[[claims]]`:"),
    ("claim", "Within", "`within`:"),
    ("selection", "Selection", "A selection, such as `value`, `less_than`, `divided_by`, `minus` or `half_width`:"),
    ("selection", "Step", "A step of `then`:"),
    ("presets", "Presets", "The file of figures and tables:"),
    ("presets", "Preset", "`[[presets]]`:"),
    ("presets", "Axis", "An axis, `x`, `colour` or `facet`:"),
    ("presets", "Measure", "The axis `y`:"),
    ("presets", "Values", "`[[presets.values]]`:"),
    ("presets", "Published", "An item of `published` of a value, if it is no id of a claim:"),
];

/// The keys of a struct with their documentation.
fn keys(source: &str, name: &str) -> Vec<(String, String)> {
    let start = format!("struct {name} {{");
    let fields = source.lines().skip_while(|line| !line.ends_with(&start)).skip(1).take_while(|line| *line != "}");
    let (mut found, mut doc, mut attributes) = (Vec::new(), Vec::new(), String::new());
    for line in fields.map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc.push(text);
        } else if line.starts_with("#[") {
            attributes += line;
        } else if let Some((declared, _)) = line.split_once(": ") {
            let renamed = attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
            let key = renamed.or(declared.rsplit(' ').next()).expect("a name").to_owned();
            if !doc.is_empty() && !attributes.contains("serde(skip)") {
                found.push((key, doc.join(" ")));
            }
            doc.clear();
            attributes.clear();
        }
    }
    found
}

#[test]
fn every_key_is_in_the_documents() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let mut tables = "\n".to_owned();
    for (file, name, title) in TABLES {
        let source = std::fs::read_to_string(format!("{folder}/src/{file}.rs")).expect("the source");
        let keys = keys(&source, name);
        assert!(keys.len() > 1, "{name}");
        write!(tables, "{title}\n\n| key | meaning |\n|---|---|\n").expect("a text");
        for (key, doc) in keys {
            writeln!(tables, "| `{key}` | {doc} |").expect("a text");
        }
        tables.push('\n');
    }
    let path = format!("{folder}/../docs/papers.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (begin, end) = ("### Each key\n", "## Studies\n");
    let (before, rest) = page.split_once(begin).expect("the place of the keys");
    let (known, after) = rest.split_once(end).expect("the end of the keys");
    if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, format!("{before}{begin}{tables}{end}{after}")).expect("it is written");
    } else {
        assert!(known == tables, "docs/papers.md has other keys: run `cargo xtask docs`");
    }
}
