//! The failures of an experiment.

use maud::{Markup, html};
use powersweep_dataset::words::count;
use powersweep_proto::v1;

use crate::address::link;

/// The element before the first failed task. The keyboard goes on from there when an address names it.
const FIRST: &str = "first";

/// The address of the failed tasks of an experiment.
pub(super) fn address(name: &str) -> String {
    format!("{}#{FIRST}", link("failures", &[("name", name)]))
}

/// Kinds of failures with the number of tasks that failed for good.
pub(super) fn kinds(experiment: &v1::ExperimentStatus) -> Vec<(&'static str, u64)> {
    let mut kinds = std::collections::BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    let ended = experiment.failures.iter().filter(|failure| failure.r#final);
    for failure in ended.filter(|failure| seen.insert((failure.kind, &failure.message))) {
        *kinds.entry(failure.kind().word()).or_insert(0) += failure.equal.max(1);
    }
    kinds.into_iter().collect()
}

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
        div id=(FIRST) tabindex="-1" { (groups(&experiment.failures, Some(&change))) }
        @if !experiment.failures.is_empty() {
            p.soft { "All failures: " code { "powersweep results " (name) " --table failures" } }
        }
    }
}

/// Groups of failures of one kind with one message, each with its first task. Failures of tasks that are tried again are groups
/// of their own. `change`: the address of the forms; none on a frozen page.
pub(super) fn groups(failures: &[v1::Failure], change: Option<&str>) -> Markup {
    let mut groups: Vec<Vec<&v1::Failure>> = Vec::new();
    for failure in failures {
        let is_equal = |group: &&mut Vec<&v1::Failure>| {
            let first = group[0];
            (first.kind, &first.message, first.r#final) == (failure.kind, &failure.message, failure.r#final)
        };
        match groups.iter_mut().find(is_equal) {
            Some(group) => group.push(failure),
            None => groups.push(vec![failure]),
        }
    }
    html! { @for group in &groups { (one(group, change)) } }
}

fn one(group: &[&v1::Failure], change: Option<&str>) -> Markup {
    let (first, others) = group.split_first().expect("a group has a failure");
    let all = first.equal.max(group.len() as u64);
    html! {
        section.failure aria-label=(format!("Task {}", first.index)) {
            strong { (if all > 1 { count(all, "task") } else { format!("Task {}", first.index) }) } ", " (first.kind().word()) ": " (first.message)
            p.soft {
                @if all > 1 { "For example task " (first.index) ". " }
                (attempt(first))
            }
            @if !first.reproduce.is_empty() {
                code.command { (first.reproduce) }
                @if change.is_some() { button.copy type="button" { "Copy" } }
            }
            (retry(first, "Retry this task", change))
            @if !others.is_empty() {
                details {
                    summary { "Others that failed in this way" @if (all - 1) > others.len() as u64 { ", the first " (others.len()) } }
                    ul { @for failure in others { li {
                        "Task " (failure.index) ". " (attempt(failure)) " " (retry(failure, "Retry", change))
                    } } }
                }
            }
        }
    }
}

fn attempt(failure: &v1::Failure) -> Markup {
    html! { "Attempt " (failure.attempt) " on " (failure.worker) @if failure.r#final { ", for good" } "." }
}

fn retry(failure: &v1::Failure, words: &str, change: Option<&str>) -> Markup {
    html! {
        @if let Some(change) = change {
            form method="post" action=(change) {
                (hidden("retry", "index", &failure.index.to_string()))
                button aria-label=(format!("Retry task {}", failure.index)) { (words) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_failures_are_one_block_with_few_tab_stops() {
        let failure = |index: u64, message: &str| v1::Failure {
            index,
            message: message.to_owned(),
            reproduce: "powersweep simulate".to_owned(),
            equal: 96,
            ..v1::Failure::default()
        };
        let failures = (0..40).map(|index| failure(index, "no such log")).chain([failure(40, "too long")]).collect();
        let experiment =
            v1::ExperimentStatus { name: "e".into(), failed: 97, failures, ..v1::ExperimentStatus::default() };
        let html = live(&experiment).into_string();
        assert_eq!(html.matches("<section").count(), 2, "{html}");
        assert_eq!(html.matches("<details").count(), 1, "{html}");
        assert!(html.contains("<strong>96 tasks</strong>") && html.contains("For example task 0"), "{html}");
        // Closed details have one stop, their summary.
        let shown =
            html.split("<details").map(|part| part.rsplit("</details>").next().unwrap_or(part)).collect::<String>();
        assert!(shown.matches("<button").count() <= 6, "{shown}");
        assert!(html.contains("aria-label=\"Retry task 39\""), "{html}");
    }
}
