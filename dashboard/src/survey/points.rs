//! A bounded sample of points.

/// Points that a plot shows at most.
pub(crate) const POINTS_MAX: usize = 2_000;

/// The result of one task in two metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Index of the task.
    pub index: u64,
    /// The value along the horizontal axis.
    pub x: f64,
    /// The value along the vertical axis.
    pub y: f64,
    /// The value of the axis that distinguishes points.
    pub group: String,
}

/// Every point while there are few; beyond that, a sample in which each task is as likely as any other. The sample depends
/// on the indices of the tasks alone, not on the order in which they ended.
#[derive(Debug, Clone, Default)]
pub struct Points {
    kept: Vec<Point>,
    /// Only tasks whose hash ends in this number of zero bits are kept.
    level: u32,
    /// Number of all points.
    pub count: u64,
    /// The smallest and the greatest value of each metric, of all points.
    pub span: Option<[(f64, f64); 2]>,
}

/// A hash of an index, by the finalizer of SplitMix64.
fn hash(index: u64) -> u64 {
    let mut hash = index.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl Points {
    pub(super) fn add(&mut self, point: &Point) {
        let (x, y) = (point.x, point.y);
        self.count += 1;
        let [across, along] = self.span.unwrap_or([(x, x), (y, y)]);
        let wider = |(least, most): (f64, f64), value: f64| (least.min(value), most.max(value));
        self.span = Some([wider(across, x), wider(along, y)]);
        let is_kept = |index: u64, level: u32| hash(index).trailing_zeros() >= level;
        if !is_kept(point.index, self.level) {
            return;
        }
        self.kept.push(point.clone());
        while self.kept.len() > POINTS_MAX {
            self.level += 1;
            self.kept.retain(|point| is_kept(point.index, self.level));
        }
    }

    /// The points that are shown.
    pub fn shown(&self) -> &[Point] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bounded_and_depends_on_no_order() {
        let sample = |indices: &mut dyn Iterator<Item = u64>| {
            let mut points = Points::default();
            let point = |index| Point { index, x: index as f64, y: 1.0, group: String::new() };
            indices.for_each(|index| points.add(&point(index)));
            let mut shown: Vec<u64> = points.shown().iter().map(|point| point.index).collect();
            shown.sort_unstable();
            (shown, points.count, points.span)
        };
        let (shown, count, span) = sample(&mut (0..100_000));
        assert!((POINTS_MAX / 3..=POINTS_MAX).contains(&shown.len()), "{} points", shown.len());
        assert_eq!((count, span), (100_000, Some([(0.0, 99_999.0), (1.0, 1.0)])));
        assert_eq!(sample(&mut (0..100_000).rev()).0, shown);
        assert_eq!(sample(&mut (0..2_000)).0.len(), 2_000, "all are shown while they are few");
    }
}
