//! The reader of claims files.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_experiments::ManifestErrors;
use powersweep_results::Table;

use crate::claim::{Claim, Claims, Comparison, Repetition};
use crate::deserialize::{Node, parse};
use crate::selection::{Aggregate, Conditions, ELEMENT, Fixed, MANIFEST, Selection};

use super::{Context, check_conditions, check_head, check_values, column, column_of, is_list};

/// Maximum number of repetitions of one claim.
const REPETITIONS_MAX: usize = 10_000;

/// The keys of comparisons with numbers.
const NUMBERS: [&str; 6] = ["published", "expected", "at_least", "at_most", "above", "below"];

impl Claims {
    /// Reads and checks a claims file. `file` is the name shown in messages.
    ///
    /// # Errors
    /// Every problem at once, each with its line.
    pub fn parse(file: &str, text: &str) -> Result<Claims, ManifestErrors> {
        parse(file, text, check)
    }
}

fn check(claims: &mut Claims, at: Node<'_, '_>) {
    check_head(claims.version, "claims", at);
    at.require("paper", "a short name such as \"etinski2010\"");
    at.require("title", "authors, year and title of the paper");
    at.require("claims", "at least one [[claims]]");
    let context = Context { manifests: &claims.manifests, runs: &BTreeMap::new() };
    for (name, runs) in &mut claims.runs {
        let at = at.at("runs").at(name);
        runs.manifest.iter().for_each(|name| context.manifest(name, at.at(MANIFEST)));
        check_conditions(&mut runs.conditions, at, Table::Tasks);
    }
    let context = Context { runs: &claims.runs, ..context };
    let mut ids = BTreeSet::new();
    for (claim, at) in claims.claims.iter_mut().zip(at.at("claims").items()) {
        context.claim(claim, at);
        if !ids.insert(&claim.id) {
            let message = format!("two claims have the id `{}`", claim.id);
            at.at("id").problem(message, "expected an id that no other claim has");
        }
    }
}

impl Context<'_> {
    fn claim(&self, claim: &mut Claim, at: Node<'_, '_>) {
        at.require("id", "an id that no other claim has");
        at.require("text", "a sentence");
        check_origin(claim, at);
        if !claim.demanded && claim.why.is_none() {
            let message = "the claim is not demanded, and the reason is missing";
            at.at("demanded").problem(message, "expected why = \"...\" too");
        }
        at.require("value", "value = { column = ... }");
        self.selection(&mut claim.value, at.at("value"), Table::Tasks);
        let rows = claim.value.rows(Table::Tasks);
        claim.repetitions = self.repetitions(&mut claim.per, at.at("per"), rows);
        let per: Vec<&str> = claim.repetitions[0].iter().map(|(name, _)| name.as_str()).collect();
        check_placeholders(&claim.text, at.at("text"), &per);
        check_lengths(claim, at);
        let of = claim.within.iter_mut().flat_map(|within| &mut within.of);
        of.for_each(|of| self.selection(of, at.at("within").at("of"), rows));
        claim.less_than.iter_mut().for_each(|other| self.selection(other, at.at("less_than"), rows));
        claim.greater_than.iter_mut().for_each(|other| self.selection(other, at.at("greater_than"), rows));
        if let Some(at) = at.get("ascending") {
            check_ascending(&mut claim.ascending, at, rows);
        }
        check_comparisons(claim, at);
        let fixed: Vec<&str> = per.into_iter().chain(claim.ascending.keys().map(String::as_str)).collect();
        for other in claim.comparisons().iter().filter_map(Comparison::other) {
            check_value(&claim.value.with(other), at.at("value"), &fixed);
        }
        check_value(&claim.value, at.at("value"), &fixed);
    }

    /// The values of each repetition: every combination of a table of lists, or the entries of a list of tables. A claim
    /// without `per` has one repetition without values.
    fn repetitions(&self, per: &mut [Repetition], at: Node<'_, '_>, rows: Table) -> Vec<Fixed> {
        let mut found = Vec::new();
        for (repetition, place) in per.iter_mut().zip(at.items()) {
            match repetition {
                Repetition::Table(columns) => found.extend(self.product(columns, place, rows)),
                Repetition::One(_) => {
                    place.problem("a repetition must be a table", "expected such as { workload = \"CTC\" }");
                }
            }
        }
        if at.is_list() {
            found.iter_mut().for_each(|fixed| fixed.sort_by(|one, other| one.0.cmp(&other.0)));
        }
        if found.is_empty() { vec![Fixed::new()] } else { found }
    }

    /// Every combination of the values of columns, which are in the order of the text: lists of published numbers have the
    /// same order.
    fn product(&self, columns: &mut Conditions, at: Node<'_, '_>, rows: Table) -> Vec<Fixed> {
        let mut found = vec![Fixed::new()];
        for (key, place) in at.entries() {
            let Some(values) = columns.get_mut(key.key) else { continue };
            if key.key == MANIFEST {
                values.iter().for_each(|name| self.manifest(&name.to_string(), place));
            } else if let Some(column) = column(rows, key.key, key) {
                check_values(values, place, &column);
            }
            if found.len() * values.len() > REPETITIONS_MAX {
                let expected = format!("expected at most {REPETITIONS_MAX}");
                place.problem("the claim has too many repetitions", expected);
                return Vec::new();
            }
            let with = |fixed: &Fixed| -> Vec<Fixed> {
                let added = values.iter().map(|value| (key.key.to_owned(), value.clone()));
                added.map(|added| fixed.iter().cloned().chain([added]).collect()).collect()
            };
            found = found.iter().flat_map(with).collect();
        }
        found
    }
}

/// A claim of a paper names its place there, and only such a claim has published numbers.
fn check_origin(claim: &Claim, at: Node<'_, '_>) {
    match (&claim.source, &claim.guard) {
        (None, None) => at.require("source", "the place in the paper, such as \"Table 1\", or guard = \"reading\""),
        (Some(_), Some(_)) => {
            let expected = "expected `source` for a claim of the paper, or `guard` for a number that no paper prints";
            at.at("guard").problem("the claim has both `source` and `guard`", expected);
        }
        _ => {}
    }
    if claim.guard.is_some() && !claim.published.is_empty() {
        at.at("published").problem("a guard has no published number", "expected the key `expected`");
    }
    if claim.guard.is_none() && !claim.expected.is_empty() {
        let expected = "expected `published`, or `guard` in place of `source`";
        at.at("expected").problem("the number of a claim of the paper has the key `published`", expected);
    }
}

/// Refuses lists that have neither one number for all repetitions nor one each.
fn check_lengths(claim: &Claim, at: Node<'_, '_>) {
    let repetitions = claim.repetitions.len();
    for (key, place) in at.entries().filter(|(key, _)| NUMBERS.contains(&key.key)) {
        let count = place.items().count();
        if count != 1 && count != repetitions {
            let message = format!("`{}` lists {count} numbers for {repetitions} repetitions", key.key);
            place.problem(message, "expected one number, or one a repetition");
        }
    }
}

fn check_ascending(columns: &mut Conditions, at: Node<'_, '_>, rows: Table) {
    check_conditions(columns, at, rows);
    if columns.len() != 1 || columns.values().any(|places| places.len() < 2) {
        at.problem("`ascending` does not name an order", "expected one column and at least two of its values");
    }
}

/// Refuses a tolerance without its number, a claim without a comparison, and a demanded claim that cannot fail.
fn check_comparisons(claim: &Claim, at: Node<'_, '_>) {
    if let Some(at) = at.get("within") {
        if at.entries().next().is_none() {
            at.problem("`within` is empty", "expected such as { relative = 0.05 } or { absolute = 0.005 }");
        }
        let within = claim.within.as_ref().map(|within| [("relative", within.relative), ("absolute", within.absolute)]);
        for (key, tolerance) in
            within.into_iter().flatten().filter(|(_, tolerance)| tolerance.is_nan() || *tolerance < 0.0)
        {
            at.at(key)
                .problem(format!("the tolerance `{key}` is {tolerance}"), "expected a number that is not negative");
        }
        if claim.published.is_empty() && claim.expected.is_empty() {
            at.problem("`within` needs a number", "expected published = ... too, or expected = ... of a guard");
        }
    }
    match claim.comparisons()[..] {
        [] if claim.within.is_none() => {
            let expected = format!("expected one of {}, less_than, greater_than, ascending", NUMBERS.join(", "));
            at.at("value").problem("the claim compares the value with nothing", expected);
        }
        [Comparison::Shown(_)] if claim.demanded => {
            let expected = "expected `within` too, or demanded = false with `why`";
            let key = if claim.published.is_empty() { "expected" } else { "published" };
            at.at(key).problem("the tolerance is missing", expected);
        }
        _ => {}
    }
}

/// Refuses placeholders of columns that are not in `per`.
fn check_placeholders(text: &str, at: Node<'_, '_>, per: &[&str]) {
    for (placeholder, _) in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')) {
        if !per.contains(&placeholder) {
            let message = format!("`text` contains {{{placeholder}}}, which is not in `per`");
            at.unknown(placeholder, message, "unknown placeholder", per.iter().copied());
        }
    }
}

/// Refuses a value without a column, with elements of a column that is not a list or with a list without them, or with more
/// than one group left. `fixed`: columns on which the claim sets conditions.
fn check_value(value: &Selection, at: Node<'_, '_>, fixed: &[&str]) {
    let by = value.by.iter().flatten().map(String::as_str);
    let has_element =
        value.conditions.contains_key(ELEMENT) || by.chain(fixed.iter().copied()).any(|name| name == ELEMENT);
    let column = value.column.as_deref().map(|name| (name, column_of(value.rows(Table::Tasks), name)));
    match column.map(|(name, column)| (name, column.map(|column| is_list(column.ty)))) {
        None if value.aggregate != Some(Aggregate::COUNT) => {
            at.problem("the value has no `column`", "expected column = \"...\"");
        }
        Some((name, Some(true))) if !has_element && value.aggregate.is_none() => {
            let expected = "expected where = { element = 1 } too, or an `aggregate`";
            at.problem(format!("`{name}` is a list"), expected);
        }
        Some((name, Some(false))) if has_element => {
            at.problem(format!("`{name}` is not a list: it has no elements"), "expected a list column");
        }
        _ => {}
    }
    let grouped = value.left_grouped();
    if !grouped.is_empty() {
        let message = format!("the value stays grouped by {}", grouped.join(", "));
        at.problem(message, "expected a step in `then` that aggregates them");
    }
}
