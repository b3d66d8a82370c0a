//! The Pareto front of points, kept while points arrive.

use std::collections::BTreeMap;

use super::Point;

/// Points of which no other one is at least as good in both metrics, and better in one. Of equal points, it has the one
/// with the smallest index.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// By the first metric, smaller is better; the second metric then decreases from point to point.
    kept: BTreeMap<u64, (u64, Point)>,
}

/// The order of a finite number as an integer.
fn rank(value: f64, up: bool) -> u64 {
    let bits = (if up { -value } else { value } + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

impl Front {
    /// Adds a point. `up`: whether more is better, of each metric.
    pub(super) fn add(&mut self, index: u64, (x, y): (f64, f64), up: (bool, bool), group: &str) {
        let (first, second) = (rank(x, up.0), rank(y, up.1));
        if let Some((at, (best, point))) = self.kept.range_mut(..=first).next_back()
            && *best <= second
        {
            if (*at, *best) == (first, second) && index < point.index {
                *point = Point { index, x, y, group: group.to_owned() };
            }
            return;
        }
        let worse = |(at, (kept, _)): (&u64, &(u64, Point))| (*kept >= second).then_some(*at);
        while let Some(at) = self.kept.range(first..).next().and_then(worse) {
            self.kept.remove(&at);
        }
        self.kept.insert(first, (second, Point { index, x, y, group: group.to_owned() }));
    }

    /// The points, the best one in the first metric first.
    pub fn points(&self) -> impl ExactSizeIterator<Item = &Point> {
        self.kept.values().map(|(_, point)| point)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Indices of the front's points.
    fn front(points: &[(f64, f64)], up: (bool, bool)) -> Vec<u64> {
        let mut front = Front::default();
        points.iter().zip(0..).for_each(|(point, index)| front.add(index, *point, up, ""));
        front.points().map(|point| point.index).collect()
    }

    #[test]
    fn no_point_of_the_front_is_dominated() {
        let points = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 3.0), (1.0, 4.0), (-1.0, 9.0)];
        assert_eq!(front(&points, (false, false)), [7, 1, 2, 0]);
        assert_eq!(front(&points, (true, false)), [0]);
        assert_eq!(front(&points, (false, true)), [7]);
        assert_eq!(front(&[(0.0, 1.0), (-0.0, 1.0), (0.0, 0.0)], (false, false)), [2]);
    }

    #[test]
    fn the_front_equals_a_comparison_of_all_pairs() {
        let number = |n: u64| ((n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 23) as f64 - 11.0;
        let points: Vec<(f64, f64)> = (0..300).map(|n| (number(n), number(n + 1_000))).collect();
        let better = |one: (f64, f64), other: (f64, f64)| one.0 <= other.0 && one.1 >= other.1 && one != other;
        let mut expected: Vec<u64> = (0..points.len())
            .filter(|at| {
                !points.iter().any(|other| better(*other, points[*at])) && !points[..*at].contains(&points[*at])
            })
            .map(|at| at as u64)
            .collect();
        let mut found = front(&points, (false, true));
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
