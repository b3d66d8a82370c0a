//! Excluded indices: membership, exact counts and the next included index, without enumerating the sweep.
//!
//! A rule excludes the product of a set of positions in each level. Walking the index from its slowest digit, the rules
//! that may still apply form a set that only shrinks: when it is empty everything below is included; when one of its
//! rules has no condition left everything below is excluded. Only digits that conditions name are branched on.

use std::collections::HashMap;

use crate::space::{LEVELS, Level};

/// What one rule asks of the variants of a level.
#[derive(Debug, Clone)]
pub(crate) enum Touch {
    /// The rule does not apply in this variant.
    Never,
    /// It applies where every listed digit is at one of its sorted positions.
    When(Vec<(usize, Vec<u64>)>),
}

/// One rule: for each level nothing, or what it asks of every variant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) levels: [Option<Vec<Touch>>; LEVELS],
}

/// A set of rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Set(Vec<u64>);

impl Set {
    fn none(rules: usize) -> Set {
        Set(vec![0; rules.div_ceil(64)])
    }

    fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    fn remove(&mut self, rule: usize) {
        self.0[rule / 64] &= !(1 << (rule % 64));
    }

    fn contains(&self, rule: usize) -> bool {
        self.0[rule / 64] & (1 << (rule % 64)) != 0
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn and(&self, other: &Set) -> Set {
        Set(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }
}

/// A condition on a digit: the rule that has it and the sorted positions at which it goes on.
type Condition = (usize, Vec<u64>);

/// What the rules ask of one variant.
#[derive(Debug, Clone)]
struct Gate {
    /// Rules that go on in this variant.
    keeps: Set,
    /// The conditions on each digit.
    conditions: Vec<Vec<Condition>>,
    /// Rules that have no condition from this digit on; one more than digits.
    ended: Vec<Set>,
    /// Indices below one position of each digit within the variant; one more than digits.
    sizes: Vec<u64>,
}

/// All rules of a sweep.
#[derive(Debug, Clone)]
pub(crate) struct Exclusion {
    rules: usize,
    gates: Vec<Vec<Gate>>,
    /// Rules whose last condition is in an earlier level.
    ended: Vec<Set>,
    /// Number of positions of all levels from this one on.
    tail: [u64; LEVELS + 1],
}

/// Counting would take too long: the rules name too many positions in too many levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooIntertwined;

/// Steps that one count may take.
const STEPS_MAX: u64 = 2_000_000;

impl Exclusion {
    pub(crate) fn new(levels: &[Level; LEVELS], rules: &[Rule]) -> Exclusion {
        let last: Vec<usize> =
            rules.iter().map(|rule| rule.levels.iter().rposition(Option::is_some).unwrap_or(0)).collect();
        let set = |keep: &dyn Fn(usize) -> bool| {
            let mut set = Set::none(rules.len());
            (0..rules.len()).filter(|rule| keep(*rule)).for_each(|rule| set.insert(rule));
            set
        };
        let mut tail = [1; LEVELS + 1];
        for at in (0..LEVELS).rev() {
            tail[at] = tail[at + 1] * levels[at].count;
        }
        let gate = |at: usize, variant: usize| {
            let digits = &levels[at].variants[variant].digits;
            let touch = |rule: usize| rules[rule].levels[at].as_ref().map(|touches| &touches[variant]);
            let keeps = set(&|rule| !matches!(touch(rule), Some(Touch::Never)));
            let mut conditions = vec![Vec::new(); digits.len()];
            for rule in 0..rules.len() {
                if let Some(Touch::When(list)) = touch(rule) {
                    list.iter().for_each(|(digit, positions)| conditions[*digit].push((rule, positions.clone())));
                }
            }
            let ended = (0..=digits.len())
                .map(|from| {
                    set(&|rule| {
                        last[rule] < at
                            || last[rule] == at
                                && !conditions[from..].iter().flatten().any(|(owner, _): &Condition| *owner == rule)
                    })
                })
                .collect();
            let mut sizes = vec![1; digits.len() + 1];
            for digit in (0..digits.len()).rev() {
                sizes[digit] = sizes[digit + 1] * digits[digit].len();
            }
            Gate { keeps, conditions, ended, sizes }
        };
        let gates = (0..LEVELS).map(|at| (0..levels[at].variants.len()).map(|v| gate(at, v)).collect()).collect();
        let ended = (0..=LEVELS).map(|at| set(&|rule| last[rule] < at)).collect();
        Exclusion { rules: rules.len(), gates, ended, tail }
    }

    fn all(&self) -> Set {
        let mut set = Set::none(self.rules);
        (0..self.rules).for_each(|rule| set.insert(rule));
        set
    }

    /// Whether an index below the product is excluded.
    pub(crate) fn contains(&self, levels: &[Level; LEVELS], index: u64) -> bool {
        if self.rules == 0 {
            return false;
        }
        let mut active = self.all();
        let mut rest = index;
        for (at, level) in levels.iter().enumerate() {
            let (variant, mut offset) = level.locate(rest / self.tail[at + 1]);
            rest %= self.tail[at + 1];
            let gate = &self.gates[at][variant];
            active = active.and(&gate.keeps);
            for (digit, conditions) in gate.conditions.iter().enumerate() {
                let position = offset / gate.sizes[digit + 1];
                offset %= gate.sizes[digit + 1];
                leave(&mut active, conditions, position);
            }
            if active.is_empty() {
                return false;
            }
        }
        true
    }

    /// Number of included indices.
    pub(crate) fn count(&self) -> Result<u64, TooIntertwined> {
        Counter { rules: self, steps: 0, memo: HashMap::new() }.level(0, &self.all())
    }

    /// The first included index at or after `from`.
    pub(crate) fn next(&self, levels: &[Level; LEVELS], from: u64) -> Option<u64> {
        if from >= self.tail[0] { None } else { self.next_in_level(levels, 0, &self.all(), from) }
    }

    fn next_in_level(&self, levels: &[Level; LEVELS], at: usize, active: &Set, from: u64) -> Option<u64> {
        if active.is_empty() {
            return Some(from);
        }
        if at == LEVELS || active.meets(&self.ended[at]) {
            return None;
        }
        let below = self.tail[at + 1];
        let level = &levels[at];
        let (first, offset) = level.locate(from / below);
        (first..level.variants.len()).find_map(|variant| {
            let active = active.and(&self.gates[at][variant].keeps);
            let from = if variant == first { offset * below + from % below } else { 0 };
            let found = self.next_in_digits(levels, (at, variant, 0), &active, from)?;
            Some(level.start(variant) * below + found)
        })
    }

    fn next_in_digits(
        &self,
        levels: &[Level; LEVELS],
        (at, variant, digit): (usize, usize, usize),
        active: &Set,
        from: u64,
    ) -> Option<u64> {
        let gate = &self.gates[at][variant];
        if active.is_empty() {
            return Some(from);
        }
        if active.meets(&gate.ended[digit]) {
            return None;
        }
        if digit == gate.conditions.len() {
            return self.next_in_level(levels, at + 1, active, from);
        }
        let below = gate.sizes[digit + 1] * self.tail[at + 1];
        let count = gate.sizes[digit] / gate.sizes[digit + 1];
        let named = named(active, &gate.conditions[digit]);
        let try_at = |position: u64, rest: u64| {
            let mut active = active.clone();
            leave(&mut active, &gate.conditions[digit], position);
            let found = self.next_in_digits(levels, (at, variant, digit + 1), &active, rest)?;
            Some(position * below + found)
        };
        let mut position = from / below;
        if let Some(found) = try_at(position, from % below) {
            return Some(found);
        }
        // Positions that no condition names all behave alike: one of them speaks for the others.
        let mut unnamed_is_empty = false;
        position += 1;
        while position < count {
            if named.binary_search(&position).is_ok() || !unnamed_is_empty {
                if let Some(found) = try_at(position, 0) {
                    return Some(found);
                }
                unnamed_is_empty |= named.binary_search(&position).is_err();
                position += 1;
            } else {
                position = named.get(named.partition_point(|p| *p < position)).copied().unwrap_or(count);
            }
        }
        None
    }
}

/// Drops the rules whose condition a position does not meet.
fn leave(active: &mut Set, conditions: &[Condition], position: u64) {
    for (rule, positions) in conditions {
        if positions.binary_search(&position).is_err() {
            active.remove(*rule);
        }
    }
}

/// The positions that conditions of active rules name, sorted.
fn named(active: &Set, conditions: &[Condition]) -> Vec<u64> {
    let mut named: Vec<u64> = conditions
        .iter()
        .filter(|(rule, _)| active.contains(*rule))
        .flat_map(|(_, positions)| positions.iter().copied())
        .collect();
    named.sort_unstable();
    named.dedup();
    named
}

/// A count in progress.
struct Counter<'a> {
    rules: &'a Exclusion,
    steps: u64,
    memo: HashMap<(usize, Set), u64>,
}

impl Counter<'_> {
    fn step(&mut self) -> Result<(), TooIntertwined> {
        self.steps += 1;
        if self.steps > STEPS_MAX { Err(TooIntertwined) } else { Ok(()) }
    }

    fn level(&mut self, at: usize, active: &Set) -> Result<u64, TooIntertwined> {
        if active.is_empty() {
            return Ok(self.rules.tail[at]);
        }
        if at == LEVELS || active.meets(&self.rules.ended[at]) {
            return Ok(0);
        }
        if let Some(known) = self.memo.get(&(at, active.clone())) {
            return Ok(*known);
        }
        let mut sum = 0;
        for variant in 0..self.rules.gates[at].len() {
            let active = active.and(&self.rules.gates[at][variant].keeps);
            sum += self.digits(at, variant, 0, &active)?;
        }
        self.memo.insert((at, active.clone()), sum);
        Ok(sum)
    }

    fn digits(&mut self, at: usize, variant: usize, digit: usize, active: &Set) -> Result<u64, TooIntertwined> {
        self.step()?;
        let rules = self.rules;
        let gate = &rules.gates[at][variant];
        if active.is_empty() {
            return Ok(gate.sizes[digit] * rules.tail[at + 1]);
        }
        if active.meets(&gate.ended[digit]) {
            return Ok(0);
        }
        if digit == gate.conditions.len() {
            return self.level(at + 1, active);
        }
        let conditions = &gate.conditions[digit];
        let named = named(active, conditions);
        let mut groups: HashMap<Set, u64> = HashMap::new();
        for position in &named {
            self.step()?;
            let mut active = active.clone();
            leave(&mut active, conditions, *position);
            *groups.entry(active).or_default() += 1;
        }
        let unnamed = gate.sizes[digit] / gate.sizes[digit + 1] - named.len() as u64;
        if unnamed > 0 {
            let mut active = active.clone();
            conditions.iter().for_each(|(rule, _)| active.remove(*rule));
            *groups.entry(active).or_default() += unnamed;
        }
        let mut sum = 0;
        for (active, times) in groups {
            sum += times * self.digits(at, variant, digit + 1, &active)?;
        }
        Ok(sum)
    }
}
