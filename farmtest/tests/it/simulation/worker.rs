//! A worker process: the real session, with models of the slot threads and of the agent's connection.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_worker::session::{ExperimentKey, FinishedBatch, Identity, Session, Take, TaskRef, Upload};
use prost::Message;
use uuid::Uuid;

use super::catalogue::{Generation, Nature, decode, encode, generation, pinned};
use super::random::mix;
use super::world::{Happening, World};

const GREETING_TIMEOUT_US: u64 = 10_000_000;
const LAST_WORDS_US: u64 = 2_000_000;
const UPLOADS_MAX: usize = 2;
/// A batch is handed in at this number of rows or at this age.
const BATCH_ROWS: usize = 5;
const BATCH_AGE_US: u64 = 100_000;
const BATCH_AGE_JOBS_US: u64 = 700_000;

/// Reasons for which a correct worker's hand-in may be refused. A refusal ends the hand-in's leases: if the hand-in comes
/// again, because its answer was lost, its lease is not known.
const REFUSALS: [&str; 3] = ["done already", "uploads were deleted", "it ended long ago and was dropped"];
/// Reasons for a refusal where its experiment is being removed, or was.
const REMOVED: [&str; 3] = ["is being removed", "there is no experiment", "is no longer known"];

#[derive(Debug)]
struct Batch {
    experiment: ExperimentKey,
    done: Vec<v1::LeaseTasks>,
    tasks: Vec<Uuid>,
}

#[derive(Debug, Default)]
struct Slot {
    running: Option<TaskRef>,
    /// Counts tasks, so that the end of an earlier task is recognised.
    stamp: u64,
    stopping: bool,
    batch: Option<Batch>,
    batches: u64,
}

/// The tasks of a hand-in, and the experiment and generation of their lease.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) experiment: String,
    pub(super) generation: u64,
    pub(super) tasks: Vec<Uuid>,
}

/// A simulated worker process.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) place: usize,
    pub(super) alive: bool,
    pub(super) session: Session,
    slots: Vec<Slot>,
    known: BTreeMap<ExperimentKey, Rc<Generation>>,
    pub(super) link: Option<u64>,
    greeted: bool,
    uploads: usize,
    parts: u64,
    /// Hand-ins that were sent, by id.
    pub(super) said: BTreeMap<u64, Said>,
    /// Tasks whose rows need not be kept: they were in no manifest when the row arrived.
    pub(super) unwanted: BTreeSet<Uuid>,
    /// The factor by which its tasks take longer.
    pub(super) slowness: u64,
    attempts: u64,
}

impl World {
    /// A new process at a place.
    pub(super) fn start_worker(&mut self, place: usize) {
        let w = self.workers.len();
        let slots = self.random.between(1, 3) as usize;
        let identity = Identity {
            name: format!("w{w}"),
            allocation: String::new(),
            worker_id: Uuid::from_u128(1 + w as u128),
            versions: self.versions.clone(),
        };
        self.workers.push(Worker {
            place,
            alive: true,
            session: Session::new(identity, slots),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            known: BTreeMap::new(),
            link: None,
            greeted: false,
            uploads: 0,
            parts: 0,
            said: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            slowness: 1,
            attempts: 0,
        });
        self.at_place[place] = w;
        self.after(0, Happening::Connect { w });
    }

    /// The process ends; another one follows.
    pub(super) fn end_worker(&mut self, w: usize, abrupt: bool) {
        let worker = &mut self.workers[w];
        if !std::mem::replace(&mut worker.alive, false) {
            return;
        }
        let place = worker.place;
        if let Some(link) = worker.link.take() {
            self.worker_closes(link, abrupt);
        }
        let delay = if self.quiet { 1_000 } else { self.random.delay_us(1_000, 5_000_000) };
        self.after(delay, Happening::StartWorker { place });
    }

    // ---- connection

    pub(super) fn connect(&mut self, w: usize) {
        if !self.workers[w].alive || self.workers[w].link.is_some() {
            return;
        }
        let alive: Vec<usize> = (0..self.coordinators.len()).filter(|&c| self.coordinators[c].is_alive()).collect();
        let partition = self.partitions[self.workers[w].place];
        let blocked = partition.up_until_us.max(partition.down_until_us) > self.now_us;
        if alive.is_empty() || blocked {
            return self.connect_later(w);
        }
        let newest = alive[alive.len() - 1];
        let older = !self.quiet && self.random.one_in(4);
        let c = if older { alive[self.random.below(alive.len() as u64) as usize] } else { newest };
        let link = self.open_link(w, c);
        self.workers[w].link = Some(link);
        self.workers[w].greeted = false;
        let hello = self.workers[w].session.hello(None);
        self.note(|| format!("worker {w} greets coordinator {c} over {link}: holds {:?}", hello.held));
        let delay = self.network_delay();
        self.after(delay, Happening::Attach { link });
        self.send_up_after(link, delay, ToFarm::Hello(hello));
        self.after(GREETING_TIMEOUT_US, Happening::GreetingTimeout { w, link });
    }

    fn connect_later(&mut self, w: usize) {
        self.workers[w].attempts += 1;
        let most = if self.quiet { 100_000 } else { 3_000_000 };
        let delay = self.random.delay_us(50_000, most);
        self.after(delay, Happening::Connect { w });
    }

    /// The worker's side of its connection ends.
    fn hang_up(&mut self, w: usize, abrupt: bool) {
        let Some(link) = self.workers[w].link.take() else { return };
        self.workers[w].session.disconnected();
        self.workers[w].greeted = false;
        self.workers[w].uploads = 0;
        self.worker_closes(link, abrupt);
        self.connect_later(w);
    }

    pub(super) fn greeting_timeout(&mut self, w: usize, link: u64) {
        if self.workers[w].alive && self.workers[w].link == Some(link) && !self.workers[w].greeted {
            self.hang_up(w, true);
        }
    }

    pub(super) fn worker_sees_end(&mut self, link: u64) {
        let w = self.links[link as usize].worker;
        if self.workers[w].alive && self.workers[w].link == Some(link) {
            let abrupt = self.random.one_in(2);
            self.hang_up(w, abrupt);
            self.pump(w);
        }
    }

    pub(super) fn heartbeat(&mut self, link: u64) {
        let w = self.links[link as usize].worker;
        if self.workers[w].alive && self.workers[w].link == Some(link) {
            let heartbeat = self.workers[w].session.heartbeat(v1::TimeSpent::default());
            self.send_up(link, ToFarm::Heartbeat(heartbeat));
            self.after(self.config.heartbeat.as_micros() as u64, Happening::Heartbeat { link });
        }
    }

    pub(super) fn worker_hears(&mut self, link: u64, bytes: &[u8]) {
        if !self.arrives_down(link) {
            return;
        }
        let w = self.links[link as usize].worker;
        if self.workers[w].link != Some(link) {
            return;
        }
        let body = v1::FarmMessage::decode(bytes).expect("just encoded").body.expect("it has one");
        let worker = &mut self.workers[w];
        match body {
            FromFarm::Welcome(welcome) => {
                worker.session.welcome(&welcome);
                worker.greeted = true;
                self.after(0, Happening::Heartbeat { link });
            }
            FromFarm::Experiment(experiment) => {
                let key = ExperimentKey { name: experiment.name.as_str().into(), generation: experiment.generation };
                let digests = experiment.digests.iter();
                let digests = digests.map(|(log, digest)| (log.clone(), digest[..].try_into().expect("32 bytes")));
                let told = generation(&experiment.manifest, pinned(&digests.collect()));
                let before = worker.known.insert(key, Rc::clone(&told));
                // The manifest of a generation never changes, whatever messages were lost in between.
                assert!(before.is_none_or(|before| Rc::ptr_eq(&before, &told)), "a generation changed its manifest");
            }
            FromFarm::Lease(lease) => worker.session.lease(lease),
            FromFarm::Ack(ack) => {
                worker.session.acknowledged(&ack.ids);
                for rejected in &ack.rejected {
                    let known = REFUSALS.iter().any(|reason| rejected.reason.contains(reason));
                    let known = known || says_removed(&rejected.reason);
                    assert!(known, "a correct hand-in is refused: {}", rejected.reason);
                }
                worker.session.rejected(&ack.rejected.iter().map(|rejected| rejected.id).collect::<Vec<_>>());
                for id in ack.ids.iter().chain(ack.rejected.iter().map(|rejected| &rejected.id)) {
                    worker.said.remove(id);
                }
            }
            FromFarm::Revoke(revoke) => worker.session.revoked(&revoke),
            FromFarm::Drain(_) => worker.session.pause(),
            FromFarm::Refused(refused) => panic!("a correct worker is refused: {}", refused.reason),
        }
        self.pump(w);
    }

    // ---- due work

    /// Gives tasks to idle slots, stops slots that are told to stop, starts uploads, sends messages, ends the worker.
    pub(super) fn pump(&mut self, w: usize) {
        if !self.workers[w].alive {
            return;
        }
        for slot in 0..self.workers[w].slots.len() {
            self.serve(w, slot);
        }
        let Some(link) = self.workers[w].link else { return self.look_at_end(w) };
        while self.workers[w].uploads < UPLOADS_MAX
            && let Some(upload) = self.workers[w].session.next_upload()
        {
            self.workers[w].uploads += 1;
            let delay = self.network_delay();
            self.after(delay, Happening::Upload { link, upload });
        }
        while let Some(message) = self.workers[w].session.next_message() {
            if let ToFarm::HandIn(hand_in) = &message {
                let (experiment, tasks) = (hand_in.experiment.clone(), decode(&hand_in.rows));
                self.workers[w].said.insert(hand_in.id, Said { experiment, generation: hand_in.generation, tasks });
            }
            self.note(|| format!("worker {w} sends over {link}: {}", brief(&message)));
            self.send_up(link, message);
        }
        self.check_worker(w);
        self.look_at_end(w);
    }

    fn look_at_end(&mut self, w: usize) {
        let now = Duration::from_micros(self.now_us);
        let session = &mut self.workers[w].session;
        session.tick(now);
        let released = session.is_released();
        let over = session
            .draining()
            .is_some_and(|(_, stop_at)| session.is_settled() || now >= stop_at + Duration::from_micros(LAST_WORDS_US));
        if !over && !released {
            return;
        }
        let greeted = self.workers[w].greeted;
        if let Some(link) = self.workers[w].link.filter(|_| greeted) {
            self.send_up(link, ToFarm::Goodbye(v1::Goodbye::default()));
        }
        if over {
            self.note(|| format!("worker {w} has drained"));
            self.end_worker(w, false);
        } else {
            self.hang_up(w, false);
        }
    }

    pub(super) fn drain_worker(&mut self, w: usize) {
        let now = Duration::from_micros(self.now_us);
        let limit = Duration::from_micros(self.random.delay_us(1_000, 5_000_000));
        self.workers[w].session.drain(now, limit, "simulated");
        self.after(limit.as_micros() as u64, Happening::Pump { w });
        self.after(limit.as_micros() as u64 + LAST_WORDS_US, Happening::Pump { w });
        self.pump(w);
    }

    /// The memory of a worker is bounded by its unacknowledged hand-ins.
    fn check_worker(&self, w: usize) {
        let worker = &self.workers[w];
        let batches = worker.slots.iter().filter(|slot| slot.batch.is_some()).count();
        let unacknowledged = worker.session.unacknowledged();
        assert!(unacknowledged + batches <= 4000, "the outbox holds {unacknowledged} entries");
        assert!(worker.said.len() <= unacknowledged, "more hand-ins are sent than kept");
    }

    // ---- slots

    fn serve(&mut self, w: usize, s: usize) {
        let flag = self.workers[w].session.stop_flag(s);
        let slot = &mut self.workers[w].slots[s];
        if slot.running.is_some() {
            if flag.load(Ordering::Relaxed) && !std::mem::replace(&mut slot.stopping, true) {
                let stamp = slot.stamp;
                let delay = self.random.delay_us(10, 20_000);
                self.after(delay, Happening::SlotDone { w, s, stamp, early: true });
            }
            return;
        }
        loop {
            match self.workers[w].session.take(s) {
                Take::Task(task) => return self.begin(w, s, task),
                // The slot has no task: its batch is handed in now.
                _ if self.workers[w].slots[s].batch.is_some() => self.hand_in(w, s),
                _ => return,
            }
        }
    }

    fn begin(&mut self, w: usize, s: usize, task: TaskRef) {
        let slowness = self.workers[w].slowness;
        let base = 1_000 << (mix(task.index ^ task.lease.counter) % 10);
        let slot = &mut self.workers[w].slots[s];
        slot.running = Some(task);
        slot.stopping = false;
        slot.stamp += 1;
        let stamp = slot.stamp;
        let time = base * slowness + self.random.below(2_000);
        self.after(time, Happening::SlotDone { w, s, stamp, early: false });
    }

    pub(super) fn slot_done(&mut self, w: usize, s: usize, stamp: u64, early: bool) {
        let poison = self.poison;
        let flaky = !self.quiet && self.random.one_in(self.rates.task_fails);
        let worker = &mut self.workers[w];
        if !worker.alive || worker.slots[s].stamp != stamp {
            return;
        }
        let Some(task) = worker.slots[s].running.take() else { return };
        let known = worker.known.get(&task.experiment).cloned();
        let session = &mut worker.session;
        match known.as_ref().map(|known| known.fact(task.index)) {
            _ if early => session.stopped(s),
            // The coordinator sends experiments before their leases; without one the task is handed back.
            None => session.stopped(s),
            Some(None) => {
                let sweep = &known.as_ref().expect("just found").sweep;
                session.excluded(s, sweep.next_included(task.index).unwrap_or(u64::MAX));
            }
            Some(Some(fact)) => match fact.nature {
                Nature::Poison if poison => {
                    self.note(|| format!("task {} of {:?} kills worker {w}", task.index, task.experiment));
                    return self.end_worker(w, true);
                }
                Nature::Hopeless => session.failed(s, v1::FailureKind::Spec, "it cannot be simulated".to_owned()),
                _ if flaky => session.failed(s, v1::FailureKind::Panic, "it panicked".to_owned()),
                _ => {
                    session.finished(s);
                    self.keep(w, s, &task, fact.id);
                }
            },
        }
        self.pump(w);
    }

    fn keep(&mut self, w: usize, s: usize, task: &TaskRef, id: Uuid) {
        if self.workers[w].slots[s].batch.as_ref().is_some_and(|batch| batch.experiment != task.experiment) {
            self.hand_in(w, s);
        }
        let jobs = self.workers[w].known[&task.experiment].jobs;
        let slot = &mut self.workers[w].slots[s];
        let first = slot.batch.is_none();
        let batch = slot.batch.get_or_insert_with(|| Batch {
            experiment: task.experiment.clone(),
            done: Vec::new(),
            tasks: Vec::new(),
        });
        match batch.done.last_mut() {
            Some(tasks) if tasks.lease == Some(task.lease) => tasks.indices.push(task.index),
            _ => batch.done.push(v1::LeaseTasks { lease: Some(task.lease), indices: vec![task.index] }),
        }
        batch.tasks.push(id);
        if batch.tasks.len() >= BATCH_ROWS {
            self.hand_in(w, s);
        } else if first {
            slot.batches += 1;
            let batch = slot.batches;
            self.after(if jobs { BATCH_AGE_JOBS_US } else { BATCH_AGE_US }, Happening::FlushDue { w, s, batch });
        }
    }

    pub(super) fn flush_due(&mut self, w: usize, s: usize, batch: u64) {
        let slot = &self.workers[w].slots[s];
        if self.workers[w].alive && slot.batches == batch && slot.batch.is_some() {
            self.hand_in(w, s);
            self.pump(w);
        }
    }

    fn hand_in(&mut self, w: usize, s: usize) {
        let now_us = self.now_us;
        let worker = &mut self.workers[w];
        let Some(batch) = worker.slots[s].batch.take() else { return };
        let rows = encode(&batch.tasks);
        let Batch { experiment, done, tasks } = batch;
        let mut finished = FinishedBatch {
            hand_in: v1::HandIn {
                experiment: experiment.name.to_string(),
                generation: experiment.generation,
                done,
                rows: rows.clone(),
                spent: Some(v1::TimeSpent { engine_s: 0.05 * tasks.len() as f64, ..Default::default() }),
                ..Default::default()
            },
            objects: Vec::new(),
        };
        if worker.known[&experiment].jobs {
            worker.parts += 1;
            // Ids begin with the time, like those of real workers.
            let part_id = Uuid::from_u128(u128::from(now_us) << 64 | (w as u128) << 32 | u128::from(worker.parts));
            let (table, part_id) = ("jobs".to_owned(), Bytes::copy_from_slice(part_id.as_bytes()));
            let (rows, bytes) = (tasks.len() as u64, rows.len() as u64);
            let part = v1::Upload { table: table.clone(), part_id: part_id.clone(), rows, bytes };
            finished.hand_in.uploads.push(part);
            let (experiment, data) = (experiment.name.to_string(), finished.hand_in.rows.clone());
            let object = v1::UploadPartRequest { experiment, table, part_id, data, ..Default::default() };
            finished.objects.push(object);
        }
        worker.session.hand_in(finished);
    }

    // ---- uploads

    pub(super) fn upload(&mut self, link: u64, upload: Upload) {
        let c = self.links[link as usize].coordinator;
        let away = self.now_us < self.storage_away_until_us;
        let arrives = self.arrives_up(link) && !away;
        if arrives && self.coordinators[c].is_alive() {
            let id = Uuid::from_slice(&upload.object.part_id).expect("an id");
            self.disk.stage(&upload.object.experiment, id, &decode(&upload.object.data));
        }
        let ok = arrives && (self.quiet || !self.random.one_in(8));
        let delay = self.network_delay();
        self.after(delay, Happening::Uploaded { link, upload, ok });
    }

    pub(super) fn uploaded(&mut self, link: u64, upload: &Upload, ok: bool) {
        let w = self.links[link as usize].worker;
        let worker = &mut self.workers[w];
        // An upload ends with its connection.
        if worker.alive && worker.link == Some(link) {
            worker.uploads -= 1;
            worker.session.uploaded(upload, ok);
            self.pump(w);
        }
    }
}

/// Whether a refusal says that the experiment is being removed, or was.
pub(super) fn says_removed(reason: &str) -> bool {
    REMOVED.iter().any(|text| reason.contains(text))
}

fn brief(message: &ToFarm) -> String {
    match message {
        ToFarm::HandIn(hand_in) => {
            format!("hand-in {} of {:?}, staged {}", hand_in.id, hand_in.done, hand_in.uploads.len())
        }
        other => format!("{other:?}"),
    }
}
