//! Publishing: a crash at every step, and the listings of readers meanwhile.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStoreExt;
use parquet::file::metadata::ParquetMetaDataReader;
use powersweep_coordinator::publish::{PublishError, make_visible, part_path};
use powersweep_coordinator::records::*;
use powersweep_coordinator::store::{Batch, Fault, Location, ModelStore, SlateStore, Store};
use powersweep_results::Table;
use powersweep_results::part::Origin;
use uuid::Uuid;

use crate::store::Place;
use crate::store_faults::{Mortal, Stop};
use crate::store_samples::{hand_in, ids_in, stage_jobs, upload};

const HAND_INS: u64 = 3;
const ROWS: u64 = 10;

/// The rows of the table at the end: of each hand-in all but the first.
fn expected() -> Vec<u64> {
    (0..HAND_INS * ROWS).filter(|id| id % ROWS != 0).collect()
}

/// The steps of the state machine and its driver for one part.
pub(crate) async fn publish(
    store: &dyn Store,
    table: Table,
    seqs: RangeInclusive<u64>,
    rows: u64,
) -> Result<Uuid, PublishError> {
    let intent = intent(table, seqs, rows);
    let mut batch = Batch::new();
    batch.put(Record::Intent(intent.clone()));
    store.commit(batch).await?;
    finish(store, &intent).await?;
    Ok(*intent.part_id)
}

/// The intent of a new part.
pub(crate) fn intent(table: Table, seqs: RangeInclusive<u64>, rows: u64) -> Intent {
    let (first_seq, last_seq) = seqs.into_inner();
    let (experiment, part_id) = ("e".into(), Uuid::now_v7().into());
    Intent { experiment, table: table.into(), part_id, first_seq, last_seq, rows, refused: String::new() }
}

/// Makes an open intent's part visible and closes it.
async fn finish(store: &dyn Store, intent: &Intent) -> Result<(), PublishError> {
    let bytes = make_visible(store, intent, Origin::default()).await?.bytes;
    let mut batch = Batch::new();
    batch.delete(Key::Intent { part_id: *intent.part_id });
    for seq in intent.first_seq..=intent.last_seq {
        batch.delete(Key::Rows { experiment: "e".into(), table: intent.table(), seq });
    }
    let (experiment, table, rows) = ("e".into(), intent.table, intent.rows);
    batch.put(Record::Totals(Totals { experiment, table, parts: 1, rows, bytes, ..Totals::default() }));
    Ok(store.commit(batch).await?)
}

async fn accept_hand_ins(store: &dyn Store) {
    let mut batch = Batch::new();
    for seq in 0..HAND_INS {
        batch.put(Record::Rows(hand_in("e", Table::Tasks, seq, seq * ROWS..(seq + 1) * ROWS, &[0])));
    }
    store.commit(batch).await.expect("durable");
}

/// File names and ids of a table's folder; fails on a file that is no complete part.
fn read_table(data: &Path, table: Table) -> (BTreeSet<String>, Vec<u64>) {
    let (mut files, mut ids) = (BTreeSet::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(data.join("e").join(table.name())) else { return (files, ids) };
    for entry in entries {
        let path = entry.expect("listed").path();
        assert_eq!(path.extension().and_then(|e| e.to_str()), Some("parquet"), "{}", path.display());
        ids.extend(ids_in(std::fs::read(&path).expect("readable").into()));
        files.insert(path.file_name().expect("a file").to_string_lossy().into_owned());
    }
    ids.sort_unstable();
    (files, ids)
}

/// Recovers and publishes the rest, as a coordinator does at its start.
async fn recover(store: &dyn Store) {
    for intent in store.load().await.expect("loads").intents {
        finish(store, &intent).await.expect("recovers");
    }
    let loaded = store.load().await.expect("loads");
    assert_eq!(loaded.intents, [], "every intent is closed");
    if let (Some(first), Some(last)) = (loaded.rows.first(), loaded.rows.last()) {
        publish(store, Table::Tasks, first.seq..=last.seq, expected().len() as u64).await.expect("publishes");
    }
    let loaded = store.load().await.expect("loads");
    assert_eq!((loaded.rows.len(), loaded.intents.len()), (0, 0), "nothing is left to publish");
    assert_eq!(store.rows("e", Table::Tasks, 0, u64::MAX).await.expect("reads"), []);
    assert_eq!(loaded.totals.len(), 1);
    assert_eq!((loaded.totals[0].parts, loaded.totals[0].rows), (1, expected().len() as u64));
}

/// Kills the process at the `n`th write of a publication and recovers. Returns whether the publication ended before that.
async fn kill_at(n: i64, stop: Stop) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::directory(folder.path()).expect("a path");
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let process = process.expect("a runtime");
    let mortal = Mortal::new(location.object_store().expect("it exists"));
    let root = Arc::clone(&mortal);
    let place = location.clone();
    let published = process.spawn(async move {
        let store = SlateStore::open_on(&place, root.clone()).await.expect("opens");
        accept_hand_ins(&store).await;
        root.arm(n, stop);
        publish(&store, Table::Tasks, 0..=HAND_INS - 1, expected().len() as u64).await.expect("publishes");
    });
    let ended = tokio::select! {
        published = published => { published.expect("no panic"); true }
        () = mortal.died() => false,
    };
    process.shutdown_background();
    let (files, ids) = read_table(folder.path(), Table::Tasks);
    assert!(files.len() <= 1 && (files.is_empty() || ids == expected()), "write {n} {stop:?}: {files:?}");

    let (store, owner) = powersweep_coordinator::store::open(&location, "", false).await.expect("opens again");
    recover(&store).await;
    let (after, ids) = read_table(folder.path(), Table::Tasks);
    assert_eq!((after.len(), ids), (1, expected()), "write {n} {stop:?}");
    assert!(files.is_subset(&after), "a part that readers saw stays");
    store.close().await.expect("closes");
    owner.release().await;
    let staging = folder.path().join(".powersweep/staging/create");
    assert!(std::fs::read_dir(staging).is_ok_and(|mut entries| entries.next().is_none()), "nothing staged is left");
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_write_of_a_publication_neither_loses_nor_doubles_rows() {
    for stop in [Stop::Before, Stop::After] {
        let mut writes = 0;
        while !kill_at(writes, stop).await {
            writes += 1;
            assert!(writes < 100, "a publication has a handful of writes");
        }
        // Intent, staging file, link, deletion of the staging file, closing.
        assert!(writes >= 5, "only {writes} writes were cut off");
    }
}

#[tokio::test]
async fn loading_shows_whether_a_failed_commit_is_durable() {
    // A publication commits twice: the intent, and its closing.
    for fault in [Fault::Lose, Fault::KeepButFail] {
        for which in 0..2 {
            let model = ModelStore::new();
            accept_hand_ins(&model).await;
            model.plan((0..which).map(|_| None).chain([Some(fault)]));
            let error = publish(&model, Table::Tasks, 0..=2, expected().len() as u64).await.expect_err("planned");
            assert!(error.is_retryable(), "{error}");
            let again = model.reopen(0);
            recover(&again).await;
            let list = again.object_store().list_with_delimiter(Some(&"e/tasks".into())).await.expect("lists");
            assert_eq!(list.objects.len(), 1);
            let part = again.object_store().get(&list.objects[0].location).await.expect("there").bytes().await;
            assert_eq!(ids_in(part.expect("read")), expected());
        }
    }
}

#[tokio::test]
async fn failures_are_published_like_tasks() {
    let model = ModelStore::new();
    let mut batch = Batch::new();
    batch.put(Record::Rows(hand_in("e", Table::Failures, 0, 7..9, &[])));
    model.commit(batch).await.expect("durable");
    let id = publish(&model, Table::Failures, 0..=0, 2).await.expect("publishes");
    let part = model.object_store().get(&part_path("e", Table::Failures, id)).await.expect("there");
    assert_eq!(ids_in(part.bytes().await.expect("read")), [7, 8]);
    assert_eq!(model.load().await.expect("loads").rows, []);
}

/// Truncates a hand-in's bytes to a length, given their number.
fn cut(rows: &mut RowsRecord, length: impl Fn(usize) -> usize) {
    let encoded = &mut rows.hand_ins[0].encoded;
    encoded.truncate(length(encoded.len()));
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_reported_and_kept() {
    let store = ModelStore::new();
    let mut rows = hand_in("e", Table::Tasks, 4, 0..2, &[]);
    cut(&mut rows, |bytes| bytes - 1);
    let mut batch = Batch::new();
    batch.put(Record::Rows(rows));
    store.commit(batch).await.expect("durable");
    let error = publish(&store, Table::Tasks, 4..=4, 3).await.expect_err("two rows, not three");
    assert!(matches!(error, PublishError::Intent { .. }), "{error}");
    let error = publish(&store, Table::Tasks, 4..=4, 2).await.expect_err("damaged");
    assert!(matches!(error, PublishError::Rows { .. }) && !error.is_retryable(), "{error}");
    assert!(error.to_string().starts_with("rows 4 of e/tasks cannot be written"), "{error}");
    assert_eq!(store.load().await.expect("loads").rows.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_uploads_become_one_part_also_after_a_crash() {
    let place = Place::directory();
    let store = place.open().await;
    let uploads: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let mut batch = Batch::new();
    for (n, &part_id) in (0..).zip(&uploads) {
        stage_jobs(&*store, "e", part_id, n * 5..n * 5 + 5).await;
        batch.put(Record::Rows(upload(n, part_id, 5)));
    }
    store.commit(batch).await.expect("durable");
    place.kill();
    // Only their records name the uploads, which are too young to be deleted by age.
    let store = place.open().await;
    let loaded = store.load().await.expect("loads");
    assert_eq!(loaded.rows.iter().map(|rows| *rows.upload.expect("an upload")).collect::<Vec<_>>(), uploads);
    let intent = intent(Table::Jobs, 0..=2, 15);
    let mut batch = Batch::new();
    batch.put(Record::Intent(intent.clone()));
    store.commit(batch).await.expect("durable");
    make_visible(&*store, &intent, Origin::default()).await.expect("merged");
    place.kill();
    let store = place.open().await;
    assert_eq!(store.load().await.expect("loads").intents, std::slice::from_ref(&intent));
    finish(&*store, &intent).await.expect("recovers");
    assert_eq!(store.load().await.expect("loads").rows, []);
    for upload in &uploads {
        store.objects().expect("open").discard_staged("e", Table::Jobs, *upload).await.expect("deleted");
        assert!(store.objects().expect("open").staged("e", Table::Jobs, *upload).await.is_err(), "it is gone");
    }
    let Place::Slate { location, .. } = &place else { panic!("a directory") };
    let (files, ids) = read_table(location.path().expect("a directory"), Table::Jobs);
    assert_eq!((files.len(), ids), (1, (0..15).collect()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_shows_only_whole_parts_while_they_are_written() {
    let place = Place::directory();
    let Place::Slate { location, .. } = &place else { panic!("a directory") };
    let data = location.path().expect("a directory").to_owned();
    let store = place.open().await;
    let stop = Arc::new(AtomicBool::new(false));
    let lister = {
        let (stop, data) = (Arc::clone(&stop), data.clone());
        std::thread::spawn(move || {
            let (mut listings, mut seen) = (0u64, 0);
            while !stop.load(Ordering::Acquire) {
                let (files, ids) = read_table(&data, Table::Tasks);
                let unique: BTreeSet<_> = ids.iter().collect();
                assert_eq!(unique.len(), ids.len(), "no row twice");
                assert!(files.len() >= seen, "a visible part stays visible");
                (listings, seen) = (listings + 1, files.len());
            }
            listings
        })
    };
    for seq in 0..30 {
        let mut batch = Batch::new();
        batch.put(Record::Rows(hand_in("e", Table::Tasks, seq, seq * 500..(seq + 1) * 500, &[])));
        store.commit(batch).await.expect("durable");
        publish(&*store, Table::Tasks, seq..=seq, 500).await.expect("publishes");
    }
    stop.store(true, Ordering::Release);
    let listings = lister.join().expect("every listing showed only complete parts");
    assert!(listings > 0);
    let (files, ids) = read_table(&data, Table::Tasks);
    assert_eq!((files.len(), ids), (30, (0..15_000).collect()));
    println!("{listings} listings during 30 parts");
}

/// A part of several row groups, which threads share: every row once and in order, and damage is named.
#[tokio::test]
async fn a_part_of_many_rows() {
    const RECORDS: u64 = 70;
    const EACH: u64 = 1000;
    let store = ModelStore::new();
    let hand_in_of = |seq: u64| hand_in("e", Table::Failures, seq, seq * EACH..(seq + 1) * EACH, &[7]);
    for seq in 0..RECORDS {
        store.commit(Batch::new().put(Record::Rows(hand_in_of(seq))).clone()).await.expect("durable");
    }
    let live: Vec<u64> = (0..RECORDS * EACH).filter(|id| id % EACH != 7).collect();
    let intent = intent(Table::Failures, 0..=RECORDS - 1, live.len() as u64);
    make_visible(&store, &intent, Origin::default()).await.expect("it can be made");
    let found =
        store.object_store().get(&part_path("e", Table::Failures, *intent.part_id)).await.expect("it is visible");
    let part = found.bytes().await.expect("it can be read");
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&part).expect("a Parquet file");
    assert_eq!(metadata.num_row_groups(), 2);
    assert_eq!(ids_in(part), live);

    let mut damaged = hand_in_of(60);
    cut(&mut damaged, |bytes| bytes / 2);
    store.commit(Batch::new().put(Record::Rows(damaged)).clone()).await.expect("durable");
    let again = Intent { part_id: Uuid::now_v7().into(), ..intent };
    let error = make_visible(&store, &again, Origin::default()).await.expect_err("damaged");
    assert!(matches!(&error, PublishError::Rows { seq, .. } if seq == "60"), "{error}");
}
