//! Roles, components, parameters and values of a simulation. Types only: [`crate::components`] lists the components.
//!
//! One [`Component`] describes something that a manifest can choose (a workload source, a power model, a queue order, a
//! gear rule, ...); a [`Choice`] is a component with values of its parameters; a [`SimSpec`] has a choice for every
//! [`Role`].

mod params;
mod sim_spec;

use std::sync::Arc;

pub use params::{Default, Param, Type, Value, ValueError};
pub(crate) use sim_spec::Choices;
pub use sim_spec::SimSpec;

/// Declares the roles, each with its key, its section, its default component and its meaning.
macro_rules! roles {
    ($($role:ident: $key:literal $section:ident $default:literal $meaning:literal,)*) => {
        /// A place in a simulation that exactly one component fills.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Role {
            $(#[doc = concat!($meaning, ".")] $role,)*
        }

        impl Role {
            /// All roles, in the order of the canonical spec.
            pub const ALL: [Role; 15] = [$(Role::$role),*];

            /// The key that chooses the component in a manifest, and the column that records the choice.
            pub fn key(self) -> &'static str {
                match self {
                    $(Role::$role => $key,)*
                }
            }

            /// The section of the manifest that this role belongs to.
            pub fn section(self) -> Section {
                match self {
                    $(Role::$role => Section::$section,)*
                }
            }

            /// The component taken when the manifest does not choose.
            pub fn default_component(self) -> &'static str {
                match self {
                    $(Role::$role => $default,)*
                }
            }

            /// Its meaning, in a few words.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Role::$role => $meaning,)*
                }
            }
        }
    };
}

roles! {
    Source: "source" Workloads "lublin" "Where the jobs come from",
    Rules: "rules" Workloads "records" "Rules that make jobs of records",
    Platform: "machine" Platforms "homogeneous" "Kind of machine",
    Power: "power" Platforms "etinski" "Power model",
    Policy: "kind" Policies "batch" "Kind of policy",
    Order: "queue_order" Policies "fcfs" "Order of the waiting queue",
    Backfill: "backfill" Policies "easy" "Which jobs may overtake",
    BackfillOrder: "backfill_order" Policies "queue" "Order in which jobs overtake",
    Predictor: "predictor" Policies "user" "Run time that is expected of a job at its submission",
    Corrector: "corrector" Policies "request" "Run time that is expected of a job that runs longer than predicted",
    GearRule: "gear_rule" Policies "top" "How the gear of a starting job is chosen",
    Capacity: "capacity_rule" Policies "none" "How many procs are active",
    Cap: "power_cap" Policies "none" "What keeps the power below a cap",
    Deferral: "deferral" Policies "none" "Which jobs wait for a better value of a signal",
    Statistics: "statistics_kind" Statistics "summary" "What is measured",
}

/// The manifest section that a role is chosen in; also the level of the sweep's axis order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `[workloads.NAME]`
    Workloads,
    /// `[platforms.NAME]`
    Platforms,
    /// `[policies.NAME]`
    Policies,
    /// `[statistics]`
    Statistics,
}

impl Section {
    /// Its name in a manifest.
    pub fn key(self) -> &'static str {
        match self {
            Section::Workloads => "workloads",
            Section::Platforms => "platforms",
            Section::Policies => "policies",
            Section::Statistics => "statistics",
        }
    }
}

/// One component that can be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The role it fills.
    pub role: Role,
    /// Its name in manifests and results; unique in its role.
    pub name: &'static str,
    /// Raised whenever its results change for an unchanged spec; part of a task's identity.
    pub version: u32,
    /// Its source: paper and equation or table; empty without one.
    pub source: &'static str,
    /// Its effect, in a sentence or two.
    pub doc: &'static str,
    /// The facts on which a policy decides; empty for other components.
    pub reads: &'static str,
    /// The bounds that hold in every run, with their conditions, and the bounds that a reader might expect and that do not
    /// hold; empty for other components.
    pub guarantees: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The model of which it is a component.
    pub model: Model,
    /// The problems of a spec that has chosen it, apart from single values out of range: vectors of different lengths,
    /// contradictory bounds, combinations that make no sense. Each is a sentence that names the parameters. They follow
    /// from the choices alone, not from the seed or from placed signals and modules.
    pub problems: fn(&SimSpec) -> Vec<String>,
}

/// The kind of system that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Rigid jobs on counted procs.
    Batch,
    /// Jobs of one proc on named servers.
    Queues,
}

impl Model {
    /// All models.
    pub const ALL: [Model; 2] = [Model::Batch, Model::Queues];
}

impl Component {
    /// Default fields of a component of batch jobs, for struct updates: role, name, version and documentation have to be
    /// set.
    pub const BATCH: Component = Component {
        role: Role::Policy,
        name: "",
        version: 0,
        source: "",
        doc: "",
        reads: "",
        guarantees: "",
        params: &[],
        model: Model::Batch,
        problems: |_| Vec::new(),
    };

    /// Default fields of a component of queues.
    pub const QUEUES: Component = Component { model: Model::Queues, ..Component::BATCH };
}

/// A chosen component with the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    component: &'static Component,
    /// Shared between the tasks of a sweep that have the same values; copied when one of them changes.
    /// Ordered by name.
    values: Arc<Vec<(&'static str, Value)>>,
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role && self.name == other.name && self.version == other.version
    }
}

impl Choice {
    /// The component with all defaults. Required parameters are absent until [`Choice::set`].
    pub fn new(component: &'static Component) -> Choice {
        let mut values: Vec<_> =
            component.params.iter().filter_map(|p| p.default.value().map(|v| (p.name, v))).collect();
        values.sort_unstable_by_key(|(name, _)| *name);
        Choice { component, values: Arc::new(values) }
    }

    /// The description of this component.
    pub fn component(&self) -> &'static Component {
        self.component
    }

    /// The names and values of the parameters that are set (defaults included), ordered by name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }

    /// Sets a parameter after checking type and range.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), ValueError> {
        let param = self.component.params.iter().find(|p| p.name == name).ok_or_else(|| ValueError {
            param: name.to_owned(),
            expected: format!("a parameter of {} `{}`", self.component.role.key(), self.component.name),
            found: "an unknown name".to_owned(),
        })?;
        let value = param.check(value)?;
        let values = Arc::make_mut(&mut self.values);
        match values.binary_search_by_key(&param.name, |(name, _)| *name) {
            Ok(at) => values[at].1 = value,
            Err(at) => values.insert(at, (param.name, value)),
        }
        Ok(())
    }

    /// The required parameters that are still missing.
    pub fn missing(&self) -> impl Iterator<Item = &'static Param> + '_ {
        self.component.params.iter().filter(|p| p.default == Default::Required && self.get(p.name).is_none())
    }

    /// Whether a parameter is as in [`Choice::new`]: it has its default, or no value where it has no default.
    pub fn is_default(&self, name: &str) -> bool {
        let param = self.component.params.iter().find(|p| p.name == name);
        self.get(name) == param.and_then(|p| p.default.value()).as_ref()
    }

    /// A set value; `None` when unset.
    pub fn get(&self, name: &str) -> Option<&Value> {
        // Names differ mostly in their lengths: a scan compares fewer bytes than a search by order.
        self.values.iter().find(|(param, _)| *param == name).map(|(_, value)| value)
    }

    /// An optional real (integers convert).
    pub fn opt_real(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Real(v) => Some(*v),
            Value::Int(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// An optional integer.
    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// An optional text.
    pub fn opt_text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(v) => Some(v),
            _ => None,
        }
    }

    /// An optional vector.
    pub fn opt_reals(&self, name: &str) -> Option<&[f64]> {
        match self.get(name)? {
            Value::Reals(v) => Some(v),
            _ => None,
        }
    }

    /// A real that has a default or was required. Panics if the component has no such parameter: a programming error.
    pub fn real(&self, name: &str) -> f64 {
        self.opt_real(name).unwrap_or_else(|| panic!("{} has no real `{name}`", self.component.name))
    }

    /// An integer that has a default or was required.
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).unwrap_or_else(|| panic!("{} has no integer `{name}`", self.component.name))
    }

    /// A text that has a default or was required.
    pub fn text(&self, name: &str) -> &str {
        self.opt_text(name).unwrap_or_else(|| panic!("{} has no text `{name}`", self.component.name))
    }

    /// A vector that has a default or was required.
    pub fn reals(&self, name: &str) -> &[f64] {
        self.opt_reals(name).unwrap_or_else(|| panic!("{} has no vector `{name}`", self.component.name))
    }

    /// A truth value that has a default or was required.
    pub fn bool(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(v)) => *v,
            _ => panic!("{} has no truth value `{name}`", self.component.name),
        }
    }
}
