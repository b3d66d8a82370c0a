//! Excluded indices: membership, exact counts and the next included index, without enumerating the sweep.
//!
//! The rules are compiled once into a decision diagram. A node is an interval of indices, split into runs. A run
//! repeats one child: all indices included, all excluded, or another node. The indices below some digits depend only on
//! the rules that these digits leave undecided. So nodes are shared, and digits that no rule names need no node. A
//! look-up walks from the root to a leaf. Every node holds an included index, so that the search for the next one turns
//! back at most once at each node of its walk: its steps are bounded by the number of digits, whatever the rules are.

use std::collections::{BTreeMap, HashMap};

use crate::space::{LEVELS, Level};

/// The requirement of one rule on a variant of a level: every listed digit is at one of its sorted positions. `None`: the rule
/// does not apply in this variant.
pub(crate) type Requirement = Option<Vec<(usize, Vec<u64>)>>;

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
    /// Included indices of the node before the run.
    before: u64,
}

const INCLUDED: Run = Run { start: 0, stride: 1, child: Child::Included, before: 0 };
const EXCLUDED: Run = Run { start: 0, stride: 1, child: Child::Excluded, before: 0 };

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

    /// Number of included indices below `index`.
    pub(crate) fn included_below(&self, index: u64) -> u64 {
        let (mut run, mut offset, mut below) = (self.root, index.min(self.indices), 0);
        while let Child::Node(node) = run.child {
            let Node { runs, included, .. } = &self.nodes[node];
            below += offset / run.stride * included;
            offset %= run.stride;
            run = runs[run_at(runs, offset)];
            below += run.before;
            offset -= run.start;
        }
        below + if run.child == Child::Included { offset } else { 0 }
    }

    /// Number of indices.
    pub(crate) fn indices(&self) -> u64 {
        self.indices
    }

    /// The included index with `rank` included ones below it.
    pub(crate) fn nth(&self, rank: u64) -> Option<u64> {
        if rank >= self.included() {
            return None;
        }
        let (mut least, mut most) = (rank, self.indices - 1);
        while least < most {
            let middle = least + (most - least) / 2;
            if self.included_below(middle + 1) > rank { most = middle } else { least = middle + 1 }
        }
        Some(least)
    }

    /// The first included index at or after `from`.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        self.next_in_run(self.root, from, self.indices)
    }

    /// The first included index at or after `from` in a run of this length. Indices count from the start of the run.
    fn next_in_run(&self, run: Run, from: u64, len: u64) -> Option<u64> {
        #[cfg(test)]
        tests::VISITED.with(|visited| visited.set(visited.get() + 1));
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
            self.runs.push(Run { start: self.end, before: 0, ..run });
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
        self.rules[rule].levels[at].as_ref().map_or(Some(&[]), |variants| variants[variant].as_deref())
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
    fn finish(&mut self, key: (Place, Vec<usize>), Runs { mut runs, end }: Runs) -> Run {
        let run = match runs.as_slice() {
            [only] => *only,
            _ => {
                let mut before = 0;
                for at in 0..runs.len() {
                    let end = runs.get(at + 1).map_or(end, |next| next.start);
                    runs[at].before = before;
                    before += included(&self.nodes, runs[at], end - runs[at].start);
                }
                self.nodes.push(Node { runs, indices: end, included: before });
                Run { stride: end, child: Child::Node(self.nodes.len() - 1), ..INCLUDED }
            }
        };
        self.known.insert(key, run);
        run
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::space::{Column, Digit, Variant};
    use crate::values::Values;

    thread_local! {
        /// Runs that the search for the next included index has visited.
        pub(super) static VISITED: Cell<usize> = const { Cell::new(0) };
    }

    /// The next included index, and the runs visited.
    fn counted(exclusion: &Exclusion, from: u64) -> (Option<u64>, usize) {
        VISITED.set(0);
        (exclusion.next(from), VISITED.get())
    }

    /// A level with one variant and digits of these lengths.
    fn level(lens: &[u64]) -> Level {
        let digit = |len: &u64| {
            let values = Values::Ints { from: 0, step: 1, count: *len };
            Digit { columns: vec![Column { name: "x", identity: true, choices: Vec::new(), values }] }
        };
        let digits: Vec<Digit> = lens.iter().map(digit).collect();
        let count = lens.iter().product();
        Level::new(vec![Variant {
            label: "".into(),
            block: 0,
            choices: Vec::new(),
            digits,
            designed: Vec::new(),
            count,
        }])
        .expect("63 bits")
    }

    /// A rule that excludes positions of digits of the first and the last level.
    fn rule(first: (usize, Vec<u64>), last: (usize, Vec<u64>)) -> Rule {
        let mut rule = Rule::default();
        rule.levels[0] = Some(vec![Some(vec![first])]);
        rule.levels[LEVELS - 1] = Some(vec![Some(vec![last])]);
        rule
    }

    #[test]
    fn positions_that_rules_treat_alike_share_a_node() {
        let levels = [level(&[1_000, 1_000]), level(&[]), level(&[]), level(&[]), level(&[]), level(&[1_000])];
        let rules = [rule((1, (0..500).collect()), (0, vec![7])), rule((0, vec![3]), (0, vec![8, 9]))];
        let exclusion = Exclusion::new(&levels, &rules).expect("two rules");
        // Nodes: the first digit, the second digit with and without the second rule, seeds of either rule or both.
        assert!(exclusion.nodes.len() <= 6, "{}", exclusion.nodes.len());
        assert_eq!(exclusion.included(), 1_000_000_000 - 500_000 - 2_000);
        assert!(exclusion.contains(3_000_008) && !exclusion.contains(2_000_008) && exclusion.contains(2_000_007));
        assert_eq!(exclusion.next(3_000_007), Some(3_000_010));
        assert_eq!(exclusion.next(1_000_000_000), None);
    }

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)) % end
        }

        /// Positions of a digit: some, or those of one remainder.
        fn positions(&mut self, len: u64) -> Vec<u64> {
            let step = 1 + self.below(3);
            let from = self.below(step.min(len));
            (from..len).step_by(step as usize).filter(|_| step > 1 || self.below(2) == 0).collect()
        }

        /// A rule with conditions on some digits of some levels.
        fn rule(&mut self, levels: &[Level; LEVELS]) -> Rule {
            let mut rule = Rule::default();
            for (at, level) in levels.iter().enumerate() {
                let mut conditions = Vec::new();
                for (on, digit) in level.variants[0].digits.iter().enumerate() {
                    if self.below(3) > 0 {
                        conditions.push((on, self.positions(digit.len())));
                    }
                }
                if !conditions.is_empty() {
                    rule.levels[at] = Some(vec![Some(conditions)]);
                }
            }
            rule
        }
    }

    /// Whether a rule excludes an index, from the positions of its digits.
    fn excludes(rule: &Rule, levels: &[Level; LEVELS], index: u64) -> bool {
        let mut rest = index;
        (0..LEVELS).rev().all(|at| {
            let positions = levels[at].variants[0].positions(rest % levels[at].count);
            rest /= levels[at].count;
            let Some(variants) = &rule.levels[at] else { return true };
            let Some(conditions) = &variants[0] else { return false };
            conditions.iter().all(|(on, allowed)| allowed.contains(&positions[*on]))
        }) && rule.levels.iter().any(Option::is_some)
    }

    #[test]
    fn random_rules_agree_with_brute_force_within_a_budget_of_steps() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let lens = |random: &mut Random, digits| (0..digits).map(|_| 1 + random.below(4)).collect::<Vec<u64>>();
            let levels = [2, 1, 2, 0, 0, 1].map(|digits| level(&lens(&mut random, digits)));
            let rules: Vec<Rule> = (0..1 + random.below(5)).map(|_| random.rule(&levels)).collect();
            let rules: Vec<Rule> = rules.into_iter().filter(|rule| rule.levels.iter().any(Option::is_some)).collect();
            let exclusion = Exclusion::new(&levels, &rules).expect("small");
            let indices: u64 = levels.iter().map(|level| level.count).product();
            let included = |index: &u64| !rules.iter().any(|rule| excludes(rule, &levels, *index));
            let included: Vec<u64> = (0..indices).filter(included).collect();
            for index in 0..=indices {
                let below = included.partition_point(|included| *included < index);
                let (next, visited) = counted(&exclusion, index);
                assert_eq!(next, included.get(below).copied(), "seed {seed}, index {index}");
                assert!(visited <= STEPS_EACH_DIGIT * DIGITS, "seed {seed}: {visited} runs");
                assert_eq!(exclusion.included_below(index), below as u64, "seed {seed}, index {index}");
            }
        }
    }

    /// Digits of the sweeps here, each with a level of its own or within one.
    const DIGITS: usize = 6;
    /// A run that ends without an included index, its next copy, an excluded run, and the run after it.
    const STEPS_EACH_DIGIT: usize = 5;

    #[test]
    fn rules_that_complement_each_other_in_the_seed_are_searched_within_a_budget_of_steps() {
        let wide = 60_000;
        let levels = [level(&[wide, wide]), level(&[wide]), level(&[]), level(&[]), level(&[]), level(&[1_000])];
        // All but the last position of each digit have no included seed: the rules exclude the even and the odd ones.
        let but_last = || (0..wide - 1).collect::<Vec<u64>>();
        let mut rules = Vec::new();
        for (at, digit) in [(0, 0), (0, 1), (1, 0)] {
            for odd in [0, 1] {
                let mut rule = Rule::default();
                rule.levels[at] = Some(vec![Some(vec![(digit, but_last())])]);
                let seeds = (odd..1_000).step_by(2).collect();
                rule.levels[LEVELS - 1] = Some(vec![Some(vec![(0, seeds)])]);
                rules.push(rule);
            }
        }
        let exclusion = Exclusion::new(&levels, &rules).expect("few nodes");
        let first = (wide * wide * wide - 1) * 1_000;
        assert_eq!(exclusion.included(), 1_000);
        for from in [0, 1, 999, first / 2, first - 1, first, first + 1_000] {
            let (next, visited) = counted(&exclusion, from);
            assert_eq!(next, (from <= first).then_some(first.max(from)), "from {from}");
            assert!(visited <= STEPS_EACH_DIGIT * DIGITS, "from {from}: {visited} runs");
        }
    }

    #[test]
    fn rules_whose_combinations_all_differ_are_refused() {
        let levels = [level(&[2; 30]), level(&[]), level(&[]), level(&[]), level(&[]), level(&[30])];
        let rules: Vec<Rule> = (0..30).map(|i| rule((i, vec![0]), (0, vec![i as u64]))).collect();
        assert_eq!(Exclusion::new(&levels, &rules).expect_err("2^30 nodes"), TooIntertwined);
        assert!(Exclusion::new(&levels, &rules[..10]).is_ok());
    }
}
