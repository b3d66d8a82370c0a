//! When the tasks of an experiment ran: tasks a second, busy and idle slots, the last tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use maud::{Markup, html};
use powersweep_dataset::activity::{Activity, Moment, Ran};
use powersweep_dataset::labels::shortened;
use powersweep_dataset::lanes::{Lanes, Span};
use powersweep_dataset::words::{count, duration, instant, number};
use powersweep_proto::v1;

use super::experiment::has_ended;
use crate::address::task_link;
use crate::scale::Scale;

/// Size of a chart (units), and room for its labels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 26.0;
const MARGIN: f64 = 10.0;
/// Slots of the chart of the last tasks. The page stays small.
const LANES_MAX: usize = 32;
/// Height of a slot (units).
const LANE: f64 = 20.0;
/// The last tasks of the chart ended at most this long before the last one of all (us).
const WINDOW_US: i64 = 600_000_000;
/// A chart has at least this number of intervals.
const INTERVALS_LEAST: usize = 3;
/// The last tasks of the table.
const TABLE_MAX: usize = 10;
/// Characters of a worker's name, as far as names stay different.
const NAME_MAX: usize = 14;

/// Start, elapsed time and end, as entries of a list. `now_us`: the present time.
pub(super) fn facts(experiment: Option<&v1::ExperimentStatus>, activity: &Activity, now_us: i64) -> Markup {
    let Some((first_us, last_us)) = activity.span_us else { return html! {} };
    let is_over = experiment.is_none_or(has_ended);
    let end_us = if is_over { last_us } else { now_us.max(last_us) };
    html! {
        dt { "First task began" } dd { (instant(first_us)) }
        dt { "Elapsed" } dd { (duration((end_us - first_us) as f64 / 1e6)) }
        dt { "Last task ended" } dd { (instant(last_us)) }
    }
}

pub(super) fn live(experiment: &v1::ExperimentStatus, activity: &Activity, now_us: i64) -> Markup {
    let name = experiment.name.as_str();
    html! {
        @if activity.span_us.is_none() {
            p.empty { "No task has a row yet." }
        } @else {
            dl {
                (facts(Some(experiment), activity, now_us))
                dt { "Tasks" } dd { (activity.tasks) " on " (count(activity.workers as u64, "worker")) }
            }
            (charts(activity))
            h2 { "The last tasks" }
            div.beside { (stream(activity, Some(name))) (table(activity, name)) }
            h2 { "All tasks, for ui.perfetto.dev" }
            code.command { "powersweep timeline " (name) " -o timeline.json" }
            button.copy type="button" { "Copy" }
        }
    }
}

/// Tasks a second, and busy and idle slots, over time.
pub(super) fn charts(activity: &Activity) -> Markup {
    let idle = "idle: the worker has other tasks before and after";
    html! {
        @if activity.moments.len() < INTERVALS_LEAST {
            @let ran_us = activity.span_us.map_or(0, |(first_us, last_us)| last_us - first_us);
            p.soft { "The tasks ran within " (duration(ran_us as f64 / 1e6)) ", which is too short for charts over time." }
        } @else {
            div.charts {
                (chart(activity, "Tasks that ended a second", &[("done", "ended", |moment| moment.ended_per_s)]))
                (chart(activity, "Slots of workers", &[("done", "busy", |moment| moment.busy), ("idle", idle, |moment| moment.idle)]))
            }
        }
    }
}

/// A layer of a chart: its class in the style sheet, its words and its height.
type Layer = (&'static str, &'static str, fn(&Moment) -> f64);

/// Layers above each other, the first one lowest.
fn chart(activity: &Activity, title: &str, layers: &[Layer]) -> Markup {
    let moments = &activity.moments;
    let up_to = |moment: &Moment, layer: usize| layers[..=layer].iter().map(|(.., of)| of(moment)).sum::<f64>();
    let greatest = moments.iter().map(|moment| up_to(moment, layers.len() - 1)).fold(0.0, f64::max);
    let y = Scale::of_amounts(greatest, HEIGHT - BOTTOM, MARGIN);
    let right = WIDTH - MARGIN;
    let width = (right - LEFT) / moments.len().max(1) as f64;
    let zero = y.at(0.0);
    let area = |layer: usize| {
        let mut path = format!("M{LEFT} {zero}");
        for (at, moment) in moments.iter().enumerate() {
            let _ = write!(path, "V{}H{:.1}", y.at(up_to(moment, layer)), LEFT + width * (at + 1) as f64);
        }
        path + &format!("V{zero}z")
    };
    let whole_s = activity.width_s * moments.len() as f64;
    let labels = y.labels();
    let mut lines = format!("M{LEFT} {MARGIN}V{zero}H{right}");
    labels.iter().for_each(|(at, _)| lines.push_str(&format!("M{LEFT} {at}H{right}")));
    let last = moments.last().map(|moment| {
        layers
            .iter()
            .map(|(_, words, of)| format!("{} {}", number(of(moment)), words.split(':').next().unwrap_or(words)))
            .collect::<Vec<_>>()
            .join(", ")
    });
    html! {
        figure.plot {
            h2 { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{title}: at most {}", number(greatest))) {
                path.lines d=(lines) {}
                // A lower layer covers the area of the one above it.
                @for (layer, (class, ..)) in layers.iter().enumerate().rev() { path class=(format!("area-{class}")) d=(area(layer)) {} }
                g aria-hidden="true" {
                    g text-anchor="end" { @for (at, value) in &labels { text x=(LEFT - 6.0) y=(at + 4) { (value) } } }
                    text x=(LEFT) y=(HEIGHT - 8.0) { "0 s" }
                    text text-anchor="end" x=(right) y=(HEIGHT - 8.0) { (duration(whole_s)) }
                }
            }
            figcaption {
                @for (class, words, _) in layers { span.key { svg viewBox="0 0 10 10" aria-hidden="true" { path class=(format!("area-{class}")) d="M0 0h10v10h-10z" {} } (words) } " " }
                "Means of " (duration(activity.width_s)) "." @if let Some(last) = last { " Last: " (last) "." }
            }
        }
    }
}

/// The last tasks, each on a slot of its worker.
fn stream(activity: &Activity, choose: Option<&str>) -> Markup {
    let Some((_, last_us)) = activity.span_us else { return html! {} };
    let begin_us = activity.last.iter().map(|ran| ran.start_us).min().unwrap_or(last_us).max(last_us - WINDOW_US);
    let shown: Vec<&Ran> = activity.last.iter().filter(|ran| ran.end_us >= begin_us).collect();
    let names: BTreeSet<&str> = shown.iter().map(|ran| ran.worker.as_str()).collect();
    let workers: BTreeMap<&str, u32> = names.into_iter().zip(0..).collect();
    let spans: Vec<Span> = shown
        .iter()
        .map(|ran| Span { worker: workers[ran.worker.as_str()], start_us: ran.start_us, end_us: ran.end_us })
        .collect();
    let lanes = Lanes::of(&spans);
    // The first lane of each worker.
    let firsts: Vec<u32> =
        workers.values().scan(0, |next, worker| Some(std::mem::replace(next, *next + lanes.slots(*worker)))).collect();
    let all = workers.values().map(|worker| lanes.slots(*worker) as usize).sum::<usize>();
    let names: Vec<String> = workers.keys().map(|name| (*name).to_owned()).collect();
    let labels = shortened(&names, |name| name.chars().count() <= NAME_MAX);
    let height = all.min(LANES_MAX) as f64 * LANE;
    let left = LEFT + 40.0;
    let at = |us: i64| {
        left + (us.max(begin_us) - begin_us) as f64 / (last_us - begin_us).max(1) as f64 * (WIDTH - MARGIN - left)
    };
    let lane = |task: usize| (firsts[spans[task].worker as usize] + lanes.slot(task)) as usize;
    let bar = |task: usize| {
        let (from, to) = (at(spans[task].start_us), at(spans[task].end_us));
        // A gap keeps neighbours apart.
        let length = (to - from - 0.6).max(0.8);
        html! { path.task d=(format!("M{from:.1} {:.1}h{length:.1}", (lane(task) as f64 + 0.5) * LANE)) { title { "Task " (shown[task].index) ", " (duration((spans[task].end_us - spans[task].start_us) as f64 / 1e6)) " on " (shown[task].worker) } } }
    };
    html! {
        figure.plot {
            svg viewBox=(format!("0 0 {WIDTH} {:.0}", height + BOTTOM)) role="img" aria-label=(format!("The last {} on {}", count(shown.len() as u64, "task"), count(all as u64, "slot"))) {
                @for task in (0..shown.len()).filter(|task| lane(*task) < LANES_MAX) {
                    @match choose {
                        Some(name) => {
                            a href=(task_link(name, shown[task].index)) tabindex="-1" { (bar(task)) }
                        }
                        None => (bar(task)),
                    }
                }
                g aria-hidden="true" {
                    @for (name, first) in labels.iter().zip(&firsts).filter(|(_, first)| (**first as usize) < LANES_MAX) {
                        text text-anchor="end" x=(left - 6.0) y=(format!("{:.0}", (f64::from(*first) + 0.8) * LANE)) { (name) }
                    }
                    text x=(left) y=(format!("{:.0}", height + 18.0)) { (duration((last_us - begin_us) as f64 / 1e6)) " before the last end" }
                }
            }
            @if all > LANES_MAX { figcaption { "The first " (LANES_MAX) " of " (all) " slots are shown." } }
        }
    }
}

fn table(activity: &Activity, name: &str) -> Markup {
    html! {
        div.table.narrow { table {
            thead { tr { th scope="col" { "Task" } th scope="col" { "Worker" } th.n scope="col" { "Took" } th.n scope="col" { "Ended" } } }
            tbody { @for ran in activity.last.iter().rev().take(TABLE_MAX) { tr {
                th scope="row" { a href=(task_link(name, ran.index)) { (ran.index) } }
                td { (ran.worker) }
                td.n { (duration((ran.end_us - ran.start_us) as f64 / 1e6)) }
                td.n { (instant(ran.end_us).split(' ').nth(1).unwrap_or_default()) }
            } } }
        } }
    }
}
