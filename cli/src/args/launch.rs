//! The command lines of `powersweep launch` and `powersweep site`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use powersweep::Place;
use powersweep::launcher::Folder;

use crate::args::{CoordinatorArgs, DataArgs, OutputArgs};
use crate::examples;
use crate::exit::Failure;
use crate::quantities::{positive_time, time};

#[derive(Debug, Subcommand)]
pub enum LaunchCommand {
    /// Place workers in jobs of Slurm while tasks wait.
    ///
    /// Runs until it is interrupted, and then leaves its jobs to themselves: a worker ends when it has had no task for
    /// --idle-limit, or shortly before its job ends. The next start continues from the same folder.
    #[command(after_help = examples::LAUNCH_SLURM)]
    Slurm(Box<LaunchWorkersArgs>),
    /// Place workers in jobs of OpenPBS or PBS Professional while tasks wait.
    ///
    /// Runs until it is interrupted, and then leaves its jobs to themselves, as `launch slurm` does. An allocation has one node.
    #[command(after_help = examples::LAUNCH_PBS)]
    Pbs(Box<LaunchWorkersArgs>),
    /// Show the allocations of a launcher and why it does or does not ask for more.
    #[command(after_help = examples::LAUNCH_STATUS)]
    Status(LaunchStatusArgs),
    /// Print the script and the output of an allocation; without a name, list the kept ones.
    #[command(after_help = examples::LAUNCH_LOG)]
    Log(LaunchLogArgs),
    /// End a launcher and cancel its allocations that wait in the queue. Running workers go on.
    #[command(after_help = examples::LAUNCH_STOP)]
    Stop(LaunchStopArgs),
}

/// The folder of a launcher.
#[derive(Debug, Clone, Args)]
pub struct LaunchFolderArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Folder of the launcher's state, scripts and outputs, on a file system of the nodes; by default .powersweep/launch
    /// in a data folder, else powersweep-launch in the present folder.
    #[arg(long, value_name = "DIR", env = "POWERSWEEP_LAUNCH")]
    pub folder: Option<PathBuf>,
}

impl LaunchFolderArgs {
    /// The folder of the launcher.
    pub fn folder(&self) -> Result<Folder, Failure> {
        Folder::of(self.folder.as_deref(), &self.data.location()?)
    }
}

/// What jobs ask for.
#[derive(Debug, Clone, Args)]
pub struct JobArgs {
    /// Site file with the options of a cluster: [slurm], from `powersweep site init`, or [pbs]; by default
    /// ~/.config/powersweep/site.toml, else /etc/powersweep/site.toml.
    #[arg(long, value_name = "FILE", env = "POWERSWEEP_SITE")]
    pub site: Option<PathBuf>,
    /// Partition of the jobs; under PBS, their queue.
    #[arg(long, visible_alias = "queue")]
    pub partition: Option<String>,
    /// Account that pays.
    #[arg(long)]
    pub account: Option<String>,
    /// Quality of service, of Slurm.
    #[arg(long)]
    pub qos: Option<String>,
    /// Features that nodes must have; under PBS, further resources of a node, such as cpu_type=milan.
    #[arg(long)]
    pub constraint: Option<String>,
    /// Time limit of an allocation as the batch system writes it, such as 4:00:00.
    #[arg(long, value_name = "LIMIT")]
    pub time: Option<String>,
    /// Processors of an allocation on each node; one slot for each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub cpus: Option<u16>,
    /// Memory of an allocation on each node as the batch system writes it, such as 16G, or 16gb under PBS.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Nodes of one allocation; under PBS, 1.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub nodes: u64,
    /// Another option of sbatch or qsub, such as --option=--hint=nomultithread; may be repeated.
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
    /// The program `powersweep` as the nodes see it; by default the path of this program.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct LaunchWorkersArgs {
    #[command(flatten)]
    pub folder: LaunchFolderArgs,
    /// Folder with client.json and worker.json of the coordinator; by default the access folder of --data.
    #[arg(long, value_name = "DIR", env = "POWERSWEEP_ACCESS")]
    pub access: Option<PathBuf>,
    /// Allow unencrypted connections, to a coordinator that was started with --insecure; only for trusted networks.
    #[arg(long, env = "POWERSWEEP_INSECURE")]
    pub insecure: bool,
    #[command(flatten)]
    pub job: JobArgs,
    /// Most nodes at a time, of waiting and running allocations together; 1 by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_nodes: Option<u64>,
    /// Most allocations that wait in the queue at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub backlog: u64,
    /// A worker ends after this time without tasks and without rows to hand in.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = positive_time)]
    pub idle_limit: Duration,
    /// How long running tasks may continue when an allocation is about to end.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub drain_limit: Duration,
    /// Ask for no allocation for work that the connected slots finish within this time.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    pub patience: Duration,
    /// Least time between two queries of the queue. Sites ask for at least two minutes.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = positive_time)]
    pub poll: Duration,
    /// End after this time without a task that waits or runs and without an allocation; no limit by default.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until_idle: Option<Duration>,
    /// Another argument for the workers, such as --worker=--traces=/logs; may be repeated.
    #[arg(long = "worker", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub worker: Vec<String>,
    /// Run the coordinator, too, in a job of Slurm of one processor that hands over to its successor before its time ends. The job
    /// ends when no task has waited for --until-idle, 15 minutes by default.
    #[arg(long)]
    pub coordinator: bool,
    /// Forget excluded nodes and pauses after failures, once their reason is mended.
    #[arg(long)]
    pub forget_failures: bool,
    /// Print the script and the time that a worker can use, let Slurm test the script, and submit nothing. PBS tests no scripts.
    #[arg(long, conflicts_with = "check")]
    pub dry_run: bool,
    /// Run `powersweep doctor` in a job of one minute, and show what it found on a node.
    #[arg(long, conflicts_with = "coordinator")]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct LaunchStatusArgs {
    #[command(flatten)]
    pub folder: LaunchFolderArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct LaunchLogArgs {
    /// Name of the allocation, such as 4711_3.
    pub allocation: Option<String>,
    #[command(flatten)]
    pub folder: LaunchFolderArgs,
}

#[derive(Debug, Args)]
pub struct LaunchStopArgs {
    #[command(flatten)]
    pub folder: LaunchFolderArgs,
    /// Ask running workers to end, too: they finish or hand back their tasks.
    #[arg(long)]
    pub workers: bool,
    /// End a coordinator that runs in the launcher's job, too: it serves nobody any more. Without this option, the launcher of
    /// such a job is not ended.
    #[arg(long)]
    pub with_coordinator: bool,
}

impl LaunchWorkersArgs {
    /// The coordinator of the workers.
    pub fn place(&self) -> Result<Place, Failure> {
        let coordinator = CoordinatorArgs { coordinator: None, access: self.access.clone(), insecure: self.insecure };
        coordinator.place(&self.folder.data)
    }
}

#[derive(Debug, Subcommand)]
pub enum SiteCommand {
    /// Write a site file from what Slurm says about its partitions and limits.
    #[command(after_help = examples::SITE_INIT)]
    Init(SiteInitArgs),
}

#[derive(Debug, Args)]
pub struct SiteInitArgs {
    /// The partition; by default the default partition of the cluster.
    #[arg(long)]
    pub partition: Option<String>,
    /// Write to this new file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
