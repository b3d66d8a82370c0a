//! Submits: new experiments, unchanged manifests, edited manifests, changed pins.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_experiments::{Digest, Mapping, Sweep, difference, shown_differences};
use powersweep_proto::v1::{self, ExperimentState, LeaseId};
use powersweep_results::Table;
use powersweep_results::layout::left_name;

use super::experiment::{Earlier, Experiment};
use super::index_set::{IndexSet, chunk_of};
use super::leaving::{aside_name, is_aside};
use super::pending::Pending;
use super::tables::tables_of;
use super::{ClientId, Farm, Now, Reply, Submission, pins};
use crate::records::{EarlierRecord, ExperimentRecord, FailureRecord, Key, LogRecord, Record};

/// Maximum number of indices of a sweep: chunk numbers have 32 bits.
const INDICES_MAX: u64 = 1 << 48;

/// Done and failed tasks of an experiment, by the indices of a new manifest.
#[derive(Default)]
struct Moved {
    done: IndexSet,
    failures: Vec<FailureRecord>,
    /// For each earlier generation and the present one: tasks with rows that are not in the new manifest.
    extra: BTreeMap<u64, IndexSet>,
}

impl Farm {
    pub(super) fn submit(&mut self, client: ClientId, submission: Submission, now: Now) {
        if let Some(reason) = self.stalled.as_ref().filter(|_| !submission.dry_run) {
            // Otherwise the client would wait for the storage, perhaps for hours, without a reason.
            let refusal = format!("the submit cannot be stored now ({reason}); submit again when storage works");
            return self.out.reply_now(client, Reply::Refused(refusal));
        }
        let name = submission.sweep.manifest().name();
        let generation = self.experiments.get(name).map_or(0, |experiment| experiment.record.generation);
        if let Some(edited) = submission.edits.filter(|edited| *edited != generation) {
            let refusal = format!(
                "{name} has generation {generation}, and the manifest edits generation {edited}: another submit came between. \
                 Edit the manifest that the experiment has now"
            );
            return self.out.reply(client, Reply::Refused(refusal));
        }
        let aside = self.experiments.get(name).filter(|experiment| {
            sets_aside(experiment, &submission) && experiment.leaving.is_none() && !submission.dry_run
        });
        if let Some(experiment) = aside {
            if let Err(refusal) = check_owner(experiment, &submission) {
                return self.out.reply(client, refusal);
            }
            let name = experiment.name().to_owned();
            return self.set_aside(client, &name, submission, now);
        }
        let reply = self.try_submit(&submission, now).unwrap_or_else(|refusal| refusal);
        self.out.reply(client, reply);
        self.wake_all();
    }

    pub(super) fn try_submit(&mut self, submission: &Submission, now: Now) -> Result<Reply, Reply> {
        let sweep = &submission.sweep;
        let name = sweep.manifest().name().to_owned();
        if is_aside(&name) {
            return Err(Reply::Invalid(format!("{name}: only an experiment that was set aside has a name with @")));
        }
        if sweep.index_count() >= INDICES_MAX {
            return Err(Reply::Invalid(format!("the sweep has {} indices, not fewer than 2^48", sweep.index_count())));
        }
        submission.priority.map_or(Ok(()), super::control::check_priority)?;
        let missing = self.missing(submission.digests.values());
        let Some(experiment) = self.experiments.get(&name) else {
            if submission.dry_run {
                let generation = self.generation_floor + 1;
                return Ok(submitted(reply_of(&name, generation, sweep, &Moved::default(), &missing)));
            }
            self.create(&name, submission, missing, now);
            return Ok(submitted(self.submitted(&name)));
        };
        if let Some(refusal) = super::control::deletable_only(experiment) {
            return Err(Reply::Refused(refusal));
        }
        check_owner(experiment, submission)?;
        if submission.dry_run && sets_aside(experiment, submission) {
            let generation = self.generation_floor.max(experiment.record.generation) + 1;
            let reply = reply_of(&name, generation, sweep, &Moved::default(), &missing);
            return Ok(submitted(v1::SubmitReply { set_aside: aside_name(experiment), ..reply }));
        }
        check_pins(experiment, submission)?;
        let same = experiment.record.manifest == sweep.manifest().text() && experiment.sweep.is_some();
        if same && !submission.dry_run {
            self.submit_again(&name, submission, missing, now);
            self.publish_due(&name, now);
            return Ok(submitted(self.submitted(&name)));
        }
        // The farm of `run` serves one user's command, who edits the manifest at will.
        if !same && self.config.only.is_none() {
            check_shared_tasks(experiment, submission)?;
        }
        if submission.dry_run {
            let generation = experiment.record.generation + u64::from(!same);
            let moved = if same { unmoved(experiment) } else { move_to(experiment, sweep) };
            let lacking = lacking(experiment, tables_of(sweep));
            let reply = reply_of(&name, generation, sweep, &moved, &missing);
            return Ok(submitted(v1::SubmitReply { lacking, ..reply }));
        }
        self.edit(&name, submission, missing, now);
        Ok(submitted(self.submitted(&name)))
    }

    /// The logs that have to be uploaded before tasks can run.
    pub(super) fn missing<'a>(&self, digests: impl IntoIterator<Item = &'a Digest>) -> BTreeSet<Digest> {
        let lacks = |digest: &&Digest| !self.config.readable_logs.contains(*digest) && !self.logs.contains_key(*digest);
        digests.into_iter().filter(lacks).copied().collect()
    }

    /// A submit of an unchanged manifest: a cancelled experiment runs again, a paused one stays paused. Rows that could not
    /// be published are tried again.
    fn submit_again(&mut self, name: &str, submission: &Submission, missing: BTreeSet<Digest>, now: Now) {
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        experiment.missing = missing;
        experiment.unclaimed = false;
        experiment.more_follows = submission.more_follows;
        let before = experiment.record.clone();
        experiment.record.priority = submission.priority.unwrap_or(before.priority);
        let refused = experiment.try_refused_parts(now);
        if before.state() == ExperimentState::Cancelled || before.state() == ExperimentState::Failed && refused {
            experiment.record.set_state(ExperimentState::Running);
        }
        if experiment.record != before {
            self.out.put(Record::Experiment(experiment.record.clone()));
        }
    }

    fn create(&mut self, name: &str, submission: &Submission, missing: BTreeSet<Digest>, now: Now) {
        let record = ExperimentRecord {
            generation: self.generation_floor + 1,
            created_us: now.wall_us,
            priority: submission.priority.unwrap_or(0),
            owner: submission.user.clone(),
            ledgers: submission.ledgers.clone(),
            ..pins::new_record(&submission.sweep, &submission.digests)
        };
        let mut experiment = Experiment::new(record, Ok(submission.sweep.clone()), now);
        experiment.missing = missing;
        experiment.more_follows = submission.more_follows;
        self.experiments.insert(name.to_owned(), experiment);
        self.schedule.push(name.to_owned());
        self.put_experiment(name);
        self.put_covered(name);
        self.finish(name);
    }

    /// Replaces the manifest by an edited one: rows stay with their tasks, leases continue.
    fn edit(&mut self, name: &str, submission: &Submission, missing: BTreeSet<Digest>, now: Now) {
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        let old = experiment.record.clone();
        let moved = move_to(experiment, &submission.sweep);
        for (chunk, _) in experiment.done.chunks() {
            self.out.delete(Key::DoneChunk { experiment: name.to_owned(), generation: old.generation, chunk });
        }
        for failure in experiment.failures.values() {
            self.out.delete(failure.key());
        }
        experiment.record = ExperimentRecord {
            generation: old.generation + 1,
            manifest: submission.sweep.manifest().text().to_owned(),
            digests: old.digests.clone().into_iter().chain(pins::stored(&submission.digests)).collect(),
            pins: old.pins.clone().into_iter().chain(pins::component_versions(&submission.sweep)).collect(),
            tables: tables_of(&submission.sweep).into_iter().map(i32::from).collect(),
            state: if old.state() == ExperimentState::Paused { old.state } else { ExperimentState::Running.into() },
            priority: submission.priority.unwrap_or(old.priority),
            owner: if submission.replace { submission.user.clone() } else { old.owner.clone() },
            ledgers: submission.ledgers.clone(),
            ..old.clone()
        };
        let before = |(generation, extra): (&u64, &IndexSet)| {
            extra.len() != experiment.earlier.get(generation).map_or(0, |earlier| earlier.extra.len())
        };
        if moved.extra.iter().any(before) {
            experiment.mark_split();
        }
        let old_sweep = experiment.sweep.replace(submission.sweep.clone());
        experiment.broken = None;
        experiment.unclaimed = false;
        experiment.more_follows = submission.more_follows;
        experiment.missing = missing;
        if let Some(sweep) = old_sweep {
            experiment.earlier.insert(old.generation, Earlier { sweep, extra: IndexSet::new() });
            self.out.put(Record::Earlier(EarlierRecord {
                experiment: name.to_owned(),
                generation: old.generation,
                manifest: old.manifest,
                digests: old.digests,
            }));
        }
        self.put_experiment(name);
        self.store_moved(name, moved);
        self.put_covered(name);
        self.move_leases(name, old.generation);
        self.publish_due(name, now);
    }

    fn store_moved(&mut self, name: &str, moved: Moved) {
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        for (generation, extra) in moved.extra {
            let Some(earlier) = experiment.earlier.get_mut(&generation) else { continue };
            let before = std::mem::replace(&mut earlier.extra, extra);
            for (chunk, _) in before.chunks().filter(|(chunk, _)| earlier.extra.chunk(*chunk).is_none()) {
                self.out.delete(Key::DoneChunk { experiment: name.to_owned(), generation, chunk });
            }
            self.out.put_all(earlier.extra.records(name, generation).map(Record::DoneChunk));
        }
        experiment.done = moved.done;
        experiment.failed = IndexSet::new();
        experiment.quarantined = 0;
        experiment.failures.clear();
        experiment.leased = IndexSet::new();
        experiment.duplicated.clear();
        experiment.pending = Pending::default();
        experiment.rate.restart();
        for failure in moved.failures {
            let record = experiment.set_failure(failure);
            self.out.put(record);
        }
        for (chunk, _) in experiment.done.chunks() {
            self.out.done_changed(name, chunk);
        }
    }

    /// Stores the number of covered tasks of each optional table that the manifest asks for.
    fn put_covered(&mut self, name: &str) {
        let experiment = self.experiments.get_mut(name).expect("the caller found it");
        let tables: Vec<Table> = experiment.record.tables().collect();
        for table in tables {
            let record = experiment.table(table).covered_record(name, table);
            self.out.put(record);
        }
    }

    /// Maps the open tasks of leases to the indices of the new manifest. Tasks that it does not have, or that are done
    /// or failed there, leave their leases.
    fn move_leases(&mut self, name: &str, old_generation: u64) {
        let experiment = &self.experiments[name];
        let (Some(new), Some(old)) = (&experiment.sweep, experiment.earlier.get(&old_generation)) else {
            return;
        };
        let mut mapping = Mapping::new(&old.sweep, new);
        let ids: Vec<LeaseId> =
            self.leases.iter().filter(|(_, l)| l.grant.experiment == name).map(|(id, _)| *id).collect();
        for id in ids {
            let lease = self.leases.get_mut(&id).expect("just listed");
            let experiment = self.experiments.get_mut(name).expect("the caller found it");
            let before = lease.open.len();
            let moved = lease.open.iter().filter_map(|index| mapping.index(index));
            lease.open = moved.filter(|&i| !experiment.done.contains(i) && !experiment.failed.contains(i)).collect();
            lease.owed |= lease.open.len() < before;
            for index in lease.open.iter() {
                if !experiment.leased.insert(index) {
                    *experiment.duplicated.entry(index).or_insert(1) += 1;
                }
            }
            if let Some(worker) = self.workers.get_mut(&lease.grant.worker) {
                worker.outstanding = worker.outstanding + lease.open.len() - before;
            }
            self.drop_if_empty(id);
        }
    }

    /// The reply about an experiment in its present state.
    fn submitted(&self, name: &str) -> v1::SubmitReply {
        let experiment = &self.experiments[name];
        let (done, failed) = (experiment.done.len(), experiment.failed.len());
        v1::SubmitReply {
            experiment: name.to_owned(),
            generation: experiment.record.generation,
            tasks: experiment.tasks(),
            done,
            to_run: experiment.open_tasks(),
            failed,
            extra: experiment.extra(),
            missing_logs: experiment.missing.iter().map(|digest| digest.as_bytes().to_vec().into()).collect(),
            state: self.state_of(experiment).0.into(),
            priority: experiment.record.priority,
            set_aside: String::new(),
            lacking: lacking(experiment, experiment.record.tables()),
        }
    }

    pub(super) fn log_stored(&mut self, digest: Digest, bytes: u64) {
        if self.logs.insert(digest, bytes).is_none() {
            self.out.put(Record::Log(LogRecord { digest: digest.into(), bytes, name: String::new() }));
        }
        for experiment in self.experiments.values_mut() {
            experiment.missing.remove(&digest);
        }
        self.wake_all();
    }
}

fn submitted(reply: v1::SubmitReply) -> Reply {
    Reply::Submitted(Box::new(reply))
}

/// Differences between the versions, digests and schema of a submission and the pins of the experiment.
fn changed_pins(experiment: &Experiment, submission: &Submission) -> Vec<String> {
    let record = &experiment.record;
    let mut changed = pins::changed(&record.pins, &pins::component_versions(&submission.sweep));
    for (file, new) in &submission.digests {
        if record.digests.get(file).is_some_and(|old| **old != *new) {
            let manifest = submission.sweep.manifest();
            let is_signal = manifest.signals().iter().any(|signal| *signal.file == **file);
            let is_module = manifest.modules().iter().any(|module| **module == **file);
            let kind = match (is_signal, is_module) {
                (true, _) => "signal file",
                (_, true) => "policy module",
                _ => "log",
            };
            changed.push(format!("{kind} {file} has other content than before"));
        }
    }
    let signals = |sweep: &Sweep| sweep.manifest().signals().to_vec();
    let old = experiment.sweep.as_ref().map(signals).unwrap_or_default();
    if !old.is_empty() && old != signals(&submission.sweep) {
        changed.push("[signals] differ from those that the rows of the table accounts were weighed by".to_owned());
    }
    if record.tasks_schema != pins::tasks_schema() {
        changed.push("this build has other columns in the tasks table".to_owned());
    }
    changed
}

/// Whether a submit renames the experiment. A restart of an experiment without rows changes nothing, so that a repeated
/// request does not rename the new experiment, too.
fn sets_aside(experiment: &Experiment, submission: &Submission) -> bool {
    submission.restart && (experiment.has_history() || !changed_pins(experiment, submission).is_empty())
}

/// Refuses to change another user's experiment, unless the user says that it is meant.
fn check_owner(experiment: &Experiment, submission: &Submission) -> Result<(), Reply> {
    let (name, record) = (experiment.name(), &experiment.record);
    // Submitting an unchanged manifest sets its priority and ends its cancellation.
    let changes = submission.restart
        || record.manifest != submission.sweep.manifest().text()
        || submission.priority.is_some_and(|priority| priority != record.priority)
        || record.state() == ExperimentState::Cancelled;
    let other = experiment.other_owner(&submission.user).filter(|_| changes && !submission.replace);
    let Some(owner) = other else { return Ok(()) };
    Err(Reply::Forbidden(format!(
        "{name} was submitted by {owner}: {}. Give the manifest another name, or submit with --replace if {owner}'s \
         experiment shall change",
        held(experiment)
    )))
}

/// Refuses a manifest that shares no task with the experiment: mostly two experiments were given the same name.
fn check_shared_tasks(experiment: &Experiment, submission: &Submission) -> Result<(), Reply> {
    let Some(old) = experiment.sweep.as_ref().filter(|_| !submission.replace) else { return Ok(()) };
    if Mapping::new(old, &submission.sweep).may_share_a_task() {
        return Ok(());
    }
    let name = experiment.name();
    let shown = shown_differences(difference(old.manifest(), submission.sweep.manifest()));
    Err(Reply::Refused(format!(
        "this manifest shares no task with the experiment {name}, which has {}. The manifests differ:\n  {shown}\nGive \
         the manifest another name, or submit with --replace: the rows then move to {}",
        held(experiment),
        left_name(name)
    )))
}

/// What an experiment has, in words.
fn held(experiment: &Experiment) -> String {
    format!("{} tasks with a row, {} to run", experiment.done.len(), experiment.open_tasks())
}

fn check_pins(experiment: &Experiment, submission: &Submission) -> Result<(), Reply> {
    let changed = changed_pins(experiment, submission);
    if changed.is_empty() {
        return Ok(());
    }
    let name = experiment.name();
    let has_rows = !experiment.done.is_empty() || experiment.extra() > 0;
    let what = match has_rows {
        true => "has rows that this submit would not reproduce",
        false => "has no rows, and was submitted with other inputs",
    };
    Err(Reply::Refused(format!(
        "{name} {what}: {}. Give the experiment a new name, or submit with \
         --restart: the old experiment is renamed {}, and a new one starts",
        changed.join("; "),
        aside_name(experiment)
    )))
}

/// The tasks under the unchanged manifest, for a dry run.
fn unmoved(experiment: &Experiment) -> Moved {
    Moved {
        done: experiment.done.clone(),
        failures: experiment.failures.values().cloned().collect(),
        extra: experiment.earlier.iter().map(|(generation, e)| (*generation, e.extra.clone())).collect(),
    }
}

/// Maps every row and every failure to a new sweep, by the values of its task.
fn move_to(experiment: &Experiment, new: &Sweep) -> Moved {
    let mut moved = Moved::default();
    let generation = experiment.record.generation + 1;
    let earlier = experiment.earlier.iter().map(|(generation, e)| (*generation, &e.sweep, &e.extra));
    let present = experiment.sweep.iter().map(|sweep| (experiment.record.generation, sweep, &experiment.done));
    for (generation, sweep, rows) in earlier.chain(present) {
        let extra = moved.extra.entry(generation).or_default();
        let mut mapping = Mapping::new(sweep, new);
        for index in rows.iter() {
            match mapping.index(index) {
                Some(new_index) => drop(moved.done.insert(new_index)),
                None => drop(extra.insert(index)),
            }
        }
    }
    let mut mapping = experiment.sweep.as_ref().map(|sweep| Mapping::new(sweep, new));
    for failure in experiment.failures.values() {
        let Some(index) = mapping.as_mut().and_then(|mapping| mapping.index(failure.index)) else { continue };
        if !moved.done.contains(index) {
            moved.failures.push(FailureRecord { generation, index, ..failure.clone() });
        }
    }
    moved
}

/// The optional tables without rows of some tasks that have a row in `tasks`.
fn lacking(experiment: &Experiment, tables: impl IntoIterator<Item = Table>) -> Vec<v1::TableGap> {
    let gap = |table: Table| v1::TableGap { table: table.name().to_owned(), tasks: experiment.lacking(table) };
    tables.into_iter().map(gap).filter(|gap| gap.tasks > 0).collect()
}

fn reply_of(name: &str, generation: u64, sweep: &Sweep, moved: &Moved, missing: &BTreeSet<Digest>) -> v1::SubmitReply {
    let done = moved.done.len();
    let failed = moved.failures.iter().filter(|failure| failure.quarantined).count() as u64;
    debug_assert!(moved.done.chunks().all(|(chunk, _)| chunk <= chunk_of(sweep.index_count())));
    v1::SubmitReply {
        experiment: name.to_owned(),
        generation,
        tasks: sweep.task_count(),
        done,
        to_run: sweep.task_count() - done - failed,
        failed,
        extra: moved.extra.values().map(IndexSet::len).sum(),
        missing_logs: missing.iter().map(|digest| digest.as_bytes().to_vec().into()).collect(),
        ..v1::SubmitReply::default()
    }
}
