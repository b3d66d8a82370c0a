//! The commands that read or repair tables.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use powersweep::Place;
use powersweep_results::Table;

use super::{CoordinatorArgs, DataArgs, LogArgs};
use crate::exit::Failure;

/// The tables by name, with what a row is.
pub(super) fn tables() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(
        Table::ALL.map(|table| PossibleValue::new(table.name()).help(format!("A row is {}", table.row()))),
    )
    .map(|name| Table::from_name(&name).expect("a possible value"))
}

/// The name of a column without the blanks around it.
pub(super) fn column(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

/// How rows are shown or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// The first rows, as a table for people.
    Table,
    /// The same as a table of Markdown.
    Markdown,
    /// The same as a LaTeX table, for the package booktabs.
    Latex,
    /// The same as a Typst table.
    Typst,
    /// CSV with a header; null is an empty field.
    Csv,
    /// One JSON object for each line.
    Json,
    /// One Parquet file.
    Parquet,
    /// One Arrow IPC stream.
    Arrow,
}

/// Where tables are read.
#[derive(Debug, Args)]
pub struct TablesArgs {
    // The first field: the other ones take their values out of what was parsed.
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

impl TablesArgs {
    /// Where the tables are: at the coordinator if the command line names one or an access file, and no data. Variables and
    /// configurations do not count: they are for all commands, and results of `run` in the current folder are nearer.
    pub fn place(&self) -> Result<Place, Failure> {
        let tables_at_coordinator = self.named.coordinator && !self.named.data;
        Ok(Place { tables_at_coordinator, ..self.coordinator.place(&self.data)? })
    }
}

/// Which of these options are on the command line.
#[derive(Debug)]
struct Named {
    coordinator: bool,
    data: bool,
}

impl FromArgMatches for Named {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Named, clap::Error> {
        let is_named = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Named { coordinator: is_named("coordinator") || is_named("access"), data: is_named("data") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Named::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Named {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// Name of the experiment, or of a paper with --preset.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// A table of a paper, or the numbers of one of its figures, such as table3; `powersweep plot --presets` lists them. For
    /// an experiment of your own with the tasks of the paper's manifest, name the paper, too: etinski2010/table3.
    #[arg(
        long, value_name = "[PAPER/]NAME",
        conflicts_with_all = ["table", "columns", "rows", "sort", "descending", "only", "skip", "by", "stats", "ratio_to"]
    )]
    pub preset: Option<String>,
    /// The table to read.
    #[arg(long, value_parser = tables(), default_value = "tasks")]
    pub table: Table,
    /// Only these columns, in this order; `powersweep columns` lists them.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = column)]
    pub columns: Vec<String>,
    /// Number of rows. By default, all rows of --by, and all rows for programs; otherwise 24 for people.
    #[arg(long, visible_alias = "top", value_name = "N")]
    pub rows: Option<usize>,
    #[command(flatten)]
    pub some: RowFilterArgs,
    #[command(flatten)]
    pub groups: GroupArgs,
    #[command(flatten)]
    pub out: OutArgs,
}

/// Rows with the same values become one row, with statistics of the columns of numbers.
#[derive(Debug, Args)]
pub struct GroupArgs {
    /// One row for each combination of values of these columns; also of parameters of the task, in any table.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub by: Vec<String>,
    /// Statistics of each of --columns: mean, sd, ci (half the width of the 95% interval of the mean; ci90, ci99),
    /// median, p95 or another percentile, min, max, sum, count. By default mean and ci; of tables other than `tasks` the
    /// mean alone, of `failures` the count.
    #[arg(long = "stat", value_name = "NAME,...", value_delimiter = ',', value_parser = column)]
    pub stats: Vec<String>,
    /// Divide by the value of the row that satisfies this condition and has the same workload, machine and seed, such as
    /// policy=easy; may be repeated.
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub ratio_to: Vec<String>,
    /// The values of this column of --by become columns.
    #[arg(long, value_name = "COLUMN", requires = "by")]
    pub pivot: Option<String>,
}

impl GroupArgs {
    /// Whether any of them is given.
    pub fn is_given(&self) -> bool {
        !self.by.is_empty() || !self.stats.is_empty() || !self.ratio_to.is_empty()
    }
}

/// Which rows are wanted.
#[derive(Debug, Args)]
pub struct RowFilterArgs {
    /// Order by this column, rows without a value last: a column of `tasks`, or one of the result of --by. By default by
    /// task_index.
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// The greatest value first.
    #[arg(long)]
    pub descending: bool,
    /// Only rows that satisfy this condition; may be repeated. Also with !=, <, <=, > and >=. An empty value stands for
    /// none.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub only: Vec<String>,
    /// Leave out this number of rows before the first one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: usize,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// Copy only this table.
    #[arg(long, value_parser = tables())]
    pub table: Option<Table>,
    /// Add the components and parameters of the task to each row of the tables other than `tasks`.
    #[arg(long)]
    pub wide: bool,
    /// Only the labels, components, parameters and seeds that have several values, then what was measured; both in the
    /// order of `powersweep columns`. Columns without any value are left out.
    #[arg(long, conflicts_with = "wide")]
    pub tidy: bool,
    /// A new folder; with --table also a file whose name ends in .parquet, which is replaced once the new one is complete.
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The manifest of the rows: a file, or the name of a shipped one.
    pub manifest: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Continue although some rows occur twice, or tasks lack rows in a table.
    #[arg(long)]
    pub accept: bool,
    /// First rename a state that cannot be read.
    #[arg(long)]
    pub set_aside: bool,
    /// Take the data over from a coordinator that still seems to run.
    #[arg(long)]
    pub take_over: bool,
}

/// How a small table is written.
#[derive(Debug, Args)]
pub struct OutArgs {
    /// A table for people, or rows for programs.
    #[arg(long, value_enum, default_value = "table")]
    format: RowFormat,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write to this file instead of standard output. An incomplete file is never left behind.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutArgs {
    /// How the table is shown or written.
    pub fn format(&self) -> RowFormat {
        if self.json { RowFormat::Json } else { self.format }
    }
}
