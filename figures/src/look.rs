//! The look that all figures share: sizes of a paper's columns, text, colours, and codes that survive grey print.

use powersweep_dataset::failure;
use serde_json::{Map, Value, json};

use crate::Result;
use crate::font::{self, FAMILIES, SIZE_PX};
use crate::labels;

/// The colours of Okabe and Ito, which people with any kind of colour vision tell apart. The first ones differ most in
/// lightness.
pub const COLOURS: [&str; 8] = ["#0072B2", "#E69F00", "#000000", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];
/// Dashes of lines, the second code: one more than colours, so that pairs of both repeat late.
const DASHES: [&[u32]; 5] = [&[], &[6, 2], &[2, 2], &[8, 2, 2, 2], &[12, 3]];
/// Shapes of marks, the second code of points.
const SHAPES: [&str; 7] = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"];
/// Colours of ordered values: light to dark, the lightness tells the order.
pub(crate) const ORDERED: &str = "viridis";

/// Number of values that a figure tells apart.
pub(crate) const LEVELS_MAX: usize = 24;
/// Number of panels.
pub(crate) const PANELS_MAX: usize = 24;
/// Legends begin behind the vertical axis, which is about this wide (px).
pub(crate) const AXIS_PX: f64 = 60.0;
/// Space that a legend's symbol, its offsets and the gap to the next entry take (px).
const SYMBOL_PX: f64 = 26.0;

/// Where a figure stands in a paper, and what its author wants to look different.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The width.
    pub width: Width,
    /// Keys of Vega-Lite's config, merged over those of this crate.
    pub style: Map<String, Value>,
}

/// Width of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One column: 3.5 in.
    Column,
    /// The page: 7.16 in.
    Page,
}

impl Width {
    /// Width in px, 96 of which are one inch.
    pub fn px(self) -> f64 {
        match self {
            Width::Column => 336.0,
            Width::Page => 687.0,
        }
    }

    /// Height of a figure without panels (px).
    pub(crate) fn height_px(self) -> f64 {
        match self {
            Width::Column => 210.0,
            Width::Page => 260.0,
        }
    }

    /// Height of each panel of a figure with panels (px).
    pub(crate) fn panel_height_px(self) -> f64 {
        self.height_px() * 0.55
    }

    /// Number of panels side by side, of this number in all: rows of equal length look better than a full and a nearly
    /// empty one.
    pub(crate) fn panels(self, all: usize) -> usize {
        let most = match self {
            Width::Column => 2,
            Width::Page => 4,
        };
        let all = all.max(1);
        all.div_ceil(all.div_ceil(most))
    }
}

impl Look {
    /// The look of this width without changes.
    pub fn of(width: Width) -> Look {
        Look { width, style: Map::new() }
    }

    /// Merges a style: a JSON object with keys of Vega-Lite's config.
    pub fn with_style(mut self, style: Value) -> Result<Look> {
        let Value::Object(style) = style else {
            let example = "{\"axis\": {\"grid\": false}}";
            return Err(failure!(
                Usage,
                "a style is a JSON object with keys of the Vega-Lite config, such as {example}"
            ));
        };
        self.style = style;
        Ok(self)
    }

    /// The colour of the value at this place: of the style's `range.category`, else of [`COLOURS`]. Behind the last one they
    /// return in a lighter and in a darker tone.
    pub(crate) fn colour(&self, at: usize) -> String {
        let styled = self.style.get("range").and_then(|range| range["category"].as_array());
        let styled: Vec<&str> = styled.into_iter().flatten().filter_map(Value::as_str).collect();
        let palette = if styled.is_empty() { &COLOURS } else { styled.as_slice() };
        let colour = palette[at % palette.len()];
        match at / palette.len() % 3 {
            0 => colour.to_owned(),
            1 => toned(colour, 255, 0.5),
            // Black has no darker tone.
            _ if colour == "#000000" => toned(colour, 255, 0.25),
            _ => toned(colour, 0, 0.4),
        }
    }

    /// The colours of the values at these places.
    pub(crate) fn colours(&self, places: &[usize]) -> Vec<String> {
        places.iter().map(|at| self.colour(*at)).collect()
    }

    /// Vega-Lite's config.
    pub(crate) fn config(&self) -> Value {
        let mut config = json!({
            "font": FAMILIES,
            "background": "white",
            "padding": 2,
            // An `opacity` makes a layer of its own for each mark: fills and strokes have theirs.
            "mark": { "aria": false },
            "view": { "stroke": "#888888", "strokeWidth": 0.5 },
            "axis": {
                "labelFontSize": SIZE_PX, "titleFontSize": SIZE_PX, "titleFontWeight": "normal",
                "labelLimit": 0, "titleLimit": 0, "labelColor": "#000000", "titleColor": "#000000",
                "titlePadding": 4, "labelPadding": 2, "labelOverlap": "greedy", "labelSeparation": 4,
                "gridColor": "#E4E4E4", "gridWidth": 0.5, "domainColor": "#444444", "domainWidth": 0.5,
                "tickColor": "#444444", "tickSize": 3, "tickWidth": 0.5,
            },
            "axisBand": { "grid": false, "labelOverlap": false },
            "legend": {
                "orient": "top", "direction": "horizontal", "titleOrient": "left", "offset": 6, "padding": 0,
                "labelFontSize": SIZE_PX, "titleFontSize": SIZE_PX, "titleFontWeight": "normal",
                "labelLimit": 0, "titleLimit": 0, "labelColor": "#000000", "titleColor": "#000000",
                "columnPadding": 8, "symbolOpacity": 1, "rowPadding": 1, "titlePadding": 6, "symbolSize": 50, "symbolStrokeWidth": 1.5,
            },
            "header": { "labelFontSize": SIZE_PX, "labelLimit": 0, "labelPadding": 3, "title": null },
            "facet": { "spacing": 10 },
            "line": { "strokeWidth": 1.5 },
            "scale": { "bandPaddingInner": 0.2, "bandPaddingOuter": 0.1 },
        });
        merge(&mut config, &Value::Object(self.style.clone()));
        config
    }
}

/// Merges objects key by key; other values are replaced.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// A colour such as #0072B2, mixed with a share of black (0) or white (255); other words for colours stay.
fn toned(colour: &str, towards: u8, share: f64) -> String {
    let part = |at: usize| u8::from_str_radix(colour.get(at..at + 2)?, 16).ok();
    let parts = (colour.len() == 7).then(|| Some([part(1)?, part(3)?, part(5)?])).flatten();
    let mixed = |part: u8| (f64::from(part) + (f64::from(towards) - f64::from(part)) * share).round() as u8;
    parts.map_or(colour.to_owned(), |parts| {
        let [red, green, blue] = parts.map(mixed);
        format!("#{red:02X}{green:02X}{blue:02X}")
    })
}

/// The dashes of the values at these places.
pub(crate) fn dashes(places: &[usize]) -> Vec<&'static [u32]> {
    places.iter().map(|at| DASHES[at % DASHES.len()]).collect()
}

/// The shapes of the values at these places.
pub(crate) fn shapes(places: &[usize]) -> Vec<&'static str> {
    places.iter().map(|at| SHAPES[at % SHAPES.len()]).collect()
}

/// A legend over the figure: as many columns as fit, its title beside them, or over them where that leaves no room.
pub(crate) fn legend(title: &str, levels: &[String], symbol_px: f64, width: Width) -> Value {
    let most_px = width.px() - AXIS_PX - SYMBOL_PX - symbol_px;
    let shown = labels::shortened(levels, most_px);
    let widest = shown.iter().map(|level| font::width(level, SIZE_PX, false)).fold(0.0, f64::max);
    let entry_px = widest + SYMBOL_PX + symbol_px;
    let beside_px = width.px() - font::width(title, SIZE_PX, false) - 20.0;
    let fits = |px: f64| ((px / entry_px).floor() as usize).clamp(1, levels.len().max(1));
    let (orient, columns) = match fits(beside_px) {
        columns if columns >= levels.len().min(2) => ("left", columns),
        _ => ("top", fits(width.px() - AXIS_PX)),
    };
    // Rows of equal length look better than a full and a nearly empty one.
    let rows = levels.len().div_ceil(columns).max(1);
    let mut legend = json!({
        "title": title, "titleOrient": orient, "columns": levels.len().div_ceil(rows), "labelLimit": most_px.floor(),
    });
    labels::show(&mut legend, levels, &shown);
    legend
}

/// About how wide a legend is (px).
pub(crate) fn legend_px(title: &str, levels: &[String], symbol_px: f64, width: Width) -> f64 {
    let shown = legend(title, levels, symbol_px, width);
    let widest = levels.iter().map(|level| font::width(level, SIZE_PX, false)).fold(0.0, f64::max);
    let entries_px = shown["columns"].as_f64().unwrap_or(1.0) * (widest + SYMBOL_PX + symbol_px);
    let title_px = font::width(title, SIZE_PX, false);
    if shown["titleOrient"] == "left" { title_px + 20.0 + entries_px } else { title_px.max(entries_px) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize, letters: usize) -> Vec<String> {
        (0..count).map(|at| format!("{at}{}", "m".repeat(letters))).collect()
    }

    #[test]
    fn a_legend_has_as_many_columns_as_fit() {
        let short = legend("policy", &names(3, 1), 0.0, Width::Column);
        assert_eq!((&short["columns"], &short["titleOrient"]), (&json!(3), &json!("left")));
        let long = legend("policy", &names(4, 14), 0.0, Width::Column);
        assert_eq!((&long["columns"], &long["titleOrient"]), (&json!(1), &json!("top")));
        assert_eq!(
            legend("policy", &names(5, 15), 0.0, Width::Page)["columns"],
            3,
            "not 4 and 1: rows of equal length"
        );
    }

    #[test]
    fn colours_repeat_in_other_tones() {
        let look = Look::of(Width::Column);
        let colours: std::collections::BTreeSet<String> = (0..24).map(|at| look.colour(at)).collect();
        assert_eq!(colours.len(), 24);
        assert_eq!((look.colour(8), look.colour(16)), ("#80B9D9".to_owned(), "#00446B".to_owned()));
    }

    #[test]
    fn a_style_is_merged_key_by_key() {
        let look = Look::of(Width::Page).with_style(json!({ "axis": { "grid": false }, "background": null }));
        let config = look.expect("an object").config();
        assert_eq!(config["axis"]["grid"], false);
        assert_eq!(config["axis"]["labelFontSize"], SIZE_PX);
        assert_eq!(config["background"], Value::Null);
        assert!(Look::of(Width::Page).with_style(json!([])).is_err());
    }
}
