//! The command line of `report`.

use std::path::PathBuf;

use clap::Args;

use super::TablesArgs;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// Write to this file instead of standard output. An incomplete file is never left behind.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The metric along the horizontal axis of the plot; by default the slowdown.
    #[arg(long, value_name = "COLUMN")]
    pub x: Option<String>,
    /// The metric along the vertical axis of the plot; by default the energy.
    #[arg(long, value_name = "COLUMN")]
    pub y: Option<String>,
    /// The axis whose values have different marks; by default the policy.
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// The metric whose mean is shown for each value of each axis; by default the energy.
    #[arg(long, value_name = "COLUMN")]
    pub of: Option<String>,
}
