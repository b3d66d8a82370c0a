//! The commands that read or repair tables.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use powersweep_coordinator::records::Table;

use super::{DataArgs, LogArgs};

/// A table of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// One row a finished task.
    Tasks,
    /// One row a simulated job, where the manifest asks for it.
    Jobs,
    /// One row a point of a series, where the manifest asks for it.
    Series,
    /// One row a failed attempt.
    Failures,
}

impl TableName {
    /// The table as it is stored.
    pub fn table(self) -> Table {
        match self {
            TableName::Tasks => Table::Tasks,
            TableName::Jobs => Table::Jobs,
            TableName::Series => Table::Series,
            TableName::Failures => Table::Failures,
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// The first rows, for people.
    Table,
    /// CSV with a header; null is nothing.
    Csv,
    /// One JSON object a line.
    Json,
    /// One Parquet file.
    Parquet,
    /// One Arrow IPC stream.
    Arrow,
}

/// `powersweep results`
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub data: DataArgs,
    /// Which table.
    #[arg(long, value_enum, default_value = "tasks")]
    pub table: TableName,
    /// Only these columns, in this order (see `powersweep columns`).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Rows of the table on the screen; the other formats give all.
    #[arg(long, default_value_t = 24)]
    pub rows: usize,
    /// Table, or all rows for other tools.
    #[arg(long, value_enum, default_value = "table")]
    pub format: RowFormat,
    /// Write to this file, which appears whole or not at all, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `powersweep export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub data: DataArgs,
    /// Only this table.
    #[arg(long, value_enum)]
    pub table: Option<TableName>,
    /// Give each row of `jobs`, `series` and `failures` the components and parameters of its task, which `tasks` has.
    #[arg(long)]
    pub wide: bool,
    /// New folder, or with --table a new file that ends in .parquet. Nothing is overwritten.
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: PathBuf,
}

/// `powersweep adopt`
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The manifest that the rows were made from.
    pub manifest: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Go on although some rows are there twice, or are of no task of this manifest.
    #[arg(long)]
    pub accept: bool,
    /// Move a state that cannot be read out of the way first.
    #[arg(long)]
    pub set_aside: bool,
    /// Take the data over from a coordinator that seems alive.
    #[arg(long)]
    pub take_over: bool,
}
