//! Removal of experiments: deletion, or setting aside under another name. Write-ahead logged.
//!
//! The steps are: a [`LeavingRecord`] becomes durable; the rows are published (or dropped, where the parts are deleted,
//! too); the parts are deleted or moved, which may be repeated; one batch deletes the experiment's records and writes
//! the records of the new name. A crash between two steps leaves the [`LeavingRecord`], from which recovery continues.

use uuid::Uuid;

use super::experiment::Experiment;
use super::tables::{OpenIntent, Progress};
use super::{ClientId, Effect, Farm, Now, PublishFailure, Reply, Submission};
use crate::records::{EarlierRecord, FailureRecord, Key, LeavingRecord, Record, Removal};
use powersweep_proto::v1::{self, ExperimentState};
use std::time::Duration;

/// The removal of an experiment.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) removal: Removal,
    /// Deleting or moving the parts; `None` while rows are still being published.
    pub(super) progress: Option<Progress>,
    /// Why the last attempt to delete or move the parts failed.
    pub(super) trouble: String,
    /// Clients that wait for the deletion.
    clients: Vec<ClientId>,
    /// The submission of the next bearer of the name, and the client that waits for it.
    next: Option<(ClientId, Box<Submission>)>,
}

impl Leaving {
    pub(super) fn new(removal: Removal) -> Leaving {
        Leaving { removal, progress: None, trouble: String::new(), clients: Vec::new(), next: None }
    }

    /// Whether unpublished rows are dropped.
    pub(super) fn drops_rows(&self) -> bool {
        self.removal == Removal::Erase
    }

    /// The removal in words, for replies and status.
    pub(super) fn describe(&self) -> String {
        let doing = match &self.removal {
            Removal::Forget => "it is being deleted; its parts stay".to_owned(),
            Removal::Erase => "it is being deleted with its parts".to_owned(),
            Removal::Rename(name) => format!("it is being set aside as {name}"),
        };
        if self.trouble.is_empty() { doing } else { format!("{doing}; will be tried again: {}", self.trouble) }
    }
}

/// The name under which an experiment is set aside. Generations never repeat, so no other experiment has it.
pub(super) fn aside_name(experiment: &Experiment) -> String {
    format!("{}@{}", experiment.name(), experiment.record.generation)
}

/// Whether this is the name of an experiment that was set aside and never runs again.
pub(super) fn is_aside(name: &str) -> bool {
    name.contains('@')
}

impl Farm {
    pub(super) fn delete(&mut self, client: ClientId, name: &str, force: bool, data_too: bool, now: Now) {
        let removal = if data_too { Removal::Erase } else { Removal::Forget };
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        if let Some(leaving) = &mut experiment.leaving {
            if leaving.removal == removal {
                return leaving.clients.push(client);
            }
            let removal = leaving.describe();
            return self.out.reply(client, Reply::Refused(format!("{name} cannot be deleted now: {removal}")));
        }
        let running = matches!(experiment.record.state(), ExperimentState::Running | ExperimentState::Waiting);
        if (running || !experiment.leased.is_empty()) && !force {
            let reason = format!("{name} has tasks to run: cancel it first, or delete it with --force");
            return self.out.reply(client, Reply::Refused(reason));
        }
        if running {
            self.set_state(name, ExperimentState::Cancelled);
        }
        let mut leaving = Leaving::new(removal);
        leaving.clients.push(client);
        self.leave(name, leaving, now);
    }

    /// Sets an experiment aside, then submits the next bearer of its name.
    pub(super) fn set_aside(&mut self, client: ClientId, name: &str, submission: Submission, now: Now) {
        let experiment = &self.experiments[name];
        let mut leaving = Leaving::new(Removal::Rename(aside_name(experiment)));
        leaving.next = Some((client, Box::new(submission)));
        self.leave(name, leaving, now);
    }

    fn leave(&mut self, name: &str, leaving: Leaving, now: Now) {
        self.revoke_all(name, now);
        let record = LeavingRecord { experiment: name.to_owned(), removal: leaving.removal.clone().into() };
        self.out.put(Record::Leaving(record));
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        experiment.leaving = Some(leaving);
        let flushes = std::mem::take(&mut experiment.flushes).into_iter().map(|wait| wait.client);
        for client in flushes.chain(std::mem::take(&mut experiment.split.prunes)) {
            self.out.reply(client, Reply::Refused(format!("{name} is being removed: this request ends")));
        }
        for open in experiment.intents.values_mut().filter(|open| open.quarantined.is_some()) {
            // Whether its rows would be lost is found out at once.
            open.progress = Progress::RetryAt(now.mono);
        }
        self.publish_due(name, now);
        self.advance_leaving(name, now);
    }

    /// Starts the next step of an experiment's removal, if it is due.
    pub(super) fn advance_leaving(&mut self, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let published = experiment.is_published();
        let (splitting, split_first) = (experiment.is_splitting(), experiment.splits_before_leaving());
        let publishing = experiment.intents.values().any(|open| open.progress == Progress::Running);
        let Some(leaving) = &mut experiment.leaving else { return };
        // A part that is being written could become visible after the deletion.
        let ready = if leaving.drops_rows() { !publishing && !splitting } else { published && !split_first };
        let due = match leaving.progress {
            None => ready,
            Some(Progress::Running) => false,
            Some(Progress::RetryAt(at)) => at <= now.mono,
        };
        if !due {
            return;
        }
        if leaving.removal == Removal::Forget {
            return self.left(name, Ok(()), now);
        }
        leaving.progress = Some(Progress::Running);
        let removal = leaving.removal.clone();
        self.out.later(Effect::Remove { experiment: name.to_owned(), removal });
    }

    /// The parts are deleted or moved, or could not be.
    pub(super) fn left(&mut self, name: &str, result: Result<(), PublishFailure>, now: Now) {
        let Some(leaving) = self.experiments.get_mut(name).and_then(|e| e.leaving.as_mut()) else { return };
        if let Err(failure) = result {
            leaving.progress = Some(Progress::RetryAt(failure.retry_at(now)));
            leaving.trouble = failure.reason;
            return;
        }
        let mut experiment = self.experiments.remove(name).expect("just found");
        let leaving = experiment.leaving.take().expect("just found");
        self.schedule.retain(|other| other != name);
        for worker in self.workers.values_mut() {
            worker.fits.remove(name);
        }
        self.delete_records(&experiment);
        self.forget_ended(name);
        self.generation_floor = self.generation_floor.max(experiment.record.generation);
        self.out.put(Record::GenerationFloor(self.generation_floor));
        let aside = match leaving.removal {
            Removal::Rename(to) => {
                self.store_as(experiment, &to);
                to
            }
            Removal::Forget | Removal::Erase => String::new(),
        };
        for client in leaving.clients {
            let state = v1::ExperimentState::Leaving.into();
            self.out.reply(client, Reply::Controlled(v1::ControlReply { state, changed: true, ..Default::default() }));
        }
        if let Some((client, submission)) = leaving.next {
            let reply = match self.try_submit(&submission, now) {
                Ok(Reply::Submitted(reply)) => {
                    Reply::Submitted(Box::new(v1::SubmitReply { set_aside: aside, ..*reply }))
                }
                Ok(other) | Err(other) => other,
            };
            self.out.reply(client, reply);
            self.wake_all();
        }
    }

    /// Ends a removal because this build cannot publish some of the rows, which would be lost.
    pub(super) fn stay(&mut self, name: &str, reason: &str) {
        let Some(leaving) = self.experiments.get_mut(name).and_then(|e| e.leaving.take()) else { return };
        self.out.delete(Key::Leaving { experiment: name.to_owned() });
        let reason = format!(
            "{name} is not removed, because some of its rows cannot be published: {reason}. If another version of \
             powersweep made these rows, remove it with that version. If storage lost them, run the tasks under a \
             new name, or copy the other rows with `powersweep results {name} --format parquet`, delete all of them with \
             `powersweep delete {name} --data-too`, and run the manifest again"
        );
        for client in leaving.clients.into_iter().chain(leaving.next.map(|(client, _)| client)) {
            self.out.reply(client, Reply::Refused(reason.clone()));
        }
        self.wake_all();
    }

    fn delete_records(&mut self, experiment: &Experiment) {
        let name = || experiment.record.name.clone();
        self.out.delete(Key::Leaving { experiment: name() });
        self.out.delete(Key::Experiment { name: name() });
        if let Some(split) = experiment.split_record() {
            self.out.delete(Key::Split { experiment: name() });
            self.out.later(Effect::DiscardFragments { split: *split.id });
        }
        for (generation, earlier) in &experiment.earlier {
            self.out.delete(Key::Earlier { experiment: name(), generation: *generation });
            for (chunk, _) in earlier.extra.chunks() {
                self.out.delete(Key::DoneChunk { experiment: name(), generation: *generation, chunk });
            }
        }
        let generation = experiment.record.generation;
        for (chunk, _) in experiment.done.chunks() {
            self.out.delete(Key::DoneChunk { experiment: name(), generation, chunk });
        }
        for failure in experiment.failures.values() {
            self.out.delete(failure.key());
        }
        for (table, rows) in &experiment.tables {
            let headers = || rows.unpublished.iter();
            self.delete_rows(&name(), *table, headers().map(|h| h.seq), headers().filter_map(|h| h.upload));
            self.out.delete(Key::Totals { experiment: name(), table: *table });
            self.out.delete(Key::Covered { experiment: name(), table: *table });
        }
        for (part_id, OpenIntent { intent, uploads, .. }) in &experiment.intents {
            self.out.delete(Key::Intent { part_id: *part_id });
            let seqs = intent.first_seq..=intent.last_seq;
            self.delete_rows(&name(), intent.table(), seqs, uploads.iter().copied());
        }
    }

    /// Stores an experiment whose rows are all published under another name.
    fn store_as(&mut self, mut experiment: Experiment, to: &str) {
        experiment.record.name = to.to_owned();
        if !matches!(experiment.record.state(), ExperimentState::Finished | ExperimentState::Failed) {
            experiment.record.set_state(ExperimentState::Cancelled);
        }
        for (generation, earlier) in &experiment.earlier {
            self.out.put(Record::Earlier(EarlierRecord {
                experiment: to.to_owned(),
                generation: *generation,
                manifest: earlier.sweep.manifest().text().to_owned(),
                digests: experiment.record.digests.clone(),
            }));
            self.out.put_all(earlier.extra.records(to, *generation).map(Record::DoneChunk));
        }
        self.out.put_all(experiment.done.records(to, experiment.record.generation).map(Record::DoneChunk));
        for failure in experiment.failures.values_mut() {
            *failure = FailureRecord { experiment: to.to_owned(), ..failure.clone() };
            self.out.put(Record::Failure(failure.clone()));
        }
        for (table, rows) in &experiment.tables {
            self.out.put_all([rows.totals_record(to, *table), rows.covered_record(to, *table)]);
        }
        self.schedule.push(to.to_owned());
        self.experiments.insert(to.to_owned(), experiment);
        self.put_experiment(to);
    }

    /// A part could not be published. True if its experiment is being removed with its rows, so that no other attempt
    /// follows.
    pub(super) fn part_failed_while_leaving(&mut self, name: &str, part_id: Uuid, failure: &PublishFailure) -> bool {
        let Some(experiment) = self.experiments.get_mut(name) else { return false };
        let Some(leaving) = &experiment.leaving else { return false };
        if leaving.drops_rows() {
            // The intent is deleted with the experiment, and must not be published before.
            if let Some(open) = experiment.intents.get_mut(&part_id) {
                open.progress = Progress::RetryAt(Duration::MAX);
            }
            return true;
        }
        if !failure.retryable {
            self.stay(name, &failure.reason);
        }
        false
    }
}
