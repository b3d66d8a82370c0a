//! The command line of `powersweep access`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::args::{DataArgs, OutputArgs};
use crate::examples;
use crate::quantities::time;

#[derive(Debug, Subcommand)]
pub enum AccessCommand {
    /// Show where the access files are, the addresses in them and the tokens' fingerprints; no secret.
    #[command(after_help = examples::ACCESS_SHOW)]
    Show(AccessShowArgs),
    /// Replace the tokens of clients and workers. Running workers read the new one by themselves.
    #[command(after_help = examples::ACCESS_ROTATE)]
    Rotate(AccessRotateArgs),
    /// Print an access file for another machine or user. Its holder can act in its role.
    #[command(after_help = examples::ACCESS_EXPORT)]
    Export(AccessExportArgs),
}

#[derive(Debug, Args)]
pub struct AccessShowArgs {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct AccessRotateArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Replace the workers' token only.
    #[arg(long, conflicts_with = "client")]
    pub worker: bool,
    /// Replace the clients' token only.
    #[arg(long)]
    pub client: bool,
    /// How long the former tokens stay valid; 0s if a stranger may know them.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub grace: Duration,
}

#[derive(Debug, Args)]
pub struct AccessExportArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// The access of workers.
    #[arg(long, required_unless_present = "client", conflicts_with = "client")]
    pub worker: bool,
    /// The access of clients.
    #[arg(long)]
    pub client: bool,
    /// Print one line, to be pasted into `--access -` on a machine without a shared folder.
    #[arg(long)]
    pub join: bool,
    /// Write to this new file, which only this user can read, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
