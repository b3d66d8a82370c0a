//! Shortest job first.
use super::Keyed;
use crate::spec::{Component, Role};

/// Shortest job first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "sjf",
        version: 1,
        doc: "Least estimated run time first, ties by arrival.",
        reads: "The estimate of a job.",
        guarantees: "The head has the least estimate of all waiting jobs. Waits have no bound: a long job may \
                     starve while shorter ones keep arriving.",
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| waiting.estimate_s,
};
