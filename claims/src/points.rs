//! The values of a preset at their places on its axes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::Value;

use crate::compare::Comparison;
use crate::measure::{Groups, Scope};
use crate::presets::{Axis, Preset, Published, Shape, Values};
use crate::rows::{Needed, Rows};
use crate::selection::Selection;

/// What an empty cell is called.
const NONE: &str = "none";

/// One value of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Place along the horizontal axis.
    pub x: String,
    /// The same as a number, if it is one.
    pub x_value: Option<f64>,
    /// What its colour stands for; empty without colours.
    pub colour: String,
    /// The panel; empty without panels.
    pub facet: String,
    /// The value.
    pub y: f64,
    /// Half the width of the interval around it.
    pub half_width: Option<f64>,
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
    /// What is missing.
    pub reason: String,
}

/// Columns of the axes by which a value is grouped.
fn by(preset: &Preset, values: &Values) -> Vec<String> {
    let axes = preset.axes().enumerate().filter(|(at, _)| *at > 0 || !values.is_everywhere);
    let all = axes.flat_map(|(_, axis)| axis.columns.iter());
    let grouped: BTreeSet<&String> = all.filter(|column| !values.fixed.contains_key(*column)).collect();
    grouped.into_iter().cloned().collect()
}

/// Adds the columns that a preset reads.
pub(crate) fn need(preset: &Preset, needed: &mut Needed) {
    for values in &preset.values {
        let outer = Scope::outermost(&preset.manifest, &[], &by(preset, values));
        outer.of_value(&values.selection).need(&values.selection, needed);
        if let Some(half_width) = &values.half_width {
            let half_width = values.selection.with(half_width);
            outer.of_value(&half_width).need(&half_width, needed);
        }
    }
    if let Some(minus) = &preset.x.minus {
        Scope::outermost(&preset.manifest, &[], &[]).of_value(minus).need(minus, needed);
    }
}

/// The values of a preset, in the order of panels, colours and places.
pub(crate) fn rows(preset: &Preset, rows: &Rows) -> Result<Vec<Row>, Lacking> {
    let mut found: Vec<(Keys, Row)> = Vec::new();
    let of = |selection: &Selection, by: &[String]| {
        let scope = Scope::outermost(&preset.manifest, &[], by).of_value(selection);
        scope.value(selection, rows).map_err(|reason| Lacking { manifest: scope.manifest.clone(), reason })
    };
    let zero = preset.x.minus.as_ref().map(|minus| of(minus, &[])).transpose()?;
    let place = Place { preset, zero };
    for (column, values) in preset.values.iter().enumerate() {
        let by = by(preset, values);
        let groups = of(&values.selection, &by)?;
        let half_widths = values.half_width.as_ref().map(|half| of(&values.selection.with(half), &by)).transpose()?;
        for (key, y) in &groups.values {
            let cells = cells(values, &groups, key);
            let half_width = half_widths.as_ref().and_then(|half| half.values.get(key)).copied();
            let role = if values.is_cap { Role::Cap } else { Role::Ours };
            found.extend(
                place.row(values, &cells, *y).map(|(keys, row)| (keys, Row { half_width, role, column, ..row })),
            );
        }
    }
    spread(preset, &mut found);
    for (column, values) in preset.values.iter().enumerate() {
        let mut beside: Vec<(Keys, Row)> = Vec::new();
        for published in &values.published {
            for (id, cells, y) in numbers(values, published) {
                let row = place
                    .row(values, &cells, y)
                    .map(|(keys, row)| (keys, Row { role: Role::Published, column, claim: Some(id), ..row }));
                beside.extend(row);
            }
        }
        // A published number is shown at the places of our values only.
        spread_over(&found, &mut beside);
        found.extend(beside);
    }
    found.sort_by(|(one, _), (other, _)| one.order(other, preset));
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// The cells of a group, with the fixed ones.
fn cells(values: &Values, groups: &Groups, key: &[String]) -> BTreeMap<String, String> {
    let grouped = groups.by.iter().cloned().zip(key.iter().cloned());
    grouped.chain(values.fixed.clone()).collect()
}

/// The published numbers of a claim with their places, as the preset shows them.
fn numbers(values: &Values, published: &Published) -> Vec<(String, BTreeMap<String, String>, f64)> {
    let claim = &published.claim;
    let found = claim.comparisons.iter().find_map(Comparison::published);
    let Some(numbers) = found else { return Vec::new() };
    let one = |(at, fixed): (usize, &Vec<(String, Value)>)| {
        let number = numbers.get(at).or(numbers.last()).copied()?;
        let number = if published.one_minus { 1.0 - number } else { number };
        let mut cells: BTreeMap<String, String> = BTreeMap::new();
        for (column, wanted) in claim.value.runs.iter().flatten().chain(&claim.value.conditions) {
            if let [value] = wanted.as_slice() {
                cells.insert(column.clone(), value.to_string());
            }
        }
        let cell = |text: &String| if text == NONE { String::new() } else { text.clone() };
        cells.extend(published.at.iter().map(|(column, text)| (column.clone(), cell(text))));
        cells.extend(fixed.iter().map(|(column, value)| (column.clone(), value.to_string())));
        if !fits(&cells, values) {
            return None;
        }
        cells.extend(values.fixed.clone());
        let repetition: Vec<String> = fixed.iter().map(|(_, value)| value.to_string()).collect();
        let id = if fixed.is_empty() { claim.id.clone() } else { format!("{}[{}]", claim.id, repetition.join(",")) };
        Some((id, cells, number * published.times))
    };
    claim.repetitions.iter().enumerate().filter_map(one).collect()
}

/// Whether a published number is under the conditions of our values, as far as it says.
fn fits(cells: &BTreeMap<String, String>, values: &Values) -> bool {
    let conditions = values.selection.runs.iter().flatten().filter(|(column, _)| {
        // A selection's own conditions override the conditions of its runs.
        !values.selection.conditions.contains_key(*column)
    });
    conditions.chain(&values.selection.conditions).all(|(column, wanted)| {
        cells.get(column).is_none_or(|cell| wanted.iter().any(|value| value.to_string() == *cell))
    })
}

/// Whether a claim has no number for these values.
pub(crate) fn is_foreign(values: &Values, published: &Published) -> bool {
    numbers(values, published).is_empty()
}

/// A column of an axis that neither the claim nor the preset fixes.
pub(crate) fn open_column(preset: &Preset, values: &Values, published: &Published) -> Option<String> {
    let by = by(preset, values);
    let open = |cells: &BTreeMap<String, String>| by.iter().find(|column| !cells.contains_key(*column)).cloned();
    numbers(values, published).iter().find_map(|(_, cells, _)| open(cells))
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
            half_width: None,
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
    let (everywhere, mut placed): (Vec<_>, Vec<_>) = found.drain(..).partition(|(keys, _)| keys.is_everywhere);
    let mut spreading = everywhere;
    spread_over(&placed, &mut spreading);
    placed.extend(spreading);
    *found = placed;
}

/// The same for some rows beside placed ones.
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
