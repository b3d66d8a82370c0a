//! Timers of a queueing policy.
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Timers by instant; those of one instant in the order they were set.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Timer>,
    set_count: u64,
}

#[derive(Debug, Clone)]
struct Timer {
    at_s: f64,
    sequence: u64,
    token: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at_s: f64, token: u64) {
        self.heap.push(Timer { at_s, sequence: self.set_count, token });
        self.set_count += 1;
    }

    #[inline]
    pub(super) fn next_s(&self) -> f64 {
        self.heap.peek().map_or(f64::INFINITY, |timer| timer.at_s)
    }

    pub(super) fn take(&mut self) -> u64 {
        self.heap.pop().expect("asked only when a timer is due").token
    }
}

impl Ord for Timer {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Timer) -> Ordering {
        other.at_s.total_cmp(&self.at_s).then(other.sequence.cmp(&self.sequence))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_by_instant_then_in_the_order_they_were_set() {
        let mut timers = Timers::default();
        for (at_s, token) in [(2.0, 1), (1.0, 2), (2.0, 3), (0.5, 4), (1.0, 5)] {
            timers.set(at_s, token);
        }
        assert_eq!(timers.next_s(), 0.5);
        let order: Vec<u64> = (0..5).map(|_| timers.take()).collect();
        assert_eq!(order, [4, 2, 5, 1, 3]);
        assert_eq!(timers.next_s(), f64::INFINITY);
    }
}
