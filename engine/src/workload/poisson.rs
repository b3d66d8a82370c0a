//! Poisson arrivals of rigid jobs.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of the generator.
pub const ENTRY: Entry = Entry {
    slot: Slot::Source,
    name: "poisson",
    version: 1,
    source: "",
    doc: "Poisson arrivals, exponential run times, sizes uniform on 1..=poisson_size_max procs.",
    params: &[
        super::SYNTHETIC_JOBS,
        super::SYNTHETIC_PROCS,
        Param {
            name: "poisson_rate_per_h",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "1/h",
            default: Default::Real(10.0),
            identity: true,
            doc: "Mean arrivals an hour.",
        },
        Param {
            name: "poisson_run_mean_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "s",
            default: Default::Real(3600.0),
            identity: true,
            doc: "Mean of the exponential run time.",
        },
        Param {
            name: "poisson_size_max",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(64),
            identity: true,
            doc: "Greatest size; sizes are uniform on 1..=this.",
        },
    ],
};

/// The jobs of the model.
pub fn generate(_part: &crate::registry::Part, _seed: u64) -> Vec<super::GeneratedJob> {
    Vec::new()
}
