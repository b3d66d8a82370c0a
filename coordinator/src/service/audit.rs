//! Log lines about calls: who asked for what, and what became of it. Each call has an id, which its lines share.

use std::sync::Arc;

use powersweep_experiments::Manifest;
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use tonic::{Request, Status};
use uuid::Uuid;

use super::auth::Caller;
use crate::access::OPERATOR;

/// Target of the lines, for filters.
const AUDIT: &str = "powersweep::audit";

/// One call.
pub(super) struct Call {
    id: Uuid,
    peer: String,
    /// Taken by the check of the role.
    pub(super) by: Caller,
    /// Fingerprint of the token, if the caller has the role.
    pub(super) caller: String,
    /// Name of the client whose own token it is; `None` for the operator and for workers.
    pub(super) client: Option<Arc<str>>,
}

impl Call {
    pub(super) fn of<T>(request: &Request<T>) -> Call {
        let by = Caller::of(request);
        let peer = by.peer.map(|address| address.to_string()).unwrap_or_default();
        let client = by.admitted.as_ref().and_then(|admitted| admitted.client.clone());
        Call { id: Uuid::now_v7(), peer, by, caller: String::new(), client }
    }

    /// The name in the lines of a client's calls.
    fn name(&self) -> &str {
        self.client.as_deref().unwrap_or(OPERATOR)
    }

    /// A submit, if its caller was admitted.
    pub(super) fn submitted(&self, manifest: &str, reply: &Result<v1::SubmitReply, Status>) {
        let Call { id, peer, caller, .. } = self;
        match reply {
            Ok(reply) => tracing::info!(
                target: AUDIT, request = %id, peer, client = self.name(), token = caller, action = "submit",
                experiment = reply.experiment, generation = reply.generation, tasks = reply.tasks,
                to_run = reply.to_run, "accepted"
            ),
            Err(status) => {
                let manifest = Manifest::parse("the manifest", manifest);
                self.refused("submit", manifest.as_ref().map_or("", Manifest::name), status);
            }
        }
    }

    /// A control request, if its caller was admitted.
    pub(super) fn controlled<T>(&self, action: &str, experiment: &str, reply: &Result<T, Status>) {
        let Call { id, peer, caller, .. } = self;
        match reply {
            Ok(_) => {
                let client = self.name();
                tracing::info!(target: AUDIT, request = %id, peer, client, token = caller, action, experiment, "accepted");
            }
            Err(status) => self.refused(action, experiment, status),
        }
    }

    fn refused(&self, action: &str, experiment: &str, status: &Status) {
        let Call { id, peer, caller, .. } = self;
        // Calls without a valid token are counted only: strangers must not fill the log.
        if !caller.is_empty() {
            let (client, reason) = (self.name(), status.message());
            tracing::info!(
                target: AUDIT, request = %id, peer, client, token = caller, action, experiment, reason, "refused"
            );
        }
    }

    /// A worker's greeting.
    pub(super) fn joined(&self, hello: &v1::Hello) {
        let Call { id, peer, caller, .. } = self;
        let worker_id = Uuid::from_slice(&hello.worker_id).unwrap_or_default();
        tracing::info!(
            target: AUDIT, request = %id, peer, token = caller, action = "join", worker = hello.worker, %worker_id,
            slots = hello.slots, "greeting"
        );
    }

    /// A failed attempt, which the worker has logged with its reason.
    pub(super) fn failed(&self, failure: &v1::TaskFailure) {
        let (id, kind) = (&self.id, failure.kind().word());
        let lease = failure.lease.map(|lease| lease.to_string()).unwrap_or_default();
        tracing::debug!(
            request = %id, experiment = failure.experiment, generation = failure.generation, task = failure.index, lease,
            kind, "an attempt failed"
        );
    }
}

/// The word for an action.
pub(super) fn word(action: Option<&Action>) -> &'static str {
    match action {
        Some(Action::Pause(_)) => "pause",
        Some(Action::Resume(_)) => "resume",
        Some(Action::Cancel(_)) => "cancel",
        Some(Action::Retry(_)) => "retry",
        Some(Action::Delete(_)) => "delete",
        Some(Action::SetPriority(_)) => "priority",
        Some(Action::Prune(_)) => "prune",
        None => "none",
    }
}
