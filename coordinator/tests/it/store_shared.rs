//! Ownership and state on file systems that several machines share: locks that hold on one machine only, and lists of
//! files that are old. Deleting the lock file makes the next process's lock independent of the older one's.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use powersweep_coordinator::owner::{
    self, Lost, OwnerError, OwnerRecord, Ownership, RENEW_INTERVAL, SHARED_STALE_AFTER, STALE_AFTER,
};
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{Batch, Kind, Location, SlateStore, Store, StoreError};
use powersweep_results::Table;
use tokio::time::Instant;

fn shared(folder: &Path) -> Location {
    std::fs::create_dir_all(folder.join(".powersweep")).expect("made");
    Location::shared(folder).expect("a path")
}

/// What another machine sees of a lock whose file system keeps it on one machine: no lock.
fn forget_lock(folder: &Path) {
    std::fs::remove_file(folder.join(".powersweep/owner.lock")).expect("a lock was taken");
}

fn record(folder: &Path) -> OwnerRecord {
    let bytes = std::fs::read(folder.join(".powersweep/owner.json")).expect("there is a record");
    serde_json::from_slice(&bytes).expect("a record")
}

fn write_record(folder: &Path, record: &OwnerRecord) {
    std::fs::write(folder.join(".powersweep/owner.json"), serde_json::to_vec(record).expect("JSON")).expect("written");
}

/// Edits the record as if another machine had written it.
fn from_elsewhere(folder: &Path) {
    let mut record = record(folder);
    record.processes = format!("another-boot {}", record.processes);
    write_record(folder, &record);
}

async fn take(location: &Location, endpoint: &str) -> Result<Ownership, OwnerError> {
    Ownership::take(location, endpoint, false).await
}

#[tokio::test(start_paused = true)]
async fn a_live_owner_keeps_data_although_its_lock_is_not_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    // On a local file system, too: the folder may be exported to the machine of the owner.
    for location in [shared(folder.path()), Location::directory(folder.path()).expect("a path")] {
        let first = take(&location, "http://a:1").await.expect("free");
        forget_lock(folder.path());
        let mut renewed = record(folder.path());
        renewed.processes = "another-boot of-another-machine".to_owned();
        write_record(folder.path(), &renewed);
        let started = Instant::now();
        let error = take(&location, "http://b:1").await.expect_err("the first one renews");
        let OwnerError::Held { owner: Some(owner), .. } = error else { panic!("{error}") };
        assert_eq!(owner.endpoint, "http://a:1");
        assert!(started.elapsed() <= 2 * RENEW_INTERVAL, "seen after {:?}", started.elapsed());
        assert_eq!(*first.lost().borrow(), None, "the owner was disturbed");
        first.release().await;
        assert_eq!(owner::look(&location).await.expect("looks"), None);
    }
}

/// A process of this machine that lives, or one whose death nothing proves, is waited for; a dead one is not.
#[tokio::test(start_paused = true)]
async fn a_free_lock_proves_a_death_on_this_machine_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let (here, there) = (Location::directory(folder.path()).expect("a path"), shared(folder.path()));
    assert_eq!((here.kind(), there.kind()), (Kind::Local, Kind::Shared));
    let mut process = std::process::Command::new("true").spawn().expect("it starts");
    process.wait().expect("it ends");
    let (none, local, all) = (Duration::ZERO, STALE_AFTER, SHARED_STALE_AFTER);
    let own = std::process::id();
    for (location, pid, elsewhere, wait, alive) in [
        (&here, own, false, none, Some(false)),
        (&here, own, true, local, None),
        (&there, own, false, all, None),
        (&there, own, true, all, None),
        // Process 1 belongs to another user, unless root runs this test.
        (&there, 1, false, all, None),
        (&there, process.id(), false, none, Some(false)),
        (&there, process.id(), true, all, None),
    ] {
        drop(Ownership::take(location, "http://a:1", true).await.expect("taken over"));
        // The renewer, with the lock, ends as in a crash.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut dead = record(folder.path());
        dead.pid = pid;
        write_record(folder.path(), &dead);
        if elsewhere {
            from_elsewhere(folder.path());
        }
        let seen = owner::look(location).await.expect("looks").expect("a record is left");
        assert_eq!(seen.alive, alive, "{:?} {pid} elsewhere: {elsewhere}", location.kind());
        let started = Instant::now();
        take(location, "http://b:1").await.expect("it is dead").release().await;
        let waited = started.elapsed();
        let most = if wait.is_zero() { Duration::from_secs(1) } else { wait + RENEW_INTERVAL };
        assert!(wait <= waited && waited <= most, "{:?} {pid} elsewhere: {elsewhere}: {waited:?}", location.kind());
    }
}

#[tokio::test(start_paused = true)]
async fn a_torn_record_is_watched_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = shared(folder.path());
    std::fs::write(folder.path().join(".powersweep/owner.json"), "{\"uuid\"").expect("written");
    let started = Instant::now();
    take(&location, "http://b:1").await.expect("nobody changes it");
    assert!(started.elapsed() >= SHARED_STALE_AFTER);
}

#[tokio::test(start_paused = true)]
async fn an_owner_notices_a_take_over_while_it_holds_its_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = shared(folder.path());
    let first = take(&location, "http://a:1").await.expect("free");
    forget_lock(folder.path());
    let second = Ownership::take(&location, "http://b:1", true).await.expect("taken over");
    let mut lost = first.lost();
    let how = tokio::time::timeout(RENEW_INTERVAL + Duration::from_secs(1), lost.wait_for(Option::is_some));
    let how = how.await.expect("at the next renewal").expect("told").clone();
    assert!(matches!(&how, Some(Lost::TakenOver(by)) if by.uuid == second.uuid()), "{how:?}");
    first.release().await;
    tokio::time::sleep(2 * RENEW_INTERVAL).await;
    assert_eq!(record(folder.path()).uuid, second.uuid());
    assert_eq!(*second.lost().borrow(), None);
}

/// A process stood still between reading the record and renewing it. Another one took the data over meanwhile.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_of_the_older_owner_does_not_stop_the_newer_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = shared(folder.path());
    drop(take(&location, "http://a:1").await.expect("free"));
    from_elsewhere(folder.path());
    let late = record(folder.path());
    let newer = take(&location, "http://b:1").await.expect("stale");
    write_record(folder.path(), &late);
    tokio::time::sleep(2 * RENEW_INTERVAL).await;
    assert_eq!(*newer.lost().borrow(), None);
    assert_eq!(record(folder.path()).uuid, newer.uuid(), "the newer owner did not write its record again");
    // A third owner is no late renewal.
    let third = Ownership::take(&location, "http://c:1", true).await.expect("taken over");
    tokio::time::sleep(2 * RENEW_INTERVAL).await;
    let lost = newer.lost().borrow().clone();
    assert!(matches!(&lost, Some(Lost::TakenOver(by)) if by.uuid == third.uuid()), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn of_two_that_start_at_the_same_time_one_wins() {
    for stale in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let location = shared(folder.path());
        if stale {
            drop(take(&location, "http://a:1").await.expect("free"));
            from_elsewhere(folder.path());
        }
        // Each takes its lock on a machine of its own: the first one does so before it waits for anything.
        let second = async {
            forget_lock(folder.path());
            take(&location, "http://c:1").await
        };
        let (b, c) = tokio::join!(biased; take(&location, "http://b:1"), second);
        assert!(b.is_ok() != c.is_ok(), "stale: {stale}: {b:?} {c:?}");
    }
}

/// A file system on which this process sees old lists of the state's manifests.
#[derive(Debug)]
struct OldLists {
    inner: Arc<dyn ObjectStore>,
    kept: tokio::sync::Mutex<Vec<ObjectMeta>>,
    old: AtomicBool,
}

impl OldLists {
    const FOLDER: &str = ".powersweep/state/manifest";

    fn new(inner: Arc<dyn ObjectStore>) -> Arc<OldLists> {
        Arc::new(OldLists { inner, kept: tokio::sync::Mutex::default(), old: AtomicBool::new(false) })
    }

    /// From now on, lists have the present files.
    async fn keep(&self) {
        let present = self.inner.list(Some(&ObjectPath::from(OldLists::FOLDER)));
        *self.kept.lock().await = present.map(|file| file.expect("it lists")).collect().await;
        self.old.store(true, Ordering::SeqCst);
    }

    /// Whether the file cannot be seen yet.
    async fn hides(&self, path: &ObjectPath) -> bool {
        self.old.load(Ordering::SeqCst)
            && path.prefix_matches(&ObjectPath::from(OldLists::FOLDER))
            && !self.kept.lock().await.iter().any(|file| file.location == *path)
    }
}

impl std::fmt::Display for OldLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OldLists({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for OldLists {
    async fn put_opts(&self, to: &ObjectPath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, path: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        if self.hides(path).await {
            let source = "not seen yet".into();
            return Err(object_store::Error::NotFound { path: path.to_string(), source });
        }
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<ObjectPath>>) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let of_manifests = prefix.is_some_and(|prefix| prefix.prefix_matches(&ObjectPath::from(OldLists::FOLDER)));
        match self.old.load(Ordering::SeqCst) && of_manifests {
            true => {
                let kept = self.kept.try_lock().expect("nobody else has it").clone();
                futures::stream::iter(kept.into_iter().map(Ok)).boxed()
            }
            false => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Rows that are large enough for sorted files, after which log files are no longer needed.
fn rows(seq: u64) -> Batch {
    let mut batch = Batch::new();
    let mut rows = crate::store_samples::hand_in("e", Table::Tasks, seq, 0..4, &[]);
    rows.hand_ins[0].encoded = vec![7; 6 << 20].into();
    batch.put(Record::Rows(rows));
    batch
}

fn log_files(folder: &Path) -> usize {
    std::fs::read_dir(folder.join(".powersweep/state/wal")).expect("there are log files").count()
}

/// The older owner sees no file of the newer one, is not suspended, and commits long after the files of the take-over
/// are no longer needed: on any kind of directory, its rows must not be acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_owner_that_sees_old_lists_acknowledges_nothing() {
    for location in [Location::directory, Location::shared] {
        let folder = tempfile::tempdir().expect("a folder");
        shared(folder.path());
        let location = location(folder.path()).expect("a path");
        let lists = OldLists::new(location.object_store().expect("a store"));
        let older = SlateStore::open_on(&location, lists.clone()).await.expect("opens");
        older.commit(rows(0)).await.expect("durable");
        lists.keep().await;
        let newer = SlateStore::open(&location).await.expect("opens");
        for seq in 1..4 {
            newer.commit(rows(seq)).await.expect("durable");
        }
        // Longer than a local log file lives, and than the interval at which files are deleted.
        let before = log_files(folder.path());
        tokio::time::sleep(Duration::from_secs(8)).await;
        let after = log_files(folder.path());
        println!("{:?}: {before} log files, {after} after 8 s", location.kind());
        assert!(location.kind() == Kind::Local || after >= before, "log files of a shared folder live longer");
        let late = older.commit(rows(9)).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })), "{:?}: {late:?}", location.kind());
        assert_eq!(newer.load().await.expect("loads").rows.len(), 4);
    }
}
