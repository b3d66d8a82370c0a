//! Future events: completions and alarms of timers.
//!
//! A completion has 128 bits (time, position in the order of starts, entry of the running table), so that integer
//! comparisons give the total order: time, then start.

use std::hint::select_unpredictable;

use crate::limits::list_bytes;

/// A future completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) key: u64,
    /// The position in the order of starts, and the entry in the lower half: one number for comparisons.
    seq_and_entry: u64,
}

impl End {
    /// The end of a job that does not execute.
    const NEVER: End = End { key: u64::MAX, seq_and_entry: u64::MAX };

    #[inline(always)]
    pub(crate) fn new(key: u64, seq: u32, entry: u32) -> End {
        End { key, seq_and_entry: u64::from(seq) << 32 | u64::from(entry) }
    }

    #[inline(always)]
    pub(crate) fn seq(self) -> u32 {
        (self.seq_and_entry >> 32) as u32
    }

    #[inline(always)]
    pub(crate) fn entry(self) -> usize {
        self.seq_and_entry as u32 as usize
    }

    /// The earlier of two ends, without a branch, because a processor cannot predict which one it is.
    #[inline(always)]
    fn earlier(self, other: End) -> End {
        let tie = (other.key == self.key) & (other.seq_and_entry < self.seq_and_entry);
        let other_first = (other.key < self.key) | tie;
        End {
            key: select_unpredictable(other_first, other.key, self.key),
            seq_and_entry: select_unpredictable(other_first, other.seq_and_entry, self.seq_and_entry),
        }
    }
}

/// Future completions, at most one for each entry of the running table, and the first of them: the earliest, of equal
/// times that of the job that started first.
///
/// A tournament tree over the entries: a change of one end replays the path from its leaf to the root. The root moves
/// down while only the lower entries are in use, which are used first: paths are short when few jobs run.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    /// The nodes of a complete binary tree in pairs of siblings: the children of node i are 2 i and 2 i + 1, entry j is
    /// the leaf `leaves + j`. A leaf has the end of its entry, an inner node the first end of its children. Nodes above
    /// the root are outdated.
    brothers: Vec<[End; 2]>,
    leaves: usize,
    /// The root: the first node of its level. No leaf outside its subtree has an end.
    root: usize,
    /// The end in the root.
    first: End,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends::of_entries(1)
    }
}

impl Ends {
    /// Without ends, and with leaves for a number of entries.
    pub(crate) fn of_entries(entries: usize) -> Ends {
        let leaves = entries.next_power_of_two();
        Ends { brothers: vec![[End::NEVER; 2]; leaves], leaves, root: leaves, first: End::NEVER }
    }

    /// Sets the end of the job in an entry.
    #[inline]
    pub(crate) fn set(&mut self, end: End) {
        while !self.reaches(end.entry()) {
            self.raise();
        }
        self.play(end.entry(), end);
    }

    /// Removes the end of the job in an entry, if it has one.
    #[inline]
    pub(crate) fn clear(&mut self, entry: usize) {
        if self.reaches(entry) {
            self.play(entry, End::NEVER);
        }
    }

    /// Key of the first completion; greater than every key if there is none.
    #[inline]
    pub(crate) fn first_key(&self) -> u64 {
        self.first.key
    }

    /// Removes and returns the first completion if its key is `key`.
    #[inline]
    pub(crate) fn take(&mut self, key: u64) -> Option<End> {
        let end = self.first;
        (end.key == key).then(|| {
            self.play(end.entry(), End::NEVER);
            if self.root < self.leaves && self.brothers[self.root][1] == End::NEVER {
                self.root *= 2;
            }
            end
        })
    }

    /// Whether the leaf of an entry is below the root, which has `leaves / root` leaves.
    #[inline]
    fn reaches(&self, entry: usize) -> bool {
        entry * self.root < self.leaves
    }

    /// Sets a leaf below the root and the nodes above the leaf.
    #[inline(always)]
    fn play(&mut self, entry: usize, end: End) {
        let (mut at, mut first) = (self.leaves + entry, end);
        while at > self.root {
            let brothers = &mut self.brothers[at / 2];
            brothers[at % 2] = first;
            first = first.earlier(brothers[1 - at % 2]);
            at /= 2;
        }
        self.first = first;
    }

    /// Moves the root up by a level.
    #[inline(never)]
    fn raise(&mut self) {
        if self.root == 1 {
            self.grow();
        }
        self.root /= 2;
        self.brothers[self.root] = [self.first, End::NEVER];
    }

    /// Doubles the number of leaves, below the same root.
    fn grow(&mut self) {
        let ends: Vec<End> = (0..self.leaves).map(|entry| self.leaf(entry)).collect();
        self.leaves *= 2;
        self.root = 2;
        self.brothers = vec![[End::NEVER; 2]; self.leaves];
        for (entry, end) in ends.into_iter().enumerate() {
            self.play(entry, end);
        }
    }

    fn leaf(&self, entry: usize) -> End {
        let at = self.leaves + entry;
        if at == 1 { self.first } else { self.brothers[at / 2][at % 2] }
    }

    pub(crate) fn bytes(&self) -> usize {
        list_bytes(&self.brothers)
    }
}

/// The entries of the running table that no job uses. The lowest is used first, which keeps the paths in [`Ends`] short.
#[derive(Debug, Clone, Default)]
pub(crate) struct FreeEntries {
    /// A bit for each entry, 1 if it is free.
    words: Vec<u64>,
}

impl FreeEntries {
    #[inline]
    pub(crate) fn free(&mut self, entry: usize) {
        let word = entry / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (entry % 64);
    }

    /// The lowest free entry, which is free no longer.
    #[inline]
    pub(crate) fn take_lowest(&mut self) -> Option<u32> {
        let (at, word) = self.words.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        Some(at as u32 * 64 + bit)
    }

    pub(crate) fn bytes(&self) -> usize {
        list_bytes(&self.words)
    }
}

/// The event of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Procs have finished waking and become idle.
    Woken { procs: u32 },
    /// Procs have finished switching off and are asleep.
    Asleep { procs: u32 },
    /// A pass that the policy asked for, with the policy's token.
    Policy(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timers::time_key;

    #[test]
    fn ends_are_taken_by_time_then_start() {
        let mut ends = Ends::default();
        for (entry, (time, seq)) in (0..).zip([(5.0, 3), (5.0, 1), (4.0, 7), (5.0, 2), (9.0, 4), (6.0, 5)]) {
            ends.set(End::new(time_key(time), seq, entry));
        }
        // A second end of an entry replaces the first one.
        ends.set(End::new(time_key(4.5), 5, 5));
        ends.clear(4);
        let mut order = Vec::new();
        while ends.first_key() != u64::MAX {
            order.extend(ends.take(ends.first_key()).map(End::seq));
        }
        assert_eq!(order, [7, 5, 1, 2, 3]);
    }

    #[test]
    fn the_root_moves_with_the_entries_in_use() {
        let mut ends = Ends::default();
        let end = |entry: u32| End::new(time_key(f64::from(100 - entry)), entry, entry);
        // Each round sets more entries than the one before and takes all, the highest entry first.
        for entries in [1, 5, 3, 40, 2, 9, 33] {
            (0..entries).for_each(|entry| ends.set(end(entry)));
            for entry in (0..entries).rev() {
                assert_eq!(ends.take(end(entry).key), Some(end(entry)), "{entries} entries");
                // An entry beyond those in use has no end.
                ends.clear(entry as usize + 1);
            }
            assert_eq!(ends.first_key(), u64::MAX);
            assert!(ends.leaves / ends.root < 2 * entries as usize);
        }
    }

    #[test]
    fn the_lowest_free_entry_is_used_first() {
        let mut entries = FreeEntries::default();
        assert_eq!(entries.take_lowest(), None);
        [200, 3, 64].into_iter().for_each(|entry| entries.free(entry));
        assert_eq!(std::array::from_fn(|_| entries.take_lowest()), [Some(3), Some(64), Some(200), None]);
    }
}
