//! The commands that list something, and the form of their output.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use powersweep_experiments::Digest;

use super::LogArgs;
use crate::examples;

/// The form of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// JSON for programs.
    Json,
}

/// How a command shows what it found.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Output for people or for programs.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl OutputArgs {
    /// Whether the output is for programs.
    pub fn is_json(self) -> bool {
        self.json || self.format == Format::Json
    }
}

#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// A role, such as queue_order, to list its components; a component, such as bsld, or a parameter, such as wq_threshold, to
    /// explain it.
    #[arg(value_name = "ROLE|NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct ColumnsArgs {
    /// List only the columns of this table: tasks, jobs, series, accounts or failures; or explain the column of this name.
    #[arg(value_name = "TABLE|COLUMN")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show the default of each option that a configuration can set.
    #[command(after_help = examples::CONFIG)]
    Show(ShowConfigArgs),
}

#[derive(Debug, Args)]
pub struct ShowConfigArgs {
    /// Also show where each default comes from, and the files.
    #[arg(long)]
    pub origin: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder of the pages, which is created; pages in it are overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A command, such as `run` or `access export`, or a page of the guide, such as `figures`.
    #[arg(value_name = "COMMAND_OR_TOPIC")]
    pub words: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    #[command(after_help = examples::TRACE_INFO)]
    /// Show a log's header, number of jobs, time span, job sizes, run times and missing values.
    Info {
        /// Name, path or URL of the log.
        log: String,
        /// SHA-256 of the file as downloaded; required for a URL.
        #[arg(long)]
        sha256: Option<Digest>,
        #[command(flatten)]
        logs: LogArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
}
