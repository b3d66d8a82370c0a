//! The full specification of one simulation: a choice for every role, and a seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Choice, Role};

/// The choices of one simulation with all their parameter values. A spec and the digest of its log identify a task.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSpec {
    /// Shared between the tasks of a sweep that differ in the seed alone; copied when a choice changes.
    choices: Arc<BTreeMap<Role, Choice>>,
    /// Seed of every random stream (generators, tie breaks). Explicit, never drawn.
    pub seed: u64,
}

impl SimSpec {
    /// A spec of these choices, one for each role.
    pub(crate) fn of(choices: Arc<BTreeMap<Role, Choice>>, seed: u64) -> SimSpec {
        SimSpec { choices, seed }
    }

    /// Whether two specs share the memory of their choices, so that they differ in their seeds at most. Specs with equal
    /// choices may give `false`.
    pub fn shares_choices(&self, other: &SimSpec) -> bool {
        Arc::ptr_eq(&self.choices, &other.choices)
    }

    /// Fills a role.
    pub fn choose(&mut self, choice: Choice) {
        Arc::make_mut(&mut self.choices).insert(choice.component().role, choice);
    }

    /// The choice for a role.
    pub fn choice(&self, role: Role) -> &Choice {
        &self.choices[&role]
    }

    /// The choice for a role, to change its parameters.
    pub fn choice_mut(&mut self, role: Role) -> &mut Choice {
        Arc::make_mut(&mut self.choices).get_mut(&role).expect("every role is filled from the start")
    }

    /// All choices in role order.
    pub fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.choices.values()
    }
}
