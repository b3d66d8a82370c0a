//! Widest job first.
use super::Keyed;
use crate::spec::{Component, Role};

/// Widest job first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "widest",
        version: 1,
        doc: "Most procs first, ties by arrival.",
        reads: "The procs of a job.",
        guarantees: "The head has the most procs of all waiting jobs. Waits have no bound: a narrow job may \
                     starve while wider ones keep arriving.",
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| -waiting.procs,
};
