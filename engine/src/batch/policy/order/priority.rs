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
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| waiting.priority,
};
