//! WFP3.
use super::{Keyed, Waiting};
use crate::registry::{Entry, Slot};

/// WFP3.
pub static ORDER: Keyed = Keyed {
    entry: Entry {
        slot: Slot::Order,
        name: "wfp3",
        version: 1,
        source: "Tang et al. 2009",
        doc: "Largest (wait/max(estimate, 1 s))^3 * procs first, ties by arrival; sorted anew at each pass.",
        params: &[],
    },
    changes: true,
    key,
};

fn key(waiting: &Waiting) -> f64 {
    let ratio = (waiting.now_s - waiting.submit_s) / waiting.estimate_s.max(1.0);
    -(ratio * ratio * ratio * waiting.procs)
}
