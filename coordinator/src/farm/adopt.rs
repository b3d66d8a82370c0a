//! Rebuilds a lost state from the rows of the published parts and a manifest.
//!
//! Each row has the index that its task had when it ran; mostly one decoding of that index shows that the task is the
//! same in this manifest. After an edit of the manifest the index may belong to another task. The ids of such rows are kept,
//! 16 bytes each, and the sweep is decoded from the start until all ids are found. So are the ids of tasks whose row in `tasks` is
//! lost. Otherwise memory does not grow with the number of rows.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::spec::Model;
use powersweep_experiments::{Digest, Sweep};
use powersweep_results::Table;
use powersweep_results::identity::RowKey;
use uuid::Uuid;

use super::index_set::IndexSet;
use super::pins;
use crate::records::{CoveredRecord, ExperimentRecord, Loaded, Record, RowsRecord, Totals, Upload};
use crate::store::Batch;

/// The rebuilt state of one experiment.
#[derive(Debug)]
pub struct Adoption {
    sweep: Sweep,
    done: IndexSet,
    /// Task ids of rows whose index belongs to another task in this manifest.
    moved: Vec<Uuid>,
    /// Rows whose task has another row.
    doubled: u64,
    /// Rows of no task of this manifest.
    foreign: u64,
    totals: BTreeMap<Table, Totals>,
    /// Tasks with rows in an optional table.
    covered: BTreeMap<Table, IndexSet>,
    /// Tasks with rows in a part of an optional table, and without one in `tasks`.
    orphans: BTreeMap<Table, BTreeSet<Uuid>>,
    /// Present indices of the tasks of `moved`.
    present_index: BTreeMap<Uuid, u64>,
    uploads: Vec<(Table, Upload)>,
}

impl Adoption {
    /// An adoption without rows.
    pub fn new(sweep: Sweep) -> Adoption {
        Adoption {
            sweep,
            done: IndexSet::new(),
            moved: Vec::new(),
            doubled: 0,
            foreign: 0,
            totals: BTreeMap::new(),
            covered: BTreeMap::new(),
            orphans: BTreeMap::new(),
            present_index: BTreeMap::new(),
            uploads: Vec::new(),
        }
    }

    /// Counts a published part.
    pub fn part(&mut self, table: Table, rows: u64, bytes: u64) {
        let experiment = self.sweep.manifest().name().to_owned();
        let none = Totals { experiment, table: table.into(), ..Totals::default() };
        let totals = self.totals.entry(table).or_insert(none);
        totals.parts += 1;
        totals.rows += rows;
        totals.bytes += bytes;
    }

    /// Adds a row of `tasks`. True if its task has another row.
    pub fn task(&mut self, row: RowKey) -> bool {
        let Some(index) = self.unmoved_index(row) else {
            self.moved.push(row.task_id);
            return false;
        };
        let doubled = !self.done.insert(index);
        self.doubled += u64::from(doubled);
        doubled
    }

    /// The index of a row, if it belongs to the row's task in this manifest, too.
    fn unmoved_index(&self, row: RowKey) -> Option<u64> {
        row.index.filter(|index| self.sweep.task(*index).is_some_and(|task| task.task_id == row.task_id))
    }

    /// Finds the tasks whose index has changed. Called after the last row of `tasks`.
    pub fn find_moved(&mut self) {
        let mut moved = std::mem::take(&mut self.moved);
        let rows = moved.len();
        moved.sort_unstable();
        moved.dedup();
        self.doubled += (rows - moved.len()) as u64;
        let (mut from, mut missing) = (0, moved.len());
        while missing > 0
            && let Some(index) = self.sweep.next_included(from)
        {
            from = index + 1;
            let Some(task) = self.sweep.task(index) else { continue };
            if moved.binary_search(&task.task_id).is_ok() {
                missing -= 1;
                self.present_index.insert(task.task_id, index);
                self.doubled += u64::from(!self.done.insert(index));
            }
        }
        self.foreign = missing as u64;
    }

    /// The task of a row of an optional table, if it has a row in `tasks`. After [`Adoption::find_moved`].
    fn done_task(&self, row: RowKey) -> Option<u64> {
        let index = self.unmoved_index(row).or_else(|| self.present_index.get(&row.task_id).copied())?;
        self.done.contains(index).then_some(index)
    }

    /// Adds a row of a published part of an optional table.
    pub fn detail(&mut self, table: Table, row: RowKey) {
        match self.done_task(row) {
            Some(index) => drop(self.covered.entry(table).or_default().insert(index)),
            None => drop(self.orphans.entry(table).or_default().insert(row.task_id)),
        }
    }

    /// Tasks with rows in parts of an optional table, and without a row in `tasks`: they run again, and their rows are there twice then.
    pub fn orphans(&self, table: Table) -> u64 {
        self.orphans.get(&table).map_or(0, |tasks| tasks.len() as u64)
    }

    /// Tasks with a row in `tasks` that should have rows in an optional table of the manifest, and have none. A task may have no series:
    /// all tasks lack them if none has one. Queues have neither `jobs` nor `accounts`.
    pub fn lacking(&self, table: Table) -> u64 {
        let is_asked = self.sweep.manifest().tables().asked(table.name()).is_some_and(|asked| *asked);
        let covered = self.covered.get(&table);
        let is_covered = |index: u64| covered.is_some_and(|set| set.contains(index));
        let has_jobs = |index: u64| self.sweep.task(index).is_some_and(|task| task.sim.model() != Model::Queues);
        match table {
            _ if !is_asked => 0,
            Table::Series => {
                if covered.is_none() {
                    self.done.len()
                } else {
                    0
                }
            }
            _ => self.done.iter().filter(|index| !is_covered(*index) && has_jobs(*index)).count() as u64,
        }
    }

    /// Adds an upload that is in no part, with the tasks of its rows. It was accepted if all of them have a row in
    /// `tasks`; of two uploads with the same tasks, one was rejected. False if it was rejected.
    pub fn upload(&mut self, table: Table, upload: Upload, rows: &[RowKey]) -> bool {
        let covered = self.covered.get(&table);
        let uncovered = |row: &RowKey| self.done_task(*row).filter(|i| !covered.is_some_and(|set| set.contains(*i)));
        let Some(tasks) = rows.iter().map(uncovered).collect::<Option<Vec<u64>>>().filter(|tasks| !tasks.is_empty())
        else {
            return false;
        };
        let covered = self.covered.entry(table).or_default();
        for index in tasks {
            covered.insert(index);
        }
        self.uploads.push((table, upload));
        true
    }

    /// Tasks with a row.
    pub fn done(&self) -> u64 {
        self.done.len()
    }

    /// Tasks of the manifest.
    pub fn tasks(&self) -> u64 {
        self.sweep.task_count()
    }

    /// Rows whose task has another row.
    pub fn doubled(&self) -> u64 {
        self.doubled
    }

    /// Rows of no task of this manifest.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Accepted uploads.
    pub fn uploads(&self) -> usize {
        self.uploads.len()
    }

    /// The state as one batch. `ledgers`: see [`ExperimentRecord`]; `loaded`: the state of other experiments; `now_us`:
    /// microseconds since 1970 UTC. Epoch and generation get numbers that the lost state never had, so that hand-ins of
    /// earlier leases are rejected.
    pub fn batch(self, digests: BTreeMap<String, Digest>, ledgers: String, loaded: &Loaded, now_us: i64) -> Batch {
        let name = self.sweep.manifest().name().to_owned();
        let seconds = u64::try_from(now_us / 1_000_000).unwrap_or(0);
        let generation = seconds.max(loaded.generation_floor + 1);
        let mut batch = Batch::new();
        batch.put(Record::Epoch(seconds.max(loaded.epoch + 1)));
        batch.put(Record::Experiment(ExperimentRecord {
            generation,
            created_us: now_us,
            ledgers,
            ..pins::new_record(&self.sweep, &digests)
        }));
        batch.put_all(self.done.records(&name, generation).map(Record::DoneChunk));
        batch.put_all(self.totals.into_values().map(Record::Totals));
        for table in Table::OPTIONAL {
            let tasks = self.covered.get(&table).map_or(0, IndexSet::len);
            // A task may have no series, so rows do not show which tasks ran with the table: all count as covered.
            let tasks = if table == Table::Series && tasks > 0 { self.done.len() } else { tasks };
            batch.put(Record::Covered(CoveredRecord { experiment: name.clone(), table: table.into(), tasks }));
        }
        for (seq, (table, upload)) in (0..).zip(self.uploads) {
            batch.put(Record::Rows(RowsRecord {
                experiment: name.clone(),
                table: table.into(),
                seq,
                generation,
                received_us: 0,
                hand_ins: Vec::new(),
                upload: Some(upload),
            }));
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::tests::sweep;

    fn row(sweep: &Sweep, index: u64) -> RowKey {
        RowKey { task_id: sweep.task(index).expect("there").task_id, index: Some(index) }
    }

    #[test]
    fn rows_belong_to_the_present_index_of_their_task() {
        let (old, new) = (sweep("e", 10), sweep("e", 200_000));
        let mut adoption = Adoption::new(new.clone());
        assert!(!adoption.task(row(&new, 70_000)));
        assert!(!adoption.task(RowKey { index: Some(5), ..row(&new, 199_999) }));
        assert!(!adoption.task(RowKey { index: None, ..row(&new, 3) }));
        assert!(!adoption.task(row(&old, 7)), "both manifests have seed 8");
        assert!(adoption.task(row(&new, 70_000)), "a second row");
        assert!(!adoption.task(RowKey { task_id: Uuid::from_u128(1), index: Some(0) }));
        assert!(!adoption.task(RowKey { task_id: Uuid::from_u128(2), index: Some(0) }));
        assert!(!adoption.task(RowKey { index: Some(u64::MAX), ..row(&new, 3) }));
        adoption.find_moved();
        assert_eq!((adoption.done(), adoption.doubled(), adoption.foreign()), (4, 2, 2));
        let batch = adoption.batch(BTreeMap::new(), String::new(), &Loaded::default(), 1_790_000_000_000_000);
        let chunks: Vec<_> = batch
            .ops()
            .iter()
            .filter_map(|op| match op {
                crate::store::Op::Put(Record::DoneChunk(chunk)) => Some((chunk.chunk, chunk.bitmap.len())),
                _ => None,
            })
            .collect();
        assert_eq!(chunks, [(0, 2), (1, 1), (3, 1)]);
    }
}
