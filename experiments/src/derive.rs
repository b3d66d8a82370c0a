//! A manifest with other values of some parameters and without some tasks: what a search runs of it.

use std::ops::Range;
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::spec::Section;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, Value as Toml};

use crate::errors::{ManifestErrors, Problem};
use crate::manifest::Manifest;
use crate::manifest::sections::{blocks, params};
use crate::space::SECTIONS;

/// What a derived manifest has in place of its original.
#[derive(Debug, Default)]
pub struct Derivation<'a> {
    /// Comment at the top, without `#`.
    pub comment: &'a str,
    /// The experiment's name.
    pub name: &'a str,
    /// Parameters with their values, which replace those of every block that sets the parameter.
    pub values: Vec<(&'a str, Vec<Value>)>,
    /// A parameter with the value that it has in every workload.
    pub workloads: Option<(&'a str, Value)>,
    /// The first seed and the number of seeds, in place of those of the original.
    pub seeds: Option<(u64, u64)>,
    /// Further `[[exclude]]` tables: conditions with their values.
    pub exclude: Vec<Vec<(String, Vec<Value>)>>,
}

impl Manifest {
    /// The text of a derived manifest. Each parameter with values must be set in a block; no parameter may be in a zip or an
    /// `[[exclude]]`. `file` is the name of the original in messages.
    pub fn derived(&self, file: &str, derivation: &Derivation<'_>) -> Result<String, ManifestErrors> {
        let text: Arc<str> = self.source().into();
        let (table, _) = DeTable::parse_recoverable(&text);
        let problems = problems(&text, table.get_ref(), derivation);
        if !problems.is_empty() {
            return Err(ManifestErrors::new(file, &text, problems));
        }
        let edited = edited(&text, derivation).map_err(|error| {
            let problem = Problem::new(error.span().unwrap_or(0..0), "this is not TOML", error.message());
            ManifestErrors::new(file, &text, vec![problem])
        })?;
        let mut derived: String = derivation.comment.lines().map(|line| format!("# {line}\n")).collect();
        derived.push_str(edited.trim_end());
        derived.push('\n');
        for conditions in &derivation.exclude {
            derived.push_str("\n[[exclude]]\n");
            for (name, values) in conditions {
                let range = consecutive(values).filter(|_| name == "seed");
                let values =
                    range.map_or_else(|| list(values), |(from, count)| format!("{{ from = {from}, count = {count} }}"));
                derived.push_str(&format!("{name} = {values}\n"));
            }
        }
        Ok(derived)
    }
}

/// Why the manifest cannot be derived.
fn problems(text: &str, top: &DeTable<'_>, derivation: &Derivation<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some((name, _)) = &derivation.workloads {
        blocks(top, Section::Workloads).into_iter().for_each(|block| check_zip(block, name, &mut problems));
        check_excludes(top, name, &mut problems);
    }
    for (name, _) in &derivation.values {
        let sections: Vec<Section> = sections_of(name).collect();
        let blocks = sections.iter().flat_map(|section| blocks(top, *section));
        let setting: Vec<&DeTable<'_>> = blocks.filter(|block| block.contains_key(*name)).collect();
        setting.iter().for_each(|block| check_zip(block, name, &mut problems));
        if setting.is_empty() {
            let keys: Vec<&str> = sections.into_iter().map(Section::key).collect();
            let help =
                format!("set it, to any value, in the blocks of [{}] in which it is to vary", keys.join("] or ["));
            let message = format!("no block sets `{name}`");
            problems.push(Problem::new(0..0, message, "expected a block with this parameter").help(help));
        }
        check_excludes(top, name, &mut problems);
    }
    let listed = top.get_key_value("exclude").filter(|(_, rules)| !text[rules.span()].starts_with("[["));
    if let Some((key, _)) = listed.filter(|_| !derivation.exclude.is_empty()) {
        let help = "write a table [[exclude]] for each of its tables";
        let message = "a search adds tables to `exclude`";
        problems.push(Problem::new(key.span(), message, "expected [[exclude]] in place of a list").help(help));
    }
    problems
}

/// The text with other values; comments stay.
fn edited(text: &str, derivation: &Derivation<'_>) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let top = document.as_table_mut();
    set(top, "name", literal(&Value::Text(derivation.name.to_owned())).parse()?);
    if let Some((from, count)) = derivation.seeds {
        set(top, "seeds", format!("{{ from = {from}, count = {count} }}").parse()?);
    }
    if let Some((name, value)) = &derivation.workloads {
        let value: Toml = literal(value).parse()?;
        blocks_mut(top, Section::Workloads).into_iter().for_each(|block| set(block, name, value.clone()));
    }
    for (name, values) in &derivation.values {
        let values: Toml = list(values).parse()?;
        for section in sections_of(name) {
            let blocks = blocks_mut(top, section).into_iter();
            blocks.filter(|block| block.contains_key(name)).for_each(|block| set(block, name, values.clone()));
        }
    }
    Ok(document.to_string())
}

/// The blocks of a section.
fn blocks_mut(top: &mut Table, section: Section) -> Vec<&mut dyn TableLike> {
    let Some(table) = top.get_mut(section.key()).and_then(Item::as_table_like_mut) else { return Vec::new() };
    match section {
        Section::Statistics => vec![table],
        _ => table.iter_mut().filter_map(|(_, block)| block.as_table_like_mut()).collect(),
    }
}

/// Gives a key a value, in the place of its value so far.
fn set(table: &mut dyn TableLike, key: &str, mut value: Toml) {
    match table.get_mut(key) {
        Some(Item::Value(given)) => {
            *value.decor_mut() = given.decor().clone();
            *given = value;
        }
        // A table with a header of its own, or with dotted keys.
        _ => {
            table.remove(key);
            table.insert(key, Item::Value(value));
        }
    }
}

/// The sections whose blocks may set a parameter.
fn sections_of(name: &str) -> impl Iterator<Item = Section> {
    SECTIONS.into_iter().filter(move |section| params(*section).any(|(_, param)| param.name == name))
}

/// Refuses a zip of a block that names a parameter.
fn check_zip(block: &DeTable<'_>, name: &str, problems: &mut Vec<Problem>) {
    let zipped = block.get("zip").and_then(|zip| place_of(zip, name));
    problems.extend(zipped.map(|span| fixed(span, name, "a zip")));
}

/// Refuses an `[[exclude]]` that names a parameter.
fn check_excludes(top: &DeTable<'_>, name: &str, problems: &mut Vec<Problem>) {
    let rules = top.get("exclude").and_then(|rules| rules.get_ref().as_array());
    for rule in rules.into_iter().flatten() {
        let key = rule.get_ref().as_table().and_then(|rule| rule.get_key_value(name));
        problems.extend(key.map(|(key, _)| fixed(key.span(), name, "an [[exclude]]")));
    }
}

/// The place of a text in lists of texts.
fn place_of(value: &Spanned<DeValue<'_>>, wanted: &str) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::String(text) => (text == wanted).then(|| value.span()),
        DeValue::Array(items) => items.iter().find_map(|item| place_of(item, wanted)),
        _ => None,
    }
}

fn fixed(span: Range<usize>, name: &str, place: &str) -> Problem {
    let message = format!("{place} names `{name}`, whose values are replaced");
    Problem::new(span, message, "expected another parameter").help("remove it in a copy of the manifest")
}

/// The first of consecutive integers, and their number.
fn consecutive(values: &[Value]) -> Option<(i64, usize)> {
    let integer = |value: &Value| if let Value::Int(value) = value { Some(*value) } else { None };
    let all: Vec<i64> = values.iter().map(integer).collect::<Option<_>>()?;
    let is_range = all.len() > 1 && all.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    is_range.then(|| (all[0], all.len()))
}

/// A list of values in TOML.
fn list(values: &[Value]) -> String {
    format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "))
}

/// A value in TOML.
fn literal(value: &Value) -> String {
    match value {
        Value::Real(v) if *v == f64::INFINITY => "\"unlimited\"".to_owned(),
        // With a point or an exponent: an integer literal has at most 64 bits.
        Value::Real(v) => format!("{v:?}"),
        Value::Reals(values) => format!("[{}]", values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ")),
        // The escapes of JSON are among those of TOML.
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Bool(_) | Value::Int(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# a comment
version = 1
seeds = [1, 2]
name = "sweep"   # its name
workloads.made = { source = "lublin", synthetic_jobs_count = 100 }

[platforms.cluster]
size_factor = [1,
               2]  # an axis

[policies.easy]
backfill = "easy"

[[exclude]]
policy = "easy"
synthetic_jobs_count = 100
seed = 1
"#;

    fn parse(text: &str) -> Manifest {
        Manifest::parse("sweep.toml", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    }

    fn refused(text: &str, derivation: &Derivation<'_>) -> String {
        parse(text).derived("sweep.toml", derivation).expect_err("it cannot be derived").to_string()
    }

    #[test]
    fn values_and_name_are_replaced_and_the_rest_stays() {
        let derivation = Derivation {
            comment: "made\nby a test",
            name: "other",
            values: vec![("size_factor", [0.5, 1.0].map(Value::Real).to_vec())],
            exclude: vec![vec![
                ("policy".to_owned(), vec![Value::Text("easy".to_owned())]),
                ("size_factor".to_owned(), vec![Value::Real(1.0)]),
            ]],
            ..Derivation::default()
        };
        let derived = parse(TEXT).derived("sweep.toml", &derivation).expect("it can be derived");
        let expected = TEXT
            .replace("# a comment", "# made\n# by a test\n# a comment")
            .replace("\"sweep\"", "\"other\"")
            .replace("[1,\n               2]", "[0.5, 1.0]");
        assert_eq!(derived, format!("{expected}\n[[exclude]]\npolicy = [\"easy\"]\nsize_factor = [1.0]\n"));
        let manifest = parse(&derived);
        assert_eq!(manifest.name(), "other");
        let sweep = crate::Sweep::new(manifest, Default::default()).expect("it needs no log");
        assert_eq!((sweep.index_count(), sweep.task_count()), (4, 1));
    }

    #[test]
    fn every_workload_has_its_parameter_however_its_table_is_written() {
        let text = r#"version = 1
name = "sweep"
workloads.braces = { source = "lublin" }
workloads.dotted.synthetic_procs = 64
policies.easy = { backfill = "easy" }

[workloads.own]
# a comment
  source = "lublin"
synthetic_procs = 32
[workloads.given]
source = "poisson"
submit_jitter_s = [0, 10]
"#;
        let workloads = Some(("submit_jitter_s", Value::Real(60.0)));
        let derivation = Derivation { name: "shaken", workloads, seeds: Some((1, 10)), ..Derivation::default() };
        let derived = parse(text).derived("sweep.toml", &derivation).expect("it can be derived");
        let expected = text
            .replace("name = \"sweep\"", "name = \"shaken\"")
            .replace("\"lublin\" }", "\"lublin\" , submit_jitter_s = 60.0 }")
            .replace("procs = 64\n", "procs = 64\nworkloads.dotted.submit_jitter_s = 60.0\n")
            .replace("\"easy\" }\n", "\"easy\" }\nseeds = { from = 1, count = 10 }\n")
            .replace("procs = 32\n", "procs = 32\nsubmit_jitter_s = 60.0\n")
            .replace("[0, 10]", "60.0");
        assert_eq!(derived, expected);
        let sweep = crate::Sweep::new(parse(&derived), Default::default()).expect("it needs no log");
        assert_eq!(sweep.task_count(), 40);
        let excluded = format!("{text}[[exclude]]\nsubmit_jitter_s = 10\n");
        assert!(refused(&excluded, &derivation).contains("an [[exclude]] names `submit_jitter_s`"));
    }

    /// As tables are written by libraries that write no table in braces.
    #[test]
    fn a_value_that_is_a_table_with_a_header_or_dotted_keys_is_replaced() {
        let text = r#"version = 1
name = "sweep"

[workloads.made]
source = "lublin"

[policies.gears]
backfill = "easy"
gear_rule = "bsld"

[policies.gears.bsld_threshold]
from = 1.5
to = 3 # inclusive
step = 0.5

[platforms.cluster]
size_factor.from = 1
size_factor.to = 2
size_factor.step = 1

[statistics]
warmup_jobs = { from = 0, count = 2 }

[seeds]
from = 1
count = 3
"#;
        let values = vec![
            ("bsld_threshold", vec![Value::Real(2.0)]),
            ("size_factor", vec![Value::Real(1.0)]),
            ("warmup_jobs", vec![Value::Int(5)]),
        ];
        let derivation = Derivation { name: "other", values, seeds: Some((7, 2)), ..Derivation::default() };
        let derived = parse(text).derived("sweep.toml", &derivation).expect("it can be derived");
        let sweep = crate::Sweep::new(parse(&derived), Default::default()).expect("it needs no log");
        assert_eq!(sweep.task_count(), 2, "{derived}");
        for line in
            ["seeds = { from = 7, count = 2 }", "bsld_threshold = [2.0]", "size_factor = [1.0]", "warmup_jobs = [5]"]
        {
            assert!(derived.contains(&format!("\n{line}\n")), "{derived}");
        }
    }

    #[test]
    fn every_kind_of_value_is_written_so_that_it_is_read_again() {
        for (value, written) in [
            (Value::Real(1e300), "1e300"),
            (Value::Real(f64::INFINITY), "\"unlimited\""),
            (Value::Real(-3.0), "-3.0"),
            (Value::Int(-3), "-3"),
            (Value::Bool(true), "true"),
            (Value::Text("a \"b\"\n".to_owned()), r#""a \"b\"\n""#),
            (Value::Reals(vec![1.0, 2.5]), "[1.0, 2.5]"),
        ] {
            assert_eq!(literal(&value), written);
            toml::de::DeTable::parse(&format!("x = {written}")).expect("it is TOML");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let sizes = || vec![("size_factor", vec![Value::Real(1.0)])];
        let of = |values| Derivation { name: "other", values, ..Derivation::default() };
        let missing = refused(TEXT, &of(vec![("synthetic_procs", vec![Value::Int(64)])]));
        assert!(missing.contains("no block sets `synthetic_procs`") && missing.contains("[workloads]"), "{missing}");
        let excluded = refused(TEXT, &of(vec![("synthetic_jobs_count", vec![Value::Int(64)])]));
        assert!(
            excluded.contains("an [[exclude]] names `synthetic_jobs_count`") && excluded.contains(":16:1"),
            "{excluded}"
        );
        let zipped = TEXT
            .replace("[policies.easy]", "beta = [0.1, 0.2]\nzip = [[\"size_factor\", \"beta\"]]\n\n[policies.easy]");
        let zipped = refused(&zipped, &of(sizes()));
        assert!(zipped.contains("a zip names `size_factor`"), "{zipped}");
        let start = TEXT.find("[[exclude]]").expect("it has one");
        let listed = format!("exclude = [{{ size_factor = 2 }}]\n{}", &TEXT[..start]);
        let rule = vec![("policy".to_owned(), vec![Value::Text("easy".to_owned())])];
        let listed = refused(&listed, &Derivation { exclude: vec![rule], ..of(Vec::new()) });
        assert!(listed.contains("[[exclude]] in place of a list"), "{listed}");
    }
}
