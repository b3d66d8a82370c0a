//! The coordinator's decisions as a synchronous state machine: event in, effects out.
//!
//! [`Farm`] owns no clock, socket, thread or random source: `now` comes with each event, randomness as a seed. Its
//! driver does three things in a loop: hand events in with [`Farm::handle`], carry out the effects that come out, and
//! make the batch of [`Farm::take_commit`] durable, then say so with [`Event::Committed`].
//!
//! Invariants:
//! - Durable first, then effects, then replies: what promises something (a lease, an acknowledgement, a reply to a
//!   submit) or publishes something comes out only after the batch that carries it is durable. One batch is in flight
//!   at a time; what arrives meanwhile shares the next one.
//! - A task of the present generation is exactly one of: done, failed for good, leased, or pending. The done-set counts
//!   a task from the moment that its row is in a batch; after a failed commit the whole state is dropped and loaded.
//! - Every row handed in is stored once: rows of tasks that are done already are masked.
//! - Memory does not depend on the number of tasks: sets are compressed, pending tasks are a cursor.
//!
//! What it does not know: how messages travel, where state lies, what a row says.

mod adopt;
mod check;
mod control;
mod cost;
mod dispatch;
mod experiment;
mod failure;
mod hand_in;
mod index_set;
mod lease;
mod leaving;
mod outgoing;
mod pending;
mod pins;
mod publishing;
mod recover;
mod share;
mod status;
mod submit;
mod tables;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::v1::worker_message::Body;
use powersweep_proto::v1::{self, LeaseId};
use uuid::Uuid;

pub use adopt::{Adoption, Row};
pub use control::{Action, PRIORITIES};
pub use index_set::IndexSet;
pub use pins::{build_versions, parts_of};
pub use submit::Submission;

use crate::records::{Fate, Intent, Table};
use crate::store::Batch;
use experiment::Experiment;
use lease::Lease;
use outgoing::Outgoing;
use worker::Worker;

/// The instant of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Time since the driver started; never goes back. All time-outs use it.
    pub mono: Duration,
    /// Microseconds since 1970 UTC; only recorded and shown.
    pub wall_us: i64,
}

/// One connection of a worker; never used twice by a driver.
pub type ConnId = u64;

/// One waiting request of a client.
pub type ClientId = u64;

/// Time-outs, sizes and limits of a farm.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How often workers say that they live.
    pub heartbeat: Duration,
    /// A connected worker that says nothing for so long has lost its leases.
    pub silence: Duration,
    /// A worker whose connection broke has lost its leases after so long; it may come back before.
    pub absence: Duration,
    /// Work per slot in a lease, from measured cost.
    pub lease_work: Duration,
    /// Below so much work per slot a lease is not made smaller towards the end: granting costs about as much.
    pub lease_work_min: Duration,
    /// Most tasks that one worker holds.
    pub lease_tasks_max: u64,
    /// Failed attempts, or abrupt losses of the worker, after which a task is quarantined.
    pub attempts_max: u32,
    /// Wait before a failed task is tried again; doubled with each attempt.
    pub retry_after: Duration,
    /// Rows that make a part.
    pub part_rows: u64,
    /// Encoded bytes that make a part.
    pub part_bytes: u64,
    /// Rows of parts being made at which nothing more is handed out: else the state would grow with the sweep.
    pub part_rows_waiting: u64,
    /// Age at which rows are put in a part however few they are, while the experiment is young.
    pub part_age: Duration,
    /// The same of an old experiment: in between it grows with the experiment's age.
    pub part_age_max: Duration,
    /// Drop the leases found in the state at start: their workers lived in the process that is gone (local mode).
    pub forget_leases: bool,
    /// Serve only this experiment and what is submitted from now on (local mode): what an interrupted command left in the
    /// state waits until it is submitted again, and is not waited for.
    pub only: Option<String>,
    /// Logs that lie where the coordinator can read them (local mode): tasks do not wait for their upload.
    pub logs_at_hand: BTreeSet<Digest>,
    /// Where the dataset is, for status.
    pub data: String,
    /// Version of this build, for status.
    pub build: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(30),
            absence: Duration::from_secs(15),
            lease_work: Duration::from_secs(2),
            lease_work_min: Duration::from_millis(200),
            lease_tasks_max: 1 << 17,
            attempts_max: 3,
            retry_after: Duration::from_secs(1),
            part_rows: 262_144,
            part_bytes: 64 << 20,
            part_rows_waiting: 2 * 262_144,
            part_age: Duration::from_secs(600),
            part_age_max: Duration::from_secs(6 * 3600),
            forget_leases: false,
            only: None,
            logs_at_hand: BTreeSet::new(),
            data: String::new(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What happens to a farm.
#[derive(Debug, Clone)]
pub enum Event {
    /// A message of a worker. The first of a connection must be a hello.
    Message {
        /// Connection.
        conn: ConnId,
        /// Peer address, for status.
        address: String,
        /// The message.
        body: Body,
        /// For a hand-in: the rows that its batch decodes to.
        rows: u32,
    },
    /// A connection ended.
    Disconnected {
        /// Connection.
        conn: ConnId,
        /// It broke; false if either side closed it in good order.
        abrupt: bool,
    },
    /// A client submits an experiment whose manifest is parsed and checked.
    Submit {
        /// Gets the reply.
        client: ClientId,
        /// What is submitted.
        submission: Submission,
    },
    /// A client wants all rows in parts.
    Flush {
        /// Gets the reply.
        client: ClientId,
        /// Experiment.
        experiment: String,
    },
    /// A client pauses, resumes, cancels, retries, deletes or reprioritises an experiment.
    Control {
        /// Gets the reply.
        client: ClientId,
        /// Experiment.
        experiment: String,
        /// What to do.
        action: Action,
    },
    /// A log is in the store.
    LogStored {
        /// Gets the reply, once the log is known for good.
        client: ClientId,
        /// Sha256 of its decompressed bytes.
        digest: Digest,
        /// Decompressed size.
        bytes: u64,
        /// Name under which it came.
        name: String,
    },
    /// The batch of this token is durable.
    Committed {
        /// From [`Farm::take_commit`].
        token: u64,
    },
    /// A part is visible, or could not be published.
    Published {
        /// The intent's part.
        part_id: Uuid,
        /// Size of the part in bytes, or why not.
        result: Result<u64, PublishFailure>,
    },
    /// The parts of an experiment that leaves are deleted or moved, or could not be.
    Left {
        /// Experiment.
        experiment: String,
        /// Why not.
        result: Result<(), PublishFailure>,
    },
    /// Storage does not answer (with the reason), or does again.
    Storage {
        /// Why dispatch pauses.
        stalled: Option<String>,
    },
    /// The coordinator will end: nothing more is handed out, workers are told to drain.
    Stop,
    /// The coordinator ends: rows go into parts now.
    Close,
    /// Time passed.
    Tick,
}

/// Why a part could not be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishFailure {
    /// The store's message.
    pub reason: String,
    /// Whether trying again can help.
    pub retryable: bool,
}

/// What a driver has to do.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Send a message to a worker; if its connection is gone, nothing.
    Send {
        /// Connection.
        conn: ConnId,
        /// Message.
        message: v1::farm_message::Body,
    },
    /// End a connection after what was sent.
    Close {
        /// Connection.
        conn: ConnId,
    },
    /// Answer a client.
    Reply {
        /// Client.
        client: ClientId,
        /// Answer.
        reply: Reply,
    },
    /// Publish the part of a durable intent, then report [`Event::Published`].
    Publish {
        /// What to publish.
        intent: Intent,
    },
    /// Delete or move the parts of an experiment that leaves, then report [`Event::Left`]. May be repeated.
    Leave {
        /// Experiment.
        experiment: String,
        /// What becomes of it.
        fate: Fate,
    },
    /// Delete a staged object that will never be published.
    Discard {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// Part.
        part_id: Uuid,
    },
}

/// An answer to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// To a submit.
    Submitted(Box<v1::SubmitReply>),
    /// To a flush.
    Flushed(v1::FlushReply),
    /// To a stored log.
    LogStored,
    /// To a pause, resume, cancel, retry, delete or change of priority.
    Controlled(v1::ControlReply),
    /// The request makes no sense, whatever the state.
    Invalid(String),
    /// There is no such experiment.
    NotFound(String),
    /// The state forbids it; the message says what to do.
    Refused(String),
}

/// The state machine. See the module.
#[derive(Debug)]
pub struct Farm {
    config: Config,
    epoch: u64,
    next_lease: u64,
    ids: PartIds,
    experiments: BTreeMap<String, Experiment>,
    /// Names in the order in which experiments are served: by first submit.
    schedule: Vec<String>,
    leases: BTreeMap<LeaseId, Lease>,
    workers: BTreeMap<Uuid, Worker>,
    conns: BTreeMap<ConnId, Uuid>,
    /// Workers that may want tasks now.
    hungry: BTreeSet<Uuid>,
    /// Workers that found nothing when they wanted tasks: looked at again when there may be some.
    idle: BTreeSet<Uuid>,
    /// Leases without progress at the last tick: idle workers may run copies of their tasks.
    stragglers: VecDeque<LeaseId>,
    /// Slots of connected workers.
    slots: u64,
    logs: BTreeMap<Digest, u64>,
    /// Greatest generation of any experiment that left: a name that comes back begins above it.
    generation_floor: u64,
    /// Uploads deleted in this life, the latest ones: a hand-in that still names one cannot be taken.
    discarded: BTreeSet<Uuid>,
    stalled: Option<String>,
    /// The last reason why a part could not be published, until one could.
    publish_trouble: Option<String>,
    stopping: bool,
    closing: bool,
    out: Outgoing,
}

/// Makes part ids: UUIDv7 of the wall clock, a seed and a counter.
#[derive(Debug)]
struct PartIds {
    seed: u64,
    counter: u64,
}

impl PartIds {
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
    /// Takes in an event. What may happen at once is appended to `effects`; the rest follows when a batch is durable.
    pub fn handle(&mut self, event: Event, now: Now, effects: &mut Vec<Effect>) {
        match event {
            Event::Message { conn, address, body, rows } => self.message(conn, address, body, rows, now),
            Event::Disconnected { conn, abrupt } => self.disconnected(conn, abrupt, now),
            Event::Submit { client, submission } => self.submit(client, submission, now),
            Event::Flush { client, experiment } => self.flush(client, &experiment, now),
            Event::Control { client, experiment, action } => self.control(client, &experiment, &action, now),
            Event::LogStored { client, digest, bytes, name } => {
                self.log_stored(digest, bytes, name);
                self.out.reply(client, Reply::LogStored);
            }
            Event::Committed { token } => {
                self.out.committed(token);
                self.experiments.values_mut().for_each(Experiment::committed);
            }
            Event::Published { part_id, result } => self.published(part_id, result, now),
            Event::Left { experiment, result } => self.left(&experiment, result, now),
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

    fn message(&mut self, conn: ConnId, address: String, body: Body, rows: u32, now: Now) {
        if let Body::Hello(hello) = body {
            return self.hello(conn, address, &hello, now);
        }
        let Some(&id) = self.conns.get(&conn) else {
            self.out.refuse(conn, "the first message must be Hello", false);
            return;
        };
        self.seen(id, now);
        match body {
            Body::Hello(_) => {}
            Body::Heartbeat(heartbeat) => self.heartbeat(id, &heartbeat),
            Body::HandIn(hand_in) => self.hand_in(conn, id, hand_in, rows, now),
            Body::Failure(failure) => self.task_failure(conn, id, &failure, now),
            Body::HandBack(hand_back) => self.hand_back(id, &hand_back, now),
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
            }
        }
        self.find_stragglers(now);
        self.wake_idle();
    }

    fn storage(&mut self, stalled: Option<String>, now: Now) {
        let resumed = self.stalled.is_some() && stalled.is_none();
        self.stalled = stalled;
        if resumed {
            // Workers may have said much meanwhile that nobody read.
            self.workers.values_mut().for_each(|worker| worker.seen = now.mono);
            self.wake_all();
        }
    }

    fn stop(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            let drain = v1::Drain { reason: "the coordinator ends".to_owned() };
            self.out.greet(conn, v1::farm_message::Body::Drain(drain));
        }
    }

    /// The batch to make durable next; `None` while one is in flight or there is nothing to commit. The driver answers
    /// with [`Event::Committed`], or drops this farm and loads the state again.
    pub fn take_commit(&mut self) -> Option<(u64, Batch)> {
        let experiments = &self.experiments;
        let taken = self.out.take_commit(|name, chunk| experiments.get(name)?.done_chunk(chunk));
        if taken.is_some() {
            self.experiments.values_mut().for_each(Experiment::committing);
        }
        taken
    }

    /// Whether [`Farm::take_commit`] would give a batch.
    pub fn wants_commit(&self) -> bool {
        self.out.wants_commit()
    }

    /// Bytes of rows that wait for the next batch. The driver takes no more events in while they are many: else rows of
    /// workers would pile up here as long as storage does not answer.
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

    /// Whether everything handed in is in visible parts (used when the coordinator ends).
    pub fn is_settled(&self) -> bool {
        let settled =
            |e: &Experiment| e.is_published() || e.leaving.as_ref().is_some_and(leaving::Leaving::gives_rows_up);
        !self.is_busy() && self.experiments.values().all(settled)
    }

    /// The sweep of an experiment, if it is there and this build understands it.
    pub fn sweep(&self, experiment: &str) -> Option<&Sweep> {
        self.experiments.get(experiment)?.sweep.as_ref()
    }

    /// This owner's epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}
