//! One experiment.

use maud::{Markup, html};
use powersweep_dataset::words::number;
use powersweep_proto::v1;

use super::experiments::remaining;
use super::failures::{self, kinds};
use crate::bins;

/// Whether no task of the experiment runs any more.
pub(crate) fn has_ended(experiment: &v1::ExperimentStatus) -> bool {
    use v1::ExperimentState::{Cancelled, Failed, Finished};
    matches!(experiment.state(), Cancelled | Failed | Finished)
}

/// How far the experiment is.
pub(super) fn progress(experiment: &v1::ExperimentStatus) -> Markup {
    let v1::ExperimentStatus { done, tasks, .. } = experiment;
    let step = if has_ended(experiment) { 1 } else { 10 };
    html! {
        // Spoken at most eleven times during a sweep, and when the state changes: the percentage of the end is exact.
        p.hidden role="status" aria-live="polite" {
            (experiment.state().word()) ", " (done * 100 / tasks.max(&1) / step * step) " percent done"
        }
        p { progress value=(done) max=(tasks.max(&1)) aria-label="Progress" {} " " (done) " of " (tasks) " tasks done" }
    }
}

/// The state as entries of a list. `linked`: the name of the experiment, for the links of a page that is not frozen.
pub(super) fn facts(experiment: &v1::ExperimentStatus, linked: Option<&str>) -> Markup {
    let failed = experiment.failed + experiment.quarantined;
    html! {
        dt { "State" } dd { (experiment.state().word()) @if !experiment.reason.is_empty() { ": " (experiment.reason) } }
        dt { "Running" } dd { (experiment.running) }
        dt { "Failed" } dd {
            (failed)
            @for (kind, count) in kinds(experiment) { ", " (kind) ": " (count) }
            @if let Some(name) = linked.filter(|_| !experiment.failures.is_empty()) {
                " " a href=(failures::address(name)) { "Show failures" }
            }
        }
        @if !has_ended(experiment) {
            dt { "Tasks/s" } dd { (number(experiment.tasks_per_s)) }
            dt { "Remaining" } dd { @let left = remaining(experiment); @if left.is_empty() { "not known" } @else { (left) } }
        }
        dt { "Priority" } dd { (experiment.priority) }
        dt { "Rows" } dd { (experiment.rows_in_parts) " in parts, " (experiment.rows_unpublished) " unpublished" }
        @if !experiment.owner.is_empty() { dt { "Owner" } dd { (experiment.owner) } }
    }
}

/// The grid of tasks.
pub(super) fn tasks(experiment: &v1::ExperimentStatus) -> Markup {
    html! { @if let Some(found) = &experiment.bins { h2 { "Tasks" } (bins::grid(found)) } }
}
