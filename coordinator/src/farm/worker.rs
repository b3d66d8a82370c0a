//! Workers: hello, heartbeat, loss and return.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use powersweep_proto::common_protocol;
use powersweep_proto::v1::{self, ExperimentState, LeaseId};
use uuid::Uuid;

use super::dispatch::to_wire;
use super::ended::Grant;
use super::index_set::IndexSet;
use super::lease::{Lease, Return};
use super::{ConnId, Farm, Now, ranges};

/// Difference of clocks that is no lie (s).
const CLOCKS_S: f64 = 0.01;

/// Longest worker name: the name is in every row.
const NAME_BYTES_MAX: usize = 200;

/// Maximum number of slots of one worker.
const SLOTS_MAX: u32 = 4096;

/// Maximum number of leases that a worker says that it holds, and of their ranges.
const HELD_MAX: usize = 65_536;
const HELD_RANGES_MAX: usize = 1 << 20;

/// Maximum size of the versions of a worker's build, in bytes: it has some dozens of components.
const VERSIONS_BYTES_MAX: usize = 65_536;

/// One worker process.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) slots: u32,
    pub(super) versions: v1::Versions,
    pub(super) address: String,
    /// Where a batch system placed it; empty outside of one.
    pub(super) allocation: String,
    /// `None` while it is not connected.
    pub(super) conn: Option<ConnId>,
    /// Time of its last message, or of the end of its connection.
    pub(super) seen: Duration,
    /// Its connection broke; only meaningful while it is not connected.
    pub(super) abrupt: bool,
    pub(super) leases: BTreeSet<LeaseId>,
    /// Open tasks in its leases.
    pub(super) outstanding: u64,
    /// Experiments and generations announced on this connection.
    pub(super) announced: BTreeSet<(String, u64)>,
    /// For each experiment, the generation that was compared with the worker's build, and why the build does not fit.
    pub(super) fits: BTreeMap<String, (u64, Option<String>)>,
    pub(super) draining: bool,
    /// The end of its time limit (of a batch system), if it named one.
    pub(super) ends_at: Option<Duration>,
    pub(super) busy_slots: u32,
    pub(super) spent: v1::TimeSpent,
    /// Processors that its process kept busy, and its memory, by its last heartbeat.
    pub(super) processors: f64,
    pub(super) memory_bytes: u64,
    pub(super) last_report: Duration,
    /// Its first Hello of this process, or when the state was loaded that says that it holds leases.
    since: Duration,
    /// Its leases are of an earlier process: its tasks may have taken longer than this process can know.
    is_recovered: bool,
    /// Time of its slots up to `counted_at` that no hand-in has claimed (s).
    pub(super) unclaimed_s: f64,
    counted_at: Duration,
}

impl Worker {
    /// A worker that is not connected.
    pub(super) fn absent(name: String, now: Duration) -> Worker {
        Worker { name, slots: 1, seen: now, last_report: now, since: now, counted_at: now, ..Worker::default() }
    }

    /// One that holds leases of an earlier process.
    pub(super) fn recovered(name: String, now: Duration) -> Worker {
        Worker { is_recovered: true, ..Worker::absent(name, now) }
    }

    /// Counts the time of its slots up to now.
    fn count_slot_time(&mut self, now: Now) {
        let passed = now.mono.saturating_sub(std::mem::replace(&mut self.counted_at, now.mono));
        self.unclaimed_s += passed.as_secs_f64() * f64::from(self.slots);
    }

    /// The worker's claim of the time that tasks took; `None` if its claims together are more than the time of its slots since
    /// its first Hello. Costs, fair shares and estimates follow this number.
    pub(super) fn believed(&mut self, said: &v1::TimeSpent, now: Now) -> Option<v1::TimeSpent> {
        self.count_slot_time(now);
        let busy_s = said.engine_s + said.parse_s;
        let is_possible = said.engine_s >= 0.0 && said.parse_s >= 0.0;
        if !is_possible || busy_s > self.unclaimed_s + CLOCKS_S {
            return None;
        }
        self.unclaimed_s = (self.unclaimed_s - busy_s).max(0.0);
        // Slots may have been idle, or have stored rows, before its first Hello.
        let since_s = f64::from(self.slots) * now.mono.saturating_sub(self.since).as_secs_f64();
        let bounded = |seconds: f64| if seconds >= 0.0 { seconds.min(since_s) } else { 0.0 };
        Some(v1::TimeSpent { store_s: bounded(said.store_s), idle_s: bounded(said.idle_s), ..*said })
    }

    /// Whether this process cannot know how long its tasks took.
    pub(super) fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    /// Slot time (s) since its last hand-in or failure, with at most `at_once` tasks running at a time.
    pub(super) fn slot_seconds(&mut self, at_once: u64, now: Now) -> f64 {
        let since = now.mono.saturating_sub(std::mem::replace(&mut self.last_report, now.mono));
        since.as_secs_f64() * u64::from(self.slots).min(at_once.max(1)) as f64
    }
}

/// Refuses leases that no worker can hold.
fn check_held(held: &[v1::LeaseState]) -> Result<(), String> {
    let ranges: usize = held.iter().map(|state| state.open.len()).sum();
    if held.len() > HELD_MAX || ranges > HELD_RANGES_MAX {
        let most = format!("at most {HELD_MAX} with {HELD_RANGES_MAX} are allowed");
        return Err(format!("the worker holds {} leases with {ranges} index ranges, {most}", held.len()));
    }
    let wrong = |state: &v1::LeaseState| Some((state.lease.unwrap_or_default(), ranges::checked(&state.open).err()?));
    match held.iter().find_map(wrong) {
        Some((lease, reason)) => Err(format!("lease {lease}, which the worker holds: {reason}")),
        None => Ok(()),
    }
}

impl Farm {
    pub(super) fn worker_name(&self, id: Uuid) -> String {
        self.workers.get(&id).map(|worker| worker.name.clone()).unwrap_or_default()
    }

    pub(super) fn hello(&mut self, conn: ConnId, address: String, hello: &v1::Hello, now: Now) {
        let (id, protocol) = match self.check_hello(conn, hello) {
            Ok(accepted) => accepted,
            Err((reason, last)) => return self.out.refuse(conn, reason, last),
        };
        if let Some(old) = self.workers.get(&id).and_then(|worker| worker.conn) {
            self.out.close_now(old);
            self.unlink(old);
        }
        let worker = self.workers.entry(id).or_insert_with(|| Worker::absent(String::new(), now.mono));
        worker.count_slot_time(now);
        worker.name.clone_from(&hello.worker);
        worker.slots = hello.slots;
        worker.versions = hello.versions.clone().unwrap_or_default();
        worker.address = address;
        worker.allocation.clone_from(&hello.allocation);
        worker.conn = Some(conn);
        worker.seen = now.mono;
        worker.last_report = now.mono;
        worker.announced.clear();
        worker.fits.clear();
        worker.draining = false;
        let time_left = hello.seconds_left.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        worker.ends_at = time_left.and_then(|time_left| now.mono.checked_add(time_left));
        self.slots += u64::from(hello.slots);
        self.conns.insert(conn, id);
        let adopted = self.adopt(id, hello, now);
        self.out.greet(
            conn,
            v1::farm_message::Body::Welcome(v1::Welcome {
                epoch: self.epoch,
                heartbeat_s: self.config.heartbeat.as_secs_f64(),
                lease_s: self.config.silence.as_secs_f64(),
                adopted,
                protocol,
                direct_uploads: self.config.direct_uploads,
            }),
        );
        let paused = self.experiments.values().filter(|e| e.record.state() == ExperimentState::Paused);
        let paused: BTreeSet<String> = paused.map(|e| e.name().to_owned()).collect();
        if !paused.is_empty() {
            // It may have missed the requests that were sent before.
            self.ask_for_queued(|name| paused.contains(name), Some(id));
        }
        if self.stopping {
            self.drain(conn);
        }
        self.hungry.insert(id);
    }

    /// The worker's id and the protocol of its session, or why it is refused, and whether the refusal is final.
    fn check_hello(&self, conn: ConnId, hello: &v1::Hello) -> Result<(Uuid, u32), (String, bool)> {
        if self.conns.contains_key(&conn) {
            return Err(("a second Hello on one connection".to_owned(), false));
        }
        let id = Uuid::from_slice(&hello.worker_id).map_err(|_| ("worker_id is not a UUID".to_owned(), true))?;
        let versions = hello.versions.clone().unwrap_or_default();
        let build = &self.config.build;
        let protocol = common_protocol(&versions).map_err(|differs| {
            (format!("the worker's build ({}) and the coordinator's ({build}) differ: {differs}", versions.build), true)
        })?;
        let reason = if versions.tasks_schema != super::pins::tasks_schema() {
            let other = versions.build;
            format!(
                "the worker's build ({other}) has another tasks schema than the coordinator's ({build}): use the same version"
            )
        } else if hello.slots == 0 || hello.slots > SLOTS_MAX {
            format!("the worker has {} slots, not from 1 to {SLOTS_MAX}", hello.slots)
        } else if hello.worker.is_empty() || hello.worker.len() > NAME_BYTES_MAX {
            format!("the worker's name must have 1 to {NAME_BYTES_MAX} bytes")
        } else if hello.allocation.len() > NAME_BYTES_MAX {
            format!("the name of the worker's allocation must have at most {NAME_BYTES_MAX} bytes")
        } else if !powersweep_proto::is_plain_name(&hello.worker) || !powersweep_proto::is_plain_name(&hello.allocation)
        {
            "the name of the worker or of its allocation has control characters".to_owned()
        } else if prost::Message::encoded_len(&versions) > VERSIONS_BYTES_MAX {
            format!("the versions of the worker's build have more than {VERSIONS_BYTES_MAX} bytes")
        } else if let Err(reason) = check_held(&hello.held) {
            reason
        } else {
            return Ok((id, protocol));
        };
        Err((reason, true))
    }

    /// Reconciles the leases of a worker that connects. Leases and tasks that both sides know continue. Those that only
    /// the coordinator knows never reached the worker or were dropped by it: their tasks become pending. Those that only
    /// the worker knows are taken up where possible; the worker drops the others.
    fn adopt(&mut self, id: Uuid, hello: &v1::Hello, now: Now) -> Vec<LeaseId> {
        let mut adopted = Vec::new();
        let mut held = BTreeMap::new();
        for state in &hello.held {
            let Some(lease) = state.lease else { continue };
            held.insert(lease, state);
        }
        let known: Vec<LeaseId> = self.workers.get(&id).map(|w| w.leases.iter().copied().collect()).unwrap_or_default();
        for lease_id in known {
            let Some(state) = held.get(&lease_id) else {
                self.give_back_all(lease_id, Return::Blameless, now);
                continue;
            };
            let Some(lease) = self.leases.get_mut(&lease_id) else { continue };
            lease.progress_at = now.mono;
            let Some(experiment) = self.experiments.get(&lease.grant.experiment) else { continue };
            let theirs: IndexSet =
                ranges::common(&ranges::checked(&state.open).unwrap_or_default(), &lease.grant.ranges)
                    .into_iter()
                    .flatten()
                    .filter_map(|index| experiment.present_index(lease.grant.generation, index).ok().flatten())
                    .collect();
            let unknown_there: IndexSet = lease.open.iter().filter(|&index| !theirs.contains(index)).collect();
            self.give_back(lease_id, &unknown_there, Return::Blameless, now);
            if self.leases.contains_key(&lease_id) {
                adopted.push(lease_id);
            }
        }
        for (lease_id, state) in held {
            if !self.leases.contains_key(&lease_id) && self.take_up(id, lease_id, state, now) {
                adopted.push(lease_id);
            }
        }
        adopted
    }

    /// Takes up an ended lease of this worker, as far as its tasks are pending: their rows may follow this hello, so that
    /// the tasks need not run again.
    fn take_up(&mut self, id: Uuid, lease_id: LeaseId, state: &v1::LeaseState, now: Now) -> bool {
        if self.stopping || !self.fits(id, &state.experiment) {
            return false;
        }
        let theirs = |grant: &&Grant| {
            grant.worker == id && grant.experiment == state.experiment && grant.generation == state.generation
        };
        let Some(grant) = self.ended.get(lease_id).filter(theirs) else { return false };
        let Some(experiment) = self.experiments.get_mut(&state.experiment).filter(|e| e.can_run()) else {
            return false;
        };
        let held = ranges::common(&ranges::checked(&state.open).unwrap_or_default(), &grant.ranges);
        let (mut open, mut others) = (IndexSet::new(), Vec::new());
        for index in held.into_iter().flatten() {
            let present = experiment.present_index(state.generation, index).ok().flatten();
            match present.filter(|&i| experiment.closed().is_pending(i)) {
                Some(present) => drop(open.insert(present)),
                None => super::index_set::join(&mut others, index..index + 1),
            }
        }
        if open.is_empty() {
            return false;
        }
        let Some(grant) = self.ended.remove(lease_id) else { return false };
        for index in open.iter() {
            experiment.pending.remove(index);
            experiment.leased.insert(index);
        }
        let lease =
            Lease { grant, open, attempt: 1, progress_at: now.mono, duplicate: false, suspect: false, owed: true };
        self.add_lease(lease_id, lease);
        if let Some(conn) = self.workers.get(&id).and_then(|worker| worker.conn).filter(|_| !others.is_empty()) {
            let revoke = v1::Revoke { lease: Some(lease_id), ranges: to_wire(&others), queued_only: false };
            self.out.send(conn, v1::farm_message::Body::Revoke(revoke));
        }
        true
    }

    pub(super) fn heartbeat(&mut self, id: Uuid, heartbeat: &v1::Heartbeat) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.busy_slots = heartbeat.busy_slots;
        // Documents have no infinite numbers.
        worker.processors = if heartbeat.processors.is_finite() { heartbeat.processors.max(0.0) } else { 0.0 };
        worker.memory_bytes = heartbeat.memory_bytes;
        if let Some(spent) = heartbeat.spent {
            worker.spent = spent;
        }
        self.hungry.insert(id);
    }

    pub(super) fn hand_back(&mut self, conn: ConnId, id: Uuid, back: &v1::HandBack, now: Now) {
        let Some(lease_id) = back.lease else { return };
        let ranges = match ranges::checked(&back.ranges) {
            Ok(ranges) => ranges,
            Err(reason) => return self.out.refuse(conn, format!("a hand-back of lease {lease_id}: {reason}"), true),
        };
        let Some(lease) = self.leases.get(&lease_id).filter(|lease| lease.grant.worker == id) else { return };
        let Some(experiment) = self.experiments.get(&lease.grant.experiment) else { return };
        let indices: IndexSet = ranges::common(&ranges, &lease.grant.ranges)
            .into_iter()
            .flatten()
            .filter_map(|index| experiment.present_index(lease.grant.generation, index).ok().flatten())
            .collect();
        if let Some(worker) = self.workers.get_mut(&id).filter(|_| !back.asked) {
            // It drains, or cannot run these tasks. It sends a new Hello if it wants others.
            worker.draining = true;
        }
        self.give_back(lease_id, &indices, Return::Blameless, now);
    }

    pub(super) fn goodbye(&mut self, conn: ConnId, id: Uuid, now: Now) {
        self.unlink(conn);
        self.out.close_now(conn);
        self.lose(id, false, now);
    }

    pub(super) fn disconnected(&mut self, conn: ConnId, abrupt: bool, now: Now) {
        let Some(&id) = self.conns.get(&conn) else { return };
        self.unlink(conn);
        let worker = self.workers.get_mut(&id).expect("a connection's worker is known");
        // The kernel ends the connections of a process that dies (after its core dump, if it writes one). If the worker
        // was silent for long before, the network was lost, and no task is to blame.
        worker.abrupt = abrupt && now.mono.saturating_sub(worker.seen) <= self.config.silence / 2;
        worker.seen = now.mono;
        if worker.leases.is_empty() {
            self.workers.remove(&id);
        }
    }

    fn unlink(&mut self, conn: ConnId) {
        let Some(id) = self.conns.remove(&conn) else { return };
        self.hungry.remove(&id);
        self.idle.remove(&id);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.conn = None;
            self.slots -= u64::from(worker.slots);
        }
    }

    pub(super) fn expire_workers(&mut self, now: Now) {
        let (silence, absence) = (self.config.silence, self.config.absence);
        let late = |limit: Duration, worker: &Worker| now.mono.saturating_sub(worker.seen) > limit;
        let silent: Vec<(Uuid, ConnId)> = self
            .workers
            .iter()
            .filter_map(|(id, worker)| worker.conn.filter(|_| late(silence, worker)).map(|conn| (*id, conn)))
            .collect();
        for (id, conn) in silent {
            self.unlink(conn);
            self.out.close_now(conn);
            self.lose(id, false, now);
        }
        let absent: Vec<(Uuid, bool)> = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.conn.is_none() && late(absence, worker))
            .map(|(id, worker)| (*id, worker.abrupt))
            .collect();
        for (id, abrupt) in absent {
            self.lose(id, abrupt, now);
        }
    }

    /// Makes all tasks of a worker pending and removes it.
    fn lose(&mut self, id: Uuid, abrupt: bool, now: Now) {
        let Some(worker) = self.workers.get(&id) else { return };
        let why = if abrupt { Return::Crash { suspects: worker.outstanding } } else { Return::Blameless };
        let leases: Vec<LeaseId> = worker.leases.iter().copied().collect();
        for lease in leases {
            self.give_back_all(lease, why, now);
        }
        self.workers.remove(&id);
        self.hungry.remove(&id);
        self.idle.remove(&id);
    }
}
