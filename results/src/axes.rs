//! Columns that say what was simulated: labels, the part of each role, every registered parameter.
//!
//! They come from the registry alone: a parameter of a new component is a new column without a line here. A parameter has a
//! value where its component was chosen and sets it, defaults included, and is null elsewhere. A role that does not apply to a
//! simulation, such as the queue order to a queueing model, is null with all its parameters.

use std::ops::Range;

use powersweep_engine::components;
use powersweep_engine::facts::Datum;
use powersweep_engine::spec::{Component, Model, Param, Role, Type, Value};
use powersweep_experiments::TaskSpec;

use crate::builder::Arrays;
use crate::columns::{Column, ColumnType};
use crate::identity::{TaskColumn, Texts, shared};

/// The axes of one table: their columns, and where each value goes.
pub(crate) struct Axes {
    labels: Vec<TaskColumn>,
    params: Vec<Column>,
    roles: Vec<RolePlan>,
}

/// Where the parameters of a role's possible components go.
struct RolePlan {
    role: Role,
    components: Vec<ComponentPlan>,
}

/// The parameters of one component by name, with the index of their column among the parameter columns.
struct ComponentPlan {
    component: &'static Component,
    params: Vec<(&'static str, usize)>,
}

impl Axes {
    /// The axes of a table. A parameter that has the name of one of the table's `own` columns is called `param_NAME`.
    pub(crate) fn new(own: &[&str]) -> Axes {
        let (names, params): (Vec<_>, Vec<_>) =
            params().map(|(param, components)| (param.name, param_column(param, &components, own))).unzip();
        let roles = Role::ALL
            .into_iter()
            .map(|role| RolePlan {
                role,
                components: components::of(role).map(|e| ComponentPlan::new(e, &names)).collect(),
            })
            .collect();
        Axes { labels: labels(), params, roles }
    }

    /// The columns in order: labels, components, seed and log, parameters.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let labels = self.labels.iter().map(|l| l.column.clone());
        labels.chain(self.roles.iter().map(|s| role_column(s.role))).chain(self.params.iter().cloned()).collect()
    }

    /// Pushes what each task has for itself into the columns from `first` on, for the next `n` rows.
    pub(crate) fn push_own(&self, arrays: &mut Arrays, first: usize, task: &TaskSpec, texts: &Texts, n: usize) {
        for (i, label) in self.labels.iter().enumerate().filter(|(_, label)| label.of_each_task) {
            arrays.push(first + i, (label.get)(task, texts), n);
        }
    }

    /// Pushes what neighbours share into the columns from `first` on, for these rows. Parameters that do not apply are
    /// left to become nulls.
    pub(crate) fn push_shared(
        &self,
        arrays: &mut Arrays,
        first: usize,
        task: &TaskSpec,
        texts: &Texts,
        rows: &Range<usize>,
    ) {
        for (i, label) in self.labels.iter().enumerate().filter(|(_, label)| !label.of_each_task) {
            arrays.push_rows(first + i, (label.get)(task, texts), rows);
        }
        let first_role = first + self.labels.len();
        let first_param = first_role + self.roles.len();
        for (i, plan) in self.roles.iter().enumerate().filter(|(_, plan)| task.sim.applies(plan.role)) {
            let choice = task.sim.choice(plan.role);
            arrays.push_rows(first_role + i, Datum::Text(choice.component().name), rows);
            let known = plan.components.iter().find(|e| e.component == choice.component());
            let mut params = known.expect("a component comes from the registry").params.iter();
            // Both sides are sorted by name, and a component sets no parameter that its component lacks.
            for (name, value) in choice.values() {
                let (_, index) = params
                    .by_ref()
                    .find(|(param, _)| param == name)
                    .expect("a component sets only its component's parameters");
                arrays.push_rows(first_param + index, datum(value), rows);
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

/// Every registered parameter once, in registration order, with the components that have it.
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

fn param_column(param: &'static Param, components: &[&'static Component], own: &[&str]) -> Column {
    let ty = match param.ty {
        Type::Bool => ColumnType::Bool,
        Type::Int { .. } => ColumnType::Int,
        Type::Real { .. } => ColumnType::Real,
        Type::OneOf(_) | Type::Text => ColumnType::Text,
        Type::Reals { .. } => ColumnType::Reals,
    };
    let mut doc = param.doc.to_owned();
    if let Type::OneOf(names) = param.ty {
        doc.push_str(&format!(" One of `{}`.", names.join("`, `")));
    }
    if matches!(param.ty, Type::Real { unlimited: true, .. }) {
        doc.push_str(" `unlimited` is stored as infinity.");
    }
    let owners: Vec<_> = components.iter().map(|e| format!("{} `{}`", e.role.key(), e.name)).collect();
    Column {
        name: if own.contains(&param.name) { format!("param_{}", param.name) } else { param.name.to_owned() },
        ty,
        unit: param.unit,
        nullable: true,
        doc,
        source: format!("parameter of {}", owners.join(", ")),
    }
}

fn role_column(role: Role) -> Column {
    let what = match role {
        Role::Source => "Where the jobs come from",
        Role::Rules => "Rules that make jobs of records",
        Role::Platform => "Kind of machine",
        Role::Power => "Power model",
        Role::Policy => "Kind of policy",
        Role::Order => "Order of the waiting queue",
        Role::Backfill => "Which jobs may overtake",
        Role::GearRule => "How the gear of a starting job is chosen",
        Role::Capacity => "How many procs are active",
        Role::Cap => "What keeps the power below a cap",
        Role::Statistics => "What is measured",
    };
    let choices: Vec<_> = components::of(role).map(|e| format!("`{}`", e.name)).collect();
    let nullable = !components::applies(role, Model::Queues);
    let null = if nullable { " Null in a queueing model." } else { "" };
    Column {
        name: role.key().to_owned(),
        ty: ColumnType::Text,
        unit: "",
        nullable,
        doc: format!("{what}: {}.{null}", choices.join(", ")),
        source: "manifest".to_owned(),
    }
}

fn labels() -> Vec<TaskColumn> {
    use ColumnType::{Int, Text};
    let mut log_digest = shared(
        "log_digest",
        Text,
        "farm",
        "SHA-256 of the log's decompressed bytes; null for a generated workload.",
        |_, texts| texts.log_digest(),
    );
    log_digest.column.nullable = true;
    vec![
        shared("task_index", Int, "farm", "Index of the task in the sweep of the manifest it ran under.", |t, _| {
            Datum::Int(i64::try_from(t.index).unwrap_or(i64::MAX))
        })
        .of_each_task(),
        shared("workload", Text, "manifest", "Name of the manifest's workload block.", |t, _| Datum::Text(&t.workload)),
        shared("platform", Text, "manifest", "Name of the manifest's platform block.", |t, _| Datum::Text(&t.platform)),
        shared("policy", Text, "manifest", "Name of the manifest's policy block.", |t, _| Datum::Text(&t.policy)),
        shared(
            "seed",
            Int,
            "manifest",
            "Seed of every random stream; seeds above 2^63 - 1 are stored as their two's complement.",
            |t, _| Datum::Int(t.sim.seed.cast_signed()),
        )
        .of_each_task(),
        log_digest,
    ]
}

fn datum(value: &Value) -> Datum<'_> {
    match value {
        Value::Bool(v) => Datum::Bool(*v),
        Value::Int(v) => Datum::Int(*v),
        Value::Real(v) => Datum::Real(*v),
        Value::Text(v) => Datum::Text(v),
        Value::Reals(v) => Datum::Reals(v),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_parameter_belongs_to_two_slots() {
        // Two components of one spec could then set one column twice.
        let mut roles: BTreeMap<&str, Role> = BTreeMap::new();
        for component in components::COMPONENTS.iter() {
            for param in component.params {
                let role = *roles.entry(param.name).or_insert(component.role);
                assert_eq!(role, component.role, "`{}` belongs to two roles", param.name);
            }
        }
    }

    #[test]
    fn a_name_of_the_table_itself_goes_to_the_table() {
        let names = |own: &[&str]| Axes::new(own).columns().into_iter().map(|c| c.name).collect::<Vec<_>>();
        assert!(names(&[]).contains(&"procs".to_owned()));
        assert!(names(&["procs"]).contains(&"param_procs".to_owned()));
        assert!(!names(&["procs"]).contains(&"procs".to_owned()));
    }
}
