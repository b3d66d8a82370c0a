//! No backfilling: the pass of EASY, in which no job overtakes.
use super::easy::{EasyOfPools, EasyOfProcs, EasyUnderCap};
use crate::spec::{Component, Role};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "none",
    version: 1,
    doc: "No job overtakes the head of the queue.",
    reads: "Free procs; with a power cap also watts. No estimate.",
    guarantees: "No job starts while an earlier job of the queue waits; on a machine with partitions, GPUs or \
                 memory, an earlier job that takes something of the same pool.",
    ..Component::BATCH
};

/// Strict order of jobs that take procs.
pub(in crate::batch::policy) type InOrder = EasyOfProcs;

/// Strict order under a power cap.
pub(in crate::batch::policy) type InOrderUnderCap = EasyUnderCap;

/// Strict order on a machine with pools.
pub(in crate::batch::policy) type InOrderOfPools = EasyOfPools;
