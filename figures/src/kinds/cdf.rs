//! Distribution functions.

use serde_json::json;

use super::axes::Axes;
use super::code::Code;
use super::scales::{self, Scale, extent};
use crate::error::{FigureError, Result};
use crate::figure::{Content, Figure};
use crate::look::Look;
use crate::table::{Column, Table, Values};
use crate::thin;

/// Name of the column that the figure adds.
const SHARE: &str = "share";

/// The share of rows whose `x` is at most a value, one line for each value of `colour`. A row is one observation; `y` has the
/// title of the share, such as "share of jobs". On a logarithmic axis a line begins with the share of the values that are
/// not positive.
pub fn cdf(table: &Table, axes: &Axes, look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.x], &[])?;
    let x = rows.numeric(&axes.x)?;
    let (low, high) = domain(x, axes.log_x)?;
    let (width, height) = (look.width.px(), look.width.height_px());
    let at = |value: f64| match axes.log_x {
        true => (value.max(low).log10() - low.log10()) / (high.log10() - low.log10()).max(1e-9) * width,
        false => (value - low) / (high - low).max(f64::MIN_POSITIVE) * width,
    };
    let mut kept: Vec<(usize, f64, f64)> = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        for (_, in_line) in rows.taken(&in_panel).groups(axes.colour.as_deref())? {
            let in_line: Vec<usize> = in_line.into_iter().map(|row| in_panel[row]).collect();
            let Some(first) = in_line.first() else { continue };
            let mut sorted: Vec<f64> = in_line.iter().filter_map(|row| x.number(*row)).collect();
            sorted.sort_by(f64::total_cmp);
            let below = sorted.partition_point(|value| *value < low || (axes.log_x && *value <= low));
            kept.push((*first, low, below as f64 / sorted.len() as f64));
            let points = thin::distribution(&sorted, at, height);
            let inside = points.into_iter().filter(|(value, _)| !axes.log_x || *value > low);
            kept.extend(inside.map(|(value, share)| (*first, value, share)));
            kept.push((*first, high, 1.0));
        }
    }
    let taken: Vec<usize> = kept.iter().map(|(row, ..)| *row).collect();
    let mut drawn = rows.taken(&taken);
    drawn.push(x.with_numbers(kept.iter().map(|(_, value, _)| Some(*value)).collect()));
    let title = if axes.y.is_empty() { "share" } else { &axes.y };
    let share = Column {
        values: Values::Numbers(kept.iter().map(|(.., share)| Some(*share)).collect()),
        ..Column::numbers(SHARE, title, "", [])
    };
    drawn.push(share);
    drawn.keep(&[&axes.x, SHARE].into_iter().chain(axes.names()).collect::<Vec<_>>());
    let code = Code::of(&drawn, axes.colour.as_ref(), look)?;
    let scale = Scale { is_log: axes.log_x, domain: Some((low, high)), ..Scale::default() };
    let unit = Scale { domain: Some((0.0, 1.0)), ..Scale::default() };
    let mut line =
        json!({ "x": scales::number(drawn.column(&axes.x)?, scale), "y": scales::number(drawn.column(SHARE)?, unit) });
    // A step function is drawn in the order of its rows: several rows may have one abscissa.
    line["order"] = json!(null);
    let mut mark = json!({ "type": "line", "interpolate": "step-after", "color": look.colour(0), "clip": true });
    if let Some(code) = &code {
        code.lines(&mut line);
        mark.as_object_mut().expect("an object").remove("color");
    }
    Content::new(drawn, vec![json!({ "mark": mark, "encoding": line })], axes.facet.as_deref()).figure(look)
}

/// The abscissas that are shown: on a logarithmic axis from the power of ten below the least positive value.
fn domain(x: &Column, is_log: bool) -> Result<(f64, f64)> {
    let shown = extent(x.finite().filter(|value| !is_log || *value > 0.0));
    let none = || FigureError::Empty(format!("`{}` has no positive value, and its axis is logarithmic", x.name));
    let (low, high) = shown.ok_or_else(none)?;
    let low = if is_log { 10f64.powf(low.log10().floor()) } else { low };
    Ok(if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    fn drawn(waits: &[f64], log_x: bool) -> serde_json::Value {
        let table = Table::new([Column::numbers("wait_s", "wait", "s", waits.iter().copied())]);
        let axes = Axes { log_x, ..Axes::of("wait_s", "share of jobs") };
        cdf(&table, &axes, &Look::of(Width::Column)).expect("a figure").spec()["datasets"]["rows"].clone()
    }

    #[test]
    fn a_line_begins_at_0_and_ends_at_1() {
        let row = |wait_s: f64, share: f64| json!({ "wait_s": wait_s, "share": share });
        assert_eq!(
            drawn(&[10.0, 10.0, 30.0, 20.0], false),
            json!([row(10.0, 0.0), row(10.0, 0.5), row(20.0, 0.75), row(30.0, 1.0), row(30.0, 1.0)])
        );
    }

    #[test]
    fn values_that_a_logarithm_lacks_are_where_the_line_begins() {
        let row = |wait_s: f64, share: f64| json!({ "wait_s": wait_s, "share": share });
        assert_eq!(drawn(&[0.0, 0.0, 0.0, 250.0], true), json!([row(100.0, 0.75), row(250.0, 1.0), row(250.0, 1.0)]));
    }

    #[test]
    fn many_observations_need_no_more_points_than_a_drawing_shows() {
        let waits: Vec<f64> = (0..200_000).map(|i| f64::from((i * 7_919) % 200_000)).collect();
        let points = drawn(&waits, false).as_array().map_or(0, Vec::len);
        assert!((300..1_500).contains(&points), "{points} points");
    }
}
