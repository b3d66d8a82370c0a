//! Which waiting jobs may overtake the head of the queue.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// No backfilling.
pub const NONE: Entry = Entry {
    slot: Slot::Backfill,
    name: "none",
    version: 1,
    source: "",
    doc: "No job overtakes the head of the queue.",
    params: &[],
};
/// EASY backfilling.
pub const EASY: Entry = Entry {
    slot: Slot::Backfill,
    name: "easy",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Jobs overtake as long as the head's reservation is kept.",
    params: &[Param {
        name: "extra_procs",
        ty: Type::Bool,
        unit: "",
        default: Default::Bool(true),
        identity: true,
        doc: "Whether a job may also overtake on the procs that the head leaves free at its reservation (textbook \
              EASY); false lets only jobs overtake that end before it (etinski2010).",
    }],
};
/// Conservative backfilling.
pub const CONSERVATIVE: Entry = Entry {
    slot: Slot::Backfill,
    name: "conservative",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Every waiting job has a reservation; jobs overtake as long as all reservations are kept.",
    params: &[],
};
