//! Reads one table: every durable row once, published or not.
//!
//! A row is in the state until the commit that closes its part's intent, and visible in the part from some moment
//! before that commit. So neither "state, then listing" nor "listing, then state" is safe: the first doubles rows whose
//! part becomes visible in between, the second loses rows whose intent is closed in between. The order here is: state,
//! its unpublished rows, listing, state again. If no intent of the table was closed between the two readings of the
//! state, then every row is unpublished or in an open intent at both readings, or was in a closed part at the first: the
//! table is the rows that were read and the listed parts, except for parts of intents open at either reading. Otherwise
//! the table is read again; intents are closed minutes apart, or seconds apart on the busiest farm.
//!
//! Reading needs no coordinator and disturbs none: the state is opened read-only.

use crate::publish::part_path;
use crate::records::{Intent, Loaded, RowsRecord, Table, Totals};
use crate::store::{Location, ReadOnly, StoreError, staged_object};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use powersweep_results::layout::{self, base_name};
use std::collections::BTreeSet;
use std::time::Duration;

/// Attempts to read a table: each fails only if parts were published or split meanwhile.
const LOOKS_MAX: u32 = 20;

/// Wait before the next attempt while parts are being split.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Every row of a table, by its place.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Published parts by name, which begins with their time.
    pub parts: Vec<Path>,
    /// Accepted uploads of an optional table that are in no part, with their bytes: an upload is deleted once its part is
    /// visible.
    pub staged: Vec<(Path, Bytes)>,
    /// Unpublished rows as workers handed them in.
    pub rows: Vec<RowsRecord>,
    /// Whether the state has the experiment. Without the state, only parts are read.
    pub known: bool,
}

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum ViewError {
    /// The state or the rows in it could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The parts could not be listed.
    #[error("the parts in {folder} cannot be listed")]
    List { folder: String, source: object_store::Error },
    /// Parts were published or split faster than they could be listed. Retryable.
    #[error("parts of {experiment}/{table} are published or split faster than they can be listed: try again")]
    Restless { experiment: String, table: Table },
}

/// Reads one table. See the module for the order.
pub async fn look(location: &Location, experiment: &str, table: Table) -> Result<View, ViewError> {
    let mut last = ViewError::Restless { experiment: experiment.to_owned(), table };
    for attempt in 0..LOOKS_MAX {
        if attempt > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        match look_once(location, experiment, table).await {
            Ok(Some(view)) => return Ok(view),
            Ok(None) => last = ViewError::Restless { experiment: experiment.to_owned(), table },
            // The owner may have deleted files of the state before this attempt had read them.
            Err(error @ ViewError::Store(StoreError::Corrupt { .. })) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// One attempt; `None` if parts were published or split meanwhile.
async fn look_once(location: &Location, experiment: &str, table: Table) -> Result<Option<View>, ViewError> {
    let folder = layout::table_dir(experiment, table.name());
    let failed = |source| ViewError::List { folder: folder.to_string(), source };
    let objects = location.object_store().map_err(failed)?;
    let state = ReadOnly::open(location).await?;
    let before = state.load().await?;
    let rows = state.rows(experiment, table, 0, u64::MAX).await?;
    state.close().await?;
    let uploads = rows.iter().filter_map(|record| Some(staged_object(experiment, table, *record.upload?.part_id)));
    let Some(staged) = fetch(&*objects, uploads.collect()).await.map_err(failed)? else { return Ok(None) };
    let listed = list(&*objects, &folder).await.map_err(failed)?;
    let state = ReadOnly::open(location).await?;
    let after = state.load().await?;
    state.close().await?;
    let splits = |loaded: &Loaded| loaded.splits.iter().any(|split| split.experiment == base_name(experiment));
    let base = base_name(experiment);
    if totals(&before, base, table) != totals(&after, base, table) || splits(&before) || splits(&after) {
        return Ok(None);
    }
    let known = after.experiments.iter().any(|record| record.name == base);
    let open = intents(&before, experiment, table).chain(intents(&after, experiment, table));
    let twice: BTreeSet<Path> = open.map(|intent| part_path(experiment, table, *intent.part_id)).collect();
    let parts = listed.into_iter().filter(|part| !twice.contains(part)).collect();
    Ok(Some(View { parts, staged, rows, known }))
}

/// The bytes of uploads; `None` if one was deleted meanwhile, because its part was published.
async fn fetch(objects: &dyn ObjectStore, paths: Vec<Path>) -> Result<Option<Vec<(Path, Bytes)>>, object_store::Error> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let bytes = match objects.get(&path).await {
            Ok(result) => result.bytes().await,
            Err(error) => Err(error),
        };
        match bytes {
            Ok(bytes) => found.push((path, bytes)),
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}

async fn list(objects: &dyn ObjectStore, folder: &Path) -> Result<BTreeSet<Path>, object_store::Error> {
    let parquet = |path: &Path| path.filename().is_some_and(|name| name.ends_with(".parquet"));
    let found: Vec<_> = objects.list(Some(folder)).try_collect().await?;
    Ok(found.into_iter().map(|object| object.location).filter(parquet).collect())
}

fn intents<'a>(loaded: &'a Loaded, experiment: &'a str, table: Table) -> impl Iterator<Item = &'a Intent> {
    loaded.intents.iter().filter(move |intent| intent.experiment == experiment && intent.table() == table)
}

fn totals<'a>(loaded: &'a Loaded, experiment: &str, table: Table) -> Option<&'a Totals> {
    loaded.totals.iter().find(|totals| totals.experiment == experiment && totals.table() == table)
}
