//! Storage: the model store with what is published beside it, and a ledger that checks each batch as it becomes durable.
//!
//! The ledger knows nothing of the farm's logic. It reads batches as records and holds them to what readers are promised:
//! a task has one row, in the state or in one visible part; a row leaves the state only when its part is visible; the
//! done bits count the rows; an epoch belongs to one owner.

use std::collections::{BTreeMap, BTreeSet};

use futures::executor::block_on;
use powersweep_coordinator::records::{
    ExperimentRecord, Intent, Key, Loaded, LogDigest, Record, RowsRecord, Source, Table,
};
use powersweep_coordinator::store::{Batch, ModelStore, Op, Store, StoreError};
use uuid::Uuid;

use super::catalogue::decode;

/// A row's name: task ids repeat in experiments that share a spec.
type RowOf = (String, Uuid);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The newest owner's handle; every earlier one is fenced.
    pub(super) store: ModelStore,
    /// Uploaded objects of the jobs table: whose rows they hold.
    pub(super) staging: BTreeMap<Uuid, Vec<Uuid>>,
    pub(super) logs: BTreeSet<LogDigest>,
    pub(super) experiments: BTreeMap<String, ExperimentRecord>,
    pub(super) intents: BTreeMap<Uuid, Intent>,
    /// Accepted uploads whose part is not closed.
    uploads: BTreeSet<Uuid>,
    epoch: u64,
    /// Rows of tasks in the state.
    unrolled: BTreeMap<(String, u64), Vec<Uuid>>,
    /// Every task that has a durable row.
    rows: BTreeMap<String, BTreeSet<Uuid>>,
    done: BTreeMap<(String, u64, u32), u64>,
    parts: BTreeMap<Uuid, Vec<Uuid>>,
    /// Which part shows a row.
    visible: BTreeMap<RowOf, Uuid>,
    visible_jobs: BTreeMap<RowOf, Uuid>,
    failure_parts: BTreeSet<Uuid>,
}

/// What a publish attempt says.
pub(super) enum Shown {
    Yes,
    /// What it needs is gone: only one whose intent is closed may meet this.
    Gone(&'static str),
}

impl Disk {
    /// A new owner's handle, and what it loads. Earlier owners are fenced.
    pub(super) fn take_over(&mut self) -> ModelStore {
        self.store = self.store.reopen(0);
        self.store.again()
    }

    pub(super) fn load(store: &ModelStore) -> Result<Loaded, StoreError> {
        block_on(store.load())
    }

    /// Makes a batch durable, unless its owner is fenced.
    pub(super) fn commit(&mut self, store: &ModelStore, batch: &Batch) -> Result<(), StoreError> {
        block_on(store.commit(batch.clone()))?;
        self.note(batch);
        Ok(())
    }

    fn note(&mut self, batch: &Batch) {
        let mut touched = BTreeSet::new();
        for op in batch.ops() {
            match op {
                Op::Put(record) => self.put(record, &mut touched),
                Op::Delete(key) => self.delete(key, &mut touched),
            }
        }
        for name in touched {
            let bits: u64 =
                self.done.range((name.clone(), 0, 0)..).take_while(|((n, ..), _)| *n == name).map(|(_, n)| n).sum();
            let rows = self.rows.get(&name).map_or(0, BTreeSet::len) as u64;
            assert_eq!(bits, rows, "a batch of {name} leaves other done bits than rows");
        }
    }

    fn put(&mut self, record: &Record, touched: &mut BTreeSet<String>) {
        match record {
            Record::Epoch(epoch) => {
                let next = *epoch == self.epoch + 1 || *epoch == self.epoch;
                assert!(next, "epoch {epoch} after {}", self.epoch);
                self.epoch = *epoch;
            }
            Record::Experiment(record) => {
                let before = self.experiments.insert(record.name.clone(), record.clone());
                assert!(before.is_none_or(|before| before.generation <= record.generation), "a generation went back");
            }
            Record::DoneChunk(chunk) => {
                let key = (chunk.experiment.clone(), chunk.generation, chunk.chunk);
                self.done.insert(key, chunk.bitmap.len());
                touched.insert(chunk.experiment.clone());
            }
            Record::Rows(rows) if rows.table == Table::Tasks => {
                let live = live(rows);
                let stored = self.rows.entry(rows.experiment.clone()).or_default();
                for task in &live {
                    assert!(stored.insert(*task), "task {task} of {} has a second row", rows.experiment);
                }
                let before = self.unrolled.insert((rows.experiment.clone(), rows.seq), live);
                assert!(before.is_none(), "rows {} of {} were overwritten", rows.seq, rows.experiment);
                touched.insert(rows.experiment.clone());
            }
            Record::Intent(intent) => drop(self.intents.insert(intent.part_id, intent.clone())),
            Record::Upload(upload) => drop(self.uploads.insert(upload.part_id)),
            _ => {}
        }
    }

    fn delete(&mut self, key: &Key, touched: &mut BTreeSet<String>) {
        match key {
            Key::DoneChunk { experiment, generation, chunk } => {
                self.done.remove(&(experiment.clone(), *generation, *chunk));
                touched.insert(experiment.clone());
            }
            Key::Rows { experiment, table: Table::Tasks, seq } => {
                let rows = self.unrolled.remove(&(experiment.clone(), *seq)).unwrap_or_default();
                for task in rows {
                    let shown = self.visible.contains_key(&(experiment.clone(), task));
                    assert!(shown, "the row of {task} left the state before it was visible");
                }
            }
            Key::Upload { part_id } => drop(self.uploads.remove(part_id)),
            Key::Intent { part_id } => {
                if let Some(intent) = self.intents.remove(part_id) {
                    assert!(self.is_visible(&intent), "part {part_id} is closed and not visible");
                }
            }
            _ => {}
        }
    }

    fn is_visible(&self, intent: &Intent) -> bool {
        self.parts.contains_key(&intent.part_id) || self.failure_parts.contains(&intent.part_id)
    }

    /// Makes a part visible, or finds its own there; again is possible any number of times. `owns`: for the present owner.
    pub(super) fn publish(&mut self, intent: &Intent, cleans_up: bool, owns: bool) -> Shown {
        match &intent.source {
            Source::Rows { first_seq, last_seq } => self.publish_rows(intent, *first_seq, *last_seq, owns),
            Source::Merged { uploads } => {
                let there: Option<Vec<&Vec<Uuid>>> = uploads.iter().map(|id| self.staging.get(id)).collect();
                let Some(there) = there else { return Shown::Gone("an upload") };
                let tasks: Vec<Uuid> = there.into_iter().flatten().copied().collect();
                assert_eq!(tasks.len() as u64, intent.rows, "part {} would have other rows", intent.part_id);
                self.create(intent, tasks, owns);
                Shown::Yes
            }
            Source::Staged => {
                let Some(tasks) = self.staging.get(&intent.part_id).cloned() else {
                    let there = self.parts.contains_key(&intent.part_id);
                    return if there { Shown::Yes } else { Shown::Gone("its upload") };
                };
                if cleans_up {
                    self.staging.remove(&intent.part_id);
                }
                self.create(intent, tasks, owns);
                Shown::Yes
            }
        }
    }

    fn publish_rows(&mut self, intent: &Intent, first_seq: u64, last_seq: u64, owns: bool) -> Shown {
        let rows = block_on(self.store.rows(&intent.experiment, intent.table, first_seq, last_seq)).expect("reads");
        let count: u64 = rows.iter().map(|rows| u64::from(rows.header().live_rows)).sum();
        if count != intent.rows {
            return Shown::Gone("its rows");
        }
        if intent.table == Table::Tasks {
            self.create(intent, rows.iter().flat_map(live).collect(), owns);
        } else {
            self.failure_parts.insert(intent.part_id);
        }
        Shown::Yes
    }

    fn create(&mut self, intent: &Intent, tasks: Vec<Uuid>, owns: bool) {
        if let Some(there) = self.parts.get(&intent.part_id) {
            // Numbers of rows are used again once their part is closed. An owner of the past, which still tries that part,
            // finds other rows under them; it replaces nothing.
            assert!(!owns || *there == tasks, "part {} would be made of other rows", intent.part_id);
            return;
        }
        let visible = if intent.table == Table::Tasks { &mut self.visible } else { &mut self.visible_jobs };
        for task in &tasks {
            let before = visible.insert((intent.experiment.clone(), *task), intent.part_id);
            assert_eq!(before, None, "task {task} is visible twice in {}/{}", intent.experiment, intent.table);
        }
        self.parts.insert(intent.part_id, tasks);
    }

    /// Takes an upload in, as often as it comes.
    pub(super) fn stage(&mut self, part_id: Uuid, tasks: &[Uuid]) {
        let there = self.staging.entry(part_id).or_insert_with(|| tasks.to_vec());
        assert_eq!(*there, tasks, "another upload under the same id");
    }

    /// What a start deletes of earlier uploads: none that an open intent names.
    pub(super) fn clean_staging(&mut self, mut delete: impl FnMut() -> bool) {
        let (intents, uploads) = (&self.intents, &self.uploads);
        let named = |part_id: &Uuid| intents.contains_key(part_id) || uploads.contains(part_id);
        self.staging.retain(|part_id, _| named(part_id) || !delete());
    }

    /// Whether a task has a durable row.
    pub(super) fn has_row(&self, experiment: &str, task: Uuid) -> bool {
        self.rows.get(experiment).is_some_and(|rows| rows.contains(&task))
    }

    pub(super) fn is_shown(&self, experiment: &str, task: Uuid) -> bool {
        self.visible.contains_key(&(experiment.to_owned(), task))
    }

    /// Visible rows of an experiment, in order of their tasks.
    pub(super) fn dataset(&self, experiment: &str, table: Table) -> Vec<Uuid> {
        let visible = if table == Table::Tasks { &self.visible } else { &self.visible_jobs };
        visible.keys().filter(|(name, _)| name == experiment).map(|(_, task)| *task).collect()
    }
}

fn live(rows: &RowsRecord) -> Vec<Uuid> {
    let masked = |at: usize| rows.mask.as_ref().is_some_and(|mask| mask.contains(at as u32));
    let tasks = decode(&rows.ipc).into_iter().enumerate();
    tasks.filter(|(at, _)| !masked(*at)).map(|(_, task)| task).collect()
}
