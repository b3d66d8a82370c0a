//! Events that show in the coordinator's status: states of the experiment, workers that come and go.

use std::collections::BTreeMap;

use bytes::Bytes;
use powersweep_dataset::Error;
use powersweep_proto::v1;
use serde_json::json;

use super::sink::Sink;

/// What the last status has shown.
#[derive(Default)]
pub(super) struct Watched {
    epoch: Option<u64>,
    /// Connected workers by id.
    workers: BTreeMap<Bytes, v1::WorkerStatus>,
    /// State and reason, which are given when they change.
    state: Option<(i32, String)>,
    /// Numbers that change with the rows.
    rows: Option<RowCounts>,
}

/// Done tasks, published and unpublished rows, and failed tasks with their attempts.
type RowCounts = (u64, u64, u64, Vec<(u64, u32)>);

impl Watched {
    /// Whether the coordinator has shown the experiment.
    pub(super) fn knows_experiment(&self) -> bool {
        self.state.is_some()
    }

    /// A coordinator that was not there before.
    pub(super) fn coordinator(&mut self, status: &v1::StatusReply, sink: &mut Sink<'_>) -> Result<(), Error> {
        if self.epoch.replace(status.epoch) == Some(status.epoch) {
            return Ok(());
        }
        sink.note("coordinator_found", [("epoch", status.epoch.into()), ("build", json!(status.build))])
    }

    /// Workers that have connected or left since the last look. A worker that connects again between two looks, also to
    /// another coordinator, is the same.
    pub(super) fn workers(&mut self, status: &v1::StatusReply, sink: &mut Sink<'_>) -> Result<(), Error> {
        let connected = status.workers.iter().filter(|worker| worker.connected);
        let now: BTreeMap<Bytes, v1::WorkerStatus> =
            connected.map(|worker| (worker.worker_id.clone(), worker.clone())).collect();
        let before = std::mem::replace(&mut self.workers, now);
        for (id, worker) in before.iter().filter(|(id, _)| !self.workers.contains_key(*id)) {
            let [name, id, _] = identity(id, worker);
            sink.note("worker_left", [name, id, ("leased_tasks", worker.leased_tasks.into())])?;
        }
        for (id, worker) in self.workers.iter().filter(|(id, _)| !before.contains_key(*id)) {
            sink.note("worker_joined", identity(id, worker))?;
        }
        Ok(())
    }

    /// A state of the experiment that was not the last one.
    pub(super) fn experiment(&mut self, found: &v1::ExperimentStatus, sink: &mut Sink<'_>) -> Result<(), Error> {
        let state = Some((found.state, found.reason.clone()));
        if self.state == state {
            return Ok(());
        }
        self.state = state;
        sink.state(found)
    }

    /// Whether rows have come or moved since the last call.
    pub(super) fn has_new_rows(&mut self, found: &v1::ExperimentStatus) -> bool {
        let attempts = found.failures.iter().map(|failure| (failure.index, failure.attempt)).collect();
        let counts = Some((found.done, found.rows_in_parts, found.rows_unpublished, attempts));
        std::mem::replace(&mut self.rows, counts.clone()) != counts
    }

    /// The rows of the last look were not read to the end.
    pub(super) fn forget_rows(&mut self) {
        self.rows = None;
    }
}

fn identity(id: &Bytes, worker: &v1::WorkerStatus) -> [(&'static str, serde_json::Value); 3] {
    let id = uuid::Uuid::from_slice(id).unwrap_or_default().to_string();
    [("worker", json!(worker.name)), ("worker_id", json!(id)), ("slots", worker.slots.into())]
}
