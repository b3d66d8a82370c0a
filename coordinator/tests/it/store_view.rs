//! What a reader sees at each step of a part's way: every row once.

use crate::store::Place;
use crate::store_samples::{a_part, hand_in, ids_in};
use object_store::ObjectStoreExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::publish::{live_batches, make_visible, rolled_schema};
use powersweep_coordinator::records::*;
use powersweep_coordinator::store::{Batch, Location, Store};
use powersweep_coordinator::view;
use uuid::Uuid;

/// The ids in a table as a reader sees it, sorted.
async fn seen(location: &Location, table: Table) -> Vec<u64> {
    let view = view::look(location, "e", table).await.expect("it can be looked at");
    let objects = location.object_store().expect("there");
    let mut ids = Vec::new();
    for part in &view.parts {
        ids.extend(ids_in(objects.get(part).await.expect("there").bytes().await.expect("read")));
    }
    view.staged.into_iter().for_each(|(_, bytes)| ids.extend(ids_in(bytes)));
    let schema = rolled_schema(table);
    for batch in schema.iter().flat_map(|schema| live_batches(&view.rows, schema)) {
        let batch = batch.expect("readable").unfold().expect("whole");
        // Through Parquet only to read it like the others.
        let footer = powersweep_results::part::Footer {
            experiment: "e".into(),
            part_id: Uuid::nil(),
            rows: batch.num_rows() as u64,
        };
        let part = powersweep_results::part::encode(&batch.schema(), &[batch], &footer).expect("encodes");
        assert!(ParquetRecordBatchReaderBuilder::try_new(part.clone()).is_ok());
        ids.extend(ids_in(part));
    }
    ids.sort_unstable();
    ids
}

fn totals(table: Table, parts: u64, rows: u64) -> Record {
    Record::Totals(Totals { experiment: "e".into(), table, parts, rows, bytes: 1 })
}

async fn commit(store: &dyn Store, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    fill(&mut batch);
    store.commit(batch).await.expect("durable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_seen_once_at_every_step_of_their_part() {
    let place = Place::directory();
    let Place::Slate { location, .. } = &place else { panic!("a directory") };
    assert_eq!(seen(location, Table::Tasks).await, Vec::<u64>::new());
    let store = place.open().await;
    commit(&*store, |batch| {
        batch.put(Record::Rows(hand_in("e", Table::Tasks, 0, 0..5, &[2])));
        batch.put(Record::Rows(hand_in("e", Table::Tasks, 1, 5..9, &[])));
        batch.put(Record::Rows(hand_in("e", Table::Failures, 0, 100..101, &[])));
    })
    .await;
    let all = vec![0, 1, 3, 4, 5, 6, 7, 8];
    assert_eq!(seen(location, Table::Tasks).await, all);
    assert_eq!(seen(location, Table::Failures).await, [100]);
    let (part_id, source) = (Uuid::now_v7(), Source::Rows { first_seq: 0, last_seq: 0 });
    let intent = Intent { experiment: "e".into(), table: Table::Tasks, part_id, source, rows: 4 };
    commit(&*store, |batch| {
        batch.put(Record::Intent(intent.clone()));
    })
    .await;
    assert_eq!(seen(location, Table::Tasks).await, all, "an open intent without a part");
    make_visible(&*store, &intent).await.expect("visible");
    assert_eq!(seen(location, Table::Tasks).await, all, "an open intent with its part");
    commit(&*store, |batch| {
        batch.delete(Key::Intent { part_id });
        batch.delete(Key::Rows { experiment: "e".into(), table: Table::Tasks, seq: 0 });
        batch.put(totals(Table::Tasks, 1, 4));
    })
    .await;
    assert_eq!(seen(location, Table::Tasks).await, all, "a closed intent");
    place.kill();
    assert_eq!(seen(location, Table::Tasks).await, all, "without a coordinator");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_are_seen_once_at_every_step_of_their_part() {
    let place = Place::directory();
    let Place::Slate { location, .. } = &place else { panic!("a directory") };
    let store = place.open().await;
    let ids: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    for (n, &id) in (0..).zip(&ids) {
        store.stage("e", Table::Jobs, id, a_part("e", id, n * 3..n * 3 + 3)).await.expect("uploaded");
    }
    assert_eq!(seen(location, Table::Jobs).await, Vec::<u64>::new(), "nobody has accepted them");
    commit(&*store, |batch| {
        for &part_id in &ids {
            let (experiment, table) = ("e".into(), Table::Jobs);
            batch.put(Record::Upload(UploadRecord { experiment, table, part_id, rows: 3, bytes: 1, received_us: 0 }));
        }
    })
    .await;
    let all: Vec<u64> = (0..9).collect();
    assert_eq!(seen(location, Table::Jobs).await, all);
    let (part_id, source) = (Uuid::now_v7(), Source::Merged { uploads: ids[..2].to_vec() });
    let merged = Intent { experiment: "e".into(), table: Table::Jobs, part_id, source, rows: 6 };
    // An intent of an earlier version beside it.
    let single = Intent { part_id: ids[2], source: Source::Staged, rows: 3, ..merged.clone() };
    commit(&*store, |batch| {
        batch.put(Record::Intent(merged.clone())).put(Record::Intent(single.clone()));
        batch.delete(Key::Upload { part_id: ids[2] });
    })
    .await;
    assert_eq!(seen(location, Table::Jobs).await, all, "open intents without parts");
    make_visible(&*store, &merged).await.expect("visible");
    make_visible(&*store, &single).await.expect("visible");
    assert_eq!(seen(location, Table::Jobs).await, all, "open intents with their parts");
    commit(&*store, |batch| {
        batch.delete(Key::Intent { part_id }).delete(Key::Intent { part_id: ids[2] });
        batch.delete(Key::Upload { part_id: ids[0] }).delete(Key::Upload { part_id: ids[1] });
        batch.put(totals(Table::Jobs, 2, 9));
    })
    .await;
    assert_eq!(seen(location, Table::Jobs).await, all, "closed intents, objects not deleted yet");
}
