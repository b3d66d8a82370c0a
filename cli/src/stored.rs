//! The data as seen by a command that does not own it: its state, and the coordinator that serves it.

use powersweep_coordinator::owner::{self, OwnerError};
use powersweep_coordinator::records::Loaded;
use powersweep_coordinator::store::{Location, ReadOnly};
use powersweep_proto::client::{Client, chain};

use crate::args::{CoordinatorArgs, DataArgs};
use crate::client;
use crate::exit::{Exit, Failure, OrExit, failure};

/// The stored state; empty if the data does not exist yet. Writes nothing.
pub async fn read(location: &Location) -> Result<Loaded, Failure> {
    if location.path().is_some_and(|path| !path.exists()) {
        return Ok(Loaded::default());
    }
    let state = ReadOnly::open(location).await.or_exit(Exit::Storage)?;
    let loaded = state.load().await.or_exit(Exit::Storage)?;
    state.close().await.or_exit(Exit::Storage)?;
    Ok(loaded)
}

/// The address of the coordinator that serves this data; `None` if none runs.
pub async fn owner_endpoint(location: &Location) -> Result<Option<String>, Failure> {
    let owner = owner::look(location).await.map_err(|error| match &error {
        // The error's own message says that ownership could not be taken, which was not tried here.
        OwnerError::Storage { data, op, source } => {
            let hint = "give the folder of `run` or `serve` with --data";
            failure!(Storage, "cannot read {data}: {op}: {}\n{hint}", chain(&**source))
        }
        _ => failure!(Storage, "{}", chain(&error)),
    })?;
    let live = owner.filter(|o| o.alive != Some(false)).and_then(|o| o.record);
    Ok(live.map(|record| record.endpoint).filter(|endpoint| !endpoint.is_empty()))
}

/// The coordinator that a command asks.
pub enum Coordinator {
    Running(Client),
    /// No coordinator was named, and none serves this data.
    None(Location),
}

/// Connects to the coordinator at --coordinator, else to the one that serves --data.
pub async fn coordinator(args: &CoordinatorArgs, data: &DataArgs) -> Result<Coordinator, Failure> {
    let mut address = client::address(args)?;
    if args.coordinator.is_none() {
        let location = data.location()?;
        match owner_endpoint(&location).await? {
            Some(endpoint) => address.url = endpoint,
            None => return Ok(Coordinator::None(location)),
        }
    }
    Ok(Coordinator::Running(client::connect(&address).await?))
}
