//! Failed attempts: recorded, tried again elsewhere, given up after a few.

use powersweep_proto::v1;
use powersweep_results::{failures, wire};
use uuid::Uuid;

use super::experiment::is_final;
use super::index_set::IndexSet;
use super::pending::Group;
use super::{ConnId, Farm, Now};
use crate::records::{EncodedRows, FailureKind, FailureRecord, LeaseId, Table};

/// Longest failure message that is kept.
const MESSAGE_BYTES_MAX: usize = 4096;

impl Farm {
    pub(super) fn task_failure(&mut self, conn: ConnId, worker: Uuid, failure: &v1::TaskFailure, now: Now) {
        self.hungry.insert(worker);
        self.out.ack(conn, failure.id);
        let Some(id) = failure.lease.map(|l| LeaseId { epoch: l.epoch, counter: l.counter }) else { return };
        // Under a lease that is over, the task is leased to another or settled: this attempt decides nothing.
        let Some(lease) = self.leases.get(&id).filter(|lease| lease.worker == worker) else { return };
        let name = lease.experiment.clone();
        let Some(experiment) = self.experiments.get(&name) else { return };
        let Ok(Some(index)) = experiment.present_index(lease.generation, failure.index) else { return };
        if !self.remove_from_lease(id, index) {
            return;
        }
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.progress_at = now.mono;
        }
        self.drop_if_empty(id);
        if let (Some(worker), Some(experiment)) = (self.workers.get_mut(&worker), self.experiments.get_mut(&name)) {
            // Without it, leases of a sweep whose tasks all fail would stay as small as the first.
            let seconds = worker.slot_seconds(worker.outstanding + 1, now);
            experiment.took(1, seconds, now);
        }
        let worker_name = self.worker_name(worker);
        self.attempt_failed(&name, index, kind_of(failure.kind()), &failure.message, &worker_name, worker, now);
    }

    /// Books a failed attempt of a task that is in no lease of the one who failed.
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
        let last = is_final(kind) || attempts - forgiven >= self.config.attempts_max;
        let record = FailureRecord {
            experiment: name.to_owned(),
            generation: experiment.record.generation,
            index,
            attempts,
            crashes,
            kind,
            quarantined: last,
            message: cut(message).to_owned(),
            worker: worker_name.to_owned(),
            at_us: now.wall_us,
            forgiven,
        };
        self.failure_row(name, &record, now);
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let record = experiment.set_failure(record, is_final(kind));
        self.out.put(record);
        if last {
            let revoked = self.remove_from_all_leases(name, index);
            self.revoke(&revoked);
            self.roll_due(name, now);
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
        let Some(task) = experiment.sweep.as_ref().and_then(|sweep| sweep.task(failure.index)) else { return };
        let mut rows = failures::Builder::new();
        rows.push(
            &task,
            &[failures::Failure {
                attempt: failure.attempts,
                worker: failure.worker.clone(),
                failed_at_us: failure.at_us,
                kind: word(failure.kind).to_owned(),
                message: failure.message.clone(),
            }],
        );
        let Ok(bytes) = wire::encode(&rows.finish()) else { return };
        let generation = experiment.record.generation;
        let rows = EncodedRows { rows: 1, mask: None, encoded: bytes };
        self.put_rows(name, Table::Failures, generation, rows, now);
    }
}

/// The first bytes of a message, at a character's border.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// A kind of failure from a message.
pub fn kind_of(kind: v1::FailureKind) -> FailureKind {
    match kind {
        v1::FailureKind::Invalid => FailureKind::Invalid,
        v1::FailureKind::Panic | v1::FailureKind::Unspecified => FailureKind::Panic,
        v1::FailureKind::Deadline => FailureKind::Deadline,
        v1::FailureKind::EventLimit => FailureKind::EventLimit,
        v1::FailureKind::MemoryLimit => FailureKind::MemoryLimit,
        v1::FailureKind::Policy => FailureKind::Policy,
        v1::FailureKind::Workload => FailureKind::Workload,
        v1::FailureKind::Crash => FailureKind::Crash,
    }
}

/// As messages have it.
pub(super) fn to_wire(kind: FailureKind) -> v1::FailureKind {
    match kind {
        FailureKind::Invalid => v1::FailureKind::Invalid,
        FailureKind::Panic => v1::FailureKind::Panic,
        FailureKind::Deadline => v1::FailureKind::Deadline,
        FailureKind::EventLimit => v1::FailureKind::EventLimit,
        FailureKind::MemoryLimit => v1::FailureKind::MemoryLimit,
        FailureKind::Policy => v1::FailureKind::Policy,
        FailureKind::Workload => v1::FailureKind::Workload,
        FailureKind::Crash => v1::FailureKind::Crash,
    }
}

/// The word in the `failures` table.
fn word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Invalid => "spec",
        FailureKind::Panic => "panic",
        FailureKind::Deadline => "deadline",
        FailureKind::EventLimit => "events",
        FailureKind::MemoryLimit => "memory",
        FailureKind::Policy => "policy",
        FailureKind::Workload => "workload",
        FailureKind::Crash => "crash",
    }
}
