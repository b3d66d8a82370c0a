//! Sets of task indices in chunks of 65,536.
//!
//! The done set is stored by chunks, so this set gives access to whole chunks. The number of indices is kept, so that
//! counting is free.

use std::collections::BTreeMap;
use std::ops::Range;

use roaring::RoaringBitmap;

use crate::records::{CHUNK_TASKS, DoneChunk};

/// An ordered set of task indices below 2^48.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexSet {
    /// No chunk is empty.
    chunks: BTreeMap<u32, RoaringBitmap>,
    len: u64,
}

/// Number of an index's chunk.
pub(super) fn chunk_of(index: u64) -> u32 {
    u32::try_from(index >> 16).expect("task indices are below 2^48, which submit checks")
}

fn bit_of(index: u64) -> u32 {
    (index & (CHUNK_TASKS - 1)) as u32
}

pub(super) fn index_at(chunk: u32, bit: u32) -> u64 {
    u64::from(chunk) * CHUNK_TASKS + u64::from(bit)
}

impl IndexSet {
    /// The empty set.
    pub fn new() -> IndexSet {
        IndexSet::default()
    }

    /// Adds an index; false if the set had it.
    pub fn insert(&mut self, index: u64) -> bool {
        let added = self.chunks.entry(chunk_of(index)).or_default().insert(bit_of(index));
        self.len += u64::from(added);
        added
    }

    /// Adds a half-open range; returns the number of new indices.
    pub fn insert_range(&mut self, range: Range<u64>) -> u64 {
        let mut added = 0;
        let mut start = range.start;
        while start < range.end {
            let chunk = chunk_of(start);
            let end = range.end.min(index_at(chunk, 0) + CHUNK_TASKS);
            let bits = bit_of(start)..=bit_of(end - 1);
            added += self.chunks.entry(chunk).or_default().insert_range(bits);
            start = end;
        }
        self.len += added;
        added
    }

    /// Removes an index; false if the set did not have it.
    pub fn remove(&mut self, index: u64) -> bool {
        let Some(bitmap) = self.chunks.get_mut(&chunk_of(index)) else { return false };
        let removed = bitmap.remove(bit_of(index));
        if bitmap.is_empty() {
            self.chunks.remove(&chunk_of(index));
        }
        self.len -= u64::from(removed);
        removed
    }

    /// Whether an index is in the set.
    pub fn contains(&self, index: u64) -> bool {
        self.chunks.get(&chunk_of(index)).is_some_and(|bitmap| bitmap.contains(bit_of(index)))
    }

    /// Number of indices.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bits of a chunk, if it has any.
    pub fn chunk(&self, chunk: u32) -> Option<&RoaringBitmap> {
        self.chunks.get(&chunk)
    }

    /// All chunks that have bits.
    pub fn chunks(&self) -> impl Iterator<Item = (u32, &RoaringBitmap)> {
        self.chunks.iter().map(|(&chunk, bitmap)| (chunk, bitmap))
    }

    /// Replaces a chunk.
    pub fn set_chunk(&mut self, chunk: u32, bitmap: RoaringBitmap) {
        self.len += bitmap.len();
        let old = if bitmap.is_empty() { self.chunks.remove(&chunk) } else { self.chunks.insert(chunk, bitmap) };
        self.len -= old.map_or(0, |old| old.len());
    }

    /// The records that store these indices as done tasks of a generation.
    pub(super) fn records(&self, experiment: &str, generation: u64) -> impl Iterator<Item = DoneChunk> {
        self.chunks().map(move |(chunk, bitmap)| DoneChunk::new(experiment, generation, chunk, bitmap))
    }

    /// Removes every index at or above `end`.
    pub fn cut(&mut self, end: u64) {
        let beyond = self.chunks.split_off(&chunk_of(end));
        for (chunk, mut bitmap) in beyond {
            self.len -= bitmap.len();
            if chunk == chunk_of(end) {
                bitmap.remove_range(bit_of(end)..);
                self.set_chunk(chunk, bitmap);
            }
        }
    }

    /// The indices in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.chunks.iter().flat_map(|(&chunk, bitmap)| bitmap.iter().map(move |bit| index_at(chunk, bit)))
    }

    /// Maximal half-open ranges within chunks, in order; ranges of neighbouring chunks are joined.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (&chunk, bitmap) in &self.chunks {
            let mut bits = bitmap.iter();
            while let Some(run) = bits.next_range() {
                join(&mut ranges, index_at(chunk, *run.start())..index_at(chunk, *run.end()) + 1);
            }
        }
        ranges
    }

    /// Number of indices in each of `bins` intervals of this width, from index 0 on.
    pub fn counts(&self, width: u64, bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins];
        for (&chunk, bitmap) in &self.chunks {
            let (mut start, end) = (index_at(chunk, 0), index_at(chunk, 0) + CHUNK_TASKS);
            while start < end {
                let bin = start / width;
                let next = end.min((bin + 1) * width);
                let Some(count) = usize::try_from(bin).ok().and_then(|bin| counts.get_mut(bin)) else { return counts };
                *count += bitmap.range_cardinality(bit_of(start)..=bit_of(next - 1));
                start = next;
            }
        }
        counts
    }

    /// Removes and returns up to `most` of the first indices, in at most about `most_ranges` ranges.
    pub fn take_first(&mut self, most: u64, most_ranges: usize) -> Vec<Range<u64>> {
        let mut taken: Vec<Range<u64>> = Vec::new();
        let mut missing = most;
        while missing > 0 && taken.len() < most_ranges {
            let Some(mut entry) = self.chunks.first_entry() else { break };
            let chunk = *entry.key();
            let mut first = entry.get().iter();
            let Some(range) = first.next_range() else { break };
            let count = (u64::from(range.end() - range.start()) + 1).min(missing);
            let start = index_at(chunk, *range.start());
            entry.get_mut().remove_smallest(count);
            if entry.get().is_empty() {
                entry.remove();
            }
            self.len -= count;
            missing -= count;
            join(&mut taken, start..start + count);
        }
        taken
    }
}

/// Appends a range, joined with the last one if they are adjacent.
pub(super) fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

impl FromIterator<u64> for IndexSet {
    fn from_iter<I: IntoIterator<Item = u64>>(indices: I) -> IndexSet {
        let mut set = IndexSet::new();
        for index in indices {
            set.insert(index);
        }
        set
    }
}

impl<'a> FromIterator<&'a Range<u64>> for IndexSet {
    fn from_iter<I: IntoIterator<Item = &'a Range<u64>>>(ranges: I) -> IndexSet {
        let mut set = IndexSet::new();
        for range in ranges {
            set.insert_range(range.clone());
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_neighbouring_chunks_are_joined() {
        let mut set = IndexSet::new();
        assert_eq!(set.insert_range(65_000..66_000), 1000);
        assert_eq!(set.insert_range(65_500..66_100), 100);
        set.insert(3);
        assert_eq!(set.ranges(), [3..4, 65_000..66_100]);
        assert_eq!(set.len(), 1101);
        assert!(set.contains(65_536) && !set.contains(66_100));
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "one range remains")]
    fn the_first_indices_are_taken_in_order() {
        let mut set: IndexSet = [&(10..20), &(30..31), &(65_530..65_540)].into_iter().collect();
        assert_eq!(set.take_first(5, 10), [10..15]);
        assert_eq!(set.take_first(7, 10), [15..20, 30..31, 65_530..65_531]);
        assert_eq!(set.take_first(100, 10), [65_531..65_540]);
        assert!(set.is_empty() && set.take_first(1, 1).is_empty());
    }

    #[test]
    fn indices_are_counted_in_intervals() {
        let set: IndexSet = [&(0..10), &(65_530..65_546), &(200_000..200_001)].into_iter().collect();
        assert_eq!(set.counts(65_538, 4), [18, 8, 0, 1]);
        assert_eq!(set.counts(100_000, 2), [26, 0], "an index beyond the last interval is in none");
        assert_eq!(set.counts(1, 12)[8..], [1, 1, 0, 0]);
        assert_eq!(set.counts(300_000, 1), [set.len()]);
    }

    #[test]
    fn a_cut_keeps_lower_indices() {
        let mut set: IndexSet = [&(0..10), &(65_536..65_546), &(131_072..131_073)].into_iter().collect();
        set.cut(65_540);
        assert_eq!(set.ranges(), [0..10, 65_536..65_540]);
        assert_eq!(set.len(), 14);
        set.cut(0);
        assert_eq!((set.len(), set.ranges().len()), (0, 0));
    }

    #[test]
    fn a_replaced_chunk_changes_the_number_of_indices() {
        let mut set: IndexSet = (0..100).collect();
        set.set_chunk(0, (0..7).collect());
        set.set_chunk(5, (0..3).collect());
        assert_eq!(set.len(), 10);
        set.set_chunk(5, RoaringBitmap::new());
        assert_eq!((set.len(), set.iter().count()), (7, 7));
        assert!(set.remove(6) && !set.remove(6));
    }
}
