//! Dispatch: lease sizes, grants, copies of stragglers' tasks.

use std::ops::Range;
use std::time::Duration;

use powersweep_experiments::Sweep;
use powersweep_proto::v1::farm_message::Body;
use powersweep_proto::v1::{self, LeaseId};
use uuid::Uuid;

use super::ended::Grant;
use super::experiment::Experiment;
use super::index_set::IndexSet;
use super::lease::Lease;
use super::pending::{Taken, Taker};
use super::worker::Worker;
use super::{Config, Farm, Now};

/// A task is copied only after its lease made no progress for this time, or longer.
const STRAGGLER_AFTER: Duration = Duration::from_secs(1);

/// Rows that fill a hand-in.
const HAND_IN_ROWS: u64 = 1000;

/// Tasks that may have killed a worker wait for a worker without tasks. After this time, workers get no tasks until one
/// has finished all of its own.
const SUSPECTS_WAIT: Duration = Duration::from_secs(30);

/// Number of tasks of an experiment that a worker should hold: one running in each slot, and a queue behind them.
///
/// The queue is worth `lease_work` for each slot, or `lease_work_with_tables`. Towards the end it is the worker's share of half
/// of the pending tasks (guided self-scheduling, Polychronopoulos and Kuck 1987), so that all slots finish together. It
/// never falls below `lease_work_min` of work: a slot must not wait for a grant after each task of a millisecond.
fn depth(config: &Config, experiment: &Experiment, worker_slots: u32, all_slots: u64) -> u64 {
    let slots = u64::from(worker_slots);
    let pending = experiment.pending_tasks();
    let share = pending * slots / (2 * all_slots.max(slots));
    let Some(cost_s) = experiment.cost.mean_s() else {
        // The cost of a task is not known yet.
        return slots + slots.min(share);
    };
    let worth = |work: Duration| (work.as_secs_f64() * slots as f64 / cost_s) as u64;
    let has_tables = !experiment.record.tables.is_empty();
    let most = worth(if has_tables { config.lease_work_with_tables } else { config.lease_work }).max(1);
    let least = worth(config.lease_work_min).min(most);
    // When parts fall behind, rows of leased tasks still come: a million with many workers. All workers together hold no
    // more tasks than one part has rows, but each enough to fill its hand-ins.
    let of_a_part = (config.part_rows * slots / all_slots.max(slots)).max(slots * HAND_IN_ROWS);
    (slots + share.clamp(least, most)).min(config.lease_tasks_max.min(of_a_part).max(slots))
}

/// Number of tasks of mean cost that a worker can finish before the end of its time limit; 0 if one task in ten would
/// take longer.
fn in_time(worker: &Worker, experiment: &Experiment, now: Now) -> u64 {
    let Some(ends_at) = worker.ends_at else { return u64::MAX };
    let cost = &experiment.cost;
    let (Some(mean_s), Some(p90_s)) = (cost.mean_s(), cost.p90_s()) else { return u64::MAX };
    let left_s = ends_at.saturating_sub(now.mono).as_secs_f64();
    if p90_s > left_s { 0 } else { ((left_s / mean_s) as u64).saturating_mul(worker.slots.into()) }
}

impl Farm {
    /// Grants leases to the workers that may want tasks.
    pub(super) fn dispatch(&mut self, now: Now) {
        if self.hungry.is_empty() || self.stalled.is_some() || self.stopping || self.is_behind_with_parts() {
            return;
        }
        while let Some(id) = self.hungry.pop_first() {
            if !self.has_work(now) {
                // One test for all: otherwise each event would cost one for each of thousands of idle workers.
                self.idle.insert(id);
                self.idle.append(&mut self.hungry);
                return;
            }
            self.feed(id, now);
        }
    }

    /// Considers every connected worker at the next dispatch.
    pub(super) fn wake_all(&mut self) {
        self.hungry.extend(self.conns.values().copied());
    }

    /// Considers the workers that found no tasks at the next dispatch.
    pub(super) fn wake_idle(&mut self) {
        self.hungry.append(&mut self.idle);
    }

    /// Whether tasks are ready for any worker.
    fn has_work(&self, now: Now) -> bool {
        let ready = |experiment: &Experiment| {
            let end = experiment.sweep.as_ref().map_or(0, Sweep::index_count);
            experiment.can_run() && experiment.pending_tasks() > 0 && experiment.pending.is_ready(end, now.mono)
        };
        !self.stragglers.is_empty() || self.experiments.values().any(ready)
    }

    fn feed(&mut self, id: Uuid, now: Now) {
        let mut found = false;
        for name in self.serving_order(now) {
            if !self.fits(id, &name) {
                continue;
            }
            let (Some(worker), Some(experiment)) = (self.workers.get(&id), self.experiments.get(&name)) else {
                return;
            };
            if worker.draining || worker.conn.is_none() {
                return;
            }
            let slots = u64::from(worker.slots);
            let in_time = in_time(worker, experiment, now);
            if in_time == 0 {
                continue;
            }
            let depth = depth(&self.config, experiment, worker.slots, self.slots).min(in_time);
            let outstanding = self.outstanding_in(worker, experiment);
            if outstanding >= depth || outstanding > slots.max(depth / 2) {
                return;
            }
            found |= experiment.pending_tasks() > 0;
            let want = depth - outstanding;
            let holds_nothing = worker.outstanding == 0;
            let since = now.mono.saturating_sub(SUSPECTS_WAIT);
            if !holds_nothing && (self.holds_suspects(worker) || experiment.pending.suspects_wait(since)) {
                return;
            }
            let taker = Taker { worker: id, alone: self.conns.len() < 2, holds_nothing };
            let Some(sweep) = experiment.sweep.clone() else { continue };
            let experiment = self.experiments.get_mut(&name).expect("just looked at");
            let mut pending = std::mem::take(&mut experiment.pending);
            let taken = pending.take(want, taker, now.mono, &sweep, experiment.closed());
            experiment.pending = pending;
            if let Some(taken) = taken {
                self.grant(id, &name, taken, false, now);
                // The lease may be smaller than wanted, where a group of returned tasks is small.
                self.hungry.insert(id);
                return;
            }
        }
        if found || !self.duplicate_for(id, now) {
            self.idle.insert(id);
        }
    }

    /// Whether a worker runs tasks that may have killed another one: it gets no other tasks meanwhile.
    fn holds_suspects(&self, worker: &Worker) -> bool {
        worker.leases.iter().any(|id| self.leases.get(id).is_some_and(|lease| lease.suspect))
    }

    /// Grants a lease of tasks that were taken from the pending ones.
    fn grant(&mut self, id: Uuid, name: &str, taken: Taken, duplicate: bool, now: Now) {
        let experiment = self.experiments.get_mut(name).expect("tasks were taken from it");
        for range in &taken.ranges {
            experiment.leased.insert_range(range.clone());
        }
        experiment.share.granted(now.mono);
        let generation = experiment.record.generation;
        self.next_lease += 1;
        let lease_id = LeaseId { epoch: self.epoch, counter: self.next_lease };
        let lease = Lease {
            grant: Grant { experiment: name.to_owned(), generation, ranges: taken.ranges.clone(), worker: id },
            open: taken.ranges.iter().collect::<IndexSet>(),
            attempt: taken.attempt,
            progress_at: now.mono,
            duplicate,
            suspect: taken.suspect,
            owed: false,
        };
        self.add_lease(lease_id, lease);
        let worker = self.workers.get_mut(&id).expect("leases are granted to known workers");
        let Some(conn) = worker.conn else { return };
        if worker.announced.insert((name.to_owned(), generation)) {
            let announcement = self.experiments[name].announcement();
            self.out.send(conn, Body::Experiment(announcement));
        }
        let message = v1::Lease {
            id: Some(lease_id),
            experiment: name.to_owned(),
            generation,
            ranges: to_wire(&taken.ranges),
            attempt: taken.attempt,
        };
        self.out.send(conn, Body::Lease(message));
    }

    /// Whether a worker's build has the versions that an experiment is pinned to. The worker keeps the reason against it
    /// for status.
    pub(super) fn fits(&mut self, id: Uuid, name: &str) -> bool {
        let (Some(worker), Some(experiment)) = (self.workers.get_mut(&id), self.experiments.get(name)) else {
            return false;
        };
        let generation = experiment.record.generation;
        match worker.fits.get(name) {
            Some((known, reason)) if *known == generation => reason.is_none(),
            _ => {
                let reason = super::pins::misfit(&experiment.record.pins, &worker.versions);
                let fits = reason.is_none();
                worker.fits.insert(name.to_owned(), (generation, reason));
                fits
            }
        }
    }

    /// Grants copies of tasks whose lease makes no progress to an idle worker; the first row wins. False if there are no
    /// such tasks.
    fn duplicate_for(&mut self, id: Uuid, now: Now) -> bool {
        let Some(worker) = self.workers.get(&id) else { return false };
        let slots = u64::from(worker.slots);
        if worker.conn.is_none() || worker.draining || worker.outstanding > 0 {
            return false;
        }
        let Some((name, attempt, suspect, indices)) = self.straggler(id, slots, now) else { return false };
        let experiment = self.experiments.get_mut(&name).expect("a lease's experiment is there");
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &index in &indices {
            experiment.duplicated.insert(index, 2);
            super::index_set::join(&mut ranges, index..index + 1);
        }
        self.grant(id, &name, Taken { ranges, attempt, suspect }, true, now);
        true
    }

    /// Finds the leases without progress, once for all idle workers.
    pub(super) fn find_stragglers(&mut self, now: Now) {
        self.stragglers.clear();
        if self.idle.is_empty() && self.hungry.is_empty() {
            return;
        }
        let late = self.leases.iter().filter(|(_, lease)| self.is_late(lease, now));
        self.stragglers = late.map(|(id, _)| *id).collect();
    }

    /// Whether copies of a lease's tasks should be run: it makes no progress, and there is a task without a copy.
    fn is_late(&self, lease: &Lease, now: Now) -> bool {
        let Some(experiment) = self.experiments.get(&lease.grant.experiment) else { return false };
        if lease.duplicate || !experiment.can_run() {
            return false;
        }
        let away = self.workers.get(&lease.grant.worker).is_none_or(|worker| worker.conn.is_none());
        let long = Duration::try_from_secs_f64(2.0 * experiment.cost.long_s()).unwrap_or(Duration::MAX);
        let patience = if away { STRAGGLER_AFTER } else { long.max(STRAGGLER_AFTER) };
        now.mono.saturating_sub(lease.progress_at) > patience
            && lease.open.iter().any(|index| !experiment.duplicated.contains_key(&index))
    }

    fn straggler(&mut self, id: Uuid, most: u64, now: Now) -> Option<(String, u32, bool, Vec<u64>)> {
        let mut at = 0;
        while let Some(&lease_id) = self.stragglers.get(at) {
            let found = self.leases.get(&lease_id).filter(|lease| self.is_late(lease, now));
            let Some((owner, name)) = found.map(|lease| (lease.grant.worker, lease.grant.experiment.clone())) else {
                self.stragglers.remove(at);
                continue;
            };
            let has_time = |worker: &Worker| in_time(worker, &self.experiments[&name], now) > 0;
            if owner != id && self.workers.get(&id).is_some_and(has_time) && self.fits(id, &name) {
                let (lease, experiment) = (&self.leases[&lease_id], &self.experiments[&name]);
                let open = lease.open.iter().filter(|index| !experiment.duplicated.contains_key(index));
                let mut indices: Vec<u64> = open.collect();
                // The lease's worker starts the last ones last.
                indices.drain(..indices.len().saturating_sub(most as usize));
                return Some((name, lease.attempt, lease.suspect, indices));
            }
            at += 1;
        }
        None
    }
}

/// Ranges in the form of messages and records.
pub(super) fn to_wire(ranges: &[Range<u64>]) -> Vec<v1::IndexRange> {
    ranges.iter().map(|range| v1::IndexRange { start: range.start, end: range.end }).collect()
}
