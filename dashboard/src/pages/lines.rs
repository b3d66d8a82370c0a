//! Each combination as a line across its axes and metrics: parallel coordinates.

use std::collections::BTreeSet;
use std::fmt::Write;

use maud::{Markup, html};
use powersweep_dataset::labels::shortened;
use powersweep_dataset::survey::{Level, Point, Survey};
use powersweep_dataset::words::{self, count, number};

use super::survey::form;
use crate::address::task_link;
use crate::plot::{named, sampled};
use crate::scale::Scale;

/// Size of the drawing, and room for labels (units).
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 16.0;
const SIDE: f64 = 70.0;
/// Axes of the drawing, beside its metrics.
const AXES_MAX: usize = 8;
/// Maximum number of lines, so that the page stays small. Combinations of the front are drawn before others are.
const LINES_MAX: usize = 200;
/// Values of an axis that have a label.
const LABELS_MAX: usize = 16;
/// Characters of a label, as far as labels stay different.
const LABEL_MAX: usize = 14;
/// Steps of the scale of colours.
const STEPS: usize = 5;

/// An axis or a metric of the drawing.
struct Coordinate {
    title: String,
    /// Place and text of its labels.
    labels: Vec<(f64, String)>,
    /// The place of each line; `None` without a value.
    places: Vec<Option<f64>>,
}

/// `name`: the name of the experiment.
pub(super) fn live(survey: &Survey, name: &str) -> Markup {
    let shown = &survey.shown;
    let front: BTreeSet<u64> = shown.front.iter().map(|point| point.index).collect();
    let others = shown.points.iter().filter(|point| !front.contains(&point.index));
    let mut points: Vec<&Point> = others.take(LINES_MAX.saturating_sub(front.len())).collect();
    let others = points.len();
    // The lines of the front lie above the others.
    points.extend(shown.front.iter().take(LINES_MAX));
    html! {
        (sampled(survey))
        (form(survey, name, "lines"))
        @if points.is_empty() { p.empty { "No task has a value in both columns." } } @else { (drawing(survey, &points, others, name)) }
    }
}

/// `others`: number of the points before those of the front.
fn drawing(survey: &Survey, points: &[&Point], others: usize, name: &str) -> Markup {
    let (choice, shown) = (&survey.choice, &survey.shown);
    let columns = columns(survey, points);
    let across = |at: usize| SIDE + (WIDTH - 2.0 * SIDE) * at as f64 / (columns.len() - 1).max(1) as f64;
    let path = |line: usize| {
        let mut path = String::new();
        for (at, column) in columns.iter().enumerate() {
            if let Some(place) = column.places[line] {
                let _ = write!(path, "{}{:.0} {place:.0}", if path.is_empty() { 'M' } else { 'L' }, across(at));
            }
        }
        path
    };
    let values: Vec<f64> = points.iter().filter_map(|point| point.of).collect();
    let (least, most) = ends(&values).unwrap_or_default();
    let step = |point: &Point| {
        let share = point.of.map_or(0.0, |of| (of - least) / (most - least).max(f64::MIN_POSITIVE));
        ((share * STEPS as f64) as usize).min(STEPS - 1)
    };
    html! {
        div.table tabindex="0" role="region" aria-label="Combinations as lines" {
            figure.plot.broad {
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{} as lines across axes and metrics", count(points.len() as u64, "combination"))) {
                    @for (line, point) in points.iter().enumerate() {
                        a href=(task_link(name, point.index)) tabindex="-1" {
                            path class=(if line >= others { "line front".to_owned() } else { format!("line line{}", step(point)) }) d=(path(line)) { title { (spoken(survey, point)) } }
                        }
                    }
                    g aria-hidden="true" {
                        @for (at, column) in columns.iter().enumerate() {
                            path.lines d=(format!("M{:.0} {TOP}V{:.0}", across(at), HEIGHT - BOTTOM)) {}
                            text text-anchor="middle" x=(format!("{:.0}", across(at))) y=(if at % 2 == 0 { 14 } else { 30 }) { (column.title) }
                            @for (place, text) in &column.labels { text x=(format!("{:.0}", across(at) + 4.0)) y=(format!("{:.0}", place + 4.0)) { (text) } }
                        }
                    }
                }
                figcaption {
                    span.key { svg viewBox="0 0 10 10" aria-hidden="true" { path.line.front d="M0 5h10" {} } "Pareto front in " (choice.y) " and " (choice.x) } " "
                    @for step in [0, STEPS - 1] {
                        span.key { svg viewBox="0 0 10 10" aria-hidden="true" { path class=(format!("line line{step}")) d="M0 5h10" {} } (choice.of) " " (number(if step == 0 { least } else { most })) } " "
                    }
                    "Each line is a combination, with its means over the seeds, and links to its tasks."
                    @if points.len() < shown.combinations { " " (points.len()) " of " (shown.combinations) " combinations are drawn: the front, and a random sample of the others." }
                    @if survey.axes.len() > AXES_MAX { " The first " (AXES_MAX) " of " (survey.axes.len()) " axes are drawn." }
                }
            }
        }
    }
}

/// The axes in the order of the manifest's columns, then the chosen metrics.
fn columns(survey: &Survey, points: &[&Point]) -> Vec<Coordinate> {
    let (choice, shown) = (&survey.choice, &survey.shown);
    let (low, high) = (HEIGHT - BOTTOM - 8.0, TOP + 8.0);
    let axis = |(at, (title, levels)): (usize, (&String, &Vec<Level>))| {
        let place = |level: usize| low - (low - high) * (level as f64 + 0.5) / levels.len().max(1) as f64;
        let every = levels.len().div_ceil(LABELS_MAX).max(1);
        let texts = levels.iter().map(|level| words::value(&level.text)).collect::<Vec<_>>();
        let texts = shortened(&texts, |text| text.chars().count() <= LABEL_MAX);
        let labels = (0..).map(place).zip(texts).step_by(every).collect();
        let places = points.iter().map(|point| Some(place(point.levels[at] as usize))).collect();
        Coordinate { title: title.clone(), labels, places }
    };
    let metric = |title: &str, values: Vec<Option<f64>>| {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let scale = Scale::new(ends(&known).unwrap_or_default(), low, high);
        let labels = scale.labels().into_iter().map(|(place, text)| (f64::from(place), text)).collect();
        let places = values.into_iter().map(|value| value.map(|value| f64::from(scale.at(value)))).collect();
        let title = format!("{}{}", named(survey, title), if scale.is_log { ", log" } else { "" });
        Coordinate { title, labels, places }
    };
    let axes = survey.axes.iter().zip(&shown.effects).take(AXES_MAX).enumerate();
    let mut columns: Vec<Coordinate> = axes.map(axis).collect();
    columns.push(metric(&choice.y, points.iter().map(|point| Some(point.y)).collect()));
    columns.push(metric(&choice.x, points.iter().map(|point| Some(point.x)).collect()));
    if choice.of != choice.x && choice.of != choice.y {
        columns.push(metric(&choice.of, points.iter().map(|point| point.of).collect()));
    }
    columns
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let pairs = values.iter().map(|value| (*value, *value));
    pairs.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// The values of a combination in words.
fn spoken(survey: &Survey, point: &Point) -> String {
    let levels = survey.axes.iter().zip(&survey.shown.effects).zip(&point.levels);
    let values = levels.map(|((axis, levels), level)| (axis, &levels[*level as usize].text));
    let values =
        values.filter(|(_, value)| !value.is_empty()).map(|(axis, value)| format!("{axis} {}, ", words::value(value)));
    let choice = &survey.choice;
    format!("{}{} {}, {} {}", values.collect::<String>(), choice.y, number(point.y), choice.x, number(point.x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{survey, survey_of};

    #[test]
    fn a_combination_is_one_line_across_its_values_and_metrics() {
        let rows = [
            (["easy", ""], 1, [1.0, 5.0, 10.0]),
            (["saving", "2"], 1, [3.0, 4.0, 20.0]),
            (["saving", "10"], 1, [2.0, 6.0, 30.0]),
        ];
        let html = live(&survey_of(["policy", "bound"], &rows), "e").into_string();
        for text in [
            "<title>policy saving, bound 10, y 6, x 2</title>",
            "<title>policy easy, y 5, x 1</title>",
            "href=\"results?name=e&amp;where=task_index%3D2\" tabindex=\"-1\"",
            "class=\"line line4\"",
            ">none</text>",
            "action=\"lines\"",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        // The front is easy and the bound of 2; every line has all five columns.
        assert_eq!(html.matches("class=\"line front\" d=\"M").count() - 1, 2, "{html}");
        let lines: Vec<&str> =
            html.split("<path class=\"line ").skip(1).filter(|rest| rest.contains("<title>")).collect();
        assert!(
            lines.iter().all(|line| line.split('"').nth(2).is_some_and(|path| path.matches('L').count() == 4)),
            "{lines:?}"
        );
    }

    #[test]
    fn a_page_of_many_combinations_is_small() {
        let names: Vec<String> = (0..3_000).map(|n| format!("a policy with a name of some length {n}")).collect();
        let rows: Vec<(f64, f64, &str, f64)> =
            (0..3_000).map(|n| (n as f64, (n * 7 % 13) as f64, names[n].as_str(), n as f64)).collect();
        let html = live(&survey(&rows), "e").into_string();
        assert!(html.len() < 60_000, "{} bytes", html.len());
        assert!(html.contains("200 of 3000 combinations are drawn"), "{html}");
        assert!(live(&survey(&[]), "e").into_string().contains("No task has a value in both columns"));
    }
}
