//! The command line of `find`.

use std::path::PathBuf;

use clap::Args;

use super::tables::column;
use super::{CoordinatorArgs, LocalArgs};

#[derive(Debug, Args)]
pub struct FindArgs {
    /// A manifest file, or the name of a shipped one.
    pub manifest: String,
    /// A parameter and the values to choose from, PARAMETER=FROM..TO:STEP or PARAMETER=a,b,c, in place of the manifest's;
    /// may be repeated. Without STEP, a range of reals has the greatest power of ten that makes at least a hundred steps.
    #[arg(long, value_name = "PARAMETER=VALUES", required = true)]
    pub over: Vec<String>,
    /// What is to be small: a parameter of --over, or a metric of the table `tasks` or `accounts`, whose mean over the seeds
    /// counts.
    #[arg(
        long, value_name = "COLUMN", value_parser = column, conflicts_with = "maximise", required_unless_present = "maximise"
    )]
    pub minimise: Option<String>,
    /// What is to be great.
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub maximise: Option<String>,
    /// A condition on the mean of a metric, or on a parameter, such as "bsld_mean <= 5", or on the share of seeds, such as
    /// "P(wait_s_mean <= 3600) >= 0.95"; may be repeated. "signal=LABEL" chooses one of several signals.
    #[arg(long, value_name = "CONDITION")]
    pub subject_to: Vec<String>,
    /// All workloads of the manifest, from the shortest to the whole one, such as weeks,whole: every candidate runs on the first,
    /// the best quarter on the next. Without it, each workload has an answer of its own.
    #[arg(long, value_name = "WORKLOAD,...", value_delimiter = ',')]
    pub rungs: Vec<String>,
    /// Name of the experiment that holds the tasks of the search; by default the manifest's name with -find.
    #[arg(long)]
    pub name: Option<String>,
    /// Where the manifest of the tried tasks is kept; by default NAME.toml beside the manifest, or in the current folder
    /// for a shipped one.
    #[arg(long, value_name = "FILE")]
    pub manifest_out: Option<PathBuf>,
    #[command(flatten)]
    pub local: LocalArgs,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    /// Change the experiment although another user submitted it, or although it has no task of this search.
    #[arg(long)]
    pub replace: bool,
    /// Print the answers and every candidate as JSON.
    #[arg(long)]
    pub json: bool,
    /// Draw the map of the candidates into this file (.svg, .png, .pdf, .html, .vl.json or .csv). Needs the cargo feature
    /// `figures`.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
