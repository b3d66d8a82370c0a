//! The registry: every part a manifest can choose, with its parameters.
//!
//! One [`Entry`] describes one part (a workload source, a power model, a queue order, a gear rule, ...). From the
//! entries alone follow: what a manifest may say, the JSON Schema, `powersweep policies`, the typed parameter columns
//! of the results, and a task's identity. A new part is one new file with a `pub const ENTRY` and one line in
//! [`ENTRIES`].
//!
//! Invariants (tested): a parameter name has one declaration, which entries may share, so that it can be a column name; a default
//! lies in its own range; defaults never change once released (identity leaves out values equal to the default).

mod params;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use params::{Default, Param, Type, Value, ValueError};

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
    &crate::policy::gear_rule::top::ENTRY,
    &crate::policy::gear_rule::bsld::ENTRY,
    &crate::policy::capacity::NONE,
    &crate::policy::capacity::two_level::ENTRY,
    &crate::policy::capacity::ols::ENTRY,
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
    &crate::queueing::rates::fcfs::ENTRY,
    &crate::queueing::rates::pme::ENTRY,
    &crate::queueing::rates::lpas::ENTRY,
    &crate::queueing::rates::ordered_beta::ENTRY,
    &crate::queueing::rates::dvs::ENTRY,
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
