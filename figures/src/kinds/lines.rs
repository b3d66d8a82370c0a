//! Lines with bands.

use powersweep_dataset::Frame;
use serde_json::json;

use super::axes::Axes;
use super::bars::{band, with};
use super::code::{Code, few, is_on_axis};
use super::limits::Limits;
use super::published;
use super::scales::{self, plot_px};
use crate::error::Result;
use crate::figure::{Content, Figure};
use crate::look::Look;

/// Lines with at most this number of points show them.
const DOTTED_MAX: usize = 25;
/// Number of names along the horizontal axis.
const NAMES_MAX: usize = 60;

/// Lines of `y` over `x`, one for each value of `colour`, with a band for the interval. A row is one point. Where a value of
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

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

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
    fn unlimited_is_the_last_of_the_values_side_by_side() {
        let table = Frame::of([
            Column::numbers("wq_threshold", "WQ threshold", "", [Some(f64::INFINITY), Some(16.0), Some(0.0), None]),
            Column::numbers("energy_j", "energy", "J", [1.5, 2.5, 3.5, 4.5]),
        ]);
        let figure = lines(&table, &Axes::of("wq_threshold", "energy_j"), &Look::of(Width::Column)).expect("a figure");
        assert_eq!(figure.spec()["layer"][0]["encoding"]["x"]["sort"], json!(["0", "16", "unlimited"]));
        assert_eq!(figure.spec()["datasets"]["rows"][0], json!({ "wq_threshold": "unlimited", "energy_j": 1.5 }));
        assert_eq!(figure.notes(), ["1 of 4 rows lack a value and are left out"]);
    }
}
