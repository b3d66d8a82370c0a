//! Saltelli's matrices for the indices of Sobol'.

use super::kind::{Generator, Kind, SEED_DEFAULT};
use super::sobol::{DIMENSIONS, Sobol};

pub(super) static KIND: Kind = Kind {
    name: "saltelli",
    doc: "For each of `count` base points a row of the matrix A, a row of each AB (A with one column of B), and a row of B (Saltelli \
          et al. 2010), in the order of SALib; with `second_order = true` also rows of each BA (Saltelli 2002). A and B are halves of \
          a scrambled Sobol' sequence. For shares of variance: first order and total indices.",
    count: "base points, each of two points more than there are ranges (with `second_order`, of twice as many ranges); powers of two are balanced",
    extension: "more base points keep the old ones",
    keys: &["count", "seed", "second_order"],
    points: |settings| settings.count.checked_mul(block(settings.ranges, settings.second_order)),
    ranges_max: DIMENSIONS / 2,
    build: |settings| {
        let base = Sobol { seed: Some(settings.seed.unwrap_or(SEED_DEFAULT)) };
        Box::new(Saltelli { base, ranges: settings.ranges, second_order: settings.second_order })
    },
};

/// Points of one base point.
fn block(ranges: usize, second_order: bool) -> u64 {
    (if second_order { 2 * ranges } else { ranges }) as u64 + 2
}

#[derive(Debug)]
struct Saltelli {
    base: Sobol,
    ranges: usize,
    second_order: bool,
}

impl Generator for Saltelli {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let block = block(self.ranges, self.second_order);
        let (base, row) = (point / block, (point % block) as usize);
        let of_b = match row {
            0 => false,
            row if row as u64 == block - 1 => true,
            row if row <= self.ranges => row - 1 == dimension,
            row => row - 1 - self.ranges != dimension,
        };
        self.base.coordinate(base, if of_b { self.ranges + dimension } else { dimension })
    }
}
