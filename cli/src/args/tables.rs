//! The commands that read or repair tables.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use powersweep_coordinator::records::Table;
use powersweep_results::columns::TABLES;

use super::{DataArgs, LogArgs};

/// The tables by name, with what a row is.
fn tables() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(
        TABLES.map(|table| PossibleValue::new(table.name).help(format!("A row is {}", table.row))),
    )
    .map(|name| Table::from_name(&name).expect("a possible value"))
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

#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub data: DataArgs,
    /// Which table.
    #[arg(long, value_parser = tables(), default_value = "tasks")]
    pub table: Table,
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

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub data: DataArgs,
    /// Only this table.
    #[arg(long, value_parser = tables())]
    pub table: Option<Table>,
    /// Give each row of `jobs`, `series` and `failures` the components and parameters of its task, which `tasks` has.
    #[arg(long)]
    pub wide: bool,
    /// New folder, or with --table a new file that ends in .parquet. Nothing is overwritten.
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: PathBuf,
}

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
