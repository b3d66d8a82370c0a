//! The points of designs that have ranges in a block of signals. Each combination of values of the block's ranges is a signal.

use std::collections::BTreeMap;
use std::sync::Arc;

use powersweep_engine::Value;

use crate::canonical::push_value;
use crate::designs::Design;
use crate::errors::Problem;
use crate::signals::SignalPoints;
use crate::space::{Column, Digit};
use crate::values::Values;

use super::block::{Axis, What};
use super::designs::Designs;
use super::signal_keys::{SIGNALS_MAX, key};

/// The different values of one design in the ranges of a block.
pub(super) struct OfDesign {
    keys: Vec<&'static str>,
    parameters: Vec<&'static str>,
    /// In the order of their first points.
    rows: Vec<Row>,
}

/// Values of the keys, and of the parameters at all points that have these values.
struct Row {
    of_keys: Vec<Value>,
    of_parameters: Arc<[Vec<Value>]>,
}

/// The canonical bytes of values.
fn bytes(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| push_value(&mut bytes, value));
    bytes
}

/// The designs with ranges in a block. `None` after a problem, and where a design has a problem of its own.
pub(super) fn read(
    label: &str,
    axes: &BTreeMap<String, Axis>,
    designs: &Designs,
    problems: &mut Vec<Problem>,
) -> Option<Vec<OfDesign>> {
    let mut by_design: BTreeMap<usize, (&Axis, Vec<usize>)> = BTreeMap::new();
    for axis in axes.values() {
        let What::Designed(_, range) = axis.what else { continue };
        let (design, range) = range?;
        by_design.entry(design).or_insert((axis, Vec::new())).1.push(range);
    }
    let of_design = |(number, (axis, ranges)): (usize, (&Axis, Vec<usize>))| {
        let design = &designs.all[number];
        let Design { label: name, points, .. } = &**design;
        let (message, expected) = if design.is_empty {
            let expected = "expected points: none can be added, since rows of `accounts` are made with their tasks";
            (format!("the design `{name}` has no points"), expected.to_owned())
        } else if *points > SIGNALS_MAX {
            let expected =
                format!("expected at most {SIGNALS_MAX}, or an own design of [signals.{label}] with at most as many");
            (format!("the design `{name}` has {points} points, each with a signal"), expected)
        } else if !designs.may_compute(points * design.ranges.len() as u64) {
            let message = "the blocks of [signals] have too many ranges of designs".to_owned();
            (message, "expected fewer blocks with ranges, or fewer points".to_owned())
        } else {
            return Some(OfDesign::new(design, &ranges));
        };
        problems.push(Problem::new(axis.key_span.clone(), message, expected));
        None
    };
    by_design.into_iter().map(of_design).collect()
}

impl OfDesign {
    fn new(design: &Design, ranges: &[usize]) -> OfDesign {
        let name = |range: usize| design.ranges[range].param.name;
        let others: Vec<usize> = (0..design.ranges.len()).filter(|range| key(name(*range)).is_none()).collect();
        let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut keys: Vec<Vec<Value>> = Vec::new();
        let mut points: Vec<BTreeMap<Vec<u8>, Vec<Value>>> = Vec::new();
        for point in 0..design.points {
            let values =
                |ranges: &[usize]| ranges.iter().map(|range| design.value(point, *range)).collect::<Vec<Value>>();
            let (of_keys, of_parameters) = (values(ranges), values(&others));
            let place = *places.entry(bytes(&of_keys)).or_insert(keys.len());
            if place == keys.len() {
                keys.push(of_keys);
                points.push(BTreeMap::new());
            }
            points[place].insert(bytes(&of_parameters), of_parameters);
        }
        let rows = keys.into_iter().zip(points);
        let rows = rows.map(|(of_keys, points)| Row { of_keys, of_parameters: points.into_values().collect() });
        let names = |ranges: &[usize]| ranges.iter().map(|range| name(*range)).collect();
        OfDesign { keys: names(ranges), parameters: names(&others), rows: rows.collect() }
    }

    /// The values of the keys as an axis.
    pub(super) fn digit(&self) -> Digit {
        let column = |(at, name): (usize, &&'static str)| {
            let values = Values::list(self.rows.iter().map(|row| row.of_keys[at].clone()).collect());
            Column { name, identity: true, choices: Vec::new(), values }
        };
        Digit { columns: self.keys.iter().enumerate().map(column).collect() }
    }

    /// The points of a row of the axis.
    pub(super) fn points(&self, row: u64) -> SignalPoints {
        let row = &self.rows[usize::try_from(row).expect("a row of a list")];
        SignalPoints {
            values: self.keys.iter().copied().zip(row.of_keys.iter().cloned()).collect(),
            parameters: self.parameters.clone(),
            of_parameters: Arc::clone(&row.of_parameters),
        }
    }
}
