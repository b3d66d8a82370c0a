//! Widest job first.
use super::{Keyed, Waiting};
use crate::spec::{Component, Role};

/// Widest job first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "widest",
        version: 1,
        doc: "Most procs first, ties by arrival; sorted anew at each pass.",
        ..Component::BATCH
    },
    changes: false,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    -waiting.procs
}
