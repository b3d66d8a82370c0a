//! The means of combinations in two metrics as a drawing, with their Pareto front.
//!
//! Each value of an axis has a mark of its own shape beside its colour; the values of a numeric axis have discs that grow
//! and change their lightness with the number. The marks of a value are the markers of one path: a point costs some five
//! bytes. Some points have an area with their values in words, and a link to their tasks.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use powersweep_dataset::survey::{COMBINATIONS_MAX, Level, Point, Survey};
use powersweep_dataset::words::{count, number, value};

use crate::address::task_link;
use crate::scale::Scale;

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
/// Steps of the scale of a numeric axis; the mark after them is for none.
const STEPS: usize = MARKS - 1;
/// Up to this number of points, each has its values in words; of more points, those of the front have them.
const WORDS_MAX: usize = 100;
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

/// The points of one mark.
struct Group<'a> {
    /// The value, or the range of values; empty for none.
    text: String,
    /// The class of the mark's colour in the style sheet.
    class: String,
    shape: String,
    points: Vec<&'a Point>,
}

/// The groups in the order of their marks. A value keeps its mark while rows arrive.
fn groups(survey: &Survey) -> Vec<Group<'_>> {
    let mut by: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in &survey.shown.points {
        by.entry(&point.group).or_default().push(point);
    }
    let none = [Level::default()];
    let levels: &[Level] = survey.by().map_or(&none[..], |by| &survey.shown.effects[by]);
    let is_numeric = Level::are_numbers(levels);
    // Numbers ascend, and none is the last value.
    let numbers = levels.iter().filter(|level| !level.text.is_empty()).count();
    let steps = numbers.min(STEPS);
    let mut groups: Vec<(usize, Group<'_>)> = Vec::new();
    for (at, level) in levels.iter().enumerate() {
        let points = by.remove(level.text.as_str()).unwrap_or_default();
        let mark = match is_numeric {
            true if at < numbers => at * steps / numbers,
            true => STEPS,
            false => at.min(MARKS - 1),
        };
        match groups.last_mut().filter(|(last, _)| *last == mark) {
            Some((_, group)) => {
                group.points.extend(points);
                let first = group.text.split(" to ").next().unwrap_or_default();
                group.text = if is_numeric { format!("{first} to {}", value(&level.text)) } else { OTHERS.to_owned() };
            }
            None => {
                let (class, shape) = match is_numeric {
                    // The darkest and largest disc is that of the greatest number, whatever the number of steps is.
                    true if at < numbers => (format!("step{}", mark + STEPS - steps), disc(mark + STEPS - steps)),
                    true => ("other".to_owned(), SHAPES[MARKS - 1].to_owned()),
                    false => (format!("mark{mark}"), SHAPES[mark].to_owned()),
                };
                let text = if level.text.is_empty() { String::new() } else { value(&level.text) };
                groups.push((mark, Group { text, class: format!("mark {class}"), shape, points }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The mark of a step of the scale of numbers.
fn disc(step: usize) -> String {
    let radius = 1.9 + 0.4 * step as f64;
    format!("M5 {:.1}a{radius:.1} {radius:.1} 0 1 0 .01 0z", 5.0 - radius)
}

/// The drawing with its legend; nothing without points. `choose`: the name of the experiment, for links to tasks.
pub(crate) fn plot(survey: &Survey, choose: Option<&str>) -> Markup {
    let Some([across, along]) = survey.shown.span else { return html! {} };
    let x = Scale::new(across, f64::from(LEFT), f64::from(WIDTH - MARGIN));
    let y = Scale::new(along, f64::from(HEIGHT - BOTTOM), f64::from(MARGIN));
    let groups = groups(survey);
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
                    @for (at, group) in groups.iter().enumerate() { (marker(&format!("mark{at}"), &group.class, &group.shape)) }
                    (marker("ring", "ring", RING))
                }
                (axes(survey, &x, &y))
                @for (at, group) in groups.iter().enumerate() {
                    @let marks = format!("url(#mark{at})");
                    path.marks marker-start=(marks) marker-mid=(marks) marker-end=(marks) d=(vertices(&group.points, &x, &y)) {}
                }
                path.front marker-start="url(#ring)" marker-mid="url(#ring)" marker-end="url(#ring)" d=(line(front, &x, &y)) {}
                @for point in in_words(survey) { (area(survey, point, (x.at(point.x), y.at(point.y)), choose)) }
            }
            figcaption {
                span.key { svg viewBox="0 0 10 10" aria-hidden="true" { path.front d="M0 5h10" {} path.ring d=(RING) {} } "Pareto front: no combination is better in both" }
                " "
                @for group in groups.iter().filter(|group| !group.text.is_empty() || groups.len() > 1) {
                    span.key {
                        svg viewBox="0 0 10 10" aria-hidden="true" { path class=(group.class) d=(group.shape) {} }
                        (choice.by) ": " (if group.text.is_empty() { "none" } else { &group.text })
                    } " "
                }
                (tasks) ". Each point is the mean over the seeds of a combination. "
                @if choose.is_some() { (if shown.combinations > WORDS_MAX { "Points of the front" } else { "Points" }) " show their values, and link to their tasks. " }
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

/// The points that have their values in words.
fn in_words(survey: &Survey) -> impl Iterator<Item = &Point> {
    let shown = &survey.shown;
    let points = if shown.combinations > WORDS_MAX { &shown.front } else { &shown.points };
    points.iter().take(WORDS_MAX)
}

/// The area of a point, with its values in words. The keyboard reaches the tasks by the table of the front.
fn area(survey: &Survey, point: &Point, (x, y): (i32, i32), choose: Option<&str>) -> Markup {
    let choice = &survey.choice;
    let group = if point.group.is_empty() { String::new() } else { format!("{} {}, ", choice.by, value(&point.group)) };
    let values = format!("{} {}, {} {}", choice.y, number(point.y), choice.x, number(point.x));
    let words = format!("{group}{values}; {}, first {}", count(point.tasks, "task"), point.index);
    let circle = html! { circle.area cx=(x) cy=(y) r="7" { title { (words) } } };
    match choose {
        Some(name) => {
            html! { a href=(task_link(name, point.index)) tabindex="-1" { (circle) } }
        }
        None => circle,
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
    use crate::samples::{survey, survey_of};

    #[test]
    fn a_plot_is_small_whatever_its_points_are() {
        let rows: Vec<(f64, f64, String, f64)> = (0..20_000_u64)
            .map(|n| {
                let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
                (random as f64, (random.wrapping_mul(n) % 999_983) as f64, format!("p{}", n % 9), 1.0)
            })
            .collect();
        let rows: Vec<(f64, f64, &str, f64)> = rows.iter().map(|row| (row.0, row.1, row.2.as_str(), row.3)).collect();
        let plot = plot(&survey(&rows), Some("e")).into_string();
        assert!(plot.len() < 20_000, "{} bytes", plot.len());
        assert!(plot.contains(" of 20000 points are drawn") && plot.contains("policy: other values"));
        assert_eq!(plot.matches("<marker ").count(), MARKS + 1, "one for each value, one for the front");
    }

    #[test]
    fn points_and_front_are_drawn_and_described() {
        let plot = plot(
            &survey(&[(1.0, 5.0, "a", 1.0), (2.0, 4.0, "b", 1.0), (3.0, 6.0, "b", 1.0), (1.0, 6.0, "", 1.0)]),
            None,
        );
        let plot = plot.into_string();
        assert!(
            plot.contains("4 tasks in 4 combinations; the Pareto front, which the table below lists, has 2 points"),
            "{plot}"
        );
        assert!(plot.contains("y against x") && plot.contains("policy: none"), "{plot}");
        let front =
            plot.split("<path class=\"front\" ").nth(1).and_then(|rest| rest.split('>').next()).expect("a path");
        assert_eq!(front.matches('L').count(), 1, "two points, one line: {front}");
        assert!(super::plot(&survey(&[]), None).into_string().is_empty());
    }

    #[test]
    fn points_have_their_values_in_words_and_a_link_that_is_no_tab_stop() {
        let found = survey(&[(1.0, 5.0, "a", 1.0), (2.5, 4.0, "b", 1.0)]);
        let linked = plot(&found, Some("e")).into_string();
        for text in [
            "<title>policy b, y 4, x 2.5; 1 task, first 1</title>",
            "<a href=\"results?name=e&amp;where=task_index%3D1\" tabindex=\"-1\"><circle",
        ] {
            assert!(linked.contains(text), "{text} in {linked}");
        }
        let frozen = plot(&found, None).into_string();
        assert!(frozen.contains("<title>policy b, y 4, x 2.5;") && !frozen.contains("href"), "{frozen}");
    }

    #[test]
    fn a_numeric_axis_has_a_scale_of_discs_in_the_order_of_its_numbers() {
        let row = |value: &'static str| ([value], 1, [value.len() as f64, 1.0, 1.0]);
        let of = |values: &[&'static str]| {
            plot(&survey_of(["bound"], &values.iter().copied().map(row).collect::<Vec<_>>()), None).into_string()
        };
        let few = of(&["2", "10", "1.5", ""]);
        let order: Vec<usize> = ["bound: 1.5<", "bound: 2<", "bound: 10<", "bound: none<"]
            .iter()
            .map(|text| few.find(text).unwrap_or_else(|| panic!("{text} in {few}")))
            .collect();
        assert!(order.is_sorted() && few.contains("mark step4") && !few.contains("mark mark"), "{few}");
        let many = of(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
        assert!(many.contains("bound: 1 to 2<") && many.contains("bound: 9 to 10<"), "{many}");
        assert!(!of(&["1", "easy"]).contains("mark step"));
        let endless = of(&["unlimited", "16"]);
        assert!(endless.find("bound: 16<") < endless.find("bound: unlimited<") && endless.contains("mark step4"));
    }
}
