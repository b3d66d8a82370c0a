//! Detects that this process stood still, and then checks that it still owns the state.
//!
//! SlateDB fences an older writer by the numbers of its write-ahead log files: the newer writer has created the next
//! number, so the older one cannot create it. Log files that are no longer needed are deleted. A writer that was
//! suspended meanwhile (a stopped process, a virtual machine that was moved) could create a deleted number and believe
//! that it is the owner. On an object store a boundary object prevents that; on a directory there is none. There the
//! newer writer's first file, the fence, is never deleted (see [`super::tuning`]). As a second line of defence, after
//! each flush that follows a gap in this process's time, the newest manifest is read, which names the owner of the state.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use powersweep_proto::clocks::{Clocks, Gap};
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::{CloseReason, Db, ErrorKind};

/// How often a process without commits reads the clocks.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Time between two readings of the clocks that counts as a stall; shorter than the age at which files are deleted.
const STALL: Duration = Duration::from_secs(4);

/// Compares clocks to find that this process stood still.
pub(super) struct StallDetector {
    /// SlateDB's number of this process's ownership.
    writer_epoch: u64,
    admin: Admin,
    last: Clocks,
    /// A stall was seen, and the ownership was not confirmed since.
    doubtful: bool,
}

impl StallDetector {
    pub(super) fn new(db: &Db, state: Path, root: Arc<dyn ObjectStore>) -> StallDetector {
        let admin = AdminBuilder::new(state, root).build();
        let writer_epoch = db.manifest().writer_epoch();
        StallDetector { writer_epoch, admin, last: Clocks::now(), doubtful: false }
    }

    /// Reads the clocks. Setting the wall clock costs one reading of the manifest.
    pub(super) fn look(&mut self) {
        let Gap { mono, wall } = self.last.gap();
        self.doubtful |= mono.max(wall.unwrap_or(STALL)) >= STALL;
    }

    /// After a flush: an error if the state has another owner.
    pub(super) async fn confirm_ownership(&mut self) -> Result<(), (ErrorKind, String)> {
        self.look();
        if !self.doubtful {
            return Ok(());
        }
        let newest = self.admin.read_manifest(None).await.map_err(|error| (error.kind(), error.to_string()))?;
        if newest.is_some_and(|manifest| manifest.writer_epoch() > self.writer_epoch) {
            let fenced = "a newer owner has written while this process stood still".to_owned();
            return Err((ErrorKind::Closed(CloseReason::Fenced), fenced));
        }
        // A newer owner that opened the state after the flush began has a newer manifest than the one just read.
        self.doubtful = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    async fn open(root: &Arc<dyn ObjectStore>) -> Db {
        Db::builder("state", Arc::clone(root)).build().await.expect("it opens")
    }

    #[tokio::test]
    async fn a_newer_owner_is_detected_after_a_stall_only() {
        let root: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = open(&root).await;
        let mut stalls = StallDetector::new(&first, "state".into(), Arc::clone(&root));
        stalls.last.mono -= STALL;
        assert_eq!(stalls.confirm_ownership().await, Ok(()), "there is no newer owner");
        assert!(!stalls.doubtful);
        let _second = open(&root).await;
        assert_eq!(stalls.confirm_ownership().await, Ok(()), "without a stall the manifest is not read");
        stalls.last.wall -= STALL;
        let (kind, _) = stalls.confirm_ownership().await.expect_err("the second opening owns the state");
        assert_eq!(kind, ErrorKind::Closed(CloseReason::Fenced));
        assert!(stalls.confirm_ownership().await.is_err(), "a lost ownership stays lost");
    }
}
