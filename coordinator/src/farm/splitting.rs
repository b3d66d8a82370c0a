//! Splits: after an edit, rows of tasks that left the manifest move to another folder, and rows of tasks that are back
//! return.
//!
//! An edit that changes the set of tasks with rows marks the experiment in the batch of the edit. The steps are: the rows
//! that were unpublished at the edit are published; the driver prepares the split ([`crate::split`]); its record becomes
//! durable; the driver replaces the parts; a commit deletes record and mark. An edit meanwhile marks the experiment
//! again, and another split follows.

use powersweep_results::Table;
use uuid::Uuid;

use super::experiment::Experiment;
use super::leaving::Leaving;
use super::split::Attempt;
use super::tables::{Progress, TableRows};
use super::{ClientId, Effect, Farm, Now, PublishFailure};
use crate::records::{Key, Record, SplitPart, SplitRecord};
use crate::split::Sweeps;

impl Experiment {
    /// All rows in the state now are published before the next split.
    pub(super) fn mark_split(&mut self) {
        self.record.split_due = true;
        self.split.rows_before = self.tables.iter().map(|(table, rows)| (*table, rows.next_seq)).collect();
    }

    /// Whether rows must be published before a split can begin.
    pub(super) fn publishes_for_split(&self) -> bool {
        let begun = self.is_splitting() || self.split_record().is_some();
        self.record.split_due && !begun && !self.is_published_for_split()
    }

    fn is_published_for_split(&self) -> bool {
        let before = |table: Table| self.split.rows_before.get(&table).copied().unwrap_or(0);
        let unpublished = |(table, rows): (&Table, &TableRows)| {
            rows.unpublished.front().is_some_and(|header| header.seq < before(*table))
        };
        !self.tables.iter().any(unpublished)
            && self
                .intents
                .values()
                .filter(|open| open.quarantined.is_none())
                .all(|open| open.intent.first_seq >= before(open.intent.table()))
    }

    /// Whether the parts agree with the manifest.
    pub(super) fn is_split(&self) -> bool {
        !self.record.split_due && !self.record.pruning && self.split.attempt.is_none()
    }

    /// Whether the driver works on a split or a prune.
    pub(super) fn is_splitting(&self) -> bool {
        self.split.attempt.as_ref().is_some_and(|attempt| attempt.progress == Progress::Running)
    }

    /// Whether a split has to end before the experiment can leave with its rows. A split that fails is no reason to wait,
    /// unless parts may be missing.
    pub(super) fn splits_before_leaving(&self) -> bool {
        let may_miss_parts = self.is_splitting() || self.split_record().is_some() || self.record.pruning;
        may_miss_parts || self.record.split_due && self.sweep.is_some() && self.split.trouble.is_empty()
    }

    /// The split in words, for the status.
    pub(super) fn describe_split(&self) -> String {
        let doing = match self.record.pruning {
            true => "rows of values that left the manifest are being deleted",
            false => "rows of values that left the manifest are being moved to another folder",
        };
        match &self.split.trouble[..] {
            "" => doing.to_owned(),
            trouble => format!("{doing}; will be tried again: {trouble}"),
        }
    }

    fn sweeps(&self) -> Option<Sweeps> {
        let earlier = self.earlier.values().map(|earlier| earlier.sweep.clone()).collect();
        Some(Sweeps { present: self.sweep.clone()?, earlier })
    }

    /// The record of the split that is being carried out.
    pub(super) fn split_record(&self) -> Option<&SplitRecord> {
        self.split.attempt.as_ref()?.record.as_ref()
    }
}

impl Farm {
    /// Starts the next step of a split, or of the deletion of rows that left, if it is due.
    pub(super) fn advance_split(&mut self, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        match &mut experiment.split.attempt {
            Some(Attempt { progress: Progress::RetryAt(at), .. }) if *at > now.mono => return,
            Some(Attempt { progress: Progress::Running, .. }) => return,
            Some(Attempt { record: Some(record), progress, .. }) => {
                *progress = Progress::Running;
                return self.out.later(Effect::Split { record: record.clone() });
            }
            // An edit since the failure may have left other rows to publish first.
            Some(_) | None => experiment.split.attempt = None,
        }
        let due = experiment.record.split_due && experiment.is_published_for_split();
        let leaves = |leaving: &Leaving| leaving.drops_rows() || leaving.progress.is_some();
        if experiment.leaving.as_ref().is_some_and(leaves) || !due && !experiment.record.pruning {
            return;
        }
        let (id, generation) = (self.ids.next(now), experiment.record.generation);
        let effect = match experiment.sweeps() {
            _ if experiment.record.pruning => Effect::Prune { experiment: name.to_owned(), id },
            Some(sweeps) => Effect::PrepareSplit { experiment: name.to_owned(), id, sweeps: Box::new(sweeps) },
            None => return,
        };
        experiment.split.attempt = Some(Attempt { id, generation, record: None, progress: Progress::Running });
        self.out.later(effect);
    }

    /// The fragments of a split are in the staging folder, or could not be written.
    pub(super) fn split_prepared(
        &mut self,
        name: &str,
        id: Uuid,
        result: Result<Vec<SplitPart>, PublishFailure>,
        now: Now,
    ) {
        let Some(experiment) = self.attempted(name, id) else { return };
        let Some(attempt) = &mut experiment.split.attempt else { return };
        let parts = match result {
            Ok(parts) => parts,
            Err(failure) => return self.split_failed(name, failure, now),
        };
        experiment.split.trouble.clear();
        let outdated = attempt.generation != experiment.record.generation
            || experiment.leaving.as_ref().is_some_and(Leaving::drops_rows);
        if outdated || parts.is_empty() {
            experiment.record.split_due &= outdated;
            experiment.split.attempt = None;
            self.out.later(Effect::DiscardFragments { split: id });
            self.put_experiment(name);
            return self.after_split(name, now);
        }
        let record = SplitRecord { experiment: name.to_owned(), id: id.into(), generation: attempt.generation, parts };
        attempt.record = Some(record.clone());
        self.out.put(Record::Split(record.clone()));
        self.out.later(Effect::Split { record });
    }

    /// The parts of a split are replaced, or could not be.
    pub(super) fn split_done(&mut self, name: &str, id: Uuid, result: Result<(), PublishFailure>, now: Now) {
        let Some(experiment) = self.attempted(name, id) else { return };
        if let Err(failure) = result {
            return self.split_failed(name, failure, now);
        }
        experiment.split.trouble.clear();
        let Some(Attempt { record: Some(record), .. }) = experiment.split.attempt.take() else { return };
        // An edit since then needs another split.
        experiment.record.split_due = record.generation != experiment.record.generation;
        for part in &record.parts {
            experiment.table(part.table()).split(part);
        }
        let totals: Vec<Record> =
            experiment.tables.iter().map(|(table, rows)| rows.totals_record(name, *table)).collect();
        self.out.put_all(totals);
        self.out.delete(Key::Split { experiment: name.to_owned() });
        self.out.later(Effect::DiscardFragments { split: id });
        self.put_experiment(name);
        self.after_split(name, now);
    }

    /// The experiment whose present attempt has this id.
    fn attempted(&mut self, name: &str, id: Uuid) -> Option<&mut Experiment> {
        self.experiments.get_mut(name).filter(|e| e.split.attempt.as_ref().is_some_and(|attempt| attempt.id == id))
    }

    fn split_failed(&mut self, name: &str, failure: PublishFailure, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let Some(attempt) = &mut experiment.split.attempt else { return };
        attempt.progress = Progress::RetryAt(failure.retry_at(now));
        experiment.split.trouble = failure.reason;
        self.advance_leaving(name, now);
    }

    fn after_split(&mut self, name: &str, now: Now) {
        self.publish_due(name, now);
        self.advance_leaving(name, now);
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        if experiment.is_split() {
            for client in std::mem::take(&mut experiment.split.prunes) {
                self.prune(client, name, now);
            }
        }
    }

    /// Deletes the rows of tasks that left. A split comes first: until then, such rows are in other parts.
    pub(super) fn prune(&mut self, client: ClientId, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        if !experiment.is_split() {
            return experiment.split.prunes.push(client);
        }
        if experiment.extra() == 0 {
            return self.pruned(client, name, false);
        }
        experiment.record.pruning = true;
        let done = experiment.done.len();
        for (generation, earlier) in &mut experiment.earlier {
            for (chunk, _) in std::mem::take(&mut earlier.extra).chunks() {
                let generation = *generation;
                self.out.delete(Key::DoneChunk { experiment: name.to_owned(), generation, chunk });
            }
        }
        let tables: Vec<Table> = experiment.tables.keys().copied().collect();
        for table in tables {
            let lacking = experiment.lacking(table).min(done);
            let rows = experiment.table(table);
            rows.left_rows = 0;
            // Which of the deleted tasks had rows in the table is not known: the number of those without stays.
            rows.covered = rows.covered.min(done - lacking);
            self.out.put_all([rows.totals_record(name, table), rows.covered_record(name, table)]);
        }
        experiment.split.prunes.push(client);
        self.put_experiment(name);
        self.advance_split(name, now);
    }

    /// The parts of rows that left are deleted, or could not be.
    pub(super) fn parts_pruned(&mut self, name: &str, id: Uuid, result: Result<(), PublishFailure>, now: Now) {
        let Some(experiment) = self.attempted(name, id) else { return };
        if let Err(failure) = result {
            return self.split_failed(name, failure, now);
        }
        experiment.split.trouble.clear();
        experiment.split.attempt = None;
        experiment.record.pruning = false;
        let clients = std::mem::take(&mut experiment.split.prunes);
        self.put_experiment(name);
        for client in clients {
            self.pruned(client, name, true);
        }
        self.after_split(name, now);
    }

    fn pruned(&mut self, client: ClientId, name: &str, changed: bool) {
        let reply = self.controlled(name, changed, 0);
        self.out.reply(client, reply);
    }
}
