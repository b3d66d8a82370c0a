//! F1.
use super::Keyed;
use crate::spec::{Component, Role};

/// F1.
pub static ORDER: Keyed = Keyed {
    component: Component {
        role: Role::Order,
        name: "f1",
        version: 1,
        source: "Carastan-Santos & de Camargo 2017",
        doc: "Least log10(max(estimate, 1 s))*procs + 870*log10(max(submit - first submit, 1 s)) first, ties by arrival.",
        reads: "The submission, the estimate and the procs of a job, and the first submission of the workload.",
        guarantees: "The place of a job is fixed at its submission: jobs that are submitted later than 10^(key / \
                     870) s after the first submission stay behind. For wide jobs, that may be after the end of \
                     the log.",
        ..Component::BATCH
    },
    changes: false,
    key: |waiting| {
        let since_first_s = waiting.submit_s - waiting.first_submit_s;
        libm::log10(waiting.estimate_s.max(1.0)) * waiting.procs + 870.0 * libm::log10(since_first_s.max(1.0))
    },
};
