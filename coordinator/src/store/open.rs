//! The one way to open DATA for writing: probe, own, clean up, open.

use super::{Location, SlateStore, Store, StoreError};
use crate::owner::{OwnerError, Ownership};
use crate::probe::{ProbeError, probe};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// Why DATA could not be opened for writing. The command line gives each its own exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// DATA cannot be used.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// DATA is somebody else's, or ownership could not be decided.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The state could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens DATA for writing. `endpoint` is where this process listens ("" for not yet, see
/// [`Ownership::set_endpoint`]); `take_over` overrides a live owner. The ownership's `lost` also tells of fencing.
/// To end: [`Store::close`], then [`Ownership::release`].
pub async fn open(location: &Location, endpoint: &str, take_over: bool) -> Result<(SlateStore, Ownership), OpenError> {
    probe(location).await?;
    let ownership = Ownership::take(location, endpoint, take_over).await?;
    match open_state(location).await {
        Ok(store) => {
            ownership.watch_fence(store.fenced());
            Ok((store, ownership))
        }
        Err(error) => {
            ownership.release().await;
            Err(error.into())
        }
    }
}

async fn open_state(location: &Location) -> Result<SlateStore, StoreError> {
    let store = SlateStore::open(location).await?;
    let loaded = store.load().await?;
    let uploads = loaded.uploads.into_iter().map(|upload| upload.part_id);
    let open_parts: BTreeSet<_> = loaded.intents.into_iter().map(|intent| intent.part_id).chain(uploads).collect();
    let deleted = store.objects().clean_staging(&open_parts, SystemTime::now()).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted staging files of earlier runs");
    }
    Ok(store)
}
