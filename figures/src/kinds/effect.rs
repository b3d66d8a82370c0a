//! The effect of an axis: a metric at each of its values, alone and on average.

use serde_json::json;

use super::Axes;
use super::bars::{merged, whiskers, with};
use super::code::{few, is_ordered};
use super::scales::{self, Scale, plot_px};
use crate::error::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;
use crate::table::Table;

/// Number of values of the axis.
const VALUES_MAX: usize = 60;
/// Thin lines beyond this number are left out.
const SETTINGS_MAX: usize = 2_000;

/// The mean of `y` at each value of `x`, with its interval, over thin lines for each combination of the other axes.
///
/// A row of `means` is one value; a row of `settings` is one value in one combination, and `colour` names its column of
/// combinations. The thin lines tell whether the axis acts alike in all of them.
pub fn effect(means: &Table, settings: Option<&Table>, axes: &Axes, look: &Look) -> Result<Figure> {
    let setting = axes.colour.clone();
    let axes = Axes { colour: None, ..axes.clone() };
    let is_number = is_ordered(means.column(&axes.x)?);
    let prepared = |table: &Table| match is_number {
        true => axes.rows(table, &[&axes.x, &axes.y], &[]),
        false => axes.rows(table, &[&axes.y], &[&axes.x]),
    };
    let means = prepared(means)?;
    let column = means.column(&axes.x)?;
    let panels = means.groups(axes.facet.as_deref())?.len();
    let x = match is_number {
        true => scales::number(column, Scale { is_log: axes.log_x, ..Scale::default() }),
        false => scales::names(column, &few(column, VALUES_MAX)?, plot_px(look.width, panels)),
    };
    let y = scales::number(means.column(&axes.y)?, Scale { is_log: axes.log_y, ..Scale::default() });
    let at = json!({ "x": x });
    let (mut layers, mut settings_drawn, mut notes) = (Vec::new(), None, Vec::new());
    if let (Some(settings), Some(setting)) = (settings, &setting) {
        let mut settings = prepared(settings)?.with_texts(&[setting]);
        let levels = settings.column(setting)?.levels();
        if levels.len() > SETTINGS_MAX {
            notes.push(format!("only {SETTINGS_MAX} of {} combinations are drawn", levels.len()));
            let known: std::collections::BTreeSet<&String> = levels.iter().take(SETTINGS_MAX).collect();
            let column = settings.column(setting)?;
            let rows: Vec<usize> = (0..settings.rows()).filter(|row| known.contains(&column.text(*row))).collect();
            settings = settings.taken(&rows);
        }
        let opacity = if levels.len() > 60 { 0.25 } else { 0.6 };
        let line = with(&at, &[("y", y.clone()), ("detail", json!({ "field": escaped(setting), "type": "nominal" }))]);
        let mark = json!({ "type": "line", "color": "#999999", "strokeWidth": 0.5, "strokeOpacity": opacity });
        layers.push(json!({ "data": { "name": "settings" }, "mark": mark, "encoding": line }));
        settings_drawn = Some(("settings".to_owned(), settings));
    }
    if let Some(interval) = &axes.interval {
        layers.push(whiskers(&at, &y, interval));
    }
    let mean = with(&at, &[("y", y)]);
    let mark = json!({ "type": "line", "color": look.colour(0), "point": { "filled": true, "size": 24, "color": look.colour(0) } });
    layers.push(json!({ "mark": merged(mark, json!({ "strokeWidth": 1.8 })), "encoding": mean }));
    let mut content = Content::new(means, layers, axes.facet.as_deref());
    content.datasets.extend(settings_drawn);
    content.notes = notes;
    content.figure(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;
    use crate::table::Column;

    #[test]
    fn means_and_combinations_are_two_sets_of_rows() {
        let means = Table::new([
            Column::numbers("cap_w", "cap", "W", [70.0, 90.0]),
            Column::numbers("wait_s", "wait", "s", [5.0, 3.0]),
        ]);
        let settings = Table::new([
            Column::numbers("cap_w", "cap", "W", [70.0, 90.0, 70.0]),
            Column::numbers("wait_s", "wait", "s", [6.0, 3.0, 4.0]),
            Column::texts("setting", "", ["ctc", "ctc", "sdsc"]),
        ]);
        let axes = Axes { colour: Some("setting".to_owned()), ..Axes::of("cap_w", "wait_s") };
        let figure = effect(&means, Some(&settings), &axes, &Look::of(Width::Column)).expect("a figure");
        assert_eq!(
            figure.spec()["datasets"]["rows"],
            json!([{ "cap_w": 70.0, "wait_s": 5.0 }, { "cap_w": 90.0, "wait_s": 3.0 }])
        );
        assert_eq!(figure.spec()["datasets"]["settings"][2]["setting"], "sdsc");
        let csv = String::from_utf8(figure.csv().expect("rows")).expect("text");
        assert!(csv.starts_with("drawn_as,cap_w,wait_s,setting\nrows,70,5,\n"), "{csv}");
        assert!(csv.contains("settings,70,6,ctc\n"), "{csv}");
    }
}
