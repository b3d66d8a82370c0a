//! Work on the dataset in tasks beside the driver: publishing and splitting parts, deleting and moving datasets.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use powersweep_experiments::plain::chain;
use powersweep_results::part::Origin;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::farm::{Effect, Event, PublishFailure};
use crate::publish::{self, PublishError, make_visible};
use crate::records::Removal;
use crate::split;
use crate::store::Store;

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

    /// Carries out an effect on the dataset, and reports how it ended. `origin`: that of a part to publish.
    pub(super) fn start(&self, effect: Effect, origin: Origin, report: impl FnOnce(Event) + Send + 'static) {
        let (store, parts) = (Arc::clone(&self.store), Arc::clone(&self.parts));
        self.running.spawn(async move {
            if let Some(event) = carry_out(&*store, &parts, effect, origin).await {
                report(event);
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

/// Carries an effect out. Returns the event to report, if there is one.
async fn carry_out(store: &dyn Store, parts: &Semaphore, effect: Effect, origin: Origin) -> Option<Event> {
    Some(match effect {
        Effect::Publish { intent } => {
            // The semaphore is closed when the farm has ended.
            let _permit = parts.acquire().await.ok()?;
            let result = caught(make_visible(store, &intent, origin)).await;
            Event::Published { part_id: *intent.part_id, result }
        }
        Effect::Remove { experiment, removal } => {
            let result = match &removal {
                Removal::Forget => Ok(()),
                Removal::Erase => store.erase_dataset(&experiment).await,
                Removal::Rename(to) => store.rename_dataset(&experiment, to).await,
            };
            Event::RemovalDone { experiment, result: result.map_err(failure) }
        }
        Effect::PrepareSplit { experiment, id, sweeps } => {
            // A split has one part in memory at a time.
            let _permit = parts.acquire().await.ok()?;
            let result = caught(split::prepare(store, &experiment, id, &sweeps)).await;
            Event::SplitPrepared { experiment, id, result }
        }
        Effect::Split { record } => {
            let result = split::carry_out(store, &record).await.map_err(failure);
            Event::SplitDone { experiment: record.experiment, id: *record.id, result }
        }
        Effect::Prune { experiment, id } => {
            let result = store.erase_left(&experiment).await.map_err(failure);
            Event::Pruned { experiment, id, result }
        }
        Effect::DiscardFragments { split } => {
            let deleted = async { store.objects()?.discard_fragments(split).await };
            if let Err(error) = deleted.await {
                tracing::debug!("fragments of split {split} are not deleted: {error}");
            }
            return None;
        }
        Effect::Discard { experiment, table, part_id } => {
            let deleted = async { store.objects()?.discard_staged(&experiment, table, part_id).await };
            if let Err(error) = deleted.await {
                tracing::debug!("upload {part_id} of {experiment}/{table} is not deleted: {error}");
            }
            return None;
        }
        // Messages are the driver's.
        Effect::Send { .. } | Effect::Close { .. } | Effect::Reply { .. } => return None,
    })
}

const PANICKED: &str = "its rows are damaged so that reading them panicked";

/// The result of work that reads rows. Damaged rows can make the reader panic: without a report, the farm would wait for
/// ever.
async fn caught<T>(reading: impl Future<Output = Result<T, PublishError>>) -> Result<T, PublishFailure> {
    match AssertUnwindSafe(reading).catch_unwind().await {
        Ok(done) => done.map_err(failure),
        Err(_) => Err(PublishFailure { reason: PANICKED.to_owned(), retryable: false }),
    }
}

fn failure(error: impl Into<PublishError>) -> PublishFailure {
    let error = error.into();
    // It may quote a worker's object, and is shown on terminals.
    PublishFailure { reason: powersweep_proto::plain(&chain(&error)).into_owned(), retryable: error.is_retryable() }
}
