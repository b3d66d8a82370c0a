//! Heat maps: how often rows fall into the cells of two columns, or the mean of a third one there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::axes::Axes;
use super::scales::{self, Scale, extent, plot_px};
use crate::error::Result;
use crate::figure::{Content, Figure, escaped};
use crate::font::{self, SIZE_PX};
use crate::look::{Look, ORDERED};
use crate::table::{Column, Table};

/// Numbers with more values than this are put into bins.
const LEVELS_MAX: usize = 24;
/// Number of bins.
const BINS: usize = 24;
/// Number of cells that have their value written in them.
const WRITTEN_MAX: usize = 120;
/// Name of the column of counts.
const SHARE: &str = "share_percent";

/// Cells of `x` and `y`, coloured by the mean of `value` over the rows of the cell; without it by the share of the rows of the
/// panel that are in the cell. Columns of many numbers are put into bins of equal width.
pub fn heatmap(table: &Table, axes: &Axes, value: Option<&str>, look: &Look) -> Result<Figure> {
    let numbers: Vec<&str> = value.into_iter().collect();
    let rows = match numbers.is_empty() {
        true => table.clone(),
        false => table.drawable(&numbers)?,
    };
    let rows = axes.rows(&rows, &[], &[])?;
    let (x, y) = (Cells::of(rows.column(&axes.x)?), Cells::of(rows.column(&axes.y)?));
    let shown = match value {
        Some(value) => rows.numeric(value)?.clone(),
        None => Column::numbers(SHARE, "share of rows", "%", []),
    };
    let mut cells: Vec<(usize, usize, usize, f64)> = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        let mut sums: BTreeMap<(usize, usize), (usize, f64, f64)> = BTreeMap::new();
        for row in &in_panel {
            let (Some(column), Some(line)) = (x.cell(rows.column(&axes.x)?, *row), y.cell(rows.column(&axes.y)?, *row))
            else {
                continue;
            };
            let sum = sums.entry((column, line)).or_insert((*row, 0.0, 0.0));
            sum.1 += 1.0;
            sum.2 += value.and_then(|_| shown.number(*row)).unwrap_or_default();
        }
        let all: f64 = sums.values().map(|(_, count, _)| count).sum();
        let mean = |(count, sum): (f64, f64)| if value.is_some() { sum / count } else { 100.0 * count / all };
        cells.extend(
            sums.into_iter().map(|((column, line), (row, count, sum))| (row, column, line, mean((count, sum)))),
        );
    }
    let mut drawn = rows.taken(&cells.iter().map(|(row, ..)| *row).collect::<Vec<_>>());
    let mut encoding = Map::new();
    let panels = rows.groups(axes.facet.as_deref())?.len();
    let plot_px = plot_px(look.width, panels) - 40.0;
    x.place("x", &mut drawn, &axes.x, cells.iter().map(|cell| cell.1), plot_px, &mut encoding)?;
    y.place("y", &mut drawn, &axes.y, cells.iter().map(|cell| cell.2), f64::INFINITY, &mut encoding)?;
    drawn.push(shown.with_numbers(cells.iter().map(|cell| Some(cell.3)).collect()));
    let written = written(&drawn, &shown, &x, &y, plot_px)?;
    let mut colour = scales::number(drawn.column(&shown.name)?, Scale { zero: value.is_none(), ..Scale::default() });
    let axis = colour.as_object_mut().and_then(|colour| colour.remove("axis")).unwrap_or_default();
    colour["legend"] = json!({
        "title": axis["title"], "labelExpr": axis["labelExpr"], "orient": "right", "direction": "vertical",
        "titleOrient": "right", "gradientThickness": 8, "gradientLength": look.width.height_px() * if axes.facet.is_some() { 0.4 } else { 0.6 },
        "titleLimit": 0, "tickCount": 4,
    });
    colour["scale"]["nice"] = json!(true);
    colour["scale"]["scheme"] = json!({ "name": ORDERED, "extent": [1, 0] });
    let base = Value::Object(encoding);
    let mut rect = base.clone();
    rect["color"] = colour;
    let mut layers =
        vec![json!({ "mark": { "type": "rect", "stroke": "white", "strokeWidth": 0.3 }, "encoding": rect })];
    if let Some((texts, dark_from)) = written {
        drawn.push(texts);
        let mut text = base;
        text["text"] = json!({ "field": "written", "type": "nominal" });
        let is_dark = format!("datum['{}'] >= {dark_from:e}", shown.name);
        text["color"] = json!({ "condition": { "test": is_dark, "value": "white" }, "value": "black" });
        layers.push(json!({ "mark": { "type": "text", "fontSize": SIZE_PX - 1.5 }, "encoding": text }));
    }
    Content::new(drawn, layers, axes.facet.as_deref()).figure(look)
}

/// The texts in the cells and the value from which cells are dark, if all texts fit into their cells.
fn written(drawn: &Table, shown: &Column, x: &Cells, y: &Cells, plot_px: f64) -> Result<Option<(Column, f64)>> {
    let values = drawn.column(&shown.name)?;
    let Some((low, high)) = extent(values.finite()) else { return Ok(None) };
    let (divisor, _) = scales::magnitude(&shown.unit, low.abs().max(high.abs()));
    let digits = if (high.abs() / divisor) < 10.0 { 2 } else { usize::from((high.abs() / divisor) < 100.0) };
    let texts: Vec<String> = values.finite().map(|value| format!("{:.digits$}", value / divisor)).collect();
    let widest = texts.iter().map(|text| font::width(text, SIZE_PX - 1.5, false)).fold(0.0, f64::max);
    let fits = widest + 4.0 <= plot_px / x.count() as f64 && y.count() <= 10 && texts.len() <= WRITTEN_MAX;
    let is_binned = matches!(x, Cells::Bins { .. }) || matches!(y, Cells::Bins { .. });
    let low = if shown.name == SHARE { 0.0 } else { low };
    Ok((fits && !is_binned).then(|| (Column::texts("written", "", texts), low + (high - low) * 0.5)))
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
            Cells::Levels(levels) => levels.iter().position(|level| *level == column.text(row)),
            Cells::Bins { low, width } => {
                column.number(row).map(|value| (((value - low) / width) as usize).min(BINS - 1))
            }
        }
    }

    /// Puts the places of the cells into the table, and their axis into the encoding.
    fn place(
        &self,
        channel: &str,
        drawn: &mut Table,
        name: &str,
        cells: impl Iterator<Item = usize>,
        plot_px: f64,
        encoding: &mut Map<String, Value>,
    ) -> Result<()> {
        let column = drawn.column(name)?.clone();
        match self {
            Cells::Levels(levels) => {
                drawn.push(Column {
                    values: Column::texts("", "", cells.map(|cell| levels[cell].clone())).values,
                    ..column.clone()
                });
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
                drawn.push(column.with_numbers(edges.into_iter().map(Some).collect()));
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
    use super::*;
    use crate::Width;

    fn table() -> Table {
        Table::new([
            Column::texts("policy", "policy", ["easy", "easy", "fcfs", "easy"]),
            Column::numbers("gear", "gear", "", [0.0, 1.0, 0.0, 0.0]),
            Column::numbers("wait_s", "wait", "s", [4.0, 8.0, 6.0, 5.0]),
        ])
    }

    fn cells(value: Option<&str>) -> Value {
        let figure = heatmap(&table(), &Axes::of("policy", "gear"), value, &Look::of(Width::Column)).expect("a figure");
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

    #[test]
    fn many_numbers_are_put_into_bins_and_no_row_is_lost() {
        let numbers = || (0..1_000).map(f64::from);
        let table = Table::new([Column::numbers("a", "a", "", numbers()), Column::numbers("b", "b", "", numbers())]);
        let figure = heatmap(&table, &Axes::of("a", "b"), None, &Look::of(Width::Column)).expect("a figure");
        let drawn = &figure.datasets()[0].1;
        assert_eq!(drawn.rows(), BINS);
        let all: f64 = drawn.column(SHARE).expect("shares").finite().sum();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
    }
}
