//! A figure: its spec, and the rows that it draws.

use std::collections::HashMap;

use powersweep_dataset::{Column, Frame};
use serde_json::{Map, Value, json};

use crate::Result;
use crate::engine::{Drawn, Engine};
use crate::kinds::{Axes, Limits};
use crate::labels;
use crate::look::Look;
use crate::rows::{json_of, text, undrawn, unwritten};

/// The specs are for this version of the language.
const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";
/// Least width of a panel (px).
const PANEL_PX_MIN: f64 = 60.0;
/// Number of left out rows that a note names, and of the values that tell one.
const NAMED_MAX: usize = 3;
/// Number of attempts to give panels their width. The first one decides, unless labels change places.
const ATTEMPTS: usize = 4;

/// A figure that can be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    spec: Value,
    datasets: Vec<(String, Frame)>,
    /// Panels side by side, whose width follows from the figure's; `None` for a figure without panels.
    panels: Option<usize>,
    width_px: f64,
    /// Notes for the user, such as what was left out.
    notes: Vec<String>,
}

/// The marks of a figure or of each panel.
pub(crate) struct Content {
    /// Rows, of which the first table has the axes.
    pub(crate) datasets: Vec<(String, Frame)>,
    /// Layers with their encodings.
    pub(crate) layers: Vec<Value>,
    /// Column of the panels.
    pub(crate) facet: Option<String>,
    /// Settings beside the layers, such as `resolve`.
    pub(crate) beside: Map<String, Value>,
    /// Height of the plot or of each panel (px); the look's without one.
    pub(crate) height_px: Option<f64>,
    /// The scales that each panel has for itself, such as `y`.
    pub(crate) free: Vec<&'static str>,
    /// Calculations before anything is drawn.
    pub(crate) transform: Vec<Value>,
    /// What was left out.
    pub(crate) notes: Vec<String>,
}

impl Content {
    /// Layers over one table.
    pub(crate) fn new(rows: Frame, layers: Vec<Value>, facet: Option<&str>) -> Content {
        let datasets = vec![("rows".to_owned(), rows)];
        let facet = facet.map(str::to_owned);
        let (free, transform, notes) = (Vec::new(), Vec::new(), Vec::new());
        Content { datasets, layers, facet, beside: Map::new(), height_px: None, free, transform, notes }
    }

    /// Layers over one table, along axes with these limits.
    pub(crate) fn limited(rows: Frame, layers: Vec<Value>, axes: &Axes, limits: Limits) -> Content {
        let Limits { transform, notes, .. } = limits;
        Content { free: axes.free(), transform, notes, ..Content::new(rows, layers, axes.facet.as_deref()) }
    }

    /// This content with a note of the rows of a table that are not among these, because they lack such a value.
    pub(crate) fn without(mut self, all: &Frame, drawn: &Frame, value: &str) -> Content {
        let left_out = all.rows() - drawn.rows();
        if left_out > 0 {
            let named = named(all, drawn).filter(|rows| rows.len() == left_out).unwrap_or_default();
            let shown = named.iter().take(NAMED_MAX).filter(|row| !row.is_empty()).map(String::as_str);
            let more = if left_out > NAMED_MAX { ["…"].as_slice() } else { &[] };
            let shown = shown.chain(more.iter().copied()).collect::<Vec<_>>().join("; ");
            let of = if named.is_empty() || shown.is_empty() { String::new() } else { format!(": {shown}") };
            self.notes.push(format!("{left_out} of {} rows lack {value} and are left out{of}", all.rows()));
        }
        self
    }

    /// The figure of this content.
    pub(crate) fn figure(self, look: &Look) -> Result<Figure> {
        let data: Map<String, Value> =
            self.datasets.iter().map(|(name, table)| (name.clone(), json_of(table))).collect();
        let mut spec = json!({ "$schema": SCHEMA, "datasets": data, "config": look.config() });
        if !self.transform.is_empty() {
            spec["transform"] = json!(self.transform);
        }
        let width_px = look.width.px();
        let mut plot = Map::from_iter([("layer".to_owned(), Value::Array(self.layers))]);
        plot.extend(self.beside);
        let panels = match &self.facet {
            None => {
                plot.insert("width".to_owned(), json!(width_px));
                plot.insert("height".to_owned(), json!(self.height_px.unwrap_or_else(|| look.width.height_px())));
                plot.insert("data".to_owned(), json!({ "name": self.datasets[0].0 }));
                plot.insert("autosize".to_owned(), json!({ "type": "fit-x", "contains": "padding" }));
                crate::look::merge(&mut spec, &Value::Object(plot));
                None
            }
            Some(facet) => {
                let levels = self.datasets[0].1.column(facet)?.levels();
                let columns = look.width.panels(levels.len());
                let panel_px = ((width_px - 50.0) / columns as f64 - 10.0).floor();
                plot.insert("width".to_owned(), json!(panel_px));
                plot.insert("height".to_owned(), json!(self.height_px.unwrap_or_else(|| look.width.panel_height_px())));
                let mut header = json!({ "title": null });
                labels::show(&mut header, &levels, &labels::shortened(&levels, panel_px));
                let panel = json!({ "field": escaped(facet), "type": "nominal", "sort": levels, "header": header });
                let panels = json!({ "data": { "name": self.datasets[0].0 }, "facet": panel, "columns": columns, "align": "all", "spec": plot });
                crate::look::merge(&mut spec, &panels);
                // A label that stands out of its panel would move the title over it.
                let flush = json!({ "config": { "axisYQuantitative": { "labelFlush": true } } });
                crate::look::merge(&mut spec, &flush);
                for scale in self.free {
                    crate::look::merge(&mut spec, &json!({ "resolve": { "scale": { scale: "independent" } } }));
                }
                if levels.len() % columns > 0 {
                    // A common axis would stand below the empty place of the last row.
                    crate::look::merge(&mut spec, &json!({ "resolve": { "axis": { "x": "independent" } } }));
                }
                Some(columns)
            }
        };
        Ok(Figure { spec, datasets: self.datasets, panels, width_px, notes: self.notes })
    }
}

/// The rows of a table that are not among the drawn ones, by the first values that they have; `None` for drawn rows with other
/// columns.
fn named(all: &Frame, drawn: &Frame) -> Option<Vec<String>> {
    let columns: Vec<Column> = all.columns().collect();
    let known: Vec<Column> = columns.iter().map(|column| drawn.column(column.name()).ok()).collect::<Option<_>>()?;
    let texts = |columns: &[Column], row: usize| columns.iter().map(|column| column.text(row)).collect::<Vec<_>>();
    let mut left: HashMap<Vec<String>, usize> = HashMap::new();
    (0..drawn.rows()).for_each(|row| *left.entry(texts(&known, row)).or_default() += 1);
    let is_left_out = |row: &usize| match left.get_mut(&texts(&columns, *row)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let name = |row: usize| {
        let has_value = columns.iter().filter(|column| !column.cell(row).is_null());
        let values = has_value.map(|column| format!("{}={}", column.name(), column.text(row)));
        values.take(NAMED_MAX).collect::<Vec<_>>().join(", ")
    };
    Some((0..all.rows()).filter(is_left_out).map(name).collect())
}

impl Figure {
    /// The Vega-Lite spec, with the rows inline.
    pub fn spec(&self) -> &Value {
        &self.spec
    }

    /// Writes down in the spec what the figure is drawn from, as its `usermeta`.
    pub fn set_origin(&mut self, origin: &Value) {
        self.spec["usermeta"] = json!({ "powersweep": origin });
    }

    /// What the figure is drawn from; `null` if nothing was written down.
    pub fn origin(&self) -> &Value {
        &self.spec["usermeta"]["powersweep"]
    }

    /// Adds a note for the user.
    pub fn add_note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Notes for the user, such as what was left out of the figure.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The tables that are drawn, with their names in the spec.
    pub fn datasets(&self) -> &[(String, Frame)] {
        &self.datasets
    }

    /// Draws the figure. Where it has panels, their width in the spec is first made to fit.
    pub fn draw(&mut self, engine: &Engine) -> Result<Drawn> {
        let mut drawn = engine.draw(&self.spec)?;
        let Some(columns) = self.panels else { return Ok(drawn) };
        let mut fitting: Option<(Value, Drawn)> = None;
        for _ in 0..ATTEMPTS {
            // Panels have whole px, so that a figure may be narrower than it should be by one px for each panel.
            let excess_px = (size_px(&drawn.svg)?.0 - self.width_px) / columns as f64;
            if -1.0 < excess_px && excess_px <= 0.0 {
                break;
            }
            let width = &mut self.spec["spec"]["width"];
            match fitting.take() {
                // Wider panels got wider labels, which do not fit.
                Some((fits, narrower)) if excess_px > 0.0 => {
                    *width = fits;
                    return Ok(narrower);
                }
                _ if excess_px <= 0.0 => fitting = Some((width.clone(), drawn)),
                _ => {}
            }
            *width = json!((width.as_f64().unwrap_or_default() - excess_px).floor().max(PANEL_PX_MIN));
            drawn = engine.draw(&self.spec)?;
        }
        Ok(drawn)
    }

    /// The rows that are drawn, as CSV. Where there are several tables, the first column says which one a row is of.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut names: Vec<String> = Vec::new();
        for column in self.datasets.iter().flat_map(|(_, table)| table.columns()) {
            if !names.iter().any(|name| name == column.name()) {
                names.push(column.name().to_owned());
            }
        }
        let is_one = self.datasets.len() == 1;
        let first = (!is_one).then_some("drawn_as");
        let mut out = csv::Writer::from_writer(Vec::new());
        let failed = |error: csv::Error| unwritten("csv", error);
        out.write_record(first.into_iter().chain(names.iter().map(String::as_str))).map_err(failed)?;
        for (dataset, table) in &self.datasets {
            let columns: Vec<Option<Column>> = names.iter().map(|name| table.column(name).ok()).collect();
            for row in 0..table.rows() {
                let cell =
                    |column: &Option<Column>| column.as_ref().map_or_else(String::new, |column| cell(column, row));
                let first = (!is_one).then(|| dataset.clone());
                out.write_record(first.into_iter().chain(columns.iter().map(cell))).map_err(failed)?;
            }
        }
        out.into_inner().map_err(|error| unwritten("csv", error))
    }
}

/// A cell of a CSV file: empty where nothing is drawn.
fn cell(column: &Column, row: usize) -> String {
    match column.is_numeric() {
        true => column.number(row).map_or_else(String::new, |value| value.to_string()),
        false => text(column, row).unwrap_or_default(),
    }
}

/// Width and height of an SVG drawing (px).
pub(crate) fn size_px(svg: &str) -> Result<(f64, f64)> {
    let attribute = |name: &str| {
        let at = svg.find(&format!(" {name}=\""))? + name.len() + 3;
        svg[at..].split('"').next()?.parse::<f64>().ok()
    };
    let sizes = attribute("width").zip(attribute("height"));
    sizes.ok_or_else(|| undrawn("the drawing has no size"))
}

/// The name of a column as a field of Vega-Lite, where dots and brackets would mean parts of a value.
pub(crate) fn escaped(name: &str) -> String {
    let mut field = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '.' | '[' | ']' | '\\' | '\'' | '"') {
            field.push('\\');
        }
        field.push(letter);
    }
    field
}
