//! Actions on a submitted experiment: pause, resume, cancel, retry, priority, prune, delete.
//!
//! Every action is idempotent: the reply to a repeated action says that nothing changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use powersweep_proto::v1::farm_message::Body;
use powersweep_proto::v1::{self, ExperimentState, FailureKind, LeaseId};
use uuid::Uuid;

use super::experiment::Experiment;
use super::index_set::IndexSet;
use super::lease::Return;
use super::leaving::is_aside;
use super::pending::Group;
use super::{Action, ClientId, Farm, Now, Reply};
use crate::records::Record;

/// Priorities that users can give.
pub const PRIORITIES: RangeInclusive<i32> = -1000..=1000;

impl Farm {
    pub(super) fn control(&mut self, client: ClientId, name: &str, action: &Action, by: Option<&str>, now: Now) {
        let Some(experiment) = self.experiments.get(name) else {
            return self.out.reply(client, Reply::NotFound(format!("there is no experiment {name}")));
        };
        if let Some(owner) = by.and_then(|user| experiment.other_owner(user)) {
            let refusal = format!(
                "{name} was submitted by {owner}: ask {owner}, or give --any-owner if {owner}'s experiment shall change"
            );
            return self.out.reply(client, Reply::Forbidden(refusal));
        }
        let before = experiment.record.state();
        if let Action::Delete(v1::Delete { force, data_too }) = action {
            return self.delete(client, name, *force, *data_too, now);
        }
        if let Some(refusal) = deletable_only(experiment) {
            return self.out.reply(client, Reply::Refused(refusal));
        }
        if matches!(action, Action::Resume(_) | Action::Retry(_))
            && let Some(experiment) = self.experiments.get_mut(name)
        {
            experiment.unclaimed = false;
        }
        if let Action::Prune(_) = action {
            return self.prune(client, name, now);
        }
        let done = match action {
            Action::Pause(_) => self.pause(name, before, now),
            Action::Resume(_) => self.resume(name, before, now),
            Action::Cancel(_) => self.cancel(name, before, now),
            Action::Retry(chosen) => self.retry(name, chosen, now),
            Action::SetPriority(set) => self.set_priority(name, set.priority),
            Action::Delete(_) | Action::Prune(_) => Ok((false, 0)),
        };
        let reply = done.map_or_else(|refusal| refusal, |(changed, tasks)| self.controlled(name, changed, tasks));
        self.out.reply(client, reply);
        self.wake_all();
    }

    pub(super) fn controlled(&self, name: &str, changed: bool, tasks: u64) -> Reply {
        let experiment = &self.experiments[name];
        Reply::Controlled(v1::ControlReply {
            state: self.state_of(experiment).0.into(),
            tasks,
            running: experiment.leased.len(),
            changed,
            to_run: experiment.open_tasks(),
        })
    }

    fn pause(&mut self, name: &str, before: ExperimentState, now: Now) -> Result<(bool, u64), Reply> {
        match before {
            ExperimentState::Paused => return Ok((false, 0)),
            ExperimentState::Running | ExperimentState::Waiting => {}
            ExperimentState::Cancelled => {
                return Err(Reply::Refused(format!("{name} is cancelled: it has no running tasks to pause")));
            }
            _ => return Err(Reply::Refused(format!("{name} has ended: it has no tasks to pause"))),
        }
        self.set_state(name, ExperimentState::Paused);
        self.ask_for_queued(|lease_of| lease_of == name, None);
        self.publish_due(name, now);
        Ok((true, 0))
    }

    fn resume(&mut self, name: &str, before: ExperimentState, now: Now) -> Result<(bool, u64), Reply> {
        match before {
            ExperimentState::Running | ExperimentState::Waiting => return Ok((false, 0)),
            ExperimentState::Paused | ExperimentState::Cancelled => {}
            ExperimentState::Failed => {
                return Err(Reply::Refused(format!(
                    "{name} has ended, and some tasks failed for good: `retry` runs them again"
                )));
            }
            _ => return Err(Reply::Refused(format!("{name} has finished: every task has a row"))),
        }
        self.set_state(name, ExperimentState::Running);
        self.publish_due(name, now);
        Ok((true, 0))
    }

    fn cancel(&mut self, name: &str, before: ExperimentState, now: Now) -> Result<(bool, u64), Reply> {
        match before {
            ExperimentState::Cancelled => return Ok((false, 0)),
            ExperimentState::Running | ExperimentState::Waiting | ExperimentState::Paused => {}
            _ => return Err(Reply::Refused(format!("{name} has ended: it has no tasks to cancel"))),
        }
        self.set_state(name, ExperimentState::Cancelled);
        self.revoke_all(name, now);
        self.publish_due(name, now);
        Ok((true, 0))
    }

    fn set_priority(&mut self, name: &str, priority: i32) -> Result<(bool, u64), Reply> {
        check_priority(priority)?;
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        if experiment.record.priority == priority {
            return Ok((false, 0));
        }
        experiment.record.priority = priority;
        self.put_experiment(name);
        Ok((true, 0))
    }

    pub(super) fn set_state(&mut self, name: &str, state: ExperimentState) {
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        experiment.record.set_state(state);
        self.put_experiment(name);
    }

    /// Makes tasks that failed for good pending again. Returns whether there were any, and their number.
    fn retry(&mut self, name: &str, chosen: &v1::Retry, now: Now) -> Result<(bool, u64), Reply> {
        let indices: BTreeSet<u64> = chosen.indices.iter().copied().collect();
        let kinds: BTreeSet<FailureKind> = chosen.kinds().collect();
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        if let Some(broken) = &experiment.broken {
            return Err(Reply::Refused(format!("{name} cannot run: {broken}")));
        }
        let is_task = |index: &u64| experiment.sweep.as_ref().is_some_and(|sweep| sweep.task(*index).is_some());
        if let Some(index) = indices.iter().find(|index| !is_task(index)) {
            return Err(Reply::Invalid(format!("{name} has no task {index}")));
        }
        let chosen = |index: u64, kind: FailureKind| {
            (indices.is_empty() || indices.contains(&index)) && (kinds.is_empty() || kinds.contains(&kind))
        };
        // Tasks with the same number of attempts form a group. Tasks that crashed get leases of one task, so that the
        // next crash has one suspect.
        let mut open: BTreeMap<(u32, bool), IndexSet> = BTreeMap::new();
        let mut tasks = 0;
        for failure in experiment.failures.values_mut().filter(|f| f.quarantined && chosen(f.index, f.kind())) {
            tasks += 1;
            failure.quarantined = false;
            failure.forgiven = failure.attempts;
            experiment.failed.remove(failure.index);
            experiment.quarantined -= u64::from(!failure.kind().is_final());
            let alone = failure.kind() == FailureKind::Crash;
            open.entry((failure.attempts + 1, alone)).or_default().insert(failure.index);
            self.out.put(Record::Failure(failure.clone()));
        }
        for ((attempt, alone), indices) in open {
            let most = if alone { 1 } else { u64::MAX };
            let group = Group { indices, attempt, most, not_before: now.mono, avoid: None, suspect: alone };
            experiment.pending.give_back(group);
        }
        let ended = matches!(experiment.record.state(), ExperimentState::Finished | ExperimentState::Failed);
        if tasks > 0 && ended {
            self.set_state(name, ExperimentState::Running);
        }
        Ok((tasks > 0, tasks))
    }

    /// Requests hand-backs of leased tasks that have not started: of the experiments that `chosen` accepts, from one
    /// worker or from all.
    pub(super) fn ask_for_queued(&mut self, chosen: impl Fn(&str) -> bool, only: Option<Uuid>) {
        let asked = self.leases.iter().filter(|(_, lease)| only.is_none_or(|worker| lease.grant.worker == worker));
        let asked: Vec<(LeaseId, Uuid)> = asked
            .filter(|(_, lease)| chosen(&lease.grant.experiment))
            .map(|(id, lease)| (*id, lease.grant.worker))
            .collect();
        for (id, worker) in asked {
            self.send_revoke(id, worker, true);
        }
    }

    /// Ends all leases of an experiment; running tasks are stopped.
    pub(super) fn revoke_all(&mut self, name: &str, now: Now) {
        let leases = self.leases.iter().filter(|(_, lease)| lease.grant.experiment == name);
        let leases: Vec<(LeaseId, Uuid)> = leases.map(|(id, lease)| (*id, lease.grant.worker)).collect();
        for (id, worker) in leases {
            self.send_revoke(id, worker, false);
            self.give_back_all(id, Return::Blameless, now);
        }
    }

    fn send_revoke(&mut self, id: LeaseId, worker: Uuid, queued_only: bool) {
        let Some(conn) = self.workers.get(&worker).and_then(|worker| worker.conn) else { return };
        self.out.send(conn, Body::Revoke(v1::Revoke { lease: Some(id), ranges: Vec::new(), queued_only }));
    }
}

/// Why an experiment accepts no request but its deletion; `None` if it accepts others.
pub(super) fn deletable_only(experiment: &Experiment) -> Option<String> {
    let name = experiment.name();
    if let Some(leaving) = &experiment.leaving {
        return Some(format!("{name} is being removed: {}", leaving.describe()));
    }
    is_aside(name).then(|| format!("{name} was set aside: it can be read and deleted, but does not run again"))
}

/// Refuses priorities outside [`PRIORITIES`].
pub(super) fn check_priority(priority: i32) -> Result<(), Reply> {
    if PRIORITIES.contains(&priority) {
        return Ok(());
    }
    let (least, most) = (PRIORITIES.start(), PRIORITIES.end());
    Err(Reply::Invalid(format!("priority {priority} is not from {least} to {most}; a higher one is served first")))
}
