//! Pareto fronts over the cloud of all points.

use std::collections::HashSet;

use powersweep_dataset::best::unbeaten;
use powersweep_dataset::{Column, Frame};
use serde_json::{Value, json};

use super::axes::Axes;
use super::bars::{merged, with};
use super::code::{Code, has_interval};
use super::limits::Limits;
use super::scales::{self, extent};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;
use crate::rows::numeric;

/// Name of the column that the figure adds.
const FRONT: &str = "on_front";
/// Dots of a printed figure for each px: of points of one colour on one dot, one is drawn.
const DOTS_PER_PX: f64 = 2.0;

/// Which values of a column are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Small ones.
    Lower,
    /// Great ones.
    Higher,
}

impl Better {
    /// The value as a cost: smaller is better.
    fn cost(self, value: f64) -> f64 {
        match self {
            Better::Lower => value,
            Better::Higher => -value,
        }
    }
}

/// A point for each row, and the line of the rows that no other row beats in both columns; in each panel its own. `colour`
/// tells rows apart by colour and shape. The rows of the front have crosses of their intervals.
pub fn pareto(table: &Frame, axes: &Axes, better: (Better, Better), look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.x, &axes.y], &[])?;
    let (x, y) = (numeric(&rows, &axes.x)?, numeric(&rows, &axes.y)?);
    let costs = |row: &usize| Some([better.0.cost(x.number(*row)?), better.1.cost(y.number(*row)?)]);
    let mut on_front = vec![false; rows.rows()];
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        let points: Vec<[f64; 2]> = in_panel.iter().filter_map(costs).collect();
        unbeaten(&points).into_iter().for_each(|at| on_front[in_panel[at]] = true);
    }
    let mut all = rows.clone();
    all.push(Column::texts(FRONT, "", on_front.iter().map(|is_on| if *is_on { "yes" } else { "no" })));
    let kept = seen(&rows, axes, &on_front, look)?;
    let left_out = all.rows() - kept.len();
    let mut drawn = all.picked(&kept);
    let intervals: Vec<&(String, String)> = axes.interval_x.iter().chain(&axes.interval).collect();
    let ends = intervals.iter().flat_map(|(low, high)| [low.as_str(), high]);
    let joined = axes.joined.iter().flat_map(|(path, place)| [path.as_str(), place]);
    let names = [axes.x.as_str(), &axes.y, FRONT].into_iter().chain(axes.names()).chain(ends).chain(joined);
    let names: Vec<&str> = names.collect();
    drawn.keep(&names);
    let code = Code::of(&drawn, axes, look)?;
    let limits = Limits::of(&drawn, axes, false)?;
    let at = json!({
        "x": scales::number(&x, limits.x),
        "y": scales::number(&y, limits.y),
    });
    let only_front = json!([{ "filter": format!("datum.{FRONT} === 'yes'") }]);
    let (mut cloud, mut best) = (at.clone(), at.clone());
    let opacity = if drawn.rows() > 300 { 0.45 } else { 0.6 };
    let mut cloud_mark = json!({ "type": "point", "filled": true, "size": 18, "opacity": 1, "fillOpacity": opacity });
    let mut best_mark =
        json!({ "type": "point", "filled": true, "size": 36, "opacity": 1, "stroke": "black", "strokeWidth": 0.8 });
    match &code {
        Some(code) => [&mut cloud, &mut best].into_iter().for_each(|encoding| code.points(encoding)),
        None => {
            cloud_mark["color"] = json!("#888888");
            best_mark["color"] = json!(look.colour(0));
        }
    }
    // Between two rows of the front, the best attained y is that of the row with the worse x.
    let interpolate = if better.0 == Better::Lower { "step-after" } else { "step-before" };
    let line = json!({ "type": "line", "interpolate": interpolate, "color": "black", "strokeWidth": 1 });
    let mut layers = Vec::new();
    if let Some((path, place)) = &axes.joined {
        let order = json!({ "field": escaped(place), "type": "quantitative" });
        let detail = json!({ "field": escaped(path), "type": "nominal" });
        let mut thread = with(&at, &[("order", order), ("detail", detail)]);
        if let Some(code) = &code {
            code.bands(&mut thread);
            // The points have the legend.
            thread["color"]["legend"] = cloud["color"]["legend"].clone();
        }
        let mark = json!({ "type": "line", "strokeWidth": 0.8, "strokeOpacity": 0.7, "color": "#888888" });
        layers.push(json!({ "mark": mark, "encoding": thread }));
    }
    layers.push(json!({ "mark": cloud_mark, "encoding": cloud }));
    layers.extend(axes.interval_x.iter().map(|interval| bar(&at, ("x", "x2"), interval)));
    layers.extend(axes.interval.iter().map(|interval| bar(&at, ("y", "y2"), interval)));
    layers.push(json!({ "transform": only_front, "mark": line, "encoding": with(&at, &[]) }));
    layers.push(json!({ "transform": only_front, "mark": best_mark, "encoding": best }));
    let mut content = Content::limited(drawn, layers, axes, limits);
    if left_out > 0 {
        content.notes.push(format!("{left_out} of {} points are covered by others and left out", all.rows()));
    }
    content.figure(look)
}

/// The intervals of the rows of the front along an axis.
fn bar(at: &Value, (from, to): (&str, &str), interval: &(String, String)) -> Value {
    let low = merged(at[from].clone(), json!({ "field": escaped(&interval.0) }));
    let encoding = with(at, &[(from, low), (to, json!({ "field": escaped(&interval.1) }))]);
    let mut filters = json!([{ "filter": format!("datum.{FRONT} === 'yes'") }]);
    let valid = has_interval(interval);
    filters.as_array_mut().into_iter().for_each(|list| list.extend(valid.as_array().into_iter().flatten().cloned()));
    json!({ "transform": filters, "mark": { "type": "rule", "strokeWidth": 0.6, "color": "#aaaaaa" }, "encoding": encoding })
}

/// The rows of the front, and of the others one for each dot and colour.
fn seen(rows: &Frame, axes: &Axes, on_front: &[bool], look: &Look) -> Result<Vec<usize>> {
    let dots = |column: &Column, is_log: bool, px: f64| {
        let scaled = move |value: f64| if is_log { value.log10() } else { value };
        let (low, high) = extent(column.finite().map(scaled).filter(|v| v.is_finite())).unwrap_or((0.0, 1.0));
        let span = (high - low).max(f64::MIN_POSITIVE);
        move |value: f64| ((scaled(value) - low) / span * px * DOTS_PER_PX) as i64
    };
    let (x, y) = (rows.column(&axes.x)?, rows.column(&axes.y)?);
    let (across, up) = (dots(&x, axes.log_x, look.width.px()), dots(&y, axes.log_y, look.width.height_px()));
    let names = axes.names().into_iter().map(|name| rows.column(name)).collect::<Result<Vec<_>>>()?;
    let mut taken = HashSet::new();
    let mut kept = Vec::new();
    for (row, is_on_front) in on_front.iter().enumerate() {
        let (Some(at_x), Some(at_y)) = (x.number(row), y.number(row)) else { continue };
        let texts: Vec<String> = names.iter().map(|column| column.text(row)).collect();
        let is_new = taken.insert((across(at_x), up(at_y), texts));
        if is_new || *is_on_front {
            kept.push(row);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    fn on_front(better: (Better, Better)) -> Vec<String> {
        let table = Frame::of([
            Column::numbers("energy_j", "energy", "J", [1.0, 2.0, 3.0, 2.0, 4.0, 1.0]),
            Column::numbers("wait_s", "wait", "s", [9.0, 4.0, 4.0, 6.0, 1.0, 9.0]),
        ]);
        let figure =
            pareto(&table, &Axes::of("energy_j", "wait_s"), better, &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").clone();
        let shown = |row: &serde_json::Value| format!("{},{}", row["energy_j"], row["wait_s"]);
        rows.iter().filter(|row| row[FRONT] == "yes").map(shown).collect()
    }

    #[test]
    fn the_front_has_the_rows_that_no_other_row_beats() {
        assert_eq!(on_front((Better::Lower, Better::Lower)), ["1.0,9.0", "2.0,4.0", "4.0,1.0", "1.0,9.0"]);
        assert_eq!(on_front((Better::Lower, Better::Higher)), ["1.0,9.0", "1.0,9.0"]);
        assert_eq!(on_front((Better::Higher, Better::Lower)), ["4.0,1.0"]);
    }

    #[test]
    fn the_front_has_its_intervals() {
        let table = Frame::of([
            Column::numbers("energy_j", "energy", "J", [1.0, 2.0]),
            Column::numbers("wait_s", "wait", "s", [9.0, 4.0]),
            Column::numbers("wait_s_low", "wait", "s", [8.0, f64::NAN]),
            Column::numbers("wait_s_high", "wait", "s", [10.0, f64::NAN]),
        ]);
        let interval = Some(("wait_s_low".to_owned(), "wait_s_high".to_owned()));
        let axes = Axes { interval, ..Axes::of("energy_j", "wait_s") };
        let figure = pareto(&table, &axes, (Better::Lower, Better::Lower), &Look::of(Width::Column)).expect("a figure");
        let bar = &figure.spec()["layer"][1];
        assert_eq!((&bar["mark"]["type"], &bar["encoding"]["y2"]["field"]), (&json!("rule"), &json!("wait_s_high")));
        assert_eq!(bar["transform"].as_array().map(Vec::len), Some(2));
        assert!(String::from_utf8(figure.csv().expect("rows")).expect("text").contains("1,9,yes,8,10"));
    }

    #[test]
    fn points_of_a_path_are_joined_in_the_order_of_their_places() {
        let table = Frame::of([
            Column::numbers("energy_j", "energy", "J", [1.0, 2.0, 3.0]),
            Column::numbers("wait_s", "wait", "s", [9.0, 4.0, 5.0]),
            Column::texts("path", "", ["easy", "easy", "easy"]),
            Column::numbers("bsld_threshold", "", "", [1.0, 3.0, 2.0]),
        ]);
        let joined = Some(("path".to_owned(), "bsld_threshold".to_owned()));
        let axes = Axes { joined, ..Axes::of("energy_j", "wait_s") };
        let figure = pareto(&table, &axes, (Better::Lower, Better::Lower), &Look::of(Width::Column)).expect("a figure");
        let thread = &figure.spec()["layer"][0];
        assert_eq!((&thread["mark"]["type"], &thread["encoding"]["detail"]["field"]), (&json!("line"), &json!("path")));
        assert_eq!(thread["encoding"]["order"]["field"], "bsld_threshold");
    }

    #[test]
    fn points_on_one_dot_are_drawn_once() {
        let many = |value: f64| std::iter::repeat_n(value, 500).chain([0.0, 100.0]);
        let table = Frame::of([
            Column::numbers("energy_j", "energy", "J", many(50.0)),
            Column::numbers("wait_s", "wait", "s", many(50.0)),
        ]);
        let figure =
            pareto(&table, &Axes::of("energy_j", "wait_s"), (Better::Lower, Better::Lower), &Look::of(Width::Page));
        let figure = figure.expect("a figure");
        assert_eq!(figure.datasets()[0].1.rows(), 3);
        assert_eq!(figure.notes(), ["499 of 502 points are covered by others and left out"]);
    }
}
