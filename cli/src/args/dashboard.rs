//! The command line of `dashboard`.

use clap::Args;

use super::{CoordinatorArgs, LaunchFolderArgs};

#[derive(Debug, Args)]
pub struct DashboardArgs {
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub folder: LaunchFolderArgs,
    /// Loopback address to listen on, or unix:PATH for a socket that only you can open; by default a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// Name of a proxy by which browsers reach the dashboard; may be repeated. Names of loopback are always accepted.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
}
