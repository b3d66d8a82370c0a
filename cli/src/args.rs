//! The command line: one declaration, from which `--help` follows.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::examples;
use crate::quantities::bytes;
pub use crate::worker_args::{TaskLimitArgs, WorkerArgs, WorkloadMemoryArgs};

mod tables;

pub use tables::{AdoptArgs, ExportArgs, ResultsArgs, RowFormat};

/// Parameter sweeps of power-aware cluster scheduling: a manifest becomes tasks, workers simulate them, rows land in
/// Parquet.
#[derive(Debug, Parser)]
#[command(name = "powersweep", version, max_term_width = 110, after_help = after_help())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print what happens inside; twice for more (also POWERSWEEP_LOG, a list such as powersweep=debug,warn).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

fn after_help() -> String {
    let codes: Vec<String> =
        crate::exit::TABLE.iter().map(|(exit, text)| format!("  {:>3}  {text}", *exit as u8)).collect();
    format!(
        "Start here:\n  powersweep run                 a synthetic sweep in seconds, results on the screen\n  \
         powersweep run etinski2010     a paper's whole sweep on real logs (needs POWERSWEEP_TRACES)\n  \
         powersweep check etinski2010   the paper's numbers beside ours\n  \
         powersweep plan etinski2010    what would run, and why\n\nExit codes:\n{}",
        codes.join("\n")
    )
}

/// The commands; one file each in `commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a sweep on this machine: coordinator and worker in one process. Interrupt it and run it again: it goes on.
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Compare a paper's published numbers and claims with ours, after running what is missing of its sweeps.
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// Show what a sweep would run: tasks per axis, what is done already, why one task would or would not run.
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Simulate one task and print its row; nothing is stored.
    #[command(after_help = examples::SIMULATE)]
    Simulate(SimulateArgs),
    /// Solve the linear programs of a manifest's heterogeneous systems: capacity, shares of least power, loads.
    #[command(after_help = examples::LP)]
    Lp(LpArgs),
    /// Run a coordinator for workers on other machines.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Run a worker for a coordinator.
    #[command(after_help = examples::WORKER)]
    Worker(WorkerArgs),
    /// Hand a manifest, and the logs it needs, to a running coordinator.
    #[command(after_help = examples::SUBMIT)]
    Submit(SubmitArgs),
    /// Show experiments, workers and failures: of the coordinator at --coordinator, else of the one that serves --data,
    /// else as stored in --data.
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Let the running tasks of an experiment finish and start no more, until `resume`.
    #[command(after_help = examples::PAUSE)]
    Pause(ControlArgs),
    /// Go on with a paused or cancelled experiment.
    #[command(after_help = examples::RESUME)]
    Resume(ControlArgs),
    /// Stop an experiment, running tasks too, until `resume` or the next submit. Finished rows are kept.
    #[command(after_help = examples::CANCEL)]
    Cancel(ControlArgs),
    /// Try tasks again that failed for good: all, or some.
    #[command(after_help = examples::RETRY)]
    Retry(RetryArgs),
    /// Set which experiment is served first.
    #[command(after_help = examples::PRIORITY)]
    Priority(PriorityArgs),
    /// Put all finished rows of an experiment into Parquet parts now.
    #[command(after_help = examples::FLUSH)]
    Flush(ControlArgs),
    /// Forget an experiment. Its rows stay in DATA, unless --data-too.
    #[command(after_help = examples::DELETE)]
    Delete(DeleteArgs),
    /// Show or write the rows of an experiment, also those that are in no Parquet file yet.
    #[command(after_help = examples::RESULTS)]
    Results(ResultsArgs),
    /// Copy an experiment's tables into one sorted Parquet file each.
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Rebuild the lost state of an experiment from the rows that are there.
    #[command(after_help = examples::ADOPT)]
    Adopt(AdoptArgs),
    /// Print the JSON Schema of manifests, for editors.
    #[command(after_help = examples::SCHEMA)]
    Schema,
    /// List the parts that a manifest can choose, with their parameters.
    #[command(after_help = examples::POLICIES)]
    Policies(PoliciesArgs),
    /// List the columns of the result tables.
    #[command(after_help = examples::COLUMNS)]
    Columns(ColumnsArgs),
    /// Look at a workload log.
    #[command(subcommand, after_help = examples::TRACE_INFO)]
    Trace(TraceCommand),
    /// Ask a coordinator whether it is healthy; for container health checks.
    #[command(after_help = examples::HEALTH)]
    Health(CoordinatorArgs),
}

/// Where manifests name logs, and where they are found.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Folder with workload logs; may be repeated. Logs are found by name, with or without .swf, .swf.gz, .swf.zst.
    #[arg(long = "traces", value_name = "DIR", env = "POWERSWEEP_TRACES", value_delimiter = ':')]
    pub traces: Vec<PathBuf>,
    /// Folder that keeps downloaded logs.
    #[arg(long, value_name = "DIR", env = "POWERSWEEP_CACHE")]
    pub cache: Option<PathBuf>,
    /// Most that this folder may take, such as 20GiB: beyond it the logs that were not used for longest are deleted.
    #[arg(long, value_name = "SIZE", env = "POWERSWEEP_CACHE_SIZE", value_parser = bytes)]
    pub cache_size: Option<u64>,
}

/// Where results and state live.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// Folder or object store (s3://, gs://, az://, with the cargo feature `cloud`) of results and state.
    #[arg(long, value_name = "URL", env = "POWERSWEEP_DATA", default_value = "./results/data")]
    pub data: String,
}

/// How to reach a coordinator.
#[derive(Debug, Clone, Args)]
pub struct CoordinatorArgs {
    /// Address of the coordinator; http://127.0.0.1:7450 by default.
    #[arg(long, value_name = "URL", env = "POWERSWEEP_COORDINATOR")]
    pub coordinator: Option<String>,
    /// File with the token that the coordinator asks for.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Let the token go unencrypted to another machine; only where the network is trusted.
    #[arg(long, env = "POWERSWEEP_INSECURE")]
    pub insecure: bool,
    /// File with the certificates to trust (PEM), for an https address.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_CA")]
    pub ca: Option<PathBuf>,
}

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// JSON for programs.
    Json,
}

/// `powersweep run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A manifest file, or the name of a shipped one (quickstart, etinski2010, lawson2005, ...).
    #[arg(default_value = "quickstart")]
    pub manifest: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Tasks simulated at once; 0 for one a processor.
    #[arg(long, short = 'j', default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub slots: u16,
    #[command(flatten)]
    pub memory: WorkloadMemoryArgs,
    /// If the experiment's rows were made by other versions of parts, logs or columns: set it aside as NAME@N, with its
    /// rows, and start anew. Changes nothing where they are the same.
    #[arg(long)]
    pub restart: bool,
    /// Address that other workers and `status` may use; the port is free by default.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Take the data over from a coordinator that seems alive.
    #[arg(long)]
    pub take_over: bool,
    /// Simulated rows shown at the end; 0 for none.
    #[arg(long, default_value_t = 24)]
    pub show: usize,
    /// No progress bar.
    #[arg(long)]
    pub quiet: bool,
}

/// `powersweep check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A paper, or a file with claims (.toml).
    #[arg(required_unless_present = "list")]
    pub paper: Option<String>,
    /// List the papers instead.
    #[arg(long, conflicts_with = "paper")]
    pub list: bool,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Tasks simulated at once; 0 for one a processor.
    #[arg(long, short = 'j', default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub slots: u16,
    #[command(flatten)]
    pub memory: WorkloadMemoryArgs,
    /// Only claims that must hold, and only the sweeps that they need.
    #[arg(long)]
    pub demanded: bool,
    /// No progress bar.
    #[arg(long)]
    pub quiet: bool,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// A manifest file, or the name of a shipped one.
    #[arg(default_value = "quickstart")]
    pub manifest: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    /// Explain one task: its parts, parameters, identity, and whether it would run. Looks at --data.
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep simulate`
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Take the task from this manifest (with --index).
    #[arg(requires = "index")]
    pub manifest: Option<String>,
    /// Index of the task in the manifest's sweep.
    #[arg(long, requires = "manifest")]
    pub index: Option<u64>,
    /// Set a part or a parameter, such as queue_order=sjf, gear_rule=bsld, bsld_threshold=2; may be repeated.
    #[arg(long = "set", short = 's', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Simulate this log (name, path or URL) instead of the synthetic workload; the same as -s source=swf -s log=LOG.
    #[arg(long)]
    pub log: Option<String>,
    /// Seed of generators.
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub limits: TaskLimitArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Write one row a job to this file (.parquet or .csv).
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Write one row a point of the series that the parts record to this file (.parquet or .csv).
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep lp`
#[derive(Debug, Args)]
pub struct LpArgs {
    /// A manifest file, or the name of a shipped one, with systems that have a rate for each class on each server. A
    /// system that changes is solved at each change, too.
    #[arg(default_value = "aldaoud2011")]
    pub manifest: String,
    /// Only the system of this task.
    #[arg(long, value_name = "INDEX")]
    pub index: Option<u64>,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Address to listen at. Anything but loopback needs --token-file, and TLS or --insecure.
    #[arg(long, default_value = "127.0.0.1:7450", env = "POWERSWEEP_LISTEN")]
    pub listen: SocketAddr,
    /// File with the token that clients must send, and workers too unless --worker-token-file is given; the variable
    /// POWERSWEEP_TOKEN can hold it instead.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the token that workers must send.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_WORKER_TOKEN_FILE")]
    pub worker_token_file: Option<PathBuf>,
    /// Certificate chain (PEM) to serve with TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "POWERSWEEP_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert", env = "POWERSWEEP_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Serve other machines without TLS; only where the network is trusted.
    #[arg(long, env = "POWERSWEEP_INSECURE")]
    pub insecure: bool,
    /// Take the data over from a coordinator that seems alive.
    #[arg(long)]
    pub take_over: bool,
}

/// `powersweep submit`
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// A manifest file, or the name of a shipped one.
    pub manifest: String,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub logs: LogArgs,
    /// Only say what would run.
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the sweep has ended. A pause is waited out; a cancellation or deletion ends the wait with code 11.
    #[arg(long)]
    pub wait: bool,
    /// Higher is served first, from -1000 to 1000; 0 for a new experiment, unchanged for another.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// If the experiment's rows were made by other versions of parts, logs or columns: set it aside as NAME@N, with its
    /// rows, and start anew. Changes nothing where they are the same.
    #[arg(long)]
    pub restart: bool,
}

/// Which experiment, and where its coordinator is.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// The experiment.
    pub experiment: String,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// `powersweep retry`
#[derive(Debug, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// Only this task; may be repeated.
    #[arg(long, value_name = "INDEX")]
    pub index: Vec<u64>,
    /// Only failures of this kind; may be repeated.
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<FailureKind>,
}

/// Why a task failed, as the `failures` table says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailureKind {
    /// The task cannot be simulated.
    Spec,
    /// The simulation panicked.
    Panic,
    /// It took longer than its deadline.
    Deadline,
    /// It took more events than allowed.
    Events,
    /// It took more memory than allowed.
    Memory,
    /// The kernel refused a decision of the policy.
    Policy,
    /// The log could not be fetched or read.
    Workload,
    /// The worker was lost while it ran the task.
    Crash,
}

/// `powersweep priority`
#[derive(Debug, Args)]
pub struct PriorityArgs {
    /// The experiment.
    pub experiment: String,
    /// Higher is served first, from -1000 to 1000. Experiments of one priority share the slots.
    #[arg(allow_negative_numbers = true)]
    pub priority: i32,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// `powersweep delete`
#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// Delete its rows (parts of every table) too. Nothing brings them back.
    #[arg(long)]
    pub data_too: bool,
    /// Also while it has tasks to run: they are stopped first.
    #[arg(long)]
    pub force: bool,
}

/// `powersweep status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// One experiment; all if not given.
    pub experiment: Option<String>,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    /// Look again and again until interrupted: redrawn on a terminal, elsewhere one line for each change.
    #[arg(long)]
    pub watch: bool,
    /// Failures listed for each experiment.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub failures: u32,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep policies`
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// Only this part.
    pub name: Option<String>,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep columns`
#[derive(Debug, Args)]
pub struct ColumnsArgs {
    /// Only this table (tasks, jobs, series, failures).
    pub table: Option<String>,
    /// Table or JSON.
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// `powersweep trace`
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    #[command(after_help = examples::TRACE_INFO)]
    /// What a log holds: header, jobs, span, sizes, run times, what is missing.
    Info {
        /// Name, path or URL of the log.
        log: String,
        /// SHA-256 of the file; needed for a URL.
        #[arg(long)]
        sha256: Option<String>,
        #[command(flatten)]
        logs: LogArgs,
        /// Table or JSON.
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
}
