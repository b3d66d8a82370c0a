//! The command line of `powersweep import`.

use std::path::PathBuf;

use clap::Args;
use powersweep_inputs::joblogs::Settings;

use super::{LogArgs, OutputArgs};
use powersweep_experiments::Digest;

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub reading: Settings,
    /// Name, path or URL of the job log, plain, .gz or .zst; - for standard input.
    pub log: String,
    /// Write the log to this file, compressed if its name ends in .gz. Without it, only the ledger is shown. An incomplete
    /// file is never left behind.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write ids, nodes, CPUs, GPUs and energies of the jobs to this CSV file, by job number.
    #[arg(long, value_name = "FILE")]
    pub details: Option<PathBuf>,
    /// SHA-256 of the file as downloaded; required for a URL.
    #[arg(long)]
    pub sha256: Option<Digest>,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub shown: OutputArgs,
}
