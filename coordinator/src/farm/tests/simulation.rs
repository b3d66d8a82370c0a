//! Random faults from a seed: lost, repeated and late messages, broken connections, crashed workers, failed commits, a
//! crashing coordinator, failing tasks and parts, edited manifests. Every invariant after each step; at the end every
//! task has one row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use powersweep_experiments::Sweep;
use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use uuid::Uuid;

use super::simulated_worker::{Worker, is_hopeless};
use super::wire::{Wire, sweep_of};
use crate::farm::{Action, Config, Event, PublishFailure, Submission};
use crate::store::{Fault, ModelStore};

/// Seeds of an ordinary run; `POWERSWEEP_FARM_SEEDS` sets another number, `POWERSWEEP_FARM_SEED` runs one.
const SEEDS: u64 = 100;
const STEPS: u64 = 400;

pub(super) struct Random(u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        crate::farm::mix(self.0) % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Simulation {
    wire: Wire,
    random: Random,
    workers: Vec<Worker>,
    next_worker: u128,
    /// Tasks whose hand-in was acknowledged.
    acknowledged: BTreeSet<Uuid>,
    edits: bool,
    jobs: bool,
    /// Whether edits may ask for the jobs table or give it up.
    changes_tables: bool,
    /// Whether users pause, cancel, retry and delete.
    lifecycle: bool,
    /// Deletions that were asked for: what was acknowledged before is gone.
    deletions: u64,
}

fn manifest(jobs: bool, seeds: impl Iterator<Item = u64>) -> Sweep {
    let seeds: Vec<String> = seeds.map(|seed| seed.to_string()).collect();
    let tables = if jobs { "tables = [\"jobs\"]\n" } else { "" };
    sweep_of(&format!(
        "version = 1\nname = \"e\"\n{tables}seeds = [{}]\n[workloads.w]\nsource = \"lublin\"\n[platforms.p]\n[policies.q]\n",
        seeds.join(", ")
    ))
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let config = Config { part_rows: 40, attempts_max: 1000, ..Config::default() };
        let mut wire = Wire::with(config, ModelStore::new());
        let (jobs, edits) = (seed % 2 == 1, seed % 4 >= 2);
        wire.submit(manifest(jobs, 1..=60));
        let workers = (1..=3).map(Worker::new).collect();
        let random = Random(seed << 20);
        Simulation {
            wire,
            random,
            workers,
            next_worker: 3,
            acknowledged: BTreeSet::new(),
            edits,
            jobs,
            changes_tables: seed % 8 >= 6,
            lifecycle: !seed.is_multiple_of(3),
            deletions: 0,
        }
    }

    fn connect(&mut self, at: usize) {
        let held = self.workers[at].held();
        let slots = 1 + self.random.below(3) as u32;
        let conn = self.wire.connect(self.workers[at].id, slots, held);
        self.workers[at].conn = Some(conn);
    }

    fn disconnect(&mut self, at: usize, abrupt: bool) {
        if let Some(conn) = self.workers[at].conn.take() {
            self.wire.disconnect(conn, abrupt);
        }
    }

    fn read(&mut self, at: usize) {
        let Some(conn) = self.workers[at].conn else { return };
        if !self.wire.inbox.contains_key(&conn) || self.wire.closed.contains(&conn) {
            self.wire.inbox.remove(&conn);
            self.workers[at].conn = None;
            return;
        }
        for message in self.wire.read(conn) {
            self.acknowledged.extend(self.workers[at].take_in(message, &mut self.wire));
        }
    }

    fn work(&mut self, at: usize) {
        self.workers[at].work(&mut self.wire, &mut self.random);
    }

    fn step(&mut self) {
        let at = self.random.below(self.workers.len() as u64) as usize;
        match self.random.below(46) {
            0..=7 => self.read(at),
            8..=19 => self.work(at),
            20..=23 => drop(self.wire.commit(None)),
            24 | 25 => self.wire.end_commit(),
            26 | 27 => self.begin_commit(None),
            28 if self.random.one_in(4) => {
                let fault = if self.random.one_in(2) { Fault::Lose } else { Fault::KeepButFail };
                self.begin_commit(Some(fault));
            }
            29 if self.random.one_in(6) => self.wire.reload(),
            30 | 31 => self.publish(),
            32 => {
                let abrupt = self.random.one_in(2);
                self.disconnect(at, abrupt);
            }
            33 if self.random.one_in(3) => self.replace(at),
            34 => {
                let time = Duration::from_millis(self.random.below(20_000));
                self.wire.pass(time);
                self.wire.event(Event::Tick);
            }
            35..=38 if self.workers[at].conn.is_none() => self.connect(at),
            39 if self.random.one_in(4) => self.workers[at].hand_back(&mut self.wire),
            40 if self.edits && self.random.one_in(2) => self.edit(),
            42 if self.lifecycle && self.random.one_in(2) => self.control(),
            43 if self.lifecycle => self.wire.leave(self.deletions == 0),
            44 if self.lifecycle && self.random.one_in(3) => self.submit_again(),
            _ => {}
        }
    }

    /// A user does something with the experiment, whatever it is doing.
    fn control(&mut self) {
        let action = match self.random.below(12) {
            0..=2 => Action::Pause,
            3..=6 => Action::Resume,
            7 | 8 => Action::Cancel,
            9 => Action::Retry { indices: BTreeSet::new(), kinds: BTreeSet::new() },
            10 => Action::SetPriority(3),
            _ if self.edits && self.random.one_in(3) => {
                self.deletions += 1;
                self.acknowledged.clear();
                Action::Delete { force: true, data_too: true }
            }
            _ => Action::Resume,
        };
        self.wire.event(Event::Control { client: 2, experiment: "e".into(), action });
    }

    /// After a deletion the name is free again.
    fn submit_again(&mut self) {
        if self.deletions > 0 {
            self.edit();
        }
    }

    /// What happens until the next [`Wire::end_commit`] happens while this batch is in flight.
    fn begin_commit(&mut self, fault: Option<Fault>) {
        self.wire.end_commit();
        self.wire.begin_commit(fault);
    }

    /// The process ends, with a word or without; another one starts.
    fn replace(&mut self, at: usize) {
        if let Some(conn) = self.workers[at].conn
            && self.random.one_in(2)
        {
            self.wire.send(conn, ToFarm::Goodbye(v1::Goodbye::default()));
        }
        self.disconnect(at, true);
        self.next_worker += 1;
        self.workers[at] = Worker::new(self.next_worker);
    }

    /// Another range of seeds, some left out, in one order or the other.
    fn edit(&mut self) {
        let (from, count) = (1 + self.random.below(30), 30 + self.random.below(40));
        let out = 2 + self.random.below(8);
        let mut seeds: Vec<u64> = (from..from + count).filter(|seed| seed % out != 0).collect();
        if self.random.one_in(2) {
            seeds.reverse();
        }
        let jobs = self.jobs != (self.changes_tables && self.random.one_in(3));
        let submission = Submission {
            sweep: manifest(jobs, seeds.into_iter()),
            digests: BTreeMap::new(),
            dry_run: self.random.one_in(5),
            restart: false,
            priority: None,
        };
        self.wire.event(Event::Submit { client: 1, submission });
    }

    fn publish(&mut self) {
        let count = self.wire.to_publish.len() as u64;
        if count == 0 {
            return;
        }
        let intent = self.wire.to_publish.remove(self.random.below(count) as usize);
        let fails = self.random.one_in(4);
        if !fails || self.random.one_in(2) {
            self.wire.publish(&intent);
        }
        let failure = PublishFailure { reason: "test".into(), retryable: true };
        let result = if fails { Err(failure) } else { Ok(1) };
        self.wire.event(Event::Published { part_id: intent.part_id, result });
    }

    /// No more faults: everything must come to its end.
    fn finish(&mut self) {
        // Those that handed something back get nothing before their next hello.
        (0..self.workers.len()).for_each(|at| self.disconnect(at, false));
        self.wire.settle();
        if self.wire.farm.sweep("e").is_none() {
            self.wire.submit(manifest(self.jobs, 1..=60));
        }
        self.wire.event(Event::Control { client: 2, experiment: "e".into(), action: Action::Resume });
        for round in 0.. {
            assert!(round < 2000, "stuck: {:?}", self.wire.status("e"));
            for at in 0..self.workers.len() {
                if self.workers[at].conn.is_none() {
                    self.connect(at);
                }
                self.wire.commit_all();
                self.read(at);
                while self.workers[at].has_work() && self.workers[at].conn.is_some() {
                    self.work(at);
                }
                if let Some(conn) = self.workers[at].conn.filter(|conn| self.wire.inbox.contains_key(conn)) {
                    self.wire.send(conn, ToFarm::Heartbeat(v1::Heartbeat::default()));
                }
            }
            self.wire.settle();
            let state = self.wire.status("e").state();
            if matches!(state, v1::ExperimentState::Finished | v1::ExperimentState::Failed) {
                return;
            }
            self.wire.pass(Duration::from_secs(1));
            self.wire.event(Event::Tick);
        }
    }

    /// The dataset, against the last manifest.
    fn check_dataset(&self) {
        let all = |parts: &BTreeMap<Uuid, Vec<Uuid>>| {
            let mut tasks: Vec<Uuid> = parts.values().flatten().copied().collect();
            tasks.sort_unstable();
            tasks
        };
        let rows = all(&self.wire.visible);
        let once: BTreeSet<Uuid> = rows.iter().copied().collect();
        assert_eq!(rows.len(), once.len(), "a task has two rows");
        let jobs = all(&self.wire.visible_jobs);
        if self.changes_tables {
            assert!(jobs.windows(2).all(|two| two[0] != two[1]), "the jobs of a task are there twice");
            assert!(jobs.iter().all(|task| once.contains(task)), "jobs of a task without a row");
        } else if self.jobs {
            assert_eq!(jobs, rows, "the jobs of each task are there once");
        }
        let sweep = self.wire.farm.sweep("e").expect("it is there");
        let tasks: Vec<_> = (0..sweep.index_count()).filter_map(|index| sweep.task(index)).collect();
        for task in &tasks {
            let hopeless = is_hopeless(task.sim.seed);
            assert_ne!(once.contains(&task.task_id), hopeless, "seed {}", task.sim.seed);
        }
        let status = self.wire.status("e");
        let failed = tasks.iter().filter(|task| is_hopeless(task.sim.seed)).count() as u64;
        assert_eq!((status.tasks, status.failed), (tasks.len() as u64, failed));
        assert_eq!(status.done + status.extra, rows.len() as u64);
        if !self.edits {
            assert!(self.acknowledged.is_subset(&once), "an acknowledged task has no row");
        }
    }
}

fn simulate(seed: u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..STEPS {
        let acknowledged = simulation.acknowledged.len() as u64;
        simulation.step();
        // A row whose task had left the manifest before it came is acknowledged and not kept.
        let kept = simulation.edits || simulation.deletions > 0 || simulation.wire.status("e").done >= acknowledged;
        assert!(kept, "an acknowledged task is not done");
    }
    simulation.finish();
    simulation.check_dataset();
}

#[test]
fn every_task_has_one_row_whatever_happens() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let seeds = match number("POWERSWEEP_FARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("POWERSWEEP_FARM_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| simulate(seed)) {
            eprintln!("the simulation fails with POWERSWEEP_FARM_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
