//! The versions that an experiment's tasks depend on.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::registry::{Entry, Slot};
use powersweep_engine::{SimSpec, queueing};

use crate::Sweep;

/// The name of a part in versions and pins: "slot/name".
pub fn part_id(entry: &Entry) -> String {
    format!("{}/{}", entry.slot.key(), entry.name)
}

impl Sweep {
    /// Every registered part that some task uses, as "slot/name", with this build's version of it. The kernel's version
    /// is not among them.
    pub fn part_versions(&self) -> BTreeMap<String, u32> {
        let mut versions = BTreeMap::new();
        let mut slots = BTreeSet::new();
        let levels = &self.manifest().inner().levels;
        let entries = || levels.iter().flat_map(|l| &l.variants).flat_map(|v| &v.parts).map(|part| part.entry());
        // A manifest's policies are all of one kind: workloads and platforms combine with each.
        let queueing = entries().any(|entry| entry.slot == Slot::Policy && queueing::is_part(entry));
        let applies = |slot: Slot| !queueing || queueing::SLOTS.contains(&slot);
        for entry in entries().filter(|entry| applies(entry.slot)) {
            slots.insert(entry.slot);
            versions.insert(part_id(entry), entry.version);
        }
        let unchosen = |slot: Slot| applies(slot) && !slots.contains(&slot);
        for part in SimSpec::new().parts().filter(|part| unchosen(part.entry().slot)) {
            versions.insert(part_id(part.entry()), part.entry().version);
        }
        versions
    }
}
