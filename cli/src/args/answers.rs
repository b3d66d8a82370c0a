//! The command lines of `compare`, `best`, `sensitivity`, `sql` and `verify`.

use std::path::PathBuf;

use clap::Args;
use powersweep_results::Table;

use super::tables::{OutArgs, column, tables};
use super::{LogArgs, TablesArgs};

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The first set of rows: an experiment, with conditions behind a colon, such as my-sweep:wq_threshold=0,bsld_threshold=2.
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
    /// Compare the sets once more with shaken input: each submit moves by at most this time (s), earlier or later, differently
    /// for each of ten seeds. The tasks run first, as the experiment NAME-shaken.
    #[arg(long, value_name = "SECONDS")]
    pub shaken: Option<f64>,
    #[command(flatten)]
    pub logs: LogArgs,
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
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub minimise: Vec<String>,
    /// A metric whose mean is to be great.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub maximise: Vec<String>,
    /// A condition on the mean of a metric, or on a parameter, such as "bsld_mean <= 5", or on the share of seeds, such as
    /// "P(wait_s_mean <= 3600) >= 0.95"; may be repeated.
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
    /// With several goals: the reference point of the hypervolume, a value for each goal of --minimise, then of --maximise; by
    /// default the worst value of each goal over all combinations.
    #[arg(long, value_name = "VALUE,...", value_delimiter = ',', allow_negative_numbers = true)]
    pub reference: Vec<f64>,
    #[command(flatten)]
    pub out: OutArgs,
}

#[derive(Debug, Args)]
pub struct SensitivityArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// The metrics of the table `tasks` or `accounts`.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column, required = true)]
    pub of: Vec<String>,
    /// The design of the manifest, of the kind morris or saltelli. By default the only one of these kinds; a manifest without
    /// designs has shares of its grid.
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Indices for each combination of values of these columns. By default those of a design are for each combination of all
    /// columns that vary beside it.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = column)]
    pub by: Vec<String>,
    /// Only rows that satisfy this condition; may be repeated.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub only: Vec<String>,
    /// The least and the greatest value that a metric may have at a point that failed; by default those of the other points.
    #[arg(long = "range", value_name = "COLUMN=LOW..HIGH", value_parser = metric_range)]
    pub ranges: Vec<(String, f64, f64)>,
    #[command(flatten)]
    pub out: OutArgs,
}

/// A column with the range of its values, such as bsld_mean=1..500.
fn metric_range(text: &str) -> Result<(String, f64, f64), String> {
    let parts = text.split_once('=').and_then(|(name, range)| {
        let (low, high) = range.split_once("..")?;
        Some((name.trim().to_owned(), low.trim().parse::<f64>().ok()?, high.trim().parse::<f64>().ok()?))
    });
    match parts {
        Some((name, low, high)) if low <= high && low.is_finite() && high.is_finite() => Ok((name, low, high)),
        _ => Err("a range is a column and two numbers, such as bsld_mean=1..500".to_owned()),
    }
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
    /// Name of the experiment, or an exported file of its tasks, such as out/tasks.parquet, or an artifact, such as study.zip
    /// or its unpacked folder.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Number of tasks that run again; of an artifact, of each experiment.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub tasks: usize,
    /// Chooses the tasks: the same number chooses the same ones. By default from the clock.
    #[arg(long, value_name = "N")]
    pub sample_seed: Option<u64>,
    /// The manifest of the rows; by default the one in the files. Relative paths of logs start in its folder.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<String>,
    /// Draw the figures and tables of an artifact into this folder, and compare them with its own.
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
}
