//! The coordinator's decisions as a synchronous state machine: event in, effects out.
//!
//! [`Farm`] owns no clock, socket, thread or random source: the time comes with each event, randomness as a seed. Its
//! driver has a loop of three steps: pass events to [`Farm::handle`], carry out the effects, and make the batch of
//! [`Farm::take_commit`] durable, which it reports by [`Event::Committed`].
//!
//! Invariants:
//! - Durable first, then effects, then replies: an effect that promises something (a lease, an acknowledgement, a reply
//!   to a submit) or publishes a part comes out only after the batch that records it is durable. One batch is in flight
//!   at a time; records of later events share the next one.
//! - A task of the present generation is exactly one of: done, failed for good, leased, or pending. The done set counts
//!   a task from the moment that its row is in a batch; after a failed commit the whole state is dropped and loaded.
//! - Every row handed in is stored once: rows of tasks that are done already are masked.
//! - Memory does not depend on the number of tasks: sets are compressed, pending tasks are a cursor.
//!
//! The farm does not know how messages travel, where the state is stored, or what a row contains.

mod adopt;
mod check;
mod config;
mod control;
mod cost;
mod demand;
mod dispatch;
mod done_counts;
mod ended;
mod event;
mod experiment;
mod failure;
mod forecast;
mod hand_in;
mod index_set;
mod lease;
mod leaving;
mod logs;
mod origin;
mod outgoing;
mod pending;
pub(crate) mod pins;
mod publishing;
mod ranges;
mod recover;
mod share;
mod split;
mod splitting;
mod status;
mod submit;
mod tables;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body;
use powersweep_proto::v1::{self, LeaseId};
use uuid::Uuid;

pub use adopt::Adoption;
pub use config::Config;
pub use control::PRIORITIES;
pub use event::{BadUpload, ClientId, ConnId, Content, Effect, Event, Now, PublishFailure, Reply, Request, Submission};
pub(crate) use hand_in::HAND_IN_ROWS_MAX;
pub use index_set::IndexSet;
pub use pins::KERNEL;
pub use powersweep_proto::v1::control_request::Action;

use crate::records::Record;
use crate::store::Batch;
use done_counts::DoneCounts;
use ended::Ended;
use experiment::Experiment;
use lease::Lease;
use outgoing::Outgoing;
use worker::Worker;

/// The state machine. See the module.
#[derive(Debug, Default)]
pub struct Farm {
    config: Config,
    epoch: u64,
    next_lease: u64,
    ids: PartIds,
    experiments: BTreeMap<String, Experiment>,
    /// Names in the order in which experiments are served: by first submit.
    schedule: Vec<String>,
    leases: BTreeMap<LeaseId, Lease>,
    /// Leases that ended, under which rows may still come.
    ended: Ended,
    workers: BTreeMap<Uuid, Worker>,
    conns: BTreeMap<ConnId, Uuid>,
    /// Workers that may want tasks now.
    hungry: BTreeSet<Uuid>,
    /// Workers that wanted tasks when there were none: considered again when there may be some.
    idle: BTreeSet<Uuid>,
    /// Leases without progress at the last tick: idle workers may run copies of their tasks.
    stragglers: VecDeque<LeaseId>,
    /// Tasks that each worker process has finished.
    done_counts: DoneCounts,
    /// Slots of connected workers.
    slots: u64,
    logs: BTreeMap<Digest, u64>,
    /// Logs that no experiment uses, and since when.
    unused_logs: BTreeMap<Digest, Duration>,
    /// Greatest generation of any deleted or renamed experiment: a new bearer of such a name begins above it.
    generation_floor: u64,
    /// The latest uploads deleted by this process: a hand-in that still names one is rejected.
    discarded: BTreeSet<Uuid>,
    stalled: Option<String>,
    /// Why the last part could not be published; `None` once one was published.
    publish_trouble: Option<String>,
    /// Whether storage refused that part, and trying again can help.
    refuses_parts: bool,
    stopping: bool,
    closing: bool,
    out: Outgoing,
}

/// Makes part ids: UUIDv7 of the wall clock, a seed and a counter.
#[derive(Debug, Default)]
struct PartIds {
    seed: u64,
    counter: u64,
}

impl PartIds {
    /// `seed`: any number that no other owner of the state had.
    fn new(seed: u64, epoch: u64) -> PartIds {
        PartIds { seed: mix(seed ^ mix(epoch)), counter: 0 }
    }

    fn next(&mut self, now: Now) -> Uuid {
        self.counter += 1;
        let mut random = [0u8; 10];
        random[..8].copy_from_slice(&mix(self.seed ^ mix(self.counter)).to_le_bytes());
        random[8..].copy_from_slice(&(self.counter as u16).to_le_bytes());
        let millis = u64::try_from(now.wall_us / 1000).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

/// Steele, Lea and Flood 2014 (SplitMix64), the finaliser.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Farm {
    /// Takes in an event. Effects that may happen at once are appended to `effects`; the others come out of the call
    /// that reports their batch as durable.
    pub fn handle(&mut self, event: Event, now: Now, effects: &mut Vec<Effect>) {
        match event {
            Event::Message { conn, address, body, content } => self.message(conn, address, body, content, now),
            Event::Disconnected { conn, abrupt } => self.disconnected(conn, abrupt, now),
            Event::Request { client, request } => self.request(client, request, now),
            Event::Committed { token } => {
                self.out.committed(token);
                self.experiments.values_mut().for_each(Experiment::committed);
                self.done_counts.committed();
            }
            Event::Published { part_id, result } => self.published(part_id, result, now),
            Event::RemovalDone { experiment, result } => self.left(&experiment, result, now),
            Event::SplitPrepared { experiment, id, result } => self.split_prepared(&experiment, id, result, now),
            Event::SplitDone { experiment, id, result } => self.split_done(&experiment, id, result, now),
            Event::Pruned { experiment, id, result } => self.parts_pruned(&experiment, id, result, now),
            Event::Storage { stalled } => self.storage(stalled, now),
            Event::Stop => self.stop(),
            Event::Close => {
                self.stop();
                self.closing = true;
                self.publish_everything(now);
            }
            Event::Tick => self.tick(now),
        }
        self.dispatch(now);
        self.out.release(effects);
    }

    fn request(&mut self, client: ClientId, request: Request, now: Now) {
        match request {
            Request::Submit(submission) => self.submit(client, submission, now),
            Request::Flush(experiment) => self.flush(client, &experiment, now),
            Request::Control { experiment, action, by } => {
                self.control(client, &experiment, &action, by.as_deref(), now);
            }
            Request::DropLogs { stored } => self.drop_unused_logs(client, &stored, now),
            Request::LogStored { digest, bytes } => {
                self.log_stored(digest, bytes);
                self.out.reply(client, Reply::LogStored);
            }
        }
    }

    fn message(&mut self, conn: ConnId, address: String, body: Body, content: Content, now: Now) {
        if let Body::Hello(hello) = body {
            return self.hello(conn, address, &hello, now);
        }
        let Some(&id) = self.conns.get(&conn) else {
            self.out.refuse(conn, "the first message must be Hello", false);
            return;
        };
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.seen = now.mono;
        }
        match body {
            Body::Hello(_) => {}
            Body::Heartbeat(heartbeat) => self.heartbeat(id, &heartbeat),
            Body::HandIn(hand_in) => self.hand_in(conn, id, hand_in, content, now),
            Body::Failure(failure) => self.task_failure(conn, id, &failure, now),
            Body::HandBack(hand_back) => self.hand_back(conn, id, &hand_back, now),
            Body::Goodbye(_) => self.goodbye(conn, id, now),
        }
    }

    fn tick(&mut self, now: Now) {
        if self.stalled.is_none() {
            self.expire_workers(now);
        }
        for name in self.schedule.clone() {
            self.publish_due(&name, now);
            self.advance_leaving(&name, now);
            if let Some(experiment) = self.experiments.get_mut(&name) {
                experiment.rate.sample(now.mono, experiment.done.len());
                experiment.look_ahead(if self.stalled.is_none() { self.slots } else { 0 }, now);
            }
        }
        self.find_stragglers(now);
        self.wake_idle();
    }

    fn storage(&mut self, stalled: Option<String>, now: Now) {
        let resumed = self.stalled.is_some() && stalled.is_none();
        self.stalled = stalled;
        if resumed {
            // Messages that workers sent during the stall were not read: their silence proves nothing.
            self.workers.values_mut().for_each(|worker| worker.seen = now.mono);
            self.wake_all();
        }
    }

    fn stop(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        conns.into_iter().for_each(|conn| self.drain(conn));
    }

    /// Tells a worker that the coordinator is ending.
    fn drain(&mut self, conn: ConnId) {
        let drain = v1::Drain { reason: "the coordinator is ending".to_owned() };
        self.out.greet(conn, ToWorker::Drain(drain));
    }

    /// Stores an experiment's record, which has changed.
    fn put_experiment(&mut self, name: &str) {
        self.out.put(Record::Experiment(self.experiments[name].record.clone()));
    }

    /// The batch to make durable next; `None` while one is in flight or there is nothing to commit. The driver answers
    /// with [`Event::Committed`], or drops this farm and loads the state again.
    pub fn take_commit(&mut self) -> Option<(u64, Batch)> {
        let experiments = &self.experiments;
        let taken = self.out.take_commit(|name, chunk| experiments.get(name)?.done_chunk(chunk));
        if taken.is_some() {
            self.experiments.values_mut().for_each(Experiment::committing);
            self.done_counts.committing();
            self.done_counts.bound(|worker| self.workers.contains_key(&worker));
        }
        taken
    }

    /// Takes over what an earlier farm of this process counted, whose last write failed. This farm has the state that was
    /// loaded afterwards.
    pub fn continue_counts(&mut self, earlier: &mut Farm) {
        let is_done = |name: &str, generation: u64, index: u64| {
            let Some(experiment) = self.experiments.get(name) else { return false };
            let present = experiment.present_index(generation, index).ok().flatten();
            present.is_some_and(|index| experiment.done.contains(index))
        };
        self.done_counts = std::mem::take(&mut earlier.done_counts).after_failure(is_done);
    }

    /// Whether [`Farm::take_commit`] would give a batch.
    pub fn wants_commit(&self) -> bool {
        self.out.wants_commit()
    }

    /// Bytes of rows that wait for the next batch. While they are many, the driver takes in no event: otherwise rows
    /// would fill the memory as long as storage does not answer.
    pub fn waiting_bytes(&self) -> usize {
        self.out.waiting_bytes()
    }

    /// Whether a batch is in flight or effects wait for one.
    pub fn is_busy(&self) -> bool {
        self.out.is_busy()
    }

    /// Whether a worker is connected.
    pub fn has_workers(&self) -> bool {
        !self.conns.is_empty()
    }

    /// Whether all rows handed in are in visible parts, which the end of the coordinator waits for. Rows that cannot be
    /// published stay in the state.
    pub fn is_settled(&self) -> bool {
        let settled = |e: &Experiment| e.is_settled() || e.leaving.as_ref().is_some_and(leaving::Leaving::drops_rows);
        !self.is_busy() && self.experiments.values().all(settled)
    }

    /// Whether storage refused the last part, and trying again can help.
    pub fn refuses_parts(&self) -> bool {
        self.refuses_parts
    }

    /// The sweep of a generation of an experiment, if both are known and this build can use its manifest.
    pub fn sweep_of(&self, experiment: &str, generation: u64) -> Option<&Sweep> {
        let experiment = self.experiments.get(experiment)?;
        if experiment.record.generation == generation {
            return experiment.sweep.as_ref();
        }
        experiment.earlier.get(&generation).map(|earlier| &earlier.sweep)
    }

    /// The worker that a lease of an experiment was granted to, if the lease continues or ended not long ago.
    pub fn holder(&self, lease: LeaseId, experiment: &str) -> Option<Uuid> {
        self.grant_of(lease).filter(|grant| grant.experiment == experiment).map(|grant| grant.worker)
    }

    /// The sweep of an experiment, if it is known and this build can use its manifest.
    pub fn sweep(&self, experiment: &str) -> Option<&Sweep> {
        self.experiments.get(experiment)?.sweep.as_ref()
    }
}
