//! The registry: every part a manifest can choose, with its parameters.
//!
//! One [`Entry`] describes one part (a workload source, a power model, a queue order, a gear rule, ...). From the
//! entries alone follow: what a manifest may say, the JSON Schema, `powersweep policies`, the typed parameter columns
//! of the results, and a task's identity. A new part is one new file with a `pub const ENTRY` and one line in
//! [`ENTRIES`].
//!
//! Invariants (tested): a parameter name has one declaration, which entries may share, so that it can be a column name; a default
//! lies in its own range; defaults never change once released (identity leaves out values equal to the default).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A parameter's value after conversion to its declared type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// A real number; never NaN. `+inf` stands for "unlimited" where the parameter allows it.
    Real(f64),
    /// A name or free text.
    Text(String),
    /// A vector of reals, such as a gear table.
    Reals(Vec<f64>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Real(v) if *v == f64::INFINITY => write!(f, "unlimited"),
            Value::Real(v) => write!(f, "{v}"),
            Value::Text(v) => write!(f, "{v}"),
            Value::Reals(v) => write!(f, "[{}]", v.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// A truth value.
    Bool,
    /// An integer in `min..=max`.
    Int {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A real in `min..=max`.
    Real {
        /// Least value.
        min: f64,
        /// Greatest finite value.
        max: f64,
        /// Whether `min` itself is allowed.
        min_allowed: bool,
        /// Whether `"unlimited"` (stored as `+inf`) is allowed.
        unlimited: bool,
    },
    /// One of a few names.
    Choice(&'static [&'static str]),
    /// Free text (a log's name, a URL).
    Text,
    /// A vector of reals, each in `min..=max`.
    Reals {
        /// Least element.
        min: f64,
        /// Greatest element.
        max: f64,
    },
}

/// What a parameter is when the manifest does not say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real.
    Real(f64),
    /// A name.
    Text(&'static str),
    /// A vector.
    Reals(&'static [f64]),
    /// No value: the parameter does not apply unless it is given (null in the results).
    Unset,
    /// The manifest must give it.
    Required,
}

impl Default {
    /// The default as a value; `None` for [`Default::Unset`] and [`Default::Required`].
    pub fn value(&self) -> Option<Value> {
        match *self {
            Default::Bool(v) => Some(Value::Bool(v)),
            Default::Int(v) => Some(Value::Int(v)),
            Default::Real(v) => Some(Value::Real(v)),
            Default::Text(v) => Some(Value::Text(v.to_owned())),
            Default::Reals(v) => Some(Value::Reals(v.to_vec())),
            Default::Unset | Default::Required => None,
        }
    }
}

/// One parameter of a part: also one column of the `tasks` table.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Unique in the whole registry; the key in a manifest and the column in the results.
    pub name: &'static str,
    /// Type and range.
    pub ty: Type,
    /// Unit as people write it ("s", "W", "GHz"), "" for a pure number.
    pub unit: &'static str,
    /// Value when the manifest does not give one.
    pub default: Default,
    /// Whether the value is part of a task's identity. Names and locations of a log are not: its digest is.
    pub identity: bool,
    /// What it means, with its source.
    pub doc: &'static str,
}

/// A place in a simulation that exactly one part fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Where the jobs come from: a log or a generator.
    Source,
    /// What is done with records and estimates; slices, filters, scaling.
    Rules,
    /// Machine sizes and gears.
    Platform,
    /// Watts of a processor by gear and state.
    Power,
    /// The kind of policy: `batch`, composed of the parts below.
    Policy,
    /// Order of the waiting queue.
    Order,
    /// Which jobs may overtake.
    Backfill,
    /// The gear of a starting job.
    GearRule,
    /// How many procs are active.
    Capacity,
    /// What keeps the power below a cap.
    Cap,
    /// What is measured and how.
    Statistics,
}

/// The manifest section that a slot is chosen in; also the level of the sweep's axis order.
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

impl Slot {
    /// All slots, in the order of the canonical spec.
    pub const ALL: [Slot; 11] = [
        Slot::Source,
        Slot::Rules,
        Slot::Platform,
        Slot::Power,
        Slot::Policy,
        Slot::Order,
        Slot::Backfill,
        Slot::GearRule,
        Slot::Capacity,
        Slot::Cap,
        Slot::Statistics,
    ];

    /// The key that chooses the part in a manifest, and the column that records the choice.
    pub fn key(self) -> &'static str {
        match self {
            Slot::Source => "source",
            Slot::Rules => "rules",
            Slot::Platform => "machine",
            Slot::Power => "power",
            Slot::Policy => "kind",
            Slot::Order => "queue_order",
            Slot::Backfill => "backfill",
            Slot::GearRule => "gear_rule",
            Slot::Capacity => "capacity_rule",
            Slot::Cap => "power_cap",
            Slot::Statistics => "statistics_kind",
        }
    }

    /// The section of the manifest that this slot belongs to.
    pub fn section(self) -> Section {
        match self {
            Slot::Source | Slot::Rules => Section::Workloads,
            Slot::Platform | Slot::Power => Section::Platforms,
            Slot::Policy | Slot::Order | Slot::Backfill | Slot::GearRule | Slot::Capacity | Slot::Cap => {
                Section::Policies
            }
            Slot::Statistics => Section::Statistics,
        }
    }

    /// The part taken when the manifest does not choose.
    pub fn default_part(self) -> &'static str {
        match self {
            Slot::Source => "lublin",
            Slot::Rules => "records",
            Slot::Platform => "homogeneous",
            Slot::Power => "etinski",
            Slot::Policy => "batch",
            Slot::Order => "fcfs",
            Slot::Backfill => "easy",
            Slot::GearRule => "top",
            Slot::Capacity | Slot::Cap => "none",
            Slot::Statistics => "summary",
        }
    }
}

/// One part that can be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The slot it fills.
    pub slot: Slot,
    /// Its name in manifests and results; unique in its slot.
    pub name: &'static str,
    /// Raised whenever its results change for an unchanged spec; part of a task's identity.
    pub version: u32,
    /// Paper and equation or table that it comes from.
    pub source: &'static str,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// Every part of this build, by slot and name.
pub static ENTRIES: &[&Entry] = &[
    &crate::workload::swf::ENTRY,
    &crate::workload::lublin::ENTRY,
    &crate::workload::poisson::ENTRY,
    &crate::workload::tracsim::ENTRY,
    &crate::workload::rules::ENTRY,
    &crate::platform::ENTRY,
    &crate::power::etinski::ENTRY,
    &crate::power::table::ENTRY,
    &crate::policy::batch::ENTRY,
    &crate::policy::order::FCFS,
    &crate::policy::order::priority::ORDER.entry,
    &crate::policy::order::sjf::ORDER.entry,
    &crate::policy::order::widest::ORDER.entry,
    &crate::policy::order::wfp3::ORDER.entry,
    &crate::policy::order::f1::ORDER.entry,
    &crate::policy::backfill::NONE,
    &crate::policy::backfill::EASY,
    &crate::policy::backfill::WITHIN_PRIORITY,
    &crate::policy::backfill::KNAPSACK,
    &crate::policy::backfill::CONSERVATIVE,
    &crate::policy::gear_rule::TOP,
    &crate::policy::gear_rule::BSLD,
    &crate::policy::capacity::NONE,
    &crate::policy::capacity::TWO_LEVEL,
    &crate::policy::capacity::OLS,
    &crate::policy::cap::NONE,
    &crate::policy::cap::admission::ENTRY,
    &crate::policy::cap::uniform::ENTRY,
    &crate::policy::cap::pdrc::ENTRY,
    &crate::policy::cap::precedence::POWER,
    &crate::policy::cap::precedence::PERFORMANCE,
    &crate::summary::ENTRY,
    &crate::queueing::open_poisson::ENTRY,
    &crate::queueing::server_classes::ENTRY,
    &crate::queueing::buffered::ENTRY,
    &crate::queueing::rates::parts::SOURCE,
    &crate::queueing::rates::parts::RATE_MATRIX,
    &crate::queueing::rates::parts::STRUCTURED,
    &crate::queueing::rates::parts::FCFS,
    &crate::queueing::rates::parts::PME,
    &crate::queueing::rates::parts::LPAS,
    &crate::queueing::rates::parts::ORDERED_BETA,
    &crate::queueing::rates::parts::DVS,
    &crate::queueing::steady_state::ENTRY,
    &crate::queueing::horizon::ENTRY,
];

/// The entry of a slot by name.
pub fn find(slot: Slot, name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().copied().find(|e| e.slot == slot && e.name == name)
}

/// The entries that can fill a slot, in registration order.
pub fn entries(slot: Slot) -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().copied().filter(move |e| e.slot == slot)
}

/// A chosen part with the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    entry: &'static Entry,
    /// Shared between the tasks of a sweep that have the same values; copied when one of them changes.
    values: Arc<BTreeMap<&'static str, Value>>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot && self.name == other.name && self.version == other.version
    }
}

impl Part {
    /// The part with all defaults. Required parameters are absent until [`Part::set`].
    pub fn new(entry: &'static Entry) -> Part {
        let values = entry.params.iter().filter_map(|p| p.default.value().map(|v| (p.name, v))).collect();
        Part { entry, values: Arc::new(values) }
    }

    /// The description of this part.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The parameter values that are set, by name (defaults included).
    pub fn values(&self) -> &BTreeMap<&'static str, Value> {
        &self.values
    }

    /// Sets a parameter after checking type and range.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), ValueError> {
        let param = self.entry.params.iter().find(|p| p.name == name).ok_or_else(|| ValueError {
            param: name.to_owned(),
            expected: format!("a parameter of {} `{}`", self.entry.slot.key(), self.entry.name),
            found: "an unknown name".to_owned(),
        })?;
        let value = param.check(value)?;
        Arc::make_mut(&mut self.values).insert(param.name, value);
        Ok(())
    }

    /// The required parameters that are still missing.
    pub fn missing(&self) -> impl Iterator<Item = &'static Param> + '_ {
        self.entry.params.iter().filter(|p| p.default == Default::Required && !self.values.contains_key(p.name))
    }

    /// Whether a parameter is as in [`Part::new`]: at its default, or unset where it has none.
    pub fn is_default(&self, name: &str) -> bool {
        let param = self.entry.params.iter().find(|p| p.name == name);
        self.get(name) == param.and_then(|p| p.default.value()).as_ref()
    }

    /// A set value; `None` when unset.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// An optional real (integers convert).
    pub fn opt_real(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Value::Real(v) => Some(*v),
            Value::Int(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// An optional integer.
    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Value::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// An optional text.
    pub fn opt_text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::Text(v) => Some(v),
            _ => None,
        }
    }

    /// A real that has a default or was required. Panics if the entry has no such parameter: a programming error.
    pub fn real(&self, name: &str) -> f64 {
        self.opt_real(name).unwrap_or_else(|| panic!("{} has no real `{name}`", self.entry.name))
    }

    /// An integer that has a default or was required.
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).unwrap_or_else(|| panic!("{} has no integer `{name}`", self.entry.name))
    }

    /// A text that has a default or was required.
    pub fn text(&self, name: &str) -> &str {
        self.opt_text(name).unwrap_or_else(|| panic!("{} has no text `{name}`", self.entry.name))
    }

    /// A vector that has a default or was required.
    pub fn reals(&self, name: &str) -> &[f64] {
        match self.values.get(name) {
            Some(Value::Reals(v)) => v,
            _ => panic!("{} has no vector `{name}`", self.entry.name),
        }
    }

    /// A truth value that has a default or was required.
    pub fn bool(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Bool(v)) => *v,
            _ => panic!("{} has no truth value `{name}`", self.entry.name),
        }
    }
}

/// A value that does not fit its parameter. Final: the spec is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{param}` must be {expected}, not {found}")]
pub struct ValueError {
    /// The parameter's name.
    pub param: String,
    /// What would have been right.
    pub expected: String,
    /// What was given.
    pub found: String,
}

impl Param {
    /// What a value of this parameter looks like, for error messages and help.
    pub fn expectation(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.ty {
            Type::Bool => "true or false".to_owned(),
            Type::Int { min: i64::MIN, max: i64::MAX } => format!("an integer{unit}"),
            Type::Int { min, max: i64::MAX } => format!("an integer of at least {min}{unit}"),
            Type::Int { min, max } => format!("an integer from {min} to {max}{unit}"),
            Type::Real { min, max, min_allowed, unlimited } => {
                let low = match (min == f64::NEG_INFINITY || min == f64::MIN, min_allowed) {
                    (true, _) => String::new(),
                    (false, true) => format!(" of at least {min}"),
                    (false, false) => format!(" above {min}"),
                };
                let high = if max >= f64::MAX { String::new() } else { format!(" up to {max}") };
                let or = if unlimited { " or \"unlimited\"" } else { "" };
                format!("a number{low}{high}{unit}{or}")
            }
            Type::Choice(names) => {
                format!("one of {}", names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", "))
            }
            Type::Text => "a text".to_owned(),
            Type::Reals { min, max } => format!("a list of numbers from {min} to {max}{unit}"),
        }
    }

    /// Converts a value to this parameter's type and checks its range: integers widen to reals, `"unlimited"` becomes
    /// `+inf` where it is allowed, `-0.0` becomes `0.0`, NaN is refused.
    pub fn check(&self, value: Value) -> Result<Value, ValueError> {
        let real = match &value {
            Value::Int(v) => *v as f64,
            Value::Real(v) => *v,
            _ => f64::NAN,
        };
        let wrong = |value: &Value| ValueError {
            param: self.name.to_owned(),
            expected: self.expectation(),
            found: match value {
                Value::Text(text) => format!("\"{text}\""),
                other => other.to_string(),
            },
        };
        match (self.ty, value) {
            (Type::Bool, v @ Value::Bool(_)) => Ok(v),
            (Type::Int { min, max }, Value::Int(v)) if (min..=max).contains(&v) => Ok(Value::Int(v)),
            (Type::Real { unlimited: true, .. }, Value::Text(t)) if t == "unlimited" => Ok(Value::Real(f64::INFINITY)),
            (Type::Real { unlimited: true, .. }, Value::Real(v)) if v == f64::INFINITY => Ok(Value::Real(v)),
            (Type::Real { min, max, min_allowed, .. }, value @ (Value::Int(_) | Value::Real(_))) => {
                let above = if min_allowed { real >= min } else { real > min };
                if real.is_finite() && above && real <= max { Ok(Value::Real(real + 0.0)) } else { Err(wrong(&value)) }
            }
            (Type::Choice(names), Value::Text(t)) if names.contains(&t.as_str()) => Ok(Value::Text(t)),
            (Type::Text, v @ Value::Text(_)) => Ok(v),
            (Type::Reals { min, max }, Value::Reals(v))
                if !v.is_empty() && v.iter().all(|x| (min..=max).contains(x)) =>
            {
                Ok(Value::Reals(v.into_iter().map(|x| x + 0.0).collect()))
            }
            (_, value) => Err(wrong(&value)),
        }
    }
}
