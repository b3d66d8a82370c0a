//! Costs of the components of policies: measured ratios, as `cargo bench -p powersweep-engine --bench rules` prints them.
use powersweep_engine::spec::{Component, Role};

/// How the ratios were measured.
pub const MEASURED: &str = "A cost is the processor time of whole simulations over that of EASY first come first \
     served (0.17 to 0.24 µs a job), as `cargo bench -p powersweep-engine --bench rules` measures it: the least and the \
     greatest ratio of the logs KTH-SP2, SDSC-SP2, CTC-SP2, SDSC-BLUE and CEA-Curie. Measured in November 2026 at commit \
     c37c7988, in one to five rounds on two cores that other programs used, too. The ratios are not exact: another run \
     may differ by a tenth.";

/// The cost of a component: the time of a whole simulation over that of EASY first come first served, as the least and the
/// greatest of the logs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    role: Role,
    name: &'static str,
    /// The other choices with which it was measured, in words; empty for defaults.
    pub beside: &'static str,
    /// The least ratio.
    pub least: f64,
    /// The greatest ratio.
    pub greatest: f64,
}

/// The measured cost of a component; `None` for the defaults, which are the basis, and for components that were not measured.
pub fn of(component: &Component) -> Option<&'static Cost> {
    COSTS.iter().find(|cost| (cost.role, cost.name) == (component.role, component.name))
}

const fn cost(role: Role, name: &'static str, beside: &'static str, least: f64, greatest: f64) -> Cost {
    Cost { role, name, beside, least, greatest }
}

/// With a cap of 75% of the peak power and six gears.
const CAPPED: &str = "a cap of 75% of the peak power and six gears";

/// Every measured component.
const COSTS: &[Cost] = &[
    cost(Role::Backfill, "none", "", 0.6, 0.7),
    cost(Role::Order, "priority", "jobs of one priority", 1.1, 1.2),
    cost(Role::Order, "sjf", "", 1.1, 1.4),
    cost(Role::Order, "widest", "", 1.2, 1.4),
    cost(Role::Order, "wfp3", "", 1.7, 2.6),
    cost(Role::Order, "f1", "", 1.1, 1.4),
    cost(Role::Order, "formula", "the formula of `wfp3`", 2.4, 4.1),
    cost(Role::Backfill, "conservative", "", 5.4, 15.8),
    cost(Role::Backfill, "kept-head", "", 1.9, 7.0),
    cost(Role::Backfill, "within-priority", "`queue_order` = \"priority\" and jobs of one priority", 1.2, 1.5),
    cost(Role::BackfillOrder, "fcfs", "", 1.2, 1.4),
    cost(Role::BackfillOrder, "priority", "jobs of one priority", 1.2, 1.5),
    cost(Role::BackfillOrder, "sjf", "", 1.2, 1.5),
    cost(Role::BackfillOrder, "widest", "", 1.3, 2.4),
    cost(Role::BackfillOrder, "wfp3", "", 1.2, 1.9),
    cost(Role::BackfillOrder, "f1", "", 1.3, 1.9),
    cost(Role::BackfillOrder, "formula", "the formula of `wfp3`", 1.4, 2.6),
    cost(Role::Predictor, "exact", "", 1.1, 1.1),
    cost(Role::Predictor, "scaled", "", 1.1, 1.2),
    cost(Role::Predictor, "recent-average", "", 1.7, 1.8),
    cost(Role::Predictor, "sgd-linear", "", 5.9, 7.3),
    cost(Role::Corrector, "increments", "`predictor` = \"recent-average\"", 2.4, 2.7),
    cost(Role::Corrector, "doubling", "`predictor` = \"recent-average\"", 2.1, 2.2),
    cost(Role::GearRule, "bsld", "", 1.3, 1.5),
    cost(Role::Capacity, "two-level", "`two_level_procs` half of the machine", 1.3, 1.7),
    cost(Role::Capacity, "ols", "", 1.4, 1.5),
    cost(Role::Capacity, "power-save", "`suspend_time_s` = 600", 2.0, 2.5),
    cost(Role::Cap, "admission", CAPPED, 2.5, 3.5),
    cost(Role::Cap, "uniform", CAPPED, 2.5, 3.5),
    cost(Role::Cap, "pdrc", CAPPED, 4.3, 6.7),
    cost(Role::Cap, "power-precedence", CAPPED, 4.8, 18.1),
    cost(Role::Cap, "performance-precedence", CAPPED, 1.2, 1.4),
    cost(Role::Deferral, "lowest-slot", "", 1.4, 1.6),
    cost(Role::Deferral, "lowest-window", "", 1.8, 2.1),
    cost(Role::Deferral, "saving-per-wait", "", 1.8, 2.2),
    cost(Role::Deferral, "quantile", "", 1.5, 1.7),
    cost(Role::Deferral, "wait-awhile", "", 2.8, 3.5),
];

#[cfg(test)]
mod tests {
    use powersweep_engine::components;
    use powersweep_engine::spec::Section;

    use super::*;

    #[test]
    fn costs_are_those_of_components_of_policies_that_are_no_default() {
        for cost in COSTS {
            let component = components::find(cost.role, cost.name).expect("a measured component exists");
            assert_eq!(component.role.section(), Section::Policies, "{cost:?}");
            assert_ne!(cost.name, cost.role.default_component(), "defaults are the basis: {cost:?}");
            assert!(cost.least > 0.0 && cost.least <= cost.greatest, "{cost:?}");
            assert_eq!(
                COSTS.iter().filter(|other| (other.role, other.name) == (cost.role, cost.name)).count(),
                1,
                "{cost:?}"
            );
        }
    }
}
