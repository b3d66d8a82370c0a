//! All experiments.

use maud::{Markup, html};
use powersweep_dataset::words::{count, number, range};
use powersweep_proto::v1;

use super::failures::{self, kinds};
use super::list::{ListOrder, ListQuery};
use crate::address::link;

/// Rows of the table. The page stays small.
const ROWS_MAX: usize = 100;

/// Experiments whose failed tasks are named above the list.
const FAILING_MAX: usize = 3;

/// Orders of the list.
const ORDERS: [ListOrder<v1::ExperimentStatus>; 6] = [
    ("name", "name", None),
    ("failed", "most failed tasks", Some(|of| Some(-(failed(of) as f64)))),
    ("progress", "least progress", Some(|of| Some(of.done as f64 / of.tasks.max(1) as f64))),
    ("running", "most running tasks", Some(|of| Some(-(of.running as f64)))),
    ("remaining", "least remaining time", Some(|of| of.eta_s)),
    ("priority", "highest priority", Some(|of| Some(-f64::from(of.priority)))),
];

fn failed(experiment: &v1::ExperimentStatus) -> u64 {
    experiment.failed + experiment.quarantined
}

/// Links to failed tasks, before everything else on the page: the keyboard reaches them first.
fn failing(experiments: &[v1::ExperimentStatus]) -> Markup {
    let mut failing: Vec<&v1::ExperimentStatus> = experiments.iter().filter(|of| failed(of) > 0).collect();
    failing.sort_by_key(|of| std::cmp::Reverse(failed(of)));
    html! {
        @if !failing.is_empty() {
            p.away {
                @for (at, of) in failing.iter().take(FAILING_MAX).enumerate() {
                    @if at > 0 { ", " }
                    a href=(failures::address(&of.name)) { (count(failed(of), "failed task")) " of " (of.name) }
                }
                @if failing.len() > FAILING_MAX { ", and of " (count((failing.len() - FAILING_MAX) as u64, "more experiment")) }
            }
        }
    }
}

pub(super) fn live(status: &v1::StatusReply, list: &ListQuery) -> Markup {
    let known = status.experiments.len();
    let experiments =
        list.chosen(&status.experiments, &ORDERS, |of| format!("{} {} {}", of.name, of.owner, of.state().word()));
    html! {
        (failing(&status.experiments))
        p.soft { "Data: " (status.data) ". Coordinator " (status.build) "." }
        (list.form("experiments", known, &ORDERS))
        @if known > 0 { (list.none("experiments", experiments.len())) }
        @if known == 0 {
            p.empty { "There is no experiment yet. Submit one: " code { "powersweep submit quickstart" } }
        } @else if !experiments.is_empty() {
            div.table.cards {
                table {
                    thead { tr {
                        th.name scope="col" { "Experiment" } th scope="col" { "State" } th scope="col" { "Progress" }
                        th.n scope="col" { "Running" } th.n scope="col" { "Failed" } th.n scope="col" { "Tasks/s" }
                        th scope="col" { "Remaining" } th.n scope="col" { "Priority" }
                    } }
                    tbody { @for experiment in experiments.iter().take(ROWS_MAX) { (row(experiment)) } }
                }
            }
            @if experiments.len() > ROWS_MAX {
                p { "… and " (count((experiments.len() - ROWS_MAX) as u64, "more experiment")) ": " code { "powersweep status" } " lists all." }
            }
        }
    }
}

fn row(experiment: &v1::ExperimentStatus) -> Markup {
    let v1::ExperimentStatus { name, done, tasks, .. } = experiment;
    let failed = failed(experiment);
    html! {
        tr {
            th.name scope="row" { a href=(link("experiment", &[("name", name)])) { (name) } }
            td data-label="State" {
                (experiment.state().word())
                @if !experiment.reason.is_empty() { br; span.soft { (experiment.reason) } }
            }
            td data-label="Progress" {
                progress value=(done) max=(tasks.max(&1)) aria-label=(format!("Progress of {name}")) {}
                br; (done) " of " (tasks)
            }
            td.n data-label="Running" { (experiment.running) }
            td.n data-label="Failed" {
                @if failed == 0 { "0" } @else { a href=(failures::address(name)) { (failed) } }
                @for (kind, count) in kinds(experiment) { br; span.soft { (kind) ": " (count) } }
            }
            td.n data-label="Tasks/s" { (number(experiment.tasks_per_s)) }
            td data-label="Remaining" { (remaining(experiment)) }
            td.n data-label="Priority" { (experiment.priority) }
        }
    }
}

/// The range of the remaining time that `status` shows.
pub(super) fn remaining(experiment: &v1::ExperimentStatus) -> String {
    experiment.eta_s.map_or_else(String::new, |likely_s| {
        range(experiment.eta_least_s.unwrap_or(likely_s), experiment.eta_most_s.unwrap_or(likely_s))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tasks_are_linked_before_everything_else() {
        let experiment =
            |name: &str, failed| v1::ExperimentStatus { name: name.into(), failed, tasks: 9, ..Default::default() };
        let experiments = (0..30).map(|at| experiment(&format!("e{at}"), at)).collect();
        let status = v1::StatusReply { experiments, ..Default::default() };
        let html = live(&status, &ListQuery::default()).into_string();
        let first = |element: &str| html.find(element).unwrap_or(html.len());
        assert_eq!(html.find("<a href=\"failures?name=e29#first\""), Some(first("<a ")), "{html}");
        assert!(first("<a ") < first("<input") && first("<a ") < first("<button"), "{html}");
        assert!(html.contains("29 failed tasks of e29") && html.contains("and of 26 more experiments"), "{html}");
        assert!(html.contains("action=\"experiments\""), "{html}");
    }
}
