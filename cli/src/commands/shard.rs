//! `powersweep shard`: one of N parts of a sweep, without a coordinator between them.
//!
//! A shard is `run` with a state of its own and a share of the tasks. Shards publish into one dataset.

use std::time::Instant;

use powersweep::allocation::array_index;
use powersweep::run::{RunOptions, ShardOptions};
use powersweep_experiments::Shard;

use super::run;
use crate::args::ShardArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::inputs;

/// Runs the share of one shard.
pub fn run(args: &ShardArgs) -> Outcome {
    let Some(index) = args.index.or_else(array_index) else {
        return Err(failure!(
            Usage,
            "--index is missing, the number of this shard; only an element of an array job needs none"
        ));
    };
    let shard = Shard::new(index, args.of).ok_or_else(|| no_such_shard(index, args.of))?;
    let shard = ShardOptions {
        shard,
        began: Instant::now(),
        drain_limit: args.drain_limit,
        time_limit: args.time_limit,
        retry_failed: args.retry_failed,
    };
    let options = RunOptions { take_over: args.take_over, shard: Some(shard), ..RunOptions::default() };
    run::to_its_end((&args.manifest, inputs::manifest(&args.manifest)?), &args.local, options, 0).map(|_| Exit::Done)
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
