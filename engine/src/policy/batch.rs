//! Batch scheduling of rigid jobs, composed of order, backfill and gear rule.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of the composed batch policy.
pub const ENTRY: Entry = Entry {
    slot: Slot::Policy,
    name: "batch",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Rigid jobs in one queue, scheduled by an order, a backfilling rule and a gear rule.",
    params: &[Param {
        name: "event_order",
        ty: Type::Choice(&["batch", "submit-first", "finish-first"]),
        unit: "",
        default: Default::Text("batch"),
        identity: true,
        doc: "How the events of one instant are handled: `batch` takes all completions, then all submissions, then one \
              scheduling pass; `submit-first` makes a pass after every event, submissions first, and a running job \
              whose estimated end has come counts as ended; `finish-first` makes a pass after every event, \
              completions first.",
    }],
};
