//! The status of experiments, with their workers and shards.

use std::collections::BTreeMap;

use powersweep_coordinator::plan;
use powersweep_coordinator::store::Location;
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
    let loaded = stored::read(location).await?;
    let mut missing = BTreeMap::new();
    for name in loaded.experiments.iter().map(|record| &record.name) {
        missing.extend(stored::missing(location, &loaded, name).await?.map(|reason| (name.clone(), reason)));
    }
    let mut reply = plan::status(loaded, None, request, &location.to_string());
    for found in &mut reply.experiments {
        let reason = missing.remove(&found.name).filter(|_| found.reason.is_empty());
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
