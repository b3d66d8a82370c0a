//! One simulation, fully specified: a part for every slot, and a seed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::registry::{self, Part, Slot};

/// The parts of one simulation with all their parameter values. Together with the log's digest it is a task's identity.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSpec {
    /// Shared between the tasks of a sweep that differ in the seed alone; copied when a part changes.
    parts: Arc<BTreeMap<Slot, Part>>,
    /// Seed of every random stream (generators, tie breaks). Explicit, never drawn.
    pub seed: u64,
}

impl SimSpec {
    /// Every slot with its default part, seed 1: EASY at the top gear on a Lublin-Feitelson workload.
    pub fn new() -> SimSpec {
        static DEFAULTS: LazyLock<Arc<BTreeMap<Slot, Part>>> = LazyLock::new(|| {
            let part = |slot: Slot| {
                let entry = registry::find(slot, slot.default_part()).expect("default parts are registered (tested)");
                (slot, Part::new(entry))
            };
            Arc::new(Slot::ALL.into_iter().map(part).collect())
        });
        SimSpec { parts: Arc::clone(&DEFAULTS), seed: 1 }
    }

    /// Whether two specs are copies of one, their seeds aside. `false` says nothing: they may be equal all the same.
    pub fn shares_parts(&self, other: &SimSpec) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// Fills a slot.
    pub fn choose(&mut self, part: Part) {
        Arc::make_mut(&mut self.parts).insert(part.entry().slot, part);
    }

    /// The part of a slot.
    pub fn part(&self, slot: Slot) -> &Part {
        &self.parts[&slot]
    }

    /// The part of a slot, to change its parameters.
    pub fn part_mut(&mut self, slot: Slot) -> &mut Part {
        Arc::make_mut(&mut self.parts).get_mut(&slot).expect("every slot is filled from the start")
    }

    /// All parts in slot order.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.values()
    }

    /// Whether a slot's part has a say in this simulation. Those that do not are at their defaults (see
    /// [`SimSpec::problems`]) and have no value in the results.
    pub fn applies(&self, slot: Slot) -> bool {
        !crate::queueing::is_model(self) || crate::queueing::SLOTS.contains(&slot)
    }

    /// Problems that no single value shows: vectors of different length, contradicting bounds, combinations that make
    /// no sense. Each is a sentence that names the parameters.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = crate::queueing::problems(self);
        // A spec with parts of two kinds makes no sense: nothing more can be said of it.
        if crate::queueing::is_model(self) || !problems.is_empty() {
            return problems;
        }
        problems.extend(crate::platform::gear_problems(self));
        problems.extend(crate::workload::problems(self));
        problems.extend(crate::policy::capacity::problems(self));
        problems.extend(crate::policy::cap::problems(self));
        problems
    }
}

impl std::default::Default for SimSpec {
    fn default() -> Self {
        SimSpec::new()
    }
}
