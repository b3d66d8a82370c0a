//! Points, with whiskers for intervals.

use powersweep_dataset::Frame;
use serde_json::{Value, json};

use super::Axes;
use super::bars::{merged, whiskers, whiskers_along, with};
use super::code::{Code, few, is_on_axis, is_valid};
use super::limits::Limits;
use super::scales::{self, Scale, plot_px};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::font::SIZE_PX;
use crate::look::{Look, Width};

/// Number of names along an axis.
const NAMES_MAX: usize = 60;

/// A point for each row, at numbers or names of `x` and `y`. `colour` tells rows apart by colour and shape. A dashed line
/// shows the `limit` of `y`, and a ring each `answer`.
pub fn points(table: &Frame, axes: &Axes, look: &Look) -> Result<Figure> {
    let all = [&axes.x, &axes.y];
    let (mut numbers, mut names): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in all {
        let list = if is_on_axis(&table.column(name)?) { &mut numbers } else { &mut names };
        list.push(name);
    }
    let rows = axes.rows(table, &numbers, &names)?;
    let panels = axes.facet.as_ref().map_or(Ok(1), |facet| rows.column(facet).map(|column| column.levels().len()))?;
    let limits = Limits::of(&rows, axes, false)?;
    let axis = |name: &String, scale: Scale, px: f64| -> Result<Value> {
        let column = rows.column(name)?;
        Ok(match numbers.contains(&name.as_str()) {
            true => scales::number(&column, scale),
            false => scales::names(&column, &few(&column, NAMES_MAX)?, px),
        })
    };
    let x = axis(&axes.x, limits.x, plot_px(look.width, panels))?;
    // Names along the vertical axis are not turned.
    let y = axis(&axes.y, limits.y, f64::INFINITY)?;
    let at = json!({ "x": x });
    let mut layers = Vec::new();
    if let Some(interval) = axes.interval.as_ref().filter(|_| numbers.contains(&axes.y.as_str())) {
        layers.push(whiskers(&at, &y, interval));
    }
    if let Some(interval) = axes.interval_x.as_ref().filter(|_| numbers.contains(&axes.x.as_str())) {
        layers.push(whiskers_along(&json!({ "y": y }), ("x", "x2"), &at["x"], interval));
    }
    if let Some(limit) = &axes.limit {
        // One line for each panel, however many rows have the limit.
        let once = json!([{ "aggregate": [{ "op": "min", "field": escaped(limit), "as": limit }] }]);
        let rule = json!({ "type": "rule", "strokeDash": [4, 2], "strokeWidth": 1, "color": "#000000" });
        let at = merged(y.clone(), json!({ "field": escaped(limit) }));
        layers.push(json!({ "transform": once, "mark": rule, "encoding": { "y": at } }));
        let title = rows.column(limit)?.title().to_owned();
        let written = json!({
            "type": "text", "align": "right", "dx": -3, "dy": -5, "fontSize": SIZE_PX - 1.5, "text": title,
        });
        let place = json!({ "x": { "value": "width" }, "y": at });
        layers.push(json!({ "transform": once, "mark": written, "encoding": place }));
    }
    if axes.diagonal {
        let most = |name: &String, to: &str| json!({ "op": "max", "field": escaped(name), "as": to });
        let once = json!([
            { "aggregate": [most(&axes.x, "most_x"), most(&axes.y, "most_y")] },
            { "calculate": "min(datum.most_x, datum.most_y)", "as": "equal" }, { "calculate": "0", "as": "origin" },
        ]);
        let rule = json!({ "type": "rule", "strokeDash": [1, 2], "strokeWidth": 0.8, "color": "#666666" });
        let (x, y) =
            (merged(at["x"].clone(), json!({ "field": "origin" })), merged(y.clone(), json!({ "field": "origin" })));
        let line = json!({ "x": x, "y": y, "x2": { "field": "equal" }, "y2": { "field": "equal" } });
        layers.push(json!({ "transform": once, "mark": rule, "encoding": line }));
    }
    let mut point = with(&at, &[("y", y)]);
    if let Some(answer) = &axes.answer {
        let ring = json!({ "type": "point", "size": 150, "opacity": 1, "color": "#000000", "strokeWidth": 1.2 });
        layers.push(json!({ "transform": [{ "filter": is_valid(answer) }], "mark": ring, "encoding": point }));
    }
    let size = if look.width == Width::Column { 22 } else { 30 };
    let mut mark = json!({ "type": "point", "filled": true, "size": size, "opacity": 1 });
    match Code::of(&rows, axes, look)? {
        Some(code) => code.points(&mut point),
        None => mark["color"] = json!(look.colour(0)),
    }
    layers.push(json!({ "mark": mark, "encoding": point }));
    let content = Content::limited(rows.clone(), layers, axes, limits);
    content.without(table, &rows, "a value").figure(look)
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;

    #[test]
    fn an_axis_has_numbers_or_names() {
        let table = Frame::of([
            Column::numbers("size_factor", "size factor", "", [0.5, 1.0, 2.0]),
            Column::texts("policy", "policy", ["easy", "fcfs", "easy"]),
            Column::numbers("bsld_mean", "bounded slowdown", "", [9.0, 5.0, f64::NAN]),
            Column::texts("verdict", "verdict", ["infeasible", "feasible", "feasible"]),
        ]);
        let look = Look::of(Width::Column);
        let axes = |y: &str| Axes { colour: Some("verdict".to_owned()), ..Axes::of("size_factor", y) };
        let means = points(&table, &axes("bsld_mean"), &look).expect("a figure");
        let encoding = &means.spec()["layer"][0]["encoding"];
        assert_eq!((&encoding["x"]["type"], &encoding["y"]["type"]), (&json!("quantitative"), &json!("quantitative")));
        assert_eq!(encoding["shape"]["scale"]["domain"], json!(["infeasible", "feasible"]));
        // A row without a number is not drawn.
        assert_eq!(means.spec()["datasets"]["rows"].as_array().map(Vec::len), Some(2));
        let mut marked = table.clone();
        marked.push(Column::numbers("limit", "bsld_mean <= 8", "", [8.0; 3]));
        marked.push(Column::optional_texts("answer", "", [None, Some("answer"), None]));
        let with_marks =
            Axes { limit: Some("limit".to_owned()), answer: Some("answer".to_owned()), ..axes("bsld_mean") };
        let layers = points(&marked, &with_marks, &look).expect("a figure").spec()["layer"].clone();
        assert_eq!(
            (&layers[0]["mark"]["type"], &layers[1]["mark"]["text"]),
            (&json!("rule"), &json!("bsld_mean <= 8"))
        );
        assert_eq!(layers[2]["transform"][0]["filter"], "isValid(datum['answer'])");
        let equal = points(&table, &Axes { diagonal: true, ..axes("bsld_mean") }, &look).expect("a figure");
        let line = &equal.spec()["layer"][0];
        assert_eq!((&line["mark"]["type"], &line["encoding"]["y2"]["field"]), (&json!("rule"), &json!("equal")));
        assert_eq!(["x", "y"].map(|axis| line["encoding"][axis]["scale"]["zero"].clone()), [true, true]);
        let names = points(&table, &axes("policy"), &look).expect("a figure");
        assert_eq!(names.spec()["layer"][0]["encoding"]["y"]["sort"], json!(["easy", "fcfs"]));
        assert_eq!(names.spec()["datasets"]["rows"].as_array().map(Vec::len), Some(3));
    }
}
