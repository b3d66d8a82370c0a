//! Columns of `tasks` for the simulated spec: kernel and log, the component of each role, every parameter.
//!
//! They follow from the list of components: a parameter of a new component becomes a column without a change here. A
//! parameter has a value where its component was chosen and sets it, defaults included, and is null elsewhere. A role
//! that does not apply to a simulation, such as the queue order in a queueing model, is null with all its parameters.

use std::ops::Range;
use std::sync::LazyLock;

use powersweep_engine::facts::{Datum, Kind};
use powersweep_engine::spec::{Component, Model, Param, Role, Type};
use powersweep_engine::{KERNEL_VERSION, components};
use powersweep_experiments::TaskSpec;

use crate::builder::Arrays;
use crate::columns::Column;

/// Columns of [`inputs`].
const INPUTS: usize = 2;

/// The columns of the axes, and the column of each value.
pub(crate) struct Axes {
    params: Vec<Column>,
    /// The components of each role.
    roles: Vec<(Role, Vec<ComponentPlan>)>,
}

/// The parameters of one component by name, with the index of their column among the parameter columns.
struct ComponentPlan {
    component: &'static Component,
    params: Vec<(&'static str, usize)>,
}

/// The axes of this build.
pub(crate) static AXES: LazyLock<Axes> = LazyLock::new(Axes::new);

impl Axes {
    fn new() -> Axes {
        let (names, params): (Vec<_>, Vec<_>) =
            params().map(|(param, components)| (param.name, param_column(param, &components))).unzip();
        let plans = |role| (role, components::of(role).map(|c| ComponentPlan::new(c, &names)).collect());
        Axes { params, roles: Role::ALL.into_iter().map(plans).collect() }
    }

    /// The columns in order: kernel and log, components, parameters.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let roles = self.roles.iter().map(|(role, _)| role_column(*role));
        inputs().into_iter().chain(roles).chain(self.params.iter().cloned()).collect()
    }

    /// Pushes this task's values into the columns from `first` on, for these rows. Columns that do not
    /// apply get no value and become null.
    pub(crate) fn push(&self, arrays: &mut Arrays, first: usize, task: &TaskSpec, rows: &Range<usize>) {
        arrays.push(first, Datum::Int(i64::from(KERNEL_VERSION)), rows);
        if let Some(digest) = task.digest {
            arrays.push(first + 1, Datum::Text(&digest.to_string()), rows);
        }
        let first_role = first + INPUTS;
        let first_param = first_role + self.roles.len();
        for (i, (role, plans)) in self.roles.iter().enumerate().filter(|(_, (role, _))| task.sim.applies(*role)) {
            let choice = task.sim.choice(*role);
            arrays.push(first_role + i, Datum::Text(choice.component().name), rows);
            let known = plans.iter().find(|c| c.component == choice.component());
            let mut params = known.expect("a choice has a registered component").params.iter();
            // Both sides are sorted by name, and a choice sets no parameter that its component lacks.
            for (name, value) in choice.values() {
                let (_, index) = params
                    .by_ref()
                    .find(|(param, _)| *param == name)
                    .expect("a choice sets its component's parameters only");
                arrays.push(first_param + index, value.datum(), rows);
            }
        }
    }
}

impl ComponentPlan {
    fn new(component: &'static Component, columns: &[&str]) -> ComponentPlan {
        let index = |param: &Param| {
            columns.iter().position(|c| *c == param.name).expect("the columns are all parameters of all components")
        };
        let mut params: Vec<_> = component.params.iter().map(|p| (p.name, index(p))).collect();
        params.sort_unstable();
        ComponentPlan { component, params }
    }
}

/// Every parameter once, in the order of the list of components, with the components that have it.
fn params() -> impl Iterator<Item = (&'static Param, Vec<&'static Component>)> {
    let mut found: Vec<(&'static Param, Vec<&'static Component>)> = Vec::new();
    for component in components::COMPONENTS.iter() {
        for param in component.params {
            match found.iter_mut().find(|(p, _)| p.name == param.name) {
                Some((_, components)) => components.push(component),
                None => found.push((param, vec![component])),
            }
        }
    }
    found.into_iter()
}

fn param_column(param: &'static Param, components: &[&'static Component]) -> Column {
    let mut doc = param.doc.to_owned();
    if let Type::OneOf(names) = param.ty {
        doc.push_str(&format!(" One of `{}`.", names.join("`, `")));
    }
    if matches!(param.ty, Type::Real { unlimited: true, .. }) {
        doc.push_str(" `unlimited` is stored as infinity.");
    }
    let owners: Vec<_> = components.iter().map(|c| format!("{} `{}`", c.role.key(), c.name)).collect();
    let source = format!("parameter of {}", owners.join(", "));
    Column { unit: param.unit, nullable: true, ..Column::new(param.name, param.ty.kind(), &source, &doc) }
}

fn role_column(role: Role) -> Column {
    let choices: Vec<_> = components::of(role).map(|e| format!("`{}`", e.name)).collect();
    let nullable = !components::applies(role, Model::Queues);
    let null = if nullable { " Null in a queueing model." } else { "" };
    let doc = format!("{}: {}.{null}", role.meaning(), choices.join(", "));
    Column { nullable, ..Column::new(role.key(), Kind::Text, "manifest", &doc) }
}

/// The columns that no manifest chooses: the version of the kernel and the digest of the log.
fn inputs() -> [Column; INPUTS] {
    let kernel = "Version of the kernel; raised when results change for an unchanged spec.";
    let log = "SHA-256 of the log's decompressed bytes; null for a generated workload.";
    [
        Column::new("kernel_version", Kind::Int, "simulation", kernel),
        Column { nullable: true, ..Column::new("log_digest", Kind::Text, "farm", log) },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_parameter_belongs_to_two_roles() {
        // Otherwise two components of one spec could set the same column.
        let mut roles: BTreeMap<&str, Role> = BTreeMap::new();
        for component in components::COMPONENTS.iter() {
            for param in component.params {
                let role = *roles.entry(param.name).or_insert(component.role);
                assert_eq!(role, component.role, "`{}` belongs to two roles", param.name);
            }
        }
    }
}
