//! The order of records, effects and replies: durable first.
//!
//! Records gather in the next batch, and effects wait until it is durable. While a batch is in flight, later effects
//! wait even if they need no record: they may follow from records in that batch.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body;
use powersweep_results::Table;

use super::tables::Header;
use super::{ClientId, ConnId, Effect, Reply};
use crate::records::{DoneChunk, EncodedRows, Key, Record};
use crate::store::Batch;

/// Maximum size of the rows of several hand-ins in one record, in bytes: parts and their row groups end between
/// records.
const JOINED_BYTES_MAX: u64 = 64 * 1024;

/// Records and effects that wait.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    batch: Batch,
    /// Rows in `batch` (bytes).
    batch_bytes: usize,
    /// Position in `batch` of the last record of rows of each table of an experiment.
    rows_at: BTreeMap<Table, BTreeMap<String, usize>>,
    /// Changed done chunks, each stored once with the batch.
    dirty: BTreeMap<String, BTreeSet<u32>>,
    waiting: Waiting,
    in_flight: Option<(u64, Waiting)>,
    next_token: u64,
    epoch: u64,
    /// A batch of this farm is durable, and with it the epoch.
    epoch_durable: bool,
    ready: Vec<Effect>,
}

/// Effects that need a durable batch.
#[derive(Debug, Default)]
struct Waiting {
    effects: Vec<Effect>,
    acks: BTreeMap<ConnId, v1::Ack>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.acks.is_empty()
    }

    fn drain_to(self, effects: &mut Vec<Effect>) {
        // Acknowledgements first: a reply may say that an experiment is finished.
        effects.extend(self.acks.into_iter().map(|(conn, ack)| Effect::Send { conn, message: Body::Ack(ack) }));
        effects.extend(self.effects);
    }
}

impl Outgoing {
    /// The first batch begins with the new owner's epoch.
    pub(super) fn new(epoch: u64) -> Outgoing {
        let mut out = Outgoing { epoch, ..Outgoing::default() };
        out.put(Record::Epoch(epoch));
        out
    }

    pub(super) fn put(&mut self, record: Record) {
        if let Record::Rows(rows) = &record {
            self.batch_bytes += rows.hand_ins.iter().map(|hand_in| hand_in.encoded.len()).sum::<usize>();
            self.rows_at.entry(rows.table()).or_default().insert(rows.experiment.clone(), self.batch.len());
        }
        self.batch.put(record);
    }

    /// Adds rows to the table's last record, if that waits for the next batch, has this generation and stays small.
    /// Returns the rows otherwise.
    pub(super) fn join(
        &mut self,
        experiment: &str,
        table: Table,
        last: Option<&Header>,
        generation: u64,
        rows: EncodedRows,
    ) -> Result<(), EncodedRows> {
        let bytes = rows.encoded.len();
        let Some(last) = last.filter(|last| last.bytes + rows.bytes() <= JOINED_BYTES_MAX) else { return Err(rows) };
        let at = self.rows_at.get(&table).and_then(|experiments| experiments.get(experiment));
        let Some(Record::Rows(record)) = at.and_then(|&at| self.batch.record_mut(at)) else { return Err(rows) };
        if (record.seq, record.generation) != (last.seq, generation) {
            return Err(rows);
        }
        record.hand_ins.push(rows);
        self.batch_bytes += bytes;
        Ok(())
    }

    /// Bytes of rows that wait for the next batch.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.batch_bytes
    }

    pub(super) fn put_all(&mut self, records: impl IntoIterator<Item = Record>) {
        self.batch.put_all(records);
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.batch.delete(key);
    }

    /// Done bits of this chunk changed.
    pub(super) fn done_changed(&mut self, experiment: &str, chunk: u32) {
        match self.dirty.get_mut(experiment) {
            Some(chunks) => drop(chunks.insert(chunk)),
            None => drop(self.dirty.insert(experiment.to_owned(), BTreeSet::from([chunk]))),
        }
    }

    /// Releases an effect after the next durable batch.
    pub(super) fn later(&mut self, effect: Effect) {
        self.waiting.effects.push(effect);
    }

    pub(super) fn send(&mut self, conn: ConnId, message: Body) {
        self.later(Effect::Send { conn, message });
    }

    /// Answers a client after a durable batch, even if no record changed. The batch proves that this owner is not
    /// fenced: the answer to a flush without rows would be wrong if a newer owner had some.
    pub(super) fn reply(&mut self, client: ClientId, reply: Reply) {
        self.batch.put(Record::Epoch(self.epoch));
        self.later(Effect::Reply { client, reply });
    }

    /// Answers at once: a refusal that is true in any state.
    pub(super) fn reply_now(&mut self, client: ClientId, reply: Reply) {
        self.ready.push(Effect::Reply { client, reply });
    }

    /// Sends a message that promises nothing.
    fn send_now(&mut self, conn: ConnId, message: Body) {
        self.ready.push(Effect::Send { conn, message });
    }

    /// Sends a message that promises nothing but the epoch: once that is durable, no other farm can use it.
    pub(super) fn greet(&mut self, conn: ConnId, message: Body) {
        if self.epoch_durable { self.send_now(conn, message) } else { self.send(conn, message) }
    }

    pub(super) fn close_now(&mut self, conn: ConnId) {
        self.ready.push(Effect::Close { conn });
    }

    pub(super) fn refuse(&mut self, conn: ConnId, reason: impl Into<String>, final_: bool) {
        self.send_now(conn, Body::Refused(v1::Refused { reason: reason.into(), r#final: final_ }));
        self.close_now(conn);
    }

    pub(super) fn ack(&mut self, conn: ConnId, id: u64) {
        self.waiting.acks.entry(conn).or_default().ids.push(id);
    }

    /// Rejects a hand-in after a durable batch, which proves that this owner is not fenced: the worker drops its rows.
    pub(super) fn reject(&mut self, conn: ConnId, id: u64, reason: String) {
        self.batch.put(Record::Epoch(self.epoch));
        self.waiting.acks.entry(conn).or_default().rejected.push(v1::Rejected { id, reason });
    }

    fn has_records(&self) -> bool {
        !self.batch.is_empty() || !self.dirty.is_empty()
    }

    /// Moves effects that need no batch any more to `effects`.
    pub(super) fn release(&mut self, effects: &mut Vec<Effect>) {
        effects.append(&mut self.ready);
        if self.in_flight.is_none() && !self.has_records() && !self.waiting.is_empty() {
            std::mem::take(&mut self.waiting).drain_to(effects);
        }
    }

    pub(super) fn committed(&mut self, token: u64) {
        match self.in_flight.take() {
            Some((expected, waiting)) if expected == token => {
                self.epoch_durable = true;
                waiting.drain_to(&mut self.ready);
            }
            other => self.in_flight = other,
        }
    }

    pub(super) fn take_commit(&mut self, done: impl Fn(&str, u32) -> Option<DoneChunk>) -> Option<(u64, Batch)> {
        if !self.wants_commit() {
            return None;
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.rows_at.clear();
        self.batch_bytes = 0;
        for (name, chunks) in std::mem::take(&mut self.dirty) {
            for record in chunks.into_iter().filter_map(|chunk| done(&name, chunk)) {
                batch.put(Record::DoneChunk(record));
            }
        }
        self.next_token += 1;
        self.in_flight = Some((self.next_token, std::mem::take(&mut self.waiting)));
        Some((self.next_token, batch))
    }

    pub(super) fn wants_commit(&self) -> bool {
        self.in_flight.is_none() && self.has_records()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.is_some() || self.has_records() || !self.waiting.is_empty()
    }
}
