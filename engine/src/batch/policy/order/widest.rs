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
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| -waiting.procs,
};
