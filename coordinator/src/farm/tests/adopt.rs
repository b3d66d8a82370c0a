//! A state that is rebuilt from published rows.

use std::collections::BTreeMap;

use powersweep_results::Table;
use powersweep_results::identity::RowKey;
use uuid::Uuid;

use super::wire::sweep;
use crate::farm::Adoption;
use crate::records::{Loaded, Record, Upload};
use crate::store::Op;

/// Microseconds since 1970 of 1,000 s.
const NOW_US: i64 = 1_000_000_000;

/// The row of a task, which ran under another index.
fn row(task: u64, index: u64) -> RowKey {
    let task_id = sweep("e", 10).task(task).expect("a task").task_id;
    RowKey { task_id, index: Some(index) }
}

fn upload(number: u128) -> Upload {
    Upload { part_id: Uuid::from_u128(number).into(), rows: 1, bytes: 10 }
}

#[test]
fn rows_count_by_their_tasks() {
    let mut adoption = Adoption::new(sweep("e", 10));
    assert!(!adoption.task(row(0, 0)) && !adoption.task(row(3, 3)));
    assert!(adoption.task(row(3, 3)), "the task has a row already");
    // Tasks 5 and 9 ran under other indices, 9 three times, and task 3 a third time; two rows are of no task of the manifest.
    for row in [row(5, 6), row(9, 2), row(9, 4), row(9, 5), row(3, 7)] {
        assert!(!adoption.task(row), "tells it later");
    }
    for foreign in [1, 2] {
        adoption.task(RowKey { task_id: Uuid::from_u128(foreign), index: Some(1) });
    }
    adoption.task(RowKey { task_id: row(1, 0).task_id, index: None });
    adoption.find_moved();
    assert_eq!((adoption.done(), adoption.tasks()), (5, 10));
    // Two more rows of task 3, and two of task 9.
    assert_eq!((adoption.doubled(), adoption.foreign()), (4, 2));
    // Without rows of an optional table, no task is covered.
    let batch = adoption.batch(BTreeMap::new(), String::new(), &Loaded::default(), NOW_US);
    let covered = |op: &Op| if let Op::Put(Record::Covered(r)) = op { Some(r.tasks) } else { None };
    assert!(batch.ops().iter().filter_map(covered).all(|tasks| tasks == 0));
}

#[test]
fn uploads_are_accepted_once_and_tables_are_covered() {
    let mut adoption = Adoption::new(sweep("e", 10));
    for task in [0, 1, 2] {
        adoption.task(row(task, task));
    }
    adoption.task(row(7, 8));
    adoption.find_moved();
    adoption.part(Table::Tasks, 3, 100);
    adoption.part(Table::Tasks, 1, 20);
    adoption.part(Table::Jobs, 50, 7);
    adoption.detail(Table::Jobs, row(0, 0));
    adoption.detail(Table::Jobs, row(7, 8));
    // A task without a row in `tasks`.
    adoption.detail(Table::Jobs, row(4, 4));
    assert_eq!((adoption.orphans(Table::Jobs), adoption.lacking(Table::Jobs)), (1, 0), "the manifest has no table");
    assert!(!adoption.upload(Table::Jobs, upload(1), &[row(0, 0)]), "its rows are in a part");
    assert!(!adoption.upload(Table::Jobs, upload(2), &[row(1, 1), row(4, 4)]), "one task has no row in `tasks`");
    assert!(!adoption.upload(Table::Jobs, upload(3), &[]));
    assert!(adoption.upload(Table::Jobs, upload(4), &[row(1, 1)]));
    assert!(!adoption.upload(Table::Jobs, upload(5), &[row(1, 1)]), "another upload has its rows");
    assert!(adoption.upload(Table::Series, upload(6), &[row(2, 2)]));
    assert_eq!(adoption.uploads(), 2);
    let loaded = Loaded { epoch: 20, generation_floor: 30, ..Loaded::default() };
    let batch = adoption.batch(BTreeMap::new(), String::new(), &loaded, NOW_US);
    let records: Vec<&Record> =
        batch.ops().iter().filter_map(|op| if let Op::Put(put) = op { Some(put) } else { None }).collect();
    assert_eq!(records.len(), batch.len());
    let totals = |table: Table| {
        let of = |record: &&&Record| if let Record::Totals(r) = record { r.table() == table } else { false };
        let Some(Record::Totals(r)) = records.iter().find(of) else { panic!("no totals") };
        (r.experiment.as_str(), r.parts, r.rows, r.bytes)
    };
    assert_eq!((totals(Table::Tasks), totals(Table::Jobs)), (("e", 2, 4, 120), ("e", 1, 50, 7)));
    let covered = |table: Table| {
        records.iter().find_map(|record| match record {
            Record::Covered(r) if r.table() == table => Some(r.tasks),
            _ => None,
        })
    };
    // Two tasks in parts of jobs and one in an upload; any series covers all four tasks.
    assert_eq!((covered(Table::Jobs), covered(Table::Series)), (Some(3), Some(4)));
    let uploads: Vec<(u64, Uuid, u64)> = records
        .iter()
        .filter_map(|record| match record {
            Record::Rows(r) => Some((r.seq, r.upload.as_ref().expect("an upload").part_id.0, r.generation)),
            _ => None,
        })
        .collect();
    assert_eq!(uploads, [(0, Uuid::from_u128(4), 1_000), (1, Uuid::from_u128(6), 1_000)]);
}

#[test]
fn epoch_and_generation_are_later_than_all_before() {
    let numbers = |epoch: u64, floor: u64, now_us: i64| {
        let loaded = Loaded { epoch, generation_floor: floor, ..Loaded::default() };
        let batch = Adoption::new(sweep("e", 1)).batch(BTreeMap::new(), String::new(), &loaded, now_us);
        let mut found = (0, 0, Vec::new());
        for op in batch.ops() {
            match op {
                Op::Put(Record::Epoch(epoch)) => found.0 = *epoch,
                Op::Put(Record::Experiment(experiment)) => found.1 = experiment.generation,
                Op::Put(Record::Covered(covered)) => found.2.push(covered.tasks),
                _ => {}
            }
        }
        (found.0, found.1, found.2)
    };
    // No series covers no task.
    assert!(numbers(0, 0, NOW_US).2.iter().all(|tasks| *tasks == 0));
    let pair = |found: (u64, u64, Vec<u64>)| (found.0, found.1);
    assert_eq!(pair(numbers(5, 7, NOW_US)), (1_000, 1_000));
    assert_eq!(pair(numbers(5_000, 7_000, NOW_US)), (5_001, 7_001));
    // A clock before 1970.
    assert_eq!(pair(numbers(5, 7, -3)), (6, 8));
}
