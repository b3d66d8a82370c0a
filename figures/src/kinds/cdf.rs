//! Distribution functions.

use std::collections::BTreeMap;

use powersweep_dataset::{Column, Frame};
use serde_json::json;

use super::axes::Axes;
use super::bars::{band, with};
use super::code::Code;
use super::limits::{at_edge, to_edge};
use super::replicates::{By, Numbered};
use super::scales::{self, Scale, extent};
use crate::Result;
use crate::figure::{Content, Figure};
use crate::look::Look;
use crate::rows::{empty, numeric};
use crate::thin;

/// Names of the columns that the figure adds: the share, and the ends of its interval.
const SHARE: &str = "share";
const LOW: &str = "share_low";
const HIGH: &str = "share_high";

/// A point of a line.
struct Point {
    /// A row of the line.
    row: usize,
    value: f64,
    share: f64,
    half_width: Option<f64>,
}

/// The share of rows whose `x` is at most a value, one line for each value of `colour`. A row is one observation; `y` has the
/// title of the share, such as "share of jobs". On a logarithmic axis a line begins with the share of the values that are
/// not positive, which are drawn at the edge. With `replicates` a line has a band: the pointwise interval of the share.
pub fn cdf(table: &Frame, axes: &Axes, replicates: Option<By<'_>>, look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.x], &[])?;
    let numbered = replicates.map(|by| Numbered::of(&rows, by)).transpose()?;
    let x = numeric(&rows, &axes.x)?;
    let (low, high) = domain(&x, axes.log_x)?;
    let (width, height) = (look.width.px(), look.width.height_px());
    let at = |value: f64| match axes.log_x {
        true => (value.max(low).log10() - low.log10()) / (high.log10() - low.log10()).max(1e-9) * width,
        false => (value - low) / (high - low).max(f64::MIN_POSITIVE) * width,
    };
    let mut points: Vec<Point> = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        for (_, in_line) in rows.picked(&in_panel).groups(axes.colour.as_deref())? {
            let in_line: Vec<usize> = in_line.into_iter().map(|row| in_panel[row]).collect();
            let Some(first) = in_line.first() else { continue };
            let mut sorted: Vec<f64> = in_line.iter().filter_map(|row| x.number(*row)).collect();
            sorted.sort_by(f64::total_cmp);
            let band = numbered.as_ref().map(|numbered| Band::of(numbered, &in_line, &x));
            let is_before = |value: &f64| *value < low || (axes.log_x && *value <= low);
            let before = sorted.partition_point(is_before);
            let half_width = band.as_ref().and_then(|band| band.half_width(is_before));
            let value = before.checked_sub(1).map_or(low, |last| sorted[last]);
            points.push(Point { row: *first, value, share: before as f64 / sorted.len() as f64, half_width });
            for (value, share) in thin::distribution(&sorted, at, height) {
                if !axes.log_x || value > low {
                    let half_width = band.as_ref().and_then(|band| band.half_width(|other| *other <= value));
                    points.push(Point { row: *first, value, share, half_width });
                }
            }
            let half_width = band.as_ref().and_then(|band| band.half_width(|_| true));
            points.push(Point { row: *first, value: high, share: 1.0, half_width });
        }
    }
    let (drawn, has_band) = drawn(&rows, axes, &points)?;
    let code = Code::of(&drawn, axes, look)?;
    let scale = Scale { is_log: axes.log_x, domain: Some((low, high)), ..Scale::default() }.free_in(axes, "x");
    let unit = Scale { domain: Some((0.0, 1.0)), ..Scale::default() };
    // A step function is drawn in the order of its rows: several rows may have one abscissa.
    let at = json!({ "x": scales::number(&drawn.column(&axes.x)?, scale), "order": null });
    let share = scales::number(&drawn.column(SHARE)?, unit);
    let mut layers = Vec::new();
    if has_band {
        let interval = (LOW.to_owned(), HIGH.to_owned());
        let steps = json!({ "interpolate": "step-after", "clip": true });
        layers.push(band(&at, &share, &interval, (code.as_ref(), look), steps));
    }
    let mut line = with(&at, &[("y", share)]);
    let mut mark = json!({ "type": "line", "interpolate": "step-after", "color": look.colour(0), "clip": true });
    if let Some(code) = &code {
        code.lines(&mut line);
        mark.as_object_mut().expect("an object").remove("color");
    }
    layers.push(json!({ "mark": mark, "encoding": line }));
    let outside = x.finite().filter(|value| axes.log_x && *value < low).count();
    let transform = if outside > 0 { vec![to_edge(x.name(), &format!("{low:e}"))] } else { Vec::new() };
    let notes = at_edge(&x, outside, ["value", "values"]).into_iter().collect();
    let content = Content { free: axes.free(), transform, notes, ..Content::new(drawn, layers, axes.facet.as_deref()) };
    content.without(table, &rows, "a finite value").figure(look)
}

/// The table of the points, and whether it has intervals.
fn drawn(rows: &Frame, axes: &Axes, points: &[Point]) -> Result<(Frame, bool)> {
    let x = numeric(rows, &axes.x)?;
    let mut drawn = rows.picked(&points.iter().map(|point| point.row).collect::<Vec<_>>());
    drawn.push(x.with_numbers(points.iter().map(|point| point.value)));
    let title = if axes.y.is_empty() { "share" } else { &axes.y };
    let mut add = |name: &str, of: &dyn Fn(&Point) -> Option<f64>| {
        drawn.push(Column::numbers(name, title, "", points.iter().map(of)));
    };
    add(SHARE, &|point| Some(point.share));
    let mut kept = vec![axes.x.as_str(), SHARE];
    let has_band = points.iter().any(|point| point.half_width.is_some());
    if has_band {
        add(LOW, &|point| Some((point.share - point.half_width?).max(0.0)));
        add(HIGH, &|point| Some((point.share + point.half_width?).min(1.0)));
        kept.extend([LOW, HIGH]);
    }
    drawn.keep(&kept.into_iter().chain(axes.names()).collect::<Vec<_>>());
    Ok((drawn, has_band))
}

/// The values of a line by replicate.
struct Band<'a> {
    numbered: &'a Numbered,
    /// Sorted values of each replicate that has any.
    values: Vec<Vec<f64>>,
}

impl Band<'_> {
    fn of<'a>(numbered: &'a Numbered, rows: &[usize], x: &Column) -> Band<'a> {
        let mut by_number: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for row in rows {
            by_number.entry(numbered.number(*row)).or_default().extend(x.number(*row));
        }
        let mut values: Vec<Vec<f64>> = by_number.into_values().collect();
        values.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
        Band { numbered, values }
    }

    /// Half the width of the interval of the share of values that satisfy a condition, which the least values satisfy.
    fn half_width(&self, condition: impl Fn(&f64) -> bool) -> Option<f64> {
        let part = |values: &Vec<f64>| (values.partition_point(&condition) as f64, values.len() as f64);
        self.numbered.half_width(&self.values.iter().map(part).collect::<Vec<_>>())
    }
}

/// The abscissas that are shown: on a logarithmic axis from the power of ten below the least positive value.
fn domain(x: &Column, is_log: bool) -> Result<(f64, f64)> {
    let shown = extent(x.finite().filter(|value| !is_log || *value > 0.0));
    let none = || empty(format!("`{}` has no positive value, and its axis is logarithmic", x.name()));
    let (low, high) = shown.ok_or_else(none)?;
    let low = if is_log { 10f64.powf(low.log10().floor()) } else { low };
    Ok(if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) })
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::replicates::Method;

    use super::*;
    use crate::Width;

    fn drawn(waits: &[f64], log_x: bool) -> serde_json::Value {
        let table = Frame::of([Column::numbers("wait_s", "wait", "s", waits.iter().copied())]);
        let axes = Axes { log_x, ..Axes::of("wait_s", "share of jobs") };
        cdf(&table, &axes, None, &Look::of(Width::Column)).expect("a figure").spec()["datasets"]["rows"].clone()
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
        assert_eq!(drawn(&[0.0, 0.0, 0.0, 250.0], true), json!([row(0.0, 0.75), row(250.0, 1.0), row(250.0, 1.0)]));
        let table = Frame::of([Column::numbers("wait_s", "wait", "s", [0.0, 0.0, 250.0])]);
        let axes = Axes { log_x: true, ..Axes::of("wait_s", "share of jobs") };
        let figure = cdf(&table, &axes, None, &Look::of(Width::Column)).expect("a figure");
        assert!(figure.notes()[0].starts_with("wait: 2 values at the edge of the logarithmic axis"));
        assert_eq!(
            figure.spec()["transform"][0]["calculate"],
            "isValid(datum['wait_s']) ? max(datum[\"wait_s\"], 1e2) : null"
        );
    }

    /// Shares of three seeds up to 10 s: 0.4, 0.5 and 0.6, with the error 0.1 / sqrt(3); t(0.95; 2) = 4.302653.
    #[test]
    fn a_band_is_over_replicates() {
        let rows = [4, 5, 6]
            .into_iter()
            .enumerate()
            .flat_map(|(seed, short)| (0..10).map(move |job| (seed as f64, if job < short { 10.0 } else { 20.0 })));
        let (seeds, waits): (Vec<f64>, Vec<f64>) = rows.unzip();
        let table =
            Frame::of([Column::numbers("wait_s", "wait", "s", waits), Column::numbers("seed", "seed", "", seeds)]);
        let figure = cdf(&table, &Axes::of("wait_s", ""), Some(("seed", Method::T(95))), &Look::of(Width::Column))
            .expect("a figure");
        let row = |share: f64| json!({ "wait_s": 20.0, "share": share, "share_low": share, "share_high": share });
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").clone();
        let number = |name: &str| rows[1][name].as_f64().expect("a number");
        let half = 4.302_652_73 * 0.1 / 3f64.sqrt();
        assert!((number("share") - 0.5).abs() < 1e-12 && (number("share_high") - 0.5 - half).abs() < 1e-8);
        assert!((0.5 - number("share_low") - half).abs() < 1e-8);
        assert_eq!(rows[2..], [row(1.0), row(1.0)]);
        assert_eq!(figure.spec()["layer"][0]["mark"]["type"], "area");
    }

    #[test]
    fn many_observations_need_no_more_points_than_a_drawing_shows() {
        let waits: Vec<f64> = (0..200_000).map(|i| f64::from((i * 7_919) % 200_000)).collect();
        let points = drawn(&waits, false).as_array().map_or(0, Vec::len);
        assert!((300..1_500).contains(&points), "{points} points");
    }
}
