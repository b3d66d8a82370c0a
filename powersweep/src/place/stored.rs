//! The data as seen by a process that does not own it: its state, and the coordinator that serves it.

use futures::TryStreamExt;
use object_store::ObjectStore;
use powersweep_coordinator::owner::{self, OwnerError};
use powersweep_coordinator::records::Loaded;
use powersweep_coordinator::store::{Location, PRIVATE_DIR, ReadOnly};
use powersweep_coordinator::view;
use powersweep_dataset::tables::missing_parts;
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_experiments::plain::chain;
use powersweep_experiments::reading::instead_of;
use powersweep_results::Table;
use powersweep_results::layout::{self, PartCounts};

use super::shards;

/// The stored state; empty if the data does not exist yet. Writes nothing.
pub async fn read(location: &Location) -> Result<Loaded, Error> {
    if location.path().is_some_and(|path| !path.exists()) {
        return Ok(Loaded::default());
    }
    let state = ReadOnly::open(location).await.or_kind(Kind::Storage)?;
    let loaded = state.load().await.or_kind(Kind::Storage)?;
    state.close().await.or_kind(Kind::Storage)?;
    Ok(loaded)
}

/// Refuses data that does not exist.
pub fn check_exists(location: &Location) -> Result<(), Error> {
    if location.path().is_none_or(|path| path.exists()) {
        return Ok(());
    }
    let hint = "give the folder of the results with --data, or --access for a coordinator on another machine";
    Err(failure!(Usage, "there is no {location}: {hint}"))
}

/// The sentence about parts that a state counts and that are not there, of the first table with such parts; `None` if no part is
/// missing.
pub async fn missing(location: &Location, state: &Loaded, experiment: &str) -> Result<Option<String>, Error> {
    for table in Table::ALL {
        let counted = view::counted(std::iter::once(state), experiment, table);
        let Some(counted) = counted.filter(|counted| counted.parts > 0) else { continue };
        let store = location.object_store().or_kind(Kind::Storage)?;
        let folder = layout::table_dir(experiment, table.name());
        let found = view::list(&*store, &folder).await.or_kind(Kind::Storage)?.len() as u64;
        // Rows that storage had lost before they were in a part are the experiment's failure.
        let missing = missing_parts(location, experiment, table, PartCounts { left_out: 0, ..counted }, found);
        if missing.is_some() {
            return Ok(missing);
        }
    }
    Ok(None)
}

/// Whether an experiment has a part of `tasks`.
pub async fn has_parts(location: &Location, experiment: &str) -> Result<bool, Error> {
    let store = location.object_store().or_kind(Kind::Storage)?;
    let first = store.list(Some(&layout::tasks_dir(experiment))).try_next().await;
    Ok(first.or_kind(Kind::Storage)?.is_some())
}

/// Whether the data has rows of an experiment that this state does not know.
pub async fn has_rows_alone(location: &Location, state: &Loaded, experiment: &str) -> Result<bool, Error> {
    let is_known = state.experiments.iter().any(|record| record.name == experiment);
    let exists = location.path().is_none_or(|path| path.exists());
    Ok(!experiment.is_empty() && !is_known && exists && has_parts(location, experiment).await?)
}

/// The error about an experiment that has rows and no state.
pub fn without_state(location: &Location, experiment: &str) -> Error {
    let hint =
        format!("`powersweep results {experiment}` shows its rows, `powersweep adopt` rebuilds the state from them");
    failure!(Usage, "{location} has no state of {experiment}\n{hint}")
}

/// Whether there may be a state; an object store is not asked.
pub fn is_there(location: &Location) -> bool {
    location.path().is_none_or(|path| path.join(PRIVATE_DIR).is_dir())
}

/// The experiments that the state knows or that have files, sorted.
pub async fn names(location: &Location) -> Result<Vec<String>, Error> {
    let loaded = read(location).await?;
    let mut names: Vec<String> = loaded.experiments.into_iter().map(|record| record.name).collect();
    names.extend(shards::names(location).await?);
    if location.path().is_some_and(|path| !path.exists()) {
        return Ok(names);
    }
    let store = location.object_store().or_kind(Kind::Storage)?;
    for folder in store.list_with_delimiter(None).await.or_kind(Kind::Storage)?.common_prefixes {
        // The name of the state's folder begins with a dot. An experiment's folder may outlive its files.
        let Some(name) = folder.filename().filter(|name| !name.starts_with('.')) else { continue };
        if store.list(Some(&folder)).try_next().await.or_kind(Kind::Storage)?.is_some() {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Why there is no experiment of this name, with the names that there are.
pub fn unknown(experiment: &str, known: &[String]) -> String {
    let others: Vec<&str> = known.iter().map(String::as_str).filter(|name| *name != experiment).collect();
    match others.is_empty() {
        true => format!("there is no experiment {experiment}"),
        false => format!("there is no experiment {experiment}; {}", instead_of(experiment, &others)),
    }
}

/// The address of the coordinator that serves this data; `None` if none runs. An owner that may have ended counts.
pub async fn owner_endpoint(location: &Location) -> Result<Option<String>, Error> {
    Ok(owner(location).await?.map(|owner| owner.endpoint))
}

/// The coordinator that serves a data folder or store, by its owner record.
pub(super) struct Owner {
    pub(super) endpoint: String,
    /// Whether nothing proves that it lives: only an answer can.
    pub(super) may_have_ended: bool,
}

pub(super) async fn owner(location: &Location) -> Result<Option<Owner>, Error> {
    let owner = owner::look(location).await.map_err(|error| match &error {
        // The error's own message says that ownership could not be taken, which was not tried here.
        OwnerError::Storage { data, op, source } => {
            let hint = "give the folder of `run` or `serve` with --data";
            failure!(Storage, "cannot read {data}: {op}: {}\n{hint}", chain(&**source))
        }
        _ => failure!(Storage, "{}", chain(&error)),
    })?;
    let Some(owner) = owner.filter(|owner| owner.alive != Some(false)) else { return Ok(None) };
    let endpoint = owner.record.map(|record| record.endpoint).filter(|endpoint| !endpoint.is_empty());
    Ok(endpoint.map(|endpoint| Owner { endpoint, may_have_ended: owner.alive.is_none() }))
}
