//! Uploads that this process has checked, until a hand-in names them.
//!
//! A part is made of many uploads, and one that cannot be merged would stop all of them. So an object is checked before
//! it is accepted: its columns, its rows, and that its rows are of tasks of the hand-in that names it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use powersweep_proto::v1;
use powersweep_results::Table;
use powersweep_results::{accounts, jobs, part, series};
use tonic::Status;
use uuid::Uuid;

use crate::farm::BadUpload;
use crate::store::STAGED_MAX_AGE;

/// Maximum size in bytes and maximum number of the objects that one worker may have in the staging folder before it
/// hands in their tasks. A worker stops computing at 256 MiB of unacknowledged rows.
const WORKER_BYTES_MAX: u64 = 1 << 30;
const WORKER_OBJECTS_MAX: u64 = 16_384;
/// How long the facts of an upload are kept after a hand-in named it: a hand-in is sent again after a broken connection.
const NAMED_AGE: Duration = Duration::from_secs(600);
/// Maximum number of tasks in the facts of uploads that hand-ins named, of all workers together: 16 bytes each.
const NAMED_TASKS_MAX: usize = 2_000_000;

/// The upload that the first message of a stream names.
pub(super) struct Announced {
    pub(super) experiment: String,
    pub(super) table: Table,
    pub(super) part_id: Uuid,
    pub(super) lease: v1::LeaseId,
}

impl Announced {
    pub(super) fn of(first: &v1::UploadPartRequest) -> Result<Announced, Status> {
        Announced::new(first.experiment.clone(), &first.table, &first.part_id, first.lease)
    }

    pub(super) fn new(
        experiment: String,
        table: &str,
        part_id: &[u8],
        lease: Option<v1::LeaseId>,
    ) -> Result<Announced, Status> {
        let invalid = |reason: String| Status::invalid_argument(reason);
        let known = Table::from_name(table).filter(|table| schema(*table).is_some());
        Ok(Announced {
            experiment,
            table: known.ok_or_else(|| invalid(format!("table {table:?} has no uploads")))?,
            part_id: Uuid::from_slice(part_id).map_err(|_| invalid("part_id is not a UUID".to_owned()))?,
            lease: lease.ok_or_else(|| invalid("the first message must name a lease".to_owned()))?,
        })
    }

    /// Checks the object; blocks. Returns its facts, or why no part can be made of it.
    pub(super) fn inspect(&self, data: &Bytes) -> Result<Facts, String> {
        let schema = schema(self.table).ok_or("the table has no uploads")?;
        // The reader of Parquet files panics at some damaged ones.
        let inspected = catch_unwind(AssertUnwindSafe(|| part::inspect(data, &schema)));
        let (footer, tasks) = match inspected {
            Ok(Ok(inspected)) => inspected,
            Ok(Err(error)) => return Err(format!("the object is no part of {}: {error}", self.table)),
            Err(_) => return Err(format!("the object is no part of {}: it is damaged", self.table)),
        };
        if footer.part_id != self.part_id || footer.experiment != self.experiment {
            return Err("the object's footer names another part".to_owned());
        }
        Ok(Facts { rows: footer.rows, bytes: data.len() as u64, tasks })
    }
}

/// The schema of a table whose rows are uploaded.
fn schema(table: Table) -> Option<SchemaRef> {
    match table {
        Table::Jobs => Some(jobs::schema()),
        Table::Series => Some(series::schema()),
        Table::Accounts => Some(accounts::schema()),
        Table::Tasks | Table::Failures => None,
    }
}

/// What is known of a checked object.
#[derive(Debug)]
pub(super) struct Facts {
    rows: u64,
    pub(super) bytes: u64,
    /// The tasks of its rows, in order.
    tasks: Vec<Uuid>,
}

enum State {
    /// A worker may send it to the inbox; it said that it has this number of bytes.
    Promised(u64),
    Sound(Facts),
    /// Why it is refused.
    Refused(String),
}

struct Entry {
    worker: Uuid,
    experiment: String,
    table: Table,
    state: State,
    since: Instant,
    /// A hand-in named it.
    named: bool,
}

impl Entry {
    fn bytes(&self) -> u64 {
        match &self.state {
            State::Promised(bytes) => *bytes,
            State::Sound(facts) => facts.bytes,
            State::Refused(_) => 0,
        }
    }

    fn tasks(&self) -> usize {
        if let State::Sound(facts) = &self.state { facts.tasks.len() } else { 0 }
    }
}

#[derive(Default)]
struct Known {
    entries: BTreeMap<Uuid, Entry>,
    /// Objects and bytes of each worker that no hand-in has named.
    waiting: BTreeMap<Uuid, (u64, u64)>,
    /// Entries that a hand-in named, the oldest first, and the number of their tasks.
    named: VecDeque<(Instant, Uuid)>,
    named_tasks: usize,
    /// Objects of the inbox that are being taken in.
    taken_in: BTreeSet<Uuid>,
}

/// The facts of the uploads that were checked.
#[derive(Default)]
pub(super) struct Uploads(Mutex<Known>);

impl Uploads {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a worker may upload more now.
    pub(super) fn room(&self, worker: Uuid) -> Result<(), Status> {
        let (objects, bytes) = self.known().waiting.get(&worker).copied().unwrap_or_default();
        if objects < WORKER_OBJECTS_MAX && bytes < WORKER_BYTES_MAX {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "this worker has {objects} uploads with {bytes} bytes that it has not handed in: hand them in first"
        )))
    }

    /// Notes an object that was checked, and is in the staging folder if it is sound.
    pub(super) fn add(&self, worker: Uuid, upload: &Announced, facts: Result<Facts, String>) {
        self.known().put(worker, upload, facts.map_or_else(State::Refused, State::Sound));
    }

    /// Notes an object that a worker may send to the inbox. What is known of a sound object stays.
    pub(super) fn promise(&self, worker: Uuid, upload: &Announced, bytes: u64) {
        let known = &mut *self.known();
        let entry = known.entries.get(&upload.part_id);
        if !entry.is_some_and(|entry| matches!(entry.state, State::Sound(_))) {
            known.put(worker, upload, State::Promised(bytes));
        }
    }

    /// Lets one call at a time take in an object of this name.
    pub(super) fn alone(self: &Arc<Self>, part_id: Uuid) -> Result<Alone, Status> {
        if !self.known().taken_in.insert(part_id) {
            return Err(Status::unavailable("another call takes this object in: try again"));
        }
        Ok(Alone { uploads: Arc::clone(self), part_id })
    }

    /// Compares the uploads that a hand-in names with what is known of them. `ids` are the hand-in's tasks.
    pub(super) fn named(&self, hand_in: &v1::HandIn, ids: &BTreeSet<Uuid>) -> Result<(), BadUpload> {
        if hand_in.uploads.is_empty() {
            return Ok(());
        }
        let known = &mut *self.known();
        known.forget_old();
        for upload in &hand_in.uploads {
            // The farm refuses an id that is none.
            let Ok(id) = Uuid::from_slice(&upload.part_id) else { continue };
            known.name(id);
            let Some(entry) = known.entries.get(&id) else {
                return Err(BadUpload::Unknown(format!("its upload {id} of {} is not known", upload.table)));
            };
            let wrong = |reason: &str| Err(BadUpload::Wrong(format!("its upload of {}: {reason}", upload.table)));
            let facts = match &entry.state {
                State::Sound(facts) => facts,
                State::Refused(reason) => return wrong(reason),
                State::Promised(_) => {
                    return Err(BadUpload::Unknown(format!("its upload {id} of {} has not arrived", upload.table)));
                }
            };
            if entry.experiment != hand_in.experiment || entry.table.name() != upload.table {
                return wrong(&format!("it was uploaded for {} of {}", entry.table, entry.experiment));
            }
            if (facts.rows, facts.bytes) != (upload.rows, upload.bytes) {
                return wrong(&format!("it has {} rows and {} bytes", facts.rows, facts.bytes));
            }
            if let Some(foreign) = facts.tasks.iter().find(|task| !ids.contains(*task)) {
                return wrong(&format!("it has rows of task {foreign}, which is not handed in"));
            }
        }
        Ok(())
    }

    /// Takes out the uploads that no hand-in has named for long.
    pub(super) fn take_abandoned(&self) -> Vec<(String, Table, Uuid)> {
        let known = &mut *self.known();
        let old = known.entries.iter().filter(|(_, entry)| !entry.named && entry.since.elapsed() > STAGED_MAX_AGE);
        let old: Vec<_> = old.map(|(id, entry)| (entry.experiment.clone(), entry.table, *id)).collect();
        for (_, _, id) in &old {
            known.remove(*id);
        }
        old
    }
}

/// A call that takes in an object.
pub(super) struct Alone {
    uploads: Arc<Uploads>,
    part_id: Uuid,
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.uploads.known().taken_in.remove(&self.part_id);
    }
}

impl Known {
    fn put(&mut self, worker: Uuid, upload: &Announced, state: State) {
        self.remove(upload.part_id);
        let (experiment, table, since) = (upload.experiment.clone(), upload.table, Instant::now());
        let entry = Entry { worker, experiment, table, state, since, named: false };
        let waiting = self.waiting.entry(worker).or_default();
        *waiting = (waiting.0 + 1, waiting.1 + entry.bytes());
        self.entries.insert(upload.part_id, entry);
    }

    fn name(&mut self, id: Uuid) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| !entry.named) else { return };
        entry.named = true;
        let (worker, bytes, tasks) = (entry.worker, entry.bytes(), entry.tasks());
        self.named_tasks += tasks;
        self.named.push_back((Instant::now(), id));
        self.no_longer_waits(worker, bytes);
    }

    fn no_longer_waits(&mut self, worker: Uuid, bytes: u64) {
        let Some(waiting) = self.waiting.get_mut(&worker) else { return };
        *waiting = (waiting.0.saturating_sub(1), waiting.1.saturating_sub(bytes));
        if waiting.0 == 0 {
            self.waiting.remove(&worker);
        }
    }

    fn remove(&mut self, id: Uuid) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if entry.named {
            self.named_tasks -= entry.tasks();
        } else {
            self.no_longer_waits(entry.worker, entry.bytes());
        }
    }

    fn forget_old(&mut self) {
        while let Some(&(at, id)) = self.named.front() {
            if at.elapsed() < NAMED_AGE && self.named_tasks <= NAMED_TASKS_MAX {
                return;
            }
            self.named.pop_front();
            // It may have been uploaded again since.
            if self.entries.get(&id).is_some_and(|entry| entry.named) {
                self.remove(id);
            }
        }
    }
}
