//! One range after the other, with the others at their middle.

use super::kind::{Generator, Kind, RANGES_MAX};

/// The name of the kind.
pub(super) const NAME: &str = "one-at-a-time";

pub(super) static KIND: Kind = Kind {
    name: NAME,
    doc: "The middle of all ranges, then `count` equally spaced values of each range with the others at their middle. For curves \
          of single parameters; it shows no interactions.",
    count: "values of each range, both ends included; the middle is one of an odd number",
    extension: "`2 * count - 1` keeps the old points",
    keys: &["count"],
    points: |settings| settings.count.checked_mul(settings.ranges as u64)?.checked_add(1),
    ranges_max: RANGES_MAX,
    build: |settings| Box::new(OneAtATime { count: settings.count }),
};

#[derive(Debug)]
struct OneAtATime {
    count: u64,
}

impl Generator for OneAtATime {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let moved = point.checked_sub(1).map(|at| (at / self.count, at % self.count));
        match moved {
            Some((range, step)) if range == dimension as u64 && self.count > 1 => step as f64 / (self.count - 1) as f64,
            _ => 0.5,
        }
    }
}
