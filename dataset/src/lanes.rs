//! The slots of tasks. Rows do not name the slot, so each task gets a free one of its worker: the least that no earlier
//! task still occupies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An instant (s) with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instant(pub f64);

impl Eq for Instant {}

impl Ord for Instant {
    fn cmp(&self, other: &Instant) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Instant) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The time of a task on its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The number of the worker.
    pub worker: u32,
    /// Microseconds since 1970 UTC.
    pub start_us: i64,
    /// Not before the start.
    pub end_us: i64,
}

/// The slot of each task.
#[derive(Debug, Default)]
pub struct Lanes {
    /// By the position of the task.
    slots: Vec<u32>,
    /// Number of slots of each worker.
    counts: Vec<u32>,
    first_us: i64,
}

impl Lanes {
    /// The slots of these tasks, whose times on one slot do not overlap.
    pub fn of(spans: &[Span]) -> Lanes {
        let mut order: Vec<u32> = (0..).take(spans.len()).collect();
        let key =
            |at: &u32| (spans[*at as usize].worker, spans[*at as usize].start_us, spans[*at as usize].end_us, *at);
        order.sort_unstable_by_key(key);
        let mut lanes = Lanes { slots: vec![0; spans.len()], ..Lanes::default() };
        lanes.first_us = spans.iter().map(|span| span.start_us).min().unwrap_or_default();
        for of_worker in order.chunk_by(|a, b| spans[*a as usize].worker == spans[*b as usize].worker) {
            let worker = spans[of_worker[0] as usize].worker as usize;
            lanes.counts.resize(lanes.counts.len().max(worker + 1), 0);
            lanes.counts[worker] = lanes.of_worker(spans, of_worker);
        }
        lanes
    }

    /// Gives slots to the tasks of a worker, in the order of their starts. Returns the number of slots.
    fn of_worker(&mut self, spans: &[Span], order: &[u32]) -> u32 {
        let mut busy: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
        let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut count = 0;
        for &at in order {
            let span = spans[at as usize];
            while let Some(Reverse((end_us, slot))) = busy.peek().copied()
                && end_us <= span.start_us
            {
                busy.pop();
                free.push(Reverse(slot));
            }
            let slot = free.pop().map_or(count, |Reverse(slot)| slot);
            count = count.max(slot + 1);
            busy.push(Reverse((span.end_us, slot)));
            self.slots[at as usize] = slot;
        }
        count
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of a task, from 0.
    pub fn slot(&self, task: usize) -> u32 {
        self.slots.get(task).copied().unwrap_or_default()
    }

    /// Number of slots of a worker.
    pub fn slots(&self, worker: u32) -> u32 {
        self.counts.get(worker as usize).copied().unwrap_or_default()
    }

    /// Start of the first task.
    pub fn first_us(&self) -> i64 {
        self.first_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(worker: u32, start_us: i64, end_us: i64) -> Span {
        Span { worker, start_us, end_us }
    }

    #[test]
    fn a_task_gets_the_least_free_slot_of_its_worker() {
        let spans = [span(1, 5, 9), span(0, 0, 4), span(1, 0, 8), span(0, 4, 4), span(0, 4, 6), span(1, 9, 10)];
        let lanes = Lanes::of(&spans);
        assert_eq!((0..6).map(|at| lanes.slot(at)).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 0]);
        assert_eq!((lanes.slots(0), lanes.slots(1), lanes.slots(2), lanes.first_us()), (1, 2, 0, 0));
        assert!(Lanes::of(&[]).is_empty());
    }

    /// As many tasks as a large sweep has, on workers of 8 slots, in the order of hand-ins.
    #[test]
    fn a_million_tasks_need_no_more_slots_than_ran_at_once() {
        const EACH: u32 = 15_625;
        let mut spans = Vec::new();
        for worker in 0..8 {
            for slot in 0..8_i64 {
                let mut at = slot;
                for task in 0..i64::from(EACH) {
                    let end = at + (task * 7919 + slot * 104_729) % 1000;
                    spans.push(span(worker, at, end));
                    at = end;
                }
            }
        }
        let lanes = Lanes::of(&spans);
        assert_eq!(spans.len(), 1_000_000);
        // A task of no time at the instant of another one's end may need a slot more.
        assert!((0..8).all(|worker| (8..=9).contains(&lanes.slots(worker))), "{:?}", lanes.counts);
        let mut placed: Vec<(u32, u32, i64, i64)> =
            spans.iter().enumerate().map(|(at, s)| (s.worker, lanes.slot(at), s.start_us, s.end_us)).collect();
        placed.sort_unstable();
        let overlap =
            |pair: &&[(u32, u32, i64, i64)]| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1) && pair[0].3 > pair[1].2;
        assert_eq!(placed.windows(2).find(overlap), None);
    }
}
