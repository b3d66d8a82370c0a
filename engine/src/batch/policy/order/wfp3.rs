//! WFP3.
use super::Keyed;
use crate::spec::{Component, Role};

/// WFP3.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "wfp3",
        version: 1,
        source: "Tang et al. 2009",
        doc: "Largest (wait/max(estimate, 1 s))^3 * procs first, ties by arrival; sorted again at each pass.",
        reads: "The wait so far, the estimate and the procs of a job.",
        guarantees: "The key of a job gets better all the time that it waits, the faster the shorter and wider \
                     the job is. Waits have no bound.",
        ..Component::BATCH
    },
    changes: true,
    key: |waiting| {
        let ratio = (waiting.now_s - waiting.submit_s) / waiting.estimate_s.max(1.0);
        -(ratio * ratio * ratio * waiting.procs)
    },
};
