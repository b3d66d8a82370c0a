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
pub(crate) mod random;
pub(crate) mod range;
mod saltelli;
mod sobol;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::spec::{Param, Type};

use self::kind::Generator;
pub use self::kind::Kind;
pub(crate) use self::kind::{COUNT_MAX, Settings};
use self::range::{Range, Scale, list_of, only};
use crate::values::Values;

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
    /// Number of points, at least 1: a design of listed points without any has one in their place, which gives no task.
    pub(crate) points: u64,
    /// Whether it has no points.
    pub(crate) is_empty: bool,
    generator: Box<dyn Generator>,
}

impl Design {
    /// `None` if it has no points, or more than 63 bits count.
    pub(crate) fn new(label: &str, kind: &'static Kind, settings: Settings, ranges: Vec<Range>) -> Option<Design> {
        let points = (kind.points)(&settings).filter(|points| (1..=i64::MAX.unsigned_abs()).contains(points))?;
        let generator = (kind.build)(&settings);
        Some(Design { label: label.into(), kind, settings, ranges, points, is_empty: false, generator })
    }

    /// A design of listed points; `columns` has the positions of the values of each range. `is_empty`: there are no points,
    /// and the one of the columns stands in their place.
    pub(crate) fn listed(label: &str, ranges: Vec<Range>, columns: Vec<Vec<u32>>, is_empty: bool) -> Design {
        let points = columns.first().map_or(0, Vec::len) as u64;
        let settings = Settings { count: points, seed: None, levels: 0, second_order: false, ranges: ranges.len() };
        let generator = points::generator(&ranges, columns);
        Design { label: label.into(), kind: &points::KIND, settings, ranges, points, is_empty, generator }
    }

    /// The value of a range at a point.
    pub(crate) fn value(&self, point: u64, range: usize) -> Value {
        self.ranges[range].scale.value(self.generator.coordinate(point, range))
    }

    /// The coordinates of a point.
    pub(crate) fn coordinates(&self, point: u64) -> Vec<f64> {
        (0..self.ranges.len()).map(|range| self.generator.coordinate(point, range)).collect()
    }

    /// The places of a point's values in their ranges.
    pub(crate) fn places(&self, point: u64) -> Vec<f64> {
        let place = |(at, range): (usize, &Range)| match (&range.bounds, &range.scale) {
            // The coordinate has all digits.
            (None, Scale::Linear { .. } | Scale::Log { .. }) => self.generator.coordinate(point, at),
            (bounds, scale) => bounds.as_ref().unwrap_or(scale).place(&self.value(point, at)),
        };
        self.ranges.iter().enumerate().map(place).collect()
    }

    /// Whether the values of a range tell all points apart.
    pub(crate) fn is_distinct(&self, range: usize) -> bool {
        self.generator.resolution().is_some_and(|distance| self.ranges[range].scale.resolves(distance))
    }
}

/// The values that a parameter of a design may have. A parameter that is a list has lists of one number: the values are these numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct PointRange {
    /// The parameter.
    pub parameter: &'static str,
    /// Its unit; empty without one.
    pub unit: &'static str,
    /// First and last value of a range; `None` of a list.
    pub ends: Option<(Value, Value)>,
    /// Whether the logarithms of the values are equally likely.
    pub is_log: bool,
    /// The values of a list, or of a range with a step; `None` of a range of all reals or integers.
    pub values: Option<Vec<Value>>,
}

/// Greatest number of values of a range with a step that [`PointRange::values`] lists.
const VALUES_LISTED: u64 = 10_000;

impl PointRange {
    fn of(range: &Range) -> PointRange {
        PointRange::of_scale(range.param, range.bounds.as_ref().unwrap_or(&range.scale))
    }

    fn of_scale(param: &Param, scale: &Scale) -> PointRange {
        let (mut values, mut is_log) = (None, false);
        let ends;
        match scale {
            Scale::Linear { from, to } => ends = Some((Value::Real(*from), Value::Real(*to))),
            Scale::Log { from, to } => {
                is_log = true;
                ends = Some((Value::Real(*from), Value::Real(*to)));
            }
            Scale::LogInts { from, to } => {
                is_log = true;
                ends = Some((Value::Int(*from), Value::Int(*to)));
            }
            Scale::Listed(all) => {
                ends = all.ends();
                let is_run = matches!(all, Values::Ints { step: 1, .. });
                values = (!is_run && all.len() <= VALUES_LISTED).then(|| all.iter().collect());
            }
            Scale::One(of) => return PointRange::of_scale(param, of),
        }
        PointRange { parameter: param.name, unit: param.unit, ends, is_log, values }
    }
}

/// The points of a design of a manifest, for analyses that need a point's place in its design.
#[derive(Debug, Clone)]
pub struct DesignPoints(pub(crate) Arc<Design>);

impl DesignPoints {
    /// The name of the design.
    pub fn label(&self) -> &str {
        &self.0.label
    }

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
        if self.0.is_empty { 0 } else { self.0.points }
    }

    /// Whether its points are listed in the manifest, so that points can be added.
    pub fn is_listed(&self) -> bool {
        self.0.kind.name == points::NAME
    }

    /// Whether its points are spread over the ranges: few of them are equal in all parameters but one.
    pub fn is_spread(&self) -> bool {
        !self.is_listed() && self.0.kind.name != one_at_a_time::NAME
    }

    /// The parameters with the values that points may have, in the order of [`DesignPoints::values`].
    pub fn ranges(&self) -> impl Iterator<Item = PointRange> + '_ {
        self.0.ranges.iter().map(PointRange::of)
    }

    /// The values at these coordinates of the unit cube, by the ranges of the parameters, as [`DesignPoints::checked`] has them. A
    /// coordinate outside counts as the nearest one inside.
    pub fn at(&self, coordinates: &[f64]) -> Vec<Value> {
        let value = |(range, coordinate): (&Range, &f64)| {
            number_of(range.bounds.as_ref().unwrap_or(&range.scale).value(coordinate.clamp(0.0, 1.0)))
        };
        self.0.ranges.iter().zip(coordinates).map(value).collect()
    }

    /// The value of a parameter as a point has it: checked, and of the parameter's own type, or the number of a list of one.
    ///
    /// # Errors
    /// Why a point cannot have it, in words.
    pub fn checked(&self, parameter: usize, value: Value) -> Result<Value, String> {
        let range = &self.0.ranges[parameter];
        let whole = |value: f64| value.fract() == 0.0 && value.abs() < 9e15;
        let value = match (range.param.ty, value) {
            (Type::Int { .. }, Value::Real(value)) if whole(value) => Value::Int(value as i64),
            (Type::Reals { .. }, Value::Int(value)) => list_of(Value::Real(value as f64)),
            (Type::Reals { .. }, value) => list_of(value),
            (_, value) => value,
        };
        let value = range.param.check(value).map_err(|error| error.to_string())?;
        match range.bounds.as_ref().is_none_or(|bounds| bounds.contains(&value)) {
            true => Ok(number_of(value)),
            false => Err(format!("`{}` is {value}, outside of {}", range.param.name, range.shown())),
        }
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

    /// The places of a point's values in their ranges, from 0 to 1: linear or logarithmic as the range is; by value in a list of
    /// numbers, by position in another list.
    pub fn places(&self, point: u64) -> Vec<f64> {
        self.0.places(point)
    }
}

/// The number of a list of one.
fn number_of(value: Value) -> Value {
    only(&value).map_or(value, Value::Real)
}

impl Kind {
    /// The kind of this name.
    pub fn of(name: &str) -> Option<&'static Kind> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }
}
