//! Axes that advance together: `zip = [["a", "b"], ["c", "d", "e"]]`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;
use crate::exclusion::Rule;
use crate::names::suggestion;
use crate::space::{LEVELS, Level, SECTIONS};
use crate::values::LISTED_MAX;

use super::block::{Axis, What};
use super::exclude::{COMPARISONS_MAX, LABELS};
use super::values::kind;

const SHAPE: &str = "expected lists of at least two names: zip = [[\"a\", \"b\"]]";

/// The names of each zip with their places; problems are reported.
pub(crate) fn groups(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Vec<Vec<(String, Range<usize>)>> {
    let wrong = |value: &Spanned<DeValue<'_>>| {
        Problem::new(value.span(), format!("`zip` cannot be {}", kind(value.get_ref())), SHAPE)
    };
    let Some(items) = value.get_ref().as_array() else {
        problems.push(wrong(value));
        return Vec::new();
    };
    let mut groups = Vec::new();
    for item in items {
        let names: Option<Vec<(String, Range<usize>)>> = item.get_ref().as_array().and_then(|names| {
            names.iter().map(|name| Some((name.get_ref().as_str()?.to_owned(), name.span()))).collect()
        });
        match names {
            Some(names) if names.len() >= 2 => groups.push(names),
            _ => problems.push(Problem::new(item.span(), "a zip must be a list of names of axes", SHAPE)),
        }
    }
    groups
}

/// Reads the zips of a block and marks its axes. Each zip is the sorted list of its names.
pub(crate) fn read(
    table: &DeTable<'_>,
    axes: &mut BTreeMap<String, Axis>,
    problems: &mut Vec<Problem>,
) -> Vec<Vec<String>> {
    let Some(value) = table.get("zip") else { return Vec::new() };
    let mut zips: Vec<Vec<String>> = Vec::new();
    for group in groups(value, problems) {
        let mut first: Option<(String, u64)> = None;
        let mut names = Vec::new();
        for (name, span) in group {
            let Some(axis) = axes.get(&name) else {
                // A key with a wrong value has a problem of its own.
                if !table.contains_key(name.as_str()) {
                    let known: Vec<&str> = axes.keys().map(String::as_str).collect();
                    let help = suggestion(&name, known);
                    problems.push(
                        Problem::new(
                            span,
                            format!("zip names `{name}`, which this block does not set"),
                            "unknown axis",
                        )
                        .help(help),
                    );
                }
                continue;
            };
            if axis.zip.is_some() || names.contains(&name) {
                let message = format!("`{name}` is zipped twice");
                problems.push(Problem::new(span, message, "expected each axis in one zip, once"));
                continue;
            }
            if matches!(axis.what, What::Designed(..)) {
                let message = format!("`{name}` has the values of a design, whose ranges vary together already");
                problems.push(Problem::new(span, message, "expected axes with values of their own"));
                continue;
            }
            if axis.len() > LISTED_MAX {
                let message = format!("`{name}` has {} values, too many for a zip", axis.len());
                problems.push(Problem::new(span, message, format!("expected at most {LISTED_MAX} values")));
                continue;
            }
            match &first {
                None => first = Some((name.clone(), axis.len())),
                Some((other, len)) if *len != axis.len() => {
                    let message =
                        format!("cannot zip `{other}` with {len} values and `{name}` with {} values", axis.len());
                    problems.push(Problem::new(span, message, "expected axes of the same length"));
                }
                Some(_) => {}
            }
            names.push(name);
        }
        names.sort();
        for name in &names {
            if let Some(axis) = axes.get_mut(name) {
                axis.zip = Some(zips.len());
            }
        }
        zips.push(names);
    }
    zips
}

/// The labels of a section in the order of the text.
fn labels_in_order(top: &DeTable<'_>, level: usize) -> Vec<String> {
    let key = SECTIONS[level].key();
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
pub(crate) fn blocks(
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
                Some(levels[level].variants.iter().map(|variant| holds(&variant.label).then(Vec::new)).collect())
            };
            let mut rule = Rule::default();
            rule.levels[*first] = requirements(*first, &|label| label == a);
            rule.levels[*other] = requirements(*other, &|label| label != b);
            rules.push(rule);
        }
    }
}
