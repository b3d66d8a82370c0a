//! Future events: completions and alarms of timers.
//!
//! A completion has 128 bits (time, position in the order of starts, entry of the running table), so that integer
//! comparisons give the total order: time, then start.

use std::hint::select_unpredictable;

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
/// A tournament tree over the entries: a change of one end replays the path from its leaf to the root.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    /// The nodes of a complete binary tree in pairs of siblings: the root is node 1, the children of node i are 2 i and
    /// 2 i + 1, entry j is the leaf `leaves + j`. A leaf has the end of its entry, an inner node the first end of its
    /// children.
    brothers: Vec<[End; 2]>,
    leaves: usize,
    /// The root.
    first: End,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { brothers: vec![[End::NEVER; 2]], leaves: 1, first: End::NEVER }
    }
}

impl Ends {
    /// Sets the end of the job in an entry.
    #[inline]
    pub(crate) fn set(&mut self, end: End) {
        while end.entry() >= self.leaves {
            self.grow();
        }
        self.play(end.entry(), end);
    }

    /// Removes the end of the job in an entry, if it has one.
    #[inline]
    pub(crate) fn clear(&mut self, entry: usize) {
        self.play(entry, End::NEVER);
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
            self.clear(end.entry());
            end
        })
    }

    /// Sets a leaf and the nodes above it.
    #[inline(always)]
    fn play(&mut self, entry: usize, end: End) {
        let (mut at, mut first) = (self.leaves + entry, end);
        while at > 1 {
            let brothers = &mut self.brothers[at / 2];
            brothers[at % 2] = first;
            first = first.earlier(brothers[1 - at % 2]);
            at /= 2;
        }
        self.first = first;
    }

    /// Doubles the number of leaves.
    #[cold]
    fn grow(&mut self) {
        let ends: Vec<End> = (0..self.leaves).map(|entry| self.leaf(entry)).collect();
        self.leaves *= 2;
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
        self.brothers.capacity() * size_of::<[End; 2]>()
    }
}

/// The event of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Procs have finished waking and become idle.
    Woken { class: u16, procs: u32 },
    /// Procs have finished switching off and are asleep.
    Asleep { class: u16, procs: u32 },
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
}
