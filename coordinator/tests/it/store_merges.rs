//! Sorted files of the state are merged, and no record is lost.

use std::path::Path;
use std::time::Duration;

use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{Batch, Location, SlateStore, Store};

/// Starts of a coordinator: each leaves a sorted file.
const STARTS: u64 = 30;
/// Files that may stay: seven new ones, for which no merge is due, and a merged one.
const FILES_MAX: usize = 8;
/// Only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(120);

fn sorted_files(data: &Path) -> usize {
    let folder = data.join(".powersweep/state/compacted");
    std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().filter(|e| e.path().is_file()).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_starts_leave_few_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::directory(folder.path()).expect("a path");
    let mut most = 0;
    for number in 1..=STARTS {
        let store = SlateStore::open(&location).await.expect("opens");
        let mut batch = Batch::new();
        batch.put(Record::Epoch(number));
        store.commit(batch).await.expect("durable");
        store.close().await.expect("closes");
        most = most.max(sorted_files(folder.path()));
    }
    let store = SlateStore::open(&location).await.expect("opens");
    let began = tokio::time::Instant::now();
    while sorted_files(folder.path()) > FILES_MAX {
        assert!(began.elapsed() < PATIENCE, "{} files are left of {most}", sorted_files(folder.path()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(most > FILES_MAX, "there was something to merge: {most} files");
    assert_eq!(store.load().await.expect("loads").epoch, STARTS);
    store.close().await.expect("closes");
}
