//! Storage: the model store, the published parts beside it, and a ledger that checks each batch as it becomes durable.
//!
//! The ledger shares no logic with the farm. It reads batches as records and checks the promises to readers:
//!
//! - a task has one row, in the state or in one visible part;
//! - a row is deleted from the state only when its part is visible, or its user erased the experiment;
//! - the done bits count the rows;
//! - an epoch belongs to one owner;
//! - a deleted or renamed experiment leaves no record, and its parts are where its removal says;
//! - a split loses no row and shows none twice.

use std::collections::{BTreeMap, BTreeSet};

use futures::executor::block_on;
use powersweep_coordinator::records::{
    EncodedRows, ExperimentRecord, Intent, Key, Loaded, Record, Removal, RowsRecord, SplitPart, SplitRecord,
};
use powersweep_coordinator::store::{Batch, ModelStore, Op, Store, StoreError};
use powersweep_experiments::Digest;
use powersweep_results::Table;
use powersweep_results::layout::{base_name, left_name};
use uuid::Uuid;

use super::catalogue::{decode, generation, pinned};
use super::history::Histories;
use super::splitting::{fragments_of, old_of};

/// A row's name: task ids repeat in experiments that share a spec.
type RowOf = (String, Uuid);

/// The path of a part: the experiment's folder, the table's, its own name.
pub(super) type Place = (String, Table, Uuid);

/// Simulated storage with its ledger.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The newest owner's handle; every earlier one is fenced.
    pub(super) store: ModelStore,
    /// Uploads of the jobs table: experiment, and the tasks of their rows.
    pub(super) staging: BTreeMap<Uuid, (String, Vec<Uuid>)>,
    /// Fragments in the staging folder, by split.
    pub(super) fragments: BTreeMap<Uuid, BTreeMap<Uuid, Vec<Uuid>>>,
    /// Open splits.
    splits: BTreeMap<String, SplitRecord>,
    pub(super) logs: BTreeSet<Digest>,
    pub(super) experiments: BTreeMap<String, ExperimentRecord>,
    pub(super) intents: BTreeMap<Uuid, Intent>,
    /// Accepted uploads whose part is not closed, by experiment and number of the record.
    uploads: BTreeMap<(String, u64), Uuid>,
    /// Experiments that are being deleted or renamed.
    leaving: BTreeMap<String, Removal>,
    pub(super) histories: Histories,
    /// Keys of all records of experiments.
    keys: BTreeMap<Key, String>,
    epoch: u64,
    generation_floor: u64,
    /// Rows of tasks in the state.
    unpublished: BTreeMap<(String, u64), Vec<Uuid>>,
    done: BTreeMap<(String, u64, u32), u64>,
    pub(super) parts: BTreeMap<Place, Vec<Uuid>>,
    /// The part of each visible row.
    visible: BTreeMap<RowOf, Uuid>,
    visible_jobs: BTreeMap<RowOf, Uuid>,
}

/// The result of a publish attempt.
pub(super) enum Shown {
    Yes,
    /// Its rows or uploads are gone: possible only if its intent is closed.
    Gone(&'static str),
}

impl Disk {
    /// The handle of a new owner. Earlier owners are fenced.
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
        let departures = self.departures(batch);
        let stays = self.untouched(batch, &departures);
        assert_eq!(stays, None, "an experiment is removed, and its record remains");
        let mut touched = BTreeSet::new();
        for op in batch.ops() {
            match op {
                Op::Put(record) => self.put(record, &mut touched),
                Op::Delete(key) => self.delete(key, &departures, &mut touched),
            }
        }
        for name in touched {
            let bits: u64 =
                self.done.range((name.clone(), 0, 0)..).take_while(|((n, ..), _)| *n == name).map(|(_, n)| n).sum();
            let rows = self.histories.present(&name).map_or(0, |history| history.rows.len()) as u64;
            assert_eq!(bits, rows, "a batch of {name} leaves other done bits than rows");
        }
    }

    /// The experiments that this batch deletes or renames. Their parts must be where their fates say.
    fn departures(&self, batch: &Batch) -> BTreeMap<String, Removal> {
        let mut departures = BTreeMap::new();
        for op in batch.ops() {
            let Op::Delete(Key::Experiment { name }) = op else { continue };
            let of_batch = batch.ops().iter().find_map(|op| match op {
                Op::Put(Record::Leaving(leaving)) if leaving.experiment == *name => Some(&*leaving.removal),
                _ => None,
            });
            let removal = self.leaving.get(name).or(of_batch.filter(|removal| **removal == Removal::Forget));
            let removal =
                removal.unwrap_or_else(|| panic!("{name} is removed without a durable record of its removal"));
            self.check_departure(name, removal);
            departures.insert(name.clone(), removal.clone());
        }
        departures
    }

    fn check_departure(&self, name: &str, removal: &Removal) {
        let folder = match removal {
            Removal::Forget => Some(name),
            Removal::Erase => None,
            Removal::Rename(to) => Some(to.as_str()),
        };
        if let Some(folder) = folder {
            let rows = &self.histories.present(name).expect("it is present").rows;
            let lost = rows.iter().find(|task| !self.is_shown(folder, **task));
            assert_eq!(lost, None, "{name} is removed, and its row is not visible in {folder}");
        }
        if folder != Some(name) {
            let stays = self.parts.keys().find(|(of, ..)| base_name(of) == name);
            assert_eq!(stays, None, "{name} is removed ({removal:?}), and its part remains");
        }
    }

    /// A record of an experiment that this batch removes, if the batch does not touch the record.
    fn untouched(&self, batch: &Batch, departures: &BTreeMap<String, Removal>) -> Option<&Key> {
        if departures.is_empty() {
            return None;
        }
        let touched: BTreeSet<Key> = batch
            .ops()
            .iter()
            .map(|op| match op {
                Op::Put(record) => record.key(),
                Op::Delete(key) => key.clone(),
            })
            .collect();
        let stays = self.keys.iter().find(|(key, name)| departures.contains_key(*name) && !touched.contains(key));
        stays.map(|(key, _)| key)
    }

    fn put(&mut self, record: &Record, touched: &mut BTreeSet<String>) {
        if let Some(name) = experiment_of(record) {
            self.keys.insert(record.key(), name.to_owned());
        }
        match record {
            Record::Epoch(epoch) => {
                let next = *epoch == self.epoch + 1 || *epoch == self.epoch;
                assert!(next, "epoch {epoch} after {}", self.epoch);
                self.epoch = *epoch;
            }
            Record::Experiment(record) => {
                let before = self.experiments.insert(record.name.clone(), record.clone());
                if record.pruning && !before.is_some_and(|before| before.pruning) {
                    self.pruned(record);
                    touched.insert(record.name.clone());
                }
                self.histories.stored(&record.name, record.generation);
            }
            Record::DoneChunk(chunk) => {
                let key = (chunk.experiment.clone(), chunk.generation, chunk.chunk);
                self.done.insert(key, chunk.bitmap.len());
                touched.insert(chunk.experiment.clone());
            }
            Record::Rows(RowsRecord { experiment, seq, upload: Some(upload), .. }) => {
                self.uploads.insert((experiment.clone(), *seq), *upload.part_id);
            }
            Record::Rows(rows) if rows.table() == Table::Tasks => {
                let live = live(rows);
                self.histories.add_rows(&rows.experiment, rows.generation, &live);
                let before = self.unpublished.insert((rows.experiment.clone(), rows.seq), live);
                assert!(before.is_none(), "rows {} of {} were overwritten", rows.seq, rows.experiment);
                touched.insert(rows.experiment.clone());
            }
            Record::Intent(intent) => drop(self.intents.insert(*intent.part_id, intent.clone())),
            Record::Split(split) => self.open_split(split),
            Record::Leaving(leaving) => {
                assert!(self.experiments.contains_key(&leaving.experiment), "{leaving:?}: no such experiment");
                let before = self.leaving.insert(leaving.experiment.clone(), leaving.removal.0.clone());
                assert!(before.is_none_or(|before| before == *leaving.removal), "a removal changed: {leaving:?}");
            }
            Record::GenerationFloor(floor) => {
                assert!(*floor >= self.generation_floor, "the generation floor fell");
                self.generation_floor = *floor;
            }
            _ => {}
        }
    }

    fn delete(&mut self, key: &Key, departures: &BTreeMap<String, Removal>, touched: &mut BTreeSet<String>) {
        let gives_up = |name: &str| departures.get(name) == Some(&Removal::Erase);
        self.keys.remove(key);
        match key {
            Key::Experiment { name } => {
                self.experiments.remove(name);
                touched.insert(name.clone());
                if let Removal::Rename(to) = &departures[name] {
                    touched.insert(to.clone());
                }
                self.histories.left(name, &departures[name]);
            }
            Key::Split { experiment } => {
                let split = self.splits.remove(experiment);
                let open = split.filter(|_| !gives_up(experiment)).and_then(|split| self.unfinished(&split));
                assert_eq!(open, None, "a split of {experiment} is closed and not carried out");
            }
            Key::Leaving { experiment } => drop(self.leaving.remove(experiment)),
            Key::DoneChunk { experiment, generation, chunk } => {
                self.done.remove(&(experiment.clone(), *generation, *chunk));
                touched.insert(experiment.clone());
            }
            Key::Rows { experiment, table: Table::Tasks, seq } => {
                let rows = self.unpublished.remove(&(experiment.clone(), *seq)).unwrap_or_default();
                for task in rows {
                    let shown = self.is_shown(experiment, task);
                    assert!(shown || gives_up(experiment), "the row of {task} left the state before it was visible");
                }
            }
            Key::Rows { experiment, table: Table::Jobs, seq } => {
                self.uploads.remove(&(experiment.clone(), *seq));
            }
            Key::Intent { part_id } => {
                if let Some(intent) = self.intents.remove(part_id) {
                    let given_up = gives_up(&intent.experiment);
                    assert!(given_up || self.is_visible(&intent), "part {part_id} is closed and not visible");
                }
            }
            _ => {}
        }
    }

    fn is_visible(&self, intent: &Intent) -> bool {
        self.parts.contains_key(&place_of(intent))
    }

    /// Makes a part visible, or finds that it is; may be repeated. `owns`: for the present owner.
    pub(super) fn publish(&mut self, intent: &Intent, owns: bool) -> Shown {
        let Intent { experiment, first_seq, last_seq, .. } = intent;
        let rows = block_on(self.store.rows(experiment, intent.table(), *first_seq, *last_seq)).expect("reads");
        if rows.iter().map(RowsRecord::live_rows).sum::<u64>() != intent.rows {
            return Shown::Gone("its rows");
        }
        let mut tasks = Vec::new();
        for record in &rows {
            if let Some(upload) = record.upload {
                let Some((_, of_upload)) = self.staging.get(&*upload.part_id) else { return Shown::Gone("an upload") };
                tasks.extend_from_slice(of_upload);
            } else if record.table() == Table::Tasks {
                tasks.extend(live(record));
            }
        }
        let other = intent.table() != Table::Failures && tasks.len() as u64 != intent.rows;
        assert!(!other, "part {} would have other rows", *intent.part_id);
        self.create(intent, tasks, owns);
        Shown::Yes
    }

    fn create(&mut self, intent: &Intent, tasks: Vec<Uuid>, owns: bool) {
        if let Some(there) = self.parts.get(&place_of(intent)) {
            // Numbers of row records repeat once their part is closed. An outdated owner that still tries that part
            // finds other rows under these numbers; it replaces no part.
            assert!(!owns || *there == tasks, "part {} would be made of other rows", *intent.part_id);
            return;
        }
        let wanted = self.intents.contains_key(&*intent.part_id) && !self.is_erased(&intent.experiment);
        if !owns && !wanted {
            // Not modelled: the request of an outdated owner that arrives after its part was moved or deleted. It would
            // create the part again, and the farm cannot prevent that.
            return;
        }
        assert!(
            self.intents.contains_key(&*intent.part_id),
            "part {} is created again without an intent",
            *intent.part_id
        );
        self.show(place_of(intent), tasks);
    }

    fn show(&mut self, place: Place, tasks: Vec<Uuid>) {
        let (folder, table, part_id) = &place;
        let visible = if *table == Table::Tasks { &mut self.visible } else { &mut self.visible_jobs };
        for task in &tasks {
            let before = visible.insert((folder.clone(), *task), *part_id);
            assert_eq!(before, None, "task {task} is visible twice in {folder}/{table}");
            let base = base_name(folder);
            let both = [base.to_owned(), left_name(base)].map(|folder| visible.contains_key(&(folder, *task)));
            assert!(both != [true; 2], "task {task} is visible in {base}/{table} and among the rows that left");
        }
        self.parts.insert(place, tasks);
    }

    /// Deletes or moves a part, if it exists. Its experiment must have this removal.
    pub(super) fn take_away(&mut self, place: &Place, removal: &Removal) {
        let Some(tasks) = self.hide(place) else { return };
        let (folder, table, part_id) = place;
        assert_eq!(self.leaving.get(base_name(folder)), Some(removal), "a part of {folder}/{table} is removed");
        if let Removal::Rename(to) = removal {
            let to = if base_name(folder) == folder { to.clone() } else { left_name(to) };
            self.show((to, *table, *part_id), tasks);
        }
    }

    /// Removes a part, if it exists. Returns its rows.
    fn hide(&mut self, place: &Place) -> Option<Vec<Uuid>> {
        let tasks = self.parts.remove(place)?;
        let (folder, table, _) = place;
        let visible = if *table == Table::Tasks { &mut self.visible } else { &mut self.visible_jobs };
        for task in &tasks {
            visible.remove(&(folder.clone(), *task));
        }
        Some(tasks)
    }

    // ---- splits

    /// A split's record becomes durable: its fragments are staged, and have the rows of their parts.
    fn open_split(&mut self, split: &SplitRecord) {
        for part in &split.parts {
            let old = old_of(part, &split.experiment);
            let mut before = self.parts.get(&old).cloned().unwrap_or_default();
            let staged = |place: &Place| self.fragments[&*split.id].get(&place.2).expect("staged").clone();
            let mut after = fragments_of(part, &split.experiment).iter().flat_map(staged).collect::<Vec<_>>();
            before.sort_unstable();
            after.sort_unstable();
            assert!(!before.is_empty() && before == after, "the fragments of {old:?} have other rows");
        }
        let before = self.splits.insert(split.experiment.clone(), split.clone());
        assert_eq!(before, None, "two splits of {} at once", split.experiment);
    }

    /// A place where a split is not carried out.
    fn unfinished(&self, split: &SplitRecord) -> Option<Place> {
        let of_part = |part: &SplitPart| {
            let old = Some(old_of(part, &split.experiment)).filter(|old| self.parts.contains_key(old));
            old.or_else(|| fragments_of(part, &split.experiment).into_iter().find(|f| !self.parts.contains_key(f)))
        };
        split.parts.iter().find_map(of_part)
    }

    /// Removes a part that a split replaces, if it exists.
    pub(super) fn remove_old(&mut self, place: &Place) {
        if !self.parts.contains_key(place) {
            return;
        }
        let named = self.splits.values().any(|s| s.parts.iter().any(|part| old_of(part, &s.experiment) == *place));
        assert!(named, "{place:?} is removed, and no durable split names it");
        self.hide(place);
    }

    /// Shows a fragment, or finds that it is visible; may be repeated. `owns`: for the present owner.
    pub(super) fn show_fragment(&mut self, split: Uuid, place: &Place, owns: bool) {
        let open = self.splits.values().any(|record| *record.id == split);
        if !open {
            // Not modelled: the request of an outdated owner that arrives after the split was closed.
            assert!(!owns, "a fragment of a closed split is shown");
            return;
        }
        if !self.parts.contains_key(place) {
            let tasks = self.fragments[&split][&place.2].clone();
            self.show(place.clone(), tasks);
        }
    }

    /// Removes a part of the rows that left, if it exists.
    pub(super) fn remove_left(&mut self, place: &Place, experiment: &str) {
        if self.hide(place).is_some() {
            let pruning = self.experiments.get(experiment).is_some_and(|record| record.pruning);
            assert!(pruning, "{place:?} is removed without a durable mark");
        }
    }

    pub(super) fn discard_fragments(&mut self, split: Uuid) {
        let open = self.splits.values().any(|record| *record.id == split);
        assert!(!open, "fragments of an open split are deleted");
        self.fragments.remove(&split);
    }

    /// Rows that left the manifest do not count any more.
    fn pruned(&mut self, record: &ExperimentRecord) {
        let digests = record.digests.iter().map(|(log, digest)| (log.clone(), **digest)).collect();
        let present = generation(&record.manifest, pinned(&digests));
        let wanted: BTreeSet<Uuid> = present.tasks().map(|fact| fact.id).collect();
        self.histories.forget(&record.name, &wanted);
    }

    /// Deletes an upload, if it exists. No record may name it, unless its experiment is being erased.
    pub(super) fn take_upload_away(&mut self, part_id: &Uuid) {
        self.staging.remove(part_id);
        let named = self.uploads.iter().find(|(_, upload)| *upload == part_id).map(|((name, _), _)| name);
        let given_up = named.is_none_or(|name| self.is_erased(name));
        assert!(given_up, "an upload of {named:?} is deleted");
    }

    /// Whether the experiment with this generation of a name is being removed, or was.
    pub(super) fn is_or_was_leaving(&self, name: &str, generation: u64) -> bool {
        !self.histories.is_present(name, generation) || self.leaving.contains_key(name)
    }

    /// Whether an experiment is being deleted together with its parts.
    pub(super) fn is_erased(&self, name: &str) -> bool {
        self.leaving.get(name) == Some(&Removal::Erase)
    }

    /// Whether an experiment is being deleted or renamed.
    pub(super) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Whether the `tasks` table of a folder has a part, known to the state or not.
    pub(super) fn has_parts(&self, name: &str) -> bool {
        self.parts.keys().any(|(folder, table, _)| base_name(folder) == name && *table == Table::Tasks)
    }

    /// Stores an upload; a repeated one must be equal.
    pub(super) fn stage(&mut self, experiment: &str, part_id: Uuid, tasks: &[Uuid]) {
        let (_, there) = self.staging.entry(part_id).or_insert_with(|| (experiment.to_owned(), tasks.to_vec()));
        assert_eq!(*there, tasks, "another upload under the same id");
    }

    /// Deletes earlier uploads at a start, except those that an open intent or a record names.
    pub(super) fn clean_staging(&mut self, mut delete: impl FnMut() -> bool) {
        let named: BTreeSet<Uuid> = self.uploads.values().copied().collect();
        self.staging.retain(|part_id, _| named.contains(part_id) || !delete());
    }

    /// Whether a row of `tasks` is visible, or in a part that is being split.
    pub(super) fn is_shown(&self, experiment: &str, task: Uuid) -> bool {
        let folders = [experiment.to_owned(), left_name(experiment)];
        let split = self.splits.get(experiment).and_then(|split| self.fragments.get(&*split.id));
        folders.into_iter().any(|folder| self.visible.contains_key(&(folder, task)))
            || split.is_some_and(|fragments| fragments.values().flatten().any(|found| *found == task))
    }

    /// Visible rows of an experiment, in order of their tasks.
    pub(super) fn dataset(&self, experiment: &str, table: Table) -> Vec<Uuid> {
        let visible = if table == Table::Tasks { &self.visible } else { &self.visible_jobs };
        visible.keys().filter(|(name, _)| name == experiment).map(|(_, task)| *task).collect()
    }
}

fn place_of(intent: &Intent) -> Place {
    (intent.experiment.clone(), intent.table(), *intent.part_id)
}

/// The experiment of a record; `None` for a record of no experiment.
fn experiment_of(record: &Record) -> Option<&str> {
    match record {
        Record::Experiment(r) => Some(&r.name),
        Record::Earlier(r) => Some(&r.experiment),
        Record::DoneChunk(r) => Some(&r.experiment),
        Record::Rows(r) => Some(&r.experiment),
        Record::Header(r) => Some(&r.experiment),
        Record::Intent(r) => Some(&r.experiment),
        Record::Totals(r) => Some(&r.experiment),
        Record::Failure(r) => Some(&r.experiment),
        Record::Lease(r) => Some(&r.experiment),
        Record::Covered(r) => Some(&r.experiment),
        Record::Leaving(r) => Some(&r.experiment),
        Record::Split(r) => Some(&r.experiment),
        Record::Epoch(_) | Record::Log(_) | Record::GenerationFloor(_) => None,
    }
}

fn live(rows: &RowsRecord) -> Vec<Uuid> {
    let of_one = |rows: &EncodedRows| {
        let masked = |at: usize| rows.mask.as_ref().is_some_and(|mask| mask.contains(at as u32));
        let tasks = decode(&rows.encoded).into_iter().enumerate();
        tasks.filter(|(at, _)| !masked(*at)).map(|(_, task)| task).collect::<Vec<_>>()
    };
    rows.hand_ins.iter().flat_map(of_one).collect()
}
