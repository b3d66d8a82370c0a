//! The level of the points of designs: a variant for each set of ranges that blocks use together.

use std::collections::BTreeSet;
use std::sync::Arc;

use toml::de::DeTable;

use crate::designs::projection::{COMPARED_MAX, Projection};
use crate::errors::Problem;
use crate::exclusion::{Requirement, Rule};
use crate::space::{Column, DESIGN_LEVEL, Designed, Digit, Level, Used, Variant, tells_apart, used};
use crate::values::Values;

use super::designs::Designs;

/// Greatest number of sets of ranges that the blocks of a manifest use together.
const SETS_MAX: usize = 1_000;
/// Greatest number of pairs of ranges and variants, where blocks use different ranges. Bounds the memory of the rules.
const USES_MAX: usize = 1_000_000;

/// The level of points, and the rules that exclude points of other blocks and points that repeat earlier ones.
pub(crate) fn level(
    top: &DeTable<'_>,
    designs: &Designs,
    sections: &[Level; DESIGN_LEVEL],
    problems: &mut Vec<Problem>,
) -> Option<(Level, Vec<Rule>)> {
    let span = |label: &str| {
        let tables = top.get("designs").and_then(|value| value.get_ref().as_table());
        tables.and_then(|tables| tables.get_key_value(label)).map_or(0..0, |(label, _)| label.span())
    };
    let mut sets = BTreeSet::from([Used::new()]);
    for section in sections {
        let own: BTreeSet<Used> = section.variants.iter().map(|variant| used([variant])).collect();
        if own.len() <= SETS_MAX {
            sets = sets.iter().flat_map(|set| own.iter().map(|more| union(set, more))).collect();
        }
        if own.len().max(sets.len()) > SETS_MAX {
            problems.push(too_many_sets());
            return None;
        }
    }
    let mut variants = Vec::new();
    for set in sets {
        let designed: Vec<Designed> = set
            .into_iter()
            .map(|(design, ranges)| {
                let points = designs.projection(design, ranges.into_iter().collect());
                Designed { design, choices: vec![Vec::new(); points.ranges.len()], points }
            })
            .collect();
        for points in designed.iter().map(|designed| &designed.points).filter(|points| !points.is_compared()) {
            let message =
                format!("some of the {} points of the design `{}` may be equal", points.len(), points.design.label);
            let expected = format!("expected at most {COMPARED_MAX} points, or fewer in a manifest of many designs");
            let help = "only points of sobol, latin-hypercube and random with a range of reals without a step are known to differ";
            problems.push(Problem::new(span(&points.design.label), message, expected).help(help));
        }
        let digits: Vec<Digit> = designed.iter().map(|designed| digit(&designed.points)).collect();
        let count = digits.iter().try_fold(1_u64, |n, digit| n.checked_mul(digit.len()));
        let Some(count) = count.filter(|count| i64::try_from(*count).is_ok()) else {
            problems.push(Problem::new(0..0, "the designs have more than 2^63 combinations", "expected fewer points"));
            return None;
        };
        variants.push(Variant { label: "".into(), block: 0, choices: Vec::new(), digits, designed, count });
    }
    let Some(level) = Level::new(variants) else {
        problems.push(Problem::new(0..0, "the designs have more than 2^63 combinations", "expected fewer points"));
        return None;
    };
    let ranges: usize = used(&level.variants).values().map(BTreeSet::len).sum();
    if level.variants.len() > 1 && ranges * sections.iter().map(|level| level.variants.len()).sum::<usize>() > USES_MAX
    {
        problems.push(too_many_sets());
        return None;
    }
    let mut rules = mismatched(sections, &level);
    rules.extend(repeated(&level));
    Some((level, rules))
}

fn too_many_sets() -> Problem {
    let message = "the blocks use ranges of designs in too many ways";
    Problem::new(0..0, message, "expected fewer designs or ranges, or blocks with the same ranges")
}

fn union(a: &Used, b: &Used) -> Used {
    let mut all = a.clone();
    b.iter().for_each(|(design, ranges)| all.entry(*design).or_default().extend(ranges));
    all
}

/// The points of a design as an axis.
fn digit(points: &Arc<Projection>) -> Digit {
    let column = |at: usize| {
        let param = points.design.ranges[points.ranges[at]].param;
        let values = Values::Designed { points: points.clone(), at };
        Column { name: param.name, identity: tells_apart(param), choices: Vec::new(), values }
    };
    Digit { columns: (0..points.ranges.len()).map(column).collect() }
}

/// Rules that leave each combination of blocks the points of exactly the ranges that its blocks use.
fn mismatched(sections: &[Level; DESIGN_LEVEL], points: &Level) -> Vec<Rule> {
    if points.variants.len() == 1 {
        return Vec::new();
    }
    let uses = |variant: &Variant, (design, range): (usize, usize)| {
        variant.designed.iter().any(|own| own.design == design && own.points.ranges.contains(&range))
    };
    let when = |level: &Level, range: (usize, usize), wanted: bool| -> Vec<Requirement> {
        level.variants.iter().map(|variant| (uses(variant, range) == wanted).then(Vec::new)).collect()
    };
    let all = used(&points.variants);
    let mut rules = Vec::new();
    for range in all.into_iter().flat_map(|(design, ranges)| ranges.into_iter().map(move |range| (design, range))) {
        let mut unused = Rule::default();
        unused.levels[DESIGN_LEVEL] = Some(when(points, range, true));
        for (at, level) in sections.iter().enumerate() {
            unused.levels[at] = Some(when(level, range, false));
            let mut lacking = Rule::default();
            lacking.levels[at] = Some(when(level, range, true));
            lacking.levels[DESIGN_LEVEL] = Some(when(points, range, false));
            rules.push(lacking);
        }
        rules.push(unused);
    }
    rules
}

/// Rules that exclude the points that are equal to an earlier one.
fn repeated(level: &Level) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (at, variant) in level.variants.iter().enumerate() {
        for (digit, designed) in variant.designed.iter().enumerate() {
            let positions = designed.points.repeated.clone();
            if positions.is_empty() {
                continue;
            }
            let mut requirements = vec![None; level.variants.len()];
            requirements[at] = Some(vec![(digit, positions)]);
            let mut rule = Rule::default();
            rule.levels[DESIGN_LEVEL] = Some(requirements);
            rules.push(rule);
        }
    }
    rules
}
