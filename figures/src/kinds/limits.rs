//! Limits of numeric axes over values and their intervals.
//!
//! A logarithmic axis has no place for numbers that are not positive. Such values, and ends of intervals, are drawn at its
//! edge, and a note counts them. The rows of the figure keep their numbers.

use std::collections::BTreeMap;

use powersweep_dataset::{Column, Frame};
use serde_json::{Value, json};

use super::axes::Axes;
use super::code::is_valid;
use super::scales::{Scale, around_zero, extent, from_zero, time_step};
use crate::Result;
use crate::rows::empty;

/// Ends of intervals below this share of the least value do not make a logarithmic axis longer.
const END_SHARE_MIN: f64 = 0.01;

/// The scales of both axes of a figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Transforms of the specification that move numbers to the edge before they are drawn.
    pub(crate) transform: Vec<Value>,
    pub(crate) notes: Vec<String>,
}

impl Limits {
    /// The limits of the axes that have numbers. `zero`: whether the vertical axis begins at 0.
    pub(super) fn of(rows: &Frame, axes: &Axes, zero: bool) -> Result<Limits> {
        let mut limits = Limits::default();
        let free = axes.free();
        for (channel, name, interval, is_log) in
            [("x", &axes.x, &axes.interval_x, axes.log_x), ("y", &axes.y, &axes.interval, axes.log_y)]
        {
            let is_x = channel == "x";
            let of = rows.column(name)?;
            if !of.is_numeric() {
                continue;
            }
            let ends = interval.iter().flat_map(|(low, high)| [low, high]);
            let ends = ends.chain(axes.limit.iter().filter(|_| !is_x));
            let ends: Vec<Column> = ends.map(|end| rows.column(end)).collect::<Result<_>>()?;
            let free = free.contains(&channel).then_some(channel);
            let facet = axes.facet.as_deref().filter(|_| free.is_some());
            let zero = axes.diagonal || zero && !is_x;
            let domain = match is_log {
                true => limits.logarithmic(rows, &of, &ends, facet)?,
                false if facet.is_none() => {
                    let around =
                        || extent(of.finite().chain(ends.iter().flat_map(Column::finite))).and_then(around_zero);
                    of_times(&of, &ends, zero).or_else(|| around().filter(|_| zero))
                }
                false => None,
            };
            let scale = Scale { is_log, zero, domain, free };
            if is_x { limits.x = scale } else { limits.y = scale }
        }
        Ok(limits)
    }

    /// The ends of a logarithmic axis, `None` where panels have axes of their own.
    fn logarithmic(
        &mut self,
        rows: &Frame,
        of: &Column,
        ends: &[Column],
        facet: Option<&str>,
    ) -> Result<Option<(f64, f64)>> {
        let mut panels = BTreeMap::new();
        for (panel, rows) in rows.groups(facet)? {
            let positive = |column: &Column| {
                let numbers = rows.iter().filter_map(|row| column.number(*row));
                extent(numbers.filter(|value| *value > 0.0))
            };
            if let Some((least, greatest)) = positive(of) {
                let is_near = |value: &f64| *value >= least * END_SHARE_MIN;
                let lows =
                    ends.iter().flat_map(|end| rows.iter().filter_map(move |row| end.number(*row))).filter(is_near);
                let (low, _) = extent(lows.chain([least])).unwrap_or((least, greatest));
                let high = ends.iter().filter_map(positive).map(|end| end.1).fold(greatest, f64::max);
                panels.insert(panel, (below(low), above(high)));
            }
        }
        let (Some(low), Some(high)) =
            (panels.values().map(|ends| ends.0).reduce(f64::min), panels.values().map(|ends| ends.1).reduce(f64::max))
        else {
            let reason = format!("`{}` has no value above 0, and its axis is logarithmic", of.name());
            return Err(empty(reason));
        };
        let edges: BTreeMap<&String, f64> = panels.iter().map(|(panel, ends)| (panel, ends.0)).collect();
        let edge = facet.map_or(format!("{low:e}"), |facet| format!("({}[{}] || {low:e})", json!(edges), datum(facet)));
        let mut counts = [0, 0];
        for (at, column) in std::iter::once(of).chain(ends).enumerate() {
            let outside = column.finite().filter(|value| *value < low).count();
            counts[at.min(1)] += outside;
            if outside > 0 || facet.is_some() {
                self.transform.push(to_edge(column.name(), &edge));
            }
        }
        let words = [["value", "values"], ["end of an interval", "ends of intervals"]];
        self.notes.extend(counts.into_iter().zip(words).filter_map(|(count, words)| at_edge(of, count, words)));
        Ok(facet.is_none().then_some((low, high)))
    }
}

/// The transform that draws the numbers of a column at the edge of its logarithmic axis, an expression, or above.
pub(super) fn to_edge(name: &str, edge: &str) -> Value {
    let moved = format!("{} ? max({}, {edge}) : null", is_valid(name), datum(name));
    json!({ "calculate": moved, "as": name })
}

/// The note of a number of values that are drawn there; `None` without any.
pub(super) fn at_edge(of: &Column, count: usize, [one, many]: [&str; 2]) -> Option<String> {
    let (title, what) = (of.title(), if count == 1 { one } else { many });
    let note = format!("{title}: {count} {what} at the edge of the logarithmic axis, which has no place for 0");
    (count > 0).then_some(note)
}

/// A column of the row that an expression is about.
fn datum(name: &str) -> String {
    format!("datum[{}]", json!(name))
}

/// The ends of an axis of seconds that is shown in hours or days: whole ones.
fn of_times(of: &Column, ends: &[Column], zero: bool) -> Option<(f64, f64)> {
    let (low, high) = extent(of.finite().chain(ends.iter().flat_map(Column::finite)))?;
    let (low, high) = if zero { (low.min(0.0), high.max(0.0)) } else { from_zero((low, high)) };
    let step = time_step(of.unit(), (low, high))?;
    Some(((low / step).floor() * step, (high / step).ceil() * step))
}

/// The greatest of 1, 2 and 5 times powers of ten that is smaller.
fn below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0, 0.5].into_iter().map(|part| part * power).find(|step| *step < value).unwrap_or(0.5 * power)
}

/// The least of 1, 2 and 5 times powers of ten that is not smaller.
fn above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Frame {
        Frame::of([
            Column::texts("policy", "policy", ["a", "b", "a", "b"]),
            Column::numbers("wait_s", "wait", "s", [300.0, 0.0, 20.0, 2_000.0]),
            Column::numbers("low", "", "s", [Some(-40.0), None, Some(15.0), Some(900.0)]),
            Column::numbers("high", "", "s", [Some(640.0), None, Some(25.0), Some(3_100.0)]),
        ])
    }

    fn axes() -> Axes {
        let interval = Some(("low".to_owned(), "high".to_owned()));
        Axes { log_y: true, interval, ..Axes::of("policy", "wait_s") }
    }

    #[test]
    fn a_logarithmic_axis_has_an_edge_for_what_is_not_positive() {
        let limits = Limits::of(&rows(), &axes(), true).expect("limits");
        assert_eq!((limits.x.domain, limits.y.domain), (None, Some((10.0, 5_000.0))));
        assert_eq!(limits.transform.len(), 2, "the value 0 and the end -40: {:?}", limits.transform);
        assert_eq!(limits.transform[1]["calculate"], "isValid(datum['low']) ? max(datum[\"low\"], 1e1) : null");
        assert!(limits.notes[1].starts_with("wait: 1 end of an interval at the edge"), "{:?}", limits.notes);
        let none = Frame::of([Column::texts("policy", "", ["a"]), Column::numbers("wait_s", "wait", "s", [0.0])]);
        let error = Limits::of(&none, &Axes { interval: None, ..axes() }, true).expect_err("refused").to_string();
        assert!(error.contains("`wait_s` has no value above 0"), "{error}");
    }

    #[test]
    fn panels_with_axes_of_their_own_have_edges_of_their_own() {
        let axes = Axes { facet: Some("policy".to_owned()), free_y: true, ..axes() };
        let limits = Limits::of(&rows(), &axes, true).expect("limits");
        assert_eq!((limits.y.domain, limits.y.free), (None, Some("y")));
        let moved = limits.transform[0]["calculate"].as_str().expect("an expression").to_owned();
        assert!(moved.contains("{\"a\":10.0,\"b\":500.0}[datum[\"policy\"]]"), "{moved}");
    }

    #[test]
    fn an_axis_with_few_values_below_0_ends_near_them() {
        let saved = |low: f64| {
            Frame::of([
                Column::texts("policy", "policy", ["a", "b"]),
                Column::numbers("saved", "saved", "%", [low, 13.4]),
            ])
        };
        let domain = |low: f64| Limits::of(&saved(low), &Axes::of("policy", "saved"), true).expect("limits").y.domain;
        assert_eq!((domain(-0.9), domain(0.9)), (Some((-2.0, 14.0)), None));
    }

    #[test]
    fn long_times_end_at_whole_hours_or_days() {
        let rows = Frame::of([
            Column::texts("policy", "policy", ["a", "b"]),
            Column::numbers("wait_s", "wait", "s", [30_000.0, 45_000.0]),
        ]);
        let axes = Axes::of("policy", "wait_s");
        assert_eq!(Limits::of(&rows, &axes, true).expect("limits").y.domain, Some((0.0, 54_000.0)));
        assert_eq!(
            Limits::of(&rows, &Axes::of("policy", "wait_s"), false).expect("limits").y.domain,
            Some((28_800.0, 46_800.0))
        );
    }
}
