//! Axes that advance together: `zip = [["a", "b"], ["c", "d", "e"]]`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;
use crate::names::suggestion;
use crate::values::LISTED_MAX;

use super::block::Axis;
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
