//! Work on the dataset that the farm asks for: parts, and experiments that leave. It goes on beside the driver.

use std::sync::Arc;

use powersweep_proto::client::chain;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::farm::PublishFailure;
use crate::publish::{self, make_visible};
use crate::records::{Fate, Intent, Table};
use crate::store::{Store, StoreError};

/// What one farm has asked for.
pub(super) struct DatasetWork {
    store: Arc<dyn Store>,
    /// Each part is in memory while it is made.
    parts: Arc<Semaphore>,
    running: TaskTracker,
}

impl DatasetWork {
    pub(super) fn new(store: Arc<dyn Store>) -> DatasetWork {
        DatasetWork { store, parts: Arc::new(Semaphore::new(publish::at_once())), running: TaskTracker::new() }
    }

    /// Makes a part visible, and reports its bytes.
    pub(super) fn publish(&self, intent: Intent, report: impl FnOnce(Result<u64, PublishFailure>) + Send + 'static) {
        let (store, parts) = (Arc::clone(&self.store), Arc::clone(&self.parts));
        self.running.spawn(async move {
            // Closed when the farm that asked for it is gone.
            let Ok(_permit) = parts.acquire_owned().await else { return };
            report(make_visible(&*store, &intent).await.map_err(|error| failure(&error, error.is_retryable())));
        });
    }

    /// Deletes or moves the parts of an experiment that leaves.
    pub(super) fn leave(
        &self,
        experiment: String,
        fate: Fate,
        report: impl FnOnce(String, Result<(), PublishFailure>) + Send + 'static,
    ) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let result = match &fate {
                Fate::Forget => Ok(()),
                Fate::Erase => store.erase_dataset(&experiment).await,
                Fate::Rename(to) => store.rename_dataset(&experiment, to).await,
            };
            report(experiment, result.map_err(|error: StoreError| failure(&error, error.is_retryable())));
        });
    }

    /// Deletes an upload that nothing needs any more.
    pub(super) fn discard(&self, experiment: String, table: Table, part_id: Uuid) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            if let Err(error) = store.discard_staged(&experiment, table, part_id).await {
                tracing::debug!("staged object {part_id} of {experiment}/{table} stays: {error}");
            }
        });
    }

    /// Begins nothing more, and waits for what was begun. A part that shows up later could be one of a dataset that has
    /// been deleted meanwhile.
    pub(super) async fn end(self) {
        self.parts.close();
        self.running.close();
        self.running.wait().await;
    }
}

fn failure(error: &(dyn std::error::Error + 'static), retryable: bool) -> PublishFailure {
    PublishFailure { reason: chain(error), retryable }
}
