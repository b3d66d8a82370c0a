//! A lost state from what is there: the rows of the published parts, and a manifest.
//!
//! Each row says which index its task had when it ran, so mostly one decoding of that index proves whose row it is. Only
//! rows whose index means another task in this manifest (it was edited since) are looked for: their ids are kept, 16
//! bytes each, and the sweep is decoded from the start until all are found. Done bits cost what they always cost, so
//! memory does not grow with the number of rows otherwise.

use std::collections::BTreeMap;

use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::v1::ExperimentState;
use uuid::Uuid;

use super::index_set::IndexSet;
use super::{pins, submit};
use crate::records::{CoveredRecord, ExperimentRecord, Loaded, Record, RowsRecord, Table, Totals, Upload};
use crate::store::Batch;

/// What a row says of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Identity.
    pub task_id: Uuid,
    /// Index in the manifest that it ran under; none if the row has no sensible one.
    pub index: Option<u64>,
}

/// The rebuilt state of one experiment.
#[derive(Debug)]
pub struct Adoption {
    sweep: Sweep,
    done: IndexSet,
    /// Ids of rows whose index means another task, sorted once all are known.
    elsewhere: Vec<Uuid>,
    rows: u64,
    doubled: u64,
    foreign: u64,
    totals: BTreeMap<Table, Totals>,
    /// Tasks with rows in an optional table.
    covered: BTreeMap<Table, IndexSet>,
    /// Where the tasks of other indices are now.
    places: BTreeMap<Uuid, u64>,
    uploads: Vec<(Table, Upload)>,
}

impl Adoption {
    /// Nothing is found yet.
    pub fn new(sweep: Sweep) -> Adoption {
        Adoption {
            sweep,
            done: IndexSet::new(),
            elsewhere: Vec::new(),
            rows: 0,
            doubled: 0,
            foreign: 0,
            totals: BTreeMap::new(),
            covered: BTreeMap::new(),
            places: BTreeMap::new(),
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

    /// A row of `tasks`. True if its task has a row already.
    pub fn task(&mut self, row: Row) -> bool {
        self.rows += 1;
        match self.at_its_index(row) {
            Some(index) if self.done.insert(index) => false,
            Some(_) => {
                self.doubled += 1;
                true
            }
            None => {
                self.elsewhere.push(row.task_id);
                false
            }
        }
    }

    fn at_its_index(&self, row: Row) -> Option<u64> {
        let index = row.index?;
        self.sweep.task(index).filter(|task| task.task_id == row.task_id).map(|_| index)
    }

    /// All rows of `tasks` are said: looks for those that were not at their index.
    pub fn find_moved(&mut self) {
        self.elsewhere.sort_unstable();
        let before = self.elsewhere.len();
        self.elsewhere.dedup();
        self.doubled += (before - self.elsewhere.len()) as u64;
        let (mut from, mut left) = (0, self.elsewhere.len());
        while left > 0
            && let Some(index) = self.sweep.next_included(from)
        {
            from = index + 1;
            let Some(task) = self.sweep.task(index) else { continue };
            if self.elsewhere.binary_search(&task.task_id).is_ok() {
                left -= 1;
                self.places.insert(task.task_id, index);
                if !self.done.insert(index) {
                    self.doubled += 1;
                }
            }
        }
        self.foreign = left as u64;
        self.elsewhere = Vec::new();
    }

    /// The task of a row of an optional table, if it has a row in `tasks`. After [`Adoption::find_moved`].
    fn done_task(&self, row: Row) -> Option<u64> {
        let index = self.at_its_index(row).or_else(|| self.places.get(&row.task_id).copied())?;
        self.done.contains(index).then_some(index)
    }

    /// A row of a published part of an optional table.
    pub fn detail(&mut self, table: Table, row: Row) {
        if let Some(index) = self.done_task(row) {
            self.covered.entry(table).or_default().insert(index);
        }
    }

    /// An object that a worker uploaded and that is in no part, with the tasks of its rows. It was accepted if all of
    /// them have a row; of two with the same tasks one was refused. False: it is left alone.
    pub fn upload(&mut self, table: Table, upload: Upload, rows: &[Row]) -> bool {
        let covered = self.covered.entry(table).or_default();
        let covered = std::mem::take(covered);
        let tasks: Option<Vec<u64>> =
            rows.iter().map(|row| self.done_task(*row).filter(|&index| !covered.contains(index))).collect();
        let taken = tasks.as_ref().is_some_and(|tasks| !tasks.is_empty());
        let set = self.covered.entry(table).or_default();
        *set = covered;
        if let Some(tasks) = tasks.filter(|_| taken) {
            for index in tasks {
                set.insert(index);
            }
            self.uploads.push((table, upload));
        }
        taken
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

    /// Uploads that were taken.
    pub fn uploads(&self) -> usize {
        self.uploads.len()
    }

    /// The state as one batch: all or nothing. `loaded` is what the state holds of others; `now_us` microseconds since
    /// 1970 UTC. Epoch and generation get numbers that no lost one had: what workers still hold from before is refused.
    pub fn batch(self, digests: BTreeMap<String, Digest>, loaded: &Loaded, now_us: i64) -> Batch {
        let name = self.sweep.manifest().name().to_owned();
        let unused = u64::try_from(now_us / 1_000_000).unwrap_or(0);
        let generation = unused.max(loaded.generation_floor + 1);
        let mut batch = Batch::new();
        batch.put(Record::Epoch(unused.max(loaded.epoch + 1)));
        batch.put(Record::Experiment(ExperimentRecord {
            name: name.clone(),
            generation,
            manifest: self.sweep.manifest().text().to_owned(),
            digests: submit::fields(&digests),
            pins: pins::component_versions(&self.sweep),
            tasks_schema: pins::tasks_schema(),
            tables: submit::tables_of(&self.sweep).into_iter().map(i32::from).collect(),
            created_us: now_us,
            state: ExperimentState::Running.into(),
            priority: 0,
        }));
        batch.put_all(self.done.records(&name, generation).map(Record::DoneChunk));
        batch.put_all(self.totals.into_values().map(Record::Totals));
        for table in [Table::Jobs, Table::Series] {
            let tasks = self.covered.get(&table).map_or(0, IndexSet::len);
            // A task may have no series: as long as nothing says otherwise, none is missing.
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

    fn row(sweep: &Sweep, index: u64) -> Row {
        Row { task_id: sweep.task(index).expect("there").task_id, index: Some(index) }
    }

    fn upload(id: u128) -> Upload {
        Upload { part_id: Uuid::from_u128(id).into(), rows: 1, bytes: 1 }
    }

    #[test]
    fn rows_are_found_wherever_their_task_is_now() {
        let (old, new) = (sweep("e", 10), sweep("e", 200_000));
        let mut adoption = Adoption::new(new.clone());
        assert!(!adoption.task(row(&new, 70_000)));
        assert!(!adoption.task(Row { index: Some(5), ..row(&new, 199_999) }));
        assert!(!adoption.task(Row { index: None, ..row(&new, 3) }));
        assert!(!adoption.task(row(&old, 7)), "seed 8 in either");
        assert!(adoption.task(row(&new, 70_000)), "twice");
        assert!(!adoption.task(Row { task_id: Uuid::from_u128(1), index: Some(0) }));
        assert!(!adoption.task(Row { index: Some(u64::MAX), ..row(&new, 3) }));
        adoption.find_moved();
        assert_eq!((adoption.done(), adoption.doubled(), adoption.foreign()), (4, 2, 1));
        let batch = adoption.batch(BTreeMap::new(), &Loaded::default(), 1_790_000_000_000_000);
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

    #[test]
    fn an_upload_counts_once_and_only_with_its_tasks() {
        let sweep = sweep("e", 10);
        let rows: Vec<Row> = (0..10).map(|index| row(&sweep, index)).collect();
        let mut adoption = Adoption::new(sweep);
        for row in &rows[..5] {
            assert!(!adoption.task(*row));
        }
        adoption.find_moved();
        adoption.detail(Table::Jobs, rows[0]);
        assert!(adoption.upload(Table::Jobs, upload(1), &rows[1..3]));
        assert!(!adoption.upload(Table::Jobs, upload(2), &rows[2..3]), "its twin was refused");
        assert!(!adoption.upload(Table::Jobs, upload(3), &rows[4..6]), "one of its tasks has no row");
        assert!(!adoption.upload(Table::Jobs, upload(4), &rows[0..1]), "published already");
        assert!(!adoption.upload(Table::Jobs, upload(5), &[]));
        assert_eq!(adoption.uploads(), 1);
    }
}
