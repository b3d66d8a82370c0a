//! Opens DATA for writing: probe, ownership, state, clean-up.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use powersweep_results::{ResultsError, wire};

use super::{Location, ReadOnly, SlateStore, Store, StoreError};
use crate::owner::{OwnerError, Ownership};
use crate::probe::{ProbeError, probe};
use crate::records::RowsHeader;

/// Why DATA could not be opened for writing. The command line gives each its own exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum OpenError {
    /// DATA cannot be used.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// DATA has another owner, or the ownership could not be decided.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The state could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state did not open in time. Retryable if its storage is only slow. The state was not changed.
    #[error(
        "the state in {data} did not open within {} s: its storage does not answer, or files below .powersweep/state are \
         missing or damaged. The state was not changed. To start without it, move .powersweep/state to another place",
        OPEN_TIME.as_secs()
    )]
    Hangs { data: String },
    /// The state has unpublished rows that only the version that stored them can read. Final for this version: with its
    /// records in the state, not even that version could read the state. No record was changed.
    #[error(
        "{data} has unpublished rows of {} that another version of powersweep stored and this version cannot read. No \
         record was changed. Start that version there, run its `powersweep prepare-upgrade`, and start this version", experiments.join(", ")
    )]
    OtherVersion { data: String, experiments: Vec<String>, source: ResultsError },
}

/// Longest time for opening the state: SlateDB waits for ever for missing files. A state of 10^7 tasks opens in seconds.
pub const OPEN_TIME: Duration = Duration::from_secs(120);

/// How often storage is probed while the state opens: SlateDB waits for ever for failing storage.
const PROBE_AGAIN: Duration = Duration::from_secs(10);

/// Opens DATA for writing. `endpoint` is this process's address ("" for not yet known, see
/// [`Ownership::set_endpoint`]); `take_over` overrides a live owner. [`Ownership::lost`] also reports fencing. To end:
/// [`Store::close`], then [`Ownership::release`].
pub async fn open(location: &Location, endpoint: &str, take_over: bool) -> Result<(SlateStore, Ownership), OpenError> {
    probe(location).await?;
    let ownership = Ownership::take(location, endpoint, take_over).await?;
    let opened = tokio::select! {
        opened = open_state(location) => opened,
        error = fails(location) => Err(error),
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

/// Ends when storage becomes unusable, or the state proves damaged. Slow storage is not an error.
async fn fails(location: &Location) -> OpenError {
    loop {
        tokio::time::sleep(PROBE_AGAIN).await;
        match probe(location).await {
            Ok(()) | Err(ProbeError::Slow { .. }) => {}
            Err(error) => return error.into(),
        }
        if let Err(error @ StoreError::Corrupt { .. }) = read(location).await {
            return error.into();
        }
    }
}

/// Reads the state without writing, which does not wait for files that are damaged.
async fn read(location: &Location) -> Result<(), StoreError> {
    ReadOnly::open(location).await?.load().await.map(drop)
}

async fn open_state(location: &Location) -> Result<SlateStore, OpenError> {
    let store = SlateStore::open(location).await?;
    let loaded = store.load().await?;
    check_version(location, &store, &loaded.rows).await?;
    let uploads = loaded.rows.iter().filter_map(|rows| rows.upload);
    let split = loaded.splits.iter().flat_map(|split| &split.parts);
    let fragments = split.flat_map(|part| part.kept.into_iter().chain(part.moved)).map(|fragment| fragment.part_id);
    let intents = loaded.intents.iter().map(|intent| intent.part_id);
    let open_parts = intents.chain(uploads).chain(fragments).map(|id| *id).collect();
    let deleted = store.objects()?.clean_staging(&open_parts, SystemTime::now()).await?;
    if deleted > 0 {
        tracing::info!(deleted, "deleted staging files of earlier runs");
    }
    Ok(store)
}

/// Fails if unpublished rows are of another version. No state has rows of two versions, so one record of each table is
/// enough.
async fn check_version(location: &Location, store: &SlateStore, rows: &[RowsHeader]) -> Result<(), OpenError> {
    let mut of_others = BTreeMap::new();
    // Each table's last record.
    let tables: BTreeMap<_, _> = rows.iter().map(|header| ((&header.experiment, header.table()), header.seq)).collect();
    for ((experiment, table), seq) in tables {
        if table.is_optional() {
            continue;
        }
        let schema = table.schema();
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
