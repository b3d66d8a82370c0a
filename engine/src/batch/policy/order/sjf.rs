//! Shortest job first.
use super::{Keyed, Waiting};
use crate::spec::{Component, Role};

/// Shortest job first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "sjf",
        version: 1,
        doc: "Least estimated run time first, ties by arrival; sorted anew at each pass.",
        ..Component::BATCH
    },
    changes: false,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    waiting.estimate_s
}
