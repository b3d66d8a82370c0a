//! `powersweep shard`: one of N parts of a sweep, without a coordinator between them.
//!
//! A shard is `run` with a state of its own and a share of the tasks. Shards publish into one dataset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use powersweep_coordinator::owner;
use powersweep_coordinator::shards;
use powersweep_coordinator::store::Location;
use powersweep_experiments::{Digest, Shard, Sweep};

use super::run;
use crate::args::{RunArgs, ShardArgs};
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::{client, shard_status};

/// Part of the time limit, as 1 in N, in which the shard publishes its rows after its last task; and its bounds.
const END_SHARE: u32 = 20;
const END_MIN: Duration = Duration::from_secs(3);
const END_MAX: Duration = Duration::from_secs(60);

/// Runs the share of one shard.
pub fn run(args: &ShardArgs) -> Outcome {
    let Some(index) = args.index else {
        return Err(failure!(
            Usage,
            "--index is missing, the number of this shard; only a job of a Slurm array needs none"
        ));
    };
    let shard = Shard::new(index, args.of).ok_or_else(|| no_such_shard(index, args.of))?;
    let sharded = Sharded {
        shard,
        began: Instant::now(),
        drain_limit: args.drain_limit,
        time_limit: args.time_limit,
        retry_failed: args.retry_failed,
    };
    run::share_to_its_end(&run_args(args), Some(sharded)).map(|_| Exit::Done)
}

fn no_such_shard(index: u32, of: u32) -> Failure {
    match of {
        0 => failure!(Usage, "--of 0: there must be a shard"),
        _ if of > Shard::MAX => failure!(Usage, "--of {of}: an experiment has at most {} shards", Shard::MAX),
        _ => failure!(
            Usage,
            "--index {index} --of {of}: the shards have the numbers 0 to {last}, such as of `sbatch --array=0-{last}`",
            last = of - 1
        ),
    }
}

fn run_args(args: &ShardArgs) -> RunArgs {
    RunArgs {
        manifest: args.manifest.clone(),
        local: args.local.clone(),
        restart: false,
        replace: false,
        listen: ([127, 0, 0, 1], 0).into(),
        take_over: args.take_over,
        show: 0,
        step: None,
    }
}

/// How a shard differs from `run`.
#[derive(Debug, Clone, Copy)]
pub struct Sharded {
    pub shard: Shard,
    pub began: Instant,
    pub drain_limit: Duration,
    pub time_limit: Option<Duration>,
    pub retry_failed: bool,
}

impl Sharded {
    /// Compares this shard with the others, and returns the sweep of all of them.
    pub fn pinned(
        &self,
        location: &Location,
        sweep: &Sweep,
        digests: &BTreeMap<String, Digest>,
    ) -> Result<Sweep, Failure> {
        let pinned = client::block_on(async {
            let pinned = shards::pin(location, sweep, digests, self.shard.of()).await;
            pinned.map_err(|error| shard_status::refused(&error))
        })?;
        // The texts may differ in comments; each shard's state has the pinned text.
        pinned.sweep().map_err(|reason| failure!(Refused, "{reason}"))
    }

    /// Time until the worker must have stopped.
    pub fn worker_limit(&self) -> Option<Duration> {
        let limit = self.time_limit?;
        let ending = (limit / END_SHARE).clamp(END_MIN, END_MAX);
        Some(limit.saturating_sub(ending + self.began.elapsed()))
    }

    /// Explains that another process runs the shard.
    pub async fn owned(&self, mut failure: Failure, location: &Location, experiment: &str) -> Failure {
        if failure.kind == Kind::Owned {
            let owner = owner::look(&location.shard(experiment, self.shard)).await.ok().flatten();
            let record = owner.and_then(|owner| owner.record);
            let by = record.map_or_else(String::new, |owner| format!(" in process {} on {}", owner.pid, owner.host));
            failure.message = format!(
                "{experiment}: shard {} runs already{by}. If that process is certainly lost, --take-over takes its place",
                self.shard
            );
        }
        failure
    }
}
