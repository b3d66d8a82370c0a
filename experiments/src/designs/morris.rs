//! Morris' trajectories.

use super::kind::{Generator, Kind, RANGES_MAX, SEED_DEFAULT};
use super::random::{Permutation, mix};

pub(super) static KIND: Kind = Kind {
    name: "morris",
    doc: "Trajectories on a grid of `levels` values, along which each range changes once, by more than half of its width (Morris \
          1991). For screening: which of many parameters matter at all.",
    count: "trajectories, each of one point more than there are ranges",
    extension: "more trajectories keep the old ones",
    keys: &["count", "seed", "levels"],
    points: |settings| settings.count.checked_mul(settings.ranges as u64 + 1),
    ranges_max: RANGES_MAX,
    build: |settings| {
        let seed = settings.seed.unwrap_or(SEED_DEFAULT);
        Box::new(Morris { seed, levels: settings.levels, ranges: settings.ranges as u64 })
    },
};

#[derive(Debug)]
struct Morris {
    seed: u64,
    /// An even number, so that all levels are equally likely.
    levels: u64,
    ranges: u64,
}

impl Generator for Morris {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let (trajectory, step) = (point / (self.ranges + 1), point % (self.ranges + 1));
        let key = mix(self.seed, trajectory);
        let drawn = mix(key, dimension as u64);
        // The grid is two halves. A range moves from a level to its counterpart in the other half.
        let half = self.levels / 2;
        let is_moved = Permutation::new(self.ranges, key).at(dimension as u64) < step;
        let is_upper = (drawn & 1 == 1) != is_moved;
        let level = (drawn >> 1) % half + if is_upper { half } else { 0 };
        level as f64 / (self.levels - 1) as f64
    }
}
