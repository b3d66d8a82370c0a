//! The reader of claims files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_experiments::ManifestErrors;
use powersweep_results::Table;
use toml::de::DeTable;

use crate::compare::{Comparison, KEYS as COMPARISONS, check_lengths, check_placeholders};
use crate::evaluate::Finding;
use crate::per::repetitions;
use crate::read::{Item, Reader};
use crate::rows::{Needed, Rows};
use crate::selection::{Context, Runs, Selection, manifest_name, span_of};

/// Greatest size of a claims file (bytes).
const TEXT_MAX: usize = 1 << 20;

const TOP: [&str; 6] = ["version", "paper", "title", "manifests", "runs", "claims"];
const CLAIM: [&str; 8] = ["id", "text", "source", "demanded", "why", "per", "paired", "value"];

/// The claims of one paper.
#[derive(Debug, Clone)]
pub struct Claims {
    pub(crate) paper: String,
    pub(crate) title: String,
    pub(crate) manifests: Vec<String>,
    pub(crate) runs: BTreeMap<String, Runs>,
    pub(crate) claims: Vec<Claim>,
}

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) source: String,
    pub(crate) demanded: bool,
    pub(crate) why: Option<String>,
    /// The conditions of each repetition; one empty entry for a claim that is not repeated.
    pub(crate) repetitions: Vec<Vec<(String, Value)>>,
    pub(crate) paired: Vec<String>,
    pub(crate) value: Selection,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Claims {
    /// Reads and checks a claims file. `file` is the name shown in messages.
    ///
    /// # Errors
    /// Every problem at once, each with its line.
    pub fn parse(file: &str, text: &str) -> Result<Claims, ManifestErrors> {
        let shared: Arc<str> = text.into();
        let mut reader = Reader { problems: Vec::new() };
        let claims = read(&shared, &mut reader);
        match claims {
            Some(claims) if reader.problems.is_empty() => Ok(claims),
            _ => {
                if reader.problems.is_empty() {
                    reader.problem_at(0..0, "these claims cannot be used", "this is a bug: please report it");
                }
                Err(ManifestErrors::new(file, &shared, reader.problems))
            }
        }
    }

    /// The paper's short name.
    pub fn paper(&self) -> &str {
        &self.paper
    }

    /// Authors, year and title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Number of claims; each repetition counts.
    pub fn count(&self, demanded_only: bool) -> usize {
        self.chosen(demanded_only).map(|claim| claim.repetitions.len()).sum()
    }

    /// The columns to read, by manifest and table.
    pub fn needed(&self, demanded_only: bool) -> Needed {
        let mut needed = Needed::new();
        for claim in self.chosen(demanded_only) {
            claim.need(&self.manifests[0], &mut needed);
        }
        needed
    }

    /// The manifests whose rows are read, in the order of the file.
    pub fn manifests(&self, demanded_only: bool) -> Vec<&str> {
        let needed: BTreeSet<String> = self.needed(demanded_only).into_keys().map(|(manifest, _)| manifest).collect();
        self.manifests.iter().map(String::as_str).filter(|name| needed.contains(*name)).collect()
    }

    /// Compares every claim with the rows.
    pub fn check(&self, rows: &Rows, demanded_only: bool) -> Vec<Finding> {
        self.chosen(demanded_only).flat_map(|claim| claim.check(&self.manifests[0], rows)).collect()
    }

    fn chosen(&self, demanded_only: bool) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| claim.demanded || !demanded_only)
    }
}

fn read(text: &Arc<str>, reader: &mut Reader) -> Option<Claims> {
    if text.len() > TEXT_MAX {
        let expected = format!("at most {TEXT_MAX} bytes");
        reader.problem_at(0..0, format!("the claims have {} bytes", text.len()), expected);
        return None;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        reader.problem_at(span, "this is not TOML", error.message().to_owned());
    }
    if !errors.is_empty() {
        return None;
    }
    let table = table.get_ref();
    reader.keys("a claims file", table, &TOP);
    if reader.number(table, "version") != Some(1.0) {
        let expected = "expected version = 1, the version of the format of claims";
        reader.problem_at(span_of(table, "version"), "`version` is not 1", expected);
    }
    let paper = required(reader, table, "paper", "a short name such as \"etinski2010\"", 0..0);
    let title = required(reader, table, "title", "authors, year and title of the paper", 0..0);
    let manifests = reader.texts(table, "manifests");
    if table.get("manifests").is_none() {
        let expected = "expected the names of the manifests whose rows are compared";
        reader.problem_at(0..0, "`manifests` is missing", expected);
    }
    let manifests = manifests?;
    let runs = runs(reader, table, &manifests);
    let claims = claims(reader, &Context { manifests: &manifests, runs: &runs }, table);
    Some(Claims { paper: paper?, title: title?, manifests, runs, claims })
}

pub(crate) fn required(
    reader: &mut Reader,
    table: &DeTable<'_>,
    key: &str,
    expected: &str,
    place: std::ops::Range<usize>,
) -> Option<String> {
    if table.get(key).is_none() {
        reader.problem_at(place, format!("`{key}` is missing"), format!("expected {expected}"));
    }
    reader.text(table, key)
}

fn runs(reader: &mut Reader, table: &DeTable<'_>, manifests: &[String]) -> BTreeMap<String, Runs> {
    let tasks = Table::Tasks;
    let none = BTreeMap::new();
    let mut found = BTreeMap::new();
    let Some(sets) = reader.table(table, "runs") else { return found };
    for name in sets.keys() {
        let Some(set) = reader.table(sets, name.get_ref()) else { continue };
        let manifest = manifest_name(reader, &Context { manifests, runs: &none }, set);
        let conditions = reader.conditions(tasks, set, &["manifest"]);
        found.insert(name.get_ref().to_string(), Runs { manifest, conditions });
    }
    found
}

fn claims(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>) -> Vec<Claim> {
    let Some(item) = table.get("claims") else {
        reader.problem_at(0..0, "there are no claims", "expected at least one [[claims]]");
        return Vec::new();
    };
    let Some(items) = item.get_ref().as_array() else {
        reader.problem(item, "`claims` must be a list of tables", "expected [[claims]]");
        return Vec::new();
    };
    let mut ids = BTreeSet::new();
    let mut found = Vec::new();
    for item in items {
        let Some(table) = item.get_ref().as_table() else {
            reader.problem(item, "a claim must be a table", "expected [[claims]]");
            continue;
        };
        let claim = claim(reader, context, item, table);
        if let Some(claim) = claim {
            if !ids.insert(claim.id.clone()) {
                let message = format!("two claims have the id `{}`", claim.id);
                reader.problem_at(span_of(table, "id"), message, "expected an id that no other claim has");
            }
            found.push(claim);
        }
    }
    found
}

fn claim(reader: &mut Reader, context: &Context<'_>, item: &Item<'_>, table: &DeTable<'_>) -> Option<Claim> {
    let place = item.span().start..item.span().start + 1;
    let known: Vec<&str> = CLAIM.into_iter().chain(COMPARISONS).collect();
    reader.keys("a claim", table, &known);
    let id = required(reader, table, "id", "an id that no other claim has", place.clone());
    let text = required(reader, table, "text", "a sentence", place.clone());
    let source = required(reader, table, "source", "the place in the paper, such as \"Table 1\"", place.clone());
    let demanded = reader.bool(table, "demanded").unwrap_or(true);
    let why = reader.text(table, "why");
    if !demanded && why.is_none() {
        let span = span_of(table, "demanded");
        reader.problem_at(span, "the claim is not demanded, and the reason is missing", "expected why = \"...\" too");
    }
    let tasks = Table::Tasks;
    let value = match reader.table(table, "value") {
        Some(value) => Selection::read(reader, context, value, tasks),
        None => {
            if table.get("value").is_none() {
                reader.problem_at(place, "`value` is missing", "expected value = { column = ... }");
            }
            return None;
        }
    };
    let rows = value.table.unwrap_or(tasks);
    let repetitions = repetitions(reader, context, table, rows);
    let per: Vec<String> = repetitions[0].iter().map(|(name, _)| name.clone()).collect();
    check_placeholders(reader, table, text.as_deref().unwrap_or_default(), &per);
    check_lengths(reader, table, repetitions.len());
    let paired = reader.texts(table, "paired").unwrap_or_default();
    let comparisons = Comparison::read(reader, context, table, rows);
    if comparisons.is_empty() && !COMPARISONS.iter().any(|key| table.get(*key).is_some()) {
        let expected = format!("expected one of {}", COMPARISONS.join(", "));
        let place = span_of(table, "value");
        reader.problem_at(place, "the claim compares the value with nothing", expected);
    }
    if demanded && comparisons.iter().all(|c| matches!(c, Comparison::Shown(_))) && !comparisons.is_empty() {
        let expected = "expected `within` too, or demanded = false with `why`";
        reader.problem_at(span_of(table, "published"), "the tolerance is missing", expected);
    }
    let fixed: Vec<&str> =
        per.iter().map(String::as_str).chain(comparisons.iter().filter_map(Comparison::fixes)).collect();
    let others: Vec<Selection> =
        comparisons.iter().filter_map(Comparison::other).map(|other| value.with(other)).collect();
    for selection in others.iter().chain([&value]) {
        check_value(reader, table, selection, &fixed);
    }
    Some(Claim { id: id?, text: text?, source: source?, demanded, why, repetitions, paired, value, comparisons })
}

/// Refuses a value without a column, with elements of a column that is not a list, or with more than one group left.
fn check_value(reader: &mut Reader, table: &DeTable<'_>, value: &Selection, fixed: &[&str]) {
    use crate::selection::Aggregate;
    let span = span_of(table, "value");
    if value.column.is_none() && value.aggregate != Some(Aggregate::Count) {
        reader.problem_at(span.clone(), "the value has no `column`", "expected column = \"...\"");
    }
    let rows = value.table.unwrap_or(Table::Tasks);
    if let Some((message, expected)) = value.elements_problem(rows, fixed) {
        reader.problem_at(span.clone(), message, expected);
    }
    let grouped = value.left_grouped();
    if !grouped.is_empty() {
        let message = format!("the value stays grouped by {}", grouped.join(", "));
        reader.problem_at(span, message, "expected a step in `then` that aggregates them");
    }
}
