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
    reads: "The power of the machine, the cap, and the watts of a job at each gear, as far as they are known.",
    guarantees: "A start never raises the power above the cap. The power exceeds the cap only after the cap has \
                 fallen, a capacity rule has woken procs, or a job draws more than was known. Gears of running \
                 jobs do not change.",
    ..CAP
};

/// The rule `admission`.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission;

impl CapRule for Admission {}
