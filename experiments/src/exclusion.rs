//! Excluded indices: membership, exact counts and the next included index, without enumerating the sweep.
//!
//! The rules are compiled once into a decision diagram. A node is an interval of indices, split into runs. A run
//! repeats one child: all indices included, all excluded, or another node. The indices below some digits depend only on
//! the rules that these digits leave undecided. So nodes are shared, and digits that no rule names need no node. A
//! look-up walks from the root to a leaf.

use std::collections::{BTreeMap, HashMap};

use crate::space::{LEVELS, Level};

/// The requirement of one rule on a variant of a level.
#[derive(Debug, Clone)]
pub(crate) enum Requirement {
    /// The rule does not apply in this variant.
    Never,
    /// It applies where every listed digit is at one of its sorted positions.
    When(Vec<(usize, Vec<u64>)>),
}

/// One rule: for each level nothing, or a requirement on every variant. Indices that meet all of them are excluded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) levels: [Option<Vec<Requirement>>; LEVELS],
}

/// The child that a run repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Child {
    Included,
    Excluded,
    /// The number of a node. It holds included and excluded indices.
    Node(usize),
}

/// Copies of one child.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The offset of the run in its node.
    start: u64,
    /// Indices of one copy; 1 if they are all included or all excluded.
    stride: u64,
    child: Child,
}

const INCLUDED: Run = Run { start: 0, stride: 1, child: Child::Included };
const EXCLUDED: Run = Run { start: 0, stride: 1, child: Child::Excluded };

/// An interval of indices.
#[derive(Debug)]
struct Node {
    /// Runs in order, the first at offset 0. Neighbours differ.
    runs: Vec<Run>,
    indices: u64,
    included: u64,
}

/// The excluded indices of a sweep.
#[derive(Debug)]
pub(crate) struct Exclusion {
    root: Run,
    nodes: Vec<Node>,
    indices: u64,
}

/// The diagram would be too large: the rules name too many positions in too many levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooIntertwined;

/// Greatest number of rules and positions that the compiler visits. Bounds the time and the memory of the diagram.
const STEPS_MAX: usize = 10_000_000;

impl Exclusion {
    pub(crate) fn new(levels: &[Level; LEVELS], rules: &[Rule]) -> Result<Exclusion, TooIntertwined> {
        let mut tail = [1; LEVELS + 1];
        for at in (0..LEVELS).rev() {
            tail[at] = tail[at + 1] * levels[at].count;
        }
        let mut compiler = Compiler { levels, rules, tail, nodes: Vec::new(), known: HashMap::new(), steps: 0 };
        let root = compiler.level(0, (0..rules.len()).collect())?;
        Ok(Exclusion { root, nodes: compiler.nodes, indices: tail[0] })
    }

    /// Whether an index of the sweep is excluded.
    pub(crate) fn contains(&self, index: u64) -> bool {
        let (mut run, mut offset) = (self.root, index);
        while let Child::Node(node) = run.child {
            offset %= run.stride;
            let runs = &self.nodes[node].runs;
            run = runs[run_at(runs, offset)];
            offset -= run.start;
        }
        run.child == Child::Excluded
    }

    /// Number of included indices.
    pub(crate) fn included(&self) -> u64 {
        included(&self.nodes, self.root, self.indices)
    }

    /// The first included index at or after `from`.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        self.next_in_run(self.root, from, self.indices)
    }

    /// The first included index at or after `from` in a run of this length. Indices count from the start of the run.
    fn next_in_run(&self, run: Run, from: u64, len: u64) -> Option<u64> {
        if from >= len || run.child == Child::Excluded {
            return None;
        }
        let Child::Node(node) = run.child else { return Some(from) };
        let copy = from - from % run.stride;
        let in_copy = |copy: u64, from: u64| Some(copy + self.next_in_node(&self.nodes[node], from)?);
        let next_copy = copy + run.stride;
        in_copy(copy, from % run.stride).or_else(|| if next_copy < len { in_copy(next_copy, 0) } else { None })
    }

    fn next_in_node(&self, node: &Node, from: u64) -> Option<u64> {
        let first = run_at(&node.runs, from);
        (first..node.runs.len()).find_map(|at| {
            let run = node.runs[at];
            let end = node.runs.get(at + 1).map_or(node.indices, |next| next.start);
            Some(run.start + self.next_in_run(run, from.saturating_sub(run.start), end - run.start)?)
        })
    }
}

/// The run that holds an offset in a node.
fn run_at(runs: &[Run], offset: u64) -> usize {
    runs.partition_point(|run| run.start <= offset) - 1
}

/// Included indices of a run of this length.
fn included(nodes: &[Node], run: Run, len: u64) -> u64 {
    match run.child {
        Child::Included => len,
        Child::Excluded => 0,
        Child::Node(node) => len / run.stride * nodes[node].included,
    }
}

/// Runs of a node that is being built.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    end: u64,
}

impl Runs {
    fn push(&mut self, len: u64, run: Run) {
        let same = |last: &Run| (last.stride, last.child) == (run.stride, run.child);
        if len > 0 && !self.runs.last().is_some_and(same) {
            self.runs.push(Run { start: self.end, ..run });
        }
        self.end += len;
    }
}

/// The place of a node: a level, and within it a variant and a digit, or all variants.
type Place = (usize, Option<(usize, usize)>);

struct Compiler<'a> {
    levels: &'a [Level; LEVELS],
    rules: &'a [Rule],
    /// Number of indices of all levels from this one on.
    tail: [u64; LEVELS + 1],
    nodes: Vec<Node>,
    /// Finished nodes, by place and undecided rules.
    known: HashMap<(Place, Vec<usize>), Run>,
    steps: usize,
}

impl<'a> Compiler<'a> {
    fn steps(&mut self, more: usize) -> Result<(), TooIntertwined> {
        self.steps += more;
        if self.steps > STEPS_MAX { Err(TooIntertwined) } else { Ok(()) }
    }

    /// The conditions of a rule on the digits of a variant; `None` if the rule does not apply there.
    fn conditions(&self, rule: usize, at: usize, variant: usize) -> Option<&'a [(usize, Vec<u64>)]> {
        match self.rules[rule].levels[at].as_ref().map(|variants| &variants[variant]) {
            None => Some(&[]),
            Some(Requirement::Never) => None,
            Some(Requirement::When(conditions)) => Some(conditions),
        }
    }

    /// Whether a rule has no requirement on this level and the levels after it.
    fn has_no_requirement_from(&self, rule: usize, at: usize) -> bool {
        self.rules[rule].levels[at..].iter().all(Option::is_none)
    }

    /// The indices of this level and the levels after it, given the rules that the levels before it leave undecided.
    fn level(&mut self, at: usize, undecided: Vec<usize>) -> Result<Run, TooIntertwined> {
        if undecided.is_empty() {
            return Ok(INCLUDED);
        }
        if undecided.iter().any(|rule| self.has_no_requirement_from(*rule, at)) {
            return Ok(EXCLUDED);
        }
        let key = ((at, None), undecided);
        if let Some(run) = self.known.get(&key) {
            return Ok(*run);
        }
        let levels = self.levels;
        let mut runs = Runs::default();
        for (variant, block) in levels[at].variants.iter().enumerate() {
            self.steps(key.1.len())?;
            let applies = |rule: &usize| self.conditions(*rule, at, variant).is_some();
            let undecided = key.1.iter().copied().filter(applies).collect();
            let indices = block.count * self.tail[at + 1];
            runs.push(indices, self.digits((at, variant, 0), indices, undecided)?);
        }
        Ok(self.finish(key, runs))
    }

    /// The indices of this digit of a variant, of the digits after it and of the levels after it.
    fn digits(
        &mut self,
        (at, variant, digit): (usize, usize, usize),
        indices: u64,
        undecided: Vec<usize>,
    ) -> Result<Run, TooIntertwined> {
        let digits = &self.levels[at].variants[variant].digits;
        if undecided.is_empty() || digit == digits.len() {
            return self.level(at + 1, undecided);
        }
        let key = ((at, Some((variant, digit))), undecided);
        if let Some(run) = self.known.get(&key) {
            return Ok(*run);
        }
        // Rules without a condition on this digit, and rules by the positions that they name.
        let (mut others, mut named) = (Vec::new(), BTreeMap::<u64, Vec<usize>>::new());
        for rule in &key.1 {
            let conditions = self.conditions(*rule, at, variant).unwrap_or_default();
            if conditions.iter().all(|(on, _)| *on < digit) && self.has_no_requirement_from(*rule, at + 1) {
                return Ok(EXCLUDED);
            }
            match conditions.iter().find(|(on, _)| *on == digit) {
                None => others.push(*rule),
                Some((_, positions)) => {
                    self.steps(positions.len())?;
                    positions.iter().for_each(|position| named.entry(*position).or_default().push(*rule));
                }
            }
        }
        let (len, below) = (digits[digit].len(), indices / digits[digit].len());
        // All positions that no rule names have the same child.
        let unnamed = if named.len() as u64 == len {
            INCLUDED
        } else {
            self.digits((at, variant, digit + 1), below, others.clone())?
        };
        let mut runs = Runs::default();
        for (position, mut rules) in named {
            self.steps(others.len())?;
            rules.extend(&others);
            rules.sort_unstable();
            runs.push(position * below - runs.end, unnamed);
            runs.push(below, self.digits((at, variant, digit + 1), below, rules)?);
        }
        runs.push(indices - runs.end, unnamed);
        Ok(self.finish(key, runs))
    }

    /// Adds a node with these runs. A single run needs no node.
    fn finish(&mut self, key: (Place, Vec<usize>), Runs { runs, end }: Runs) -> Run {
        let run = match runs.as_slice() {
            [only] => *only,
            _ => {
                let ends = runs.iter().skip(1).map(|run| run.start).chain([end]);
                let counts = runs.iter().zip(ends).map(|(run, end)| included(&self.nodes, *run, end - run.start));
                let included = counts.sum();
                self.nodes.push(Node { runs, indices: end, included });
                Run { start: 0, stride: end, child: Child::Node(self.nodes.len() - 1) }
            }
        };
        self.known.insert(key, run);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Column, Digit, Variant};
    use crate::values::Values;

    /// A level with one variant and digits of these lengths.
    fn level(lens: &[u64]) -> Level {
        let digit = |len: &u64| {
            let values = Values::Ints { from: 0, step: 1, count: *len };
            Digit { columns: vec![Column { name: "x", identity: true, choices: Vec::new(), values }] }
        };
        let digits: Vec<Digit> = lens.iter().map(digit).collect();
        let count = lens.iter().product();
        Level::new(vec![Variant { label: "".into(), block: 0, choices: Vec::new(), digits, count }]).expect("63 bits")
    }

    /// A rule that excludes positions of digits of the first and the last level.
    fn rule(first: (usize, Vec<u64>), last: (usize, Vec<u64>)) -> Rule {
        let mut rule = Rule::default();
        rule.levels[0] = Some(vec![Requirement::When(vec![first])]);
        rule.levels[LEVELS - 1] = Some(vec![Requirement::When(vec![last])]);
        rule
    }

    #[test]
    fn positions_that_rules_treat_alike_share_a_node() {
        let levels = [level(&[1_000, 1_000]), level(&[]), level(&[]), level(&[]), level(&[1_000])];
        let rules = [rule((1, (0..500).collect()), (0, vec![7])), rule((0, vec![3]), (0, vec![8, 9]))];
        let exclusion = Exclusion::new(&levels, &rules).expect("two rules");
        // Nodes: the first digit, the second digit with and without the second rule, seeds of either rule or both.
        assert!(exclusion.nodes.len() <= 6, "{}", exclusion.nodes.len());
        assert_eq!(exclusion.included(), 1_000_000_000 - 500_000 - 2_000);
        assert!(exclusion.contains(3_000_008) && !exclusion.contains(2_000_008) && exclusion.contains(2_000_007));
        assert_eq!(exclusion.next(3_000_007), Some(3_000_010));
        assert_eq!(exclusion.next(1_000_000_000), None);
    }

    #[test]
    fn rules_whose_combinations_all_differ_are_refused() {
        let levels = [level(&[2; 30]), level(&[]), level(&[]), level(&[]), level(&[30])];
        let rules: Vec<Rule> = (0..30).map(|i| rule((i, vec![0]), (0, vec![i as u64]))).collect();
        assert_eq!(Exclusion::new(&levels, &rules).expect_err("2^30 nodes"), TooIntertwined);
        assert!(Exclusion::new(&levels, &rules[..10]).is_ok());
    }
}
