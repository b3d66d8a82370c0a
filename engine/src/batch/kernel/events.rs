//! The two queues of future events: completions and timers.
//!
//! Both are binary heaps of integer keys. Completions are packed into 128 bits (time, start sequence, slot), so that one
//! integer comparison gives the total order time, then start order. A gear change or a suspension leaves the old component
//! behind; [`super::Cluster`] recognises it as stale because the slot holds another end, and skips it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time as an integer of the same order. Times are finite, so every key has one time.
pub(crate) fn time_key(time_s: f64) -> u64 {
    let bits = time_s.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The time of a key.
pub(crate) fn key_time(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

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

/// Future alarms, earliest first, equal times in the order in which they were set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64, Alarm)>>,
    set_count: u64,
}

impl Timers {
    pub(crate) fn push(&mut self, at_s: f64, alarm: Alarm) {
        self.heap.push(Reverse((time_key(at_s), self.set_count, alarm)));
        self.set_count += 1;
    }

    pub(crate) fn cancel(&mut self, unwanted: Alarm) {
        self.heap.retain(|Reverse((_, _, alarm))| *alarm != unwanted);
    }

    /// Those that `keep` wants, for a copy.
    pub(crate) fn only(&self, keep: impl Fn(Alarm) -> bool) -> Timers {
        let heap = self.heap.iter().copied().filter(|Reverse((_, _, alarm))| keep(*alarm)).collect();
        Timers { heap, set_count: self.set_count }
    }

    pub(crate) fn peek_key(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((key, ..))| *key)
    }

    pub(crate) fn pop(&mut self) -> Option<Alarm> {
        self.heap.pop().map(|Reverse((_, _, alarm))| alarm)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<(u64, u64, Alarm)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_times_and_give_them_back() {
        let times = [-5.5, -1.0, 0.0, 1e-300, 1.0, 1.0 + f64::EPSILON, 3e9];
        for pair in times.windows(2) {
            assert!(time_key(pair[0]) < time_key(pair[1]), "{pair:?}");
        }
        for time in times {
            assert_eq!(key_time(time_key(time)), time);
        }
    }

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
