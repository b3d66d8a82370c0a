//! The command lines of `report` and `reproduce`.

use std::path::PathBuf;

use clap::Args;

use super::{LocalArgs, TablesArgs};

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

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "figures"), allow(dead_code))]
pub struct ReproduceArgs {
    /// Names of papers and studies (see `check --list`), or files with claims and figures (.toml); without a name, all papers.
    #[arg(value_name = "PAPER")]
    pub papers: Vec<String>,
    #[command(flatten)]
    pub local: LocalArgs,
    /// Write the page report.html, figures and tables into this folder.
    #[arg(long, short, value_name = "FOLDER")]
    pub output: PathBuf,
}
