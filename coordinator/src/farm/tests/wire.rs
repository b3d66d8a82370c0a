//! A farm, a model store and connections that serialise every message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use powersweep_experiments::{Manifest, Sweep};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::Table;
use prost::Message;
use uuid::Uuid;

use crate::farm::{
    Action, Config, ConnId, Content, Effect, Event, Farm, Now, PublishFailure, Reply, Request, Submission,
};
use crate::publish::Visible;
use crate::records::{Fragment, Intent, Removal, SplitPart, Upload};
use crate::store::{Fault, ModelStore, Store};

pub(in crate::farm) fn sweep(name: &str, seeds: u64) -> Sweep {
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

/// The generation and the indices of such rows.
fn decode(encoded: &[u8]) -> (u64, Vec<u64>) {
    let mut numbers = encoded.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
    (numbers.next().expect("the generation"), numbers.collect())
}

/// One generation of an experiment as workers know it.
#[derive(Default)]
struct Told {
    manifest: String,
    sweep: Option<Sweep>,
    /// Identities by index, as far as they were asked for.
    tasks: BTreeMap<u64, Uuid>,
}

/// A farm with its model store and its connections.
pub(super) struct Wire {
    pub(super) farm: Farm,
    pub(super) store: ModelStore,
    pub(super) config: Config,
    pub(super) now: Now,
    /// Messages to workers that the test has not read.
    pub(super) inbox: BTreeMap<ConnId, Vec<ToWorker>>,
    pub(super) closed: Vec<ConnId>,
    pub(super) replies: Vec<Reply>,
    /// Intents that the driver was told to publish.
    pub(super) to_publish: Vec<Intent>,
    /// Experiments whose parts the driver was told to delete or move.
    pub(super) to_leave: Vec<(String, Removal)>,
    /// Visible parts of the tasks table: identities of tasks.
    pub(super) visible: BTreeMap<Uuid, Vec<Uuid>>,
    /// Visible parts of the jobs table: identities of the tasks of their rows.
    pub(super) visible_jobs: BTreeMap<Uuid, Vec<Uuid>>,
    /// Parts of both tables with rows that left: identities of their tasks.
    pub(super) left: BTreeMap<Uuid, Vec<Uuid>>,
    pub(super) left_jobs: BTreeMap<Uuid, Vec<Uuid>>,
    /// Splits that the driver was told to prepare or carry out, and prunes.
    pub(super) to_split: Vec<Effect>,
    /// Staged fragments: identities of tasks.
    fragments: BTreeMap<Uuid, Vec<Uuid>>,
    /// Uploaded objects of the jobs table: identities of the tasks whose rows they hold.
    pub(super) staging: BTreeMap<Uuid, Vec<Uuid>>,
    /// Announced generations of experiments.
    announced: BTreeMap<(String, u64), Told>,
    /// A batch whose result the farm has not been told: token, whether it is durable.
    in_flight: Option<(u64, bool)>,
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
            to_leave: Vec::new(),
            visible: BTreeMap::new(),
            visible_jobs: BTreeMap::new(),
            left: BTreeMap::new(),
            left_jobs: BTreeMap::new(),
            to_split: Vec::new(),
            fragments: BTreeMap::new(),
            staging: BTreeMap::new(),
            announced: BTreeMap::new(),
            in_flight: None,
            next_conn: 0,
            lives: 1,
        };
        wire.commit_all();
        wire
    }

    pub(super) fn check(&self) {
        if let Err(broken) = self.farm.check() {
            panic!("{broken}");
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall_us += i64::try_from(time.as_micros()).expect("small");
    }

    /// Passes an event to the farm, without a commit.
    pub(super) fn event(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.farm.handle(event, self.now, &mut effects);
        self.check();
        for effect in effects {
            match effect {
                Effect::Send { conn, message } => {
                    let bytes = v1::FarmMessage { body: Some(message) }.encode_to_vec();
                    let body = v1::FarmMessage::decode(&*bytes).expect("just encoded").body.expect("it has one");
                    if let ToWorker::Experiment(experiment) = &body {
                        self.note(experiment);
                    }
                    if let Some(inbox) = self.inbox.get_mut(&conn) {
                        inbox.push(body);
                    }
                }
                Effect::Close { conn } => {
                    self.closed.push(conn);
                }
                Effect::Reply { reply, .. } => self.replies.push(reply),
                Effect::Publish { intent } => self.to_publish.push(intent),
                Effect::Remove { experiment, removal } => self.to_leave.push((experiment, removal)),
                Effect::Discard { part_id, .. } => drop(self.staging.remove(&part_id)),
                effect @ (Effect::PrepareSplit { .. } | Effect::Split { .. } | Effect::Prune { .. }) => {
                    self.to_split.push(effect);
                }
                Effect::DiscardFragments { .. } => {}
            }
        }
    }

    /// Checks that a generation never gets another manifest, also after a lost batch.
    fn note(&mut self, experiment: &v1::Experiment) {
        let told = self.announced.entry((experiment.name.clone(), experiment.generation)).or_default();
        if told.manifest.is_empty() {
            told.manifest.clone_from(&experiment.manifest);
        }
        assert_eq!(told.manifest, experiment.manifest, "generation {}", experiment.generation);
    }

    /// Identity of a task that a worker knows by generation and index.
    fn identity(&mut self, experiment: &str, generation: u64, index: u64) -> Uuid {
        let told = self.announced.get_mut(&(experiment.to_owned(), generation)).expect("it was announced");
        let sweep = told.sweep.get_or_insert_with(|| sweep_of(&told.manifest));
        let task = || sweep.task(index).expect("it was leased").task_id;
        *told.tasks.entry(index).or_insert_with(task)
    }

    /// Identities of tasks.
    pub(super) fn identities(&mut self, experiment: &str, generation: u64, indices: &[u64]) -> Vec<Uuid> {
        indices.iter().map(|&index| self.identity(experiment, generation, index)).collect()
    }

    /// Commits the next batch to the store; true if there was one. [`Wire::end_commit`] tells the farm the result.
    pub(super) fn begin_commit(&mut self, fault: Option<Fault>) -> bool {
        let Some((token, batch)) = self.farm.take_commit() else { return false };
        assert!(self.in_flight.is_none(), "one batch at a time");
        self.store.plan([fault]);
        let result = block_on(self.store.commit(batch));
        self.in_flight = Some((token, result.is_ok()));
        true
    }

    /// Tells the farm the result of the batch in flight, if there is one. After a failure the state is loaded again.
    pub(super) fn end_commit(&mut self) {
        match self.in_flight.take() {
            Some((token, true)) => self.event(Event::Committed { token }),
            Some((_, false)) => {
                let mut earlier = std::mem::take(&mut self.farm);
                self.reload();
                self.farm.continue_counts(&mut earlier);
            }
            None => {}
        }
    }

    /// Begins and ends a commit; true if there was a batch.
    pub(super) fn commit(&mut self, fault: Option<Fault>) -> bool {
        let waited = self.in_flight.is_some();
        self.end_commit();
        let begun = self.begin_commit(fault);
        self.end_commit();
        waited || begun
    }

    pub(super) fn commit_all(&mut self) {
        while self.commit(None) {}
    }

    /// Replaces the farm by one of the durable state, as after a crash or a failed commit. Uploads that no durable record
    /// names are deleted, as at a start.
    pub(super) fn reload(&mut self) {
        self.lives += 1;
        self.in_flight = None;
        self.inbox.clear();
        self.to_publish.clear();
        self.to_leave.clear();
        self.to_split.clear();
        let loaded = block_on(self.store.load()).expect("the model store loads");
        self.staging.retain(|id, _| loaded.rows.iter().any(|rows| rows.upload == Some((*id).into())));
        self.farm = Farm::recover(self.config.clone(), loaded, self.lives, self.now);
        self.check();
    }

    /// Makes a part visible, as the driver does. May be repeated.
    pub(super) fn publish(&mut self, intent: &Intent) {
        let (table, part_id) = (intent.table(), *intent.part_id);
        let records = self.store.rows(&intent.experiment, table, intent.first_seq, intent.last_seq);
        let records = block_on(records).expect("there");
        let shown = match table {
            Table::Tasks => &self.visible,
            Table::Jobs => &self.visible_jobs,
            Table::Failures | Table::Series | Table::Accounts => return,
        };
        if records.is_empty() {
            return assert!(shown.contains_key(&part_id), "rows were deleted before their part was visible");
        }
        let mut tasks = Vec::new();
        for record in &records {
            let of_upload = |upload: &Upload| {
                self.staging.get(&*upload.part_id).expect("an upload stays until its part is visible")
            };
            tasks.extend(record.upload.iter().flat_map(of_upload));
            for hand_in in &record.hand_ins {
                let masked = |at: usize| hand_in.mask.as_ref().is_some_and(|mask| mask.contains(at as u32));
                let (generation, indices) = decode(&hand_in.encoded);
                assert_eq!(generation, record.generation);
                let kept = indices.into_iter().enumerate().filter(|(at, _)| !masked(*at)).map(|(_, index)| index);
                tasks.extend(self.identities(&intent.experiment, generation, &kept.collect::<Vec<_>>()));
            }
        }
        assert_eq!(tasks.len() as u64, intent.rows);
        let shown = if table == Table::Tasks { &mut self.visible } else { &mut self.visible_jobs };
        let before = shown.insert(part_id, tasks.clone());
        assert!(before.is_none_or(|before| before == tasks), "a part changed");
    }

    /// Deletes or moves parts as the driver does, or reports a failure.
    pub(super) fn leave(&mut self, fails: bool) {
        let Some((experiment, removal)) = self.to_leave.pop() else { return };
        if removal == Removal::Erase {
            self.visible.clear();
            self.visible_jobs.clear();
        }
        let failure = PublishFailure { reason: "test".into(), retryable: true };
        self.event(Event::RemovalDone { experiment, result: if fails { Err(failure) } else { Ok(()) } });
    }

    fn parts(&mut self, table: Table, is_left: bool) -> &mut BTreeMap<Uuid, Vec<Uuid>> {
        match (table, is_left) {
            (Table::Tasks, false) => &mut self.visible,
            (Table::Tasks, true) => &mut self.left,
            (_, false) => &mut self.visible_jobs,
            (_, true) => &mut self.left_jobs,
        }
    }

    /// Does one step of a split as the driver does, or reports a failure after it. False if there is none.
    pub(super) fn split(&mut self, fails: bool) -> bool {
        let Some(effect) = self.to_split.pop() else { return false };
        let failure = || PublishFailure { reason: "test".into(), retryable: true };
        let result = if fails { Err(failure()) } else { Ok(()) };
        let event = match effect {
            Effect::PrepareSplit { experiment, id, sweeps } => {
                let parts = self.prepare(&sweeps.present);
                Event::SplitPrepared { experiment, id, result: result.map(|()| parts) }
            }
            Effect::Split { record } => {
                record.parts.iter().for_each(|part| self.replace(part));
                Event::SplitDone { experiment: record.experiment.clone(), id: *record.id, result }
            }
            Effect::Prune { experiment, id } => {
                self.left.clear();
                self.left_jobs.clear();
                Event::Pruned { experiment, id, result }
            }
            other => panic!("{other:?} is no step of a split"),
        };
        self.event(event);
        true
    }

    fn prepare(&mut self, present: &Sweep) -> Vec<SplitPart> {
        let present: BTreeSet<Uuid> =
            (0..present.index_count()).filter_map(|index| Some(present.task(index)?.task_id)).collect();
        let mut parts = Vec::new();
        for (table, is_left) in [Table::Tasks, Table::Jobs].into_iter().flat_map(|t| [(t, false), (t, true)]) {
            for (old, tasks) in self.parts(table, is_left).clone() {
                let (moved, kept): (Vec<Uuid>, Vec<Uuid>) =
                    tasks.iter().partition(|task| present.contains(*task) == is_left);
                if moved.is_empty() {
                    continue;
                }
                let old = Fragment { part_id: old.into(), rows: tasks.len() as u64, bytes: 1 };
                let (kept, moved) = (self.stage(kept), self.stage(moved));
                parts.push(SplitPart { table: table.into(), is_left, old, kept, moved });
            }
        }
        parts
    }

    fn stage(&mut self, tasks: Vec<Uuid>) -> Option<Fragment> {
        let (part_id, rows) = (Uuid::new_v4(), tasks.len() as u64);
        self.fragments.insert(part_id, tasks);
        (rows > 0).then_some(Fragment { part_id: part_id.into(), rows, bytes: 1 })
    }

    fn replace(&mut self, part: &SplitPart) {
        self.parts(part.table(), part.is_left).remove(&*part.old.part_id);
        for (fragment, is_left) in [(part.kept, part.is_left), (part.moved, !part.is_left)] {
            let Some(Fragment { part_id, .. }) = fragment else { continue };
            let tasks = self.fragments[&*part_id].clone();
            self.parts(part.table(), is_left).insert(*part_id, tasks);
        }
    }

    /// Does all due commits, parts and splits.
    pub(super) fn settle(&mut self) {
        loop {
            self.commit_all();
            self.leave(false);
            self.commit_all();
            if self.split(false) {
                continue;
            }
            let Some(intent) = self.to_publish.pop() else { return };
            self.publish(&intent);
            self.event(Event::Published { part_id: *intent.part_id, result: Ok(Visible::whole(1)) });
        }
    }

    pub(super) fn send(&mut self, conn: ConnId, body: ToFarm) {
        let bytes = v1::WorkerMessage { body: Some(body) }.encode_to_vec();
        let body = v1::WorkerMessage::decode(&*bytes).expect("just encoded").body.expect("it has one");
        let rows = match &body {
            ToFarm::HandIn(hand_in) => decode(&hand_in.rows).1.len() as u32,
            _ => 0,
        };
        let content = Content::of_rows(rows);
        self.event(Event::Message { conn, address: "test".into(), body, content });
    }

    pub(super) fn connect(&mut self, worker: u128, slots: u32, held: Vec<v1::LeaseState>) -> ConnId {
        self.connect_for(worker, slots, held, None)
    }

    pub(super) fn connect_for(
        &mut self,
        worker: u128,
        slots: u32,
        held: Vec<v1::LeaseState>,
        seconds_left: Option<f64>,
    ) -> ConnId {
        self.greet(v1::Hello {
            worker: format!("w{worker}"),
            worker_id: Uuid::from_u128(worker).as_bytes().to_vec().into(),
            slots,
            versions: Some(super::versions()),
            held,
            seconds_left,
            allocation: format!("job{worker}"),
        })
    }

    /// A new connection with this greeting.
    pub(super) fn greet(&mut self, hello: v1::Hello) -> ConnId {
        self.next_conn += 1;
        self.inbox.insert(self.next_conn, Vec::new());
        let id = Uuid::from_slice(&hello.worker_id).ok();
        self.send(self.next_conn, ToFarm::Hello(hello));
        // Tests say what tasks take, mostly without time that passes: their workers were connected for long.
        if let Some(worker) = id.and_then(|id| self.farm.workers.get_mut(&id)) {
            worker.unclaimed_s = 1e9;
        }
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

    /// Hands in all tasks that a worker gets, until it gets none.
    pub(super) fn work_off(&mut self, conn: ConnId) {
        let mut id = 1000;
        loop {
            let leases = self.leases(conn);
            if leases.is_empty() {
                return;
            }
            for lease in leases {
                id += 1;
                self.send(conn, hand_in(id, &lease, &tasks(&lease)));
            }
            self.settle();
        }
    }

    pub(super) fn submit(&mut self, sweep: Sweep) -> Reply {
        let submission = Submission { replace: true, ..Submission::new(sweep, BTreeMap::new()) };
        self.request(Request::Submit(submission));
        self.commit_all();
        self.replies.pop().expect("a submit is answered")
    }

    pub(super) fn request(&mut self, request: Request) {
        self.event(Event::Request { client: 1, request });
    }

    /// A client's action, with its answer if there is one yet.
    pub(super) fn control(&mut self, name: &str, action: Action) -> Option<Reply> {
        self.request(Request::Control { experiment: name.into(), action, by: None });
        self.commit_all();
        self.replies.pop()
    }

    /// Rows of a table that are in no part.
    pub(super) fn store_rows(&self, table: Table) -> u64 {
        let loaded = block_on(self.store.load()).expect("it loads");
        loaded.rows.iter().filter(|rows| rows.table() == table).map(|rows| rows.rows).sum()
    }

    pub(super) fn status(&self, name: &str) -> v1::ExperimentStatus {
        let request = v1::StatusRequest { experiment: name.into(), max_failures: 100, ..Default::default() };
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
        uploads: Vec::new(),
        jobs: 0,
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
