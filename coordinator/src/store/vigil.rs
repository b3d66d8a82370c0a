//! Whether this process was away so long that another owner may have come and gone unseen.
//!
//! SlateDB fences an older writer by the numbers of its log files: the newer one has taken the next number, so the older
//! one cannot create it. Files that are no longer needed are deleted, and a writer that was suspended meanwhile (a
//! stopped process, a virtual machine that was moved) would take up a deleted number and believe itself the owner. On an
//! object store a boundary object stands in its way; a directory has none. So after each flush that follows a gap in this
//! process's time, the newest manifest is read, which says who owns the state.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use object_store::ObjectStore;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::{CloseReason, Db, ErrorKind};

/// How often a process that commits nothing looks at the clock.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// Time between two looks that says that this process was away; shorter than any age at which files are deleted.
const GAP: Duration = Duration::from_secs(4);

/// See the module.
pub(super) struct Vigil {
    /// Under which this process opened the state.
    epoch: u64,
    admin: Admin,
    last: (Instant, SystemTime),
    doubtful: bool,
}

impl Vigil {
    pub(super) fn new(db: &Db, root: Arc<dyn ObjectStore>) -> Vigil {
        let admin = AdminBuilder::new(super::slate::state_dir(), root).build();
        let epoch = db.manifest().writer_epoch();
        Vigil { epoch, admin, last: (Instant::now(), SystemTime::now()), doubtful: false }
    }

    /// Looks at the clock: both that of this machine's run and that of the world, as the former stands still while a
    /// machine sleeps. That somebody sets the latter costs one look at the manifest.
    pub(super) fn look(&mut self) {
        let now = (Instant::now(), SystemTime::now());
        let world = now.1.duration_since(self.last.1).unwrap_or(GAP);
        self.doubtful |= now.0.duration_since(self.last.0) >= GAP || world >= GAP;
        self.last = now;
    }

    /// After a flush: an error if the state has become another's.
    pub(super) async fn confirm(&mut self) -> Result<(), (ErrorKind, String)> {
        self.look();
        if !self.doubtful {
            return Ok(());
        }
        let newest = self.admin.read_manifest(None).await.map_err(|error| (error.kind(), error.to_string()))?;
        if newest.is_some_and(|manifest| manifest.writer_epoch() > self.epoch) {
            let fenced = "a newer owner has written while this process stood still".to_owned();
            return Err((ErrorKind::Closed(CloseReason::Fenced), fenced));
        }
        // What came after the flush had begun is later than the manifest that was read.
        self.doubtful = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    async fn open(root: &Arc<dyn ObjectStore>) -> Db {
        Db::builder(super::super::slate::state_dir(), Arc::clone(root)).build().await.expect("it opens")
    }

    #[tokio::test]
    async fn after_a_gap_a_newer_owner_is_seen() {
        let root: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = open(&root).await;
        let mut vigil = Vigil::new(&first, Arc::clone(&root));
        vigil.last.0 -= GAP;
        assert_eq!(vigil.confirm().await, Ok(()), "nobody else was there");
        assert!(!vigil.doubtful);
        let _second = open(&root).await;
        assert_eq!(vigil.confirm().await, Ok(()), "without a gap nobody asks");
        vigil.last.1 -= GAP;
        let (kind, _) = vigil.confirm().await.expect_err("the second has it");
        assert_eq!(kind, ErrorKind::Closed(CloseReason::Fenced));
        assert!(vigil.confirm().await.is_err(), "and keeps it");
    }
}
