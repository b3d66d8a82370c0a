//! The versions that an experiment's tasks depend on.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::spec::{Component, Role};
use powersweep_engine::{SimSpec, components};

use crate::Sweep;

/// The name of a component in versions and pins: "role/name".
pub fn component_id(component: &Component) -> String {
    format!("{}/{}", component.role.key(), component.name)
}

impl Sweep {
    /// The components that the tasks use, as "role/name", each with its version in this build. The kernel's version is
    /// not among them.
    pub fn component_versions(&self) -> BTreeMap<String, u32> {
        let mut versions = BTreeMap::new();
        let mut roles = BTreeSet::new();
        let levels = &self.manifest().inner().levels;
        let chosen =
            || levels.iter().flat_map(|l| &l.variants).flat_map(|v| &v.choices).map(|choice| choice.component());
        // All policies of a manifest belong to one model, since every workload and platform combines with each of them.
        let policy = chosen().find(|component| component.role == Role::Policy);
        let model = policy.map_or(SimSpec::new().model(), |policy| policy.model);
        let applies = |role: Role| components::applies(role, model);
        for component in chosen().filter(|component| applies(component.role)) {
            roles.insert(component.role);
            versions.insert(component_id(component), component.version);
        }
        let unchosen = |role: Role| applies(role) && !roles.contains(&role);
        for choice in SimSpec::new().choices().filter(|choice| unchosen(choice.component().role)) {
            versions.insert(component_id(choice.component()), choice.component().version);
        }
        versions
    }
}
