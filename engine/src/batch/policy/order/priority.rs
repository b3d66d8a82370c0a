//! Highest priority first.
use super::{Keyed, Waiting};
use crate::spec::{Component, Role};

/// Highest priority first.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "priority",
        version: 1,
        source: "Zhang et al. 2014, Algorithm 1",
        doc: "Priority 1 first, then 2, and so on; ties by arrival, which is the order of the list.",
        ..Component::BATCH
    },
    changes: false,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    waiting.priority
}
