//! Manifests of the simulation, and facts about their tasks. Each manifest is parsed once for all seeds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use powersweep_experiments::{Digest, Manifest, Sweep};
use uuid::Uuid;

use super::random::{Random, mix};

/// The content of the log that some manifests need. Each pin is another content, and its rows fit no other pin.
pub(super) fn log_of(pin: u8) -> Digest {
    Digest::from([7 + pin; 32])
}

/// The log content of a manifest: by its digests, and a fixed one for a manifest without a log.
pub(super) fn pinned(digests: &BTreeMap<String, Digest>) -> Digest {
    digests.values().next().copied().unwrap_or(log_of(0))
}

/// How a task behaves on every worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Good,
    /// Cannot be simulated.
    Hopeless,
    /// Kills its worker, if the seed has poison.
    Poison,
}

/// One task of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) id: Uuid,
    pub(super) nature: Nature,
}

/// One manifest.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) sweep: Sweep,
    /// By index; `None` where it is excluded.
    pub(super) facts: Vec<Option<Fact>>,
    pub(super) jobs: bool,
    pub(super) digests: BTreeMap<String, Digest>,
}

impl Generation {
    fn new(text: &str, log: Digest) -> Generation {
        let manifest = Manifest::parse("simulated", text).unwrap_or_else(|errors| panic!("{errors}"));
        let logs = manifest.logs();
        let digests: BTreeMap<String, Digest> = logs.iter().map(|found| (found.log.clone(), log)).collect();
        let jobs = manifest.tables().names().any(|table| table == "jobs");
        let sweep = Sweep::new(manifest, digests.clone()).expect("the digests are given");
        let facts = (0..sweep.index_count()).map(|index| {
            let task = sweep.task(index)?;
            let nature = match task.sim.seed % 29 {
                7 => Nature::Hopeless,
                11 => Nature::Poison,
                _ => Nature::Good,
            };
            Some(Fact { id: task.task_id, nature })
        });
        Generation { facts: facts.collect(), jobs, digests, sweep }
    }

    pub(super) fn fact(&self, index: u64) -> Option<Fact> {
        *self.facts.get(usize::try_from(index).ok()?)?
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = Fact> {
        self.facts.iter().flatten().copied()
    }
}

/// The manifest with this text and this log content.
pub(super) fn generation(text: &str, log: Digest) -> Rc<Generation> {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<Digest, BTreeMap<String, Rc<Generation>>>> =
            const { RefCell::new(BTreeMap::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        let known = known.entry(log).or_default();
        if let Some(generation) = known.get(text) {
            return Rc::clone(generation);
        }
        let generation = Rc::new(Generation::new(text, log));
        known.insert(text.to_owned(), Rc::clone(&generation));
        generation
    })
}

/// A manifest: one of a few ranges of seeds, with or without jobs and log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) seeds: u64,
    pub(super) jobs: bool,
    pub(super) log: bool,
}

/// Number of ranges of seeds: few, so that each is parsed once.
const RANGES: u64 = 12;

impl Choice {
    pub(super) fn any(random: &mut Random, jobs: bool, log: bool) -> Choice {
        Choice { seeds: random.below(RANGES), jobs, log }
    }

    pub(super) fn text(self, name: &str) -> String {
        let mut random = Random::new(self.seeds);
        let (from, count, out) = (random.between(1, 10), random.between(16, 36), random.between(3, 9));
        let mut seeds: Vec<u64> = (from..from + count).filter(|seed| seed % out != 0).collect();
        if self.seeds % 3 == 1 {
            seeds.reverse();
        }
        let tables = if self.jobs { "tables = [\"jobs\"]\n" } else { "" };
        let workload = if self.log { "source = \"swf\"\nlog = \"simulated\"" } else { "source = \"lublin\"" };
        let mut text =
            format!("version = 1\nname = \"{name}\"\n{tables}seeds = {seeds:?}\n[workloads.w]\n{workload}\n");
        if self.seeds % 4 == 3 {
            // Excluded indices in the middle of the sweep.
            text.push_str("[platforms.p]\n[platforms.q]\nwake_s = 7\n[policies.r]\nbackfill = \"none\"\n");
            text.push_str("[policies.s]\nbackfill = \"easy\"\n");
            text.push_str("[[exclude]]\nplatform = \"p\"\npolicy = \"s\"\n");
        } else {
            text.push_str("[platforms.p]\n[policies.r]\n");
        }
        text
    }
}

/// The contents of a task's row beside its id: the same on every worker and at every time.
pub(super) fn outcome(task: Uuid) -> u64 {
    mix(task.as_u128() as u64)
}

/// Rows in the encoding of the simulated workers: (task, outcome) each.
pub(super) fn encode(tasks: &[Uuid]) -> Bytes {
    let mut bytes = Vec::with_capacity(tasks.len() * ROW_BYTES);
    for task in tasks {
        bytes.extend_from_slice(task.as_bytes());
        bytes.extend_from_slice(&outcome(*task).to_le_bytes());
    }
    bytes.into()
}

const ROW_BYTES: usize = 24;

/// The tasks of these rows; checks their outcomes.
pub(super) fn decode(rows: &[u8]) -> Vec<Uuid> {
    assert_eq!(rows.len() % ROW_BYTES, 0, "rows are cut");
    let row = |row: &[u8]| {
        let task = Uuid::from_slice(&row[..16]).expect("16 bytes");
        assert_eq!(row[16..], outcome(task).to_le_bytes(), "a row changed on its way");
        task
    };
    rows.chunks(ROW_BYTES).map(row).collect()
}
