//! The command line of `simulate`.

use std::path::PathBuf;

use clap::Args;

use super::{LogArgs, OutputArgs, TaskLimitArgs};

#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A manifest file, or the name of a shipped one; needs --index.
    #[arg(requires = "index")]
    pub manifest: Option<String>,
    /// Index of the task in the manifest's sweep.
    #[arg(long, requires = "manifest")]
    pub index: Option<u64>,
    /// Set a component or a parameter, such as queue_order=sjf or bsld_threshold=2; may be repeated.
    #[arg(long = "set", short = 's', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Simulate this log (name, path or URL) instead of synthetic jobs: -s log=LOG with the source of its format.
    #[arg(long)]
    pub log: Option<String>,
    /// Seed of the random numbers; by default 1, or the seed of the manifest's task.
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub limits: TaskLimitArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Write one row for each job to this file (.parquet or .csv).
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Write one row for each point of the recorded series to this file (.parquet or .csv).
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Write one row for each signal of the manifest to this file (.parquet or .csv).
    #[arg(long, value_name = "FILE", requires = "manifest")]
    pub accounts: Option<PathBuf>,
    /// Write the schedule into this new folder, as a log (SWF) and as the files of Batsim that evalys reads.
    #[arg(long, value_name = "DIR")]
    pub batsim: Option<PathBuf>,
    /// Show every column that has a value, not the usual ten.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
