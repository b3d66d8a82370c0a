//! The command line: clap derives the parser and `--help` from these types.

use std::net::SocketAddr;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use powersweep::StatusOptions;

use crate::examples;

mod access;
mod answers;
mod artifact;
mod calibrate;
mod conformance;
mod control;
mod dashboard;
mod events;
mod find;
mod health;
mod import;
mod launch;
mod listings;
mod places;
mod plot;
mod report;
mod serve;
mod shard;
mod simulate;
mod tables;
mod timeline;
mod worker;

pub use access::{
    AccessAddArgs, AccessCommand, AccessExportArgs, AccessForm, AccessRevokeArgs, AccessRotateArgs, AccessShowArgs,
};
pub use answers::{BestArgs, CompareArgs, SensitivityArgs, SqlArgs, VerifyArgs};
pub use artifact::ArtifactArgs;
pub use calibrate::CalibrateArgs;
pub use conformance::ConformanceArgs;
pub use control::{ControlArgs, DeleteArgs, FlushArgs, PriorityArgs, RetryArgs, UpgradeArgs};
pub use dashboard::DashboardArgs;
pub use events::EventsArgs;
pub use find::FindArgs;
pub use health::{DoctorArgs, HealthArgs};
pub use import::ImportArgs;
pub use launch::{
    JobArgs, LaunchCommand, LaunchFolderArgs, LaunchLogArgs, LaunchStatusArgs, LaunchStopArgs, LaunchWorkersArgs,
    SiteCommand, SiteInitArgs,
};
pub use listings::{
    ColumnsArgs, ConfigCommand, HelpArgs, ManArgs, OutputArgs, PoliciesArgs, ShowConfigArgs, TraceCommand,
};
pub use places::{CoordinatorArgs, DataArgs, LocalArgs, LogArgs};
pub use plot::PlotArgs;
pub use report::{ReportArgs, ReproduceArgs};
pub use serve::{LISTEN, ServeArgs};
pub use shard::ShardArgs;
pub use simulate::SimulateArgs;
pub use tables::{AdoptArgs, ExportArgs, OutArgs, ResultsArgs, RowFormat, TablesArgs};
pub use timeline::{TimelineArgs, TimelineFormat};
pub use worker::{SLOTS_MAX, SlotsArgs, TaskLimitArgs, WorkerArgs};

/// Parameter sweeps of power-aware cluster scheduling: a manifest becomes tasks, workers simulate the tasks, and their
/// rows are written to Parquet files.
#[derive(Debug, Parser)]
#[command(name = "powersweep", version, max_term_width = 110, after_help = after_help(), disable_help_subcommand = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Print log messages; -vv prints more. POWERSWEEP_LOG sets the levels by target, such as powersweep=debug,warn.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Form of log messages and notes on standard error; json writes one object a line, but for errors of the command line.
    #[arg(long, global = true, value_enum, default_value = "text", env = "POWERSWEEP_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Colour messages: by default (auto) on a terminal, unless NO_COLOR is set; CLICOLOR_FORCE colours everywhere.
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub color: Option<ColorChoice>,
}

/// The form of log messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// JSON objects for programs.
    Json,
}

fn after_help() -> String {
    let codes: Vec<String> =
        crate::exit::TABLE.iter().map(|(exit, text)| format!("  {:>3}  {text}", exit.code())).collect();
    format!(
        "Start here:\n  powersweep run                 a synthetic sweep in seconds, with its results\n  \
         powersweep run etinski2010     a paper's whole sweep on real logs (needs POWERSWEEP_TRACES)\n  \
         powersweep check etinski2010   the paper's numbers beside the results\n  \
         powersweep plan etinski2010    the tasks that would run, and why\n\nExit codes:\n{}",
        codes.join("\n")
    )
}

/// The commands; one file each in `commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a sweep on this machine: coordinator and worker in one process. After an interruption, run it again to
    /// continue.
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Run one of N parts of a sweep where no coordinator may run, such as in a job array. Its rows go to the dataset of
    /// all parts.
    ///
    /// Each shard has its own share of the tasks and its own state in --data. After a kill, the same command continues.
    /// The number of shards and the manifest of an experiment cannot change, and no coordinator can run its tasks.
    #[command(after_help = examples::SHARD)]
    Shard(ShardArgs),
    /// Run the missing tasks of a paper's sweeps, then compare the published numbers and claims with the results.
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// Show the tasks that a sweep would run: values of each axis, done tasks; with --index, why one task would run.
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Test a policy from outside, a WebAssembly module or a formula, on random workloads and on logs.
    #[command(after_help = examples::CONFORMANCE)]
    Conformance(ConformanceArgs),
    /// Simulate one task and print its row, without storing it.
    #[command(after_help = examples::SIMULATE)]
    Simulate(SimulateArgs),
    /// Solve the linear programs of a manifest's heterogeneous systems: capacity, shares with the least power, loads.
    #[command(after_help = examples::LP)]
    Lp(LpArgs),
    /// Run a coordinator, which leases tasks to workers on this machine or others.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Run a worker, which runs tasks for a coordinator.
    #[command(after_help = examples::WORKER)]
    Worker(WorkerArgs),
    /// Submit a manifest, and the logs that it needs, to a running coordinator.
    #[command(after_help = examples::SUBMIT)]
    Submit(SubmitArgs),
    /// Show experiments, workers and failures. Asks the coordinator at --coordinator, else the one that serves --data.
    /// Where there is no data, asks the coordinator of the user's own access file, as `worker` and `submit` do. If none
    /// runs, reads the stored state in --data.
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Show experiments, failures and workers in the browser, on this machine only.
    #[command(after_help = examples::DASHBOARD)]
    Dashboard(DashboardArgs),
    /// Pause an experiment until `resume`: running tasks finish, no other task starts.
    #[command(after_help = examples::PAUSE)]
    Pause(ControlArgs),
    /// Continue a paused or cancelled experiment.
    #[command(after_help = examples::RESUME)]
    Resume(ControlArgs),
    /// Stop an experiment and its running tasks until `resume` or the next submit. Rows of finished tasks are kept.
    #[command(after_help = examples::CANCEL)]
    Cancel(ControlArgs),
    /// Retry the tasks that failed for good: all of them, or only the given indices or kinds of failure.
    #[command(after_help = examples::RETRY)]
    Retry(RetryArgs),
    /// Set the priority of an experiment.
    #[command(after_help = examples::PRIORITY)]
    Priority(PriorityArgs),
    /// Publish all acknowledged rows of an experiment as Parquet files now.
    #[command(after_help = examples::FLUSH)]
    Flush(FlushArgs),
    /// Delete the rows of values that left the manifest.
    ///
    /// After an edit of the manifest, such rows are in DATA/NAME@left, and come back without simulation when the values
    /// do.
    #[command(after_help = examples::PRUNE)]
    Prune(ControlArgs),
    /// Delete an experiment's state. Its rows stay as Parquet files, unless --data-too is given.
    #[command(after_help = examples::DELETE)]
    Delete(DeleteArgs),
    /// Before an update of powersweep: let running tasks finish, publish all rows, and end the coordinator.
    ///
    /// A version with other columns cannot read unpublished rows of its predecessor. Workers wait for the next
    /// coordinator.
    #[command(after_help = examples::PREPARE_UPGRADE)]
    PrepareUpgrade(UpgradeArgs),
    /// Show or write the rows of an experiment, including unpublished rows.
    ///
    /// Reads the data of --data. Asks a coordinator instead if there is no such data, or if the command line has
    /// --coordinator or --access and no --data: the coordinator that `status` asks.
    #[command(after_help = examples::RESULTS)]
    Results(ResultsArgs),
    /// Compare two sets of rows pair by pair: differences and ratios with their intervals.
    ///
    /// Rows with the same workload, machine and seed simulate the same jobs, so that the interval of their difference is
    /// narrow. With one pair of tasks there is no interval: use more seeds, or --table jobs.
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// Find the parameters with the best mean of a metric under conditions, or the Pareto front of several metrics.
    #[command(after_help = examples::BEST)]
    Best(BestArgs),
    /// Show how much each parameter moves a metric: elementary effects of a Morris design, shares of variance of a design of
    /// Saltelli or of a grid.
    ///
    /// Tasks that failed are named, and no value is put in their place: an index that they touch is bounded.
    #[command(after_help = examples::SENSITIVITY)]
    Sensitivity(SensitivityArgs),
    /// Search a parameter's values for the best ones under conditions: runs only the tasks that the search needs.
    ///
    /// If the goal is a searched parameter, feasibility must be monotone in it, and bisection finds the best value; a
    /// contradiction is reported. If the goal is a metric, all candidates run with few seeds and the best quarter with
    /// four times as many, until some have run with all. Each combination of other axes has an answer of its own. The same command
    /// continues after an interruption. Exit code 1: no candidate satisfies the conditions.
    #[command(after_help = examples::FIND)]
    Find(Box<FindArgs>),
    /// Simulate some finished tasks again and compare their rows, bit for bit. Of an artifact, also all digests and claims.
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Open DuckDB, which must be on the PATH, with a view for each table of an experiment that has rows.
    ///
    /// The views have unpublished rows, too, as they are at the start.
    #[command(after_help = examples::SQL)]
    Sql(SqlArgs),
    /// Copy each table of an experiment into one Parquet file, sorted by task.
    ///
    /// Reads the data of --data. Asks a coordinator instead if there is no such data, or if the command line has
    /// --coordinator or --access and no --data: the coordinator that `status` asks.
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Write one ZIP file with everything that a reviewer needs: rows, manifests, digests, claims, figures, a description.
    ///
    /// `verify FILE.zip` checks it on a machine without a network and without the source. Equal rows give equal bytes.
    #[command(after_help = examples::ARTIFACT)]
    Artifact(ArtifactArgs),
    /// Write the dashboard's pages of an experiment into one HTML file, which needs no server and no network.
    ///
    /// Reads the data of --data, or asks a coordinator, as `results` does.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Run the missing tasks of whole papers, and write a page with their figures, tables and claims beside the results.
    #[command(after_help = examples::REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// Draw a figure of an experiment for a paper: SVG, PNG, PDF, HTML, the Vega-Lite spec or the rows that are drawn.
    ///
    /// Means are over seeds, with 95% confidence intervals of Student's t. Reads the data of --data, or asks a
    /// coordinator, as `results` does. Needs the cargo feature `figures`, which released binaries and the image have.
    #[command(after_help = examples::PLOT)]
    Plot(Box<PlotArgs>),
    /// Write when each task ran on which slot of which worker, as a trace for ui.perfetto.dev or chrome://tracing.
    ///
    /// Reads the data of --data, or asks a coordinator, as `results` does.
    #[command(after_help = examples::TIMELINE)]
    Timeline(TimelineArgs),
    /// Write what happened to an experiment, one JSON object a line: finished tasks, failed attempts, published parts;
    /// with --follow also states and workers, until the experiment ends.
    ///
    /// Tasks, attempts and parts come from the tables, so none of them is missed. Workers and states come from the
    /// coordinator's status, once a second: what begins and ends between two looks is not seen.
    #[command(after_help = examples::EVENTS)]
    Events(EventsArgs),
    /// Rebuild the lost state of an experiment from its published rows.
    #[command(after_help = examples::ADOPT)]
    Adopt(AdoptArgs),
    /// Print the JSON Schema of manifests, for editors.
    #[command(after_help = examples::SCHEMA)]
    Schema,
    /// List the components that a manifest can choose, or explain the parameters of one.
    #[command(after_help = examples::POLICIES)]
    Policies(PoliciesArgs),
    /// List the columns of the result tables. Needs neither data nor a coordinator.
    #[command(after_help = examples::COLUMNS)]
    Columns(ColumnsArgs),
    /// Show facts about a workload log.
    #[command(subcommand, after_help = examples::TRACE_INFO)]
    Trace(TraceCommand),
    /// Read a job log of a real system, such as a dump of Slurm's accounting, as a log in the Standard Workload Format.
    ///
    /// Each row is kept, or dropped by a rule. A ledger counts rows and changes by rule, and is in the header of the log, too.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Compare a log with a meter, and fit the watts of the machine.
    ///
    /// Jobs run as they were recorded: nothing is scheduled. In each step of the meter, jobs, idle processors and losses are
    /// compared with it. Values that are not stated are fitted by least squares.
    #[command(after_help = examples::CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Show the defaults of options. They can be set in ./powersweep.toml, in ~/.config/powersweep/config.toml and in
    /// /etc/powersweep/config.toml.
    #[command(subcommand, after_help = examples::CONFIG)]
    Config(ConfigCommand),
    /// Print a script that completes commands and options in a shell.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder.
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
    /// Show the help of a command, or a page of the guide. Without a word: all commands and pages.
    #[command(after_help = examples::HELP)]
    Help(HelpArgs),
    /// Check that a coordinator answers and that its storage works; for health checks of containers.
    #[command(after_help = examples::HEALTH)]
    Health(HealthArgs),
    /// Check the data, its storage and the coordinator from this machine, and say what to do.
    ///
    /// Tries what a coordinator needs of --data, if there is any, and each address of the access files that are found. Ends
    /// with the code of the first check that failed; a warning is no failure.
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Place workers in jobs of a batch system while tasks wait.
    #[command(subcommand, after_help = examples::LAUNCH)]
    Launch(LaunchCommand),
    /// Write a site file: what a cluster demands of jobs.
    #[command(subcommand, after_help = examples::SITE_INIT)]
    Site(SiteCommand),
    /// Show, replace or hand on the access files, which clients and workers need.
    #[command(subcommand, after_help = examples::ACCESS)]
    Access(AccessCommand),
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A manifest file, the name of a shipped one (quickstart, etinski2010, lawson2005, ...), or - for standard input.
    #[arg(default_value = "quickstart")]
    pub manifest: String,
    #[command(flatten)]
    pub local: LocalArgs,
    /// Start without rows: an existing experiment and its rows are renamed to NAME@N.
    #[arg(long)]
    pub restart: bool,
    /// Change the experiment although another user submitted it.
    #[arg(long)]
    pub replace: bool,
    /// Address to listen on, for `status` and more workers; a free port by default.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Take the data over from a coordinator that still seems to run.
    #[arg(long)]
    pub take_over: bool,
    /// Number of rows shown at the end; by default 24, none with --quiet.
    #[arg(long)]
    pub show: Option<usize>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The name of a paper (see --list), or a file with claims (.toml).
    #[arg(required_unless_present = "list")]
    pub paper: Option<String>,
    /// List the papers.
    #[arg(long, conflicts_with = "paper")]
    pub list: bool,
    #[command(flatten)]
    pub local: LocalArgs,
    /// Check only demanded claims, and run only the sweeps that these claims need.
    #[arg(long)]
    pub demanded: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// A manifest file, the name of a shipped one, or - for standard input.
    #[arg(default_value = "quickstart")]
    pub manifest: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    /// Explain one task: its components, parameters and identity, and why it would or would not run. Reads --data, not
    /// --coordinator.
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct LpArgs {
    /// A manifest file, or the name of a shipped one, whose systems have a rate for each class on each server. A system
    /// that changes over time is solved at the start and at each change.
    #[arg(default_value = "aldaoud2011")]
    pub manifest: String,
    /// Solve only the system of this task.
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// A manifest file, the name of a shipped one, or - for standard input.
    pub manifest: String,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Show the tasks that would run, and submit nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the sweep has ended, also during a pause. A cancellation or deletion ends the wait with exit code 11.
    #[arg(long)]
    pub wait: bool,
    /// Priority from -1000 to 1000; a higher one is served first. By default 0 for a new experiment, else unchanged.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Start without rows: an existing experiment and its rows are renamed to NAME@N.
    #[arg(long)]
    pub restart: bool,
    /// Change the experiment although another user submitted it, or although the manifest shares no task with it.
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show one experiment; all by default.
    pub experiment: Option<String>,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    /// Refresh until interrupted: redraws a terminal, elsewhere writes one line for each change.
    #[arg(long)]
    pub watch: bool,
    /// Number of failures listed for each experiment.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub failures: u32,
    /// Also what happened to the rows of job logs and signals: kept, dropped, changed and added ones, by rule.
    #[arg(long)]
    pub ledgers: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl StatusArgs {
    /// The options of the status in the library.
    pub fn options(&self) -> StatusOptions {
        let StatusArgs { failures, ledgers, .. } = *self;
        StatusOptions { experiment: self.experiment.clone(), failures, ledgers, ..StatusOptions::default() }
    }
}
