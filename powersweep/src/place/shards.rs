//! Sharded experiments: sums over the states of all shards.

use std::collections::BTreeMap;

use powersweep_coordinator::owner::OwnerRecord;
use powersweep_coordinator::plan;
use powersweep_coordinator::shards::{self, ShardError, ShardRecord, ShardState};
use powersweep_coordinator::store::Location;
use powersweep_dataset::words::count as counted;
use powersweep_dataset::{Error, Kind, failure};
use powersweep_experiments::plain::chain;
use powersweep_experiments::{Digest, Shard, Sweep};
use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::layout::shards_dir;

/// A sharded experiment and its shards.
#[derive(Debug)]
pub struct ShardedStatus {
    /// The sum of the shards.
    pub experiment: v1::ExperimentStatus,
    /// The shards, in order.
    pub shards: Vec<ShardStatus>,
}

/// The status of one shard.
#[derive(Debug)]
pub struct ShardStatus {
    /// Its number.
    pub shard: Shard,
    /// `not begun`, `running`, `stopped`, `finished` or `failed`.
    pub state: &'static str,
    /// Tasks of its share.
    pub tasks: u64,
    /// Tasks with a row.
    pub done: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// The process that runs it, or ran it and was lost.
    pub owner: Option<OwnerRecord>,
}

/// An error about shards with its kind.
pub fn refused(error: &ShardError) -> Error {
    let kind = match error {
        ShardError::Owner(powersweep_coordinator::owner::OwnerError::Held { .. }) => Kind::Owned,
        error if error.is_of_storage() => Kind::Storage,
        _ => Kind::Refused,
    };
    Error::new(kind, chain(error))
}

/// The record of an experiment; `None` if it is not sharded.
pub async fn find(location: &Location, experiment: &str) -> Result<Option<ShardRecord>, Error> {
    shards::find(location, experiment).await.map_err(|error| refused(&error))
}

/// The status of every sharded experiment. Damage of one experiment is its reason, in the state `unknown`.
pub async fn all(location: &Location, request: &v1::StatusRequest) -> Result<Vec<ShardedStatus>, Error> {
    let mut all = Vec::new();
    for name in names(location).await? {
        let read = async {
            match find(location, &name).await? {
                Some(record) => status(location, &record, request).await.map(Some),
                None => Ok(None),
            }
        };
        all.extend(read.await.unwrap_or_else(|error| Some(unknown(name.clone(), &error))));
    }
    Ok(all)
}

fn unknown(name: String, error: &Error) -> ShardedStatus {
    let reason = format!("its shards cannot be read: {error}");
    ShardedStatus {
        experiment: v1::ExperimentStatus { name, reason, ..v1::ExperimentStatus::default() },
        shards: Vec::new(),
    }
}

/// The names of the sharded experiments.
pub(super) async fn names(location: &Location) -> Result<Vec<String>, Error> {
    shards::names(location).await.map_err(|error| refused(&error))
}

/// The states of the shards.
pub async fn states(location: &Location, record: &ShardRecord) -> Result<Vec<ShardState>, Error> {
    shards::states(location, record).await.map_err(|error| refused(&error))
}

/// The status of a sharded experiment.
pub async fn status(
    location: &Location,
    record: &ShardRecord,
    request: &v1::StatusRequest,
) -> Result<ShardedStatus, Error> {
    let sweep = sweep(location, record)?;
    let request = v1::StatusRequest { experiment: record.experiment.clone(), ..request.clone() };
    let mut sum = v1::ExperimentStatus { name: record.experiment.clone(), ..v1::ExperimentStatus::default() };
    let (mut lines, mut lost) = (Vec::new(), None);
    for ShardState { shard, loaded, owner, .. } in states(location, record).await? {
        let found = plan::status(loaded, Some(shard), &request, "").experiments.into_iter().next();
        let lives = owner.as_ref().is_some_and(|owner| owner.alive != Some(false));
        let line = ShardStatus {
            shard,
            state: state_of(found.as_ref(), lives),
            tasks: sweep.shard(shard).task_count(),
            done: found.as_ref().map_or(0, |found| found.done),
            failed: found.as_ref().map_or(0, |found| found.failed + found.quarantined),
            owner: owner.and_then(|owner| owner.record),
        };
        sum.tasks += line.tasks;
        if let Some(found) = found {
            let is_lost = found.state() == ExperimentState::Failed && !found.reason.is_empty();
            lost = lost.or_else(|| is_lost.then(|| format!(": {}", found.reason)));
            add(&mut sum, found);
        }
        lines.push(line);
    }
    sum.failures.truncate(request.max_failures as usize);
    let (state, reason) = summary(&lines);
    sum.set_state(state);
    sum.reason = reason + &lost.filter(|_| state == ExperimentState::Failed).unwrap_or_default();
    Ok(ShardedStatus { experiment: sum, shards: lines })
}

/// The sweep of all shards.
fn sweep(location: &Location, record: &ShardRecord) -> Result<Sweep, Error> {
    record.sweep().map_err(|reason| {
        failure!(Storage, "the manifest of the shards of {} in {location} cannot be read: {reason}", record.experiment)
    })
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
fn summary(lines: &[ShardStatus]) -> (ExperimentState, String) {
    let count = |state: &str| lines.iter().filter(|line| line.state == state).count() as u64;
    let open = lines.len() as u64 - count("finished") - count("failed");
    match (open, count("running"), count("failed")) {
        (0, _, 0) => (ExperimentState::Finished, String::new()),
        (0, _, failed) => (ExperimentState::Failed, format!("{} failed", counted(failed, "shard"))),
        (_, running, _) => {
            let waiting = ["not begun", "stopped"].map(|state| (count(state), state));
            let waiting =
                waiting.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
            let waiting = waiting.collect::<Vec<_>>().join(", ");
            let reason = format!("of {}, {}", counted(lines.len() as u64, "shard"), waiting);
            let state = if running > 0 { ExperimentState::Running } else { ExperimentState::Waiting };
            (state, if waiting.is_empty() { String::new() } else { reason })
        }
    }
}

/// The reply that submits of all shares would get together.
pub fn submission(
    location: &Location,
    record: &ShardRecord,
    states: Vec<ShardState>,
    given: &Sweep,
    digests: &BTreeMap<String, Digest>,
) -> Result<v1::SubmitReply, Error> {
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
pub fn takes_no_requests(location: &Location, record: &ShardRecord) -> Error {
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
