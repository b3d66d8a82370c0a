//! A farm, a model store and connections that serialise every message.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use powersweep_experiments::{Manifest, Sweep};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use prost::Message;
use uuid::Uuid;

use crate::farm::{Config, ConnId, Effect, Event, Farm, Now, Reply, Submission, build_versions};
use crate::records::{Intent, Source, Table};
use crate::store::{Fault, ModelStore, Store};

pub(super) fn sweep(name: &str, seeds: u64) -> Sweep {
    sweep_of(&format!("version = 1\nname = \"{name}\"\nseeds = {{ from = 1, count = {seeds} }}\n{BLOCKS}"))
}

const BLOCKS: &str = "[workloads.w]\nsource = \"lublin\"\n[platforms.p]\n[policies.q]\n";

pub(super) fn sweep_of(text: &str) -> Sweep {
    Sweep::new(Manifest::parse("test", text).expect("valid"), BTreeMap::new()).expect("no log is needed")
}

/// Rows as the tests encode them: the generation and the indices.
pub(super) fn rows(generation: u64, indices: &[u64]) -> Bytes {
    let numbers = std::iter::once(generation).chain(indices.iter().copied());
    numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
}

fn indices(ipc: &[u8]) -> Vec<u64> {
    ipc.chunks(8).skip(1).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect()
}

/// See the module.
pub(super) struct Wire {
    pub(super) farm: Farm,
    pub(super) store: ModelStore,
    pub(super) config: Config,
    pub(super) now: Now,
    /// Messages to workers that nobody has read.
    pub(super) inbox: BTreeMap<ConnId, Vec<ToWorker>>,
    pub(super) closed: Vec<ConnId>,
    pub(super) replies: Vec<Reply>,
    /// Intents that the driver was told to publish.
    pub(super) to_publish: Vec<Intent>,
    /// Visible parts of the tasks table: task indices.
    pub(super) visible: BTreeMap<Uuid, Vec<u64>>,
    next_conn: ConnId,
    lives: u64,
}

impl Wire {
    pub(super) fn new() -> Wire {
        Wire::with(Config::default(), ModelStore::new())
    }

    pub(super) fn with(config: Config, store: ModelStore) -> Wire {
        let now = Now { mono: Duration::ZERO, wall_us: 1_700_000_000_000_000 };
        let farm = Farm::recover(config.clone(), block_on(store.load()).expect("empty"), 1, now);
        let mut wire = Wire {
            farm,
            store,
            config,
            now,
            inbox: BTreeMap::new(),
            closed: Vec::new(),
            replies: Vec::new(),
            to_publish: Vec::new(),
            visible: BTreeMap::new(),
            next_conn: 0,
            lives: 1,
        };
        wire.commit_all();
        wire
    }

    pub(super) fn check(&self) {
        if let Err(broken) = self.farm.check(self.now) {
            panic!("{broken}");
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall_us += i64::try_from(time.as_micros()).expect("small");
    }

    /// An event, and nothing more: what needs a durable batch waits.
    pub(super) fn event(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.farm.handle(event, self.now, &mut effects);
        self.check();
        for effect in effects {
            match effect {
                Effect::Send { conn, message } => {
                    let bytes = v1::FarmMessage { body: Some(message) }.encode_to_vec();
                    let body = v1::FarmMessage::decode(&*bytes).expect("just encoded").body.expect("it has one");
                    if let Some(inbox) = self.inbox.get_mut(&conn) {
                        inbox.push(body);
                    }
                }
                Effect::Close { conn } => {
                    self.closed.push(conn);
                }
                Effect::Reply { reply, .. } => self.replies.push(reply),
                Effect::Publish { intent } => self.to_publish.push(intent),
                Effect::Discard { .. } => {}
            }
        }
    }

    /// Makes the next batch durable, or fails to; true if there was one. A failure starts a new life.
    pub(super) fn commit(&mut self, fault: Option<Fault>) -> bool {
        let Some((token, batch)) = self.farm.take_commit() else { return false };
        self.store.plan([fault]);
        match block_on(self.store.commit(batch)) {
            Ok(()) => self.event(Event::Committed { token }),
            Err(_) => self.reload(),
        }
        true
    }

    pub(super) fn commit_all(&mut self) {
        while self.commit(None) {}
    }

    /// Forgets everything that is not durable: a crash, or the answer to a failed commit.
    pub(super) fn reload(&mut self) {
        self.lives += 1;
        self.inbox.clear();
        self.to_publish.clear();
        let loaded = block_on(self.store.load()).expect("the model store loads");
        self.farm = Farm::recover(self.config.clone(), loaded, self.lives, self.now);
        self.check();
    }

    /// Makes a part visible, as the driver does.
    pub(super) fn publish(&mut self, intent: &Intent) {
        let Source::Rows { first_seq, last_seq } = intent.source else { panic!("no test stages parts") };
        let rows = block_on(self.store.rows(&intent.experiment, intent.table, first_seq, last_seq)).expect("there");
        if rows.is_empty() {
            assert!(self.visible.contains_key(&intent.part_id), "rows went before their part was visible");
            return;
        }
        let mut tasks = Vec::new();
        for rows in rows.iter().filter(|rows| rows.table == Table::Tasks) {
            let masked = |at: usize| rows.mask.as_ref().is_some_and(|mask| mask.contains(at as u32));
            tasks.extend(indices(&rows.ipc).into_iter().enumerate().filter(|(at, _)| !masked(*at)).map(|(_, i)| i));
        }
        if intent.table == Table::Tasks {
            assert_eq!(tasks.len() as u64, intent.rows);
            let before = self.visible.insert(intent.part_id, tasks.clone());
            assert!(before.is_none_or(|before| before == tasks), "a part changed");
        }
    }

    /// Everything that is due: commits and parts.
    pub(super) fn settle(&mut self) {
        loop {
            self.commit_all();
            let Some(intent) = self.to_publish.pop() else { return };
            self.publish(&intent);
            self.event(Event::Published { part_id: intent.part_id, result: Ok(1) });
        }
    }

    pub(super) fn send(&mut self, conn: ConnId, body: ToFarm) {
        let bytes = v1::WorkerMessage { body: Some(body) }.encode_to_vec();
        let body = v1::WorkerMessage::decode(&*bytes).expect("just encoded").body.expect("it has one");
        let rows = match &body {
            ToFarm::HandIn(hand_in) => indices(&hand_in.rows).len() as u32,
            _ => 0,
        };
        self.event(Event::Message { conn, address: "test".into(), body, rows });
    }

    pub(super) fn connect(&mut self, worker: u128, slots: u32, held: Vec<v1::LeaseState>) -> ConnId {
        self.next_conn += 1;
        self.inbox.insert(self.next_conn, Vec::new());
        let hello = v1::Hello {
            worker: format!("w{worker}"),
            worker_id: Uuid::from_u128(worker).as_bytes().to_vec().into(),
            slots,
            versions: Some(build_versions("test")),
            held,
            seconds_left: None,
        };
        self.send(self.next_conn, ToFarm::Hello(hello));
        self.next_conn
    }

    pub(super) fn disconnect(&mut self, conn: ConnId, abrupt: bool) {
        self.inbox.remove(&conn);
        self.event(Event::Disconnected { conn, abrupt });
    }

    pub(super) fn read(&mut self, conn: ConnId) -> Vec<ToWorker> {
        self.inbox.get_mut(&conn).map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn leases(&mut self, conn: ConnId) -> Vec<v1::Lease> {
        let messages = self.read(conn).into_iter();
        messages.filter_map(|message| if let ToWorker::Lease(lease) = message { Some(lease) } else { None }).collect()
    }

    pub(super) fn submit(&mut self, sweep: Sweep) -> Reply {
        let submission = Submission { sweep, digests: BTreeMap::new(), dry_run: false, restart: false };
        self.event(Event::Submit { client: 1, submission });
        self.commit_all();
        self.replies.pop().expect("a submit is answered")
    }

    pub(super) fn status(&self, name: &str) -> v1::ExperimentStatus {
        let request = v1::StatusRequest { experiment: name.into(), max_failures: 100 };
        self.farm.status(&request, self.now).experiments.remove(0)
    }
}

pub(super) fn tasks(lease: &v1::Lease) -> Vec<u64> {
    lease.ranges.iter().flat_map(|range| range.start..range.end).collect()
}

pub(super) fn hand_in(id: u64, lease: &v1::Lease, done: &[u64]) -> ToFarm {
    ToFarm::HandIn(v1::HandIn {
        id,
        experiment: lease.experiment.clone(),
        generation: lease.generation,
        done: vec![v1::LeaseTasks { lease: lease.id, indices: done.to_vec() }],
        rows: rows(lease.generation, done),
        staged: Vec::new(),
        spent: Some(v1::TimeSpent { engine_s: 0.5 * done.len() as f64, ..Default::default() }),
    })
}

pub(super) fn failure(id: u64, lease: &v1::Lease, index: u64, kind: v1::FailureKind) -> ToFarm {
    ToFarm::Failure(v1::TaskFailure {
        lease: lease.id,
        experiment: lease.experiment.clone(),
        index,
        kind: kind.into(),
        message: "it failed".into(),
        id,
        generation: lease.generation,
    })
}
