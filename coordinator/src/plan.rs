//! Answers from the stored state alone, for commands without a coordinator: dry-run submits, status, state of a task.

use std::collections::BTreeMap;
use std::time::Duration;

use powersweep_experiments::{Digest, Manifest, Shard, Sweep, TaskSpec};
use powersweep_proto::v1;

use crate::farm::{Config, Effect, Event, Farm, Now, Reply, Request, Submission};
use crate::records::{FailureRecord, Loaded};

/// The reply that a submit would get, or why it would be refused. `shard`: the shard that owns the state, if one does.
pub fn submission(
    loaded: Loaded,
    shard: Option<Shard>,
    sweep: &Sweep,
    digests: &BTreeMap<String, Digest>,
) -> Result<v1::SubmitReply, String> {
    let now = Now { mono: Duration::ZERO, wall_us: 0 };
    let config = Config { shard, ..Config::default() };
    let submission = Submission::new(config.sharded(sweep.clone()), digests.clone());
    let mut farm = Farm::recover(config, loaded, 0, now);
    let submission = Submission { dry_run: true, replace: true, ..submission };
    let mut effects = Vec::new();
    farm.handle(Event::Request { client: 0, request: Request::Submit(submission) }, now, &mut effects);
    // A reply waits for its batch.
    count_as_durable(&mut farm, now, &mut effects);
    let reply = effects.into_iter().find_map(|effect| match effect {
        Effect::Reply { reply, .. } => Some(reply),
        _ => None,
    });
    match reply {
        Some(Reply::Submitted(reply)) => Ok(*reply),
        Some(Reply::Invalid(reason) | Reply::NotFound(reason) | Reply::Refused(reason) | Reply::Forbidden(reason)) => {
            Err(reason)
        }
        Some(Reply::Flushed(_) | Reply::LogStored | Reply::LogsDropped(_) | Reply::Controlled(_)) | None => {
            Err("the submit has no reply; this is a bug: please report it".to_owned())
        }
    }
}

/// Here no batch is written, so each counts as durable.
fn count_as_durable(farm: &mut Farm, now: Now, effects: &mut Vec<Effect>) {
    while let Some((token, _)) = farm.take_commit() {
        farm.handle(Event::Committed { token }, now, effects);
    }
}

/// The status that a coordinator on this state would give; `build` is empty because no coordinator runs. `shard`: the
/// shard that owns the state, if one does.
pub fn status(loaded: Loaded, shard: Option<Shard>, request: &v1::StatusRequest, data: &str) -> v1::StatusReply {
    let now = Now { mono: Duration::ZERO, wall_us: 0 };
    let (data, build) = (data.to_owned(), String::new());
    // No process runs the tasks of any experiment.
    let only = Some(String::new());
    let config = Config { data, build, shard, only, forget_leases: true, ..Config::default() };
    let mut farm = Farm::recover(config, loaded, 0, now);
    count_as_durable(&mut farm, now, &mut Vec::new());
    farm.status(request, now)
}

/// The stored state of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// The state does not have its experiment.
    NewExperiment,
    /// The stored manifest does not have it.
    New,
    /// It has a durable row.
    Done,
    /// It failed; if `quarantined`, it is tried again only by a user's retry.
    Failed(Box<FailureRecord>),
    /// It has neither a row nor a failure.
    Missing,
}

/// The stored state of one task, which is found by its identity: the stored manifest may have another index for it.
pub fn task_state(loaded: &Loaded, task: &TaskSpec) -> TaskState {
    let Some(record) = loaded.experiments.iter().find(|e| e.name == *task.experiment) else {
        return TaskState::NewExperiment;
    };
    let digests = record.digests.iter().map(|(log, digest)| (log.clone(), **digest)).collect();
    let stored = Manifest::parse("stored manifest", &record.manifest).ok().and_then(|m| Sweep::new(m, digests).ok());
    let Some(index) = stored.and_then(|sweep| sweep.index_of(task)) else { return TaskState::New };
    let is_present = |experiment: &str, generation: u64| experiment == record.name && generation == record.generation;
    let (chunk, bit) = ((index >> 16) as u32, (index & 0xFFFF) as u32);
    let mut chunks = loaded.done.iter().filter(|d| is_present(&d.experiment, d.generation) && d.chunk == chunk);
    if chunks.any(|d| d.bitmap.contains(bit)) {
        return TaskState::Done;
    }
    match loaded.failures.iter().find(|f| is_present(&f.experiment, f.generation) && f.index == index) {
        Some(failure) => TaskState::Failed(Box::new(failure.clone())),
        None => TaskState::Missing,
    }
}
