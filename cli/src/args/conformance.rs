//! The command line of `conformance`.

use clap::Args;

use super::{LogArgs, OutputArgs};

#[derive(Debug, Args)]
pub struct ConformanceArgs {
    /// A WebAssembly module that chooses the jobs that start.
    #[arg(long, value_name = "FILE", group = "policy")]
    pub module: Option<String>,
    /// An expression that orders the queue.
    #[arg(long, value_name = "EXPRESSION", group = "policy")]
    pub formula: Option<String>,
    /// Number of random workloads.
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub workloads: u64,
    /// A log on which the policy is tested, too; may be given several times.
    #[arg(long = "log", value_name = "LOG")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
