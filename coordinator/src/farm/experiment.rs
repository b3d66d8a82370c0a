//! One experiment: its sweep, the state of its tasks as sets, its tables.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::Table;
use uuid::Uuid;

use super::Now;
use super::cost::{Cost, Rate};
use super::forecast::{Forecast, Open};
use super::index_set::IndexSet;
use super::leaving::Leaving;
use super::pending::{Closed, Pending};
use super::share::Share;
use super::split::Split;
use super::tables::{FlushWait, OpenIntent, Progress, TableRows};
use crate::records::{DoneChunk, ExperimentRecord, FailureRecord, Key, Record, Stored};

/// A generation of the manifest before the present one.
#[derive(Debug)]
pub(super) struct Earlier {
    /// The sweep of its manifest.
    pub(super) sweep: Sweep,
    /// Tasks with rows that are in no later generation.
    pub(super) extra: IndexSet,
}

/// One experiment of the farm.
#[derive(Debug, Default)]
pub(super) struct Experiment {
    pub(super) record: ExperimentRecord,
    /// `None` if this build cannot use the stored manifest.
    pub(super) sweep: Option<Sweep>,
    /// Why no task can run; `None` if tasks can.
    pub(super) broken: Option<String>,
    /// An earlier command left it unfinished, and it was not submitted since: see [`super::Config::only`].
    pub(super) unclaimed: bool,
    /// Another submit adds tasks soon. Not stored: after a restart, the last rows are published.
    pub(super) more_follows: bool,
    pub(super) earlier: BTreeMap<u64, Earlier>,
    pub(super) done: IndexSet,
    /// Failed for good: final failures and quarantined tasks.
    pub(super) failed: IndexSet,
    /// Under at least one lease.
    pub(super) leased: IndexSet,
    pub(super) pending: Pending,
    /// Failure states of tasks that are not done.
    pub(super) failures: BTreeMap<u64, FailureRecord>,
    /// Number of tasks in `failed` that are quarantined: their failures were of kinds that are tried again.
    pub(super) quarantined: u64,
    /// Tasks under more than one lease, with the number of leases.
    pub(super) duplicated: BTreeMap<u64, u32>,
    /// Logs that are not in the store.
    pub(super) missing: BTreeSet<Digest>,
    pub(super) tables: BTreeMap<Table, TableRows>,
    pub(super) intents: BTreeMap<Uuid, OpenIntent>,
    pub(super) flushes: Vec<FlushWait>,
    pub(super) cost: Cost,
    pub(super) rate: Rate,
    pub(super) forecast: Forecast,
    pub(super) spent: v1::TimeSpent,
    pub(super) share: Share,
    /// Set while the experiment is being deleted or set aside.
    pub(super) leaving: Option<Leaving>,
    pub(super) split: Split,
    /// Durable number of done tasks, and durable state.
    pub(super) durable: (u64, ExperimentState),
    /// Number of done tasks and state once the batch in flight is durable.
    in_flight: Option<(u64, ExperimentState)>,
}

impl Experiment {
    pub(super) fn new(record: ExperimentRecord, sweep: Result<Sweep, String>, now: Now) -> Experiment {
        let (sweep, broken) = match sweep {
            Ok(sweep) => (Some(sweep), None),
            Err(reason) => (None, Some(reason)),
        };
        let (durable, forecast) = ((0, record.state()), Forecast::since(now.mono));
        Experiment { durable, record, sweep, broken, forecast, ..Experiment::default() }
    }

    /// Adds the slot time (s) of a number of tasks, whether they finished or failed.
    pub(super) fn took(&mut self, tasks: u64, seconds: f64, now: Now) {
        self.cost.add(tasks, seconds);
        self.share.add(now.mono, seconds);
    }

    /// Estimates the remaining time on a number of slots.
    pub(super) fn look_ahead(&mut self, slots: u64, now: Now) {
        self.forecast.pass(now.mono, if self.can_run() { slots } else { 0 });
        let open = self.sweep.as_ref().filter(|_| self.can_run()).map(|sweep| Open {
            sweep,
            closed: self.closed(),
            cursor: self.pending.cursor(),
            pending: self.pending_tasks(),
            slots,
        });
        self.forecast.left = open.and_then(|open| self.forecast.estimate(self.record.generation, &open));
    }

    /// The user to whom the experiment belongs, if it is another one than `user`. One without a known owner is anybody's.
    pub(super) fn other_owner(&self, user: &str) -> Option<&str> {
        let owner = self.record.owner.as_str();
        (!owner.is_empty() && owner != user).then_some(owner)
    }

    pub(super) fn name(&self) -> &str {
        &self.record.name
    }

    /// Tasks of the present generation; 0 if the manifest cannot be used.
    pub(super) fn tasks(&self) -> u64 {
        self.sweep.as_ref().map_or(0, Sweep::task_count)
    }

    /// Tasks that are neither done, nor failed for good, nor leased.
    pub(super) fn pending_tasks(&self) -> u64 {
        self.open_tasks().saturating_sub(self.leased.len())
    }

    /// Tasks that are neither done nor failed for good; 0 if the manifest cannot be used.
    pub(super) fn open_tasks(&self) -> u64 {
        self.tasks().saturating_sub(self.done.len() + self.failed.len())
    }

    /// The present state is in the batch that is taken.
    pub(super) fn committing(&mut self) {
        self.in_flight = Some((self.done.len(), self.record.state()));
    }

    /// The batch in flight is durable.
    pub(super) fn committed(&mut self) {
        self.durable = self.in_flight.take().unwrap_or(self.durable);
    }

    /// Whether a restart would set anything aside.
    pub(super) fn has_history(&self) -> bool {
        !self.done.is_empty() || self.extra() > 0 || !self.failures.is_empty()
    }

    /// Rows of tasks that left the manifest.
    pub(super) fn extra(&self) -> u64 {
        self.earlier.values().map(|earlier| earlier.extra.len()).sum()
    }

    /// Whether tasks may be handed out.
    pub(super) fn can_run(&self) -> bool {
        self.broken.is_none()
            && !self.unclaimed
            && self.leaving.is_none()
            && self.missing.is_empty()
            && matches!(self.record.state(), ExperimentState::Running | ExperimentState::Waiting)
    }

    pub(super) fn closed(&self) -> Closed<'_> {
        Closed { done: &self.done, failed: &self.failed, leased: &self.leased }
    }

    /// The record of a chunk of the done set; `None` without a bit: an edit in the same batch may have moved all bits
    /// to other chunks, and an empty record would never be deleted.
    pub(super) fn done_chunk(&self, chunk: u32) -> Option<DoneChunk> {
        Some(DoneChunk::new(self.name(), self.record.generation, chunk, self.done.chunk(chunk)?))
    }

    /// The index in the present generation of a task of another generation: `Err` if that generation is unknown or has
    /// no such task, `Ok(None)` if the task is not in the present manifest.
    pub(super) fn present_index(&self, generation: u64, index: u64) -> Result<Option<u64>, String> {
        let sweep = self.sweep.as_ref().ok_or_else(|| self.broken.clone().unwrap_or_default())?;
        let no_task = || format!("task {index} is not in generation {generation} of {}", self.name());
        if generation == self.record.generation {
            let is_task = index < sweep.index_count() && !sweep.is_excluded(index);
            return if is_task { Ok(Some(index)) } else { Err(no_task()) };
        }
        let earlier = self.earlier.get(&generation).ok_or_else(|| {
            format!("generation {generation} of {} is no longer known: its rows have no tasks", self.name())
        })?;
        let task = earlier.sweep.task(index).ok_or_else(no_task)?;
        Ok(sweep.index_of(&task))
    }

    /// Sets a task's failure state, and returns its record.
    pub(super) fn set_failure(&mut self, failure: FailureRecord) -> Record {
        if failure.quarantined && self.failed.insert(failure.index) && !failure.kind().is_final() {
            self.quarantined += 1;
        }
        self.failures.insert(failure.index, failure.clone());
        Record::Failure(failure)
    }

    /// Drops the failure state of a task that now has a row. Returns the key of the record to delete.
    pub(super) fn clear_failure(&mut self, index: u64) -> Option<Key> {
        let failure = self.failures.remove(&index)?;
        if self.failed.remove(index) && !failure.kind().is_final() {
            self.quarantined -= 1;
        }
        Some(failure.key())
    }

    pub(super) fn table(&mut self, table: Table) -> &mut TableRows {
        self.tables.entry(table).or_default()
    }

    /// Whether an upload was accepted and is still needed.
    pub(super) fn keeps(&self, table: Table, part_id: Uuid) -> bool {
        self.tables.get(&table).is_some_and(|rows| rows.holds_upload(part_id))
            || self.intents.values().any(|open| open.uploads.contains(&part_id))
    }

    /// Tasks with a row in `tasks` that ran before the manifest asked for an optional table.
    pub(super) fn lacking(&self, table: Table) -> u64 {
        let covered = self.tables.get(&table).map_or(0, |rows| rows.covered);
        (self.done.len() + self.extra()).saturating_sub(covered)
    }

    /// Whether all rows are in visible parts.
    pub(super) fn is_published(&self) -> bool {
        self.intents.is_empty() && self.tables.values().all(TableRows::is_published)
    }

    /// Whether no part is being made, but those that cannot be.
    pub(super) fn has_no_part_under_way(&self) -> bool {
        self.intents.values().all(|open| open.quarantined.is_some())
    }

    /// Whether all rows are in visible parts, but those that cannot be.
    pub(super) fn is_settled(&self) -> bool {
        self.has_no_part_under_way() && self.tables.values().all(|rows| rows.unpublished.is_empty())
    }

    /// Makes the parts due that could not be made. Whether there are any.
    pub(super) fn try_refused_parts(&mut self, now: Now) -> bool {
        let mut any = false;
        for open in self.intents.values_mut() {
            let refused = open.quarantined.take().is_some();
            any |= refused;
            if refused && matches!(open.progress, Progress::RetryAt(_)) {
                open.progress = Progress::RetryAt(now.mono);
            }
        }
        any
    }

    /// The rows that cannot become a part, and why; `None` if there are none.
    pub(super) fn quarantine(&self) -> Option<String> {
        let bad = || self.intents.values().filter_map(|open| Some((&open.intent, open.quarantined.as_ref()?)));
        let (first, reason) = bad().next()?;
        let rows: u64 = bad().map(|(intent, _)| intent.rows).sum();
        Some(format!("{rows} rows cannot be published (part {} of {}): {reason}", *first.part_id, first.table()))
    }

    /// The rows that are in no part and never will be, and why; empty if there are none.
    pub(super) fn lost_rows(&self) -> String {
        self.quarantine().unwrap_or_else(|| self.left_out())
    }

    /// The tables that lack rows of accepted uploads; empty if none does.
    fn left_out(&self) -> String {
        let lacking = self.tables.iter().filter(|(_, rows)| rows.uploads_left_out > 0);
        let lacking: Vec<String> =
            lacking.map(|(table, rows)| format!("{} in {table}", rows.uploads_left_out)).collect();
        match lacking.is_empty() {
            true => String::new(),
            false => format!("uploads of workers that could not be read are left out: {}", lacking.join(", ")),
        }
    }

    /// Whether every task is done or failed for good.
    pub(super) fn is_complete(&self) -> bool {
        self.sweep.is_some() && self.done.len() + self.failed.len() == self.tasks()
    }

    /// Whether no task runs or will run, so that rows need not wait for more rows.
    pub(super) fn is_at_rest(&self) -> bool {
        let stopped = matches!(self.record.state(), ExperimentState::Paused | ExperimentState::Cancelled);
        self.is_complete() && !self.more_follows || self.leaving.is_some() || stopped && self.leased.is_empty()
    }

    /// The message that a worker gets before the first lease of this generation.
    pub(super) fn announcement(&self) -> v1::Experiment {
        let limits = self.sweep.as_ref().map(|sweep| sweep.manifest().limits()).unwrap_or_default();
        v1::Experiment {
            name: self.record.name.clone(),
            generation: self.record.generation,
            manifest: self.record.manifest.clone(),
            digests: self.record.digests.iter().map(|(log, d)| (log.clone(), d.as_bytes().to_vec().into())).collect(),
            tables: self.record.tables().map(|table| table.name().to_owned()).collect(),
            task_deadline_s: limits.task_deadline_s.unwrap_or_default(),
            task_max_events: limits.task_max_events.unwrap_or_default(),
            task_max_bytes: limits.task_max_memory_bytes.unwrap_or_default(),
        }
    }
}

/// The sweep of a stored manifest and digests.
pub(super) fn sweep_of(manifest: &str, digests: &BTreeMap<String, Stored<Digest>>) -> Result<Sweep, String> {
    let manifest = Manifest::parse("manifest", manifest)
        .map_err(|errors| format!("this build cannot use the stored manifest: {errors}"))?;
    let digests = digests.iter().map(|(log, digest)| (log.clone(), **digest)).collect();
    Sweep::new(manifest, digests).map_err(|error| format!("this build cannot use the stored manifest: {error}"))
}
