//! The list of all components, the default of each role, and the combinations that are refused.
//!
//! This module knows every component; no component knows this module. Manifest keys, the JSON Schema, `powersweep policies`,
//! the parameter columns of the results and task identities all derive from the list.
//!
//! [`refusals`] finds the combinations that are refused.
//!
//! Invariants (tested): a parameter name has one declaration, which components may share, so that it can be a column name;
//! a default lies in its own range; a released default never changes (an identity leaves out values equal to the default).
use std::sync::{Arc, LazyLock};

use crate::batch::policy::{self, watch};
use crate::batch::{platform, power, prediction, weekly};
use crate::queues::{self, policies};
use crate::series::Series;
use crate::spec::{Choice, Choices, Component, Model, Role, SimSpec};
use crate::{summary, workload};

pub mod refusals;

/// Every component: by model, then by role in the order of [`Role::ALL`], then in the order in which components were added.
/// The parameter columns of the results have this order.
pub static COMPONENTS: LazyLock<Vec<&'static Component>> = LazyLock::new(|| {
    let mut all: Vec<&'static Component> = workload::FORMATS.iter().map(|format| &format.component).collect();
    all.extend(workload::GENERATORS.iter().map(|generator| &generator.component));
    all.extend([
        &workload::rules::COMPONENT,
        &platform::COMPONENT,
        &power::etinski::COMPONENT,
        &power::table::COMPONENT,
        &power::stated::COMPONENT,
    ]);
    all.extend([&policy::batch::COMPONENT, &policy::order::FCFS]);
    all.extend(policy::order::KEYED.iter().map(|order| &order.component));
    all.push(&policy::order::formula::COMPONENT);
    all.extend(policy::backfill::COMPONENTS);
    all.extend(policy::gear::COMPONENTS);
    all.push(&policy::capacity::NONE);
    all.extend(policy::capacity::COMPONENTS);
    all.push(&policy::cap::NONE);
    all.extend(policy::cap::COMPONENTS);
    all.push(&policy::deferral::NONE);
    all.extend(policy::deferral::COMPONENTS);
    all.push(&policy::order::AS_QUEUE);
    all.extend(policy::order::OF_BACKFILLING.iter());
    all.extend(prediction::predictor::COMPONENTS);
    all.extend(prediction::corrector::COMPONENTS);
    all.push(&summary::COMPONENT);
    all.extend([&queues::open_poisson::COMPONENT, &queues::server_classes::COMPONENT, &policies::buffered::COMPONENT]);
    all.push(&policies::classes::system::SOURCE);
    all.extend(policies::classes::system::PLATFORMS);
    all.extend(policies::classes::COMPONENTS);
    all.extend([&queues::statistics::steady_state::COMPONENT, &queues::statistics::horizon::COMPONENT]);
    all
});

/// The component of a role by name.
pub fn find(role: Role, name: &str) -> Option<&'static Component> {
    COMPONENTS.iter().copied().find(|e| e.role == role && e.name == name)
}

/// The name of a parameter in identities: the first name that it had, so that a new one changes no task id.
pub fn identity_name(name: &'static str) -> &'static str {
    if name == "cap_schedule_w" { "caps_w" } else { name }
}

/// The components that can fill a role, in registration order.
pub fn of(role: Role) -> impl Iterator<Item = &'static Component> {
    COMPONENTS.iter().copied().filter(move |e| e.role == role)
}

/// Whether a role applies to a model: whether some component of the model can fill it. Read from a table, because every task
/// asks it for every role.
pub fn applies(role: Role, model: Model) -> bool {
    static APPLIES: LazyLock<[[bool; Model::ALL.len()]; Role::ALL.len()]> = LazyLock::new(|| {
        Role::ALL.map(|role| Model::ALL.map(|model| of(role).any(|component| component.model == model)))
    });
    APPLIES[role as usize][model as usize]
}

impl SimSpec {
    /// Every role with its default component, seed 1: EASY at the top gear on a Lublin-Feitelson workload.
    pub fn new() -> SimSpec {
        static DEFAULTS: LazyLock<Arc<Choices>> = LazyLock::new(|| {
            let choice = |role: Role| {
                let component =
                    find(role, role.default_component()).expect("default components are registered (tested)");
                Choice::new(component)
            };
            Arc::new(Choices::new(choice))
        });
        SimSpec::of(Arc::clone(&DEFAULTS), 1)
    }

    /// The model that is simulated: that of the policy.
    pub fn model(&self) -> Model {
        self.choice(Role::Policy).component().model
    }

    /// Whether this simulation uses a role's choice. Unused choices have their defaults (see [`SimSpec::problems`]) and are
    /// null in the results.
    pub fn applies(&self, role: Role) -> bool {
        applies(role, self.model())
    }

    /// Problems of the spec as a whole: components of another model than the policy's or, if there are none, the problems
    /// that the components report ([`Component::problems`]). Each is a sentence that names the parameters.
    pub fn problems(&self) -> &[String] {
        self.problems_by(SimSpec::found_problems)
    }

    fn found_problems(&self) -> Vec<String> {
        let roles = |apply: bool| Role::ALL.into_iter().filter(move |role| self.applies(*role) == apply);
        let foreign = roles(true).filter_map(|role| self.of_another_model(role));
        let mut problems: Vec<String> = foreign.chain(roles(false).filter_map(|role| self.unused(role))).collect();
        if problems.is_empty() {
            problems.extend(roles(true).flat_map(|role| (self.choice(role).component().problems)(self)));
        }
        problems
    }

    /// The problem of a component of another model than the policy's.
    fn of_another_model(&self, role: Role) -> Option<String> {
        let (model, found) = (self.model(), self.choice(role).component());
        if found.model == model {
            return None;
        }
        let (is, needs) = match model {
            Model::Queues => ("rigid batch jobs", "queues"),
            Model::Batch => ("queues", "rigid batch jobs"),
        };
        let kind = self.choice(Role::Policy).component().name;
        let fitting = of(role).filter(|component| component.model == model);
        let names: Vec<String> = fitting.map(|component| format!("\"{}\"", component.name)).collect();
        Some(format!(
            "`{}` \"{}\" is for {is}, the policy `kind` \"{kind}\" schedules {needs}: choose {}",
            role.key(),
            found.name,
            names.join(" or ")
        ))
    }

    /// The problem of a role that does not apply and is not at its default.
    fn unused(&self, role: Role) -> Option<String> {
        let choice = self.choice(role);
        let Component { name, params, .. } = choice.component();
        let key = if *name == role.default_component() {
            format!("`{}`", params.iter().find(|param| !choice.is_default(param.name))?.name)
        } else {
            format!("`{}` \"{name}\"", role.key())
        };
        let kind = self.choice(Role::Policy).component().name;
        Some(format!(
            "{key} does not apply to `kind` \"{kind}\": it is of rigid batch jobs, and queues have jobs of one proc on \
             named servers"
        ))
    }
}

impl std::default::Default for SimSpec {
    fn default() -> Self {
        SimSpec::new()
    }
}

/// All series that components may record.
pub const SERIES: &[Series] = &[
    weekly::ARRIVALS,
    weekly::DEMAND,
    weekly::UTILIZATION,
    weekly::LOG_UTILIZATION,
    weekly::SLOWDOWN,
    weekly::OVER_SLA,
    weekly::ACTIVE_MEAN,
    weekly::ACTIVE,
    queues::statistics::steady_state::RESPONSE_TIME_CDF,
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
    use crate::spec::{Default, Param, Section};

    /// Components that name the publication they come from. New ones may have none.
    const SOURCES_MIN: usize = 36;

    /// A text that is left out is empty.
    #[test]
    fn components_say_what_they_do_and_where_they_come_from() {
        for component in COMPONENTS.iter() {
            assert!(component.doc.ends_with('.'), "`{}` is not explained", component.name);
        }
        let published = COMPONENTS.iter().filter(|component| !component.source.is_empty()).count();
        assert!(published >= SOURCES_MIN, "{published} components name their source, of at least {SOURCES_MIN}");
    }

    #[test]
    fn components_of_policies_say_what_they_read_and_guarantee() {
        let of_policies = Role::ALL.into_iter().filter(|role| role.section() == Section::Policies);
        let batch = of_policies.filter(|role| *role != Role::Policy).flat_map(of);
        for Component { role, name, reads, guarantees, .. } in batch {
            let key = role.key();
            assert!(reads.ends_with('.'), "{key} `{name}` does not say on what it decides");
            assert!(guarantees.ends_with('.'), "{key} `{name}` does not say what holds in every run");
        }
    }

    /// Rows of another version are other rows: a version that decreases gives old identities to new rows.
    #[test]
    fn versions_other_than_1_are_these() {
        let later = COMPONENTS.iter().filter(|component| component.version != 1);
        let found: Vec<(&str, u32)> = later.map(|component| (component.name, component.version)).collect();
        let expected = [
            ("swf", 2),
            ("knapsack", 2),
            ("conservative", 2),
            ("bsld", 2),
            ("two-level", 2),
            ("admission", 2),
            ("uniform", 2),
            ("pdrc", 2),
            ("power-precedence", 2),
            ("lowest-slot", 2),
            ("lowest-window", 3),
            ("saving-per-wait", 3),
            ("quantile", 3),
            ("wait-awhile", 2),
            ("sgd-linear", 3),
            ("class-lpas", 2),
            ("class-dvs", 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_series_has_a_unique_name_and_an_explanation() {
        let mut names = BTreeSet::new();
        for series in SERIES {
            assert!(names.insert(series.name), "`{}` is declared twice", series.name);
            assert!(series.doc.len() > 20, "`{}` is not explained", series.name);
        }
    }

    #[test]
    fn only_locations_of_files_are_no_part_of_an_identity() {
        let params = COMPONENTS.iter().flat_map(|component| component.params);
        let names: BTreeSet<&str> = params.filter(|param| !param.is_identity()).map(|param| param.name).collect();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["cap_signal", "cap_signal_share", "defer_signal", "log", "log_import", "log_sha256", "wasm_module"]
        );
    }

    /// An identity lists parameters in the order of their names: a new name must not change the order.
    #[test]
    fn renamed_parameters_keep_their_places_in_identities() {
        for component in COMPONENTS.iter() {
            // A parameter without a default is in no identity that does not set it.
            let given =
                |param: &&Param| !matches!(param.default, Default::Unset) || identity_name(param.name) != param.name;
            let mut params: Vec<&str> = component.params.iter().filter(given).map(|param| param.name).collect();
            params.sort_unstable();
            let names: Vec<&str> = params.into_iter().map(identity_name).collect();
            assert!(names.is_sorted(), "{}: {names:?}", component.name);
        }
    }

    #[test]
    fn expectations_have_no_numbers_of_more_than_19_digits() {
        for component in COMPONENTS.iter() {
            for param in component.params {
                let expectation = param.expectation();
                let digits = expectation.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
                assert!(digits <= Some(19), "`{}`: {expectation}", param.name);
            }
        }
    }
}
