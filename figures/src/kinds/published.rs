//! Points that were published elsewhere, beside bars or lines.

use powersweep_dataset::Frame;
use serde_json::{Value, json};

use super::axes::Axes;
use super::code::is_valid;
use crate::Result;
use crate::figure::escaped;
use crate::font::{self, SIZE_PX};
use crate::look::AXIS_PX;
use crate::rows::text;

/// Area of a point (px²).
const POINT_PX2: f64 = 34.0;
/// Width of a point in the legend, with the gaps around it (px).
const SYMBOL_PX: f64 = 30.0;

/// Adds published points to layers, which then show the other rows. `at` is the encoding of a point's place. The legend
/// stands at the right of another one where at least `free_px` are left, else below the figure.
pub(super) fn beside(layers: &mut Vec<Value>, rows: &Frame, axes: &Axes, mut at: Value, free_px: f64) -> Result<()> {
    let Some(name) = &axes.published else { return Ok(()) };
    let column = rows.column(name)?;
    let mut names: Vec<String> = Vec::new();
    for level in (0..rows.rows()).filter_map(|row| text(&column, row)) {
        if !names.contains(&level) {
            names.push(level);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    for layer in layers.iter_mut() {
        let mut transform = vec![json!({ "filter": format!("!{}", is_valid(name)) })];
        transform.extend(layer["transform"].as_array().into_iter().flatten().cloned());
        layer["transform"] = Value::Array(transform);
    }
    // The bars or lines have the scale of `color`, which would name these points in their legend.
    let scale = json!({ "domain": names, "range": vec!["black"; names.len()] });
    let needed_px: f64 = names.iter().map(|name| font::width(name, SIZE_PX, false) + SYMBOL_PX).sum();
    let orient = if needed_px + AXIS_PX <= free_px { "top" } else { "bottom" };
    let symbol = json!({ "orient": orient, "title": null, "symbolType": "diamond", "symbolFillColor": "white", "symbolStrokeWidth": 1 });
    at["stroke"] = json!({ "field": escaped(name), "type": "nominal", "scale": scale, "legend": symbol });
    let mark = json!({
        "type": "point", "shape": "diamond", "size": POINT_PX2, "opacity": 1, "strokeWidth": 1, "fill": "white",
    });
    let transform = json!([{ "filter": is_valid(name) }]);
    layers.push(json!({ "transform": transform, "mark": mark, "encoding": at }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;
    use crate::kinds::{Axes, bars};
    use crate::{Look, Width};

    #[test]
    fn published_rows_are_points_of_a_layer_of_their_own() {
        let published = [None, None, Some("published")];
        let table = Frame::of([
            Column::texts("log", "log", ["ctc", "sdsc", "ctc"]),
            Column::numbers("wait_s", "wait", "s", [3.5, 2.0, 4.0]),
            Column::optional_texts("from", "", published),
        ]);
        let axes = Axes { published: Some("from".to_owned()), ..Axes::of("log", "wait_s") };
        let figure = bars(&table, &axes, &Look::of(Width::Column)).expect("a figure");
        let layers = figure.spec()["layer"].as_array().expect("layers");
        let filters: Vec<&str> = layers.iter().filter_map(|layer| layer["transform"][0]["filter"].as_str()).collect();
        assert_eq!(filters, ["!isValid(datum['from'])", "isValid(datum['from'])"]);
        assert_eq!(layers[1]["encoding"]["stroke"]["scale"]["domain"], json!(["published"]));
        let none = Axes { published: None, ..axes };
        let figure = bars(&table, &none, &Look::of(Width::Column)).expect("a figure");
        assert_eq!(figure.spec()["layer"].as_array().map(Vec::len), Some(1));
    }
}
