//! The command lines of `compare`, `best`, `sql` and `verify`.

use clap::Args;
use powersweep_results::Table;

use super::tables::{OutArgs, column, tables};
use super::{LogArgs, TablesArgs};

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The first set of rows: an experiment, with conditions behind a colon, such as my-sweep:policy=easy,size_factor=1.
    #[arg(value_name = "A")]
    pub a: String,
    /// The second set of rows, in the same form.
    #[arg(value_name = "B")]
    pub b: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// `jobs` compares job by job. With one seed, its intervals come from a bootstrap of the weeks of a log. Columns of
    /// `accounts` are found without this option.
    #[arg(long, value_parser = tables(), default_value = "tasks")]
    pub table: Table,
    /// The compared columns of numbers; by default the usual metrics.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// A comparison for each combination of values of these columns. Workloads and signals have comparisons of their own in
    /// any case.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub by: Vec<String>,
    /// Pool the values of these columns, which are workloads or signals.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub pool: Vec<String>,
    /// Only rows of A and B that satisfy this condition; may be repeated.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub only: Vec<String>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, Args)]
pub struct BestArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// A metric of the table `tasks` or `accounts` whose mean is to be small. With several goals, the result is the Pareto
    /// front.
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub minimise: Vec<String>,
    /// A metric whose mean is to be great.
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub maximise: Vec<String>,
    /// A condition on the mean of a metric, or on a parameter, such as "bsld_mean <= 5"; may be repeated.
    #[arg(long, value_name = "CONDITION")]
    pub subject_to: Vec<String>,
    /// The columns that are to be chosen; by default all that vary, except the seed.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub by: Vec<String>,
    /// Only tasks that satisfy this condition; may be repeated.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub only: Vec<String>,
    /// With one goal: the best rows up to this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub top: usize,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, Args)]
pub struct SqlArgs {
    /// Name of the experiment.
    pub experiment: String,
    /// The query; without one, DuckDB's prompt opens.
    pub query: Option<String>,
    #[command(flatten)]
    pub from: TablesArgs,
    /// Print the statements that make the views, and run nothing.
    #[arg(long)]
    pub print: bool,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Name of the experiment, or an exported file of its tasks, such as out/tasks.parquet.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Number of tasks that run again.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub tasks: usize,
    /// Chooses the tasks: the same number chooses the same ones. By default from the clock.
    #[arg(long, value_name = "N")]
    pub sample_seed: Option<u64>,
    /// The manifest of the rows; by default the one in the files. Relative paths of logs start in its folder.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<String>,
}
