//! The failures of an experiment.

use maud::{Markup, html};
use powersweep_dataset::words::count;
use powersweep_proto::v1;

use super::{kinds, link};

pub(super) fn live(experiment: &v1::ExperimentStatus) -> Markup {
    let name = &experiment.name;
    let failed = experiment.failed + experiment.quarantined;
    let kinds = kinds(experiment);
    let change = link("change", &[("name", name)]);
    html! {
        @if experiment.failures.is_empty() {
            p.empty { "No task of " (name) " has failed." }
        } @else {
            p role="status" { (count(failed, "task")) " failed for good." }
        }
        @if failed > 0 {
            div.actions {
                form method="post" action=(change) { (hidden("retry", "", "")) button { "Retry all" } }
                @for (kind, count) in &kinds {
                    form method="post" action=(change) { (hidden("retry", "kind", kind)) button { "Retry " (kind) " (" (count) ")" } }
                }
            }
        }
        @for failure in &experiment.failures { (one(failure, Some(&change))) }
        @if !experiment.failures.is_empty() {
            p.soft { "One task of each kind and message comes first. All failures: " code { "powersweep results " (name) " --table failures" } }
        }
    }
}

/// `change`: where the form of a page that is not frozen goes.
pub(super) fn one(failure: &v1::Failure, change: Option<&str>) -> Markup {
    html! {
        section.failure aria-label=(format!("Task {}", failure.index)) {
            strong { "Task " (failure.index) } ", " (failure.kind().word()) ": " (failure.message)
            p.soft {
                "Attempt " (failure.attempt) " on " (failure.worker)
                @if failure.r#final { ", for good" }
                @if failure.equal > 1 { "; " (count(failure.equal, "task")) " failed in this way" }
            }
            @if !failure.reproduce.is_empty() {
                code.command { (failure.reproduce) }
                @if change.is_some() { button.copy type="button" { "Copy" } }
            }
            @if let Some(change) = change {
                form method="post" action=(change) {
                    (hidden("retry", "index", &failure.index.to_string()))
                    button aria-label=(format!("Retry task {}", failure.index)) { "Retry this task" }
                }
            }
        }
    }
}

/// The fields of a form that users do not see.
pub(super) fn hidden(action: &str, field: &str, value: &str) -> Markup {
    html! {
        input type="hidden" name="action" value=(action);
        @if !field.is_empty() { input type="hidden" name=(field) value=(value); }
    }
}
