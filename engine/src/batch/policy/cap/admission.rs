//! Jobs start only if the power fits; running jobs are left alone.
use super::rule::{CAP, CapRule};
use crate::spec::Component;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "admission",
    version: 2,
    doc: "A job starts at the highest gear up to the gear rule's choice at which the power fits, else not at all, and \
          keeps that gear; when the cap falls below the power of running jobs, or a capacity rule wakes procs, the \
          violation is measured.",
    ..CAP
};

/// The rule `admission`.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission;

impl CapRule for Admission {}
