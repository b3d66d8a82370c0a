//! Defaults of options for a caller in this process, such as the Python module: those of the command line, from
//! configuration files and variables of the environment.

use std::path::PathBuf;

use clap::{Args, ColorChoice, Command};
use powersweep::{Error, Notes, Place, failure};
use powersweep_inputs::library::Library;

use crate::args::{CoordinatorArgs, DataArgs, LogArgs};
use crate::config::Config;
use crate::{inputs, install_tls, screen};

/// The parts of a place that a caller gives, instead of defaults.
#[derive(Debug, Clone, Default)]
pub struct GivenPlace {
    /// Folder, or object store, of results and state.
    pub data: Option<String>,
    /// Address of the coordinator.
    pub coordinator: Option<String>,
    /// Access file of the coordinator, or a folder with such files.
    pub access: Option<PathBuf>,
    /// Allows unencrypted connections.
    pub insecure: bool,
}

#[derive(Args)]
struct PlaceArgs {
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// Where experiments are. Tables are at the coordinator if the caller gives one, or an access file, and no data.
///
/// # Errors
/// A configuration or a variable is wrong.
pub fn place(given: GivenPlace, notes: Notes) -> Result<Place, Error> {
    let tables_at_coordinator = (given.coordinator.is_some() || given.access.is_some()) && given.data.is_none();
    let PlaceArgs { mut coordinator, mut data } = defaults(&notes)?;
    data.data = given.data.unwrap_or(data.data);
    coordinator.coordinator = given.coordinator.or(coordinator.coordinator);
    coordinator.access = given.access.or(coordinator.access);
    coordinator.insecure |= given.insecure;
    Ok(Place { notes, tables_at_coordinator, ..coordinator.place(&data)? })
}

/// Where logs are found and cached: in the given folders, if there are any.
///
/// # Errors
/// A configuration or a variable is wrong.
pub fn library(traces: Vec<PathBuf>, cache: Option<PathBuf>, notes: &Notes) -> Result<Library, Error> {
    let mut logs: LogArgs = defaults(notes)?;
    if !traces.is_empty() {
        logs.traces = traces;
    }
    logs.cache = cache.or(logs.cache);
    Ok(inputs::library(&logs))
}

/// Options without a command line.
fn defaults<A: Args>(notes: &Notes) -> Result<A, Error> {
    install_tls();
    screen::choose_color(Some(ColorChoice::Never), None);
    let options = A::augment_args(Command::new("defaults").no_binary_name(true));
    let options = Config::read(notes)?.apply(options).color(ColorChoice::Never);
    let found = options.try_get_matches_from([""; 0]).and_then(|matches| A::from_arg_matches(&matches));
    // The usage line is of the command line.
    found.map_err(|error| {
        let text = error.to_string();
        let text = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ");
        failure!(Usage, "{}", text.trim_end())
    })
}
