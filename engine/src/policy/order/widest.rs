//! Widest job first.
use super::{Keyed, Waiting};
use crate::registry::{Entry, Slot};

/// Widest job first.
pub static ORDER: Keyed = Keyed {
    entry: Entry {
        slot: Slot::Order,
        name: "widest",
        version: 1,
        source: "",
        doc: "Most procs first, ties by arrival; sorted anew at each pass.",
        params: &[],
    },
    changes: false,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    -waiting.procs
}
