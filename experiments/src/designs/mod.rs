//! Designs: points over the ranges of several parameters, one axis for all of them.
//!
//! A point is computed from its number: a [`Generator`] gives its coordinates in the unit cube, and the [`range::Scale`] of
//! each parameter turns a coordinate into a value. There is no table of points, so that a design of 10^9 points needs no more
//! memory than one of ten. [`projection`] finds points by their values, and the points that repeat earlier ones.
//!
//! A kind is a file with a [`Kind`] and a line in [`KINDS`].

pub(crate) mod discrepancy;
mod kind;
mod latin_hypercube;
mod morris;
mod one_at_a_time;
pub(crate) mod points;
pub(crate) mod projection;
mod random;
pub(crate) mod range;
mod saltelli;
mod sobol;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use powersweep_engine::Value;

use self::kind::Generator;
pub use self::kind::Kind;
pub(crate) use self::kind::{COUNT_MAX, Settings};
use self::range::Range;

/// All kinds of designs, in the order of the documentation.
pub static KINDS: [&Kind; 7] = [
    &sobol::KIND,
    &latin_hypercube::KIND,
    &random::KIND,
    &one_at_a_time::KIND,
    &morris::KIND,
    &saltelli::KIND,
    &points::KIND,
];

/// A design of a manifest.
#[derive(Debug)]
pub(crate) struct Design {
    pub(crate) label: Arc<str>,
    pub(crate) kind: &'static Kind,
    pub(crate) settings: Settings,
    /// Ordered by the names of the parameters.
    pub(crate) ranges: Vec<Range>,
    /// Number of points, at least 1.
    pub(crate) points: u64,
    generator: Box<dyn Generator>,
}

impl Design {
    /// `None` if it has no points, or more than 63 bits count.
    pub(crate) fn new(label: &str, kind: &'static Kind, settings: Settings, ranges: Vec<Range>) -> Option<Design> {
        let points = (kind.points)(&settings).filter(|points| (1..=i64::MAX.unsigned_abs()).contains(points))?;
        Some(Design { label: label.into(), kind, settings, ranges, points, generator: (kind.build)(&settings) })
    }

    /// A design of listed points; `columns` has the positions of the values of each range.
    pub(crate) fn listed(label: &str, ranges: Vec<Range>, columns: Vec<Vec<u32>>) -> Design {
        let points = columns.first().map_or(0, Vec::len) as u64;
        let settings = Settings { count: points, seed: None, levels: 0, second_order: false, ranges: ranges.len() };
        let generator = points::generator(&ranges, columns);
        Design { label: label.into(), kind: &points::KIND, settings, ranges, points, generator }
    }

    /// The value of a range at a point.
    pub(crate) fn value(&self, point: u64, range: usize) -> Value {
        self.ranges[range].scale.value(self.generator.coordinate(point, range))
    }

    /// The coordinates of a point.
    pub(crate) fn coordinates(&self, point: u64) -> Vec<f64> {
        (0..self.ranges.len()).map(|range| self.generator.coordinate(point, range)).collect()
    }

    /// Whether the values of a range tell all points apart.
    pub(crate) fn is_distinct(&self, range: usize) -> bool {
        self.generator.resolution().is_some_and(|distance| self.ranges[range].scale.resolves(distance))
    }
}

/// The points of a design of a manifest, for analyses that need a point's place in its design.
#[derive(Debug, Clone)]
pub struct DesignPoints(pub(crate) Arc<Design>);

impl DesignPoints {
    /// The kind of the design.
    pub fn kind(&self) -> &'static Kind {
        self.0.kind
    }

    /// The parameters, in the order of [`DesignPoints::values`].
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.ranges.iter().map(|range| range.param.name)
    }

    /// Number of points.
    pub fn points_count(&self) -> u64 {
        self.0.points
    }

    /// The `count` of the manifest.
    pub fn count(&self) -> u64 {
        self.0.settings.count
    }

    /// Whether a design of the kind `saltelli` has rows of BA.
    pub fn is_second_order(&self) -> bool {
        self.0.settings.second_order
    }

    /// The values of a point: those that its row has in the columns of the parameters.
    pub fn values(&self, point: u64) -> Vec<Value> {
        (0..self.0.ranges.len()).map(|range| self.0.value(point, range)).collect()
    }

    /// The coordinates of a point in the unit cube.
    pub fn coordinates(&self, point: u64) -> Vec<f64> {
        self.0.coordinates(point)
    }
}

impl Kind {
    /// The kind of this name.
    pub fn of(name: &str) -> Option<&'static Kind> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }
}
