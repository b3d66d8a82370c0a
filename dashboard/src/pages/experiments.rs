//! All experiments.

use maud::{Markup, html};
use powersweep_dataset::words::{count, number, range};
use powersweep_proto::v1;

use super::{kinds, link};

/// Rows of the table. The page stays small.
const ROWS_MAX: usize = 100;

pub(super) fn live(status: &v1::StatusReply) -> Markup {
    let experiments = &status.experiments;
    html! {
        p.soft { "Data: " (status.data) ". Coordinator " (status.build) "." }
        @if experiments.is_empty() {
            p.empty { "There is no experiment yet. Submit one: " code { "powersweep submit quickstart" } }
        } @else {
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
    let failed = experiment.failed + experiment.quarantined;
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
                @if failed == 0 { "0" } @else { a href=(link("failures", &[("name", name)])) { (failed) } }
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
