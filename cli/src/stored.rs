//! The data as seen by a command that does not own it: its state, and the coordinator that serves it.

use futures::TryStreamExt;
use object_store::ObjectStore;
use powersweep_coordinator::owner::{self, OwnerError};
use powersweep_coordinator::records::Loaded;
use powersweep_coordinator::shards;
use powersweep_coordinator::store::{Location, PRIVATE_DIR, ReadOnly};
use powersweep_dataset::{Datasets, Notes};
use powersweep_experiments::plain::chain;
use powersweep_experiments::reading::instead_of;
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::layout;
use tonic::{Code, Status};

use crate::args::{CoordinatorArgs, DataArgs, TablesArgs};
use crate::exit::{Failure, Kind, OrKind, failure};
use crate::local::Local;
use crate::remote::Remote;
use crate::{access, client, screen, shard_status};

/// The stored state; empty if the data does not exist yet. Writes nothing.
pub async fn read(location: &Location) -> Result<Loaded, Failure> {
    if location.path().is_some_and(|path| !path.exists()) {
        return Ok(Loaded::default());
    }
    let state = ReadOnly::open(location).await.or_kind(Kind::Storage)?;
    let loaded = state.load().await.or_kind(Kind::Storage)?;
    state.close().await.or_kind(Kind::Storage)?;
    Ok(loaded)
}

/// Whether an experiment has no part of `tasks`.
pub async fn is_without_parts(location: &Location, experiment: &str) -> Result<bool, Failure> {
    let store = location.object_store().or_kind(Kind::Storage)?;
    let first = store.list(Some(&layout::tasks_dir(experiment))).try_next().await;
    Ok(first.or_kind(Kind::Storage)?.is_none())
}

/// Whether there may be a state; an object store is not asked.
pub fn is_there(location: &Location) -> bool {
    location.path().is_none_or(|path| path.join(PRIVATE_DIR).is_dir())
}

/// The experiments that the state knows or that have files, sorted.
pub async fn names(location: &Location) -> Result<Vec<String>, Failure> {
    let loaded = read(location).await?;
    let mut names: Vec<String> = loaded.experiments.into_iter().map(|record| record.name).collect();
    names.extend(shards::names(location).await.map_err(|error| shard_status::refused(&error))?);
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

/// A refused request about an experiment. If the coordinator does not know the experiment, the error has the names that
/// it knows.
pub async fn refused(client: &mut Client, status: &Status, experiment: &str) -> Failure {
    let mut failure = client::refused(status);
    if status.code() == Code::NotFound
        && let Ok(all) = client::status(client, v1::StatusRequest::default()).await
    {
        let known: Vec<String> = all.experiments.into_iter().map(|found| found.name).collect();
        if !known.iter().any(|name| name == experiment) {
            failure.message = unknown(experiment, &known);
        }
    }
    failure
}

/// The address of the coordinator that serves this data; `None` if none runs. An owner that may have ended counts.
pub async fn owner_endpoint(location: &Location) -> Result<Option<String>, Failure> {
    Ok(owner(location).await?.map(|owner| owner.endpoint))
}

/// The coordinator that serves a data folder or store, by its owner record.
struct Owner {
    endpoint: String,
    /// Whether nothing proves that it lives: only an answer can.
    may_have_ended: bool,
}

async fn owner(location: &Location) -> Result<Option<Owner>, Failure> {
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

/// The coordinator that a command asks.
pub enum Coordinator {
    Running(Client),
    /// No coordinator was named, and none serves this data.
    None(Location),
}

/// Connects to the coordinator of --coordinator or --access, else to the one that serves --data. Where there is no data,
/// the one of the user's own access file counts. An owner that does not answer, and may have ended, counts as none: a
/// command that changes something then takes the ownership, which decides.
pub async fn coordinator(args: &CoordinatorArgs, data: &DataArgs) -> Result<Coordinator, Failure> {
    let mut doubtful = None;
    if args.coordinator.is_none() && args.access.is_none() {
        let location = data.location()?;
        let elsewhere = location.path().is_some_and(|path| !path.exists()) && is_configured();
        if !elsewhere {
            match owner(&location).await? {
                None => return Ok(Coordinator::None(location)),
                Some(owner) => doubtful = owner.may_have_ended.then_some((location, owner.endpoint)),
            }
        }
    }
    let connected = client::connect(&client::address(args, data, Role::Client)?).await;
    match (connected, doubtful) {
        (Err(failure), Some((location, endpoint))) if failure.kind == Kind::Network => {
            screen::note(&format!(
                "powersweep: the coordinator at {endpoint} does not answer: using the state that is stored in {location}"
            ));
            Ok(Coordinator::None(location))
        }
        (connected, _) => Ok(Coordinator::Running(connected?)),
    }
}

impl Coordinator {
    /// The datasets of the coordinator, or of the data without one.
    pub fn datasets(&self) -> Datasets {
        match self {
            Coordinator::Running(client) => datasets_at(client),
            Coordinator::None(location) => datasets_here(location),
        }
    }
}

/// The datasets of a data folder or object store.
pub fn datasets_here(location: &Location) -> Datasets {
    Datasets::new(Local::new(location), notes())
}

/// The datasets of a coordinator.
pub fn datasets_at(client: &Client) -> Datasets {
    Datasets::new(Remote(client.clone()), notes())
}

fn notes() -> Notes {
    Notes::to(|text| screen::note(&format!("powersweep: {text}")))
}

/// Where a command reads tables: the data, if there is any and the command line does not name a coordinator alone; else
/// the coordinator that `status` asks.
pub async fn place(args: &TablesArgs) -> Result<Coordinator, Failure> {
    let location = args.data.location()?;
    if location.path().is_none_or(|path| path.exists()) && !args.names_only_a_coordinator() {
        return Ok(Coordinator::None(location));
    }
    coordinator(&args.coordinator, &args.data).await
}

/// The datasets of the place where a command reads tables.
pub async fn datasets(args: &TablesArgs) -> Result<Datasets, Failure> {
    Ok(place(args).await?.datasets())
}

fn is_configured() -> bool {
    access::configured(Role::Client).is_some_and(|file| file.exists())
}
