//! The worker's side of the protocol as a synchronous state machine.
//!
//! It knows the leases of this worker, the task of each slot, the rows and failures that the coordinator has not
//! acknowledged, and whether the worker drains. It owns no clock, socket or thread: `now` is the time since the worker
//! started, messages go in and come out as values.
//!
//! Invariants:
//! - A leased task is queued, running, finished (its row or failure is with its slot or in the outbox), or settled:
//!   acknowledged, revoked, handed back, or excluded from the sweep.
//! - A hand-in or failure stays in the outbox until it is answered. It is sent again over every new connection with the
//!   same id, so that the coordinator can drop duplicates.
//! - `Hello` lists all leased tasks that are not settled. Control messages that were not sent are dropped with the
//!   connection, because the next `Hello` replaces them.

mod connection;
mod facts;
mod flush;
mod lease;
mod outbox;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use powersweep_proto::v1::worker_message::Body;
use powersweep_proto::v1::{self, LeaseId};
use uuid::Uuid;

pub use flush::FlushRule;
use lease::Lease;
pub use lease::{ExperimentKey, TaskRef};
use outbox::Outbox;
pub use outbox::{FinishedBatch, Upload};

/// Bytes of unacknowledged rows, uploads and failures beyond which no new task starts: memory stays bounded while the
/// coordinator is away or slow. Running tasks may finish, so that each slot's batch comes on top.
const OUTBOX_BYTES_MAX: usize = 256 << 20;

/// The next action of a slot.
#[derive(Debug, PartialEq, Eq)]
pub enum Take {
    /// Run this task.
    Task(TaskRef),
    /// No task is queued.
    Idle,
    /// The outbox is full.
    Full,
    /// The worker drains, or the slot is lost: no task follows.
    Stop,
}

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Greeting,
    Up,
}

#[derive(Debug)]
struct Slot {
    running: Option<TaskRef>,
    /// Read by the running task: it ends early when set.
    stop: Arc<AtomicBool>,
    /// The running task was revoked: its early end is not reported.
    revoked: bool,
    /// Its task was given up, and its thread does not return: the slot gets no more tasks.
    lost: bool,
}

#[derive(Debug)]
struct Draining {
    reason: String,
    /// When running tasks are stopped and handed back.
    stop_at: Duration,
}

/// The fixed part of `Hello`.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Name for the results' `worker` column.
    pub name: String,
    /// Identity of this process.
    pub worker_id: Uuid,
    /// Where a batch system placed it; empty outside of one.
    pub allocation: String,
    /// The versions that this build's rows depend on.
    pub versions: v1::Versions,
}

/// The worker's side of the protocol.
#[derive(Debug)]
pub struct Session {
    identity: Identity,
    slots: Vec<Slot>,
    leases: BTreeMap<LeaseId, Lease>,
    /// Leases with queued tasks, oldest grant first.
    with_queue: BTreeSet<LeaseId>,
    outbox: Outbox,
    control: VecDeque<Body>,
    link: Link,
    epoch: Option<u64>,
    draining: Option<Draining>,
    /// The coordinator of this connection shuts down: no task starts until the connection ends.
    paused: bool,
    /// The process stood still, and others may have its leases: no task starts before the coordinator has said which ones
    /// continue, or does not answer.
    asks_first: bool,
    /// Tasks whose row or failure was acknowledged.
    pub(crate) tasks_acknowledged: u64,
    /// Finished tasks that the coordinator rejected.
    pub(crate) tasks_rejected: u64,
    /// Attempts that failed.
    pub(crate) failures: u64,
}

impl Session {
    /// A worker with no lease and no connection.
    pub fn new(identity: Identity, slots: usize) -> Session {
        let slot = || Slot { running: None, stop: Arc::new(AtomicBool::new(false)), revoked: false, lost: false };
        Session {
            identity,
            slots: (0..slots).map(|_| slot()).collect(),
            leases: BTreeMap::new(),
            with_queue: BTreeSet::new(),
            outbox: Outbox::default(),
            control: VecDeque::new(),
            link: Link::Down,
            epoch: None,
            draining: None,
            paused: false,
            asks_first: false,
            tasks_acknowledged: 0,
            tasks_rejected: 0,
            failures: 0,
        }
    }

    // ---- slots

    /// The flag that ends a slot's running task early.
    pub fn stop_flag(&self, slot: usize) -> Arc<AtomicBool> {
        Arc::clone(&self.slots[slot].stop)
    }

    /// The next task of an idle slot: the oldest lease first, in the order that it was granted in.
    pub fn take(&mut self, slot: usize) -> Take {
        debug_assert!(self.slots[slot].running.is_none(), "a slot runs one task at a time");
        if self.draining.is_some() || self.slots[slot].lost {
            return Take::Stop;
        }
        if self.paused || self.asks_first {
            return Take::Idle;
        }
        if self.outbox.bytes() > OUTBOX_BYTES_MAX {
            return Take::Full;
        }
        while let Some(&id) = self.with_queue.first() {
            let lease = self.leases.get_mut(&id).expect("a lease with a queue is held");
            let Some(index) = lease.take() else {
                self.with_queue.remove(&id);
                self.settle(id);
                continue;
            };
            let task = TaskRef { lease: id, experiment: lease.experiment.clone(), index, attempt: lease.attempt };
            let state = &mut self.slots[slot];
            state.running = Some(task.clone());
            state.revoked = false;
            state.stop.store(false, Ordering::Relaxed);
            return Take::Task(task);
        }
        Take::Idle
    }

    /// The slot's task; `None` if it was given up before it ended.
    fn end_task(&mut self, slot: usize) -> Option<TaskRef> {
        let slot = &mut self.slots[slot];
        let task = slot.running.take();
        assert!(task.is_some() || slot.lost, "only a running task ends");
        task
    }

    /// The slot's task gave a row, which the slot keeps until [`Session::hand_in`]. False: the row must be dropped,
    /// because the task was given up before.
    pub fn finished(&mut self, slot: usize) -> bool {
        let Some(task) = self.end_task(slot) else { return false };
        if let Some(lease) = self.leases.get_mut(&task.lease) {
            lease.finish(task.index);
        }
        true
    }

    /// The slot's task ignores its deadline: it is reported as failed. A thread cannot be stopped, so the slot is lost,
    /// and the worker should end.
    pub fn give_up(&mut self, slot: usize, message: String) {
        if self.slots[slot].running.is_none() {
            return;
        }
        self.slots[slot].stop.store(true, Ordering::Relaxed);
        self.failed(slot, v1::FailureKind::Deadline, message);
        self.slots[slot].lost = true;
    }

    /// The slot's task failed.
    pub fn failed(&mut self, slot: usize, kind: v1::FailureKind, message: String) {
        let Some(task) = self.end_task(slot) else { return };
        if let Some(lease) = self.leases.get_mut(&task.lease) {
            lease.finish(task.index);
        }
        self.report(Some(task.lease), &task.experiment, task.index, kind, message);
    }

    /// The slot's task ended because it was told to stop: forgotten if it was revoked, handed back otherwise.
    pub fn stopped(&mut self, slot: usize) {
        let Some(task) = self.end_task(slot) else { return };
        if let Some(lease) = self.leases.get_mut(&task.lease) {
            lease.forget_running(task.index);
        }
        if !self.slots[slot].revoked {
            let ranges = vec![v1::IndexRange { start: task.index, end: task.index + 1 }];
            self.control.push_back(hand_back(task.lease, &task.experiment, ranges, false));
        }
        self.settle(task.lease);
    }

    /// The slot's index is excluded from the sweep, and so are the following ones below `next`.
    pub fn excluded(&mut self, slot: usize, next: u64) {
        let Some(task) = self.end_task(slot) else { return };
        if let Some(lease) = self.leases.get_mut(&task.lease) {
            lease.forget_running(task.index);
            lease.skip_below(next);
        }
        self.settle(task.lease);
    }

    /// Takes over a slot's batch of finished rows.
    pub fn hand_in(&mut self, batch: FinishedBatch) {
        self.outbox.hand_in(batch);
    }

    /// The rows of these finished tasks could not be encoded: each is reported as failed.
    pub fn unencodable(&mut self, experiment: &ExperimentKey, done: &[v1::LeaseTasks], reason: &str) {
        for (lease, index) in done.iter().flat_map(|tasks| tasks.indices.iter().map(|i| (tasks.lease, *i))) {
            let kind = v1::FailureKind::Panic;
            self.report(lease, experiment, index, kind, format!("its row cannot be encoded: {reason}"));
        }
    }

    fn report(
        &mut self,
        lease: Option<LeaseId>,
        experiment: &ExperimentKey,
        index: u64,
        kind: v1::FailureKind,
        message: String,
    ) {
        self.failures += 1;
        self.outbox.failure(v1::TaskFailure {
            lease,
            experiment: experiment.name.to_string(),
            index,
            kind: kind.into(),
            message,
            id: 0,
            generation: experiment.generation,
        });
    }

    fn settle(&mut self, id: LeaseId) {
        if self.leases.get(&id).is_some_and(Lease::is_over) {
            self.leases.remove(&id);
            self.with_queue.remove(&id);
        }
    }

    // ---- leases and answers

    /// A lease was granted. A lease that is held already is ignored. While the worker drains, a lease is handed back.
    pub fn lease(&mut self, lease: v1::Lease) {
        let Some(id) = lease.id else { return };
        let experiment = ExperimentKey { name: lease.experiment.as_str().into(), generation: lease.generation };
        if self.draining.is_some() || self.paused {
            self.control.push_back(hand_back(id, &experiment, lease.ranges, false));
            return;
        }
        if self.leases.contains_key(&id) {
            return;
        }
        let lease = Lease::new(experiment, lease.attempt, &lease.ranges);
        if !lease.is_over() {
            self.leases.insert(id, lease);
            self.with_queue.insert(id);
        }
    }

    /// Whether the worker has tasks that are not acknowledged.
    pub fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    /// The coordinator has these rows and failures, durably.
    pub fn acknowledged(&mut self, ids: &[u64]) {
        self.tasks_acknowledged += self.settle_entries(ids, "acknowledged");
    }

    /// The coordinator rejected these hand-ins, because this worker had lost their leases.
    pub fn rejected(&mut self, ids: &[u64]) {
        self.tasks_rejected += self.settle_entries(ids, "rejected");
    }

    /// Forgets entries of the outbox; returns the number of their tasks.
    fn settle_entries(&mut self, ids: &[u64], answer: &str) -> u64 {
        let mut tasks = 0;
        for &id in ids {
            for v1::LeaseTasks { lease, indices } in self.outbox.remove(id) {
                let Some(lease_id) = lease else { continue };
                tasks += indices.len() as u64;
                tracing::trace!(target: crate::JOURNAL, epoch = self.epoch, lease = %lease_id, ?indices, "{answer}");
                let Some(lease) = self.leases.get_mut(&lease_id) else { continue };
                for index in indices {
                    lease.acknowledge(index);
                }
                self.settle(lease_id);
            }
        }
        tasks
    }

    /// The coordinator revokes tasks of a lease; no range means all of them. Running ones are stopped. With
    /// `queued_only` running ones continue, and the queued ones are handed back.
    pub fn revoked(&mut self, revoke: &v1::Revoke) {
        let Some(id) = revoke.lease else { return };
        let Some(lease) = self.leases.get_mut(&id) else { return };
        if revoke.queued_only {
            let ranges = lease.drop_queue();
            self.with_queue.remove(&id);
            if !ranges.is_empty() {
                self.control.push_back(hand_back(id, &lease.experiment, ranges, true));
            }
            return self.settle(id);
        }
        let everything = [v1::IndexRange { start: 0, end: u64::MAX }];
        let cuts = if revoke.ranges.is_empty() { &everything[..] } else { &revoke.ranges[..] };
        let running: Vec<u64> = cuts.iter().flat_map(|cut| lease.revoke(&(cut.start..cut.end))).collect();
        for slot in &mut self.slots {
            if slot.running.as_ref().is_some_and(|t| t.lease == id && running.contains(&t.index)) {
                slot.revoked = true;
                slot.stop.store(true, Ordering::Relaxed);
            }
        }
        self.settle(id);
    }

    /// The next message to send; `None` without a message or without a connection.
    pub fn next_message(&mut self) -> Option<Body> {
        if self.link != Link::Up {
            return None;
        }
        self.control.pop_front().or_else(|| self.outbox.next_message())
    }

    /// The next object to upload; the caller answers with [`Session::uploaded`].
    pub fn next_upload(&mut self) -> Option<Upload> {
        if self.link != Link::Up { None } else { self.outbox.next_upload() }
    }

    /// An upload ended.
    pub fn uploaded(&mut self, upload: &Upload, ok: bool) {
        self.outbox.uploaded(upload, ok);
    }

    /// The heartbeat message, without the usage of the process.
    pub fn heartbeat(&self, spent: v1::TimeSpent) -> v1::Heartbeat {
        let (busy_slots, queued_tasks) = (self.busy_slots(), self.queued_tasks());
        v1::Heartbeat { busy_slots, queued_tasks, spent: Some(spent), ..v1::Heartbeat::default() }
    }

    // ---- end

    /// Starts no further task, hands back the queued ones, and stops those that still run at `now + limit`. A second
    /// drain can only shorten the limit.
    pub fn drain(&mut self, now: Duration, limit: Duration, reason: &str) {
        let stop_at = now.saturating_add(limit);
        match &mut self.draining {
            Some(draining) => draining.stop_at = draining.stop_at.min(stop_at),
            None => {
                self.draining = Some(Draining { reason: reason.to_owned(), stop_at });
                self.hand_back_queue();
            }
        }
        self.tick(now);
    }

    /// The coordinator shuts down: queued tasks are handed back. Running ones continue, and their rows are handed in to
    /// it or to the next coordinator. The pause ends with the connection.
    pub fn pause(&mut self) {
        self.paused = true;
        self.hand_back_queue();
    }

    /// Whether the coordinator shuts down and has everything that this worker holds.
    pub fn is_released(&self) -> bool {
        self.paused && self.is_settled()
    }

    fn hand_back_queue(&mut self) {
        for id in std::mem::take(&mut self.with_queue) {
            let Some(lease) = self.leases.get_mut(&id) else { continue };
            let ranges = lease.drop_queue();
            if !ranges.is_empty() {
                self.control.push_back(hand_back(id, &lease.experiment, ranges, false));
            }
            self.settle(id);
        }
    }

    /// Stops running tasks whose drain limit passed.
    pub fn tick(&mut self, now: Duration) {
        if self.draining.as_ref().is_some_and(|d| now >= d.stop_at) {
            for slot in self.slots.iter().filter(|s| s.running.is_some()) {
                slot.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Why the worker drains, and when it stops running tasks.
    pub fn draining(&self) -> Option<(&str, Duration)> {
        self.draining.as_ref().map(|d| (d.reason.as_str(), d.stop_at))
    }

    /// Whether no task is running, and everything finished was answered.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.leases.is_empty() && self.busy_slots() == 0 && self.control.is_empty()
    }
}

fn hand_back(lease: LeaseId, experiment: &ExperimentKey, ranges: Vec<v1::IndexRange>, asked: bool) -> Body {
    Body::HandBack(v1::HandBack {
        lease: Some(lease),
        experiment: experiment.name.to_string(),
        ranges,
        generation: experiment.generation,
        asked,
    })
}
