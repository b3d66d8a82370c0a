//! Axes: titles with units, magnitudes of large numbers, ticks of times.

use powersweep_dataset::Column;
use powersweep_dataset::titles::{labelled, prefixed};
use serde_json::{Map, Value, json};

use super::axes::Axes;
use crate::figure::escaped;
use crate::font::{self, SIZE_PX};
use crate::labels;
use crate::look::{AXIS_PX, Width};
use crate::rows::label;

const POWERS: [&str; 7] = ["", "10³", "10⁶", "10⁹", "10¹²", "10¹⁵", "10¹⁸"];
/// Width of a name along an axis (px); longer ones are shortened.
const NAME_PX_MAX: f64 = 110.0;
/// Angle of turned names (radians): 40 degrees.
const TURNED: f64 = 0.698;
/// About how many ticks a numeric axis has.
const TICKS: u32 = 5;
/// About how many ticks a legend of colours has.
const LEGEND_TICKS: f64 = 4.0;
/// Number of intervals between the ticks of a time axis.
const TIME_TICKS: f64 = 6.0;
/// Greatest number of intervals between the ticks of an axis with values on both sides of 0.
const INTERVALS_MAX: f64 = 8.0;

/// What a numeric axis shows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scale {
    pub(super) is_log: bool,
    /// Whether the axis begins at 0.
    pub(super) zero: bool,
    pub(super) domain: Option<(f64, f64)>,
    /// The channel, where each panel has a scale of its own.
    pub(super) free: Option<&'static str>,
}

impl Scale {
    /// This scale, without a domain if each panel has its own.
    pub(super) fn free_in(self, axes: &Axes, channel: &'static str) -> Scale {
        match axes.free().contains(&channel) {
            true => Scale { domain: None, free: Some(channel), ..self },
            false => self,
        }
    }
}

/// The encoding of a numeric column: values stay unchanged in the data, labels are divided by the power of the title.
pub(super) fn number(column: &Column, scale: Scale) -> Value {
    let greatest = match scale.domain {
        Some((low, high)) => low.abs().max(high.abs()),
        None => column.finite().fold(0.0, |most: f64, value| most.max(value.abs())),
    };
    let mut axis = match (scale.is_log, scale.domain.and_then(|ends| Some((time_step(column.unit(), ends)?, ends)))) {
        (true, _) => log_axis(column, scale.domain),
        (false, Some((step, ends))) => time_axis(column, step, ends),
        (false, None) if scale.zero => {
            let mut axis = magnitude_axis(column, greatest, scale.free);
            if let Some((low, high)) = scale.domain {
                let step = step_around_zero(low, high);
                let (first, last) = ticks_around((low, high), step);
                axis["values"] =
                    json!((first as i64..=last as i64).map(|tick| tick as f64 * step).collect::<Vec<f64>>());
            }
            axis
        }
        (false, None) => {
            let span = scale.domain.or_else(|| extent(column.finite())).map_or(0.0, |(low, high)| high - low);
            // Hours are read off an axis that is hours long.
            magnitude_axis(column, if column.unit() == "s" { span } else { greatest }, scale.free)
        }
    };
    // Of labels that would touch, every second one is left out: the others stay evenly spaced.
    let overlap = if scale.is_log { "greedy" } else { "parity" };
    crate::look::merge(&mut axis, &json!({ "grid": true, "labelOverlap": overlap }));
    let mut scale_json = Map::new();
    match scale.is_log {
        true => scale_json.insert("type".to_owned(), json!("log")),
        false => scale_json.insert("zero".to_owned(), json!(scale.zero)),
    };
    match scale.domain {
        Some((low, high)) => {
            scale_json.insert("domain".to_owned(), json!([low, high]));
            scale_json.insert("nice".to_owned(), json!(false));
        }
        // The axis ends at ticks, not at a value of the data.
        None if !scale.is_log => drop(scale_json.insert("nice".to_owned(), json!(TICKS))),
        None => {}
    }
    json!({ "field": escaped(column.name()), "type": "quantitative", "axis": axis, "scale": scale_json })
}

/// The number by which labels are divided, and the unit then: a power of 1000 with its prefix; hours or days in place of
/// many seconds.
pub(super) fn magnitude(unit: &str, greatest: f64) -> (f64, String) {
    if let Some((divisor, unit)) = long_time(unit, greatest) {
        return (divisor, unit.to_owned());
    }
    let from = if prefixed(unit, 0).is_some() { 1e4 } else { 1e5 };
    if greatest < from {
        return (1.0, unit.to_owned());
    }
    let power = ((greatest.log10() / 3.0 + 1e-12).floor() as usize).min(POWERS.len() - 1);
    let shown = prefixed(unit, power as i32).unwrap_or_else(|| match unit {
        "" => POWERS[power].to_owned(),
        unit => format!("{} {unit}", POWERS[power]),
    });
    (1000f64.powi(power as i32), shown)
}

/// Hours or days for this many seconds: the divisor and the unit.
fn long_time(unit: &str, span: f64) -> Option<(f64, &'static str)> {
    match span {
        _ if unit != "s" => None,
        span if span > 4.0 * 86_400.0 => Some((86_400.0, "d")),
        span if span > 3.0 * 3_600.0 => Some((3_600.0, "h")),
        _ => None,
    }
}

/// The distance of ticks at whole hours or days (s), on an axis of seconds that is long enough.
pub(super) fn time_step(unit: &str, (low, high): (f64, f64)) -> Option<f64> {
    let (divisor, _) = long_time(unit, high - low)?;
    Some(round_step(((high - low) / divisor / TIME_TICKS).max(1.0)) * divisor)
}

fn magnitude_axis(column: &Column, greatest: f64, free: Option<&str>) -> Value {
    let (divisor, unit) = magnitude(column.unit(), greatest);
    let mut axis = divided(column, divisor, &unit);
    match free.filter(|_| long_time(column.unit(), greatest).is_some()) {
        Some(channel) => axis["values"] = json!({ "expr": ticks_of_panel(channel, divisor) }),
        None => axis["tickCount"] = json!(TICKS),
    }
    if column.finite().all(|value| value.fract() == 0.0) {
        axis["tickMinStep"] = json!(1);
    }
    axis
}

/// The expression of ticks like those of [`time_step`] in the scale of a panel, which is known when it is drawn.
fn ticks_of_panel(channel: &str, divisor: f64) -> String {
    let end = |at: usize| format!("domain('child_{channel}')[{at}]");
    let least = format!("(({} - {}) / {})", end(1), end(0), divisor * TIME_TICKS);
    let power = format!("pow(10, floor(log({least}) / LN10))");
    let part = format!("({least} <= {power} ? 1 : {least} <= 2 * {power} ? 2 : {least} <= 5 * {power} ? 5 : 10)");
    let step = format!("({power} * {part} * {divisor})");
    format!("sequence(ceil({} / {step}) * {step}, {} + {step} / 1e6, {step})", end(0), end(1))
}

/// The title and the labels of an axis or a legend in another unit.
fn divided(column: &Column, divisor: f64, unit: &str) -> Value {
    json!({ "title": labelled(column.title(), unit), "labelExpr": format!("format(datum.value / {divisor:e}, ',~g')") })
}

/// The colours of a numeric column from the least to the greatest value, with a legend in the unit of [`magnitude`].
pub(super) fn colours(column: &Column, zero: bool) -> Value {
    let (low, high) = extent(column.finite()).unwrap_or_default();
    let greatest = low.abs().max(high.abs());
    let (divisor, unit) = magnitude(column.unit(), greatest);
    let mut legend = divided(column, divisor, &unit);
    let mut scale = json!({ "zero": zero, "nice": true });
    match long_time(column.unit(), greatest).filter(|_| low < high) {
        Some(_) => {
            let step = round_step((high - low) / divisor / LEGEND_TICKS) * divisor;
            let (low, high) = ((low / step).floor() as i64, (high / step).ceil() as i64);
            let ticks: Vec<f64> = (low..=high).map(|tick| tick as f64 * step).collect();
            scale = json!({ "zero": zero, "nice": false, "domain": [ticks[0], ticks[ticks.len() - 1]] });
            legend["values"] = json!(ticks);
        }
        None => legend["tickCount"] = json!(LEGEND_TICKS),
    }
    json!({ "field": escaped(column.name()), "type": "quantitative", "scale": scale, "legend": legend })
}

/// Powers of ten, or 1, 2 and 5 times these where there are few.
fn log_axis(column: &Column, domain: Option<(f64, f64)>) -> Value {
    let extent = domain.or_else(|| extent(column.finite().filter(|value| *value > 0.0)));
    let (low, high) = extent.map_or((0, 1), |(low, high)| (low.log10().floor() as i32, high.log10().ceil() as i32));
    let parts: &[f64] = if high - low > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let every = ((high - low) / 8 + 1) as usize;
    let ticks: Vec<f64> = (low..=high)
        .step_by(every)
        .flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)))
        .filter(|tick| domain.is_none_or(|(low, high)| (low..=high).contains(tick)))
        .collect();
    // Labels from the least to the greatest tick are short in the unit of the middle one.
    let middle =
        ticks.get(ticks.len().saturating_sub(1) / 2).copied().filter(|_| column.unit() != "s").unwrap_or_default();
    let (divisor, unit) = magnitude(column.unit(), middle);
    let mut axis = divided(column, divisor, &unit);
    axis["values"] = json!(ticks);
    axis
}

/// Seconds in hours or days, with ticks at whole ones.
fn time_axis(column: &Column, step: f64, (low, high): (f64, f64)) -> Value {
    let (divisor, unit) = long_time("s", high - low).unwrap_or((1.0, "s"));
    let first = (low / step).ceil() as i64;
    let ticks: Vec<f64> = (first..).map(|tick| tick as f64 * step).take_while(|tick| *tick <= high).collect();
    let mut axis = divided(column, divisor, unit);
    axis["values"] = json!(ticks);
    axis
}

/// The least of 1, 2, 5, 10, ... that is not smaller.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// The ends of an axis with values on both sides of 0: the next ticks, of which there are enough to end it near the values.
pub(super) fn around_zero((low, high): (f64, f64)) -> Option<(f64, f64)> {
    let step = (low < 0.0 && high > 0.0).then(|| step_around_zero(low, high))?;
    let (first, last) = ticks_around((low, high), step);
    Some((first * step, last * step))
}

/// The numbers of the ticks around these ends. Ends that are ticks already have rounding errors.
fn ticks_around((low, high): (f64, f64), step: f64) -> (f64, f64) {
    ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil())
}

/// The least distance of 1, 2 or 5 times a power of ten at which ticks around these ends have few intervals.
fn step_around_zero(low: f64, high: f64) -> f64 {
    let mut step = round_step((high - low) / INTERVALS_MAX);
    loop {
        let (first, last) = ticks_around((low, high), step);
        if last - first <= INTERVALS_MAX {
            return step;
        }
        step = round_step(1.5 * step);
    }
}

/// The encoding of a column of names along an axis: in the order of the levels, turned where they are too wide.
pub(super) fn names(column: &Column, levels: &[String], plot_px: f64) -> Value {
    let slot_px = plot_px / levels.len().max(1) as f64;
    // The first of the turned names ends below its slot and begins below the axis.
    let beside_px = (AXIS_PX + slot_px / 2.0 - 4.0) / TURNED.cos();
    let shown = labels::shortened(levels, NAME_PX_MAX.min(beside_px));
    let widest = shown.iter().map(|label| font::width(label, SIZE_PX, false)).fold(0.0, f64::max);
    let angle = match () {
        () if widest + 4.0 <= slot_px => 0,
        () if slot_px >= SIZE_PX * 1.6 => -TURNED.to_degrees().round() as i32,
        () => -90,
    };
    // Each name is shown, because the place tells nothing without it. Of names that would lie on each other, every second one is
    // left out, until the others have room.
    let overlap = if slot_px < SIZE_PX { json!("parity") } else { json!(false) };
    let mut axis = json!({
        "title": label(column), "labelAngle": angle, "labelLimit": 0, "labelOverlap": overlap, "grid": false,
    });
    labels::show(&mut axis, levels, &shown);
    if angle != 0 {
        crate::look::merge(&mut axis, &json!({ "labelAlign": "right", "labelBaseline": "middle" }));
    }
    json!({ "field": escaped(column.name()), "type": "nominal", "sort": levels, "axis": axis })
}

/// About how wide the plot is, or one of its panels (px): what the vertical axis takes is not known before drawing.
pub(super) fn plot_px(width: Width, panels: usize) -> f64 {
    (width.px() - 50.0) / width.panels(panels) as f64 - 10.0
}

/// The times of an axis: from 0 on if the first instant is near.
pub(super) fn from_zero((low, high): (f64, f64)) -> (f64, f64) {
    if (0.0..0.05 * (high - low)).contains(&low) { (0.0, high) } else { (low, high) }
}

/// The least and the greatest of some numbers; `None` without any.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |extent, value| {
        let (low, high) = extent.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_shown_with_a_power() {
        assert_eq!(magnitude("J", 3.2e9), (1e9, "GJ".to_owned()));
        assert_eq!(magnitude("W", 9_000.0), (1.0, "W".to_owned()));
        assert_eq!(magnitude("s", 9_000.0), (1.0, "s".to_owned()));
        assert_eq!(magnitude("s", 35_946.0), (3_600.0, "h".to_owned()));
        assert_eq!(magnitude("s", 1e6), (86_400.0, "d".to_owned()));
        assert_eq!(magnitude("g", 4.5e5), (1e3, "kg".to_owned()));
        assert_eq!(magnitude("kWh", 4.5e4), (1e3, "MWh".to_owned()));
        assert_eq!(magnitude("", 250_000.0), (1e3, "10³".to_owned()));
    }

    #[test]
    fn times_have_ticks_at_whole_hours_or_days() {
        let time = Column::numbers("x", "time", "s", [0.0, 10.0 * 86_400.0]);
        let axis = &number(&time, Scale { domain: Some((0.0, 864_000.0)), ..Scale::default() })["axis"];
        assert_eq!(axis["title"], "time (d)");
        assert_eq!(axis["values"], json!([0.0, 172_800.0, 345_600.0, 518_400.0, 691_200.0, 864_000.0]));
        assert_eq!((from_zero((3.0, 100.0)), from_zero((30.0, 100.0))), ((0.0, 100.0), (30.0, 100.0)));
        assert_eq!(round_step(3.4), 5.0);
        assert_eq!((round_step(1.0), round_step(0.03)), (1.0, 0.05));
        assert_eq!((around_zero((-0.9, 13.4)), around_zero((0.0, 13.4))), (Some((-2.0, 14.0)), None));
        let saved = Column::numbers("saved", "saved", "%", [-0.9, 13.4]);
        let scale = Scale { zero: true, domain: Some((-2.0, 14.0)), ..Scale::default() };
        assert_eq!(number(&saved, scale)["axis"]["values"][8], 14.0);
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten() {
        let ticks = |low: f64, high: f64| {
            let scale = Scale { is_log: true, domain: Some((low, high)), ..Scale::default() };
            number(&Column::numbers("x", "x", "s", [0.0; 0]), scale)["axis"]["values"].clone()
        };
        assert_eq!(ticks(1.0, 2e5), json!([1.0, 10.0, 100.0, 1e3, 1e4, 1e5]));
        assert_eq!(ticks(10.0, 300.0), json!([10.0, 20.0, 50.0, 100.0, 200.0]));
    }

    #[test]
    fn a_logarithmic_axis_has_the_unit_of_its_middle() {
        let shown = |low: f64, high: f64, unit: &str| {
            let scale = Scale { is_log: true, domain: Some((low, high)), ..Scale::default() };
            let axis = number(&Column::numbers("x", "energy", unit, [0.0; 0]), scale)["axis"].clone();
            (axis["title"].clone(), axis["labelExpr"].clone())
        };
        assert_eq!(shown(1e10, 5e10, "J"), (json!("energy (GJ)"), json!("format(datum.value / 1e9, ',~g')")));
        assert_eq!(shown(1.0, 1e10, "J").0, "energy (kJ)");
        assert_eq!(shown(10.0, 1e6, "s").0, "energy (s)");
    }

    #[test]
    fn wide_names_are_turned() {
        let column = Column::texts("policy", "policy", ["a very long name", "b"]);
        assert_eq!(names(&column, &column.levels(), 100.0)["axis"]["labelAngle"], -40);
        let axis = names(&column, &column.levels(), 300.0)["axis"].clone();
        assert_eq!((&axis["labelAngle"], &axis["labelOverlap"]), (&json!(0), &json!(false)));
        let many = Column::numbers("bsld_threshold", "threshold", "", (0..40).map(f64::from));
        assert_eq!(names(&many, &many.levels(), 200.0)["axis"]["labelOverlap"], "parity");
    }
}
