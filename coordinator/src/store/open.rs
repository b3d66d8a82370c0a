//! The one way to open DATA for writing: probe, own, clean up, open.

use super::{Location, SlateStore, Store, StoreError};
use crate::owner::{OwnerError, Ownership};
use crate::probe::{ProbeError, probe};
use crate::publish::stored_schema;
use crate::records::RowsHeader;
use powersweep_results::{ResultsError, wire};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

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
    /// The state did not open in time. Retryable, if only its storage is slow. Nothing was changed.
    #[error(
        "the state in {data} did not open within {} s: its storage does not answer, or files below .powersweep/state are \
         missing or damaged; nothing was changed. To go on without it, move .powersweep/state away", OPEN_TIME.as_secs()
    )]
    Hangs {
        /// DATA.
        data: String,
    },
    /// Rows are not in parts yet that only the version of this program that took them can read. Final for this version:
    /// with its own records in the state, not even that version could read it. No record was changed.
    #[error(
        "another version of powersweep left results of {} in {data} that are not in Parquet parts yet, and this one \
         cannot read them; nothing was changed. Start that version there, run its `powersweep flush NAME` for each, stop \
         it, and start this one", experiments.join(", ")
    )]
    OtherVersion {
        /// DATA.
        data: String,
        /// Names of the experiments.
        experiments: Vec<String>,
        /// The first that cannot be read.
        #[source]
        source: ResultsError,
    },
}

/// Longest time for opening the state: the database below waits for ever for what is not there. A state of 10^7 tasks
/// opens in seconds.
pub const OPEN_TIME: Duration = Duration::from_secs(120);

/// How often storage is tried again while the state opens: it may fail in between, and the database would only wait.
const PROBE_AGAIN: Duration = Duration::from_secs(10);

/// Opens DATA for writing. `endpoint` is where this process listens ("" for not yet, see
/// [`Ownership::set_endpoint`]); `take_over` overrides a live owner. The ownership's `lost` also tells of fencing.
/// To end: [`Store::close`], then [`Ownership::release`].
pub async fn open(location: &Location, endpoint: &str, take_over: bool) -> Result<(SlateStore, Ownership), OpenError> {
    probe(location).await?;
    let ownership = Ownership::take(location, endpoint, take_over).await?;
    let opened = tokio::select! {
        opened = open_state(location) => opened,
        error = fails(location) => Err(error.into()),
        () = tokio::time::sleep(OPEN_TIME) => Err(OpenError::Hangs { data: location.to_string() }),
    };
    match opened {
        Ok(store) => {
            ownership.watch_fence(store.fenced());
            Ok((store, ownership))
        }
        Err(error) => {
            ownership.release().await;
            Err(error)
        }
    }
}

/// Ends when storage that was good turns out to be unusable. One that is only slow gets its time.
async fn fails(location: &Location) -> ProbeError {
    loop {
        tokio::time::sleep(PROBE_AGAIN).await;
        match probe(location).await {
            Ok(()) | Err(ProbeError::Slow { .. }) => {}
            Err(error) => return error,
        }
    }
}

async fn open_state(location: &Location) -> Result<SlateStore, OpenError> {
    let store = SlateStore::open(location).await?;
    let loaded = store.load().await?;
    check_version(location, &store, &loaded.rows).await?;
    let uploads = loaded.rows.iter().filter_map(|rows| rows.upload);
    let open_parts = loaded.intents.iter().map(|intent| intent.part_id).chain(uploads).map(|id| *id).collect();
    let deleted = store.objects()?.clean_staging(&open_parts, SystemTime::now()).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted staging files of earlier runs");
    }
    Ok(store)
}

/// Fails if rows are of another version. Rows of two versions are in no state, so one record a table tells.
async fn check_version(location: &Location, store: &SlateStore, rows: &[RowsHeader]) -> Result<(), OpenError> {
    let mut of_others = BTreeMap::new();
    // The number that comes last stays.
    let tables: BTreeMap<_, _> = rows.iter().map(|header| ((&header.experiment, header.table()), header.seq)).collect();
    for ((experiment, table), seq) in tables {
        let Some(schema) = stored_schema(table) else { continue };
        for hand_in in store.rows(experiment, table, seq, seq).await?.iter().flat_map(|record| &record.hand_ins) {
            if let Err(error) = wire::check_header(&hand_in.encoded, &schema) {
                of_others.entry(experiment.clone()).or_insert(error);
            }
        }
    }
    let experiments = of_others.keys().cloned().collect();
    match of_others.into_values().next() {
        Some(source) => Err(OpenError::OtherVersion { data: location.to_string(), experiments, source }),
        None => Ok(()),
    }
}
