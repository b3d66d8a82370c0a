//! What a reader sees at each step of a part's way: every row once.

use object_store::ObjectStoreExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::publish::make_visible;
use powersweep_coordinator::records::*;
use powersweep_coordinator::store::{Batch, Location, Store};
use powersweep_coordinator::view::{self, State, View};
use powersweep_results::Table;
use powersweep_results::part::Origin;
use powersweep_results::unpublished::{self, UnpublishedRows};
use uuid::Uuid;

use crate::store::Place;
use crate::store_publish::intent;
use crate::store_samples::{hand_in, ids_in, stage_jobs, upload};

/// The ids in a table as a reader of the data sees it, sorted.
async fn seen(location: &Location, table: Table) -> Vec<u64> {
    ids_of(location, view::read_table(location, "e", table).await.expect("it can be looked at"), table).await
}

/// The ids in a table as every reader sees it: one of the data, and one that asks the owner.
async fn seen_by_all(location: &Location, store: &dyn Store, table: Table) -> Vec<u64> {
    let mut view = view::read_table_without_uploads(State::Own(store), "e", table).await.expect("it can be looked at");
    for upload in view.rows.iter().filter_map(|record| record.upload) {
        let objects = store.objects().expect("open");
        let bytes = objects.staged("e", table, *upload.part_id).await.expect("there");
        view.staged.push((object_store::path::Path::from("upload"), bytes));
    }
    let by_owner = ids_of(location, view, table).await;
    assert_eq!(by_owner, seen(location, table).await);
    by_owner
}

async fn ids_of(location: &Location, view: View, table: Table) -> Vec<u64> {
    let objects = location.object_store().expect("there");
    let mut ids = Vec::new();
    for part in &view.parts {
        ids.extend(ids_in(objects.get(&part.path).await.expect("there").bytes().await.expect("read")));
    }
    view.staged.into_iter().for_each(|(_, bytes)| ids.extend(ids_in(bytes)));
    let rows: Vec<UnpublishedRows> = view.rows.iter().flat_map(RowsRecord::unpublished).collect();
    for batch in unpublished::batches(&rows, &table.schema()) {
        let batch = batch.expect("readable").unfold().expect("whole");
        // Through Parquet only to read it like the others.
        let footer = powersweep_results::part::Footer::new("e", Uuid::nil(), batch.num_rows() as u64);
        let part = powersweep_results::part::encode(&batch.schema(), &[batch], &footer).expect("encodes");
        assert!(ParquetRecordBatchReaderBuilder::try_new(part.clone()).is_ok());
        ids.extend(ids_in(part));
    }
    ids.sort_unstable();
    ids
}

fn totals(table: Table, parts: u64, rows: u64) -> Record {
    Record::Totals(Totals { experiment: "e".into(), table: table.into(), parts, rows, bytes: 1, ..Totals::default() })
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
    assert_eq!(seen_by_all(location, &*store, Table::Tasks).await, all);
    assert_eq!(seen_by_all(location, &*store, Table::Failures).await, [100]);
    let intent = intent(Table::Tasks, 0..=0, 4);
    commit(&*store, |batch| {
        batch.put(Record::Intent(intent.clone()));
    })
    .await;
    assert_eq!(seen_by_all(location, &*store, Table::Tasks).await, all, "an open intent without a part");
    make_visible(&*store, &intent, Origin::default()).await.expect("visible");
    assert_eq!(seen_by_all(location, &*store, Table::Tasks).await, all, "an open intent with its part");
    commit(&*store, |batch| {
        batch.delete(Key::Intent { part_id: *intent.part_id });
        batch.delete(Key::Rows { experiment: "e".into(), table: Table::Tasks, seq: 0 });
        batch.put(totals(Table::Tasks, 1, 4));
    })
    .await;
    assert_eq!(seen_by_all(location, &*store, Table::Tasks).await, all, "a closed intent");
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
        stage_jobs(&*store, "e", id, n * 3..n * 3 + 3).await;
    }
    assert_eq!(seen_by_all(location, &*store, Table::Jobs).await, Vec::<u64>::new(), "nobody has accepted them");
    commit(&*store, |batch| {
        for (seq, &part_id) in (0..).zip(&ids) {
            batch.put(Record::Rows(upload(seq, part_id, 3)));
        }
    })
    .await;
    let all: Vec<u64> = (0..9).collect();
    assert_eq!(seen_by_all(location, &*store, Table::Jobs).await, all);
    let (two, one) = (intent(Table::Jobs, 0..=1, 6), intent(Table::Jobs, 2..=2, 3));
    commit(&*store, |batch| {
        batch.put(Record::Intent(two.clone())).put(Record::Intent(one.clone()));
    })
    .await;
    assert_eq!(seen_by_all(location, &*store, Table::Jobs).await, all, "open intents without parts");
    make_visible(&*store, &two, Origin::default()).await.expect("visible");
    make_visible(&*store, &one, Origin::default()).await.expect("visible");
    assert_eq!(seen_by_all(location, &*store, Table::Jobs).await, all, "open intents with their parts");
    commit(&*store, |batch| {
        for intent in [&two, &one] {
            batch.delete(Key::Intent { part_id: *intent.part_id });
        }
        for seq in 0..3 {
            batch.delete(Key::Rows { experiment: "e".into(), table: Table::Jobs, seq });
        }
        batch.put(totals(Table::Jobs, 2, 9));
    })
    .await;
    assert_eq!(seen_by_all(location, &*store, Table::Jobs).await, all, "closed intents, objects not deleted yet");
}
