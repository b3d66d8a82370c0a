//! The command lines of `health` and `doctor`.

use clap::Args;

use super::{CoordinatorArgs, DataArgs, OutputArgs};

#[derive(Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
