//! Forms that change an experiment, and their answers.

use maud::{Markup, html};
use powersweep_dataset::words::count;
use powersweep_proto::v1::control_request::Action;
use powersweep_proto::v1::{self, FailureKind};

use super::failures::hidden;
use super::frame;
use crate::address::{Query, link};

/// The forms of an experiment. They are outside of the changing part, which would close an open one.
pub(super) fn forms(name: &str) -> Markup {
    let change = link("change", &[("name", name)]);
    html! {
        h2 { "Change" }
        div.actions {
            @for (action, words) in [("pause", "Pause"), ("resume", "Resume")] {
                form method="post" action=(change) { (hidden(action, "", "")) button { (words) } }
            }
            form method="post" action=(change) {
                (hidden("priority", "", ""))
                label for="priority" { "Priority" }
                input id="priority" name="priority" type="number" min="-1000" max="1000" required;
                button { "Set" }
            }
            details {
                summary { "Cancel…" }
                form method="post" action=(change) {
                    (hidden("cancel", "", ""))
                    button.danger { "Stop all running tasks of " (name) }
                }
            }
        }
    }
}

/// The action of a form; `None` if no page has such a form.
pub(crate) fn action(form: &Query) -> Option<Action> {
    let kinds = || (1..=8).filter_map(|number| FailureKind::try_from(number).ok());
    match form.get("action")? {
        "pause" => Some(Action::Pause(v1::Pause {})),
        "resume" => Some(Action::Resume(v1::Resume {})),
        "cancel" => Some(Action::Cancel(v1::Cancel {})),
        "priority" => {
            let priority = form.get("priority")?.parse().ok()?;
            Some(Action::SetPriority(v1::SetPriority { priority }))
        }
        "retry" => {
            let mut retry = v1::Retry::default();
            if let Some(index) = form.get("index") {
                retry.indices.push(index.parse().ok()?);
            }
            if let Some(word) = form.get("kind") {
                retry.kinds.push(kinds().find(|kind| kind.word() == word)?.into());
            }
            Some(Action::Retry(retry))
        }
        _ => None,
    }
}

/// The answer to a form.
pub(crate) fn changed(name: &str, action: &Action, reply: Result<v1::ControlReply, String>) -> Markup {
    let text = match reply {
        Ok(reply) => done(action, &reply),
        Err(reason) => format!("Not changed: {reason}"),
    };
    let body = html! {
        h1 { (name) }
        p.empty role="status" { (text) }
        p { a href=(link("experiment", &[("name", name)])) { "Back to " (name) } }
    };
    frame(name, None, &body)
}

fn done(action: &Action, reply: &v1::ControlReply) -> String {
    let already = if reply.changed { "" } else { " already" };
    match action {
        Action::Retry(_) => format!("{} tried again.", count(reply.tasks, "task")),
        Action::SetPriority(set) => format!("The priority is {}{already}.", set.priority),
        _ => format!("The experiment is {}{already}, {} to run.", reply.state().word(), count(reply.to_run, "task")),
    }
}
