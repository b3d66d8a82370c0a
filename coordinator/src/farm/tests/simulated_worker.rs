//! A worker that runs leases in order and sends again, over each new connection, what is not acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use uuid::Uuid;

use super::simulation::Random;
use super::wire::{Wire, failure, hand_in, tasks};
use crate::farm::ConnId;

/// Tasks with such a seed can never succeed.
pub(super) fn is_hopeless(seed: u64) -> bool {
    seed % 19 == 7
}

/// Something to say until it is acknowledged.
#[derive(Clone)]
struct Said {
    body: ToFarm,
    lease: v1::Lease,
    done: Vec<u64>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Worker {
    pub(super) id: u128,
    pub(super) conn: Option<ConnId>,
    epoch: u64,
    open: BTreeMap<(u64, u64), (v1::Lease, BTreeSet<u64>)>,
    outbox: BTreeMap<u64, Said>,
    next_id: u64,
}

impl Worker {
    pub(super) fn new(id: u128) -> Worker {
        Worker { id, ..Worker::default() }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes a message in. Returns the tasks that it acknowledges.
    pub(super) fn take_in(&mut self, message: ToWorker, wire: &mut Wire) -> Vec<Uuid> {
        let mut acknowledged = Vec::new();
        match message {
            ToWorker::Lease(lease) => {
                let id = lease.id.expect("leases have ids");
                let tasks = tasks(&lease).into_iter().collect();
                self.open.insert((id.epoch, id.counter), (lease, tasks));
            }
            ToWorker::Ack(ack) => {
                for said in ack.ids.iter().filter_map(|id| self.outbox.remove(id)) {
                    acknowledged.extend(wire.identities("e", said.lease.generation, &said.done));
                }
                for rejected in ack.rejected {
                    // The refusals that a faultless worker may meet.
                    let known = [
                        "done elsewhere",
                        "uploads were deleted",
                        "there is no experiment",
                        "goes away",
                        "is not known any more",
                        "is not in generation",
                    ];
                    assert!(known.iter().any(|reason| rejected.reason.contains(reason)), "{}", rejected.reason);
                    self.outbox.remove(&rejected.id);
                }
            }
            ToWorker::Revoke(revoke) => {
                let id = revoke.lease.expect("revokes name a lease");
                if revoke.queued_only {
                    self.hand_back_queue(id.epoch, id.counter, wire);
                } else if revoke.ranges.is_empty() {
                    self.open.remove(&(id.epoch, id.counter));
                } else if let Some((_, open)) = self.open.get_mut(&(id.epoch, id.counter)) {
                    open.retain(|index| !revoke.ranges.iter().any(|r| (r.start..r.end).contains(index)));
                }
            }
            ToWorker::Welcome(welcome) => {
                let adopted: BTreeSet<_> = welcome.adopted.iter().map(|id| (id.epoch, id.counter)).collect();
                self.open.retain(|id, _| adopted.contains(id));
                let fresh = std::mem::replace(&mut self.epoch, welcome.epoch) != welcome.epoch;
                for said in self.outbox.values().cloned().collect::<Vec<_>>() {
                    if fresh {
                        upload(&said.body, wire);
                    }
                    self.send(wire, said.body);
                }
            }
            ToWorker::Experiment(_) | ToWorker::Refused(_) | ToWorker::Drain(_) => {}
        }
        acknowledged
    }

    fn send(&self, wire: &mut Wire, body: ToFarm) {
        if let Some(conn) = self.conn.filter(|conn| wire.inbox.contains_key(conn)) {
            wire.send(conn, body);
        }
    }

    pub(super) fn held(&self) -> Vec<v1::LeaseState> {
        let mut held: BTreeMap<(u64, u64), (v1::Lease, BTreeSet<u64>)> = self.open.clone();
        for said in self.outbox.values() {
            let id = said.lease.id.expect("leases have ids");
            let entry = held.entry((id.epoch, id.counter)).or_insert((said.lease.clone(), BTreeSet::new()));
            entry.1.extend(&said.done);
        }
        let state = |(lease, open): (v1::Lease, BTreeSet<u64>)| v1::LeaseState {
            lease: lease.id,
            experiment: lease.experiment,
            generation: lease.generation,
            open: open.into_iter().map(|index| v1::IndexRange { start: index, end: index + 1 }).collect(),
        };
        held.into_values().map(state).collect()
    }

    /// Finishes a few tasks of one lease and says so.
    pub(super) fn work(&mut self, wire: &mut Wire, random: &mut Random) {
        let count = self.open.len() as u64;
        let Some(&key) = self.open.keys().nth(random.below(count.max(1)) as usize) else { return };
        let (lease, open) = self.open.get_mut(&key).expect("just found");
        let most = 1 + random.below(4);
        let mut done = Vec::new();
        let mut failed = None;
        for _ in 0..most {
            let Some(index) = open.pop_first() else { break };
            if is_hopeless(wire.task(&lease.experiment, lease.generation, index).1) {
                failed = Some((index, v1::FailureKind::Invalid));
                break;
            }
            if random.one_in(50) {
                failed = Some((index, v1::FailureKind::Panic));
                break;
            }
            done.push(index);
        }
        let lease = lease.clone();
        if open.is_empty() {
            self.open.remove(&key);
        }
        if !done.is_empty() {
            let mut body = hand_in(self.next_id + 1, &lease, &done);
            if let (ToFarm::HandIn(hand_in), true) = (&mut body, wire.wants_jobs(&lease.experiment, lease.generation)) {
                let part_id = Uuid::from_u128(self.id << 64 | u128::from(self.next_id));
                let (part_id, rows) = (part_id.as_bytes().to_vec().into(), done.len() as u64);
                hand_in.staged.push(v1::StagedPart { table: "jobs".into(), part_id, rows, bytes: 1 });
            }
            self.say(wire, random, Said { body, lease: lease.clone(), done });
        }
        if let Some((index, kind)) = failed {
            let body = failure(self.next_id + 1, &lease, index, kind);
            self.say(wire, random, Said { body, lease, done: Vec::new() });
        }
    }

    fn say(&mut self, wire: &mut Wire, random: &mut Random, said: Said) {
        self.next_id += 1;
        self.outbox.insert(self.next_id, said.clone());
        upload(&said.body, wire);
        // A lost message of a stream means a broken stream; a repeated one is a peer that does not know.
        for _ in 0..1 + u64::from(random.one_in(10)) {
            self.send(wire, said.body.clone());
        }
    }

    /// Gives back what it was asked for: all but the task that it is at.
    fn hand_back_queue(&mut self, epoch: u64, counter: u64, wire: &mut Wire) {
        let Some((lease, open)) = self.open.get_mut(&(epoch, counter)) else { return };
        let running = open.pop_first();
        let queued = std::mem::replace(open, running.into_iter().collect());
        let back = v1::HandBack {
            lease: lease.id,
            experiment: lease.experiment.clone(),
            ranges: queued.into_iter().map(|index| v1::IndexRange { start: index, end: index + 1 }).collect(),
            generation: lease.generation,
            asked: true,
        };
        self.send(wire, ToFarm::HandBack(back));
    }

    /// Gives one lease back.
    pub(super) fn hand_back(&mut self, wire: &mut Wire) {
        let Some((_, (lease, open))) = self.open.pop_last() else { return };
        let back = v1::HandBack {
            lease: lease.id,
            experiment: lease.experiment,
            ranges: open.into_iter().map(|index| v1::IndexRange { start: index, end: index + 1 }).collect(),
            generation: lease.generation,
            asked: false,
        };
        self.send(wire, ToFarm::HandBack(back));
    }
}

/// Puts the parts of a hand-in into the staging area.
fn upload(body: &ToFarm, wire: &mut Wire) {
    let ToFarm::HandIn(hand_in) = body else { return };
    for part in &hand_in.staged {
        let indices: Vec<u64> = hand_in.done.iter().flat_map(|tasks| tasks.indices.iter().copied()).collect();
        let tasks = wire.identities(&hand_in.experiment, hand_in.generation, &indices);
        wire.staging.insert(Uuid::from_slice(&part.part_id).expect("an id"), tasks);
    }
}
