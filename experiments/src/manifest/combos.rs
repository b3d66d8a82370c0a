//! Combinations that cannot be simulated. In a small sweep all tasks are checked, in a large one a sample.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::{Role, SimSpec};
use toml::de::DeTable;

use crate::errors::Problem;
use crate::exclusion::Exclusion;
use crate::space::{self, DESIGN_LEVEL, LEVELS, Level, SEED_LEVEL};

use super::Tables;
use super::unique::{describe, span_of};

/// Sweeps up to this size are checked task by task.
const ALL_MAX: u64 = 5_000;
/// Greatest number of tasks that are checked in a larger sweep.
const COVER_MAX: usize = 20_000;

/// Reports each problem once, with the first task that has it.
pub(crate) fn check(
    top: &DeTable<'_>,
    levels: &[Level; LEVELS],
    exclusion: &Exclusion,
    tables: Tables,
    problems: &mut Vec<Problem>,
) {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for index in candidates(levels).into_iter().filter(|index| !exclusion.contains(*index)) {
        let spec = spec(levels, index);
        for problem in
            spec.problems().iter().cloned().chain(without_jobs(&spec, tables)).chain(without_power(&spec, tables))
        {
            found.entry(problem).or_insert((index, 0)).1 += 1;
        }
    }
    for (problem, (index, times)) in found.into_iter().take(50) {
        let mut at = Vec::new();
        let mut named = Vec::new();
        for (depth, level) in levels.iter().enumerate().take(SEED_LEVEL) {
            let (variant, offset) = level.locate(positions(levels, index)[depth]);
            let variant = &level.variants[variant];
            if depth == DESIGN_LEVEL {
                at.extend(describe(variant, offset));
                break;
            }
            if !variant.label.is_empty() {
                at.push(format!("{} `{}`", crate::space::SECTIONS[depth].key(), variant.label));
            }
            at.extend(describe(variant, offset));
            // The place of the problem is the parameter that the sentence names first.
            let table = top.get(crate::space::SECTIONS[depth].key()).and_then(|v| v.get_ref().as_table());
            let block = match table.map(|t| (t, t.get(&*variant.label))) {
                Some((_, Some(block))) => block.get_ref().as_table(),
                Some((table, None)) => Some(table),
                None => None,
            };
            let keys = block.into_iter().flat_map(DeTable::keys);
            named.extend(keys.filter_map(|key| Some((mention(&problem, key.get_ref())?, key.span()))));
        }
        let (variant, _) = levels[2].locate(positions(levels, index)[2]);
        let first = named.into_iter().min_by_key(|(word, _)| *word).map(|(_, span)| span);
        let span = first.unwrap_or_else(|| span_of(top, 2, &levels[2].variants[variant].label));
        let help = format!("in {times} of the tasks checked, first in task {index}: {}", at.join(", "));
        problems.push(Problem::new(span, problem, "this combination cannot be simulated").help(help));
    }
}

/// A problem if `tables` has "jobs" but the model records no jobs.
fn without_jobs(spec: &SimSpec, tables: Tables) -> Option<String> {
    let kind = spec.choice(Role::Policy).component().name;
    (tables.jobs && !spec.applies(Role::Backfill)).then(|| {
        format!("`tables` lists \"jobs\", but a queueing model (`kind` = \"{kind}\") records no jobs: remove it")
    })
}

/// A problem if the manifest has signals but the model has no machine whose energy they could weigh.
fn without_power(spec: &SimSpec, tables: Tables) -> Option<String> {
    let kind = spec.choice(Role::Policy).component().name;
    (tables.accounts && !spec.applies(Role::Backfill)).then(|| {
        format!(
            "[signals] weigh the energy of batch jobs, and a queueing model (`kind` = \"{kind}\") has none: remove them"
        )
    })
}

/// The position of a name among the words of a sentence.
fn mention(sentence: &str, name: &str) -> Option<usize> {
    sentence.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).position(|word| word == name)
}

/// The position of each level.
pub(crate) fn positions(levels: &[Level; LEVELS], index: u64) -> [u64; LEVELS] {
    let mut rest = index;
    let mut positions = [0; LEVELS];
    for at in (0..LEVELS).rev() {
        positions[at] = rest % levels[at].count;
        rest /= levels[at].count;
    }
    positions
}

fn index_of(levels: &[Level; LEVELS], positions: [u64; LEVELS]) -> u64 {
    positions.iter().zip(levels).fold(0, |index, (position, level)| index * level.count + position)
}

pub(crate) fn spec(levels: &[Level; LEVELS], index: u64) -> SimSpec {
    let mut sim = SimSpec::new();
    space::choices(levels, &positions(levels, index)).into_iter().for_each(|choice| sim.choose(choice));
    sim
}

/// The indices to check. One seed is enough. In a small sweep: all indices. In a larger one: every pair of variants of
/// two levels, and in every variant each value of each axis and each pair of last values, with all other digits at
/// their first position.
pub(crate) fn candidates(levels: &[Level; LEVELS]) -> BTreeSet<u64> {
    let seeds = levels[SEED_LEVEL].count;
    let all = levels.iter().map(|level| level.count).product::<u64>() / seeds;
    if all <= ALL_MAX {
        return (0..all).map(|at| at * seeds).collect();
    }
    let mut chosen = BTreeSet::new();
    // With each combination, the corners of the points that its blocks use.
    let insert = |chosen: &mut BTreeSet<u64>, mut positions: [u64; LEVELS]| {
        let sections = levels.iter().zip(&positions).take(DESIGN_LEVEL);
        let points = &levels[DESIGN_LEVEL];
        let variant = space::points_of(points, sections.map(|(level, at)| &level.variants[level.locate(*at).0]));
        for offset in corners(&points.variants[variant]) {
            positions[DESIGN_LEVEL] = points.start(variant) + offset;
            chosen.insert(index_of(levels, positions));
        }
    };
    for (at, level) in levels.iter().enumerate().take(DESIGN_LEVEL) {
        for (variant, start) in level.variants.iter().zip(0..).map(|(v, i)| (v, level.start(i))) {
            for offset in corners(variant) {
                let mut positions = [0; LEVELS];
                positions[at] = start + offset;
                insert(&mut chosen, positions);
                // The same with the first position of every variant of the other levels.
                for (other, level) in levels.iter().enumerate().take(DESIGN_LEVEL).filter(|(other, _)| *other != at) {
                    for i in 0..level.variants.len() {
                        if chosen.len() >= COVER_MAX {
                            return chosen;
                        }
                        positions[other] = level.start(i);
                        insert(&mut chosen, positions);
                    }
                    positions[other] = 0;
                }
            }
        }
    }
    chosen
}

/// Offsets of a variant: each value of each axis (up to 200), and the last values of each pair of axes.
fn corners(variant: &crate::space::Variant) -> BTreeSet<u64> {
    let mut strides = vec![1; variant.digits.len()];
    for at in (1..variant.digits.len()).rev() {
        strides[at - 1] = strides[at] * variant.digits[at].len();
    }
    let mut offsets = BTreeSet::from([0]);
    for (digit, stride) in variant.digits.iter().zip(&strides) {
        offsets.extend((0..digit.len().min(200)).map(|at| at * stride));
        let far = (digit.len() - 1) * stride;
        offsets.insert(far);
        for (other, stride) in variant.digits.iter().zip(&strides) {
            if !std::ptr::eq(other, digit) {
                offsets.insert(far + (other.len() - 1) * stride);
            }
        }
    }
    offsets.into_iter().filter(|offset| *offset < variant.count).collect()
}
