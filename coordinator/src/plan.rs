//! What a submission would do, from the stored state alone: for commands that look while no coordinator runs.

use std::collections::BTreeMap;
use std::time::Duration;

use powersweep_experiments::{Digest, Manifest, Sweep, TaskSpec};
use powersweep_proto::v1;

use crate::farm::{Config, Effect, Event, Farm, Now, Reply, Request, Submission};
use crate::records::{FailureRecord, Loaded};

/// The reply that a submit would get, or why it would be refused. Changes nothing.
pub fn submission(
    loaded: Loaded,
    sweep: &Sweep,
    digests: &BTreeMap<String, Digest>,
) -> Result<v1::SubmitReply, String> {
    let now = Now { mono: Duration::ZERO, wall_us: 0 };
    let mut farm = Farm::recover(Config::default(), loaded, 0, now);
    let (sweep, digests) = (sweep.clone(), digests.clone());
    let submission = Submission { sweep, digests, dry_run: true, restart: false, priority: None };
    let mut effects = Vec::new();
    farm.handle(Event::Request { client: 0, request: Request::Submit(submission) }, now, &mut effects);
    // Replies leave after the batch that they stand behind; here nothing is written, so every batch is durable.
    while let Some((token, _)) = farm.take_commit() {
        farm.handle(Event::Committed { token }, now, &mut effects);
    }
    let reply = effects.into_iter().find_map(|effect| match effect {
        Effect::Reply { reply, .. } => Some(reply),
        _ => None,
    });
    match reply {
        Some(Reply::Submitted(reply)) => Ok(*reply),
        Some(Reply::Invalid(reason) | Reply::NotFound(reason) | Reply::Refused(reason)) => Err(reason),
        Some(Reply::Flushed(_) | Reply::LogStored | Reply::Controlled(_)) | None => {
            Err("the coordinator gave no answer: please report it".to_owned())
        }
    }
}

/// The status that a coordinator on this state would give; `build` is empty because none is at work.
pub fn status(loaded: Loaded, request: &v1::StatusRequest, data: &str) -> v1::StatusReply {
    let now = Now { mono: Duration::ZERO, wall_us: 0 };
    let config = Config { data: data.to_owned(), build: String::new(), forget_leases: true, ..Config::default() };
    Farm::recover(config, loaded, 0, now).status(request, now)
}

/// Whether a task has a durable row or failed, by its identity: the stored manifest may have another index for it.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// Its experiment has never been submitted.
    NewExperiment,
    /// The stored manifest did not have it.
    New,
    /// It has a row.
    Done,
    /// It failed; `quarantined` says that it will not be tried again by itself.
    Failed(Box<FailureRecord>),
    /// It has not run yet.
    Missing,
}

/// The stored state of one task.
pub fn task_state(loaded: &Loaded, task: &TaskSpec) -> TaskState {
    let Some(record) = loaded.experiments.iter().find(|e| e.name == *task.experiment) else {
        return TaskState::NewExperiment;
    };
    let digests = record.digests.iter().map(|(log, digest)| (log.clone(), **digest)).collect();
    let stored = Manifest::parse("stored manifest", &record.manifest).ok().and_then(|m| Sweep::new(m, digests).ok());
    let Some(index) = stored.and_then(|sweep| sweep.index_of(task)) else { return TaskState::New };
    let here = |experiment: &str, generation: u64| experiment == record.name && generation == record.generation;
    let (chunk, bit) = ((index >> 16) as u32, (index & 0xFFFF) as u32);
    let done =
        loaded.done.iter().any(|d| here(&d.experiment, d.generation) && d.chunk == chunk && d.bitmap.contains(bit));
    if done {
        return TaskState::Done;
    }
    match loaded.failures.iter().find(|f| here(&f.experiment, f.generation) && f.index == index) {
        Some(failure) => TaskState::Failed(Box::new(failure.clone())),
        None => TaskState::Missing,
    }
}
