//! Which waiting jobs may overtake the head of the queue.
pub(super) mod conservative;
pub(super) mod easy;
mod knapsack;
pub(super) mod plain;
mod profile;
pub(super) mod queue;
mod releases;
pub(super) mod resources;

use crate::spec::{Component, Default, Param, Role, Type};

/// No backfilling.
pub const NONE: Component = Component {
    role: Role::Backfill,
    name: "none",
    version: 1,
    source: "",
    doc: "No job overtakes the head of the queue.",
    params: &[],
};
/// EASY backfilling.
pub const EASY: Component = Component {
    role: Role::Backfill,
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
/// The scheduler of TracSim.
pub const WITHIN_PRIORITY: Component = Component {
    role: Role::Backfill,
    name: "within-priority",
    version: 1,
    source: "Zhang et al. 2014, Algorithm 1",
    doc: "Any job of the highest waiting priority that fits starts, in list order; free procs wait for these until all of \
          them have started, then the next priority follows. For `queue_order` = \"priority\".",
    params: &[],
};
/// The knapsack policy.
pub const KNAPSACK: Component = Component {
    role: Role::Backfill,
    name: "knapsack",
    version: 2,
    source: "Zhou et al. 2013; Zhang et al. 2014, Algorithm 4",
    doc: "At each event one set of jobs starts, all of the highest waiting priority: the one that uses most procs within \
          the watts under the cap, at the lowest gear at which it fits the free procs. Where it leaves none of this \
          priority, the next has its turn at the next event. For `queue_order` = \"priority\" and `power_cap` = \
          \"uniform\".",
    params: &[],
};
/// Conservative backfilling.
pub const CONSERVATIVE: Component = Component {
    role: Role::Backfill,
    name: "conservative",
    version: 2,
    source: "Mu'alem & Feitelson 2001",
    doc: "Every waiting job has a reservation; jobs overtake as long as all reservations are kept. Under a power cap \
          that starts regard, watts are reserved, too; all are placed anew when the cap or a running job's gear \
          changes.",
    params: &[],
};
