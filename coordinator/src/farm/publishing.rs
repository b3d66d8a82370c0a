//! Publishing: acknowledged rows become parts of the dataset.

use std::time::Duration;

use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::Table;
use uuid::Uuid;

use super::leaving::Leaving;
use super::tables::{FlushWait, OpenIntent, PartLimits, Progress, Taken};
use super::{ClientId, Effect, Farm, Now, PublishFailure, Reply};
use crate::publish::Visible;
use crate::records::{Intent, Key, Record};

/// Rows wait for a part at most this fraction of their experiment's age, where that is longer than
/// [`Config::part_age`](super::Config::part_age): the number of parts made because of their age grows with the
/// logarithm of the time.
const AGE_FRACTION: u32 = 12;

impl Farm {
    /// Publishes rows that are due: enough for a part, old enough, or the last ones. Starts a split that is due. Finishes
    /// an experiment whose parts are all visible.
    pub(super) fn publish_due(&mut self, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get(name) else { return };
        if experiment.leaving.as_ref().is_some_and(Leaving::drops_rows) {
            // A failed part is not tried again either: it could become visible after the deletion.
            return;
        }
        let all = self.closing
            || experiment.is_at_rest()
            || !experiment.flushes.is_empty()
            || experiment.publishes_for_split();
        let tables: Vec<Table> = experiment.tables.keys().copied().collect();
        self.retry_parts(name, now);
        for table in tables {
            while self.is_due(name, table, all, now) && self.open_intent(name, table, now) {}
        }
        self.advance_split(name, now);
        self.finish(name);
    }

    pub(super) fn publish_everything(&mut self, now: Now) {
        for name in self.schedule.clone() {
            self.publish_due(&name, now);
        }
    }

    fn is_due(&self, name: &str, table: Table, all: bool, now: Now) -> bool {
        let Some(experiment) = self.experiments.get(name) else { return false };
        let Some(rows) = experiment.tables.get(&table) else { return false };
        let Some(oldest_us) = rows.oldest_us() else { return false };
        let age_us = now.wall_us.saturating_sub(oldest_us);
        let late = self.publish_age(experiment.record.created_us, now);
        all || rows.is_full(PartLimits::of(table, &self.config))
            || age_us > i64::try_from(late.as_micros()).unwrap_or(i64::MAX)
    }

    /// The age at which rows are published whatever their number.
    fn publish_age(&self, created_us: i64, now: Now) -> Duration {
        let age = Duration::from_micros(u64::try_from(now.wall_us.saturating_sub(created_us)).unwrap_or(0));
        let (least, most) = (self.config.part_age, self.config.part_age_max.max(self.config.part_age));
        (age / AGE_FRACTION).clamp(least, most)
    }

    /// Opens the intent of one part, whose rows are in this batch or in an earlier one. False if there are no rows.
    fn open_intent(&mut self, name: &str, table: Table, now: Now) -> bool {
        let limits = PartLimits::of(table, &self.config);
        let Some(experiment) = self.experiments.get_mut(name) else { return false };
        let own = experiment.table(table);
        let Some(Taken { first_seq, last_seq, rows, uploads }) = own.take_part(limits) else { return false };
        own.publishing_rows += rows;
        let part_id = self.ids.next(now);
        let (experiment_name, table) = (name.to_owned(), table.into());
        let (part_id_stored, refused) = (part_id.into(), String::new());
        let intent =
            Intent { experiment: experiment_name, table, part_id: part_id_stored, first_seq, last_seq, rows, refused };
        let open = OpenIntent { intent: intent.clone(), uploads, progress: Progress::Running, quarantined: None };
        experiment.intents.insert(part_id, open);
        self.out.put(Record::Intent(intent.clone()));
        self.out.later(Effect::Publish { intent });
        true
    }

    /// Whether [`Config::part_rows_waiting`](super::Config::part_rows_waiting) is reached. Parts that storage refuses do
    /// not count: one experiment's failure must not stop the others.
    pub(super) fn is_behind_with_parts(&self) -> bool {
        let intents = self.experiments.values().flat_map(|experiment| experiment.intents.values());
        let made = |open: &&OpenIntent| {
            open.progress == Progress::Running && open.uploads.is_empty() && open.quarantined.is_none()
        };
        intents.filter(made).map(|open| open.intent.rows).sum::<u64>() >= self.config.part_rows_waiting
    }

    fn retry_parts(&mut self, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        for open in experiment.intents.values_mut() {
            if matches!(open.progress, Progress::RetryAt(at) if at <= now.mono) {
                open.progress = Progress::Running;
                self.out.later(Effect::Publish { intent: open.intent.clone() });
            }
        }
    }

    pub(super) fn published(&mut self, part_id: Uuid, result: Result<Visible, PublishFailure>, now: Now) {
        let found = self.experiments.values_mut().find(|experiment| experiment.intents.contains_key(&part_id));
        let Some(experiment) = found else { return };
        let name = experiment.record.name.clone();
        match result {
            Ok(part) => {
                (self.publish_trouble, self.refuses_parts) = (None, false);
                let open = experiment.intents.remove(&part_id).expect("just found");
                let table = open.intent.table();
                let rows = experiment.table(table);
                rows.published(open.intent.rows, part);
                self.out.put(rows.totals_record(&name, table));
                self.out.delete(Key::Intent { part_id });
                self.delete_rows(&name, table, open.intent.first_seq..=open.intent.last_seq, open.uploads);
                self.answer_flushes(&name);
                self.advance_split(&name, now);
                self.finish(&name);
                self.advance_leaving(&name, now);
            }
            Err(failure) => {
                if self.part_failed_while_leaving(&name, part_id, &failure) {
                    return self.advance_leaving(&name, now);
                }
                let experiment = self.experiments.get_mut(&name).expect("just found");
                let open = experiment.intents.get_mut(&part_id).expect("just found");
                open.progress = Progress::RetryAt(failure.retry_at(now));
                open.quarantined = (!failure.retryable).then(|| failure.reason.clone());
                let refused = open.quarantined.clone().unwrap_or_default();
                if open.intent.refused != refused {
                    open.intent.refused = refused;
                    self.out.put(Record::Intent(open.intent.clone()));
                }
                let intent = &open.intent;
                self.refuses_parts = failure.retryable;
                self.publish_trouble =
                    Some(format!("part {part_id} of {name}/{} is not visible: {}", intent.table(), failure.reason));
                self.answer_flushes(&name);
                self.finish(&name);
            }
        }
    }

    /// Deletes records of rows, and uploads. Uploads are deleted once the deletion of the records is durable: recovery
    /// needs them until then.
    pub(super) fn delete_rows(
        &mut self,
        name: &str,
        table: Table,
        seqs: impl IntoIterator<Item = u64>,
        uploads: impl IntoIterator<Item = Uuid>,
    ) {
        for seq in seqs {
            self.out.delete(Key::Rows { experiment: name.to_owned(), table, seq });
        }
        for part_id in uploads {
            self.out.later(Effect::Discard { experiment: name.to_owned(), table, part_id });
        }
    }

    /// Ends an experiment when every task is done or failed for good, all rows are visible, and the tables hold the
    /// manifest's rows alone.
    pub(super) fn finish(&mut self, name: &str) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        // Rows that cannot be published also keep the tables from being split.
        let split = experiment.is_split() || experiment.quarantine().is_some();
        let agrees = experiment.is_complete() && experiment.is_settled() && split;
        if experiment.leaving.is_some() || !agrees {
            return;
        }
        let sound = experiment.failed.is_empty() && experiment.lost_rows().is_empty();
        let end = if sound { ExperimentState::Finished } else { ExperimentState::Failed };
        let state = experiment.record.state();
        if state != end && state != ExperimentState::Finished {
            self.set_state(name, end);
            if sound {
                self.forget_ended(name);
            }
        }
    }

    pub(super) fn flush(&mut self, client: ClientId, name: &str, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else {
            return self.out.reply(client, Reply::NotFound(format!("there is no experiment {name}")));
        };
        if let Some(leaving) = &experiment.leaving {
            let removal = leaving.describe();
            return self.out.reply(client, Reply::Refused(format!("{name} cannot be flushed: {removal}")));
        }
        let published_before = experiment.table(Table::Tasks).published;
        experiment.flushes.push(FlushWait { client, published_before });
        self.publish_due(name, now);
        self.answer_flushes(name);
    }

    /// Answers flushes when no part is being made but those that cannot be. Rows that are handed in meanwhile are
    /// flushed, too.
    fn answer_flushes(&mut self, name: &str) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        if !experiment.has_no_part_under_way() {
            return;
        }
        let quarantine = experiment.quarantine();
        let waiting = std::mem::take(&mut experiment.flushes);
        let (rows, parts) = experiment.table(Table::Tasks).published;
        for FlushWait { client, published_before: (rows_before, parts_before) } in waiting {
            let reply = match &quarantine {
                None => Reply::Flushed(v1::FlushReply { rows: rows - rows_before, parts: parts - parts_before }),
                Some(reason) => Reply::Refused(format!("{reason}; all other rows of {name} are published")),
            };
            self.out.reply(client, reply);
        }
    }
}
