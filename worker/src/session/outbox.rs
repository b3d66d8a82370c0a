//! What the worker has to tell and the coordinator has not acknowledged: hand-ins and failures, in order of their ids.

use std::collections::BTreeMap;

use bytes::Bytes;
use powersweep_proto::v1;
use uuid::Uuid;

use super::LeaseId;

/// An object of an optional table that goes to the staging area before its hand-in is sent.
#[derive(Debug, Clone)]
pub struct Part {
    /// The optional table.
    pub table: &'static str,
    /// Fresh identity of the object; also in its footer.
    pub part_id: Uuid,
    /// Rows in it.
    pub rows: u64,
    /// The whole object.
    pub bytes: Bytes,
}

/// A finished batch of one slot, as the session takes it over.
#[derive(Debug, Clone)]
pub struct FinishedBatch {
    /// Experiment and generation of all its rows.
    pub experiment: super::ExperimentKey,
    /// Which tasks the rows belong to, in row order: runs of (lease, indices).
    pub done: Vec<(LeaseId, Vec<u64>)>,
    /// Encoded rows of the `tasks` table.
    pub rows: Bytes,
    /// Objects of optional tables.
    pub parts: Vec<Part>,
    /// Slot time of these tasks, and what the slot idled since its batch before.
    pub spent: v1::TimeSpent,
}

/// A part to upload now.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The hand-in that waits for it.
    pub hand_in: u64,
    /// Experiment of its rows.
    pub experiment: super::ExperimentKey,
    /// A lease that its rows were made under.
    pub lease: LeaseId,
    /// What to upload.
    pub part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its parts from this position on are not in the staging area.
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

/// Unacknowledged hand-ins and failures.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    entries: BTreeMap<u64, Entry>,
    last_id: u64,
    bytes: usize,
    /// No entry below this id is [`Stage::Ready`] or waits for an upload to begin.
    settled_below: u64,
}

impl Outbox {
    fn push(&mut self, body: Body, stage: Stage) -> u64 {
        self.last_id += 1;
        self.bytes += size(&body);
        self.entries.insert(self.last_id, Entry { body, stage });
        self.last_id
    }

    pub(super) fn hand_in(&mut self, batch: FinishedBatch) -> u64 {
        let stage = if batch.parts.is_empty() { Stage::Ready } else { Stage::Upload { next: 0, busy: false } };
        self.push(Body::HandIn(batch), stage)
    }

    pub(super) fn failure(&mut self, failure: v1::TaskFailure) -> u64 {
        self.push(Body::Failure(failure), Stage::Ready)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of rows and parts held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets an answered entry; returns the tasks that it settles. Unknown ids (answered twice) give none.
    pub(super) fn remove(&mut self, id: u64) -> Vec<(LeaseId, Vec<u64>)> {
        let Some(entry) = self.entries.remove(&id) else { return Vec::new() };
        self.bytes -= size(&entry.body);
        match entry.body {
            Body::HandIn(batch) => batch.done,
            Body::Failure(f) => f.lease.map(|l| (l.into(), vec![f.index])).into_iter().collect(),
        }
    }

    /// A new connection: everything goes out again. With a new epoch the staging area was emptied, so that parts have
    /// to be uploaded again too.
    pub(super) fn reconnected(&mut self, new_epoch: bool) {
        self.settled_below = 0;
        for entry in self.entries.values_mut() {
            let has_parts = matches!(&entry.body, Body::HandIn(batch) if !batch.parts.is_empty());
            entry.stage = match entry.stage {
                _ if new_epoch && has_parts => Stage::Upload { next: 0, busy: false },
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
            Body::HandIn(batch) => v1::worker_message::Body::HandIn(message(id, batch)),
            Body::Failure(failure) => v1::worker_message::Body::Failure(v1::TaskFailure { id, ..failure.clone() }),
        };
        self.advance();
        Some(message)
    }

    /// Moves the search start over everything that is on its way: sending stays constant in cost however much waits.
    fn advance(&mut self) {
        let open = self.entries.range(self.settled_below..).find(|(_, e)| e.stage != Stage::Sent);
        self.settled_below = open.map_or(self.last_id + 1, |(&id, _)| id);
    }

    /// The next part to upload; one at a time a hand-in.
    pub(super) fn next_upload(&mut self) -> Option<Upload> {
        self.entries.range_mut(self.settled_below..).find_map(|(&id, entry)| {
            let Stage::Upload { next, busy: false } = entry.stage else { return None };
            let Body::HandIn(batch) = &entry.body else { return None };
            let lease = batch.done.first()?.0;
            entry.stage = Stage::Upload { next, busy: true };
            let part = batch.parts[next].clone();
            Some(Upload { hand_in: id, experiment: batch.experiment.clone(), lease, part })
        })
    }

    /// An upload ended. After a failure it will be offered again.
    pub(super) fn uploaded(&mut self, hand_in: u64, part_id: Uuid, ok: bool) {
        let Some(entry) = self.entries.get_mut(&hand_in) else { return };
        let Body::HandIn(batch) = &entry.body else { return };
        let Stage::Upload { next, busy: true } = entry.stage else { return };
        if batch.parts[next].part_id != part_id {
            return;
        }
        entry.stage = match (ok, next + 1 == batch.parts.len()) {
            (false, _) => Stage::Upload { next, busy: false },
            (true, false) => Stage::Upload { next: next + 1, busy: false },
            (true, true) => Stage::Ready,
        };
        self.settled_below = self.settled_below.min(hand_in);
    }
}

/// What an entry takes beside its rows, parts and texts, and each of its tasks here and in its lease: else a task whose
/// row is nothing, or that only fails, would cost nothing.
const ENTRY_BYTES: usize = 512;
const TASK_BYTES: usize = 32;

fn size(body: &Body) -> usize {
    let content = match body {
        Body::HandIn(batch) => {
            let tasks: usize = batch.done.iter().map(|(_, indices)| indices.len()).sum();
            batch.rows.len() + batch.parts.iter().map(|p| p.bytes.len()).sum::<usize>() + tasks * TASK_BYTES
        }
        Body::Failure(failure) => failure.message.len() + TASK_BYTES,
    };
    content + ENTRY_BYTES
}

fn message(id: u64, batch: &FinishedBatch) -> v1::HandIn {
    let done = batch.done.iter();
    let parts = batch.parts.iter();
    v1::HandIn {
        id,
        experiment: batch.experiment.name.to_string(),
        generation: batch.experiment.generation,
        done: done
            .map(|(id, indices)| v1::LeaseTasks { lease: Some((*id).into()), indices: indices.clone() })
            .collect(),
        rows: batch.rows.clone(),
        staged: parts
            .map(|p| v1::StagedPart {
                table: p.table.to_owned(),
                part_id: Bytes::copy_from_slice(p.part_id.as_bytes()),
                rows: p.rows,
                bytes: p.bytes.len() as u64,
            })
            .collect(),
        spent: Some(batch.spent),
    }
}
