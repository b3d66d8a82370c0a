//! `[[exclude]]` tables and zips of blocks, as rules over positions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use powersweep_engine::Value;
use powersweep_engine::components;
use powersweep_engine::spec::Role;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;
use crate::exclusion::{Requirement, Rule};
use crate::names::suggestion;
use crate::space::{LEVELS, Level, SECTIONS, SEED_LEVEL, Variant};
use crate::values::{LISTED_MAX, Values};

use super::block::{params, roles};
use super::top::SEEDS;
use super::values::{Read, kind, read};
use super::zip;

/// Greatest number of comparisons between conditions and values of variants for all rules. Bounds time and memory.
const COMPARISONS_MAX: u64 = 10_000_000;
/// The columns that hold the labels of blocks, by level.
pub(crate) const LABELS: [&str; 3] = ["workload", "platform", "policy"];

/// The subject of a condition.
enum Key {
    Label,
    Role(Role),
    /// A parameter or the seed, by the name of the condition.
    Axis,
}

/// The values that the axis of each name has in the blocks: they are collected once for all tables.
type Known = BTreeMap<String, Vec<Values>>;

/// One key of an `[[exclude]]` table.
struct Condition {
    level: usize,
    key: Key,
    name: String,
    values: Values,
    spans: Vec<Range<usize>>,
    span: Range<usize>,
}

/// All rules of a manifest.
pub(crate) fn rules(top: &DeTable<'_>, levels: &[Level; LEVELS], problems: &mut Vec<Problem>) -> Vec<Rule> {
    let (mut rules, mut comparisons, mut known) = (Vec::new(), 0, Known::default());
    if let Some(value) = top.get("exclude") {
        let tables: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => {
                let message = format!("`exclude` cannot be {}", kind(value.get_ref()));
                problems.push(Problem::new(value.span(), message, "expected tables [[exclude]]"));
                Vec::new()
            }
        };
        for table in tables {
            rules.extend(rule(table, levels, &mut comparisons, &mut known, problems));
            if comparisons > COMPARISONS_MAX {
                let message = "evaluating the [[exclude]] tables up to this one takes too long";
                let expected = "expected fewer tables, or conditions with fewer values";
                problems.push(Problem::new(table.span(), message, expected));
                return rules;
            }
        }
    }
    if let Some(value) = top.get("zip") {
        for group in zip::groups(value, problems) {
            zipped(&group, top, levels, &mut rules, problems);
        }
    }
    rules
}

fn rule(
    value: &Spanned<DeValue<'_>>,
    levels: &[Level; LEVELS],
    comparisons: &mut u64,
    known: &mut Known,
    problems: &mut Vec<Problem>,
) -> Option<Rule> {
    let before = problems.len();
    let Some(table) = value.get_ref().as_table() else {
        let message = format!("`exclude` cannot hold {}", kind(value.get_ref()));
        problems.push(Problem::new(value.span(), message, "expected tables [[exclude]]"));
        return None;
    };
    if table.is_empty() {
        problems.push(Problem::new(
            value.span(),
            "an empty table would exclude everything",
            "expected at least one condition",
        ));
        return None;
    }
    let conditions: Vec<Condition> = table.iter().filter_map(|(key, value)| condition(key, value, problems)).collect();
    if let Some(condition) = conditions.iter().find(|condition| condition.values.len() > LISTED_MAX) {
        let message = format!("this range of `{}` has {} values", condition.name, condition.values.len());
        let expected = format!("expected at most {LISTED_MAX} values in a condition");
        let help = "shorten the axis instead, or use several tables";
        problems.push(Problem::new(condition.span.clone(), message, expected).help(help));
        return None;
    }
    *comparisons += conditions.iter().map(|condition| condition.comparisons(&levels[condition.level])).sum::<u64>();
    if *comparisons > COMPARISONS_MAX {
        return None;
    }
    let mut rule = Rule::default();
    for condition in &conditions {
        let level = &levels[condition.level];
        let requirements = condition.requirements(level);
        let known = known.entry(condition.name.clone()).or_insert_with(|| condition.known(level));
        condition.report_unmatched(known, problems);
        let merged = match rule.levels[condition.level].take() {
            None => requirements,
            Some(others) => others.into_iter().zip(requirements).map(|(a, b)| both(a, b)).collect(),
        };
        rule.levels[condition.level] = Some(merged);
    }
    if problems.len() > before {
        return None;
    }
    let nothing =
        rule.levels.iter().flatten().any(|requirements| requirements.iter().all(|t| matches!(t, Requirement::Never)));
    if nothing {
        let message = "this [[exclude]] matches nothing: no block meets all of its conditions";
        let help = "all conditions of a table must hold together; write one table for each alternative";
        problems.push(Problem::new(value.span(), message, "no task has all of these").help(help));
        return None;
    }
    Some(rule)
}

fn both(a: Requirement, b: Requirement) -> Requirement {
    let (Requirement::When(mut a), Requirement::When(b)) = (a, b) else { return Requirement::Never };
    for (digit, positions) in b {
        match a.iter_mut().find(|(other, _)| *other == digit) {
            Some((_, known)) => {
                known.retain(|position| positions.binary_search(position).is_ok());
                if known.is_empty() {
                    return Requirement::Never;
                }
            }
            None => a.push((digit, positions)),
        }
    }
    Requirement::When(a)
}

fn condition(
    key: &Spanned<toml::de::DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    problems: &mut Vec<Problem>,
) -> Option<Condition> {
    let name = key.get_ref().as_ref();
    let make = |level: usize, key: Key, read: Read| Condition {
        level,
        key,
        name: name.to_owned(),
        values: read.values,
        spans: read.spans,
        span: value.span(),
    };
    if let Some(level) = LABELS.iter().position(|label| *label == name) {
        return Some(make(level, Key::Label, texts(name, value, problems)?));
    }
    if name == "seed" {
        return Some(make(SEED_LEVEL, Key::Axis, read(&SEEDS, value, problems)?));
    }
    for (level, section) in SECTIONS.into_iter().enumerate() {
        if let Some(role) = roles(section).find(|role| role.key() == name) {
            return Some(make(level, Key::Role(role), texts(name, value, problems)?));
        }
        if let Some((_, param)) = params(section).find(|(_, param)| param.name == name) {
            return Some(make(level, Key::Axis, read(param, value, problems)?));
        }
    }
    let known: Vec<&str> = LABELS
        .into_iter()
        .chain(["seed"])
        .chain(Role::ALL.into_iter().map(Role::key))
        .chain(components::COMPONENTS.iter().flat_map(|component| component.params).map(|param| param.name))
        .collect();
    let message = format!("[[exclude]] names the unknown axis `{}`", name.escape_debug());
    if let Some(renamed) = components::renamed(name) {
        problems.push(Problem::new(key.span(), message, format!("it is now `{}`", renamed.name)).help(renamed.help));
        return None;
    }
    problems.push(Problem::new(key.span(), message, "unknown axis").help(suggestion(name, known)));
    None
}

/// One text or a list of texts.
fn texts(name: &str, value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Read> {
    let items = match value.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![value],
    };
    let texts: Option<Vec<Value>> =
        items.iter().map(|item| Some(Value::Text(item.get_ref().as_str()?.to_owned()))).collect();
    match texts {
        Some(texts) if !texts.is_empty() => {
            let spans = items.iter().map(|item| item.span()).collect();
            Some(Read { values: Values::list(texts), spans })
        }
        _ => {
            problems.push(Problem::new(
                value.span(),
                format!("`{name}` has a wrong value"),
                "expected a name or a list of names",
            ));
            None
        }
    }
}

impl Condition {
    /// The values of a condition on labels or components.
    fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let is_text = matches!(self.key, Key::Label | Key::Role(_));
        let values = is_text.then(|| self.values.iter()).into_iter().flatten();
        values.filter_map(|value| if let Value::Text(text) = value { Some(text) } else { None })
    }

    /// The requirement on each variant of its level.
    fn requirements(&self, level: &Level) -> Vec<Requirement> {
        let texts: BTreeSet<String> = self.texts().collect();
        level.variants.iter().map(|variant| self.requirement(variant, &texts)).collect()
    }

    /// `texts`: those of this condition.
    fn requirement(&self, variant: &Variant, texts: &BTreeSet<String>) -> Requirement {
        let when = |holds: bool| if holds { Requirement::When(Vec::new()) } else { Requirement::Never };
        let text = |text: &str| texts.contains(text);
        match self.key {
            Key::Label => when(text(&variant.label)),
            Key::Role(role) => {
                when(variant.choices.iter().any(|p| p.component().role == role && text(p.component().name)))
            }
            Key::Axis => match variant.column(&self.name) {
                Some((digit, column)) => match matching(&column.values, &self.values) {
                    positions if positions.is_empty() => Requirement::Never,
                    positions => Requirement::When(vec![(digit, positions)]),
                },
                None => when(variant.fixed(&self.name).is_some_and(|value| self.values.position(value).is_some())),
            },
        }
    }

    /// Comparisons that [`Condition::requirement`] takes for all variants of a level.
    fn comparisons(&self, level: &Level) -> u64 {
        let variants = level.variants.len() as u64;
        match self.key {
            Key::Label | Key::Role(_) => variants,
            Key::Axis => variants * (1 + self.values.len()),
        }
    }

    /// Reports the values that no block has.
    fn report_unmatched(&self, known: &[Values], problems: &mut Vec<Problem>) {
        let has = |value: &Value| known.iter().any(|values| values.position(value).is_some());
        if self.spans.is_empty() {
            let any = known.iter().any(|values| !matching(values, &self.values).is_empty());
            if !any {
                let message = format!("this [[exclude]] matches nothing: no task has such a `{}`", self.name);
                problems.push(Problem::new(self.span.clone(), message, "matches nothing"));
            }
            return;
        }
        for (value, span) in self.values.iter().zip(&self.spans).filter(|(value, _)| !has(value)).take(20) {
            let mut shown: Vec<String> =
                known.iter().flat_map(|values| values.iter().take(20)).map(|v| v.to_string()).collect();
            shown.sort();
            shown.dedup();
            let help = match &value {
                Value::Text(text) if !shown.is_empty() => suggestion(text, shown.iter().map(String::as_str)),
                _ if shown.is_empty() => format!("no block sets `{}`", self.name),
                _ => format!("values in this manifest: {}", shown.into_iter().take(20).collect::<Vec<_>>().join(", ")),
            };
            let message = format!("this [[exclude]] matches nothing: no task has {} = {value}", self.name);
            problems.push(Problem::new(span.clone(), message, "matches nothing").help(help));
        }
    }

    /// The values with which this condition is compared.
    fn known(&self, level: &Level) -> Vec<Values> {
        #[cfg(test)]
        tests::COLLECTED.with(|all| all.set(all.get() + level.variants.len()));
        let texts = |texts: BTreeSet<&str>| {
            vec![Values::list(texts.into_iter().map(|text| Value::Text(text.to_owned())).collect())]
        };
        match self.key {
            Key::Label => return texts(level.variants.iter().map(|variant| &*variant.label).collect()),
            Key::Role(role) => {
                let choices = level.variants.iter().flat_map(|variant| &variant.choices);
                return texts(choices.map(|p| p.component()).filter(|e| e.role == role).map(|e| e.name).collect());
            }
            Key::Axis => {}
        }
        let mut known: Vec<Values> = Vec::new();
        for variant in &level.variants {
            // Neighbouring blocks often repeat their axes.
            match variant.column(&self.name) {
                Some((_, column)) if known.last() == Some(&column.values) => {}
                Some((_, column)) => known.push(column.values.clone()),
                None => {
                    let one = variant.fixed(&self.name).map(|value| Values::one(value.clone()));
                    known.extend(one.filter(|one| known.last() != Some(one)));
                }
            }
        }
        known
    }
}

/// The sorted positions of an axis whose value is among those of a condition.
fn matching(axis: &Values, wanted: &Values) -> Vec<u64> {
    // The shorter list is looked up in the longer one. A range never repeats a value.
    #[cfg(test)]
    tests::LOOKED_UP.with(|all| all.set(all.get() + wanted.len().min(axis.len())));
    let mut positions: Vec<u64> = match axis {
        Values::List { values, .. } if axis.len() < wanted.len() => (0_u64..)
            .zip(values)
            .filter(|(_, value)| wanted.position(value).is_some())
            .map(|(position, _)| position)
            .collect(),
        _ => wanted.iter().flat_map(|value| axis.positions(&value).collect::<Vec<_>>()).collect(),
    };
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// The labels of a section in the order of the text.
fn labels_in_order(top: &DeTable<'_>, level: usize) -> Vec<String> {
    let key = super::block::section_key(SECTIONS[level]);
    let mut labels: Vec<(usize, String)> = top
        .get(key)
        .and_then(|value| value.get_ref().as_table())
        .into_iter()
        .flat_map(|table| table.keys())
        .map(|label| (label.span().start, label.get_ref().to_string()))
        .collect();
    labels.sort();
    if labels.is_empty() { vec!["default".to_owned()] } else { labels.into_iter().map(|(_, label)| label).collect() }
}

/// Pairs the blocks of several sections one by one: all other pairs are excluded.
fn zipped(
    group: &[(String, Range<usize>)],
    top: &DeTable<'_>,
    levels: &[Level; LEVELS],
    rules: &mut Vec<Rule>,
    problems: &mut Vec<Problem>,
) {
    let before = problems.len();
    let mut members: Vec<(usize, Vec<String>)> = Vec::new();
    for (name, span) in group {
        let Some(level) = LABELS.iter().position(|label| label == name) else {
            let message =
                format!("`zip` at the top pairs kinds of blocks; `{}` is not a kind of block", name.escape_debug());
            let help = "to zip parameters, write `zip` in the block that has them";
            problems.push(Problem::new(span.clone(), message, "expected workload, platform or policy").help(help));
            continue;
        };
        if members.iter().any(|(known, _)| *known == level) {
            problems.push(Problem::new(span.clone(), format!("`{name}` is zipped twice"), "expected each name once"));
            continue;
        }
        let labels = labels_in_order(top, level);
        if let Some((first, others)) = members.first()
            && others.len() != labels.len()
        {
            let message = format!("cannot zip {} {}s with {} {name}s", others.len(), LABELS[*first], labels.len());
            problems.push(Problem::new(span.clone(), message, "expected the same number of blocks in each section"));
        }
        members.push((level, labels));
    }
    if problems.len() > before || members.len() < 2 {
        return;
    }
    let (first, firsts) = &members[0];
    let variants: usize = levels.iter().map(|level| level.variants.len()).sum();
    if ((members.len() - 1) * firsts.len() * variants) as u64 > COMPARISONS_MAX {
        problems.push(Problem::new(group[0].1.clone(), "there are too many blocks to zip", "expected fewer blocks"));
        return;
    }
    for (other, others) in &members[1..] {
        for (a, b) in firsts.iter().zip(others) {
            let requirements = |level: usize, holds: &dyn Fn(&str) -> bool| {
                let requirement =
                    |v: &Variant| if holds(&v.label) { Requirement::When(Vec::new()) } else { Requirement::Never };
                Some(levels[level].variants.iter().map(requirement).collect())
            };
            let mut rule = Rule::default();
            rule.levels[*first] = requirements(*first, &|label| label == a);
            rule.levels[*other] = requirements(*other, &|label| label != b);
            rules.push(rule);
        }
    }
}

/// A rule that excludes one value of an axis of the block with this label, or the whole block.
pub(crate) fn rule_of_value(level: &Level, at: usize, label: &str, axis: Option<(&str, &Value)>) -> Rule {
    let condition = |key: Key, name: &str, value: Value| Condition {
        level: at,
        key,
        name: name.to_owned(),
        values: Values::one(value),
        spans: Vec::new(),
        span: 0..0,
    };
    let block = condition(Key::Label, "", Value::Text(label.to_owned()));
    let value = axis.map(|(name, value)| {
        let role = Role::ALL.into_iter().find(|role| role.key() == name);
        condition(role.map_or(Key::Axis, Key::Role), name, value.clone())
    });
    let of_block = block.requirements(level);
    let mut rule = Rule::default();
    rule.levels[at] = Some(match &value {
        Some(value) => of_block.into_iter().zip(value.requirements(level)).map(|(a, b)| both(a, b)).collect(),
        None => of_block,
    });
    rule
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::Manifest;

    thread_local! {
        /// Values that were looked up, and variants whose values were collected.
        pub(super) static LOOKED_UP: Cell<u64> = const { Cell::new(0) };
        pub(super) static COLLECTED: Cell<usize> = const { Cell::new(0) };
    }

    /// Without the bounds, each table goes through the thousand values of each of the 45 variants.
    #[test]
    fn many_exclusions_look_at_the_blocks_once_and_at_their_own_values() {
        let list: Vec<String> = (1..=1000).map(|value| value.to_string()).collect();
        let mut text = format!(
            "version = 1\nname = \"e\"\nseeds = {{ from = 1, count = 10 }}\n[workloads.w]\nsource = \"lublin\"\n\
             [policies.q]\nqueue_order = [\"fcfs\", \"sjf\", \"widest\"]\nbackfill = [\"none\", \"easy\", \"conservative\"]\n\
             [platforms.p]\nprocs = [{}]\n",
            list.join(", ")
        );
        for table in 0..900 {
            text += &format!("[[exclude]]\nprocs = {}\nqueue_order = \"sjf\"\nseed = 3\n", table + 1);
        }
        LOOKED_UP.set(0);
        COLLECTED.set(0);
        Manifest::parse("test", &text).expect("valid");
        assert!(COLLECTED.get() < 100, "{} variants", COLLECTED.get());
        assert!(LOOKED_UP.get() < 10_000, "{} values", LOOKED_UP.get());
    }
}
