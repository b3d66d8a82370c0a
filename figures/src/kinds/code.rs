//! How values of a column are told apart: by colour, and by dash or shape where colours do not print.

use powersweep_dataset::{Column, Frame, failure};
use serde_json::{Value, json};

use super::axes::Axes;
use crate::Result;
use crate::figure::escaped;
use crate::look::{self, LEVELS_MAX, Look, ORDERED};
use crate::rows::label;

/// Length of a line in a legend (px), which shows its dash. The library gives a symbol ten px.
const LINE_PX: f64 = 26.0;
const SYMBOL_PX: f64 = 10.0;

/// The codes of a column.
pub(super) struct Code {
    field: String,
    pub(super) levels: Vec<String>,
    /// The places of the levels among all values of the column, which decide their colours.
    places: Vec<usize>,
    title: String,
    look: Look,
}

impl Code {
    /// The codes of the column of colours, if there is one.
    pub(super) fn of(rows: &Frame, axes: &Axes, look: &Look) -> Result<Option<Code>> {
        let Some(name) = &axes.colour else { return Ok(None) };
        let column = rows.column(name)?;
        let levels = few(&column, LEVELS_MAX)?;
        // A value that the caller does not know stands behind the known ones.
        let new = levels.iter().filter(|level| !axes.levels.contains(level));
        let all: Vec<&String> = axes.levels.iter().chain(new).collect();
        let places = levels.iter().filter_map(|level| all.iter().position(|known| *known == level)).collect();
        Ok(Some(Code { field: escaped(name), levels, places, title: label(&column), look: look.clone() }))
    }

    fn channel(&self, range: &Value, legend: &Value) -> Value {
        let scale = json!({ "domain": self.levels, "range": range });
        json!({ "field": self.field, "type": "nominal", "scale": scale, "legend": legend })
    }

    fn legend(&self, symbol_px: f64) -> Value {
        look::legend(&self.title, &self.levels, symbol_px, self.look.width)
    }

    /// About how wide the legend of bars and points is, or that of lines (px).
    pub(super) fn legend_px(&self, of_lines: bool) -> f64 {
        let symbol_px = if of_lines { LINE_PX - SYMBOL_PX } else { 0.0 };
        look::legend_px(&self.title, &self.levels, symbol_px, self.look.width)
    }

    /// Adds colour and dash.
    pub(super) fn lines(&self, encoding: &mut Value) {
        self.lines_in(encoding, &json!(self.look.colours(&self.places)), &json!(look::dashes(&self.places)));
    }

    /// Adds the colour of lines, for their bands and points.
    pub(super) fn bands(&self, encoding: &mut Value) {
        self.lines(encoding);
        encoding.as_object_mut().expect("an object").remove("strokeDash");
    }

    /// Adds colour and dash, those of caps to the levels behind the first ones.
    pub(super) fn lines_and_caps(&self, encoding: &mut Value, lines: usize) {
        let (lines, caps) = self.places.split_at(lines.min(self.places.len()));
        let colours = self.look.colours(lines).into_iter().chain((0..caps.len()).map(|at| self.look.colour(6 + at)));
        let dashes = look::dashes(lines).into_iter().chain(caps.iter().map(|_| &[4u32, 2][..]));
        self.lines_in(encoding, &json!(colours.collect::<Vec<_>>()), &json!(dashes.collect::<Vec<_>>()));
    }

    /// Adds these colours and dashes.
    fn lines_in(&self, encoding: &mut Value, colours: &Value, dashes: &Value) {
        let legend = self.legend_of_lines();
        encoding["color"] = self.channel(colours, &legend);
        encoding["strokeDash"] = self.channel(dashes, &legend);
    }

    fn legend_of_lines(&self) -> Value {
        let mut legend = self.legend(LINE_PX - SYMBOL_PX);
        let (half, shift) = (LINE_PX / SYMBOL_PX, (LINE_PX - SYMBOL_PX) / 2.0);
        let symbol = json!({
            "symbolType": format!("M-{half},0L{half},0"), "symbolSize": SYMBOL_PX * SYMBOL_PX, "symbolOffset": shift,
            "labelOffset": shift + 4.0,
        });
        look::merge(&mut legend, &symbol);
        legend
    }

    /// Adds colour and shape.
    pub(super) fn points(&self, encoding: &mut Value) {
        self.fills(encoding);
        encoding["shape"] = self.channel(&json!(look::shapes(&self.places)), &self.legend(0.0));
    }

    /// Adds colour alone.
    pub(super) fn fills(&self, encoding: &mut Value) {
        encoding["color"] = self.channel(&json!(self.look.colours(&self.places)), &self.legend(0.0));
    }

    /// Adds the colour of lines to the inside of points with an edge of another colour. They share the legend of the lines.
    pub(super) fn inside(&self, encoding: &mut Value) {
        encoding["fill"] = self.channel(&json!(self.look.colours(&self.places)), &self.legend_of_lines());
    }

    /// Adds colours from light to dark.
    pub(super) fn ordered(&self, encoding: &mut Value) {
        // At its ends the scheme is nearly white and nearly black.
        let scheme = json!({ "name": ORDERED, "extent": [0.95, 0.05] });
        let scale = json!({ "domain": self.levels, "scheme": scheme });
        encoding["color"] =
            json!({ "field": self.field, "type": "ordinal", "scale": scale, "legend": self.legend(0.0) });
    }

    /// Adds a place of its own beside the places of the other values.
    pub(super) fn offset(&self, encoding: &mut Value) {
        encoding["xOffset"] = json!({ "field": self.field, "type": "nominal", "sort": self.levels });
    }
}

/// The values of a column, if a figure can tell them apart.
pub(super) fn few(column: &Column, most: usize) -> Result<Vec<String>> {
    let levels = column.levels();
    match levels.len() > most {
        true => Err(failure!(
            Usage,
            "`{}` has {} values, and a figure tells at most {most} apart: choose some of them",
            column.name(),
            levels.len()
        )),
        false => Ok(levels),
    }
}

/// Whether the values have an order of their own.
pub(super) fn is_ordered(column: &Column) -> bool {
    column.finite().next().is_some()
}

/// Whether an axis of numbers has a place for every value. It has none for "unlimited".
pub(super) fn is_on_axis(column: &Column) -> bool {
    is_ordered(column) && !(0..column.len()).any(|row| column.is_unlimited(row))
}

/// The condition under which a row has both ends of an interval.
pub(super) fn has_interval((low, high): &(String, String)) -> Value {
    json!([{ "filter": format!("{} && {}", is_valid(low), is_valid(high)) }])
}

/// The condition under which a row has a value in a column.
pub(super) fn is_valid(name: &str) -> String {
    format!("isValid(datum['{}'])", name.replace('\\', "\\\\").replace('\'', "\\'"))
}
