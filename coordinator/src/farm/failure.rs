//! Failed attempts: recorded, tried again on another worker, quarantined after a few.

use powersweep_proto::v1::{self, FailureKind};
use powersweep_results::Table;
use powersweep_results::identity::Micros;
use powersweep_results::{bounds, failures, wire};
use uuid::Uuid;

use super::index_set::IndexSet;
use super::pending::Group;
use super::{ConnId, Farm, Now};
use crate::records::{EncodedRows, FailureRecord};

/// Longest failure message that is kept.
const MESSAGE_BYTES_MAX: usize = 4096;

impl Farm {
    pub(super) fn task_failure(&mut self, conn: ConnId, worker: Uuid, failure: &v1::TaskFailure, now: Now) {
        self.hungry.insert(worker);
        self.out.ack(conn, failure.id);
        let Some(id) = failure.lease else { return };
        // If the lease has ended, the task is pending, leased to another worker, or settled: this attempt has no effect.
        let Some(lease) = self.leases.get(&id).filter(|lease| lease.grant.worker == worker) else { return };
        let name = lease.grant.experiment.clone();
        let Some(experiment) = self.experiments.get(&name) else { return };
        let Ok(Some(index)) = experiment.present_index(lease.grant.generation, failure.index) else { return };
        if !self.remove_from_lease(id, index) {
            return;
        }
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.progress_at = now.mono;
        }
        self.drop_if_empty(id);
        if let (Some(worker), Some(experiment)) = (self.workers.get_mut(&worker), self.experiments.get_mut(&name)) {
            // Otherwise leases of a sweep whose tasks all fail would stay as small as the first.
            let seconds = worker.slot_seconds(worker.outstanding + 1, now);
            experiment.took(1, seconds, now);
        }
        let worker_name = self.worker_name(worker);
        let kind = match failure.kind() {
            FailureKind::Unspecified => FailureKind::Panic,
            kind => kind,
        };
        self.attempt_failed(&name, index, kind, &failure.message, &worker_name, worker, now);
    }

    /// Records a failed attempt of a task that was taken out of its lease.
    #[allow(clippy::too_many_arguments, reason = "they are one failed attempt, made in three places")]
    pub(super) fn attempt_failed(
        &mut self,
        name: &str,
        index: u64,
        kind: FailureKind,
        message: &str,
        worker_name: &str,
        worker: Uuid,
        now: Now,
    ) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        if experiment.done.contains(index) || experiment.failed.contains(index) {
            return;
        }
        let before = experiment.failures.get(&index);
        let attempts = before.map_or(0, |failure| failure.attempts) + 1;
        let crashes = before.map_or(0, |failure| failure.crashes) + u32::from(kind == FailureKind::Crash);
        let forgiven = before.map_or(0, |failure| failure.forgiven);
        let last = kind.is_final() || attempts - forgiven >= self.config.attempts_max;
        let record = FailureRecord {
            experiment: name.to_owned(),
            generation: experiment.record.generation,
            index,
            attempts,
            crashes,
            kind: kind.into(),
            quarantined: last,
            // Shown on terminals.
            message: powersweep_proto::plain(&bounds::cut(message, MESSAGE_BYTES_MAX)).into_owned(),
            worker: worker_name.to_owned(),
            at_us: now.wall_us,
            forgiven,
        };
        self.failure_row(name, &record, now);
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let record = experiment.set_failure(record);
        self.out.put(record);
        if last {
            let revoked = self.remove_from_all_leases(name, index);
            self.revoke(&revoked);
            self.publish_due(name, now);
        } else if !experiment.leased.contains(index) {
            let wait = self.config.retry_after.saturating_mul(1 << (attempts - 1).min(10));
            experiment.pending.give_back(Group {
                indices: IndexSet::from_iter([index]),
                attempt: attempts + 1,
                most: 1,
                not_before: now.mono + wait,
                avoid: Some(worker),
                suspect: kind == FailureKind::Crash,
            });
            self.wake_idle();
        }
    }

    /// Stores the attempt's row of the `failures` table.
    fn failure_row(&mut self, name: &str, failure: &FailureRecord, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let Some(task) = experiment.sweep.as_ref().and_then(|sweep| sweep.task(failure.index)) else {
            return lost_row(failure, &"the manifest has no such task");
        };
        let mut rows = failures::Builder::new();
        rows.push(
            &task,
            &[failures::Failure {
                attempt: failure.attempts,
                worker: failure.worker.clone(),
                failed_at: Micros(failure.at_us),
                failure_kind: failure.kind().word().to_owned(),
                message: failure.message.clone(),
            }],
        );
        let generation = experiment.record.generation;
        match wire::encode(&rows.finish()) {
            Ok(encoded) => {
                let rows = EncodedRows { rows: 1, mask: None, encoded, decoded_bytes: 0 };
                self.put_rows(name, Table::Failures, generation, rows, now);
            }
            Err(error) => lost_row(failure, &error),
        }
    }
}

/// Logs a row of `failures` that cannot be made. The attempt counts all the same, by its record.
fn lost_row(failure: &FailureRecord, reason: &dyn std::fmt::Display) {
    let FailureRecord { experiment, index, attempts, message, .. } = failure;
    tracing::error!(
        "attempt {attempts} at task {index} of {experiment} has no row in `failures`: {reason}; it said: {message}"
    );
}
