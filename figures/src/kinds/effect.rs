//! The effect of an axis: a metric at each of its values, alone and on average.

use powersweep_dataset::Frame;
use serde_json::json;

use super::axes::Axes;
use super::bars::{merged, whiskers, with};
use super::code::{few, is_on_axis, is_valid};
use super::limits::Limits;
use super::scales::{self, plot_px};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;
use crate::rows::with_texts;

/// Number of values of the axis.
const VALUES_MAX: usize = 60;
/// Thin lines beyond this number are left out.
const SETTINGS_MAX: usize = 2_000;

/// The mean of `y` at each value of `x`, with its interval, over thin lines for each combination of the other axes.
///
/// A row of `means` is one value; a row of `settings` is one value in one combination, and `colour` names its column of
/// combinations. The thin lines tell whether the axis acts alike in all of them.
pub fn effect(means: &Frame, settings: Option<&Frame>, axes: &Axes, look: &Look) -> Result<Figure> {
    let setting = axes.colour.clone();
    let axes = Axes { colour: None, ..axes.clone() };
    let is_number = is_on_axis(&means.column(&axes.x)?);
    let all = means;
    let means = axes.rows_along(all, is_number)?;
    let column = means.column(&axes.x)?;
    let panels = means.groups(axes.facet.as_deref())?.len();
    let (mut drawn, mut notes) = (means.clone(), Vec::new());
    if let (Some(settings), Some(setting)) = (settings, &setting) {
        let mut settings = with_texts(&axes.rows_along(settings, is_number)?, &[setting]);
        let levels = settings.column(setting)?.levels();
        if levels.len() > SETTINGS_MAX {
            notes.push(format!("only {SETTINGS_MAX} of {} combinations are drawn", levels.len()));
            let known: std::collections::BTreeSet<&String> = levels.iter().take(SETTINGS_MAX).collect();
            let column = settings.column(setting)?;
            settings = settings.kept(|row| known.contains(&column.text(row)));
        }
        // One table, because panels divide no other one. A mean has no value in the column of combinations, and a
        // combination has no interval: hundreds of them would cover the lines.
        drawn.push(settings.column(setting)?.without_values(drawn.rows()));
        for end in axes.interval.iter().flat_map(|(low, high)| [low, high]) {
            settings.push(drawn.column(end)?.without_values(settings.rows()));
        }
        drawn.append(&settings);
    }
    let limits = Limits::of(&drawn, &axes, false)?;
    let x = match is_number {
        true => scales::number(&column, limits.x),
        false => scales::names(&column, &few(&column, VALUES_MAX)?, plot_px(look.width, panels)),
    };
    let y = scales::number(&drawn.column(&axes.y)?, limits.y);
    let at = json!({ "x": x });
    let (mut layers, mut only_means) = (Vec::new(), json!([]));
    if let Some(setting) = setting.filter(|_| settings.is_some()) {
        let count = drawn.column(&setting)?.levels().len();
        // More lines are paler, so that dense places stay readable.
        let opacity = (4.0 / (count as f64).sqrt()).clamp(0.15, 0.6);
        let line = with(&at, &[("y", y.clone()), ("detail", json!({ "field": escaped(&setting), "type": "nominal" }))]);
        let mark = json!({ "type": "line", "color": "#999999", "strokeWidth": 0.5, "strokeOpacity": opacity });
        layers.push(json!({ "transform": [{ "filter": is_valid(&setting) }], "mark": mark, "encoding": line }));
        only_means = json!([{ "filter": format!("!{}", is_valid(&setting)) }]);
    }
    let mean = with(&at, &[("y", y.clone())]);
    // A white border sets the mean off the thin lines.
    let border = json!({ "type": "line", "color": "white", "strokeWidth": 4 });
    layers.push(json!({ "transform": only_means, "mark": border, "encoding": mean }));
    if let Some(interval) = &axes.interval {
        layers.push(whiskers(&at, &y, interval));
    }
    let mark = json!({ "type": "line", "color": look.colour(0), "point": { "filled": true, "size": 24, "color": look.colour(0) } });
    let mark = merged(mark, json!({ "strokeWidth": 1.8 }));
    layers.push(json!({ "transform": only_means, "mark": mark, "encoding": mean }));
    let mut content = Content::limited(drawn, layers, &axes, limits).without(all, &means, "a value");
    content.notes.extend(notes);
    content.figure(look)
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;
    use crate::Width;

    #[test]
    fn means_and_combinations_are_rows_of_one_table() {
        let means = Frame::of([
            Column::numbers("cap_w", "cap", "W", [70.0, 90.0]),
            Column::numbers("wait_s", "wait", "s", [5.0, 3.0]),
        ]);
        let settings = Frame::of([
            Column::numbers("cap_w", "cap", "W", [70.0, 90.0, 70.0]),
            Column::numbers("wait_s", "wait", "s", [6.0, 3.0, 4.0]),
            Column::texts("setting", "", ["ctc", "ctc", "sdsc"]),
        ]);
        let axes = Axes { colour: Some("setting".to_owned()), ..Axes::of("cap_w", "wait_s") };
        let figure = effect(&means, Some(&settings), &axes, &Look::of(Width::Column)).expect("a figure");
        let rows = figure.spec()["datasets"]["rows"].as_array().expect("rows").clone();
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[0], json!({ "cap_w": 70.0, "wait_s": 5.0, "setting": null }));
        assert_eq!(rows[4], json!({ "cap_w": 70.0, "wait_s": 4.0, "setting": "sdsc" }));
        let csv = String::from_utf8(figure.csv().expect("rows")).expect("text");
        assert!(csv.starts_with("cap_w,wait_s,setting\n70,5,\n"), "{csv}");
        assert!(csv.contains("70,6,ctc\n"), "{csv}");
        let unlimited = Frame::of([
            Column::numbers("cap_w", "cap", "W", [f64::INFINITY, 90.0]),
            Column::numbers("wait_s", "wait", "s", [5.0, 3.0]),
        ]);
        let figure =
            effect(&unlimited, None, &Axes::of("cap_w", "wait_s"), &Look::of(Width::Column)).expect("a figure");
        assert_eq!(figure.spec()["layer"][0]["encoding"]["x"]["sort"], json!(["90", "unlimited"]));
    }
}
