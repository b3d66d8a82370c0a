//! A store in memory that injects faults: for tests and for the simulated farm.
//!
//! It keeps the same encoded bytes as [`SlateStore`](super::SlateStore). A commit can be lost with an error, kept with an
//! error (which the caller cannot tell apart), or held back: held batches and later ones become durable in order when
//! they are released, or a prefix of them survives a crash. The store starts no task and reads no clock, so virtual time
//! works.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use powersweep_results::Table;
use tokio::sync::oneshot;

use super::objects::Objects;
use super::{Batch, Op, Signer, Store, StoreError, encoding};
use crate::records::{Key, Loaded, Record, RowsRecord};

/// The fault of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The batch is lost; the caller gets an error.
    Lose,
    /// The batch is durable; the caller gets an error nevertheless.
    KeepButFail,
    /// The caller waits: the batch is pending until [`ModelStore::release`] or [`ModelStore::reopen`].
    Hold,
}

#[derive(Debug, Default)]
struct Disk {
    values: BTreeMap<Vec<u8>, Bytes>,
    /// Number of openings; a store with a lower number is fenced.
    writer: u64,
    pending: VecDeque<(Changes, oneshot::Sender<Result<(), StoreError>>)>,
    faults: VecDeque<Option<Fault>>,
    closed: bool,
}

type Changes = Vec<(Vec<u8>, Option<Bytes>)>;

/// A [`Store`] in memory. See the module.
#[derive(Debug)]
pub struct ModelStore {
    disk: Arc<Mutex<Disk>>,
    objects: Objects,
    writer: u64,
}

impl Default for ModelStore {
    fn default() -> Self {
        ModelStore { disk: Arc::default(), objects: Objects::new(Arc::new(InMemory::new()), None), writer: 0 }
    }
}

impl ModelStore {
    /// An empty store.
    pub fn new() -> ModelStore {
        ModelStore::default()
    }

    /// An empty store whose owner can sign addresses.
    pub fn signing(signer: Arc<dyn Signer>) -> ModelStore {
        let store = ModelStore::default();
        ModelStore { objects: store.objects.clone().with_signer(Some(signer)), ..store }
    }

    /// A store of a new owner of the same data, as after a crash: the first `keep` pending batches become durable, the
    /// others are lost, and every earlier store of this data is fenced.
    pub fn reopen(&self, keep: usize) -> ModelStore {
        let mut disk = self.lock();
        for (n, (changes, reply)) in std::mem::take(&mut disk.pending).into_iter().enumerate() {
            if n < keep {
                disk.apply(changes);
            }
            let _ = reply.send(Err(fenced()));
        }
        disk.writer += 1;
        disk.closed = false;
        disk.faults.clear();
        ModelStore { disk: Arc::clone(&self.disk), objects: self.objects.clone(), writer: disk.writer }
    }

    /// A second handle of the same owner.
    pub fn again(&self) -> ModelStore {
        ModelStore { disk: Arc::clone(&self.disk), objects: self.objects.clone(), writer: self.writer }
    }

    /// Plans the faults of the next commits, one entry for each; `None` is a commit without a fault.
    pub fn plan(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.lock().faults.extend(faults);
    }

    /// Makes the first `count` pending batches durable and answers their callers.
    pub fn release(&self, count: usize) {
        let mut disk = self.lock();
        for _ in 0..count {
            let Some((changes, reply)) = disk.pending.pop_front() else { return };
            disk.apply(changes);
            let _ = reply.send(Ok(()));
        }
    }

    /// The object store with the published parts.
    pub fn object_store(&self) -> &Arc<dyn ObjectStore> {
        self.objects.object_store()
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().expect("no code panics while it holds the model's lock")
    }

    /// The disk, if this store may still use it.
    fn open(&self) -> Result<MutexGuard<'_, Disk>, StoreError> {
        let disk = self.lock();
        if disk.writer != self.writer {
            return Err(fenced());
        }
        if disk.closed {
            return Err(StoreError::Closed { data: "memory".into() });
        }
        Ok(disk)
    }
}

impl Disk {
    fn apply(&mut self, changes: Changes) {
        for (key, value) in changes {
            match value {
                Some(value) => self.values.insert(key, value),
                None => self.values.remove(&key),
            };
        }
    }
}

fn fenced() -> StoreError {
    StoreError::Fenced { data: "memory".into() }
}

fn failed() -> StoreError {
    StoreError::Unavailable { op: "commit to", path: "memory".into(), source: "planned fault".into() }
}

/// A batch as keys and values, in order; `None` deletes.
pub(super) fn encode(batch: &Batch) -> Result<Changes, StoreError> {
    if batch.len() > super::MAX_BATCH_RECORDS {
        let reason = format!("a batch of {} records, more than {}", batch.len(), super::MAX_BATCH_RECORDS);
        return Err(StoreError::Invalid { reason });
    }
    let mut changes = Vec::with_capacity(batch.len() + 1);
    let put = |record: &Record| encoding::encode(record).map(|(key, value)| (key, Some(Bytes::from(value))));
    for op in batch.ops() {
        match op {
            Op::Put(record) => {
                if let Record::Rows(rows) = record {
                    changes.push(put(&Record::Header(rows.header()))?);
                }
                changes.push(put(record)?);
            }
            Op::Delete(key) => {
                if let Key::Rows { experiment, table, seq } = key.clone() {
                    changes.push((encoding::encode_key(&Key::Header { experiment, table, seq })?, None));
                }
                changes.push((encoding::encode_key(key)?, None));
            }
        }
    }
    Ok(changes)
}

#[async_trait]
impl Store for ModelStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let disk = self.open()?;
        let mut loaded = Loaded::default();
        for range in encoding::load_ranges() {
            for (key, value) in disk.values.range(range) {
                loaded.add(encoding::read(key, value)?);
            }
        }
        Ok(loaded)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let changes = encode(&batch)?;
        let answer = {
            let mut disk = self.open()?;
            let fault = disk.faults.pop_front().flatten();
            match fault {
                Some(Fault::Lose) => return Err(failed()),
                Some(Fault::KeepButFail) if disk.pending.is_empty() => {
                    disk.apply(changes);
                    return Err(failed());
                }
                None if disk.pending.is_empty() => {
                    disk.apply(changes);
                    return Ok(());
                }
                // Later batches wait behind a held one: batches become durable in order.
                Some(Fault::Hold | Fault::KeepButFail) | None => {
                    let (reply, answer) = oneshot::channel();
                    disk.pending.push_back((changes, reply));
                    answer
                }
            }
        };
        answer.await.unwrap_or_else(|_| Err(failed()))
    }

    async fn rows(
        &self,
        experiment: &str,
        table: Table,
        first_seq: u64,
        last_seq: u64,
    ) -> Result<Vec<RowsRecord>, StoreError> {
        let disk = self.open()?;
        let range = encoding::rows_range(experiment, table, first_seq, last_seq)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        disk.values.range(range).map(|(key, value)| encoding::read_rows(key, value)).collect()
    }

    fn objects(&self) -> Result<&Objects, StoreError> {
        self.open().map(|_| &self.objects)
    }

    async fn still_own(&self) -> Result<(), StoreError> {
        self.open().map(drop)
    }

    async fn close(&self) -> Result<(), StoreError> {
        let mut disk = self.open()?;
        while let Some((changes, reply)) = disk.pending.pop_front() {
            disk.apply(changes);
            let _ = reply.send(Ok(()));
        }
        disk.closed = true;
        Ok(())
    }
}
