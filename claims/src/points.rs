//! The values of a preset at their places on its axes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use powersweep_dataset::replicates::{Interval, SEED};

use crate::compare;
use crate::measure::{Groups, Scope};
use crate::presets::{Axis, NONE, Preset, Shape, Values};
use crate::published::numbers;
use crate::rows::{Needed, Rows};
use crate::selection::Selection;

/// One value of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Place along the horizontal axis.
    pub x: String,
    /// The place as a number, if it is one.
    pub x_value: Option<f64>,
    /// The text of its colour; empty without colours.
    pub colour: String,
    /// The panel; empty without panels.
    pub facet: String,
    /// The value.
    pub y: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// Whose value it is.
    pub role: Role,
    /// The number of its entry in the list of values: the column of a table.
    pub column: usize,
    /// Its claim, with the repetition, if it is published.
    pub claim: Option<String>,
}

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Computed from rows.
    Ours,
    /// Computed from rows, and drawn as a limit.
    Cap,
    /// Published by the paper.
    Published,
}

/// Why a preset cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The manifest whose rows are missing.
    pub manifest: String,
    /// The reason, as a sentence.
    pub reason: String,
}

impl Preset {
    /// The columns to read, by manifest and table.
    pub fn needed(&self) -> Needed {
        let mut needed = Needed::new();
        for values in &self.values {
            self.scope(values, &values.selection).need(&values.selection, &mut needed);
            if let Some(by_seed) = self.by_seed(values) {
                by_seed.need(&values.selection, &mut needed);
            }
            if let Some(half_width) = &values.half_width {
                let half_width = values.selection.with(half_width);
                self.scope(values, &half_width).need(&half_width, &mut needed);
            }
        }
        if let Some(minus) = &self.x.minus {
            Scope::outermost(&self.manifest, &[], &[]).of_value(minus).need(minus, &mut needed);
        }
        needed
    }

    /// The manifests whose rows are read.
    pub fn manifests(&self) -> BTreeSet<String> {
        let read = self.needed().into_keys().map(|(manifest, _)| manifest);
        if self.shape == Shape::Jobs { BTreeSet::from([self.manifest.clone()]) } else { read.collect() }
    }

    /// Our values and the published ones, in the order of panels, colours and places.
    ///
    /// # Errors
    /// The reason, and the manifest whose rows are missing.
    pub fn rows(&self, rows: &Rows) -> Result<Vec<Row>, Lacking> {
        let mut found: Vec<(Keys, Row)> = Vec::new();
        let zero = self.x.minus.as_ref().map(|minus| {
            let scope = Scope::outermost(&self.manifest, &[], &[]).of_value(minus);
            scope.value(minus, rows).map_err(|reason| Lacking { manifest: scope.manifest, reason })
        });
        let zero = zero.transpose()?;
        let place = Place { preset: self, zero };
        for (column, values) in self.values.iter().enumerate() {
            let groups = self.intervals(values, rows)?;
            for (key, interval) in &groups.values {
                let cells = cells(values, &groups, key);
                let role = if values.is_cap { Role::Cap } else { Role::Ours };
                let row = place.row(values, &cells, interval.value);
                found.extend(row.map(|(keys, row)| (keys, Row { ends: interval.ends, role, column, ..row })));
            }
        }
        spread(self, &mut found);
        for (column, values) in self.values.iter().enumerate() {
            let mut beside: Vec<(Keys, Row)> = Vec::new();
            for (id, cells, y) in values.published.iter().flat_map(|published| numbers(values, published)) {
                let Some((keys, row)) = place.row(values, &cells, y) else { continue };
                beside.push((keys, Row { role: Role::Published, column, claim: Some(id), ..row }));
            }
            // A published number is shown at the places of our values only.
            spread_over(&found, &mut beside);
            found.extend(beside);
        }
        found.sort_by(|(one, _), (other, _)| one.order(other, self));
        Ok(found.into_iter().map(|(_, row)| row).collect())
    }

    /// The scope of a selection of some values: grouped by the columns of the axes, and by the seed for an interval over seeds.
    fn scope(&self, values: &Values, selection: &Selection) -> Scope {
        let mut by = self.by(values);
        by.extend(values.interval.then(|| SEED.to_owned()));
        Scope::outermost(&self.manifest, &[], &by).of_value(selection)
    }

    /// The scope of values that are means of rows, grouped by the seed, too: their intervals follow from it.
    fn by_seed(&self, values: &Values) -> Option<Scope> {
        let is_usual = self.intervals && !values.interval && values.half_width.is_none();
        let outer = Scope::outermost(&self.manifest, &[], &self.by(values));
        let by_seed = is_usual.then(|| compare::by_seed(&values.selection, &outer)).flatten()?;
        Some(by_seed.of_value(&values.selection))
    }

    /// Our values with their intervals, by the columns of the axes.
    fn intervals(&self, values: &Values, rows: &Rows) -> Result<Groups<Interval>, Lacking> {
        let scope = self.scope(values, &values.selection);
        let lacking = |reason| Lacking { manifest: scope.manifest.clone(), reason };
        if values.interval {
            return scope.intervals(&values.selection, rows, &self.by(values)).map_err(lacking);
        }
        let groups = scope.value(&values.selection, rows).map_err(lacking)?;
        let half_widths = values.half_width.as_ref().map(|half| {
            let half = values.selection.with(half);
            self.scope(values, &half).value(&half, rows).map_err(lacking)
        });
        let half_widths = half_widths.transpose()?;
        let by_seed = self.by_seed(values);
        let usual = by_seed.and_then(|scope| scope.intervals(&values.selection, rows, &groups.by).ok());
        let interval = |(key, value): (Vec<String>, f64)| {
            let half_width = half_widths.as_ref().and_then(|half| half.values.get(&key));
            let usual = usual.as_ref().and_then(|usual| compare::ends_of(*usual.values.get(&key)?, value));
            let ends = half_width.map(|half| (value - half, value + half)).or(usual);
            (key, Interval { value, ends })
        };
        Ok(Groups { by: groups.by, values: groups.values.into_iter().map(interval).collect() })
    }
}

/// The cells of a group, with the fixed ones.
fn cells<V>(values: &Values, groups: &Groups<V>, key: &[String]) -> BTreeMap<String, String> {
    let grouped = groups.by.iter().cloned().zip(key.iter().cloned());
    grouped.chain(values.fixed.clone()).collect()
}

/// The cells of a row in each axis, for its order.
#[derive(Debug, Clone)]
struct Keys {
    x: Vec<String>,
    colour: Vec<String>,
    facet: Vec<String>,
    x_value: Option<f64>,
    is_everywhere: bool,
}

impl Keys {
    fn order(&self, other: &Keys, preset: &Preset) -> Ordering {
        let along = |axis: Option<&Axis>, one: &[String], other: &[String]| {
            axis.map_or(Ordering::Equal, |axis| {
                let each = one.iter().zip(other).map(|(one, other)| axis.rank(one).partial_cmp(&axis.rank(other)));
                each.map(|order| order.unwrap_or(Ordering::Equal))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
        };
        let x = match (self.x_value, other.x_value) {
            (Some(one), Some(other)) if preset.x.order.is_empty() => one.total_cmp(&other),
            _ => along(Some(&preset.x), &self.x, &other.x),
        };
        along(preset.facet.as_ref(), &self.facet, &other.facet)
            .then_with(|| along(preset.colour.as_ref(), &self.colour, &other.colour))
            .then(x)
    }
}

impl Axis {
    /// A cell, counted from 1 again after each cycle.
    fn counted(&self, cell: String) -> String {
        match (self.cycle, number(&cell)) {
            (Some(cycle), Some(place)) => ((place - 1.0).rem_euclid(cycle) + 1.0).to_string(),
            _ => cell,
        }
    }

    /// The sort key of a cell: cells that `order` lists come first, then numbers, then texts.
    fn rank<'a>(&self, cell: &'a str) -> (usize, f64, &'a str) {
        let listed = self.order.iter().position(|known| *known == shown(cell)).unwrap_or(usize::MAX);
        (listed, number(cell).unwrap_or(f64::INFINITY), cell)
    }

    /// The text of some cells.
    fn label(&self, cells: &[String]) -> String {
        let name = |cell: &String| self.names.get(shown(cell)).cloned().unwrap_or_else(|| shown(cell).to_owned());
        if let [cell] = cells {
            return name(cell);
        }
        // Of several cells, an empty one says nothing.
        let named: Vec<String> = cells.iter().filter(|cell| !cell.is_empty()).map(name).collect();
        named.join(", ")
    }
}

fn shown(cell: &str) -> &str {
    if cell.is_empty() { NONE } else { cell }
}

fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Where values are placed.
struct Place<'a> {
    preset: &'a Preset,
    zero: Option<Groups>,
}

impl Place<'_> {
    /// The row of some cells; `None` if the horizontal axis is cut before it.
    fn row(&self, values: &Values, cells: &BTreeMap<String, String>, y: f64) -> Option<(Keys, Row)> {
        let preset = self.preset;
        let of = |axis: &Axis| -> Vec<String> {
            let cell = |column: &String| axis.counted(cells.get(column).cloned().unwrap_or_default());
            axis.columns.iter().map(cell).collect()
        };
        let is_everywhere = values.is_everywhere;
        let x = if is_everywhere { Vec::new() } else { of(&preset.x) };
        let colour = preset.colour.as_ref().map(of).unwrap_or_default();
        let facet = preset.facet.as_ref().map(of).unwrap_or_default();
        let mut x_value = match x.as_slice() {
            [cell] => number(cell),
            _ => None,
        };
        if let (Some(value), Some(zero)) = (&mut x_value, &self.zero) {
            let key: Vec<String> = zero.by.iter().map(|name| cells.get(name).cloned().unwrap_or_default()).collect();
            *value -= zero.values.get(&key)?;
        }
        if let (Some(value), Some(divisor)) = (&mut x_value, preset.x.divided_by) {
            *value /= divisor;
        }
        let is_cut =
            |value: f64| preset.x.from.is_some_and(|from| value < from) || preset.x.to.is_some_and(|to| value > to);
        if x_value.is_some_and(is_cut) {
            return None;
        }
        let is_moved = preset.x.minus.is_some() || preset.x.divided_by.is_some();
        let label = match x_value {
            Some(value) if is_moved => value.to_string(),
            _ => preset.x.label(&x),
        };
        let row = Row {
            x: label,
            x_value,
            colour: preset.colour.as_ref().map(|axis| axis.label(&colour)).unwrap_or_default(),
            facet: preset.facet.as_ref().map(|axis| axis.label(&facet)).unwrap_or_default(),
            y,
            ends: None,
            role: Role::Ours,
            column: 0,
            claim: None,
        };
        Some((Keys { x, colour, facet, x_value, is_everywhere }, row))
    }
}

/// Puts the values that hold everywhere to all places of their panels.
fn spread(preset: &Preset, found: &mut Vec<(Keys, Row)>) {
    if preset.shape == Shape::Table {
        return;
    }
    let (mut everywhere, mut placed): (Vec<_>, Vec<_>) = found.drain(..).partition(|(keys, _)| keys.is_everywhere);
    spread_over(&placed, &mut everywhere);
    placed.extend(everywhere);
    *found = placed;
}

/// Puts the rows `beside` that hold everywhere to all places of their panels among the placed rows.
fn spread_over(placed: &[(Keys, Row)], beside: &mut Vec<(Keys, Row)>) {
    let mut spread = Vec::new();
    for (keys, row) in beside.drain(..) {
        if !keys.is_everywhere {
            spread.push((keys, row));
            continue;
        }
        let mut seen = BTreeSet::new();
        for (at, place) in placed.iter().filter(|(at, _)| !at.is_everywhere && at.facet == keys.facet) {
            if seen.insert(at.x.clone()) {
                let keys = Keys { x: at.x.clone(), x_value: at.x_value, ..keys.clone() };
                spread.push((keys, Row { x: place.x.clone(), x_value: place.x_value, ..row.clone() }));
            }
        }
    }
    *beside = spread;
}
