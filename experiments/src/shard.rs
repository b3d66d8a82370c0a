//! Shards: parts of a sweep that run without a coordinator, and the tasks of each.
//!
//! Neighbours in a sweep are alike: they have the same log, and policies that cost about the same. A shard that got one
//! slice of the sweep could get all expensive workloads; one that got every N-th task could get one value of an axis
//! whose length divides N. So the tasks are dealt in rounds of N blocks. Each shard gets one block of a round, and the
//! first one to be served changes from round to round without a pattern. Blocks are as long as 256 rounds allow, so that
//! most tasks of a block share a parsed log.
//!
//! Of an experiment, any two shards must agree on this division for ever: [`Shard::DIVISION`] is its version.

use std::ops::Range;

use crate::designs::random::{GOLDEN, splitmix};
use crate::exclusion::Exclusion;

/// Maximum number of rounds: bounds the memory of a share, and the difference between two shards to the 256th part of
/// one.
const ROUNDS_MAX: u64 = 256;

/// One of N shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// Greatest number of shards: each has a state of its own, which readers open.
    pub const MAX: u32 = 4096;

    /// Version of the division of a sweep into shards.
    pub const DIVISION: u32 = 1;

    /// Shard `index` of `of`, counted from 0; `None` if there is no such shard.
    pub fn new(index: u32, of: u32) -> Option<Shard> {
        (index < of && of <= Shard::MAX).then_some(Shard { index, of })
    }

    /// All shards of a number.
    pub fn all(of: u32) -> impl Iterator<Item = Shard> {
        (0..of.min(Shard::MAX)).map(move |index| Shard { index, of })
    }

    /// Its number, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of shards.
    pub fn of(self) -> u32 {
        self.of
    }
}

/// Shown as `3 of 16`.
impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.index, self.of)
    }
}

/// Consecutive tasks, and the excluded indices between them.
#[derive(Debug, Clone)]
struct Block {
    indices: Range<u64>,
    /// Tasks of the sweep below the block.
    rank: u64,
    /// Tasks of the share below the block.
    before: u64,
}

/// The tasks of a shard.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    /// In order.
    blocks: Vec<Block>,
    tasks: u64,
}

impl Share {
    /// The share of a shard in the included indices.
    pub(crate) fn new(shard: Shard, exclusion: &Exclusion) -> Share {
        let (tasks, of) = (exclusion.included(), u64::from(shard.of));
        let length = tasks.div_ceil(of * ROUNDS_MAX).max(1);
        let mut share = Share { blocks: Vec::new(), tasks: 0 };
        for round in 0..tasks.div_ceil(length * of) {
            let place = (u64::from(shard.index) + splitmix(round.wrapping_mul(GOLDEN)) % of) % of;
            let rank = (round * of + place) * length;
            // The last round may have fewer blocks.
            let Some(start) = exclusion.nth(rank) else { continue };
            let end = exclusion.nth(rank + length).unwrap_or(exclusion.indices());
            share.blocks.push(Block { indices: start..end, rank, before: share.tasks });
            share.tasks += length.min(tasks - rank);
        }
        share
    }

    /// Number of tasks.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Number of tasks below `index`.
    pub(crate) fn tasks_below(&self, index: u64, exclusion: &Exclusion) -> u64 {
        let after = self.blocks.partition_point(|block| block.indices.start < index);
        let Some(block) = after.checked_sub(1).map(|last| &self.blocks[last]) else { return 0 };
        block.before + exclusion.included_below(index.min(block.indices.end)) - block.rank
    }

    /// Whether an index is in a block; it may be excluded.
    pub(crate) fn covers(&self, index: u64) -> bool {
        self.blocks.get(self.block_from(index)).is_some_and(|block| block.indices.contains(&index))
    }

    /// The first task at or after `from`.
    pub(crate) fn next(&self, from: u64, exclusion: &Exclusion) -> Option<u64> {
        let in_block =
            |block: &Block| exclusion.next(from.max(block.indices.start)).filter(|index| *index < block.indices.end);
        self.blocks[self.block_from(from)..].iter().find_map(in_block)
    }

    /// The first block that ends above an index.
    fn block_from(&self, index: u64) -> usize {
        self.blocks.partition_point(|block| block.indices.end <= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Manifest, Sweep};

    fn sweep(seeds: u64, exclude: &str) -> Sweep {
        let text = format!(
            "version = 1\nname = \"e\"\nseeds = {{ from = 1, count = {seeds} }}\n{exclude}\n[workloads.w]\nsource = \
             \"lublin\"\nsynthetic_jobs_count = [10, 20]\n[platforms.p]\n[policies.q]\nqueue_order = [\"fcfs\", \"sjf\"]\n"
        );
        let manifest = Manifest::parse("test", &text).unwrap_or_else(|problems| panic!("{problems}"));
        Sweep::new(manifest, Default::default()).expect("it needs no log")
    }

    const EXCLUDE: &str = "[[exclude]]\nsynthetic_jobs_count = 20\nqueue_order = \"sjf\"";

    fn tasks_of(sweep: &Sweep) -> Vec<u64> {
        std::iter::successors(sweep.next_included(0), |index| sweep.next_included(index + 1)).collect()
    }

    #[test]
    fn every_task_is_in_one_shard() {
        for (seeds, exclude, of) in [(1, "", 3), (5, "", 7), (7, EXCLUDE, 4), (4000, "", 16), (3000, EXCLUDE, 5)] {
            let whole = sweep(seeds, exclude);
            let shares: Vec<Vec<u64>> = Shard::all(of).map(|shard| tasks_of(&whole.shard(shard))).collect();
            let mut all = shares.concat();
            all.sort_unstable();
            assert_eq!(all, tasks_of(&whole), "{seeds} seeds, {of} shards");
            let sizes = || shares.iter().map(Vec::len);
            let most = sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0);
            let allowed = (whole.task_count() / (u64::from(of) * ROUNDS_MAX) + 1) as usize;
            assert!(most <= allowed, "{seeds} seeds, {of} shards: {most} tasks more than another one");
        }
    }

    #[test]
    fn a_shard_counts_and_finds_its_tasks() {
        let whole = sweep(700, EXCLUDE);
        for shard in Shard::all(3) {
            let share = whole.shard(shard);
            let tasks = tasks_of(&share);
            assert_eq!(share.task_count(), tasks.len() as u64);
            assert_eq!(share.index_count(), whole.index_count());
            let mut below = 0;
            for index in 0..whole.index_count() {
                assert_eq!(share.tasks_in(0..index), below, "{index} of shard {shard}");
                let is_task = tasks.binary_search(&index).is_ok();
                assert_eq!(share.is_excluded(index), !is_task, "{index} of shard {shard}");
                assert_eq!(share.task(index), whole.task(index).filter(|_| is_task));
                below += u64::from(is_task);
            }
            assert_eq!(share.tasks_in(0..u64::MAX), below);
        }
    }

    /// With one task in a block and as many shards as values of an axis, no shard gets one value only.
    #[test]
    fn shards_get_every_value_of_an_axis() {
        let whole = sweep(1, "");
        assert_eq!(whole.index_count(), 4);
        let whole = sweep(64, "");
        for shard in Shard::all(4) {
            let share = whole.shard(shard);
            let of_quarter = |quarter: u64| share.tasks_in(quarter * 64..(quarter + 1) * 64);
            let counts: Vec<u64> = (0..4).map(of_quarter).collect();
            assert!(counts.iter().all(|count| *count == 16), "{counts:?} of shard {shard}");
        }
        let residues: Vec<u64> = Shard::all(4).flat_map(|shard| tasks_of(&whole.shard(shard))[..4].to_vec()).collect();
        assert!(residues.chunks(4).any(|of_one| of_one.iter().any(|task| task % 4 != of_one[0] % 4)), "{residues:?}");
    }

    /// The division of an experiment that is under way must not change with the version of the program.
    #[test]
    fn the_division_is_that_of_version_1() {
        assert_eq!(Shard::DIVISION, 1);
        let share = |seeds, index| tasks_of(&sweep(seeds, "").shard(Shard::new(index, 4).expect("a shard")));
        assert_eq!(share(3, 0), GOLDEN_FIRST);
        let long = share(1024, 3);
        let sum: u64 = long.iter().zip(1..).map(|(task, at)| task * at).sum();
        assert_eq!((long.len(), sum), GOLDEN_LONG);
    }

    const GOLDEN_FIRST: [u64; 3] = [3, 4, 11];
    const GOLDEN_LONG: (usize, u64) = (1024, 1_432_547_208);

    #[test]
    fn a_shard_is_below_the_number_of_shards() {
        assert_eq!(Shard::new(16, 16), None);
        assert_eq!(Shard::new(0, 0), None);
        assert_eq!(Shard::new(0, Shard::MAX + 1), None);
        assert_eq!(Shard::new(3, 16).map(|shard| shard.to_string()).as_deref(), Some("3 of 16"));
    }
}
