//! Latin hypercube sampling.

use super::kind::{Generator, Kind, RANGES_MAX, SEED_DEFAULT};
use super::random::{Permutation, mix};

pub(super) static KIND: Kind = Kind {
    name: "latin-hypercube",
    doc: "Each range is cut into `count` equal strata, and each stratum has one point (McKay, Beckman & Conover 1979). For few \
          points on many ranges.",
    count: "points",
    extension: "another `count` moves all points",
    keys: &["count", "seed"],
    points: |settings| Some(settings.count),
    ranges_max: RANGES_MAX,
    build: |settings| Box::new(LatinHypercube { count: settings.count, seed: settings.seed.unwrap_or(SEED_DEFAULT) }),
};

/// Places of a point in its stratum. The distance between points of neighbouring strata is at least one of them.
const PLACES: u64 = 1 << 10;

#[derive(Debug)]
struct LatinHypercube {
    count: u64,
    seed: u64,
}

impl LatinHypercube {
    fn order(&self, dimension: usize) -> Permutation {
        Permutation::new(self.count, mix(self.seed, dimension as u64))
    }
}

impl Generator for LatinHypercube {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let stratum = self.order(dimension).at(point);
        let place = mix(self.seed ^ u64::MAX, mix(dimension as u64, point)) % PLACES;
        (stratum as f64 + (place as f64 + 0.5) / PLACES as f64) / self.count as f64
    }

    fn inverse(&self, coordinate: f64, dimension: usize) -> Option<u64> {
        let stratum = (coordinate * self.count as f64) as u64;
        (stratum < self.count).then(|| self.order(dimension).place_of(stratum))
    }

    fn resolution(&self) -> Option<f64> {
        Some(1.0 / (self.count * PLACES) as f64)
    }
}
