//! Status of a farm: experiments, workers, failures.

use std::collections::BTreeMap;

use powersweep_experiments::settings::reproduce;
use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::Table;

use super::experiment::Experiment;
use super::forecast::RemainingTime;
use super::leaving::Leaving;
use super::worker::Worker;
use super::{Farm, Now};
use crate::records::FailureRecord;

/// Maximum number of failures in one status, whatever is asked for.
const FAILURES_MAX: u32 = 10_000;
/// Maximum number of index intervals in which the tasks of an experiment are counted.
const BINS_MAX: u32 = 4_096;

impl Farm {
    /// State of one experiment, or of all if the name is empty. An unknown name gives no experiment.
    pub fn status(&self, request: &v1::StatusRequest, now: Now) -> v1::StatusReply {
        let failures = request.max_failures.min(FAILURES_MAX) as usize;
        let bins = request.bins.min(BINS_MAX);
        // The manifests of all experiments may have any size.
        let asks_for_manifest = request.manifest && !request.experiment.is_empty();
        let shown = |experiment| v1::ExperimentStatus {
            bins: task_bins(experiment, bins),
            ledgers: if request.ledgers { experiment.record.ledgers.clone() } else { String::new() },
            manifest: if asks_for_manifest { experiment.record.manifest.clone() } else { String::new() },
            ..self.experiment_status(experiment, failures, now)
        };
        let wanted = |name: &&String| request.experiment.is_empty() || **name == request.experiment;
        let experiments = self.schedule.iter().filter(wanted).filter_map(|name| self.experiments.get(name));
        v1::StatusReply {
            build: self.config.build.clone(),
            epoch: self.epoch,
            data: self.config.data.clone(),
            storage_stalled: self.is_stalled(),
            storage_reason: self.stalled.clone().or_else(|| self.publish_trouble.clone()).unwrap_or_default(),
            experiments: experiments.map(shown).collect(),
            workers: self.workers.iter().map(|(id, worker)| self.worker_status(id, worker, now)).collect(),
            demand: Some(self.demand()),
        }
    }

    fn worker_status(&self, id: &uuid::Uuid, worker: &Worker, now: Now) -> v1::WorkerStatus {
        let (busy_slots, processors, memory_bytes) = match worker.conn {
            Some(_) => (worker.busy_slots, worker.processors, worker.memory_bytes),
            None => (0, 0.0, 0),
        };
        let (tasks_done, tasks_s) = self.done_counts.of(*id);
        v1::WorkerStatus {
            name: worker.name.clone(),
            worker_id: id.as_bytes().to_vec().into(),
            slots: worker.slots,
            busy_slots,
            processors,
            memory_bytes,
            leased_tasks: worker.outstanding,
            seen_s_ago: now.mono.saturating_sub(worker.seen).as_secs_f64(),
            tasks_done,
            tasks_s,
            address: worker.address.clone(),
            allocation: worker.allocation.clone(),
            connected: worker.conn.is_some(),
            spent: Some(worker.spent),
        }
    }

    fn experiment_status(&self, experiment: &Experiment, failures: usize, now: Now) -> v1::ExperimentStatus {
        let tasks = experiment.tasks();
        // Only durable rows count.
        let done = experiment.durable.0.min(experiment.done.len());
        let rate = experiment.rate.per_s(now.mono, done);
        let rows = experiment.tables.get(&Table::Tasks);
        let (state, reason) = self.state_of(experiment);
        let reason = if reason.is_empty() { experiment.lost_rows() } else { reason };
        let left = self.remaining(experiment);
        v1::ExperimentStatus {
            name: experiment.name().to_owned(),
            state: state.into(),
            tasks,
            done,
            running: self.running(experiment),
            failed: experiment.failed.len() - experiment.quarantined,
            quarantined: experiment.quarantined,
            rows_in_parts: rows.map_or(0, |rows| rows.rows_in_parts),
            rows_unpublished: rows.map_or(0, |rows| rows.unpublished_rows + rows.publishing_rows),
            tasks_per_s: rate,
            eta_s: left.map(|left| left.likely_s),
            spent: Some(experiment.spent),
            failures: failures_status(experiment, failures),
            extra: experiment.extra(),
            reason,
            priority: experiment.record.priority,
            generation: experiment.record.generation,
            owner: experiment.record.owner.clone(),
            eta_least_s: left.map(|left| left.least_s),
            eta_most_s: left.map(|left| left.most_s),
            bins: None,
            ledgers: String::new(),
            manifest: String::new(),
        }
    }

    /// Experiments with rows that are in no part, and the reason where it is known.
    pub fn unpublished(&self) -> Vec<v1::Unpublished> {
        let kept = self.experiments.values().filter(|e| !e.leaving.as_ref().is_some_and(Leaving::drops_rows));
        let unpublished = kept.map(|experiment| v1::Unpublished {
            experiment: experiment.name().to_owned(),
            rows: experiment.tables.values().map(|rows| rows.unpublished_rows + rows.publishing_rows).sum(),
            reason: experiment.quarantine().or_else(|| self.publish_trouble.clone()).unwrap_or_default(),
        });
        unpublished.filter(|of| of.rows > 0).collect()
    }

    /// Whether storage refuses writes: of the state, of uploads or of parts.
    pub(super) fn is_stalled(&self) -> bool {
        let waits = |experiment: &Experiment| !experiment.intents.is_empty();
        self.stalled.is_some() || self.refuses_parts && self.experiments.values().any(waits)
    }

    /// The remaining time; `None` while it cannot be told: before the first hand-in, and while no task is handed out.
    fn remaining(&self, experiment: &Experiment) -> Option<RemainingTime> {
        let runs = experiment.can_run() && !self.is_stalled() && self.slots > 0;
        experiment.forecast.left.filter(|_| runs && experiment.open_tasks() > 0)
    }

    pub(super) fn state_of(&self, experiment: &Experiment) -> (ExperimentState, String) {
        let running = ExperimentState::Running;
        let waiting = ExperimentState::Waiting;
        if let Some(leaving) = &experiment.leaving {
            return (ExperimentState::Leaving, leaving.describe());
        }
        match experiment.record.state() {
            state @ (ExperimentState::Finished | ExperimentState::Failed) if experiment.durable.1 != state => {
                (running, "its end is being stored".to_owned())
            }
            ExperimentState::Paused if !experiment.leased.is_empty() => {
                (ExperimentState::Paused, "tasks that were running are being finished".to_owned())
            }
            ExperimentState::Running | ExperimentState::Waiting => {
                if let Some(reason) = &experiment.broken {
                    return (waiting, reason.clone());
                }
                if experiment.unclaimed {
                    let reason =
                        "an earlier command left it unfinished: it continues when it is run or submitted again";
                    return (waiting, reason.to_owned());
                }
                if !experiment.missing.is_empty() {
                    let logs = experiment.record.digests.iter();
                    let missing = logs.filter(|(_, digest)| experiment.missing.contains(&***digest));
                    let names: Vec<&str> = missing.map(|(log, _)| log.as_str()).collect();
                    return (waiting, format!("logs are not uploaded: {}", names.join(", ")));
                }
                if experiment.is_complete() && experiment.is_published() && !experiment.is_split() {
                    return (running, experiment.describe_split());
                }
                if experiment.is_complete() {
                    return (running, self.publish_trouble.clone().unwrap_or_else(|| "writing parts".to_owned()));
                }
                if self.conns.is_empty() {
                    return (waiting, "no worker is connected".to_owned());
                }
                match self.why_no_worker_fits(experiment) {
                    Some(reason) => (waiting, reason),
                    None if self.is_behind_with_parts() => (running, "waits until parts are written".to_owned()),
                    None => {
                        let reason = self.stalled.clone().or_else(|| experiment.quarantine());
                        (running, reason.unwrap_or_default())
                    }
                }
            }
            state => (state, experiment.lost_rows()),
        }
    }

    /// Why the last of the connected workers cannot run the experiment, if none of them can.
    fn why_no_worker_fits(&self, experiment: &Experiment) -> Option<String> {
        let mut reason = None;
        for worker in self.workers.values().filter(|worker| worker.conn.is_some()) {
            match worker.fits.get(experiment.name()) {
                Some((_, Some(why))) => reason = Some(format!("worker {} cannot run it: {why}", worker.name)),
                _ => return None,
            }
        }
        reason
    }

    /// Tasks in slots: the open tasks of each connected worker, at most one for each of its slots.
    fn running(&self, experiment: &Experiment) -> u64 {
        if experiment.leased.is_empty() {
            return 0;
        }
        let in_slots = |worker: &Worker| {
            let leases = worker.leases.iter().filter_map(|id| self.leases.get(id));
            let open: u64 = leases.filter(|l| l.grant.experiment == experiment.name()).map(|l| l.open.len()).sum();
            open.min(u64::from(worker.slots))
        };
        self.workers.values().filter(|worker| worker.conn.is_some()).map(in_slots).sum()
    }
}

/// The tasks counted in at most `bins` intervals of indices of equal width; `None` for no interval or no task.
fn task_bins(experiment: &Experiment, bins: u32) -> Option<v1::TaskBins> {
    let sweep = experiment.sweep.as_ref().filter(|sweep| bins > 0 && sweep.task_count() > 0)?;
    let indices = sweep.index_count();
    let width = indices.div_ceil(u64::from(bins));
    let all: Vec<u64> =
        (0..indices.div_ceil(width)).map(|bin| sweep.tasks_in(bin * width..(bin + 1) * width)).collect();
    let with_tasks = |counts: Vec<u64>| {
        let of_bins = counts.into_iter().zip(&all).filter(|(_, tasks)| **tasks > 0);
        of_bins.map(|(count, _)| count).collect()
    };
    let [done, failed, leased] =
        [&experiment.done, &experiment.failed, &experiment.leased].map(|set| with_tasks(set.counts(width, all.len())));
    Some(v1::TaskBins { width, done, failed, leased, tasks: with_tasks(all.clone()) })
}

/// At most `count` failures: the first of each kind and message, apart for tasks that are tried again, then the others. A hundred tasks that fail for one
/// reason hide no other reason.
fn failures_status(experiment: &Experiment, count: usize) -> Vec<v1::Failure> {
    if count == 0 {
        return Vec::new();
    }
    let mut equal: BTreeMap<(i32, &str, bool), u64> = BTreeMap::new();
    let mut others = Vec::new();
    let mut first = Vec::new();
    for failure in experiment.failures.values().take(FAILURES_MAX as usize) {
        let known = equal.entry((failure.kind, &failure.message, failure.quarantined)).or_default();
        let group = if *known == 0 { &mut first } else { &mut others };
        *known += 1;
        group.push(failure);
    }
    let chosen = first.into_iter().chain(others).take(count);
    let count =
        |failure: &FailureRecord| equal.get(&(failure.kind, failure.message.as_str(), failure.quarantined)).copied();
    chosen.map(|f| failure_status(experiment, f, count(f).unwrap_or(1))).collect()
}

fn failure_status(experiment: &Experiment, failure: &FailureRecord, equal: u64) -> v1::Failure {
    let sweep = experiment.sweep.as_ref();
    let task = sweep.and_then(|sweep| sweep.task(failure.index));
    let again = sweep.zip(task.as_ref()).map(|(sweep, task)| match sweep.manifest().signals() {
        [] => reproduce(&task.sim, &sweep.manifest().limits()),
        // Signals stand in the manifest alone.
        _ => format!("powersweep simulate MANIFEST --index {}", task.index),
    });
    v1::Failure {
        index: failure.index,
        reproduce: again.unwrap_or_default(),
        task_id: task.map(|task| task.task_id.as_bytes().to_vec().into()).unwrap_or_default(),
        kind: failure.kind,
        message: failure.message.clone(),
        worker: failure.worker.clone(),
        attempt: failure.attempts,
        r#final: failure.quarantined,
        equal,
    }
}
