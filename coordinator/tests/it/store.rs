//! The conformance suite of stores: in memory, on a directory, on an object store.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use powersweep_coordinator::publish::part_path;
use powersweep_coordinator::records::*;
use powersweep_coordinator::store::{Batch, Location, ModelStore, SlateStore, Store, StoreError};
use powersweep_experiments::Digest;
use powersweep_results::Table;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::store_samples::{a_part, hand_in, ids_in, one_of_each, stage_jobs};

/// A place that can be opened repeatedly; each opening is a process of its own.
pub(crate) enum Place {
    Memory(Mutex<ModelStore>),
    Slate { location: Location, processes: Mutex<Vec<Runtime>>, _folder: Option<TempDir> },
}

impl Place {
    fn memory() -> Place {
        Place::Memory(Mutex::new(ModelStore::new()))
    }

    pub(crate) fn directory() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let location = Location::directory(folder.path()).expect("an absolute path");
        Place::Slate { location, processes: Mutex::default(), _folder: Some(folder) }
    }

    fn objects() -> Place {
        let url = "s3://bucket/".parse().expect("a URL");
        let location = Location::remote(url, Arc::new(InMemory::new()));
        Place::Slate { location, processes: Mutex::default(), _folder: None }
    }

    /// A new owner; earlier ones continue to run and are fenced.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Place::Memory(model) => {
                let mut model = model.lock().expect("not poisoned");
                *model = model.reopen(0);
                Arc::new(model.again())
            }
            Place::Slate { location, processes, .. } => {
                let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
                let runtime = runtime.expect("a runtime");
                let place = location.clone();
                let opened = runtime.spawn(async move { SlateStore::open(&place).await });
                let store = opened.await.expect("no panic").expect("it opens");
                processes.lock().expect("not poisoned").push(runtime);
                Arc::new(store)
            }
        }
    }

    /// Ends every process at once, as kill -9 does.
    pub(crate) fn kill(&self) {
        if let Place::Slate { processes, .. } = self {
            processes.lock().expect("not poisoned").drain(..).for_each(Runtime::shutdown_background);
        }
    }

    /// An object, read without a store.
    async fn get(&self, path: &Path) -> Option<Bytes> {
        let store = match self {
            Place::Memory(model) => Arc::clone(model.lock().expect("not poisoned").object_store()),
            Place::Slate { location, .. } => location.object_store().expect("it exists"),
        };
        store.get(path).await.ok()?.bytes().await.ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
    }
}

fn put(records: impl IntoIterator<Item = Record>) -> Batch {
    let mut batch = Batch::new();
    records.into_iter().for_each(|record| {
        batch.put(record);
    });
    batch
}

fn experiment(name: &str) -> Record {
    let Some(Record::Experiment(record)) = one_of_each().into_iter().nth(1) else { panic!("samples changed") };
    Record::Experiment(ExperimentRecord { name: name.into(), ..record })
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.experiments.iter().map(|experiment| experiment.name.as_str()).collect()
}

async fn nothing_is_there_at_first(place: Place) {
    assert_eq!(place.open().await.load().await.expect("loads"), Loaded::default());
}

async fn committed_records_survive_a_crash(place: Place) {
    let store = place.open().await;
    store.commit(put(one_of_each())).await.expect("durable");
    place.kill();
    let loaded = place.open().await.load().await.expect("loads");
    let mut expected = Loaded::default();
    for record in one_of_each() {
        match record {
            Record::Epoch(epoch) => expected.epoch = epoch,
            Record::Experiment(r) => expected.experiments.push(r),
            Record::Earlier(r) => expected.earlier.push(r),
            Record::DoneChunk(r) => expected.done.push(r),
            Record::Rows(r) => expected.rows.push(r.header()),
            Record::Header(r) => expected.rows.push(r),
            Record::Intent(r) => expected.intents.push(r),
            Record::Totals(r) => expected.totals.push(r),
            Record::Failure(r) => expected.failures.push(r),
            Record::Lease(r) => expected.leases.push(r),
            Record::Log(r) => expected.logs.push(r),
            Record::Covered(r) => expected.covered.push(r),
            Record::Leaving(r) => expected.leaving.push(r),
            Record::Split(r) => expected.splits.push(r),
            Record::GenerationFloor(generation) => expected.generation_floor = generation,
        }
    }
    assert_eq!(loaded, expected);
    let of_tasks = loaded.rows.iter().find(|rows| rows.table() == Table::Tasks).expect("there");
    assert_eq!(of_tasks.rows, 2 + 1, "of two hand-ins");
}

async fn the_last_entry_of_a_batch_wins(place: Place) {
    let store = place.open().await;
    let mut batch = put([experiment("a"), experiment("b"), Record::Epoch(1), Record::Epoch(2)]);
    batch.delete(Key::Experiment { name: "a".into() });
    batch.delete(Key::Experiment { name: "never".into() });
    store.commit(batch).await.expect("durable");
    let loaded = store.load().await.expect("loads");
    assert_eq!((names(&loaded), loaded.epoch), (vec!["b"], 2));
    let mut batch = Batch::new();
    batch.delete(Key::Experiment { name: "b".into() }).put(experiment("b"));
    store.commit(batch).await.expect("durable");
    assert_eq!(names(&store.load().await.expect("loads")), ["b"]);
    store.commit(Batch::new()).await.expect("an empty batch is no work");
}

async fn lists_are_in_key_order_and_experiments_apart(place: Place) {
    let store = place.open().await;
    let mut batch = Batch::new();
    for name in ["b", "a", "a-b", "ab"] {
        batch.put(experiment(name));
        for chunk in [300, 2, 70_000] {
            let bitmap = Stored::of_bits([1, 2].into_iter().collect());
            batch.put(Record::DoneChunk(DoneChunk { experiment: name.into(), generation: 1, chunk, bitmap }));
        }
        for seq in [256, 1, 255, u64::MAX] {
            batch.put(Record::Rows(hand_in(name, Table::Tasks, seq, 0..1, &[])));
            batch.put(Record::Rows(hand_in(name, Table::Failures, seq, 0..1, &[])));
        }
    }
    store.commit(batch).await.expect("durable");
    let loaded = store.load().await.expect("loads");
    assert_eq!(names(&loaded), ["a", "a-b", "ab", "b"]);
    let chunks: Vec<_> = loaded.done.iter().filter(|chunk| chunk.experiment == "a").map(|chunk| chunk.chunk).collect();
    assert_eq!(chunks, [2, 300, 70_000]);
    let of_a: Vec<_> =
        loaded.rows.iter().filter(|rows| rows.experiment == "a").map(|rows| (rows.table(), rows.seq)).collect();
    let each = [1, 255, 256, u64::MAX];
    let expected: Vec<_> =
        [Table::Tasks, Table::Failures].into_iter().flat_map(|table| each.map(|seq| (table, seq))).collect();
    assert_eq!(of_a, expected);
    let rows = store.rows("a", Table::Failures, 0, u64::MAX).await.expect("reads");
    assert!(rows.iter().all(|rows| rows.experiment == "a" && rows.table() == Table::Failures));
    assert_eq!(rows.iter().map(|rows| rows.seq).collect::<Vec<_>>(), each);
}

async fn rows_come_back_as_they_came(place: Place) {
    let store = place.open().await;
    let sent: Vec<_> = (0..5).map(|n| hand_in("e", Table::Tasks, 2 * n, 10 * n..10 * n + 10, &[n as u32])).collect();
    store.commit(put(sent.iter().cloned().map(Record::Rows))).await.expect("durable");
    assert_eq!(store.rows("e", Table::Tasks, 0, 100).await.expect("reads"), sent);
    assert_eq!(store.rows("e", Table::Tasks, 1, 4).await.expect("reads"), sent[1..=2]);
    assert_eq!(store.rows("e", Table::Tasks, 3, 3).await.expect("reads"), []);
    assert_eq!(store.rows("e", Table::Tasks, 4, 3).await.expect("reads"), []);
    assert_eq!(store.rows("f", Table::Tasks, 0, 100).await.expect("reads"), []);
    let mut batch = Batch::new();
    batch.delete(Key::Rows { experiment: "e".into(), table: Table::Tasks, seq: 4 });
    store.commit(batch).await.expect("durable");
    assert_eq!(store.rows("e", Table::Tasks, 2, 6).await.expect("reads"), [sent[1].clone(), sent[3].clone()]);
    assert_eq!(store.load().await.expect("loads").rows.len(), 4, "the header goes with the rows");
}

async fn parts_are_created_once(place: Place) {
    let store = place.open().await;
    let (id, other) = (Uuid::now_v7(), Uuid::now_v7());
    let path = part_path("e", Table::Tasks, id);
    let part = a_part("e", id, 0..10);
    store.objects().expect("open").create(&path, part.clone(), id).await.expect("created");
    store
        .objects()
        .expect("open")
        .create(&path, a_part("e", id, 0..20), id)
        .await
        .expect("the same part counts as done");
    assert_eq!(place.get(&path).await.expect("there"), part, "it is not replaced");
    let error =
        store.objects().expect("open").create(&path, a_part("e", other, 0..10), other).await.expect_err("another part");
    assert!(matches!(error, StoreError::PartTaken { .. }) && !error.is_retryable(), "{error}");
    assert_eq!(place.get(&path).await.expect("there"), part);
    let foreign = part_path("e", Table::Tasks, other);
    store
        .objects()
        .expect("open")
        .create(&foreign, Bytes::from_static(b"PAR1 not really PAR1"), other)
        .await
        .expect("bytes are not checked");
    let error = store
        .objects()
        .expect("open")
        .create(&foreign, a_part("e", other, 0..1), other)
        .await
        .expect_err("no part there");
    assert!(matches!(error, StoreError::PartTaken { .. }), "{error}");
}

async fn uploads_are_staged_once_until_they_are_discarded(place: Place) {
    let store = place.open().await;
    let id = Uuid::now_v7();
    let part = a_part("e", id, 0..3);
    let error = store.objects().expect("open").staged("e", Table::Jobs, id).await.expect_err("nothing uploaded");
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    store.objects().expect("open").stage("e", Table::Jobs, id, part.clone()).await.expect("uploaded");
    store.objects().expect("open").stage("e", Table::Jobs, id, part.clone()).await.expect("uploaded again");
    let error = store
        .objects()
        .expect("open")
        .stage("e", Table::Jobs, id, a_part("e", id, 0..4))
        .await
        .expect_err("other bytes");
    assert!(matches!(error, StoreError::PartTaken { .. }), "{error}");
    assert_eq!(store.objects().expect("open").staged("e", Table::Jobs, id).await.expect("there"), part);
    assert_eq!(place.get(&part_path("e", Table::Jobs, id)).await, None, "not visible");
    for _ in 0..2 {
        store.objects().expect("open").discard_staged("e", Table::Jobs, id).await.expect("discarded");
    }
    store.objects().expect("open").staged("e", Table::Jobs, id).await.expect_err("a zombie's object is garbage");
}

async fn logs_are_stored_by_content(place: Place) {
    let store = place.open().await;
    let log = Bytes::from_static(b"; Version: 2.2\n1 0 -1 10 4 ...\n");
    let digest = Digest::of(&log);
    assert_eq!(store.objects().expect("open").log_bytes(digest).await.expect("looks"), None);
    assert!(matches!(store.objects().expect("open").log_range(digest, 0, 10).await, Err(StoreError::Missing { .. })));
    let error = store.objects().expect("open").put_log([1; 32].into(), log.clone()).await.expect_err("other content");
    assert!(matches!(error, StoreError::WrongDigest { .. }), "{error}");
    assert!(store.objects().expect("open").put_log(digest, log.clone()).await.expect("stored"));
    assert!(!store.objects().expect("open").put_log(digest, log.clone()).await.expect("there already"));
    assert_eq!(store.objects().expect("open").log_bytes(digest).await.expect("looks"), Some(log.len() as u64));
    assert_eq!(store.objects().expect("open").log_range(digest, 0, u64::MAX).await.expect("reads"), log);
    assert_eq!(store.objects().expect("open").log_range(digest, 2, 9).await.expect("reads"), log.slice(2..9));
    assert_eq!(store.objects().expect("open").log_range(digest, 1000, 2000).await.expect("reads"), Bytes::new());
}

async fn a_newer_owner_stops_the_older(place: Place) {
    let older = place.open().await;
    older.commit(put([experiment("before")])).await.expect("durable");
    let newer = place.open().await;
    let error = older.commit(put([experiment("zombie")])).await.expect_err("fenced");
    assert!(error.is_lost_ownership() && !error.is_retryable(), "{error}");
    newer.commit(put([experiment("after")])).await.expect("durable");
    assert_eq!(names(&newer.load().await.expect("loads")), ["after", "before"]);
    assert!(older.load().await.expect_err("fenced").is_lost_ownership());
}

async fn closing_keeps_what_is_there(place: Place) {
    let store = place.open().await;
    store.commit(put([experiment("e")])).await.expect("durable");
    store.close().await.expect("closed");
    let closed = |error| matches!(error, StoreError::Closed { .. });
    assert!(closed(store.commit(put([experiment("f")])).await.expect_err("closed")));
    assert!(closed(store.load().await.expect_err("closed")));
    assert!(closed(store.rows("e", Table::Tasks, 0, 9).await.expect_err("closed")));
    assert!(closed(store.close().await.expect_err("closed")));
    assert_eq!(names(&place.open().await.load().await.expect("loads")), ["e"]);
}

async fn many_callers_at_once_are_all_served(place: Place) {
    let store = place.open().await;
    let commits = (0..200).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(put([experiment(&format!("e{n:03}")), Record::Epoch(n)])).await })
    });
    for commit in commits.collect::<Vec<_>>() {
        commit.await.expect("no panic").expect("durable");
    }
    place.kill();
    let loaded = place.open().await.load().await.expect("loads");
    assert_eq!(names(&loaded), (0..200).map(|n| format!("e{n:03}")).collect::<Vec<_>>());
}

async fn impossible_requests_are_refused(place: Place) {
    let store = place.open().await;
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for name in ["", "a/b", "a\0b", &long] {
        let error = store.commit(put([experiment("fine"), experiment(name)])).await.expect_err("refused");
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        store.rows(name, Table::Tasks, 0, 1).await.expect_err("refused");
    }
    let bitmap = Stored::of_bits([65_536].into_iter().collect());
    let chunk = DoneChunk { experiment: "e".into(), generation: 1, chunk: 0, bitmap };
    store.commit(put([experiment("fine"), Record::DoneChunk(chunk)])).await.expect_err("a bit too high");
    assert_eq!(store.load().await.expect("loads"), Loaded::default(), "all or nothing");
}

async fn parts_hold_their_rows(place: Place) {
    let store = place.open().await;
    let id = Uuid::now_v7();
    let path = part_path("e", Table::Tasks, id);
    store.objects().expect("open").create(&path, a_part("e", id, 5..9), id).await.expect("created");
    place.kill();
    assert_eq!(ids_in(place.get(&path).await.expect("there")), [5, 6, 7, 8]);
}

/// Creates a part of three rows.
async fn create_part(store: &dyn Store, experiment: &str, table: Table, id: Uuid) {
    let (path, part) = (part_path(experiment, table, id), a_part(experiment, id, 0..3));
    store.objects().expect("open").create(&path, part, id).await.expect("created");
}

async fn a_dataset_is_renamed_and_erased_in_any_number_of_attempts(place: Place) {
    let store = place.open().await;
    let ids: Vec<Uuid> = (1..=3).map(Uuid::from_u128).collect();
    for (&id, table) in ids.iter().zip([Table::Tasks, Table::Tasks, Table::Jobs]) {
        create_part(&*store, "e", table, id).await;
        create_part(&*store, "ee", table, id).await;
    }
    // As after a crash in the middle: one part is there already, and not here any more.
    store.rename_dataset("e", "e@1").await.expect("moved");
    create_part(&*store, "e", Table::Tasks, ids[0]).await;
    for _ in 0..2 {
        store.rename_dataset("e", "e@1").await.expect("moved");
    }
    place.kill();
    let store = place.open().await;
    for (id, table) in ids.iter().zip([Table::Tasks, Table::Tasks, Table::Jobs]) {
        assert!(place.get(&part_path("e", table, *id)).await.is_none());
        assert_eq!(ids_in(place.get(&part_path("e@1", table, *id)).await.expect("moved")), [0, 1, 2]);
    }
    stage_jobs(&*store, "e@1", ids[0], 0..3).await;
    for _ in 0..2 {
        store.erase_dataset("e@1").await.expect("deleted");
    }
    let uploaded = store.objects().expect("open").staged("e@1", Table::Jobs, ids[0]).await;
    uploaded.expect_err("uploads go too");
    for (id, table) in ids.iter().zip([Table::Tasks, Table::Tasks, Table::Jobs]) {
        assert!(place.get(&part_path("e@1", table, *id)).await.is_none());
        assert!(place.get(&part_path("ee", table, *id)).await.is_some(), "others stay");
    }
    store.erase_dataset("nosuch").await.expect("nothing to do");
}

/// Retrying or forgetting an experiment is one batch, whatever number of its tasks have failed.
async fn a_batch_may_have_a_record_for_each_of_many_failed_tasks(place: Place) {
    let store = place.open().await;
    let mut batch = Batch::new();
    for index in 0..600_000 {
        batch.delete(Key::Failure { experiment: "e".into(), generation: 1, index });
    }
    batch.put(experiment("e"));
    store.commit(batch).await.expect("durable");
    place.kill();
    assert_eq!(names(&place.open().await.load().await.expect("loads")), ["e"]);
}

async fn an_older_owner_takes_no_dataset_away(place: Place) {
    let older = place.open().await;
    let newer = place.open().await;
    let (id, path) = (Uuid::from_u128(1), part_path("e", Table::Tasks, Uuid::from_u128(1)));
    newer.objects().expect("open").create(&path, a_part("e", id, 0..3), id).await.expect("created");
    assert!(older.erase_dataset("e").await.expect_err("fenced").is_lost_ownership());
    assert!(older.rename_dataset("e", "e@1").await.expect_err("fenced").is_lost_ownership());
    assert!(place.get(&path).await.is_some(), "it stays where it is");
    newer.rename_dataset("e", "e@1").await.expect("moved");
}

macro_rules! promises {
    ($place:ident => $($promise:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            super::$promise(super::Place::$place()).await;
        })*
    };
    ($($place:ident)*) => {
        $(mod $place {
            promises! { $place =>
                nothing_is_there_at_first
                committed_records_survive_a_crash
                the_last_entry_of_a_batch_wins
                lists_are_in_key_order_and_experiments_apart
                rows_come_back_as_they_came
                parts_are_created_once
                uploads_are_staged_once_until_they_are_discarded
                logs_are_stored_by_content
                a_newer_owner_stops_the_older
                closing_keeps_what_is_there
                many_callers_at_once_are_all_served
                impossible_requests_are_refused
                parts_hold_their_rows
                a_dataset_is_renamed_and_erased_in_any_number_of_attempts
                a_batch_may_have_a_record_for_each_of_many_failed_tasks
                an_older_owner_takes_no_dataset_away
            }
        })*
    };
}

promises! { memory directory objects }
