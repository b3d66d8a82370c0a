//! The list of all components, the default of each role, and the combinations that are refused.
//!
//! This module knows every component; no component knows this module. From the list alone follow: what a manifest may say,
//! the JSON Schema, `powersweep policies`, the typed parameter columns of the results, and a task's identity.
//!
//! Invariants (tested): a parameter name has one declaration, which components may share, so that it can be a column name;
//! a default lies in its own range; defaults never change once released (identity leaves out values equal to the default).
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::batch::policy::watch;
use crate::batch::weekly;
use crate::series::Series;
use crate::spec::{Choice, Component, Role, SimSpec};

/// Every component of this build, by role and name.
pub static COMPONENTS: &[&Component] = &[
    &crate::workload::swf::COMPONENT,
    &crate::workload::lublin::COMPONENT,
    &crate::workload::poisson::COMPONENT,
    &crate::workload::tracsim::COMPONENT,
    &crate::workload::rules::COMPONENT,
    &crate::batch::platform::COMPONENT,
    &crate::batch::power::etinski::COMPONENT,
    &crate::batch::power::table::COMPONENT,
    &crate::batch::policy::batch::COMPONENT,
    &crate::batch::policy::order::FCFS,
    &crate::batch::policy::order::priority::ORDER.component,
    &crate::batch::policy::order::sjf::ORDER.component,
    &crate::batch::policy::order::widest::ORDER.component,
    &crate::batch::policy::order::wfp3::ORDER.component,
    &crate::batch::policy::order::f1::ORDER.component,
    &crate::batch::policy::backfill::NONE,
    &crate::batch::policy::backfill::EASY,
    &crate::batch::policy::backfill::WITHIN_PRIORITY,
    &crate::batch::policy::backfill::KNAPSACK,
    &crate::batch::policy::backfill::CONSERVATIVE,
    &crate::batch::policy::gear::top::COMPONENT,
    &crate::batch::policy::gear::bsld::COMPONENT,
    &crate::batch::policy::capacity::NONE,
    &crate::batch::policy::capacity::two_level::COMPONENT,
    &crate::batch::policy::capacity::ols::COMPONENT,
    &crate::batch::policy::cap::NONE,
    &crate::batch::policy::cap::admission::COMPONENT,
    &crate::batch::policy::cap::uniform::COMPONENT,
    &crate::batch::policy::cap::pdrc::COMPONENT,
    &crate::batch::policy::cap::precedence::POWER,
    &crate::batch::policy::cap::precedence::PERFORMANCE,
    &crate::summary::COMPONENT,
    &crate::queues::open_poisson::COMPONENT,
    &crate::queues::server_classes::COMPONENT,
    &crate::queues::policies::buffered::COMPONENT,
    &crate::queues::policies::classes::system::SOURCE,
    &crate::queues::policies::classes::system::RATE_MATRIX,
    &crate::queues::policies::classes::system::STRUCTURED,
    &crate::queues::policies::classes::fcfs::COMPONENT,
    &crate::queues::policies::classes::pme::COMPONENT,
    &crate::queues::policies::classes::lpas::COMPONENT,
    &crate::queues::policies::classes::ordered_beta::COMPONENT,
    &crate::queues::policies::classes::dvs::COMPONENT,
    &crate::queues::statistics::steady_state::COMPONENT,
    &crate::queues::statistics::horizon::COMPONENT,
];

/// The component of a role by name.
pub fn find(role: Role, name: &str) -> Option<&'static Component> {
    COMPONENTS.iter().copied().find(|e| e.role == role && e.name == name)
}

/// The components that can fill a role, in registration order.
pub fn of(role: Role) -> impl Iterator<Item = &'static Component> {
    COMPONENTS.iter().copied().filter(move |e| e.role == role)
}

impl Role {
    /// The component taken when the manifest does not choose.
    pub fn default_component(self) -> &'static str {
        match self {
            Role::Source => "lublin",
            Role::Rules => "records",
            Role::Platform => "homogeneous",
            Role::Power => "etinski",
            Role::Policy => "batch",
            Role::Order => "fcfs",
            Role::Backfill => "easy",
            Role::GearRule => "top",
            Role::Capacity | Role::Cap => "none",
            Role::Statistics => "summary",
        }
    }
}

impl SimSpec {
    /// Every role with its default component, seed 1: EASY at the top gear on a Lublin-Feitelson workload.
    pub fn new() -> SimSpec {
        static DEFAULTS: LazyLock<Arc<BTreeMap<Role, Choice>>> = LazyLock::new(|| {
            let choice = |role: Role| {
                let component =
                    find(role, role.default_component()).expect("default components are registered (tested)");
                (role, Choice::new(component))
            };
            Arc::new(Role::ALL.into_iter().map(choice).collect())
        });
        SimSpec::of(Arc::clone(&DEFAULTS), 1)
    }

    /// Whether a role's component has a say in this simulation. Those that do not are at their defaults (see
    /// [`SimSpec::problems`]) and have no value in the results.
    pub fn applies(&self, role: Role) -> bool {
        !crate::queues::is_model(self) || crate::queues::ROLES.contains(&role)
    }

    /// Problems that no single value shows: vectors of different length, contradicting bounds, combinations that make
    /// no sense. Each is a sentence that names the parameters.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = crate::queues::problems(self);
        // A spec with components of two kinds makes no sense: nothing more can be said of it.
        if crate::queues::is_model(self) || !problems.is_empty() {
            return problems;
        }
        problems.extend(crate::batch::platform::gear_problems(self));
        problems.extend(crate::workload::problems(self));
        problems.extend(crate::batch::policy::capacity::problems(self));
        problems.extend(crate::batch::policy::cap::problems(self));
        problems
    }
}

impl std::default::Default for SimSpec {
    fn default() -> Self {
        SimSpec::new()
    }
}

/// Every series. A component records nothing that is not here.
pub const SERIES: &[Series] = &[
    weekly::ARRIVALS,
    weekly::DEMAND,
    weekly::UTILIZATION,
    weekly::LOG_UTILIZATION,
    weekly::SLOWDOWN,
    weekly::OVER_SLA,
    weekly::ACTIVE_MEAN,
    weekly::ACTIVE,
    crate::queues::statistics::steady_state::RESPONSE_TIME_CDF,
    watch::CPU_UTILIZATION,
    watch::CPU_UTILIZATION_SHARE,
    watch::FREQUENCY,
    watch::IDLE,
    watch::CAP,
    watch::POWER,
    watch::BY_GEAR,
    watch::BY_CLASS,
    watch::BY_PRIORITY,
    watch::SUSPENDED,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_series_has_a_name_of_its_own_and_an_explanation() {
        let mut names = BTreeSet::new();
        for series in SERIES {
            assert!(names.insert(series.name), "`{}` is declared twice", series.name);
            assert!(series.doc.len() > 20, "`{}` is not explained", series.name);
        }
    }
}
