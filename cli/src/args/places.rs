//! Options that many commands share: where data and logs are, and how to reach a coordinator.

use std::path::PathBuf;

use clap::Args;
use powersweep_coordinator::store::Location;

use super::SlotsArgs;
use crate::exit::{Failure, Kind, OrKind};
use crate::quantities::bytes;

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
    #[arg(long, value_name = "URL", env = "POWERSWEEP_DATA", default_value = DATA)]
    pub data: String,
}

/// The data of a command that names none.
const DATA: &str = "./results/data";

impl DataArgs {
    /// Whether the command line and the environment leave the default.
    pub fn is_default(&self) -> bool {
        self.data == DATA
    }

    /// The folder or object store.
    pub fn location(&self) -> Result<Location, Failure> {
        Location::parse(&self.data).or_kind(Kind::Usage)
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
