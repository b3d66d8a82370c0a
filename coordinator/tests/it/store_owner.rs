//! Ownership and the probe.

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use powersweep_coordinator::owner::{self, Lost, OwnerError, OwnerRecord, Ownership, STALE_AFTER};
use powersweep_coordinator::probe::{ProbeError, probe};
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{
    Batch, Location, LocationError, OpenError, ReadOnly, SlateStore, Store, StoreError, open,
};
use powersweep_experiments::{Digest, Shard};
use uuid::Uuid;

use crate::store_faults::{Mortal, Stop};
use crate::store_samples::stage_jobs;

fn directory(path: &Path) -> Location {
    Location::directory(path).expect("a path")
}

fn memory() -> Location {
    Location::remote("s3://bucket/".parse().expect("a URL"), Arc::new(InMemory::new()))
}

fn epoch(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Record::Epoch(number));
    batch
}

/// Two shards in one folder would overwrite each other's state.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_writes_below_its_own_folder() {
    const FOLDER: &str = ".powersweep/shards/e/3-of-16/";
    let data = Arc::new(InMemory::new());
    let location = Location::remote("s3://bucket/".parse().expect("a URL"), data.clone());
    let shard = location.shard("e", Shard::new(3, 16).expect("one of 16"));
    let (store, ownership) = open(&shard, "", false).await.expect("free");
    store.commit(epoch(1)).await.expect("durable");
    stage_jobs(&store, "e", Uuid::from_u128(1), 0..3).await;
    let objects = store.objects().expect("open");
    objects.put_log(Digest::of(b"log"), "log".into()).await.expect("stored");
    objects.stage_fragment(Uuid::from_u128(2), Uuid::from_u128(3), "fragment".into()).await.expect("stored");
    let found: Vec<String> =
        data.list(None).map_ok(|object| object.location.to_string()).try_collect().await.expect("listed");
    assert!(found.iter().all(|path| path.starts_with(FOLDER)), "{found:?}");
    for kind in ["state/", "owner.json", "staging/upload/e/jobs/", "staging/split/", "logs/"] {
        assert!(found.iter().any(|path| path[FOLDER.len()..].starts_with(kind)), "{kind}: {found:?}");
    }
    store.close().await.expect("closes");
    ownership.release().await;
    assert!(data.head(&format!("{FOLDER}owner.json").into()).await.is_err(), "the record is deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_owner_is_respected() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = directory(folder.path());
    let (store, ownership) = open(&location, "http://127.0.0.1:7077", false).await.expect("free");
    store.commit(epoch(1)).await.expect("durable");
    let error = open(&location, "", false).await.expect_err("owned");
    let OpenError::Owner(OwnerError::Held { owner: Some(owner), .. }) = &error else { panic!("{error}") };
    assert_eq!((owner.endpoint.as_str(), owner.pid), ("http://127.0.0.1:7077", std::process::id()));
    let text = error.to_string();
    assert!(text.contains("http://127.0.0.1:7077") && text.contains("--take-over"), "{text}");
    store.commit(epoch(2)).await.expect("the owner was not disturbed");
    let seen = owner::look(&location).await.expect("looks").expect("owned");
    assert_eq!((seen.alive, seen.record.map(|record| record.uuid)), (Some(true), Some(ownership.uuid())));

    store.close().await.expect("closes");
    ownership.release().await;
    assert_eq!(owner::look(&location).await.expect("looks"), None);
    let (store, ownership) = open(&location, "", false).await.expect("free again");
    assert_eq!(store.load().await.expect("loads").epoch, 2);
    store.close().await.expect("closes");
    ownership.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_a_dead_owner_is_free_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = directory(folder.path());
    let process = tokio::runtime::Runtime::new().expect("a runtime");
    let place = location.clone();
    let opened = process.spawn(async move { open(&place, "http://127.0.0.1:1", false).await.expect("free") });
    let (store, ownership) = opened.await.expect("no panic");
    drop((store, ownership));
    // Waits for the end of all tasks, as at the end of a process.
    let end = move || process.shutdown_timeout(std::time::Duration::from_secs(60));
    tokio::task::spawn_blocking(end).await.expect("no panic");
    // The lock is released, so the fresh record is that of a dead owner.
    let seen = owner::look(&location).await.expect("looks").expect("a record is left");
    assert_eq!(seen.alive, Some(false));
    open(&location, "", false).await.expect("free at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_stops_the_older_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = directory(folder.path());
    let (older, older_ownership) = open(&location, "", false).await.expect("free");
    older.commit(epoch(1)).await.expect("durable");
    let (newer, newer_ownership) = open(&location, "", true).await.expect("taken over");
    newer.commit(epoch(2)).await.expect("durable");
    // The older owner is notified without a commit of its own.
    let mut lost = older_ownership.lost();
    lost.wait_for(Option::is_some).await.expect("the channel lives as long as the ownership");
    assert!(matches!(older.commit(epoch(3)).await, Err(StoreError::Fenced { .. })));
    assert_eq!(newer.load().await.expect("loads").epoch, 2);
    assert_eq!(*newer_ownership.lost().borrow(), None);
    // The release by the older owner must not delete the newer one's record.
    older_ownership.release().await;
    let seen = owner::look(&location).await.expect("looks").expect("owned");
    assert_eq!(seen.record.map(|record| record.uuid), Some(newer_ownership.uuid()));
    // The newer owner has the lock as soon as the older one ends, not only at its next renewal: a third is refused.
    let left = std::time::Instant::now();
    while owner::look(&location).await.expect("looks").expect("owned").alive != Some(true) {
        assert!(left.elapsed() < owner::RENEW_INTERVAL / 2, "no process has the lock");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let error = open(&location, "", false).await.expect_err("owned");
    assert!(matches!(error, OpenError::Owner(OwnerError::Held { .. })), "{error}");
}

#[tokio::test(start_paused = true)]
async fn on_an_object_store_the_record_decides() {
    let location = memory();
    let first = Ownership::take(&location, "http://a:1", false).await.expect("free");
    let started = tokio::time::Instant::now();
    let error = Ownership::take(&location, "http://b:1", false).await.expect_err("the first one renews");
    let OwnerError::Held { owner: Some(owner), .. } = error else { panic!("{error}") };
    assert_eq!(owner.endpoint, "http://a:1");
    assert!(started.elapsed() < STALE_AFTER, "a renewal shows a live owner at once");

    first.set_endpoint("http://a:2");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let seen = owner::look(&location).await.expect("looks").expect("owned");
    assert_eq!(seen.record.map(|record| record.endpoint).as_deref(), Some("http://a:2"));

    // A crash: the record is not renewed.
    drop(first);
    let started = tokio::time::Instant::now();
    let second = Ownership::take(&location, "http://b:1", false).await.expect("stale");
    assert!(started.elapsed() >= STALE_AFTER);

    let third = Ownership::take(&location, "http://c:1", true).await.expect("taken over");
    let mut lost = second.lost();
    let how = lost.wait_for(Option::is_some).await.expect("told").clone();
    let Some(Lost::TakenOver(by)) = how else { panic!("{how:?}") };
    assert_eq!(by.uuid, third.uuid());
    second.release().await;
    third.release().await;
    assert_eq!(owner::look(&location).await.expect("looks"), None);
    Ownership::take(&location, "", false).await.expect("free at once after a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_process_has_ended_is_not_waited_for() {
    let store = Arc::new(InMemory::new());
    let location = Location::remote("s3://bucket/".parse().expect("a URL"), store.clone());
    let place = object_store::path::Path::from(".powersweep/owner.json");
    let mut process = std::process::Command::new("true").spawn().expect("it starts");
    process.wait().expect("it ends");
    for (elsewhere, waits) in [(false, false), (true, true)] {
        drop(Ownership::take(&location, "http://a:1", true).await.expect("taken over"));
        let bytes = store.get(&place).await.expect("there").bytes().await.expect("read");
        let mut record: OwnerRecord = serde_json::from_slice(&bytes).expect("a record");
        record.pid = process.id();
        if elsewhere {
            record.processes.push_str(" of another machine");
        }
        let bytes = serde_json::to_vec(&record).expect("JSON");
        store.put(&place, bytes.into()).await.expect("written");
        let started = tokio::time::Instant::now();
        Ownership::take(&location, "http://b:1", false).await.expect("nobody else has it");
        assert_eq!(started.elapsed() >= STALE_AFTER, waits, "elsewhere: {elsewhere}");
    }
}

/// Storage that stops answering while the state is opened: after the probe's five writes and the write of the owner's record.
#[tokio::test(start_paused = true)]
async fn a_start_on_hanging_storage_ends_with_an_error() {
    let store = Mortal::new(Arc::new(InMemory::new()));
    store.arm(6, Stop::Before);
    let location = Location::remote("s3://bucket/".parse().expect("a URL"), store.clone());
    let error = open(&location, "", false).await.expect_err("it hangs");
    assert!(matches!(error, OpenError::Hangs { .. }), "{error}");
    assert!(error.to_string().contains("did not open within"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn of_two_that_take_a_stale_record_one_wins() {
    let location = memory();
    drop(Ownership::take(&location, "http://a:1", false).await.expect("free"));
    let (b, c) =
        tokio::join!(Ownership::take(&location, "http://b:1", false), Ownership::take(&location, "http://c:1", false));
    assert!(b.is_ok() != c.is_ok(), "{b:?} {c:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_read_the_state_beside_its_owner_or_without_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = directory(&folder.path().join("not/there/yet"));
    let nothing = ReadOnly::open(&location).await.expect("empty").load().await.expect("loads");
    assert_eq!(nothing, Default::default());
    assert!(!location.path().expect("a path").exists(), "reading makes no folder");

    let (store, ownership) = open(&location, "", false).await.expect("free");
    let rows = crate::store_samples::hand_in("e", powersweep_results::Table::Tasks, 3, 0..4, &[1]);
    let mut batch = epoch(5);
    batch.put(Record::Rows(rows.clone()));
    store.commit(batch).await.expect("durable");
    for owned in [true, false] {
        let view = ReadOnly::open(&location).await.expect("opens");
        let loaded = view.load().await.expect("loads");
        assert_eq!((loaded.epoch, loaded.rows[0].rows), (5, 3), "owned: {owned}");
        let read = view.rows("e", rows.table(), 0, 9).await.expect("reads");
        assert_eq!(read, std::slice::from_ref(&rows));
        view.close().await.expect("closes");
        if owned {
            store.commit(epoch(5)).await.expect("the owner was not disturbed");
            store.close().await.expect("closes");
        }
    }
    ownership.release().await;
}

/// The whole chain of an error, as the command line shows it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

#[tokio::test]
async fn a_file_in_place_of_a_directory_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("written");
    for data in [file.clone(), file.join("below"), file.join("far/below")] {
        let error = probe(&directory(&data)).await.expect_err("a file is in the way");
        let ProbeError::NotADirectory { path } = &error else { panic!("{error:?}") };
        assert_eq!(path, &file);
        assert!(matches!(open(&directory(&data), "", false).await, Err(OpenError::Probe(_))));
    }
    let error = probe(&directory(Path::new("/proc/powersweep"))).await.expect_err("no place for files");
    assert!(chain(&error).contains("/proc/powersweep"), "{}", chain(&error));
    println!("/proc: {}", chain(&error));

    let inside = folder.path().join("data");
    std::fs::create_dir(&inside).expect("made");
    std::fs::write(inside.join(".powersweep"), "x").expect("written");
    let error = probe(&directory(&inside)).await.expect_err("the private folder is a file");
    let ProbeError::NotADirectory { path } = &error else { panic!("{error:?}") };
    assert_eq!(path, &inside.join(".powersweep"));
}

#[tokio::test]
async fn a_read_only_or_full_file_system_is_recognised() {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new("mount").args(arguments).arg(folder.path()).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"]) {
        println!("skipped: this user cannot mount a tmpfs");
        return;
    }
    let location = directory(folder.path());
    probe(&location).await.expect("small but usable");
    let filler = std::fs::write(folder.path().join("filler"), vec![0; 8 << 20]);
    let full = probe(&location).await;
    std::fs::remove_file(folder.path().join("filler")).expect("removed");
    assert!(mount(&["-o", "remount,ro"]), "the tmpfs can be made read-only");
    let read_only = probe(&location).await;
    let status = std::process::Command::new("umount").arg(folder.path()).status().expect("umount runs");
    assert!(status.success() && filler.is_err());
    assert!(matches!(full, Err(ProbeError::Full { .. })), "{full:?}");
    assert!(matches!(read_only, Err(ProbeError::ReadOnly { .. })), "{read_only:?}");
}

#[tokio::test]
async fn the_probe_leaves_nothing_and_makes_missing_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("a/b/c");
    probe(&directory(&data)).await.expect("usable");
    let left: Vec<_> = std::fs::read_dir(data.join(".powersweep")).expect("made").collect();
    assert!(left.is_empty(), "{left:?}");
    probe(&memory()).await.expect("usable");
}

#[test]
fn wrong_addresses_are_refused_with_the_right_ones() {
    let error = Location::parse("ftp://host/data").expect_err("unknown");
    assert!(matches!(error, LocationError::Scheme { .. }));
    assert!(error.to_string().contains("s3://"), "{error}");
    for data in ["", "file://relative/path"] {
        assert!(matches!(Location::parse(data), Err(LocationError::Malformed { .. })), "{data:?}");
    }
    let here = Location::parse("some/data").expect("a relative path");
    assert!(here.path().is_some_and(|path| path.is_absolute() && path.ends_with("some/data")));
    let url = Location::parse("file:///some/data%20here").expect("a file URL");
    assert_eq!(url.path(), Some(Path::new("/some/data here")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_deletes_old_staging_files_and_keeps_fresh_uploads() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = directory(folder.path());
    let staging = folder.path().join(".powersweep/staging");
    std::fs::create_dir_all(staging.join("create")).expect("made");
    std::fs::create_dir_all(staging.join("upload/e/jobs")).expect("made");
    let id = uuid::Uuid::now_v7();
    let fresh = staging.join(format!("upload/e/jobs/{id}.parquet"));
    let old = staging.join("upload/e/jobs/01900000-0000-7000-8000-000000000001.parquet");
    for file in ["create/x.parquet", "create/x.parquet#1"] {
        std::fs::write(staging.join(file), "half").expect("written");
    }
    std::fs::write(&fresh, "upload").expect("written");
    std::fs::write(&old, "upload").expect("written");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    std::fs::File::options().write(true).open(&old).expect("there").set_modified(yesterday).expect("set");
    let (store, ownership) = open(&location, "", false).await.expect("opens");
    assert!(std::fs::read_dir(staging.join("create")).expect("there").next().is_none());
    assert!(fresh.exists() && !old.exists());
    store.close().await.expect("closes");
    ownership.release().await;
    let _ = SlateStore::open(&location).await.expect("opens without ownership");
}

#[cfg(not(feature = "cloud"))]
#[test]
fn an_object_store_that_was_left_out_is_refused_with_how_to_build_it() {
    for data in ["s3://bucket/data", "gs://bucket", "az://container/data"] {
        let error = Location::parse(data).expect_err("left out");
        assert!(matches!(error, LocationError::LeftOut { .. }), "{error}");
        assert!(error.to_string().starts_with(data), "{error}");
        assert!(error.to_string().contains("--features cloud"), "{error}");
    }
}

#[cfg(feature = "cloud")]
#[test_with::env(POWERSWEEP_TEST_S3)]
#[tokio::test(flavor = "multi_thread")]
async fn a_real_object_store_keeps_the_same_promises() {
    // For example s3://bucket/prefix with AWS_ENDPOINT, AWS_ALLOW_HTTP and credentials in the environment.
    let url = std::env::var("POWERSWEEP_TEST_S3").expect("it was set for the compiler");
    // Another test of this process may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = format!("{}/{}", url.trim_end_matches('/'), uuid::Uuid::now_v7());
    let location = Location::parse(&data).expect("a storage address");
    let (store, ownership) = open(&location, "http://127.0.0.1:7077", false).await.expect("opens");
    let started = std::time::Instant::now();
    for number in 1..=20 {
        store.commit(epoch(number)).await.expect("durable");
    }
    println!("20 commits one after the other: {:.1?} each", started.elapsed() / 20);
    let error = open(&location, "", false).await.expect_err("owned");
    assert!(matches!(error, OpenError::Owner(OwnerError::Held { .. })), "{error}");

    let id = uuid::Uuid::now_v7();
    let path = powersweep_coordinator::publish::part_path("e", powersweep_results::Table::Tasks, id);
    let part = crate::store_samples::a_part("e", id, 0..5);
    store.objects().expect("open").create(&path, part.clone(), id).await.expect("created");
    store.objects().expect("open").create(&path, part, id).await.expect("the same part");
    let other = uuid::Uuid::now_v7();
    let foreign = crate::store_samples::a_part("e", other, 0..5);
    assert!(matches!(
        store.objects().expect("open").create(&path, foreign, other).await,
        Err(StoreError::PartTaken { .. })
    ));

    let (newer, newer_ownership) = open(&location, "", true).await.expect("taken over");
    assert!(matches!(store.commit(epoch(99)).await, Err(StoreError::Fenced { .. })));
    assert_eq!(newer.load().await.expect("loads").epoch, 20);
    let mut lost = ownership.lost();
    lost.wait_for(Option::is_some).await.expect("told");
    newer.close().await.expect("closes");
    newer_ownership.release().await;
    assert_eq!(ReadOnly::open(&location).await.expect("opens").load().await.expect("loads").epoch, 20);
}

#[cfg(feature = "cloud")]
#[test]
fn addresses_of_object_stores_are_read() {
    for (data, scheme) in [("s3://bucket/data", "s3"), ("gs://bucket", "gs")] {
        let location = Location::parse_with(data, []).expect("an address");
        assert_eq!((location.scheme(), location.path()), (scheme, None), "{data}");
        assert_eq!(location.to_string(), data);
    }
}

#[cfg(feature = "cloud")]
#[tokio::test]
async fn a_missing_bucket_or_silent_address_is_recognised() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = |endpoint: &str| {
        [
            ("AWS_ENDPOINT", endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    // Bound, never accepted: the connection is made and nothing is answered.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = format!("http://{}", listener.local_addr().expect("bound"));
    let location = Location::parse_with("s3://bucket/prefix", options(&silent)).expect("an address");
    let error = probe(&location).await.expect_err("silent");
    assert!(matches!(error, ProbeError::Slow { .. }), "{error}");
    println!("{}", chain(&error));
    if let Ok(endpoint) = std::env::var("AWS_ENDPOINT") {
        let location = Location::parse_with("s3://no-such-bucket", options(&endpoint)).expect("an address");
        let error = probe(&location).await.expect_err("no bucket");
        assert!(matches!(error, ProbeError::NoBucket { .. }), "{}", chain(&error));
    }
}
