//! The means of combinations in two metrics as a drawing, with their Pareto front.
//!
//! Each value of an axis has a mark of its own shape beside its colour. The marks of a value are the markers of one path:
//! a point costs some five bytes.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use powersweep_dataset::words::count;

use crate::scale::Scale;
use crate::survey::{COMBINATIONS_MAX, Point, Survey};

/// Size of the drawing (units).
const WIDTH: i32 = 640;
const HEIGHT: i32 = 400;
/// Room for labels (units).
const LEFT: i32 = 92;
const BOTTOM: i32 = 46;
const MARGIN: i32 = 12;
/// Values with a mark of their own; the last mark is for all others.
const MARKS: usize = 6;
/// The name of the last mark where values share it.
const OTHERS: &str = "other values";
/// Shapes of the marks, around the middle of ten by ten units.
const SHAPES: [&str; MARKS] = [
    "M5 2.4a2.6 2.6 0 1 0 .01 0z",
    "M2.4 2.4h5.2v5.2h-5.2z",
    "M5 1.4l3.6 6.4h-7.2z",
    "M5 1l3.2 4-3.2 4-3.2-4z",
    "M4 1.2h2v2.8h2.8v2h-2.8v2.8h-2v-2.8h-2.8v-2h2.8z",
    "M5 8.6l3.6-6.4h-7.2z",
];
/// The mark of a point of the front, around the other one.
const RING: &str = "M5 .8a4.2 4.2 0 1 0 .01 0z";

/// The values that distinguish points, each with its points.
struct Groups<'a> {
    /// Text of the value and its points, in the order of the marks.
    named: Vec<(String, Vec<&'a Point>)>,
}

impl<'a> Groups<'a> {
    fn new(survey: &'a Survey) -> Groups<'a> {
        let mut by: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
        for point in &survey.shown.points {
            by.entry(&point.group).or_default().push(point);
        }
        // In the order of the axis's values, so that a value keeps its mark while rows arrive.
        let order: Vec<&str> = survey
            .by()
            .map_or_else(|| vec![""], |by| survey.shown.effects[by].iter().map(|level| level.text.as_str()).collect());
        let mut named: Vec<(String, Vec<&Point>)> = Vec::new();
        for (at, text) in order.iter().enumerate() {
            let points = by.remove(text).unwrap_or_default();
            match named.last_mut().filter(|_| at >= MARKS) {
                Some((name, others)) => {
                    OTHERS.clone_into(name);
                    others.extend(points);
                }
                None => named.push(((*text).to_owned(), points)),
            }
        }
        Groups { named }
    }
}

/// The drawing with its legend; nothing without points.
pub(crate) fn plot(survey: &Survey) -> Markup {
    let Some([across, along]) = survey.shown.span else { return html! {} };
    let x = Scale::new(across, f64::from(LEFT), f64::from(WIDTH - MARGIN));
    let y = Scale::new(along, f64::from(HEIGHT - BOTTOM), f64::from(MARGIN));
    let groups = Groups::new(survey);
    let choice = &survey.choice;
    let shown = &survey.shown;
    let (front, rows) = (&shown.front, shown.rows_of_points);
    let tasks = format!("{} in {}", count(rows, "task"), count(shown.combinations as u64, "combination"));
    html! {
        figure.plot {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-labelledby="plot-title plot-desc" {
                title id="plot-title" { (named(survey, &choice.y)) " against " (named(survey, &choice.x)) }
                desc id="plot-desc" {
                    (tasks) "; the Pareto front, which the table below lists, has " (count(front.len() as u64, "point")) "."
                }
                defs {
                    @for (at, _) in groups.named.iter().enumerate() { (marker(&format!("mark{at}"), &format!("mark mark{at}"), SHAPES[at])) }
                    (marker("ring", "ring", RING))
                }
                (axes(survey, &x, &y))
                @for (at, (_, points)) in groups.named.iter().enumerate() {
                    @let marks = format!("url(#mark{at})");
                    path.marks marker-start=(marks) marker-mid=(marks) marker-end=(marks) d=(vertices(points, &x, &y)) {}
                }
                path.front marker-start="url(#ring)" marker-mid="url(#ring)" marker-end="url(#ring)" d=(line(front, &x, &y)) {}
            }
            figcaption {
                span.key { svg viewBox="0 0 10 10" aria-hidden="true" { path.front d="M0 5h10" {} path.ring d=(RING) {} } "Pareto front: no combination is better in both" }
                " "
                @for (at, (name, _)) in groups.named.iter().enumerate().filter(|(_, (name, _))| !name.is_empty() || groups.named.len() > 1) {
                    span.key {
                        svg viewBox="0 0 10 10" aria-hidden="true" { path class=(format!("mark mark{at}")) d=(SHAPES[at]) {} }
                        (choice.by) ": " (if name.is_empty() { "none" } else { name })
                    } " "
                }
                (tasks) ". Each point is the mean over the seeds of a combination. "
                @if shown.points.len() < shown.combinations {
                    "A random " (shown.points.len()) " of " (shown.combinations) " points are drawn; the front is computed from all points. "
                }
                @if rows < shown.rows {
                    (shown.rows - rows) " of " (shown.rows) " tasks have no value in one of the two columns."
                }
            }
        }
    }
}

/// Says that the survey has a sample of the combinations, if so.
pub(crate) fn sampled(survey: &Survey) -> Markup {
    html! {
        @if let Some((kept, of)) = survey.shown.sample {
            p.soft {
                "The experiment has more than " (COMBINATIONS_MAX) " combinations. Points, front and effects are those of a random sample: "
                (kept) " combinations, one in " (of) "."
            }
        }
    }
}

/// A metric with its unit.
pub(crate) fn named(survey: &Survey, metric: &str) -> String {
    survey.units.get(metric).map_or_else(|| metric.to_owned(), |unit| format!("{metric} ({unit})"))
}

fn marker(id: &str, class: &str, shape: &str) -> Markup {
    html! {
        marker id=(id) viewBox="0 0 10 10" refX="5" refY="5" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" {
            path class=(class) d=(shape) {}
        }
    }
}

/// Grid lines with their values, and the names of the axes.
fn axes(survey: &Survey, x: &Scale, y: &Scale) -> Markup {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - MARGIN);
    let (across, along) = (x.labels(), y.labels());
    let mut lines = format!("M{LEFT} {MARGIN}V{bottom}H{right}");
    across.iter().for_each(|(at, _)| lines.push_str(&format!("M{at} {bottom}V{MARGIN}")));
    along.iter().for_each(|(at, _)| lines.push_str(&format!("M{LEFT} {at}H{right}")));
    let name = |metric: &str, scale: &Scale| {
        format!("{}{}", named(survey, metric), if scale.is_log { ", logarithmic" } else { "" })
    };
    let middle = (MARGIN + bottom) / 2;
    html! {
        path.lines d=(lines) {}
        g aria-hidden="true" {
            g text-anchor="middle" { @for (at, value) in &across { text x=(at) y=(bottom + 18) { (value) } } }
            g text-anchor="end" { @for (at, value) in &along { text x=(LEFT - 6) y=(at + 4) { (value) } } }
            text text-anchor="middle" x=((LEFT + right) / 2) y=(HEIGHT - 8) { (name(&survey.choice.x, x)) }
            text text-anchor="middle" transform=(format!("translate(14 {middle}) rotate(-90)")) { (name(&survey.choice.y, y)) }
        }
    }
}

/// A path whose vertices are the points. Points at the same place of the drawing are one vertex.
fn vertices(points: &[&Point], x: &Scale, y: &Scale) -> PreEscaped<String> {
    let mut places: Vec<(i32, i32)> = points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    places.sort_unstable();
    places.dedup();
    let mut path = String::new();
    let (mut from_x, mut from_y) = (0, 0);
    for (at, (x, y)) in places.into_iter().enumerate() {
        let (right, down) = (x - from_x, y - from_y);
        // A negative number needs no blank before it.
        let gap = |n: i32| if n < 0 { "" } else { " " };
        let begin = if at == 0 { "m" } else { gap(right) };
        let _ = write!(path, "{begin}{right}{}{down}", gap(down));
        (from_x, from_y) = (x, y);
    }
    PreEscaped(path)
}

fn line(front: &[Point], x: &Scale, y: &Scale) -> String {
    let mut places: Vec<(i32, i32)> = front.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    places.dedup();
    let step = |(at, (x, y)): (usize, &(i32, i32))| format!("{}{x} {y}", if at == 0 { "M" } else { "L" });
    places.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::survey;

    #[test]
    fn a_plot_is_small_whatever_its_points_are() {
        let rows: Vec<(f64, f64, String, f64)> = (0..20_000_u64)
            .map(|n| {
                let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
                (random as f64, (random.wrapping_mul(n) % 999_983) as f64, format!("p{}", n % 9), 1.0)
            })
            .collect();
        let rows: Vec<(f64, f64, &str, f64)> = rows.iter().map(|row| (row.0, row.1, row.2.as_str(), row.3)).collect();
        let plot = plot(&survey(&rows)).into_string();
        assert!(plot.len() < 20_000, "{} bytes", plot.len());
        assert!(plot.contains(" of 20000 points are drawn") && plot.contains("policy: other values"));
        assert_eq!(plot.matches("<marker ").count(), MARKS + 1, "one for each value, one for the front");
    }

    #[test]
    fn points_and_front_are_drawn_and_described() {
        let plot =
            plot(&survey(&[(1.0, 5.0, "a", 1.0), (2.0, 4.0, "b", 1.0), (3.0, 6.0, "b", 1.0), (1.0, 6.0, "", 1.0)]));
        let plot = plot.into_string();
        assert!(
            plot.contains("4 tasks in 4 combinations; the Pareto front, which the table below lists, has 2 points"),
            "{plot}"
        );
        assert!(plot.contains("y against x") && plot.contains("policy: none"), "{plot}");
        let front =
            plot.split("<path class=\"front\" ").nth(1).and_then(|rest| rest.split('>').next()).expect("a path");
        assert_eq!(front.matches('L').count(), 1, "two points, one line: {front}");
        assert!(super::plot(&survey(&[])).into_string().is_empty());
    }
}
