//! Jobs run at their ceilings, even if the power exceeds the cap.
use super::acting::MEASURED;
use super::allowance::Allowance;
use super::rule::{CAP, CapRule};
use crate::spec::Component;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: MEASURED,
    version: 1,
    source: "Zhang et al. 2014, section V.B",
    doc: "Jobs run as if there were no cap; the violation is measured.",
    reads: "Nothing.",
    guarantees: "Jobs start and run as without a cap, but for the scheduling pass at each change of the cap, which \
                 matters to orders that change with time and to jobs that outlive their estimates. The power may \
                 exceed the cap at any time, and the violation is measured.",
    ..CAP
};

/// The rule `performance-precedence`.
#[derive(Debug, Clone, Default)]
pub(super) struct PerformancePrecedence;

impl CapRule for PerformancePrecedence {
    fn allowance(&self, _: f64) -> Allowance {
        Allowance::ANY
    }
}
