//! Connections: greeting, welcome, refusal, loss, stall.

use std::collections::BTreeSet;

use bytes::Bytes;
use powersweep_proto::v1;
use powersweep_proto::v1::LeaseId;

use super::{Link, Session};

impl Session {
    /// A connection was opened: the first message to send.
    pub fn hello(&mut self, seconds_left: Option<f64>) -> v1::Hello {
        self.link = Link::Greeting;
        self.control.clear();
        let held = self.leases.iter().map(|(&id, lease)| v1::LeaseState {
            lease: Some(id),
            experiment: lease.experiment.name.to_string(),
            generation: lease.experiment.generation,
            open: lease.open(),
        });
        v1::Hello {
            worker: self.identity.name.clone(),
            worker_id: Bytes::copy_from_slice(self.identity.worker_id.as_bytes()),
            slots: self.slots.len() as u32,
            versions: Some(self.identity.versions.clone()),
            held: held.collect(),
            seconds_left,
            allocation: self.identity.allocation.clone(),
        }
    }

    /// The coordinator accepted this worker. Queued tasks of leases that it does not adopt are dropped, because other
    /// workers may have them. Running tasks continue: a row counts unless another worker's row came first.
    pub fn welcome(&mut self, welcome: &v1::Welcome) {
        let new_epoch = self.epoch.replace(welcome.epoch) != Some(welcome.epoch);
        self.link = Link::Up;
        self.asks_first = false;
        let adopted: BTreeSet<LeaseId> = welcome.adopted.iter().copied().collect();
        let lost: Vec<LeaseId> = self.leases.keys().copied().filter(|id| !adopted.contains(id)).collect();
        for id in lost {
            self.with_queue.remove(&id);
            self.drop_queue(id);
        }
        self.outbox.reconnected(new_epoch);
    }

    /// The process stood still. The connection is lost or will be, and the next one tells which leases continue.
    pub fn stood_still(&mut self) {
        self.disconnected();
        self.asks_first = true;
    }

    /// The connection was lost, or none was made.
    pub fn disconnected(&mut self) {
        self.link = Link::Down;
        self.paused = false;
        self.asks_first = false;
        self.control.clear();
    }

    /// The coordinator refuses this worker, and leases its queued tasks to others. Running tasks continue, and finished
    /// rows are kept for a coordinator that takes them.
    pub fn refused(&mut self) {
        self.disconnected();
        for id in std::mem::take(&mut self.with_queue) {
            self.drop_queue(id);
        }
    }

    /// Drops the queued tasks of a lease.
    fn drop_queue(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.drop_queue();
        }
        self.settle(id);
    }
}
