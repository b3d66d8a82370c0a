//! Timers of an event loop.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A finite time as an integer with the same order. Every key has one time.
pub(crate) fn time_key(time_s: f64) -> u64 {
    let bits = time_s.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The time of a key.
pub(crate) fn key_time(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Alarms in order of time; those of one instant in the order in which they were set.
#[derive(Debug, Clone)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(u64, u64, T)>>,
    set_count: u64,
}

impl<T: Ord> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers { heap: BinaryHeap::new(), set_count: 0 }
    }
}

impl<T: Ord + Copy> Timers<T> {
    pub(crate) fn push(&mut self, at_s: f64, alarm: T) {
        self.heap.push(Reverse((time_key(at_s), self.set_count, alarm)));
        self.set_count += 1;
    }

    /// Removes the alarms that equal `unwanted`.
    pub(crate) fn cancel(&mut self, unwanted: T) {
        self.heap.retain(|Reverse((_, _, alarm))| *alarm != unwanted);
    }

    /// A copy with only the alarms that `keep` accepts.
    pub(crate) fn only(&self, keep: impl Fn(T) -> bool) -> Timers<T> {
        let heap = self.heap.iter().copied().filter(|Reverse((_, _, alarm))| keep(*alarm)).collect();
        Timers { heap, set_count: self.set_count }
    }

    /// Key of the first alarm; greater than every key if there is none.
    #[inline]
    pub(crate) fn first_key(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((key, ..))| *key)
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.heap.pop().map(|Reverse((_, _, alarm))| alarm)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<(u64, u64, T)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_times_and_convert_back() {
        let times = [-5.5, -1.0, 0.0, 1e-300, 1.0, 1.0 + f64::EPSILON, 3e9];
        for pair in times.windows(2) {
            assert!(time_key(pair[0]) < time_key(pair[1]), "{pair:?}");
        }
        for time in times {
            assert_eq!(key_time(time_key(time)), time);
        }
    }

    #[test]
    fn timers_are_popped_by_instant_then_in_the_order_they_were_set() {
        let mut timers = Timers::default();
        for (at_s, token) in [(2.0, 1), (1.0, 2), (2.0, 3), (0.5, 4), (1.0, 5)] {
            timers.push(at_s, token);
        }
        assert_eq!(timers.first_key(), time_key(0.5));
        let order: Vec<i32> = std::iter::from_fn(|| timers.pop()).collect();
        assert_eq!(order, [4, 2, 5, 1, 3]);
        assert_eq!(timers.first_key(), u64::MAX);
    }
}
