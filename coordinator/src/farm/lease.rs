//! Leases: which worker holds which tasks, and how tasks become pending again.

use std::time::Duration;

use powersweep_proto::v1::{FailureKind, LeaseId};
use uuid::Uuid;

use super::dispatch::to_wire;
use super::ended::Grant;
use super::experiment::Experiment;
use super::index_set::IndexSet;
use super::pending::Group;
use super::{Farm, Now};
use crate::records::{Key, LeaseRecord, Record};

/// Tasks granted to a worker.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) grant: Grant,
    /// Tasks neither handed in nor handed back, by their indices of the experiment's present generation.
    pub(super) open: IndexSet,
    pub(super) attempt: u32,
    /// Time of the grant, or of the last hand-in or failure.
    pub(super) progress_at: Duration,
    /// Its tasks were leased to another worker, too.
    pub(super) duplicate: bool,
    /// One of its tasks may have killed a worker: the worker holds no other lease.
    pub(super) suspect: bool,
    /// Tasks were taken from it that its worker may still run.
    pub(super) owed: bool,
}

/// A task that a worker need not run any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Revoked {
    pub(super) lease: LeaseId,
    pub(super) worker: Uuid,
    pub(super) index: u64,
}

/// Why tasks become pending again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    /// No task is to blame: handed back, drained, silent network.
    Blameless,
    /// The worker's connection broke: one of the tasks that it held may have killed it.
    Crash {
        /// Number of tasks that it held.
        suspects: u64,
    },
}

impl Lease {
    pub(super) fn record(&self, id: LeaseId, worker_name: &str) -> LeaseRecord {
        LeaseRecord {
            id,
            experiment: self.grant.experiment.clone(),
            generation: self.grant.generation,
            ranges: to_wire(&self.grant.ranges),
            worker_id: self.grant.worker.into(),
            worker: worker_name.to_owned(),
            attempt: self.attempt,
            ended: false,
        }
    }
}

impl Farm {
    /// Takes a task out of a lease; true if the lease had it. The caller calls [`Farm::drop_if_empty`].
    pub(super) fn remove_from_lease(&mut self, id: LeaseId, index: u64) -> bool {
        let Some(lease) = self.leases.get_mut(&id) else { return false };
        if !lease.open.remove(index) {
            return false;
        }
        if let Some(worker) = self.workers.get_mut(&lease.grant.worker) {
            worker.outstanding -= 1;
        }
        if let Some(experiment) = self.experiments.get_mut(&lease.grant.experiment) {
            release_index(experiment, index);
        }
        true
    }

    /// Ends a lease that has no open task.
    pub(super) fn drop_if_empty(&mut self, id: LeaseId) {
        if self.leases.get(&id).is_none_or(|lease| !lease.open.is_empty()) {
            return;
        }
        let Some(lease) = self.leases.remove(&id) else { return };
        if let Some(worker) = self.workers.get_mut(&lease.grant.worker) {
            worker.leases.remove(&id);
        }
        if lease.owed {
            self.keep_ended(lease.record(id, &self.worker_name(lease.grant.worker)));
        } else {
            self.out.delete(Key::Lease { id });
        }
    }

    /// Takes a task out of every lease that has it. Returns the revocations to send.
    pub(super) fn remove_from_all_leases(&mut self, name: &str, index: u64) -> Vec<Revoked> {
        let Some(experiment) = self.experiments.get(name) else { return Vec::new() };
        if !experiment.leased.contains(index) {
            return Vec::new();
        }
        let generation = experiment.record.generation;
        let holds = |lease: &Lease| lease.grant.experiment == name && lease.open.contains(index);
        let holders: Vec<(LeaseId, Uuid, bool)> = self
            .leases
            .iter()
            .filter(|(_, lease)| holds(lease))
            .map(|(id, lease)| (*id, lease.grant.worker, lease.grant.generation == generation))
            .collect();
        let mut revoked = Vec::new();
        for (lease, worker, same_generation) in holders {
            self.remove_from_lease(lease, index);
            self.owe(lease);
            self.drop_if_empty(lease);
            self.hungry.extend(self.workers.get(&worker).and_then(|w| w.conn).map(|_| worker));
            // A lease of an earlier generation has another index for the task: its worker finishes the task in vain.
            if same_generation {
                revoked.push(Revoked { lease, worker, index });
            }
        }
        revoked
    }

    /// Takes tasks out of a lease and makes them pending, unless another lease has them.
    pub(super) fn give_back(&mut self, id: LeaseId, indices: &IndexSet, why: Return, now: Now) {
        let Some(lease) = self.leases.get(&id) else { return };
        let (name, worker, attempt) = (lease.grant.experiment.clone(), lease.grant.worker, lease.attempt);
        let returned: Vec<u64> = indices.iter().filter(|&index| lease.open.contains(index)).collect();
        for &index in &returned {
            self.remove_from_lease(id, index);
        }
        self.drop_if_empty(id);
        let Some(experiment) = self.experiments.get_mut(&name) else { return };
        let indices: IndexSet = returned.into_iter().filter(|&index| !experiment.leased.contains(index)).collect();
        if why == (Return::Crash { suspects: 1 })
            && let Some(index) = indices.iter().next()
        {
            let worker_name = self.worker_name(worker);
            self.attempt_failed(&name, index, FailureKind::Crash, CRASHED, &worker_name, worker, now);
        } else {
            // Bisection: tasks lost with a worker get leases of half the size, until one task is to blame.
            let (suspect, most) = match why {
                Return::Crash { suspects } => (true, (suspects / 2).max(1)),
                Return::Blameless => (false, u64::MAX),
            };
            experiment.pending.give_back(Group {
                indices,
                attempt: attempt + u32::from(suspect),
                most,
                not_before: now.mono,
                avoid: suspect.then_some(worker),
                suspect,
            });
        }
        self.wake_idle();
    }

    /// All open tasks of a lease.
    pub(super) fn give_back_all(&mut self, id: LeaseId, why: Return, now: Now) {
        self.owe(id);
        if let Some(lease) = self.leases.get(&id) {
            let open = lease.open.clone();
            self.give_back(id, &open, why, now);
        }
    }

    fn owe(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.owed = true;
        }
    }

    /// Adds a lease to the farm and its worker, and stores it. The caller has marked its tasks as leased.
    pub(super) fn add_lease(&mut self, id: LeaseId, lease: Lease) {
        let worker = self.workers.get_mut(&lease.grant.worker).expect("leases are granted to known workers");
        worker.leases.insert(id);
        worker.outstanding += lease.open.len();
        let record = lease.record(id, &worker.name);
        self.out.put(Record::Lease(record));
        self.leases.insert(id, lease);
    }
}

const CRASHED: &str = "the worker was lost while it ran this task";

/// Removes one lease of a task.
fn release_index(experiment: &mut Experiment, index: u64) {
    match experiment.duplicated.get_mut(&index) {
        Some(leases) if *leases > 2 => *leases -= 1,
        Some(_) => drop(experiment.duplicated.remove(&index)),
        None => drop(experiment.leased.remove(index)),
    }
}

impl Farm {
    /// What was granted under a lease that continues or has ended; `None` if the lease is not known.
    pub(super) fn grant_of(&self, id: LeaseId) -> Option<&Grant> {
        self.leases.get(&id).map(|lease| &lease.grant).or_else(|| self.ended.get(id))
    }

    /// Keeps a lease that ended before its worker was heard, unless no row is needed any more.
    pub(super) fn keep_ended(&mut self, record: LeaseRecord) {
        let done = |experiment: &Experiment| experiment.is_complete() && experiment.failed.is_empty();
        if self.experiments.get(&record.experiment).is_some_and(done) {
            return self.out.delete(Key::Lease { id: record.id });
        }
        let dropped = self.ended.add(record.id, Grant::from(&record));
        if !record.ended {
            self.out.put(Record::Lease(LeaseRecord { ended: true, ..record }));
        }
        for id in dropped {
            self.out.delete(Key::Lease { id });
        }
    }

    /// Drops the ended leases of an experiment that is removed, or needs no more rows.
    pub(super) fn forget_ended(&mut self, experiment: &str) {
        for id in self.ended.remove_all(experiment) {
            self.out.delete(Key::Lease { id });
        }
    }
}
