//! Hand-ins and failures that the coordinator has not answered, in order of their ids.

use std::collections::BTreeMap;

use powersweep_proto::v1;

/// A finished batch of one slot, as the session takes it over.
#[derive(Debug, Clone)]
pub struct FinishedBatch {
    /// The message, without the id.
    pub hand_in: v1::HandIn,
    /// The objects that it names, which are uploaded first.
    pub objects: Vec<v1::UploadPartRequest>,
}

/// An object to upload now.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The hand-in that waits for it.
    pub hand_in: u64,
    /// The object, in one piece.
    pub object: v1::UploadPartRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its objects from this position on are not in the staging folder.
    Upload { next: usize, busy: bool },
    /// To be sent.
    Ready,
    /// Sent over the present connection.
    Sent,
}

#[derive(Debug)]
enum Body {
    HandIn(FinishedBatch),
    Failure(v1::TaskFailure),
}

#[derive(Debug)]
struct Entry {
    body: Body,
    stage: Stage,
}

/// The hand-ins and failures without an answer.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    entries: BTreeMap<u64, Entry>,
    last_id: u64,
    bytes: usize,
    /// No entry below this id is [`Stage::Ready`] or waits for an upload to begin.
    settled_below: u64,
}

impl Outbox {
    fn push(&mut self, body: Body, stage: Stage) {
        self.last_id += 1;
        self.bytes += size(&body);
        self.entries.insert(self.last_id, Entry { body, stage });
    }

    pub(super) fn hand_in(&mut self, batch: FinishedBatch) {
        let stage = if batch.objects.is_empty() { Stage::Ready } else { Stage::Upload { next: 0, busy: false } };
        self.push(Body::HandIn(batch), stage);
    }

    pub(super) fn failure(&mut self, failure: v1::TaskFailure) {
        self.push(Body::Failure(failure), Stage::Ready);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of rows and objects held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes an answered entry; returns the tasks that it settles. Ids that were answered before give none.
    pub(super) fn remove(&mut self, id: u64) -> Vec<v1::LeaseTasks> {
        let Some(entry) = self.entries.remove(&id) else { return Vec::new() };
        self.bytes -= size(&entry.body);
        match entry.body {
            Body::HandIn(batch) => batch.hand_in.done,
            Body::Failure(f) => vec![v1::LeaseTasks { lease: f.lease, indices: vec![f.index] }],
        }
    }

    /// A new connection: every entry is sent again. A coordinator of a new epoch has deleted unaccepted uploads, so that
    /// the objects are uploaded again, too.
    pub(super) fn reconnected(&mut self, new_epoch: bool) {
        self.settled_below = 0;
        for entry in self.entries.values_mut() {
            let has_objects = matches!(&entry.body, Body::HandIn(batch) if !batch.objects.is_empty());
            entry.stage = match entry.stage {
                _ if new_epoch && has_objects => Stage::Upload { next: 0, busy: false },
                Stage::Upload { next, .. } => Stage::Upload { next, busy: false },
                Stage::Ready | Stage::Sent => Stage::Ready,
            };
        }
    }

    /// The next message to send.
    pub(super) fn next_message(&mut self) -> Option<v1::worker_message::Body> {
        let (&id, entry) = self.entries.range_mut(self.settled_below..).find(|(_, e)| e.stage == Stage::Ready)?;
        entry.stage = Stage::Sent;
        let message = match &entry.body {
            Body::HandIn(batch) => v1::worker_message::Body::HandIn(v1::HandIn { id, ..batch.hand_in.clone() }),
            Body::Failure(failure) => v1::worker_message::Body::Failure(v1::TaskFailure { id, ..failure.clone() }),
        };
        self.advance();
        Some(message)
    }

    /// Moves the begin of the search past the sent entries, so that the cost of sending does not grow with the outbox.
    fn advance(&mut self) {
        let open = self.entries.range(self.settled_below..).find(|(_, e)| e.stage != Stage::Sent);
        self.settled_below = open.map_or(self.last_id + 1, |(&id, _)| id);
    }

    /// The next object to upload; one at a time for each hand-in.
    pub(super) fn next_upload(&mut self) -> Option<Upload> {
        self.entries.range_mut(self.settled_below..).find_map(|(&id, entry)| {
            let Stage::Upload { next, busy: false } = entry.stage else { return None };
            let Body::HandIn(batch) = &entry.body else { return None };
            entry.stage = Stage::Upload { next, busy: true };
            Some(Upload { hand_in: id, object: batch.objects[next].clone() })
        })
    }

    /// An upload ended. After a failure it is offered again.
    pub(super) fn uploaded(&mut self, upload: &Upload, ok: bool) {
        let Some(entry) = self.entries.get_mut(&upload.hand_in) else { return };
        let Body::HandIn(batch) = &entry.body else { return };
        let Stage::Upload { next, busy: true } = entry.stage else { return };
        if batch.objects[next].part_id != upload.object.part_id {
            return;
        }
        entry.stage = match (ok, next + 1 == batch.objects.len()) {
            (false, _) => Stage::Upload { next, busy: false },
            (true, false) => Stage::Upload { next: next + 1, busy: false },
            (true, true) => Stage::Ready,
        };
        self.settled_below = self.settled_below.min(upload.hand_in);
    }
}

/// Memory of an entry beside its rows, objects and texts, and of each of its tasks here and in its lease. They bound the
/// number of entries with tiny rows or failures.
const ENTRY_BYTES: usize = 512;
const TASK_BYTES: usize = 32;

fn size(body: &Body) -> usize {
    let content = match body {
        Body::HandIn(batch) => {
            let tasks: usize = batch.hand_in.done.iter().map(|tasks| tasks.indices.len()).sum();
            let objects: usize = batch.objects.iter().map(|object| object.data.len()).sum();
            batch.hand_in.rows.len() + objects + tasks * TASK_BYTES
        }
        Body::Failure(failure) => failure.message.len() + TASK_BYTES,
    };
    content + ENTRY_BYTES
}
