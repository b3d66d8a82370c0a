//! Work on the dataset in tasks beside the driver: publishing and splitting parts, deleting and moving datasets.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use powersweep_experiments::plain::chain;
use powersweep_results::Table;
use powersweep_results::part::Origin;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::farm::PublishFailure;
use crate::publish::{self, PublishError, Visible, make_visible};
use crate::records::{Intent, Removal, SplitPart, SplitRecord};
use crate::split::{self, Sweeps};
use crate::store::{Store, StoreError};

/// The work of one farm.
pub(super) struct DatasetWork {
    store: Arc<dyn Store>,
    /// Limits the parts in memory.
    parts: Arc<Semaphore>,
    running: TaskTracker,
}

impl DatasetWork {
    pub(super) fn new(store: Arc<dyn Store>) -> DatasetWork {
        DatasetWork { store, parts: Arc::new(Semaphore::new(publish::at_once())), running: TaskTracker::new() }
    }

    /// Makes a part visible, and reports it.
    pub(super) fn publish(
        &self,
        intent: Intent,
        origin: Origin,
        report: impl FnOnce(Result<Visible, PublishFailure>) + Send + 'static,
    ) {
        let (store, parts) = (Arc::clone(&self.store), Arc::clone(&self.parts));
        self.running.spawn(async move {
            // The semaphore is closed when the farm has ended.
            let Ok(_permit) = parts.acquire_owned().await else { return };
            report(caught(make_visible(&*store, &intent, origin)).await);
        });
    }

    /// Deletes or moves the parts of an experiment that is being removed.
    pub(super) fn leave(
        &self,
        experiment: String,
        removal: Removal,
        report: impl FnOnce(String, Result<(), PublishFailure>) + Send + 'static,
    ) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let result = match &removal {
                Removal::Forget => Ok(()),
                Removal::Erase => store.erase_dataset(&experiment).await,
                Removal::Rename(to) => store.rename_dataset(&experiment, to).await,
            };
            report(experiment, result.map_err(|error: StoreError| failure(&error, error.is_retryable())));
        });
    }

    /// Stages the fragments of a split.
    pub(super) fn prepare_split(
        &self,
        experiment: String,
        id: Uuid,
        sweeps: Box<Sweeps>,
        report: impl FnOnce(String, Result<Vec<SplitPart>, PublishFailure>) + Send + 'static,
    ) {
        let (store, parts) = (Arc::clone(&self.store), Arc::clone(&self.parts));
        self.running.spawn(async move {
            // A split has one part in memory at a time.
            let Ok(_permit) = parts.acquire_owned().await else { return };
            let result = caught(split::prepare(&*store, &experiment, id, &sweeps)).await;
            report(experiment, result);
        });
    }

    /// Replaces the parts of a split by their fragments.
    pub(super) fn split(
        &self,
        record: SplitRecord,
        report: impl FnOnce(SplitRecord, Result<(), PublishFailure>) + Send + 'static,
    ) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let result = split::carry_out(&*store, &record).await;
            report(record, result.map_err(|error| failure(&error, error.is_retryable())));
        });
    }

    /// Deletes the fragments of a split from the staging folder.
    pub(super) fn discard_fragments(&self, split: Uuid) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let deleted = async { store.objects()?.discard_fragments(split).await };
            if let Err(error) = deleted.await {
                tracing::debug!("fragments of split {split} are not deleted: {error}");
            }
        });
    }

    /// Deletes the parts of an experiment's rows that left.
    pub(super) fn prune(
        &self,
        experiment: String,
        report: impl FnOnce(String, Result<(), PublishFailure>) + Send + 'static,
    ) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let result = store.erase_left(&experiment).await;
            report(experiment, result.map_err(|error: StoreError| failure(&error, error.is_retryable())));
        });
    }

    /// Deletes an upload.
    pub(super) fn discard(&self, experiment: String, table: Table, part_id: Uuid) {
        let store = Arc::clone(&self.store);
        self.running.spawn(async move {
            let deleted = async { store.objects()?.discard_staged(&experiment, table, part_id).await };
            if let Err(error) = deleted.await {
                tracing::debug!("upload {part_id} of {experiment}/{table} is not deleted: {error}");
            }
        });
    }

    /// Starts no further work, and waits for the running work: a part that becomes visible later could be in a dataset
    /// that was deleted meanwhile.
    pub(super) async fn end(self) {
        self.parts.close();
        self.running.close();
        self.running.wait().await;
    }
}

const PANICKED: &str = "its rows are damaged so that reading them panicked";

/// The result of work that reads rows. Damaged rows can make the reader panic: without a report, the farm would wait for
/// ever.
async fn caught<T>(reading: impl Future<Output = Result<T, PublishError>>) -> Result<T, PublishFailure> {
    match AssertUnwindSafe(reading).catch_unwind().await {
        Ok(done) => done.map_err(|error| failure(&error, error.is_retryable())),
        Err(_) => Err(PublishFailure { reason: PANICKED.to_owned(), retryable: false }),
    }
}

fn failure(error: &(dyn std::error::Error + 'static), retryable: bool) -> PublishFailure {
    // It may quote a worker's object, and is shown on terminals.
    PublishFailure { reason: powersweep_proto::plain(&chain(error)).into_owned(), retryable }
}
