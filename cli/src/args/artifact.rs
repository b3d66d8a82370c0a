//! The command line of `artifact`.

use std::path::PathBuf;

use clap::Args;

use super::{LogArgs, TablesArgs};

#[derive(Debug, Args)]
pub struct ArtifactArgs {
    /// Names of the experiments. Those of --paper need not be named.
    #[arg(value_name = "EXPERIMENT", required_unless_present = "paper")]
    pub experiments: Vec<String>,
    /// Claims, figures and tables: a file (.toml), or the name of a paper (see `check --list`).
    #[arg(long, value_name = "PAPER")]
    pub paper: Option<String>,
    #[command(flatten)]
    pub from: TablesArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Add the logs and signals, which this licence allows to pass on, such as "CC-BY-4.0, KTH". Without this option, the artifact
    /// has their names, addresses and digests.
    #[arg(long, value_name = "LICENCE")]
    pub with_logs: Option<String>,
    /// The licence of the artifact, best as an identifier of SPDX, such as CC-BY-4.0.
    #[arg(long, value_name = "LICENCE")]
    pub licence: Option<String>,
    /// An author, a name or "NAME <https://orcid.org/...>"; may be repeated.
    #[arg(long = "author", value_name = "AUTHOR")]
    pub authors: Vec<String>,
    /// Add this program, so that a reviewer needs nothing else: a static powersweep of the version that made the rows.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Allow tasks without a row. The artifact lists failed tasks, and has neither verdicts nor figures.
    #[arg(long)]
    pub incomplete: bool,
    /// A new file whose name ends in .zip.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}
