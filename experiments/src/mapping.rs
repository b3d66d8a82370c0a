//! The indices of the tasks of one sweep in another sweep, for edits of manifests with millions of finished tasks.
//!
//! [`Sweep::index_of`] finds one task by its spec. Here no task is decoded: a level's position in the new sweep depends
//! only on its position in the old one, and within a block that kept its axes every digit maps independently. So
//! components and values are compared once for each value of an axis, or once for each position of the level if a block
//! changed its axes. A task then costs a few divisions. The result is the same as that of `index_of`.

use std::collections::HashMap;

use powersweep_engine::{Choice, Value};

use crate::Sweep;
use crate::space::{DESIGN_LEVEL, Digit, LOG, MODULE, SEED_LEVEL, SameLog, Variant};
use crate::values::Values;

/// Greatest number of comparisons for one table of zipped values. Beyond it, positions are compared one by one.
const ZIP_COMPARISONS_MAX: u64 = 1 << 22;

/// Maximum number of tasks that are compared by [`Mapping::may_share_a_task`] where there are designs.
const SAMPLE_MAX: usize = 10_000;

/// Maximum number of positions of a level that are compared by [`Mapping::may_share_a_task`].
const POSITIONS_MAX: u64 = 1 << 16;

/// Maps indices of one sweep to the indices of the same tasks in another sweep.
#[derive(Debug)]
pub struct Mapping {
    old: Sweep,
    new: Sweep,
    levels: [LevelMap; DESIGN_LEVEL],
    last_seed: Option<(u64, Option<u64>)>,
    /// With designs, which join the levels: the last task without its seed, and the index of that task with the first seed.
    last_task: Option<(u64, Option<u64>)>,
}

#[derive(Debug, Default)]
struct LevelMap {
    /// The last result: consecutive indices share the slower levels.
    last: Option<(u64, Option<u64>)>,
    /// By old variant: the mapping of its digits to the variant that has its tasks.
    tables: HashMap<usize, Tables>,
    /// Positions that are in no table.
    single: HashMap<u64, Option<u64>>,
}

#[derive(Debug)]
struct Tables {
    /// The part of the new position that all offsets share.
    base: u64,
    /// By old digit and position: its share of the new position; `None` if the new digit lacks the value.
    digits: Vec<Vec<Option<u64>>>,
}

impl Tables {
    fn position(&self, mut offset: u64) -> Option<u64> {
        let mut position = self.base;
        for digit in self.digits.iter().rev() {
            let len = digit.len() as u64;
            position += digit[(offset % len) as usize]?;
            offset /= len;
        }
        Some(position)
    }
}

impl Mapping {
    /// A mapping from indices of `old` to indices of `new`.
    pub fn new(old: &Sweep, new: &Sweep) -> Mapping {
        Mapping { old: old.clone(), new: new.clone(), levels: Default::default(), last_seed: None, last_task: None }
    }

    /// The index in the new sweep of the task that has this index in the old sweep; `None` if the new sweep lacks the
    /// task or excludes it. `index` must be a task of the old sweep.
    pub fn index(&mut self, index: u64) -> Option<u64> {
        let (mut there, mut rest) = (0, index);
        if self.has_designs() {
            there = self.of_spec(index)?;
            rest %= self.old.stride(DESIGN_LEVEL);
        } else {
            for at in 0..DESIGN_LEVEL {
                let position = rest / self.old.stride(at);
                rest %= self.old.stride(at);
                there += self.level(at, position)? * self.new.stride(at);
            }
        }
        there += self.seed(rest)?;
        (!self.new.is_excluded(there)).then_some(there)
    }

    /// Whether the two sweeps may share a task. False is certain: no position of some level of the old sweep is in the
    /// new one. True may be wrong where exclusions separate the sweeps, and where a level has very many positions.
    pub fn may_share_a_task(&mut self) -> bool {
        let shares = |mapping: &mut Mapping, at: usize| {
            let positions = mapping.old.levels()[at].count;
            positions > POSITIONS_MAX || (0..positions).any(|position| mapping.level(at, position).is_some())
        };
        let (old, new) = (seeds(&self.old).clone(), seeds(&self.new).clone());
        let shares_seed = || old.len() > POSITIONS_MAX || (0..old.len()).any(|at| new.position(&old.get(at)).is_some());
        if self.has_designs() {
            let tasks = std::iter::successors(self.old.next_included(0), |index| self.old.next_included(index + 1));
            let sample: Vec<u64> = tasks.take(SAMPLE_MAX).collect();
            return sample.len() == SAMPLE_MAX || sample.into_iter().any(|index| self.index(index).is_some());
        }
        (0..DESIGN_LEVEL).all(|at| shares(self, at)) && shares_seed()
    }

    fn has_designs(&self) -> bool {
        self.old.has_designs() || self.new.has_designs()
    }

    /// The index in the new sweep of the task's spec with the first seed.
    fn of_spec(&mut self, index: u64) -> Option<u64> {
        let below = self.old.stride(DESIGN_LEVEL);
        match self.last_task {
            Some((known, answer)) if known == index / below => answer,
            _ => {
                let answer = self.new.index_without_seed(&self.old.task(index)?);
                self.last_task = Some((index / below, answer));
                answer
            }
        }
    }

    fn seed(&mut self, position: u64) -> Option<u64> {
        match self.last_seed {
            Some((known, answer)) if known == position => answer,
            _ => {
                let answer = seeds(&self.new).position(&seeds(&self.old).get(position));
                self.last_seed = Some((position, answer));
                answer
            }
        }
    }

    fn level(&mut self, at: usize, position: u64) -> Option<u64> {
        if let Some((known, answer)) = self.levels[at].last
            && known == position
        {
            return answer;
        }
        let (variant, offset) = self.old.levels()[at].locate(position);
        let by_table = self.levels[at].tables.get(&variant).and_then(|tables| tables.position(offset));
        let answer = match by_table {
            Some(position) => Some(position),
            None => match self.levels[at].single.get(&position) {
                Some(answer) => *answer,
                None => self.compare(at, position, variant, offset),
            },
        };
        self.levels[at].last = Some((position, answer));
        answer
    }

    /// Compares the choices, and builds the tables of the digits if the variant has none.
    fn compare(&mut self, at: usize, position: u64, variant: usize, offset: u64) -> Option<u64> {
        let (old, new) = (&self.old.levels()[at], &self.new.levels()[at]);
        let same_log = |mine: &Value, theirs: &Value| self.new.digest_of(mine) == self.old.digest_of(theirs);
        let choices: Vec<Choice> = old.variants[variant].choices_at(offset);
        let answer = new.position_of(&choices, &same_log);
        if let Some(there) = answer {
            let (found, new_offset) = new.locate(there);
            let from = (&old.variants[variant], offset);
            let to = (&new.variants[found], new_offset);
            if let Some(tables) = tables(from, to, new.start(found), &same_log)
                && !self.levels[at].tables.contains_key(&variant)
            {
                self.levels[at].tables.insert(variant, tables);
                return answer;
            }
        }
        self.levels[at].single.insert(position, answer);
        answer
    }
}

fn seeds(sweep: &Sweep) -> &Values {
    &sweep.levels()[SEED_LEVEL].variants[0].digits[0].columns[0].values
}

/// The mapping from the digits of a variant to the digits of a variant that shares a task; `None` if their axes differ.
fn tables(
    (old, offset): (&Variant, u64),
    (new, new_offset): (&Variant, u64),
    start: u64,
    same_log: SameLog<'_>,
) -> Option<Tables> {
    let names = |digit: &Digit| digit.columns.iter().map(|column| column.name).collect::<Vec<_>>();
    let mut strides = vec![1; new.digits.len()];
    for at in (1..new.digits.len()).rev() {
        strides[at - 1] = strides[at] * new.digits[at].len();
    }
    let mut base = start + new_offset;
    let positions = (old.positions(offset), new.positions(new_offset));
    let mut digits = Vec::with_capacity(old.digits.len());
    for (at, digit) in old.digits.iter().enumerate() {
        let there = new.digits.iter().position(|other| names(other) == names(digit))?;
        let table = table(digit, &new.digits[there], strides[there], same_log)?;
        // The shared task must map to itself.
        if table[positions.0[at] as usize] != Some(positions.1[there] * strides[there]) {
            return None;
        }
        base -= positions.1[there] * strides[there];
        digits.push(table);
    }
    // On an axis that only the new variant has, the old variant has one value: that of the shared task.
    let fixed = |name: &str| old.column(name).is_none();
    let known = |digit: &Digit| old.digits.iter().any(|other| names(other) == names(digit));
    let rest_is_fixed = new.digits.iter().filter(|d| !known(d)).all(|d| d.columns.iter().all(|c| fixed(c.name)));
    rest_is_fixed.then_some(Tables { base, digits })
}

fn table(old: &Digit, new: &Digit, stride: u64, same_log: SameLog<'_>) -> Option<Vec<Option<u64>>> {
    let scanned = new.columns.len() > 1 || new.columns.iter().any(|column| column.name == LOG || column.name == MODULE);
    if scanned && old.len().saturating_mul(new.len()) > ZIP_COMPARISONS_MAX {
        return None;
    }
    let position = |from: u64| {
        if !scanned {
            let (mine, theirs) = (new.columns.first()?, old.columns.first()?);
            return mine.values.position(&theirs.values.get(from));
        }
        (0..new.len()).find(|row| new.row_is(*row, |at| Some(old.columns[at].values.get(from)), same_log))
    };
    Some((0..old.len()).map(|from| position(from).map(|there| there * stride)).collect())
}
