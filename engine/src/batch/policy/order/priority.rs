//! Highest priority first.
use super::Keyed;
use crate::spec::{Component, Role};

/// Highest priority first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "priority",
        version: 1,
        source: "Zhang et al. 2014, Algorithm 1",
        doc: "Priority 1 first, then 2, and so on; ties by arrival.",
        reads: "The priority of a job.",
        guarantees: "The head has the highest waiting priority. Waits have no bound: a job may starve while jobs \
                     of a higher priority keep arriving.",
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| waiting.priority,
};
