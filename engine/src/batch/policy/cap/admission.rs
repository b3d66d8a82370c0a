//! Jobs start only if the power fits; running jobs are left alone.
use crate::spec::{Component, Role};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Cap,
    name: "admission",
    version: 2,
    source: "",
    doc: "A job starts at the highest gear up to the gear rule's choice at which the power fits, else not at all, and keeps \
          it; when the cap falls below the power of running jobs, or a capacity rule wakes procs, the violation is measured.",
    params: &[super::CAPS_W, super::CAP_PERIOD_S],
};
