//! Lines with bands.

use std::collections::HashMap;

use powersweep_dataset::{Column, Frame};
use serde_json::{Value, json};

use super::axes::Axes;
use super::bars::{band, whiskers, with};
use super::code::{Code, few, is_on_axis};
use super::limits::Limits;
use super::published;
use super::scales::{self, plot_px};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;

/// Lines with at most this number of points show them.
const DOTTED_MAX: usize = 25;
/// Number of names along the horizontal axis.
const NAMES_MAX: usize = 60;

/// Lines of `y` over `x`, one for each value of `colour`, with a band for the interval; the only point of a line has a bar. A row
/// is one point. Where a value of
/// `x` is "unlimited", the values stand side by side, as names do.
pub fn lines(table: &Frame, axes: &Axes, look: &Look) -> Result<Figure> {
    let is_number = is_on_axis(&table.column(&axes.x)?);
    let rows = axes.rows_along(table, is_number)?;
    let column = rows.column(&axes.x)?;
    let panels = axes.facet.as_ref().map_or(Ok(1), |facet| rows.column(facet).map(|column| column.levels().len()))?;
    let limits = Limits::of(&rows, axes, false)?;
    let x = match is_number {
        true => scales::number(&column, limits.x),
        false => scales::names(&column, &few(&column, NAMES_MAX)?, plot_px(look.width, panels)),
    };
    let y = scales::number(&rows.column(&axes.y)?, limits.y);
    let code = Code::of(&rows, axes, look)?;
    let at = json!({ "x": x });
    let mut layers = Vec::new();
    if let Some(interval) = &axes.interval {
        layers.push(band(&at, &y, interval, (code.as_ref(), look), json!({})));
        layers.extend(lone(&rows, axes)?.map(|only| {
            let mut bars = whiskers(&at, &y, interval);
            code.iter().for_each(|code| code.bands(&mut bars["encoding"]));
            let of_interval = bars["transform"].as_array().cloned().unwrap_or_default();
            bars["transform"] = only.into_iter().chain(of_interval).collect();
            for part in ["rule", "ticks"] {
                bars["mark"][part].as_object_mut().expect("an object").remove("color");
            }
            if code.is_none() {
                bars["mark"]["color"] = json!(look.colour(0));
            }
            bars
        }));
    }
    let mut line = with(&at, &[("y", y.clone())]);
    let mut mark = json!({ "type": "line", "color": look.colour(0) });
    if let Some(code) = &code {
        code.lines(&mut line);
        mark.as_object_mut().expect("an object").remove("color");
    }
    layers.push(json!({ "mark": mark, "encoding": line }));
    let lines = code.as_ref().map_or(1, |code| code.levels.len()) * panels;
    if rows.rows() <= DOTTED_MAX * lines {
        let mut dot = with(&at, &[("y", y.clone())]);
        if let Some(code) = &code {
            code.bands(&mut dot);
        }
        let mark = json!({ "type": "point", "filled": true, "size": 14, "opacity": 1, "color": look.colour(0) });
        layers.push(json!({ "mark": mark, "encoding": dot }));
    }
    let free_px = look.width.px() - code.as_ref().map_or(0.0, |code| code.legend_px(true));
    let mut point = with(&at, &[("y", y)]);
    // A published number says to which of the lines it belongs.
    if let Some(code) = &code {
        code.inside(&mut point);
    }
    published::beside(&mut layers, &rows, axes, point, free_px)?;
    let content = Content::limited(rows.clone(), layers, axes, limits);
    content.without(table, &rows, "a value").figure(look)
}

/// The transforms that keep the points without a neighbour on their line, which no band can show; `None` if each has one.
fn lone(rows: &Frame, axes: &Axes) -> Result<Option<Vec<Value>>> {
    let names = axes.names();
    let columns: Vec<Column> = names.iter().map(|name| rows.column(name)).collect::<Result<_>>()?;
    let published = axes.published.as_ref().map(|name| rows.column(name)).transpose()?;
    let mut counts: HashMap<Vec<String>, usize> = HashMap::new();
    for row in (0..rows.rows()).filter(|row| published.as_ref().is_none_or(|of| of.cell(*row).is_null())) {
        *counts.entry(columns.iter().map(|column| column.text(row)).collect()).or_default() += 1;
    }
    let of_line: Vec<String> = names.into_iter().map(escaped).collect();
    let count = json!({ "joinaggregate": [{ "op": "count", "as": "points_of_line" }], "groupby": of_line });
    let transforms = || vec![count, json!({ "filter": "datum.points_of_line === 1" })];
    Ok(counts.values().any(|count| *count == 1).then(transforms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    #[test]
    fn numbers_have_a_numeric_axis_and_names_their_order() {
        let y = Column::numbers("energy_j", "energy", "J", [1.5, 2.5]);
        let look = Look::of(Width::Column);
        let drawn = |x: Column| {
            let axes = Axes::of(x.name(), "energy_j");
            lines(&Frame::of([x, y.clone()]), &axes, &look).expect("a figure")
        };
        let figure = drawn(Column::numbers("size_factor", "size factor", "", [0.5, 1.0]));
        assert_eq!(figure.spec()["layer"][0]["encoding"]["x"]["type"], "quantitative");
        assert_eq!(
            figure.spec()["datasets"]["rows"],
            json!([{ "size_factor": 0.5, "energy_j": 1.5 }, { "size_factor": 1.0, "energy_j": 2.5 }])
        );
        let figure = drawn(Column::texts("log", "log", ["sdsc", "ctc"]));
        assert_eq!(figure.spec()["layer"][0]["encoding"]["x"]["sort"], json!(["sdsc", "ctc"]));
    }

    #[test]
    fn the_only_point_of_a_line_has_its_interval() {
        let table = Frame::of([
            Column::numbers("size_factor", "size factor", "", [1.0, 1.0, 1.25]),
            Column::numbers("wait_s", "wait", "s", [60.0, 20.0, 10.0]),
            Column::numbers("low", "", "", [30.0, 10.0, 5.0]),
            Column::numbers("high", "", "", [90.0, 30.0, 15.0]),
            Column::texts("policy", "policy", ["none", "easy", "easy"]),
        ]);
        let drawn = |table: &Frame| {
            let interval = Some(("low".to_owned(), "high".to_owned()));
            let axes = Axes { interval, colour: Some("policy".to_owned()), ..Axes::of("size_factor", "wait_s") };
            lines(table, &axes, &Look::of(Width::Column)).expect("a figure")
        };
        let figure = drawn(&table);
        let bar = &figure.spec()["layer"][1];
        assert_eq!((bar["mark"]["type"].as_str(), &bar["encoding"]["y2"]["field"]), (Some("errorbar"), &json!("high")));
        assert_eq!(bar["transform"][0]["groupby"], json!(["policy"]));
        let of_two = drawn(&table.kept(|row| row > 0));
        let marks = of_two.spec()["layer"].as_array().into_iter().flatten().map(|layer| &layer["mark"]["type"]);
        assert!(marks.into_iter().all(|mark| mark != "errorbar"), "a band shows them");
    }

    #[test]
    fn unlimited_is_the_last_of_the_values_side_by_side() {
        let table = Frame::of([
            Column::numbers("wq_threshold", "WQ threshold", "", [Some(f64::INFINITY), Some(16.0), Some(0.0), None]),
            Column::numbers("energy_j", "energy", "J", [1.5, 2.5, 3.5, 4.5]),
        ]);
        let figure = lines(&table, &Axes::of("wq_threshold", "energy_j"), &Look::of(Width::Column)).expect("a figure");
        assert_eq!(figure.spec()["layer"][0]["encoding"]["x"]["sort"], json!(["0", "16", "unlimited"]));
        assert_eq!(figure.spec()["datasets"]["rows"][0], json!({ "wq_threshold": "unlimited", "energy_j": 1.5 }));
        assert_eq!(figure.notes(), ["1 of 4 rows lack a value and are left out: energy_j=4.5"]);
    }
}
