//! Sharded experiments as commands show them: sums over the states of all shards.

use std::collections::BTreeMap;

use powersweep_coordinator::owner::OwnerRecord;
use powersweep_coordinator::plan;
use powersweep_coordinator::shards::{self, ShardError, ShardRecord, ShardState};
use powersweep_coordinator::store::Location;
use powersweep_experiments::plain::chain;
use powersweep_experiments::{Digest, Shard, Sweep};
use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::layout::shards_dir;
use serde_json::{Value as Json, json};

use crate::exit::{Failure, Kind, failure};
use crate::screen;

/// A sharded experiment and its shards.
pub struct ShardedStatus {
    /// The sum of the shards.
    pub experiment: v1::ExperimentStatus,
    /// The shards, in order.
    pub shards: Vec<ShardLine>,
}

/// One shard.
pub struct ShardLine {
    shard: Shard,
    state: &'static str,
    tasks: u64,
    done: u64,
    failed: u64,
    /// The process that runs it, or ran it and was lost.
    owner: Option<OwnerRecord>,
}

/// An error about shards with its exit code.
pub fn refused(error: &ShardError) -> Failure {
    let exit = match error {
        ShardError::Owner(powersweep_coordinator::owner::OwnerError::Held { .. }) => Kind::Owned,
        error if error.is_of_storage() => Kind::Storage,
        _ => Kind::Refused,
    };
    Failure::new(exit, chain(error))
}

/// The record of an experiment; `None` if it is not sharded.
pub async fn find(location: &Location, experiment: &str) -> Result<Option<ShardRecord>, Failure> {
    shards::find(location, experiment).await.map_err(|error| refused(&error))
}

/// The sharded experiments of this name, or all.
pub async fn all(location: &Location, request: &v1::StatusRequest) -> Result<Vec<ShardedStatus>, Failure> {
    let names = match request.experiment.as_str() {
        "" => shards::names(location).await.map_err(|error| refused(&error))?,
        name => vec![name.to_owned()],
    };
    let mut found = Vec::new();
    for name in names {
        if let Some(record) = find(location, &name).await? {
            found.push(status(location, &record, request).await?);
        }
    }
    Ok(found)
}

/// The states of the shards.
pub async fn states(location: &Location, record: &ShardRecord) -> Result<Vec<ShardState>, Failure> {
    shards::states(location, record).await.map_err(|error| refused(&error))
}

async fn status(
    location: &Location,
    record: &ShardRecord,
    request: &v1::StatusRequest,
) -> Result<ShardedStatus, Failure> {
    let sweep = sweep(location, record)?;
    let request = v1::StatusRequest { experiment: record.experiment.clone(), ..request.clone() };
    let mut sum = v1::ExperimentStatus { name: record.experiment.clone(), ..v1::ExperimentStatus::default() };
    let mut lines = Vec::new();
    for ShardState { shard, loaded, owner, .. } in states(location, record).await? {
        let found = plan::status(loaded, Some(shard), &request, "").experiments.into_iter().next();
        let lives = owner.as_ref().is_some_and(|owner| owner.alive != Some(false));
        let line = ShardLine {
            shard,
            state: state_of(found.as_ref(), lives),
            tasks: sweep.shard(shard).task_count(),
            done: found.as_ref().map_or(0, |found| found.done),
            failed: found.as_ref().map_or(0, |found| found.failed + found.quarantined),
            owner: owner.and_then(|owner| owner.record),
        };
        sum.tasks += line.tasks;
        if let Some(found) = found {
            add(&mut sum, found);
        }
        lines.push(line);
    }
    sum.failures.truncate(request.max_failures as usize);
    let (state, reason) = summary(&lines);
    sum.set_state(state);
    sum.reason = reason;
    Ok(ShardedStatus { experiment: sum, shards: lines })
}

/// The sweep of all shards.
fn sweep(location: &Location, record: &ShardRecord) -> Result<Sweep, Failure> {
    record.sweep().map_err(|reason| failure!(Storage, "the shards of {} in {location}: {reason}", record.experiment))
}

fn state_of(found: Option<&v1::ExperimentStatus>, lives: bool) -> &'static str {
    match found.map(v1::ExperimentStatus::state) {
        Some(ExperimentState::Finished) => "finished",
        Some(ExperimentState::Failed) => "failed",
        _ if lives => "running",
        Some(_) => "stopped",
        None => "not begun",
    }
}

fn add(sum: &mut v1::ExperimentStatus, found: v1::ExperimentStatus) {
    sum.owner = found.owner;
    // The files are the same in every shard.
    sum.ledgers = found.ledgers;
    sum.generation = sum.generation.max(found.generation);
    sum.done += found.done;
    sum.running += found.running;
    sum.failed += found.failed;
    sum.quarantined += found.quarantined;
    sum.extra += found.extra;
    sum.rows_in_parts += found.rows_in_parts;
    sum.rows_unpublished += found.rows_unpublished;
    sum.failures.extend(found.failures);
    sum.spent.get_or_insert_default().add(&found.spent.unwrap_or_default());
}

/// The state of the whole experiment, and why it does not go on.
fn summary(lines: &[ShardLine]) -> (ExperimentState, String) {
    let count = |state: &str| lines.iter().filter(|line| line.state == state).count() as u64;
    let open = lines.len() as u64 - count("finished") - count("failed");
    match (open, count("running"), count("failed")) {
        (0, _, 0) => (ExperimentState::Finished, String::new()),
        (0, _, failed) => (ExperimentState::Failed, format!("{} failed", screen::count(failed, "shard"))),
        (_, running, _) => {
            let waiting = ["not begun", "stopped"].map(|state| (count(state), state));
            let waiting =
                waiting.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
            let waiting = waiting.collect::<Vec<_>>().join(", ");
            let reason = format!("of {}, {}", screen::count(lines.len() as u64, "shard"), waiting);
            let state = if running > 0 { ExperimentState::Running } else { ExperimentState::Waiting };
            (state, if waiting.is_empty() { String::new() } else { reason })
        }
    }
}

/// The shards of an experiment as a table.
pub fn text(experiment: &str, shards: &[ShardLine]) -> String {
    let mut table = screen::table();
    table.set_header(["shard", "state", "tasks", "done", "failed", "host", "process"]);
    for line in shards {
        let (host, process) = line.owner.as_ref().map_or_else(Default::default, |owner| {
            (powersweep_proto::plain(&owner.host).into_owned(), owner.pid.to_string())
        });
        table.add_row([
            line.shard.index().to_string(),
            line.state.to_owned(),
            line.tasks.to_string(),
            line.done.to_string(),
            line.failed.to_string(),
            host,
            process,
        ]);
    }
    format!("\n{experiment}: {}\n{table}\n", screen::count(shards.len() as u64, "shard"))
}

/// The shards of an experiment for programs.
pub fn json(shards: &[ShardLine]) -> Json {
    let line = |line: &ShardLine| {
        json!({ "index": line.shard.index(), "of": line.shard.of(), "state": line.state, "tasks": line.tasks,
                "done": line.done, "failed": line.failed, "host": line.owner.as_ref().map(|owner| &owner.host),
                "process": line.owner.as_ref().map(|owner| owner.pid) })
    };
    shards.iter().map(line).collect()
}

/// The reply that submits of all shares would get together.
pub fn submission(
    location: &Location,
    record: &ShardRecord,
    states: Vec<ShardState>,
    given: &Sweep,
    digests: &BTreeMap<String, Digest>,
) -> Result<v1::SubmitReply, Failure> {
    record.check(given, digests, location).map_err(|error| refused(&error))?;
    let sweep = sweep(location, record)?;
    let mut sum = v1::SubmitReply { experiment: record.experiment.clone(), ..v1::SubmitReply::default() };
    let mut gaps: BTreeMap<String, u64> = BTreeMap::new();
    for ShardState { shard, loaded, .. } in states {
        let reply = plan::submission(loaded, Some(shard), &sweep, digests);
        let reply = reply.map_err(|reason| failure!(Refused, "{reason}"))?;
        sum.generation = sum.generation.max(reply.generation);
        sum.tasks += reply.tasks;
        sum.done += reply.done;
        sum.to_run += reply.to_run;
        sum.failed += reply.failed;
        for gap in reply.lacking {
            *gaps.entry(gap.table).or_default() += gap.tasks;
        }
    }
    sum.lacking = gaps.into_iter().map(|(table, tasks)| v1::TableGap { table, tasks }).collect();
    Ok(sum)
}

/// The refusal of a request that only a coordinator can answer.
pub fn takes_no_requests(location: &Location, record: &ShardRecord) -> Failure {
    let ShardRecord { experiment, of, .. } = record;
    let folder = shards_dir().join(experiment.as_str());
    failure!(
        Refused,
        "{experiment} runs in {of} shards, which take no requests. Stop and start their jobs in the batch system; \
         `powersweep shard --retry-failed` retries failed tasks. When no shard runs and all rows are published, delete \
         {folder} in {location} to end them: `powersweep adopt` then gives the rows to a coordinator, or delete \
         {experiment} there, too, to start again"
    )
}
