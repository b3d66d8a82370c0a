//! Parallel coordinates: one line through all columns for each row.

use powersweep_dataset::titles::labelled;
use powersweep_dataset::{Cell, Column, Frame};
use serde_json::{Value, json};

use super::axes::Axes;
use super::code::{Code, few, is_ordered};
use super::scales::{extent, magnitude};
use crate::Result;
use crate::figure::{Content, Figure};
use crate::font::{self, SIZE_PX};
use crate::labels;
use crate::look::Look;
use crate::rows::empty;

/// Rows that are drawn as one path. Paths of single rows take several times as long; their colours would add up where they
/// cross, those within a path do not.
const ROWS_OF_A_PATH: usize = 5;
/// Number of columns.
const COLUMNS_MAX: usize = 12;
/// Number of different names on an axis.
const NAMES_MAX: usize = 12;
/// Place of the greatest number on an axis that has "unlimited" at its end.
const GREATEST_BELOW_UNLIMITED: f64 = 0.85;
/// Number of rows.
const ROWS_MAX: usize = 20_000;

/// A line for each row through its values in `columns`, each on its own axis from the least to the greatest value, with
/// "unlimited" above it. Rows without a value in one of them are not drawn; `colour` tells rows apart by colour and dash.
pub fn parallel(table: &Frame, columns: &[String], colour: Option<&str>, look: &Look) -> Result<Figure> {
    let axes = Axes { colour: colour.map(str::to_owned), ..Axes::default() };
    if !(2..=COLUMNS_MAX).contains(&columns.len()) {
        return Err(empty(format!("parallel coordinates need 2 to {COLUMNS_MAX} columns")));
    }
    for name in columns {
        table.column(name)?;
    }
    let numbers = columns.iter().filter_map(|name| table.column(name).ok()).filter(is_ordered).collect::<Vec<_>>();
    let has_place = |row: usize| numbers.iter().all(|of| of.number(row).is_some() || of.is_unlimited(row));
    let kept = table.kept(has_place);
    if kept.rows() == 0 {
        return Err(empty(format!("no row has a value in each of {}", columns.join(", "))));
    }
    let rows = axes.rows(&kept, &[], &[])?;
    let names: Vec<Column> = columns.iter().map(|name| rows.column(name)).collect::<Result<_>>()?;
    if rows.rows() > ROWS_MAX {
        return Err(empty(format!("{} rows are more than {ROWS_MAX}: choose some", rows.rows())));
    }
    let slot_px = look.width.px() / columns.len() as f64;
    let scales: Vec<Coordinate> = names.iter().map(|column| Coordinate::of(column, slot_px)).collect::<Result<_>>()?;
    let drawn = paths(&rows, &names, &scales, colour)?;
    let code = Code::of(&drawn, &axes, look)?;
    let titles: Vec<&str> = scales.iter().map(|scale| scale.title.as_str()).collect();
    let ends = ends(&scales);
    let x = json!({
        "field": "column", "type": "ordinal", "sort": titles,
        "axis": { "title": null, "labelAngle": 0, "labelExpr": "split(datum.label, '\\n')", "domain": false, "ticks": false,
                  "labelPadding": 14, "orient": "bottom", "grid": true, "gridColor": "#444444", "gridWidth": 0.6 },
        "scale": { "type": "point", "padding": 0.45 },
    });
    let y = json!({ "field": "position", "type": "quantitative", "axis": null, "scale": { "domain": [0, 1], "nice": false } });
    let opacity = match rows.rows() {
        0..=50 => 0.9,
        51..=300 => 0.5,
        301..=1000 => 0.25,
        _ => 0.12,
    };
    let mut line = json!({
        "x": x, "y": y, "order": { "field": "order", "type": "quantitative" },
        "detail": { "field": "path", "type": "nominal" },
    });
    let mut mark = json!({ "type": "line", "strokeWidth": 0.6, "strokeOpacity": opacity, "color": look.colour(0) });
    if let Some(code) = &code {
        code.lines(&mut line);
        mark.as_object_mut().expect("an object").remove("color");
        // Between the legend and the axes are texts.
        for channel in ["color", "strokeDash"] {
            line[channel]["legend"]["offset"] = json!(20);
        }
    }
    let layers = vec![json!({ "mark": mark, "encoding": line }), text(&x, &y, true), text(&x, &y, false)];
    let mut content = Content::new(drawn, layers, None);
    content.datasets.push(("ends".to_owned(), ends));
    content.beside.insert("view".to_owned(), json!({ "stroke": null }));
    content.without(table, &rows, "a value").figure(look)
}

/// The texts at the values of the axes, or the white border that sets them off the lines.
fn text(x: &Value, y: &Value, is_border: bool) -> Value {
    let mut mark = json!({ "type": "text", "fontSize": SIZE_PX - 1.5, "dy": { "expr": "datum.position === 1 ? -7 : datum.position === 0 ? 8 : 0" } });
    if is_border {
        crate::look::merge(
            &mut mark,
            &json!({ "stroke": "white", "strokeWidth": 3, "strokeJoin": "round", "color": "white" }),
        );
    }
    let shown = json!({ "field": "written", "type": "nominal" });
    json!({ "data": { "name": "ends" }, "mark": mark, "encoding": { "x": x, "y": y, "text": shown } })
}

/// The axis of one column.
struct Coordinate {
    title: String,
    /// The places with a text, from 0 to 1.
    ends: Vec<(f64, String)>,
    scale: Scaled,
}

enum Scaled {
    /// Numbers, the greatest of which has the place `top`.
    Numbers {
        low: f64,
        high: f64,
        top: f64,
        /// Of the unit in the title.
        divisor: f64,
    },
    Names(Vec<String>),
}

impl Coordinate {
    fn of(column: &Column, slot_px: f64) -> Result<Coordinate> {
        let label = |unit: &str| wrapped(&labelled(column.title(), unit), slot_px - 6.0);
        if let Some((low, high)) = extent(column.finite()) {
            let (divisor, unit) = magnitude(column.unit(), low.abs().max(high.abs()));
            let is_bounded = (0..column.len()).all(|row| !column.is_unlimited(row));
            let top = if is_bounded { 1.0 } else { GREATEST_BELOW_UNLIMITED };
            let mut ends = match low == high {
                true => vec![(top / 2.0, short(low / divisor))],
                false => vec![(0.0, short(low / divisor)), (top, short(high / divisor))],
            };
            ends.extend((!is_bounded).then(|| (1.0, "unlimited".to_owned())));
            return Ok(Coordinate { title: label(&unit), ends, scale: Scaled::Numbers { low, high, top, divisor } });
        }
        let levels = few(column, NAMES_MAX)?;
        // The first and the last axis have a bit less than half of a slot on their outer side.
        let shown = labels::shortened(&levels, 0.85 * slot_px);
        let ends = shown.into_iter().enumerate().map(|(at, level)| (spread(at, levels.len()), level)).collect();
        Ok(Coordinate { title: label(""), ends, scale: Scaled::Names(levels) })
    }

    fn position(&self, column: &Column, row: usize) -> Option<f64> {
        match &self.scale {
            Scaled::Numbers { .. } if column.is_unlimited(row) => Some(1.0),
            Scaled::Numbers { low, high, top, .. } if low == high => Some(top / 2.0),
            Scaled::Numbers { low, high, top, .. } => {
                column.number(row).map(|value| (value - low) / (high - low) * top)
            }
            Scaled::Names(levels) => {
                let text = column.text(row);
                levels.iter().position(|level| *level == text).map(|at| spread(at, levels.len()))
            }
        }
    }

    /// The value of a row, in the unit of the title.
    fn value(&self, column: &Column, row: usize) -> String {
        match (&self.scale, column.number(row)) {
            (Scaled::Numbers { divisor, .. }, Some(value)) if *divisor != 1.0 => Cell::Real(value / divisor).exact(),
            _ => column.text(row),
        }
    }
}

/// The place of a name among some, from 0 to 1.
fn spread(at: usize, count: usize) -> f64 {
    if count < 2 { 0.5 } else { at as f64 / (count - 1) as f64 }
}

/// A number with at most four digits.
fn short(value: f64) -> String {
    let digits = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A text in lines of at most this width (px), as far as words allow.
fn wrapped(text: &str, width_px: f64) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if font::width(&format!("{line} {word}"), SIZE_PX, false) <= width_px => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// The points of the lines: the rows of a path follow each other, with a gap after each.
fn paths(rows: &Frame, names: &[Column], scales: &[Coordinate], colour: Option<&str>) -> Result<Frame> {
    let mut points: Vec<(usize, usize, Option<f64>)> = Vec::new();
    let mut paths = Vec::new();
    let groups = rows.groups(colour)?;
    let longest = groups.iter().map(|(_, rows)| rows.len()).max().unwrap_or_default();
    // Colours take turns, so that none of them covers the others.
    let turns = (0..longest).step_by(ROWS_OF_A_PATH);
    let chunks = turns.flat_map(|at| groups.iter().filter_map(move |(_, rows)| rows.get(at..)));
    for (path, of_path) in (0..).zip(chunks.filter(|rest| !rest.is_empty())) {
        for row in &of_path[..of_path.len().min(ROWS_OF_A_PATH)] {
            for (at, (column, scale)) in names.iter().zip(scales).enumerate() {
                points.push((*row, at, scale.position(column, *row)));
            }
            points.push((*row, names.len() - 1, None));
        }
        paths.resize(points.len(), path);
    }
    let value =
        |(row, at, position): &(usize, usize, Option<f64>)| position.map(|_| scales[*at].value(&names[*at], *row));
    let mut drawn = Frame::of([
        Column::numbers("path", "", "", paths.iter().map(|path| f64::from(*path))),
        Column::numbers("order", "", "", (0..points.len()).map(|order| order as f64)),
        Column::texts("column", "", points.iter().map(|(_, at, _)| scales[*at].title.clone())),
        Column::optional_texts("value", "", points.iter().map(value)),
        Column::numbers("position", "", "", points.iter().map(|point| point.2)),
    ]);
    if let Some(colour) = colour {
        let rows = rows.picked(&points.iter().map(|(row, ..)| *row).collect::<Vec<_>>());
        drawn.push(rows.column(colour)?);
    }
    Ok(drawn)
}

/// The texts of the axes.
fn ends(scales: &[Coordinate]) -> Frame {
    let all = || scales.iter().flat_map(|scale| scale.ends.iter().map(move |end| (scale, end)));
    Frame::of([
        Column::texts("column", "", all().map(|(scale, _)| scale.title.clone())),
        Column::numbers("position", "", "", all().map(|(_, end)| end.0)),
        Column::texts("written", "", all().map(|(_, end)| end.1.clone())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    #[test]
    fn each_row_is_a_line_from_the_least_to_the_greatest_value_of_each_column() {
        let table = Frame::of([
            Column::numbers("energy_j", "energy", "J", [2e6, 1e6]),
            Column::texts("policy", "policy", ["easy", "fcfs"]),
        ]);
        let columns = ["energy_j".to_owned(), "policy".to_owned()];
        let figure = parallel(&table, &columns, None, &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").iter();
        let points: Vec<Value> = rows.map(|row| json!([row["column"], row["value"], row["position"]])).collect();
        assert_eq!(
            json!(points),
            json!([
                ["energy (MJ)", "2", 1.0],
                ["policy", "easy", 0.0],
                ["policy", null, null],
                ["energy (MJ)", "1", 0.0],
                ["policy", "fcfs", 1.0],
                ["policy", null, null],
            ])
        );
        assert_eq!(
            figure.spec()["datasets"]["ends"][1],
            json!({ "column": "energy (MJ)", "position": 1.0, "written": "2" })
        );
    }

    #[test]
    fn long_names_are_shortened_on_the_axis_alone() {
        let names = ["easy-with-shortest-first", "conservative-fcfs"];
        let table = Frame::of([
            Column::texts("platform", "platform", ["big-machine-of-next-year", "machine-of-this-year"]),
            Column::texts("policy", "policy", names),
            Column::numbers("energy_j", "energy", "J", [2e6, 1e6]),
        ]);
        let columns = ["platform", "policy", "energy_j"].map(str::to_owned);
        let look = Look::of(Width::Column);
        let figure = parallel(&table, &columns, None, &look).expect("a figure");
        for end in figure.spec()["datasets"]["ends"].as_array().expect("the texts") {
            let written = end["written"].as_str().expect("a text");
            assert!(font::width(written, SIZE_PX, false) < look.width.px() / 3.0, "{written}");
        }
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["value"] == names[0]), "{rows:?}");
    }

    #[test]
    fn unlimited_is_at_the_end_of_its_axis() {
        let table = Frame::of([
            Column::numbers("cap_w", "cap", "W", [Some(70.0), Some(90.0), Some(f64::INFINITY), None]),
            Column::numbers("wait_s", "wait", "s", [1.0, 2.0, 3.0, 4.0]),
        ]);
        let columns = ["cap_w".to_owned(), "wait_s".to_owned()];
        let figure = parallel(&table, &columns, None, &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").iter();
        let caps = rows.filter(|row| row["column"] == "cap (W)").map(|row| json!([row["value"], row["position"]]));
        assert_eq!(Value::from_iter(caps), json!([["70", 0.0], ["90", 0.85], ["unlimited", 1.0]]));
        assert_eq!(figure.spec()["datasets"]["ends"][2]["written"], "unlimited");
        assert_eq!(figure.notes(), ["1 of 4 rows lack a value and are left out: wait_s=4"]);
    }

    #[test]
    fn titles_are_wrapped_and_numbers_short() {
        assert_eq!(wrapped("mean bounded slowdown", 60.0), "mean\nbounded\nslowdown");
        assert_eq!((short(1234.56), short(0.5), short(12.0)), ("1235".to_owned(), "0.5".to_owned(), "12".to_owned()));
    }
}
