//! Virtual time, its events, and the faults.

use std::collections::{BTreeMap, VecDeque};

use powersweep_coordinator::farm::{Config, PublishFailure, Reply};
use powersweep_coordinator::records::Intent;
use powersweep_coordinator::store::Batch;
use powersweep_proto::v1;
use powersweep_worker::session::Upload;
use uuid::Uuid;

use super::client::{Client, Wish};
use super::coordinator::{Coordinator, config};
use super::decisions::Decisions;
use super::disk::Disk;
use super::leaving::Attempt;
use super::network::{Link, Partition};
use super::random::Random;
use super::splitting::SplitAttempt;
use super::worker::Worker;

/// An event at an instant. It has no effect if its process or its connection has ended by then.
#[derive(Debug)]
pub(super) enum Happening {
    ToFarm { link: u64, bytes: Vec<u8> },
    ToWorker { link: u64, bytes: Vec<u8> },
    Attach { link: u64 },
    FarmSeesEnd { link: u64, abrupt: bool },
    WorkerSeesEnd { link: u64 },
    Connect { w: usize },
    GreetingTimeout { w: usize, link: u64 },
    Heartbeat { link: u64 },
    Pump { w: usize },
    SlotDone { w: usize, s: usize, stamp: u64, early: bool },
    FlushDue { w: usize, s: usize, batch: u64 },
    Upload { link: u64, upload: Upload },
    Uploaded { link: u64, upload: Upload, ok: bool },
    StartWorker { place: usize },
    StartCoordinator,
    StopOwner { c: usize },
    Load { c: usize, life: u64 },
    Tick { c: usize },
    StartCommit { c: usize },
    CommitApplies { c: usize, life: u64, token: u64 },
    CommitAnswered { c: usize, life: u64, token: u64, ok: bool },
    LateBatch { c: usize, batch: Batch },
    Publish { c: usize, life: u64, intent: Intent },
    Published { c: usize, life: u64, part_id: Uuid, result: Result<u64, PublishFailure> },
    Discard { part_id: Uuid },
    Leave { c: usize, life: u64, attempt: Attempt },
    Left { c: usize, life: u64, experiment: String, result: Result<(), PublishFailure> },
    Split { c: usize, life: u64, attempt: SplitAttempt },
    SplitEnds { c: usize, life: u64, attempt: SplitAttempt, result: Result<(), PublishFailure> },
    DiscardFragments { split: Uuid },
    ClientActs,
    ClientAsks { c: usize, id: u64 },
    ClientHears { id: u64, reply: Reply },
    ClientGivesUp { id: u64 },
    Fault,
    Quiet,
}

/// How often each fault happens: once in this number of times; 0 is never.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) crash_after_effect: u64,
    pub(super) commit_fails: u64,
    pub(super) commit_stalls: u64,
    pub(super) publish_fails: u64,
    pub(super) task_fails: u64,
    /// Mean pause between two faults from outside, microseconds; 0 for none.
    pub(super) fault_every_us: u64,
}

/// The simulated processes, networks and disks, and the events that wait.
pub(super) struct World {
    pub(super) now_us: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    next: u64,
    pub(super) random: Random,
    pub(super) rates: Rates,
    pub(super) config: Config,
    pub(super) versions: v1::Versions,
    /// No more faults.
    pub(super) quiet: bool,
    pub(super) poison: bool,
    pub(super) disk: Disk,
    pub(super) storage_away_until_us: u64,
    pub(super) wall_offset_us: i64,
    pub(super) coordinators: Vec<Coordinator>,
    pub(super) workers: Vec<Worker>,
    /// The process at each place.
    pub(super) at_place: Vec<usize>,
    pub(super) partitions: Vec<Partition>,
    pub(super) links: Vec<Link>,
    pub(super) client: Client,
    /// Tasks that were acknowledged to workers, with the numbers of their experiments' histories.
    pub(super) acknowledged: Vec<(usize, Uuid)>,
    /// The life that announced an epoch.
    pub(super) epochs: BTreeMap<u64, (usize, u64)>,
    pub(super) steps: u64,
    pub(super) faults: u64,
    /// The last steps, where a failure shall show them.
    pub(super) trace: Option<VecDeque<String>>,
    /// The digest of all decisions, where a test compares them.
    pub(super) decisions: Option<Decisions>,
}

/// Steps that a failure shows.
const TRACE_STEPS: usize = 60;

impl World {
    pub(super) fn new(random: Random, rates: Rates, versions: v1::Versions, places: usize, wishes: Vec<Wish>) -> World {
        let mut world = World {
            now_us: 0,
            queue: BTreeMap::new(),
            next: 0,
            random,
            rates,
            config: config(),
            versions,
            quiet: rates.fault_every_us == 0,
            poison: false,
            disk: Disk::default(),
            storage_away_until_us: 0,
            wall_offset_us: 0,
            coordinators: Vec::new(),
            workers: Vec::new(),
            at_place: vec![0; places],
            partitions: vec![Partition::default(); places],
            links: Vec::new(),
            client: Client::new(wishes),
            acknowledged: Vec::new(),
            epochs: BTreeMap::new(),
            steps: 0,
            faults: 0,
            trace: None,
            decisions: None,
        };
        world.start_coordinator();
        (0..places).for_each(|place| world.start_worker(place));
        world.after(0, Happening::ClientActs);
        if !world.quiet {
            let faulty = world.random.between(8_000_000, 40_000_000);
            world.after(faulty, Happening::Quiet);
            world.after(1_000, Happening::Fault);
        }
        world
    }

    pub(super) fn at(&mut self, at_us: u64, happening: Happening) {
        self.next += 1;
        self.queue.insert((at_us.max(self.now_us), self.next), happening);
    }

    pub(super) fn after(&mut self, wait_us: u64, happening: Happening) {
        self.at(self.now_us + wait_us, happening);
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_STEPS {
                trace.pop_front();
            }
            trace.push_back(format!("{:>9.3} s  {}", self.now_us as f64 / 1e6, text()));
        }
    }

    /// The next event happens.
    pub(super) fn step(&mut self) {
        let ((at_us, _), happening) = self.queue.pop_first().expect("a tick always follows");
        self.now_us = at_us;
        self.steps += 1;
        match happening {
            Happening::ToFarm { link, bytes } => self.farm_hears(link, &bytes),
            Happening::ToWorker { link, bytes } => self.worker_hears(link, &bytes),
            Happening::Attach { link } => self.attach(link),
            Happening::FarmSeesEnd { link, abrupt } => self.farm_sees_end(link, abrupt),
            Happening::WorkerSeesEnd { link } => self.worker_sees_end(link),
            Happening::Connect { w } => self.connect(w),
            Happening::GreetingTimeout { w, link } => self.greeting_timeout(w, link),
            Happening::Heartbeat { link } => self.heartbeat(link),
            Happening::Pump { w } => self.pump(w),
            Happening::SlotDone { w, s, stamp, early } => self.slot_done(w, s, stamp, early),
            Happening::FlushDue { w, s, batch } => self.flush_due(w, s, batch),
            Happening::Upload { link, upload } => self.upload(link, upload),
            Happening::Uploaded { link, upload, ok } => self.uploaded(link, &upload, ok),
            Happening::StartWorker { place } => self.start_worker(place),
            Happening::StartCoordinator => {
                if self.newest().is_none() {
                    self.start_coordinator();
                }
            }
            Happening::StopOwner { c } => self.kill_coordinator(c),
            Happening::Load { c, life } => self.load(c, life),
            Happening::Tick { c } => self.tick(c),
            Happening::StartCommit { c } => self.start_commit(c),
            Happening::CommitApplies { c, life, token } => self.commit_applies(c, life, token),
            Happening::CommitAnswered { c, life, token, ok } => self.commit_answered(c, life, token, ok),
            Happening::LateBatch { c, batch } => self.late_batch(c, &batch),
            Happening::Publish { c, life, intent } => self.publish(c, life, &intent),
            Happening::Published { c, life, part_id, result } => self.published(c, life, part_id, result),
            Happening::Leave { c, life, attempt } => self.leave_step(c, life, attempt),
            Happening::Left { c, life, experiment, result } => self.left(c, life, experiment, result),
            Happening::Split { c, life, attempt } => self.split_step(c, life, attempt),
            Happening::SplitEnds { c, life, attempt, result } => self.split_ends(c, life, attempt, result),
            Happening::DiscardFragments { split } => self.disk.discard_fragments(split),
            Happening::Discard { part_id } => drop(self.disk.staging.remove(&part_id)),
            Happening::ClientActs => self.client_acts(),
            Happening::ClientAsks { c, id } => self.client_asks(c, id),
            Happening::ClientHears { id, reply } => self.client_hears(id, reply),
            Happening::ClientGivesUp { id } => self.client_gives_up(id),
            Happening::Fault => self.fault(),
            Happening::Quiet => self.become_quiet(),
        }
    }

    // ---- faults from outside

    fn fault(&mut self) {
        if self.quiet {
            return;
        }
        let pause = 1 + self.random.below(2 * self.rates.fault_every_us);
        self.after(pause, Happening::Fault);
        self.faults += 1;
        let place = self.random.below(self.at_place.len() as u64) as usize;
        let w = self.at_place[place];
        let what = self.random.below(16);
        self.note(|| format!("fault {what} at place {place}, worker {w}"));
        match what {
            0 | 1 => {
                if let Some(c) = self.newest() {
                    self.kill_coordinator(c);
                }
            }
            2 => self.take_over(),
            3 => {
                if let Some(c) = self.newest() {
                    self.stop_coordinator(c);
                }
            }
            4 | 5 => self.end_worker(w, true),
            6 => self.drain_worker(w),
            7..=9 => {
                if let Some(link) = self.workers[w].link {
                    self.break_link(link);
                }
            }
            10..=12 => self.part(place, w),
            13 => self.storage_away_until_us = self.now_us + self.random.delay_us(100_000, 6_000_000),
            14 => {
                let hours = self.random.below(48) as i64 - 24;
                self.wall_offset_us += hours * 3_600_000_000;
            }
            _ => self.workers[w].slowness = if self.random.one_in(2) { 40 } else { 1 },
        }
    }

    /// A second coordinator starts while the older one runs. The older one is told, or notices by itself.
    fn take_over(&mut self) {
        let Some(older) = self.newest() else { return };
        self.start_coordinator();
        let told = self.random.delay_us(1_000, 10_000_000);
        self.after(told, Happening::StopOwner { c: older });
    }

    /// The network stops all messages for a while, both ways or one way.
    fn part(&mut self, place: usize, w: usize) {
        let until_us = self.now_us + self.random.delay_us(50_000, 20_000_000);
        let ways = self.random.below(3);
        let partition = &mut self.partitions[place];
        if ways != 1 {
            partition.up_until_us = until_us;
        }
        if ways != 2 {
            partition.down_until_us = until_us;
        }
        // A long one breaks the connection.
        if self.random.one_in(2)
            && let Some(link) = self.workers[w].link
        {
            self.break_link(link);
        }
    }

    fn become_quiet(&mut self) {
        self.note(|| "no more faults".to_owned());
        self.quiet = true;
        self.storage_away_until_us = 0;
        self.partitions.fill(Partition::default());
        self.workers.iter_mut().for_each(|worker| worker.slowness = 1);
        if self.newest().is_none() {
            self.after(1_000, Happening::StartCoordinator);
        }
        self.after(1_000, Happening::ClientActs);
    }
}
