//! Leases that ended while their worker could still run their tasks: rows may follow, and count.
//!
//! A worker whose network failed comes back with rows after its lease expired. The record of the lease stays, marked as
//! ended, so that these rows are accepted for the tasks that the worker was granted, and for no other task. The latest
//! leases are kept; rows under an older one are rejected, and their tasks run again.

use std::collections::BTreeMap;
use std::ops::Range;

use powersweep_proto::v1::LeaseId;
use uuid::Uuid;

use crate::records::LeaseRecord;

/// Maximum number of leases that are kept, and of their ranges: some ten megabytes.
const LEASES_MAX: usize = 65_536;
const RANGES_MAX: usize = 1 << 19;

/// The tasks of a lease, and the worker that was granted them. The ranges are disjoint and in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grant {
    pub(super) experiment: String,
    /// The generation whose indices the ranges have, and the worker knows.
    pub(super) generation: u64,
    pub(super) ranges: Vec<Range<u64>>,
    pub(super) worker: Uuid,
}

impl Grant {
    /// Whether the worker was granted this index of the generation.
    pub(super) fn covers(&self, index: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= index);
        self.ranges.get(at).is_some_and(|range| range.contains(&index))
    }
}

impl From<&LeaseRecord> for Grant {
    fn from(record: &LeaseRecord) -> Grant {
        Grant {
            experiment: record.experiment.clone(),
            generation: record.generation,
            ranges: record.ranges.iter().map(|range| range.start..range.end).collect(),
            worker: *record.worker_id,
        }
    }
}

/// The latest ended leases.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Each with its number in `order`.
    grants: BTreeMap<LeaseId, (u64, Grant)>,
    /// The oldest first.
    order: BTreeMap<u64, LeaseId>,
    next: u64,
    ranges: usize,
}

impl Ended {
    pub(super) fn get(&self, id: LeaseId) -> Option<&Grant> {
        self.grants.get(&id).map(|(_, grant)| grant)
    }

    /// Adds a lease. Returns those that are dropped for it.
    pub(super) fn add(&mut self, id: LeaseId, grant: Grant) -> Vec<LeaseId> {
        self.remove(id);
        self.ranges += grant.ranges.len();
        self.grants.insert(id, (self.next, grant));
        self.order.insert(self.next, id);
        self.next += 1;
        let mut dropped = Vec::new();
        while self.grants.len() > LEASES_MAX || self.ranges > RANGES_MAX {
            let Some((_, &oldest)) = self.order.first_key_value() else { break };
            self.remove(oldest);
            dropped.push(oldest);
        }
        dropped
    }

    /// Takes a lease out.
    pub(super) fn remove(&mut self, id: LeaseId) -> Option<Grant> {
        let (number, grant) = self.grants.remove(&id)?;
        self.order.remove(&number);
        self.ranges -= grant.ranges.len();
        Some(grant)
    }

    /// Takes all leases of an experiment out.
    pub(super) fn remove_all(&mut self, experiment: &str) -> Vec<LeaseId> {
        let of_it = self.grants.iter().filter(|(_, (_, grant))| grant.experiment == experiment);
        let ids: Vec<LeaseId> = of_it.map(|(id, _)| *id).collect();
        for id in &ids {
            self.remove(*id);
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_leases_are_kept_within_the_limits() {
        let grant = |ranges: u64| Grant {
            experiment: "e".into(),
            generation: 1,
            ranges: (0..ranges).map(|at| 2 * at..2 * at + 1).collect(),
            worker: Uuid::nil(),
        };
        let id = |counter| LeaseId { epoch: 1, counter };
        let mut ended = Ended::default();
        assert_eq!(ended.add(id(1), grant(100)), []);
        assert_eq!(ended.add(id(2), grant(100)), []);
        assert!(ended.get(id(1)).is_some_and(|grant| grant.covers(198) && !grant.covers(199)));
        assert_eq!(ended.add(id(3), grant(RANGES_MAX as u64 - 100)), [id(1)], "the ranges are bounded");
        assert_eq!(ended.remove(id(3)), Some(grant(RANGES_MAX as u64 - 100)));
        for counter in 4..4 + LEASES_MAX as u64 {
            ended.add(id(counter), grant(1));
        }
        assert_eq!((ended.grants.len(), ended.get(id(2))), (LEASES_MAX, None), "their number is bounded");
        assert_eq!((ended.remove_all("e").len(), ended.ranges, ended.order.len()), (LEASES_MAX, 0, 0));
    }
}
