//! Tasks are unique in an experiment: blocks that overlap and rows that repeat are refused.
//!
//! Blocks of one section may not overlap even if `[[exclude]]` keeps their tasks apart: a task is found in a sweep by its
//! values, one section after the other ([`crate::mapping`]).

use std::ops::Range;

use toml::de::DeTable;

use crate::errors::Problem;
use crate::overlap::{self, TooMany};
use crate::space::{Level, SECTIONS, Variant};

/// The place of a block in the text.
pub(crate) fn span_of(top: &DeTable<'_>, at: usize, label: &str) -> Range<usize> {
    let Some((key, section)) = top.get_key_value(SECTIONS[at].key()) else { return 0..0 };
    let block = section.get_ref().as_table().and_then(|blocks| blocks.get_key_value(label));
    block.map_or(key.span(), |(label, _)| label.span())
}

/// Reports the first repetition of each level.
pub(crate) fn check(top: &DeTable<'_>, levels: &[Level], problems: &mut Vec<Problem>) {
    for (at, level) in levels.iter().enumerate() {
        rows(top, at, level, problems);
        match overlap::find(level, &|a, b| a == b) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let (a, b) = (&level.variants[found.first], &level.variants[found.second]);
                let example: Vec<String> =
                    found.example.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let example = if example.is_empty() {
                    "they are equal".to_owned()
                } else {
                    format!("both have {}", example.join(", "))
                };
                let message = if a.block == b.block {
                    format!("block `{}` gives the same values twice", a.label)
                } else {
                    format!("blocks `{}` and `{}` give the same values", a.label, b.label)
                };
                let help = "labels do not tell tasks apart, whatever [[exclude]] and `zip` leave of the sweep: change a \
                            value, or keep one block, and let [[exclude]] say what it goes with";
                problems.push(Problem::new(span_of(top, at, &b.label), message, example).help(help));
            }
            Err(TooMany) => {
                let message = "cannot tell in reasonable time whether the blocks overlap";
                let key = SECTIONS[at].key();
                problems.push(Problem::new(
                    span_of(top, at, &level.variants[0].label),
                    message,
                    format!("expected fewer blocks or shorter zips in [{key}]"),
                ));
            }
        }
    }
}

fn rows(top: &DeTable<'_>, at: usize, level: &Level, problems: &mut Vec<Problem>) {
    let mut last: Option<usize> = None;
    for variant in &level.variants {
        if last == Some(variant.block) {
            continue;
        }
        if let Some(message) = variant.digits.iter().find_map(repetition) {
            last = Some(variant.block);
            problems.push(Problem::new(span_of(top, at, &variant.label), message, "in this block"));
        }
    }
}

fn repetition(digit: &crate::space::Digit) -> Option<String> {
    let names: Vec<String> = digit.columns.iter().map(|column| format!("`{}`", column.name)).collect();
    let (first, second) = overlap::repeated_rows(digit)?;
    Some(if names.len() == 1 {
        format!("{} cannot be an axis: it does not tell tasks apart", names[0])
    } else {
        format!("the zip of {} has equal rows: {} and {}", names.join(" and "), first + 1, second + 1)
    })
}

/// The values of the axes at an offset of a variant, for messages: `size_factor = 1.1, beta = 0.5`.
pub(crate) fn describe(variant: &Variant, offset: u64) -> Vec<String> {
    let positions = variant.positions(offset);
    let values = variant.digits.iter().zip(positions).flat_map(|(digit, position)| {
        digit.columns.iter().map(move |column| format!("{} = {}", column.name, column.values.get(position)))
    });
    values.collect()
}
