//! Heat maps: how often rows fall into the cells of two columns, or the mean of a third one there.

use std::collections::BTreeMap;

use powersweep_dataset::stats::quotient;
use powersweep_dataset::{Column, Frame};
use serde_json::{Map, Value, json};

use super::axes::Axes;
use super::replicates::{By, Numbered};
use super::scales::{self, Scale, extent, plot_px};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::font::{self, SIZE_PX};
use crate::look::{Look, ORDERED};
use crate::rows::{drawable, numeric};

/// Numbers with more values than this are put into bins.
const LEVELS_MAX: usize = 24;
/// Number of bins.
const BINS: usize = 24;
/// Number of cells that have their value written in them.
const WRITTEN_MAX: usize = 120;
/// Size of the texts in cells (px).
const TEXT_PX: f64 = SIZE_PX - 1.5;
/// Distance of two lines of text in a cell (px).
const LINE_PX: f64 = TEXT_PX + 1.5;
/// Name of the column of counts.
const SHARE: &str = "share_percent";

/// Cells of `x` and `y`, coloured by the mean of `value` over the rows of the cell; without it by the share of the rows of the
/// panel that are in the cell. Columns of many numbers are put into bins of equal width. With `replicates` a cell has an
/// interval, which is written below its value where there is room.
pub fn heatmap(
    table: &Frame,
    axes: &Axes,
    value: Option<&str>,
    replicates: Option<By<'_>>,
    look: &Look,
) -> Result<Figure> {
    let numbers: Vec<&str> = value.into_iter().collect();
    let rows = match numbers.is_empty() {
        true => table.clone(),
        false => drawable(table, &numbers)?,
    };
    let rows = axes.rows(&rows, &[], &[])?;
    let (along, up) = (rows.column(&axes.x)?, rows.column(&axes.y)?);
    let (x, y) = (Cells::of(&along), Cells::of(&up));
    // Bins have no place for what is no finite number.
    let rows = rows.kept(|row| x.cell(&along, row).is_some() && y.cell(&up, row).is_some());
    let shown = match value {
        Some(value) => numeric(&rows, value)?,
        None => Column::numbers(SHARE, "share of rows", "%", [0.0; 0]),
    };
    let numbered = replicates.map(|by| Numbered::of(&rows, by)).transpose()?;
    let cells = cells(&rows, axes, (&x, &y), value.map(|_| &shown), numbered.as_ref())?;
    let mut drawn = rows.picked(&cells.iter().map(|cell| cell.row).collect::<Vec<_>>());
    drawn.keep(&[axes.x.as_str(), &axes.y].into_iter().chain(value).chain(axes.names()).collect::<Vec<_>>());
    let mut encoding = Map::new();
    let panels = rows.groups(axes.facet.as_deref())?.len();
    let plot_px = plot_px(look.width, panels) - 40.0;
    x.place("x", &mut drawn, &axes.x, cells.iter().map(|cell| cell.place.0), plot_px, &mut encoding)?;
    y.place("y", &mut drawn, &axes.y, cells.iter().map(|cell| cell.place.1), f64::INFINITY, &mut encoding)?;
    drawn.push(shown.with_numbers(cells.iter().map(|cell| cell.value)));
    if cells.iter().any(|cell| cell.half_width.is_some()) {
        let (least, most) = if value.is_some() { (f64::NEG_INFINITY, f64::INFINITY) } else { (0.0, 100.0) };
        for (name, sign) in [("low", -1.0), ("high", 1.0)] {
            let end = |cell: &Cell| Some((cell.value + sign * cell.half_width?).clamp(least, most));
            let ends = cells.iter().map(end);
            drawn.push(shown.with_numbers(ends).named(&format!("{}_{name}", shown.name())));
        }
    }
    let height_px = if axes.facet.is_some() { look.width.panel_height_px() } else { look.width.height_px() };
    let written = written(&cells, &shown, &x, &y, (plot_px, height_px));
    let mut colour = scales::colours(&drawn.column(shown.name())?, value.is_none());
    let place = json!({
        "orient": "right", "direction": "vertical", "titleOrient": "right", "gradientThickness": 8,
        "gradientLength": look.width.height_px() * if axes.facet.is_some() { 0.4 } else { 0.6 }, "titleLimit": 0,
    });
    crate::look::merge(&mut colour["legend"], &place);
    colour["scale"]["scheme"] = json!({ "name": ORDERED, "extent": [1, 0] });
    let base = Value::Object(encoding);
    let mut rect = base.clone();
    rect["color"] = colour;
    let mut layers =
        vec![json!({ "mark": { "type": "rect", "stroke": "white", "strokeWidth": 0.3 }, "encoding": rect })];
    if let Some((lines, dark_from)) = written {
        let is_dark = format!("datum['{}'] >= {dark_from:e}", shown.name());
        let first_px = -0.5 * LINE_PX * (lines.len() - 1) as f64;
        for (at, texts) in lines.into_iter().enumerate() {
            let mut text = base.clone();
            text["text"] = json!({ "field": texts.name(), "type": "nominal" });
            text["color"] = json!({ "condition": { "test": is_dark, "value": "white" }, "value": "black" });
            let mark = json!({ "type": "text", "fontSize": TEXT_PX, "dy": first_px + LINE_PX * at as f64 });
            layers.push(json!({ "mark": mark, "encoding": text }));
            drawn.push(texts);
        }
    }
    Content::new(drawn, layers, axes.facet.as_deref()).without(table, &rows, "a finite value").figure(look)
}

/// A cell with rows.
struct Cell {
    /// The first of its rows.
    row: usize,
    /// Its places along both axes.
    place: (usize, usize),
    value: f64,
    half_width: Option<f64>,
}

/// The cells with rows, panel by panel: means of `shown`, or shares of rows.
fn cells(
    rows: &Frame,
    axes: &Axes,
    (x, y): (&Cells, &Cells),
    shown: Option<&Column>,
    numbered: Option<&Numbered>,
) -> Result<Vec<Cell>> {
    let replicate = |row: usize| numbered.map_or(0, |numbered| numbered.number(row));
    let (along, up) = (rows.column(&axes.x)?, rows.column(&axes.y)?);
    let mut cells = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        let mut places: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        // Rows in any cell, by replicate.
        let mut all: BTreeMap<usize, f64> = BTreeMap::new();
        for row in in_panel {
            if let (Some(column), Some(line)) = (x.cell(&along, row), y.cell(&up, row)) {
                places.entry((column, line)).or_default().push(row);
                *all.entry(replicate(row)).or_default() += 1.0;
            }
        }
        for (place, of_cell) in places {
            // Sums and counts, by replicate.
            let mut parts: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            if shown.is_none() {
                parts.extend(all.iter().map(|(number, count)| (*number, (0.0, *count))));
            }
            for row in &of_cell {
                let part = parts.entry(replicate(*row)).or_default();
                match shown {
                    Some(shown) => *part = (part.0 + shown.number(*row).unwrap_or_default(), part.1 + 1.0),
                    None => part.0 += 100.0,
                }
            }
            let parts: Vec<(f64, f64)> = parts.into_values().collect();
            let (value, _) = quotient(parts.iter().copied());
            let half_width = numbered.and_then(|numbered| numbered.half_width(&parts));
            cells.push(Cell { row: of_cell[0], place, value, half_width });
        }
    }
    Ok(cells)
}

/// The lines of the texts in the cells, and the value from which cells are dark; `None` if values do not fit into their cells.
fn written(cells: &[Cell], shown: &Column, x: &Cells, y: &Cells, plot_px: (f64, f64)) -> Option<(Vec<Column>, f64)> {
    let (low, high) = extent(cells.iter().map(|cell| cell.value))?;
    let (divisor, _) = scales::magnitude(shown.unit(), low.abs().max(high.abs()));
    let digits = if (high.abs() / divisor) < 10.0 { 2 } else { usize::from((high.abs() / divisor) < 100.0) };
    let number = |value: f64| format!("{:.digits$}", value / divisor);
    let values: Vec<String> = cells.iter().map(|cell| number(cell.value)).collect();
    let interval = |cell: &Cell| cell.half_width.map_or_else(String::new, |half| format!("±{}", number(half)));
    let intervals: Vec<String> = cells.iter().map(interval).collect();
    let fit = |texts: &[String], lines: usize| {
        let widest = texts.iter().map(|text| font::width(text, TEXT_PX, false)).fold(0.0, f64::max);
        let (width_px, height_px) = (plot_px.0 / x.count() as f64, plot_px.1 / y.count() as f64);
        widest + 4.0 <= width_px && LINE_PX * lines as f64 + 2.0 <= height_px && texts.len() <= WRITTEN_MAX
    };
    let is_binned = matches!(x, Cells::Bins { .. }) || matches!(y, Cells::Bins { .. });
    if is_binned || !fit(&values, 1) {
        return None;
    }
    let has_intervals = intervals.iter().any(|text| !text.is_empty()) && fit(&intervals, 2);
    let lines = [("written", values)].into_iter().chain(has_intervals.then_some(("written_interval", intervals)));
    let low = if shown.name() == SHARE { 0.0 } else { low };
    Some((lines.map(|(name, texts)| Column::texts(name, "", texts)).collect(), low + (high - low) * 0.5))
}

/// The cells along one axis.
enum Cells {
    /// One for each value.
    Levels(Vec<String>),
    /// Bins of equal width from the least value on.
    Bins { low: f64, width: f64 },
}

impl Cells {
    fn of(column: &Column) -> Cells {
        let levels = column.levels();
        match extent(column.finite()) {
            Some((low, high)) if levels.len() > LEVELS_MAX && high > low => {
                Cells::Bins { low, width: (high - low) / BINS as f64 }
            }
            _ => Cells::Levels(levels),
        }
    }

    fn count(&self) -> usize {
        match self {
            Cells::Levels(levels) => levels.len(),
            Cells::Bins { .. } => BINS,
        }
    }

    fn cell(&self, column: &Column, row: usize) -> Option<usize> {
        match self {
            Cells::Levels(levels) => {
                let text = column.text(row);
                levels.iter().position(|level| *level == text)
            }
            Cells::Bins { low, width } => {
                column.number(row).map(|value| (((value - low) / width) as usize).min(BINS - 1))
            }
        }
    }

    /// Puts the places of the cells into the table, and their axis into the encoding.
    fn place(
        &self,
        channel: &str,
        drawn: &mut Frame,
        name: &str,
        cells: impl Iterator<Item = usize>,
        plot_px: f64,
        encoding: &mut Map<String, Value>,
    ) -> Result<()> {
        let column = drawn.column(name)?;
        match self {
            Cells::Levels(levels) => {
                drawn.push(column.with_texts(cells.map(|cell| &levels[cell])));
                let mut axis = scales::names(&column, levels, plot_px);
                if channel == "y" {
                    // Numbers rise from below; names are read from above.
                    let is_number = super::code::is_ordered(&column);
                    axis["sort"] = if is_number { levels.iter().rev().cloned().collect() } else { json!(levels) };
                }
                axis["scale"] = json!({ "padding": 0 });
                encoding.insert(channel.to_owned(), axis);
            }
            Cells::Bins { low, width } => {
                let edges: Vec<f64> = cells.map(|cell| low + width * cell as f64).collect();
                let to = format!("{name}_to");
                drawn.push(Column::numbers(&to, "", "", edges.iter().map(|edge| edge + width)));
                drawn.push(column.with_numbers(edges));
                let scale = Scale { domain: Some((*low, low + width * BINS as f64)), ..Scale::default() };
                encoding.insert(channel.to_owned(), scales::number(&column, scale));
                encoding.insert(format!("{channel}2"), json!({ "field": escaped(&to) }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::replicates::Method;

    use super::*;
    use crate::Width;

    fn table() -> Frame {
        Frame::of([
            Column::texts("policy", "policy", ["easy", "easy", "fcfs", "easy"]),
            Column::numbers("gear", "gear", "", [0.0, 1.0, 0.0, 0.0]),
            Column::numbers("wait_s", "wait", "s", [4.0, 8.0, 6.0, 5.0]),
        ])
    }

    fn cells(value: Option<&str>) -> Value {
        let figure =
            heatmap(&table(), &Axes::of("policy", "gear"), value, None, &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").iter();
        let name = value.unwrap_or(SHARE);
        rows.map(|row| json!([row["policy"], row["gear"], row[name], row["written"]])).collect()
    }

    #[test]
    fn cells_have_the_share_of_the_rows_or_the_mean_of_a_column() {
        assert_eq!(
            cells(None),
            json!([["easy", "0", 50.0, "50.0"], ["easy", "1", 25.0, "25.0"], ["fcfs", "0", 25.0, "25.0"]])
        );
        assert_eq!(
            cells(Some("wait_s")),
            json!([["easy", "0", 4.5, "4.50"], ["easy", "1", 8.0, "8.00"], ["fcfs", "0", 6.0, "6.00"]])
        );
    }

    /// The values are within an hour and a half, or within a third of a day.
    #[test]
    fn cells_and_legend_have_one_unit() {
        for (name, values, title, ticks, texts) in [
            (
                "wait_s",
                [14_137.2, 19_008.0],
                "wait (h)",
                [3.5, 4.0, 4.5, 5.0, 5.5].map(|at| at * 3_600.0).to_vec(),
                ["3.93", "5.28"],
            ),
            (
                "makespan_s",
                [548_640.0, 574_560.0],
                "makespan (d)",
                [6.3, 6.4, 6.5, 6.6, 6.7].map(|at| at * 86_400.0).to_vec(),
                ["6.35", "6.65"],
            ),
        ] {
            let unit = title.split(" (").next().unwrap_or_default();
            let table = Frame::of([
                Column::texts("policy", "policy", ["easy", "fcfs"]),
                Column::numbers("gear", "gear", "", [0.0, 0.0]),
                Column::numbers(name, unit, "s", values),
            ]);
            let figure = heatmap(&table, &Axes::of("policy", "gear"), Some(name), None, &Look::of(Width::Column));
            let spec = figure.expect("a figure").spec().clone();
            assert_eq!([0, 1].map(|row| spec["datasets"]["rows"][row]["written"].clone()), texts);
            let legend = &spec["layer"][0]["encoding"]["color"]["legend"];
            assert_eq!(legend["title"], title);
            let shown = legend["values"].as_array().expect("ticks").iter().filter_map(Value::as_f64);
            assert!(shown.zip(&ticks).all(|(one, other)| (one - other).abs() < 1e-6), "{legend}");
        }
    }

    /// In the cell easy and 0, seed 1 waits 4 s and seed 2 waits 5 s: an error of 0.5 s. One of two rows of seed 1 and one of two of
    /// seed 2 are in it: no error.
    #[test]
    fn cells_have_intervals_over_replicates() {
        let mut table = table();
        table.push(Column::numbers("seed", "seed", "", [1.0, 1.0, 2.0, 2.0]));
        let seeds = Some(("seed", Method::T(95)));
        let axes = Axes::of("policy", "gear");
        let drawn = |value| {
            let figure = heatmap(&table, &axes, value, seeds, &Look::of(Width::Page)).expect("a figure");
            figure.datasets()[0].1.clone()
        };
        let means = drawn(Some("wait_s"));
        assert_eq!(
            means.columns().map(|column| column.name().to_owned()).collect::<Vec<_>>(),
            ["policy", "gear", "wait_s", "wait_s_low", "wait_s_high", "written", "written_interval"]
        );
        let row = |table: &Frame, name: &str, row| table.column(name).expect("a column").text(row);
        let low = means.column("wait_s_low").expect("a column").number(0).expect("an end");
        assert!((low - (4.5 - 12.706_204_736 * 0.5)).abs() < 1e-8, "{low}");
        assert_eq!(
            (row(&means, "written", 0), row(&means, "written_interval", 0)),
            ("4.50".to_owned(), "±6.35".to_owned())
        );
        assert_eq!((row(&means, "written", 1), row(&means, "written_interval", 1)), ("8.00".to_owned(), String::new()));
        let figure = heatmap(&table, &axes, None, seeds, &Look::of(Width::Page)).expect("a figure");
        let ends = |name: &str| figure.datasets()[0].1.column(name).expect("a column").finite().collect::<Vec<_>>();
        // The row in the cell is of seed 1.
        assert_eq!((ends("share_percent_low")[1], ends("share_percent_high")[1]), (0.0, 100.0));
        let shares = drawn(None);
        assert_eq!((row(&shares, SHARE, 0), row(&shares, "share_percent_low", 0)), ("50".to_owned(), "50".to_owned()));
    }

    #[test]
    fn many_numbers_are_put_into_bins_and_no_row_is_lost() {
        let numbers = || (0..1_000).map(f64::from);
        let table = Frame::of([Column::numbers("a", "a", "", numbers()), Column::numbers("b", "b", "", numbers())]);
        let figure = heatmap(&table, &Axes::of("a", "b"), None, None, &Look::of(Width::Column)).expect("a figure");
        let drawn = &figure.datasets()[0].1;
        assert_eq!(drawn.rows(), BINS);
        let all: f64 = drawn.column(SHARE).expect("shares").finite().sum();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
    }
}
