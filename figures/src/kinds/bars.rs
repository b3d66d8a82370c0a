//! Grouped bars with intervals.

use powersweep_dataset::Frame;
use serde_json::{Value, json};

use super::axes::Axes;
use super::code::{Code, few, has_interval};
use super::limits::Limits;
use super::published;
use super::scales::{self, plot_px};
use crate::error::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;

/// Number of groups of bars.
const GROUPS_MAX: usize = 60;
/// Bars that are this narrow (px) have no mark at their top.
const MARKED_FROM_PX: f64 = 6.0;

/// Bars of `y` for each value of `x`, side by side for the values of `colour`. A row is one bar. The shape at the top tells
/// the values of `colour` apart where colours do not print.
pub fn bars(table: &Frame, axes: &Axes, look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.y], &[&axes.x])?;
    let x = rows.column(&axes.x)?;
    let groups = few(&x, GROUPS_MAX)?;
    let panels = axes.facet.as_ref().map_or(Ok(1), |facet| rows.column(facet).map(|column| column.levels().len()))?;
    let plot_px = plot_px(look.width, panels);
    let code = Code::of(&rows, axes, look)?;
    let limits = Limits::of(&rows, axes, true)?;
    let y = scales::number(&rows.column(&axes.y)?, limits.y);
    let mut at = json!({ "x": scales::names(&x, &groups, plot_px) });
    if let Some(code) = code.as_ref().filter(|_| axes.colour != Some(axes.x.clone())) {
        code.offset(&mut at);
    }
    let mut bar = with(&at, &[("y", y.clone())]);
    if axes.log_y {
        // A logarithmic axis has no 0 on which a bar could stand.
        bar["y"]["stack"] = json!(null);
        bar["y2"] = json!({ "value": "height" });
    }
    let mut layers = Vec::new();
    let fill = json!({ "type": "bar", "stroke": "#000000", "strokeWidth": 0.4 });
    match &code {
        None => layers.push(json!({ "mark": merged(fill, json!({ "color": look.colour(0) })), "encoding": bar })),
        Some(code) => {
            code.fills(&mut bar);
            layers.push(json!({ "mark": fill, "encoding": bar }));
        }
    }
    let bars = groups.len() * code.as_ref().map_or(1, |code| code.levels.len());
    if let Some(code) = code.as_ref().filter(|_| plot_px / bars as f64 >= MARKED_FROM_PX) {
        let mut top = with(&at, &[("y", y.clone())]);
        code.points(&mut top);
        let mark =
            json!({ "type": "point", "filled": true, "size": 22, "opacity": 1, "stroke": "white", "strokeWidth": 0.6 });
        layers.push(json!({ "mark": mark, "encoding": top }));
    }
    if let Some(interval) = &axes.interval {
        let lines = whiskers(&at, &y, interval);
        // A white edge, for dark bars.
        let edge = json!({ "color": "#FFFFFF", "strokeWidth": 2.3, "thickness": 2.3 });
        layers.push(merged(lines.clone(), json!({ "mark": { "rule": edge, "ticks": edge } })));
        layers.push(lines);
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
    fn bars_of_a_logarithmic_axis_stand_on_its_edge() {
        let axes = Axes { log_y: true, ..Axes::of("log", "wait_s") };
        let figure = bars(&table(), &axes, &Look::of(Width::Column)).expect("a figure");
        assert_eq!(figure.spec()["layer"][0]["encoding"]["y2"], json!({ "value": "height" }));
    }

    #[test]
    fn an_unknown_column_and_a_text_as_height_are_refused() {
        let look = Look::of(Width::Column);
        let refused = |axes: &Axes| bars(&table(), axes, &look).expect_err("refused").to_string();
        assert!(refused(&Axes::of("log", "waits")).contains("no column `waits`"));
        assert!(refused(&Axes::of("cap_w", "log")).contains("`log` has texts"));
    }
}
