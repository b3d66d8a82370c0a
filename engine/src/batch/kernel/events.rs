//! Future events: completions, and what timers stand for.
//!
//! Completions are a binary heap of integers. They are packed into 128 bits (time, start sequence, slot), so that one
//! integer comparison gives the total order time, then start order. A gear change or a suspension leaves the old entry
//! behind; [`super::Cluster`] recognises it as stale because the slot holds another end, and skips it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A future completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) key: u64,
    pub(crate) seq: u32,
    pub(crate) slot: u32,
}

impl End {
    #[inline]
    fn unpack(packed: u128) -> End {
        End { key: (packed >> 64) as u64, seq: (packed >> 32) as u32, slot: packed as u32 }
    }
}

/// Future completions, earliest first, equal times in the order of starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    heap: BinaryHeap<Reverse<u128>>,
}

impl Ends {
    #[inline]
    pub(crate) fn push(&mut self, end: End) {
        let low = u64::from(end.seq) << 32 | u64::from(end.slot);
        self.heap.push(Reverse(u128::from(end.key) << 64 | u128::from(low)));
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<End> {
        self.heap.peek().map(|&Reverse(packed)| End::unpack(packed))
    }

    /// Key of the first completion, whether it is stale or not; greater than every key if there is none.
    #[inline]
    pub(crate) fn first_key(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |&Reverse(packed)| (packed >> 64) as u64)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<End> {
        self.heap.pop().map(|Reverse(packed)| End::unpack(packed))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(End) -> bool) {
        self.heap.retain(|&Reverse(packed)| keep(End::unpack(packed)));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<u128>()
    }
}

/// What happens when a timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Procs have finished waking and become idle.
    Woken { class: u16, procs: u32 },
    /// Procs have finished switching off and are asleep.
    Asleep { class: u16, procs: u32 },
    /// The policy asked for a pass, with its own token.
    Policy(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timers::time_key;

    #[test]
    fn equal_ends_come_in_start_order() {
        let mut ends = Ends::default();
        for (time, seq) in [(5.0, 3), (5.0, 1), (4.0, 7), (5.0, 2)] {
            ends.push(End { key: time_key(time), seq, slot: 0 });
        }
        let mut order = Vec::new();
        while let Some(end) = ends.peek() {
            order.push(end.seq);
            ends.pop();
        }
        assert_eq!(order, [7, 1, 2, 3]);
    }
}
