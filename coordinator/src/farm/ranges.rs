//! Index ranges of messages, as intervals: a message of a few bytes can name 2^64 indices.

use std::ops::Range;

use powersweep_proto::v1::IndexRange;

/// Maximum number of ranges in one list of a message: no lease has more tasks.
const RANGES_MAX: usize = 1 << 17;

/// The ranges of a message, or why they are refused: they must be few, in order and disjoint.
pub(super) fn checked(ranges: &[IndexRange]) -> Result<Vec<Range<u64>>, String> {
    if ranges.len() > RANGES_MAX {
        return Err(format!("{} index ranges, at most {RANGES_MAX} are allowed", ranges.len()));
    }
    if let Some(empty) = ranges.iter().find(|range| range.start >= range.end) {
        return Err(format!("the index range from {} to {} is empty", empty.start, empty.end));
    }
    if let Some([a, b]) = ranges.array_windows().find(|[a, b]| a.end > b.start) {
        let (a, b) = (format!("{}..{}", a.start, a.end), format!("{}..{}", b.start, b.end));
        return Err(format!("the index ranges {a} and {b} overlap or are out of order"));
    }
    Ok(ranges.iter().map(|range| range.start..range.end).collect())
}

/// The indices that are in both lists of disjoint ranges in order, as such a list.
pub(super) fn common(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut both = Vec::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let cut = left.start.max(right.start)..left.end.min(right.end);
        if left.end <= right.end {
            a.next()
        } else {
            b.next()
        };
        if !cut.is_empty() {
            both.push(cut);
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(ranges: &[(u64, u64)]) -> Vec<IndexRange> {
        ranges.iter().map(|&(start, end)| IndexRange { start, end }).collect()
    }

    #[test]
    fn ranges_that_repeat_or_overlap_are_refused() {
        assert_eq!(checked(&wire(&[(1, 3), (3, 4), (9, u64::MAX)])), Ok(vec![1..3, 3..4, 9..u64::MAX]));
        for (ranges, expected) in [
            (vec![(1, 3), (1, 3)], "overlap"),
            (vec![(5, 9), (1, 3)], "out of order"),
            (vec![(0, u64::MAX), (7, 8)], "overlap"),
            (vec![(3, 3)], "is empty"),
            ((0..=RANGES_MAX as u64).map(|at| (2 * at, 2 * at + 1)).collect(), "at most"),
        ] {
            let reason = checked(&wire(&ranges)).expect_err("refused");
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn common_indices_agree_with_brute_force() {
        for bits in 0..1_u32 << 12 {
            let ranges = |bits: u32| {
                let mut ranges = Vec::new();
                let set = (0..6_u64).filter(|at| bits >> at & 1 == 1);
                set.for_each(|at| super::super::index_set::join(&mut ranges, at..at + 1));
                ranges
            };
            let both: Vec<u64> = common(&ranges(bits), &ranges(bits >> 6)).into_iter().flatten().collect();
            let expected: Vec<u64> = (0..6).filter(|at| bits >> at & bits >> (at + 6) & 1 == 1).collect();
            assert_eq!(both, expected, "{bits:b}");
        }
    }
}
