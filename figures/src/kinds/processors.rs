//! Which processors a job held, where the rows do not say it: the lowest free numbers at its start.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use powersweep_dataset::lanes::Instant;

/// A job on processors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) start: f64,
    pub(super) finish: f64,
    pub(super) count: u64,
}

/// Ranges of processors from 0: first, and one after the last.
pub(super) type Ranges = Vec<(u64, u64)>;

/// The processors of each job, for jobs in any order.
pub(super) fn packed(jobs: &[Held]) -> Vec<Ranges> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|one, other| jobs[*one].start.total_cmp(&jobs[*other].start).then(one.cmp(other)));
    let mut ranges = vec![Ranges::new(); jobs.len()];
    let mut free = Free::default();
    let mut ends: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    for job in order {
        while ends.peek().is_some_and(|Reverse((end, _))| end.0 <= jobs[job].start) {
            if let Some(Reverse((_, ended))) = ends.pop() {
                ranges[ended].iter().for_each(|range| free.give(*range));
            }
        }
        ranges[job] = free.take(jobs[job].count);
        ends.push(Reverse((Instant(jobs[job].finish), job)));
    }
    ranges
}

/// Free processors: ranges below `top`, and all from `top` on.
#[derive(Debug, Default)]
struct Free {
    /// First processor to the one after the last; ranges do not touch.
    ranges: BTreeMap<u64, u64>,
    top: u64,
}

impl Free {
    fn take(&mut self, mut count: u64) -> Ranges {
        let mut taken = Ranges::new();
        while count > 0 {
            let Some((first, end)) = self.ranges.pop_first() else {
                taken.push((self.top, self.top + count));
                self.top += count;
                break;
            };
            let until = end.min(first + count);
            taken.push((first, until));
            count -= until - first;
            if until < end {
                self.ranges.insert(until, end);
            }
        }
        joined(taken)
    }

    fn give(&mut self, (first, end): (u64, u64)) {
        let before = self.ranges.range(..=first).next_back().map(|(first, end)| (*first, *end));
        let first = match before {
            Some((earlier, until)) if until == first => earlier,
            _ => first,
        };
        let end = self.ranges.remove(&end).unwrap_or(end);
        self.ranges.insert(first, end);
    }
}

/// These processors in as few ranges as possible.
fn joined(ranges: Ranges) -> Ranges {
    let mut joined = Ranges::new();
    for (first, end) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 == first => last.1 = end,
            _ => joined.push((first, end)),
        }
    }
    joined
}

/// Ranges such as `0-49 60`; `None` for another text.
pub(super) fn listed(text: &str) -> Option<Ranges> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last + 1))
    };
    text.split_whitespace().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(start: f64, finish: f64, count: u64) -> Held {
        Held { start, finish, count }
    }

    #[test]
    fn a_job_gets_the_lowest_free_processors() {
        let jobs = [job(0.0, 10.0, 2), job(0.0, 5.0, 2), job(0.0, 9.0, 1), job(5.0, 8.0, 3), job(10.0, 11.0, 5)];
        let ranges = packed(&jobs);
        assert_eq!(ranges[..3], [vec![(0, 2)], vec![(2, 4)], vec![(4, 5)]]);
        assert_eq!(ranges[3], [(2, 4), (5, 6)], "around the processor of a running job");
        assert_eq!(ranges[4], [(0, 5)], "ranges that became free are joined");
    }

    #[test]
    fn no_processor_is_held_twice() {
        let jobs: Vec<Held> = (0..500u32)
            .map(|i| job(f64::from(i * 7 % 101), f64::from(i * 7 % 101 + 1 + i % 13), u64::from(1 + i % 5)))
            .collect();
        let ranges = packed(&jobs);
        for (one, first) in jobs.iter().enumerate() {
            assert_eq!(ranges[one].iter().map(|(from, to)| to - from).sum::<u64>(), first.count);
            for (other, second) in jobs.iter().enumerate().skip(one + 1) {
                let at_once = first.start < second.finish && second.start < first.finish;
                let shared = ranges[one].iter().any(|a| ranges[other].iter().any(|b| a.0 < b.1 && b.0 < a.1));
                assert!(!(at_once && shared), "{one} and {other}");
            }
        }
    }

    #[test]
    fn node_lists_are_read() {
        assert_eq!(listed("0-49 60"), Some(vec![(0, 50), (60, 61)]));
        assert_eq!(listed("5-3"), None);
    }
}
