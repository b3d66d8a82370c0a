//! The full specification of one simulation: a choice for every role, and a seed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Choice, Role, Type};
use crate::error::SimError;
use crate::signal::Signal;
use crate::wasm::Module;

/// The choices of one simulation with all their parameter values. A spec and the digest of its log identify a task.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSpec {
    /// Shared between the tasks of a sweep that differ in the seed alone; copied when a choice changes.
    choices: Arc<Choices>,
    /// Seed of every random stream (generators, tie breaks). Explicit, never drawn.
    pub seed: u64,
    /// The signals that its policy reads, by label.
    signals: BTreeMap<Arc<str>, SignalRef>,
    /// The module of its policy.
    module: Option<ModuleRef>,
}

/// A choice for every role.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    /// In the order of [`Role::ALL`].
    by_role: Vec<Choice>,
    /// The problems of the choices together, once they were looked for.
    problems: OnceLock<Vec<String>>,
}

impl Choices {
    /// The choice that a function gives for each role.
    pub(crate) fn new(choose: impl FnMut(Role) -> Choice) -> Choices {
        Choices { by_role: Role::ALL.into_iter().map(choose).collect(), problems: OnceLock::new() }
    }
}

impl PartialEq for Choices {
    fn eq(&self, other: &Choices) -> bool {
        self.by_role == other.by_role
    }
}

/// A module that a policy calls.
#[derive(Debug, Clone)]
struct ModuleRef {
    /// Digest of its bytes.
    id: [u8; 32],
    /// The module itself, before a simulation.
    placed: Option<Arc<Module>>,
}

impl PartialEq for ModuleRef {
    fn eq(&self, other: &ModuleRef) -> bool {
        self.id == other.id
    }
}

/// A signal that a policy reads.
#[derive(Debug, Clone)]
struct SignalRef {
    /// Digest of its content and settings.
    id: [u8; 32],
    /// The values on the time of the workload, before a simulation.
    placed: Option<Arc<Signal>>,
}

impl PartialEq for SignalRef {
    fn eq(&self, other: &SignalRef) -> bool {
        self.id == other.id
    }
}

impl SimSpec {
    /// A spec of these choices.
    pub(crate) fn of(choices: Arc<Choices>, seed: u64) -> SimSpec {
        SimSpec { choices, seed, signals: BTreeMap::new(), module: None }
    }

    /// Whether two specs share the memory of their choices, so that they differ in their seeds at most. Specs with equal
    /// choices may give `false`.
    pub fn shares_choices(&self, other: &SimSpec) -> bool {
        Arc::ptr_eq(&self.choices, &other.choices)
    }

    /// Fills a role.
    pub fn choose(&mut self, choice: Choice) {
        let role = choice.component().role;
        *self.choice_mut(role) = choice;
    }

    /// The choice for a role.
    pub fn choice(&self, role: Role) -> &Choice {
        &self.choices.by_role[role as usize]
    }

    /// The choice for a role, to change its parameters.
    pub fn choice_mut(&mut self, role: Role) -> &mut Choice {
        let choices = Arc::make_mut(&mut self.choices);
        choices.problems.take();
        &mut choices.by_role[role as usize]
    }

    /// The problems of these choices as `find` gives them. Specs that share their choices look for them once.
    pub(crate) fn problems_by(&self, find: impl FnOnce(&SimSpec) -> Vec<String>) -> &[String] {
        self.choices.problems.get_or_init(|| find(self))
    }

    // ---- signals

    /// The names of the parameters that name a signal, each with the signal's label.
    pub fn signal_labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.choices().flat_map(|choice| {
            let params = choice.component().params.iter().filter(|param| matches!(param.ty, Type::Signal { .. }));
            params.filter_map(|param| Some((param.name, choice.opt_text(param.name)?)))
        })
    }

    /// Says which signal a label stands for. `id`: digest of its content and settings.
    pub fn name_signal(&mut self, label: &str, id: [u8; 32]) {
        self.signals.insert(label.into(), SignalRef { id, placed: None });
    }

    /// The digest of the signal of a label.
    pub fn signal_id(&self, label: &str) -> Option<[u8; 32]> {
        self.signals.get(label).map(|signal| signal.id)
    }

    /// Gives the values of a signal on the time of the workload, before a simulation.
    pub fn place_signal(&mut self, label: &str, signal: Arc<Signal>) {
        self.signals.entry(label.into()).or_insert(SignalRef { id: [0; 32], placed: None }).placed = Some(signal);
    }

    /// The signal that a parameter of a role names; `None` if the parameter is not set.
    ///
    /// # Errors
    /// The signal's values are not there.
    pub(crate) fn signal(&self, role: Role, param: &str) -> Result<Option<Arc<Signal>>, SimError> {
        let Some(label) = self.choice(role).opt_text(param) else { return Ok(None) };
        let placed = self.signals.get(label).and_then(|signal| signal.placed.clone());
        let missing = || SimError::Invalid(format!("`{param}` names the signal `{label}`, whose values are missing"));
        placed.map(Some).ok_or_else(missing)
    }

    // ---- module

    /// The name of the module that the policy calls: the value of a parameter of the type [`Type::Module`].
    pub fn module_name(&self) -> Option<&str> {
        self.choices().find_map(|choice| {
            let param = choice.component().params.iter().find(|param| param.ty == Type::Module)?;
            choice.opt_text(param.name)
        })
    }

    /// Says which module the name stands for. `id`: digest of its bytes.
    pub fn name_module(&mut self, id: [u8; 32]) {
        self.module = Some(ModuleRef { id, placed: None });
    }

    /// The digest of the module.
    pub fn module_id(&self) -> Option<[u8; 32]> {
        self.module.as_ref().map(|module| module.id)
    }

    /// Gives the module itself, before a simulation.
    pub fn place_module(&mut self, module: Arc<Module>) {
        self.module.get_or_insert(ModuleRef { id: [0; 32], placed: None }).placed = Some(module);
    }

    /// The module; `None` before it is placed.
    pub(crate) fn module(&self) -> Option<&Arc<Module>> {
        self.module.as_ref()?.placed.as_ref()
    }

    /// All choices in role order.
    pub fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.choices.by_role.iter()
    }
}
