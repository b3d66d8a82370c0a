//! The command line of `powersweep shard`.

use std::time::Duration;

use clap::Args;

use crate::args::LocalArgs;
use crate::quantities::{positive_time, time};

#[derive(Debug, Args)]
pub struct ShardArgs {
    /// A manifest file, or the name of a shipped one.
    pub manifest: String,
    /// Number of this shard, from 0. An element of an array job needs no --index: of Slurm, PBS, Flux, LSF, Grid Engine, AWS
    /// Batch, Nomad, HyperQueue or Kubernetes. LSF and Grid Engine count from 1: their first element is shard 0.
    #[arg(long, value_name = "I", env = "POWERSWEEP_INDEX")]
    pub index: Option<u32>,
    /// Number of shards. The first shard that starts fixes it.
    #[arg(long, value_name = "N")]
    pub of: u32,
    #[command(flatten)]
    pub local: LocalArgs,
    /// How long running tasks may continue after SIGTERM or Ctrl-C; unfinished tasks run again.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub drain_limit: Duration,
    /// End after this time, such as 3:55:00 in a batch job of four hours, with exit code 130 if tasks are left. The shard
    /// takes no task that cannot finish before.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub time_limit: Option<Duration>,
    /// Retry the tasks of this shard that failed for good.
    #[arg(long)]
    pub retry_failed: bool,
    /// Take the shard over from a process that still seems to run it.
    #[arg(long)]
    pub take_over: bool,
}
