//! `[[exclude]]` tables and zips of blocks, as rules over positions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use powersweep_engine::Value;
use powersweep_engine::components;
use powersweep_engine::spec::{Param, Role, Type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::canonical::compare;
use crate::errors::Problem;
use crate::exclusion::{Requirement, Rule};
use crate::names::suggestion;
use crate::space::{Column, DESIGN_LEVEL, LEVELS, Level, SECTIONS, SEED_LEVEL, Variant};
use crate::values::{LISTED_MAX, Values};

use super::block::{params, roles};
use super::top::SEEDS;
use super::values::{Read, kind, number, read};
use super::zip;

/// Greatest number of comparisons between conditions and values of variants for all rules. Bounds time and memory.
pub(crate) const COMPARISONS_MAX: u64 = 10_000_000;
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
    /// The ends of an interval of reals, in place of values.
    interval: Option<(f64, f64)>,
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
            rules.extend(rules_of(table, levels, &mut comparisons, &mut known, problems));
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
            zip::blocks(&group, top, levels, &mut rules, problems);
        }
    }
    rules
}

/// The rules of a table: one, or one for each way in which its conditions meet points of designs.
fn rules_of(
    value: &Spanned<DeValue<'_>>,
    levels: &[Level; LEVELS],
    comparisons: &mut u64,
    known: &mut Known,
    problems: &mut Vec<Problem>,
) -> Vec<Rule> {
    let before = problems.len();
    let Some(table) = value.get_ref().as_table() else {
        let message = format!("`exclude` cannot hold {}", kind(value.get_ref()));
        problems.push(Problem::new(value.span(), message, "expected tables [[exclude]]"));
        return Vec::new();
    };
    if table.is_empty() {
        problems.push(Problem::new(
            value.span(),
            "an empty table would exclude everything",
            "expected at least one condition",
        ));
        return Vec::new();
    }
    let conditions: Vec<Condition> = table.iter().filter_map(|(key, value)| condition(key, value, problems)).collect();
    if let Some(condition) = conditions.iter().find(|condition| condition.values.len() > LISTED_MAX) {
        let message = format!("this range of `{}` has {} values", condition.name, condition.values.len());
        let expected = format!("expected at most {LISTED_MAX} values in a condition");
        let help = "shorten the axis instead, or use several tables";
        problems.push(Problem::new(condition.span.clone(), message, expected).help(help));
        return Vec::new();
    }
    *comparisons += conditions.iter().map(|condition| condition.comparisons(&levels[condition.level])).sum::<u64>();
    if *comparisons > COMPARISONS_MAX {
        return Vec::new();
    }
    let mut rules = vec![Rule::default()];
    for condition in &conditions {
        let level = &levels[condition.level];
        if let Some(problem) = condition.too_many_points(level) {
            problems.push(problem);
            continue;
        }
        let known = known.entry(condition.name.clone()).or_insert_with(|| condition.known(level));
        condition.report_unmatched(known, problems);
        let own = (condition.level, condition.requirements(level));
        // A value is that of a block, or that of a point: two rules.
        let through = condition.through_points(level, &levels[DESIGN_LEVEL]);
        let both_ways = rules.iter().flat_map(|rule| {
            let direct = with(rule.clone(), [own.clone()]);
            let through = through
                .clone()
                .map(|(used, points)| with(rule.clone(), [(condition.level, used), (DESIGN_LEVEL, points)]));
            [Some(direct), through].into_iter().flatten()
        });
        rules = both_ways.filter(|rule| !never(rule)).collect();
    }
    if problems.len() > before {
        return Vec::new();
    }
    if rules.is_empty() {
        let message = "this [[exclude]] matches nothing: no block meets all of its conditions";
        let help = "all conditions of a table must hold together; write one table for each alternative";
        problems.push(Problem::new(value.span(), message, "no task has all of these").help(help));
    }
    rules
}

/// A rule with further requirements on levels.
fn with<const N: usize>(mut rule: Rule, more: [(usize, Vec<Requirement>); N]) -> Rule {
    for (level, requirements) in more {
        let merged = match rule.levels[level].take() {
            None => requirements,
            Some(others) => others.into_iter().zip(requirements).map(|(a, b)| both(a, b)).collect(),
        };
        rule.levels[level] = Some(merged);
    }
    rule
}

/// Whether no index meets a rule.
fn never(rule: &Rule) -> bool {
    rule.levels.iter().flatten().any(|requirements| requirements.iter().all(Option::is_none))
}

fn both(a: Requirement, b: Requirement) -> Requirement {
    let (mut a, b) = (a?, b?);
    for (digit, positions) in b {
        match a.iter_mut().find(|(other, _)| *other == digit) {
            Some((_, known)) => {
                known.retain(|position| positions.binary_search(position).is_ok());
                if known.is_empty() {
                    return None;
                }
            }
            None => a.push((digit, positions)),
        }
    }
    Some(a)
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
        interval: None,
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
            if let Some(interval) = interval(param, value) {
                let read = Read { values: Values::list(Vec::new()), spans: Vec::new() };
                return Some(Condition { interval: Some(interval), ..make(level, Key::Axis, read) });
            }
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
    problems.push(Problem::new(key.span(), message, "unknown axis").help(suggestion(name, known)));
    None
}

/// The ends of `{ from, to }` for a parameter of reals: all values between them meet the condition.
fn interval(param: &Param, value: &Spanned<DeValue<'_>>) -> Option<(f64, f64)> {
    let table = value.get_ref().as_table().filter(|table| table.len() == 2)?;
    let end = |key: &str| number(table.get(key)?.get_ref());
    let (from, to) = (end("from")?, end("to")?);
    (matches!(param.ty, Type::Real { .. }) && from <= to).then_some((from, to))
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
        let text = |text: &str| texts.contains(text);
        let holds = match self.key {
            Key::Label => text(&variant.label),
            Key::Role(role) => variant.choices.iter().any(|p| p.component().role == role && text(p.component().name)),
            Key::Axis if variant.designed_by(&self.name).is_some() => false,
            Key::Axis => match variant.column(&self.name) {
                Some(column) => return self.on_column(column),
                None => variant.fixed(&self.name).is_some_and(|value| self.has(value)),
            },
        };
        holds.then(Vec::new)
    }

    /// The requirement on the column of an axis, in this digit.
    fn on_column(&self, (digit, column): (usize, &Column)) -> Requirement {
        let positions = self.matching(&column.values);
        (!positions.is_empty()).then(|| vec![(digit, positions)])
    }

    /// Whether a value meets the condition.
    fn has(&self, value: &Value) -> bool {
        match (self.interval, value) {
            (Some((from, to)), Value::Real(value)) => (from..=to).contains(value),
            _ => self.values.position(value).is_some(),
        }
    }

    /// The sorted positions of an axis whose values meet the condition.
    fn matching(&self, axis: &Values) -> Vec<u64> {
        match (self.interval, axis) {
            (None, Values::List { .. } | Values::Ints { .. } | Values::Reals { .. }) => matching(axis, &self.values),
            _ => {
                (0_u64..).zip(axis.iter()).filter(|(_, value)| self.has(value)).map(|(position, _)| position).collect()
            }
        }
    }

    /// The requirements on the level of the section and on that of the points, where the values are those of a design.
    fn through_points(&self, level: &Level, points: &Level) -> Option<(Vec<Requirement>, Vec<Requirement>)> {
        let is_designed = |variant: &Variant| self.is_axis() && variant.designed_by(&self.name).is_some();
        let used = level.variants.iter().map(|variant| is_designed(variant).then(Vec::new)).collect();
        let at_points = points.variants.iter().map(|variant| self.on_column(variant.column(&self.name)?));
        level.variants.iter().any(is_designed).then(|| (used, at_points.collect()))
    }

    fn is_axis(&self) -> bool {
        matches!(self.key, Key::Axis)
    }

    /// The problem of a condition on a parameter of a design with more points than can be compared.
    fn too_many_points(&self, level: &Level) -> Option<Problem> {
        let designed = level.variants.iter().filter_map(|variant| variant.designed_by(&self.name));
        let points = designed.map(|designed| designed.points.len()).max().filter(|_| self.is_axis())?;
        let message = format!("`{}` has the values of a design of {points} points", self.name);
        let expected = format!("expected a condition on a design of at most {LISTED_MAX} points");
        let help = "narrow the range of the design instead";
        (points > LISTED_MAX).then(|| Problem::new(self.span.clone(), message, expected).help(help))
    }

    /// Comparisons that [`Condition::requirement`] takes for all variants of a level.
    fn comparisons(&self, level: &Level) -> u64 {
        let variants = level.variants.len() as u64;
        match self.key {
            Key::Label | Key::Role(_) => variants,
            Key::Axis => {
                let points =
                    level.variants.iter().filter_map(|variant| Some(variant.designed_by(&self.name)?.points.len()));
                let axes = level.variants.iter().filter_map(|variant| Some(variant.column(&self.name)?.1.values.len()));
                let listed = if self.interval.is_some() { axes.sum() } else { variants * self.values.len() };
                variants + listed + points.sum::<u64>()
            }
        }
    }

    /// Reports the values that no block has.
    fn report_unmatched(&self, known: &[Values], problems: &mut Vec<Problem>) {
        let has = |value: &Value| known.iter().any(|values| values.position(value).is_some());
        if self.spans.is_empty() {
            let any = known.iter().any(|values| !self.matching(values).is_empty());
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
            if let Some(designed) = variant.designed_by(&self.name) {
                let at =
                    (0..designed.choices.len()).find(|at| designed.points.name(*at) == self.name).unwrap_or_default();
                let mut values: Vec<Value> =
                    (0..designed.points.len()).map(|point| designed.points.value(point, at)).collect();
                values.sort_by(compare);
                values.dedup();
                known.push(Values::list(values));
                continue;
            }
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

/// A rule that excludes one value of an axis of the block with this label, or the whole block.
pub(crate) fn rule_of_value(level: &Level, at: usize, label: &str, axis: Option<(&str, &Value)>) -> Rule {
    let condition = |key: Key, name: &str, value: Value| Condition {
        level: at,
        key,
        name: name.to_owned(),
        values: Values::one(value),
        interval: None,
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
