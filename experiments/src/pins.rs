//! The versions that an experiment's tasks depend on.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::spec::{Component, Role};
use powersweep_engine::{SimSpec, queues};

use crate::Sweep;

/// The name of a component in versions and pins: "role/name".
pub fn component_id(component: &Component) -> String {
    format!("{}/{}", component.role.key(), component.name)
}

impl Sweep {
    /// Every registered component that some task uses, as "role/name", with this build's version of it. The kernel's version
    /// is not among them.
    pub fn component_versions(&self) -> BTreeMap<String, u32> {
        let mut versions = BTreeMap::new();
        let mut roles = BTreeSet::new();
        let levels = &self.manifest().inner().levels;
        let components =
            || levels.iter().flat_map(|l| &l.variants).flat_map(|v| &v.choices).map(|choice| choice.component());
        // A manifest's policies are all of one kind: workloads and platforms combine with each.
        let queueing = components().any(|component| component.role == Role::Policy && queues::is_component(component));
        let applies = |role: Role| !queueing || queues::ROLES.contains(&role);
        for component in components().filter(|component| applies(component.role)) {
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
