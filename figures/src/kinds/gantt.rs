//! Gantt charts: jobs on processors.

use std::collections::HashSet;

use powersweep_dataset::{Column, Frame};
use serde_json::json;

use super::axes::Axes;
use super::code::{Code, is_ordered};
use super::processors::{Held, Ranges, listed, packed};
use super::scales::{self, Scale, extent};
use crate::Result;
use crate::figure::{Content, Figure};
use crate::look::Look;
use crate::rows::{empty, numeric};

/// Names of the columns that the figure adds.
const FIRST: &str = "first_proc";
const END: &str = "end_proc";
/// Number of rectangles.
const RECTANGLES_MAX: usize = 20_000;
/// Dots of a printed figure for each px: narrower rectangles at the place of another one are not seen.
const DOTS_PER_PX: f64 = 3.0;

/// The columns of a Gantt chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Gantt {
    /// Column of the starts.
    pub start: String,
    /// Column of the ends.
    pub finish: String,
    /// Column of the number of processors.
    pub procs: String,
    /// Column with the processors as ranges such as `0-49 60`. Without one, or where it is null, a job gets the lowest
    /// free processors.
    pub list: Option<String>,
    /// Column of the colour, such as the gear: numbers are shown from light to dark.
    pub colour: Option<String>,
    /// Column whose values have panels of their own.
    pub facet: Option<String>,
    /// The times that are shown; all without it.
    pub between: Option<(f64, f64)>,
}

/// Rectangles of jobs over time and processors. A row is one job. Jobs outside `between` are clipped, and jobs too narrow to
/// be printed beside others are left out, which the notes of the figure count.
pub fn gantt(table: &Frame, gantt: &Gantt, look: &Look) -> Result<Figure> {
    let axes = Axes { colour: gantt.colour.clone(), facet: gantt.facet.clone(), ..Axes::of(&gantt.start, FIRST) };
    let numbers = [gantt.start.as_str(), &gantt.finish, &gantt.procs];
    let is_ordered = match &gantt.colour {
        Some(colour) => is_ordered(&table.column(colour)?),
        None => false,
    };
    let rows = axes.rows(table, &numbers, &[])?;
    let (low, high) = shown(&rows, gantt)?;
    let rectangles = rectangles(&rows, gantt)?;
    let procs = rectangles.iter().map(|rectangle| rectangle.end).max().unwrap_or(1);
    let panels = rows.groups(gantt.facet.as_deref())?.len();
    let dots = (scales::plot_px(look.width, panels) * DOTS_PER_PX, look.width.height_px() * DOTS_PER_PX);
    let inside = rectangles.into_iter().filter_map(|rectangle| rectangle.clipped(low, high)).collect::<Vec<_>>();
    let count = inside.len();
    let place =
        |instant: f64, proc: u64| ((instant - low) / (high - low) * dots.0, proc as f64 / procs as f64 * dots.1);
    let kept = visible(inside, place);
    if kept.is_empty() {
        return Err(empty(format!("no job runs between {low} s and {high} s")));
    }
    if kept.len() > RECTANGLES_MAX {
        return Err(empty(format!("{} rectangles are more than {RECTANGLES_MAX}: show a shorter time", kept.len())));
    }
    let drawn = drawn(&rows, gantt, &kept, &axes)?;
    let code = Code::of(&drawn, &axes, look)?;
    let time = Scale { domain: Some((low, high)), ..Scale::default() };
    let across = Scale { domain: Some((0.0, procs as f64)), ..Scale::default() };
    let start = drawn.column(&gantt.start)?;
    let time = scales::number(&start.titled("time", start.unit()), time);
    let mut encoding = json!({
        "x": time, "x2": { "field": crate::figure::escaped(&gantt.finish) },
        "y": scales::number(&drawn.column(FIRST)?, across), "y2": { "field": END },
    });
    match &code {
        Some(code) if is_ordered => code.ordered(&mut encoding),
        Some(code) => code.fills(&mut encoding),
        None => {}
    }
    let thin = if kept.len() > 1_000 { 0.1 } else { 0.3 };
    let mut mark = json!({ "type": "rect", "stroke": "#000000", "strokeWidth": thin, "clip": true });
    if code.is_none() {
        mark["color"] = json!(look.colour(5));
    }
    let left_out = count - kept.len();
    let mut content = Content::new(drawn, vec![json!({ "mark": mark, "encoding": encoding })], gantt.facet.as_deref());
    if left_out > 0 {
        content.notes.push(format!("{left_out} of {count} rectangles are narrower than a printed dot and left out"));
    }
    content.figure(look)
}

/// The times that are shown.
fn shown(rows: &Frame, gantt: &Gantt) -> Result<(f64, f64)> {
    let (starts, ends) = (rows.column(&gantt.start)?, rows.column(&gantt.finish)?);
    let instants = starts.finite().chain(ends.finite());
    let (low, high) = gantt.between.or_else(|| extent(instants).map(scales::from_zero)).unwrap_or((0.0, 1.0));
    match low < high {
        true => Ok((low, high)),
        false => Err(empty(format!("there is no time between {low} s and {high} s"))),
    }
}

/// A job on neighbouring processors.
#[derive(Debug, Clone, Copy)]
struct Rectangle {
    row: usize,
    panel: usize,
    start: f64,
    finish: f64,
    first: u64,
    /// One after the last processor.
    end: u64,
}

impl Rectangle {
    /// The part within these times, if there is one.
    fn clipped(self, low: f64, high: f64) -> Option<Rectangle> {
        let (start, finish) = (self.start.max(low), self.finish.min(high));
        (start < finish).then_some(Rectangle { start, finish, ..self })
    }
}

fn rectangles(rows: &Frame, gantt: &Gantt) -> Result<Vec<Rectangle>> {
    let (starts, ends) = (numeric(rows, &gantt.start)?, numeric(rows, &gantt.finish)?);
    let procs = numeric(rows, &gantt.procs)?;
    let lists = gantt.list.as_ref().map(|name| rows.column(name)).transpose()?;
    let mut rectangles = Vec::new();
    for (panel, (_, in_panel)) in rows.groups(gantt.facet.as_deref())?.into_iter().enumerate() {
        let held = |row: &usize| Held {
            start: starts.number(*row).unwrap_or_default(),
            finish: ends.number(*row).unwrap_or_default(),
            count: procs.number(*row).unwrap_or_default().max(0.0) as u64,
        };
        let held: Vec<Held> = in_panel.iter().map(held).collect();
        let list: Option<Vec<Ranges>> =
            lists.as_ref().and_then(|lists| in_panel.iter().map(|row| listed(&lists.text(*row))).collect());
        let ranges = list.unwrap_or_else(|| packed(&held));
        for ((row, held), ranges) in in_panel.iter().zip(&held).zip(ranges) {
            let of = |(first, end)| Rectangle { row: *row, panel, start: held.start, finish: held.finish, first, end };
            rectangles.extend(ranges.into_iter().map(of));
        }
    }
    Ok(rectangles)
}

/// The rectangles that are at least a dot wide and high, and the first one of those that share a dot.
fn visible(rectangles: Vec<Rectangle>, place: impl Fn(f64, u64) -> (f64, f64)) -> Vec<Rectangle> {
    let mut taken = HashSet::new();
    let is_seen = |rectangle: &Rectangle| {
        let (left, low) = place(rectangle.start, rectangle.first);
        let (right, high) = place(rectangle.finish, rectangle.end);
        let is_large = right - left >= 1.0 && high - low >= 1.0;
        is_large || taken.insert((rectangle.panel, left as i64, right as i64, low as i64, high as i64))
    };
    rectangles
        .into_iter()
        .filter({
            let mut is_seen = is_seen;
            move |rectangle| is_seen(rectangle)
        })
        .collect()
}

/// The table of the rectangles.
fn drawn(rows: &Frame, gantt: &Gantt, kept: &[Rectangle], axes: &Axes) -> Result<Frame> {
    let mut drawn = rows.picked(&kept.iter().map(|rectangle| rectangle.row).collect::<Vec<_>>());
    let numbers = |value: fn(&Rectangle) -> f64| kept.iter().map(value);
    drawn.push(rows.column(&gantt.start)?.with_numbers(numbers(|rectangle| rectangle.start)));
    drawn.push(rows.column(&gantt.finish)?.with_numbers(numbers(|rectangle| rectangle.finish)));
    drawn.push(Column::numbers(FIRST, "processors", "", kept.iter().map(|rectangle| rectangle.first as f64)));
    drawn.push(Column::numbers(END, "", "", kept.iter().map(|rectangle| rectangle.end as f64)));
    let names: Vec<&str> = [gantt.start.as_str(), &gantt.finish, FIRST, END].into_iter().chain(axes.names()).collect();
    drawn.keep(&names);
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    fn chart(jobs: &[(f64, f64, f64, f64)], between: Option<(f64, f64)>) -> Result<Figure> {
        let column =
            |name: &str, of: fn(&(f64, f64, f64, f64)) -> f64| Column::numbers(name, name, "s", jobs.iter().map(of));
        let table = Frame::of([
            column("start_s", |j| j.0),
            column("finish_s", |j| j.1),
            column("procs", |j| j.2),
            column("gear", |j| j.3),
        ]);
        let columns = Gantt {
            start: "start_s".to_owned(),
            finish: "finish_s".to_owned(),
            procs: "procs".to_owned(),
            list: None,
            colour: Some("gear".to_owned()),
            facet: None,
            between,
        };
        gantt(&table, &columns, &Look::of(Width::Column))
    }

    #[test]
    fn jobs_are_clipped_to_the_times_that_are_shown() {
        let figure = chart(&[(0.0, 10.0, 2.0, 1.0), (0.0, 4.0, 1.0, 0.0), (6.0, 20.0, 1.0, 0.0)], Some((5.0, 15.0)));
        assert_eq!(
            figure.expect("a figure").spec()["datasets"]["rows"],
            json!([
                { "start_s": 5.0, "finish_s": 10.0, "first_proc": 0.0, "end_proc": 2.0, "gear": "1" },
                { "start_s": 6.0, "finish_s": 15.0, "first_proc": 2.0, "end_proc": 3.0, "gear": "0" },
            ])
        );
        assert!(chart(&[(0.0, 1.0, 1.0, 0.0)], Some((5.0, 15.0))).is_err());
    }

    #[test]
    fn jobs_narrower_than_a_dot_are_counted() {
        let short = |at: u32| (f64::from(at) / 1024.0, f64::from(at + 1) / 1024.0, 1.0, 0.0);
        let jobs: Vec<_> = (0..5_000).map(short).chain([(0.0, 1e6, 4.0, 1.0)]).collect();
        let figure = chart(&jobs, None).expect("a figure");
        assert_eq!(figure.datasets()[0].1.rows(), 2);
        assert_eq!(figure.notes(), ["4999 of 5001 rectangles are narrower than a printed dot and left out"]);
    }
}
