//! Experiments that go away: deleted, or set aside under another name.
//!
//! The order is: a record of what becomes of it is durable; its rows are put in parts (or given up, where the parts go
//! too); its parts are deleted or moved, which may be repeated; one batch takes its records away, and puts those of the
//! new name. A crash between any two of these leaves the first record, and recovery goes on from it.

use uuid::Uuid;

use super::experiment::Experiment;
use super::tables::{OpenIntent, Progress};
use super::{ClientId, Effect, Farm, Now, PublishFailure, Reply, Submission};
use crate::records::{EarlierRecord, FailureRecord, Fate, Key, LeavingRecord, Record};
use powersweep_proto::v1::{self, ExperimentState};
use std::time::Duration;

/// Wait before parts are deleted or moved again after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// An experiment on its way out.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) fate: Fate,
    /// Deleting or moving the parts; `None` while rows are still put in parts.
    pub(super) progress: Option<Progress>,
    /// Why parts could not be deleted or moved, the last time.
    pub(super) trouble: String,
    /// Who waits for the deletion.
    clients: Vec<ClientId>,
    /// Who waits for the new experiment under the old name.
    next: Option<(ClientId, Box<Submission>)>,
}

impl Leaving {
    pub(super) fn new(fate: Fate) -> Leaving {
        Leaving { fate, progress: None, trouble: String::new(), clients: Vec::new(), next: None }
    }

    /// Whether its rows need no part any more.
    pub(super) fn gives_rows_up(&self) -> bool {
        self.fate == Fate::Erase
    }

    /// What is happening, in words.
    pub(super) fn words(&self) -> String {
        let doing = match &self.fate {
            Fate::Forget => "it is being deleted; its parts stay".to_owned(),
            Fate::Erase => "it is being deleted with its parts".to_owned(),
            Fate::Rename(name) => format!("it is being set aside as {name}"),
        };
        if self.trouble.is_empty() { doing } else { format!("{doing}; tried again: {}", self.trouble) }
    }
}

/// The name under which an experiment of other pins is set aside. Generations never come back, so it is free.
pub(super) fn aside_name(experiment: &Experiment) -> String {
    format!("{}@{}", experiment.name(), experiment.record.generation)
}

/// Whether an experiment was set aside: it never runs again.
pub(super) fn is_aside(name: &str) -> bool {
    name.contains('@')
}

impl Farm {
    pub(super) fn delete(&mut self, client: ClientId, name: &str, force: bool, data_too: bool, now: Now) {
        let fate = if data_too { Fate::Erase } else { Fate::Forget };
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        if let Some(leaving) = &mut experiment.leaving {
            if leaving.fate == fate {
                return leaving.clients.push(client);
            }
            let words = leaving.words();
            return self.out.reply(client, Reply::Refused(format!("{name} cannot be deleted now: {words}")));
        }
        let running = matches!(experiment.record.state(), ExperimentState::Running | ExperimentState::Waiting);
        if (running || !experiment.leased.is_empty()) && !force {
            let reason = format!("{name} has tasks to run: cancel it first, or delete it with --force");
            return self.out.reply(client, Reply::Refused(reason));
        }
        if running {
            self.set_state(name, ExperimentState::Cancelled);
        }
        let mut leaving = Leaving::new(fate);
        leaving.clients.push(client);
        self.leave(name, leaving, now);
    }

    /// Sets an experiment aside; the submission comes in its place.
    pub(super) fn set_aside(&mut self, client: ClientId, name: &str, submission: Submission, now: Now) {
        let experiment = &self.experiments[name];
        let mut leaving = Leaving::new(Fate::Rename(aside_name(experiment)));
        leaving.next = Some((client, Box::new(submission)));
        self.leave(name, leaving, now);
    }

    fn leave(&mut self, name: &str, leaving: Leaving, now: Now) {
        self.revoke_all(name, now);
        let record = LeavingRecord { experiment: name.to_owned(), fate: leaving.fate.clone().into() };
        self.out.put(Record::Leaving(record));
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        experiment.leaving = Some(leaving);
        for wait in std::mem::take(&mut experiment.flushes) {
            self.out.reply(wait.client, Reply::Refused(format!("{name} goes away: its rows are not flushed")));
        }
        self.publish_due(name, now);
        self.advance_leaving(name, now);
    }

    /// Goes on with an experiment that leaves, as far as it can.
    pub(super) fn advance_leaving(&mut self, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let published = experiment.is_published();
        let publishing = experiment.intents.values().any(|open| open.progress == Progress::Running);
        let Some(leaving) = &mut experiment.leaving else { return };
        // A part that is being written would come back after its deletion.
        let ready = if leaving.gives_rows_up() { !publishing } else { published };
        let due = match leaving.progress {
            None => ready,
            Some(Progress::Running) => false,
            Some(Progress::RetryAt(at)) => at <= now.mono,
        };
        if !due {
            return;
        }
        if leaving.fate == Fate::Forget {
            return self.left(name, Ok(()), now);
        }
        leaving.progress = Some(Progress::Running);
        let fate = leaving.fate.clone();
        self.out.later(Effect::Leave { experiment: name.to_owned(), fate });
    }

    /// The parts are deleted or moved, or could not be.
    pub(super) fn left(&mut self, name: &str, result: Result<(), PublishFailure>, now: Now) {
        let Some(leaving) = self.experiments.get_mut(name).and_then(|e| e.leaving.as_mut()) else { return };
        if let Err(failure) = result {
            let wait = if failure.retryable { RETRY_AFTER } else { RETRY_AFTER * 15 };
            leaving.progress = Some(Progress::RetryAt(now.mono + wait));
            leaving.trouble = failure.reason;
            return;
        }
        let mut experiment = self.experiments.remove(name).expect("just found");
        let leaving = experiment.leaving.take().expect("just found");
        self.schedule.retain(|other| other != name);
        for worker in self.workers.values_mut() {
            worker.fits.remove(name);
        }
        self.forget_records(&experiment);
        self.generation_floor = self.generation_floor.max(experiment.record.generation);
        self.out.put(Record::GenerationFloor(self.generation_floor));
        let aside = match leaving.fate {
            Fate::Rename(to) => {
                self.come_back_as(experiment, &to);
                to
            }
            Fate::Forget | Fate::Erase => String::new(),
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

    /// Some of its rows cannot be written by this build: nothing leaves, so that they are not lost.
    pub(super) fn stay(&mut self, name: &str, reason: &str) {
        let Some(leaving) = self.experiments.get_mut(name).and_then(|e| e.leaving.take()) else { return };
        self.out.delete(Key::Leaving { experiment: name.to_owned() });
        let reason = format!(
            "{name} stays, as rows of it cannot be put in a part: {reason}. End it with the version of powersweep that \
             made them, or give them up with `delete --data-too`"
        );
        for client in leaving.clients.into_iter().chain(leaving.next.map(|(client, _)| client)) {
            self.out.reply(client, Reply::Refused(reason.clone()));
        }
        self.wake_all();
    }

    fn forget_records(&mut self, experiment: &Experiment) {
        let name = || experiment.record.name.clone();
        self.out.delete(Key::Leaving { experiment: name() });
        self.out.delete(Key::Experiment { name: name() });
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

    /// Stores an experiment without rows under another name.
    fn come_back_as(&mut self, mut experiment: Experiment, to: &str) {
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

    /// A part of an experiment that leaves could not be published. True if that settles it.
    pub(super) fn part_failed_while_leaving(&mut self, name: &str, part_id: Uuid, failure: &PublishFailure) -> bool {
        let Some(experiment) = self.experiments.get_mut(name) else { return false };
        let Some(leaving) = &experiment.leaving else { return false };
        if leaving.gives_rows_up() {
            // The record goes with the experiment; it must not be published again until then.
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
