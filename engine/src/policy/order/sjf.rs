//! Shortest job first.
use super::{Keyed, Waiting};
use crate::registry::{Entry, Slot};

/// Shortest job first.
pub static ORDER: Keyed = Keyed {
    entry: Entry {
        slot: Slot::Order,
        name: "sjf",
        version: 1,
        source: "",
        doc: "Least estimated run time first, ties by arrival; sorted anew at each pass.",
        params: &[],
    },
    changes: false,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    waiting.estimate_s
}
