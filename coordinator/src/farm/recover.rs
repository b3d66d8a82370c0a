//! Recovery: the farm of a durable state.

use std::collections::BTreeMap;

use powersweep_experiments::Sweep;
use powersweep_proto::v1::ExperimentState;
use powersweep_results::Table;

use super::ended::Grant;
use super::experiment::{Earlier, Experiment, sweep_of};
use super::index_set::IndexSet;
use super::lease::Lease;
use super::leaving::Leaving;
use super::outgoing::Outgoing;
use super::split::Split;
use super::tables::{OpenIntent, Progress};
use super::worker::Worker;
use super::{Config, Effect, Farm, Now, PartIds, pins};
use crate::records::{CoveredRecord, FailureRecord, Intent, Key, LeaseRecord, Loaded, RowsHeader};

impl Farm {
    /// The farm of a loaded state. Its first batch has the new epoch, and no effect comes out before that is durable.
    /// `seed`: any number that no other owner of this state had; part ids follow from it.
    pub fn recover(config: Config, loaded: Loaded, seed: u64, now: Now) -> Farm {
        let epoch = loaded.epoch + 1;
        let mut farm = Farm {
            config,
            epoch,
            ids: PartIds::new(seed, epoch),
            logs: loaded.logs.iter().map(|log| (*log.digest, log.bytes)).collect(),
            generation_floor: loaded.generation_floor,
            out: Outgoing::new(epoch),
            ..Farm::default()
        };
        farm.load(loaded, now);
        farm.publish_everything(now);
        for name in farm.schedule.clone() {
            farm.advance_leaving(&name, now);
        }
        farm
    }

    fn load(&mut self, loaded: Loaded, now: Now) {
        let mut records = loaded.experiments;
        records.sort_by(|a, b| (a.created_us, &a.name).cmp(&(b.created_us, &b.name)));
        for record in records {
            let sweep = sweep_of(&record.manifest, &record.digests).and_then(|sweep| pinned(&record.pins, sweep));
            let sweep = sweep.map(|sweep| self.config.sharded(sweep));
            let logs: Vec<_> = record.digests.values().map(|digest| **digest).collect();
            let mut experiment = Experiment::new(record, sweep, now);
            experiment.missing = self.missing(&logs);
            experiment.unclaimed = self.config.only.as_ref().is_some_and(|only| only != experiment.name());
            self.schedule.push(experiment.record.name.clone());
            self.experiments.insert(experiment.record.name.clone(), experiment);
        }
        for earlier in loaded.earlier {
            let Some(experiment) = self.experiments.get_mut(&earlier.experiment) else { continue };
            if let Ok(sweep) = sweep_of(&earlier.manifest, &earlier.digests) {
                experiment.earlier.insert(earlier.generation, Earlier { sweep, extra: IndexSet::new() });
            }
        }
        for chunk in loaded.done {
            let Some(experiment) = self.experiments.get_mut(&chunk.experiment) else { continue };
            if chunk.generation == experiment.record.generation {
                experiment.done.set_chunk(chunk.chunk, chunk.bitmap.0);
            } else if let Some(earlier) = experiment.earlier.get_mut(&chunk.generation) {
                earlier.extra.set_chunk(chunk.chunk, chunk.bitmap.0);
            }
        }
        for leaving in loaded.leaving {
            match self.experiments.get_mut(&leaving.experiment) {
                Some(experiment) => experiment.leaving = Some(Leaving::new(leaving.removal.0)),
                None => self.out.delete(Key::Leaving { experiment: leaving.experiment }),
            }
        }
        for failure in loaded.failures {
            self.load_failure(failure);
        }
        for totals in loaded.totals {
            let Some(experiment) = self.experiments.get_mut(&totals.experiment) else { continue };
            let table = experiment.table(totals.table());
            (table.parts, table.rows_in_parts, table.bytes_in_parts) = (totals.parts, totals.rows, totals.bytes);
            table.left_rows = totals.left_rows;
            (table.uploads_left_out, table.rows_left_out) = (totals.uploads_left_out, totals.rows_left_out);
        }
        self.load_covered(loaded.covered);
        for intent in loaded.intents {
            self.load_intent(intent);
        }
        self.load_rows(&loaded.rows);
        for lease in loaded.leases {
            self.load_lease(lease, now);
        }
        for split in loaded.splits {
            let Some(experiment) = self.experiments.get_mut(&split.experiment) else { continue };
            experiment.split = Split::of(split);
        }
        for experiment in self.experiments.values_mut() {
            if experiment.record.split_due {
                experiment.mark_split();
            }
            experiment.durable = (experiment.done.len(), experiment.record.state());
        }
    }

    fn load_failure(&mut self, failure: FailureRecord) {
        let Some(experiment) = self.experiments.get_mut(&failure.experiment) else { return };
        if failure.generation == experiment.record.generation && !experiment.done.contains(failure.index) {
            experiment.set_failure(failure);
        }
    }

    /// Rows of an open intent are being published and do not count as unpublished.
    fn load_rows(&mut self, rows: &[RowsHeader]) {
        for header in rows {
            let Some(experiment) = self.experiments.get_mut(&header.experiment) else { continue };
            let own = experiment.tables.entry(header.table()).or_default();
            own.next_seq = own.next_seq.max(header.seq + 1);
            let publishes = |open: &&mut OpenIntent| {
                let Intent { first_seq, last_seq, table, .. } = open.intent;
                table == header.table && (first_seq..=last_seq).contains(&header.seq)
            };
            match experiment.intents.values_mut().find(publishes) {
                Some(open) => open.uploads.extend(header.upload.map(|id| *id)),
                None => own.push(header.into()),
            }
        }
    }

    /// Without a record, as in a state of an earlier version, a table is taken to cover all tasks with rows.
    fn load_covered(&mut self, covered: Vec<CoveredRecord>) {
        for experiment in self.experiments.values_mut() {
            let rows = experiment.done.len() + experiment.extra();
            let tables: Vec<Table> = experiment.record.tables().collect();
            for table in tables {
                experiment.table(table).covered = rows;
            }
        }
        for record in covered {
            let Some(experiment) = self.experiments.get_mut(&record.experiment) else { continue };
            experiment.table(record.table()).covered = record.tasks;
        }
    }

    fn load_intent(&mut self, intent: Intent) {
        let Some(experiment) = self.experiments.get_mut(&intent.experiment) else { return };
        experiment.table(intent.table()).publishing_rows += intent.rows;
        let quarantined = Some(intent.refused.clone()).filter(|reason| !reason.is_empty());
        let open = OpenIntent { intent: intent.clone(), uploads: Vec::new(), progress: Progress::Running, quarantined };
        experiment.intents.insert(*intent.part_id, open);
        self.out.later(Effect::Publish { intent });
    }

    /// Leases of an earlier owner continue with a new expiry: their workers may be computing.
    fn load_lease(&mut self, record: LeaseRecord, now: Now) {
        let id = record.id;
        if self.config.forget_leases || !self.experiments.contains_key(&record.experiment) {
            return self.out.delete(Key::Lease { id });
        }
        let open = if record.ended { IndexSet::new() } else { self.open_tasks(&record) };
        if open.is_empty() {
            return self.keep_ended(record);
        }
        let Some(experiment) = self.experiments.get_mut(&record.experiment) else { return };
        let mut duplicate = false;
        for index in open.iter() {
            if !experiment.leased.insert(index) {
                *experiment.duplicated.entry(index).or_insert(1) += 1;
                duplicate = true;
            }
        }
        let worker: &mut Worker =
            self.workers.entry(*record.worker_id).or_insert_with(|| Worker::recovered(record.worker.clone(), now.mono));
        worker.leases.insert(id);
        worker.outstanding += open.len();
        let lease = Lease {
            grant: Grant::from(&record),
            open,
            attempt: record.attempt,
            progress_at: now.mono,
            duplicate,
            suspect: false,
            // Some of its tasks may have left it before.
            owed: true,
        };
        self.leases.insert(id, lease);
    }

    /// Tasks of a lease that still need a row, by their indices of the present generation.
    fn open_tasks(&self, record: &LeaseRecord) -> IndexSet {
        let Some(experiment) = self.experiments.get(&record.experiment) else { return IndexSet::new() };
        // Tasks that ran when their experiment was paused are finished.
        let active = matches!(
            experiment.record.state(),
            ExperimentState::Running | ExperimentState::Waiting | ExperimentState::Paused
        );
        if experiment.sweep.is_none() || experiment.leaving.is_some() || !active {
            return IndexSet::new();
        }
        let most = self.config.lease_tasks_max;
        record
            .ranges
            .iter()
            .flat_map(|range| range.start..range.end.min(range.start.saturating_add(most)))
            .filter_map(|index| experiment.present_index(record.generation, index).ok().flatten())
            .filter(|&index| !experiment.done.contains(index) && !experiment.failed.contains(index))
            .collect()
    }
}

/// Refuses a sweep that this build would run with other versions than those that its experiment is pinned to.
fn pinned(pins: &BTreeMap<String, u32>, sweep: Sweep) -> Result<Sweep, String> {
    let changed = pins::changed(pins, &pins::component_versions(&sweep));
    if changed.is_empty() {
        return Ok(sweep);
    }
    Err(format!(
        "this build would give other rows: {}. Use the earlier version of powersweep, or submit under a new name or with \
         --restart",
        changed.join("; ")
    ))
}
