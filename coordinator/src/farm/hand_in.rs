//! Hand-ins: each row of a finished task is stored once.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_proto::v1::farm_message::Body;
use powersweep_proto::v1::{self, FailureKind, LeaseId};
use powersweep_results::Table;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::dispatch::to_wire;
use super::event::BadUpload;
use super::experiment::Experiment;
use super::index_set::{IndexSet, chunk_of, join};
use super::lease::{Return, Revoked};
use super::tables::{Header, tables_of};
use super::{ConnId, Content, Effect, Farm, Now};
use crate::records::{EncodedRows, Record, RowsRecord, Stored, Upload};

/// Maximum number of rows of one hand-in.
pub(crate) const HAND_IN_ROWS_MAX: u32 = 65_536;

/// Maximum number of uploads of one hand-in: one for each table.
const UPLOADS_MAX: usize = 4;

/// Ids of deleted uploads that are kept: a hand-in that names one is repeated soon, after a broken connection.
const DISCARDED_MAX: usize = 65_536;

/// A checked hand-in.
struct Checked {
    /// For each row: the present index of its task, if the row is needed, and its lease.
    rows: Vec<(Option<u64>, LeaseId)>,
    /// Number of rows that are needed: their tasks are in the manifest and not done.
    needed: u64,
    /// Upper bound of the memory of the rows, decoded.
    bytes: u64,
    uploads: Vec<(Table, Upload)>,
    /// Uploads of tables that an edit removed from the manifest after the tasks were leased.
    of_removed_tables: Vec<(Table, Upload)>,
}

/// An upload that a hand-in names. `None` if the table or the id is invalid.
fn upload_of(named: &v1::Upload) -> Option<(Table, Upload)> {
    let (table, part_id) = (Table::from_name(&named.table)?, Uuid::from_slice(&named.part_id).ok()?);
    Some((table, Upload { part_id: part_id.into(), rows: named.rows, bytes: named.bytes }))
}

/// Why a hand-in is rejected.
enum Rejection {
    /// The message is wrong: counts as a failed attempt of its tasks.
    Wrong(String),
    /// Some of its tasks are done, and an upload cannot be published without the rows of these tasks.
    Overtaken,
    /// Its upload was deleted, because it came before when none of its tasks was needed. An edit made them needed.
    Discarded,
    /// A lease of its tasks is not known.
    Unknown(LeaseId),
    /// An upload is not in the staging folder.
    NoUpload(String),
}

impl Farm {
    pub(super) fn hand_in(&mut self, conn: ConnId, worker: Uuid, hand_in: v1::HandIn, content: Content, now: Now) {
        self.hungry.insert(worker);
        let named = hand_in.done.iter().map(|tasks| tasks.indices.len().max(1)).sum::<usize>();
        if named > HAND_IN_ROWS_MAX as usize {
            let reason = format!("a hand-in names {named} tasks and leases, at most {HAND_IN_ROWS_MAX} are allowed");
            return self.out.refuse(conn, reason, true);
        }
        let checked = match self.check_hand_in(worker, &hand_in, content) {
            Ok(checked) => checked,
            Err(rejection) => return self.reject(conn, worker, &hand_in, rejection, now),
        };
        let name = hand_in.experiment.as_str();
        self.discard_unaccepted(name, &checked.of_removed_tables);
        if checked.needed == 0 {
            // It was sent again after a lost acknowledgement, or copies of its tasks were faster.
            self.discard_unaccepted(name, &checked.uploads);
            self.out.ack(conn, hand_in.id);
            return;
        }
        self.store_rows(&hand_in, &checked, now);
        self.measure(worker, name, &checked, hand_in.spent.as_ref(), now);
        self.settle_leases(name, &checked, now);
        self.store_uploads(&hand_in, &checked, now);
        self.out.ack(conn, hand_in.id);
        self.publish_due(name, now);
    }

    fn check_hand_in(&self, worker: Uuid, hand_in: &v1::HandIn, content: Content) -> Result<Checked, Rejection> {
        let wrong = |reason: String| Err(Rejection::Wrong(reason));
        let name = &hand_in.experiment;
        let Some(experiment) = self.experiments.get(name) else {
            return wrong(format!("there is no experiment {name}"));
        };
        if experiment.leaving.is_some() {
            return wrong(format!("{name} is being removed"));
        }
        let rows = content.rows.map_err(Rejection::Wrong)?;
        let named: usize = hand_in.done.iter().map(|tasks| tasks.indices.len()).sum();
        if named != rows as usize || rows == 0 {
            let rule = format!("a hand-in has 1 to {HAND_IN_ROWS_MAX} rows, one for each task");
            return wrong(format!("{rows} rows for {named} tasks: {rule}"));
        }
        let (bytes, uploads, of_removed_tables) = (content.bytes, Vec::new(), Vec::new());
        let mut checked = Checked { rows: Vec::with_capacity(named), needed: 0, bytes, uploads, of_removed_tables };
        let mut last = None;
        let mut seen = BTreeSet::new();
        let mut ordered = true;
        for tasks in &hand_in.done {
            let (lease, known) = self.check_lease(worker, hand_in, tasks).map_err(Rejection::Wrong)?;
            for &index in &tasks.indices {
                let present = experiment.present_index(hand_in.generation, index).map_err(Rejection::Wrong)?;
                // Rows mostly come in ascending order, which shows that no task is named twice. Otherwise a set does.
                if ordered && present.is_some() && present <= last {
                    ordered = false;
                    seen.extend(checked.rows.iter().filter_map(|(index, _)| *index));
                }
                last = present.or(last);
                let needed = present.filter(|&i| !experiment.done.contains(i) && (ordered || seen.insert(i)));
                if needed.is_some() && !known {
                    return Err(Rejection::Unknown(lease));
                }
                checked.needed += u64::from(needed.is_some());
                checked.rows.push((needed, lease));
            }
        }
        self.check_uploads(experiment, hand_in, content.uploads, &mut checked)?;
        Ok(checked)
    }

    fn check_uploads(
        &self,
        experiment: &Experiment,
        hand_in: &v1::HandIn,
        found: Result<(), BadUpload>,
        checked: &mut Checked,
    ) -> Result<(), Rejection> {
        let wrong = |reason: String| Err(Rejection::Wrong(reason));
        if hand_in.uploads.len() > UPLOADS_MAX {
            return wrong(format!("{} uploads, at most {UPLOADS_MAX} are allowed", hand_in.uploads.len()));
        }
        let earlier = hand_in.generation < experiment.record.generation;
        for named in &hand_in.uploads {
            match upload_of(named) {
                Some(upload) if experiment.record.tables().any(|asked| asked == upload.0) => {
                    checked.uploads.push(upload);
                }
                Some(upload) if earlier => checked.of_removed_tables.push(upload),
                _ => {
                    let table = &named.table;
                    return wrong(format!("an upload without id, or of table {table:?}, which the experiment lacks"));
                }
            }
        }
        if checked.uploads.is_empty() || checked.needed == 0 {
            return Ok(());
        }
        if checked.needed < checked.rows.len() as u64 {
            return Err(Rejection::Overtaken);
        }
        if checked.uploads.iter().any(|(_, upload)| self.discarded.contains(&*upload.part_id)) {
            return Err(Rejection::Discarded);
        }
        found.map_err(|bad| match bad {
            BadUpload::Unknown(reason) => Rejection::NoUpload(reason),
            BadUpload::Wrong(reason) => Rejection::Wrong(reason),
        })
    }

    /// The lease of handed-in tasks, and whether it is known, as one that continues or has ended. The worker must have
    /// been granted the tasks. Under a lease that is not known, only rows of done tasks may come, again.
    fn check_lease(
        &self,
        worker: Uuid,
        hand_in: &v1::HandIn,
        tasks: &v1::LeaseTasks,
    ) -> Result<(LeaseId, bool), String> {
        let id = tasks.lease.ok_or("tasks without a lease")?;
        let Some(grant) = self.grant_of(id) else { return Ok((id, false)) };
        if grant.worker != worker {
            return Err(format!("lease {id} is another worker's"));
        }
        if grant.experiment != hand_in.experiment {
            return Err(format!("lease {id} is of {}", grant.experiment));
        }
        if grant.generation != hand_in.generation {
            let (granted, named) = (grant.generation, hand_in.generation);
            return Err(format!("lease {id} is of generation {granted}, not of generation {named}"));
        }
        if let Some(index) = tasks.indices.iter().find(|&&index| !grant.covers(index)) {
            return Err(format!("task {index} is not in lease {id}"));
        }
        Ok((id, true))
    }

    fn store_rows(&mut self, hand_in: &v1::HandIn, checked: &Checked, now: Now) {
        let experiment = self.experiments.get_mut(&hand_in.experiment).expect("checked");
        let mut mask = RoaringBitmap::new();
        let mut changed_chunks = BTreeSet::new();
        for (position, (index, _)) in checked.rows.iter().enumerate() {
            let Some(index) = *index else {
                mask.insert(position as u32);
                continue;
            };
            experiment.done.insert(index);
            changed_chunks.insert(chunk_of(index));
            if !experiment.failures.is_empty()
                && let Some(key) = experiment.clear_failure(index)
            {
                self.out.delete(key);
            }
        }
        for chunk in changed_chunks {
            self.out.done_changed(&experiment.record.name, chunk);
        }
        let mask = (!mask.is_empty()).then(|| Stored::of_bits(mask));
        let rows = u32::try_from(checked.rows.len()).expect("at most HAND_IN_ROWS_MAX");
        let encoded = EncodedRows { rows, mask, encoded: hand_in.rows.clone(), decoded_bytes: checked.bytes };
        self.put_rows(&hand_in.experiment, Table::Tasks, hand_in.generation, encoded, now);
    }

    /// Stores rows with the next batch. Rows of many hand-ins become one record: with ten thousand workers a part would
    /// otherwise have as many records as rows, and each is written and deleted.
    pub(super) fn put_rows(&mut self, name: &str, table: Table, generation: u64, rows: EncodedRows, now: Now) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let (live_rows, bytes) = (rows.live_rows(), rows.bytes());
        let own = experiment.table(table);
        match self.out.join(name, table, own.unpublished.back(), generation, rows) {
            Ok(()) => own.extend_last(live_rows, bytes),
            Err(rows) => self.put_record(name, table, generation, vec![rows], None, now),
        }
    }

    fn put_record(
        &mut self,
        name: &str,
        table: Table,
        generation: u64,
        hand_ins: Vec<EncodedRows>,
        upload: Option<Upload>,
        now: Now,
    ) {
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let own = experiment.table(table);
        let (seq, received_us) = (own.next_seq, now.wall_us);
        let (experiment, table) = (name.to_owned(), table.into());
        let record = RowsRecord { experiment, table, seq, generation, received_us, hand_ins, upload };
        own.push(Header::from(&record.header()));
        self.out.put(Record::Rows(record));
    }

    fn measure(&mut self, id: Uuid, name: &str, checked: &Checked, spent: Option<&v1::TimeSpent>, now: Now) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let slot_s = worker.slot_seconds(checked.needed, now);
        let Some(experiment) = self.experiments.get_mut(name) else { return };
        let believed = spent.map(|spent| worker.believed(spent, now));
        let seconds = believed.flatten().map_or(slot_s, |spent| spent.engine_s + spent.parse_s);
        if let Some(index) = checked.rows.iter().find_map(|(index, _)| *index) {
            let counted = (checked.needed, seconds);
            self.done_counts.add(id, counted, (name, experiment.record.generation, index));
        }
        if believed == Some(None) && worker.is_recovered() {
            // Neither its word nor the time of this process says what the tasks took.
            return experiment.share.add(now.mono, slot_s);
        }
        experiment.took(checked.needed, seconds, now);
        if let Some(sweep) = &experiment.sweep {
            let indices: Vec<u64> = checked.rows.iter().filter_map(|(index, _)| *index).collect();
            experiment.forecast.learn(sweep, experiment.record.generation, &indices, seconds);
        }
        if let Some(spent) = believed.flatten() {
            experiment.spent.add(&spent);
        }
    }

    /// Takes handed-in tasks out of all leases and of the pending tasks; revokes them from other workers.
    fn settle_leases(&mut self, name: &str, checked: &Checked, now: Now) {
        let mut progressed = BTreeSet::new();
        let mut revoked = Vec::new();
        for (index, lease) in &checked.rows {
            let Some(index) = *index else { continue };
            let held = self.remove_from_lease(*lease, index);
            if held {
                progressed.insert(*lease);
            }
            let experiment = self.experiments.get_mut(name).expect("checked");
            if experiment.leased.contains(index) {
                revoked.extend(self.remove_from_all_leases(name, index));
            } else if !held {
                experiment.pending.remove(index);
            }
        }
        for id in progressed {
            if let Some(lease) = self.leases.get_mut(&id) {
                lease.progress_at = now.mono;
            }
            self.drop_if_empty(id);
        }
        self.revoke(&revoked);
    }

    fn reject(&mut self, conn: ConnId, worker: Uuid, hand_in: &v1::HandIn, rejection: Rejection, now: Now) {
        let reason = match &rejection {
            Rejection::Wrong(reason) | Rejection::NoUpload(reason) => reason.clone(),
            Rejection::Overtaken => "some of its tasks are done already".to_owned(),
            Rejection::Discarded => "its uploads were deleted, because none of its tasks was needed then".to_owned(),
            Rejection::Unknown(id) => {
                format!("lease {id} is not known: it was never granted, or it ended long ago and was dropped")
            }
        };
        let reason = format!("hand-in rejected: {reason}");
        self.out.reject(conn, hand_in.id, reason.clone());
        let worker_name = self.worker_name(worker);
        for tasks in &hand_in.done {
            let Some(id) = tasks.lease else { continue };
            let Some(lease) = self.leases.get(&id).filter(|lease| lease.grant.worker == worker) else { continue };
            let name = lease.grant.experiment.clone();
            let Some(experiment) = self.experiments.get(&name) else { continue };
            let indices: IndexSet = tasks
                .indices
                .iter()
                .filter(|&&index| lease.grant.covers(index))
                .filter_map(|&index| experiment.present_index(lease.grant.generation, index).ok().flatten())
                .filter(|&index| lease.open.contains(index))
                .collect();
            match rejection {
                Rejection::Overtaken | Rejection::Discarded | Rejection::Unknown(_) | Rejection::NoUpload(_) => {
                    self.give_back(id, &indices, Return::Blameless, now);
                }
                Rejection::Wrong(_) => {
                    for index in indices.iter() {
                        self.remove_from_lease(id, index);
                        self.attempt_failed(&name, index, FailureKind::Panic, &reason, &worker_name, worker, now);
                    }
                    self.drop_if_empty(id);
                }
            }
        }
        let uploads: Vec<_> = hand_in.uploads.iter().take(UPLOADS_MAX).filter_map(upload_of).collect();
        self.discard_unaccepted(&hand_in.experiment, &uploads);
    }

    /// Stores records of uploads, in the batch of their tasks' rows.
    fn store_uploads(&mut self, hand_in: &v1::HandIn, checked: &Checked, now: Now) {
        let name = hand_in.experiment.as_str();
        let experiment = self.experiments.get_mut(name).expect("checked");
        let ran_with = |table: &Table| match experiment.earlier.get(&hand_in.generation) {
            Some(earlier) => tables_of(&earlier.sweep).contains(table),
            None => true,
        };
        let covered: Vec<Table> = experiment.record.tables().filter(ran_with).collect();
        for table in covered {
            let rows = experiment.table(table);
            rows.covered += checked.needed;
            self.out.put(rows.covered_record(name, table));
        }
        for &(table, upload) in &checked.uploads {
            self.put_record(name, table, hand_in.generation, Vec::new(), Some(upload), now);
        }
    }

    /// Deletes uploads that no accepted hand-in named.
    fn discard_unaccepted(&mut self, name: &str, uploads: &[(Table, Upload)]) {
        let Some(experiment) = self.experiments.get(name) else { return };
        for &(table, Upload { part_id: Stored(part_id), .. }) in uploads {
            if !experiment.keeps(table, part_id) {
                // Ids begin with the time: the first is the oldest.
                if self.discarded.insert(part_id) && self.discarded.len() > DISCARDED_MAX {
                    self.discarded.pop_first();
                }
                self.out.later(Effect::Discard { experiment: name.to_owned(), table, part_id });
            }
        }
    }

    /// Sends revocations to workers.
    pub(super) fn revoke(&mut self, revoked: &[Revoked]) {
        let mut by_lease: BTreeMap<(Uuid, LeaseId), BTreeSet<u64>> = BTreeMap::new();
        for one in revoked {
            by_lease.entry((one.worker, one.lease)).or_default().insert(one.index);
        }
        for ((worker, id), indices) in by_lease {
            let Some(conn) = self.workers.get(&worker).and_then(|worker| worker.conn) else { continue };
            let mut ranges = Vec::new();
            for index in indices {
                join(&mut ranges, index..index + 1);
            }
            let ranges = to_wire(&ranges);
            self.out.send(conn, Body::Revoke(v1::Revoke { lease: Some(id), ranges, queued_only: false }));
        }
    }
}
