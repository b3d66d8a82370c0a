//! The points of a design in some of its ranges: found by their values, with those that repeat an earlier point.

use std::hash::Hasher;
use std::sync::Arc;

use powersweep_engine::Value;

use super::Design;
use crate::canonical::{compare, push_value};

/// Greatest number of points of a design whose points may be equal: they are compared.
pub(crate) const COMPARED_MAX: u32 = 1 << 20;

/// Greatest number of values that are computed to compare the points of all designs of a manifest. Bounds the time.
pub(crate) const VALUES_MAX: u64 = 1 << 26;

/// The points of a design in some of its ranges. Blocks whose components lack a parameter see the others only.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) design: Arc<Design>,
    /// Ranges, ascending.
    pub(crate) ranges: Vec<usize>,
    lookup: Lookup,
    /// Points that give no task: those that are equal to an earlier one.
    pub(crate) repeated: Vec<u64>,
}

/// How a point is found by its values.
#[derive(Debug)]
enum Lookup {
    /// By the value of this range, which tells all points apart.
    Inverse(usize),
    /// Hashes of the values of first points, sorted.
    Table(Vec<(u64, u32)>),
    /// There are too many points to compare. All values within the ranges count as found.
    Within,
}

impl Projection {
    /// `values_left`: how many values may be computed, which this call reduces.
    pub(crate) fn new(design: &Arc<Design>, ranges: Vec<usize>, values_left: &mut u64) -> Projection {
        let design = design.clone();
        if let Some(range) = ranges.iter().find(|range| design.is_distinct(**range)) {
            let lookup = Lookup::Inverse(*range);
            return Projection { design, ranges, lookup, repeated: Vec::new() };
        }
        let mut projection = Projection { design, ranges, lookup: Lookup::Within, repeated: Vec::new() };
        if projection.design.is_empty {
            // The point that stands in their place gives no task, as a repeated point.
            return Projection { lookup: Lookup::Table(Vec::new()), repeated: vec![0], ..projection };
        }
        let Some(points) = u32::try_from(projection.len()).ok().filter(|points| *points <= COMPARED_MAX) else {
            return projection;
        };
        // Each value is computed for its hash, and again for a comparison.
        let Some(left) = values_left.checked_sub(2 * projection.len() * projection.ranges.len() as u64) else {
            return projection;
        };
        *values_left = left;
        let mut table: Vec<(u64, u32)> =
            (0..points).map(|point| (hash(&projection.values(u64::from(point))), point)).collect();
        table.sort_unstable();
        let mut firsts: Vec<(u64, u32)> = Vec::with_capacity(table.len());
        for (hash, point) in table {
            let values = projection.values(u64::from(point));
            let alike = firsts.iter().rev().take_while(|(other, _)| *other == hash);
            let is_equal = |first: &(u64, u32)| equal(&projection.values(u64::from(first.1)), &values);
            match alike.into_iter().any(is_equal) {
                true => projection.repeated.push(u64::from(point)),
                false => firsts.push((hash, point)),
            }
        }
        projection.repeated.sort_unstable();
        projection.lookup = Lookup::Table(firsts);
        projection
    }

    /// Whether all repeated points are known.
    pub(crate) fn is_compared(&self) -> bool {
        !matches!(self.lookup, Lookup::Within)
    }

    /// Number of points, with those that repeat an earlier one.
    pub(crate) fn len(&self) -> u64 {
        self.design.points
    }

    /// The name of a parameter.
    pub(crate) fn name(&self, at: usize) -> &'static str {
        self.design.ranges[self.ranges[at]].param.name
    }

    /// The value of a parameter at a point.
    pub(crate) fn value(&self, point: u64, at: usize) -> Value {
        self.design.value(point, self.ranges[at])
    }

    fn values(&self, point: u64) -> Vec<Value> {
        (0..self.ranges.len()).map(|at| self.value(point, at)).collect()
    }

    /// The first point with these values.
    pub(crate) fn find<'a>(&self, wanted: impl Fn(&str) -> Option<&'a Value>) -> Option<u64> {
        let wanted: Vec<&Value> = (0..self.ranges.len()).map(|at| wanted(self.name(at))).collect::<Option<_>>()?;
        let has_all = |point: &u64| {
            *point < self.len() && (0..).zip(&wanted).all(|(at, value)| compare(&self.value(*point, at), value).is_eq())
        };
        match &self.lookup {
            Lookup::Inverse(range) => {
                let at = self.ranges.iter().position(|own| own == range)?;
                let coordinate = self.design.ranges[*range].scale.coordinate(wanted[at])?;
                self.design.generator.inverse(coordinate, *range).filter(has_all)
            }
            Lookup::Within => {
                let mut all = self.ranges.iter().zip(&wanted);
                all.all(|(range, value)| self.design.ranges[*range].scale.contains(value)).then_some(0)
            }
            Lookup::Table(firsts) => {
                let hash = hash(&wanted);
                let begin = firsts.partition_point(|(other, _)| *other < hash);
                let alike = firsts[begin..].iter().take_while(|(other, _)| *other == hash);
                alike.map(|(_, point)| u64::from(*point)).find(has_all)
            }
        }
    }
}

impl PartialEq for Projection {
    fn eq(&self, other: &Projection) -> bool {
        std::ptr::eq(self, other)
    }
}

fn equal(a: &[Value], b: &[Value]) -> bool {
    a.iter().zip(b).all(|(a, b)| compare(a, b).is_eq())
}

fn hash<V: std::borrow::Borrow<Value>>(values: &[V]) -> u64 {
    let mut bytes = Vec::with_capacity(16 * values.len());
    values.iter().for_each(|value| push_value(&mut bytes, value.borrow()));
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&bytes);
    hasher.finish()
}
