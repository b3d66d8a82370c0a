//! The status of experiments, with their workers and shards.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_coordinator::plan;
use powersweep_coordinator::store::Location;
use powersweep_dataset::words::{count, range};
use powersweep_dataset::{Error, failure};
use powersweep_proto::v1;
use serde_json::{Value as Json, json};

use crate::inputs::ledgers;
use crate::place::shards::{self, ShardStatus, ShardedStatus};
use crate::place::{Answerer, Place, connection, stored};

/// What a status has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusOptions {
    /// The one experiment; `None` for all.
    pub experiment: Option<String>,
    /// Number of failures listed for each experiment.
    pub failures: u32,
    /// Whether it has what happened to the rows of job logs and signals.
    pub ledgers: bool,
    /// Cells of the grid of tasks, at most; 0 for none.
    pub bins: u32,
}

impl Default for StatusOptions {
    fn default() -> StatusOptions {
        StatusOptions { experiment: None, failures: 20, ledgers: false, bins: 0 }
    }
}

/// Experiments at one moment.
#[derive(Debug, Default)]
pub struct Status {
    /// The coordinator, its workers and the experiments, also those with shards.
    pub reply: v1::StatusReply,
    /// The shards of sharded experiments, by the experiment's name.
    pub shards: BTreeMap<String, Vec<ShardStatus>>,
}

impl Status {
    /// The first experiment, which is the only one if one was asked for.
    pub fn into_first(self) -> Option<v1::ExperimentStatus> {
        self.reply.experiments.into_iter().next()
    }

    /// The status as a document for programs. `options` are those of its request.
    pub fn document(&self, options: &StatusOptions) -> Json {
        let Status { reply, shards } = self;
        let experiment = |found: &v1::ExperimentStatus| {
            let mut experiment = experiment_json(found);
            if let Some(shards) = shards.get(&found.name) {
                experiment["shards"] = shards.iter().map(shard_json).collect();
            }
            if options.ledgers {
                experiment["ledgers"] = json!(ledgers::parsed(&found.ledgers));
            }
            experiment
        };
        let worker = |w: &v1::WorkerStatus| {
            json!({ "name": w.name, "slots": w.slots, "busy_slots": w.busy_slots, "leased_tasks": w.leased_tasks,
                    "tasks_done": w.tasks_done, "seen_s_ago": w.seen_s_ago, "address": w.address,
                    "processors": w.connected.then_some(w.processors),
                    "memory_bytes": w.connected.then_some(w.memory_bytes) })
        };
        json!({ "build": reply.build, "epoch": reply.epoch, "data": reply.data,
                "storage_stalled": reply.storage_stalled, "storage_reason": reply.storage_reason,
                "experiments": reply.experiments.iter().map(experiment).collect::<Vec<Json>>(),
                "workers": reply.workers.iter().map(worker).collect::<Vec<Json>>() })
    }

    fn add(&mut self, ShardedStatus { experiment, shards }: ShardedStatus) {
        self.shards.insert(experiment.name.clone(), shards);
        self.reply.experiments.push(experiment);
    }
}

fn experiment_json(e: &v1::ExperimentStatus) -> Json {
    let spent = e.spent.unwrap_or_default();
    let failure = |f: &v1::Failure| {
        json!({ "index": f.index, "kind": f.kind().word(), "message": f.message, "worker": f.worker,
                "attempt": f.attempt, "final": f.r#final, "reproduce": f.reproduce, "equal": f.equal })
    };
    json!({
        "name": e.name, "owner": e.owner, "state": e.state().word(), "priority": e.priority,
        "generation": e.generation, "reason": e.reason, "tasks": e.tasks, "done": e.done, "running": e.running,
        "failed": e.failed + e.quarantined, "quarantined": e.quarantined, "extra": e.extra, "rows_in_parts": e.rows_in_parts,
        "rows_unpublished": e.rows_unpublished, "tasks_per_s": e.tasks_per_s, "eta_s": e.eta_s,
        "eta_least_s": e.eta_least_s, "eta_most_s": e.eta_most_s,
        "spent": { "engine_s": spent.engine_s, "parse_s": spent.parse_s, "store_s": spent.store_s,
                   "idle_s": spent.idle_s },
        "failures": e.failures.iter().map(failure).collect::<Vec<Json>>(),
    })
}

fn shard_json(line: &ShardStatus) -> Json {
    json!({ "index": line.shard.index(), "of": line.shard.of(), "state": line.state, "tasks": line.tasks,
            "done": line.done, "failed": line.failed, "host": line.owner.as_ref().map(|owner| &owner.host),
            "process": line.owner.as_ref().map(|owner| owner.pid) })
}

impl Place {
    /// The status of one experiment or all: of a running coordinator or of shards, else the stored state.
    ///
    /// # Errors
    /// There is no such experiment, or who should answer does not.
    pub async fn status(&self, options: &StatusOptions) -> Result<Status, Error> {
        let experiment = options.experiment.clone().unwrap_or_default();
        let StatusOptions { failures: max_failures, ledgers, bins, .. } = *options;
        let request = v1::StatusRequest { experiment, max_failures, ledgers, bins, manifest: false };
        let of_all = request.experiment.is_empty();
        let answerer = if of_all { self.answerer().await? } else { self.answerer_of(&request.experiment).await? };
        let mut status = Status::default();
        match answerer {
            Answerer::Coordinator(mut client) => match connection::status(&mut client, request.clone()).await {
                Ok(reply) => status.reply = reply,
                Err(error) => {
                    return Err(connection::refused_about(&mut client, &error, &request.experiment).await);
                }
            },
            Answerer::Shards(location, record) => {
                status.reply.data = location.to_string();
                status.add(shards::status(&location, &record, &request).await?);
            }
            Answerer::State(location) => status.reply = of_state(&location, &request).await?,
        }
        // A coordinator does not know the experiments with shards.
        if of_all && !self.names_coordinator() {
            let sharded = shards::all(&self.location()?, &request).await?;
            sharded.into_iter().for_each(|sharded| status.add(sharded));
        }
        Ok(status)
    }
}

async fn of_state(location: &Location, request: &v1::StatusRequest) -> Result<v1::StatusReply, Error> {
    stored::check_exists(location)?;
    let loaded = stored::read(location).await?;
    let mut missing = BTreeMap::new();
    for name in loaded.experiments.iter().map(|record| &record.name) {
        missing.extend(stored::missing(location, &loaded, name).await?.map(|reason| (name.clone(), reason)));
    }
    let mut reply = plan::status(loaded, None, request, &location.to_string());
    for found in &mut reply.experiments {
        let waits = found.state() == v1::ExperimentState::Waiting;
        let reason = missing.remove(&found.name).filter(|_| waits || found.reason.is_empty());
        reason.into_iter().for_each(|reason| found.reason = reason);
    }
    if !request.experiment.is_empty() && reply.experiments.is_empty() {
        return Err(not_stored(location, &request.experiment).await?);
    }
    Ok(reply)
}

/// Why the stored state does not have this experiment. Its rows may still be there.
async fn not_stored(location: &Location, name: &str) -> Result<Error, Error> {
    let known = stored::names(location).await?;
    if known.iter().any(|known| known == name) {
        return Ok(stored::without_state(location, name));
    }
    Ok(failure!(Usage, "{location}: {}", stored::unknown(name, &known)))
}

/// The remaining time of an experiment in words; `None` while it cannot be told.
pub fn left(experiment: &v1::ExperimentStatus) -> Option<String> {
    let likely_s = experiment.eta_s?;
    let (least_s, most_s) = (experiment.eta_least_s.unwrap_or(likely_s), experiment.eta_most_s.unwrap_or(likely_s));
    Some(range(least_s, most_s))
}

/// Whether the last state of an experiment is an error: some of its tasks failed for good, or it lost rows.
pub fn ended_well(last: &v1::ExperimentStatus) -> Result<(), Error> {
    if last.state() != v1::ExperimentState::Failed && last.failed + last.quarantined == 0 {
        return Ok(());
    }
    let mut text = failures_text(last);
    if !last.reason.is_empty() {
        text.push_str(&format!("{}: {}\n", last.name, last.reason));
    }
    Err(failure!(TasksFailed, "{text}"))
}

/// The failed tasks of an experiment, with the command that reproduces each; empty without failures. Failures of one kind and
/// message are shown once, with their number.
pub fn failures_text(experiment: &v1::ExperimentStatus) -> String {
    let name = &experiment.name;
    if experiment.failures.is_empty() {
        return String::new();
    }
    let failed = experiment.failed + experiment.quarantined;
    let mut text = format!("{name}: {} failed\n", count(failed, "task"));
    let mut shown = 0;
    let mut seen = BTreeSet::new();
    for f in experiment.failures.iter().filter(|f| seen.insert((f.kind, &f.message, f.r#final))) {
        let equal = f.equal.max(1);
        let others = if equal > 1 { format!("{}, such as ", count(equal, "task")) } else { String::new() };
        let last = if f.r#final { ", for good" } else { ", is tried again" };
        let attempt = format!("attempt {}, {}{last}", f.attempt, f.worker);
        text.push_str(&format!("  {others}task {} ({attempt}): {}\n", f.index, f.message));
        if !f.reproduce.is_empty() {
            text.push_str(&format!("    reproduce: {}\n", f.reproduce));
        }
        shown += if f.r#final { equal } else { 0 };
    }
    if experiment.failures.iter().any(|failure| failure.r#final) {
        text.push_str(&format!("  `powersweep retry {name}` tries them again, with limits of the present manifest\n"));
    }
    let more = failed.saturating_sub(shown);
    if more > 0 {
        text.push_str(&format!("  … and {more} more: `powersweep results {name} --table failures` lists all\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_lost_rows_has_not_ended_well() {
        let ended = |state: v1::ExperimentState, failed: u64, reason: &str| {
            let (name, reason) = ("e".to_owned(), reason.to_owned());
            let status = v1::ExperimentStatus { name, state: state.into(), failed, reason, ..Default::default() };
            ended_well(&status).map_err(|error| error.message)
        };
        assert_eq!(ended(v1::ExperimentState::Finished, 0, ""), Ok(()));
        let lost = ended(v1::ExperimentState::Failed, 0, "7 rows cannot be published");
        assert_eq!(lost, Err("e: 7 rows cannot be published\n".to_owned()));
        assert!(ended(v1::ExperimentState::Failed, 1, "").is_err());
    }

    #[test]
    fn equal_failures_are_shown_once_with_their_number() {
        let failure = |index: u64, message: &str, equal: u64| v1::Failure {
            index,
            message: message.to_owned(),
            worker: "w".to_owned(),
            attempt: 1,
            r#final: true,
            equal,
            ..v1::Failure::default()
        };
        let again = v1::Failure { r#final: false, ..failure(5, "too wide", 2) };
        let failures = vec![failure(3, "too wide", 40), failure(9, "too long", 1), failure(4, "too wide", 40), again];
        let experiment =
            v1::ExperimentStatus { name: "e".to_owned(), failed: 50, failures, ..v1::ExperimentStatus::default() };
        assert_eq!(
            failures_text(&experiment),
            "e: 50 tasks failed\n  40 tasks, such as task 3 (attempt 1, w, for good): too wide\n  \
             task 9 (attempt 1, w, for good): too long\n  2 tasks, such as task 5 (attempt 1, w, is tried again): too wide\n  \
             `powersweep retry e` tries them again, with limits of the present manifest\n  … and 9 more: `powersweep results e --table failures` lists all\n"
        );
    }
}
