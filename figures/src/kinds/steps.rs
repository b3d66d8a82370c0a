//! Series over time, as step functions, with lines for caps.

use powersweep_dataset::{Column, Frame};
use serde_json::json;

use super::axes::Axes;
use super::code::Code;
use super::limits::Limits;
use super::scales::{self, Scale, extent};
use crate::Result;
use crate::figure::{Content, Figure};
use crate::look::Look;
use crate::rows::{empty, numeric};
use crate::thin;

/// Name of the column that tells the series from the caps where the caller has no colour.
const SERIES: &str = "shown";

/// Step functions of `y` over the time `x`, one for each value of `colour`; `caps` has the same columns, and its lines are
/// dashed over the others. A row is a value that holds from its instant on. The time is shown in hours or days if it is
/// long.
pub fn steps(table: &Frame, caps: Option<&Frame>, axes: &Axes, look: &Look) -> Result<Figure> {
    let mut axes = axes.clone();
    let (rows, caps) = told_apart(table, caps, &mut axes)?;
    let rows = axes.rows(&rows, &[&axes.x, &axes.y], &[])?;
    let caps = caps.map(|caps| axes.rows(&caps, &[&axes.x, &axes.y], &[])).transpose()?;
    let x = numeric(&rows, &axes.x)?;
    let none = || empty("there is no instant");
    let of_caps = caps.as_ref().map(|caps| caps.column(&axes.x)).transpose()?;
    let instants = x.finite().chain(of_caps.iter().flat_map(Column::finite));
    let (low, high) = extent(instants).map(scales::from_zero).ok_or_else(none)?;
    let high = if high > low { high } else { low + 1.0 };
    let dots = look.width.px() * 2.0;
    let names: Vec<&str> = [axes.x.as_str(), &axes.y].into_iter().chain(axes.names()).collect();
    let mut drawn = thinned(&rows, &axes, |instant| (instant - low) / (high - low) * dots)?;
    drawn.keep(&names);
    let count = Code::of(&drawn, &axes, look)?.map_or(0, |code| code.levels.len());
    if let Some(caps) = &caps {
        let mut caps = held(caps, &rows, &axes)?;
        caps.keep(&names);
        drawn.append(&caps);
    }
    let code = Code::of(&drawn, &axes, look)?;
    let limits = Limits::of(&drawn, &axes, true)?;
    let time = Scale { domain: Some((low, high)), ..Scale::default() }.free_in(&axes, "x");
    let mut line = json!({ "x": scales::number(&drawn.column(&axes.x)?, time), "y": scales::number(&drawn.column(&axes.y)?, limits.y) });
    line["order"] = json!(null);
    let mut mark = json!({ "type": "line", "interpolate": "step-after", "strokeWidth": 1, "color": look.colour(0) });
    if let Some(code) = &code {
        code.lines_and_caps(&mut line, count);
        mark.as_object_mut().expect("an object").remove("color");
    }
    let layers = vec![json!({ "mark": mark, "encoding": line })];
    Content::limited(drawn, layers, &axes, limits).figure(look)
}

/// The tables with a column that tells series from caps, where there is no colour.
fn told_apart(table: &Frame, caps: Option<&Frame>, axes: &mut Axes) -> Result<(Frame, Option<Frame>)> {
    let (mut rows, Some(mut caps)) = (table.clone(), caps.cloned()) else { return Ok((table.clone(), None)) };
    if axes.colour.is_none() {
        let name = |table: &Frame, title: &str| Column::texts(SERIES, "", vec![title; table.rows()]);
        rows.push(name(&rows, table.column(&axes.y)?.title()));
        caps.push(name(&caps, caps.column(&axes.y)?.title()));
        axes.colour = Some(SERIES.to_owned());
    }
    Ok((rows, Some(caps)))
}

/// The caps, each held until the last instant of the series in its panel.
fn held(caps: &Frame, rows: &Frame, axes: &Axes) -> Result<Frame> {
    let (x, of_caps) = (numeric(rows, &axes.x)?, numeric(caps, &axes.x)?);
    let panels = rows.groups(axes.facet.as_deref())?;
    let mut ends: Vec<(usize, f64)> = Vec::new();
    for (panel, in_panel) in caps.groups(axes.facet.as_deref())? {
        let of_series = panels.iter().filter(|(name, _)| *name == panel).flat_map(|(_, rows)| rows);
        let Some((_, end)) = extent(of_series.filter_map(|row| x.number(*row))) else { continue };
        for (_, in_line) in caps.picked(&in_panel).groups(axes.colour.as_deref())? {
            let points = in_line.iter().filter_map(|row| Some((in_panel[*row], of_caps.number(in_panel[*row])?)));
            let last = points.max_by(|one, other| one.1.total_cmp(&other.1));
            ends.extend(last.filter(|(_, instant)| *instant < end).map(|(row, _)| (row, end)));
        }
    }
    let mut added = caps.picked(&ends.iter().map(|(row, _)| *row).collect::<Vec<_>>());
    added.push(of_caps.with_numbers(ends.iter().map(|(_, end)| *end)));
    let mut held = caps.clone();
    held.append(&added);
    Ok(held)
}

/// The rows that the drawing can show, in the order of time within each line.
fn thinned(rows: &Frame, axes: &Axes, at: impl Fn(f64) -> f64) -> Result<Frame> {
    let (x, y) = (numeric(rows, &axes.x)?, numeric(rows, &axes.y)?);
    let mut kept = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        for (_, in_line) in rows.picked(&in_panel).groups(axes.colour.as_deref())? {
            let point = |row: &usize| {
                let row = in_panel[*row];
                Some((row, (x.number(row)?, y.number(row)?)))
            };
            let mut points: Vec<(usize, (f64, f64))> = in_line.iter().filter_map(point).collect();
            points.sort_by(|one, other| one.1.0.total_cmp(&other.1.0));
            let places: Vec<(f64, f64)> = points.iter().map(|(_, place)| *place).collect();
            kept.extend(thin::steps(&places, &at).into_iter().map(|place| points[place].0));
        }
    }
    Ok(rows.picked(&kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    fn power(values: &[(f64, f64)]) -> Frame {
        Frame::of([
            Column::numbers("x", "time", "s", values.iter().map(|value| value.0)),
            Column::numbers("value", "power", "W", values.iter().map(|value| value.1)),
        ])
    }

    #[test]
    fn rows_are_in_the_order_of_time_and_caps_follow() {
        let mut caps = power(&[(0.0, 90.0), (50.0, 90.0)]);
        caps.push(caps.column("value").expect("it is there").titled("cap", "W"));
        let figure =
            steps(&power(&[(50.0, 70.0), (0.0, 80.0)]), Some(&caps), &Axes::of("x", "value"), &Look::of(Width::Column));
        let figure = figure.expect("a figure");
        let row = |x: f64, value: f64, shown: &str| json!({ "x": x, "value": value, "shown": shown });
        assert_eq!(
            figure.spec()["datasets"]["rows"],
            json!([row(0.0, 80.0, "power"), row(50.0, 70.0, "power"), row(0.0, 90.0, "cap"), row(50.0, 90.0, "cap")])
        );
        let dashes = &figure.spec()["layer"][0]["encoding"]["strokeDash"]["scale"]["range"];
        assert_eq!(dashes, &json!([[], [4, 2]]));
    }

    #[test]
    fn a_cap_holds_until_the_series_ends() {
        let caps = power(&[(0.0, 90.0), (20.0, 60.0)]);
        let series = power(&[(0.0, 80.0), (50.0, 55.0)]);
        let figure = steps(&series, Some(&caps), &Axes::of("x", "value"), &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").clone();
        let last = rows.last().expect("a row");
        assert_eq!((rows.len(), last["x"].as_f64(), last["value"].as_f64()), (5, Some(50.0), Some(60.0)));
    }

    #[test]
    fn extremes_of_many_points_are_kept() {
        let mut values: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 50.0)).collect();
        values[33_333].1 = 99.0;
        let figure = steps(&power(&values), None, &Axes::of("x", "value"), &Look::of(Width::Column)).expect("a figure");
        let drawn = &figure.datasets()[0].1;
        assert!(drawn.rows() < 3_000, "{} rows", drawn.rows());
        assert!(drawn.column("value").expect("it is there").finite().any(|value| value == 99.0));
    }
}
