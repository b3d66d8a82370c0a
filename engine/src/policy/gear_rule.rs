//! The gear (processor frequency) at which a job starts.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Always the top gear.
pub const TOP: Entry = Entry {
    slot: Slot::GearRule,
    name: "top",
    version: 1,
    source: "",
    doc: "Every job runs at the top gear.",
    params: &[],
};
/// The lowest gear that keeps the predicted bounded slowdown below a threshold.
pub const BSLD: Entry = Entry {
    slot: Slot::GearRule,
    name: "bsld",
    version: 1,
    source: "Etinski et al. 2010, Figures 1 and 2, eq. 2",
    doc: "The lowest gear whose predicted bounded slowdown stays below a threshold, while few jobs wait.",
    params: &[
        Param {
            name: "bsld_threshold",
            ty: Type::Real { min: 1.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "",
            default: Default::Required,
            identity: true,
            doc: "A gear is admissible if the predicted bounded slowdown at it is below this (BSLDthreshold).",
        },
        Param {
            name: "wq_threshold",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "jobs",
            default: Default::Real(f64::INFINITY),
            identity: true,
            doc: "Gears are lowered only while at most this many other jobs wait (WQthreshold); `unlimited`: always.",
        },
        Param {
            name: "gear_bsld_tau_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "s",
            default: Default::Real(600.0),
            identity: true,
            doc: "Bound of short run times in the predicted bounded slowdown (Th in eq. 1).",
        },
        Param {
            name: "threshold_inclusive",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(false),
            identity: true,
            doc: "Whether a predicted slowdown equal to the threshold is admissible.",
        },
        Param {
            name: "reservation_inclusive",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(true),
            identity: true,
            doc: "Whether a job may overtake if its estimated end equals the head's reservation.",
        },
        Param {
            name: "head_gear",
            ty: Type::Choice(&["renew", "until-early-end", "fixed"]),
            unit: "",
            default: Default::Text("renew"),
            identity: true,
            doc: "The gear of the reserved head: chosen anew at each pass, kept until a job ends early, or fixed when \
                  the reservation is first made.",
        },
    ],
};
