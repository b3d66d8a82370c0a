//! Grouped bars with intervals.

use powersweep_dataset::Frame;
use serde_json::{Value, json};

use super::axes::Axes;
use super::code::{Code, few, has_interval};
use super::limits::Limits;
use super::published;
use super::scales::{self, plot_px};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;

/// Number of groups of bars.
const GROUPS_MAX: usize = 60;
/// Bars that are this narrow (px) have no mark at their top.
const MARKED_FROM_PX: f64 = 6.0;
/// The note about bars that are drawn as points.
const POINTS: &str = "points stand for bars: a logarithmic axis has no 0 from which the length of a bar could be read";

/// Bars of `y` for each value of `x`, side by side for the values of `colour`. A row is one bar. The shape at the top tells
/// the values of `colour` apart where colours do not print. A logarithmic axis has no 0 on which a bar could stand: there the
/// rows are points.
pub fn bars(table: &Frame, axes: &Axes, look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.y], &[&axes.x])?;
    let x = rows.column(&axes.x)?;
    let groups = few(&x, GROUPS_MAX)?;
    let panels = axes.facet.as_ref().map_or(Ok(1), |facet| rows.column(facet).map(|column| column.levels().len()))?;
    let plot_px = plot_px(look.width, panels);
    let code = Code::of(&rows, axes, look)?;
    let mut limits = Limits::of(&rows, axes, true)?;
    let y = scales::number(&rows.column(&axes.y)?, limits.y);
    let mut at = json!({ "x": scales::names(&x, &groups, plot_px) });
    if let Some(code) = code.as_ref().filter(|_| axes.colour != Some(axes.x.clone())) {
        code.offset(&mut at);
    }
    let mut layers = Vec::new();
    let mut top = with(&at, &[("y", y.clone())]);
    let point = json!({ "type": "point", "filled": true, "size": 22, "opacity": 1 });
    let colour = if code.is_none() { json!({ "color": look.colour(0) }) } else { json!({}) };
    let lines = axes.interval.as_ref().map(|interval| whiskers(&at, &y, interval));
    if axes.log_y {
        limits.notes.push(POINTS.to_owned());
        layers.extend(lines);
        code.iter().for_each(|code| code.points(&mut top));
        layers.push(json!({ "mark": merged(point, colour), "encoding": top }));
    } else {
        let mut bar = top.clone();
        let fill = json!({ "type": "bar", "stroke": "#000000", "strokeWidth": 0.4 });
        code.iter().for_each(|code| code.fills(&mut bar));
        layers.push(json!({ "mark": merged(fill, colour), "encoding": bar }));
        let bars = groups.len() * code.as_ref().map_or(1, |code| code.levels.len());
        if let Some(code) = code.as_ref().filter(|_| plot_px / bars as f64 >= MARKED_FROM_PX) {
            code.points(&mut top);
            let mark = merged(point, json!({ "stroke": "white", "strokeWidth": 0.6 }));
            layers.push(json!({ "mark": mark, "encoding": top }));
        }
        if let Some(lines) = lines {
            // A white edge, for dark bars.
            let edge = json!({ "color": "#FFFFFF", "strokeWidth": 2.3, "thickness": 2.3 });
            layers.push(merged(lines.clone(), json!({ "mark": { "rule": edge, "ticks": edge } })));
            layers.push(lines);
        }
    }
    let free_px = look.width.px() - code.as_ref().map_or(0.0, |code| code.legend_px(false));
    published::beside(&mut layers, &rows, axes, with(&at, &[("y", y)]), free_px)?;
    Content::limited(rows, layers, axes, limits).figure(look)
}

/// Lines from the lower to the upper end of the interval around `y`.
pub(super) fn whiskers(at: &Value, y: &Value, interval: &(String, String)) -> Value {
    whiskers_along(at, ("y", "y2"), y, interval)
}

/// Lines from the lower to the upper end of the interval along an axis.
pub(super) fn whiskers_along(at: &Value, (from, to): (&str, &str), axis: &Value, interval: &(String, String)) -> Value {
    let low = merged(axis.clone(), json!({ "field": escaped(&interval.0) }));
    let encoding = with(at, &[(from, low), (to, json!({ "field": escaped(&interval.1) }))]);
    let line = json!({ "strokeWidth": 0.9, "color": "#000000", "opacity": 1 });
    let ticks = merged(line.clone(), json!({ "size": 5, "thickness": 0.9 }));
    let mark = json!({ "type": "errorbar", "rule": line, "ticks": ticks });
    json!({ "transform": has_interval(interval), "mark": mark, "encoding": encoding })
}

/// The area between the lower and the upper end of the interval around `y`, in the colours of lines. `mark`: further settings.
pub(super) fn band(
    at: &Value,
    y: &Value,
    interval: &(String, String),
    (code, look): (Option<&Code>, &Look),
    mark: Value,
) -> Value {
    let low = merged(y.clone(), json!({ "field": escaped(&interval.0) }));
    let mut encoding = with(at, &[("y", low), ("y2", json!({ "field": escaped(&interval.1) }))]);
    if let Some(code) = code {
        code.bands(&mut encoding);
    }
    let area = json!({ "type": "area", "opacity": 1, "fillOpacity": 0.2, "line": false, "color": look.colour(0) });
    json!({ "transform": has_interval(interval), "mark": merged(area, mark), "encoding": encoding })
}

/// An encoding with more channels.
pub(super) fn with(encoding: &Value, channels: &[(&str, Value)]) -> Value {
    let mut encoding = encoding.clone();
    for (channel, value) in channels {
        encoding[*channel] = value.clone();
    }
    encoding
}

/// An object with the keys of another one.
pub(super) fn merged(mut into: Value, from: Value) -> Value {
    crate::look::merge(&mut into, &from);
    into
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;
    use crate::Width;

    fn table() -> Frame {
        Frame::of([
            Column::texts("log", "log", ["ctc", "ctc", "sdsc"]),
            Column::numbers("cap_w", "cap", "W", [90.0, 70.0, 70.0]),
            Column::numbers("wait_s", "wait", "s", [3.5, 0.125, 2e6]),
            Column::numbers("low", "", "", [Some(3.0), None, Some(1e6)]),
            Column::numbers("high", "", "", [Some(4.0), None, Some(3e6)]),
        ])
    }

    #[test]
    fn the_rows_of_the_spec_are_the_rows_of_the_table() {
        let interval = Some(("low".to_owned(), "high".to_owned()));
        let axes = Axes { colour: Some("cap_w".to_owned()), interval, ..Axes::of("log", "wait_s") };
        let figure = bars(&table(), &axes, &Look::of(Width::Column)).expect("a figure");
        assert_eq!(
            figure.spec()["datasets"]["rows"],
            json!([
                { "log": "ctc", "cap_w": "90", "wait_s": 3.5, "low": 3.0, "high": 4.0 },
                { "log": "ctc", "cap_w": "70", "wait_s": 0.125, "low": null, "high": null },
                { "log": "sdsc", "cap_w": "70", "wait_s": 2e6, "low": 1e6, "high": 3e6 },
            ])
        );
        let bar = &figure.spec()["layer"][0]["encoding"];
        assert_eq!(bar["y"]["axis"]["title"], "wait (d)");
        assert_eq!(bar["color"]["scale"]["domain"], json!(["70", "90"]), "numbers in their order");
        let csv = String::from_utf8(figure.csv().expect("rows")).expect("text");
        assert_eq!(csv, "log,cap_w,wait_s,low,high\nctc,90,3.5,3,4\nctc,70,0.125,,\nsdsc,70,2000000,1000000,3000000\n");
    }

    #[test]
    fn bars_of_a_logarithmic_axis_are_points() {
        let interval = Some(("low".to_owned(), "high".to_owned()));
        let axes = Axes { log_y: true, interval, ..Axes::of("log", "wait_s") };
        for colour in [None, Some("cap_w".to_owned())] {
            let has_shapes = colour.is_some();
            let figure = bars(&table(), &Axes { colour, ..axes.clone() }, &Look::of(Width::Column)).expect("a figure");
            let layers = &figure.spec()["layer"];
            let kinds = [0, 1, 2].map(|at| layers[at]["mark"]["type"].as_str());
            assert_eq!(kinds, [Some("errorbar"), Some("point"), None]);
            assert_eq!(layers[1]["encoding"]["shape"].is_object(), has_shapes);
            assert!(figure.notes().iter().any(|note| note == POINTS), "{:?}", figure.notes());
        }
    }

    #[test]
    fn an_unknown_column_and_a_text_as_height_are_refused() {
        let look = Look::of(Width::Column);
        let refused = |axes: &Axes| bars(&table(), axes, &look).expect_err("refused").to_string();
        assert!(refused(&Axes::of("log", "waits")).contains("no column `waits`"));
        assert!(refused(&Axes::of("cap_w", "log")).contains("`log` has texts"));
    }
}
