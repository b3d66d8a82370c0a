//! The content of the sections of a manifest: roles, parameters and blocks.

use powersweep_engine::components;
use powersweep_engine::spec::{Component, Param, Role, Section};
use toml::de::DeTable;

/// The roles that a section chooses, in canonical order.
pub(crate) fn roles(section: Section) -> impl Iterator<Item = Role> + Clone {
    Role::ALL.into_iter().filter(move |role| role.section() == section)
}

/// The parameters that a block of a section may have.
pub(crate) fn params(section: Section) -> impl Iterator<Item = (&'static Component, &'static Param)> + Clone {
    components::COMPONENTS
        .iter()
        .copied()
        .filter(move |component| component.role.section() == section)
        .flat_map(|component| component.params.iter().map(move |param| (component, param)))
}

/// The blocks of a section.
pub(crate) fn blocks<'a, 'i>(top: &'a DeTable<'i>, section: Section) -> Vec<&'a DeTable<'i>> {
    let Some(table) = top.get(section.key()).and_then(|value| value.get_ref().as_table()) else {
        return Vec::new();
    };
    match section {
        Section::Statistics => vec![table],
        _ => table.values().filter_map(|block| block.get_ref().as_table()).collect(),
    }
}
