//! The command line of `powersweep access`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::args::{DataArgs, OutputArgs};
use crate::examples;
use crate::quantities::time;

#[derive(Debug, Subcommand)]
pub enum AccessCommand {
    /// Show where the access files are, the addresses in them, the clients and the tokens' fingerprints; no secret.
    #[command(after_help = examples::ACCESS_SHOW)]
    Show(AccessShowArgs),
    /// Replace the tokens of client.json and worker.json. Running workers read the new one by themselves.
    #[command(after_help = examples::ACCESS_ROTATE)]
    Rotate(AccessRotateArgs),
    /// Print an access file for another machine or user. Its holder can act in its role.
    #[command(after_help = examples::ACCESS_EXPORT)]
    Export(AccessExportArgs),
    /// Give a user a token of their own, and print the access file. The user's experiments are guarded from other users.
    #[command(after_help = examples::ACCESS_ADD)]
    Add(AccessAddArgs),
    /// End the token of one client, and the calls that it makes. Other tokens stay valid.
    #[command(after_help = examples::ACCESS_REVOKE)]
    Revoke(AccessRevokeArgs),
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
    /// Replace the token of client.json only. The tokens of `access add` stay: `access revoke` ends them.
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
    #[arg(long, conflicts_with_all = ["client", "name"])]
    pub worker: bool,
    /// The operator's own access, which may act on all experiments.
    #[arg(long, conflicts_with = "name")]
    pub client: bool,
    /// The access of this client, which `access add` has added, with the present addresses.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub form: AccessForm,
}

#[derive(Debug, Args)]
pub struct AccessAddArgs {
    /// Name of the user: in the log, and as the owner of the experiments that the user submits.
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub form: AccessForm,
}

#[derive(Debug, Args)]
pub struct AccessRevokeArgs {
    /// Name of the client, as `access show` lists it.
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}

/// How an access is printed.
#[derive(Debug, Args)]
pub struct AccessForm {
    /// Print one line, to be pasted into `--access -` on a machine without a shared folder.
    #[arg(long)]
    pub join: bool,
    /// Write to this new file, which only this user can read, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
