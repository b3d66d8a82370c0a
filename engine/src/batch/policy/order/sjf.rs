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
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| waiting.estimate_s,
};
