//! Options that many commands share: where data and logs are, and how to reach a coordinator.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use powersweep::Place;
use powersweep::place::access;
use powersweep_coordinator::store::Location;
use powersweep_proto::access::{Access, Source};

use super::SlotsArgs;
use crate::exit::{Failure, failure};
use crate::quantities::bytes;
use crate::screen;

/// Largest access file that is read from standard input (bytes).
const STDIN_BYTES_MAX: u64 = 64 << 10;

/// Where logs are found and cached.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Folder with workload logs; may be repeated. A log's name may omit its ending, such as .swf.gz.
    #[arg(long = "traces", value_name = "DIR", env = "POWERSWEEP_TRACES", value_delimiter = ':')]
    pub traces: Vec<PathBuf>,
    /// Folder that caches downloaded logs; by default ~/.cache/powersweep, for a worker none.
    #[arg(long, value_name = "DIR", env = "POWERSWEEP_CACHE")]
    pub cache: Option<PathBuf>,
    /// Maximum size of the cache, such as 20GiB: the least recently used logs are deleted first; no limit by default.
    #[arg(long, value_name = "SIZE", env = "POWERSWEEP_CACHE_SIZE", value_parser = bytes)]
    pub cache_size: Option<u64>,
}

/// Where results and state are stored.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// Folder, or object store (s3://, gs://, az://; needs the cargo feature `cloud`), of results and state.
    #[arg(long, value_name = "URL", env = "POWERSWEEP_DATA", default_value = Place::DATA)]
    pub data: String,
}

impl DataArgs {
    /// Whether the command line and the environment leave the default.
    pub fn is_default(&self) -> bool {
        self.data == Place::DATA
    }

    /// The folder or object store.
    pub fn location(&self) -> Result<Location, Failure> {
        self.place().location()
    }

    /// The experiments of the data.
    pub fn place(&self) -> Place {
        Place { notes: screen::notes(), ..Place::open(&self.data) }
    }
}

/// How to reach a coordinator.
#[derive(Debug, Clone, Args)]
pub struct CoordinatorArgs {
    /// Address of the coordinator, HOST:PORT, in place of those in the access file. Without this option, a command with
    /// --data asks the coordinator that serves it, or uses the data itself.
    #[arg(long, value_name = "ADDRESS", env = "POWERSWEEP_COORDINATOR")]
    pub coordinator: Option<String>,
    /// Access file of the coordinator, or a folder with such files, or - to read one or a join line from standard input.
    /// By default the file in --data/.powersweep/access, else the one in ~/.config/powersweep.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_ACCESS")]
    pub access: Option<PathBuf>,
    /// Allow unencrypted connections, to a coordinator that was started with --insecure; only for trusted networks.
    #[arg(long, env = "POWERSWEEP_INSECURE")]
    pub insecure: bool,
}

impl CoordinatorArgs {
    /// The experiments of the coordinator, else those of the data.
    pub fn place(&self, data: &DataArgs) -> Result<Place, Failure> {
        let access = match &self.access {
            Some(file) if file.as_os_str() == "-" => Some(access_on_stdin()?),
            file => file.clone().map(Source::File),
        };
        Ok(Place { coordinator: self.coordinator.clone(), access, insecure: self.insecure, ..data.place() })
    }
}

/// The access file or join line on standard input.
fn access_on_stdin() -> Result<Source, Failure> {
    if std::io::stdin().is_terminal() {
        screen::note("powersweep: paste the join line, then press Enter and Ctrl-D");
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| failure!(Usage, "cannot read the access from standard input: {error}"))?;
    let given = Access::parse(&text, "standard input").map_err(|error| access::refused(&error))?;
    Ok(Source::Given(Box::new(given)))
}

/// How `run` and `check` run a sweep on this machine.
#[derive(Debug, Clone, Args)]
pub struct LocalArgs {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub slots: SlotsArgs,
    /// Show no progress and no summary.
    #[arg(long)]
    pub quiet: bool,
}
